"""The contextual index after a command that ingests: at its end, or in the background."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rolebundle.admin.indexes import complete
from rolebundle.contracts.base import writable
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.cli.output import duration, progress_bar
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.admin.indexing import Indexing

_LEFT = "left to `rolebundle watch`, `rolebundle serve` or `rolebundle corpus embed`"


def complete_index(admin: Admin) -> None:
    """Go on with the contextual index, after the command has reported its own work.

    Raises:
        KeyboardInterrupt: Ctrl-C. What was embedded is kept.
    """
    is_announced = False

    def show_progress(step: str, done: int, total: int) -> None:
        nonlocal is_announced
        if not is_announced:
            _print(
                f"the corpus answers already; a contextual model embeds {total - done:,} passages "
                "for better answers. Ctrl-C ends this, and the next ingest continues"
            )
        is_announced = True
        progress(step, done, total)

    try:
        with progress_bar() as progress:
            report = complete(admin.workspace, progress=show_progress, is_patient=False)
    except RolebundleError as error:
        _print(f"warning: the contextual index is not complete: {error}")
        return
    if report is None:
        return
    if report.seconds_left:
        left = duration(report.seconds_left)
        _print(f"{counted(report.waiting, 'passage')} would take about {left}: {_LEFT}")
    elif report.problem:
        _print(f"warning: the contextual index is not complete: {report.problem}")
    else:
        _print(f"{counted(report.embedded, 'passage')} embedded; the contextual index is complete")


def background_indexing(path: Path, print_line: Callable[[str], None] | None = None) -> Indexing:
    """What completes the contextual index until the command ends, once it is started.

    Args:
        path: the corpus file.
        print_line: called with each line for a person.
    """
    from rolebundle.admin.indexing import Indexing

    indexing = Indexing(path, print_line or _print)
    click.get_current_context().call_on_close(indexing.stop)
    return indexing


def _print(line: str) -> None:
    with suppress(OSError):
        click.echo(writable(line), err=True)
