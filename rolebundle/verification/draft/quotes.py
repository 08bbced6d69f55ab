"""Whether the quotes of a draft are what the passages say. Pure.

A quote is ``exact``, ``normalized`` (the same but for typography), ``misattributed`` (it stands in
a passage that its sentence does not cite), ``near`` (it differs, or is cut so that the sense
turns) or ``absent``. Only the first two pass.

A quote of one or two words without a figure or a negation is taken as a term if its sentence cites
nothing: it is looked for, but does not fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.fuzz import partial_ratio_alignment

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding, FindingCode, Span
from rolebundle.text.languages import is_unspaced
from rolebundle.verification.draft.fold import fold
from rolebundle.verification.draft.parse import Draft, DraftQuote
from rolebundle.verification.draft.quote_context import denies, is_figure, words_of
from rolebundle.verification.draft.quote_match import Quote, find_quote, read_quote

MIN_SIMILARITY = 75.0
"""Percent of the characters that must agree for ``near``."""
_MAX_COMPARED = 1_000  # Characters of a quote.
_MAX_SIMILAR = 3  # Passages that a quote is aligned with.
_MAX_ALIGNED = 5_000  # Passages, for one draft.
_MAX_TEXT, _MAX_SHOWN, _MAX_TRUE_TEXT = 300, 120, 2_000  # Characters of a finding.
_TERM_WORDS = 2
_BLOCKQUOTE = re.compile(r"[ \t]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(?:>[ \t]?)+")


class _Result(NamedTuple):
    """What was found out about a quote."""

    code: FindingCode
    passage: Passage | None = None
    true_text: str | None = None
    note: str | None = None


def check_quotes(
    draft: Draft, passages: Sequence[Passage], cited: Mapping[int, Sequence[Passage]]
) -> list[Finding]:
    """Check each quote of a draft; the findings are in the order of the draft.

    Args:
        draft: a parsed draft.
        passages: all the evidence.
        cited: the passages that a sentence cites, by its number. If it cites none, a quote may
            stand in any passage.
    """
    checker = _Checker(passages)
    citing = {citation.sentence for citation in draft.citations}
    findings = []
    last_end: int | None = None
    for quote in draft.quotes:
        if not any(map(str.isalnum, quote.text)):
            continue
        # Two quotes side by side are one that was divided.
        between = draft.text[last_end : quote.start][:_MAX_SHOWN] if last_end is not None else ","
        is_alone = any(mark.isalnum() or mark in ",;/|" for mark in between)
        last_end = quote.end
        wanted = cited.get(quote.sentence, ())
        is_term = is_alone and _is_term(quote.text)
        result = checker.check(quote.text, _in_blockquote(draft, quote), wanted)
        has_citation = bool(wanted) or quote.sentence in citing
        passes = result.code in ("exact", "normalized") or (
            is_term and (result.code == "misattributed" or not has_citation)
        )
        findings.append(_finding(quote, result, fails=not passes))
    return findings


class _Checker:
    """Looks for quotes in passages. A text that is quoted again is looked for once."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._aligned = 0
        self._longest = max((len(passage.content) for passage in passages), default=0)
        self._known: dict[tuple[object, ...], _Result] = {}

    def check(self, text: str, in_blockquote: bool, wanted: Sequence[Passage]) -> _Result:
        key = (text, in_blockquote, *(passage.chunk_id for passage in wanted))
        if key not in self._known:
            self._known[key] = self._check(text, in_blockquote, wanted)
        return self._known[key]

    def _check(self, text: str, in_blockquote: bool, wanted: Sequence[Passage]) -> _Result:
        if len(text) > _MAX_COMPARED + 2 * self._longest:
            return _Result("absent", note="The quote is longer than every passage.")
        quote = read_quote(text, in_blockquote=in_blockquote)
        if not quote.folded:
            return _Result("absent")
        ids = {passage.chunk_id for passage in wanted}
        other_passages = [passage for passage in self._passages if passage.chunk_id not in ids]
        doubtful: _Result | None = None
        for passage in [*wanted, *other_passages]:
            place = find_quote(quote, passage.content)
            if place is None:
                continue
            true_text = passage.content[place.start : place.end]
            if place.problem:
                doubtful = doubtful or _Result("near", passage, true_text, place.problem)
            elif wanted and passage.chunk_id not in ids:
                return doubtful or _Result(
                    "misattributed", passage, true_text,
                    f"The sentence cites {_names(wanted)}; the quote stands in {passage.locator}.",
                )  # fmt: skip
            else:
                code: FindingCode = "exact" if true_text == text else "normalized"
                return _Result(code, passage, true_text)
        if doubtful or _is_term(text):
            return doubtful or _Result("absent")
        return self._nearest(quote, [*wanted, *other_passages])

    def _nearest(self, quote: Quote, passages: Iterable[Passage]) -> _Result:
        """The passage with the most similar text."""
        quoted = quote.folded[:_MAX_COMPARED]
        score, best = MIN_SIMILARITY, None
        for passage in self._similar(quoted, passages):
            folded = fold(passage.content)
            alignment = partial_ratio_alignment(quoted, folded.text, score_cutoff=score)
            if alignment and alignment.score > score and alignment.dest_start < alignment.dest_end:
                score = alignment.score
                best = passage, *folded.original(alignment.dest_start, alignment.dest_end)
        if best is None:
            return _Result("absent", note=quote.problem or None)
        passage, start, end = best
        true_text = _whole_words(passage.content, start, end)
        note = quote.problem or _difference(quote.folded, fold(true_text).text)
        return _Result("near", passage, true_text, note)

    def _similar(self, quoted: str, passages: Iterable[Passage]) -> list[Passage]:
        """The passages that share the most words with a quote."""
        if self._aligned >= _MAX_ALIGNED:
            return []
        words = _distinct_words(quoted)
        counts = [(len(words & _distinct_words(passage.content)), passage) for passage in passages]
        counts.sort(key=lambda count: -count[0])
        is_wide = is_unspaced(quoted)
        similar = [passage for count, passage in counts[:_MAX_SIMILAR] if count or is_wide]
        self._aligned += len(similar)
        return similar


