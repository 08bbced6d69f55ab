"""`rolebundle corpus formats`: which files are read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from rolebundle.contracts.ingest import FormatList
from rolebundle.ingest.formats import formats as all_formats
from rolebundle.interfaces.cli.options import json_option
from rolebundle.interfaces.cli.output import print_answer

_WIDTH = 100


@click.command()
@json_option
def formats(as_json: bool) -> None:
    """List the formats that ingest reads and the kinds of files that it skips.

    Each format has its suffixes, what is read, and an example of the place that a citation names. A
    file of any format may be compressed by gzip. Text with an unknown suffix is read as plain text.

    \b
    rolebundle corpus formats
    rolebundle corpus formats --json
    """
    listing = all_formats()
    print_answer(listing, _lines(listing), as_json=as_json, indent=2)


def _lines(listing: FormatList) -> Iterator[str]:
    for item in listing.formats:
        yield f"{item.name:<13} {item.content} ({item.anchor})"
        yield from _wrapped(" ".join(item.suffixes))
    yield from ("", "not read:")
    for kind in listing.unsupported:
        yield from _wrapped(f"{kind.kind}: {' '.join(kind.suffixes)}", indent="  ")


def _wrapped(text: str, indent: str = " " * 14) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
