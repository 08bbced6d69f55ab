"""`rolebundle get`: follow a reference back into the corpus."""

from __future__ import annotations

import json

import click

from rolebundle.interfaces.cli.options import agent_option, db_option, engine_for, json_option
from rolebundle.interfaces.shape import shaped_lookup


@click.command()
@click.argument("reference", metavar="ID")
@db_option
@agent_option
@json_option
def get(reference: str, db: str | None, agent: str | None, as_json: bool) -> None:
    """Show a chunk, a document, or a part of one.

    ID is a chunk id, a document id, path:start-end (lines), or #document:from:count (passages,
    counted from 1).

    \b
    rolebundle get security-review/security/token-lifecycle-audit.md
    rolebundle get security/token-lifecycle-audit.md:12-20
    rolebundle get "#security-review/security/token-lifecycle-audit.md:2:3"
    """
    with engine_for(db) as engine:
        found = engine.get(reference, agent)
    if as_json:
        click.echo(json.dumps(shaped_lookup(found), ensure_ascii=False, indent=2))
        return
    document = found.document
    dated = document.updated_at or "undated"
    click.echo(f"{document.title} [{document.source_id}] · {document.trust_tier} · {dated}")
    for newer in document.superseded_by:
        click.echo(f"superseded by {newer}")
    for passage in found.passages:
        click.echo(f"\n── {passage.locator}  {passage.chunk_id}")
        click.echo(passage.content)
