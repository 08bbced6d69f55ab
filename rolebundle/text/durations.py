"""Lengths of time as people write them: ``90s``, ``5m``, ``12h``, ``7d``."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"([1-9]\d{0,5})([smhd])")


def parse_duration(text: str) -> timedelta:
    """A whole number of seconds, minutes, hours or days.

    Raises:
        ValueError: it is none, or longer than 100 years.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a length of time such as 90s, 5m, 12h or 7d")
    duration = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if duration > timedelta(days=36_500):
        raise ValueError(f"{text!r} is longer than 100 years")
    return duration
