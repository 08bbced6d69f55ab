"""What all texts of answers print alike: the lines of a passage, and notes about it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rolebundle.contracts.terms import ACTIONS

Values = Mapping[str, Any]

_SNIPPET_CHARS = 220
_LOCATOR_CHARS = 1_000
_PLACE_CHARS = 300
_TEXT_CHARS = 1_000
_PATH_CHARS = 4_096


def one_line(content: str, length: int = _SNIPPET_CHARS) -> str:
    """A text on one line, cut with an ellipsis if it is longer than ``length``."""
    line = " ".join(content.split())
    if not line.isprintable():
        # Control and formatting characters could change what a terminal shows.
        plain = "".join(character if character.isprintable() else " " for character in line)
        line = " ".join(plain.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def flag_note(flags: Sequence[str] | None) -> str:
    """What the scan found in a passage's document. Empty if it found nothing."""
    return f"flagged: {', '.join(flags)}" if flags else ""


def mark_note(mark: Values | None) -> str:
    """What somebody has stated about a passage. Empty without a mark."""
    if not mark:
        return ""
    note = f"{mark['state'].replace('_', ' ')} by {mark.get('marked_by') or '…'}"
    return one_line(f"{note}: {mark['reason']}" if mark.get("reason") else note)


def line_notes(line: Values) -> str:
    """What to beware of in a line that `grep` found, in brackets. Empty for nothing."""
    newer = [f"superseded by {shown_id(name)}" for name in line.get("superseded_by", ())]
    notes = [*newer, flag_note(line.get("flags")), mark_note(line.get("mark"))]
    text = "; ".join(filter(None, notes))
    return f" [{text}]" if text else ""


def source_note(source: str | None) -> str:
    """What a remembered fact cites. Empty for other passages."""
    return f"remembered from {one_line(source, _LOCATOR_CHARS)}" if source else ""


def limited_use(allowed: Sequence[str] | None) -> str:
    """What a passage may be used for, or the one action that it may not. Empty without a limit."""
    denied = [] if allowed is None else [action for action in ACTIONS if action not in allowed]
    if len(denied) == 1:
        return f"do not use for: {denied[0]}"
    return f"use only to: {', '.join(allowed or ())}" if denied else ""


def bridge_note(role: str | None) -> str:
    """The bridge role that a passage is for. Empty if it is for none."""
    return f"for {one_line(role)}" if role else ""


def kinds_note(kinds: Sequence[str] | None) -> str:
    """The evidence kinds that a passage shows. Empty if it shows none."""
    return f"shows: {one_line(', '.join(kinds))}" if kinds else ""


def constraint_line(constraint: Values) -> str:
    """A decision on one line: its id, effect, words, reason, date and place."""
    text = one_line(constraint["text"], _TEXT_CHARS)
    because = f" (reason: {one_line(constraint['reason'])})" if constraint.get("reason") else ""
    decided = (constraint.get("decided_at") or "")[:10]
    details = filter(None, [decided, constraint.get("decided_by"), constraint.get("locator")])
    about = one_line(", ".join(details), _LOCATOR_CHARS)
    return (
        f"{one_line(constraint['id'], _LOCATOR_CHARS)} ({constraint['effect']}): {text}{because}"
        + (f" [{about}]" if about else "")
    )


def passage_heading(passage: Values) -> str:
    """The line above a passage: its number, title, headings, place, trust, age, and notes."""
    citation = passage["citation"]
    title = citation.get("reference") or passage.get("title") or passage["document_id"]
    # The heading with which the passage begins stands below, perhaps with markup.
    first_line = (passage.get("content") or "").partition("\n")[0]
    known = {_letters(passage.get("title") or ""), _letters(first_line)}
    headings = [name for name in passage.get("headings") or () if _letters(name) not in known]
    place = place_of(citation) or one_line(passage["chunk_id"], _PLACE_CHARS)
    metadata = passage.get("metadata", {})
    labels = (
        flag_note(metadata.get("flags")),
        mark_note(metadata.get("mark")),
        source_note(metadata.get("remembered_from")),
        limited_use(passage.get("allowed_actions")),
        bridge_note(passage.get("bridge_role")),
        kinds_note(passage.get("evidence_kinds")),
    )
    path = citation.get("absolute_path")
    file = f"file: {one_line(path, _PATH_CHARS)}" if path else ""
    details = "; ".join(part for part in (place, trust_and_age(metadata), *labels, file) if part)
    return f"[{passage['rank']}] {one_line(' › '.join([title, *headings]))} ({details})"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def place_of(passage: Values) -> str:
    """The locator, and the page or the like."""
    place, anchor = passage.get("locator") or "", passage.get("anchor")
    return one_line(f"{place} ({anchor})" if anchor else place, _PLACE_CHARS)


def trust_and_age(metadata: Values) -> str:
    """The trust tier, and how old the passage is."""
    freshness = metadata.get("freshness") or {}
    updated = freshness.get("updated_at") or metadata.get("updated_at")
    inferred = freshness.get("inferred_at") or metadata.get("inferred_at")
    parts = (
        f"trust: {metadata['trust_tier']}" if metadata.get("trust_tier") else "",
        freshness.get("status", ""),
        f"updated {updated[:10]}" if updated else "",
        f"no date, its file is of {inferred[:10]}" if inferred and not updated else "",
        f"valid until {metadata['valid_until'][:10]}" if metadata.get("valid_until") else "",
    )
    return "; ".join(part for part in parts if part)


def fenced(passage: Values) -> Iterator[str]:
    """The content in a fence, and how to read on if it is missing or cut.

    The fence is longer than any run of backticks in the content, so that no content can close it.
    """
    content = passage.get("content")
    if content is not None:
        longest = max((len(run) for run in re.findall("`+", content)), default=0)
        fence = "`" * max(3, 1 + longest)
        yield from (fence, content, fence)
    if content is None or passage.get("truncated"):
        cut = "" if content is None else "The passage is cut here. "
        yield f"{cut}To read all of it, call get with id {shown_id(passage['chunk_id'])}"


def shown_id(chunk_id: str) -> str:
    """An id as it is, so that it can be copied; with escapes if it would not stay on its line."""
    return chunk_id if chunk_id.isprintable() else json.dumps(chunk_id)
