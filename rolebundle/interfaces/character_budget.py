"""What fits in a number of characters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rolebundle.retrieval.answer.passage_text import part_of

Answer = dict[str, Any]


def filled(
    contents: Sequence[str], max_chars: int | None, words: Collection[str] = ()
) -> list[str]:
    """The first contents that fit together. If the first one does not fit, a part of it.

    Args:
        contents: texts of passages, the most important first.
        max_chars: how many characters they may have together; ``None`` for no bound.
        words: the words that the part should have, casefolded.
    """
    if max_chars is None:
        return [*contents]
    room = max_chars
    for count, content in enumerate(contents):
        room -= len(content)
        if room < 0:
            return [*contents[:count]] or [part_of(content, words, max_chars)]
    return [*contents]


def with_content(passage: Answer, content: str) -> Answer:
    """The passage with a content that may be a part of its own; ``truncated`` marks that."""
    length = len(passage["content"])
    if len(content) == length:
        return passage
    return {**passage, "content": content, "truncated": True, "content_chars": length}


def cut_line(text: str, length: int) -> str:
    """A text on one line, cut with an ellipsis."""
    # Unprintable characters take six in JSON, may control a terminal, or are invisible.
    start = text[: 2 * length]
    if not start.isprintable():
        start = "".join(character if character.isprintable() else " " for character in start)
    line = " ".join(start.split())
    if len(line) <= length and len(start) == len(text):
        return line
    return f"{line[: length - 1]}…"
