"""The sidecar: newline-delimited JSON-RPC 2.0 over standard input and output.

One thread reads, so that a request can be cancelled while another one runs; one thread works, in
the order of the requests, because a connection to the corpus takes one call at a time. It alone
writes, too: a client that does not read its answers stops nothing but itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

from rolebundle.contracts.request import (
    LEAST_CHARACTERS,
    MAX_REFERENCE_CHARACTERS,
    MAX_TASK_CHARACTERS,
)
from rolebundle.errors import Interrupted, RolebundleError, UsageError
from rolebundle.interfaces.backlog import MOST_WAITING, Backlog, Call
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_value
from rolebundle.interfaces.operations import METHODS, Answer, Operations, Progress
from rolebundle.interfaces.stdio import CAN_POLL, Channel, Gone, LineReader, LineWriter, Waker

PROTOCOL = "1.0"
OWN_METHODS = ("initialize", "shutdown")
CANCEL = "$/cancelRequest"
PROGRESS = "$/progress"
DETAILS = ("ids", "compact", "full")
MOST_PASSAGES = 1_000
SECONDS_BETWEEN_PROGRESS = 0.1
PATIENCE_SECONDS = 1.2
"""After the end of the input, so long may one answer take; then what waits is refused."""
_LAST_SECONDS = 0.3
_PAUSE = 0.02


class BadEnvelope(UsageError):
    """JSON that is no request of JSON-RPC 2.0."""

    rpc_code = -32600


class UnknownMethod(UsageError):
    """A method that there is not."""

    rpc_code = -32601


class Server:
    """Serves one client.

    Args:
        operations: the methods, over an engine that is this server's alone.
        channel: where requests come from and answers go.
        preload: load the model before the first request asks for it.
    """

    def __init__(self, operations: Operations, channel: Channel, *, preload: bool = False) -> None:
        self._operations = operations
        self._preload = preload
        self._waker = Waker()
        self._reader = LineReader(channel, MAX_LINE_BYTES, self._waker)
        self._writer = LineWriter(channel)
        self._backlog = Backlog(operations.interrupt)
        self._answers = 0
        self._ended = Event()
        self._abandoned = False

    def run(self) -> bool:
        """Serve until the input ends, the output breaks, or :meth:`stop`.

        Returns:
            Whether the work has ended, too. Where it has not, something in it does not listen.
        """
        Thread(target=self._work, name="rolebundle-work", daemon=True).start()
        for line in self._reader:
            if self._abandoned or not self._take(line):
                break
        self._backlog.close()
        self._let_finish()
        return self._ended.is_set()

    def stop(self) -> None:
        """Have :meth:`run` return soon, whatever waits; from any thread or a signal handler."""
        self._abandoned = True
        self._waker.wake()

    # -- the reading thread ------------------------------------------------------------------

    def _take(self, line: bytes) -> bool:
        """Queue a line's request; false where it is the last one."""
        if not line.strip():
            return True
        call = Call(size=len(line))
        try:
            message = json_value(line)
            call.id = _id_of(message)
            _fill(call, message)
        except RolebundleError as error:
            call.refusal = error
        if call.refusal is None and call.is_notification:
            if call.method == CANCEL and "id" in call.fields:
                self._cancel(call.fields["id"])
            return True
        self._backlog.put(call, lambda: self._abandoned)
        return call.method != "shutdown" or call.refusal is not None

    def _cancel(self, call_id: object) -> None:
        running = self._backlog.cancel(call_id)
        if running is not None:
            Thread(target=self._insist, args=(running,), daemon=True).start()

    def _insist(self, call: Call) -> None:
        # An interrupt before the search has begun ends nothing: it is repeated until the call ends.
        while self._backlog.interrupt(call):
            sleep(_PAUSE)

    def _let_finish(self) -> None:
        answers, since = self._answers, monotonic()
        while not self._ended.wait(_PAUSE):
            waited = monotonic() - since
            if self._abandoned or waited > PATIENCE_SECONDS:
                break
            if self._answers != answers:
                answers, since = self._answers, monotonic()
        if not self._ended.is_set():
            self._backlog.give_up(answer=not self._abandoned)
            end = monotonic() + _LAST_SECONDS
            while not self._ended.wait(_PAUSE) and monotonic() < end:
                self._backlog.interrupt()

    # -- the working thread ------------------------------------------------------------------

    def _work(self) -> None:
        try:
            if self._preload:
                _warm_up(self._operations)
            while (call := self._backlog.take()) is not None:
                line = self._answer(call)
                if self._backlog.done(call):
                    self._writer.write(line)
                self._answers += 1
        except Gone:
            self._abandoned = True
        finally:
            with suppress(RolebundleError):
                self._operations.engine.close()
            self._ended.set()
            self._waker.wake()
            if not CAN_POLL and self._abandoned:
                os._exit(0)  # nothing else ends a read that has begun

    def _answer(self, call: Call) -> bytes:
        try:
            if call.refusal is not None:
                raise call.refusal
            return _line(call.id, "result", self._result(call))
        except RolebundleError as error:
            return _line(call.id, "error", _told(error))
        except Gone:
            raise
        except (Exception, SystemExit) as error:
            if os.environ.get("ROLEBUNDLE_DEBUG"):
                from traceback import print_exc

                print_exc()
            return _line(call.id, "error", _told(_internal(error)))

    def _result(self, call: Call) -> Answer | None:
        if self._backlog.giving_up:
            raise _too_late()
        if call.method == "shutdown":
            return None
        if call.method == "initialize":
            return self._introduction()
        progress = self._progress_of(call) if call.method == "ingest" else None
        return self._operations.call(call.method, call.fields, progress)

    def _introduction(self) -> Answer:
        from importlib.metadata import version

        allowed = [one for one in METHODS if one != "ingest" or self._operations.may_write]
        return {
            "protocol": PROTOCOL,
            "name": "rolebundle",
            "version": version("rolebundle"),
            "capabilities": {
                "methods": [*OWN_METHODS, *allowed],
                "notifications": [CANCEL, PROGRESS],
                "allow_write": self._operations.may_write,
                "details": list(DETAILS),
                "default_detail": self._operations.detail,
                "limits": {
                    "line_bytes": MAX_LINE_BYTES,
                    "waiting": MOST_WAITING,
                    "task_characters": MAX_TASK_CHARACTERS,
                    "reference_characters": MAX_REFERENCE_CHARACTERS,
                    "passages": MOST_PASSAGES,
                    "least_max_chars": LEAST_CHARACTERS,
                },
            },
        }

    def _progress_of(self, call: Call) -> Progress:
        last = 0.0

        def tell(what: str, done: int, total: int) -> None:
            nonlocal last
            if call.cancelled or self._backlog.giving_up:
                raise _too_late()
            now = monotonic()
            if now - last >= SECONDS_BETWEEN_PROGRESS or done == total:
                last = now
                params = {"id": call.id, "what": what, "done": done, "total": total}
                message = {"jsonrpc": "2.0", "method": PROGRESS, "params": params}
                self._writer.write(_encoded(message))

        return tell


