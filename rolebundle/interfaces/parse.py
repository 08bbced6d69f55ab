"""Untyped fields from outside become a typed request, or a coded error that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import UsageError


def request_from(fields: Mapping[str, object]) -> RetrievalRequest:
    """A request from plain fields.

    Raises:
        UsageError: an unknown field, a bad value, or a task without a character to search for.
    """
    task = fields.get("task")
    if isinstance(task, str) and any("\ud800" <= character <= "\udfff" for character in task):
        raise UsageError(
            "task_not_text",
            "the task holds bytes or half characters that are not Unicode text",
            "send the task as UTF-8",
        )
    try:
        request = RetrievalRequest.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "request"
        allowed = ", ".join(RetrievalRequest.model_fields)
        raise UsageError(
            "bad_request", f"{field}: {first['msg'].lower()}", f"fields of a request: {allowed}"
        ) from None
    if not request.task.strip():
        raise UsageError(
            "empty_task", "the task is empty", "say in words what the agent is about to do"
        )
    return request
