"""Comments in the markup of a document, which its reader drops.

Ordinary pages have comments, too, so the severity of a finding is ``low`` unless its text
reads like an instruction to a model.
"""

from __future__ import annotations

import re

from rolebundle.scan.finding import Finding, Severity, ascii_note
from rolebundle.scan.instructions import Patterns

MAX_FINDINGS = 1_000
_MAX_TEXT_CHARS = 4_000
"""Of a longer comment only the beginning is searched for instructions."""
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]{2,}")


def find_hidden_markup(source: str | bytes, patterns: Patterns) -> tuple[Finding, ...]:
    """The comments of more than one word, in order. Offsets are in characters.

    Args:
        source: the markup; bytes are read as UTF-8.
        patterns: the instructions that make a finding's severity ``high``.
    """
    # Decoded only if there is a comment. Most pages have none.
    if (b"<!--" if isinstance(source, bytes) else "<!--") not in source:  # type: ignore[operator]
        return ()
    markup = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    findings: list[Finding] = []
    for comment in _COMMENT.finditer(markup):
        text = comment[1][:_MAX_TEXT_CHARS]
        # `<!--[if IE]>` and a single word such as `<!-- more -->` are for programs.
        if len(_WORDS.findall(text)) > 1 and not text.startswith("[if "):
            severity: Severity = "high" if patterns.find(text) else "low"
            note = ascii_note(" ".join(text.split()))
            findings.append(Finding("markup_comment", *comment.span(), note, severity))
            if len(findings) == MAX_FINDINGS:
                break
    return tuple(findings)
