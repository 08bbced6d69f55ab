"""How many characters an answer may have, and texts that are cut to fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Answer = dict[str, Any]

_WORD_SEARCH = 40
"""A content is cut at a space if there is one in so many characters before the cut. A content that
is longer than its share by less than this is not cut, because the marks of the cut need as much."""


@dataclass(frozen=True, slots=True)
class CharacterBudget:
    """What an answer may hold.

    Attributes:
        text: characters of each text other than a content. With 0, optional fields are left out.
        snippet: characters of each passage's content.
        content: characters of all contents beyond the snippets; the best passages take them first.
        passages: number of passages.
        rejections: number of listed rejections.
    """

    text: int
    snippet: int = 0
    content: int = 0
    passages: int = 0
    rejections: int = 0


def characters(answer: object) -> int:
    """The length of an answer, or of a part of one, as compact JSON, as the servers write it."""
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def largest_fitting(
    budget: CharacterBudget, name: str, maximum: int, fits: Callable[[CharacterBudget], bool]
) -> CharacterBudget:
    """The budget with the largest value of one attribute that fits, up to a maximum."""
    low, high = getattr(budget, name), maximum
    largest = replace(budget, **{name: max(low, high)})
    if fits(largest):
        return largest
    while low < high - 1:
        middle = (low + high) // 2
        if fits(replace(budget, **{name: middle})):
            low = middle
        else:
            high = middle
    return replace(budget, **{name: low})


def cut_contents(contents: Sequence[str], budget: CharacterBudget) -> list[str]:
    """The contents, cut to the budget: a snippet of each, and more of the first ones."""
    contents_cut, chars_left = [], budget.content
    for content in contents:
        contents_cut.append(_cut(content, budget.snippet + chars_left))
        chars_left = max(0, chars_left - max(0, len(contents_cut[-1]) - budget.snippet))
    return contents_cut


def _cut(content: str, length: int) -> str:
    """The beginning of a content up to the end of a word, or all of it if little would be cut."""
    if len(content) <= length + _WORD_SEARCH:
        return content
    for end in range(length, max(0, length - _WORD_SEARCH), -1):
        if content[end].isspace():
            return content[:end]
    return content[:length]


def cut_line(text: str, length: int) -> str | None:
    """A text on one line, cut with an ellipsis. ``None`` if ``length`` is 0."""
    if not length:
        return None
    # Unprintable characters take six in JSON, may control a terminal, or are invisible.
    start = text[: 2 * length]
    if not start.isprintable():
        start = "".join(character if character.isprintable() else " " for character in start)
    line = " ".join(start.split())
    if len(line) <= length and len(start) == len(text):
        return line
    return f"{line[: length - 1]}…"


def with_content(passage: Answer, content: str) -> Answer:
    """The passage with a cut content; ``truncated`` marks the cut."""
    length = len(passage["content"])
    if len(content) == length:
        return passage
    return {**passage, "content": content, "truncated": True, "content_chars": length}
