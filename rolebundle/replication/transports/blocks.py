"""A replica as files, and how little of it is moved.

A folder or a static host has three files:

- ``replica.db``: the replica.
- ``replica.blocks``: the BLAKE2b digests of its blocks of 16 KiB, 16 bytes each.
- ``manifest.json``: the signed manifest.

The digests show which blocks differ. They prove nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rolebundle.errors import FULL_ERRNOS, StorageError, UsageError
from rolebundle.storage.location import PUBLISHED_NAMES

DATABASE, BLOCKS, MANIFEST = PUBLISHED_NAMES
MAX_MANIFEST_BYTES = 1 << 20
MAX_BLOCKS_BYTES = 64 << 20
"""Enough for a replica of 64 GiB."""

BLOCK_BYTES = 16 << 10
"""In a replica of 500 MB, this moves least for a changed document, its digests included."""
DIGEST_BYTES = 16
MAX_DATABASE_BYTES = MAX_BLOCKS_BYTES // DIGEST_BYTES * BLOCK_BYTES


class Span(NamedTuple):
    """Content of a file from ``start`` to ``end``, if it does not end early."""

    start: int
    end: int
    pieces: Iterator[bytes]


class Source(NamedTuple):
    """An open file that another one is made equal to.

    Attributes:
        size: in bytes.
        digests: of its blocks, or any other bytes if they are not known.
        read: opens the content from one position to another. It may give all content instead.
        gap: so many equal bytes are read rather than left out between two blocks that differ.
    """

    size: int
    digests: bytes
    read: Callable[[int, int], AbstractContextManager[Span]]
    gap: int = 0


def make_equal(copy: Path, opened: Callable[[], AbstractContextManager[Source]], name: str) -> int:
    """Make a file equal to another one, and sync it.

    Every block that is moved is compared with its digest. So the result is the file that the
    digests describe, also if an interrupted call left the copy. If they twice describe another
    file than the one that is read, all of it is copied without them.

    Args:
        copy: any existing file.
        opened: opens the other file, again if it was replaced meanwhile.
        name: of the other file, for messages.

    Returns:
        How many bytes of its content were read.

    Raises:
        StorageError: it changes all the time (``replica_changed``), it is too large
            (``replica_too_large``), or the copy cannot be written.
    """
    moved = 0
    for has_digests in (True, True, False):
        with opened() as source:
            if source.size > MAX_DATABASE_BYTES:
                raise StorageError(
                    "replica_too_large",
                    f"{name}: the replica has more than {MAX_DATABASE_BYTES >> 30} GiB",
                    "check the address: no replica of this size can be published",
                )
            try:
                with copy.open("rb+") as stream:
                    is_equal, read = _update_blocks(stream, source, has_digests=has_digests)
            except OSError as error:
                raise storage_error(copy, error) from error
        moved += read
        if is_equal:
            return moved
    raise StorageError(
        "replica_changed",
        f"{name}: the replica changed while it was read",
        "run the same command again when nothing is published to it",
    )


def _update_blocks(stream: BinaryIO, source: Source, *, has_digests: bool) -> tuple[bool, int]:
    """Whether the stream is now equal to the source, and how many bytes were read."""
    # Digests of another number of blocks are those of another file.
    usable = has_digests and len(source.digests) == -(-source.size // BLOCK_BYTES) * DIGEST_BYTES
    digests = source.digests if usable else b""
    read = 0
    for start, end in _differing_runs(stream, source, digests):
        with source.read(start, end) as span:
            stream.seek(position := span.start)
            for block in _blocks(span):
                read += len(block)
                if digests and _digest(block) != _digest_at(digests, position):
                    return False, read
                stream.write(block)
                position += len(block)
            if position != span.end:
                return False, read
        if (span.start, span.end) == (0, source.size):
            break
    stream.truncate(source.size)
    stream.flush()
    os.fsync(stream.fileno())
    return True, read


def _differing_runs(stream: BinaryIO, source: Source, digests: bytes) -> list[tuple[int, int]]:
    """The start and the end of each run of blocks that differ."""
    if not digests:
        return [(0, source.size)] if source.size else []
    runs: list[tuple[int, int]] = []
    stream.seek(0)
    for start in range(0, source.size, BLOCK_BYTES):
        end = min(start + BLOCK_BYTES, source.size)
        if _digest(stream.read(end - start)) == _digest_at(digests, start):
            continue
        if runs and start - runs[-1][1] <= source.gap:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def _blocks(span: Span) -> Iterator[bytes]:
    """The content in blocks; what comes after the end of the span is not read."""
    buffer = bytearray()
    missing = span.end - span.start
    for piece in span.pieces:
        buffer += piece[:missing]
        missing -= len(piece)
        while len(buffer) >= BLOCK_BYTES:
            yield bytes(buffer[:BLOCK_BYTES])
            del buffer[:BLOCK_BYTES]
        if missing <= 0:
            break
    if buffer:
        yield bytes(buffer)


@contextmanager
def open_file(path: Path, digests: bytes) -> Iterator[Source]:
    """Open a file of this machine as a source.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        stream = open_regular(path)
    except OSError as error:
        raise storage_error(path, error) from error

    @contextmanager
    def read(start: int, end: int) -> Iterator[Span]:
        yield Span(start, end, pieces(start, end))

    def pieces(start: int, end: int) -> Iterator[bytes]:
        try:
            stream.seek(start)
            while start < end and (piece := stream.read(min(BLOCK_BYTES, end - start))):
                start += len(piece)
                yield piece
        except OSError as error:
            raise storage_error(path, error) from error

    with stream:
        yield Source(os.fstat(stream.fileno()).st_size, digests, read)


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, and nothing that is not a file: a pipe would never end.

    Raises:
        OSError: it cannot be opened, or it is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def digests_of(path: Path) -> bytes:
    """The content of ``replica.blocks`` for a replica.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return b"".join(_digest(block) for block in iter(lambda: stream.read(BLOCK_BYTES), b""))


def _digest(block: bytes) -> bytes:
    return blake2b(block, digest_size=DIGEST_BYTES).digest()


def _digest_at(digests: bytes, position: int) -> bytes:
    start = position // BLOCK_BYTES * DIGEST_BYTES
    return digests[start : start + DIGEST_BYTES]


def nothing_published(target: str) -> UsageError:
    """The error for a place without a replica."""
    return UsageError(
        "nothing_published",
        f"{target}: no replica is published there",
        "check the address, or publish to it first with `rolebundle publish`",
    )


def manifest_too_large(target: str) -> StorageError:
    """The error for a file that is too large to be a manifest."""
    return StorageError(
        "manifest_too_large",
        f"{target}: {MANIFEST} has more than {MAX_MANIFEST_BYTES >> 20} MiB and is no manifest",
        "check the address, or publish to it again",
    )


def storage_error(path: Path, error: OSError) -> StorageError:
    """The error for a file that cannot be read or written."""
    is_full = error.errno in FULL_ERRNOS
    return StorageError(
        "storage_full" if is_full else "io_error",
        f"{path}: {error.strerror or error}",
        "free some disk space and run the same command again"
        if is_full
        else "check the permissions and the disk, then run the same command again",
    )
