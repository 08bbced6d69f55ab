"""One server for several hosts: the same answers, nobody gains anything, and nothing is lost."""

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
from typing import Any

import pytest

from rolebundle.errors import CorpusBusy
from rolebundle.interfaces.cli.options import Call
from rolebundle.interfaces.servers import shared_server
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.servers.shared_server import (
    ENVIRONMENT,
    Hello,
    SharedServer,
    connect,
    connect_to_server,
    forwarder_command,
    listening,
    socket_paths,
)
from support.commands import PROGRAM, forked_program
from support.corpora import build, document
from support.mcp import INITIALIZE, INITIALIZED
from support.served import SLOW, Served, codes, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix domain sockets")

BLOCKED = SLOW.format(seconds=20).replace(
    "time.sleep", "import sys; print('begun', file=sys.stderr, flush=True); time.sleep"
)
"""A `status` that does not end, and says that it has begun."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [document(f"d{n}", [f"the token refresh flow {n}"]) for n in range(3)]
    return build(tmp_path_factory.mktemp("attached"), documents)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a socket that clients look for; short, because its length is bounded."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        monkeypatch.setenv(ENVIRONMENT, str(path))
        yield path


@contextmanager
def serving(db: Path, place: Path, *options: str, before: str = "") -> Iterator[Served]:
    with Served("--socket", place, "--db", db, *options, before=before) as server:
        server.wait_for(b"serving")
        yield server


def operations(db: Path, agent: str | None = None, *, allow_write: bool = False) -> Operations:
    options = Call(str(db))
    return Operations(options.engine(agent=agent, approvals="none"), allow_write=allow_write)


class Attached(Served):
    """A forwarder, as `serve` and `mcp` become it."""

    def __init__(self, db: Path, protocol: Any = "serve", agent: str | None = None) -> None:
        self._encoding = "utf-8"
        connection = connect_to_server(operations(db, agent), protocol)
        assert connection is not None
        alone = [*forked_program(), protocol, "--db", str(db)]
        with connection:
            self.start(forwarder_command(connection, alone), pass_fds=[connection.fileno()])

    def end(self) -> tuple[list[Any], int]:
        """The remaining answers after the end of input, and the exit code."""
        self.input.close()
        code, _ = self.ended()
        return self.remaining_answers(), code


RETRIEVE = {"task": "token", "lexical_only": True, "now": "2026-11-15T00:00:00Z"}


def test_an_attached_client_gets_the_answers_of_a_process_of_its_own(db: Path, place: Path) -> None:
    lines = [
        request(1, "retrieve", **RETRIEVE),
        request(2, "get", id="d1"),
        request(3, "nonsense"),
        b"not json",
        b'{"jsonrpc":"2.0","id":4,"method":"status","params":' + b" " * (1 << 20) + b"{}}",
        request(5, "retrieve", **RETRIEVE, agent="somebody"),
        request(6, "shutdown"),
    ]
    alone = subprocess.run(
        [*forked_program(), "serve", "--db", str(db)],
        input=b"\n".join(lines) + b"\n",
        capture_output=True,
        check=True,
    )
    with serving(db, place), Attached(db) as client:
        client.send(*lines)
        answers, code = client.end()
    expected = [json.loads(line) for line in alone.stdout.splitlines()]
    assert code == 0
    for answer in (answers[0], expected[0]):
        answer["result"].pop("diagnostics", None)
    assert answers == expected


@pytest.mark.parametrize("command", [pytest.param("serve", marks=pytest.mark.slow), "mcp"])
def test_both_commands_attach_by_themselves(db: Path, place: Path, command: str) -> None:
    # What a command would answer alone is hidden, so that only the server can have answered.
    hidden = "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
    lines = [json.dumps(INITIALIZE).encode()]
    if command == "serve":
        hidden = "from rolebundle.interfaces.cli import serving; serving.take_over = None\n"
        lines = [request(1, "roles.list")]
    with serving(db, place):
        result = subprocess.run(
            [sys.executable, "-c", hidden + PROGRAM[-1], command, "--db", str(db)],
            input=b"\n".join(lines) + b"\n",
            capture_output=True,
            check=False,
        )
    assert result.stderr == b""
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [1]
    assert result.returncode == 0


def test_connections_have_their_own_agents_and_cannot_cancel_each_other(
    db: Path, place: Path
) -> None:
    slow = SLOW.format(seconds=1)
    cancel = json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
    with (
        serving(db, place, before=slow),
        Attached(db, agent="one") as first,
        Attached(db, agent="two") as second,
    ):
        first.send(request(1, "status"))
        second.send(cancel.encode(), request(2, "retrieve", **RETRIEVE, agent="one"))
        # Not behind the slow call of the other one.
        assert second.next()["error"]["code"] == -32001
        second.send(request(3, "retrieve", **RETRIEVE, agent="two"))
        assert codes(second.end()[0]) == [3]
        answers, code = first.end()
        assert codes(answers) == [1]
        assert code == 0


# -- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["serve", "mcp"])
def test_a_killed_server_is_reported_and_the_client_continues_alone(
    db: Path, place: Path, protocol: str
) -> None:
    if protocol == "mcp":
        pytest.importorskip("mcp_types", reason="needs the extra: pip install 'rolebundle[mcp]'")

    def call(number: int, method: str) -> bytes:
        if protocol == "serve":
            return request(number, method)
        tool = {"roles.list": "list_roles"}.get(method, method)
        return request(number, "tools/call", name=tool, arguments={})

    with serving(db, place, before=BLOCKED) as server, Attached(db, protocol) as client:
        if protocol == "mcp":
            client.send(json.dumps(INITIALIZE).encode(), json.dumps(INITIALIZED).encode())
            assert client.next()["id"] == 1
        client.send(call(2, "roles.list"))
        assert client.next()["id"] == 2
        client.send(call(3, "status"), call(4, "roles.list"))
        if protocol == "mcp":
            client.send(request(5, "ping"))
            assert client.next()["id"] == 5
        server.process.kill()
        for number in (3, 4):
            answer = client.next()
            assert (answer["id"], answer["error"]["data"]["code"]) == (number, "server_gone")
        client.send(call(6, "roles.list"))
        answers, code = client.end()
        assert [answer["id"] for answer in answers] == [6]
        assert "error" not in answers[0]
        assert code == 1


def test_a_server_that_gets_a_signal_answers_with_interrupted(db: Path, place: Path) -> None:
    with serving(db, place, before=BLOCKED) as server, Attached(db) as client:
        client.send(request(1, "roles.list"))
        assert client.next()["id"] == 1
        client.send(request(2, "status"), request(3, "roles.list"))
        server.wait_for(b"begun")
        server.process.terminate()
        answers = [client.next() for _ in range(2)]
        assert [answer["id"] for answer in answers] == [2, 3]
        ends = [answer["error"]["data"]["code"] for answer in answers]
        # The server may not have read the second one yet.
        assert ends[0] == "interrupted" and ends[1] in ("interrupted", "server_gone")
        assert server.process.wait(10) == 1
        assert not place.exists()
        client.send(request(4, "roles.list"))
        assert codes(client.end()[0]) == [4]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_client_that_gets_a_signal_answers_with_interrupted(
    db: Path, place: Path, number: signal.Signals
) -> None:
    with serving(db, place, before=BLOCKED), Attached(db) as client:
        client.send(request(1, "roles.list"))
        assert client.next()["id"] == 1
        client.send(request(2, "status"), request(3, "roles.list"))
        client.process.send_signal(number)
        answers, code = client.end()
        assert [answer["error"]["data"]["code"] for answer in answers] == ["interrupted"] * 2
        assert code == (130 if number == signal.SIGINT else 1)
        # The server goes on.
        with Attached(db) as second_client:
            second_client.send(request(4, "roles.list"))
            assert codes(second_client.end()[0]) == [4]


# -- who is served -----------------------------------------------------------------------------


def sharing(db: Path, agent: str | None = None, *, allow_write: bool = False) -> SharedServer:
    own = operations(db, agent, allow_write=allow_write)
    return SharedServer(own, lambda _: own)


def hello(db: Path, agent: str | None = None, **changes: Any) -> Hello:
    return Hello.of(operations(db, agent), "serve").model_copy(update=changes)


def test_who_is_served(db: Path, tmp_path: Path) -> None:
    assert sharing(db).refusal(hello(db)) == ""
    assert sharing(db).refusal(hello(db, "one", approvals="request")) == ""
    assert sharing(db).refusal(hello(db, overlay_folders=["/else"])) == ""
    assert "may not write" in sharing(db).refusal(hello(db, allow_write=True))
    assert sharing(db, allow_write=True).refusal(hello(db, allow_write=True)) == ""
    pinned = sharing(db, "one")
    assert pinned.refusal(hello(db, "one")) == ""
    for other_request in (
        hello(db),
        hello(db, "two"),
        hello(db, "one", approvals="request"),
        hello(db, "one", overlay_folders=["/else"]),
    ):
        assert "one agent" in pinned.refusal(other_request)
    link = tmp_path / "link.db"
    link.symlink_to(db)
    assert "another" in sharing(db).refusal(hello(link))
    same_name = tmp_path / "folder"
    same_name.symlink_to(db.parent)
    assert sharing(db).refusal(hello(same_name / db.name)) == ""
    copy = tmp_path / db.name
    copy.write_bytes(db.read_bytes())
    assert "another" in sharing(db).refusal(hello(copy))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ROLEBUNDLE_OPENAI_KEY", "other", "another"),
        ("OLLAMA_HOST", "127.0.0.1:1", "another"),
        ("ROLEBUNDLE_RERANK", "rerank:x", "another"),
        ("ROLEBUNDLE_EMBED_URL", "http://127.0.0.1:1", "another"),
        ("ROLEBUNDLE_DB", "elsewhere.db", ""),
        ("EDITOR", "ed", ""),
    ],
)
def test_other_settings_are_not_shared(
    db: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    other_request = hello(db)
    monkeypatch.setenv(name, value)
    assert expected in sharing(db).refusal(other_request)
    assert bool(sharing(db).refusal(other_request)) == bool(expected)


def test_a_client_that_is_not_served_works_alone_and_says_why(
    db: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(db, place, "--agent", "one"):
        assert connect_to_server(operations(db, "two"), "serve") is None
        assert "it serves one agent" in capsys.readouterr().err
        with Attached(db, agent="one") as client:
            client.send(request(1, "roles.list"))
            assert codes(client.end()[0]) == [1]


def test_a_connection_without_a_hello_gets_nothing(db: Path, place: Path) -> None:
    strange = [b"", b"\n", b"{}\n", request(1, "status") + b"\n", b"\xff" * 100_000, b"[" * 70_000]
    with serving(db, place):
        for data in strange:
            received = b""
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(place))
                try:
                    stranger.sendall(data)
                    stranger.shutdown(socket.SHUT_WR)
                    while part := stranger.recv(1 << 16):
                        received += part
                except OSError:
                    pass
            assert received in (b"", b'{"refused": "the hello is malformed"}\n')
        with Attached(db) as client:
            client.send(request(1, "roles.list"))
            assert codes(client.end()[0]) == [1]


# -- the socket ------------------------------------------------------------------------------


def test_the_socket_is_for_its_user_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(place):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        connection = connect(place, 1)
        assert connection is not None
        assert shared_server.is_same_user(connection)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert connect(place, 1) is None
        assert not shared_server.is_same_user(connection)
        connection.close()
        monkeypatch.undo()
        place.chmod(0o666)
        assert connect(place, 1) is None
    assert not place.exists()
    assert connect(place, 1) is None


def test_a_stale_socket_is_replaced_and_a_used_one_is_not(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(place))
    with listening(place):
        with pytest.raises(CorpusBusy) as busy, listening(place):
            pass
        assert busy.value.code == "already_served"
        assert place.exists()


def test_a_runtime_folder_counts_if_it_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real.db")
    runtime, beside = socket_paths(link)
    assert socket_paths(tmp_path / "real.db") == [runtime, beside]
    assert runtime.parent == tmp_path
    assert beside.name == ".real.db.socket"
    tmp_path.chmod(0o755)
    assert socket_paths(link) == [beside]
