"""What the findings of all checks have in common. Pure."""

from __future__ import annotations

from rolebundle.contracts.verification import CheckName, Finding, Span

MAX_SHOWN = 300
"""How many characters of the draft, or of a passage, one finding shows."""


def shorten(text: str) -> str:
    """A text as a finding shows it: at most 300 characters."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def unchecked_language(check: CheckName, span: Span, text: str, problem: str) -> Finding:
    """The finding on a sentence that a check cannot read. ``problem`` is what it cannot do."""
    return Finding(
        check=check,
        code="unchecked_language",
        fails=True,
        span=span,
        text=shorten(text),
        note=problem,
        remedy="Write the sentence in a language that can be checked, or check it by hand.",
    )
