"""The server of `rolebundle up`: it forks a process for each command that asks for one.

It has one thread and no open file of a corpus, so that a fork is safe: the command opens the
corpus, reads the policy and the overlays, and checks the agent as it does in a process of its own.
Only modules and models are shared. A process always waits for the next command. See
:mod:`rolebundle.interfaces.warm` for the client, and docs/decisions/0035 for the reasons.
"""

from __future__ import annotations

import gc
import os
import re
import select
import signal
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import NoReturn

import rolebundle
from rolebundle import system
from rolebundle.embedding.packaged import MINILM
from rolebundle.embedding.provider import ProviderSpec
from rolebundle.embedding.registry import provider_for
from rolebundle.errors import ConfigurationError, CorpusBusy, RolebundleError, StorageError
from rolebundle.interfaces.cli import main as command_line
from rolebundle.policy.overlays import list_overlays
from rolebundle.resources import demo_overlays

assert sys.platform != "win32"  # `up` does not import this module there.
from rolebundle.interfaces.warm import COMMANDS, PID, identity, is_same_user, socket_path  # noqa: E402  # It has no names there.

IDLE_SECONDS = 3_600.0
"""It ends after so long without a command."""
MAX_REQUEST_BYTES = 1 << 24
_REQUEST_SECONDS = 5.0
_PAUSE_SECONDS = 0.02
_HEAVY = (
    "rolebundle.storage.postings",
    "rolebundle.storage.vector_scan",
    "rolebundle.verification.verify",
)


def start(path: Path) -> bool:
    """Start a server in the background, and wait until it can be used.

    Returns:
        Whether it was started; false if one is there.

    Raises:
        ConfigurationError, StorageError: see :func:`listening`.
    """
    ready, writer = os.pipe()
    command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
    with os.fdopen(ready, "rb") as answer:
        command += [str(path), str(writer)]
        process = system.start_detached(command, cwd="/", pass_fds=[writer])
        os.close(writer)
        text = answer.read().decode()
    if text == "up":
        return True
    process.wait()
    code, _, message = text.partition(" ")
    if code == "already_served":
        return False
    kind = ConfigurationError if code == "socket_path" else StorageError
    raise kind(code or "server_failed", message or "the server ended at once", _HINT)


_HINT = "commands work without a server; ROLEBUNDLE_SOCKET=PATH names another place for its socket"


def stop(path: Path) -> bool:
    """End the server, and wait for its end. Commands that run in it go on.

    Returns:
        Whether there was one.
    """
    try:
        lock = Path(f"{path}.lock").open("r+b")  # noqa: SIM115 - closed below
    except OSError:
        return False
    with lock:
        if system.lock(lock.fileno(), exclusive=True):
            return False
        with suppress(ValueError, ProcessLookupError):
            os.kill(int(lock.read()), signal.SIGTERM)
        while not system.lock(lock.fileno(), exclusive=True):
            sleep(_PAUSE_SECONDS)
    return True


def main() -> NoReturn:
    """Serve at the path of the first argument; tell the descriptor of the second when it can."""
    path, ready = Path(sys.argv[1]), int(sys.argv[2])
    running: dict[int, socket.socket] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            with listening(path) as (listener, lock):
                load()
                note = _corpus_of_one_line(Path(folder))
                _answer(note)
                gc.collect()
                # What is here stays: a search for garbage would copy its pages into each process.
                gc.freeze()
                os.write(ready, b"up")
                os.close(ready)
                serve(listener, lock, note, running)
        except RolebundleError as error:
            with suppress(OSError):  # It was up, and is closed.
                os.write(ready, f"{error.code} {error.message}".encode())
        # Until every process has ended. One may be using the folder.
        _tell_ended(running, 0)
    os._exit(0)


def load() -> None:
    """Import what the commands need, and load the models that are installed."""
    modules = (f"rolebundle.interfaces.cli.{command_line.ROWS[name][0]}" for name in COMMANDS)
    for name in (*_HEAVY, *modules):
        import_module(name)
    # Its threads would not exist in a fork, which would wait for them.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    has_minilm = MINILM.is_installed and not os.environ.get("ROLEBUNDLE_MODEL")
    for provider in ("static", "onnx") if has_minilm else ("static",):
        with suppress(RolebundleError):
            provider_for(ProviderSpec(provider, "")).embed_queries(["warm"])


