"""Numbers and times for a person."""

from __future__ import annotations

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """A time in the largest unit that makes a number of at least one."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def counted(number: int, noun: str) -> str:
    """``1 document``, ``2 documents``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
