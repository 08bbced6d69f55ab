"""A client for `rolebundle serve`: starts the process, calls it, ends it. Standard library only.

>>> from rolebundle.interfaces.client import Sidecar
>>> with Sidecar(db="corpus.db") as sidecar:  # doctest: +SKIP
...     bundle = sidecar.retrieve("Review the token refresh flow", role="security-reviewer")
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

Messages = SimpleQueue[dict[str, Any] | None]
"""What the process has written, and at the end ``None``."""

_PROGRAM = (sys.executable, "-c", "from rolebundle.interfaces.cli.main import main; main()")
_SECONDS_TO_END = 3.0


class SidecarError(Exception):
    """The sidecar refused a call, failed, or did not answer.

    Attributes:
        code: stable, for programs.
        rpc_code: JSON-RPC's number; 0 if there was no answer.
        message: what is wrong, for people.
        hint: the next step to take.
        retryable: whether the same call may succeed later.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", rpc_code: int = 0, retryable: bool = False
    ) -> None:
        # All of them are arguments of the base, so that an error can be pickled.
        super().__init__(code, message, hint, rpc_code, retryable)
        self.code = code
        self.rpc_code = rpc_code
        self.message = message
        self.hint = hint
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  next: {self.hint}" if self.hint else "")


class Sidecar:
    """One `rolebundle serve` process. Calls of several threads are made one after the other.

    Args:
        db: the corpus file. Default: `$ROLEBUNDLE_DB`, or a file in the user's data folder.
        overlay_dirs: folders that are searched first for overlays.
        allow_write: whether `ingest` may be called.
        approvals: where approvals come from: `none`, `request` (this program fills in the field,
            not a model), or `command:PROGRAM`.
        timeout: seconds that a call may take, if the call does not set another value.
        command: the program to run; `serve` and its options are appended.
        env: variables to add to this process's own, such as `ROLEBUNDLE_EMBED_URL`.
        stderr: the target of its messages: a file, a descriptor, or `subprocess.DEVNULL`.
    """

    def __init__(
        self,
        db: str | os.PathLike[str] | None = None,
        *,
        overlay_dirs: Sequence[str | os.PathLike[str]] = (),
        allow_write: bool = False,
        approvals: str = "none",
        timeout: float = 30.0,
        command: Sequence[str] = _PROGRAM,
        env: Mapping[str, str] | None = None,
        stderr: Any = None,
    ) -> None:
        self._command = [*command, "serve"]
        for name, value in (("--db", db), *(("--overlay-dir", folder) for folder in overlay_dirs)):
            self._command += [name, os.fspath(value)] if value else []
        self._command += ["--approvals", approvals]
        self._command += ["--allow-write"] * allow_write
        self._timeout = timeout
        self._environment = {**os.environ, **(env or {})}
        self._stderr = stderr
        self._process: subprocess.Popen[bytes] | None = None
        self._ids = count(1)
        self._starting, self._calling = Lock(), Lock()
        self._messages: Messages = SimpleQueue()

    def retrieve(self, task: str, role: str | None = None, **fields: Any) -> dict[str, Any]:
        """The bundle for a task. ``fields``: of the request, such as `limit` or `detail`."""
        return self.call("retrieve", task=task, role=role, **fields)

    def why(self, task: str, id: str, role: str | None = None, **fields: Any) -> dict[str, Any]:
        """Why a passage or document was selected for a task, or was not."""
        return self.call("why", task=task, id=id, role=role, **fields)

    def get(self, id: str, **fields: Any) -> dict[str, Any]:
        """The passage, document or lines that a reference names."""
        return self.call("get", id=id, **fields)

    def ingest(
        self,
        *paths: str | os.PathLike[str],
        lexical_only: bool = False,
        timeout: float = 3600.0,
    ) -> dict[str, Any]:
        """Synchronize the corpus with files and folders. Requires ``allow_write``."""
        fields = {
            "paths": [str(Path(path).absolute()) for path in paths],
            "lexical_only": lexical_only,
        }
        return self._call("ingest", fields, timeout)

    def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Any method by its name. Parameters that are ``None`` are left out.

        Raises:
            SidecarError: the call was refused, failed or took too long, or the process has ended.
        """
        given = {name: value for name, value in params.items() if value is not None}
        return self._call(method, given, self._timeout)

    def start(self) -> Self:
        """Start the process if it does not run. The first call does this, too.

        Raises:
            SidecarError: it cannot be started.
        """
        with self._starting:
            if self._process is None:
                try:
                    self._process = subprocess.Popen(
                        self._command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=self._stderr,
                        env=self._environment,
                    )
                except OSError as error:
                    raise SidecarError(
                        "sidecar_not_started",
                        f"{self._command[0]}: cannot be started ({error.strerror})",
                        "check that rolebundle is installed, or name its command",
                    ) from error
                self._messages = SimpleQueue()
                listened = self._process, self._messages
                Thread(target=_listen, args=listened, daemon=True).start()
        return self

    def close(self) -> None:
        """End the process: close its input, wait, then kill it. Calls that wait raise an error."""
        with self._starting:
            process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        for end in (process.terminate, process.kill):
            try:
                process.wait(_SECONDS_TO_END)
                break
            except subprocess.TimeoutExpired:
                end()
        process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, method: str, params: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        with self._calling:
            self.start()
            number, messages = next(self._ids), self._messages
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            end = monotonic() + timeout
            while True:
                try:
                    message = messages.get(timeout=max(0.0, end - monotonic()))
                except Empty:
                    cancel = {"method": "$/cancelRequest", "params": {"id": number}}
                    self._send({"jsonrpc": "2.0", **cancel})
                    raise SidecarError(
                        "timeout",
                        f"no answer within {timeout:g} s",
                        "call again with a longer timeout, or with lexical_only",
                        retryable=True,
                    ) from None
                if message is None:
                    raise _sidecar_ended()
                # The others are of a call that has timed out, or tell how far an ingest is.
                if message.get("id") == number:
                    return _result(message)

    def _send(self, message: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise _sidecar_ended()
        try:
            process.stdin.write(json.dumps(message).encode("ascii") + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            raise _sidecar_ended() from None


def _listen(process: subprocess.Popen[bytes], messages: Messages) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            messages.put(json.loads(line))
    messages.put(None)


def _result(message: dict[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if error is None:
        result: dict[str, Any] = message["result"]
        return result
    data = error.get("data") or {}
    raise SidecarError(
        data.get("code", "internal"),
        error["message"],
        data.get("hint", ""),
        rpc_code=error["code"],
        retryable=data.get("retryable", False),
    )


def _sidecar_ended() -> SidecarError:
    return SidecarError(
        "sidecar_gone",
        "the sidecar has ended",
        "see its standard error; close this client and start another one",
        retryable=True,
    )
