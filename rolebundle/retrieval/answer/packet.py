"""The packet: an answer as one text that a model can be given as it is. Pure.

What tells data from instructions, how to cite, and what the reader must know of all passages
come first, then the passages, each in a fence
(:func:`rolebundle.retrieval.answer.passage_text.fenced`). At the end stand what is the same for all
passages, what was left out, and the role's brief. Every other text of a document or an overlay
stands on a line that begins with words of this module. So no text ends its block or looks like
another part of the packet.

The budget counts the characters of the packet. It is filled from the top: after the first lines
come whole passages, the best first, and then what fits of the brief. Only a first passage that does
not fit is cut: its part that has most of the task's words comes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from rolebundle.contracts.bundle import RetrievalBundle, SelectedChunk
from rolebundle.contracts.codes import WARNINGS, shown_as
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import RANKED_LOWER
from rolebundle.retrieval.answer.passage_text import (
    DATA,
    FILE_DATE,
    Values,
    caution,
    constraint_line,
    fenced,
    one_line,
    part_of,
    passage_details,
    passage_heading,
    place_of,
    shown_id,
)
from rolebundle.text.counts import counted

MAX_CHARS = 8_000
"""Characters of a packet if the request has no limit of its own."""
_PASSAGES = 5
"""Passages of a packet if the request has no limit of its own, ..."""
_MIN_PASSAGES = 3
"""... or fewer, but not fewer than these, ..."""
_FALLS_OFF = 0.6
"""... if the others' final score is below this share of the best one's."""
_LINE_CHARS = 1_000
_SHARE = 8
"""With a budget, texts of one line are not longer than this part of it."""
_MIN_CUT_CHARS = 100
"""Less of a passage than this is not shown."""
_NOTE_CHARS = 100
"""A note about what was left out is shorter."""

_CITE: Mapping[str, str] = {
    "inline": "Cite them as [1].",
    "footnote": "Cite each statement by a footnote, such as [^1], and end with one line for each: "
    "[^1]: and the place of the passage, such as notes.md:3-9.",
    "bundle_only": "Write no citations. State nothing that no passage says.",
}
_UNANSWERED = frozenset({"nothing_found", "no_evidence", "all_below_floor"})
_ASK_AGAIN = (
    "Ask once more with other words. If that finds nothing either, say that the documents do not "
    "answer the question."
)
_PROHIBITION = re.compile(r"(?:do not|don['’]t|never|no|avoid)\b", re.IGNORECASE)


def packet(
    bundle: RetrievalBundle, overlay: Overlay | None = None, max_chars: int | None = None
) -> str:
    """The packet of an answer.

    Args:
        bundle: the answer. If its request has no limit, the packet has fewer passages.
        overlay: the overlay that it was made with; ``None`` without a role.
        max_chars: the most characters of the packet; 1,000 or more. Default: ``MAX_CHARS``, or no
            bound if the request has a limit.
    """
    has_limit = bool(bundle.request and bundle.request.limit)
    documents = [chunk for chunk in bundle.selected if chunk.metadata.remembered_from is None]
    wanted = bundle.selected
    if not has_limit:
        # Filed facts come after the documents, and have places of their own.
        wanted = [*documents[: _worth_showing(documents)], *wanted[len(documents) :]]
    room = max_chars or (math.inf if has_limit else MAX_CHARS)
    most = int(min(_LINE_CHARS, room / _SHARE))
    head = []
    if bundle.request and bundle.request.as_of:
        time = iso_utc(bundle.request.as_of)
        head.append(f"As of {time}: later documents are left out; those without a date stay.")
    if wanted:
        cite = overlay.synthesis_policy.citation_style if overlay else "inline"
        head.append(f"{DATA} {_CITE[cite]}")
    values = [chunk.model_dump(exclude_none=True) for chunk in wanted]
    details = [*map(passage_details, values)]
    same = _same_for_all(details)
    details = [[part for part in parts if part not in same] for parts in details]
    blocks = [*map(_block, _with_title_once(values), details)]
    before = [one_line(line, 2 * most) for line in _before(bundle)]
    after = [one_line(line, 2 * most) for line in _after(bundle, same)]
    brief = [one_line(line, most) for line in _brief(bundle, overlay)] if overlay else []
    lines = len(before) + len(after) + len(brief)

    after = _fitting(after, room / 3)
    room -= _size([*head, *after]) + 2 * _NOTE_CHARS
    told = _fitting(before, max(room / 2, room - _size(blocks)))
    room -= _size(told)
    shown = _fitting(blocks, room) or _cut_block(bundle, values, details, room)
    room -= _size(shown)
    brief_shown = _fitting(brief, room)
    lines_left_out = lines - len(told) - len(after) - len(brief_shown)
    passages_left_out = len(bundle.selected) - len(shown)

    after = ["", *brief_shown, *after] if shown else [*brief_shown, *after]
    if passages_left_out:
        larger = " and a larger max_chars" if len(shown) < len(wanted) else ""
        more = counted(passages_left_out, "more passage")
        after.append(f"{more}: ask with limit {len(documents)}{larger}.")
    if lines_left_out:
        after.append(f"({counted(lines_left_out, 'line')} left out here for the budget)")
    return "\n".join([*head, *told, *shown, *after]).rstrip("\n")


def _worth_showing(selected: Sequence[SelectedChunk]) -> int:
    """How many of the first passages a model gets."""
    for place, chunk in enumerate(selected[:_PASSAGES]):
        if place >= _MIN_PASSAGES and chunk.scores.final < _FALLS_OFF * selected[0].scores.final:
            return place
    return _PASSAGES


# -- the budget ----------------------------------------------------------------------------------


def _size(lines: Sequence[str]) -> int:
    """Their characters, each with the end of its line."""
    return sum(map(len, lines)) + len(lines)


def _fitting(lines: Sequence[str], room: float) -> list[str]:
    """The first lines, as many as fit together."""
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return [*lines[:count]]
    return [*lines]


# -- the passages --------------------------------------------------------------------------------


def _same_for_all(details: Sequence[Sequence[str]]) -> list[str]:
    """What is the same for all of several passages."""
    first = details[0] if len(details) > 1 else ()
    return [part for part in first if all(part in parts for parts in details)]


def _with_title_once(passages: Sequence[Values]) -> Iterator[Values]:
    """The passages, of which only the first one of a document has its title."""
    shown = set[str]()
    for passage in passages:
        document = passage["document_id"]
        yield {**passage, "title": ""} if document in shown else passage
        shown.add(document)


def _block(passage: Values, details: Sequence[str]) -> str:
    lines = ["", passage_heading(passage, details), *fenced(passage["content"])]
    if passage.get("truncated"):
        place = place_of({**passage["citation"], "anchor": None}) or passage["chunk_id"]
        lines.append(f"The passage is longer. To read all of it, call get with {shown_id(place)}")
    return "\n".join(lines)


def _cut_block(
    bundle: RetrievalBundle,
    passages: Sequence[Values],
    details: Sequence[Sequence[str]],
    room: float,
) -> list[str]:
    """The block of the first passage, cut so that it fits; none if too little is left of it."""
    if not passages:
        return []
    words = {word.casefold() for term in bundle.query.lexical_query for word in term.split()}
    content = passages[0]["content"]
    length = int(min(len(content), room))
    while length >= _MIN_CUT_CHARS:
        part = part_of(content, words, length)
        block = _block({**passages[0], "content": part, "truncated": True}, details[0])
        excess = _size([block]) - room
        if excess <= 0:
            return [block]
        length -= math.ceil(excess)
    return []


# -- the other parts -----------------------------------------------------------------------------


def _before(bundle: RetrievalBundle) -> Iterator[str]:
    """What the reader must know before the passages."""
    is_empty = not bundle.selected
    verdict = bundle.fallback.verdict if bundle.fallback else None
    if is_empty:
        found = f"No passage was found{f' ({verdict})' if verdict else ''}."
        yield f"{found} Do not claim anything about these documents."
    if line := caution(bundle):
        codes = {warning.code for warning in bundle.warnings} - shown_as("owner", "note")
        advice = (
            [] if is_empty else [WARNINGS[code].advice for code in WARNINGS if code in codes][:1]
        )
        yield " ".join([line, *advice])
    for warning in bundle.warnings:
        meaning = WARNINGS[warning.code]
        if meaning.shown == "note" and not is_empty:
            yield f"Note: {warning.message}. {meaning.advice}"
    for constraint in bundle.constraints or ():
        line = constraint_line(constraint.model_dump())
        yield f"Decision about this task (call check before you act): {line}"
    # Of every other verdict the caution has the next step, because the documents may answer.
    if verdict in _UNANSWERED:
        yield _ASK_AGAIN


def _after(bundle: RetrievalBundle, same: Sequence[str]) -> Iterator[str]:
    """What is the same for all passages, and what was left out."""
    # Files of one date, such as those of a fresh copy, tell nothing.
    if told := [part for part in same if not part.startswith(FILE_DATE)]:
        yield f"All passages: {'; '.join(told)}."
    ranks = {chunk.chunk_id: chunk.rank for chunk in bundle.selected}
    for approval in bundle.approvals or ():
        passages = ", ".join(f"[{ranks.get(name)}]" for name in approval.chunk_ids)
        yield f"Approved for {approval.action} by {approval.approved_by}: {passages}"
    counts = bundle.rejected_summary
    lower = sum(count for code, count in counts.items() if code in RANKED_LOWER)
    kept_back = [f"{count} {code}" for code, count in counts.items() if code not in RANKED_LOWER]
    parts = [f"{lower} of low rank"] if lower else []
    if kept_back:
        parts.append(f"{', '.join(kept_back)} (do not guess what they say)")
    if parts:
        yield f"Rejected: {'; '.join(parts)}."


def _brief(bundle: RetrievalBundle, overlay: Overlay) -> Iterator[str]:
    """The lines of the role's brief."""
    policy = overlay.synthesis_policy
    yield f"Your role: {overlay.label or overlay.role_id}"
    if overlay.mission.strip():
        yield f"Mission: {overlay.mission}"
    for goal in filter(str.strip, overlay.anti_goals):
        yield f"- {goal}" if _PROHIBITION.match(goal) else f"- Do not: {goal}"
    if policy.prioritize:
        yield f"Prioritize: {'; '.join(policy.prioritize)}"
    if policy.avoid:
        yield f"Avoid: {'; '.join(policy.avoid)}"
    if any(chunk.bridge_role for chunk in bundle.selected):
        yield "A passage “for” another role was written for that role, which works with yours."
