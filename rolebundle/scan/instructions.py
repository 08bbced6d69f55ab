"""Instructions to a model in a document's text: patterns from a data file, in linear time.

The patterns find known wordings. A rephrased instruction is missed, so the absence of findings
proves nothing (docs/security.md has the measured recall).
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rolebundle.scan.finding import Finding, ascii_note
from rolebundle.scan.linear import LinearPatterns

PATTERNS = Path(__file__).with_name("instructions.toml")

FORGED_STATE = "instruction_forged_state"
"""The kind of a text that poses as a note of the system about how far it can be trusted."""
MAX_FINDINGS_PER_PATTERN = 100
"""How often one pattern is reported for one text."""

# White space, non-breaking and wide spaces, quotes, and Markdown's marks.
_BETWEEN_WORDS = r"[\s\pZ'\"“”„«»‘’`*_~>#|\\/-]+"
# Simpler, because the whole text is searched for the beginnings.
_BETWEEN_FIRST_WORDS = r"[\s'\"*_-]{1,2}"
# "It will not delete any …" and "The kernel can run your …" describe. "You will …" orders.
_DESCRIPTION = re.compile(
    r"(?:\b(?!(?:you|ai|assistant|model|llm|agent|chatbot|bot|user)\b)\w+\s+"
    r"(?:will|would|can|could|may|might)"
    r"|\b(?:I|he|she|they)"  # "I forget what I said" tells.
    r"|\b(?:(?:will|would|can|could|may|might|does|did|is|are)[\s*_]+not|cannot|\w+n['’]t))[\s*_]+$",
    re.IGNORECASE,
)
_MAX_BEFORE_CHARS = 80
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]| ", re.DOTALL)
"""An escaped character, a class of characters, or a space."""


def find_instructions(text: str) -> tuple[Finding, ...]:
    """The instructions in a text, in order. Each kind is ``instruction_`` and the category."""
    patterns, linear = load_patterns()
    findings = []
    for number, start, end, matched in linear.spans(text, MAX_FINDINGS_PER_PATTERN):
        if not _DESCRIPTION.search(text, max(0, start - _MAX_BEFORE_CHARS), start):
            pattern = patterns[number]
            note = ascii_note(f"{pattern['id']}: {matched[:80]!r}")
            findings.append(Finding(f"instruction_{pattern['category']}", start, end, note))
    return tuple(findings)


@cache
def load_patterns() -> tuple[list[dict[str, Any]], LinearPatterns]:
    """The patterns of the file, and what searches for them.

    A pattern has an ``id``, a ``category`` and the RE2 expressions ``begins`` and ``goes_on``.
    """
    patterns = tomllib.loads(PATTERNS.read_text(encoding="utf-8"))["pattern"]
    pairs = [(_expression(p["begins"]), _with_spaces(p.get("goes_on", ""))) for p in patterns]
    return patterns, LinearPatterns(pairs)


@cache
def patterns_digest() -> str:
    """The digest of the patterns. With others all files are scanned again."""
    return blake2b(PATTERNS.read_bytes(), digest_size=8).hexdigest()


def _expression(begins: str) -> str:
    # The flag applies to the rest of the pattern as well.
    return "(?i)" + _with_spaces(begins, _BETWEEN_FIRST_WORDS)


def _with_spaces(regex: str, gap: str = _BETWEEN_WORDS) -> str:
    """Replace each space of a pattern outside character classes by a gap between words."""

    def widened(part: re.Match[str]) -> str:
        # A repetition after the space applies to the whole gap.
        is_quantified = regex[part.end() : part.end() + 1] in {"?", "*", "+", "{"}
        return part[0] if part[0] != " " else f"(?:{gap})" if is_quantified else gap

    return _PART.sub(widened, regex)
