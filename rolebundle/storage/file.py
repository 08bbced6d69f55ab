"""The corpus as a file: its format, its location, and files that are complete or absent."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple
from uuid import uuid4

import apsw
from platformdirs import user_data_path

from rolebundle import system
from rolebundle.errors import (
    ConfigurationError,
    CorpusCorrupt,
    RolebundleError,
    UsageError,
    WrongFile,
    corpus_busy,
    storage_errors,
)
from rolebundle.storage.address import address_of, in_database_error, is_address, link_for
from rolebundle.text.references import may_be_stored


class FileFormat(NamedTuple):
    """How one kind of SQLite file is recognized, and how its errors are reported.

    Attributes:
        name: what the file is called in messages, with its article: ``"an audit"``.
        application_id: the number in the file's header.
        oldest: the oldest version (``user_version`` in the header) that can be opened.
        newest: the newest version that can be opened.
        foreign_hint: the next step if the file belongs to another application.
        missing_error: makes the error for a path that is not a regular file.
        own_error: turns an error about an SQLite file into the error of this kind of file.
        is_own_view: whether a trigger or view (type, name, SQL) belongs in the schema.
    """

    name: str
    application_id: int
    oldest: int
    newest: int
    foreign_hint: str
    missing_error: Callable[[Path], RolebundleError]
    own_error: Callable[[Path, RolebundleError], RolebundleError] = lambda _path, error: error
    is_own_view: Callable[[str, str, str], bool] = lambda *_: False


def check_path(path: Path, file_format: FileFormat) -> None:
    """Check that the path names a file with content.

    Raises:
        UsageError, WrongFile: it names no regular file; see ``FileFormat.missing_error``.
        StorageError: there is no permission to look.
        CorpusCorrupt: the file is empty.
    """
    step = "give yourself read permission, or name another file with --db"
    with storage_errors("no_permission", f"{path}: it cannot be read", step):
        if not path.is_file():
            raise file_format.missing_error(path)
        if address_of(path):
            raise in_database_error(path)
        size = path.stat().st_size
    if size == 0:
        problem = "the file is empty, so it was cut off or never filled"
        raise file_format.own_error(path, never_filled(path, problem))


def never_filled(path: Path, problem: str) -> CorpusCorrupt:
    """The error for a file without content."""
    hint = "run `rolebundle corpus restore BACKUP`, or `rolebundle ingest FOLDER`, which fills it"
    return CorpusCorrupt("corpus_empty_file", f"{path}: {problem}", hint)


def check_identity(db: apsw.Connection, path: Path, file_format: FileFormat) -> None:
    """Refuse a file of another application or of a newer version. Reads only.

    Args:
        db: a connection to the file.
        path: for messages.
        file_format: what the file must be.

    Raises:
        WrongFile: the file belongs to another application, or has a newer schema.
        CorpusCorrupt: it has a trigger or view that we never create.
    """
    if db.pragma("application_id") != file_format.application_id:
        problem = f"{path}: is an SQLite file, but not {file_format.name}; it was not changed"
        step = file_format.foreign_hint
        raise WrongFile("foreign_file", problem, step)
    version = db.pragma("user_version")
    if not file_format.oldest <= version <= file_format.newest:
        raise WrongFile(
            "newer_schema",
            f"{path}: is {file_format.name} of version {version}, this rolebundle knows versions "
            f"up to {file_format.newest}; it was not changed",
            f"upgrade rolebundle, or {file_format.foreign_hint}",
        )
    for kind, name, sql in db.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name"
    ).fetchall():
        if not file_format.is_own_view(str(kind), str(name), str(sql)):
            foreign = CorpusCorrupt(
                "foreign_schema",
                f"{path}: contains the {kind} {name!r}, which rolebundle did not create",
                "do not trust this file: ingest the documents into a new one with --db",
            )
            raise file_format.own_error(path, foreign)


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
    unfinished = target.with_name(f"{target.name}.{os.getpid()}-{uuid4().hex}.partial")
    try:
        # SQLite gives the file's permissions also to the log beside it.
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        yield unfinished
    finally:
        for suffix in ("", *COMPANIONS):
            with suppress(OSError):
                Path(f"{unfinished}{suffix}").unlink(missing_ok=True)


def write_whole(path: Path, content: bytes, like: Path | None = None) -> None:
    """Write a file, whole or not at all, also if another file has its name.

    It has the permissions of the file that it is ``like``, if that exists; else its owner's only.

    Raises:
        OSError: it could not be written.
    """
    with partial_file(path) as unfinished:
        unfinished.write_bytes(content)
        if like and like.exists():
            shutil.copymode(like, unfinished)
        rename_synced(unfinished, path)


def write_new(contents: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Write new files: all of them or none, and never over another one.

    A missing folder for one is made, such as that of a corpus's overlays.

    Args:
        contents: path → content.
        mode: the permissions, as far as the process gives them to new files.

    Raises:
        ConfigurationError: ``file_exists``: one of them exists. Nothing was written.
        OSError: one cannot be written. Nothing was written.
    """
    written: list[Path] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
                written.append(path)
                file.write(content)
            sync_file(path)
    except OSError as error:
        for new in written:
            new.unlink(missing_ok=True)
        if os.path.lexists(path):
            problem = f"{path}: exists, and is never overwritten"
            step = "choose another name, or move it away and run the same command again"
            raise ConfigurationError("file_exists", problem, step) from error
        raise


