"""JSON the strict way, with lines.

No key twice, no NaN or Infinity, no number of more than 100 digits, no more than 100 levels. The
C parser checks; only where a line has to be named does ``parse_located`` walk the text in Python.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, NoReturn

DEEPEST = 100
_LONGEST_NUMBER = 100
_SPACE = re.compile(r"[ \t\n\r]*")


class NotStrictError(ValueError):
    """Why a text is not strict JSON; ``at`` is an offset, or −1 where it is not known."""

    def __init__(self, reason: str, at: int = -1) -> None:
        super().__init__(reason)
        self.at = at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise NotStrictError(f"the key {twice[:80]!r} stands twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictError(f"{name} is not JSON")


def _number(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise NotStrictError(f"a number of more than {_LONGEST_NUMBER} digits")
    return int(text)


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_number
)


def parse_strict(text: str) -> Any:
    """The value of ``text``.

    Raises:
        NotStrictError: it is not strict JSON.
    """
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise NotStrictError(error.msg, error.pos) from error
    except RecursionError as error:
        raise NotStrictError(f"nested more than {DEEPEST} levels deep") from error
    # Counting brackets is cheap, and rules out nearly every text.
    if text.count("[") + text.count("{") > DEEPEST and _deeper_than(value, DEEPEST):
        raise NotStrictError(f"nested more than {DEEPEST} levels deep")
    return value


def _deeper_than(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


class LocatedObject(dict[str, Any]):
    """A JSON object that knows the offsets of each value's first and last character."""

    __slots__ = ("at", "spans")

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.spans: dict[str, tuple[int, int]] = {}


class LineIndex:
    """From offsets in a text, whose lines end in newlines, to 1-based lines."""

    def __init__(self, text: str) -> None:
        self._breaks = [i.start() for i in re.finditer("\n", text)]

    def line(self, at: int) -> int:
        """The line on which the character at ``at`` stands."""
        return bisect_right(self._breaks, at - 1) + 1


def parse_located(text: str) -> Any:
    """The value of ``text``, its objects as ``LocatedObject``.

    Raises:
        NotStrictError: it is not strict JSON; the offset is known.
    """
    value, at = _value(text, _skip(text, 0), 0)
    at = _skip(text, at)
    if at < len(text):
        raise NotStrictError("more text after the end of the value", at)
    return value


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    first = text[at : at + 1]
    if first in {"{", "["} and depth >= DEEPEST:
        raise NotStrictError(f"nested more than {DEEPEST} levels deep", at)
    if first == "{":
        return _object(text, at, depth + 1)
    if first == "[":
        return _array(text, at, depth + 1)
    try:
        return _decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise NotStrictError(error.msg, error.pos) from error
    except NotStrictError as error:
        raise NotStrictError(str(error), at) from error


def _object(text: str, at: int, depth: int) -> tuple[LocatedObject, int]:
    found = LocatedObject(at)
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise NotStrictError("expected a key in double quotes", at)
        key_at = at
        key, at = _value(text, at, depth)
        if key in found:
            raise NotStrictError(f"the key {key[:80]!r} stands twice", key_at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise NotStrictError("expected ':' after a key", at)
        start = _skip(text, at + 1)
        found[key], end = _value(text, start, depth)
        found.spans[key] = (start, end - 1)
        at = _skip(text, end)
        if text[at : at + 1] == "}":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise NotStrictError("expected ',' or '}'", at)
        at = _skip(text, at + 1)


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, at, depth)
        found.append(value)
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise NotStrictError("expected ',' or ']'", at)
        at = _skip(text, at + 1)
