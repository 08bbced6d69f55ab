"""The forwarder: a small process between a host's standard streams and the corpus's server.

It imports nothing but the standard library, so that several hosts cost little memory. If the server
ends, the requests that it did not answer are answered with the code `server_gone`, and a server of
this client's own answers all later ones.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import Any

from rolebundle.interfaces.servers.stdio import (
    Channel,
    LineReader,
    LineWriter,
    OutputClosed,
    Outstanding,
    ReadStopper,
    read_message,
)

MAX_LINE_BYTES = 1 << 20
"""The longest request; of a longer one as much is forwarded as the server needs to refuse it."""
END = b'{"rolebundle":"end"'
"""How the last line of a server begins, which is for this process."""
WRITE_SECONDS = 1.0
_CHUNK = 1 << 16
_ERRORS = {
    "interrupted": (-32603, "the server is ending", "start it again and repeat the call"),
    "server_gone": (
        -32007,
        "the server that this process was attached to has ended",
        "repeat the call",
    ),
}
"""Code → JSON-RPC's number, what is wrong, and the next step."""


def end_line(*, is_finished: bool, is_stopped: bool) -> bytes:
    """The last line of a server to a forwarder.

    Args:
        is_finished: whether every request was finished.
        is_stopped: whether the server ended the connection, not the client.
    """
    end = {"rolebundle": "end", "is_finished": is_finished, "is_stopped": is_stopped}
    return json.dumps(end, separators=(",", ":")).encode() + b"\n"


class Backend:
    """Where requests are sent and answers come from: a connection, or a process of our own.

    Args:
        incoming: the descriptor to read from.
        outgoing: the descriptor to write to; it may be the same.
        stopper: ends the writing, because the other end may not read.
        end_input: tells the other end that no more lines come.
    """

    def __init__(
        self, incoming: int, outgoing: int, stopper: ReadStopper, end_input: Callable[[], None]
    ) -> None:
        self._incoming, self._outgoing, self._stopper = incoming, outgoing, stopper
        self._end_input = end_input
        os.set_blocking(outgoing, False)

    def send(self, line: bytes) -> None:
        """Send one line. If the other end is gone, do nothing: its end is noticed elsewhere."""
        unsent = memoryview(line + b"\n")
        with suppress(OSError):
            while unsent:
                try:
                    unsent = unsent[os.write(self._outgoing, unsent) :]
                except BlockingIOError:
                    if select.select([self._stopper.descriptor], [self._outgoing], [])[0]:
                        return

    def receive(self) -> bytes:
        """Some bytes; empty at the end."""
        while True:
            try:
                return os.read(self._incoming, _CHUNK)
            except BlockingIOError:
                select.select([self._incoming], [], [])
            except OSError:
                return b""

    def end_input(self) -> None:
        """Tell the other end that no more lines come."""
        with suppress(OSError):
            self._end_input()


