"""Whether the citations of a sentence are true. Pure.

A citation is true if the evidence has what it names, if the lines are those of the passage, and if
its words do not stand in another passage much rather than in what it cites.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import FindingCode
from rolebundle.text.languages import is_unspaced
from rolebundle.text.words import language_of
from rolebundle.verification.draft.marks import Citation
from rolebundle.verification.draft.statements import best_match

MIN_WORDS = 4
"""With fewer content words a citation cannot be compared with what it names."""
FOUND_SHARE = 0.6
"""A passage in which this share of them stands together is where the sentence comes from ..."""
LESS = 0.4
"""... if what is cited has less than this part of it."""


class CitationResult(NamedTuple):
    """What was found out about a citation."""

    code: FindingCode
    passage: Passage | None = None
    note: str | None = None


def check_citation(
    citation: Citation, prose: str, named: Sequence[Passage], passages: Sequence[Passage]
) -> CitationResult:
    """Check a citation.

    Args:
        citation: what is checked.
        prose: what it is cited for: the sentence up to it, from the citation before.
        named: the passages that it names.
        passages: all passages that the sentence may be from.
    """
    named = [_cited_part(citation, passage) for passage in named]
    best, own = best_match(prose, passages), best_match(prose, named)
    place = best.passage if best.share >= FOUND_SHARE else None
    if not named:
        note = f"the evidence has no passage {citation.target[:200]}"
        note += f"; the words of the sentence are at {place.locator}" if place else ""
        return CitationResult("unknown_citation", place, note)
    if citation.kind == "locator":
        start, end = map(int, citation.target.rpartition(":")[2].split("-"))
        first, last = min(p.start_line for p in named), max(p.end_line for p in named)
        if not first <= start <= end <= last:
            note = f"the passage is {named[0].path}:{first}-{last}"
            return CitationResult("wrong_place", named[0], note)
    if own.words < MIN_WORDS or is_unspaced(prose):
        return CitationResult("cited", named[0])
    if place and own.share < LESS * best.share:
        return CitationResult(
            "wrong_place", place, f"the words of the sentence are at {place.locator}"
        )
    if own.share or own.words < 2 * MIN_WORDS:
        return CitationResult("cited", named[0])
    if language_of(prose, "en") != language_of(named[0].content, "en"):
        note = "the sentence and the passage are in different languages"
        return CitationResult("unchecked_language", named[0], note)
    note = "the passage has none of the sentence's words"
    return CitationResult("unrelated_citation", named[0], note)


def _cited_part(citation: Citation, passage: Passage) -> Passage:
    """A passage with the text of the cited lines alone, if its text is the file's own."""
    lines = passage.content.split("\n")
    if citation.kind != "locator" or len(lines) != passage.end_line - passage.start_line + 1:
        return passage
    start, end = map(int, citation.target.rpartition(":")[2].split("-"))
    first, last = max(0, start - passage.start_line), max(0, end - passage.start_line + 1)
    return passage._replace(content="\n".join(lines[first:last]))


def titled(prose: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages of a document whose title stands beside a quote: it is cited by its name.

    A title of one word counts only in parentheses.
    """
    return [
        passage
        for passage in passages
        if (name := re.escape(passage.document.title.strip()))
        and re.search(
            rf"(?<!\w){name}(?!\w)" if " " in name else rf"\(\s*{name}\s*\)", prose, re.IGNORECASE
        )
    ]
