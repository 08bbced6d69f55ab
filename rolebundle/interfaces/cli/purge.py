"""`rolebundle corpus purge`: erase documents, and every byte of them from the files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rolebundle.admin.purges import (
    PurgePlan,
    PurgeSelection,
    finish_pending,
    plan_of,
    purge_documents,
)
from rolebundle.contracts.base import writable
from rolebundle.contracts.purge import PurgePreview, PurgeResult
from rolebundle.errors import CorpusBusy, RolebundleError, StorageError, UsageError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_first, print_json
from rolebundle.storage.location import published_folder
from rolebundle.storage.purge import backups as backups_of
from rolebundle.storage.purge import delete_backups
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.contracts.purge import PublishedCopy, Receipt


@click.command()
@click.argument("names", nargs=-1, metavar="[DOCUMENT|PATH|GLOB|SOURCE]...")
@db_option
@click.option("--source", "as_sources", is_flag=True, help="The names are names of sources.")
@click.option(
    "--decision", "decisions", metavar="ID", multiple=True, help="Purge this decision, too."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask. Required if there is no terminal.")
@click.option(
    "--backups",
    is_flag=True,
    help="Also delete the backups that migrations made.",
)
@json_option
def purge(
    names: tuple[str, ...],
    db: str | None,
    as_sources: bool,
    decisions: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    backups: bool,
    as_json: bool,
) -> None:
    """Erase documents, so that no byte of them is left in the corpus file or the files beside it.

    Text, words, titles, paths, ids and vectors are erased. Remembered facts that cite one of the
    documents are erased, too. The whole file is rewritten, which needs disk space for two more
    copies. The receipt records that something was erased, but not what. If another process is still
    reading the old data, the purge is pending (exit code 5). A purge without names or the next
    ingest completes it.

    A document is named by its id, by the path of its file, here or in the corpus, by a chunk id or
    path:start-end, or by a glob of paths or ids: the whole document is erased.

    The marks of what is erased go with it. Of a decision (--decision) the words and names are
    erased; its number stays, and it has ended.

    Replicas that ever held one of the documents are listed; publish them again, so that they are
    replaced. Copies that were pulled stay as they are until their next pull.

    Files in your folders and the audit are not changed. If the audit keeps the text of queries,
    that text stays. Freed blocks of the disk are not overwritten.

    \b
    rolebundle corpus purge hr/reviews-2025.md --dry-run
    rolebundle corpus purge old-wiki --source --yes
    rolebundle corpus purge "contracts/**/draft-*.md" --json --yes
    rolebundle corpus purge
    """
    selection = PurgeSelection(names, as_sources, decisions, str(Path.cwd()))
    chosen = bool(names or decisions)
    with admin_for(db) as admin:
        if dry_run:
            plan = plan_of(admin.workspace, selection) if chosen else None
            _show_plan(plan, backups_of(admin.workspace.path), as_json)
            return
        also = _other_removals(admin, backups)
        returning: Sequence[str] = ()
        if chosen:
            receipts, returning = _erase(admin, selection, yes, also)
        else:
            if also and not yes:
                question = " and ".join(also)
                _confirm(f"{question[0].upper()}{question[1:]}?")
            receipts = finish_pending(admin.workspace)
        deleted = delete_backups(admin.workspace.path) if backups else 0
        result = PurgeResult(
            receipts=receipts,
            returning=list(returning),
            backups=[str(backup) for backup in backups_of(admin.workspace.path)],
            backups_deleted=deleted,
        )
    _report(result, not (chosen or backups), as_json)
    _refuse_pending(receipts, admin.workspace.path)


def _report(result: PurgeResult, finishing: bool, as_json: bool) -> None:
    """The result on standard output, and on standard error what is left for the owner to do."""
    if as_json:
        print_json(result)
    else:
        _print_receipts(result.receipts, finishing, result.backups_deleted)
    _warn(result.returning, result.backups)
    _print_publications(receipt.publications for receipt in result.receipts)


def _other_removals(admin: Admin, backups: bool) -> list[str]:
    """What is removed beside documents, as parts of a question."""
    if not backups:
        return []
    return [f"delete {counted(len(backups_of(admin.workspace.path)), 'backup')}"]


def _erase(
    admin: Admin, selection: PurgeSelection, yes: bool, also: Sequence[str]
) -> tuple[list[Receipt], Sequence[str]]:
    try:
        plan = plan_of(admin.workspace, selection)
    except UsageError as error:
        # The documents may be gone already, if an earlier run was killed before its report.
        pending = finish_pending(admin.workspace) if error.code == "nothing_to_purge" else []
        if not pending:
            raise
        click.echo(
            writable(f"{error.message}; an earlier purge was pending and was continued"), err=True
        )
        return pending, ()
    if not yes:
        size, path = plan.extent, admin.workspace.path
        _print_names((*plan.documents, *plan.decisions))
        _print_facts(plan.facts)
        _print_publications([plan.publications])
        _confirm(
            f"Erase {counted(size.documents, 'document')}, {counted(size.chunks, 'chunk')} and "
            f"{counted(size.vectors, 'vector')} from {path}"
            + "".join(f", and {part}" for part in also)
            + "?"
        )
    return [purge_documents(admin.workspace, selection)], plan.returning


def _confirm(question: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "not_confirmed",
            "the purge was not confirmed, because there is no terminal; nothing was purged",
            "run it with --dry-run to see what would be erased, then with --yes",
        )
    click.confirm(question, abort=True, err=True)


def _show_plan(
    plan: PurgePlan | None,
    backups: Sequence[Path],
    as_json: bool,
) -> None:
    backup_names = [str(backup) for backup in backups]
    if as_json:
        report: dict[str, Any] = {"backups": backup_names}
        if plan is not None:
            report |= {
                **plan.extent._asdict(),
                "document_ids": list(plan.documents),
                "decision_ids": list(plan.decisions),
                "facts": list(plan.facts),
                "returning": list(plan.returning),
                "publications": list(plan.publications),
            }
        print_json(PurgePreview(**report), exclude_unset=True)
        return
    if plan is not None:
        size = plan.extent
        click.echo(
            f"would erase {counted(size.documents, 'document')}, "
            f"{counted(size.chunks, 'chunk')}, {counted(size.vectors, 'vector')}"
        )
        _print_names((*plan.documents, *plan.decisions))
        _print_facts(plan.facts)
        _warn(plan.returning, ())
        _print_publications([plan.publications])
    for backup in backup_names:
        click.echo(writable(f"backup: {backup}"))


def _print_receipts(receipts: Sequence[Receipt], finishing: bool, deleted: int) -> None:
    for receipt in receipts:
        click.echo(
            f"{'erased' if receipt.state == 'done' else 'pending'}: "
            f"{counted(receipt.documents, 'document')}, {counted(receipt.chunks, 'chunk')}, "
            f"{counted(receipt.vectors, 'vector')}; receipt {receipt.id} of {receipt.purged_at}"
        )
    if finishing and not receipts:
        click.echo("no purge was pending")
    if deleted:
        click.echo(f"{counted(deleted, 'backup')} deleted")


def _print_names(names: Sequence[str]) -> None:
    print_first([f"would erase: {name}" for name in names], err=True)


def _print_facts(facts: Sequence[str]) -> None:
    if facts:
        count = counted(len(facts), "remembered fact")
        click.echo(
            f"among them are {count}, because a fact goes with the document that it cites", err=True
        )


def _warn(returning: Sequence[str], backups: Sequence[str]) -> None:
    on_disk = "still on disk, and the next ingest would add it again"
    print_first([f"{on_disk}: {location}" for location in returning], err=True)
    if returning:
        click.echo(
            "delete these files, or list them under `ignore` in their rolebundle.toml", err=True
        )
    for backup in backups:
        click.echo(
            writable(f"this backup may still hold the documents: {backup}; --backups deletes it"),
            err=True,
        )


def _print_publications(lists: Iterable[Sequence[PublishedCopy]]) -> None:
    copies = list(dict.fromkeys(copy for published in lists for copy in published))
    for copy in copies:
        agent = f" for the agent {copy.agent}" if copy.agent else ""
        problem = (
            f"published to {copy.target}{agent}, generation {copy.generation} of "
            f"{copy.published_at}"
            if copy.published_at
            else f"a publish to {copy.target}{agent} was not completed"
        )
        until = f"; a copy that was pulled answers at most until {copy.refuses_at}"
        click.echo(
            writable(
                f"{problem}: `{copy.next_step}` replaces it{until if copy.refuses_at else ''}"
            ),
            err=True,
        )
    if copies:
        click.echo(
            "copies that were pulled cannot be reached from here: each stays as it is until its "
            "next `rolebundle replica pull`, and one that never pulls again keeps the bytes",
            err=True,
        )


def _refuse_pending(receipts: Sequence[Receipt], path: Path) -> None:
    waiting_for = {receipt.waiting_for for receipt in receipts if receipt.state == "pending"}
    if not waiting_for:
        return
    kind: type[RolebundleError] = StorageError
    erased = "the purged documents are erased from the corpus, but"
    unfindable = "the purged documents cannot be found any more, but their bytes are still in the"
    if "disk" in waiting_for:
        problem = f"{unfindable} file, because rewriting it failed"
        step = "free disk space for two more copies of it"
    elif "staging" in waiting_for:
        problem = (
            f"{erased} the last replica of a publication may hold them: a folder in "
            f"{published_folder(path)} cannot be deleted"
        )
        step = "delete that folder"
    elif "publisher" in waiting_for:
        kind = CorpusBusy
        problem = (
            f"{erased} another process publishes it, and the replica that it makes may hold them"
        )
        step = "wait for that process to end"
    else:
        kind = CorpusBusy
        problem = f"{unfindable} corpus, because another process is reading or writing it"
        step = "end that process or wait for it"
    raise kind("purge_pending", f"{path}: {problem}", f"{step}, then run `rolebundle corpus purge`")
