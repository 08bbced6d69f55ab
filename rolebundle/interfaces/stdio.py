"""Lines over two descriptors: read within a bound, written whole, and shared with nobody.

Python, a C library or a child process may print to descriptor 1 whenever it likes. A protocol
that lives there has to move away first.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

_CHUNK = 1 << 16
CAN_POLL = hasattr(select, "poll")
"""Whether this system can wait for several descriptors at once; on Windows pipes it cannot."""


class Gone(Exception):
    """The output takes nothing any more: whoever read it has gone, or the disk is full."""


class Channel(NamedTuple):
    """Two descriptors that nobody else in this process, nor a child of it, knows."""

    incoming: int
    outgoing: int


def take_over() -> Channel:
    """Move descriptors 0 and 1 away; what reads the first finds nothing, 1 becomes 2.

    Call it before anything else runs. A descriptor that was closed from the start is nothing to
    read, or nowhere to write.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    channel = Channel(_copy(0, nothing), _copy(1, nothing))
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    if sys.stderr is not None:
        # Not buffered in blocks, so that a stray print stands where it happened.
        sys.stdout = sys.stderr
    return channel


def _copy(descriptor: int, otherwise: int) -> int:
    try:
        return os.dup(descriptor)  # not inherited by children
    except OSError:
        return os.dup(otherwise)


class Waker:
    """Ends a :class:`LineReader` from another thread or from a signal handler."""

    def __init__(self) -> None:
        self.descriptor, self._end = os.pipe()

    def wake(self) -> None:
        """End it now. Once is enough, more does no harm."""
        with suppress(OSError):
            os.write(self._end, b"!")

    def close(self) -> None:
        """Give both descriptors back."""
        for descriptor in (self.descriptor, self._end):
            with suppress(OSError):
                os.close(descriptor)


class LineReader:
    """Lines without their line ends, until the input ends or the reader is woken.

    Args:
        channel: where they come from. When its output has no reader any more, that is an end, too.
        limit: the longest line in bytes. One that is longer comes at once as its first
            ``limit + 1`` bytes; what follows up to its end is dropped as it is read, so that a
            line without an end takes no more memory than a short one.
        waker: ends the reading.
    """

    def __init__(self, channel: Channel, limit: int, waker: Waker) -> None:
        self._channel = channel
        self._limit = limit
        self._waker = waker

    def __iter__(self) -> Iterator[bytes]:
        """Each line, the last one also where its line end is missing."""
        kept = bytearray()
        dropping = False
        while part := self._part():
            for piece in _pieces(part):
                ended = piece.endswith(b"\n")
                if not dropping:
                    kept += piece[:-1] if ended else piece
                    if len(kept) > self._limit or ended:
                        yield bytes(kept[: self._limit + 1])
                        kept.clear()
                        dropping = not ended
                elif ended:
                    dropping = False
        if kept:
            yield bytes(kept)

    def _part(self) -> bytes:
        while self._readable():
            try:
                return os.read(self._channel.incoming, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                break
        return b""

    def _readable(self) -> bool:
        if not CAN_POLL:
            return True
        incoming, outgoing = self._channel
        poll = select.poll()
        poll.register(incoming, select.POLLIN)
        poll.register(outgoing, 0)  # told of errors alone
        poll.register(self._waker.descriptor, select.POLLIN)
        ready = dict(poll.poll())
        broken = ready.get(outgoing, 0) & (select.POLLERR | select.POLLHUP)
        return not (broken or self._waker.descriptor in ready)


def _pieces(part: bytes) -> list[bytes]:
    # Not splitlines(), which takes a lone carriage return for a line end.
    *lines, rest = part.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


class LineWriter:
    """Whole lines, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._descriptor = channel.outgoing
        self._lock = Lock()
        self._failed = False

    def write(self, line: bytes) -> None:
        """Write one line.

        Raises:
            Gone: it could not be written whole, and nothing can be from now on.
        """
        with self._lock:
            if self._failed:
                raise Gone
            # A line that was written in part must not be followed by another one.
            self._failed = True
            left = memoryview(line + b"\n")
            while left:
                try:
                    left = left[os.write(self._descriptor, left) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
                except OSError as error:
                    raise Gone from error
            self._failed = False
