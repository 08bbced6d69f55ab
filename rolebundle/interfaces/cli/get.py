"""`rolebundle get`: read what a reference names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from rolebundle.contracts.lookup import Lookup
from rolebundle.contracts.request import GetRequest
from rolebundle.interfaces.cli.names import document_names
from rolebundle.interfaces.cli.options import db_option, engine_for, json_option, request_options
from rolebundle.interfaces.cli.output import writable
from rolebundle.interfaces.shape import shaped_lookup
from rolebundle.retrieval.passage_text import flag_note, mark_note


@click.command()
@click.argument("reference", metavar="REFERENCE", shell_complete=document_names)
@db_option
@request_options(GetRequest, only=["agent"])
@json_option
def get(reference: str, db: str | None, fields: dict[str, Any], as_json: bool) -> None:
    """Show a chunk, a document, or a part of one.

    REFERENCE is a chunk id, a document id, the path of a file (in the corpus or on this machine),
    path:start-end (lines), or #document:from:count (passages, counted from 1).

    \b
    rolebundle get security-review/security/token-lifecycle-audit.md
    rolebundle get security/token-lifecycle-audit.md:12-20
    rolebundle get ~/docs/security/token-lifecycle-audit.md
    rolebundle get "#security-review/security/token-lifecycle-audit.md:2:3"
    """
    with engine_for(db, here=True) as engine:
        lookup = engine.get(reference, **fields)
    if as_json:
        click.echo(writable(json.dumps(shaped_lookup(lookup), ensure_ascii=False, indent=2)))
    else:
        click.echo(writable("\n".join(lookup_lines(lookup))))


def lookup_lines(lookup: Lookup) -> Iterator[str]:
    """A lookup as text for a person."""
    document = lookup.document
    file_date = f"file of {document.inferred_at}" if document.inferred_at else "undated"
    date = document.updated_at or file_date
    yield f"{document.title} [{document.source_id}] · {document.trust_tier} · {date}"
    if document.valid_from or document.valid_until:
        valid = [document.valid_from or "always", document.valid_until or "any time"]
        yield f"valid from {valid[0]} until {valid[1]}"
    for document_id in document.superseded_by:
        yield f"superseded by {document_id}"
    for passage in lookup.passages:
        mark = mark_note(passage.mark.model_dump() if passage.mark else None)
        labels = "".join(f"  {label}" for label in (flag_note(passage.flags), mark) if label)
        anchor = f" ({passage.anchor})" if passage.anchor else ""
        yield f"\n── {passage.locator}{anchor}  {passage.chunk_id}{labels}"
        yield passage.content
