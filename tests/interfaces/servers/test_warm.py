"""The server of `up`: commands do in it what they do without it, and no stranger uses it."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rolebundle.errors import ConfigurationError, CorpusBusy
from rolebundle.interfaces import warm
from rolebundle.interfaces.cli import preload
from support.corpora import build, document
from support.program_server import forked_python
from support.served import request

PROGRAM = (sys.executable, "-m", "rolebundle")
ONLY_IN_THE_SERVER = (
    sys.executable,
    "-c",
    "import sys; sys.modules['rolebundle.interfaces.cli.main'] = None\n"
    "from rolebundle.__main__ import main; main()",
)
"""The program, unable to run a command by itself."""


def forked_program() -> tuple[str, ...]:
    return (*forked_python(), "from rolebundle.__main__ import main; main()")


NOW = "2026-11-15T00:00:00Z"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [document(f"d{n}", [f"the token refresh flow {n}"]) for n in range(3)]
    return build(tmp_path_factory.mktemp("warm"), documents)


@pytest.fixture
def place() -> Iterator[Path]:
    """The path of a socket; short, because its length is bounded."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / "s"


@pytest.fixture(scope="module")
def served() -> Iterator[Path]:
    """The path of a server's socket."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        assert preload.start(path)
        yield path
        assert preload.stop(path)


def ran(
    command: tuple[str, ...],
    *arguments: str,
    place: Path | str = "none",
    text: bytes = b"",
    **env: str,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*command, *arguments],
        input=text,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "ROLEBUNDLE_SOCKET": str(place), **env},
    )


@contextmanager
def host(db: Path, place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of `serve` in the server."""
    with subprocess.Popen(
        [*ONLY_IN_THE_SERVER, "serve", "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ROLEBUNDLE_SOCKET": str(place)},
    ) as process:
        asked(process, request(1, "roles.list"))
        yield process


