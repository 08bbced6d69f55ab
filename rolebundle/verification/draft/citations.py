"""Whether the citations of a sentence are true. Pure.

A citation is true if the evidence has what it names, if the lines are those of the passage, and if
the sentence shares content with what it cites. Sharing content is little: it does not mean that the
sentence is supported.
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
from rolebundle.verification.draft.statements import content_words, words_of_passage

MIN_SHARE = 0.2
"""The least share of a sentence's content words that what it cites must have."""
FOUND_SHARE = 0.5
"""A passage with this share of them is where the sentence comes from."""


class CitationResult(NamedTuple):
    """What was found out about a citation."""

    code: FindingCode
    passage: Passage | None = None
    note: str | None = None
    remedy: str | None = None


def check_citation(
    citation: Citation, prose: str, named: Sequence[Passage], passages: Sequence[Passage]
) -> CitationResult:
    """Check a citation.

    Args:
        citation: what is checked.
        prose: its sentence without citations.
        named: the passages that it names.
        passages: all passages that the sentence may be from.
    """
    words = content_words(prose)
    best = max(passages, key=lambda p: len(words & words_of_passage(p)), default=None)
    if best is None or len(words & words_of_passage(best)) < max(1, FOUND_SHARE * len(words)):
        best = None
    if not named:
        remedy = f"Cite {best.locator}, if that is meant." if best else "Remove it, or cite a passage."
        note = f"the evidence has no passage {citation.target[:200]}"
        return CitationResult("unknown_citation", best, note, remedy)
    if citation.kind == "locator":
        start, end = map(int, citation.target.rpartition(":")[2].split("-"))
        first, last = min(p.start_line for p in named), max(p.end_line for p in named)
        if not first <= start <= end <= last:
            place = f"{named[0].path}:{first}-{last}"
            return CitationResult("wrong_place", named[0], f"the passage is {place}", f"Cite {place}.")
    shared = words & frozenset().union(*map(words_of_passage, named))
    if len(shared) >= MIN_SHARE * len(words) or is_unspaced(prose):
        return CitationResult("cited", named[0])
    if best is not None:
        note = f"its words are at {best.locator}"
        return CitationResult("wrong_place", best, note, f"Cite {best.locator}.")
    if language_of(prose, "en") != language_of(named[0].content, "en"):
        note = "the sentence and the passage are in different languages"
        return CitationResult("unchecked_language", named[0], note, "Have a person check it.")
    note = "the passage has next to none of the sentence's words"
    return CitationResult("unrelated_citation", named[0], note, "Cite the passage that it is from.")


def titled(prose: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages of a document whose title stands beside a quote: it is cited by its name.

    A title of one word counts only in parentheses.
    """
    return [
        passage for passage in passages
        if (title := passage.document.title.strip())
        and re.search(
            rf"(?<!\w){re.escape(title)}(?!\w)" if " " in title else rf"\(\s*{re.escape(title)}\s*\)",
            prose, re.IGNORECASE,
        )
    ]  # fmt: skip
