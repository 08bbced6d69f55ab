"""Attributes: keys of front matter and properties of a format that have no meaning of their own.

They are words of the index and can be filtered by. They grant nothing and hide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rolebundle.contracts.document import Attributes

_MAX_VALUES = 100
_MAX_KEY_CHARS = 200
_MAX_CHARS = 1000


def flattened(values: Mapping[str, object]) -> Attributes:
    """Attributes of nested values: keys joined by dots, all values of a key in their order.

    Empty values are left out. There are at most 100 values, each of at most 1,000 characters.
    """
    found: dict[str, dict[str, None]] = {}
    for number, (key, text) in enumerate(_texts("", values)):
        if number == _MAX_VALUES:
            break
        found.setdefault(key, {})[text] = None
    return tuple(sorted((key, tuple(texts)) for key, texts in found.items()))


def _texts(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            own = " ".join(str(name).replace(":", " ").split())
            yield from _texts(f"{key}.{own}" if key else own, item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _texts(key, item)
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
        if text and 0 < len(key) <= _MAX_KEY_CHARS:
            yield key, text[:_MAX_CHARS]