def asked(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Send a request, and wait for its answer."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == json.loads(line)["id"]


COMMANDS = {
    "answer": (["retrieve", "token", "--now", NOW, "--format", "prompt"], b""),
    "request": (
        ["retrieve", "--request", "-"],
        b'{"task": "token", "detail": "ids", "now": "2026-11-15T00:00:00Z"}',
    ),
    "no task": (["retrieve"], b""),
    "error": (["get", "no-such-thing"], b""),
    "bytes": (["get", "d1", "--json"], b""),
    "requests": (["serve"], request(1, "roles.list") + b"\nnot json\n" + request(2, "shutdown")),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_does_the_same_in_the_server(db: Path, served: Path, name: str) -> None:
    arguments, text = COMMANDS[name]
    environment = {"ROLEBUNDLE_DB": str(db)}
    alone = ran(forked_program(), *arguments, text=text, **environment)
    inside = ran(ONLY_IN_THE_SERVER, *arguments, place=served, text=text, **environment)
    assert inside.returncode == alone.returncode
    assert inside.stderr == alone.stderr
    if name == "request":
        found, expected = (json.loads(output.stdout) for output in (inside, alone))
        for bundle in (found, expected):
            del bundle["diagnostics"]
        assert found == expected
    else:
        assert inside.stdout == alone.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command(db: Path, served: Path, number: signal.Signals) -> None:
    with host(db, served) as process:
        process.send_signal(number)
        assert process.wait(20) == (130 if number == signal.SIGINT else 0)


def test_strangers_and_broken_requests_do_no_harm(db: Path, served: Path) -> None:
    length = warm.PID.pack(1 << 30)
    for data in (b"", b"\n", b"x" * 100_000, length, length + b"y", warm.PID.pack(3) + b"a\0b"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(served))
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(16)[: warm.PID.size] in (b"", warm.PID.pack(0))
    assert ran(ONLY_IN_THE_SERVER, "ls", "--db", str(db), place=served).returncode == 0


def test_what_reads_text_otherwise_does_not_run_in_it(db: Path, served: Path) -> None:
    arguments = ("ls", "--db", str(db))
    assert ran(PROGRAM, *arguments, place=served, PYTHONIOENCODING="utf-16").returncode == 0
    refused = ran(ONLY_IN_THE_SERVER, *arguments, place=served, PYTHONIOENCODING="utf-16")
    assert refused.returncode != 0


def test_another_users_server_is_not_used(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stat.S_IMODE(served.stat().st_mode) == 0o600
    connection = warm.connect(str(served))
    assert connection is not None
    with connection:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not warm.is_same_user(connection)
        assert warm.connect(str(served)) is None
    monkeypatch.undo()
    served.chmod(0o666)
    assert warm.connect(str(served)) is None
    served.chmod(0o600)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_process_in_a_sandbox_is_not_served(db: Path, served: Path) -> None:
    """One that has given up gaining privileges, as sandboxes make it."""
    confined = (
        sys.executable,
        "-c",
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"
        "os.execv(sys.executable, [sys.executable, '-c', *sys.argv[1:]])",
        ONLY_IN_THE_SERVER[-1],
    )
    assert ran(ONLY_IN_THE_SERVER, "ls", "--db", str(db), place=served).returncode == 0
    assert ran(confined, "ls", "--db", str(db), place=served).returncode != 0


# -- its beginning and its end ---------------------------------------------------------------------


def test_up_and_down(db: Path, place: Path) -> None:
    assert b"is up\n" in ran(forked_program(), "up", place=place).stdout
    assert b"was up already" in ran(forked_program(), "up", place=place).stdout
    with host(db, place) as process:
        assert b"has ended" in ran(forked_program(), "down", place=place).stdout
        assert not place.exists()
        # What runs in it goes on to its end.
        asked(process, request(2, "shutdown"))
        assert process.wait(20) == 0
    assert b"there was no server" in ran(forked_program(), "down", place=place).stdout
    assert ran(forked_program(), "ls", "--db", str(db), place=place).returncode == 0
    assert ran(ONLY_IN_THE_SERVER, "ls", "--db", str(db), place=place).returncode != 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
def test_a_killed_command_is_reported(db: Path, place: Path) -> None:
    assert preload.start(place)
    with host(db, place) as process:
        server = Path(f"{place}.lock").read_text()
        running, *_ = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        os.kill(int(running), signal.SIGKILL)
        assert process.stderr is not None
        assert b"[server_gone]" in process.stderr.read()
        assert process.wait(20) == 1


@pytest.mark.parametrize(
    "change", ["IDLE_SECONDS = 0.05", "_version = lambda _, n=iter(range(9)): next(n)"]
)
def test_it_ends_by_itself(db: Path, place: Path, change: str) -> None:
    """Without a command for a while, or when the program's files have changed."""
    ready, writer = os.pipe()
    code = (
        # What it loads has no part in its end.
        f"from rolebundle.interfaces.cli import preload; preload.{change}\n"
        "preload.load = preload._answer = lambda *_: None\n"
        "preload.main()"
    )
    command = [sys.executable, "-c", code, str(place), str(writer)]
    with os.fdopen(ready, "rb") as answer, subprocess.Popen(command, pass_fds=[writer]) as server:
        os.close(writer)
        assert answer.read() == b"up"
        # It is not used any more, or it declines.
        assert ran(forked_program(), "ls", "--db", str(db), place=place).returncode == 0
        assert server.wait(30) == 0
    assert not place.exists()


def test_a_dead_servers_socket_is_replaced_and_a_used_one_is_not(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(place))
    with preload.listening(place):
        with pytest.raises(CorpusBusy) as busy, preload.listening(place):
            pass
        assert busy.value.code == "already_served"
        assert place.exists()
    place.write_text("mine")
    with pytest.raises(ConfigurationError) as other, preload.listening(place):
        pass
    assert other.value.code == "socket_path"
    assert place.read_text() == "mine"
