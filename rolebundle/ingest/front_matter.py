"""Front matter at the start of a document: YAML between ``---``, TOML between ``+++``.

All scalars are texts as they were written. Front matter that cannot be read costs a document
nothing but the values that cannot be read, unless it may declare what governs the document: then
the document is refused, so that a typing error does not remove a limit.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import Any, cast

import yaml

from rolebundle.contracts.ingest import METADATA_KEYS, utc_text
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.authority import folded_key, governing_key
from rolebundle.ingest.parsed import Block, ParsedDocument, title_in
from rolebundle.resources import data_file
from rolebundle.text.decoding import cleaned, cleaned_values, one_line

_MAX_BYTES = 64 * 1024
_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_TOML_POSITION = re.compile(r"\(at line (\d+), column \d+\)")
# A key at the beginning of a line, and what separates keys and values in it.
_KEY = re.compile(r"""["']?\w[^:=#\[\]{}]*(?::(?!\S)|=)""")
_SEPARATOR = re.compile(r"[:=]")
_BEFORE_KEY = re.compile(r"""[{}\[\],?"'\n]""")
_OUR_KEYS = frozenset(map(folded_key, METADATA_KEYS))
_NOT_YAML = "not valid YAML"


class _Unreadable(Exception):
    """Front matter that is not valid. ``line`` counts from 0, after the opening fence."""

    def __init__(self, reason: str, line: int = 0, detail: str = "") -> None:
        super().__init__(reason)
        self.line = line
        self.detail = detail


def front_matter(
    lines: Sequence[str], path: str, start: int = 0, stop: int | None = None
) -> tuple[ParsedDocument, int]:
    """What the front matter at the beginning of ``lines[start:stop]`` tells of a document.

    That is what it declares, from the line after the opening fence on; what a person wrote in it;
    and notes on what could not be read. Return it with the index of the first line after it.

    An opening fence without a closing one is a thematic break. So are two fences around a text that
    does not begin with a key.

    Raises:
        DocumentError: ``bad_front_matter``, with the path, the line and the reason.
    """
    without = ParsedDocument(declared_at=start + 1), start
    stop = len(lines) if stop is None else stop
    opening = lines[start].rstrip() if start < stop else ""
    if opening not in _FENCES:
        return without
    closing = (i for i in range(start + 1, stop) if lines[i].rstrip() in _FENCES[opening])
    end = next(closing, None)
    if end is None:
        return without
    own = lines[start + 1 : end]
    text = "\n".join(own) + "\n"
    first_line = start + 2
    is_yaml = opening == "---"
    notes: tuple[str, ...] = ()
    try:
        if len(text.encode(errors="replace")) > _MAX_BYTES:
            raise _Unreadable(f"longer than {_MAX_BYTES // 1024} KiB")
        values = _yaml(text) if is_yaml else _toml(text)
    except _Unreadable as problem:
        line = first_line + problem.line
        if governing := _governing_key_in(text):
            reason = f"{problem}, and it may declare {governing}"
            step = "write `key: value` lines between lines of ---, or TOML between lines of +++"
            raise DocumentError(
                "bad_front_matter",
                f"{path}:{line}: front matter: {reason}",
                with_detail(step, problem.detail),
            ) from problem
        first = next((line for line in own if line.strip() and not line.startswith("#")), "")
        if not _KEY.match(first):
            return without
        values = dict(_line_by_line(own)) if is_yaml and len(text) <= _MAX_BYTES else {}
        result = "so it was read line by line" if values else "so it was ignored"
        note = f"{path}:{line}: front matter: {problem}, {result}"
        notes = (with_detail(note, problem.detail),)
    declared = {cleaned(key): cleaned_values(value) for key, value in values.items()}
    blocks = tuple(_blocks(lines, start + 1, end))
    return ParsedDocument(blocks, (), declared, first_line, notes=notes), end + 1


def with_blocks(
    front: ParsedDocument, blocks: tuple[Block, ...], notes: tuple[str, ...], **fields: Any
) -> ParsedDocument:
    """The document of what :func:`front_matter` has read and of the blocks below it."""
    notes, inferred = (*notes, *front.notes), {"title": title_in(blocks)}
    blocks = (*front.blocks, *blocks)
    return replace(front, blocks=blocks, inferred=inferred, notes=notes, **fields)


_MACHINE_KEY = re.compile("|".join(data_file(__file__, "keys.toml")["machine"].split()))
# Two words, or a number such as one of a telephone or a door. From the start of a word only: from
# each letter a long one would take minutes.
_OF_PERSON = re.compile(r"(?<!\w)[\d_]*[^\W\d_]\w*[\s,]+(?:-\s+)?\w|(?:\d\D?){3}|@")
_PLACE = re.compile(r"[\"'\s]*\S*/\S*\s*")