def serve(operations: Operations, channel: Channel, *, preload: bool = False) -> int:
    """Serve until the client has gone or a signal asks to end; the exit code.

    Args:
        operations: the methods, over an engine that is this server's alone.
        channel: where requests come from and answers go; see :func:`stdio.take_over`.
        preload: load the model before the first request asks for it.
    """
    server = Server(operations, channel, preload=preload)
    code = 0

    def end(number: int, _frame: object) -> None:
        nonlocal code
        code = 130 if number == signal.SIGINT else 0
        if not CAN_POLL:
            os._exit(code)
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if not server.run():
        # A model's server may keep a call for longer than the client waits for our end.
        os._exit(code)
    return code


def _id_of(message: object) -> Any:
    """The id that an answer is given under: null where the message has none that is allowed."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def _fill(call: Call, message: object) -> None:
    if isinstance(message, list):
        raise BadEnvelope("batch_refused", "batches are not taken", "send one request a line")
    if not isinstance(message, dict):
        raise _bad("the message is no object")
    if "id" in message and message["id"] is not None and call.id is None:
        raise _bad("id: must be a text, a number or null")
    if message.get("jsonrpc") != "2.0":
        raise _bad('jsonrpc: must be "2.0"')
    method = message.get("method")
    if not isinstance(method, str):
        raise _bad("method: must be a text")
    call.is_notification = "id" not in message
    call.method = method
    if call.is_notification and method != CANCEL:
        return
    params = message.get("params")
    if method not in (*METHODS, *OWN_METHODS, CANCEL) or (
        method == CANCEL and not call.is_notification
    ):
        raise _unknown(method)
    if params is not None and not isinstance(params, dict):
        if call.is_notification:
            return
        raise UsageError(
            "bad_request", "params: must be an object", 'name the fields: {"task": "..."}'
        )
    call.fields = params or {}


def _bad(reason: str) -> BadEnvelope:
    return BadEnvelope(
        "bad_envelope",
        f"not a JSON-RPC 2.0 request: {reason}",
        'send {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": {"task": "..."}}',
    )


def _unknown(method: str) -> UnknownMethod:
    if method == CANCEL:
        return UnknownMethod("unknown_method", f"{CANCEL} is a notification", "send it without id")
    from difflib import get_close_matches

    known = (*OWN_METHODS, *METHODS)
    near = get_close_matches(method[:80].lower(), known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return UnknownMethod(
        "unknown_method",
        f"{method[:80]}: there is no such method",
        f"{guess}methods: {', '.join(known)}",
    )


def _too_late() -> Interrupted:
    return Interrupted("interrupted", "the server is ending", "start it again and ask again")


def _internal(error: BaseException) -> RolebundleError:
    return RolebundleError(
        "internal",
        f"internal error: {type(error).__name__}",
        "please report it; ROLEBUNDLE_DEBUG=1 shows on standard error where it happened",
    )


def _told(error: RolebundleError) -> dict[str, Any]:
    data = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
    return {"code": error.rpc_code, "message": error.message, "data": data}


def _line(call_id: Any, kind: str, content: object) -> bytes:
    return _encoded({"jsonrpc": "2.0", "id": call_id, kind: content})


def _encoded(message: object) -> bytes:
    # ASCII: half characters, which UTF-8 cannot hold, travel as escapes.
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")


def _warm_up(operations: Operations) -> None:
    engine = operations.engine
    try:
        engine.provider(engine.corpus).embed_queries(["warm up"])
    except RolebundleError as error:
        with suppress(OSError):
            sys.stderr.write(f"not loaded ahead: {error}\n")
