"""What a scan finds, and what it is told to look for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

Severity = Literal["low", "high"]
"""``low`` is for what ordinary pages contain too, such as comments in their markup."""

MAX_NOTE_CHARS = 120


class Finding(NamedTuple):
    """What a search found at one place of a text.

    Args:
        kind: a stable name, for programs.
        start: the offset in characters.
        end: the offset after the last character.
        note: for people; printable ASCII of at most 120 characters, never a secret.
        severity: how serious it is.
    """

    kind: str
    start: int
    end: int
    note: str
    severity: Severity = "high"


def ascii_note(text: str) -> str:
    """A text as a note: escaped to printable ASCII, and cut to the longest allowed."""
    # Cut before escaping, so that a megabyte is not escaped; escaping never shortens a text.
    cut = text[: MAX_NOTE_CHARS * 4].encode("ascii", "backslashreplace").decode("ascii")
    plain = "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in cut
    )
    return plain if len(plain) <= MAX_NOTE_CHARS else plain[: MAX_NOTE_CHARS - 3] + "..."


class HiddenPart(NamedTuple):
    """A part of a document that its format hides from people, as its reader found it.

    Args:
        kind: the kind of the finding.
        text: the part's text.
        start: the offset of the part in the source, in characters.
        end: the offset after it. Both are 0 if the source is not text.
        is_labelled: whether the document is labelled for it.
        is_kept: whether the text stays in the document, because people may see it.
    """

    kind: str
    text: str
    start: int = 0
    end: int = 0
    is_labelled: bool = True
    is_kept: bool = False


def overlaps(finding: Finding, others: Iterable[Finding]) -> bool:
    """Whether a finding has any character in common with others."""
    return any(other.start < finding.end and finding.start < other.end for other in others)


SecretsPolicy = Literal["mask", "quarantine", "off"]

_WEIGHTS = {
    # Hidden text. If it encodes words, it was meant for machines only.
    **{"hidden_words": 1.0, "tag_characters": 0.6, "variation_selectors": 0.4},
    **{"bidi_override": 0.6, "bidi_control": 0.3, "homoglyph": 0.3, "latin_homoglyph": 0.2},
    **{"format_character": 0.2, "filler": 0.2, "invisible_operator": 0.2},
    **{"control_character": 0.2, "zero_width": 0.2, "soft_hyphen": 0.2, "directional_mark": 0.2},
    # Hidden markup whose text reads like an instruction. Other hidden markup does not count.
    **{"markup_comment": 0.6, "invisible_element": 0.8, "off_screen_element": 0.8},
    **{"white_text": 0.8, "aria_hidden": 0.6},
    # Visible instructions. One kind alone labels: a page about prompt injection has it too. Two
    # kinds quarantine.
    **{"instruction_override": 0.5, "instruction_exfiltration": 0.5},
    **{"instruction_role_change": 0.5, "instruction_tool_call": 0.5},
    **{"instruction_encoded_payload": 0.5, "instruction_forged_state": 0.3},
    # Hidden text and instructions in the same document, or instructions that markup hides.
    "hidden_instructions": 1.0,
}


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """How strict the scan is.

    Each kind of finding counts once, with its weight, and the score is the sum, in a long document
    that of its worst part. Personal data labels a document and has no weight. ``hidden_words`` is
    for hidden text that decodes to words, ``hidden_instructions`` for hidden text and instructions
    in the same document, and for instructions that markup hides.

    Args:
        weights: the weight of each kind; 0 for a kind that is not in it.
        label_at: the lowest score at which a document is labelled.
        quarantine_at: the lowest score at which a document is quarantined.
        secrets: whether secrets are masked (and only a document that is mostly secret is
            quarantined), quarantine their document, or are ignored.
        patterns: a file of further patterns for instructions.
        patterns_digest: the digest of that file and of the shipped patterns. Other patterns make
            other settings, and all files are scanned again.
    """

    weights: dict[str, float] = field(default_factory=lambda: dict(_WEIGHTS), hash=False)
    label_at: float = 0.2
    quarantine_at: float = 1.0
    secrets: SecretsPolicy = "mask"
    patterns: Path | None = None
    patterns_digest: str = ""
