"""Copies of a passage, and which of them stands for the others. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice

from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.lazy import lazy_module
from rolebundle.retrieval.values import Candidate, ranking_order
from rolebundle.retrieval.versions import is_old_by_path, names_version, standing_of, version_of

tokens = lazy_module("rolebundle.text.tokens")

STANDALONE_CHARS = 200
"""A text of at least this many characters says the same under any heading."""


def combine_copies(rows: Iterable[Candidate], task: str) -> list[list[Candidate]]:
    """Write the chunk id of the passage that stands for each copy. Return the groups of copies.

    That passage gets the best score of its copies.

    Copies are passages with the same text, apart from white space and, among files of several
    formats, markup; a short text needs the same headings, too. They are one place in an answer.
    Which one stands for the others is decided by, in this order: the earliest round, so that it
    does not depend on the limit; the higher trust; an internal origin; fewer flags; a path that
    does not name it a copy or an old version; the later date; the better score; the shorter path.
    If several copies have the same standing as that one (:func:`standing_of`), it is the copy of
    the version that the task names, else that of the newest version.

    Superseded candidates are not compared: a newer version of a document may have the same text,
    and must not be rejected as a copy of the old one.
    """
    groups = copies_among(rows, task)
    for copies in groups:
        first = copies[0]
        for row in copies[1:]:
            row.duplicate_of = first.chunk_id
        best = min(copies, key=ranking_order)
        first.round = best.round
        first.raise_to(best.final, f"same text as {best.chunk_id}, which ranked higher")
    return groups


def copies_among(rows: Iterable[Candidate], task: str) -> list[list[Candidate]]:
    """The rows that are not superseded, in groups of copies; the first of each stands for it."""
    # Texts are compared only if their first two words are equal, which is quick to see.
    alike: defaultdict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for row in rows:
        if not row.passage.superseded_by:
            words = re.finditer(r"[^\W_]+", row.passage.content)
            alike[tuple(word[0] for word in islice(words, 2))].append(row)
    groups = [group for group in alike.values() if len(group) == 1]
    for group in alike.values():
        copies: defaultdict[tuple[str, ...], list[Candidate]] = defaultdict(list)
        formats = {row.passage.path.rpartition(".")[2] for row in group}
        for row in group if len(group) > 1 else ():
            text = row.passage.content
            text = tokens.tokens_of(text).line if len(formats) > 1 else " ".join(text.split())
            headings = () if len(text) >= STANDALONE_CHARS else row.passage.headings
            copies[(*headings, text)].append(row)
        groups += (_representative_first(same, task) for same in copies.values())
    return groups


def _representative_first(same: list[Candidate], task: str) -> list[Candidate]:
    ordered = sorted(same, key=_copy_order)
    equal = [row for row in ordered if standing_of(row) == standing_of(ordered[0])]
    first = max(equal, key=lambda row: (names_version(task, row.passage), version_of(row.passage)))
    return [first, *(row for row in ordered if row is not first)]


def _copy_order(row: Candidate) -> tuple[int, int, bool, int, bool, str, float, int, str]:
    document, path = row.passage.document, row.passage.path
    # Dates are ISO 8601 in UTC: complemented, so that the latest comes first.
    # One in the future counts as none.
    known = "" if row.freshness == "undated" else document.updated_at or ""
    date = "".join(chr(0x10FFFF - ord(sign)) for sign in known)
    return (
        row.round,
        TRUST_TIERS.index(document.trust_tier),
        document.origin != "internal",
        len(row.passage.flags),
        is_old_by_path(path),
        date or chr(0x10FFFF),
        -row.final,
        len(path),
        row.chunk_id,
    )
