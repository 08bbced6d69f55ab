"""Newer versions of a file: by its name, or because a document says that it replaces it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache

from rolebundle.contracts.dates import date_in_name, is_month
from rolebundle.contracts.documents import STATEMENT, Passage
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.values import Candidate, ranking_order
from rolebundle.retrieval.versions import (
    ABOUT_AS_GOOD,
    MAX_CHECKED_FOR_NEWER,
    is_draft_by_path,
    is_older,
    may_displace,
    naming_words,
    newer_by_path,
    recency_by_path,
)
from rolebundle.text.languages import STOP_WORDS, stop_words_of
from rolebundle.text.spellings import folded

_LABEL = re.compile(r"(?<![^\W_])([^\W\d_]+)[-_ .]?(\d+[a-z]?)(?![^\W_])", re.IGNORECASE)
_VERSION = re.compile(r"(?<![^\W_])v(?:er(?:sion)?)?[-_. ]?(\d+(?:\.\d+)*)", re.IGNORECASE)
_DAY = re.compile(r"\d\d?\.? ([^\W\d_]{3,})")
_FUNCTION_WORDS = stop_words_of((*STOP_WORDS,))


def put_newer_versions_first(ranked: list[Candidate], task: str) -> None:
    """Put a newer version of the file of each of the first three passages above that passage.

    It answers about as well, may displace the older one, and the role does not prefer that one. The
    task does not name the older one.
    """
    passages = [row.passage for row in ranked]
    for first in ranked[:MAX_CHECKED_FOR_NEWER]:
        stating = stated_versions(first.passage, passages)
        ids = {p.document.document_id for p in stating if not names(task, first.passage, p)}
        rows = [
            row
            for row in ranked
            if row.can_be_selected
            and row.final >= ABOUT_AS_GOOD * first.final
            and row.metadata_score >= first.metadata_score
            and may_displace(row, first)
        ]
        newer = newer_by_path(first.passage, [row.passage.path for row in rows], task)
        rows = [r for r in rows if r.passage.path in newer or r.passage.document.document_id in ids]
        rows.sort(key=lambda row: (recency_by_path(row.passage.path), row.final))
        if rows and rows[-1].final < first.final:
            by = "name" if rows[-1].passage.path in newer else "text"
            reason = f"newer, by its {by}, than {first.chunk_id}"
            rows[-1].set_final(math.nextafter(first.final, math.inf), reason)
            ranked.sort(key=ranking_order)


def stated_versions(first: Passage, others: Iterable[Passage]) -> list[Passage]:
    """A passage of each document that says that it replaces that of a passage, or which it names.

    They are trusted as much, no older, and no drafts. What is untrusted says nothing of others, and
    what is from outside replaces only what has the same sender. None if a declaration supersedes
    the first one.
    """
    others = [*others]
    if first.superseded_by or not any(map(_statements, (first, *others))):
        return []
    known = {p.document.document_id: p for p in (*others, first)}
    rows = [p for p in known.values() if p is not first and _may_say(p, first)]
    return [p for p in rows if _says_it_replaces(p, first, known.values())]


def names(text: str, named: Passage, other: Passage) -> bool:
    """Whether a text names the document of a passage, and not another one."""
    return _matches(text, named, other) > 0


def _statements(passage: Passage) -> list[tuple[str, str]]:
    texts = (text for key, own in passage.document.attributes if key == STATEMENT for text in own)
    return [(kind, words) for kind, _, words in (text.partition(" ") for text in texts)]


def _may_say(new: Passage, old: Passage) -> bool:
    document = new.document
    senders = [dict(p.document.attributes).get("from") for p in (new, old)]
    is_from_same = senders[0] is not None and senders[0] == senders[1]
    return (
        "untrusted" not in (document.trust_tier, document.origin)
        and not is_draft_by_path(new.path)
        and not is_older(new, old)
        and may_displace(Candidate(new), Candidate(old))
        and (document.origin != "external" or is_from_same)
    )


def _says_it_replaces(new: Passage, old: Passage, known: Iterable[Passage]) -> bool:
    def is_said(kind: str, by: Passage, named: Passage) -> bool:
        rivals = [p for p in known if _stem(p) not in (_stem(named), _stem(by))]
        return any(
            said == kind and best > 0 and all(_matches(words, p, by) < best for p in rivals)
            for said, words in _statements(by)
            for best in [_matches(words, named, by)]
        )

    return is_said("replaces", new, old) or is_said("replaced_by", old, new)


def _matches(text: str, named: Passage, other: Passage) -> int:
    """How much of a name of a document a text has; 0 if this does not tell it from another one.

    What tells it is a label that the other one does not have, such as ``SR-14``; its version; its
    date; or all words of its title or of the name of its file, but for those of the other one's. If
    that one has all of them, all are needed, and at least two. But for labels, both documents, or
    this one and the text, must have a word in common.
    """
    date, other_date = ((p.document.updated_at or "")[:10] for p in (named, other))
    dates, versions = {*_dates_in(text, other_date[:4])}, {*_VERSION.findall(text)}
    written = {*words_of(text), *dates}
    other_names = f"{other.document.title} {_stem(other)}"
    labels = _labels(text) - _labels(other_names)
    found = 0
    for name in (named.document.title, _stem(named)):
        words = {word for word in words_of(name) if len(word) > 1 or word.isdecimal()}
        telling = words.difference(words_of(other_names)) or (words if len(words) > 1 else {name})
        related = naming_words(words) - _FUNCTION_WORDS & written.union(words_of(other_names))
        is_told = (
            date in dates or telling <= written or versions.intersection(_VERSION.findall(name))
        )
        if not labels.isdisjoint(_labels(name)) or (related and is_told):
            found = max(found, 1 + len(words & written) + (date in dates))
    return found


@lru_cache(maxsize=4096)
def _labels(text: str) -> frozenset[str]:
    """Words with a number: ``SR-14`` as ``sr14``. No dates and versions."""
    return frozenset(
        f"{word}{number}".casefold()
        for word, number in _LABEL.findall(folded(text))
        if naming_words([word.casefold()]) - _FUNCTION_WORDS
        and not re.fullmatch(r"(?:19|20)\d\d", number)
    )


def _dates_in(text: str, year: str) -> list[str]:
    """The date of a text; without one the days in it, of the given year."""
    days = (found[0] for found in _DAY.finditer(text) if is_month(found[1].casefold()))
    date = date_in_name(text)
    return [date] if date else [*filter(None, (date_in_name(f"{day} {year}") for day in days))]


def _stem(passage: Passage) -> str:
    return passage.path.rpartition("/")[2].rpartition(".")[0]
