"""Strict JSON for overlays and policy files, and what is wrong in one. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from rolebundle.contracts.base import writable
from rolebundle.contracts.mistakes import Mistake, Place, did_you_mean, dotted
from rolebundle.text.strict_json import NotStrictError, parse_located, parse_strict

MAX_BYTES = 1024 * 1024
MAX_DIGITS = 18

_NOT_JSON = 'write plain JSON, as `rolebundle overlay show ROLE` prints it under "overlay"'

Values = dict[str, object]


class Problem(NamedTuple):
    """A problem of a file. ``place`` is the dotted path of the key; empty for the whole file."""

    place: str
    code: str
    message: str
    hint: str = ""


def parse(data: bytes) -> Values | list[Problem]:
    """Return the JSON object in the bytes, or what is wrong.

    A byte order mark at the start is ignored, because some editors write one.
    """
    if len(data) > MAX_BYTES:
        return [_bad_text(f"is longer than {MAX_BYTES // 1024} KiB", "keep the role's words only")]
    try:
        text = data.decode("utf-8-sig")
        value = parse_strict(text, max_digits=MAX_DIGITS, require_finite=True)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start}"
        return [_bad_text(reason, "save the file with the encoding UTF-8")]
    except NotStrictError as error:
        return [Problem(_place_of(error, text), "bad_json", f"is not JSON: {error}", _NOT_JSON)]
    if not isinstance(value, dict):
        return [_bad_text("must be one JSON object, {…}", _NOT_JSON)]
    return [*_text_flaws((), value)] or value


def _place_of(error: NotStrictError, text: str) -> str:
    """The line and the column of an error; empty if it is not known."""
    at = error.at
    if at < 0:
        try:
            parse_located(text)
        except NotStrictError as located:
            at = located.at
    if at < 0:
        return ""
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


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


def _text_flaws(place: Place, value: object) -> Iterator[Problem]:
    """What SQLite does not accept in a text: an unpaired surrogate is not UTF-8 either."""
    if isinstance(value, str):
        if not value.isascii() and writable(value) != value:
            yield Problem(dotted(place), "bad_json", "has an unpaired surrogate", _NOT_JSON)
        elif "\x00" in value:
            yield Problem(dotted(place), "bad_json", r"has the character \u0000", "take it out")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _text_flaws(place, key)
            yield from _text_flaws((*place, key), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _text_flaws((*place, number), item)


def _bad_text(message: str, hint: str) -> Problem:
    return Problem("", "bad_json", message, hint)


def json_text(value: object) -> str:
    """Return a value as JSON text, in at most 80 characters."""
    # TOML has dates, too.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return writable(text if len(text) <= 80 else f"{text[:79]}…")
