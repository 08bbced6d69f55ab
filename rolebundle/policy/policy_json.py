"""Strict JSON for overlays and policy files. It reports every problem and its place. Pure.

Python's ``json`` keeps the last of two equal keys, and accepts NaN and integers of any length. With
any of these a policy could have another meaning than its author intended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from rolebundle.contracts.base import writable
from rolebundle.contracts.mistakes import Mistake, Place, did_you_mean, dotted

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_DIGITS = 18

_NOT_JSON = 'write plain JSON, as `rolebundle overlay show ROLE` prints it under "overlay"'

Values = dict[str, object]


class Problem(NamedTuple):
    """A problem of a file. ``place`` is the dotted path of the key; empty for the whole file."""

    place: str
    code: str
    message: str
    hint: str = ""


class _Flaw(NamedTuple):
    """Replaces a value that is not accepted, so that the place of the problem is known."""

    message: str
    hint: str = _NOT_JSON


def parse(data: bytes) -> Values | list[Problem]:
    """Return the JSON object in the bytes, or all problems.

    A byte order mark at the start is ignored, because some editors write one.
    """
    if len(data) > MAX_BYTES:
        return [_bad_text(f"is longer than {MAX_BYTES // 1024} KiB", "keep the role's words only")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start}"
        return [_bad_text(reason, "save the file with the encoding UTF-8")]
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=lambda name: _Flaw(f"{name} is not JSON", "write a finite number"),
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return [Problem(place, "bad_json", f"is not JSON: {error.msg}", _NOT_JSON)]
    except RecursionError:
        return [_too_deep("")]
    if not isinstance(value, dict):
        # If the whole value is a flaw, that is a better message than that it is not an object.
        return [*_flaws(value)] or [_bad_text("must be one JSON object, {…}", _NOT_JSON)]
    return [*_flaws(value)] or value


def problem_of(mistake: Mistake, null_hint: str = "correct the value") -> Problem:
    """A mistake in the values of a file, with the next step.

    Args:
        mistake: the mistake.
        null_hint: the next step if the value is null.
    """
    place, allowed, value = dotted(mistake.place), mistake.allowed, mistake.value
    if mistake.kind == "unknown":
        hint = f"allowed keys: {', '.join(allowed)}"
        return Problem(place, "unknown_key", f"unknown key{mistake.guess}", hint)
    if mistake.kind == "missing":
        return Problem(place, "missing_key", "is missing", "add the key")
    if mistake.kind == "object":
        return Problem(place, "bad_value", mistake.message, "correct the values")
    message = mistake.message
    if allowed and isinstance(value, str):
        message += did_you_mean(value, allowed)
    hint = null_hint if value is None else "correct the value"
    return Problem(place, "bad_value", f"{message} (it is {json_text(value)})", hint)


def _object(pairs: list[tuple[str, object]]) -> Values | _Flaw:
    values: Values = {}
    for key, value in pairs:
        if key in values:
            return _Flaw(f"has the key {json_text(key)} twice", "keep one of the two")
        values[key] = value
    return values


def _integer(digits: str) -> int | _Flaw:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        return _Flaw(f"is an integer of more than {MAX_DIGITS} digits", "write a smaller number")
    return int(digits)


def _number(text: str) -> float | _Flaw:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return _Flaw("is a number out of range", "write a finite number")
    return value


def _flaws(value: object) -> Iterator[Problem]:
    """Return every flaw in a parsed value. Not recursive, so that the stack cannot overflow."""
    waiting: list[tuple[Place, object]] = [((), value)]
    while waiting:
        place, value = waiting.pop()
        if len(place) >= MAX_DEPTH and isinstance(value, dict | list):
            yield _too_deep(dotted(place[:3]))
            return
        if isinstance(value, _Flaw):
            yield Problem(dotted(place), "bad_json", value.message, value.hint)
        elif isinstance(value, str):
            yield from _text_flaws(place, value)
        elif isinstance(value, list):
            waiting.extend(((*place, n), item) for n, item in reversed([*enumerate(value)]))
        elif isinstance(value, dict):
            for key in value:
                yield from _text_flaws(place, key)
            waiting.extend(((*place, key), item) for key, item in reversed([*value.items()]))


def _text_flaws(place: Place, text: str) -> Iterator[Problem]:
    # SQLite accepts neither as a parameter, and an unpaired surrogate cannot be encoded as UTF-8.
    if not text.isascii() and writable(text) != text:
        yield Problem(dotted(place), "bad_json", "has an unpaired surrogate", _NOT_JSON)
    elif "\x00" in text:
        yield Problem(dotted(place), "bad_json", r"has the character \u0000", "take it out")


def _bad_text(message: str, hint: str) -> Problem:
    return Problem("", "bad_json", message, hint)


def _too_deep(place: str) -> Problem:
    message = f"is nested more than {MAX_DEPTH} levels deep"
    return Problem(place, "bad_json", message, "an overlay needs 5 levels at most")


def json_text(value: object) -> str:
    """Return a value as JSON text, in at most 80 characters."""
    # TOML has dates, too.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return writable(text if len(text) <= 80 else f"{text[:79]}…")
