"""Whether the citations of a draft are true. Pure.

A citation is true if the evidence has what it names, if the lines are those of the passage, and if
the sentence shares content with what it cites. Sharing content is little: it does not mean that the
sentence is supported, which the other checks look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding, FindingCode, Span
from rolebundle.text.languages import is_unspaced, latin_language, non_latin_language
from rolebundle.text.sentences import topic_words
from rolebundle.verification.draft.evidence import cited_lines
from rolebundle.verification.draft.findings import shorten
from rolebundle.verification.draft.parse import Draft, DraftCitation

MIN_SHARE = 0.2
"""The least share of a sentence's content words that what it cites must have."""
FOUND_SHARE = 0.5
"""A passage with this share of them is where the sentence comes from."""

Named = Mapping[DraftCitation, Sequence[Passage]]
"""Citation → the passages that it names; none if there are none in the evidence."""


class _Outcome(NamedTuple):
    """What is wrong with a citation, or nothing."""

    code: FindingCode
    passage: Passage | None = None
    note: str | None = None
    remedy: str | None = None


def check_citations(
    draft: Draft, passages: Sequence[Passage], named: Named, *, required: bool
) -> list[Finding]:
    """A finding for each citation; if they are required, also for each sentence without one.

    Args:
        draft: the parsed draft.
        passages: all passages that the draft may be from.
        named: what the citations name.
        required: whether each sentence with content needs a citation.
    """
    words = _Words(draft)
    findings = [
        _finding(draft, citation, _outcome(citation, passages, named.get(citation, ()), words))
        for citation in draft.citations
    ]
    if required:
        findings += [_uncited(draft, span.start, span.end) for span in uncited_sentences(draft)]
    return findings


def uncited_sentences(draft: Draft) -> list[Span]:
    """The sentences with content and without a citation."""
    cited = {citation.sentence for citation in draft.citations}
    return [
        Span(start=sentence.start, end=sentence.end)
        for number, sentence in enumerate(draft.sentences)
        if sentence.has_content and number not in cited
    ]


class _Words:
    """The content words of sentences, without their citations."""

    def __init__(self, draft: Draft) -> None:
        self._texts = draft.texts()
        citing = {citation.sentence for citation in draft.citations}
        self._words = {number: topic_words(self._texts[number]) for number in citing}
        self._best: dict[int, Passage | None] = {}

    def text(self, sentence: int) -> str:
        """A sentence with citations, without them."""
        return self._texts[sentence]

    def best(self, sentence: int, passages: Sequence[Passage]) -> Passage | None:
        """The passage that a sentence is probably from; always asked with the same passages."""
        if sentence not in self._best:
            best, most = None, FOUND_SHARE
            for passage in passages:
                share = self.share(sentence, words_of_passage(passage))
                if share > most or (share == most and best is None):
                    best, most = passage, share
            self._best[sentence] = best
        return self._best[sentence]

    def share(self, sentence: int, words: frozenset[str]) -> float:
        """The share of a sentence's words that are among others; 1 if it has none."""
        own = self._words[sentence]
        return len(own & words) / len(own) if own else 1.0


def _outcome(
    citation: DraftCitation, passages: Sequence[Passage], named: Sequence[Passage], words: _Words
) -> _Outcome:
    sentence = citation.sentence
    if not named:
        place = words.best(sentence, passages)
        return _Outcome(
            "unknown_citation",
            place,
            f"the evidence has no passage {shorten(citation.target)}",
            f"Cite {place.locator}, if that is meant."
            if place
            else "Remove it, or cite a passage.",
        )
    if is_unspaced(words.text(sentence)):
        return _Outcome("cited", named[0])
    lines = cited_lines(citation.target) if citation.kind == "locator" else None
    first, last = min(p.start_line for p in named), max(p.end_line for p in named)
    if lines is not None and not first <= lines.start <= lines.end <= last:
        return _Outcome(
            "wrong_place",
            named[0],
            f"the passage is in the lines {first}-{last}",
            f"Cite {named[0].path}:{first}-{last}.",
        )
    cited = frozenset[str]().union(
        *(_words_at(passage, lines.start, lines.end) if lines else words_of_passage(passage)
          for passage in named)
    )  # fmt: skip
    if words.share(sentence, cited) >= MIN_SHARE:
        return _Outcome("cited", named[0])
    place = words.best(sentence, passages)
    if place is not None:
        return _Outcome(
            "wrong_place", place, f"its words are at {place.locator}", f"Cite {place.locator}."
        )
    if _language(words.text(sentence)) != _language(named[0].content):
        return _Outcome(
            "unchecked_language",
            named[0],
            "the sentence and the passage are in different languages",
            "Have a person check it.",
        )
    return _Outcome(
        "unrelated_citation",
        named[0],
        "the passage has next to none of the sentence's words",
        "Cite the passage that the sentence is from, or remove it.",
    )


@lru_cache(maxsize=1024)
def words_of_passage(passage: Passage) -> frozenset[str]:
    """The content words of a passage with its title and headings."""
    return topic_words("\n".join((passage.document.title, *passage.headings, passage.content)))


def _words_at(passage: Passage, start: int, end: int) -> frozenset[str]:
    """The content words of some lines of a passage; of all if its text is not the file's own."""
    lines = passage.content.split("\n")
    if len(lines) != passage.end_line - passage.start_line + 1:
        return words_of_passage(passage)
    part = lines[max(0, start - passage.start_line) : end - passage.start_line + 1]
    return topic_words("\n".join((passage.document.title, *passage.headings, *part)))


def _language(text: str) -> str:
    return non_latin_language(text) or latin_language(text)


def _finding(draft: Draft, citation: DraftCitation, outcome: _Outcome) -> Finding:
    passage = outcome.passage
    return Finding(
        check="citations",
        code=outcome.code,
        fails=outcome.code != "cited",
        span=Span(start=citation.start, end=citation.end),
        text=shorten(draft.text[citation.start : citation.end]),
        chunk_id=passage.chunk_id if passage else None,
        locator=passage.locator if passage else None,
        note=outcome.note,
        remedy=outcome.remedy,
    )


def _uncited(draft: Draft, start: int, end: int) -> Finding:
    return Finding(
        check="citations",
        code="uncited",
        fails=True,
        span=Span(start=start, end=end),
        text=shorten(draft.text[start:end]),
        note="the sentence has no citation",
        remedy="Cite the passage that it is from, or remove it.",
    )
