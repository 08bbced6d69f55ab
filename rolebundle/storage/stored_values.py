"""Encodes values of columns, and reads rows as typed values.

STRICT tables check what is written, not what a damaged page returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rolebundle.contracts.documents import Attributes
from rolebundle.errors import CorpusCorrupt

DAMAGE_HINT = (
    "run `rolebundle corpus doctor`, then `rolebundle corpus doctor --repair` or "
    "`rolebundle corpus restore BACKUP`"
)


def is_moment(text: str) -> bool:
    """Whether a text is a time with a zone, ISO 8601."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=tuple[Any, ...])


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key → its values, both in the order of the pairs."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def damage_error(
    subject: str, code: str = "corpus_corrupt", path: Path | None = None
) -> CorpusCorrupt:
    """The error for something that was read and cannot be what was stored."""
    message = f"the corpus is damaged: {subject} is not what was stored"
    return CorpusCorrupt(code, f"{path}: {message}" if path else message, DAMAGE_HINT)


def selection(kind: type[R], source: str, columns: Mapping[str, str]) -> str:
    """The SELECT statement of the values of a NamedTuple; see :meth:`SqliteFile.select`."""
    fields = ((name, name.rpartition(".")[2]) for name in fields_of(kind))
    names = (columns.get(name) or columns.get(field, field) for name, field in fields)
    return f"SELECT {', '.join(names)} FROM {source}"


def rows_as(kind: type[R], rows: Iterable[Sequence[object]]) -> list[R]:
    """Rows as values of a NamedTuple. Its annotations say what each column holds.

    They are a simple type; ``bool``, stored as 0 or 1; a Literal; ``tuple[str, ...]``, a JSON array
    of strings; ``tuple[int, ...]``, one of numbers as strings; :data:`Attributes`, a JSON object of
    arrays of strings; one of these or None; or another NamedTuple, which takes several columns.

    Raises:
        CorpusCorrupt: a row holds something else.
    """
    named: Any = kind
    columns = fields_of(named)
    if len(columns) == len(named._fields):
        return list(map(named._make, typed(rows, *columns.values())))
    return [_build(named, iter(row)) for row in typed(rows, *columns.values())]


def typed(rows: Iterable[Sequence[object]], *annotations: object) -> list[tuple[Any, ...]]:
    """Rows whose columns hold what these annotations say; see :func:`rows_as`.

    Raises:
        CorpusCorrupt: a row holds something else.
    """
    columns = [_column(annotation) for annotation in annotations]
    conversions = [(n, convert) for n, (_, convert) in enumerate(columns) if convert]
    # Most rows have the same types, so they are looked at once.
    accepted: set[tuple[type, ...]] = set()
    result = []
    try:
        for row in rows:
            found = tuple(map(type, row))
            if found not in accepted:
                for kind, (kinds, _) in zip(found, columns, strict=True):
                    if kind not in kinds:
                        raise TypeError(kind.__name__)
                accepted.add(found)
            values = list(row)
            for number, convert in conversions:
                values[number] = convert(values[number])
            result.append(tuple(values))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damage_error("a stored value") from error
    return result


def _is_record(annotation: object) -> bool:
    return hasattr(annotation, "_fields")


@cache
def fields_of(kind: type[Any]) -> dict[str, object]:
    """The columns of a NamedTuple with their annotations; see :func:`rows_as`.

    Those of a NamedTuple in it have its field and a dot before their name.
    """
    columns: dict[str, object] = {}
    for name, annotation in get_type_hints(kind).items():
        if _is_record(annotation):
            columns |= {f"{name}.{column}": held for column, held in fields_of(annotation).items()}
        else:
            columns[name] = annotation
    return columns


def values_of(record: tuple[Any, ...]) -> list[Any]:
    """The values of a NamedTuple as they are stored, in the order of :func:`fields_of`."""
    values: list[Any] = []
    kind: Any = type(record)
    for value, annotation in zip(record, _annotations(kind), strict=True):
        if not isinstance(value, tuple):
            values.append(value)
        elif _is_record(value):
            values += values_of(value)
        else:
            values.append((json_object if annotation == Attributes else json_array)(value))
    return values


@cache
def _annotations(kind: type[Any]) -> tuple[Any, ...]:
    return tuple(get_type_hints(kind).values())


def _build(kind: type[Any], values: Iterator[object]) -> Any:
    named: Any = kind
    return named._make(
        _build(annotation, values) if _is_record(annotation) else next(values)
        for annotation in _annotations(named)
    )


@cache
def _column(annotation: Any) -> tuple[tuple[type, ...], Callable[[Any], Any] | None]:
    """The types that a column has in SQLite, and how its values are converted, if they are."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation == Attributes:
        return (str,), _attributes
    if origin is tuple:
        return (str,), _strings if inner[0] is str else lambda text: tuple(map(int, _strings(text)))
    if origin is Literal:
        return (str,), {word: word for word in inner}.__getitem__
    if origin is not None:  # or None
        [(types, convert)] = [_column(other) for other in inner if other is not type(None)]
        either = (lambda value: None if value is None else convert(value)) if convert else None
        return (*types, type(None)), either
    is_flag = annotation is bool
    return ((int,), {0: False, 1: True}.__getitem__) if is_flag else ((annotation,), None)


@lru_cache(maxsize=4096)
def _strings(text: str) -> tuple[str, ...]:
    # Cached, because many passages have the same headings, tags and roles.
    if text == "[]":
        return ()
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("no array of strings")
    return tuple(values)


@lru_cache(maxsize=4096)
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
