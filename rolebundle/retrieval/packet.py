"""The packet: an answer as one text that a model can be given as it is. Pure.

What tells data from instructions, how to cite, and what the reader must know of all passages come
first. Then the passages that answer, each in a fence (:func:`fenced`), whole or as the part that
answers best; then *leads*, one line for each next place. At the end stand what is the same for all
passages, what was left out, and the role's brief. Outside of the fences, a line with a text of a
document or an overlay always begins with words of this module. So no text can end its block or
imitate another part of the packet.

The budget counts the characters of the packet. It is spent in this order:

- lines before the passages: up to half; the last ones are left out
- lines about all passages: up to a fifth; the last ones are left out
- passages: what is left; up to half of that is kept for the leads. The first passage that
  does not fit is cut, and the next ones become leads
- leads: what is left; the last ones are left out
- brief: what is left
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any

from rolebundle.contracts.bundle import RetrievalBundle, SelectedPassage
from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import MAY_BE_ASKED_FOR, REJECTIONS, WARNINGS, shown_as
from rolebundle.retrieval.passage_text import (
    DATA_NOTICE,
    FILE_DATE_PREFIX,
    MAX_COPIES,
    CosinesWithTask,
    best_span,
    caution,
    constraint_line,
    cut_passage,
    fenced,
    flag_note,
    has_word,
    header_above,
    heading_of_table,
    letters_of,
    limit_reason,
    limited_use,
    mark_note,
    one_line,
    passage_details,
    passage_header,
    quoted,
    shown_name,
    shown_place,
    words_searched,
)
from rolebundle.text.tasks import OPEN_BOXES, tasks_in
from rolebundle.text.words import counted, first_of, language_of, stems_of

_LINK = re.compile(
    r"!?\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])|`[^`\n]+ <[^>\n]+>`_+|\bhttps?://\S+"
)
_LEADING_MARKS = re.compile(r"\A(?:[#|>*+-]*\s+|\|+)*")
_CELL_END = re.compile(r" \|(?=\s|$)(?:[\s|]|-+(?= ?\|))*")
"""Also of the empty cells that follow, and of rows of dashes."""
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#:.])\1{2,}\s*")
_MIN_PROSE_BYTES = 25
"""A line of fewer letters, in UTF-8, is no prose, but an item, a key or a name. A short sentence of
at least four words is prose."""
_SHORT_SENTENCE = re.compile(r"(?:\w+\W+){3}\w+[.!?]\s*\Z")

MAX_CHARS = 2_600
"""Characters of a packet if the request has no limit of its own."""
_MAX_PASSAGES = 2
"""How many passages are shown if the request has no limit of its own; one more with `also`."""
_MIN_RELATIVE_SCORE = 0.8
"""Then none is shown whose final score is below this share of the best one's. Of 59 questions whose
second passage was below it, the first one had the answer in 56."""
_MIN_FIRST_PASSAGE_SHARE = 2 / 5
"""The first passage may always be as long as this part of the packet, so that it is rarely cut."""
_MIN_PASSAGE_SHARE = 1 / 5
"""Other passages may always be as long as this part of the packet."""
_LEADS_SHARE = 0.5
"""The leads' part of what is left, if they need it."""
_LINE_CHARS = 1_000
_LINE_SHARE = 1 / 8
"""Texts of one line are not longer than this part of the packet."""
_FRAME_CHARS = 30
"""The fences of a passage, the marks if it is cut, and an empty line."""
_MIN_CUT_CHARS = 100
"""Less of a passage than this is not shown."""
_LEAD_CHARS = 120
_MIN_QUOTE_CHARS = 60
_MIN_HEADING_CHARS = 12
"""Less of a heading is not shown."""
_ITEM_OR_ROW = re.compile(r"\s*(?:[-*+•|#>\[]|\w{1,3}[.)]\s)|.*[.:!?]\s*\Z")
_HALF_WORD = re.compile(r"(?<![›…,\s])(?:,?\s+|,(?=\D))[^\s,›]{1,20}…\Z")
_SENTENCE_END = re.compile(r"[.!?;|…。！？]\W*\Z")
_FIRST_LEADS, _LONG_LEAD_CHARS = 3, 300
"""How many leads are the longest if there is room, because they often answer, and how long. There
are no others if the documents have little of the task, if passages with open tasks answer, or if a
request with `also` has one passage near the best."""
_LEAD_STEPS = 150, 75, 37, 18, 9
"""By how many characters leads become longer, the first ones by twice as many, step by step."""
_NOTE_CHARS = 60
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
_QUOTED, _BY_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"'), re.compile(r"\bby (?:its text|their texts)\b")
# If all named documents say themselves that they replace or amend others.
_USE_IT = "Answer from it."
_CLAIM_NOTHING = "Do not claim anything about these documents."
_READ_NEAREST = "The nearest places may answer in other words: read them, and claim nothing else."
_PROHIBITION = re.compile(r"(?:do not|don['’]t|never|no|avoid)\b", re.IGNORECASE)


