"""Strict JSON: no duplicate keys, no NaN or Infinity, bounded numbers and bounded nesting.

``parse_strict`` uses Python's C parser. ``parse_located`` is slower and written in Python; it also
gives the offset of every value, for readers whose citations name lines.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from math import isfinite
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Levels of nested objects and arrays."""
MAX_DIGITS = 400
"""Characters of an integer, with its sign."""
_SPACE = re.compile(r"[ \t\n\r]*")


class NotStrictError(ValueError):
    """Why a text is not strict JSON. ``at`` is the offset of the error, or −1 if it is unknown."""

    def __init__(self, reason: str, at: int = -1) -> None:
        super().__init__(reason)
        self.at = at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        [(duplicate, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise NotStrictError(f"the key {duplicate[:80]!r} occurs twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise NotStrictError(f"the number {text[:20]} is out of range")
    return number


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotStrictError(f"a number of more than {MAX_DIGITS} digits")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_refuse_constant,
    parse_int=_integer,
    parse_float=_finite,
)


def parse_strict(text: str) -> Any:
    """The value of ``text``.

    Raises:
        NotStrictError: it is not strict JSON.
    """
    if text.startswith("\ufeff"):
        raise NotStrictError("begins with a byte order mark (BOM)", 0)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotStrictError(error.msg, error.pos) from error
    except RecursionError as error:
        raise NotStrictError(f"nested more than {MAX_DEPTH} levels deep") from error
    # Counting brackets is fast and clears nearly every text.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise NotStrictError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def _is_too_deep(value: Any, depth: int = 0) -> bool:
    if not isinstance(value, dict | list):
        return False
    members = value.values() if isinstance(value, dict) else value
    return depth >= MAX_DEPTH or any(_is_too_deep(member, depth + 1) for member in members)


class LocatedObject(dict[str, Any]):
    """A JSON object that knows the offsets of each value's first and last character."""

    __slots__ = ("at", "spans")

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.spans: dict[str, tuple[int, int]] = {}


def line_index(text: str) -> Callable[[int], int]:
    """Offset of a character → its line, from 1, in a text whose lines end in a newline."""
    breaks = [i.start() for i in re.finditer("\n", text)]
    return lambda at: bisect_right(breaks, at - 1) + 1


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
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if text[at : at + 1] in {"{", "["}:
        if depth >= MAX_DEPTH:
            raise NotStrictError(f"nested more than {MAX_DEPTH} levels deep", at)
        return _container(text, at, depth + 1)
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise NotStrictError(error.msg, error.pos) from error
    except NotStrictError as error:
        raise NotStrictError(str(error), at) from error


def _container(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The object or array that begins at ``at``, and where it ends."""
    members, items, is_object = LocatedObject(at), list[Any](), text[at] == "{"
    close = "}" if is_object else "]"
    at = _skip(text, at + 1)
    mark = text[at : at + 1]
    while mark != close:
        if is_object:
            key, at = _key(text, at, members)
        start = at
        value, end = _value(text, start, depth)
        if is_object:
            members[key] = value
            members.spans[key] = (start, end - 1)
        else:
            items.append(value)
        at = _skip(text, end)
        mark = text[at : at + 1]
        if mark == ",":
            at = _skip(text, at + 1)
        elif mark != close:
            raise NotStrictError(f"expected ',' or '{close}'", at)
    return members if is_object else items, at + 1


def _key(text: str, at: int, members: LocatedObject) -> tuple[str, int]:
    """The key at ``at``, and where its value begins."""
    if text[at : at + 1] != '"':
        raise NotStrictError("expected a key in double quotes", at)
    key, end = _value(text, at, 0)
    if key in members:
        raise NotStrictError(f"the key {key[:80]!r} occurs twice", at)
    end = _skip(text, end)
    if text[end : end + 1] != ":":
        raise NotStrictError("expected ':' after a key", end)
    return key, _skip(text, end + 1)
