"""The stdio server: JSON-RPC 2.0, one message a line, over standard input and output.

The main thread reads, so that a request can be cancelled while another one runs. The worker's
thread answers the requests in order, and it alone writes: a client that does not read its answers
blocks only itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from time import monotonic
from traceback import print_exc
from typing import Any, get_args

from rolebundle.contracts import request
from rolebundle.contracts.terms import Detail
from rolebundle.errors import Cancelled, RolebundleError, UsageError
from rolebundle.ingest.indexes import Progress
from rolebundle.interfaces import json_lines
from rolebundle.interfaces.servers import worker
from rolebundle.interfaces.servers.operations import (
    DEFAULT_DETAIL,
    METHODS,
    Operations,
    internal_error,
)
from rolebundle.interfaces.servers.stdio import Channel, OutputClosed
from rolebundle.interfaces.shape import Answer
from rolebundle.interfaces.signals import on_end

PROTOCOL = "1.0"
OWN_METHODS = ("initialize", "shutdown")
CANCEL = "$/cancelRequest"
PROGRESS = "$/progress"
MAX_PASSAGES = 1_000
SECONDS_BETWEEN_PROGRESS = 0.1
_CANCELLED = Cancelled("cancelled", f"{CANCEL} ended the request", "send it again if it is needed")
"""The answer to a request that was cancelled before it had one."""


class Server(worker.ClientSession):
    """Serves one client."""

    def run(self) -> None:
        """Serve until the input ends, the output breaks, or :meth:`stop`.

        Every request that was accepted is answered, unless nobody reads the answers.
        """
        self.worker.start()
        for line in self._reader:
            if self._is_cut_off or not self._handle_line(line):
                break
        self._is_cut_off |= self._reader.is_output_closed
        self.worker.finish(lambda: self.is_stopped or self._is_cut_off)

    # -- the reading thread ------------------------------------------------------------------

    def _handle_line(self, line: bytes) -> bool:
        """Queue a line's request. Return false if it is the last one."""
        if not line.strip():
            return True
        request_id, method, fields, refusal = None, "", dict[str, Any](), None
        try:
            message = json_lines.json_value(line)
            request_id = json_lines.id_of(message)
            envelope = json_lines.checked_envelope(message)
            method, params = envelope["method"], envelope.get("params")
            if "id" not in envelope:
                # A notification is never answered. All but this one have no effect.
                if method == CANCEL and isinstance(params, dict) and "id" in params:
                    cancelled = (type(params["id"]), params["id"])
                    self.worker.cancel(lambda job: job.key == cancelled)
                return True
            fields = _checked_fields(method, params, self.worker.operations.offered_methods)
        except RolebundleError as error:
            refusal = error
        # A refused request has no id that could be cancelled.
        key = (type(request_id), request_id) if refusal is None else None
        self.worker.wait_for_space(lambda: self.is_stopped or self._is_cut_off)
        job = worker.Job(
            partial(self._answer, request_id, method, fields, refusal),
            self._write,
            partial(json_lines.error_line, request_id, worker.server_is_ending()),
            partial(json_lines.error_line, request_id, _CANCELLED),
            key,
        )
        self.worker.submit(job)
        return method != "shutdown" or refusal is not None

    # -- the working thread ------------------------------------------------------------------

    def _write(self, line: bytes) -> None:
        if not self._write_line(line):
            self.worker.unfinished += 1

    def _answer(
        self,
        request_id: Any,
        method: str,
        fields: dict[str, Any],
        refusal: RolebundleError | None,
        job: worker.Job,
    ) -> bytes:
        try:
            if refusal is not None:
                raise refusal
            return json_lines.answer_line(request_id, self._result(request_id, method, fields, job))
        except RolebundleError as error:
            self.worker.note_error(error)
            return json_lines.error_line(request_id, error)
        except OutputClosed:
            # A progress message was not written, and the answer will not be either.
            return b""
        except (Exception, SystemExit) as error:
            if os.environ.get("ROLEBUNDLE_DEBUG"):
                print_exc()
            return json_lines.error_line(request_id, internal_error(error))

    def _result(
        self, request_id: Any, method: str, fields: dict[str, Any], job: worker.Job
    ) -> Answer | None:
        if method == "shutdown":
            return None
        if method == "initialize":
            return self._introduction()
        progress = self._progress_of(request_id, job) if method == "ingest" else None
        return self.worker.operations.call(method, fields, progress)

    def _introduction(self) -> Answer:
        return {
            "protocol": PROTOCOL,
            "name": "rolebundle",
            "version": version("rolebundle"),
            "capabilities": {
                "methods": [*OWN_METHODS, *self.worker.operations.offered_methods],
                "notifications": [CANCEL, PROGRESS],
                "allow_write": self.worker.operations.may_write,
                "details": list(get_args(Detail)),
                "default_detail": DEFAULT_DETAIL,
                "limits": {
                    "line_bytes": json_lines.MAX_LINE_BYTES,
                    "waiting": worker.MAX_WAITING,
                    "task_characters": request.MAX_TASK_CHARACTERS,
                    "reference_characters": request.MAX_REFERENCE_CHARACTERS,
                    "passages": MAX_PASSAGES,
                    "least_max_chars": request.MIN_MAX_CHARS,
                },
            },
        }

    def _progress_of(self, request_id: Any, job: worker.Job) -> Progress:
        last = 0.0

        def report(step: str, done: int, total: int) -> None:
            nonlocal last
            if self.worker.is_stopping or job.is_cancelled:
                # One that was cancelled has another answer.
                raise worker.server_is_ending()
            self.worker.note_progress()
            now = monotonic()
            if now - last >= SECONDS_BETWEEN_PROGRESS or done == total:
                last = now
                params = {"id": request_id, "what": step, "done": done, "total": total}
                self._writer.write(
                    json_lines.encoded({"jsonrpc": "2.0", "method": PROGRESS, "params": params})
                )

        return report


def serve(operations: Operations, channel: Channel) -> int:
    """Serve until the client is gone or a signal asks to end. Return the exit code.

    Args:
        operations: the methods, over an engine that is this server's alone.
        channel: where requests come from and answers go; see :func:`stdio.take_over`.

    Returns:
        0 after SIGTERM or if every accepted request was finished, 130 after SIGINT, else 1.
    """
    server = Server(operations, channel)
    signals = on_end(server.stop)
    server.run()
    code = server.worker.end_code(signals)
    if not server.worker.has_ended:
        # A call to a model's server may last longer than the client waits.
        os._exit(code)
    return code


def _checked_fields(method: str, params: object, offered: Sequence[str]) -> dict[str, Any]:
    """The fields of a request. An error names the methods that are offered.

    Raises:
        UsageError: what the call is refused with.
    """
    if method not in (*METHODS, *OWN_METHODS):
        step = f"methods: {', '.join((*OWN_METHODS, *offered))}"
        raise UsageError("unknown_method", f"{method[:80]}: there is no such method", step)
    if not isinstance(params, dict | None):
        raise UsageError(
            "bad_request", "params: must be an object", 'name the fields: {"task": "..."}'
        )
    return params or {}
