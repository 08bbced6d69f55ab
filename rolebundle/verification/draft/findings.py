"""What the findings of all checks have in common. Pure."""

from __future__ import annotations

MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""


def shorten(text: str) -> str:
    """A text as a finding shows it: at most 300 characters."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
