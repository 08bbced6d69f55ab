"""Where an approval of an action comes from: nowhere, the request, or a program of the host.

A model writes its requests itself, so a name in a request approves nothing unless the host says
that it fills in this field. With ``command:PROGRAM`` the host's program decides about the passages
that an approval would release. It gets one JSON object on standard input:

    {"version": 1, "agent": "reviewer", "role": "technical-writer", "action": "execute",
     "task_sha256": "…", "claim": "the name in the request, or null",
     "passages": [{"chunk_id": "…", "document_id": "…", "source_id": "…", "locator": "…",
                   "origin": "external", "flags": []}]}

Exit code 0 approves. The first line that the program prints is the name of the person; without one
the program's own name is recorded. Everything else approves nothing: another exit code, no answer
within ``APPROVAL_SECONDS``, a program that cannot be started.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import PurePath
from shlex import split
from tempfile import TemporaryFile
from typing import Any

from rolebundle import system
from rolebundle.contracts.documents import Passage
from rolebundle.contracts.request import MAX_NAME_CHARACTERS, RetrievalRequest
from rolebundle.errors import UsageError

APPROVAL_SECONDS = 60.0
"""How long the host's program may take."""
NOT_FROM_REQUESTS = "the name of an approval in a request is not accepted here"
_COMMAND = "command:"


def parse_approvals(text: str) -> Sequence[str] | None:
    """The value of ``--approvals``: ``none``, ``request`` or ``command:PROGRAM [ARGUMENT…]``.

    Returns:
        The program that approves, and its arguments; empty if nobody does. ``None``: the request
        names who did.

    Raises:
        UsageError: ``bad_approvals``.
    """
    if text in ("none", "request"):
        return [] if text == "none" else None
    try:
        command = split(text.removeprefix(_COMMAND))
    except ValueError:
        command = []
    if not text.startswith(_COMMAND) or not command:
        problem = f"--approvals {text[:80]!r}: is not a source of approvals"
        step = "one of: none, request, command:PROGRAM"
        raise UsageError("bad_approvals", problem, step)
    return command


def approval_question(
    request: RetrievalRequest, agent: str | None, claim: str | None, passages: Sequence[Passage]
) -> dict[str, Any]:
    """What the host's program is asked.

    Args:
        request: the request that needs an approval.
        agent: the agent that asks.
        claim: the name that the request gives.
        passages: the passages that an approval would release.
    """
    return {
        "version": 1,
        "agent": agent,
        "role": request.role,
        "action": request.action,
        "task_sha256": sha256(request.task.encode("utf-8", "surrogatepass")).hexdigest(),
        "claim": claim,
        "passages": [
            {
                "chunk_id": passage.chunk_id,
                "document_id": passage.document.document_id,
                "source_id": passage.document.source_id,
                "locator": passage.locator,
                "origin": passage.document.origin,
                "flags": list(passage.flags),
            }
            for passage in passages
        ],
    }


def ask_program(
    command: Sequence[str], question: Mapping[str, Any], seconds: float = APPROVAL_SECONDS
) -> tuple[str, str]:
    """Let the host's program decide. It is run without a shell, in a session of its own.

    Args:
        command: the program and its arguments.
        question: what to approve.
        seconds: how long it may take.

    Returns:
        The person who approved, or why nothing was approved; the other one is empty.
    """
    name = PurePath(command[0]).name
    # A file, not a pipe: a child of the program that lives on would keep a pipe open.
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, **system.OWN_SESSION
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            return "", f"{name} cannot be started ({reason})"
        try:
            process.communicate(json.dumps(question).encode("ascii"), seconds)
        except subprocess.TimeoutExpired:
            return "", f"{name} did not decide within {seconds:g} s"
        finally:
            end_process(process)
        if process.returncode != 0:
            return "", f"{name} did not approve it"
        output.seek(0)
        first = output.readline(4 * MAX_NAME_CHARACTERS).decode("utf-8", "replace")
    first_line = "".join(character for character in first if character.isprintable()).strip()
    return first_line[:MAX_NAME_CHARACTERS] or name, ""


def end_process(process: Any) -> None:
    """Kill the program and its children if it still runs."""
    if process.poll() is None:
        system.kill_with_children(process.pid)
        process.wait()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
