"""Which documents are searched: those that `where` matches, and those that policy may allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches
from operator import ge, lt
from typing import NamedTuple

from rolebundle.contracts.documents import CHECKBOX, LINKS, Passage, iso_utc
from rolebundle.contracts.request import Where
from rolebundle.retrieval.filter import (
    path_rules,
    policy_rejection,
    rejects_by_age,
    rejects_other_roles,
)
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage import documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.documents import texts_of
from rolebundle.text.links import leads_to
from rolebundle.text.paths import matches
from rolebundle.text.spellings import key_of
from rolebundle.text.words import first_of

MAX_NAMED_VALUES = 5
"""How many values of a key are named in messages."""

# Times in the corpus are in UTC and of one form, so that they can be compared as texts.
_BOUNDS = {"updated_after": ge, "updated_before": lt}


class Condition(NamedTuple):
    """The condition of one key.

    Attributes:
        field: the field of a document that it looks at.
        holds: whether a document with these values, if any, matches.
        description: the key and its values, for messages.
        values: its values, if they are names or globs.
    """

    field: str
    holds: Callable[[Sequence[str]], bool]
    description: str
    values: Sequence[str] = ()


def conditions(where: Where) -> Iterator[Condition]:
    """The conditions of the keys that are given. A document must meet all of them.

    A name is compared without case. A glob matches the path of the file within its root, or the
    URI. An undated document never matches ``updated_after`` or ``updated_before``.
    """
    for key, value in where:
        if value is None:
            continue
        field, shown, values = key, value, ()
        if key == "attributes":
            lines = [[f"{name}: {text}" for text in texts] for name, texts in value.items()]
            holds, shown = _matches_all(lines), [line for texts in lines for line in texts]
        elif key == "links_to":
            holds = links_to(value)
        elif key == "task":
            holds, shown = _is_one_of([f"{CHECKBOX}: {value}"]), [value]
        elif key in _BOUNDS:
            field, shown = "updated_at", [iso_utc(value)]
            holds = _is_dated(_BOUNDS[key], *shown)
        else:
            holds, values = _matches_glob(value) if key == "path" else _is_one_of(value), value
        yield Condition(field, holds, f"{key} = {first_of(shown, MAX_NAMED_VALUES)}", values)


def _matches_glob(globs: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    return lambda paths: any(matches(glob, path) for path in paths for glob in globs)


def _is_dated(is_met: Callable[[str, str], bool], bound: str) -> Callable[[Sequence[str]], bool]:
    return lambda dates: any(is_met(date, bound) for date in dates)


def _is_one_of(names: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    keys = {key_of(name) for name in names}
    return lambda values: any(key_of(value) in keys for value in values)


def links_to(names: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    """Whether one of a document's attributes is a link to a file with one of these names."""
    links = f"{LINKS}: "
    return lambda lines: any(
        line.startswith(links) and leads_to(line.removeprefix(links), names) for line in lines
    )


def _matches_all(alternatives: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], bool]:
    tests = [_is_one_of(names) for names in alternatives]
    return lambda values: all(holds(values) for holds in tests)


def unmet(where: Where | None, passage: Passage) -> list[Condition]:
    """The conditions that the document of a passage does not meet."""
    if where is None:
        return []
    columns = {"path": passage.path, **passage.document._asdict()}
    return [one for one in conditions(where) if not one.holds(texts_of(one.field, columns))]


def matching_documents(corpus: Corpus, where: Where | None) -> tuple[list[int] | None, str]:
    """The documents that ``where`` matches.

    Returns:
        Their rowids, sorted, or ``None`` if it has no condition; and the keys that exclude
        every document, with their values, which is empty if one matches.
    """
    given = conditions(where) if where else ()
    found = [(one, documents.documents_with(corpus, one.field, one.holds)) for one in given]
    if not found:
        return None, ""
    rowids = sorted(set.intersection(*(matching for _, matching in found)))
    if rowids:
        return rowids, ""
    unmatched = (condition for condition, matching in found if not matching)
    alone = [one.description + _suggestion(corpus, one) for one in unmatched]
    together = " and ".join(condition.description for condition, _ in found)
    return rowids, " or ".join(alone) or f"{together} together"


def _suggestion(corpus: Corpus, condition: Condition) -> str:
    """Which value a condition that no document meets may mean."""
    present = documents.field_values(corpus, condition.field)
    known = {key_of(value): value for value in present}
    for value in condition.values:
        for near in get_close_matches(key_of(value), known, n=1):
            return f" (did you mean {known[near]}?)"
    return ""


def allowed_documents(
    corpus: Corpus, request: ResolvedRequest, within: Collection[int] | None = None
) -> list[int]:
    """The rowids of all documents of which policy may allow a passage.

    Args:
        corpus: an open corpus.
        request: the resolved request.
        within: rowids; no others are returned. ``None`` for all.
    """
    allowed = {
        rowid
        for group in documents.document_groups(
            corpus,
            by_date=rejects_by_age(request) or request.echo.as_of is not None,
            by_role=rejects_other_roles(request),
            by_path=path_rules(request),
        )
        if policy_rejection(group, request) is None
        for rowid in group.rowids
    }
    return sorted(allowed if within is None else allowed.intersection(within))
