"""Python processes that start fast: a server has imported `rolebundle` and forks for each of them.

``forked_python()`` stands for ``[sys.executable, "-c"]``. The process that it starts is a small client: it
passes its arguments, folder, variables and standard streams to the server, forwards signals to the
forked process and ends as it ends. If the client is killed, so is the forked process.

A forked process has the settings with which Python started the server. Tests that depend on
Python's start or end, on imports or on limits of a process start a real one.

``forked_worker()`` is the same for the workers of pytest-xdist: each of them would import everything
again.
"""

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from io import StringIO
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, NamedTuple

# The modules in C that `signal` and `socket` wrap: to import those two takes longer than the rest.
CLIENT = """
import _signal as signal, _socket as socket, marshal, os, sys
from struct import pack
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.connect(sys.argv[1])
signals = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
streams = (socket.SOL_SOCKET, socket.SCM_RIGHTS, pack("3i", 0, 1, 2))
server.sendmsg([b"streams"], [streams])
server.sendall(marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ))) + b"end")
os.close(0)
os.close(1)
child = int(server.recv(16, socket.MSG_WAITALL))
for number in signals:
    signal.signal(number, lambda number, _: os.kill(child, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
code = int(server.recv(16) or 99)
if code < 0:  # The number of the signal that ended the forked process.
    try:
        signal.signal(-code, signal.SIG_DFL)
    except OSError:  # SIGKILL needs no default.
        pass
    os.kill(os.getpid(), -code)
os._exit(code)
"""


MAIN = "from rolebundle.interfaces.cli.main import main; main()"
"""Code that runs the command line."""
_SHARED = "ROLEBUNDLE_TEST_PROGRAM_SERVER"
"""The variable with the folder of a server that several processes of pytest use."""
SAMPLE_WITH_VECTORS, SAMPLE_WITHOUT_VECTORS = "with-vectors.db", "without-vectors.db"
FILE = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
"""Code that runs a Python file: ``(*forked_python(), FILE, path, *arguments)``."""


@cache
def forked_python() -> tuple[str, ...]:
    """The beginning of a command: after it come Python code and its arguments."""
    if not hasattr(os, "fork"):
        return (sys.executable, "-c")
    return _client(Path(os.environ.get(_SHARED) or _start()))


def _client(folder: Path) -> tuple[str, ...]:
    # -I -S: it needs no packages, and starts faster without them.
    return (sys.executable, "-I", "-S", str(folder / "client.py"), str(folder / "socket"))


