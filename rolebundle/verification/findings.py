"""The findings of a check: their codes, what is doubtful about sources, the draft with marks. Pure.

A source fails if retrieval would not select the passage. What retrieval only warns of, such as a
stale passage, does not fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.verification import CheckName, Finding, FindingCode, Span
from rolebundle.retrieval.filter import age_days, age_note, freshness_of, labels_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.verification.draft import Sentence, merged

MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""
_AGAIN = "Retrieve again, and write from what comes back."
_SAY_SO = "Say so, or find another source."
_CODES: dict[FindingCode, tuple[CheckName, bool, str | None]] = {
    "exact": ("quotes", False, None),
    "normalized": ("quotes", False, None),
    "misattributed": ("quotes", True, "Cite the passage that has the quote."),
    "near": ("quotes", True, "Quote the passage word for word, with all that belongs to it."),
    "absent": ("quotes", True, "Leave the quote out, or say it without quotation marks."),
    "cited": ("citations", False, None),
    "unknown_citation": ("citations", True, "Remove it, or cite a passage."),
    "wrong_place": ("citations", True, "Cite the passage that the sentence is from."),
    "unrelated_citation": ("citations", True, "Cite the passage that the sentence is from."),
    "unchecked_language": ("citations", False, "Have a person check it."),
    "figure_found": ("figures", False, None),
    "rounded": ("figures", False, "Check that this is what the passage says."),
    "computed": ("figures", False, "Check the calculation."),
    "unsupported_figure": ("figures", True, "Say where it is from, or leave it out."),
    "unknown_name": ("names", False, "Look it up, or leave it out."),
    "covered": ("coverage", False, None),
    "uncovered": ("coverage", True, "Say what the evidence says, or leave the sentence out."),
    "differs": ("coverage", False, "Read the passage: the sentence may say the opposite."),
    "judged_unsupported": ("judge", False, "Read the passage, and correct the sentence."),
    "unknown_passage": ("sources", True, _AGAIN),
    "changed_passage": ("sources", True, _AGAIN),
    "rejected_source": ("sources", True, "Remove what is based on this passage."),
    "superseded_source": ("sources", True, None),
    "disputed_source": ("sources", False, _SAY_SO),
    "stale_source": ("sources", False, "Say how old it is, or find a newer source."),
    "untrusted_source": ("sources", False, _SAY_SO),
    "flagged_source": ("sources", False, "Have a person read the source."),
    "not_checked": ("deadline", True, None),
}  # fmt: skip
"""Code → check, whether it fails, and the remedy."""
_FROM_SOURCE = frozenset(("cited", "exact", "normalized", "covered", "figure_found"))
"""The codes of findings that say that a part of the draft is in a passage."""


def finding(
    code: FindingCode,
    start: int,
    end: int,
    text: str = "",
    passage: Passage | None = None,
    note: str = "",
    **more: Any,
) -> Finding:
    """A finding on a range of the draft, with what its code says. ``more`` are other fields."""
    check, fails, remedy = _CODES[code]
    values: dict[str, Any] = {
        "check": check,
        "fails": fails,
        "span": Span(start=start, end=end),
        "text": shortened(text),
        "chunk_id": passage.chunk_id if passage else None,
        "locator": passage.locator if passage else None,
        "note": note or None,
        "remedy": remedy,
    }
    return Finding(code=code, **values | more)


def shortened(text: str) -> str:
    """As much of a text as a finding shows."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


# -- sources ---------------------------------------------------------------------------------------


def check_sources(
    findings: Sequence[Finding], passages: dict[str, Passage], request: ResolvedRequest
) -> Iterator[Finding]:
    """Findings for the first use of each passage that is doubtful."""
    used: set[tuple[str, FindingCode]] = set()
    for use in sorted(findings, key=lambda f: f.span.start):
        passage = passages.get(use.chunk_id or "")
        if passage is None or use.code not in _FROM_SOURCE:
            continue
        for code, note, more in _doubts(passage, request):
            if (passage.document.document_id, code) not in used:
                used.add((passage.document.document_id, code))
                yield finding(code, use.span.start, use.span.end, use.text, passage, note, **more)


def _doubts(
    passage: Passage, request: ResolvedRequest
) -> Iterator[tuple[FindingCode, str, dict[str, str]]]:
    labels = labels_of(passage)
    if passage.superseded_by:
        newer = ", ".join(document.document_id for document in passage.superseded_by)
        yield "superseded_source", f"superseded by {newer}", {"remedy": f"Write from {newer}."}
    if passage.mark is not None and passage.mark.state == "disputed":
        yield "disputed_source", f"disputed by {passage.mark.marked_by}: {passage.mark.reason}", {}
    if freshness_of(passage, request) == "stale":
        age = age_days(passage.document, request.now) or 0.0
        yield "stale_source", age_note(passage.document, age, request.max_age_days), {}
    if labels.is_untrusted or labels.origin == "untrusted":
        kind = "trust tier" if labels.is_untrusted else "origin"
        yield "untrusted_source", f"its {kind} is untrusted", {}
    if labels.is_flagged:
        yield "flagged_source", f"flagged: {', '.join(passage.flags)}", {}


# -- the draft with marks --------------------------------------------------------------------------


def validated_draft(
    text: str, sentences: Sequence[Sentence], findings: Sequence[Finding], *, redact: bool
) -> str | None:
    """The draft with what fails removed or marked; ``None`` if no part of it fails.

    Removed are the sentences in which something fails, since half of a sentence may state the
    opposite. A mark is ``[[codes: text]]``. No text is made up.
    """
    failing = [f for f in findings if f.fails and f.span.end > f.span.start]
    if not failing:
        return None
    spans = merged((f.span.start, f.span.end) for f in failing)
    if redact:
        touched = (
            (s.start, s.end) for s in sentences
            if any(first < s.end and s.start < last for first, last in spans)
        )  # fmt: skip
        spans = merged([*spans, *touched])
    pieces, copied = [], 0
    for start, end in spans:
        pieces.append(text[copied:start])
        if not redact:
            codes = dict.fromkeys(f.code for f in failing if start <= f.span.start < end)
            pieces.append(f"[[{', '.join(codes)}: {text[start:end]}]]")
        copied = end
    return "".join((*pieces, text[copied:]))