def _blocks(lines: Sequence[str], start: int, end: int) -> list[Block]:
    """What a person wrote between the fences, without keys that govern or have a meaning to us.

    Blocks are apart from the text and from each other, so that no passage has the lines between.
    """
    blocks: list[Block] = []
    is_open = False
    starts = [i for i in range(start, end) if _KEY.match(lines[i])]
    for first, last in pairwise([*starts, end]):
        key, _, rest = lines[first].replace("=", ":", 1).partition(":")
        key, value = key.strip(" \t\"'"), "\n".join((rest, *lines[first + 1 : last]))
        letters = folded_key(key)
        is_ours = letters in _OUR_KEYS or governing_key(key) or _MACHINE_KEY.fullmatch(letters)
        is_shown = not is_ours and bool(_OF_PERSON.search(value)) and not _PLACE.fullmatch(value)
        is_shown = is_shown and not utc_text(value.strip("\"' \t\n"))
        if is_shown:
            top = blocks.pop().start_line - 1 if is_open else first
            anchor = f"front matter {len(blocks) + 1}" if blocks else "front matter"
            block = Block("paragraph", "\n".join(lines[top:last]).rstrip(), top + 1, last)
            end_line = top + 1 + block.text.count("\n")
            blocks.append(block._replace(end_line=end_line, anchor=anchor))
        is_open = is_shown
    return blocks


def _toml(text: str) -> dict[str, object]:
    try:
        # Numbers and dates as texts.
        values = json.dumps(tomllib.loads(text, parse_float=str), default=str)
        return cast(dict[str, object], json.loads(values, parse_int=str))
    except (RecursionError, ValueError) as error:
        position = _TOML_POSITION.search(str(error))
        reason = _TOML_POSITION.sub("", str(error)).strip()
        line = int(position[1]) - 1 if position else 0
        raise _Unreadable("not valid TOML", line, reason) from error


def _yaml(text: str) -> dict[str, object]:
    """The values by key. Of keys that govern nothing, the last one counts."""
    try:
        _check_depth(text)
        node: Any = yaml.compose(text, Loader=_LOADER)
        values = node and _value(node, count(), 0)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        detail = getattr(error, "problem", None) or str(error)
        raise _Unreadable(_NOT_YAML, mark.line if mark else 0, detail) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise _Unreadable("not a mapping of keys to values")
    if "<<" in values:
        # Its value may have any key.
        raise _Unreadable("merge keys are not read")
    known: set[str] = set()
    for key, _ in node.value:
        if key.value in known and governing_key(key.value):
            raise _Unreadable(f"duplicate key {cleaned(key.value)!r}", key.start_mark.line)
        known.add(key.value)
    return values


def _governing_key_in(text: str) -> str:
    """The first governing key that a text may declare, or an empty string."""
    for before in _SEPARATOR.split(text)[:-1]:
        words = _BEFORE_KEY.split(before.rstrip("\"' \t\n"))[-1].strip()
        if found := governing_key(words) or governing_key(words.rpartition(" ")[2]):
            return found
    return ""


def _line_by_line(lines: Sequence[str]) -> Iterator[tuple[str, object]]:
    """The keys of invalid YAML, each with its value, or with the text after it."""
    starts = [i for i, line in enumerate(lines) if _KEY.match(line)]
    for first, end in pairwise([*starts, len(lines)]):
        entry = "\n".join(lines[first:end])
        try:
            values = _yaml(entry.expandtabs(2))
        except _Unreadable:
            key, _, value = entry.partition(":")
            values = {key.strip(" \t\"'"): one_line(value).strip("\"'")}
        yield from values.items()


# -- plain yaml --
#
# YAML as plain values: texts as they were written, ``None``, lists and mappings with text keys.
#
# No type is guessed, so that ``version: 1.10`` stays ``1.10`` and ``language: no`` is Norwegian.
# Tags are ignored, so that no object is constructed. Aliases are followed, but all values together
# are limited, so that an alias bomb is an error.


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_MAX_DEPTH = 20
_MAX_VALUES = 20_000


def _check_depth(text: str) -> None:
    """Check that values are not nested too deep. The C parser would take all of the stack."""
    depth = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            problem = f"nested more than {_MAX_DEPTH} levels deep"
            raise _Unreadable(_NOT_YAML, event.start_mark.line, problem)


def _value(node: yaml.Node, numbers: Iterator[int], depth: int) -> object:
    """The value of a node. ``numbers`` counts all values; aliases may nest them deeper."""
    if next(numbers) >= _MAX_VALUES or depth > _MAX_DEPTH:
        problem = f"more than {_MAX_VALUES} values, or too deep ones"
        raise _Unreadable(_NOT_YAML, node.start_mark.line, problem)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, numbers, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise _Unreadable(_NOT_YAML, node.start_mark.line, "a key must be a text")
        return {key.value: _value(item, numbers, depth + 1) for key, item in node.value}
    return None if node.tag == _NULL else node.value
