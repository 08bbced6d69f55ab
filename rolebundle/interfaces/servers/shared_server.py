"""One server for several hosts, over a Unix domain socket, so that the model is loaded once.

Each connection has an engine, a queue and a thread of its own, with the options that its client
sent. Only the models are shared. So a connection answers what a process of its client's own would,
and it cannot see or cancel the calls of another one.

The socket of a corpus lies in the user's runtime folder (`$XDG_RUNTIME_DIR`), or else beside the
corpus. Both sides check that the other one belongs to the same user. The first line of a connection
says what the client's own process would serve, and the server answers whether it does the same (see
:class:`Hello`). Then the client's process becomes a small one that forwards lines (``forward.py``).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from threading import Lock, Thread, current_thread
from time import monotonic, sleep
from typing import Any, Literal, NoReturn, Self

import rolebundle
from rolebundle.contracts.base import Contract
from rolebundle.errors import (
    ConfigurationError,
    CorpusBusy,
    RolebundleError,
    StorageError,
    install_hint,
)
from rolebundle.interfaces.servers.forward import end_line
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.servers.serve import Server
from rolebundle.interfaces.servers.stdio import Channel, ReadStopper
from rolebundle.interfaces.servers.worker import (
    STOP_SECONDS,
    WRITE_SECONDS,
    ClientSession,
    end_code,
)
from rolebundle.interfaces.signals import on_end

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
        ConfigurationError: ``socket_path``: the path is too long, or there is something else.
        CorpusBusy: ``already_served``: another server listens there.
        StorageError: ``io_error``: the socket cannot be made.
    """
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
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
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
            "socket_path", f"{path}: is not a socket", "name another path with --socket PATH"
        )
    return True


Protocol = Literal["serve", "mcp"]

ENVIRONMENT = "ROLEBUNDLE_SOCKET"
"""The environment variable with the socket to attach to; ``none`` to attach to none."""
NOT_ATTACHED = "none"
MAX_HELLO_BYTES = 1 << 16
_FORWARDER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from rolebundle.interfaces.servers.forward import main; main()"
)
_PROGRAM = "from rolebundle.interfaces.cli.main import main; main()"
HELLO_SECONDS = 5.0
_RESOLVED = frozenset(
    f"ROLEBUNDLE_{name}" for name in ("DB", "OVERLAYS", "SOCKET", "DEBUG", "SHARED")
)
"""Variables that have an effect only as the options that they stand for, or none on answers."""


class Hello(Contract):
    """What a client's own process would serve.

    Attributes:
        settings: the digest of all that must be the same in the server; see
            :func:`settings_digest`.
        protocol: `serve` (JSON-RPC) or `mcp`.
        agent: the only agent that is answered.
        allow_write: whether the methods that write are offered.
        approvals: whether approvals come from requests.
        overlay_folders: where overlays are looked for, with absolute paths.
    """

    settings: str
    protocol: Protocol
    agent: str | None
    allow_write: bool
    approvals: Literal["none", "request"]
    overlay_folders: list[str]

    @classmethod
    def of(cls, operations: Operations, protocol: Protocol) -> Self:
        """What a process with these operations serves."""
        engine = operations.engine
        return cls(
            settings=settings_digest(engine.workspace.path),
            protocol=protocol,
            agent=engine.agent,
            allow_write=operations.allow_write,
            approvals="request" if engine.answering.approvals.source == "request" else "none",
            overlay_folders=[str(folder.absolute()) for folder in engine.overlay_folders],
        )

    @classmethod
    def read(cls, line: bytes) -> Self | None:
        """The hello of a line; ``None`` if it is none."""
        with suppress(ValueError):
            return cls.model_validate_json(line)
        return None


def settings_digest(corpus: Path) -> str:
    """The digest of all that must be the same in two processes that serve the same.

    It covers the version, the file of the corpus, and the environment variables of this program and
    of Ollama.
    """
    try:
        status = corpus.stat()
        file = [status.st_dev, status.st_ino]
    except OSError:
        file = []
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("ROLEBUNDLE_", "OLLAMA_")) and name not in _RESOLVED
    }
    # Answers contain the name by which the corpus was opened.
    names = [os.path.realpath(corpus), corpus.name]
    values = [version("rolebundle"), names, file, environment]
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def sockets(corpus: Path) -> list[Path]:
    """Where the socket of a corpus may lie; none if this process must not attach."""
    named = os.environ.get(ENVIRONMENT, "")
    if named == NOT_ATTACHED:
        return []
    return [Path(named)] if named else socket_paths(corpus)


