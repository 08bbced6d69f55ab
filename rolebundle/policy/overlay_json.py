"""What stands in an overlay file: strict JSON, merging child over parent, and what is wrong. Pure.

Python's ``json`` keeps the last of two equal keys, reads NaN and builds integers of any length. In
a policy each of these would let a file mean something other than what its author reads in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from rolebundle.contracts.mistakes import Mistake, Place, keys_at, mistakes_in
from rolebundle.contracts.overlay import Overlay

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_DIGITS = 18

# These say which overlay it is, so a child never inherits them.
_OWN_KEYS = ("role_id", "version", "extends")
_NOT_JSON = 'write plain JSON, as `rolebundle overlay show ROLE` prints it under "overlay"'
_NULL_HINT = (
    "leave the key out; null only removes what the overlay named by `extends` declares under "
    "the same name"
)

Values = dict[str, object]


class Problem(NamedTuple):
    """One thing that is wrong with an overlay file, and where."""

    place: str
    code: str
    message: str
    hint: str = ""


class _Flaw(NamedTuple):
    """Stands in the parsed value where the text was not acceptable, so that it has a place."""

    message: str
    hint: str = _NOT_JSON


def parse(data: bytes) -> Values | list[Problem]:
    """The JSON object in the bytes, or everything that keeps them from being one.

    A byte order mark at the very start is passed over: some editors write one, and it means
    nothing.
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
        # A flaw at the very top is the more exact answer than that it is no object.
        return [*_flaws(value)] or [_bad_text("must be one JSON object, {…}", _NOT_JSON)]
    return [*_flaws(value)] or value


def merge(parent: Mapping[str, object], child: Mapping[str, object]) -> Values:
    """An overlay over the one that it extends, both as they stand in their files.

    JSON Merge Patch (RFC 7396): objects merge key by key, everything else replaces, and null
    removes the parent's key. It differs in one point: a null that names neither a key of the
    parent nor one of the format is kept, so that validation finds the slip.
    """
    inherited = {key: value for key, value in parent.items() if key not in _OWN_KEYS}
    return _merged(inherited, child, ())


def validate(values: Values) -> Overlay | list[Problem]:
    """The overlay, or all that the contract has against it."""
    try:
        return Overlay.model_validate(values)
    except ValidationError as error:
        return [_explained(mistake) for mistake in mistakes_in(error, Overlay)]


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that is most like the one given, as a question; empty where none is."""
    # Only a file that is wrong needs it, and a one-shot retrieval waits for every import.
    from difflib import get_close_matches

    near = get_close_matches(name[:200], known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _object(pairs: list[tuple[str, object]]) -> Values | _Flaw:
    values: Values = {}
    for key, value in pairs:
        if key in values:
            return _Flaw(f"has the key {_shown(key)} twice", "keep one of the two")
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
    """Every flaw in a parsed value. Walks with a list, so that depth cannot overflow a stack."""
    waiting: list[tuple[Place, object]] = [((), value)]
    while waiting:
        place, value = waiting.pop()
        if len(place) >= MAX_DEPTH and isinstance(value, dict | list):
            yield _too_deep(_dotted(place[:3]))
            return
        if isinstance(value, _Flaw):
            yield Problem(_dotted(place), "bad_json", value.message, value.hint)
        elif isinstance(value, str):
            yield from _text_flaws(place, value)
        elif isinstance(value, list):
            waiting.extend(((*place, n), item) for n, item in reversed([*enumerate(value)]))
        elif isinstance(value, dict):
            for key in value:
                yield from _text_flaws(place, key)
            waiting.extend(((*place, key), item) for key, item in reversed([*value.items()]))


def _text_flaws(place: Place, text: str) -> Iterator[Problem]:
    # Neither can be bound to an SQL statement, and the first cannot even be written as UTF-8.
    if _writable(text) != text:
        yield Problem(_dotted(place), "bad_json", "holds half a surrogate pair", _NOT_JSON)
    elif "\x00" in text:
        yield Problem(_dotted(place), "bad_json", r"holds the character \u0000", "take it out")


def _merged(parent: Mapping[str, object], child: Mapping[str, object], place: Place) -> Values:
    merged = dict(parent)
    for key, value in child.items():
        if isinstance(value, dict):
            below = parent.get(key)
            merged[key] = _merged(below if isinstance(below, dict) else {}, value, (*place, key))
        elif value is not None:
            merged[key] = value
        elif key in parent:
            del merged[key]
        elif key not in keys_at(Overlay, place):
            merged[key] = None
    return merged


def _explained(mistake: Mistake) -> Problem:
    place, allowed, value = _dotted(mistake.place), mistake.allowed, mistake.value
    if mistake.kind == "unknown":
        guess = nearest(str(mistake.place[-1]), allowed)
        hint = f"allowed keys: {', '.join(allowed)}"
        return Problem(place, "unknown_key", f"unknown key{guess}", hint)
    if mistake.kind == "missing":
        return Problem(place, "missing_key", "is missing", "add the key")
    if mistake.kind == "object":
        return Problem(place, "bad_value", mistake.message, "correct the values")
    message = mistake.message
    if allowed and isinstance(value, str):
        message += nearest(value, allowed)
    hint = _NULL_HINT if value is None else "correct the value"
    return Problem(place, "bad_value", f"{message} (it is {_shown(value)})", hint)


def _bad_text(message: str, hint: str) -> Problem:
    return Problem("", "bad_json", message, hint)


def _too_deep(place: str) -> Problem:
    message = f"is nested more than {MAX_DEPTH} levels deep"
    return Problem(place, "bad_json", message, "an overlay needs 5 levels at most")


def _dotted(place: Place) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    # A key may be as long as the file.
    return _writable(text if len(text) <= 200 else f"{text[:199]}…")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _writable(text if len(text) <= 80 else f"{text[:79]}…")


def _writable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
