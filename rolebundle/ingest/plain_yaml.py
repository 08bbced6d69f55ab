"""YAML as plain values: texts as they were written, ``None``, lists and mappings with text keys.

No type is guessed, so that ``version: 1.10`` stays ``1.10`` and ``language: no`` is Norwegian. Tags
are ignored, so that no object is constructed. Aliases are followed, but all values together are
limited, so that an alias bomb is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_DEPTH = 20
_MAX_VALUES = 20_000


class YamlError(Exception):
    """A text that cannot be read as YAML, and the line of the error, from 0."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


class TooMuch(YamlError):
    """A text that is nested too deep, or has too many values."""


class YamlMapping(NamedTuple):
    """The values of a mapping, and its keys that occur more than once, with their lines from 0.

    The last value of such a key counts.
    """

    values: dict[str, object]
    repeated: tuple[tuple[str, int], ...]


def read_mapping(text: str) -> YamlMapping | None:
    """The mapping that a text is; ``None`` if it is a list or a single value.

    Raises:
        YamlError: it is not YAML, or has a key that is no text.
    """
    try:
        return _Reader(yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(error.problem or "not valid", mark.line if mark else 0) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(str(error)) from error


class _Reader:
    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.count = 0
        self.anchors: dict[str, tuple[object, int]] = {}
        """The value of each anchor, and how many values it consists of."""
        self.repeated: list[tuple[str, int]] = []

    def document(self) -> YamlMapping | None:
        next(self.events)  # the start of the stream
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return YamlMapping({}, ())
        value = self.value(next(self.events), 0)
        next(self.events)  # the end of the document
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            raise YamlError("several documents", event.start_mark.line)
        if value is None:
            return YamlMapping({}, ())
        return YamlMapping(value, tuple(self.repeated)) if isinstance(value, dict) else None

    def value(self, event: Any, depth: int) -> object:
        self.count += 1
        line, anchor, before = event.start_mark.line, event.anchor, self.count
        if isinstance(event, yaml.AliasEvent):
            # An anchor inside of its own value is not known yet.
            if anchor not in self.anchors:
                raise YamlError(f"unknown alias {anchor!r}", line)
            value, size = self.anchors[anchor]
            self.count += size
        elif isinstance(event, yaml.ScalarEvent):
            is_plain = event.tag is None and event.implicit[0]
            value = None if is_plain and event.value in _NULLS else event.value
        elif depth >= _MAX_DEPTH:
            raise TooMuch(f"nested more than {_MAX_DEPTH} levels deep", line)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self.list_of(depth + 1)
        else:
            value = self.mapping_of(depth + 1)
        if self.count > _MAX_VALUES:
            raise TooMuch(f"more than {_MAX_VALUES} values", line)
        if anchor:
            self.anchors[anchor] = value, self.count - before + 1
        return value

    def list_of(self, depth: int) -> list[object]:
        values = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            values.append(self.value(event, depth))
        return values

    def mapping_of(self, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = event.start_mark.line
            if not isinstance(event, yaml.ScalarEvent):
                raise YamlError("a key must be a text", line)
            if event.value in values and depth == 1:
                self.repeated.append((event.value, line))
            values[event.value] = self.value(next(self.events), depth)
        return values