def attach(operations: Operations, protocol: Protocol) -> None:
    """Become the forwarder to the corpus's server. Return if there is none that serves the same.

    Args:
        operations: those that this process would serve.
        protocol: what it would speak.
    """
    connection = connect_to_server(operations, protocol) if sys.executable else None
    if connection is not None:
        # -P: the folder in which a host starts this program is no place for modules.
        alone = [sys.executable, "-P", "-c", _PROGRAM, *sys.argv[1:]]
        connection.set_inheritable(True)
        sys.stderr.flush()
        # Replaced, because this process has imported what the forwarder does not need.
        os.execv(sys.executable, forwarder_command(connection, alone))


def connect_to_server(operations: Operations, protocol: Protocol) -> socket.socket | None:
    """A connection to the corpus's server, if there is one and it serves the same.

    Why a server does not serve the same is written to standard error.
    """
    # A program that approves must run in the folder and with the variables of its own host.
    if operations.engine.answering.approvals.source == "command":
        return None
    for path in sockets(operations.engine.workspace.path):
        connection = connect(path, HELLO_SECONDS)
        if connection is None:
            continue
        try:
            reason = _refusal(connection, Hello.of(operations, protocol))
        except ValueError:
            reason = "the name of a folder or an agent is not text"
        if not reason:
            connection.settimeout(None)
            return connection
        connection.close()
        sys.stderr.write(f"not attached to the server at {path}: {reason}\n")
    return None


def forwarder_command(connection: socket.socket, alone: Sequence[str]) -> list[str]:
    """The command of the forwarder between the standard streams and a connection.

    Args:
        connection: greeted; the forwarder must inherit it.
        alone: the command of a server of this client's own, in case that the server ends.
    """
    package = str(Path(rolebundle.__file__).parents[1])
    # -I -S: it needs no other packages, and is smaller without them.
    python = [sys.executable, "-I", "-S", "-c", _FORWARDER]
    return [*python, package, str(connection.fileno()), *alone]


def _refusal(connection: socket.socket, hello: Hello) -> str:
    """Say hello. Return why the server does not serve this client; empty if it does."""
    try:
        connection.sendall(hello.model_dump_json().encode() + b"\n")
        line = received_line(connection, MAX_HELLO_BYTES)
        if not line:
            return "it ended the connection"
        answer: Any = json.loads(line)
        return str(answer["refused"])
    except (OSError, ValueError, KeyError, TypeError):
        return "it gave no answer"


MAX_CONNECTIONS = 32
_PAUSE_SECONDS = 0.1
_M_ARENA_MAX = -8
"""The number of the setting in glibc's <malloc.h>."""


