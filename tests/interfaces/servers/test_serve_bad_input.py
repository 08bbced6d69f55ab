"""Rows 36 to 38: the sidecar answers every request, whatever else comes in."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolebundle.interfaces.json_lines import MAX_LINE_BYTES
from support.amounts import EXAMPLES
from support.served import SLOW, Served, alive, codes, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")


# -- envelopes and JSON ------------------------------------------------------------------------

JSON_FAULTS: list[tuple[bytes, int]] = [
    (b"{", -32700),
    (b"nonsense", -32700),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"status"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"status"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"status\xff"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"status"} {}', -32700),
    (b"null", -32600),
    (b"{}", -32600),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"status"}]', -32600),
    (b'{"id":1,"method":"status"}', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"status"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"status"}', -32600),
    (b'{"jsonrpc":"2.0","id":[1],"method":"status"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"status"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"status","params":[1]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"status","params":"x"}', -32602),
]


@pytest.mark.parametrize(("line", "number"), JSON_FAULTS, ids=lambda value: str(value)[:30])
def test_json_faults(shared_server: Served, line: bytes, number: int) -> None:
    shared_server.send(line)
    message = shared_server.next()
    assert message["error"]["code"] == number
    assert message["jsonrpc"] == "2.0"
    if number == -32700:
        assert message["id"] is None
    alive(shared_server)


@pytest.mark.parametrize("number", ["a", "", 0, -1, 1.5, None, "\ud800", 10**300, "x" * 10_000])
def test_an_id_comes_back_as_it_was(shared_server: Served, number: Any) -> None:
    shared_server.request(number, "roles.list")
    assert shared_server.next()["id"] == number


def test_no_answer_to_notifications_and_blank_lines(shared_server: Served) -> None:
    shared_server.notify("retrieve", task="token")
    shared_server.notify("no.such.method")
    shared_server.notify("$/cancelRequest", id="nobody")
    shared_server.notify("$/cancelRequest")
    shared_server.send(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":[1]}')
    shared_server.send(b"", b"  \t", b"\r")
    assert shared_server.silent()
    alive(shared_server)


def test_a_cancel_that_names_nobody_takes_no_refusal_back(small_db: Path) -> None:
    with Served("--db", small_db, before=SLOW.format(seconds=0.3)) as server:
        server.request(1, "status")
        server.send(b"nonsense")
        server.notify("$/cancelRequest", id=None)
        server.notify("$/cancelRequest")
        assert codes([server.next(), server.next()]) == [1, -32700]


# -- long lines --------------------------------------------------------------------------------


def peak(server: Served) -> int:
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    [line] = [
        status_line
        for status_line in status.read_text().splitlines()
        if status_line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


def test_the_longest_line_and_one_byte_more(shared_server: Served) -> None:
    line = request(1, "status", x="").replace(b'""', b'"%s"')
    longest = line.replace(b"%s", b"x" * (MAX_LINE_BYTES - len(line) + 2))
    assert len(longest) == MAX_LINE_BYTES
    shared_server.send(longest)
    assert shared_server.next()["error"]["code"] == -32602
    shared_server.send(longest + b" ")
    message = shared_server.next()
    assert (message["error"]["code"], message["id"]) == (-32008, None)
    alive(shared_server)


@pytest.mark.slow
def test_a_line_that_never_ends_takes_no_memory(small_db: Path) -> None:
    with Served("--db", small_db, real=True) as server:
        alive(server)
        before = peak(server)
        block = b"x" * (1 << 20)
        for _ in range(64):
            server.input.write(block)
        server.input.flush()
        assert server.next()["error"]["code"] == -32008
        server.send(b'"}')
        alive(server)
        assert peak(server) - before < 8 << 20
        assert server.silent(0.1), "it is refused once"


# -- noise -------------------------------------------------------------------------------------

PIECES = st.sampled_from([line for line, _ in JSON_FAULTS if len(line) < 1000])
NOISE_LINES = st.one_of(
    st.binary(max_size=200),
    PIECES,
    st.tuples(PIECES, st.integers(0, 80), st.binary(max_size=3)).map(
        lambda cut: cut[0][: cut[1]] + cut[2] + cut[0][cut[1] :]
    ),
    st.fixed_dictionaries({
        "jsonrpc": st.just("2.0"),
        "id": st.one_of(st.none(), st.integers(), st.text(max_size=5)),
        "method": st.sampled_from(["retrieve", "get", "roles.list", "status", "ingest", "x"]),
        "params": st.dictionaries(
            st.sampled_from(["task", "id", "role", "limit", "detail", "now", "y"]),
            st.one_of(st.text(max_size=20), st.integers(), st.none(), st.lists(st.none())),
            max_size=4,
        ),
    }).map(lambda message: json.dumps(message).encode()),
)  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(lines=st.lists(NOISE_LINES, max_size=20))
def test_noise(shared_server: Served, lines: list[bytes]) -> None:
    lines = [line.replace(b'"shutdown"', b'"shut"') for line in lines]
    shared_server.send(*lines)
    shared_server.request("after the noise", "retrieve", task="token", lexical_only=True)
    while (message := shared_server.next())["id"] != "after the noise":
        assert message["jsonrpc"] == "2.0"
        assert ("result" in message) != ("error" in message)
        assert message.get("error", {}).get("data", {}).get("code") != "internal", message
    assert message["result"]["selected"]
