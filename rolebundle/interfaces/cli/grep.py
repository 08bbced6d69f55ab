"""`rolebundle grep`: find lines by an exact text or a regular expression."""

from __future__ import annotations

import json
from typing import Any

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.operation_requests import GrepRequest
from rolebundle.interfaces.cli.names import document_names
from rolebundle.interfaces.cli.options import (
    db_option,
    engine_for,
    json_option,
    request_options,
    with_style,
)
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.style import Style
from rolebundle.retrieval.answer.passage_text import line_notes, one_line

_LOCATOR_CHARS = 1_000


@click.command()
@click.argument("pattern")
@click.argument("prefix", required=False, shell_complete=document_names)
@db_option
@request_options(GrepRequest, without=["pattern", "prefix"])
@json_option
@with_style
def grep(
    pattern: str,
    prefix: str | None,
    db: str | None,
    fields: dict[str, Any],
    as_json: bool,
    style: Style,
) -> None:
    """Find lines with a text, such as a name, a number or an error code.

    PATTERN is an exact text. Case counts only if it has a capital letter. PREFIX is a folder or
    path (in the corpus or on this machine), a source, or a glob. It searches what `get` shows:
    without hidden text, with secrets masked.

    \b
    rolebundle grep "reuse grace window"
    rolebundle grep --regex "E-\\d{4}" "product/**" --json
    """
    given = {"pattern": pattern, **({"prefix": prefix} if prefix else {}), **fields}
    with engine_for(db, in_working_folder=True) as engine:
        found = engine.grep(parsed(GrepRequest, given))
    values = found.model_dump(exclude_none=True)
    if as_json:
        click.echo(writable(json.dumps(values, ensure_ascii=False, indent=2)))
        return
    for line in values["lines"]:
        locator = style("locator", one_line(line["locator"], _LOCATOR_CHARS))
        notes = line_notes(line)
        text = f"{locator}: {harmless(line['text'])}" + (style("caution", notes) if notes else "")
        click.echo(writable(text), color=style.color)
    if not found.lines:
        click.echo("no line matches", err=True)
    if found.next:
        click.echo(writable(f"there are more lines; continue with --after {found.next}"), err=True)
