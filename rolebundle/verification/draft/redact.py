"""The draft without what fails, or with marks around it. No text is made up. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rolebundle.contracts.verification import Finding
from rolebundle.verification.draft.parse import Sentence

_LIST_MARKER = re.compile(r"[ \t>]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]*)?")
_Part = tuple[int, int, tuple[str, ...]]


def validated_draft(
    text: str, sentences: Sequence[Sentence], findings: Sequence[Finding], *, redact: bool
) -> str | None:
    """The draft with what fails removed or marked; ``None`` if no part of it fails.

    Removed are the sentences in which something fails, since half of a sentence may state the
    opposite. A mark is ``[[codes: text]]``; secrets and personal data are left out of it.
    """
    failing = [f for f in findings if f.fails and f.span.end > f.span.start]
    if not failing:
        return None
    confidential = [f.span for f in failing if f.code in ("secret", "personal_data")]
    parts = _joined((f.span.start, f.span.end, (f.code,)) for f in failing)
    if redact:
        touched = (
            (s.start, s.end, ()) for s in sentences
            if any(first < s.end and s.start < last for first, last, _ in parts)
        )  # fmt: skip
        parts = _joined([*parts, *touched])
    pieces, copied = [], 0
    for start, end, codes in parts:
        if redact:
            first, last = _with_emptied_line(text, start, end, copied)
            pieces.append(text[copied : max(copied, first)])
        else:
            shown = "".join(
                character for at, character in enumerate(text[start:end], start)
                if not any(span.start <= at < span.end for span in confidential)
            )  # fmt: skip
            pieces += [text[copied:start], f"[[{', '.join(codes)}: {shown}]]"]
            last = end
        copied = max(copied, last)
    return "".join((*pieces, text[copied:]))


def _joined(parts: Iterable[_Part]) -> list[_Part]:
    """The ranges in order; those that overlap are joined."""
    joined: list[_Part] = []
    for start, end, codes in sorted(parts):
        if joined and start < joined[-1][1]:
            first, last, known = joined.pop()
            joined.append((first, max(end, last), tuple(dict.fromkeys((*known, *codes)))))
        else:
            joined.append((start, end, codes))
    return joined


def _with_emptied_line(text: str, start: int, end: int, copied: int) -> tuple[int, int]:
    """The range with the spaces after it, or its whole line if nothing but a marker is left."""
    while end < len(text) and text[end] in " \t":
        end += 1
    line = max(copied, text.rfind("\n", copied, start) + 1)
    if _LIST_MARKER.fullmatch(text, line, start) and text[end : end + 1] in ("", "\n"):
        return line, min(len(text), end + 1)
    return start, end