def packet(
    bundle: RetrievalBundle,
    overlay: Overlay | None = None,
    max_chars: int | None = None,
    cosines_of: CosinesWithTask | None = None,
) -> str:
    """The packet of an answer.

    Args:
        bundle: the answer. If its request has no limit, the packet has fewer passages.
        overlay: the overlay that it was made with; ``None`` without a role.
        max_chars: the most characters of the packet; 1,000 or more. Default: ``MAX_CHARS``.
        cosines_of: chooses the parts of long passages by their meaning, too.
    """
    max_chars = max_chars or MAX_CHARS
    line_chars = min(_LINE_CHARS, int(max_chars * _LINE_SHARE))
    words = words_searched(bundle.query.lexical_query, bundle.query.task_text)
    opening = [*_opening_lines(bundle, overlay)]
    in_full, as_leads = _full_and_leads(bundle, words)
    dumped = [*_with_title_once(passage.model_dump(exclude_none=True) for passage in in_full)]
    details = [passage_details({**values, "allowed_actions": None}) for values in dumped]
    common = [n for n in details[0] if all(n in notes for notes in details)] if details[1:] else []
    details = [[note for note in notes if note not in common] for notes in details]
    before = [one_line(line, 2 * line_chars) for line in _lines_before(bundle)]
    after = [one_line(line, 2 * line_chars) for line in _lines_after(bundle, common)]
    brief = [one_line(line, line_chars) for line in _brief(bundle, overlay)] if overlay else []
    rest_chars = max_chars - _size(opening) - (1 + bool(before or after or brief)) * _NOTE_CHARS
    line_count = len(before) + len(after) + len(brief)
    before_shown = _fitting(before, rest_chars / 2)
    after = _fitting(after, rest_chars / 5)
    place_chars = rest_chars - _size([*before_shown, *after, *use_limits([*in_full, *as_leads])])
    leads = _leads_of(as_leads, words, cosines_of)
    lead_chars = min(_size(leads), int(place_chars * _LEADS_SHARE))
    block_chars = place_chars - lead_chars - _size(nearest := nearest_lines(bundle))
    shown = list[str]()
    headers = [passage_header(*both) for both in zip(dumped, details, strict=True)]
    unframed_chars = block_chars - _size(headers) - _FRAME_CHARS * len(headers)
    passage_chars = _equal_length([len(v["content"]) for v in dumped], unframed_chars)
    for values, notes in zip(dumped, details, strict=True):
        # Open tasks are short, and several passages have them.
        is_first = not shown and words.isdisjoint(OPEN_BOXES)
        share = _MIN_FIRST_PASSAGE_SHARE if is_first else _MIN_PASSAGE_SHARE
        length = max(passage_chars, int(max_chars * share))
        text = _fenced_passage(values, notes, words, length, block_chars - _size(shown), cosines_of)
        if not text:
            break
        shown.append(text)
    lead_chars += block_chars - _size(shown)
    text_by_id = dict(zip((passage.chunk_id for passage in in_full), shown, strict=False))
    waiting = {passage.chunk_id for passage in [*in_full, *as_leads]} - text_by_id.keys()
    as_leads = [passage for passage in bundle.selected if passage.chunk_id in waiting]
    leads = _leads_of(as_leads, words, cosines_of)
    # If all leads fit, there is no note about them.
    lead_chars += _NOTE_CHARS if _size(leads) < lead_chars + _NOTE_CHARS else 0
    leads = _fitting(leads, lead_chars - 1)
    brief_shown, more_chars = _fitting(brief, lead_chars - _size(leads)), 0
    for step in _LEAD_STEPS if len(leads) == len(as_leads) else ():
        longer = _leads_of(as_leads, words, cosines_of, more_chars + step)
        if _size([*longer, *brief_shown]) < lead_chars:
            leads, more_chars = longer, more_chars + step
    lead_by_id = dict(zip((passage.chunk_id for passage in as_leads), leads, strict=False))
    left_out = _left_out(
        len(as_leads) - len(leads), line_count - len(before_shown) - len(after) - len(brief_shown)
    )
    body, next_leads = _by_rank(bundle.selected, text_by_id, lead_by_id)
    next_leads += use_limits(p for p in bundle.selected if p.chunk_id in {*text_by_id, *lead_by_id})
    end = ["", *nearest, *next_leads, *brief_shown, *after, *left_out]
    return "\n".join([*opening, *before_shown, *body, *end]).rstrip("\n")


