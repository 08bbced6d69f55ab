"""Recognizes the kinds of SQLite files of this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, WrongFile
from rolebundle.storage.files.file_length import is_cut_off
from rolebundle.storage.files.stored_values import DAMAGE_HINT


def _unchanged(path: Path, error: RolebundleError) -> RolebundleError:
    return error


def _no_views(kind: str, name: str, sql: str) -> bool:
    return False


class FileFormat(NamedTuple):
    """How one kind of SQLite file is recognized, and how its errors are reported.

    Attributes:
        name: what the file is called in messages, with its article: ``"an audit"``.
        application_id: the number in the file's header.
        oldest: the oldest version (``user_version`` in the header) that can be opened.
        newest: the newest version that can be opened.
        foreign_hint: the next step if the file belongs to another application.
        newer_hint: the next step if a newer rolebundle made the file.
        missing: makes the error for a path that is not a regular file.
        translate: turns an error about an SQLite file into the error of this kind of file.
        is_own_view: whether a trigger or view (type, name, SQL) belongs in the schema.
    """

    name: str
    application_id: int
    oldest: int
    newest: int
    foreign_hint: str
    newer_hint: str
    missing: Callable[[Path], RolebundleError]
    translate: Callable[[Path, RolebundleError], RolebundleError] = _unchanged
    is_own_view: Callable[[str, str, str], bool] = _no_views


def check_path(path: Path, file_format: FileFormat) -> None:
    """Check that the path names a file with content.

    Raises:
        UsageError, WrongFile: it names no regular file; see ``FileFormat.missing``.
        StorageError: there is no permission to look.
        CorpusCorrupt: the file is empty, or shorter than its header says.
    """
    try:
        if not path.is_file():
            raise file_format.missing(path)
        size = path.stat().st_size
        was_cut_off = size > 0 and is_cut_off(path)
    except OSError as error:
        raise StorageError(
            "no_permission",
            f"{path}: it cannot be read ({error.strerror})",
            "give yourself read permission, or name another file with --db",
        ) from error
    if size == 0:
        empty = CorpusCorrupt(
            "corpus_empty_file",
            f"{path}: the file is empty, so it was cut off or never filled",
            "run `rolebundle corpus restore BACKUP`, or delete it and ingest the documents again",
        )
        raise file_format.translate(path, empty)
    if was_cut_off:
        cut_off = CorpusCorrupt(
            "corpus_cut_off",
            f"{path}: the file is damaged (it is shorter than its header says)",
            DAMAGE_HINT,
        )
        raise file_format.translate(path, cut_off)


def check_identity(db: apsw.Connection, path: Path, file_format: FileFormat) -> None:
    """Refuse a file of another application or of a newer version. Reads only.

    Args:
        db: a connection to the file.
        path: for messages.
        file_format: what the file must be.

    Raises:
        WrongFile: the file belongs to another application, or has a newer schema.
        CorpusCorrupt: it has a trigger or view that we never create, or too old a version.
    """
    if db.pragma("application_id") != file_format.application_id:
        raise WrongFile(
            "foreign_file",
            f"{path}: is an SQLite file, but not {file_format.name}; it was not changed",
            file_format.foreign_hint,
        )
    version = db.pragma("user_version")
    if version > file_format.newest:
        raise WrongFile(
            "newer_schema",
            f"{path}: is {file_format.name} of version {version}, this rolebundle knows versions "
            f"up to {file_format.newest}; it was not changed",
            file_format.newer_hint,
        )
    if version < file_format.oldest:
        outdated = CorpusCorrupt(
            "foreign_schema",
            f"{path}: has the version {version}, which never existed",
            "do not trust this file",
        )
        raise file_format.translate(path, outdated)
    for kind, name, sql in db.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name"
    ).fetchall():
        if not file_format.is_own_view(str(kind), str(name), str(sql)):
            foreign = CorpusCorrupt(
                "foreign_schema",
                f"{path}: contains the {kind} {name!r}, which rolebundle did not create",
                "do not trust this file: ingest the documents into a new one with --db",
            )
            raise file_format.translate(path, foreign)
