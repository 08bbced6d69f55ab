"""The schema's history: which files are ours, and how an older one becomes the newest."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from uuid import uuid4

import apsw

from rolebundle.errors import StorageError, UsageError
from rolebundle.resources import data_folder
from rolebundle.storage.sqlite_file import FileFormat

APPLICATION_ID = 0x52424E44
"""``RBND`` in the file's header."""

_COMPARTMENTS = 2  # the version whose tables code makes and fills
_MIGRATION_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")

_VIEW_NAME = re.compile(r"^indexed_(\d{1,9})$")


@cache
def migrations() -> tuple[Path, ...]:
    """The migration files, oldest first. The n-th one brings the schema to version n."""
    found = sorted(
        entry for entry in data_folder("migrations").iterdir() if _MIGRATION_NAME.match(entry.name)
    )
    for version, entry in enumerate(found, start=1):
        if int(entry.name[:4]) != version:
            raise AssertionError(f"migrations must be numbered without gaps: {entry.name}")
    return tuple(found)


def latest_version() -> int:
    """The schema version that this version of the package reads and writes."""
    return len(migrations())


@cache
def corpus_format() -> FileFormat:
    """How a corpus file is recognized. Every older schema can be migrated."""
    return FileFormat(
        name="a corpus",
        application_id=APPLICATION_ID,
        oldest=0,
        newest=latest_version(),
        foreign_hint="name another file with --db",
        newer_hint="upgrade rolebundle, or name another file with --db",
        missing=_no_corpus,
        is_own_view=is_own_view,
    )


def _no_corpus(path: Path) -> UsageError:
    return UsageError(
        "corpus_missing",
        f"{path}: there is no corpus here" + (", but a folder" if path.is_dir() else ""),
        "run `rolebundle ingest PATH` first, or name another file with --db",
    )


def is_own_view(kind: str, name: str, sql: str) -> bool:
    """Whether something in the schema is, to the letter, a view that this package makes."""
    from rolebundle.storage.lexical_index import content_view

    numbered = _VIEW_NAME.match(name) if kind == "view" else None
    return numbered is not None and content_view(int(numbered[1])) == (name, sql)


def apply_migrations(db: apsw.Connection, path: Path) -> None:
    """Bring the schema to the newest version, one transaction a step.

    An existing corpus is backed up beside the file first.

    Raises:
        StorageError: the backup could not be made.
    """
    version = db.pragma("user_version")
    if 0 < version < latest_version():
        back_up(db, Path(f"{path}.schema-{version}.bak"))
    for target, entry in enumerate(migrations(), start=1):
        if db.pragma("user_version") >= target:
            continue
        db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster while we waited for the lock.
            if db.pragma("user_version") < target:
                db.execute(entry.read_text(encoding="utf-8"))
                if target == 1:
                    db.execute("INSERT INTO corpus_state VALUES (1, ?, 0, 0, 0)", (uuid4().hex,))
                if target == _COMPARTMENTS:
                    from rolebundle.storage.partition import fill_new_schema

                    fill_new_schema(db, path)
                db.pragma("user_version", target)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def back_up(db: apsw.Connection, target: Path) -> None:
    """Copy the corpus to ``target``, consistent also while others write.

    It takes its name when it is complete and on the disk, and never another backup's name: a run
    that is killed here leaves nothing that keeps the next one from its own backup.

    Raises:
        StorageError: the copy could not be written.
    """
    partial = target.with_name(f"{target.name}.{uuid4().hex}.partial")
    try:
        db.execute("VACUUM INTO ?", (str(partial),))
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        free = (target, *(target.with_name(f"{target.name}.{n}") for n in range(2, 1000)))
        partial.replace(next((name for name in free if not name.exists()), target))
    except OSError as error:
        raise StorageError(
            "backup_failed",
            f"{target}: the backup before the migration failed ({error.strerror})",
            "make room beside the corpus and run the same command again",
        ) from error
    finally:
        partial.unlink(missing_ok=True)