def _opening_lines(bundle: RetrievalBundle, overlay: Overlay | None) -> Iterator[str]:
    """What every reader is told."""
    if bundle.request and bundle.request.as_of:
        time = iso_utc(bundle.request.as_of)
        yield f"As of {time}: later documents are left out; those without a date stay."
    if bundle.selected:
        cite = overlay.synthesis_policy.citation_style if overlay else "inline"
        yield f"{DATA_NOTICE} {_CITE[cite]}"


def _left_out(places: int, lines: int) -> Iterator[str]:
    """What the budget left out: places of the answer, and lines about it."""
    if places > 0:
        yield f"{counted(places, 'more place')} found: ask again with more max_chars (--max-chars)."
    if lines:
        yield f"({counted(lines, 'line')} left out here for the budget)"


def _by_rank(
    selected: Sequence[SelectedPassage], texts: Mapping[str, str], leads: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The passages, with the leads that rank between them; and the other leads.

    Args:
        selected: the places of the answer in their order.
        texts: the texts of those that are shown, by id.
        leads: the lines of others, by id.
    """
    ids = [passage.chunk_id for passage in selected]
    end = max((n for n, chunk_id in enumerate(ids, 1) if chunk_id in texts), default=0)
    shown = {**texts, **leads}
    body = [shown[chunk_id] for chunk_id in ids[:end] if chunk_id in shown]
    return body, [leads[chunk_id] for chunk_id in ids[end:] if chunk_id in leads]


def _full_and_leads(
    bundle: RetrievalBundle, words: set[str]
) -> tuple[list[SelectedPassage], list[SelectedPassage]]:
    """The passages that are shown, and those that are leads.

    Filed facts come after the documents, and are shown.
    """
    documents = [passage for passage in bundle.selected if passage.metadata.remembered_from is None]
    facts, in_full = bundle.selected[len(documents) :], documents
    codes = {warning.code for warning in bundle.warnings}
    few_leads = not codes.isdisjoint(("WEAK_EVIDENCE", "WORDS_MISSING"))
    if documents and not (bundle.request and bundle.request.limit):
        with_text = [p for p in documents if _first_said(p.content) >= 0] or documents
        least = _MIN_RELATIVE_SCORE * with_text[0].scores.final
        near_best = [*takewhile(lambda p: p.scores.final >= least, with_text)]
        in_full = near_best[:_MAX_PASSAGES]
        if not words.isdisjoint(OPEN_BOXES):
            with_tasks = [p for p in documents if "open" in tasks_in(p.content)]
            in_full = [p for p in documents if p in with_tasks or p in in_full]
            few_leads = few_leads or bool(with_tasks)
        elif also := bundle.request and bundle.request.also:
            # What answers a second subject has few words of the others.
            wordings = [bundle.query.task_text, *also]
            is_alone = len(near_best) == 1 and _has_words_of_each(near_best[0], wordings)
            in_full = near_best if is_alone else with_text[: _MAX_PASSAGES + 1]
            few_leads = few_leads or is_alone
    as_leads = [passage for passage in documents if passage not in in_full]
    return [*in_full, *facts], as_leads[:_FIRST_LEADS] if few_leads else as_leads


def _has_words_of_each(passage: SelectedPassage, texts: Iterable[str]) -> bool:
    """Whether a passage has a content word of each text."""
    language = language_of(passage.content)
    own = {*stems_of(passage.content, language).content}
    return all(not own.isdisjoint(stems_of(text, language).content) for text in texts)


def _first_said(content: str, words: Collection[str] = (), least: int = _MIN_PROSE_BYTES) -> int:
    """Where a text says something, or has a word of the task; −1 if there is no such line.

    Headings, links, short items and salutations say nothing; a line of prose, a table and code do.
    """
    start = 0
    for line, under in pairwise([*content.splitlines(keepends=True), ""]):
        is_prose = (
            _SHORT_SENTENCE.search(line) or len(letters_of(_LINK.sub("", line)).encode()) >= least
        )
        if line.startswith(("```", "~~~", "    ", "\t")) or (
            not line.startswith("#")
            and not _UNDERLINE.fullmatch(under)
            and (is_prose or " | " in line or any(has_word(line, word) for word in words))
        ):
            return start
        start += len(line)
    return -1


# -- the budget ----------------------------------------------------------------------------------


def _size(lines: Sequence[str]) -> int:
    """Their characters, each with the end of its line."""
    return sum(map(len, lines)) + len(lines)


def _equal_length(sizes: Sequence[int], room: int) -> int:
    """The length to which texts are cut so that all fit: what short ones leave, long ones have."""
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * count > room:
            return room // count
        room -= size
    return max(sizes, default=0)


def _fitting(lines: Sequence[str], room: float) -> list[str]:
    """The first lines, as many as fit together."""
    ends = accumulate(len(line) + 1 for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= room]


# -- the passages --------------------------------------------------------------------------------


def _with_title_once(passages: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The passages, of which only the first one of a document has its title."""
    shown = set[str]()
    for passage in passages:
        document = passage["document_id"]
        yield {**passage, "title": ""} if document in shown else passage
        shown.add(document)


def lead_text(
    passage: SelectedPassage,
    words: Collection[str],
    length: int = _LONG_LEAD_CHARS,
    cosines_of: CosinesWithTask | None = None,
) -> str:
    """The last heading above the sentences of a passage that fit best, and these, on one line.

    Of a table the header row and the row that fits best, with one that has other words of the task
    or else those below it.
    """
    table_below = None
    least = 1 if passage.content_type in ("table", "code") else _MIN_PROSE_BYTES
    content = passage.content[max(0, _first_said(passage.content, words, least)) :]
    content = _without_signature(content) if least > 1 else content
    if passage.content_type == "table":
        rows, table_below = content.rstrip().split("\n"), heading_of_table(dict(passage))
        if header := header_above(rows, len(rows) - 1, table_below):
            content, table_below = "\n".join(rows[header.end :]), header.text
    start, end = best_span(content, words, length, cosines_of, table_below=table_below)
    part = content[start:end].rstrip()
    is_whole = _SENTENCE_END.search(part) or "\n" in f"{content}\n"[start + len(part) : end + 1]
    part += "" if is_whole else "…"
    row = part.partition("\n")[0]
    header = header_above(content.split("\n"), content.count("\n", 0, start), table_below)
    if header and 2 * len(row) < length:
        missing = [word for word in words if not has_word(row, word)]
        others = content[:start] + content[start + len(row) + 1 :]
        span = best_span(others, missing, length - len(row), table_below=table_below)
        more = others[slice(*span)].partition("\n")[0]
        part = f"{row}\n… {more}" if any(has_word(more, word) for word in missing) else part
    text = one_line(_CELL_END.sub(", ", _LEADING_MARKS.sub("", part)), _LINE_CHARS)
    heading = header.text if header else [passage.title or "", *passage.headings][-1]
    known = letters_of(f"{passage.citation.locator} {text}")
    room = length - len(row) - 3 if header else length // 3
    is_known = part[:1] == "#" or all(letters_of(word) in known for word in heading.split())
    if is_known or room < min(len(heading), _MIN_HEADING_CHARS):
        return _whole_words(text, length)
    return _whole_words(f"{_whole_words(heading, room)} › {text}", length)


def _without_signature(text: str) -> str:
    """A text of a mail or letter without the short lines at its end, unless they are items."""
    lines = text.rstrip().split("\n")
    while len(lines) > 1 and len(letters_of(lines[-1]).encode()) < _MIN_PROSE_BYTES:
        if _ITEM_OR_ROW.match(lines[-1]):
            break
        lines.pop()
    return "\n".join(lines)


def _whole_words(text: str, length: int) -> str:
    """A text on one line, which is cut between words."""
    return _HALF_WORD.sub("…", one_line(text, length))


def nearest_lines(bundle: RetrievalBundle) -> list[str]:
    """The nearest places of an answer without passages."""
    lines = [
        _lead_line(f"- {shown_name(place.locator or place.chunk_id)}", place.text, place.flags)
        for place in bundle.nearest or ()
    ]
    return ["Nearest, not evidence:", *lines] if lines else []


def _leads_of(
    passages: Iterable[SelectedPassage],
    words: Collection[str],
    cosines_of: CosinesWithTask | None,
    more_chars: int = 0,
) -> list[str]:
    """The lines of next places, without what these may be used for.

    They get ``more_chars``, the first ones twice as many.
    """
    leads = []
    for count, passage in enumerate(passages):
        name = shown_place(passage.citation.model_dump()) or shown_name(passage.chunk_id)
        place = f"[{passage.rank}] {name}"
        length = max(_MIN_QUOTE_CHARS, _LEAD_CHARS - len(place) - 5)
        length = min(length + more_chars * (1 + (count < _FIRST_LEADS)), _LONG_LEAD_CHARS)
        mark = mark_note(passage.metadata.mark.model_dump() if passage.metadata.mark else None)
        text = lead_text(passage, words, length, cosines_of)
        leads.append(_lead_line(place, text, passage.metadata.flags, mark))
    return leads


def use_limits(passages: Iterable[SelectedPassage]) -> list[str]:
    """What passages and leads may be used for, and why: a line for those with the same limit."""
    numbers: dict[str, list[str]] = {}
    for passage in passages:
        limit = limited_use(passage.allowed_actions)
        reason = limit_reason(passage.metadata.model_dump()) if limit else ""
        limit += f" ({reason})" if reason else ""
        numbers.setdefault(limit, []).append(f"[{passage.rank}]")
    if len(numbers) == 1 < max(map(len, numbers.values())):
        numbers = {limit: ["All passages"] for limit in numbers}
    return [f"{' '.join(of)}: {limit}." for limit, of in numbers.items() if limit]


def _lead_line(place: str, text: str, flags: Sequence[str] | None, *notes: str) -> str:
    shown = quoted(*text.split(" › "), length=_LONG_LEAD_CHARS)
    return " · ".join(filter(None, [place, shown, flag_note(flags), *notes]))


def _fenced_passage(
    passage: Mapping[str, Any],
    details: Sequence[str],
    words: Collection[str],
    length: int,
    room: int,
    cosines_of: CosinesWithTask | None,
) -> str:
    """The block of a passage, or of its best part; empty if too little of it fits.

    Args:
        passage: the values of the selected passage.
        details: what its heading says.
        words: of the task.
        length: the most characters of its text.
        room: the most characters of the block.
        cosines_of: see :func:`best_span`.
    """
    content: str = passage["content"]
    length = min(length, room, len(content))
    while length >= min(_MIN_CUT_CHARS, len(content)):
        cut = passage
        if length < len(content):
            below = heading_of_table(passage)
            span = best_span(content, words, length, cosines_of, table_below=below)
            cut = cut_passage(passage, *span)
        lines = ["", passage_header(cut, details), *fenced(cut["content"])]
        excess = _size(lines) - room
        if excess <= 0:
            return "\n".join(lines)
        length -= excess
    return ""


# -- the other parts -----------------------------------------------------------------------------


def _lines_before(bundle: RetrievalBundle) -> Iterator[str]:
    """What the reader must know before the passages."""
    is_empty = not bundle.selected
    verdict = bundle.fallback.verdict if bundle.fallback else None
    if is_empty:
        found = f"No passage was found{f' ({verdict})' if verdict else ''}."
        yield f"{found} {_READ_NEAREST if bundle.nearest else _CLAIM_NOTHING}"
    if line := caution(bundle):
        codes = {warning.code for warning in bundle.warnings} - shown_as("owner", "note")
        advice = [row.advice for code, row in WARNINGS.items() if code in codes and not is_empty]
        yield " ".join([line, *advice[:1]])
    for warning in bundle.warnings:
        meaning = WARNINGS[warning.code]
        if meaning.shown == "note" and not is_empty:
            is_said = all(map(_BY_TEXT.search, _QUOTED.sub("", warning.message).split("; ")))
            yield f"Note: {warning.message}. {_USE_IT if is_said else meaning.advice}".rstrip()
    for constraint in bundle.constraints or ():
        line = constraint_line(constraint.model_dump())
        yield f"Decision about this task (call check before you act): {line}"
    # Of every other verdict the caution has the next step, because the documents may answer.
    if verdict in _UNANSWERED:
        yield _ASK_AGAIN


def _lines_after(bundle: RetrievalBundle, common: Sequence[str]) -> Iterator[str]:
    """Notes that all blocks share, approvals, what was shown before, and what was rejected."""
    # One date for all files, as after a fresh copy, tells nothing.
    if shared := [note for note in common if not note.startswith(FILE_DATE_PREFIX)]:
        yield f"Each passage shown: {'; '.join(shared)}."
    ranks = {passage.chunk_id: passage.rank for passage in bundle.selected}
    for approval in bundle.approvals or ():
        passages = ", ".join(f"[{ranks.get(name)}]" for name in approval.chunk_ids)
        yield f"Approved for {approval.action} by {approval.approved_by}: {passages}"
    before = [shown_name(r.chunk_id) for r in bundle.rejected if r.reason == "already_seen"]
    if before:
        yield f"Shown before: {first_of(before, MAX_COPIES)}."
    # Passages that only rank lower are not reported: the leads are the best of them.
    counts = bundle.rejected_summary.items()
    not_shown = [f"{n} × {REJECTIONS[c].plain}" for c, n in counts if c not in MAY_BE_ASKED_FOR]
    if not_shown:
        yield f"Rejected: {', '.join(not_shown)} (do not guess what they say)."


def _brief(bundle: RetrievalBundle, overlay: Overlay) -> Iterator[str]:
    """The lines of the role's brief."""
    synthesis_policy = overlay.synthesis_policy
    yield f"Your role: {overlay.label or overlay.role_id}"
    if overlay.mission.strip():
        yield f"Mission: {overlay.mission}"
    for goal in filter(str.strip, overlay.anti_goals):
        yield f"- {goal}" if _PROHIBITION.match(goal) else f"- Do not: {goal}"
    if synthesis_policy.prioritize:
        yield f"Prioritize: {'; '.join(synthesis_policy.prioritize)}"
    if synthesis_policy.avoid:
        yield f"Avoid: {'; '.join(synthesis_policy.avoid)}"
    if any(passage.bridge_role for passage in bundle.selected):
        yield "A passage “for” another role was written for that role, which works with yours."
