"""The HTTP of `inspect`, over a raw socket: what is no request of its own pages is refused."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rolebundle.interfaces.servers.loopback import ADDRESS
from support.inspecting import Inspecting, inspecting

SECONDS = 20.0
"""How long a test waits for an answer."""


@pytest.fixture(scope="module")
def server(small_db: Path) -> Iterator[Inspecting]:
    with inspecting(small_db) as running:
        yield running


def connect(server: Inspecting) -> socket.socket:
    return socket.create_connection((ADDRESS, server.port), timeout=SECONDS)


def sent(server: Inspecting, request: bytes) -> bytes:
    """The whole answer to these bytes; empty if the server only closed the connection."""
    parts = []
    with connect(server) as connection:
        try:
            connection.sendall(request)
            while part := connection.recv(65_536):
                parts.append(part)
        except (ConnectionResetError, BrokenPipeError):
            # It was refused before it was read.
            pass
    return b"".join(parts)


def request_of(server: Inspecting, method: str, path: str, *headers: str, body: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *headers, "", body]
    return "\r\n".join(lines).encode("latin-1")


def host(server: Inspecting) -> str:
    return f"Host: {ADDRESS}:{server.port}"


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def get(server: Inspecting, path: str, *headers: str) -> bytes:
    return sent(server, request_of(server, "GET", path, host(server), *headers))


def test_the_own_address_is_answered(server: Inspecting) -> None:
    for path in (server.path, f"{server.path}answer?task=token+refresh"):
        answer = get(server, path)
        head, _, page = answer.partition(b"\r\n\r\n")
        assert status(answer) == 200
        assert page.startswith(b"<!DOCTYPE html>")
        for header in (
            b"Cache-Control: no-store",
            b"X-Content-Type-Options: nosniff",
            b"X-Frame-Options: DENY",
            b"frame-ancestors 'none'",
            b"default-src 'none'",
        ):
            assert header in head
        assert b"script-src" not in head
        assert b"unsafe" not in head


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ([], 421),
        (["Host: example.com"], 421),
        (["Host: 127.0.0.1:{port}", "Origin: http://example.com"], 403),
    ],
)
def test_foreign_hosts_and_origins_are_refused(
    server: Inspecting, headers: list[str], refused: int
) -> None:
    own = [header.format(port=server.port) for header in headers]
    answer = sent(server, request_of(server, "GET", server.path, *own))
    assert status(answer) == refused
    assert b"Ask the corpus" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/{wrong}/",
        "/{short}/",
        "/{token}",
        "/{token}x/",
        "/{wrong}/../{token}/",
        "/?token={token}",
        "/\xe9\xff/",
    ],
)
def test_a_path_without_the_token_is_refused(server: Inspecting, path: str) -> None:
    token = server.path.strip("/")
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    answer = get(server, path.format(token=token, wrong=wrong, short=token[:-1]))
    assert status(answer) == 403
    assert token.encode() not in answer


@pytest.mark.parametrize(
    "path",
    [
        "../",
        "..%2f..%2fetc/passwd",
        "templates/base.html.jinja",
        "%00",
        "__class__",
    ],
)
def test_a_path_that_is_no_view_leads_nowhere(server: Inspecting, path: str) -> None:
    answer = get(server, server.path + path)
    assert status(answer) == 404
    assert b"no such view" in answer
    assert b"root:" not in answer


def test_methods_that_a_view_does_not_have_are_refused(server: Inspecting) -> None:
    for method in ("HEAD", "POST", "DELETE", "CONNECT", "BREW"):
        answer = sent(server, request_of(server, method, server.path, host(server)))
        assert status(answer) == 501 and b"Ask the corpus" not in answer


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: a\r\n" * 200_000 + b"\r\n",
        b"\r\n",
        b"",
    ],
    ids=["short", "version", "parts", "tls", "header", "path", "headers", "empty", "nothing"],
)
def test_what_is_no_request_is_refused_and_not_repeated(
    server: Inspecting, request_line: bytes
) -> None:
    with connect(server) as connection:
        answer = b""
        try:
            connection.sendall(request_line)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
        except OSError:
            # It was refused before it was read.
            pass
    assert not answer or status(answer) in (400, 414, 421, 431, 505)
    assert b"aaaa" not in answer
    assert status(get(server, server.path)) == 200


def test_connections_that_send_half_a_request_stop_nobody(server: Inspecting) -> None:
    halves = (
        b"",
        b"GET ",
        f"GET {server.path} HTTP/1.1\r\nHost:".encode(),
        request_of(server, "POST", server.path, host(server), "Content-Length: 100", body="text="),
    )
    connections = []
    try:
        for number in range(40):
            connections.append(connect(server))
            connections[-1].sendall(halves[number % len(halves)])
        assert status(get(server, server.path)) == 200
    finally:
        for connection in connections:
            connection.close()


def test_the_address_that_the_browser_is_started_with_works_once(server: Inspecting) -> None:
    path = urlsplit(server.server.address_for_browser()).path
    assert path != server.path
    refused = [
        sent(server, request_of(server, "GET", path, "Host: evil.example")),
        get(server, f"{path}corpus"),
    ]
    assert [status(answer) for answer in refused] == [421, 403]
    first, second = get(server, path), get(server, path)
    assert status(first) == 303 and f"Location: {server.path}\r\n".encode() in first
    assert status(second) == 403 and server.path.encode() not in second
