"""Output that nobody reads any more does not change how a command ends.

`rolebundle verify … | head -1` closes the pipe while the command writes. The rest of the output is
dropped, and the command ends with its own exit code.
"""

from __future__ import annotations

import os
import stat
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any


class _Pipe(FileIO):
    """A pipe whose reader may go away."""

    is_read = True

    def write(self, data: Any, /) -> int:
        if self.is_read:
            try:
                return super().write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.is_read = False
        return memoryview(data).nbytes


def outlive_readers() -> None:
    """Replace standard output and standard error, if they are pipes, by ones that may be closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            stream.flush()
            descriptor = stream.fileno()
            mode = os.fstat(descriptor).st_mode
        except (AttributeError, OSError, ValueError):
            continue  # Closed, or no file.
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            pipe = BufferedWriter(_Pipe(descriptor, "wb", closefd=False))
            is_error = name == "stderr"
            text = TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=is_error)
            setattr(sys, name, text)


def is_read(stream: Any) -> bool:
    """Whether somebody may still read what is written to a stream."""
    return getattr(getattr(getattr(stream, "buffer", None), "raw", None), "is_read", True) is True
