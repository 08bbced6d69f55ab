"""SQLite's errors as errors of this package."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

import apsw

from rolebundle.errors import (
    FULL_ERRNOS,
    CorpusBusy,
    CorpusCorrupt,
    Interrupted,
    RolebundleError,
    StorageError,
)
from rolebundle.storage.files.file_format import FileFormat
from rolebundle.storage.files.stored_values import DAMAGE_HINT

_CORRUPT = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
_IO = (apsw.IOError, apsw.CantOpenError, apsw.PermissionsError, apsw.NoLFSError)

UNUSABLE = "corpus_unusable"
"""The code of an error for which SQLite gives no reason."""


@dataclass(slots=True)
class MappedErrors:
    """A block that raises SQLite's errors as errors of this package.

    A class, because a generator takes longer than a small statement.

    Args:
        path: the file.
        file_format: what it is.
        db: the connection, which knows the system's reason for an error.

    Raises:
        StorageError, CorpusBusy, CorpusCorrupt, Interrupted: see :func:`own_error`.
    """

    path: Path
    file_format: FileFormat
    db: apsw.Connection | None = None

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, apsw.Error):
            reason, is_interrupted = 0, False
            with suppress(apsw.ConnectionClosedError):  # Closing failed.
                if self.db is not None:
                    reason = self.db.system_errno if _is_kind(error, _IO) else 0
                    is_interrupted = self.db.is_interrupted
            own = own_error(error, self.path, reason, is_interrupted=is_interrupted)
            raise self.file_format.translate(self.path, own) from error
        if isinstance(error, UnicodeDecodeError):
            # Only text was stored. If something else comes back, the file was damaged.
            damage = CorpusCorrupt(
                "corpus_corrupt",
                f"{self.path}: the file is damaged (a text in it is no longer UTF-8)",
                DAMAGE_HINT,
            )
            raise self.file_format.translate(self.path, damage) from error


def own_error(
    error: apsw.Error, path: Path, reason: int = 0, *, is_interrupted: bool = False
) -> RolebundleError:
    """Our error for an error of SQLite about the file at ``path``.

    Args:
        error: the error.
        path: the file.
        reason: the system's error number, if there is one.
        is_interrupted: whether an interrupt is in effect. If it comes while a virtual table is set
            up, SQLite reports another error.
    """
    if _is_kind(error, apsw.FullError) or reason in FULL_ERRNOS or _has_no_room(error, path):
        return StorageError(
            "storage_full",
            f"{path}: no room left to write ({error})",
            "free some disk space and run the same command again; what was reported done is safe",
        )
    if _is_kind(error, apsw.InterruptError):
        return interrupted(path)
    if _is_kind(error, (apsw.BusyError, apsw.LockedError)):
        return CorpusBusy(
            "corpus_busy",
            f"{path}: another process is writing to it",
            "wait for the other ingest to end and run the same command again",
        )
    if _is_kind(error, apsw.NotADBError):
        return CorpusCorrupt(
            "corpus_corrupt",
            f"{path}: is no corpus, or its beginning is damaged ({error})",
            f"check the path; if it was a corpus, {DAMAGE_HINT}",
        )
    if _is_kind(error, _CORRUPT):
        return CorpusCorrupt(
            "corpus_corrupt",
            f"{path}: the file is damaged ({error})",
            DAMAGE_HINT,
        )
    if _is_kind(error, apsw.ReadOnlyError):
        return StorageError(
            "read_only",
            f"{path}: the file or its folder is read-only",
            "give yourself write permission, or choose another file with --db",
        )
    if _is_kind(error, _IO):
        return StorageError(
            "io_error",
            f"{path}: reading or writing failed ({error})",
            "check the disk and the permissions, then run the same command again",
        )
    if is_interrupted:
        return interrupted(path)
    return CorpusCorrupt(
        UNUSABLE,
        f"{path}: {type(error).__name__}: {error}",
        "run `rolebundle corpus doctor`",
    )


def interrupted(path: Path) -> Interrupted:
    """The error of a search that was cancelled, or that is past its deadline."""
    return Interrupted(
        "interrupted",
        f"{path}: the search was interrupted before it was done",
        "ask again with a longer deadline_ms, or with lexical_only",
    )


def _has_no_room(error: apsw.Error, path: Path) -> bool:
    """Whether there was no room for what SQLite does not name in its error.

    That is the memory that readers and writers share, and what a virtual table writes: sqlite-vec
    reports no reason.
    """
    if error_detail(error) == apsw.SQLITE_IOERR_SHMSIZE:
        return True
    if not isinstance(error, apsw.SQLError):
        return False
    temporary = os.environ.get("SQLITE_TMPDIR") or os.environ.get("TMPDIR") or "/var/tmp"
    for folder in (path.parent, temporary):
        with suppress(OSError):
            if disk_usage(folder).free == 0:
                return True
    return False


def error_detail(error: apsw.Error) -> int:
    """SQLite's extended result code, or 0."""
    return getattr(error, "extendedresult", 0)


def _is_kind(error: BaseException | None, kinds: type | tuple[type, ...]) -> bool:
    # A FullError inside a transaction can surface as "cannot rollback", with the cause as context.
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__context__
    return False
