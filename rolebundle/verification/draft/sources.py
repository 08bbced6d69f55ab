"""Whether the sources of a draft may still be relied on, by the rules of retrieval. Pure.

A finding fails if retrieval would not select the passage. What retrieval only warns of, such as a
stale passage, does not fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import CheckName, Finding, FindingCode, Span
from rolebundle.policy.trust import Purpose
from rolebundle.retrieval.filter import age_days, age_note, freshness_of, labels_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.verification.draft.findings import shorten

FROM_SOURCE: frozenset[FindingCode] = frozenset(
    ("cited", "exact", "normalized", "covered", "figure_found")
)
"""The codes of findings that say that a part of the draft is in a passage."""


class Use(NamedTuple):
    """A part of the draft that a passage is the source of."""

    span: Span
    text: str
    passage: Passage


def check_sources(uses: Iterable[Use], request: ResolvedRequest) -> list[Finding]:
    """Findings for the uses of passages that are superseded, disputed, stale, untrusted or flagged.

    Those of rejected passages are no evidence, so that they have no use.
    """
    return [
        _finding("sources", use, code, fails, note, remedy)
        for use in uses
        for code, fails, note, remedy in _doubts(use.passage, request)
    ]


def check_sendable(uses: Iterable[Use], purpose: Purpose) -> list[Finding]:
    """Findings for the uses of passages that may not leave the machine.

    Args:
        uses: the parts of the draft with a source.
        purpose: the trust table; its action must be ``external_send``.
    """
    findings = []
    for use in uses:
        sensitivity, labels = use.passage.document.sensitivity, labels_of(use.passage)
        if sensitivity != "public":
            findings.append(
                _finding(
                    "publish",
                    use,
                    "sensitive_source",
                    True,
                    f"its sensitivity is {sensitivity}, not public",
                    "Remove it, or ask the owner of the source.",
                )
            )
        if rejection := purpose.rejection(labels):
            findings.append(
                _finding(
                    "publish",
                    use,
                    "unsendable_origin",
                    True,
                    f"{rejection[0]}: {rejection[1]}",
                    "Remove it, or ask a person to approve that it is sent.",
                )
            )
    return findings


def _doubts(
    passage: Passage, request: ResolvedRequest
) -> Iterator[tuple[FindingCode, bool, str, str]]:
    """What is doubtful about a passage: code, whether it fails, note and remedy."""
    if passage.superseded_by:
        newer = ", ".join(document.document_id for document in passage.superseded_by)
        yield "superseded_source", True, f"superseded by {newer}", f"Write from {newer}."
    if passage.mark is not None and passage.mark.state == "disputed":
        note = f"disputed by {passage.mark.marked_by}: {passage.mark.reason}"
        yield "disputed_source", False, note, "Say so, or find another source."
    if freshness_of(passage, request) == "stale":
        age = age_days(passage.document, request.now) or 0.0
        yield (
            "stale_source",
            False,
            age_note(passage.document, age, request.max_age_days),
            "Say how old it is, or find a newer source.",
        )
    labels = labels_of(passage)
    if labels.is_untrusted or labels.origin == "untrusted":
        label = "trust tier" if labels.is_untrusted else "origin"
        yield (
            "untrusted_source",
            False,
            f"its {label} is untrusted",
            "Say so, or find another source.",
        )
    if labels.is_flagged:
        flags = ", ".join(passage.flags)
        yield "flagged_source", False, f"flagged: {flags}", "Have a person read the source."


def _finding(
    check: CheckName, use: Use, code: FindingCode, fails: bool, note: str, remedy: str
) -> Finding:
    return Finding(
        check=check,
        code=code,
        fails=fails,
        span=use.span,
        text=shorten(use.text),
        chunk_id=use.passage.chunk_id,
        locator=use.passage.locator,
        note=note,
        remedy=remedy,
    )
