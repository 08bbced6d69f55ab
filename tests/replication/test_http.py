"""A static host: what is asked of it, and what it may answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.replication.transports import http
from rolebundle.replication.transports.blocks import BLOCK_BYTES
from rolebundle.replication.transports.files import FolderTransport
from rolebundle.replication.transports.files import HttpTransport
from support.static_host import Handler, StaticHost, static_host
from support.transports import Replica, change


@pytest.fixture
def host(tmp_path: Path, replica: Replica) -> Iterator[StaticHost]:
    """A host with a replica."""
    share = tmp_path / "share"
    FolderTransport(str(share)).push(replica.path, replica.manifest)
    with static_host(share) as host:
        yield host


@pytest.fixture
def transport(host: StaticHost) -> HttpTransport:
    return HttpTransport(host.url)


def code_of(raised: pytest.ExceptionInfo[RolebundleError]) -> str:
    return raised.value.code


def ranges(host: StaticHost) -> list[str]:
    return [
        requested
        for method, name, requested in host.seen
        if (method, name) == ("GET", "replica.db")
    ]


# -- what is asked -----------------------------------------------------------------------------------


def test_neighbours_are_asked_for_together(
    transport: HttpTransport, host: StaticHost, replica: Replica, copy: Path
) -> None:
    complete = replica.path.read_bytes()
    content = bytearray(complete)
    for block in (3, 4, 6, 20):
        content[block * BLOCK_BYTES] ^= 1
    copy.write_bytes(content)
    read = transport.fetch(copy)
    assert copy.read_bytes() == complete
    # The fifth block is cheaper to read than to ask around.
    assert ranges(host) == [
        f"bytes={start * BLOCK_BYTES}-{end * BLOCK_BYTES - 1}" for start, end in ((3, 7), (20, 21))
    ]
    assert read == 5 * BLOCK_BYTES + (host.folder / "replica.blocks").stat().st_size


def test_a_host_without_ranges(
    transport: HttpTransport, host: StaticHost, replica: Replica, copy: Path
) -> None:
    host.knows_ranges = False
    copy.write_bytes(b"\xff" * BLOCK_BYTES + replica.path.read_bytes()[BLOCK_BYTES:-BLOCK_BYTES])
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()
    assert len(ranges(host)) == 1


@pytest.mark.parametrize("answer", [b"", b"\0" * 16, b"\1" * 100_000, None])
def test_digests_that_are_no_use(
    transport: HttpTransport,
    host: StaticHost,
    replica: Replica,
    copy: Path,
    answer: bytes | None,
) -> None:
    digests = host.folder / "replica.blocks"
    digests.unlink() if answer is None else digests.write_bytes(answer)
    copy.write_bytes(replica.path.read_bytes()[:300_000] + b"\xff" * 3_000_000)
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()
    assert ranges(host) == [""]


def test_a_publish_while_it_is_fetched(
    transport: HttpTransport, host: StaticHost, replica: Replica, copy: Path
) -> None:
    """The host has a new replica after the digests of the old one were read."""

    def publish(handler: Handler) -> None:
        del host.faults["replica.blocks"]
        Handler.serve(handler)
        change(replica, rows=20)
        FolderTransport(str(host.folder)).push(replica.path, replica.manifest)

    copy.write_bytes(replica.path.read_bytes()[: -10 * BLOCK_BYTES])
    host.faults["replica.blocks"] = publish
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()


def test_it_only_reads(transport: HttpTransport, replica: Replica) -> None:
    with pytest.raises(UsageError) as raised:
        transport.push(replica.path, replica.manifest)
    assert code_of(raised) == "transport_reads_only"
    assert not transport.history()
    transport.erase_history()


def test_the_manifest_alone_is_missing(transport: HttpTransport, host: StaticHost) -> None:
    (host.folder / "manifest.json").unlink()
    assert transport.manifest() is None


# -- what may come back --------------------------------------------------------------------------------

Fault = Callable[[Handler], None]


def on_get(fault: Fault) -> Fault:
    """The size is told as always."""
    return lambda handler: Handler.serve(handler) if handler.command == "HEAD" else fault(handler)


def endless(handler: Handler) -> None:
    handler.send_response(206 if handler.range else 200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.pour(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


def endless_headers(handler: Handler) -> None:
    handler.send_response(200)
    handler.flush_headers()
    handler.pour(b"X-More: and more\r\n" * 1_000)


def slow(handler: Handler) -> None:
    name = handler.path.strip("/")
    handler.send_response(200)
    handler.send_header("Content-Length", str((handler.host.folder / name).stat().st_size))
    handler.end_headers()
    handler.pour(b"x", pause=0.02)


def silent(handler: Handler) -> None:
    handler.host.stopping.wait()


def status(code: int, **headers: str) -> Fault:
    return lambda handler: handler.answer(code, b"no", headers)


def cut_off(handler: Handler) -> None:
    handler.send_response(206 if handler.range else 200)
    handler.send_header("Content-Length", "2000000")
    if handler.range:
        size = (handler.host.folder / "replica.db").stat().st_size
        place = handler.range.replace("=", " ")
        handler.send_header("Content-Range", f"{place}/{size}")
    handler.end_headers()
    handler.wfile.write(b"x" * 1_000)
    handler.close_connection = True


def no_http(handler: Handler) -> None:
    handler.wfile.write(b"\xff" * 100)
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def wrong_range(handler: Handler) -> None:
    handler.answer(206, b"x" * 100, {"Content-Range": "bytes 7-106/200"})


ELSEWHERE = status(302, Location="http://192.0.2.1/replica.db")

REFUSED: dict[str, tuple[str, Fault, str]] = {
    "500 for the replica": ("replica.db", status(500), "host_failed"),
    "500 for a range": ("replica.db", on_get(status(500)), "host_failed"),
    "503 for the digests": ("replica.blocks", status(503), "host_failed"),
    "403": ("replica.db", status(403), "host_failed"),
    "206 that was not asked for": ("replica.blocks", status(206), "host_failed"),
    "redirect of the replica": ("replica.db", ELSEWHERE, "redirect_refused"),
    "redirect of a range": ("replica.db", on_get(ELSEWHERE), "redirect_refused"),
    "redirect of the digests": ("replica.blocks", ELSEWHERE, "redirect_refused"),
    "no length": ("replica.db", status(200, **{"Content-Length": "x"}), "bad_response"),
    "digits": ("replica.db", status(200, **{"Content-Length": "9" * 5_000}), "bad_response"),
    "huge": ("replica.db", status(200, **{"Content-Length": "9" * 18}), "replica_too_large"),
    "compressed": (
        "replica.db",
        on_get(status(200, **{"Content-Encoding": "gzip"})),
        "bad_response",
    ),
    "cut off": ("replica.db", on_get(cut_off), "bad_response"),
    "digests cut off": ("replica.blocks", cut_off, "bad_response"),
    "not HTTP": ("replica.db", no_http, "bad_response"),
    "no answer": ("replica.db", hang_up, "bad_response"),
    "endless headers": ("replica.db", endless_headers, "bad_response"),
    "gone": ("replica.db", on_get(status(404)), "replica_changed"),
    "silent": ("replica.db", silent, "host_too_slow"),
    "slow": ("replica.blocks", slow, "host_too_slow"),
    "slow range": ("replica.db", on_get(slow), "host_too_slow"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_an_answer_that_is_refused(
    transport: HttpTransport,
    host: StaticHost,
    replica: Replica,
    copy: Path,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a coded error, and the next fetch goes on."""
    if fault == "silent":
        monkeypatch.setattr(http, "_MAX_WAIT_SECONDS", 0.1)
    if "slow" in fault:
        monkeypatch.setattr(http, "_BASE_SECONDS", 0.3)
        monkeypatch.setattr(http, "_MIN_BYTES_PER_SECOND", 1 << 30)
    name, answer, code = REFUSED[fault]
    copy.write_bytes(replica.path.read_bytes()[: -10 * BLOCK_BYTES])
    host.faults[name] = answer
    with pytest.raises(StorageError) as raised:
        transport.fetch(copy)
    assert code_of(raised) == code
    assert raised.value.hint
    host.faults.clear()
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()


