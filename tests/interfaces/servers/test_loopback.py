"""Who may connect over HTTP: the guard's refusals, and the file of the token."""

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.interfaces.servers.loopback import (
    ADDRESS,
    default_token_file,
    guarded,
    listen,
    read_token,
    refusal,
)
from rolebundle.system import IS_UNIX
from support.scratch import make_pipe

PORT = 7_000
TOKEN = "t0ken-of-at-least-thirty-two-characters"
HOST = (b"host", f"{ADDRESS}:{PORT}".encode())
BEARER = (b"authorization", b"Bearer " + TOKEN.encode())
posix = pytest.mark.skipif(not IS_UNIX, reason="needs permissions of files")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, BEARER], 200),
        ([(b"host", b"LOCALHOST:7000"), (b"Authorization", b"bearer " + TOKEN.encode())], 200),
        ([HOST, BEARER, (b"origin", b"http://localhost:7000")], 200),
        ([BEARER], 421),
        ([(b"host", b"127.0.0.1:7001"), BEARER], 421),
        ([(b"host", b"example.com:7000"), BEARER], 421),
        ([(b"host", b"127.0.0.1:7000.example.com"), BEARER], 421),
        ([HOST, HOST, BEARER], 421),
        ([HOST, (b"host", b"example.com"), BEARER], 421),
        ([HOST, BEARER, (b"origin", b"https://example.com")], 403),
        ([HOST, BEARER, (b"origin", b"null")], 403),
        ([HOST, BEARER, (b"origin", b"")], 403),
        ([HOST, BEARER, (b"origin", b"https://127.0.0.1:7000")], 403),
        (
            [HOST, BEARER, (b"origin", b"http://localhost:7000"), (b"origin", b"http://a.example")],
            403,
        ),
        ([HOST], 401),
        ([HOST, (b"authorization", TOKEN.encode())], 401),
        ([HOST, (b"authorization", b"Basic " + TOKEN.encode())], 401),
        ([HOST, (b"authorization", b"Bearer ")], 401),
        ([HOST, (b"authorization", b"Bearer \xff\xfe")], 401),
        ([HOST, (b"authorization", b"Bearer " + TOKEN[:-1].encode())], 401),
        ([HOST, BEARER, BEARER], 401),
    ],
)
def test_what_is_refused(headers: list[tuple[bytes, bytes]], status: int) -> None:
    refused = refusal(headers, PORT, TOKEN)
    assert (200 if refused is None else refused[0]) == status


def test_a_refused_request_is_not_read_and_not_passed_on() -> None:
    sent: list[dict[str, Any]] = []

    async def unread() -> Any:
        raise AssertionError("the body was read")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def app(*_: Any) -> None:
        raise AssertionError("the request was passed on")

    asyncio.run(guarded(app, PORT, TOKEN)({"type": "http", "headers": [HOST]}, unread, send))
    assert sent[0]["status"] == 401
    assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]
    assert b'"code":"token_required"' in sent[1]["body"]
    assert TOKEN.encode() not in sent[1]["body"]


@posix
def test_a_token_is_created_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    umask = os.umask(0)
    try:
        token = read_token(path)
    finally:
        os.umask(umask)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert read_token(path) == token
    assert [file.name for file in path.parent.iterdir()] == ["token"]
    assert read_token(tmp_path / "other") != token


@posix
@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_token_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    read_token(path)
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match=r"\[token_file_readable\]"):
        read_token(path)


def put_link(path: Path) -> None:
    path.with_name("real").write_text(TOKEN)
    path.with_name("real").chmod(0o600)
    path.symlink_to("real")


def put_broken_link(path: Path) -> None:
    path.symlink_to("nothing")


def put_text(text: bytes) -> Any:
    def put(path: Path) -> None:
        path.write_bytes(text)
        path.chmod(0o600)

    return put


@posix
@pytest.mark.parametrize(
    "put",
    [
        put_link,
        put_broken_link,
        Path.mkdir,
        make_pipe,
        put_text(b""),
        put_text(b"short"),
        put_text(b"a b " * 20),
        put_text(b"\xff" * 50),
        put_text(b"x" * 5_000),
    ],
)
def test_what_is_no_token_is_refused(tmp_path: Path, put: Any) -> None:
    path = tmp_path / "token"
    put(path)
    with pytest.raises(ConfigurationError) as refused:
        read_token(path)
    assert refused.value.code == "token_file_bad"
    assert TOKEN not in str(refused.value)


def test_each_corpus_and_agent_has_a_token_of_its_own(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "a.db")
    files = [
        default_token_file(tmp_path / name, agent)
        for name in ("a.db", "b.db")
        for agent in (None, "ada", "hugo")
    ]
    assert len({*files}) == 6
    assert default_token_file(link, "ada") == files[1]


def test_it_listens_on_this_machine_only_and_says_if_a_port_is_taken() -> None:
    with listen(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert listener.family == socket.AF_INET
        with pytest.raises(ConfigurationError, match=r"\[port_in_use\]"):
            listen(port)