def remove_stale_partials(target: Path) -> None:
    """Delete the partial files whose name begins like ``target`` and whose process has ended."""
    for file, match in files_beside(target, _SUFFIX):
        if not (match[1] and system.is_running(int(match[1]))):
            with suppress(OSError):
                file.unlink()


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
        system.replace(partial, path)
    sync_folder(path.parent)
    return True


def rename_synced(partial: Path, path: Path) -> None:
    """Give a complete file its name, also if another file has it. Both are on the disk then.

    Raises:
        OSError: it could not be written.
    """
    sync_file(partial)
    system.replace(partial, path)
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


# -- locks between processes -----------------------------------------------------------------------
#
# The lock on a corpus's folder is shared by all writers, and exclusive for whoever replaces the
# file. SQLite's locks belong to the
# file that is open. They do not keep a writer from continuing with a file that another one has
# replaced, and what it writes then is lost. Readers take no lock: they finish with the file that
# they have open.

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for a lock, unless the environment variable sets another time."""
BUSY_TIMEOUT_ENVIRONMENT = "ROLEBUNDLE_BUSY_TIMEOUT_MS"
_PAUSE_SECONDS = 0.02


def busy_timeout() -> int:
    """Milliseconds to wait for another process's lock.

    Raises:
        ConfigurationError: the environment variable is not a number of milliseconds.
    """
    name, unit = BUSY_TIMEOUT_ENVIRONMENT, "milliseconds"
    return whole_number_in(name, BUSY_TIMEOUT_MS, unit, "bad_busy_timeout", digits=9)


def whole_number_in(name: str, default: int, unit: str, code: str, *, digits: int) -> int:
    """The number of a unit that an environment variable sets, with so many digits at most.

    Raises:
        ConfigurationError: with this code; it is no such number.
    """
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= digits):
        raise ConfigurationError(
            code,
            f"{name}={text[:40]!r} is not a number of {unit}",
            f"set it to a whole number such as {default}, or unset it",
        )
    return int(text)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """A block that takes the lock of a path if it is free. Yields whether it got it.

    If there are no locks, or if no such file can be made, it yields true.

    Args:
        path: the file of the lock; it is created if it is missing, and stays.
    """
    with _opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
        yield _is_locked(descriptor, exclusive=True)


def is_held(path: Path) -> bool:
    """Whether a process, or this one, holds the lock of :func:`try_lock` on a path."""
    with try_lock(path) as is_free:
        return not is_free


@contextmanager
def folder_lock(corpus: Path, *, exclusive: bool) -> Iterator[None]:
    """A block with the lock of a corpus's folder.

    Some file systems have no locks; there it does nothing.

    Args:
        corpus: the corpus file; its folder must exist.
        exclusive: wait until nobody writes, and keep writers out. Otherwise other writers may have
            the lock, too.

    Raises:
        CorpusBusy: another process kept it for that time.
    """
    deadline = monotonic() + busy_timeout() / 1000
    with _opened(*system.lock_of_folder(Path(os.path.realpath(corpus)).parent)) as descriptor:
        while not _is_locked(descriptor, exclusive=exclusive):
            if monotonic() >= deadline:
                doing = "has it open for writing" if exclusive else "is replacing the file"
                raise corpus_busy(corpus, doing)
            sleep(_PAUSE_SECONDS)
        yield


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a file or folder during the block; -1 if it cannot be opened."""
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _is_locked(descriptor: int, *, exclusive: bool) -> bool:
    """Try to lock an open file. True also if there are no locks here."""
    if descriptor < 0:
        return True
    with suppress(OSError):
        return system.lock(descriptor, exclusive=exclusive)
    return True


DB_VARIABLE = "ROLEBUNDLE_DB"
OVERLAYS_SUFFIX = ".overlays"
PUBLISHED_SUFFIX = ".published"
BESIDE_A_CORPUS = {OVERLAYS_SUFFIX: "overlays", PUBLISHED_SUFFIX: "published replicas"}
"""How the names of the folders beside a corpus end, and what they are."""
PUBLISHED_MANIFEST = "replica-manifest.json"
"""The manifest of a replica that is published to a folder."""


def corpus_path(option: str | os.PathLike[str] | None = None) -> Path:
    """``option``, else ``$ROLEBUNDLE_DB``, else a file in the platform's user data folder.

    For the address of a database it is the link that stands for it.

    Raises:
        UsageError: a name that SQLite cannot open, or an empty one.
    """
    if option == "":
        # That of an unset variable: it must not mean another corpus.
        step = "name a file, or leave it out"
        raise UsageError("bad_db_name", "--db: the name of the corpus file is empty", step)
    named = option or os.environ.get(DB_VARIABLE)
    if named:
        text = os.fspath(named)
        if is_address(text):
            return link_for(text)
        if "\x00" in text or not may_be_stored(text):
            step = "choose another name for the file"
            raise UsageError("bad_db_name", f"{text!r}: the corpus file's name must be text", step)
        return Path(os.path.expanduser(text))  # noqa: PTH111 - expanduser() of Path may raise
    return user_data_path("rolebundle", appauthor=False) / "corpus.db"


def audit_path(corpus: Path) -> Path:
    """The audit's file of a corpus."""
    return _beside(corpus, "{}.audit")


def overlays_path(corpus: Path) -> Path:
    """The folder of the corpus's own overlays."""
    return _beside(corpus, "{}" + OVERLAYS_SUFFIX)


def published_folder(corpus: Path) -> Path:
    """The private folder in which a replica is made before it is published."""
    return _beside(corpus, "{}" + PUBLISHED_SUFFIX)


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
