"""Scan documents: hidden text, hidden markup, instructions to a model, secrets.

The result is the findings and a verdict. The caller decides what to do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rolebundle.scan.finding import Finding
from rolebundle.scan.hidden_markup import find_hidden_markup
from rolebundle.scan.hidden_text import (
    Removal,
    decoded_text,
    find_hidden,
    normalized_with_offsets,
    original_offset,
)
from rolebundle.scan.instructions import Patterns, load_patterns
from rolebundle.scan.secrets import find_secrets, masked
from rolebundle.scan.settings import ScanSettings

Verdict = Literal["clean", "label", "quarantine"]

_MIN_HIDDEN_LETTERS = 4
"""Hidden characters that decode to this many letters are a message."""

_load_patterns = lru_cache(maxsize=4)(load_patterns)


class Scannable(NamedTuple):
    """A document's text, and the markup that it was read from, if any (as text or UTF-8)."""

    text: str
    source: str | bytes | None = None


class ScanResult(NamedTuple):
    """The findings of one document in the order of their offsets, and the verdict.

    ``text`` is the text to index and show. It is the original text if nothing had to be changed.
    Offsets in ``markup`` are in the source; all other offsets are in the original text.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    text: str
    markup: tuple[Finding, ...] = ()


class _Findings(NamedTuple):
    """What each search found in one document.

    ``normal`` is the document's text without hidden text, and what was removed. Offsets of
    ``instructions`` and ``secrets`` are in that text.
    """

    hidden: tuple[Finding, ...]
    normal: tuple[str, tuple[Removal, ...]]
    instructions: tuple[Finding, ...]
    secrets: tuple[Finding, ...]
    markup: tuple[Finding, ...]


def scan_texts(documents: Sequence[Scannable], settings: ScanSettings) -> list[ScanResult]:
    """Scan documents, in order.

    Each search runs over all documents before the next one starts: its tables fill the processor's
    cache, and switching between searches for every text would evict them.

    Raises:
        ConfigurationError: the settings name a file of patterns that has an error.
    """
    patterns = _load_patterns(settings.patterns)
    hidden = [find_hidden(document.text) for document in documents]
    # Without hidden text, which would hide the rest from the patterns.
    normal = [
        normalized_with_offsets(document.text, findings) if findings else (document.text, ())
        for document, findings in zip(documents, hidden, strict=True)
    ]
    instructions = [patterns.find(text) for text, _ in normal]
    has_secret_search = settings.secrets != "off"
    secrets = [find_secrets(text) if has_secret_search else () for text, _ in normal]
    markup = [
        () if document.source is None else find_hidden_markup(document.source, patterns)
        for document in documents
    ]
    per_document = map(_Findings, hidden, normal, instructions, secrets, markup)
    return [
        _result(document.text, findings, patterns, settings)
        for document, findings in zip(documents, per_document, strict=True)
    ]


def _result(
    text: str, findings: _Findings, patterns: Patterns, settings: ScanSettings
) -> ScanResult:
    hidden, (normal, removals), instructions, secrets, markup = findings
    if not (hidden or instructions or secrets or markup):
        return ScanResult((), "clean", text)
    if secrets and settings.secrets == "mask":
        normal = masked(normal, secrets)
    if removals:
        instructions = tuple(_in_original(finding, removals) for finding in instructions)
        secrets = tuple(_in_original(finding, removals) for finding in secrets)
    decoded = _decoded(text, hidden)
    has_words = _letters(decoded) >= _MIN_HIDDEN_LETTERS or bool(patterns.find(decoded))
    score = _score(hidden, instructions, markup, has_words, settings.weights)
    ordered = sorted((*hidden, *instructions, *secrets), key=lambda f: (f.start, f.end))
    verdict = _verdict(score, bool(secrets), settings)
    return ScanResult(tuple(ordered), verdict, normal, markup)


def _in_original(finding: Finding, removals: tuple[Removal, ...]) -> Finding:
    # The end is that of the last character: what was hidden after it is not part of the finding.
    start = original_offset(removals, finding.start)
    return finding._replace(start=start, end=original_offset(removals, finding.end - 1) + 1)


def _decoded(text: str, hidden: tuple[Finding, ...]) -> str:
    """The text that the hidden characters of all runs encode together."""
    kinds = ("tag_characters", "variation_selectors")
    runs = {
        kind: "".join(text[f.start : f.end] for f in hidden if f.kind == kind) for kind in kinds
    }
    return "\n".join(decoded_text(kind, run) for kind, run in runs.items())


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)


def _score(
    hidden: tuple[Finding, ...],
    instructions: tuple[Finding, ...],
    markup: tuple[Finding, ...],
    has_words: bool,
    weights: dict[str, float],
) -> float:
    """Return the sum of the weights of the kinds. Each kind counts once."""
    kinds = {finding.kind for finding in (*hidden, *instructions)}
    kinds |= {finding.kind for finding in markup if finding.severity == "high"}
    if has_words:
        kinds.add("hidden_words")
    if hidden and instructions:
        kinds.add("hidden_instructions")
    return round(sum(weights.get(kind, 0.0) for kind in sorted(kinds)), 6)


def _verdict(score: float, has_secrets: bool, settings: ScanSettings) -> Verdict:
    if score >= settings.quarantine_at or (has_secrets and settings.secrets == "quarantine"):
        return "quarantine"
    return "label" if score >= settings.label_at or has_secrets else "clean"
