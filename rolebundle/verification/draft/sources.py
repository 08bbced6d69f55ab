"""Whether the sources of a draft can be relied on, and whether it may leave the machine. Pure.

A finding fails if retrieval would not select the passage. What retrieval only warns of, such as a
stale passage, does not fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import CheckName, Finding, FindingCode, Span
from rolebundle.policy.trust import Purpose
from rolebundle.retrieval.filter import age_days, age_note, freshness_of, labels_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.scan import finding as scan
from rolebundle.scan.confidential import find_confidential

FROM_SOURCE: frozenset[FindingCode] = frozenset(
    ("cited", "exact", "normalized", "covered", "figure_found")
)
"""The codes of findings that say that a part of the draft is in a passage."""
_Doubt = tuple[CheckName, FindingCode, bool, str, str]


def check_sources(
    findings: Sequence[Finding],
    passages: dict[str, Passage],
    request: ResolvedRequest,
    *,
    publish: bool,
) -> Iterator[Finding]:
    """Findings for the first use of each passage that is doubtful, or may not be sent."""
    used: set[tuple[str, FindingCode]] = set()
    for finding in sorted(findings, key=lambda f: f.span.start):
        passage = passages.get(finding.chunk_id or "")
        if passage is None or finding.code not in FROM_SOURCE:
            continue
        doubts = [*_doubts(passage, request)]
        if publish:
            doubts += _unsendable(passage, Purpose("external_send", table=request.purpose.table))
        for check, code, fails, note, remedy in doubts:
            if (passage.document.document_id, code) not in used:
                used.add((passage.document.document_id, code))
                yield Finding(
                    check=check, code=code, fails=fails, span=finding.span, text=finding.text,
                    chunk_id=passage.chunk_id, locator=passage.locator, note=note, remedy=remedy,
                )  # fmt: skip


def _doubts(passage: Passage, request: ResolvedRequest) -> Iterator[_Doubt]:
    labels = labels_of(passage)
    if passage.superseded_by:
        newer = ", ".join(document.document_id for document in passage.superseded_by)
        yield "sources", "superseded_source", True, f"superseded by {newer}", f"Write from {newer}."
    if passage.mark is not None and passage.mark.state == "disputed":
        note = f"disputed by {passage.mark.marked_by}: {passage.mark.reason}"
        yield "sources", "disputed_source", False, note, "Say so, or find another source."
    if freshness_of(passage, request) == "stale":
        age = age_days(passage.document, request.now) or 0.0
        note = age_note(passage.document, age, request.max_age_days)
        yield "sources", "stale_source", False, note, "Say how old it is, or find a newer source."
    if labels.is_untrusted or labels.origin == "untrusted":
        note = f"its {'trust tier' if labels.is_untrusted else 'origin'} is untrusted"
        yield "sources", "untrusted_source", False, note, "Say so, or find another source."
    if labels.is_flagged:
        note = f"flagged: {', '.join(passage.flags)}"
        yield "sources", "flagged_source", False, note, "Have a person read the source."


def _unsendable(passage: Passage, purpose: Purpose) -> Iterator[_Doubt]:
    if (sensitivity := passage.document.sensitivity) != "public":
        note = f"its sensitivity is {sensitivity}, not public"
        yield (
            "publish",
            "sensitive_source",
            True,
            note,
            "Remove it, or ask the owner of the source.",
        )
    if rejection := purpose.rejection(labels_of(passage)):
        remedy = "Remove it, or ask a person to approve that it is sent."
        yield "publish", "unsendable_origin", True, f"{rejection[0]}: {rejection[1]}", remedy


def check_confidential(text: str) -> list[Finding]:
    """Findings for the secrets and the personal data of a draft, without their text."""
    found = find_confidential(text)
    return [
        *_confidential(found.secrets, "secret", "Remove it, and use a new secret."),
        *_confidential(found.personal, "personal_data", "Remove it, or ask the person."),
    ]


def _confidential(
    found: Iterable[scan.Finding], code: FindingCode, remedy: str
) -> Iterator[Finding]:
    for item in found:
        span = Span(start=item.start, end=item.end)
        yield Finding(
            check="publish",
            code=code,
            fails=True,
            span=span,
            text="",
            note=item.note,
            remedy=remedy,
        )


def without_confidential(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, none with a text that has a secret or personal data: a report may be stored."""
    spans = [f.span for f in findings if f.code in ("secret", "personal_data")]
    return [
        f.model_copy(update={"text": "", "note": None})
        if f.check != "publish"
        and any(s.start < f.span.end and f.span.start < s.end for s in spans)
        else f
        for f in findings
    ]
