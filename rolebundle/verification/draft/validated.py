"""The draft without what fails, or with marks around it. No text is made up. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rolebundle.contracts.verification import Finding, FindingCode
from rolebundle.verification.draft.parse import Draft

_CONFIDENTIAL: frozenset[FindingCode] = frozenset(("secret", "personal_data"))
_LIST_MARKER = re.compile(r"[ \t>]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]*)?")


class _Range(NamedTuple):
    """A part of the draft, and the codes of what fails in it."""

    start: int
    end: int
    codes: tuple[FindingCode, ...] = ()


def validated_draft(draft: Draft, findings: Sequence[Finding], *, redact: bool) -> str | None:
    """The draft with what fails removed or marked; ``None`` if no part of it fails.

    Removed are the sentences in which something fails, since half of a sentence may state the
    opposite. A mark is ``[[codes: text]]``; secrets and personal data are left out of it.

    Args:
        draft: the parsed draft.
        findings: of all checks.
        redact: whether to remove instead of to mark.
    """
    failing = sorted(
        _Range(finding.span.start, finding.span.end, (finding.code,))
        for finding in findings
        if finding.fails and finding.span.end > finding.span.start
    )
    if not failing:
        return None
    if redact:
        return _without(draft.text, _joined(_whole_sentences(draft, failing)))
    confidential = _joined(part for part in failing if _CONFIDENTIAL.intersection(part.codes))
    return _marked(draft.text, _joined(failing), confidential)


def _joined(ranges: Iterable[_Range]) -> list[_Range]:
    """Sorted ranges with those that overlap joined to one."""
    joined: list[_Range] = []
    for part in ranges:
        if joined and part.start < joined[-1].end:
            last = joined.pop()
            codes = tuple(dict.fromkeys((*last.codes, *part.codes)))
            joined.append(_Range(last.start, max(last.end, part.end), codes))
        else:
            joined.append(part)
    return joined


def _whole_sentences(draft: Draft, ranges: Sequence[_Range]) -> list[_Range]:
    """The ranges and the sentences that share a character with one of them, sorted."""
    parts, merged = list(ranges), _joined(ranges)
    at = 0
    for sentence in draft.sentences:
        while at < len(merged) and merged[at].end <= sentence.start:
            at += 1
        if at < len(merged) and merged[at].start < sentence.end:
            parts.append(_Range(sentence.start, sentence.end))
    return sorted(parts)


def _without(text: str, ranges: Sequence[_Range]) -> str:
    pieces, copied_until = [], 0
    for part in ranges:
        start, end = _with_emptied_line(text, part, copied_until)
        pieces.append(text[copied_until : max(copied_until, start)])
        copied_until = max(copied_until, end)
    return "".join((*pieces, text[copied_until:]))


def _with_emptied_line(text: str, part: _Range, copied_until: int) -> tuple[int, int]:
    """The range with the spaces after it, or its whole line if nothing but a marker is left."""
    start, end = part.start, part.end
    while end < len(text) and text[end] in " \t":
        end += 1
    line = max(copied_until, text.rfind("\n", copied_until, start) + 1)
    is_alone = _LIST_MARKER.fullmatch(text, line, start) is not None
    if is_alone and (end == len(text) or text[end] == "\n"):
        return line, min(len(text), end + 1)
    return start, end


def _marked(text: str, ranges: Sequence[_Range], confidential: Sequence[_Range]) -> str:
    pieces, copied_until, at = [], 0, 0
    for part in ranges:
        visible, position = [], part.start
        while at < len(confidential) and confidential[at].start < part.end:
            visible.append(text[position : confidential[at].start])
            position = confidential[at].end
            at += 1
        visible.append(text[position : part.end])
        pieces += [
            text[copied_until : part.start],
            f"[[{', '.join(part.codes)}: {''.join(visible)}]]",
        ]
        copied_until = part.end
    return "".join((*pieces, text[copied_until:]))
