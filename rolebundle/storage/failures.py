"""SQLite's errors, mapped once, at the edge, to ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from rolebundle.errors import (
    CorpusBusy,
    CorpusCorrupt,
    Interrupted,
    RolebundleError,
    StorageError,
)

_CORRUPT = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
_IO = (apsw.IOError, apsw.CantOpenError, apsw.PermissionsError, apsw.NoLFSError)


def _of_kind(error: BaseException | None, kinds: type | tuple[type, ...]) -> bool:
    # A FullError inside a transaction can surface as "cannot rollback", with the cause as context.
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__context__
    return False


def translated(error: apsw.Error, path: Path) -> RolebundleError:
    """The error of ours for an error of SQLite's on the corpus at ``path``."""
    if _of_kind(error, apsw.FullError):
        return StorageError(
            "storage_full",
            f"{path}: no room left to write ({error})",
            "free some disk space and run the same command again; what was reported done is kept",
        )
    if _of_kind(error, apsw.InterruptError):
        return Interrupted(
            "interrupted",
            f"{path}: the search was interrupted before it was done",
            "ask again with a longer deadline_ms, or with lexical_only",
        )
    if _of_kind(error, (apsw.BusyError, apsw.LockedError)):
        return CorpusBusy(
            "corpus_busy",
            f"{path}: another process is writing to it",
            "wait for the other ingest to end and run the same command again",
        )
    if _of_kind(error, _CORRUPT):
        return CorpusCorrupt(
            "corpus_corrupt",
            f"{path}: the file is damaged ({error})",
            "restore a backup, or ingest the documents into a new file with --db",
        )
    if _of_kind(error, apsw.ReadOnlyError):
        return StorageError(
            "read_only",
            f"{path}: the file or its folder is read-only",
            "give yourself write permission, or choose another file with --db",
        )
    if _of_kind(error, _IO):
        return StorageError(
            "io_error",
            f"{path}: reading or writing failed ({error})",
            "check the disk and the permissions, then run the same command again",
        )
    return CorpusCorrupt(
        "corpus_unusable",
        f"{path}: {type(error).__name__}: {error}",
        "run `rolebundle status --check` on the file",
    )


def damaged(what: str) -> CorpusCorrupt:
    """The error for something that was read and cannot be what was stored."""
    return CorpusCorrupt(
        "corpus_corrupt",
        f"the corpus is damaged: {what} is not what was stored",
        "run `rolebundle status --check`, then restore a backup or ingest into a new file",
    )


def sound(row: Sequence[object], kinds: Sequence[type], what: str) -> None:
    """Check a row's types: STRICT tables check what goes in, not what a damaged page gives back.

    Raises:
        CorpusCorrupt: they are not what the columns hold.
    """
    if [type(column) for column in row] != list(kinds):
        raise damaged(what)


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours.

    Raises:
        StorageError, CorpusBusy, CorpusCorrupt: see :func:`translated`.
    """
    try:
        yield
    except apsw.Error as error:
        raise translated(error, path) from error
    except UnicodeDecodeError as error:
        # Only text goes in. What comes out as something else was damaged on the way.
        raise CorpusCorrupt(
            "corpus_corrupt",
            f"{path}: the file is damaged (a text in it is no longer UTF-8)",
            "restore a backup, or ingest the documents into a new file with --db",
        ) from error
