"""Whether a text is only a message of an agent or a tool: patterns from a data file, in RE2.

A text is read in pieces: lines and sentences, or the texts of JSON. A piece is a message, stands
beside one, or is content. A file whose content is small beside its messages is no result.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rolebundle.resources import expanded
from rolebundle.scan import linear

_MAX_CONTENT = 400
"""A text with more letters and digits of content is a result."""
_CONTENT_SHARE = 0.5
"""A text with more letters and digits of content for each one of a message is a result."""
_MAX_PIECE = 400
_MAX_TEXT = 100_000
"""How many characters of a text are read."""


class _Kind(NamedTuple):
    name: str
    weight: str
    meant_in: frozenset[str]


def message_in(path: str, text: str, lines: Sequence[str], *, is_code: bool) -> str:
    """The message that is all that a file holds, after its kind; empty if the file holds more.

    Args:
        path: of the file. Some names say that a file is to hold a message, which is a result.
        text: its text.
        lines: the lines of the text that are content, without tags.
        is_code: whether it is a program or settings.
    """
    kinds, matcher = _kinds()
    named = {word.lower() for word in regex("text", "name_part").findall(path)}
    named |= {word.removesuffix("s") for word in named} | {PurePosixPath(path).suffix.lower()}
    markup = regex("text", "call").match(text)
    if markup and not named & words("names", "recorded"):
        return f"a call of a tool: {markup[0]}"
    sizes, first = Counter[str](), ""
    for piece, may_be_message in _pieces(text, lines, is_code=is_code):
        matched = matcher.Match(linear.utf8(piece[:_MAX_PIECE])) if may_be_message else None
        possible = [kinds[number] for number in sorted(matched or ())]
        kind = next((kind for kind in possible if not named & kind.meant_in), None)
        weight = kind.weight if kind else "content"
        sizes[weight] += sum(map(str.isalnum, piece))
        if sizes["content"] > _MAX_CONTENT:
            return ""
        if kind and weight == "message":
            first = first or f"{kind.name}: {piece}"
    is_message = sizes["content"] <= _CONTENT_SHARE * (sizes["message"] + sizes["beside"])
    return first if is_message else ""


@cache
def patterns() -> dict[str, Any]:
    """The data file, with what stands for its names of words."""
    text = Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8")
    return tomllib.loads(expanded(text, tomllib.loads(text)["words"]))


@cache
def regex(table: str, name: str) -> re.Pattern[str]:
    """An expression of the data file, or any of a list."""
    expressions = patterns()[table][name]
    return re.compile(expressions if isinstance(expressions, str) else "|".join(expressions))


@cache
def words(table: str, name: str) -> frozenset[str]:
    """A list of the data file."""
    return frozenset(patterns()[table][name].split())


@cache
def _kinds() -> tuple[list[_Kind], Any]:
    """The kind of each pattern, and what compares a whole piece with all of them."""
    kinds, matcher = [], linear.full_match_set()
    for kind in patterns()["kind"]:
        meant_in = words("names", "recorded").union(kind.get("meant_in", "").split())
        for pattern in kind["patterns"]:
            matcher.Add(f"(?is)(?:{pattern})")
            kinds.append(_Kind(kind["name"], kind.get("weight", "message"), meant_in))
    matcher.Compile()
    return kinds, matcher


def _pieces(text: str, lines: Sequence[str], *, is_code: bool) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, and whether each may be a message."""
    content = "\n".join(lines)[:_MAX_TEXT]
    pairs = dict(regex("text", "pair").findall(content)) if is_code else {}
    value = pairs if len(pairs) > 1 else _value(text) or _value(content)
    if value is not None:
        yield from _json_pieces(value)
        return
    content = regex("text", "goes_on_in_code" if is_code else "goes_on").sub(" ", content)
    content = regex("text", "list").sub(lambda found: found[0].replace("\n", " ") + "\n", content)
    for line in content.splitlines():
        box = "to do: " if regex("text", "open_box").match(line) else ""
        bare = regex("text", "marks").sub(box, regex("text", "emphasis").sub("", line), count=1)
        is_row = line.count("|") > 2  # Of a table, which is content.
        yield from ((piece, not is_row) for piece in _sentences(bare))


def _sentences(text: str) -> Iterator[str]:
    for sentence in regex("text", "sentence_ends").split(text):
        bare = regex("text", "emphasis").sub("", sentence.replace("’", "'"))
        if bare := regex("text", "edges").sub("", bare):
            yield " ".join(bare.split())


def _value(text: str) -> Any:
    """The value of a short text that is JSON, JSON Lines or a Python literal, or ``None``."""
    text = text.strip()
    if len(text) > _MAX_TEXT or not text.startswith(("{", "[", '"')):
        return None
    for parse in (json.loads, lambda text: [*map(json.loads, text.split("\n"))], ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return parse(text)
    return None


def _key(key: str) -> str:
    return re.sub(r"[\W_]", "", key).lower()


def _json_pieces(value: Any, mode: str = "text") -> Iterator[tuple[str, bool]]:
    """The pieces of a value of JSON.

    Args:
        value: the value.
        mode: ``text``; ``data``, which is no message; ``codes``, an answer of a program, in which
            only texts with a space are read; ``error``, of which every text is.
    """
    if isinstance(value, dict):
        keys = {_key(str(key)) for key, inner in value.items() if inner not in (None, "", [], {})}
        kind = _key(str(value.get("type", "")))
        if not keys <= words("keys", "envelope"):
            mode = "data"
        elif mode != "data" and (
            signature := {*keys, kind} & words("keys", "signature")
            or ({"status"} if keys >= {"status", "message"} else set())
        ):
            mode = "codes" if mode == "text" else mode
            yield from ((f"signature {key}", True) for key in signature)
    if isinstance(value, dict | list | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            is_error = mode != "data" and _key(str(key)) in words("keys", "error")
            yield from _json_pieces(inner, "error" if is_error else mode)
    elif isinstance(value, str) and (mode != "codes" or " " in value):
        prefix = "error: " if mode == "error" else ""
        yield from ((prefix + sentence, mode != "data") for sentence in _sentences(value))
