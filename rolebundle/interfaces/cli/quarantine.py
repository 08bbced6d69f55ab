"""`rolebundle corpus quarantine list | show | release | drop`: documents with severe findings."""

from __future__ import annotations

import json
from typing import Any

import click

from rolebundle.admin.records import drop_document, release_document
from rolebundle.contracts.quarantine import QuarantinedDocument, QuarantineDetails, QuarantineList
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.scan.quarantine import flagged_document
from rolebundle.storage.content.quarantine import Flagged, flagged_documents


@click.group()
def quarantine() -> None:
    """List, release and drop documents that the scan put into quarantine.

    Ingest scans for hidden text, instructions to a model, and secrets. A document with severe
    findings is stored, but no agent gets it until a person releases it.

    \b
    rolebundle corpus quarantine list
    rolebundle corpus quarantine show wiki/notes.md
    rolebundle corpus quarantine release wiki/notes.md
    """


@quarantine.command("list")
@click.option("--all", "include_all", is_flag=True, help="List all documents with findings.")
@db_option
@json_option
def list_command(include_all: bool, db: str | None, as_json: bool) -> None:
    """List the quarantined documents, with the kinds of findings.

    \b
    rolebundle corpus quarantine list
    rolebundle corpus quarantine list --all --json
    """
    with admin_for(db) as admin:
        documents = flagged_documents(
            admin.workspace.answering_corpus, "" if include_all else "quarantine"
        )
    summaries = [QuarantinedDocument(**_summary(document)) for document in documents]
    lines = (f"{item.document_id}  {item.verdict}  {', '.join(item.kinds)}" for item in summaries)
    empty = "no document has findings" if include_all else "no document is quarantined"
    print_answer(QuarantineList(documents=summaries), lines, as_json=as_json, empty=empty)


@quarantine.command("show")
@click.argument("document", metavar="DOCUMENT")
@db_option
@json_option
def show_command(document: str, db: str | None, as_json: bool) -> None:
    """Show the findings in one document and their places, but never the text of a secret.

    Offsets count the characters of the document as it was read: title, empty line, text.

    \b
    rolebundle corpus quarantine show wiki/notes.md
    rolebundle corpus quarantine show wiki/notes.md --json
    """
    with admin_for(db) as admin:
        flagged = flagged_document(admin.workspace.answering_corpus, document)
    findings = json.loads(flagged.scanned.findings)
    lines = [f"{flagged.document_id}  {flagged.scanned.verdict}  {flagged.path}"]
    lines += [
        f"  {finding['start']}-{finding['end']}  {finding['kind']} "
        f"({finding['severity']}): {finding['note']}"
        for finding in findings
    ]
    details = QuarantineDetails.model_validate({**_summary(flagged), "findings": findings})
    print_answer(details, lines, as_json=as_json)


@quarantine.command("release")
@click.argument("document", metavar="DOCUMENT")
@db_option
def release_command(document: str, db: str | None) -> None:
    """Release a document. It may be quarantined again when its text changes.

    \b
    rolebundle corpus quarantine release wiki/notes.md
    """
    with admin_for(db) as admin:
        release_document(admin.workspace, document)
    click.echo(f"{document}: released")


@quarantine.command("drop")
@click.argument("document", metavar="DOCUMENT")
@db_option
def drop_command(document: str, db: str | None) -> None:
    """Remove a document from the corpus. It is ingested again when its file changes.

    \b
    rolebundle corpus quarantine drop wiki/notes.md
    """
    with admin_for(db) as admin:
        drop_document(admin.workspace, document)
    click.echo(f"{document}: dropped")


def _summary(document: Flagged) -> dict[str, Any]:
    return {
        "document_id": document.document_id,
        "title": document.title,
        "path": document.path,
        "verdict": document.scanned.verdict,
        "kinds": json.loads(document.scanned.kinds),
    }