@lru_cache(maxsize=512)
def _distinct_words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))


def _in_blockquote(draft: Draft, quote: DraftQuote) -> bool:
    text = draft.text
    line = max(text.rfind("\n", 0, quote.start), text.rfind("\r", 0, quote.start)) + 1
    return _BLOCKQUOTE.match(text, line, quote.start) is not None


def _is_term(text: str) -> bool:
    """Whether a quote is so short that it may be a name or an expression of the author's."""
    words = words_of(text)
    if is_unspaced(text):
        return len(text) <= 2 * _TERM_WORDS
    return len(words) <= _TERM_WORDS and not any(is_figure(word) or denies(word) for word in words)


def _whole_words(content: str, start: int, end: int) -> str:
    while start > 0 and _is_word_character(content[start - 1]):
        start -= 1
    while end < len(content) and _is_word_character(content[end]):
        end += 1
    return content[start:end].strip()


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character in "'’"


def _difference(quoted: str, passage: str) -> str:
    """What differs between a quote and the passage; changed negations and figures first."""
    words, true_words = quoted.split()[:300], passage.split()[:300]
    matcher = SequenceMatcher(None, words, true_words, autojunk=False)
    changes = []
    for operation, first, last, true_first, true_last in matcher.get_opcodes():
        if operation != "equal":
            old, new = " ".join(true_words[true_first:true_last]), " ".join(words[first:last])
            changed = {*words_of(old)} ^ {*words_of(new)}
            kind = 2
            if any(map(denies, changed)):
                kind = 0
            elif any(map(is_figure, changed)):
                kind = 1
            changes.append((kind, _change(kind, old, new)))
    return "; ".join(change for _, change in sorted(changes, key=lambda change: change[0])[:4])


def _change(kind: int, old: str, new: str) -> str:
    name = ("changed negation: ", "changed figure: ", "")[kind]
    old, new = old[:_MAX_SHOWN], new[:_MAX_SHOWN]
    if not new:
        return f"{name}the quote leaves out “{old}”"
    if not old:
        return f"{name}the quote adds “{new}”"
    return f"{name}the passage says “{old}”, the quote “{new}”"


_REMEDIES: dict[FindingCode, str] = {
    "misattributed": "Cite the passage that the quote stands in.",
    "near": "Quote the passage word for word, with all that belongs to it, or do not quote.",
    "absent": "Leave the quote out, or say it without quotation marks.",
}


def _finding(quote: DraftQuote, result: _Result, *, fails: bool) -> Finding:
    passage = result.passage
    return Finding(
        check="quotes",
        code=result.code,
        fails=fails,
        span=Span(start=quote.start, end=quote.end),
        text=quote.text[:_MAX_TEXT],
        chunk_id=passage.chunk_id if passage else None,
        locator=passage.locator if passage else None,
        true_text=result.true_text[:_MAX_TRUE_TEXT] if result.true_text else None,
        note=result.note,
        remedy=_REMEDIES.get(result.code) if fails else None,
    )


def _names(passages: Sequence[Passage]) -> str:
    return ", ".join(passage.locator for passage in passages[:3])
