"""Lines over two descriptors, read within a bound and written whole.

Python, a C library or a child process may print to descriptor 1 at any time. So a protocol on
standard output must first move to a descriptor of its own.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from threading import Lock, Thread
from typing import NamedTuple

_CHUNK = 1 << 16
_PAUSE_SECONDS = 0.1
_HAS_POLL = hasattr(select, "poll")
"""Whether the system tells which descriptors can be read. If not, a thread reads."""


class OutputClosed(Exception):
    """Nothing can be written any more: the reader is gone, or the disk is full."""


class Channel(NamedTuple):
    """Two descriptors that no other code in this process and no child process uses.

    Attributes:
        incoming: is read.
        outgoing: is written.
    """

    incoming: int
    outgoing: int


def take_over() -> Channel:
    """Move descriptors 0 and 1 away. Afterwards 0 is empty, and 1 writes to standard error.

    Call it before anything else runs. A descriptor that was closed from the start is replaced by
    the null device.
    """
    null_device = os.open(os.devnull, os.O_RDWR)
    channel = Channel(_copy(0, null_device), _copy(1, null_device))
    os.dup2(null_device, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null_device, 1)
    if sys.stderr is not None:
        # Standard error is not buffered in blocks, so stray prints appear in order.
        sys.stdout = sys.stderr
    return channel


def _copy(descriptor: int, fallback: int) -> int:
    try:
        return os.dup(descriptor)  # not inherited by children
    except OSError:
        return os.dup(fallback)


class LineReader:
    """Lines without their line ends, until the input ends or it is stopped.

    Args:
        channel: its input is read. Reading also ends if its output was closed by the reader.
        limit: the longest line in bytes. Of a longer line only the first ``limit + 1`` bytes are
            yielded, so its length shows that it is too long. The rest is dropped while it is read,
            so that a line without an end takes no more memory than a short one.
    """

    def __init__(self, channel: Channel, limit: int) -> None:
        self._channel = channel
        self._limit = limit
        self._stopper, self._stop = os.pipe()
        self._is_stopped = False
        self._parts: Queue[bytes] = Queue(1)
        self.is_output_closed = False
        """Whether the reading ended because nobody reads the output any more."""

    def __del__(self) -> None:
        """Close what stops it."""
        os.close(self._stopper)
        os.close(self._stop)

    def stop(self) -> None:
        """End the reading. For any thread, and for a handler of signals."""
        self._is_stopped = True
        with suppress(OSError):
            os.write(self._stop, b"!")

    def __iter__(self) -> Iterator[bytes]:
        """Each line, including a last one without a line end."""
        if not _HAS_POLL:
            Thread(target=self._read_ahead, daemon=True).start()
        line = b""
        while part := self._part():
            # Not splitlines(), which also splits at a lone carriage return.
            *ended, rest = part.split(b"\n")
            for piece in ended:
                yield (line + piece)[: self._limit + 1]
                line = b""
            line = (line + rest)[: self._limit + 1]
        if line:
            yield line

    def _read_ahead(self) -> None:
        part = b"-"
        while part:
            with suppress(OSError):
                part = b""
                part = os.read(self._channel.incoming, _CHUNK)
            self._parts.put(part)

    def _part(self) -> bytes:
        if not _HAS_POLL:
            # With pauses: Windows handles Ctrl-C only between them.
            while not self._is_stopped:
                with suppress(Empty):
                    return self._parts.get(timeout=_PAUSE_SECONDS)
            return b""
        while self._readable():
            try:
                return os.read(self._channel.incoming, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                break
        return b""

    def _readable(self) -> bool:
        incoming, outgoing = self._channel
        if sys.platform != "win32" and _HAS_POLL:
            poll = select.poll()
            poll.register(incoming, select.POLLIN)
            poll.register(outgoing, 0)  # reports errors only
            poll.register(self._stopper, select.POLLIN)
            ready = dict(poll.poll())
            if ready.get(outgoing, 0) & (select.POLLERR | select.POLLHUP):
                self.is_output_closed = True
                return False
            return self._stopper not in ready and incoming in ready
        return False


class LineWriter:
    """Whole lines, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._descriptor = channel.outgoing
        self._lock = Lock()
        self._failed = False

    def write(self, line: bytes) -> None:
        """Write one line.

        Raises:
            OutputClosed: the line could not be written whole. Every later call raises it, too.
        """
        with self._lock:
            if self._failed:
                raise OutputClosed
            # No line may follow one that was written in part. Set first, so that it stays set after
            # any exception.
            self._failed = True
            unsent = memoryview(line + b"\n")
            while unsent:
                try:
                    unsent = unsent[os.write(self._descriptor, unsent) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
                except OSError as error:
                    raise OutputClosed from error
            self._failed = False
