"""`rolebundle quarantine list | show | release | drop`: what the scan at the door keeps back."""

from __future__ import annotations

import json
from typing import Any

import click

from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.storage.quarantine import Flagged


@click.group()
def quarantine() -> None:
    """Documents that no agent sees, because of what was found in them.

    Ingest looks for hidden text, instructions to a model, and secrets. What weighs too much is
    stored, and shown to nobody until a person releases it.

    \b
    rolebundle quarantine list
    rolebundle quarantine show wiki/notes.md
    rolebundle quarantine release wiki/notes.md
    """


@quarantine.command("list")
@click.option("--all", "everything", is_flag=True, help="All documents with findings.")
@db_option
@json_option
def list_command(everything: bool, db: str | None, as_json: bool) -> None:
    """What is kept back, and why.

    \b
    rolebundle quarantine list
    rolebundle quarantine list --all --json
    """
    with admin_for(db) as admin:
        found = admin.flagged_documents("" if everything else "quarantine")
    if as_json:
        click.echo(json.dumps({"documents": [_brief(one) for one in found]}, ensure_ascii=False))
        return
    for one in found:
        kinds = ", ".join(json.loads(one.scanned.kinds))
        click.echo(f"{one.document_id}  {one.scanned.verdict}  {kinds}")
    if not found:
        click.echo("nothing is kept back", err=True)


@quarantine.command("show")
@click.argument("document", metavar="DOCUMENT")
@db_option
@json_option
def show_command(document: str, db: str | None, as_json: bool) -> None:
    """What was found in one document, and where; never the text itself of a secret.

    Offsets count the characters of the document as it was read: its title, an empty line, its
    text.

    \b
    rolebundle quarantine show wiki/notes.md
    rolebundle quarantine show wiki/notes.md --json
    """
    with admin_for(db) as admin:
        found = admin.flagged_document(document)
    findings = json.loads(found.scanned.findings)
    if as_json:
        click.echo(json.dumps({**_brief(found), "findings": findings}, ensure_ascii=False))
        return
    click.echo(f"{found.document_id}  {found.scanned.verdict}  {found.path}")
    for one in findings:
        click.echo(
            f"  {one['start']}-{one['end']}  {one['kind']} ({one['severity']}): {one['note']}"
        )


@quarantine.command("release")
@click.argument("document", metavar="DOCUMENT")
@db_option
def release_command(document: str, db: str | None) -> None:
    """Let a document be seen. It comes back here when its text changes.

    \b
    rolebundle quarantine release wiki/notes.md
    """
    with admin_for(db) as admin:
        admin.release_document(document)
    click.echo(f"{document}: released")


@quarantine.command("drop")
@click.argument("document", metavar="DOCUMENT")
@db_option
def drop_command(document: str, db: str | None) -> None:
    """Remove a document. It comes back when its file changes.

    \b
    rolebundle quarantine drop wiki/notes.md
    """
    with admin_for(db) as admin:
        admin.drop_document(document)
    click.echo(f"{document}: dropped")


def _brief(one: Flagged) -> dict[str, Any]:
    return {
        "document_id": one.document_id,
        "title": one.title,
        "path": one.path,
        "verdict": one.scanned.verdict,
        "kinds": json.loads(one.scanned.kinds),
    }
