"""Whether a draft may leave the machine: its secrets, its personal data, and its sources. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from rolebundle.contracts.verification import Finding, FindingCode, Span
from rolebundle.policy.trust import Purpose
from rolebundle.scan import finding as scan
from rolebundle.scan.confidential import find_confidential
from rolebundle.verification.draft.sources import Use, check_sendable


def check_publish(text: str, uses: Sequence[Use], purpose: Purpose) -> list[Finding]:
    """Findings for what must not be published.

    Args:
        text: the draft.
        uses: the parts of the draft with a source.
        purpose: that of the request; only its trust table counts.
    """
    confidential = find_confidential(text)
    return [
        *(_finding(finding, "secret", "Remove it, and use a new secret.")
          for finding in confidential.secrets),
        *(_finding(finding, "personal_data", "Remove it, or ask the person.")
          for finding in confidential.personal),
        *check_sendable(uses, Purpose("external_send", table=purpose.table)),
    ]  # fmt: skip


def without_confidential(findings: Sequence[Finding]) -> list[Finding]:
    """The findings in the order of the draft, none with a text that has a secret or personal data.

    A report may be stored or shown to people who may not see the draft.
    """
    confidential = [f.span for f in findings if f.code in ("secret", "personal_data")]
    if not confidential:
        return [*findings]
    starts, ends = (
        [span.start for span in confidential],
        [*accumulate((span.end for span in confidential), max)],
    )

    def has_part(finding: Finding) -> bool:
        """Whether one that begins before the finding's end ends after its start."""
        last = bisect_left(starts, finding.span.end)
        return last > 0 and ends[last - 1] > finding.span.start

    return [
        finding.model_copy(update={"text": "", "note": None})
        if finding.check != "publish" and has_part(finding)
        else finding
        for finding in findings
    ]


def _finding(finding: scan.Finding, code: FindingCode, remedy: str) -> Finding:
    return Finding(
        check="publish",
        code=code,
        fails=True,
        span=Span(start=finding.start, end=finding.end),
        text="",
        note=finding.note,
        remedy=remedy,
    )
