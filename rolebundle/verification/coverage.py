"""Whether the words of a draft's sentences are in the evidence. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding, Span
from rolebundle.text.sentences import topic_words
from rolebundle.verification.draft import Draft, DraftSentence
from rolebundle.verification.findings import shown

MIN_SHARE = 0.5
"""The least share of a sentence's content words that one passage must have."""


def check_coverage(
    draft: Draft, passages: Sequence[Passage], cited: Mapping[int, Sequence[Passage]]
) -> list[Finding]:
    """A finding for each sentence with content: ``covered`` or ``uncovered``.

    Args:
        draft: the parsed draft, or a part of it.
        passages: all passages of the evidence.
        cited: the passages that a sentence cites, by its number; if it cites some, only these
            count.
    """
    words = [(passage, topic_words(passage.content)) for passage in passages]
    findings = []
    for number, sentence in enumerate(draft.sentences):
        if sentence.has_content:
            own = {passage.chunk_id for passage in cited.get(number, ())}
            evidence = [pair for pair in words if pair[0].chunk_id in own] if own else words
            findings.append(_finding(sentence, evidence))
    return findings


def _finding(
    sentence: DraftSentence, evidence: Sequence[tuple[Passage, frozenset[str]]]
) -> Finding:
    words = topic_words(sentence.text)
    best, most = None, MIN_SHARE
    for passage, others in evidence:
        share = len(words & others) / len(words) if words else 0.0
        if share > most or (share == most and best is None):
            best, most = passage, share
    span = Span(start=sentence.start, end=sentence.end)
    if best is None:
        return Finding(
            check="coverage",
            code="uncovered",
            fails=True,
            span=span,
            text=shown(sentence.text),
            note="no passage has the words of the sentence",
            remedy="Say it in the words of a passage, or remove it.",
        )
    return Finding(
        check="coverage",
        code="covered",
        fails=False,
        span=span,
        text=shown(sentence.text),
        chunk_id=best.chunk_id,
        locator=best.locator,
    )
