"""Encodes values of columns, and reads rows as typed values.

STRICT tables check what is written, not what a damaged page returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from json.encoder import encode_basestring
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rolebundle.contracts.document import Attributes
from rolebundle.errors import CorpusCorrupt

DAMAGE_HINT = (
    "run `rolebundle doctor`, then `rolebundle doctor --repair` or `rolebundle restore BACKUP`"
)

R = TypeVar("R", bound=tuple[Any, ...])
_Reader = Callable[[Any], Any]
"""Turns the value of a column into that of a field. It raises ValueError or TypeError."""


def damaged(subject: str) -> CorpusCorrupt:
    """The error for something that was read and cannot be what was stored."""
    return CorpusCorrupt(
        "corpus_corrupt",
        f"the corpus is damaged: {subject} is not what was stored",
        DAMAGE_HINT,
    )


def records(kind: type[R], rows: Iterable[Sequence[object]]) -> list[R]:
    """Rows as values of a NamedTuple. Its annotations say what each column holds.

    They are a simple type; ``bool``, stored as 0 or 1; a Literal; ``tuple[str, ...]``, a JSON array
    of strings; ``tuple[int, ...]``, one of numbers as strings; :data:`Attributes`, a JSON object of
    arrays of strings; one of these or None; or another NamedTuple, which takes several columns.

    Raises:
        CorpusCorrupt: a row holds something else.
    """
    read = _record_reader(kind)
    try:
        return [read(iter(row)) for row in rows]
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise damaged(f"a value for {kind.__name__}") from error


def typed(rows: Iterable[Sequence[object]], *types: object) -> list[tuple[Any, ...]]:
    """Rows whose columns hold what these annotations say; see :func:`records`.

    Raises:
        CorpusCorrupt: a row holds something else.
    """
    readers = [_reader(annotation) for annotation in types]
    try:
        return [
            tuple(read(value) for read, value in zip(readers, row, strict=True)) for row in rows
        ]
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise damaged("a row of the corpus") from error


@cache
def _record_reader(kind: type[Any]) -> Callable[[Iterator[object]], Any]:
    fields = [
        _record_reader(annotation)
        if hasattr(annotation, "_fields")
        else _column_reader(_reader(annotation))
        for annotation in get_type_hints(kind).values()
    ]
    return lambda columns: kind(*[read(columns) for read in fields])


def _column_reader(read: _Reader) -> Callable[[Iterator[object]], Any]:
    return lambda columns: read(next(columns))


@cache
def _reader(annotation: Any) -> _Reader:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation == Attributes:
        return _attributes
    if origin is tuple:
        return _strings if inner[0] is str else lambda text: tuple(map(int, _strings(text)))
    if origin is Literal:
        return lambda value: inner[inner.index(value)]
    if origin is UnionType or origin is not None:
        [read] = [_reader(other) for other in inner if other is not type(None)]
        return lambda value: None if value is None else read(value)
    if annotation is bool:
        return lambda value: bool((0, 1).index(value))
    return _plain(annotation)


def _plain(kind: type[Any]) -> _Reader:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise TypeError(type(value).__name__)
        return value

    return read


def _strings(text: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("no array of strings")
    return tuple(values)


def _attributes(text: str) -> Attributes:
    if text == "{}":
        return ()
    values = json.loads(text)
    if not all(
        isinstance(texts, list) and all(isinstance(item, str) for item in texts)
        for texts in values.values()
    ):
        raise TypeError("no object of arrays of strings")
    return tuple((key, tuple(texts)) for key, texts in values.items())


@lru_cache(maxsize=4096)
def json_array(values: tuple[str, ...]) -> str:
    """Strings as they are stored. Cached, because neighbouring chunks share most of theirs."""
    return f"[{', '.join(map(encode_basestring, values))}]"


@lru_cache(maxsize=4096)
def json_object(attributes: Attributes) -> str:
    """Attributes as they are stored."""
    return json.dumps(dict(attributes), ensure_ascii=False)