class Forwarder:
    """Forwards the lines of one client.

    Args:
        connection: to the corpus's server.
        alone: the command of a server of this client's own.
    """

    def __init__(self, connection: socket.socket, alone: Sequence[str]) -> None:
        self._alone = alone
        self._process: subprocess.Popen[bytes] | None = None
        channel = Channel(0, 1)
        self._stopper = ReadStopper()
        self._backend = Backend(
            connection.fileno(),
            connection.fileno(),
            self._stopper,
            partial(connection.shutdown, socket.SHUT_WR),
        )
        self._reader = LineReader(channel, MAX_LINE_BYTES, self._stopper)
        self._writer = LineWriter(channel)
        self._outstanding = Outstanding()
        self._switching, self._delivering = Lock(), Lock()
        self._greeting: list[bytes] = []
        self._is_input_over = False
        self._is_refused = False
        self._has_ended = Event()
        self.signals: list[int] = []
        self.code = 0

    def run(self) -> None:
        """Forward until the client is gone, the server has answered everything, or a signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        Thread(target=self._receive, daemon=True).start()
        for line in self._reader:
            if line.strip():
                self._send(line)
        if self._reader.is_output_closed:
            self.code = self.code or int(not self._outstanding.is_empty())
            return
        with self._switching:
            self._is_input_over = True
            self._backend.end_input()
        while not (self.signals or self._has_ended.wait(0.02)):
            pass
        if self.signals:
            self._refuse_remaining()
        elif self.code:
            # They came after the end. After a `shutdown` nothing more is accepted.
            self._answer_remaining("server_gone")

    def _on_signal(self, number: int, _frame: object) -> None:
        self.signals.append(number)
        self._stopper.stop()

    def _send(self, line: bytes) -> None:
        with self._switching:
            self._outstanding.note_request(line)
            if not self.signals:
                self._note_greeting(line)
                self._backend.send(line)

    def _note_greeting(self, line: bytes) -> None:
        """Keep what MCP begins with, for another server."""
        if read_message(line).get("method") in ("initialize", "notifications/initialized"):
            self._greeting.append(line)

    # -- the receiving thread ------------------------------------------------------------------

    def _receive(self) -> None:
        while True:
            end = self._deliver_until_end()
            with self._switching:
                if self.signals:
                    return
                if self._process is not None:
                    self.code = self._process.wait() or self.code
                    is_over = True
                else:
                    self.code = int(end is not None and not end["is_finished"])
                    is_over = self._is_input_over or (end is not None and not end["is_stopped"])
                self._answer_remaining("server_gone")
                is_over = is_over or not self._start_alone()
            if is_over:
                self._has_ended.set()
                self._stopper.stop()
                return

    def _deliver_until_end(self) -> dict[str, Any] | None:
        """Pass on the lines of the backend. Return its last line; ``None`` if it sent none."""
        incomplete = b""
        while part := self._backend.receive():
            *lines, incomplete = (
                (incomplete + part).split(b"\n") if b"\n" in part else [incomplete + part]
            )
            for line in lines:
                if line.startswith(END):
                    end: dict[str, Any] = json.loads(line)
                    return end
                self._deliver(line)
        return None

    def _deliver(self, line: bytes) -> None:
        with self._delivering, suppress(OutputClosed):
            # After a signal every request is refused, once.
            if not self._is_refused:
                self._outstanding.note_answer(line)
                self._writer.write(line)

    def _start_alone(self) -> bool:
        """Start a server of this client's own, and begin the conversation with it.

        Returns:
            Whether it was started.
        """
        sys.stderr.write("the server has ended; this client works alone from here on\n")
        try:
            process = self._process = subprocess.Popen(
                self._alone,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "ROLEBUNDLE_SOCKET": "none"},
            )
        except OSError as error:
            sys.stderr.write(f"a server of its own cannot be started ({error})\n")
            self.code = 1
            return False
        assert process.stdin is not None
        assert process.stdout is not None
        outgoing = os.dup(process.stdin.fileno())
        self._backend = Backend(
            process.stdout.fileno(), outgoing, self._stopper, partial(os.close, outgoing)
        )
        process.stdin.close()
        for line in self._greeting:
            self._backend.send(line)
            if b'"id"' in line:
                # The client has its answer.
                answer = b""
                while not answer.endswith(b"\n") and (part := self._backend.receive()):
                    answer += part
        return True

    # -- the end -------------------------------------------------------------------------------

    def _answer_remaining(self, code: str) -> None:
        number, message, hint = _ERRORS[code]
        data = {"code": code, "message": message, "hint": hint, "retryable": True}
        error = {"code": number, "message": message, "data": data}
        with self._delivering, suppress(OutputClosed):
            for request_id in self._outstanding.ids():
                self.code = 1
                answer = {"jsonrpc": "2.0", "id": request_id, "error": error}
                line = json.dumps(answer, separators=(",", ":")).encode()
                self._outstanding.note_answer(line)
                self._writer.write(line)

    def _refuse_remaining(self) -> None:
        def refuse() -> None:
            with self._delivering:
                self._is_refused = True
            self._answer_remaining("interrupted")

        # In a thread, because nobody may read the answers.
        refuser = Thread(target=refuse, daemon=True)
        refuser.start()
        refuser.join(WRITE_SECONDS)
        if refuser.is_alive():
            self.code = 1
        if self._process is not None:
            self._process.terminate()
        if signal.SIGINT in self.signals:
            self.code = 130


def main() -> None:
    """Forward between the standard streams and the socket whose number is the second argument."""
    number, alone = int(sys.argv[2]), sys.argv[3:]
    connection = socket.socket(fileno=number)
    connection.set_inheritable(False)
    forwarder = Forwarder(connection, alone)
    forwarder.run()
    os._exit(forwarder.code)
