"""What the scan's findings weigh, and from where on a document is labelled or kept out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SecretsPolicy = Literal["quarantine", "mask", "off"]

_WEIGHTS = {
    # Hidden text. Something that spells words was put there to be read by a machine alone.
    "hidden_words": 1.0,
    "tag_characters": 0.6,
    "variation_selectors": 0.4,
    "bidi_override": 0.6,
    "bidi_control": 0.3,
    "homoglyph": 0.3,
    "latin_homoglyph": 0.2,
    "format_character": 0.2,
    "filler": 0.2,
    "invisible_operator": 0.2,
    "control_character": 0.2,
    "zero_width": 0.2,
    "soft_hyphen": 0.2,
    "directional_mark": 0.2,
    # Hidden markup, where its text reads like an instruction. Any other is not counted.
    "markup_comment": 0.6,
    "invisible_element": 0.8,
    "off_screen_element": 0.8,
    "white_text": 0.8,
    "aria_hidden": 0.6,
    # Instructions in plain sight: a page about injection has them as well.
    "instruction_override": 0.4,
    "instruction_exfiltration": 0.4,
    "instruction_role_change": 0.3,
    "instruction_tool_call": 0.3,
    "instruction_encoded_payload": 0.4,
    # Hidden text and instructions in the same document.
    "hidden_instructions": 1.0,
}


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """How strict the door is.

    Each kind of finding counts once, with its weight; the score is the sum. ``hidden_words`` is for
    hidden text that decodes to words, ``hidden_instructions`` for hidden text and instructions
    together. From ``label_at`` on a document is labelled, from ``quarantine_at`` on kept out.
    A secret keeps a document out by itself, or is masked, or is not looked for.
    """

    weights: dict[str, float] = field(default_factory=lambda: dict(_WEIGHTS), hash=False)
    label_at: float = 0.2
    quarantine_at: float = 1.0
    secrets: SecretsPolicy = "quarantine"
    patterns: Path | None = None
