"""The scan of a document: every check, the verdict, and what quarantine keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rolebundle.scan.confidential import find_confidential, of_people, without_secrets
from rolebundle.scan.finding import UNREAD, Finding, HiddenPart, SecretsPolicy, ascii_note, overlaps
from rolebundle.scan.hidden_text import decoded, find_hidden, in_original, normalized_with_offsets
from rolebundle.scan.instructions import find_instructions
from rolebundle.scan.secrets import TABLE, masked

Verdict = Literal["clean", "label", "quarantine"]

_WEIGHTS: dict[str, float] = TABLE["weights"]
"""The weight of each kind of finding; 0 for a kind that is not in it.

Each kind counts once, and the score is the sum, in a long document that of its worst part. Personal
data labels a document and has no weight. ``hidden_words`` is for hidden text that decodes to words,
``hidden_instructions`` for hidden text and instructions in the same document, and for instructions
that markup hides.
"""
_LABEL_AT = 0.2
_QUARANTINE_AT = 1.0

_MIN_HIDDEN_LETTERS = 4
"""Hidden characters that decode to this many letters are a message."""

WINDOW_CHARS = 20_000
"""A long document is judged by its worst part of this length, in characters: one finding here and
another one far away are no attack."""
NEAR_CHARS = 2_000
"""Hidden text and an instruction belong together up to this distance: a bell or a stray character
elsewhere in a document hides no instruction."""
MAX_SECRET_SHARE = 1 / 3
"""A document is mostly secret if a larger share of its words is, such as a key file or a list."""

_MAX_PARTS = 1_000
_MAX_PART_CHARS = 20_000
"""Of a longer hidden part only the beginning is searched for instructions."""


class ScanResult(NamedTuple):
    """The findings of one document in the order of their offsets, and the verdict.

    ``text`` is the text to index and show. It is the original text if nothing had to be changed.
    Offsets in ``markup`` are in the source; all other offsets are in the original text.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    text: str
    markup: tuple[Finding, ...] = ()


def _in_parts(parts: Sequence[HiddenPart]) -> Iterator[Finding]:
    """The hidden parts that are labelled or have an instruction, in order."""
    for part in sorted(parts[:_MAX_PARTS], key=lambda part: (part.start, part.end)):
        is_instruction = bool(find_instructions(part.text[:_MAX_PART_CHARS]))
        if is_instruction or part.is_labelled:
            # Masked before the note is cut, since a part of a secret is not recognized.
            quoted = without_secrets(part.text[:_MAX_PART_CHARS])
            note = ascii_note(f"{'kept' if part.is_kept else 'removed'}: {quoted}")
            place = (part.kind, part.start, part.end)
            yield Finding(*place, note, "high" if is_instruction else "low")