def test_an_endless_body_is_read_up_to_its_bound(
    transport: HttpTransport,
    host: StaticHost,
    replica: Replica,
    copy: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host.faults = {"replica.blocks": endless}
    monkeypatch.setattr(http, "MAX_BLOCKS_BYTES", 1_000_000)
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()
    host.faults = {"replica.db": on_get(endless)}
    copy.write_bytes(b"")
    transport.fetch(copy)
    # Whoever verifies it refuses it.
    assert copy.read_bytes() == b"x" * replica.size
    host.faults = {"manifest.json": endless}
    with pytest.raises(StorageError) as raised:
        transport.manifest()
    assert code_of(raised) == "manifest_too_large"


@pytest.mark.parametrize("answer", [wrong_range, endless, status(416), status(200)])
def test_a_range_that_is_answered_wrongly(
    transport: HttpTransport, host: StaticHost, replica: Replica, copy: Path, answer: Fault
) -> None:
    """All of the replica is asked for then."""
    host.faults["replica.db"] = lambda handler: (answer if handler.range else Handler.serve)(
        handler
    )
    copy.write_bytes(replica.path.read_bytes()[: -10 * BLOCK_BYTES])
    transport.fetch(copy)
    assert copy.read_bytes() == replica.path.read_bytes()
    assert [bool(requested) for requested in ranges(host)] == [True, True, False]


def test_a_body_that_is_longer_than_declared(
    transport: HttpTransport, host: StaticHost, copy: Path
) -> None:
    (host.folder / "replica.blocks").unlink()
    host.faults["replica.db"] = on_get(lambda handler: handler.answer(200, b"x" * 3_000_000))
    with pytest.raises(StorageError) as raised:
        transport.fetch(copy)
    assert code_of(raised) == "replica_changed"


def test_more_content_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BASE_SECONDS", 0)
    limits = http._Limits("it")
    with pytest.raises(StorageError) as raised:
        limits.time_left()
    assert code_of(raised) == "host_too_slow"
    limits.extend(http._MIN_BYTES_PER_SECOND * 10)
    assert 9 < limits.time_left() <= 10
    limits.extend(http._MIN_BYTES_PER_SECOND * 1_000)
    assert limits.time_left() == http._MAX_WAIT_SECONDS


def test_nobody_listens(replica: Replica, copy: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        transport = HttpTransport(f"http://127.0.0.1:{unused.getsockname()[1]}/")
        for read in (transport.manifest, lambda: transport.fetch(copy)):
            with pytest.raises(StorageError) as raised:
                read()
            assert code_of(raised) == "host_unreachable"


def test_a_proxy_of_the_environment_is_not_used(
    transport: HttpTransport, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:1")
    assert transport.manifest() == replica.manifest
