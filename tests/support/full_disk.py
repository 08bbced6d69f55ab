"""A file system in memory with no byte free, and commands that run on it."""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.commands import Outcome, invoke_in_a_child
from support.forked_child import in_a_child

_NEW_NAMESPACES = 0x10000000 | 0x00020000  # CLONE_NEWUSER | CLONE_NEWNS
FILLER = "filler"


def on_own_file_system(place: Path, megabytes: int, work: Callable[[], Any]) -> Any:
    """Run ``work`` in a child that has an own file system in memory mounted at ``place``.

    Returns:
        What ``work`` returned, through JSON; ``None`` if this machine does not allow to mount.
    """
    answer = in_a_child(lambda: [work()] if _mounted(place, megabytes) else None)
    return None if answer is None else answer[0]


def _mounted(place: Path, megabytes: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
    size = f"size={megabytes}m".encode()
    return bool(libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, size) == 0)


def fill_up(place: Path) -> None:
    """Leave no byte free."""
    with (place / FILLER).open("ab", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    free = os.statvfs(place)
    assert free.f_bfree == 0


def run_command(arguments: Sequence[str], stdin: bytes = b"") -> Outcome:
    """Run a command in a forked child with standard streams that are not on any disk."""

    def give_input() -> None:
        descriptor = os.memfd_create("in")
        os.write(descriptor, stdin)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.dup2(descriptor, 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)

    return invoke_in_a_child(*arguments, before=give_input)
