"""Untyped fields from outside become a typed request, or a coded error that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from rolebundle.contracts.base import Contract
from rolebundle.contracts.mistakes import Mistake, mistakes_in
from rolebundle.contracts.request import ALIASES, RetrievalRequest
from rolebundle.errors import UsageError

R = TypeVar("R", bound=Contract)

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def request_from(fields: Mapping[str, object]) -> RetrievalRequest:
    """A retrieval request from plain fields.

    Raises:
        UsageError: an unknown field, a bad value, or a task that is not text or is empty.
    """
    return parsed(RetrievalRequest, fields)


def parsed(contract: type[R], fields: Mapping[str, object]) -> R:
    """A request of any kind from plain fields; names that models guess are taken for the real ones.

    Raises:
        UsageError: an unknown field, named with the nearest known one, a bad value, one field by
            two names, or a task that is not text or is empty.
    """
    named = _named(contract, fields)
    task = named.get("task")
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
    try:
        return contract.model_validate(named)
    except ValidationError as error:
        mistake = mistakes_in(error, contract)[0]
        raise _refusal(mistake, tuple(contract.model_fields)) from None


def _named(contract: type[Contract], fields: Mapping[str, object]) -> dict[str, object]:
    known = contract.model_fields
    given: dict[str, str] = {}
    named: dict[str, object] = {}
    for field, value in fields.items():
        name = field
        if name not in known:
            snake = _HUMP.sub(r"_\1", field).lower()
            name = snake if snake in known else ALIASES.get(snake, field)
            name = name if name in known else field
        if name in named:
            raise UsageError(
                "bad_request",
                f"{field}: means {name}, which {given[name]} gives already",
                f"give {name} once",
            )
        given[name], named[name] = field, value
    return named


def _refusal(mistake: Mistake, known: tuple[str, ...]) -> UsageError:
    from difflib import get_close_matches

    field = ".".join(str(step) for step in mistake.place) or "request"
    near = get_close_matches(field, known, n=1) if mistake.kind == "unknown" else []
    guess = f"; did you mean {near[0]}?" if near else ""
    return UsageError(
        "bad_request",
        f"{field}: {mistake.message}{guess}",
        f"fields of a request: {', '.join(known) or 'none'}",
    )
