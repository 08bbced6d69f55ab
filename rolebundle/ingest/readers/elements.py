"""Names, numbers and switches in the elements of XML."""

from __future__ import annotations

from math import isfinite
from typing import Any

RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ON = frozenset(("1", "true"))
"""How an attribute says yes."""
_MAX_INTEGER = 2_000_000_000


def number_in(text: str | None, default: float = 0) -> float:
    """The number that a text is; ``default`` if it is none, as with a unit."""
    try:
        number = float(text or "")
    except ValueError:
        return default
    return number if isfinite(number) else default


def integer_in(text: str | None, default: int = 0) -> int:
    """The whole number that a text is, up to two billion; ``default`` if it is none."""
    return int(min(max(number_in(text, default), -_MAX_INTEGER), _MAX_INTEGER))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; empty for an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
