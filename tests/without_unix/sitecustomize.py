"""Makes a Python that lacks what Windows lacks, as far as another system can show it.

``PYTHONPATH=tests/without_unix pytest ...`` runs tests in it. Every Python that they start is one, too.
"""

import asyncio  # noqa: F401 - the standard library must have looked at the system before
import builtins
import multiprocessing.util  # noqa: F401
import os
import select
import shutil
import signal
import socket
import subprocess  # noqa: F401
import tempfile  # noqa: F401
from contextlib import suppress
from functools import partial

with suppress(ImportError):
    import psutil  # noqa: F401 - it looks at the system, too

MODULES = ("fcntl", "grp", "pwd", "resource", "termios")
NAMES = {
    os: "fork forkpty mkfifo geteuid getpgid killpg environb fchdir set_blocking O_NOFOLLOW O_NONBLOCK "
    "O_CLOEXEC getloadavg",
    signal: "SIGALRM SIGPROF SIGCHLD SIGHUP setitimer pthread_sigmask ITIMER_PROF ITIMER_REAL",
    socket: "AF_UNIX SO_PEERCRED send_fds recv_fds",
    select: "poll",
}

# The standard library would use the missing family; on Windows it makes a pair in another way.
if hasattr(socket, "AF_UNIX"):
    socket.socketpair = partial(socket.socketpair, socket.AF_UNIX)

for module, names in NAMES.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
_import = builtins.__import__


def _import_module(name, variables=None, *arguments, **options):  # type: ignore[no-untyped-def]
    # Libraries that support both systems look at the system by themselves.
    if name in MODULES and str((variables or {}).get("__name__")).startswith("rolebundle"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _import(name, variables, *arguments, **options)


builtins.__import__ = _import_module

shutil._use_fd_functions = False  # type: ignore[attr-defined]
_open = os.open


def _open_file(path, flags, *arguments, dir_fd=None, **options):  # type: ignore[no-untyped-def]
    if dir_fd is None and not flags & getattr(os, "O_DIRECTORY", 0) and os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(13, "Permission denied", path)
    return _open(path, flags, *arguments, dir_fd=dir_fd, **options)


os.open = _open_file
