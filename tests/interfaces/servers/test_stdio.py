"""Lines over descriptors: whole ones out, bounded ones in, whatever pieces they come in."""

import os
import sys
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.interfaces.servers.stdio import Channel, LineReader, LineWriter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")


class Pipes:
    """A channel, and its other end."""

    def __init__(self) -> None:
        incoming, self.put = os.pipe()
        self.get, outgoing = os.pipe()
        self.channel = Channel(incoming, outgoing)

    def lines(self, limit: int = 10) -> Iterator[bytes]:
        return iter(LineReader(self.channel, limit))

    def close(self) -> None:
        for descriptor in (*self.channel, self.put, self.get):
            try:
                os.close(descriptor)
            except OSError:
                pass


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    connection = Pipes()
    yield connection
    connection.close()


def expected(data: bytes, limit: int) -> list[bytes]:
    lines = data.split(b"\n")
    unfinished = lines.pop()
    return [line[: limit + 1] for line in (*lines, *([unfinished] if unfinished else []))]


@given(
    parts=st.lists(
        st.lists(st.sampled_from([b"a", b"\r", b"\n", b"bcdefg"]), max_size=8), max_size=8
    )
)
def test_lines_are_the_same_in_any_pieces(parts: list[list[bytes]]) -> None:
    pipes = Pipes()
    try:

        def write() -> None:
            for part in parts:
                os.write(pipes.put, b"".join(part))
            os.close(pipes.put)

        writer = Thread(target=write)
        writer.start()
        found = list(pipes.lines())
        writer.join()
        assert found == expected(b"".join(piece for part in parts for piece in part), 10)
    finally:
        pipes.close()


def test_lines_that_do_not_fit_the_pipe_are_written_whole(pipes: Pipes) -> None:
    os.set_blocking(pipes.channel.outgoing, False)
    writer = LineWriter(pipes.channel)
    threads = [
        Thread(target=writer.write, args=(letter * 300_000,)) for letter in (b"a", b"b", b"c")
    ]
    for thread in threads:
        thread.start()
    data = b""
    while data.count(b"\n") < 3:
        data += os.read(pipes.get, 1 << 16)
    for thread in threads:
        thread.join()
    assert sorted(data.split()) == [letter * 300_000 for letter in (b"a", b"b", b"c")]
