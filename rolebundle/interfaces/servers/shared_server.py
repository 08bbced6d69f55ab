"""One server for several hosts, over a Unix domain socket, so that the model is loaded once.

Each connection has an engine, a queue and a thread of its own, with the options that its client
sent. Only the models are shared. So a connection answers what a process of its client's own would,
and it cannot see or cancel the calls of another one.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, current_thread
from time import monotonic, sleep
from typing import NoReturn

from rolebundle.errors import RolebundleError, install_hint
from rolebundle.interfaces.servers.attach import HELLO_SECONDS, MAX_HELLO_BYTES, Hello
from rolebundle.interfaces.servers.forward import end_line
from rolebundle.interfaces.servers.local_socket import is_same_user, listening, received_line
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.servers.serve import Server
from rolebundle.interfaces.servers.stdio import Channel, ReadStopper
from rolebundle.interfaces.servers.worker import (
    STOP_SECONDS,
    WRITE_SECONDS,
    ClientSession,
    end_code,
)
from rolebundle.interfaces.signals import on_end

MAX_CONNECTIONS = 32
_PAUSE_SECONDS = 0.1
_M_ARENA_MAX = -8
"""The number of the setting in glibc's <malloc.h>."""


class SharedServer:
    """Serves the clients that connect to a socket.

    Args:
        own: the operations of the server's own options. With an agent, only clients with exactly
            these options are served; otherwise a client chooses its agent, approvals and overlays,
            as in a process of its own. None may write if the server may not.
        settings: the options about models, which must be the same.
        operations_for: makes the operations for a client.
    """

    def __init__(
        self,
        own: Operations,
        settings: Mapping[str, str],
        operations_for: Callable[[Hello], Operations],
    ) -> None:
        self.own = own
        self._settings = settings
        self._operations_for = operations_for
        self._stopper = ReadStopper()
        self._lock = Lock()
        self._sessions: dict[Thread, ClientSession | None] = {}
        self._is_stopped = False
        self.is_finished = True
        """Whether every request of every connection was finished."""

    def run(self, listener: socket.socket) -> None:
        """Serve until :meth:`stop`, and answer all requests that were accepted."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(self._stopper.descriptor, select.POLLIN)
        # A client may be gone before it is accepted.
        listener.setblocking(False)
        while self._stopper.descriptor not in dict(poll.poll()):
            try:
                connection, _ = listener.accept()
            except OSError:
                sleep(_PAUSE_SECONDS)
            else:
                self._start(connection)
        with self._lock:
            sessions = dict(self._sessions)
        for session in sessions.values():
            if session is not None:
                session.stop()
        end = monotonic() + STOP_SECONDS + 2 * WRITE_SECONDS
        for thread, session in sessions.items():
            thread.join(max(0.0, end - monotonic()))
            self.is_finished &= session is None or not thread.is_alive()

    def stop(self) -> None:
        """Make :meth:`run` return soon. For a signal handler."""
        self._is_stopped = True
        self._stopper.stop()

    def _start(self, connection: socket.socket) -> None:
        with self._lock:
            is_full = len(self._sessions) >= MAX_CONNECTIONS
            if is_full or not is_same_user(connection):
                connection.close()
                return
            thread = Thread(target=self._serve, args=(connection,), daemon=True)
            self._sessions[thread] = None
        thread.start()

    # -- the thread of a connection --------------------------------------------------------------

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._serve_session(connection)
        finally:
            with self._lock:
                del self._sessions[current_thread()]

    def _serve_session(self, connection: socket.socket) -> None:
        # Of its own, so that a call that outlives the connection never writes to another one.
        channel = Channel(os.dup(connection.fileno()), os.dup(connection.fileno()), is_socket=True)
        session = self._session(connection, channel)
        if session is not None:
            with self._lock:
                self._sessions[current_thread()] = session
            if self._is_stopped:
                session.stop()
            session.run()
            self.is_finished &= session.is_finished or not session.is_stopped
            with suppress(OSError):
                if session.has_ended:
                    connection.settimeout(WRITE_SECONDS)
                    connection.sendall(
                        end_line(is_finished=session.is_finished, is_stopped=session.is_stopped)
                    )
                connection.shutdown(socket.SHUT_RDWR)
            if not session.has_ended:
                return
            session.close()
        os.close(channel.incoming)
        os.close(channel.outgoing)

    def _session(self, connection: socket.socket, channel: Channel) -> ClientSession | None:
        """The session that a client asks for; ``None`` if it is refused."""
        session, refused = None, "the hello is malformed"
        try:
            connection.settimeout(HELLO_SECONDS)
            hello = Hello.read(received_line(connection, MAX_HELLO_BYTES))
            if hello is not None:
                refused = self.refusal(hello)
                if not refused:
                    session = self._session_for(hello, connection, channel)
        except RolebundleError as error:
            refused = error.message
        except ImportError:
            refused = f"it lacks the extra mcp; {install_hint('mcp')}"
        except OSError:
            return None
        try:
            connection.sendall(json.dumps({"refused": refused}).encode() + b"\n")
        except OSError:
            if session is not None:
                session.close()
            return None
        connection.settimeout(None)
        return session

    def refusal(self, hello: Hello) -> str:
        """Why a client is not served; empty if it is."""
        own = Hello.of(self.own, hello.protocol, self._settings)
        if hello.settings != own.settings:
            return "it has another version, corpus, model or environment"
        if hello.allow_write and not own.allow_write:
            return "it may not write"
        if own.agent is not None and hello != own.model_copy(
            update={"allow_write": hello.allow_write}
        ):
            return "it serves one agent, with other options"
        return ""

    def _session_for(
        self, hello: Hello, connection: socket.socket, channel: Channel
    ) -> ClientSession:
        operations = self._operations_for(hello)
        if hello.protocol == "serve":
            return Server(operations, channel)
        from rolebundle.interfaces.servers.mcp import Session

        def give_up() -> None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        return Session(operations, channel, give_up=give_up)


def _use_one_heap() -> None:
    """Let all threads allocate from one heap. glibc gives each its own, of several MB."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def serve_shared(server: SharedServer, path: Path) -> NoReturn:
    """Serve the clients that connect to a socket, until a signal ends this process.

    Args:
        server: what is served. The model is loaded first.
        path: where the socket is made.

    Raises:
        ConfigurationError, CorpusBusy, StorageError: see :func:`local_socket.listening`.
    """
    _use_one_heap()
    # First, because a client does not wait long for an answer to its hello.
    server.own.warm_up()
    server.own.engine.close()
    signals: list[int] = []
    with listening(path) as listener:
        on_end(signals, server.stop)
        sys.stderr.write(f"serving {server.own.engine.workspace.path} at {path}\n")
        sys.stderr.flush()
        server.run(listener)
    # The interpreter's own exit would wait for calls that do not react to interrupts.
    os._exit(end_code(signals, is_finished=server.is_finished))
