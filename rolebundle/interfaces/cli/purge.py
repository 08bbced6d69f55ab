"""`rolebundle purge`: documents out of the corpus, and every byte of them out of its files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rolebundle.errors import CorpusBusy, StorageError, UsageError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.words import counted

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.contracts.receipt import Receipt
    from rolebundle.policy.purge import PurgePlan, PurgeSelection

_LISTED = 20


@click.command()
@click.argument("names", nargs=-1, metavar="[DOCUMENT|SOURCE]...")
@db_option
@click.option("--matching", default="", metavar="GLOB", help="Documents by their path or id.")
@click.option("--source", "as_sources", is_flag=True, help="The names are those of sources.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and erase nothing.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@click.option("--finish", "finishing", is_flag=True, help="Complete a purge that is pending.")
@click.option("--backups", is_flag=True, help="Delete the copies that migrations left, too.")
@json_option
def purge(
    names: tuple[str, ...],
    db: str | None,
    matching: str,
    as_sources: bool,
    dry_run: bool,
    yes: bool,
    finishing: bool,
    backups: bool,
    as_json: bool,
) -> None:
    """Erase documents, so that no byte of them is left in the corpus file or beside it.

    Their text, words, titles, paths, ids and vectors go, and all that is kept for reranking; the
    whole file is written anew for it, which takes room for two more copies. The receipt says that
    something was erased, and not what. Where another process still reads what there was before,
    the purge is pending (exit code 5) and `--finish` completes it, as does the next ingest.

    Files in your folders are left alone, and so is the audit: where it keeps the text of queries,
    that text stays. What the disk itself keeps of freed blocks is beyond this command.

    \b
    rolebundle purge hr/reviews-2025.md --dry-run
    rolebundle purge old-wiki --source --yes
    rolebundle purge --matching "contracts/**/draft-*.md" --json --yes
    rolebundle purge --finish
    """
    from rolebundle.policy.purge import PurgeSelection

    selection = PurgeSelection(names, matching, as_sources)
    chosen = bool(names or matching)
    if chosen == finishing and not (backups and not chosen):
        raise click.UsageError("name documents or sources, or --matching GLOB, or --finish alone")
    with admin_for(db) as admin:
        if dry_run:
            _show_plan(
                admin.plan_purge(selection) if chosen else None, admin.workspace.path, as_json
            )
            return
        returning: Sequence[str] = ()
        if chosen:
            found, returning = _erase(admin, selection, yes, backups)
        else:
            if backups and not yes:
                _confirm(f"Delete {counted(len(_backups(admin.workspace.path)), 'backup')}?")
            found = admin.finish_purges()
        deleted = _delete_backups(admin.workspace.path) if backups else 0
        left = _backups(admin.workspace.path)
    if as_json:
        report = {
            "receipts": [one.model_dump() for one in found],
            "returning": list(returning),
            "backups": [str(entry) for entry in left],
            "backups_deleted": deleted,
        }
        click.echo(_shown(json.dumps(report, ensure_ascii=False)))
    else:
        _tell(found, finishing, deleted)
    _warn(returning, left)
    _refuse_pending(found, admin.workspace.path)


def _erase(
    admin: Admin, selection: PurgeSelection, yes: bool, backups: bool
) -> tuple[list[Receipt], Sequence[str]]:
    try:
        plan = admin.plan_purge(selection)
    except UsageError as error:
        # A run that was killed has erased what it names already, and said nothing.
        pending = admin.finish_purges() if error.code == "nothing_to_purge" else []
        if not pending:
            raise
        click.echo(_shown(f"{error.message}; an earlier purge was still pending"), err=True)
        return pending, ()
    if not yes:
        size, path = plan.extent, admin.workspace.path
        _name(plan.documents, "would go")
        too = f", and delete {counted(len(_backups(path)), 'backup')}" if backups else ""
        _confirm(
            f"Erase {counted(size.documents, 'document')}, {counted(size.chunks, 'chunk')} and "
            f"{counted(size.vectors, 'vector')} from {path}{too}?"
        )
    return [admin.purge(selection)], plan.returning


def _confirm(question: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "not_confirmed",
            "nobody is there to confirm the purge; nothing was purged",
            "run it with --dry-run to see what would go, then with --yes",
        )
    click.confirm(question, abort=True, err=True)


def _show_plan(plan: PurgePlan | None, path: Path, as_json: bool) -> None:
    left = [str(entry) for entry in _backups(path)]
    if as_json:
        report: dict[str, Any] = {"backups": left}
        if plan is not None:
            report |= {
                **plan.extent._asdict(),
                "document_ids": list(plan.documents),
                "returning": list(plan.returning),
            }
        click.echo(_shown(json.dumps(report, ensure_ascii=False)))
        return
    if plan is not None:
        size = plan.extent
        click.echo(
            f"would erase {counted(size.documents, 'document')}, "
            f"{counted(size.chunks, 'chunk')}, {counted(size.vectors, 'vector')}"
        )
        _name(plan.documents, "would go")
        _warn(plan.returning, ())
    for entry in left:
        click.echo(_shown(f"beside it: {entry}"))


def _tell(found: Sequence[Receipt], finishing: bool, deleted: int) -> None:
    for one in found:
        click.echo(
            f"{'erased' if one.state == 'done' else 'pending'}: "
            f"{counted(one.documents, 'document')}, {counted(one.chunks, 'chunk')}, "
            f"{counted(one.vectors, 'vector')}; receipt {one.id} of {one.purged_at}"
        )
    if finishing and not found:
        click.echo("no purge was pending")
    if deleted:
        click.echo(f"{counted(deleted, 'backup')} deleted")


def _name(documents: Sequence[str], what: str) -> None:
    for name in documents[:_LISTED]:
        click.echo(_shown(f"{what}: {name}"), err=True)
    if len(documents) > _LISTED:
        click.echo(f"and {len(documents) - _LISTED} more", err=True)


def _warn(returning: Sequence[str], backups: Sequence[Path]) -> None:
    for location in returning[:_LISTED]:
        click.echo(_shown(f"still on disk, the next ingest brings it back: {location}"), err=True)
    if returning:
        click.echo("delete them, or name them under `ignore` in their rolebundle.toml", err=True)
    if len(returning) > _LISTED:
        click.echo(f"and {len(returning) - _LISTED} more files on disk", err=True)
    for entry in backups:
        click.echo(
            _shown(f"a backup still holds what it held: {entry}; --backups deletes it"), err=True
        )


def _refuse_pending(found: Sequence[Receipt], path: Path) -> None:
    pending = [one for one in found if one.state == "pending"]
    if not pending:
        return
    if any(one.waiting_for == "disk" for one in pending):
        raise StorageError(
            "purge_pending",
            f"{path}: what was purged is no longer found, but its bytes are still in the file: "
            "writing it anew failed",
            "make room for two more copies of it, then run `rolebundle purge --finish`",
        )
    if any(one.waiting_for == "cache" for one in pending):
        raise StorageError(
            "purge_pending",
            f"{path}: what was purged is out of the corpus, but what is kept for reranking may "
            f"hold vectors of it: {path.name}.rerank cannot be deleted, or is no such cache",
            "delete that file or move it away, then run `rolebundle purge --finish`",
        )
    raise CorpusBusy(
        "purge_pending",
        f"{path}: what was purged is no longer found, but its bytes are still in the corpus: "
        "another process has it open in the middle of a read or a write",
        "end that process or wait for it, then run `rolebundle purge --finish`",
    )


def _backups(path: Path) -> list[Path]:
    from rolebundle.storage.purge import backups

    return backups(path)


def _delete_backups(path: Path) -> int:
    from rolebundle.storage.purge import delete_backups

    return delete_backups(path)


def _shown(text: str) -> str:
    # A file's name may hold bytes that are no characters. What replaces them is a JSON escape.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