class SharedServer:
    """Serves the clients that connect to a socket.

    Args:
        own: the operations of the server's own options. With an agent, only clients with exactly
            these options are served; otherwise a client chooses its agent, approvals and overlays,
            as in a process of its own. None may write if the server may not.
        operations_for: makes the operations for a client.
    """

    def __init__(self, own: Operations, operations_for: Callable[[Hello], Operations]) -> None:
        self.own = own
        self._operations_for = operations_for
        self._stopper = ReadStopper()
        self._lock = Lock()
        self._sessions: dict[Thread, ClientSession | None] = {}
        self._is_stopped = False
        self.is_finished = True
        """Whether every request of every connection was finished."""

    def run(self, listener: socket.socket) -> None:
        """Serve until :meth:`stop`, and answer all requests that were accepted."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(self._stopper.descriptor, select.POLLIN)
        # A client may be gone before it is accepted.
        listener.setblocking(False)
        while self._stopper.descriptor not in dict(poll.poll()):
            try:
                connection, _ = listener.accept()
            except OSError:
                sleep(_PAUSE_SECONDS)
            else:
                self._start(connection)
        with self._lock:
            sessions = dict(self._sessions)
        for session in sessions.values():
            if session is not None:
                session.stop()
        end = monotonic() + STOP_SECONDS + 2 * WRITE_SECONDS
        for thread, session in sessions.items():
            thread.join(max(0.0, end - monotonic()))
            self.is_finished &= session is None or not thread.is_alive()

    def stop(self) -> None:
        """Make :meth:`run` return soon. For a signal handler."""
        self._is_stopped = True
        self._stopper.stop()

    def _start(self, connection: socket.socket) -> None:
        with self._lock:
            is_full = len(self._sessions) >= MAX_CONNECTIONS
            if is_full or not is_same_user(connection):
                connection.close()
                return
            thread = Thread(target=self._serve, args=(connection,), daemon=True)
            self._sessions[thread] = None
        thread.start()

    # -- the thread of a connection --------------------------------------------------------------

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._serve_session(connection)
        finally:
            with self._lock:
                del self._sessions[current_thread()]

    def _serve_session(self, connection: socket.socket) -> None:
        # Of its own, so that a call that outlives the connection never writes to another one.
        channel = Channel(os.dup(connection.fileno()), os.dup(connection.fileno()), is_socket=True)
        session = self._session(connection, channel)
        if session is not None:
            with self._lock:
                self._sessions[current_thread()] = session
            if self._is_stopped:
                session.stop()
            session.run()
            self.is_finished &= session.is_finished or not session.is_stopped
            with suppress(OSError):
                if session.has_ended:
                    connection.settimeout(WRITE_SECONDS)
                    connection.sendall(
                        end_line(is_finished=session.is_finished, is_stopped=session.is_stopped)
                    )
                connection.shutdown(socket.SHUT_RDWR)
            if not session.has_ended:
                return
            session.close()
        os.close(channel.incoming)
        os.close(channel.outgoing)

    def _session(self, connection: socket.socket, channel: Channel) -> ClientSession | None:
        """The session that a client asks for; ``None`` if it is refused."""
        session, refused = None, "the hello is malformed"
        try:
            connection.settimeout(HELLO_SECONDS)
            hello = Hello.read(received_line(connection, MAX_HELLO_BYTES))
            if hello is not None:
                refused = self.refusal(hello)
                if not refused:
                    session = self._session_for(hello, connection, channel)
        except RolebundleError as error:
            refused = error.message
        except ImportError:
            refused = f"it lacks the extra mcp; {install_hint('mcp')}"
        except OSError:
            return None
        try:
            connection.sendall(json.dumps({"refused": refused}).encode() + b"\n")
        except OSError:
            if session is not None:
                session.close()
            return None
        connection.settimeout(None)
        return session

    def refusal(self, hello: Hello) -> str:
        """Why a client is not served; empty if it is."""
        own = Hello.of(self.own, hello.protocol)
        if hello.settings != own.settings:
            return "it has another version, corpus, model or environment"
        if hello.allow_write and not own.allow_write:
            return "it may not write"
        if own.agent is not None and hello != own.model_copy(
            update={"allow_write": hello.allow_write}
        ):
            return "it serves one agent, with other options"
        return ""

    def _session_for(
        self, hello: Hello, connection: socket.socket, channel: Channel
    ) -> ClientSession:
        operations = self._operations_for(hello)
        if hello.protocol == "serve":
            return Server(operations, channel)
        from rolebundle.interfaces.servers.mcp import Session

        def give_up() -> None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        return Session(operations, channel, give_up=give_up)


def _use_one_heap() -> None:
    """Let all threads allocate from one heap. glibc gives each its own, of several MB."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def serve_shared(server: SharedServer, path: Path) -> NoReturn:
    """Serve the clients that connect to a socket, until a signal ends this process.

    Args:
        server: what is served. The model is loaded first.
        path: where the socket is made.

    Raises:
        ConfigurationError, CorpusBusy, StorageError: see :func:`listening`.
    """
    _use_one_heap()
    # First, because a client does not wait long for an answer to its hello.
    server.own.warm_up()
    server.own.engine.close()
    signals: list[int] = []
    with listening(path) as listener:
        on_end(signals, server.stop)
        sys.stderr.write(f"serving {server.own.engine.workspace.path} at {path}\n")
        sys.stderr.flush()
        server.run(listener)
    # The interpreter's own exit would wait for calls that do not react to interrupts.
    os._exit(end_code(signals, is_finished=server.is_finished))
