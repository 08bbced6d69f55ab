"""The conditions of ``where``: which documents are searched. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from operator import ge, lt
from typing import NamedTuple

from rolebundle.contracts.documents import Passage, iso_utc
from rolebundle.contracts.request import Where
from rolebundle.storage.documents import texts_of
from rolebundle.text.paths import matches, suggest_glob
from rolebundle.text.words import first_of

MAX_NAMED_VALUES = 5
"""So many values of a key are named in messages."""

# Times in the corpus are in UTC and of one form, so that their order is that of the texts.
_BOUNDS = {"updated_after": ge, "updated_before": lt}

Values = Sequence[str]
"""The values of one field of a document; empty if it has none."""


class Condition(NamedTuple):
    """The condition of one key.

    Attributes:
        key: the key.
        field: the field of a document that it looks at.
        holds: whether a document with these values matches.
        wanted: the key and its values, for messages.
        values: its values, if they are names or globs.
    """

    key: str
    field: str
    holds: Callable[[Values], bool]
    wanted: str
    values: Sequence[str] = ()


def conditions(where: Where) -> Iterator[Condition]:
    """The conditions of the keys that are given. A document must meet all of them.

    A name is compared without case. A glob matches the path of the file within its root, or the
    URI. An undated document meets no bound of the date.
    """
    for key, value in where:
        if value is None:
            continue
        if key == "attributes":
            lines = [[f"{name}: {text}" for text in texts] for name, texts in value.items()]
            wanted = _described(key, [line for texts in lines for line in texts])
            yield Condition(key, key, _matches_all(lines), wanted)
        elif key in _BOUNDS:
            date = iso_utc(value)
            is_dated = _is_dated(_BOUNDS[key], date)
            yield Condition(key, "updated_at", is_dated, _described(key, [date]))
        else:
            holds = _matches_glob(value) if key == "path" else _is_named(value)
            yield Condition(key, key, holds, _described(key, value), value)


def with_suggestion(condition: Condition, present: Sequence[str]) -> str:
    """What a condition that no document meets wants, and what it may mean.

    Args:
        condition: the condition.
        present: the values that documents have in its field.
    """
    folded = {name.casefold(): name for name in present}
    for value in condition.values:
        if condition.key == "path":
            suggestion = suggest_glob(value, present) or _respelled(value, present)
        else:
            near = get_close_matches(value.casefold(), folded, n=1)
            suggestion = folded[near[0]] if near else ""
        if suggestion:
            return f"{condition.wanted} (did you mean {suggestion}?)"
    return condition.wanted


def _respelled(glob: str, paths: Sequence[str]) -> str:
    """The glob in the most similar first folder, if it matches one of the paths there."""
    folder, slash, rest = glob.partition("/")
    folders = sorted({path.partition("/")[0] for path in paths if "/" in path})
    for near in get_close_matches(folder, folders, n=1) if slash else ():
        candidate = f"{near}/{rest}"
        if any(matches(candidate, path) for path in paths):
            return candidate
    return ""


def _matches_glob(globs: Sequence[str]) -> Callable[[Values], bool]:
    return lambda paths: any(matches(glob, path) for path in paths for glob in globs)


def _is_dated(is_met: Callable[[str, str], bool], bound: str) -> Callable[[Values], bool]:
    return lambda dates: any(is_met(date, bound) for date in dates)


def _is_named(names: Sequence[str]) -> Callable[[Values], bool]:
    folded = {name.casefold() for name in names}
    return lambda values: any(value.casefold() in folded for value in values)


def _matches_all(alternatives: Sequence[Sequence[str]]) -> Callable[[Values], bool]:
    conditions = [_is_named(names) for names in alternatives]
    return lambda values: all(holds(values) for holds in conditions)


def _described(key: str, values: Sequence[str]) -> str:
    return f"{key} = {first_of(values, MAX_NAMED_VALUES)}"


def unmet(where: Where | None, passage: Passage) -> list[Condition]:
    """The conditions that the document of a passage does not meet."""
    if where is None:
        return []
    columns = {"path": passage.path, **passage.document._asdict()}
    return [
        condition
        for condition in conditions(where)
        if not condition.holds(texts_of(condition.field, columns))
    ]
