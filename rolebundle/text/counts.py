"""Numbers with their nouns, the first of many names, and times in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """At most so many of the names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def words_found(found: int, words: int) -> str:
    """How many of a task's words were found: ``2 of the task's 5 words``."""
    if not found:
        return "none of the task's words"
    return f"{found} of the task's {words} words" if words > 1 else "the task's only word"


def age(hours: float) -> str:
    """A time in words: ``less than an hour``, ``3 hours``, ``5 days``."""
    if hours < 1:
        return "less than an hour"
    return counted(int(hours), "hour") if hours < 48 else counted(int(hours / 24), "day")
