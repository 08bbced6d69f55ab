"""What a document says of itself at its very start: YAML between ``---``, TOML between ``+++``.

YAML is read the strict way: no anchors, aliases or tags (alias bombs, object construction), no
key twice, no merge keys. Only ``true`` and ``false`` are booleans, so that ``language: no`` stays
Norwegian, and only dates, decimal numbers and ``null`` are something other than text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from rolebundle.errors import DocumentError
from rolebundle.text.text_decoding import clean

_LIMIT = 64 * 1024
_DEPTH = 20
_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_TOML_PLACE = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a document.

    ``declared_at`` is the 1-based line after the opening fence, ``body`` the index in the lines
    where the document proper begins.
    """

    declared: Mapping[str, object]
    declared_at: int
    body: int


def read_front_matter(
    lines: Sequence[str], path: str, start: int = 0, stop: int | None = None
) -> FrontMatter | None:
    """The front matter that begins at index ``start`` of ``lines``, if there is any.

    An opening fence that is never closed is a thematic break, not front matter.

    Raises:
        DocumentError: ``bad_front_matter``, naming the path, the line and the reason.
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
    if len(text.encode()) > _LIMIT:
        raise _bad(path, first_line, f"longer than {_LIMIT // 1024} KiB")
    parse = _yaml if opening == "---" else _toml
    declared = {_text(key): _plain(value) for key, value in parse(text, path, first_line).items()}
    return FrontMatter(declared, first_line, end + 1)


def _bad(path: str, line: int, reason: str) -> DocumentError:
    return DocumentError(
        "bad_front_matter",
        f"{path}:{line}: front matter: {reason}",
        "write plain `key: value` lines between two lines of ---",
    )


def _plain(value: object) -> object:
    """``value`` with dates as ISO text, and clean text throughout."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_text(key): _plain(item) for key, item in value.items()}
    return value


def _text(value: str) -> str:
    return clean(value)[0]


def _toml(text: str, path: str, first_line: int) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        place = _TOML_PLACE.search(str(error))
        line = first_line + int(place[1]) - 1 if place else first_line
        reason = _TOML_PLACE.sub("", str(error)).strip()
        raise _bad(path, line, f"not valid TOML: {reason}") from error


def _yaml(text: str, path: str, first_line: int) -> dict[str, Any]:
    import yaml

    loader = _loader()
    try:
        _refuse_unsafe(text, path, first_line)
        found = yaml.load(text, Loader=loader)  # a SafeLoader, narrowed further
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise _bad(path, line, f"{error.problem or 'not valid YAML'}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _bad(path, first_line, f"not valid YAML: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _bad(path, first_line, "not a mapping of keys to values")
    return found


def _refuse_unsafe(text: str, path: str, first_line: int) -> None:
    """Look at the events before anything is built: an alias bomb is small until then."""
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
            if depth > _DEPTH:
                raise _bad(path, line, f"nested more than {_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


_loader_class: Any = None


def _loader() -> Any:
    """The strict loader, made on first use: importing yaml costs 15 ms."""
    global _loader_class  # noqa: PLW0603
    if _loader_class is None:
        _loader_class = _make_loader()
    return _loader_class


def _make_loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class StrictLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012

    def resolve(tag: str, pattern: str, first: str) -> None:
        StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)

    def mapping(loader: Any, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _at(key_node, "a key has to be plain text")
            key = key_node.value
            if key in found:
                raise _at(key_node, f"the key {key!r} stands twice")
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    def _at(node: Any, reason: str) -> yaml.MarkedYAMLError:
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
