"""Verify a draft: its quotes, citations, figures and sentences against passages of the corpus.

draft ─▶ parse ─▶ sentences, quotes, citations ─┐
bundle, chunk ids or corpus ─▶ evidence ────────┴▶ checks ─▶ findings ─▶ verdict, validated draft
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from time import monotonic
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import (
    CheckedPassage,
    Finding,
    Span,
    Verdict,
    Verification,
    VerifyRequest,
)
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.storage.connection import Corpus
from rolebundle.storage.verify import verify_passages
from rolebundle.verification.draft.citations import check_citations, uncited_sentences
from rolebundle.verification.draft.coverage import check_coverage
from rolebundle.verification.draft.evidence import (
    NamedEvidence,
    WholeCorpus,
    passages_of_bundle,
    passages_of_ids,
    read_evidence,
)
from rolebundle.verification.draft.figures import check_figures
from rolebundle.verification.draft.findings import shorten
from rolebundle.verification.draft.judge import Judge, Opinions
from rolebundle.verification.draft.parse import Draft, parse_draft
from rolebundle.verification.draft.publish import check_publish, without_confidential
from rolebundle.verification.draft.quotes import check_quotes
from rolebundle.verification.draft.sources import FROM_SOURCE, Use, check_sources
from rolebundle.verification.draft.validated import validated_draft

DEFAULT_REQUIRED = frozenset(("quotes", "figures", "coverage"))
DEFAULT_SECONDS = 45.0
"""For the checks, if the request has no deadline: many callers wait 60 seconds."""
SENTENCES_AT_ONCE = 50
"""So many sentences are checked between two looks at the deadline."""

_OPTIONAL = frozenset(("quotes", "figures", "coverage"))
"""The checks that fail only if they are required."""
_MAX_NAMED = 5


class _Checked(NamedTuple):
    """The findings, and the passages that they name, by chunk id."""

    findings: list[Finding]
    passages: dict[str, Passage]


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
    required = required_checks(request)
    end = None if request.deadline_ms else monotonic() + DEFAULT_SECONDS
    with corpus.reading():
        draft = parse_draft(request.draft)
        evidence = _evidence(corpus, request, resolved)
        checked = _check(corpus, draft, evidence, required, end)
        verify_passages(corpus, [passage.rowid for passage in checked.passages.values()])
    uses = _uses(draft, checked)
    findings = [
        *checked.findings,
        *check_sources(uses, resolved),
        *(check_publish(draft.text, uses, resolved.purpose) if request.publish else ()),
    ]
    ordered = without_confidential(_in_order(findings, required))
    opinions = _opinions(judge, draft, checked, corpus.raise_if_interrupted)
    return _answer(request, draft, evidence, ordered, opinions, judge)


def required_checks(request: VerifyRequest) -> frozenset[str]:
    """The checks whose failures fail. What is published must be covered by a known source."""
    required = DEFAULT_REQUIRED if request.require is None else frozenset(request.require)
    return required | {"coverage"} if request.publish else required


def _evidence(
    corpus: Corpus, request: VerifyRequest, resolved: ResolvedRequest
) -> NamedEvidence | WholeCorpus:
    if request.bundle is not None:
        return read_evidence(corpus, passages_of_bundle(request.bundle), resolved)
    if request.chunk_ids is not None:
        return read_evidence(corpus, passages_of_ids(request.chunk_ids), resolved)
    return WholeCorpus(corpus, resolved)


# -- the checks ------------------------------------------------------------------------------------


def _check(
    corpus: Corpus,
    draft: Draft,
    evidence: NamedEvidence | WholeCorpus,
    required: frozenset[str],
    end: float | None,
) -> _Checked:
    """The findings on citations, quotes, figures and sentences, part by part, until a time."""
    is_named = isinstance(evidence, NamedEvidence)
    findings = [*evidence.findings]
    sources: dict[str, Passage] = {}
    done = 0
    for part in _parts(draft, SENTENCES_AT_ONCE if is_named else 1):
        corpus.raise_if_interrupted()
        if end is not None and monotonic() > end:
            findings.append(_not_checked(draft, done))
            break
        done += len(part.sentences)
        passages = evidence.candidates(_texts(part))
        named = {citation: evidence.named_by(citation, passages) for citation in part.citations}
        cited: dict[int, list[Passage]] = {}
        for citation, of_citation in named.items():
            cited.setdefault(citation.sentence, []).extend(of_citation)
        by_id = {p.chunk_id: p for p in (*passages, *chain.from_iterable(cited.values()))}
        passages = [*by_id.values()]
        of_part = [
            *check_citations(part, passages, named, required="citations" in required),
            *check_quotes(part, passages, cited),
            *check_figures(part, passages, cited),
            *check_coverage(part, passages, cited),
        ]
        names = {finding.chunk_id for finding in of_part if finding.chunk_id}
        sources |= {name: by_id[name] for name in names if name in by_id}
        findings += of_part
    return _Checked(findings, sources)


def _not_checked(draft: Draft, first: int) -> Finding:
    """The finding on the sentences from ``first`` on, for which there was no time."""
    start, end = draft.sentences[first].start, draft.sentences[-1].end
    line = draft.text.count("\n", 0, start) + 1
    share = f"{len(draft.sentences) - first:,} of {len(draft.sentences):,} sentences"
    return Finding(
        check="deadline",
        code="not_checked",
        fails=True,
        span=Span(start=start, end=end),
        text=shorten(draft.text[start:end]),
        note=f"{share}, from line {line} to the end, were not checked in {DEFAULT_SECONDS:.0f} s",
        remedy="Verify this part alone, or against a bundle; or set deadline_ms to a longer time.",
    )


def _parts(draft: Draft, sentences: int) -> Iterator[Draft]:
    """The draft in parts of so many sentences, which keep their places in its text."""
    quotes, citations = defaultdict(list), defaultdict(list)
    for quote in draft.quotes:
        part, number = divmod(quote.sentence, sentences)
        quotes[part].append(quote._replace(sentence=number))
    for citation in draft.citations:
        part, number = divmod(citation.sentence, sentences)
        citations[part].append(citation._replace(sentence=number))
    for part, first in enumerate(range(0, len(draft.sentences), sentences)):
        yield Draft(
            draft.text,
            draft.sentences[first : first + sentences],
            tuple(quotes[part]),
            tuple(citations[part]),
        )


def _texts(part: Draft) -> list[str]:
    """The texts of a part that passages are looked for with."""
    checked = [sentence.text for sentence in part.sentences if sentence.has_content]
    # A quote is searched alone if its sentence says as much again, and may hide it.
    quoted = [
        quote.text
        for quote in part.quotes
        if not part.sentences[quote.sentence].has_content
        or 2 * len(quote.text) < len(part.sentences[quote.sentence].text)
    ]
    cited = [] if checked or quoted else [part.sentences[c.sentence].text for c in part.citations]
    return [*dict.fromkeys((*checked, *quoted, *cited))]


def _uses(draft: Draft, checked: _Checked) -> list[Use]:
    """The first use of each passage in each sentence, in the order of the draft."""
    starts = [sentence.start for sentence in draft.sentences]
    uses: dict[tuple[int, str], Use] = {}
    for finding in checked.findings:
        passage = checked.passages.get(finding.chunk_id or "")
        if passage is not None and finding.code in FROM_SOURCE:
            sentence = bisect_right(starts, finding.span.start)
            text = draft.text[finding.span.start : finding.span.end]
            use = Use(finding.span, text, passage)
            uses.setdefault((sentence, passage.chunk_id), use)
    return [*uses.values()]


def _opinions(
    judge: Judge | None, draft: Draft, checked: _Checked, raise_if_interrupted: Callable[[], None]
) -> Opinions:
    if judge is None:
        return Opinions(())
    covered = [finding for finding in checked.findings if finding.code == "covered"]
    return judge.opinions(draft.text, covered, checked.passages, raise_if_interrupted)


# -- the answer ------------------------------------------------------------------------------------


def _in_order(findings: Iterable[Finding], required: frozenset[str]) -> list[Finding]:
    """The findings in the order of the draft; those of checks that are not required do not fail."""
    lowered = (
        finding.model_copy(update={"fails": False})
        if finding.fails and finding.check in _OPTIONAL - required
        else finding
        for finding in findings
    )
    return sorted(lowered, key=lambda finding: (finding.span.start, finding.span.end))


def _answer(
    request: VerifyRequest,
    draft: Draft,
    evidence: NamedEvidence | WholeCorpus,
    findings: Sequence[Finding],
    opinions: Opinions,
    judge: Judge | None,
) -> Verification:
    verdict, message = _verdict(evidence, findings, required_checks(request))
    return Verification(
        verdict=verdict,
        message=message,
        counts=dict(Counter(finding.code for finding in findings)),
        findings=[*findings],
        uncited_sentences=uncited_sentences(draft),
        validated_draft=validated_draft(draft, findings, redact=request.redact),
        passages=[
            CheckedPassage(number=number, chunk_id=passage.chunk_id, locator=passage.locator)
            for number, passage in evidence.numbers.items()
        ],
        judge=judge.name if judge else None,
        judge_problem=opinions.problem or None,
        opinions=[*opinions.opinions],
    )


def _verdict(
    evidence: NamedEvidence | WholeCorpus, findings: Sequence[Finding], required: frozenset[str]
) -> tuple[Verdict, str]:
    """The verdict, and the verdict in words."""
    failing = Counter(finding.code for finding in findings if finding.fails)
    if failing:
        named = ", ".join(f"{count} {code}" for code, count in failing.most_common(_MAX_NAMED))
        more = f" and {len(failing) - _MAX_NAMED} more codes" if len(failing) > _MAX_NAMED else ""
        counted = "1 finding fails" if failing.total() == 1 else f"{failing.total()} findings fail"
        return "fail", f"{counted}: {named}{more}; do what the remedy says"
    if isinstance(evidence, NamedEvidence) and not evidence.passages:
        return (
            "nothing_to_verify",
            "there is no passage to verify the draft against; retrieve first",
        )
    if not any(
        finding.check in required | {"citations"} and finding.code != "unchecked_language"
        for finding in findings
    ):
        kinds = ", ".join(sorted(required)) or "citations"
        return "nothing_to_verify", f"the draft has nothing that can be checked ({kinds})"
    return "pass", (
        "every required check passes; a covered sentence has words of a passage, which does "
        "not prove that the passage supports it"
    )