def _corpus_of_one_line(folder: Path) -> str:
    """The path of a corpus."""
    note, db = folder / "note.md", str(folder / "note.db")
    note.write_text("The server is warm.", encoding="utf-8")
    # Ingest starts threads, and only one thread may run in a process that forks.
    if process := os.fork():
        os.waitpid(process, 0)
        return db
    try:
        _call("ingest", str(note), "--db", db)
    finally:
        os._exit(0)


def _answer(db: str) -> None:
    """Answer from a corpus, for what is only made when it is first needed."""
    folder = demo_overlays()
    role = list_overlays([folder])[0].role_id
    _call("retrieve", "a server", "--db", db, "--overlay-dir", str(folder), "--role", role)
    _call("get", "note.md", "--db", db)


def _call(*arguments: str) -> None:
    with suppress(SystemExit):
        command_line.main(arguments)


def serve(listener: socket.socket, lock: int, note: str, running: dict[int, socket.socket]) -> None:
    """Run each command in a process, until SIGTERM, or none came for an hour, or an update.

    Args:
        listener: where the clients connect.
        lock: the descriptor of the lock file.
        note: the path of a small corpus.
        running: process → the connection of its client; it is kept up to date.
    """
    # Only this thread may run: a fork copies only the thread that calls it.
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    files = [*Path(rolebundle.__file__).parent.rglob("*.py")]
    version = _version(files)
    accepting = listener.fileno()
    own = [woken, wake, accepting, lock]
    process, waiting = _prepare(own, running, note)
    while not ended and (ready := select.select([accepting, woken], [], [], IDLE_SECONDS)[0]):
        if woken in ready:
            os.read(woken, 1 << 10)
            _tell_ended(running, os.WNOHANG)
        if accepting not in ready:
            continue
        connection, _ = listener.accept()
        if not (is_same_user(connection) and _is_confined_alike(connection)):
            connection.close()
            continue
        if _version(files) != version:
            connection.close()
            return
        with waiting:
            try:
                socket.send_fds(waiting, [b"-"], [connection.fileno()])
            except OSError:  # The process is gone: the client runs the command itself.
                connection.close()
            else:
                running[process] = connection
        process, waiting = _prepare(own, running, note)


def _prepare(
    own: Sequence[int], running: Mapping[int, socket.socket], note: str
) -> tuple[int, socket.socket]:
    """Fork a process that waits for the connection of a client, with the socket to send it.

    It answers once before it waits: so it has its copies of the pages that an answer writes to.
    """
    ours, theirs = socket.socketpair()
    if process := os.fork():
        theirs.close()
        return process, ours
    ours.close()
    for descriptor in own:
        os.close(descriptor)
    for connection in running.values():
        connection.close()
    try:
        _answer(note)
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        if descriptors:
            _run(socket.socket(fileno=descriptors[0]))
    finally:
        os._exit(1)


def _tell_ended(running: dict[int, socket.socket], options: int) -> None:
    """Tell the clients of the processes that have ended their exit codes."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, options))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            if connection := running.pop(ended[0], None):
                with connection, suppress(OSError):
                    connection.send(bytes([code if code >= 0 else 128 - code]))


def _version(files: Sequence[Path]) -> list[int]:
    """The times at which the program's files were changed; 0 for a file that is gone."""
    return [file.stat().st_mtime_ns if file.exists() else 0 for file in files]


