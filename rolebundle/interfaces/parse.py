"""Untyped fields from outside become a typed request, or a coded error that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from rolebundle.contracts.check import checked
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import UsageError


def request_from(fields: Mapping[str, object]) -> RetrievalRequest:
    """A request from plain fields.

    Raises:
        UsageError: an unknown field, a bad value, or a task that is not text or is empty.
    """
    task = fields.get("task")
    if isinstance(task, str) and any("\ud800" <= character <= "\udfff" for character in task):
        raise UsageError(
            "task_not_text",
            "the task holds bytes or half characters that are not Unicode text",
            "send the task as UTF-8",
        )
    if isinstance(task, str) and not task.strip():
        raise UsageError(
            "empty_task", "the task is empty", "say in words what the agent is about to do"
        )
    request = checked(RetrievalRequest, fields)
    if isinstance(request, RetrievalRequest):
        return request
    first = request[0]
    field = ".".join(str(step) for step in first.place) or "request"
    allowed = ", ".join(RetrievalRequest.__dataclass_fields__)
    raise UsageError("bad_request", f"{field}: {first.message}", f"fields of a request: {allowed}")
