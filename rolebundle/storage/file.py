"""The corpus as a file: its format, its location, and files that are complete or absent."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from struct import unpack
from typing import NamedTuple
from uuid import uuid4

import apsw
from platformdirs import user_data_path

from rolebundle.errors import CorpusCorrupt, RolebundleError, UsageError, WrongFile, storage_errors
from rolebundle.storage.address import address_of, in_database, is_address, link_for
from rolebundle.storage.stored_values import DAMAGE_HINT

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_ATTEMPTS = 5


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
    with storage_errors(
        "no_permission",
        f"{path}: it cannot be read",
        "give yourself read permission, or name another file with --db",
    ):
        if not path.is_file():
            raise file_format.missing(path)
        if address_of(path):
            raise in_database(path)
        size = path.stat().st_size
        was_cut_off = size > 0 and is_cut_off(path)
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


# -- whether a file was cut off --------------------------------------------------------------------
#
# Pages that it must have stand neither in it nor in its log. SQLite notices this only without a
# log, or when it reads one of these pages. A writer would first fold the log into the file. The
# formats: https://sqlite.org/fileformat2.html.


def is_cut_off(path: Path) -> bool:
    """Whether pages of the file are missing. False if that cannot be known.

    Raises:
        OSError: it cannot be read.
    """
    return all(_misses_pages(path) for _ in range(_ATTEMPTS))


def _misses_pages(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or header[:16] != _MAGIC:
            return False
        page_size, pages, changed, counted = (
            int.from_bytes(header[start:end], "big")
            for start, end in ((16, 18), (28, 32), (24, 28), (92, 96))
        )
        page_size = 65536 if page_size == 1 else page_size
        # The number of pages counts only if the last writer also wrote it.
        if changed != counted or os.fstat(file.fileno()).st_size >= pages * page_size:
            return False
        journal = Path(f"{path}-journal")
        if journal.exists() and journal.stat().st_size > 0:
            return False
        logged = _pages_of_log(Path(f"{path}-wal"), page_size)
        complete_pages = os.fstat(file.fileno()).st_size // page_size
        file.seek(0)
        # If somebody is folding the log into the file, the next attempt sees another state.
        is_same = file.read(_HEADER_BYTES) == header
        return is_same and not logged.issuperset(range(complete_pages + 1, pages + 1))


def _pages_of_log(path: Path, page_size: int) -> set[int]:
    """The numbers of the pages that the log has of committed transactions."""
    committed: set[int] = set()
    pending: set[int] = set()
    frame_size = _FRAME_HEADER_BYTES + page_size
    with suppress(FileNotFoundError), path.open("rb") as log:
        header = log.read(_LOG_HEADER_BYTES)
        size = os.fstat(log.fileno()).st_size
        for start in range(_LOG_HEADER_BYTES, size - frame_size + 1, frame_size):
            log.seek(start)
            number, total, salt = unpack(">II8s", log.read(16))
            if salt != header[16:24]:
                break  # What follows is of an earlier use of the log.
            pending.add(number)
            if total:  # Only the last frame of a transaction says how many pages the file has.
                committed |= pending
                pending = set()
    return committed


COMPANIONS = ("-journal", "-wal", "-shm")
"""What SQLite puts beside a file."""
OWNER_ONLY = 0o600

_SUFFIX = re.compile(
    r"(?:\.schema-\d+\.bak|\.audit)?\.(?:(\d{1,10})-)?[0-9a-f]{32}\.partial(?:-journal|-wal|-shm)?"
)


@contextmanager
def partial_file(target: Path) -> Iterator[Path]:
    """An empty file beside ``target`` that only its owner can read, deleted after the block.

    Partial files of ``target`` that a killed process left are deleted first.

    Raises:
        OSError: it cannot be created.
    """
    remove_stale_partials(target)
    partial = target.with_name(f"{target.name}.{os.getpid()}-{uuid4().hex}.partial")
    try:
        # SQLite gives the file's permissions also to the log beside it.
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        yield partial
    finally:
        for suffix in ("", *COMPANIONS):
            with suppress(OSError):
                Path(f"{partial}{suffix}").unlink(missing_ok=True)


def remove_stale_partials(target: Path) -> None:
    """Delete the files that :func:`stale_partials` lists."""
    for leftover in stale_partials(target):
        with suppress(OSError):
            leftover.unlink()


def stale_partials(target: Path) -> list[Path]:
    """The partial files whose name begins like ``target`` and whose process has ended."""
    return [file for file, match in files_beside(target, _SUFFIX) if not is_running(match[1])]


def partials(target: Path) -> list[Path]:
    """The partial files whose name begins like ``target``, whoever writes them."""
    return [file for file, _ in files_beside(target, _SUFFIX)]


def files_beside(path: Path, suffix: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """The files named like ``path`` with a suffix of this form, sorted, each with its match."""
    try:
        beside = path.absolute().parent.iterdir()
        # Sorted last, because the folder may have many other files.
        files = sorted(file for file in beside if file.name.startswith(path.name))
    except OSError:
        return []
    matches = ((file, suffix.fullmatch(file.name, len(path.name))) for file in files)
    return [(file, match) for file, match in matches if match]


def is_running(process: str | int | None) -> bool:
    """Whether a process with this id runs. False on Windows, where that is not known."""
    # On Windows a file that is in use cannot be deleted, and signal 0 ends the process.
    if process is None or sys.platform == "win32":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def rename_if_free(partial: Path, path: Path) -> bool:
    """Give a complete file its name. False if something already has this name."""
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    except OSError:
        # Some file systems have no hard links. Then another process may still come in between.
        if os.path.lexists(path):
            return False
        partial.replace(path)
    sync_folder(path.parent)
    return True


def rename_synced(partial: Path, path: Path) -> None:
    """Give a complete file its name, also if another file has it. Both are on the disk then.

    Raises:
        OSError: it could not be written.
    """
    sync_file(partial)
    partial.replace(path)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Wait until the file's content is on the disk.

    Raises:
        OSError: it could not be written.
    """
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    with suppress(OSError):  # Not every system opens a folder.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


