"""`rolebundle formats`: which files are read."""

from __future__ import annotations

import textwrap

import click

from rolebundle.contracts.ingest import FormatList
from rolebundle.ingest.formats import formats as all_formats
from rolebundle.interfaces.cli.options import json_option
from rolebundle.interfaces.cli.output import print_json

_WIDTH = 100


@click.command()
@json_option
def formats(as_json: bool) -> None:
    """List the formats that ingest reads and the kinds of files that it skips.

    Each format has its suffixes, what is read, and an example of the place that a citation names. A
    file of any format may be compressed by gzip. Text with an unknown suffix is read as plain text.

    \b
    rolebundle formats
    rolebundle formats --json
    """
    listing = all_formats()
    if as_json:
        print_json(listing, indent=2)
    else:
        click.echo(_text(listing))


def _text(listing: FormatList) -> str:
    lines: list[str] = []
    for item in listing.formats:
        lines.append(f"{item.name:<13} {item.content} ({item.anchor})")
        lines += _wrapped(" ".join(item.suffixes))
    lines += ["", "not read:"]
    for kind in listing.unsupported:
        lines += _wrapped(f"{kind.kind}: {' '.join(kind.suffixes)}", indent="  ")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = " " * 14) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
