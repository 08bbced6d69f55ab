"""Verify a draft: its quotes, citations, figures, names and sentences against passages.

draft ─▶ parse ─▶ sentences ─┐
bundle, ids or corpus ───────┴▶ checks ─▶ findings ─▶ verdict, validated draft
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from time import monotonic

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import (
    CheckedPassage,
    CheckName,
    Finding,
    FindingCode,
    Span,
    Verdict,
    Verification,
    VerifyRequest,
)
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.verify import verify_passages
from rolebundle.text.counts import counted
from rolebundle.verification.draft.cuts import words_of
from rolebundle.verification.draft.citations import check_citation, titled
from rolebundle.verification.draft.evidence import Evidence
from rolebundle.verification.draft.figures import check_figures
from rolebundle.verification.draft.judge import Judge, Opinions, opinion_findings
from rolebundle.verification.draft.parse import Sentence, parse_draft
from rolebundle.verification.draft.quotes import check_quote, is_term
from rolebundle.verification.draft.redact import validated_draft
from rolebundle.verification.draft.sources import (
    check_confidential,
    check_sources,
    without_confidential,
)
from rolebundle.verification.draft.statements import (
    best_match,
    changed_word,
    difference,
    names_in,
    replaced_name,
    unknown_parts,
)

DEFAULT_REQUIRED = frozenset(("quotes", "citations", "figures", "names"))
DEFAULT_SECONDS = 45.0
"""For the checks, if the request has no deadline: many callers wait 60 seconds."""
MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""
_ALWAYS = frozenset(("sources", "publish", "deadline"))
_COUNTED = {"quotes": "quote", "citations": "citation", "figures": "figure", "names": "name"}
_HELD: frozenset[FindingCode] = frozenset(
    ("exact", "normalized", "cited", "figure_found", "rounded", "computed", "covered")
)


def verify(
    corpus: Corpus, request: VerifyRequest, resolved: ResolvedRequest, judge: Judge | None = None
) -> Verification:
    """Check a draft.

    Args:
        corpus: an open corpus, as the agent may see it; it is only read.
        request: the draft, and what it is checked against.
        resolved: role, time and purpose of the request.
        judge: gives an opinion on covered sentences; ``None`` for none.

    Raises:
        UsageError: ``bundle_malformed``.
        Interrupted: the deadline has passed.
        CorpusCorrupt, CorpusBusy, StorageError: the corpus cannot be read.
    """
    required = DEFAULT_REQUIRED if request.require is None else frozenset[str](request.require)
    required |= {"coverage"} if request.publish else frozenset()
    end = None if request.deadline_ms else monotonic() + DEFAULT_SECONDS
    passages: dict[str, Passage] = {}
    with corpus.reading():
        sentences = parse_draft(request.draft)
        evidence = Evidence(corpus, request, resolved)
        findings = [*evidence.findings]
        for number, sentence in enumerate(sentences):
            corpus.raise_if_interrupted()
            if end is not None and monotonic() > end:
                findings.append(_not_checked(request.draft, sentences, number))
                break
            checker = SentenceCheck(sentence, evidence)
            findings += checker.findings()
            passages |= {p.chunk_id: p for p in (*checker.passages, *checker.cited)}
        named = {finding.chunk_id for finding in findings}
        passages = {name: passage for name, passage in passages.items() if name in named}
        verify_passages(corpus, [passage.rowid for passage in passages.values()])
    findings += check_sources(findings, passages, resolved, publish=request.publish)
    if request.publish:
        findings += check_confidential(request.draft)
    opinions = Opinions(())
    if judge is not None:
        covered = [finding for finding in findings if finding.code == "covered"]
        opinions = judge.opinions(request.draft, covered, passages, corpus.raise_if_interrupted)
    findings += opinion_findings(opinions, request.draft, judge, is_required="judge" in required)
    findings = [
        f if f.check in required | _ALWAYS else f.model_copy(update={"fails": False})
        for f in sorted(findings, key=lambda f: (f.span.start, f.span.end))
    ]
    findings = without_confidential(findings)
    verdict, message = _verdict(sentences, evidence, findings, required)
    return Verification(
        verdict=verdict,
        message=message,
        counts=dict(Counter(finding.code for finding in findings)),
        findings=findings,
        uncited_sentences=[_span(s) for s in sentences if s.has_content and not s.citations],
        validated_draft=validated_draft(request.draft, sentences, findings, redact=request.redact),
        passages=[
            CheckedPassage(number=number, chunk_id=passage.chunk_id, locator=passage.locator)
            for number, passage in evidence.numbers.items()
        ],
        judge=judge.name if judge else None,
        judge_problem=opinions.problem or None,
        opinions=[*opinions.opinions],
    )


class SentenceCheck:
    """The checks of one sentence."""

    def __init__(self, sentence: Sentence, evidence: Evidence) -> None:
        self._sentence, self._prose = sentence, sentence.prose()
        self._text = sentence.prose(with_quotes=True)
        quoted = [
            sentence.text[a - sentence.start : b - sentence.start] for a, b in sentence.quotes
        ]
        needs = (
            sentence.has_content
            or sentence.quotes
            or sentence.citations
            or (sentence.kind == "code")
        )
        self.passages = evidence.candidates([self._text, *quoted] if needs else [])
        self._named = [(c, evidence.named_by(c, self.passages)) for c in sentence.citations]
        self.cited = [passage for _, named in self._named for passage in named]
        if sentence.quotes and not sentence.citations:
            self.cited = titled(self._prose, self.passages)
        self._all = [*{p.chunk_id: p for p in (*self.passages, *self.cited)}.values()]

    def findings(self) -> Iterator[Finding]:
        """What all checks found, in any order."""
        yield from self._citations()
        yield from self._quotes()
        if self._sentence.kind == "code":
            yield from self._code()
        else:
            figures = [*self._figures()]
            yield from figures
            yield from self._names([finding.span for finding in figures])
        if self._sentence.has_content:
            yield from self._statement()

    def _finding(
        self, check: CheckName, code: FindingCode, start: int, end: int, passage: Passage | None = None,
        *, fails: bool = False, true_text: str | None = None, note: str | None = None, remedy: str | None = None,
    ) -> Finding:  # fmt: skip
        """A finding on a range of the draft."""
        text = self._sentence.text[start - self._sentence.start : end - self._sentence.start]
        return Finding(
            check=check, code=code, fails=fails, span=Span(start=start, end=end), text=_shorten(text),
            chunk_id=passage.chunk_id if passage else None, locator=passage.locator if passage else None,
            true_text=_shorten(true_text) if true_text else None, note=note or None, remedy=remedy,
        )  # fmt: skip

    def _citations(self) -> Iterator[Finding]:
        segment, end = "", self._sentence.start
        for citation, named in self._named:
            own = self._text[end - self._sentence.start : citation.start - self._sentence.start]
            segment, end = own if words_of(own) else segment or self._text, citation.end
            prose = segment if self._sentence.has_content else ""
            code, passage, note, remedy = check_citation(citation, prose, named, self._all)
            fails = code not in ("cited", "unchecked_language")
            yield self._finding(
                "citations",
                code,
                citation.start,
                citation.end,
                passage,
                fails=fails,
                note=note,
                remedy=remedy,
            )

    def _quotes(self) -> Iterator[Finding]:
        start, text = self._sentence.start, self._sentence.text
        last = None
        for first, end in self._sentence.quotes:
            quote = text[first - start : end - start]
            # Two quotes side by side are one that was divided.
            between = "," if last is None else text[last - start : first - start]
            last = end
            if not any(map(str.isalnum, quote)):
                continue
            around = self._prose[: first - start], self._prose[end - start :]
            code, passage, true_text, note = check_quote(quote, self._all, self.cited, around)
            may_be_term = is_term(quote) and any(c.isalnum() or c in ",;/|" for c in between)
            fails = code not in ("exact", "normalized") and not (
                may_be_term and (code == "misattributed" or not self.cited)
            )
            remedy = {
                "misattributed": "Cite the passage that the quote stands in.",
                "near": "Quote the passage word for word, with all that belongs to it, or do not quote.",
                "absent": "Leave the quote out, or say it without quotation marks.",
            }.get(code)
            if code == "misattributed":  # What is wrong may be the citation.
                end = max([end, *(c.end for c in self._sentence.citations)])
            yield self._finding(
                "quotes", code, first, end, passage, fails=fails, true_text=true_text, note=note,
                remedy=remedy if fails else None,
            )  # fmt: skip

    def _figures(self) -> Iterator[Finding]:
        head = f"{self._sentence.header}\n" if self._sentence.header else ""
        cited, evidence = ([_text_of(p) for p in passages] for passages in (self.cited, self._all))
        for start, end, _, outcome, note, number, true_text in check_figures(
            head + self._prose, cited, evidence
        ):
            if start < len(head):
                continue
            place = self._sentence.start - len(head)
            passage = None if number is None else self._all[number]
            code: FindingCode = {
                "found": "figure_found",
                "elsewhere": "should_cite",
                "rounded": "rounded",
                "computed": "computed",
                "unsupported": "unsupported_figure",
            }[outcome]  # type: ignore[assignment]
            fails = outcome == "unsupported" or (outcome == "elsewhere" and bool(self.cited))
            remedy = "Give a figure of the passage, or leave it out." if fails else None
            if outcome in ("rounded", "computed"):
                remedy = "Check that this is what the passage says."
            if outcome == "elsewhere" and passage:
                remedy = f"Cite {passage.locator}, if that is meant."
            yield self._finding(
                "figures", code, place + start, place + end, passage, fails=fails, true_text=true_text, note=note,
                remedy=remedy,
            )  # fmt: skip

    def _names(self, figures: Sequence[Span]) -> Iterator[Finding]:
        """What stands nowhere is a remark; what replaces a name of a like sentence fails."""
        start = self._sentence.start
        for name in names_in(self._prose):
            first, last = start + name.start, start + name.end
            if any(f.start < last and first < f.end for f in figures):
                continue
            unknown = unknown_parts(name, self._all)
            missing = unknown or (unknown_parts(name, self.cited) if self.cited else [])
            if missing and (
                found := replaced_name(name, missing[0], self._prose, self.cited or self._all)
            ):
                yield self._wrong_name(first, last, *found)
            elif unknown and self._all:
                note = f"it stands nowhere in the evidence: {', '.join(unknown[:5])}"
                remedy = "Look it up, or leave it out."
                yield self._finding("names", "unknown_name", first, last, note=note, remedy=remedy)

    def _code(self) -> Iterator[Finding]:
        """The words of code that replace others in a like line, and stand nowhere."""
        start = self._sentence.start
        for line in self._sentence.text.splitlines(keepends=True):
            changed = changed_word(line, self._all)
            if changed and unknown_parts(changed[0], self._all):
                yield self._wrong_name(
                    start + changed[0].start, start + changed[0].end, *changed[1:]
                )
            start += len(line)

    def _wrong_name(self, start: int, end: int, name: str, passage: Passage) -> Finding:
        note = f"it does not stand there; the passage says {name} in a like sentence"
        remedy = "Give the passage's name, or leave it out."
        return self._finding(
            "names",
            "wrong_name",
            start,
            end,
            passage,
            fails=True,
            true_text=name,
            note=note,
            remedy=remedy,
        )

    def _statement(self) -> Iterator[Finding]:
        start, end = self._sentence.start, self._sentence.end
        match = best_match(self._text, self.cited)
        if not match.is_covered:
            match = best_match(self._text, self._all)
        if match.is_covered:
            note = f"{match.share:.0%} of its content words stand together there"
            yield self._finding(
                "coverage", "covered", start, end, match.passage, true_text=match.text, note=note
            )
        elif match.words:
            note = f"no passage says this; missing, among others: {', '.join(match.missing[:5])}"
            remedy = "Say what the evidence says, or leave the sentence out."
            yield self._finding(
                "coverage", "uncovered", start, end, fails=True, note=note, remedy=remedy
            )
        if found := difference(self._text, self.cited or self._all):
            words, passage, sentence = found
            remedy = "Read the passage: the sentence is like one of it, but may say the opposite."
            yield self._finding(
                "coverage",
                "differs",
                start,
                end,
                passage,
                true_text=sentence,
                note=f"differs: {words}",
                remedy=remedy,
            )


def _text_of(passage: Passage) -> str:
    return "\n".join((passage.document.title, *passage.headings, passage.content))


def _shorten(text: str) -> str:
    """A text as a finding shows it."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _span(sentence: Sentence) -> Span:
    return Span(start=sentence.start, end=sentence.end)


