"""Verify a draft: its quotes, citations, figures, names and sentences against passages.

draft ─▶ parse ─▶ sentences ─┐
bundle, ids or corpus ───────┴▶ checks ─▶ findings ─▶ verdict, validated draft
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise, product
from time import monotonic

from rolebundle.contracts.dates import is_of_date
from rolebundle.contracts.documents import Passage, message_of
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
from rolebundle.retrieval.messages import is_later_mail, without_attribution
from rolebundle.retrieval.passage_text import quoted, shown_name
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.statements import amending_passages, may_amend, names_of
from rolebundle.retrieval.versions import (
    date_of,
    dated_entries,
    day_of,
    day_of_copying,
    is_in_later_file,
    is_later_section,
    is_older,
    newer_by_path,
)
from rolebundle.scan.confidential import find_secrets
from rolebundle.storage.corpus import Corpus, joined
from rolebundle.storage.digests import verify_passages
from rolebundle.text.amended import (
    ReadSentence,
    changes,
    is_denied,
    read_sentences,
    says_the_old,
)
from rolebundle.text.figures import Figure, find_figures, words_near
from rolebundle.text.replaced import (
    Replaced,
    beside_numbers,
    digits_in,
    gone_statements,
    has_replacement_cue,
    is_limit,
    is_same,
    replaced_figures,
    says,
    without_figures,
    words_gone,
)
from rolebundle.text.tokens import is_inside
from rolebundle.text.words import content_words, counted, is_ordinary, sentences_of
from rolebundle.verify.cells import other_answer, other_cell, table_or_text
from rolebundle.verify.draft import Citation, Sentence, parse_draft
from rolebundle.verify.evidence import DraftEvidence, check_citation, cited_lines, titled
from rolebundle.verify.figures import LONGER, PLACE_END, FigureCheck, check_figures
from rolebundle.verify.findings import check_sources, finding, shortened, validated_draft
from rolebundle.verify.judge import Judge, opinion_findings
from rolebundle.verify.qualifiers import lost_condition, other_qualifier, unknown_reason
from rolebundle.verify.quotes import check_quote, is_term, lower_words
from rolebundle.verify.sentences import (
    COVERED,
    MIN_WORDS,
    SENTENCE_START,
    best_match,
    declared_language,
    difference,
    is_translated,
    names_in,
    sentences_about,
    sentences_like,
    unknown_parts,
    without_numbers,
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
_MIN_SHARED_SHARE = 0.3
"""What share of the words of a sentence a later one about the same has."""
_REPEATED = 0.65
"""From this share on, it says the same."""
_DOUBTS: tuple[Outcome, Outcome] = ("failed", "check")
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
        self._digits = digits_in(self._prose)
        quotes = [sentence.text[a - self._start : b - self._start] for a, b in sentence.quotes]
        is_checked = sentence.has_content or quotes or sentence.citations
        self._all = evidence.candidates([self._text, *quotes] if is_checked else [])
        self._quoted_messages = [
            *evidence.quotes,
            *(p for p in self._all if message_of(p.anchor)[1]),
        ]
        self._named = [(c, evidence.named_by(c, self._all)) for c in sentence.citations]
        self.cited = [passage for _, named in self._named for passage in named]
        self._exact = [
            cited_lines(citation.target, passage) if citation.kind == "locator" else passage
            for citation, named in self._named
            for passage in named
        ]
        if quotes and not sentence.citations:
            self.cited = titled(self._prose, self._all)
        # "(a.md:1-2) (a.md:7-7)": all are for the same words.
        gaps = pairwise(sentence.citations)
        between = (sentence.text[a.end - self._start : b.start - self._start] for a, b in gaps)
        self._is_adjacent = not any(map(lower_words, between))
        self._beside = [p for c in beside for p in evidence.named_by(c, self._all)]
        # A text in the language of the source may say that a figure of it no longer holds.
        texts = (beside_numbers(p.content, self._digits) for p in self._exact or self._beside)
        self._source = " ".join(texts)[:_MAX_SOURCE]
        alike = evidence.candidates([self._source] if self._source else [])
        later = [p for p in alike if has_replacement_cue(p.content, self._digits)]
        found = *self.cited, *self._all, *self._beside, *later
        self.passages = {p.chunk_id: p for p in found}
        self._all = [*self.passages.values()]
        self._copied_on = day_of_copying(self._all)
        self._entries = [entry for passage in self._all for entry in dated_entries(passage)]

    @property
    def has_one_language(self) -> bool:
        """Whether the passages are in the language of the sentence, so that words can be found."""
        return not any(is_translated(self._text, p) for p in self.cited or self._all)

    def findings(self) -> Iterator[Finding]:
        """What all checks found, in any order."""
        yield from self._citations()
        yield from self._quotes()
        figures = [*self._figures()]
        yield from figures
        yield from self._names([found.span for found in figures])
        if self._sentence.has_content:
            yield from self._coverage({f.chunk_id for f in figures if f.code == "figure_found"})
            is_old = any(found.code == "old_source" for found in figures)
            changed = () if is_old else chain(self._amended(), self._changed_by_text())
            for passage, note in islice(changed, 1):
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

    def _citations(self) -> Iterator[Finding]:
        segment, position = "", 0
        dates = [figure for figure in find_figures(self._text) if figure.unit == "date"]
        text = without_figures(self._text, dates)  # It may be cited in another form.
        for citation, named in self._named:
            own = text[position : citation.start - self._start]
            segment = own if lower_words(own) else segment or text
            position = citation.end - self._start
            prose = segment if self._sentence.has_content else ""
            others = self._exact if self._is_adjacent else []
            code, passage, note = check_citation(citation, prose, named, self._all, others)
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
        passages = [*self._all, *self._exact]
        sources = self._exact or own, passages, [*self._beside, *self.cited]
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
                note = self._replaced(check, passage, checks)
                for source in dict.fromkeys((passage, *self.cited)):
                    if source and not note:
                        note = self._changed_by_reply(check.figure, source)
                if note:
                    yield self._finding("old_source", start, end, passage, note)

    def _replaced(
        self, check: FigureCheck, passage: Passage | None, checks: Sequence[FigureCheck]
    ) -> str:
        """The text that says that a figure no longer holds; "" if none does, or the draft does.

        Args:
            check: the outcome for the figure.
            passage: which has it; the text is about its words, and no older.
            checks: the outcomes for all figures of the sentence.
        """
        for other, old in self._replaced_figures:
            news = (old.new and is_same(c.figure, old.new) for c in checks)
            is_too_old = passage is not None and is_older(other, passage)
            if not is_same(check.figure, old.figure) or is_too_old or any(news):
                continue
            names = "\n".join((other.document.title, *other.headings))
            near = check.found.near if check.found else frozenset[str]()
            shared = self._words & content_words(f"{names}\n{old.context}")
            words = words_near(f"{names}\n{other.content}").union(LONGER.findall(other.content))
            beside = check.figure.near & near - words
            cell = check.found.cell if check.found else None
            is_cell = cell and cell.column and cell.row  # The first cell names its row.
            is_related = passage is not None and (
                is_later_mail(other, passage) or is_later_section(other, passage)
            )
            if is_related or (shared and len(beside) <= (0 if is_cell else len(shared))):
                own = {p.path: "the cited text says that it no longer holds" for p in self.cited}
                return f"{own.get(other.path, shown_name(other.path))}: {quoted(old.words)}"
        return ""

    @cached_property
    def _replaced_figures(self) -> list[tuple[Passage, Replaced]]:
        """The figures that a passage says no longer hold, if the sentence speaks of no change."""
        passages = [p for p in self._all if has_replacement_cue(p.content, self._digits)]
        is_of_past = bool(passages) and self._is_of_past
        return [(p, old) for p in passages if not is_of_past for old in replaced_figures(p.content)]

    @cached_property
    def _is_of_past(self) -> bool:
        """Whether the sentence speaks of what was before, or of a change."""
        return says(self._text, "past", "change") or bool(replaced_figures(self._text))

    @cached_property
    def _people(self) -> list[str]:
        """The names of more than one word in the sentence."""
        names = (name[0] for name in names_in(self._prose) if " " in name[0])
        return [n for n in names if not any(w.isdigit() or is_of_date(w) for w in words_of(n))]

    @cached_property
    def _words(self) -> frozenset[str]:
        """The content words of the sentence, and of its source, without figures."""
        texts = (without_figures(text, find_figures(text)) for text in (self._prose, self._source))
        return frozenset().union(*map(content_words, texts))

    def _changed_by_reply(self, figure: Figure, passage: Passage) -> str:
        """What a reply or later mail has in place of a figure of the passage; "" for nothing."""
        text = _message_text(passage.content)
        quotes = [
            p for p in self._quoted_messages if p == passage or _message_text(p.content) in text
        ]
        originals = [p for p in self._all if text in _message_text(p.content)]
        replies = [p for p in self._all if any(_is_reply(p, quote) for quote in quotes)]
        later = [p for p in self._all if is_later_mail(p, passage)]
        # Of the years in names, another check says which is newer.
        in_series = [
            p
            for p in self._all
            if is_in_later_file(p, passage) and not newer_by_path(passage, [p.path], "")
        ]
        entry, *notes = self._later_entries(passage, figure)
        sources = [
            ("the mail that quotes it", passage, originals, replies),
            ("a later mail about it", passage, originals, later),
            ("a later file of the series", passage, [passage], in_series),
            *((f"a later entry of {shown_name(p.path)}", entry, [entry], [p]) for p in notes),
        ]
        for name, source, texts_before, mails in sources:
            known = " ".join([self._prose, *map(_own_text, texts_before)])
            texts = ["".join(self._about(figure, source, mail)) for mail in mails]
            for check in check_figures(self._prose, texts, texts) if any(texts) else ():
                is_other = check.figure.text == figure.text and check.found is None
                if is_other and check.others and not any(other in known for other in check.others):
                    return f"{name} has {', '.join(check.others)}"
        return ""

    def _later_entries(self, passage: Passage, figure: Figure | None = None) -> list[Passage]:
        """The entry of dated notes that the sentence is about, then later ones.

        Without a date: the passage, and all entries, or for a figure those that tell of a change.
        """
        cited = "\n".join(p.content for p in self._exact if p.chunk_id == passage.chunk_id)

        def states(text: str) -> bool:
            is_cited = not cited or any(line and line in cited for line in text.split("\n"))
            return is_cited and (not figure or any(is_same(f, figure) for f in find_figures(text)))

        own = [p for p in self._entries if p.chunk_id == passage.chunk_id and states(p.content)]
        first = best_match(self._text, own).passage or passage
        if not date_of(passage):
            return [first, *(p for p in self._entries if not figure or says(p.content, "change"))]
        of_file = (p for p in self._entries if p.document.document_id == first.document.document_id)
        return [first, *(p for p in of_file if own and is_older(first, p))]

    def _about(self, figure: Figure, first: Passage, later: Passage) -> list[str]:
        """The sentences of a mail that have another figure; none if the mail says that this stays.

        They have the words of the draft, or of the earlier mail, ``first``, beside it; or they say
        what is new, if that mail has no other figure of this kind, such as a price, or the day
        until which something is due. An entry of notes or minutes has more of them.
        """
        source, mail = _own_text(first), _own_text(later)
        is_entry = later.document.document_type != "mail"
        of_source, sentences = find_figures(source), sentences_of(mail)
        own = [f for f in of_source if is_same(f, figure)]
        if not own:
            return []

        def is_like(other: Figure, text: str) -> bool:
            return other.unit == figure.unit and is_limit(text, other) == is_limit(source, own[0])

        is_only = not is_entry and own == [f for f in of_source if is_like(f, source)]
        text = without_figures(self._prose, find_figures(self._prose))
        beside = [s for s in sentences_about(text, source, 0.0, 1) if own[0].text in s]
        plain = [text, *(without_figures(s, find_figures(s)) for s in beside)]
        least = (0.0, 1 + is_entry) if figure.unit == "date" else (COVERED, 2)
        about = [{*sentences_about(one, mail, *least)} for one in plain]
        others = [s for s in sentences if any(is_like(f, s) for f in find_figures(s))]
        if any(says(s, "same") and s in about[0] and s not in others for s in sentences):
            return []
        near = frozenset[str]().union(*about)
        return [s for s in others if s in near or (is_only and says(s, "new", "change"))]

    def _amended(self) -> Iterator[tuple[Passage, str]]:
        """What a document that amends a cited one has in place of what the sentence says."""
        cited = {} if self._is_of_past else {p.document: p for p in self.cited}
        for document, first in cited.items():
            passages = [p for p in self.cited if p.document == document]
            for by in amending_passages(first, (*self._evidence.stating, *self._all)):
                amended = self._amended_sentences(passages, by) if by.document not in cited else ()
                for passage, text in amended:
                    is_outside = by.document.origin == "external"
                    said = "says that it amends it" if is_outside else "amends it"
                    said += f": {quoted(shortened(text))}" if may_amend(by, first) else ""
                    yield passage, f"{shown_name(by.path)} {said}"

    def _amended_sentences(
        self, passages: Sequence[Passage], by: Passage
    ) -> Iterator[tuple[Passage, str]]:
        """The sentences of another passage that amend what the sentence says, and where it is."""
        names = names_of(passages[0])
        text = " ".join(passage.content for passage in passages)
        words = content_words(self._prose, text) - content_words(names, text)
        figures = find_figures(self._prose)

        def shared(sentence: ReadSentence) -> int:
            same = (f for f in figures if any(is_same(f, own) for own in sentence.figures))
            return len(words & sentence.words) + sum(1 for _ in same)

        most = max((shared(s) for p in passages for s in read_sentences(p.content)), default=0)
        for passage in passages:
            heading = " ".join(passage.headings[-1:])
            found = changes(passage.content, heading, by.content, names)
            for change in sorted(found, key=lambda change: -shared(change.old)):
                least = max(min(most, len(change.old.words)), 1)
                if 2 * shared(change.old) > least and says_the_old(self._prose, change, by.content):
                    yield passage, change.new.text

    def _changed_by_text(self) -> Iterator[tuple[Passage, str]]:
        """What later texts say is gone, and later files of a series, or mails, say is new."""
        cited = () if self._is_of_past else self.cited
        noted = {entry.chunk_id for entry in self._entries}
        texts = [p for p in self._all if p.chunk_id not in noted and p not in self.cited]
        pairs = [
            (later, passage)
            for later, passage in product([*texts, *self._entries], cited)
            if later.document.document_id != passage.document.document_id
        ]
        for first, *entries in map(self._later_entries, cited):
            pairs += product(entries, [first])
        for other, passage in pairs:
            if change := self._later_sentence(other, passage):
                yield passage, f"{shown_name(other.locator)} is later: {quoted(shortened(change))}"

    def _later_sentence(self, later: Passage, passage: Passage) -> str:
        """The sentence of a later passage that says another thing; "" without one.

        In a later file of a series, or a later mail about the matter, other words about the same
        are another thing, unless it says somewhere that this stays.
        """
        date, day = date_of(passage), day_of(later, self._copied_on)
        own = without_numbers(without_figures(self._text, find_figures(self._text)))
        names = content_words(later.document.title)
        # Of a passage without a date, a later text must be about the same by its name.
        is_related = is_in_later_file(later, passage) or is_later_mail(later, passage)
        is_later = is_related or (day > date and (date or own & names or later in self._entries))
        known = words_gone(self._text) | words_gone(passage.content)
        head = content_words(" ".join((later.document.title, *later.headings[-1:])))
        like = (
            [(s, shared & own, nouns) for s, shared, nouns in sentences_like(self._text, later)]
            if is_later
            else []
        )
        kept = max(
            (len(shared) for sentence, shared, _ in like if says(sentence, "same")), default=0
        )
        headings = [content_words(" ".join(p.headings[-1:])) for p in (later, passage)]
        is_other = is_related and later.content_type != "table"
        is_other &= not (headings[0] and headings[0].isdisjoint(headings[1] | own))
        is_other &= not any(self._stays(s, shared - head, own) for s, shared, _ in like)
        for sentence, shared, nouns in like:
            stated = gone_statements(sentence)
            gone = frozenset[str]().union(*(old for old, _, of in stated if not of or of & own))
            gone &= own - known
            is_telling = len(gone) > 1 or not all(map(is_ordinary, shared - gone))
            is_about = is_related or len(shared) > COVERED * len(own)
            is_change = len(nouns) > 1 and says(sentence, "change")
            is_new = says(sentence, "new", "change") and not all(map(is_ordinary, nouns - head))
            is_new |= says(sentence, "who") and any(name not in sentence for name in self._people)
            # What a changed figure is of, the check of figures says.
            is_about &= not (says(sentence, "same") or replaced_figures(sentence))
            is_about &= len(shared) >= kept
            is_new |= (
                is_other
                and len(shared - head) > 1
                and not nouns <= head
                and len(shared) >= _MIN_SHARED_SHARE * len(own)
                and digits_in(sentence).isdisjoint(digits_in(self._text))
            )
            if (is_about and (is_change or is_new)) or (gone and (is_related or is_telling)):
                return " ".join(sentence.split())
        return ""

    def _stays(self, later: str, shared: Set[str], own: Set[str]) -> bool:
        """Whether a later sentence says that something stays, or nearly the same."""
        words = content_words(without_figures(later, find_figures(later)))
        is_alike = len(shared & own) >= _REPEATED * min(len(own), len(words))
        is_repeated = is_alike and is_denied(later) == is_denied(self._text)
        is_repeated &= all(name[0] in self._text for name in names_in(later))
        return is_repeated or (bool(shared) and says(later, "same"))

    def _names(self, figures: Sequence[Span]) -> Iterator[Finding]:
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
        parts, words = unknown_parts(name[0], self._exact) if self._exact else [], name[0].split()
        for passage in self._exact if parts else ():
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
            is_covered = match.share >= COVERED and match.share * match.words + 1 >= MIN_WORDS
        if is_covered:
            note = f"{match.share:.0%} of its content words stand together there"
            yield self._finding("covered", start, end, match.passage, note, match.text)
        elif match.words:
            yield self._finding("uncovered", start, end, note="no passage has enough of its words")
        exact = self._exact or self.cited
        found = (
            difference(self._text, exact or self._all)
            or other_qualifier(self._text, exact)
            or other_cell(self._prose, self.cited, exact)
            or other_answer(self._prose, exact)
            or lost_condition(self._prose, exact)
            or unknown_reason(self._prose, self.cited)
        )
        if found:
            note = f"differs: {found.what}"
            yield self._finding("differs", start, end, found.passage, note, found.text)


@lru_cache(maxsize=1024)
def _message_text(content: str) -> str:
    return " ".join(without_attribution(content).split())


def _own_text(mail: Passage) -> str:
    """The text of a mail without the lines of another one that it quotes."""
    return "\n".join(line for line in mail.content.split("\n") if not line.startswith(">"))


def _is_reply(passage: Passage, quote: Passage) -> bool:
    """Whether a passage is of the mail, or of the newer message in it, that quotes another one."""
    (mail, number), (quote_mail, quote_number) = map(message_of, (passage.anchor, quote.anchor))
    return passage.document == quote.document and mail == quote_mail and number < quote_number


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
    counted_checks = [counted(counts[c], noun) for c, noun in _COUNTED.items() if counts[c]]
    places = [f.span.start for f in checked if f.check in _COUNTED]  # In their order.
    skipped = sum(
        s.has_content and bisect_left(places, s.start) == bisect_left(places, s.end)
        for s in sentences
    )
    rest = f"; {counted(skipped, 'sentence')} {'was' if skipped == 1 else 'were'} not checked"
    rest = rest if skipped else ""
    failing, doubtful = (
        ", ".join(f"{count} {code}" for code, count in codes.most_common(5))
        for codes in (Counter(f.code for f in findings if f.verdict == v) for v in _DOUBTS)
    )
    has_none = evidence.is_named and not evidence.passages
    if failing or (doubtful and not has_none):
        parts = (
            failing,
            doubtful and f"to check: {doubtful}",
            f"checked: {', '.join(counted_checks) or 'nothing'}",
        )
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
    done = ", ".join(counted_checks)
    return "clean", f"{done}{rest}; whether the sentences are true is not checked"
