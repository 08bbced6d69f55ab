"""Copies: passages with the same headings and the same text, whitespace aside. Pure.

Copies are one place in an answer. The one that stands for the others has the higher trust, then a
path that does not name it a copy or an old version, then the later date, then the shorter path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.retrieval.candidate import Candidate

_COPY_PATH = re.compile(
    r"(?:^|[/ _.(-])(?:copy|kopie|backup|bak|old|archived?|previous|deprecated)(?=$|[/ _.)-])",
    re.IGNORECASE,
)


def mark_duplicates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in order; a copy has the chunk id of the passage that stands for it.

    Superseded candidates are not compared: a newer version of a document may have the same text,
    and must not be rejected as a copy of the old one.
    """
    groups: defaultdict[tuple[str, ...], list[Passage]] = defaultdict(list)
    for candidate in candidates:
        if not candidate.is_superseded:
            groups[_text_of(candidate.passage)].append(candidate.passage)
    original = {
        passage.chunk_id: first.chunk_id
        for passages in groups.values()
        for first in [min(passages, key=_order)]
        for passage in passages
        if passage is not first
    }
    return [
        candidate._replace(duplicate_of=original.get(candidate.chunk_id))
        for candidate in candidates
    ]


def copies_of(chunk_id: str, candidates: Iterable[Candidate]) -> list[Passage]:
    """The copies that a passage stands for."""
    return [candidate.passage for candidate in candidates if candidate.duplicate_of == chunk_id]


def _text_of(passage: Passage) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in (*passage.headings, passage.content))


def _order(passage: Passage) -> tuple[int, bool, str, int, str]:
    """The sort key of copies: the one that stands for the others comes first."""
    document = passage.document
    # Dates are ISO 8601 in UTC: complemented, so that the latest comes first.
    date = "".join(chr(0x10FFFF - ord(sign)) for sign in document.updated_at or "")
    return (
        TRUST_TIERS.index(document.trust_tier),
        bool(_COPY_PATH.search(passage.path)),
        date or chr(0x10FFFF),
        len(passage.path),
        passage.chunk_id,
    )