def _not_checked(text: str, sentences: Sequence[Sentence], first: int) -> Finding:
    """The finding on the sentences from ``first`` on, for which there was no time."""
    start, end = sentences[first].start, sentences[-1].end
    line = text.count("\n", 0, start) + 1
    share = f"{len(sentences) - first:,} of {len(sentences):,} sentences"
    return Finding(
        check="deadline", code="not_checked", fails=True, span=Span(start=start, end=end),
        text=_shorten(text[start:end]),
        note=f"{share}, from line {line} to the end, were not checked in {DEFAULT_SECONDS:.0f} s",
        remedy="Verify this part alone, or against a bundle; or set deadline_ms to a longer time.",
    )  # fmt: skip


def _verdict(
    sentences: Sequence[Sentence],
    evidence: Evidence,
    findings: Sequence[Finding],
    required: frozenset[str],
) -> tuple[Verdict, str]:
    """The verdict, and what was checked in words."""
    counts = Counter(
        f.check for f in findings if f.code not in ("unknown_name", "unchecked_language")
    )
    checked = ", ".join(
        counted(counts[check], noun) for check, noun in _COUNTED.items() if counts[check]
    )  # type: ignore[index]
    places = [f.span for f in findings if f.check in _COUNTED and f.check != "names"]
    unchecked = sum(
        s.has_content and not any(s.start <= place.start < s.end for place in places)
        for s in sentences
    )
    rest = (
        f"; {counted(unchecked, 'sentence')} {'was' if unchecked == 1 else 'were'} not checked"
        if unchecked
        else ""
    )
    failing = Counter(finding.code for finding in findings if finding.fails)
    if failing:
        named = ", ".join(f"{count} {code}" for code, count in failing.most_common(5))
        return "failed", f"{named}; checked: {checked or 'nothing'}{rest}"
    if evidence.is_named and not evidence.passages:
        return "nothing_to_check", "there is no passage to check the draft against; retrieve first"
    if not evidence.is_named and not any(f.code == "covered" for f in findings):
        return (
            "nothing_to_check",
            f"the corpus has no passage about any sentence of the draft{rest}",
        )
    if not any(f.check in required and f.code in _HELD for f in findings):
        return (
            "nothing_to_check",
            f"the draft has no quote, citation or figure that is checked{rest}",
        )
    return "nothing_wrong_found", f"{checked}{rest}"
