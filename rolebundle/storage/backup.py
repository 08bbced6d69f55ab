"""Copies of a corpus and its audit, and putting another file in the place of a corpus.

If a file replaces another one, the old file's write-ahead log must be gone: SQLite would apply it
to the new file. So the log of a sound file is first folded into it, and what is left of it is set
aside. Whenever the process is killed, the path names the complete old file or the complete new
one. One exception: the log of a file that SQLite cannot read is set aside before the new file
takes its name.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from rolebundle import system
from rolebundle.errors import CorpusCorrupt, StorageError, corpus_busy, storage_errors
from rolebundle.storage import compartments, seal
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import (
    COMPANIONS,
    FileFormat,
    files_beside,
    partial_file,
    rename_if_free,
    rename_synced,
    sync_folder,
)
from rolebundle.storage.publications import refuse_changes
from rolebundle.storage.sqlite import SqliteFile, is_missing_or_empty, stamp_of

KEPT_FILE_NAME = r"\.(?:replaced|damaged)-\d{8}-\d{6}(?:\.\d+)?"
"""The end of the names of files that were set aside: ``NAME.replaced-20261101-093000``."""

_CONTENT = ("", "-wal", "-journal")
_COPY_ATTEMPTS = 5
_NUMBER = re.compile(r"(?:\.\d+)?")


def back_up(corpus: SqliteFile, target: Path) -> None:
    """Copy the corpus to ``target``, consistent also while others write.

    The copy gets its name when it is complete and on the disk. It never takes the name of another
    backup; if one is the same, such as that of a run that was killed later, there is no new one.

    Raises:
        StorageError: the copy could not be written.
    """
    with (
        storage_errors(
            "backup_failed",
            f"{target}: the backup before the migration failed",
            "make room beside the corpus and run the same command again",
        ),
        partial_file(target) as partial,
    ):
        corpus.copy_to(partial, target)
        existing = (file for file, _ in files_beside(target, _NUMBER) if file.is_file())
        if sha256_of(partial) not in map(sha256_of, existing):
            rename_synced(partial, _free_name(target))


@contextmanager
def private_copy(path: Path) -> Iterator[Path]:
    """A copy of a file with its log in a folder of its own, which is deleted after the block.

    What is done with the copy changes nothing of the file, nor of the folder that it is in.

    Raises:
        StorageError: it cannot be copied.
    """
    with TemporaryDirectory(prefix="rolebundle-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "copy.db"
        files = [Path(f"{path}{suffix}") for suffix in _CONTENT]
        with storage_errors(
            "copy_failed",
            f"{path}: it cannot be copied to {folder} for the check",
            "give yourself read permission, or set TMPDIR to a folder with enough room",
        ):
            for _ in range(_COPY_ATTEMPTS):
                before = [stamp_of(file, frozen=True) for file in files]
                _copy_files(path, copy)
                if [stamp_of(file, frozen=True) for file in files] == before:
                    break
            else:
                raise corpus_busy(path, "writes to it all the time")
        yield copy


def _copy_files(path: Path, copy: Path) -> None:
    for suffix in _CONTENT:
        target = Path(f"{copy}{suffix}")
        try:
            shutil.copyfile(f"{path}{suffix}", target)
        except FileNotFoundError:
            if not suffix:
                raise
            target.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


# -- replacing a file ------------------------------------------------------------------------------


def replace_file(new: Path, path: Path, file_format: FileFormat, moment: str) -> Path | None:
    """Give a complete file the name of another one, which is kept under a new name.

    Call it with the exclusive lock of the folder.

    Args:
        new: the file; it has no log.
        path: the name to take. There may be no file, or a damaged one.
        file_format: what the old file should be.
        moment: the time, as ``20261101-093000``.

    Returns:
        The name under which the old file or its log is kept; ``None`` if there was neither.

    Raises:
        WrongFile: the old file belongs to another application. Nothing was changed.
        CorpusBusy: another process is writing to it. Nothing was changed.
        StorageError: it could not be replaced.
    """
    kept_path = _free_name(path.with_name(f"{path.name}.replaced-{moment}"))
    if not is_missing_or_empty(path):
        _fold_log(path, file_format)
    step = "give yourself write permission to its folder and run the same command again"
    with storage_errors("not_replaced", f"{path}: it could not be replaced", step):
        if path.exists():
            rename_if_free(path, kept_path)
        for suffix in COMPANIONS:
            with suppress(FileNotFoundError):
                system.replace(Path(f"{path}{suffix}"), Path(f"{kept_path}{suffix}"))
        sync_folder(path.parent)
        rename_synced(new, path)
    kept = (os.path.lexists(f"{kept_path}{suffix}") for suffix in ("", *COMPANIONS))
    return kept_path if any(kept) else None


def _free_name(path: Path) -> Path:
    """The path, or one with a number if something has this name."""
    names = (path, *(path.with_name(f"{path.name}.{number}") for number in range(2, 1000)))
    return next(name for name in names if not os.path.lexists(name))


def _fold_log(path: Path, file_format: FileFormat) -> None:
    """Fold the log into the file, so that the file alone is complete. Nothing if it is damaged."""
    try:
        with SqliteFile.open_for_writing(path, file_format) as file:
            [(busy, *_)] = file.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    except CorpusCorrupt:
        return
    except StorageError as error:
        if error.code != "read_only" or not is_missing_or_empty(Path(f"{path}-wal")):
            raise
        return
    if busy:
        raise corpus_busy(path, "is reading or writing it")


# -- copying between a file and a database, row by row: ids, digests and vectors stay --------------

_ROWS = 1_000


def copy_corpus(source: Corpus, target: Corpus) -> None:
    """Copy everything into a new corpus. Call it inside a write transaction of that.

    Args:
        source: open for reading.
        target: open for writing, and empty.

    Raises:
        UsageError: the source is a replica.
        CorpusBusy, CorpusCorrupt, StorageError: it could not be copied.
    """
    with source.reading():
        refuse_changes(source)
        target.run("DELETE FROM corpus_state")
        for table in seal.COPIED:
            columns = ", ".join(target.column_names(table))
            # In a database, the further rows are made from the first.
            chosen = " WHERE only_row = 1" if table == "policy" else ""
            rows = source.iterate(f"SELECT {columns} FROM {table}{chosen}")
            while batch := list(islice(rows, _ROWS)):
                target.insert(f"{table} ({columns})", batch)
        if target.is_shared:
            # Other machines do not have the file that the policy was set from.
            target.run("UPDATE policy SET location = ''")
        target.renumber()
        for compartment in compartments.visible_compartments(target):
            target.lexical.create(target, compartment.id)
            target.lexical.rebuild(target, compartment.id)
