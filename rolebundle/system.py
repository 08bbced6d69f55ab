"""What differs between systems: locks, limits, users and processes.

No other module uses at its import what a system lacks, and none asks which system it is. What a
system does not do is done here another way, or :func:`not_kept` says so.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import subprocess

try:
    import fcntl
    import resource
except ImportError:
    IS_UNIX = False
else:
    IS_UNIX = True

LIMITS_TIME = all(hasattr(signal, name) for name in ("setitimer", "SIGPROF", "SIGALRM"))
"""Whether the system itself ends a process after some time."""
LIMITS_MEMORY = IS_UNIX and sys.platform == "linux"
"""Whether the system itself limits the memory of a process."""

ROOT_USER = 0
READ_FLAGS = os.O_RDONLY
"""Flags to open a file that may have become a link or a pipe: follow and wait for none."""
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    READ_FLAGS |= getattr(os, _name, 0)


def open_itself(path: str | Path) -> BinaryIO:
    """Open a file to read it; not what a link in its place leads to.

    Raises:
        OSError: it cannot be opened, or is a link.
    """

    def opener(name: str, _flags: int) -> int:
        if not hasattr(os, "O_NOFOLLOW") and os.path.islink(name):  # noqa: PTH114 - a text
            raise OSError(errno.ELOOP, "it is a link", name)
        return os.open(name, READ_FLAGS)

    return open(path, "rb", opener=opener)


OWN_SESSION: dict[str, Any] = {"start_new_session": True}
OWN_GROUP: dict[str, Any] = {"process_group": 0}
"""Arguments of ``Popen`` for a process that Ctrl-C does not reach."""
if sys.platform == "win32":
    OWN_SESSION = OWN_GROUP = {"creationflags": 0x0000_0200}  # CREATE_NEW_PROCESS_GROUP

_LOOK_SECONDS = 0.1
_REPLACE_SECONDS = 10.0
_PAUSE_SECONDS = 0.02


def not_kept() -> list[str]:
    """What this system does not do, each as a phrase; empty on Linux."""
    late = f"the program looks every {_LOOK_SECONDS} s, so a file may take more for a moment"
    phrases = {
        f"limits of processor time for a reader: {late}": LIMITS_TIME,
        f"limits of memory for a reader: {late}": LIMITS_MEMORY,
        "permissions and owners of files: protect the folder of the corpus yourself": IS_UNIX,
    }
    return [phrase for phrase, is_kept in phrases.items() if not is_kept]


# -- files and locks -------------------------------------------------------------------------------


def is_foreign(user: int) -> bool:
    """Whether a file's owner is neither this user nor root. Not if the system does not tell.

    The root user may change everything anyway, and owns what a package manager installs.
    """
    return (
        sys.platform != "win32" and hasattr(os, "geteuid") and user not in (os.geteuid(), ROOT_USER)
    )


def is_open_to_others(status: os.stat_result, permissions: int = 0o077) -> bool:
    """Whether other users have one of these permissions. Not if the system does not tell."""
    return IS_UNIX and bool(status.st_mode & permissions)


def lock_of_folder(folder: Path) -> tuple[Path, int]:
    """What to open, and the flags, to lock a folder: itself, or a file in the temporary folder.

    A file in the folder itself would be copied, deleted or read with the others.
    """
    if IS_UNIX:
        return folder, os.O_RDONLY
    digest = sha256(os.fsencode(os.path.normcase(folder))).hexdigest()[:16]
    return Path(gettempdir(), f"rolebundle-{digest}.lock"), os.O_RDWR | os.O_CREAT


def lock(descriptor: int, *, exclusive: bool) -> bool:
    """Lock an open file or folder until it is closed. False if another one has the lock.

    Raises:
        OSError: its file system has no locks.
    """
    if sys.platform != "win32" and IS_UNIX:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    # Imported here: it takes long, and only Windows needs it.
    import portalocker

    flags = portalocker.LockFlags.EXCLUSIVE if exclusive else portalocker.LockFlags.SHARED
    try:
        portalocker.lock(descriptor, flags | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.exceptions.AlreadyLocked:
        return False
    except portalocker.exceptions.LockException as error:
        raise OSError(str(error)) from error
    return True


def replace(source: Path, target: Path) -> None:
    """Give a file another name, also if a file has it.

    Windows refuses it while somebody has either file open, so there it is tried for ten seconds.

    Raises:
        OSError: it could not be done.
    """
    deadline = monotonic() + _REPLACE_SECONDS
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if IS_UNIX or monotonic() >= deadline:
                raise
            sleep(_PAUSE_SECONDS)
        else:
            return


# -- processes -------------------------------------------------------------------------------------


def is_running(process: int) -> bool:
    """Whether a process with this id runs."""
    if not IS_UNIX:
        # There, os.kill(process, 0) would end it.
        import psutil

        return bool(psutil.pid_exists(process))
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def start_detached(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process without streams that goes on when this one, or its terminal, has ended."""
    import subprocess  # Few commands start a process.

    silent = subprocess.DEVNULL
    options = dict(OWN_SESSION)
    if sys.platform == "win32":
        options["creationflags"] |= subprocess.CREATE_NO_WINDOW
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, **options)


def kill_with_children(process: int) -> None:
    """Kill a process that was started with ``OWN_SESSION``, and those that it has started."""
    if sys.platform != "win32" and IS_UNIX:
        with suppress(OSError):
            os.killpg(process, signal.SIGKILL)
        return
    import psutil

    with suppress(psutil.Error):
        parent = psutil.Process(process)
        for found in (*parent.children(recursive=True), parent):
            with suppress(psutil.Error):
                found.kill()


def limit_memory(most: int) -> None:
    """Limit the memory of this process to so many bytes, where the system does it."""
    if sys.platform == "linux" and LIMITS_MEMORY:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = most if hard == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def limit_time(seconds: float, waiting: float) -> None:
    """Let the system end this process after this processor time, or this time in all.

    0 is no limit. Python has no part in it, so it also ends a call of a library that never returns.
    """
    if sys.platform != "win32" and LIMITS_TIME:
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)  # The parent may ignore it.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, waiting)


def is_out_of_time(code: int) -> bool:
    """Whether a process with this exit code was ended by the limit of its time."""
    timers = ("SIGPROF", "SIGALRM")
    return any(-code == getattr(signal, name, None) for name in timers)


@contextmanager
def watched(process: int, seconds: float, waiting: float, memory: int) -> Iterator[list[str]]:
    """Keep the limits of a process that its system does not keep: kill it if it exceeds one.

    Args:
        process: its id.
        seconds: its processor time in this block; 0 for no limit.
        waiting: its time in all in this block.
        memory: bytes.

    Returns:
        A list that gets ``time`` or ``memory`` when it is killed.
    """
    exceeded: list[str] = []
    if LIMITS_TIME and LIMITS_MEMORY:
        yield exceeded
        return
    import psutil

    ended = Event()

    def look() -> None:
        with suppress(psutil.Error):  # It has ended.
            watched_one, start = psutil.Process(process), monotonic()
            used = sum(watched_one.cpu_times()[:2])
            while not exceeded and not ended.wait(_LOOK_SECONDS):
                took = sum(watched_one.cpu_times()[:2]) - used
                if not LIMITS_MEMORY and watched_one.memory_info().rss > memory:
                    exceeded.append("memory")
                elif not LIMITS_TIME and seconds:
                    is_late = took > seconds or monotonic() - start > waiting
                    exceeded.extend(["time"] * is_late)
            if exceeded:
                watched_one.kill()

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield exceeded
    finally:
        ended.set()
        thread.join()
