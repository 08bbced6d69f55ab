"""Unix domain sockets between processes of one user: where they lie, and who may use them.

The socket of a corpus lies in the user's runtime folder (`$XDG_RUNTIME_DIR`), or else beside the
corpus. Both sides check that the other one belongs to the same user.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from rolebundle.errors import ConfigurationError, CorpusBusy, StorageError

HAS_SOCKETS = hasattr(socket, "AF_UNIX")
MAX_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""The longest address of a socket that the system takes."""
_BACKLOG = 64


def socket_paths(corpus: Path) -> list[Path]:
    """Where the socket of a corpus may lie, the usual place first. A missing corpus has one, too.

    Links are resolved, so that a corpus has the same socket by each of its names.
    """
    file = Path(os.path.realpath(corpus))
    paths = [file.with_name(f".{file.name}.socket")]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_private(runtime):
        name = sha256(os.fsencode(file)).hexdigest()[:16]
        paths.insert(0, Path(runtime) / f"rolebundle-{name}.socket")
    return paths


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that listens at a path, for this user alone. It is removed at the end.

    Raises:
        ConfigurationError: ``no_unix_sockets``; ``socket_path``: the path is too long, or there is
            something else.
        CorpusBusy: ``already_served``: another server listens there.
        StorageError: ``io_error``: the socket cannot be made.
    """
    if not HAS_SOCKETS:
        raise ConfigurationError(
            "no_unix_sockets",
            "this system has no Unix domain sockets, so one server cannot serve several hosts",
            "let each host start its own server: rolebundle serve, or rolebundle mcp",
        )
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise ConfigurationError(
            "socket_path",
            f"{path}: the path is longer than {MAX_PATH_BYTES} bytes",
            "name a shorter one, with --socket PATH and ROLEBUNDLE_SOCKET=PATH for the clients",
        )
    with ExitStack() as opened:
        try:
            _is_there(path)  # Or a lock file would be made beside something else.
            opened.enter_context(_lock(path))
            listener = opened.enter_context(socket.socket(socket.AF_UNIX))
            _remove(path)  # What a killed server left: this process has the lock.
            before = os.umask(0o177)
            try:
                listener.bind(os.fspath(path))
            finally:
                os.umask(before)
            opened.callback(_remove, path)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise StorageError(
                "io_error",
                f"{path}: the socket cannot be made ({error.strerror})",
                "name another one with --socket PATH, in a folder of your own",
            ) from error
        yield listener


def connect(path: Path, timeout: float) -> socket.socket | None:
    """A connection to this user's server at a path; ``None`` if there is none.

    Args:
        path: of the socket.
        timeout: seconds, for each operation of the connection.
    """
    if not HAS_SOCKETS or len(os.fsencode(path)) > MAX_PATH_BYTES:
        return None
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(os.fspath(path))
        if is_same_user(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def received_line(connection: socket.socket, limit: int) -> bytes:
    """One line with its line end, or what comes before the end of the connection or the limit."""
    line = b""
    # Byte by byte: what follows the line belongs to the protocol.
    while not line.endswith(b"\n") and len(line) < limit:
        part = connection.recv(1)
        if not part:
            break
        line += part
    return line


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to the user of this one.

    If the system does not tell, the permissions of the socket's file decide.
    """
    with suppress(OSError):  # The other end is gone.
        if hasattr(socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return bool(struct.unpack("3i", credentials)[1] == os.geteuid())
        if sys.platform == "darwin":
            # LOCAL_PEERCRED of <sys/un.h>: the version, then the user.
            credentials = connection.getsockopt(0, 1, 76)
            return bool(struct.unpack("2I", credentials[:8])[1] == os.geteuid())
        return True
    return False


def _is_private(folder: str) -> bool:
    try:
        status = Path(folder).stat()
    except (OSError, ValueError):
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    return is_folder and status.st_uid == os.geteuid() and not status.st_mode & 0o077


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """A lock file beside the socket, which ends with the process that has it."""
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(f"{path}.lock", flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise CorpusBusy(
                "already_served",
                f"{path}: another server listens there",
                "use it: `rolebundle serve` and `rolebundle mcp` attach to it by themselves",
            ) from None
        yield
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if _is_there(path):
        path.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    """Whether a socket is there. If something else is, raise a ConfigurationError."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise ConfigurationError(
            "socket_path",
            f"{path}: is not a socket",
            "name another path with --socket PATH",
        )
    return True
