"""Secrets and personal data in a text.

One search finds both, because each search reads the whole text.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rolebundle.scan import personal_data, secrets
from rolebundle.scan.finding import Finding, ascii_note
from rolebundle.scan.linear import LinearPatterns

MAX_FINDINGS_PER_FORMAT = 1_000
"""How often one format is reported in one text."""

_MAX_MATCH_BYTES = 1_024
_SHOWN_CHARS = 4


class Confidential(NamedTuple):
    """The findings in a text, each in order: ``secret_…`` and ``personal_…``."""

    secrets: tuple[Finding, ...] = ()
    personal: tuple[Finding, ...] = ()


def find_confidential(text: str, data: bytes | None = None) -> Confidential:
    """The secrets and the personal data in a text; ``data`` is its UTF-8, if the caller has it.

    A note shows at most the first characters of a secret, and nothing of personal data. What is
    part of a secret is no personal data.
    """
    found: list[tuple[int, int, int]] = []
    count = len(secrets.FORMATS)
    personal: list[Finding] = []
    for number, start, end, matched in _patterns().spans(text, MAX_FINDINGS_PER_FORMAT, data):
        if number < count:
            format_ = secrets.FORMATS[number]
            places = secrets.places(format_, text, start, end, matched)
            found += ((*place, number) for place in places)
        elif len(personal) < personal_data.MAX_FINDINGS:
            kind = personal_data.FORMATS[number - count].kind
            place = personal_data.place(kind, text, start, end)
            if place is not None:
                personal.append(Finding(f"personal_{kind}", *place, kind.replace("_", " ")))
    if not found:
        return Confidential((), tuple(personal))
    # A format that its issuer publishes says more than the name before the value, and a name in
    # code more than a word in a note.
    found.sort(key=lambda secret: (secret[0], secrets.PRECEDENCE[secrets.FORMATS[secret[2]].value]))
    findings: list[Finding] = []
    masked_until = 0
    for start, end, number in found:
        if start >= masked_until:
            masked_until = end
            findings.append(_secret(secrets.FORMATS[number], text, start, end))
    outside = (
        finding
        for finding in personal
        if not any(s.start < finding.end and finding.start < s.end for s in findings)
    )
    return Confidential(tuple(findings), tuple(outside))


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The secrets in a text, in order."""
    return find_confidential(text).secrets


def without_secrets(text: str) -> str:
    """A short text, such as a path, with each secret masked."""
    return secrets.masked(text, find_secrets(text))


def _secret(format_: secrets.Format, text: str, start: int, end: int) -> Finding:
    beginning = f", begins with {text[start : start + _SHOWN_CHARS]!r}"
    note = format_.kind.replace("_", " ") + (beginning if format_.value == "whole" else "")
    return Finding(f"secret_{format_.kind}", start, end, ascii_note(note))


@cache
def _patterns() -> LinearPatterns:
    expressions = [(format_.begins, format_.goes_on) for format_ in secrets.FORMATS]
    expressions += [(format_.begins, format_.goes_on) for format_ in personal_data.FORMATS]
    return LinearPatterns(expressions, _MAX_MATCH_BYTES)
