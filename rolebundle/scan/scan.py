"""The scan at the door: what is found in a document, what it weighs, what shall become of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rolebundle.contracts.finding import Finding
from rolebundle.scan.settings import ScanSettings

if TYPE_CHECKING:
    from rolebundle.scan.instructions import Patterns
    from rolebundle.scan.normalize import Removal

Verdict = Literal["clean", "label", "quarantine"]


class ScanResult(NamedTuple):
    """The findings of one document, by place; ``score`` is what they weigh together.

    ``text`` is what to index and show: the text itself where nothing had to be changed.
    Offsets of findings of ``find_hidden_markup`` are in the source, all others in the text.
    """

    findings: tuple[Finding, ...]
    score: float
    verdict: Verdict
    text: str
    markup: tuple[Finding, ...] = ()


class Scannable(NamedTuple):
    """A document's text, and the markup that it was read from, where there is one.

    Bytes of markup are taken for UTF-8.
    """

    text: str
    source: str | bytes | None = None


def scan_texts(documents: Sequence[Scannable], settings: ScanSettings) -> list[ScanResult]:
    """Scans documents, in order.

    Search by search and not text by text: the tables of one search fill the processor's cache, and
    the next search would drive them out of it again for every text.

    Raises:
        ConfigurationError: the settings name a file of patterns that is wrong.
    """
    from rolebundle.scan.hidden_markup import find_hidden_markup
    from rolebundle.scan.hidden_text import find_hidden

    patterns = _patterns(settings.patterns)
    hidden = [find_hidden(text) for text, _ in documents]
    # Look-alikes and joiners inside words would hide the rest from the patterns.
    shown = [_shown(text, found) for (text, _), found in zip(documents, hidden, strict=True)]
    seen = [patterns.find(text) for text, _ in shown]
    secrets = _secrets([text for text, _ in shown], settings)
    markup = [
        () if source is None else find_hidden_markup(source, patterns) for _, source in documents
    ]
    found = map(_Found, hidden, shown, seen, secrets, markup)
    return [
        _result(text, one, patterns, settings)
        for (text, _), one in zip(documents, found, strict=True)
    ]


class _Found(NamedTuple):
    """What the searches found in one document; ``shown`` is its text without what is hidden."""

    hidden: tuple[Finding, ...]
    shown: tuple[str, tuple[Removal, ...]]
    seen: tuple[Finding, ...]
    secrets: tuple[Finding, ...]
    markup: tuple[Finding, ...]


def _shown(text: str, hidden: tuple[Finding, ...]) -> tuple[str, tuple[Removal, ...]]:
    if not hidden:
        return text, ()
    from rolebundle.scan.normalize import normalized_with_offsets

    return normalized_with_offsets(text, hidden)


def _secrets(texts: Sequence[str], settings: ScanSettings) -> list[tuple[Finding, ...]]:
    if settings.secrets == "off":
        return [()] * len(texts)
    from rolebundle.scan.secrets import find_secrets

    return [find_secrets(text) for text in texts]


def _result(text: str, found: _Found, patterns: Patterns, settings: ScanSettings) -> ScanResult:
    hidden, (normal, removals), seen, secrets, markup = found
    if not (hidden or seen or secrets or markup):
        return ScanResult((), 0.0, "clean", text)
    if secrets and settings.secrets == "mask":
        from rolebundle.scan.secrets import masked

        normal = masked(normal, secrets)
    if removals:
        seen = tuple(_in_original(finding, removals) for finding in seen)
        secrets = tuple(_in_original(finding, removals) for finding in secrets)
    spelled = _spelled(text, hidden)
    score = _score(hidden, seen, markup, _is_wordy(spelled, patterns), settings.weights)
    findings = tuple(sorted((*hidden, *seen, *secrets), key=lambda finding: finding[1:3]))
    verdict = _verdict(score, bool(secrets), settings)
    return ScanResult(findings, score, verdict, normal, markup)


@lru_cache(maxsize=4)
def _patterns(extra: Path | None) -> Patterns:
    from rolebundle.scan.instructions import load_patterns

    return load_patterns(extra)


def _in_original(finding: Finding, removals: tuple[Removal, ...]) -> Finding:
    # From the last character and not from the end: what was hidden after it is not part of it.
    from rolebundle.scan.normalize import original_offset

    start = original_offset(removals, finding.start)
    return finding._replace(start=start, end=original_offset(removals, finding.end - 1) + 1)


def _spelled(text: str, hidden: tuple[Finding, ...]) -> str:
    """What the hidden characters of a text spell together, over all their runs."""
    from rolebundle.scan.hidden_text import decoded_text

    kinds = ("tag_characters", "variation_selectors")
    runs = {
        kind: "".join(text[f.start : f.end] for f in hidden if f.kind == kind) for kind in kinds
    }
    return "\n".join(decoded_text(kind, run) for kind, run in runs.items())


def _is_wordy(spelled: str, patterns: Patterns) -> bool:
    letters = sum(character.isalpha() for character in spelled)
    return letters >= 4 or bool(patterns.find(spelled))


def _score(
    hidden: tuple[Finding, ...],
    seen: tuple[Finding, ...],
    markup: tuple[Finding, ...],
    wordy: bool,
    weights: dict[str, float],
) -> float:
    kinds = {finding.kind for finding in (*hidden, *seen)}
    kinds |= {finding.kind for finding in markup if finding.severity == "high"}
    if wordy:
        kinds.add("hidden_words")
    if hidden and seen:
        kinds.add("hidden_instructions")
    return round(sum(weights.get(kind, 0.0) for kind in sorted(kinds)), 6)


def _verdict(score: float, has_secrets: bool, settings: ScanSettings) -> Verdict:
    if score >= settings.quarantine_at or (has_secrets and settings.secrets == "quarantine"):
        return "quarantine"
    return "label" if score >= settings.label_at or has_secrets else "clean"
