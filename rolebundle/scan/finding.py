"""What a scan finds, and what it is told to look for."""

from __future__ import annotations

from collections.abc import Iterable
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


UNREAD = "governance_unread"
"""The kind of a part that limits its document, and that could not be read. It quarantines."""


def overlaps(finding: Finding, others: Iterable[Finding]) -> bool:
    """Whether a finding has any character in common with others."""
    return any(other.start < finding.end and finding.start < other.end for other in others)


SecretsPolicy = Literal["mask", "quarantine", "off"]

"""Whether secrets are masked (and only a document that is mostly secret is quarantined), quarantine
their document, or are ignored."""
