"""`rolebundle corpus roots list | move | remove`: the folders and files that were ingested."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.admin.records import move_root, remove_root
from rolebundle.contracts.base import writable
from rolebundle.contracts.roots import Root, RootList
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.records.roots import load
from rolebundle.text.counts import counted

_LINE_CHARS = 2_000
_PATH = click.Path(path_type=Path)


@click.group()
def roots() -> None:
    """List, move and remove the folders and files that were ingested.

    \b
    rolebundle corpus roots list
    rolebundle corpus roots move notes /media/disk/notes
    rolebundle corpus roots remove old-project --yes
    """


@roots.command("list")
@db_option
@json_option
def list_command(db: str | None, as_json: bool) -> None:
    """List the roots with path, source, number of documents and time of the last change.

    \b
    rolebundle corpus roots list
    rolebundle corpus roots list --json
    """
    with admin_for(db) as admin:
        known = load(admin.workspace.corpus)
    lines = (one_line(writable(_line(root)), _LINE_CHARS) for root in known)
    empty = "no root: run `rolebundle ingest PATH`; a replica has none"
    print_answer(RootList(roots=known), lines, as_json=as_json, empty=empty)


def _line(root: Root) -> str:
    options = root.options.model_dump(exclude_defaults=True)
    parts = [
        root.location,
        f"source {root.source_id}",
        counted(root.documents, "document"),
        f"changed {root.synced_at}" if root.synced_at else "not complete",
        *(f"{name}={value}" for name, value in options.items()),
    ]
    if not Path(root.location).exists():
        parts.append("MISSING")
    return "  ".join(parts)


@roots.command("move")
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
@db_option
@json_option
def move_command(old: Path, new: Path, db: str | None, as_json: bool) -> None:
    """Change the path of a root in the corpus. No file is moved.

    Ids, vectors and options of its documents stay. An ingest finds a moved folder by itself if the
    old one is missing and most files are unchanged.

    \b
    rolebundle corpus roots move notes /media/disk/notes
    """
    with admin_for(db) as admin:
        change = move_root(admin.workspace, old, new)
    moved = counted(change.documents, "document")
    line = f"{change.location}: {moved} moved; run `rolebundle ingest`"
    print_answer(change, [line], as_json=as_json)


@roots.command("remove")
@click.argument("path", type=_PATH)
@click.option("--yes", is_flag=True, help="Do it. Without this, only show what would be done.")
@db_option
@json_option
def remove_command(path: Path, yes: bool, db: str | None, as_json: bool) -> None:
    """Forget a root and remove its documents from the corpus. Your files are not changed.

    `rolebundle corpus purge` also erases every byte of the documents.

    \b
    rolebundle corpus roots remove old-project
    rolebundle corpus roots remove old-project --yes
    """
    with admin_for(db) as admin:
        change = remove_root(admin.workspace, path, confirmed=yes)
    verb = "removed" if yes else "would be removed"
    line = f"{change.location}: {counted(change.documents, 'document')} {verb}"
    print_answer(change, [line], as_json=as_json)
    if not yes:
        raise UsageError(
            "not_confirmed",
            "the root was not removed, because that was not confirmed",
            "run the same command with --yes",
        )
