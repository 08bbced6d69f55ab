"""A reader of pages that some words stop, in the processes that read files."""

import os
import signal
from collections import deque
from collections.abc import Iterable
from itertools import count
from threading import Event

import pytest

from rolebundle.errors import DocumentError
from rolebundle.ingest import readers, workers
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import html
from rolebundle.ingest.workers import MAX_MEMORY

BUSY = "busy without end"
WAITING = "waiting without end"
CRASHING = "crashing"
GREEDY = "greedy"


def use(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let processes that start from now on have this reader, and so much time for a file."""
    start = "import ingest.stuck_reader as stuck; stuck.install(); from"
    monkeypatch.setattr(workers, "_PROGRAM", workers._PROGRAM.replace("from", start, 1))
    monkeypatch.setattr(workers, "read_seconds", lambda: seconds)


def install() -> None:
    """Read every file with this reader in this process."""
    _, read_page = html.READERS["html"]
    reader_named = readers.reader_named

    def read(data: bytes, path: str, separator: str) -> Iterable[ParsedDocument | DocumentError]:
        if BUSY.encode() in data:
            # C code that does not return, gives other threads no turn and looks at no signal.
            deque(count(), maxlen=0)
        if WAITING.encode() in data:
            Event().wait()
        if CRASHING.encode() in data:
            os.kill(os.getpid(), signal.SIGSEGV)
        if GREEDY.encode() in data:
            bytearray(MAX_MEMORY)
        return read_page(data, path, separator)

    readers.reader_named = lambda name: (reader_named(name)[0], read)
