"""Run a command in the server that `rolebundle up` started, instead of importing everything.

The server has imported the program and loaded the models. It runs each command in a process of its
own, forked from it, with the streams, the folder and the variables of the process that asks. So a
command does there what it would do here. This module imports only what a start can afford.
"""

# ruff: noqa: PTH100, PTH111, PTH118, PTH120  # pathlib takes longer to import than all of this

from __future__ import annotations

import os
import signal
import socket
import stat
import struct
import sys

assert sys.platform != "win32"  # It has no such server.

ENVIRONMENT = "ROLEBUNDLE_SOCKET"
"""The environment variable with the path of the server's socket; ``none``: use no server."""
COMMANDS = frozenset(
    "check compare gate get grep ls mark mcp remember retrieve serve status verify why".split()
)
"""The commands that agents and hosts call."""
PID = struct.Struct("!I")
"""The first answer: the number of the process that runs the command, or 0 if none will."""
_SAME = ("LANG", "LC_", "PYTHON")
_CONNECT_SECONDS = 5.0


def socket_path() -> str:
    """The path of the user's server; empty if none may be used."""
    named = os.environ.get(ENVIRONMENT, "")
    if named:
        return "" if named == "none" else named
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "rolebundle.socket")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "rolebundle", "socket")


def identity() -> list[bytes]:
    """What must be the same in the server: Python, the package, and what decides about text."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    settings = sorted(
        f"{name}={value}" for name, value in os.environ.items() if name.startswith(_SAME)
    )
    return [os.fsencode(text) for text in (sys.executable, sys.version, package, *settings)]


def connect(path: str) -> socket.socket | None:
    """A connection to this user's server at a path; ``None`` if there is none."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(path)
        if is_same_user(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to the user of this one.

    If the system does not tell, the permissions of the socket's file decide.
    """
    user = os.geteuid()
    try:
        if hasattr(socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            user = struct.unpack("3i", credentials)[1]
        elif sys.platform == "darwin":
            # LOCAL_PEERCRED of <sys/un.h>: the version, then the user.
            user = struct.unpack("2I", connection.getsockopt(0, 1, 76)[:8])[1]
    except OSError:
        return False  # The other end is gone.
    return bool(user == os.geteuid())


def run(arguments: list[str]) -> int | None:
    """Run a command in the server.

    Args:
        arguments: those of the command line, without the program.

    Returns:
        The exit code of the command; ``None`` if there is no server that does the same.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not arguments or arguments[0] not in COMMANDS or None in streams:
        return None
    path = socket_path()
    connection = connect(path) if path else None
    if connection is None:
        return None
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with connection:
        # They wait until it is known where they go.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            _send(connection, arguments)
            [process] = PID.unpack(connection.recv(PID.size, socket.MSG_WAITALL))
            if not process:
                return None
            for number in signals:
                signal.signal(number, lambda received, _: os.kill(process, received))
            connection.sendall(b"-")  # The process waits for this.
        except (OSError, struct.error):
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        connection.settimeout(None)
        if code := connection.recv(1):
            return code[0]
    sys.stderr.write(
        "error: the server of `rolebundle up` was killed while the command ran [server_gone]\n"
        "  next: see whether the command had an effect, and repeat it if not\n"
    )
    return 1


def _send(connection: socket.socket, arguments: list[str]) -> None:
    """Send identity, umask, arguments and variables, and the descriptors of streams and folder."""
    os.umask(umask := os.umask(0o077))
    own = identity()
    variables = [b"%s=%s" % pair for pair in os.environb.items()]
    numbers = b"%d %d %d" % (umask, len(own), len(arguments))
    message = b"\0".join([numbers, *own, *map(os.fsencode, arguments), *variables])
    folder = os.open(".", os.O_RDONLY)
    try:
        socket.send_fds(connection, [PID.pack(len(message))], [0, 1, 2, folder])
    finally:
        os.close(folder)
    connection.sendall(message)
