"""`rolebundle corpus`: the care of the corpus file."""

from __future__ import annotations

import click

from rolebundle.interfaces.cli.command_list import CORPUS
from rolebundle.interfaces.cli.lazy_group import LazyGroup


@click.group(cls=LazyGroup, sections=CORPUS)
def corpus() -> None:
    """Care for the corpus file and what it holds.

    \b
    rolebundle corpus doctor
    rolebundle corpus backup /media/disk/team.db
    rolebundle corpus roots list
    """
