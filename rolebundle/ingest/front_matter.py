"""Front matter at the start of a document: YAML between ``---``, TOML between ``+++``.

YAML is read strictly: no anchors, aliases or tags (alias bombs, object construction), no duplicate
keys, no merge keys. Only ``true`` and ``false`` are booleans, so that ``language: no`` stays
Norwegian. Dates, decimal numbers and ``null`` have their types; all other scalars are strings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache
from typing import Any

from rolebundle.errors import DocumentError
from rolebundle.text.decoding import clean

_MAX_BYTES = 64 * 1024
_MAX_DEPTH = 20
_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_TOML_POSITION = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a document.

    ``declared_at`` is the line after the opening fence, from 1. ``body_index`` is the index of the
    first line after the front matter, from 0.
    """

    declared: Mapping[str, object]
    declared_at: int
    body_index: int


def read_front_matter(
    lines: Sequence[str], path: str, start: int = 0, stop: int | None = None
) -> FrontMatter | None:
    """The front matter that begins at index ``start`` of ``lines``, or None.

    An opening fence without a closing one is a thematic break.

    Raises:
        DocumentError: ``bad_front_matter``, with the path, the line and the reason.
    """
    stop = len(lines) if stop is None else stop
    opening = lines[start].rstrip() if start < stop else ""
    if opening not in _FENCES:
        return None
    closing = _FENCES[opening]
    end = next((i for i in range(start + 1, stop) if lines[i].rstrip() in closing), None)
    if end is None:
        return None
    text = "\n".join(lines[start + 1 : end]) + "\n"
    first_line = start + 2
    if len(text.encode()) > _MAX_BYTES:
        raise _bad(path, first_line, f"longer than {_MAX_BYTES // 1024} KiB")
    parse = _yaml if opening == "---" else _toml
    values = parse(text, path, first_line)
    declared = {_clean_text(key): _normalize(value) for key, value in values.items()}
    return FrontMatter(declared, first_line, end + 1)


def _bad(path: str, line: int, reason: str) -> DocumentError:
    return DocumentError(
        "bad_front_matter",
        f"{path}:{line}: front matter: {reason}",
        "write `key: value` lines between two lines of ---, or TOML between two lines of +++",
    )


def _normalize(value: object) -> object:
    """``value`` with dates as ISO strings, and with cleaned strings."""
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, list):
        return [_normalize(item) for item in value]
    if isinstance(value, dict):
        return {_clean_text(key): _normalize(item) for key, item in value.items()}
    return value


def _clean_text(value: str) -> str:
    return clean(value)[0]


def _toml(text: str, path: str, first_line: int) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        position = _TOML_POSITION.search(str(error))
        line = first_line + int(position[1]) - 1 if position else first_line
        reason = _TOML_POSITION.sub("", str(error)).strip()
        raise _bad(path, line, f"not valid TOML: {reason}") from error


def _yaml(text: str, path: str, first_line: int) -> dict[str, Any]:
    import yaml

    loader = _loader()
    try:
        _refuse_unsafe(text, path, first_line)
        value = yaml.load(text, Loader=loader)  # a restricted SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise _bad(path, line, f"{error.problem or 'not valid YAML'}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _bad(path, first_line, f"not valid YAML: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad(path, first_line, "not a mapping of keys to values")
    return value


def _refuse_unsafe(text: str, path: str, first_line: int) -> None:
    """Check the parser events before objects are created, because an alias bomb expands then."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        line = first_line + (event.start_mark.line if event.start_mark else 0)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _bad(path, line, "anchors and aliases are not allowed")
        tag = getattr(event, "tag", None)
        if tag:
            raise _bad(path, line, f"the tag {tag} is not allowed")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise _bad(path, line, f"nested more than {_MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@cache
def _loader() -> Any:
    """The strict loader class. Created on first use: importing yaml takes 15 ms."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class StrictLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012

    def resolve(tag: str, pattern: str, first: str) -> None:
        StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)

    def mapping(loader: Any, node: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _error_at(key_node, "a key must be a string")
            key = key_node.value
            if key in result:
                raise _error_at(key_node, f"duplicate key {key!r}")
            result[key] = loader.construct_object(value_node, deep=True)
        return result

    def _error_at(node: Any, reason: str) -> yaml.MarkedYAMLError:
        return yaml.constructor.ConstructorError(None, None, reason, node.start_mark)

    resolve("null", r"^(?:~|null|Null|NULL|)$", "~nN\0")
    resolve("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
    resolve("int", r"^[-+]?[0-9]{1,18}$", "-+0123456789")
    resolve("float", r"^[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]{1,3})?$", "-+0123456789")
    resolve(
        "timestamp",
        r"^\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
        r"(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)?$",
        "0123456789",
    )
    StrictLoader.add_constructor("tag:yaml.org,2002:map", mapping)
    StrictLoader.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))
    return StrictLoader