def _is_confined_alike(connection: socket.socket) -> bool:
    """Whether the client sees the same files and may do the same system calls as this process.

    A command that runs here must not get out of the sandbox of the agent that called it. Only
    Linux tells.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    client = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    with suppress(OSError):
        return _confinement(str(struct.unpack("3i", client)[0])) == _confinement("self")
    return False


def _confinement(process: str) -> list[str]:
    folder = Path("/proc", process)
    names = [str((folder / name).readlink()) for name in ("root", "ns/mnt", "ns/user")]
    return names + re.findall(r"(?:Seccomp|NoNewPrivs|Cap\w+):.*", (folder / "status").read_text())


def _run(connection: socket.socket) -> NoReturn:
    """Become the process of a command, and end as it ends."""
    code: object = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        connection.settimeout(_REQUEST_SECONDS)
        arguments = None
        with suppress(OSError, ValueError, struct.error):
            arguments = _take_over(connection)
        if arguments is None:
            connection.sendall(PID.pack(0))
        else:
            sys.argv = ["rolebundle", *arguments]
            command_line.main()
    except SystemExit as end:
        code = end.code
    finally:
        code = code if isinstance(code, int) else 0
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        # The client need not wait until the system has freed the memory of this process.
        os.closerange(0, 3)
        with suppress(OSError):
            connection.send(bytes([code]))
        os._exit(code)


def _take_over(connection: socket.socket) -> list[str] | None:
    """Take the streams, folder, variables and umask of a client over, and return its arguments.

    ``None`` if its command must not run here.
    """
    length, descriptors, _, _ = socket.recv_fds(connection, PID.size, 4)
    [size] = PID.unpack(length)
    if size > MAX_REQUEST_BYTES:
        return None
    message = connection.recv(size, socket.MSG_WAITALL)
    numbers, *fields = message.split(b"\0")
    umask, own, count = map(int, numbers.split())
    if fields[:own] != identity() or len(message) != size:
        return None
    connection.sendall(PID.pack(os.getpid()))
    # A client that has given up runs the command itself, and it must not run twice.
    if not connection.recv(1):
        return None
    *streams, folder = descriptors
    os.fchdir(folder)
    os.close(folder)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.umask(umask)
    os.environb.clear()
    for field in fields[own + count :]:
        name, _, value = field.partition(b"=")
        os.environb[name] = value
    for number, stream_name in enumerate(("stdin", "stdout", "stderr")):
        former = getattr(sys, stream_name)
        stream = os.fdopen(
            number,
            "r" if number == 0 else "w",
            1 if number == 2 or os.isatty(number) else -1,
            encoding=former.encoding,
            errors=former.errors,
            closefd=False,
        )
        setattr(sys, stream_name, stream)
        setattr(sys, f"__{stream_name}__", stream)
    return [os.fsdecode(argument) for argument in fields[own : own + count]]


# -- the socket ----------------------------------------------------------------------------------


def server_path() -> Path:
    """The path of the user's server.

    Raises:
        ConfigurationError: ``no_server``: it is switched off.
    """
    path = socket_path()
    if not path:
        raise ConfigurationError(
            "no_server", "ROLEBUNDLE_SOCKET is `none`, so no server is used", "unset it"
        )
    return Path(path).absolute()


@contextmanager
def listening(path: Path) -> Iterator[tuple[socket.socket, int]]:
    """A socket that listens at a path, for this user alone, and the descriptor of its lock file.

    The lock file has the number of this process. The socket is removed at the end.

    Raises:
        ConfigurationError: ``socket_path``: there is something else.
        CorpusBusy: ``already_served``: another server listens there.
        StorageError: ``io_error``: the socket cannot be made.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove(path, only_look=True)  # Or a lock file would be made beside something else.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(f"{path}.lock", flags, 0o600)
        if not system.lock(lock, exclusive=True):
            raise CorpusBusy("already_served", f"{path}: another server listens there", "use it")
        os.ftruncate(lock, 0)
        os.write(lock, b"%d" % os.getpid())
        _remove(path)  # What a killed server left: this process has the lock.
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(before)
        listener.listen()
    except OSError as error:
        raise StorageError(
            "io_error", f"{path}: the socket cannot be made ({error.strerror or error})", _HINT
        ) from error
    try:
        yield listener, lock
    finally:
        listener.close()
        _remove(path)
        os.close(lock)


def _remove(path: Path, *, only_look: bool = False) -> None:
    """Remove a socket. If something else is there, raise a ConfigurationError."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigurationError(
            "socket_path", f"{path}: is not a socket", "name another path with ROLEBUNDLE_SOCKET"
        )
    if not only_look:
        path.unlink(missing_ok=True)
