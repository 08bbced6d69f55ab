"""The findings of a check: their codes, what is doubtful about sources, the draft with marks. Pure.

A source fails if retrieval would not select the passage. What retrieval only warns of is a remark;
it is to be checked if somebody disputed the passage, or if the role's own policy calls it stale.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.terms import Sensitivity, level_rank
from rolebundle.contracts.verification import CheckName, Finding, FindingCode, Outcome, Span
from rolebundle.resources import data_file
from rolebundle.retrieval.filter import age_days, age_note, freshness_of, labels_of
from rolebundle.retrieval.passage_text import shown_name
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.statements import names_document, replacing_passages
from rolebundle.retrieval.versions import is_old_by_path, newer_by_path
from rolebundle.storage.corpus import joined
from rolebundle.text.replaced import says
from rolebundle.text.words import place_to_cut
from rolebundle.verify.draft import Sentence
from rolebundle.verify.sentences import is_repeated

MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""
_TABLE: Any = data_file(__file__, "findings.toml")
CODES: Mapping[FindingCode, tuple[CheckName, Outcome, str | None]] = {
    code: (check, row["verdict"], row.get("remedy"))
    for check, rows in _TABLE.items()
    for code, row in rows.items()
}
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
    check, verdict, remedy = CODES[code]
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
    sentences: Sequence[Sentence],
) -> Iterator[Finding]:
    """Findings for the first use of each passage that is doubtful, or above a level.

    ``passages`` are all that the draft was checked against. Of its sentences, citations do not
    count: who cites a draft does not say that it is one.
    """
    prose = " ".join(sentence.prose(with_quotes=True) for sentence in sentences)
    used: set[tuple[str, FindingCode]] = set()
    replacing = cache(lambda name: replacing_passages(passages[name], passages.values()))
    for use in sorted(findings, key=lambda f: f.span.start):
        passage = passages.get(use.chunk_id or "")
        if passage is None or use.code not in _FROM_SOURCE:
            continue
        doubts = [*_doubts(passage, request)]
        text = prose.replace(passage.path.rpartition("/")[2], " ")
        own = next((s.prose(with_quotes=True) for s in sentences if use.span.start < s.end), "")
        by_name = newer_by_path(passage, [p.path for p in passages.values()], text)
        others = () if says(own, "past") else replacing(passage.chunk_id)
        stating = [by.path for by in others if not names_document(text, by, passage)]
        newer = [*by_name[:1], *stating]
        of_newer = [p for p in passages.values() if p.path in newer]
        ids = {p.chunk_id for p in of_newer}
        cites = (f.span.start for f in findings if f.code == "cited" and f.chunk_id in ids)
        is_cited = any(use.span.start <= start < use.span.end for start in cites)
        # Who cites an old version for what the newer one says, too, is right.
        if newer and not (is_cited or is_repeated(own, passage, of_newer)):
            note = "is newer, by its name" if by_name else "replaces it, by their texts"
            doubts.append(("old_source", f"{shown_name(newer[0])} {note}", {}))
        elif not newer and is_old_by_path(passage.path):
            doubts.append(("old_source", "it is old, by its name", {}))
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
