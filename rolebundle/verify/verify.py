"""Verify a draft: its quotes, citations, figures, names and sentences against passages.

draft ─▶ parse ─▶ sentences ─┐
bundle, ids or corpus ───────┴▶ checks ─▶ findings ─▶ verdict, validated draft
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import islice, pairwise
from time import monotonic

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.verification import (
    CheckedPassage,
    CheckName,
    Finding,
    FindingCode,
    JudgeOpinion,
    Outcome,
    Span,
    Verdict,
    Verification,
    VerifyRequest,
)
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.versions import date_of, is_draft_by_path
from rolebundle.scan.confidential import find_secrets
from rolebundle.storage.corpus import Corpus, joined
from rolebundle.storage.digests import verify_passages
from rolebundle.text.figures import find_figures
from rolebundle.text.replaced import beside_numbers, digits_in, has_replacement_cue, without_figures
from rolebundle.text.tokens import is_inside
from rolebundle.text.words import counted
from rolebundle.verify.cells import other_answer, other_cell, table_or_text
from rolebundle.verify.draft import Citation, Sentence, parse_draft
from rolebundle.verify.evidence import DraftEvidence, check_citation, cited_lines, titled
from rolebundle.verify.figures import PLACE_END, FigureCheck, check_figures
from rolebundle.verify.findings import check_sources, finding, shortened, validated_draft
from rolebundle.verify.judge import Judge, opinion_findings
from rolebundle.verify.later import LaterTexts
from rolebundle.verify.qualifiers import (
    is_said,
    lost_condition,
    not_included,
    other_person,
    other_qualifier,
    other_weekday,
    stronger_claim,
    unknown_reason,
)
from rolebundle.verify.quotes import check_quote, is_term, lower_words
from rolebundle.verify.sentences import (
    COVERED,
    MIN_WORDS,
    SENTENCE_START,
    best_match,
    declared_language,
    difference,
    is_translated,
    language_sample,
    names_in,
    unknown_parts,
)

DEFAULT_SECONDS = 45.0
"""For the checks, if the request has no deadline: many callers wait 60 seconds."""
_ALWAYS = frozenset(("sources", "publish", "deadline"))
_COUNTED: dict[CheckName, str] = {
    "quotes": "quote", "citations": "citation", "figures": "figure", "names": "name",
}  # fmt: skip
"""What checks count."""
_REQUIRED = frozenset((*_COUNTED, "wording"))
"""The checks that are required by default."""
_MAX_SOURCE = 400
"""Characters around the same figures in what is cited, with which later texts are searched."""
_NOT_CLEAN: tuple[Outcome, Outcome] = ("failed", "check")
_BETWEEN_WORDS = re.compile(r"[-_/.](?!\d)|(?<!\d)[-_/.]")
_IGNORED = {"verdict": "clean", "fails": False}
_UNCHECKED = ("unchecked_language", "unknown_name", "uncovered", "differs")


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
    required = _REQUIRED if request.require is None else frozenset[str](request.require)
    end = None if request.deadline_ms else monotonic() + DEFAULT_SECONDS
    passages, cited = dict[str, Passage](), dict[str, Passage]()
    with corpus.reading():
        evidence = DraftEvidence(corpus, request, resolved)
        sentences = list[Sentence]()
        for sentence in parse_draft(request.draft, evidence.file_names(request.draft)):
            corpus.raise_if_interrupted()
            sentences.append(sentence)
        findings = [*evidence.findings]
        for number, sentence in enumerate(sentences):
            corpus.raise_if_interrupted()
            if end is not None and monotonic() > end:
                findings.append(_not_checked(request.draft, sentence.start, sentences[-1].end))
                break
            near = (sentences[n] for n in (number - 1, number + 1) if 0 <= n < len(sentences))
            # What cites nothing is under the citations of its own paragraph or list item.
            near = (s for s in near if sentence.citations or s.block_start == sentence.block_start)
            beside = [citation for other in near for citation in other.citations]
            previous = " ".join(s.prose() for s in sentences[max(0, number - 2) : number])
            checker = SentenceCheck(sentence, evidence, beside, previous)
            for found in checker.findings():
                corpus.raise_if_interrupted()
                if found.code != "uncovered" or "coverage" in required or checker.has_one_language:
                    findings.append(found)
            passages |= checker.passages
            cited |= {passage.path: passage for passage in checker.cited}
        passages |= {newer.chunk_id: newer for newer in evidence.newer_versions(cited)}
        named = {f.chunk_id for f in findings}
        rowids = [passage.rowid for name, passage in passages.items() if name in named]
        verify_passages(corpus, rowids)
    findings += check_sources(findings, passages, resolved, request.publish, sentences)
    for secret in find_secrets(request.draft) if request.publish else ():
        findings.append(finding("secret_in_draft", secret.start, secret.end, note=secret.note))
    opinions, problem = list[JudgeOpinion](), ""
    if judge is not None:
        covered = [f for f in findings if f.code == "covered"]
        opinions, problem = judge.opinions(
            request.draft, covered, passages, corpus.raise_if_interrupted
        )
    findings += opinion_findings(opinions, request.draft)
    if "judge" in required and (judge is None or problem):
        note = problem or "the judge is required, and there is none"
        remedy = "Name a judge in $ROLEBUNDLE_JUDGE, or do not require it."
        findings.append(finding("not_checked", 0, 0, note=note, check="judge", remedy=remedy))
    findings = [
        f if f.check in required | _ALWAYS else f.model_copy(update=_IGNORED)
        for f in sorted(findings, key=lambda f: (f.span.start, f.span.end))
    ]
    verdict, message = _verdict(sentences, evidence, findings, required)
    return Verification(
        verdict=verdict,
        message=message,
        counts=dict(Counter(f.code for f in findings)),
        findings=findings,
        uncited_sentences=[
            Span(start=s.start, end=s.end) for s in sentences if s.has_content and not s.citations
        ],
        validated_draft=validated_draft(request.draft, sentences, findings, redact=request.redact),
        passages=[
            CheckedPassage(number=number, chunk_id=passage.chunk_id, locator=passage.locator)
            for number, passage in evidence.numbers.items()
        ],
        judge=judge.name if judge else None,
        judge_problem=problem or None,
        opinions=opinions,
    )


class SentenceCheck:
    """The checks of one sentence.

    ``beside`` is what the sentences before and after it cite, ``previous`` the two before.
    """

    def __init__(
        self, sentence: Sentence, evidence: DraftEvidence, beside: Sequence[Citation], previous: str
    ) -> None:
        self._sentence, self._start, self._previous = sentence, sentence.start, previous
        self._evidence = evidence
        self._prose, self._text = sentence.prose(), sentence.prose(with_quotes=True)
        quotes = [sentence.text[a - self._start : b - self._start] for a, b in sentence.quotes]
        is_checked = sentence.has_content or quotes or sentence.citations
        self._all = evidence.candidates([self._text, *quotes] if is_checked else [])
        self._named = [(c, evidence.named_by(c, self._all)) for c in sentence.citations]
        self.cited = [passage for _, named in self._named for passage in named]
        self._cited_lines = [cited_lines(p, c.lines) for c, named in self._named for p in named]
        if quotes and not sentence.citations:
            self.cited = titled(self._prose, self._all)
        # "(a.md:1-2) (a.md:7-7)": all are for the same words.
        gaps = pairwise(sentence.citations)
        between = (sentence.text[a.end - self._start : b.start - self._start] for a, b in gaps)
        self._is_adjacent = not any(map(lower_words, between))
        self._beside = [p for c in beside for p in evidence.named_by(c, self._all)]
        # A text in the language of the source may say that a figure of it no longer holds.
        digits = digits_in(self._prose)
        around = (beside_numbers(p.content, digits) for p in self._cited_lines or self._beside)
        source = " ".join(around)[:_MAX_SOURCE]
        alike = evidence.candidates([source] if source else [])
        later = [p for p in alike if has_replacement_cue(p.content, digits)]
        found = *self.cited, *self._all, *self._beside, *later
        self.passages = {p.chunk_id: p for p in found}
        self._all = [*self.passages.values()]
        # What is untrusted says nothing of what is trusted, and a draft changes nothing.
        is_open = any(map(_is_untrusted, self.cited))
        others = [p for p in self._all if p not in self.cited and not is_draft_by_path(p.path)]
        texts = [*self.cited, *(p for p in others if is_open or not _is_untrusted(p))]
        self._later = LaterTexts(
            self._prose, self._text, source, self.cited, self._cited_lines, texts, evidence
        )

    @property
    def has_one_language(self) -> bool:
        """Whether the passages are in the language of the sentence, so that words can be found."""
        return not any(is_translated(self._text, p) for p in self.cited or self._all)

    def findings(self) -> Iterator[Finding]:
        """What all checks found, in any order."""
        figures = [*self._figures()]
        is_held = bool(figures) and all(found.code == "figure_found" for found in figures)
        yield from self._citations(is_held=is_held)
        yield from self._quotes()
        yield from figures
        yield from self._unknown_names([found.span for found in figures])
        if self._sentence.has_content:
            yield from self._coverage({f.chunk_id for f in figures if f.code == "figure_found"})
            is_old = any(found.code == "old_source" for found in figures)
            for passage, note in islice(self._later.of_words(), 0 if is_old else 1):
                yield self._finding("old_source", self._start, self._sentence.end, passage, note)

    def _finding(
        self, code: FindingCode, start: int, end: int, passage: Passage | None = None,
        note: str = "", true_text: str = "", *, is_own: bool = False,
    ) -> Finding:  # fmt: skip
        """A finding on a range of the draft; one on an expression of the author's own holds."""
        more: dict[str, object] = {"true_text": shortened(true_text) or None}
        if code in ("wrong_place", "misattributed") and passage:
            more["remedy"] = f"Cite {passage.locator}, if that is meant."
        if is_own:
            more |= {"verdict": "clean", "remedy": None}
        text = self._sentence.text[start - self._start : end - self._start]
        return finding(code, start, end, text, passage, note, **more)

    def _citations(self, *, is_held: bool) -> Iterator[Finding]:
        """The outcomes of the citations; ``is_held``: what they cite has all figures."""
        segment, position = "", 0
        dates = [figure for figure in find_figures(self._text) if figure.unit == "date"]
        text = without_figures(self._text, dates)  # It may be cited in another form.
        for citation, named in self._named:
            own = text[position : citation.start - self._start]
            segment = own if lower_words(own) else segment or text
            position = citation.end - self._start
            prose = segment if self._sentence.has_content else ""
            others = self._cited_lines if self._is_adjacent else []
            code, passage, note = check_citation(citation, prose, named, self._all, others)
            has_figures = passage and digits_in(self._prose) <= digits_in(passage.content)
            if code == "wrong_place" and is_held and not has_figures:
                code, passage, note = "cited", named[0], ""  # Its words may be in a title.
            yield self._finding(code, citation.start, citation.end, passage, note)

    def _quotes(self) -> Iterator[Finding]:
        text = self._sentence.text
        for start, end in self._sentence.quotes:
            first, stop = start - self._start, end - self._start
            around = self._prose[:first], self._prose[stop:]
            quote = text[first:stop]
            code, passage, true_text, note = check_quote(quote, self._all, self.cited, around)
            is_own = is_term(quote) and (code == "misattributed" or not self.cited)
            # The draft answers a question that no passage has.
            is_own |= code == "absent" and not self.cited and text[:stop].endswith("?")
            # What is wrong may be the citation.
            ends = [c.end for c in self._sentence.citations if code == "misattributed"]
            last = max([end, *ends])
            yield self._finding(code, start, last, passage, note, true_text, is_own=is_own)

    def _figures(self) -> Iterator[Finding]:
        head = f"{self._sentence.header}\n" if self._sentence.kind == "row" else ""
        likely = best_match(self._text, self.cited or self._all)
        found = [likely.passage] if likely.passage and likely.is_covered else []
        own = self.cited or self._beside or found
        passages = [*self._all, *self._cited_lines]
        sources = self._cited_lines or own, passages, [*self._beside, *self.cited]
        cited, evidence, beside = ([_text_of(p) for p in some] for some in sources)
        checks = list[FigureCheck]()
        for check in check_figures(head + self._prose, cited, evidence, beside, self._previous):
            self._evidence.raise_if_interrupted()  # A sentence may have hundreds of figures.
            checks.append(check)
        for check in checks:
            if check.start >= len(head):
                place = self._start - len(head)
                passage = None if check.passage is None else passages[check.passage]
                start, end = place + check.start, place + check.end
                yield self._finding(check.outcome, start, end, passage, check.note, check.true_text)
                if note := self._later.of_figure(check, passage, checks):
                    yield self._finding("old_source", start, end, passage, note)

    def _unknown_names(self, figures: Sequence[Span]) -> Iterator[Finding]:
        """The names that stand nowhere."""
        languages = {declared_language(passage) for passage in self.cited}
        for name in names_in(self._prose, *languages) if self._all else ():
            start, end = self._start + name.start(), self._start + name.end()
            # An identifier has to stand in what is cited: another one is often beside it.
            cited = [*self.cited, *self._beside] if name["identifier"] and self.cited else []
            begins = not name["identifier"] and SENTENCE_START.search(self._prose[: name.start()])
            # An acronym may stand for words of the evidence.
            is_unchecked = begins or name["acronym"]
            unknown = [] if is_unchecked else unknown_parts(name[0], cited or self._all)
            where = "evidence does" if unknown else "cited lines do"
            # Another language may have other acronyms.
            if not name["acronym"] or self.has_one_language:
                unknown = unknown or self._swapped(name)
            if unknown and not any(f.start < end and start < f.end for f in figures):
                note = f"the {where} not have: {', '.join(unknown[:5])}"
                yield self._finding("unknown_name", start, end, note=note)

    def _swapped(self, name: re.Match[str]) -> list[str]:
        """A name that the cited lines lack, if they have one of its kind that the draft lacks."""
        parts = unknown_parts(name[0], self._cited_lines) if self._cited_lines else []
        words = name[0].split()
        for passage in self._cited_lines if parts else ():
            for other in names_in(passage.content):
                shown = other[0].strip("`")
                is_kind = " " in name[0] and " " in shown and not other["identifier"]
                if name.lastgroup:
                    is_kind = bool(other["identifier"]) if name["identifier"] else shown.isupper()
                is_alike = len(parts) == len(words) or not {*words}.isdisjoint(other[0].split())
                if is_kind and is_alike and shown not in self._text:
                    return parts
        return []

    def _coverage(self, with_figures: Set[str | None]) -> Iterator[Finding]:
        """What a passage says of the sentence. Of ``with_figures`` one has a figure of it."""
        start, end = self._start, self._sentence.end
        match = best_match(self._text, self.cited)
        if not match.is_covered:
            match = best_match(self._text, self._all)
        if not (is_covered := match.is_covered):  # A figure is as good as a word.
            match = best_match(self._text, [p for p in self._all if p.chunk_id in with_figures])
            is_covered = match.share >= COVERED and match.share * match.word_count + 1 >= MIN_WORDS
        if is_covered:
            note = f"{match.share:.0%} of its content words stand together there"
            yield self._finding("covered", start, end, match.passage, note, match.text)
        elif match.word_count:
            yield self._finding("uncovered", start, end, note="no passage has enough of its words")
        lines = self._cited_lines or self.cited
        sample = language_sample(self._text, self.cited)
        found = (
            other_cell(self._prose, self.cited, lines, sample)
            or other_answer(self._prose, lines)
            or unknown_reason(self._prose, self.cited)
            or other_weekday(self._prose, self._cited_lines, sample)
            or other_person(self._prose, self._cited_lines, sample, self._all)
            or not_included(self._prose, self._cited_lines, sample)
        )
        if not (found or is_said(self._text, lines or self._all, sample)):
            found = (
                difference(self._text, lines or self._all, sample)
                or other_qualifier(self._text, lines, sample)
                or lost_condition(self._prose, lines, sample)
                or stronger_claim(self._prose, self._cited_lines, sample)
            )
        if found:
            note = f"differs: {found.what}"
            yield self._finding("differs", start, end, found.passage, note, found.text)


