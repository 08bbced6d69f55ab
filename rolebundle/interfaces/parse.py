"""Untyped fields from outside become a typed request, or a coded error that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeVar

from pydantic import ValidationError

from rolebundle.contracts.base import Contract, Mistake, Place, dotted, keys_at, mistakes_in
from rolebundle.contracts.request import ALIASES, RetrievalRequest
from rolebundle.errors import UsageError
from rolebundle.text.references import may_be_stored

R = TypeVar("R", bound=Contract)

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def request_from(fields: Mapping[str, object]) -> RetrievalRequest:
    """A retrieval request from plain fields.

    Raises:
        UsageError: an unknown field, a bad value, or a task that is not text or is empty.
    """
    return parsed(RetrievalRequest, fields)


def parsed(contract: type[R], fields: Mapping[str, object]) -> R:
    """A request of any kind from plain fields. Aliases and camelCase names are accepted.

    Raises:
        UsageError: a field is unknown, has a bad value or is set under two names, or the task is
            not text or is empty. The message suggests the known field that is most similar.
    """
    values = _with_canonical_names(contract, fields)
    for name in ("task", "draft"):
        text = values.get(name)
        if isinstance(text, str) and not may_be_stored(text):
            raise UsageError(
                f"{name}_not_text",
                f"the {name} holds bytes or unpaired surrogates, which are not Unicode text",
                f"send the {name} as UTF-8",
            )
    task = values.get("task")
    if isinstance(task, str) and not task.strip():
        raise UsageError(
            "empty_task", "the task is empty", "say in words what the agent is about to do"
        )
    try:
        return contract.model_validate(values)
    except ValidationError as error:
        raise _refusal(mistakes_in(error, contract)[0], contract) from None


def names_in(text: str) -> list[str]:
    """The names in a list with commas, each once."""
    names = (name.strip() for name in text.split(","))
    return list(dict.fromkeys(name for name in names if name))


def _with_canonical_names(
    contract: type[Contract], fields: Mapping[str, object], place: Place = ()
) -> dict[str, object]:
    """The fields of an object at a place of the contract, and of the objects in it."""
    sources: dict[str, str] = {}
    values: dict[str, object] = {}
    for field, value in fields.items():
        name = canonical_name(field, keys_at(contract, place))
        if name in values:
            raise UsageError(
                "bad_request", f"{field}: is the same field as {sources[name]}", f"give {name} once"
            )
        if isinstance(value, Mapping) and keys_at(contract, (*place, name)):
            value = _with_canonical_names(contract, value, (*place, name))  # noqa: PLW2901
        sources[name], values[name] = field, value
    return values


def canonical_name(field: str, known: Collection[str]) -> str:
    """The name of the field that an alias or a camelCase name means, else the name unchanged."""
    if field in known:
        return field
    snake = _CAPITAL.sub(r"_\1", field).lower()
    if snake in known:
        return snake
    return next((name for name in known if snake in ALIASES.get(name, ())), field)


def _refusal(mistake: Mistake, contract: type[Contract]) -> UsageError:
    field = dotted(mistake.place) or "request"
    keys = keys_at(contract, mistake.place[:1]) if mistake.place else ()
    subject = f"keys of {mistake.place[0]}" if keys else "fields of a request"
    hint = f"{subject}: {', '.join(keys or contract.model_fields) or 'none'}"
    if mistake.kind == "object" and not mistake.place:
        hint = "change one of these fields"
    elif mistake.kind == "value" and mistake.place and not keys:
        known = contract.model_fields.get(str(mistake.place[0]))
        hint = f"{mistake.place[0]}: {known.description}" if known and known.description else hint
    return UsageError("bad_request", f"{field}: {mistake.message}{mistake.guess}", hint)
