"""`rolebundle ls`: list the documents."""

from __future__ import annotations

import json
from typing import Any

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.operation_requests import ListRequest
from rolebundle.interfaces.cli.names import document_names
from rolebundle.interfaces.cli.options import (
    db_option,
    engine_for,
    json_option,
    request_options,
    with_style,
)
from rolebundle.interfaces.layout import columns, cut, terminal_width
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.style import Style
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

_TITLE_CHARS = 60
_ID_CHARS = 1_000
_MIN_TITLE = 8


@click.command()
@click.argument("prefix", required=False, shell_complete=document_names)
@db_option
@request_options(ListRequest, without=["prefix"])
@json_option
@with_style
def ls(
    prefix: str | None, db: str | None, fields: dict[str, Any], as_json: bool, style: Style
) -> None:
    """List documents with date, number of passages and title, ordered by id.

    PREFIX is a folder or path (in the corpus or on this machine), a source, or a glob. ~ marks a
    date that was not declared: it comes from the file's name, its last commit or its last change.

    \b
    rolebundle ls
    rolebundle ls security-review
    rolebundle ls "product/**" --json
    """
    request = parsed(ListRequest, {**({"prefix": prefix} if prefix else {}), **fields})
    with engine_for(db, in_working_folder=True) as engine:
        listing = engine.ls(request)
    if as_json:
        values = listing.model_dump(exclude_none=True)
        click.echo(writable(json.dumps(values, ensure_ascii=False, indent=2)))
        return
    width = terminal_width()
    for document in listing.documents:
        inferred = f"~{document.inferred_at[:10]}" if document.inferred_at else "undated"
        date = document.updated_at[:10] if document.updated_at else inferred
        chunks = counted(document.chunks, "passage")
        title = one_line(document.title, _TITLE_CHARS)
        name = one_line(document.document_id, _ID_CHARS)
        before = f"{date:<11}  {chunks:>12}  "
        space = width - columns(f"{before}{name}  ")
        line = f"{before}{style('locator', name)}"
        # The id is whole, because a person copies it; the title is in what is left of the line.
        shown_title = cut(title, space) if space >= _MIN_TITLE else ""
        click.echo(writable(f"{line}  {shown_title}".rstrip()), color=style.color)
    if not listing.documents:
        click.echo("no document", err=True)
    if listing.next:
        click.echo(
            writable(f"there are more documents; continue with --after {listing.next}"), err=True
        )