def _is_untrusted(passage: Passage) -> bool:
    return "untrusted" in (passage.document.trust_tier, passage.document.origin)


def _text_of(passage: Passage) -> str:
    # A draft may name the file, the year in its name, or the date that is shown with it.
    path, title = passage.path, passage.document.title
    names = path, _BETWEEN_WORDS.sub(" ", path), title, date_of(passage)
    return "\n".join((*names, *passage.headings, PLACE_END, table_or_text(passage)))


def _not_checked(text: str, start: int, end: int) -> Finding:
    """The finding on a part of the draft for which there was no time."""
    note = f"the rest of the draft was not checked in {DEFAULT_SECONDS:.0f} s"
    remedy = "Verify this part alone, or against a bundle; or set deadline_ms to a longer time."
    return finding("not_checked", start, end, text[start:end], None, note, remedy=remedy)


def _verdict(
    sentences: Sequence[Sentence],
    evidence: DraftEvidence,
    findings: Sequence[Finding],
    required: frozenset[str],
) -> tuple[Verdict, str]:
    """The verdict, and what was checked in words."""
    checked = [
        f for f in findings if f.check in (*_COUNTED, "coverage") and f.code not in _UNCHECKED
    ]
    counts = Counter(f.check for f in checked)
    done = ", ".join(counted(counts[c], noun) for c, noun in _COUNTED.items() if counts[c])
    places = [f.span.start for f in checked if f.check in _COUNTED]  # In their order.
    skipped = sum(
        s.has_content and bisect_left(places, s.start) == bisect_left(places, s.end)
        for s in sentences
    )
    rest = f"; {counted(skipped, 'sentence')} {'was' if skipped == 1 else 'were'} not checked"
    rest = rest if skipped else ""
    failing, doubtful = (
        ", ".join(f"{count} {code}" for code, count in codes.most_common(5))
        for codes in (Counter(f.code for f in findings if f.verdict == v) for v in _NOT_CLEAN)
    )
    has_none = evidence.is_named and not evidence.passages
    if failing or (doubtful and not has_none):
        parts = failing, doubtful and f"to check: {doubtful}", f"checked: {done or 'nothing'}"
        return "failed" if failing else "check", f"{'; '.join(filter(None, parts))}{rest}"
    if has_none:
        return "nothing_to_check", "there is no passage to check the draft against; retrieve first"
    covered = [(f.span.start, f.span.end) for f in findings if f.code == "covered"]
    cited = ((s.start, s.end) for s in sentences if s.citations)
    covered = joined(sorted([*covered, *cited]), -1)
    # In a whole corpus a number is soon found: it counts where the sentence is covered, or cites.
    held = [
        f
        for f in checked
        if f.check in required
        and (evidence.is_named or f.check == "quotes" or is_inside(f.span.start, covered))
    ]
    if not held:
        about = "" if evidence.is_named or covered else "the corpus has no passage about it; "
        return "nothing_to_check", f"{about}no quote, citation or figure was checked{rest}"
    return "clean", f"{done}{rest}; whether the sentences are true is not checked"
