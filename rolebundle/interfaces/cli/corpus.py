"""`rolebundle corpus …`: the care of the corpus file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rolebundle import doctor as doctoring
from rolebundle import errors
from rolebundle.admin import Admin, indexes, records
from rolebundle.admin.backups import copy_to, create_backup, restore_backup
from rolebundle.admin.purges import Selection, finish_pending, plan_of, purge_documents
from rolebundle.contracts import ingest, upkeep
from rolebundle.contracts.base import attributes_of
from rolebundle.embedding.registry import parse_spec
from rolebundle.interfaces.cli import folders
from rolebundle.interfaces.cli.ingest import watch
from rolebundle.interfaces.cli.options import (
    PATH,
    Call,
    GroupWithDefault,
    flag,
    with_call,
    with_json,
)
from rolebundle.interfaces.cli.output import field_lines, print_first, print_note, progress_bar
from rolebundle.storage.file import corpus_path, published_folder
from rolebundle.storage.partition import Flagged, flagged_documents
from rolebundle.storage.purge import backups as backups_of
from rolebundle.storage.purge import delete_backups
from rolebundle.storage.roots import load
from rolebundle.text.words import counted


@click.group()
def corpus() -> None:
    """Care for the corpus file and what it holds.

    \b
    rolebundle corpus doctor
    rolebundle corpus backup /media/disk/team.db
    rolebundle corpus roots list
    """


corpus.add_command(watch)

_yes_option = flag("--yes", "Do it. Without this, only show what would be done.")


@corpus.command(short_help="Check and repair the file")
@flag("--repair", "Make damaged indexes again.")
@with_json
def doctor(call: Call, repair: bool) -> None:
    """Check the corpus and the files beside it. Change nothing without --repair.

    One line for each check: ok, a warning or a problem, with what to do about it. The checks work
    on a private copy, so they need room for it in the folder for temporary files ($TMPDIR).

    Exit code 0 if there is no problem, also if there are warnings; 7 if the corpus or its audit is
    damaged.

    --repair makes the indexes again: words from the stored texts; damaged vectors are removed, and
    the next ingest makes them. A corpus with other damage is not changed; restore a backup.

    \b
    rolebundle corpus doctor
    rolebundle corpus doctor --repair
    rolebundle corpus doctor --json --db team.db
    """
    if repair:
        call.print(doctoring.repair(call.path))
        return
    report = doctoring.examine(call.path)
    call.print(report)
    if not report.sound:
        step = "follow the remedies above; `rolebundle corpus doctor --repair` mends indexes"
        raise errors.CorpusCorrupt("check_failed", f"{report.location}: problems were found", step)


@corpus.command(short_help="Remove the corpus of folders")
@click.argument("in_folders", metavar="FOLDER...", nargs=-1, required=True, type=PATH)
@_yes_option
def forget(in_folders: tuple[Path, ...], yes: bool) -> None:
    """Remove the corpus that --in made of these folders, with its facts, decisions and audit.

    Name all folders that were given with --in together. Nothing in them is changed.

    \b
    rolebundle corpus forget notes/
    rolebundle corpus forget notes/ --yes
    """
    folder = folders.corpus_of(in_folders).parent
    if not folder.is_dir():
        step = "`rolebundle ls --corpora` lists the corpora and their folders"
        raise errors.UsageError("no_such_corpus", f"{folder}: no corpus of these folders", step)
    if not yes:
        click.echo(f"would remove {folder}; --yes removes it")
        return
    shutil.rmtree(folder)
    click.echo(f"{folder}: removed")


@corpus.command(short_help="Copy it while others use it")
@click.argument("file", type=PATH)
@with_json
def backup(call: Call, file: Path) -> None:
    """Copy the corpus with its policy and its audit, while other processes may write.

    The backup is FILE, FILE.audit if there is an audit, and FILE.manifest.json with their hashes.
    FILE gets its name after a full check. An existing file is not replaced. Documents that a
    purge erases later stay in the backup.

    \b
    rolebundle corpus backup /media/disk/team.db
    """
    report = call.owner(create_backup, file)
    call.print(report)
    for warning in report.warnings:
        print_note(f"warning: {warning}")


@corpus.command("copy", short_help="Copy it between a file and a database")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@with_json
def copy_command(call: Call, source: str, target: str) -> None:
    """Copy a corpus with its audit to a new file or to an empty database, or back.

    FROM and TO are files, or addresses of PostgreSQL. Ids, vectors, marks and decisions stay as
    they are. What was published from FROM stays there.

    \b
    rolebundle corpus copy team.db postgresql://writer@db.example.com/team
    """
    call.print(Call(db=source).owner(copy_to, corpus_path(target)))


def _require_yes(location: str, *, yes: bool) -> None:
    """Raise a UsageError if what a command would do was not confirmed with --yes."""
    if not yes:
        raise errors.UsageError(
            "not_confirmed", f"{location}: nothing was changed", "run the same command with --yes"
        )


@corpus.command(short_help="Replace it by a backup")
@click.argument("file", type=PATH)
@_yes_option
@with_json
def restore(call: Call, file: Path, yes: bool) -> None:
    """Replace the corpus, which may be damaged or missing, by a backup.

    The backup is verified first. The former corpus is kept as NAME.replaced-DATE-TIME with its log,
    until you delete it. The present audit is kept if it continues that of the backup. While another
    process has the corpus open for writing, nothing is done (exit code 5).

    \b
    rolebundle corpus restore /media/disk/team.db
    rolebundle corpus restore /media/disk/team.db --yes
    """
    report = call.owner(restore_backup, file, confirmed=yes)
    call.print(report)
    if report.purges_undone:
        print_note(
            f"warning: {counted(report.purges_undone, 'purge')} came after this backup; it has the "
            "purged documents, so purge them again"
        )
    _require_yes(report.location, yes=yes)


@corpus.command(short_help="Erase documents and every byte of them")
@click.argument("names", nargs=-1, metavar="[DOCUMENT|PATH|GLOB|SOURCE]...")
@click.option(
    "--decision", "decisions", metavar="ID", multiple=True, help="Purge this decision, too."
)
@flag("--dry-run", "Only show what would be erased.")
@_yes_option
@flag("--backups", "Also delete the backups that migrations made.")
@with_json
def purge(
    call: Call,
    names: tuple[str, ...],
    decisions: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    backups: bool,
) -> None:
    """Erase documents, so that no byte of them is left in the corpus file or the files beside it.

    Text, words, titles, paths, ids and vectors are erased. Remembered facts that cite one of the
    documents are erased, too. The whole file is rewritten, which needs disk space for two more
    copies. The receipt records that something was erased, but not what. If another process is still
    reading the old data, the purge is pending (exit code 5). A purge without names or the next
    ingest completes it.

    A document is named by its id, by the path of its file, here or in the corpus, or by a glob of
    paths or ids; all documents of a source by its name.

    The marks of what is erased go with it. Of a decision (--decision) the words and names are
    erased; its number stays, and it has ended.

    Replicas that ever held one of the documents are listed; publish them again, so that they are
    replaced. Copies that were pulled stay as they are until their next pull.

    Files in your folders and the audit are not changed. If the audit keeps the text of queries,
    that text stays. Freed blocks of the disk are not overwritten.

    \b
    rolebundle corpus purge hr/reviews-2025.md --dry-run
    rolebundle corpus purge old-wiki --yes
    rolebundle corpus purge "contracts/**/draft-*.md" --json --yes
    rolebundle corpus purge
    """
    selection = Selection(names, decisions, str(Path.cwd()))
    chosen = bool(names or decisions)
    with call.admin() as admin:
        path = admin.workspace.path
        if dry_run or ((chosen or backups) and not yes):
            only_backups = upkeep.PurgePreview(backups=[str(backup) for backup in backups_of(path)])
            plan = plan_of(admin.workspace, selection) if chosen else only_backups
            call.print(plan, exclude_none=True)
            if not call.as_json:
                _warn_of(plan)
            _require_yes(str(path), yes=dry_run)
            return
        receipts, returning = (
            _erase(admin, selection) if chosen else (finish_pending(admin.workspace), ())
        )
        deleted = delete_backups(path) if backups else 0
        left = [str(backup) for backup in backups_of(path)]
    result = upkeep.PurgeResult(
        receipts=receipts, returning=[*returning], backups=left, backups_deleted=deleted
    )
    call.print(result, None if receipts or chosen or backups else ["no purge was pending"])
    _warn(returning, left)
    _print_publications(receipt.publications for receipt in receipts)
    _refuse_pending(receipts, path)


def _erase(admin: Admin, selection: Selection) -> tuple[list[upkeep.Receipt], Sequence[str]]:
    try:
        plan = plan_of(admin.workspace, selection)
    except errors.UsageError as error:
        # The documents may be gone already, if an earlier run was killed before its report.
        pending = finish_pending(admin.workspace) if error.code == "nothing_to_purge" else []
        if not pending:
            raise
        print_note(f"{error.message}; an earlier purge was pending and was continued")
        return pending, ()
    return [purge_documents(admin.workspace, selection)], plan.returning or ()


def _warn_of(plan: upkeep.PurgePreview) -> None:
    if plan.facts:
        count = counted(len(plan.facts), "remembered fact")
        print_note(f"among them are {count}, because a fact goes with the document that it cites")
    _warn(plan.returning or (), ())
    _print_publications([plan.publications or ()])


def _warn(returning: Sequence[str], backups: Sequence[str]) -> None:
    on_disk = "still on disk, and the next ingest would add it again"
    print_first([f"{on_disk}: {location}" for location in returning])
    if returning:
        print_note("delete these files, or list them under `ignore` in their rolebundle.toml")
    for backup in backups:
        print_note(f"this backup may still hold the documents: {backup}; --backups deletes it")


def _print_publications(lists: Iterable[Sequence[upkeep.PublishedCopy]]) -> None:
    copies = list(dict.fromkeys(copy for published in lists for copy in published))
    for line in field_lines({"copies": [copy.model_dump() for copy in copies]}):
        print_note(f"published: {line}")
    if copies:
        print_note(
            "copies that were pulled cannot be reached from here: each stays as it is until its "
            "next `rolebundle replica pull`, and one that never pulls again keeps the bytes"
        )


_IN_USE = (
    errors.CorpusBusy,
    "another process uses the corpus, so that their bytes are still in it",
    "end that process or wait for it",
)
_PENDING: Mapping[str, tuple[type[errors.RolebundleError], str, str]] = {
    "disk": (
        errors.StorageError,
        "rewriting the file failed, so that their bytes are still in it",
        "free disk space for two more copies of it",
    ),
    "staging": (
        errors.StorageError,
        "the last replica of a publication may hold them: a folder in {folder} cannot be deleted",
        "delete that folder",
    ),
    "publisher": (
        errors.CorpusBusy,
        "another process publishes the corpus, and its replica may hold them",
        "wait for that process to end",
    ),
    "reader": _IN_USE,
    "writer": _IN_USE,
}
"""What a purge waits for, the worst first → the error, the reason and the next step."""


def _refuse_pending(receipts: Sequence[upkeep.Receipt], path: Path) -> None:
    waiting_for = {receipt.waiting_for for receipt in receipts if receipt.state == "pending"}
    for cause, (kind, reason, step) in _PENDING.items():
        if cause in waiting_for:
            raise kind(
                "purge_pending",
                f"{path}: the purged documents cannot be found any more, but "
                f"{reason.format(folder=published_folder(path))}",
                f"{step}, then run `rolebundle corpus purge`",
            )


@corpus.group(short_help="List, move and remove the ingested folders")
def roots() -> None:
    """List, move and remove the folders and files that were ingested.

    \b
    rolebundle corpus roots list
    rolebundle corpus roots move notes /media/disk/notes
    rolebundle corpus roots remove old-project --yes
    """


@roots.command("list")
@with_json
def roots_list_command(call: Call) -> None:
    """List the roots with path, source, number of documents and time of the last change.

    \b
    rolebundle corpus roots list
    rolebundle corpus roots list --json
    """
    with call.admin() as admin:
        known = ingest.RootList(roots=load(admin.workspace.corpus))
    call.print(known, empty="no root: run `rolebundle ingest PATH`; a replica has none")


@roots.command("move")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@with_json
def move_command(call: Call, old: Path, new: Path) -> None:
    """Change the path of a root in the corpus. No file is moved.

    Ids, vectors and options of its documents stay. An ingest of the new path would take it for
    another root.

    \b
    rolebundle corpus roots move notes /media/disk/notes
    """
    call.print(call.owner(records.move_root, old, new))
    print_note("next: run `rolebundle ingest`")


@roots.command("remove")
@click.argument("path", type=PATH)
@_yes_option
@with_json
def remove_command(call: Call, path: Path, yes: bool) -> None:
    """Forget a root and remove its documents from the corpus. Your files are not changed.

    `rolebundle corpus purge` also erases every byte of the documents.

    \b
    rolebundle corpus roots remove old-project
    rolebundle corpus roots remove old-project --yes
    """
    change = call.owner(records.remove_root, path, confirmed=yes)
    call.print(change)
    _require_yes(change.location, yes=yes)


@corpus.group(cls=GroupWithDefault, short_help="Fill the vectors, or build another model's index")
def embed() -> None:
    """Embed the chunks that have no vector, or build another model's index and switch to it.

    \b
    rolebundle corpus embed                              embed the chunks that wait
    rolebundle corpus embed --model onnx                 needs: pip install '.[onnx]'
    rolebundle corpus embed drop 2                       an index that `status` lists
    """


@embed.command("run")
@click.option(
    "--model",
    metavar="PROVIDER[:NAME]",
    help="Build the index of this model: static, onnx[:NAME], folder:PATH, ollama:NAME or "
    "openai[:NAME].",
)
@with_json
def embed_command(call: Call, model: str | None) -> None:
    """Embed the chunks that have no vector, or switch to another model, and build its index.

    `rolebundle corpus embed` does the same. The old index is used until the new one is complete. If
    a run is killed, the next run continues where it stopped. A server on another machine is refused
    unless $ROLEBUNDLE_EMBED_ALLOW_HOST names it; $ROLEBUNDLE_EMBED_URL is its address.

    \b
    rolebundle corpus embed run
    rolebundle corpus embed --in notes/
    rolebundle corpus embed --model ollama:nomic-embed-text
    rolebundle corpus embed --model folder:/media/stick/bge-small-en-v1.5
    """
    call.read_folders()
    workspace = call.admin().workspace
    spec = None if model is None else parse_spec(model, workspace.embed_url, workspace.allow_host)
    with progress_bar() as progress:
        report = indexes.embed(workspace, spec, progress=progress)
    lines = [f"{counted(report.embedded, 'chunk')} embedded, {report.waiting} waiting"]
    call.print(upkeep.EmbedResult(embedded=report.embedded, waiting=report.waiting), lines)
    if report.waiting:
        raise errors.EmbedderError(
            "embedding_incomplete",
            f"{counted(report.waiting, 'chunk')} still without a vector: {report.problem}",
            "correct the problem and run the same command again; it continues where it stopped, "
            "and the active index answers until then",
        )


@embed.command("drop")
@click.argument("index")
@with_call()
def drop_index(call: Call, index: str) -> None:
    """Remove an inactive index and its vectors.

    INDEX is provider:model, or the number that `rolebundle status` shows.

    \b
    rolebundle corpus embed drop 1
    """
    call.owner(indexes.drop_index, index)
    print_note(f"{index} was removed")


@corpus.group(short_help="List, release and drop dangerous documents")
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
@flag("--all", "List all documents with findings.", "include_all")
@with_json
def quarantine_list_command(call: Call, include_all: bool) -> None:
    """List the quarantined documents, with the kinds of findings.

    \b
    rolebundle corpus quarantine list
    rolebundle corpus quarantine list --all --json
    """
    with call.admin() as admin:
        documents = flagged_documents(
            admin.workspace.answering_corpus, "" if include_all else "quarantine"
        )
    summaries = [ingest.QuarantinedDocument(**_summary(document)) for document in documents]
    empty = "no document has findings" if include_all else "no document is quarantined"
    call.print(ingest.QuarantineList(documents=summaries), empty=empty)


@quarantine.command("show")
@click.argument("document")
@with_json
def show_command(call: Call, document: str) -> None:
    """Show the findings in one document and their places, but never the text of a secret.

    Offsets count the characters of the document as it was read: title, empty line, text.

    \b
    rolebundle corpus quarantine show wiki/notes.md
    rolebundle corpus quarantine show wiki/notes.md --json
    """
    with call.admin() as admin:
        flagged = records.flagged_document(admin.workspace.answering_corpus, document)
    findings = json.loads(flagged.scanned.findings)
    call.print(ingest.QuarantineDetails(**_summary(flagged), findings=findings))


@quarantine.command("release")
@click.argument("document")
@with_call()
def release_command(call: Call, document: str) -> None:
    """Release a document. It may be quarantined again when its text changes.

    \b
    rolebundle corpus quarantine release wiki/notes.md
    """
    call.owner(records.release_document, document)
    click.echo(f"{document}: released")


@quarantine.command("drop")
@click.argument("document")
@with_call()
def drop_command(call: Call, document: str) -> None:
    """Remove a document from the corpus. It is ingested again when its file changes.

    \b
    rolebundle corpus quarantine drop wiki/notes.md
    """
    call.owner(records.drop_document, document)
    click.echo(f"{document}: dropped")


def _summary(document: Flagged) -> dict[str, Any]:
    own, scanned = attributes_of(document, "document_id", "title", "path"), document.scanned
    return own | {"verdict": scanned.verdict, "kinds": json.loads(scanned.kinds)}
