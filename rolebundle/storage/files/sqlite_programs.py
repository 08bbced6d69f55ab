"""What programs that move SQLite files need of them: sqlite3_rsync and Litestream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import apsw

from rolebundle.storage.files.partial import OWNER_ONLY
from rolebundle.storage.files.sqlite_errors import own_error
from rolebundle.storage.files.sqlite_file import busy_timeout

_FORMAT_OFFSET = 18
_ROLLBACK = b"\x01\x01"


def sqlite3_rsync() -> str | None:
    """The path of the program: the one on PATH, else the one in apsw's wheel, if it has it."""
    import apsw.sqlite_extra

    if found := which("sqlite3_rsync"):
        return found
    try:
        return str(apsw.sqlite_extra.path("sqlite3_rsync"))
    except (LookupError, apsw.sqlite_extra.NotAvailable, OSError):
        return None


@contextmanager
def keeping_log(path: Path) -> Iterator[None]:
    """Keep what another program writes to a file in its write-ahead log.

    The last connection to a file moves its log into it. Litestream then no longer knows what
    changed, and stores all of the file again. So while another program writes, a connection
    stays open that reads the state before.

    Raises:
        CorpusCorrupt, CorpusBusy, StorageError: the file cannot be opened.
    """
    with _connection(path) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield


def is_same_generation(replica: Path, working: Path) -> bool:
    """Whether two files hold the same signed manifest. Their logs stay where they are.

    Raises:
        CorpusCorrupt, CorpusBusy, StorageError: one of them cannot be read.
    """
    manifests = []
    for path in (replica, working):
        with _connection(path) as db:
            manifests.append(db.execute("SELECT manifest FROM replica").fetchall())
    return manifests[0] == manifests[1]


@contextmanager
def _connection(path: Path) -> Iterator[apsw.Connection]:
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            db.set_busy_timeout(busy_timeout())
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            yield db
        finally:
            db.close()
    except apsw.Error as error:
        raise own_error(error, path) from error


def make_private_rollback_file(path: Path) -> None:
    """Take a closed file without a log out of write-ahead mode, for its owner alone.

    Raises:
        OSError: it could not be written.
    """
    with path.open("r+b") as stream:
        stream.seek(_FORMAT_OFFSET)
        stream.write(_ROLLBACK)
    path.chmod(OWNER_ONLY)
