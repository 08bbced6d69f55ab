"""What the scan at the door finds in a text."""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["low", "high"]
"""``low`` is what ordinary pages have as well, such as a comment in their markup."""

MAX_NOTE = 120


class Finding(NamedTuple):
    """A place in a text, and what was found there.

    ``kind`` is stable and meant for programs. ``start`` and ``end`` are offsets in characters.
    ``note`` is for people: printable ASCII of at most 120 characters, and never a secret.
    """

    kind: str
    start: int
    end: int
    note: str
    severity: Severity = "high"


def ascii_note(text: str) -> str:
    """A text as a note: what is not printable ASCII escaped, cut to its longest."""
    # Four times the length is enough to cut from, and keeps a megabyte from being escaped.
    cut = text[: MAX_NOTE * 4].encode("ascii", "backslashreplace").decode("ascii")
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cut)
    return plain if len(plain) <= MAX_NOTE else plain[: MAX_NOTE - 3] + "..."