def scan_text(
    text: str,
    body: tuple[int, int] | None = None,
    hidden_parts: Sequence[HiddenPart] = (),
    policy: SecretsPolicy = "mask",
) -> ScanResult:
    """Scan a document.

    Args:
        text: its text.
        body: the start and the end of the text without title and metadata, which are shown with
            every part of the document and therefore count for every part.
        hidden_parts: what its format hides.
        policy: what is done with secrets.
    """
    hidden = find_hidden(text)
    # Without hidden text, which would hide the rest from the patterns.
    normal, removals = normalized_with_offsets(text, hidden)
    instructions = find_instructions(normal)
    secrets, personal = find_confidential(normal)
    markup = tuple(_in_parts(hidden_parts))
    if policy == "off":
        secrets = ()
    if not (hidden or instructions or secrets or personal or markup):
        return ScanResult((), "clean", text)
    secret_words = sum(len(normal[finding.start : finding.end].split()) for finding in secrets)
    is_mostly_secret = secret_words > MAX_SECRET_SHARE * max(1, len(normal.split()))
    if secrets:
        # A note quotes the text of its finding, but no secret.
        instructions = tuple(
            f._replace(note=f.note.partition(":")[0]) if overlaps(f, secrets) else f
            for f in instructions
        )
        if policy == "mask":
            normal = masked(normal, secrets)
    if removals:
        instructions, secrets, personal = (
            tuple(in_original(finding, removals) for finding in part)
            for part in (instructions, secrets, personal)
        )
    start, end = body or (0, len(text))
    # What a mail or a file says of its sender and author is no personal data of others.
    personal = of_people(tuple(f for f in personal if start <= f.start and f.end <= end), text)
    score = _score((start, end), hidden, instructions, markup, decoded(text, hidden))
    ordered = sorted((*hidden, *instructions, *secrets, *personal), key=lambda f: (f.start, f.end))
    is_unread = any(part.kind == UNREAD for part in hidden_parts)
    is_secret = bool(secrets) and (is_mostly_secret or policy == "quarantine")
    is_quarantined = is_unread or is_secret or score >= _QUARANTINE_AT
    is_hiding = any(part.is_labelled for part in hidden_parts)
    is_labelled = score >= _LABEL_AT or secrets or personal or is_hiding
    verdict: Verdict = "quarantine" if is_quarantined else "label" if is_labelled else "clean"
    return ScanResult(tuple(ordered), verdict, normal, markup)


def _score(
    body: tuple[int, int],
    hidden: tuple[Finding, ...],
    instructions: tuple[Finding, ...],
    markup: tuple[Finding, ...],
    message: str,
) -> float:
    """The highest sum of the weights of the kinds in one part of a document.

    Each kind counts once. Findings in title, metadata and markup count for every part, and so does
    what the hidden characters encode.
    """
    hidden_kinds = {finding.kind for finding in hidden}
    start, end = body
    everywhere = {finding.kind for finding in markup if finding.severity == "high"}
    if everywhere:  # Of hidden markup only instructions are severe.
        everywhere.add("hidden_instructions")
    has_words = sum(map(str.isalpha, message)) >= _MIN_HIDDEN_LETTERS
    if has_words or find_instructions(message):
        everywhere.add("hidden_words")
    in_body: list[tuple[int, str]] = []
    for finding in (*hidden, *instructions):
        if finding.end <= start or finding.start >= end:
            everywhere.add(finding.kind)
        else:
            in_body.append((finding.start, finding.kind))
    score = _sum_of_weights(everywhere, everywhere, hidden_kinds)
    last: dict[str, int] = {}
    for place, kind in _with_pairs(sorted(in_body), hidden_kinds):
        first = place - WINDOW_CHARS
        if last.get(kind, -1) < max(0, first):  # Otherwise this part has no new kind.
            kinds = everywhere | {kind} | {name for name, at in last.items() if at >= first}
            score = max(score, _sum_of_weights(kinds, everywhere, hidden_kinds))
        last[kind] = place
    return score


def _with_pairs(
    in_body: list[tuple[int, str]], hidden_kinds: set[str]
) -> Iterator[tuple[int, str]]:
    """The findings, in order, and ``hidden_instructions`` if two of them belong together."""
    last: dict[bool, int] = {}
    for place, kind in in_body:
        yield place, kind
        is_hidden = kind in hidden_kinds
        partner_place = last.get(not is_hidden)
        if partner_place is not None and place - partner_place <= NEAR_CHARS:
            yield place, "hidden_instructions"
        last[is_hidden] = place


def _sum_of_weights(kinds: set[str], everywhere: set[str], hidden_kinds: set[str]) -> float:
    for some, others in ((kinds, everywhere), (everywhere, kinds)):
        has_instruction = any(kind.startswith("instruction_") for kind in others)
        if has_instruction and not some.isdisjoint(hidden_kinds):
            kinds = kinds | {"hidden_instructions"}
    return round(sum(_WEIGHTS.get(kind, 0.0) for kind in sorted(kinds)), 6)
