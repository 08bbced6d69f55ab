"""Encodes values of columns, and checks those that are read.

A damaged page may return what was never stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring

from rolebundle.contracts.document import Attributes
from rolebundle.errors import CorpusCorrupt

DAMAGE_HINT = (
    "run `rolebundle corpus doctor`, then `rolebundle corpus doctor --repair` or "
    "`rolebundle corpus restore BACKUP`"
)


def damaged(subject: str) -> CorpusCorrupt:
    """The error for something that was read and cannot be what was stored."""
    return CorpusCorrupt(
        "corpus_corrupt",
        f"the corpus is damaged: {subject} is not what was stored",
        DAMAGE_HINT,
    )


def check_types(row: Sequence[object], types: Sequence[type], subject: str) -> None:
    """Check a row's types. STRICT tables check what is written, not what a damaged page returns.

    Raises:
        CorpusCorrupt: they are not what the columns hold.
    """
    if [type(column) for column in row] != list(types):
        raise damaged(subject)


def check_rows(rows: Iterable[Sequence[object]], types: Sequence[type], subject: str) -> None:
    """Check the types of rows, as :func:`check_types` does of one."""
    for row in rows:
        check_types(row, types, subject)


def parse_strings(text: str, subject: str) -> tuple[str, ...]:
    """A JSON array of strings as it is stored.

    Raises:
        CorpusCorrupt: it is something else.
    """
    if text == "[]":
        return ()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise damaged(subject)
    return tuple(values)


def parse_attributes(text: str) -> Attributes:
    """A document's attributes as they are stored: a JSON object of arrays of strings.

    Raises:
        CorpusCorrupt: it is something else.
    """
    if text == "{}":
        return ()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not all(
        isinstance(texts, list) and all(isinstance(item, str) for item in texts)
        for texts in values.values()
    ):
        raise damaged("the attributes of a document")
    return tuple((key, tuple(texts)) for key, texts in values.items())


@lru_cache(maxsize=4096)
def json_array(values: tuple[str, ...]) -> str:
    """Strings as they are stored. Cached, because neighbouring chunks share most of theirs."""
    return f"[{', '.join(map(encode_basestring, values))}]"


@lru_cache(maxsize=4096)
def json_object(attributes: Attributes) -> str:
    """Attributes as they are stored."""
    return json.dumps(dict(attributes), ensure_ascii=False)