def fork_readers(python: Callable[[], tuple[str, ...]] = forked_python) -> None:
    """Let the processes that read files for this one be forked, too."""
    from rolebundle.ingest import workers

    assert hasattr(workers, "subprocess")  # Else each of them would be a real process.

    class Forked(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            assert command[:2] == [sys.executable, "-c"]
            super().__init__([*python(), *command[2:]], **options)

    workers.subprocess = SimpleNamespace(Popen=Forked, PIPE=subprocess.PIPE)


def share() -> None:
    """Start the server for this process and those that it starts, which inherit its address."""
    if hasattr(os, "fork"):
        os.environ[_SHARED] = str(_start())


def shared_corpus(name: str) -> Path | None:
    """A corpus that a server of several processes has built; only to be copied."""
    folder = os.environ.get(_SHARED)
    return Path(folder) / name if folder else None


def forked_worker() -> str:
    """What pytest-xdist's option ``--tx`` needs to start a worker as a forked process.

    Of the command line of Python, which execnet gives, the server needs the code alone.
    """
    return f"popen//python={shlex.join(forked_python())}" if hasattr(os, "fork") else "popen"


def _start() -> Path:
    """Start the server, which ends with this process, and return its folder."""
    # Not a folder of pytest's: the path of a socket must be short.
    folder = Path(mkdtemp(prefix="rolebundle-test-"))
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    process = subprocess.Popen(
        # -P: this folder has a module `mcp`, which is not the one that the program needs.
        [sys.executable, "-P", __file__, str(folder / "socket")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"listening\n"

    def end() -> None:
        process.kill()
        process.wait()
        rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


def _serve(address: str) -> None:
    folder = Path(address).parent
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    # Clients wait in the queue of the socket until everything is imported.
    print("listening", flush=True)
    _import_everything()
    _warm_up(folder)
    fork_readers(lambda: _client(folder))
    gc.freeze()
    _join_pages()
    # As in the processes of pytest.
    gc.set_threshold(50_000, 20, 50)
    # The system writes to it when a process ends, also one that has become another program.
    ended, writing = os.pipe()
    for descriptor in (ended, writing):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: list[_Forked] = []
    while True:
        waiting = [listener, ended, *(forked.client for forked in running)]
        ready, _, _ = select.select(waiting, [], [])
        if ended in ready:
            os.read(ended, 4096)
        for forked in list(running):
            if forked.client in ready:
                # A client only sends its request. Now it is gone.
                os.kill(forked.process, signal.SIGKILL)
            process, status = os.waitpid(forked.process, os.WNOHANG)
            if process:
                running.remove(forked)
                _report(forked.client, status)
        if listener in ready:
            client, _ = listener.accept()
            with suppress(OSError):
                running.append(
                    _begin(
                        client, [listener, *(running_program.client for running_program in running)]
                    )
                )


class _Forked(NamedTuple):
    """A forked process, and the connection to its client."""

    process: int
    client: socket.socket


def _begin(client: socket.socket, other_sockets: list[socket.socket]) -> _Forked:
    """Fork the process that a client asks for, and report its number.

    Raises:
        OSError: the client is gone.
    """
    _, streams, _, _ = socket.recv_fds(client, len(b"streams"), 3)
    request = b""
    while not request.endswith(b"end"):
        part = client.recv(65536)
        if not part:
            raise ConnectionError
        request += part
    process = os.fork()
    if process == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in (client, *other_sockets):
            connection.close()
        _run(streams, *marshal.loads(request[: -len(b"end")]))
    for descriptor in streams:
        os.close(descriptor)
    with suppress(OSError):
        client.sendall(b"%016d" % process)
    return _Forked(process, client)


def _report(client: socket.socket, status: int) -> None:
    """Report how a process has ended: its exit code, or minus the number of a signal."""
    with suppress(OSError):
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    client.close()


def _run(streams: list[int], arguments: list[str], folder: str, variables: dict[str, str]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    if arguments[:2] == ["-u", "-c"]:  # As execnet starts a worker.
        del arguments[:2]
    code, *arguments_after = arguments
    sys.argv = ["-c", *arguments_after]
    result: object = 0
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        result = end.code
        if isinstance(result, str):
            print(result, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        result = 1
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    # Python's own end would cost more than most commands: it takes apart all that was imported.
    os._exit(result if isinstance(result, int) else int(result is not None))


def _import_everything() -> None:
    import rolebundle
    from rolebundle.contracts.base import Contract
    from rolebundle.embedding.static import StaticProvider
    from rolebundle.interfaces.servers.operations import TOOLS

    for module in pkgutil.walk_packages(rolebundle.__path__, "rolebundle."):
        with suppress(ImportError):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    # What commands and tests import late, and the model, which they would load again and again.
    for name in (
        *("pytest", "mcp.client", "reportlab.platypus"),
        *("numpy", "yaml", "Stemmer", "sqlite_vec", "pypdfium2.raw", "platformdirs"),
        *("anyio._backends._asyncio", "encodings.idna", "encodings.utf_8_sig"),
    ):
        importlib.import_module(name)
    _ = StaticProvider().embed_queries(["text"])
    for tool in TOOLS:
        tool.input_schema()
    # A contract builds its validator when it is first used.
    contracts = [Contract]
    for contract in contracts:
        contract.model_rebuild()
        contracts += contract.__subclasses__()


def _warm_up(folder: Path) -> None:
    """Run frequent commands once. What they import and compute once, no forked process does again."""
    from rolebundle.interfaces.cli.main import main

    # A process that is to be forked must have no other threads.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["ROLEBUNDLE_READ_SECONDS"] = (
        "0"  # No process of its own reads: this one is to be warm.
    )
    sample = str(Path(__file__).parents[2] / "sample_corpus")
    role = ("--role", "mossline-security-reviewer")
    document = "product-strategy/product/strategy-2025.md"
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for db, *command in (
            (SAMPLE_WITHOUT_VECTORS, "ingest", sample, "--lexical-only"),
            (SAMPLE_WITH_VECTORS, "ingest", sample),
            (SAMPLE_WITH_VECTORS, "retrieve", "Plan release 3.0", *role),
            (SAMPLE_WITH_VECTORS, "retrieve", "Plan release 3.0", *role, "--format", "json"),
            (SAMPLE_WITH_VECTORS, "why", document, "Plan release 3.0", *role),
        ):
            with suppress(SystemExit):
                main([*command, "--db", str(folder / db)])
    _warm_up_hypothesis()


def _warm_up_hypothesis() -> None:
    """Check one property. With the first, Hypothesis reads the constants in all files of ours."""
    from hypothesis import given, settings
    from hypothesis.strategies import integers

    settings(max_examples=1, database=None)(given(integers())(lambda _: None))()


def _join_pages() -> None:
    """Put the memory of this process into pages of 2 MB, as far as the system can.

    To fork and to end a forked process takes most of its time for the table of all pages.
    """
    if sys.platform != "linux":
        return
    import ctypes

    collapse, size = 25, 2 << 20  # MADV_COLLAPSE; an older kernel refuses it.
    madvise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, permissions, _, _, _, *name = line.split()
        if permissions == "rw-p" and name in ([], ["[heap]"]):
            first, end = (int(address, 16) for address in addresses.split("-"))
            first, end = -(-first // size) * size, end // size * size
            if first < end:
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), collapse)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # A terminal sends it to the tests and to this server.
        _serve(sys.argv[1])
