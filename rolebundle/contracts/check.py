"""Plain values become a contract, or a list of everything that is wrong with them.

What pydantic would do, from the same annotations, without the time that importing it and building
its models takes. A property test holds the two to the same verdict on the same values.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from rolebundle.contracts.constraints import Range, Text

C = TypeVar("C")

Place = tuple[str | int, ...]
Kind = Literal["unknown", "missing", "value", "whole"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: where, of what kind, in words, and what stands there instead.

    ``known`` are the keys or values that would have been right, where they can be listed.
    """

    place: Place
    kind: Kind
    message: str
    given: object = None
    known: tuple[str, ...] = ()


def checked(contract: type[C], values: object) -> C | list[Mistake]:
    """An instance of ``contract`` from plain values, or all mistakes in them.

    A contract may have rules of its own: its ``__post_init__`` raises ValueError.
    """
    mistakes: list[Mistake] = []
    built = _contract(contract, values, (), mistakes)
    return mistakes or built


def keys_at(contract: type, place: Place) -> tuple[str, ...]:
    """The keys that a contract has at a place; none where keys are free."""
    kind: Any = contract
    for step in place:
        if isinstance(step, int):
            continue
        kind = _hints(kind).get(step)
        while get_origin(kind) is not None and not is_dataclass(kind):
            arguments = [one for one in get_args(kind) if one is not type(None)]
            kind = arguments[0] if arguments else None
        if not is_dataclass(kind):
            return ()
    return tuple(field.name for field in fields(kind))


@cache
def _hints(contract: type) -> dict[str, Any]:
    return get_type_hints(contract, include_extras=True)


def _contract(contract: type, values: object, place: Place, mistakes: list[Mistake]) -> Any:
    if not isinstance(values, Mapping):
        mistakes.append(Mistake(place, "value", "must be an object", values))
        return None
    known = {field.name: field for field in _fields(contract)}
    before = len(mistakes)
    for key in values:
        if key not in known:
            mistakes.append(
                Mistake((*place, str(key)), "unknown", "unknown key", values[key], tuple(known))
            )
    arguments: dict[str, Any] = {}
    for name, field in known.items():
        if name in values:
            hint = _hints(contract)[name]
            arguments[name] = _value(hint, values[name], (*place, name), mistakes)
        elif field.default is MISSING and field.default_factory is MISSING:
            mistakes.append(Mistake((*place, name), "missing", "is missing"))
    if len(mistakes) > before:
        return None
    try:
        return contract(**arguments)
    except ValueError as error:
        mistakes.append(Mistake(place, "whole", str(error), values))
        return None


@cache
def _fields(contract: type) -> tuple[Field[Any], ...]:
    return fields(contract)


def _value(hint: Any, value: object, place: Place, mistakes: list[Mistake]) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        kind, *constraints = get_args(hint)
        before = len(mistakes)
        result = _value(kind, value, place, mistakes)
        if len(mistakes) == before and result is not None:
            for constraint in constraints:
                flaw = constraint.flaw(result) if isinstance(constraint, Range | Text) else ""
                if flaw:
                    mistakes.append(Mistake(place, "value", flaw, value))
        return result
    if origin in (Union, types.UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return _value(kinds[0], value, place, mistakes)
    if origin is Literal:
        return _literal(hint, value, place, mistakes)
    if origin in (list, dict):
        return _container(hint, value, place, mistakes)
    if is_dataclass(hint):
        return _contract(cast("type", hint), value, place, mistakes)
    return _scalar(hint, value, place, mistakes)


def _literal(hint: Any, value: object, place: Place, mistakes: list[Mistake]) -> Any:
    allowed = get_args(hint)
    if not isinstance(value, str) or value not in allowed:
        expected = ", ".join(repr(one) for one in allowed)
        mistakes.append(Mistake(place, "value", f"must be one of {expected}", value, allowed))
    return value


def _container(hint: Any, value: object, place: Place, mistakes: list[Mistake]) -> Any:
    if get_origin(hint) is list:
        if not isinstance(value, list):
            mistakes.append(Mistake(place, "value", "must be a list", value))
            return None
        (kind,) = get_args(hint)
        return [_value(kind, item, (*place, n), mistakes) for n, item in enumerate(value)]
    if not isinstance(value, Mapping):
        mistakes.append(Mistake(place, "value", "must be an object", value))
        return None
    key_kind, kind = get_args(hint)
    return {
        _value(key_kind, key, (*place, str(key)), mistakes): _value(
            kind, item, (*place, str(key)), mistakes
        )
        for key, item in value.items()
    }


_NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _scalar(kind: Any, value: object, place: Place, mistakes: list[Mistake]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            mistakes.append(Mistake(place, "value", "must be a finite number", None))
            return None
    if kind is datetime and isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            mistakes.append(
                Mistake(place, "value", "must be an ISO 8601 time, such as 2026-03-01", value)
            )
            return None
        # A time without a zone is UTC, so that an answer does not depend on the machine.
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not fits:
        mistakes.append(Mistake(place, "value", f"must be {_NAMES.get(kind, 'a time')}", value))
        return None
    return value