ENVIRONMENT = "ROLEBUNDLE_DB"
OVERLAYS_SUFFIX = ".overlays"
PUBLISHED_SUFFIX = ".published"
PUBLISHED_MANIFEST = "replica-manifest.json"
"""The manifest of a replica that is published to a folder."""
REPLICA = "replica.db"
"""The name of a staged replica."""


def corpus_path(option: str | os.PathLike[str] | None = None) -> Path:
    """``option``, else ``$ROLEBUNDLE_DB``, else a file in the platform's user data folder.

    For the address of a database it is the link that stands for it.

    Raises:
        UsageError: a name that SQLite cannot open, or an empty one.
    """
    if option == "":
        # That of an unset variable: it must not mean another corpus.
        raise UsageError(
            "bad_db_name",
            "--db: the name of the corpus file is empty",
            "name a file, or leave it out",
        )
    named = option or os.environ.get(ENVIRONMENT)
    if named:
        text = os.fspath(named)
        if is_address(text):
            return link_for(text)
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise UsageError(
                "bad_db_name",
                f"{text!r}: the corpus file's name must be text",
                "choose another name for the file",
            )
        return Path(os.path.expanduser(text))  # noqa: PTH111 - expanduser() of Path may raise
    return user_data_path("rolebundle", appauthor=False) / "corpus.db"


def audit_path(corpus: Path) -> Path:
    """The audit's file of a corpus."""
    return _beside(corpus, "{}.audit")


def overlays_path(corpus: Path) -> Path:
    """The folder of the corpus's own overlays."""
    return _beside(corpus, "{}" + OVERLAYS_SUFFIX)


def published_folder(corpus: Path) -> Path:
    """The private folder with the last replica of each target."""
    return _beside(corpus, "{}" + PUBLISHED_SUFFIX)


def staged_replica(corpus: Path, target: str) -> Path:
    """The last replica of a target, in a folder of its own."""
    name = sha256(target.encode()).hexdigest()[:16]
    return published_folder(corpus) / name / REPLICA


def expected_manifest(replica: Path) -> Path:
    """The manifest of the replica that is to come, after the one at hand was erased."""
    return _beside(replica, ".{}.expected")


def indexing_path(corpus: Path) -> Path:
    """The lock of the process that builds the contextual index."""
    return _beside(corpus, ".{}.indexing")


def heartbeat_path(corpus: Path) -> Path:
    """The file in which `watch` says what it does.

    Its name begins with a dot, so that no ingest takes it in if the corpus lies in a root.
    """
    return _beside(corpus, ".{}.watch")


def _beside(corpus: Path, form: str) -> Path:
    """A path beside a corpus, named like it. Links are resolved: it is beside the file itself."""
    # A loop of links is reported when the corpus is opened.
    with suppress(OSError, RuntimeError):
        corpus = corpus.resolve()
    return corpus.with_name(form.replace("{}", corpus.name))


def is_there(path: Path) -> bool:
    """Whether something has this name, readable or not.

    False only if there is certainly nothing. An audit that cannot be read must not be treated as
    one that was never turned on.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
