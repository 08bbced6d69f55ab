"""The findings of a check: their codes, what is doubtful about sources, the draft with marks. Pure.

A source fails if retrieval would not select the passage. What retrieval only warns of is a remark;
it is to be checked if somebody disputed the passage, or if the role's own policy calls it stale.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import Sensitivity, level_rank
from rolebundle.contracts.verification import CheckName, Finding, FindingCode, Outcome, Span
from rolebundle.retrieval.filter import age_days, age_note, freshness_of, labels_of
from rolebundle.retrieval.passage_text import shown_name
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.versions import is_old_by_path, newer_by_path
from rolebundle.storage.corpus import joined
from rolebundle.text.words import place_to_cut
from rolebundle.verify.draft import Sentence

MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""
_AGAIN = "Retrieve again, and write from what comes back."
_SAY_SO = "Say so, or find another source."
_CODES: dict[FindingCode, tuple[CheckName, Outcome, str | None]] = {
    "exact": ("quotes", "clean", None),
    "normalized": ("quotes", "clean", None),
    "misattributed": ("quotes", "failed", "Cite the passage that has the quote."),
    "near": ("quotes", "failed", "Quote the passage word for word, with all that belongs to it."),
    "cut_short": ("quotes", "check", "Quote or say also what limits it."),
    "absent": ("quotes", "failed", "Leave the quote out, or say it without quotation marks."),
    "cited": ("citations", "clean", None),
    "unknown_citation": ("citations", "failed", "Remove it, or cite a passage."),
    "wrong_place": ("citations", "check", "Cite the passage that the sentence is from."),
    "unrelated_citation": ("citations", "failed", "Cite the passage that the sentence is from."),
    "unchecked_language": ("citations", "check", "Have a person check it."),
    "figure_found": ("figures", "clean", None),
    "rounded": ("figures", "clean", None),
    "computed": ("figures", "clean", None),
    "unsupported_figure": ("figures", "check", "Say where it is from, or leave it out."),
    "unknown_name": ("names", "check", "Look it up, or leave it out."),
    "covered": ("coverage", "clean", None),
    "uncovered": ("coverage", "failed", "Say what the evidence says, or leave the sentence out."),
    "differs": ("wording", "check", "Read the passage: the sentence may say the opposite."),
    "judged_unsupported": ("judge", "check", "Read the passage, and correct the sentence."),
    "unknown_passage": ("sources", "failed", _AGAIN),
    "changed_passage": ("sources", "failed", _AGAIN),
    "rejected_source": ("sources", "failed", "Remove what is based on this passage."),
    "superseded_source": ("sources", "failed", None),
    "old_source": ("sources", "check", "Write from the newer one, or say how old this is."),
    "disputed_source": ("sources", "check", _SAY_SO),
    "stale_source": ("sources", "check", "Say how old it is, or find a newer source."),
    "untrusted_source": ("sources", "clean", _SAY_SO),
    "flagged_source": ("sources", "clean", "Have a person read the source."),
    "secret_in_draft": ("publish", "failed", "Remove it."),
    "confidential_source": ("publish", "failed", "Remove what is from this passage."),
    "not_checked": ("deadline", "failed", None),
}  # fmt: skip
"""Code → check, what it does to the verdict, and the remedy."""
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
    check, verdict, remedy = _CODES[code]
    values: dict[str, Any] = {
        "check": check,
        "verdict": verdict,
        "span": Span(start=start, end=end),
        "text": shortened(text),
        "chunk_id": passage.chunk_id if passage else None,
        "locator": passage.locator if passage else None,
        "note": note or None,
        "remedy": remedy,
    } | more
    return Finding(code=code, fails=values["verdict"] == "failed", **values)


def shortened(text: str) -> str:
    """As much of a text as a finding shows."""
    return text if len(text) <= MAX_SHOWN else f"{text[: place_to_cut(text, MAX_SHOWN - 1)]}…"


# -- sources ---------------------------------------------------------------------------------------


def check_sources(
    findings: Sequence[Finding],
    passages: dict[str, Passage],
    request: ResolvedRequest,
    level: Sensitivity | None,
    prose: str,
) -> Iterator[Finding]:
    """Findings for the first use of each passage that is doubtful, or above a level.

    ``passages`` are all that the draft was checked against, ``prose`` is the draft without
    citations: who cites a draft does not say that it is one.
    """
    used: set[tuple[str, FindingCode]] = set()
    for use in sorted(findings, key=lambda f: f.span.start):
        passage = passages.get(use.chunk_id or "")
        if passage is None or use.code not in _FROM_SOURCE:
            continue
        doubts = [*_doubts(passage, request)]
        text = prose.replace(passage.path.rpartition("/")[2], " ")
        newer = newer_by_path(passage, passages.values(), text)
        if newer or is_old_by_path(passage.path):
            note = (
                f"{shown_name(newer[0])} is newer, by its name"
                if newer
                else "it is old, by its name"
            )
            doubts.append(("old_source", note, {}))
        sensitivity = passage.document.sensitivity
        if level and use.check != "figures" and level_rank(sensitivity) > level_rank(level):
            doubts.append(("confidential_source", f"its sensitivity is {sensitivity}", {}))
        for code, note, more in doubts:
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
    has_max_age = request.retrieval_policy.freshness_max_age_days is not None
    if has_max_age and freshness_of(passage, request) == "stale":
        age = age_days(passage.document, request.now) or 0.0
        yield "stale_source", age_note(passage.document, age, request.stale_after_days), {}
    if labels.is_untrusted or labels.origin == "untrusted":
        kind = "trust tier" if labels.is_untrusted else "origin"
        yield "untrusted_source", f"its {kind} is untrusted", {}
    if labels.is_flagged:
        yield "flagged_source", f"flagged: {', '.join(passage.flags)}", {}


# -- the draft with marks --------------------------------------------------------------------------


def validated_draft(
    text: str, sentences: Sequence[Sentence], findings: Sequence[Finding], *, redact: bool
) -> str | None:
    """The draft with all that is not clean removed or marked; ``None`` if all of it is clean.

    Removed are whole sentences, since half of a sentence may state the opposite. A mark is
    ``[[codes: text]]``. No text is made up.
    """
    failing = [f for f in findings if f.verdict != "clean" and f.span.end > f.span.start]
    if not failing:
        return None
    spans = joined(sorted((f.span.start, f.span.end) for f in failing), -1)
    if redact:
        starts, ends = [start for start, _ in spans], [end for _, end in spans]
        touched = (
            (s.start, s.end) for s in sentences
            if bisect_right(ends, s.start) < bisect_left(starts, s.end)
        )  # fmt: skip
        spans = joined(sorted([*spans, *touched]), -1)
    pieces, copied, number = [], 0, 0
    failing.sort(key=lambda f: f.span.start)
    for start, end in spans:
        pieces.append(text[copied:start])
        codes = dict[str, None]()
        while number < len(failing) and failing[number].span.start < end:
            codes[failing[number].code] = None
            number += 1
        if not redact:
            pieces.append(f"[[{', '.join(codes)}: {text[start:end]}]]")
        copied = end
    return "".join((*pieces, text[copied:]))
