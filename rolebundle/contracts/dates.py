"""Dates and times as tools write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_NAMES = (
    "january february march april may june july august september october november december".split()
)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_YMD = r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})"
_DMY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[\s-](?P<month>[a-z]{3,9})\.?,?[\s-](?P<year>\d{4})"
_MDY = r"(?P<month>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})"
_TIME = (
    r"(?:(?:t|,?\s+|,?\s+at\s+)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?)?"
)
_ZONE = r"(?:\s*(?:z|utc|gmt)?\s*(?P<zone>[+-]\d\d(?::?\d\d)?)?)(?:\s*\([^()]*\))?"
_FORMS = [
    re.compile(rf"{_WEEKDAY}{day}{_TIME}{_ZONE}", re.IGNORECASE | re.ASCII)
    for day in (_YMD, _DMY, _MDY)
]
_SECONDS = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_MAX_CHARS = 100


def moment_of(text: str) -> date | datetime | None:
    """The day or time that a text is, if no other one can be meant.

    ISO 8601, ``2024-5-3``, ``2024/05/03 10:00 +0200``, ``3 May 2024``, ``May 3rd, 2024``,
    ``Fri, 03 May 2024 10:00:00 GMT``, and seconds or milliseconds since 1970. Not ``03/05/2024``,
    which may be in March or in May. A time without a zone is in UTC.
    """
    text = text.strip()
    if len(text) > _MAX_CHARS:
        return None
    try:
        if _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(int(text[:10]), UTC)
        moment = datetime.fromisoformat(text)
        return moment.date() if len(text) <= len("2024-05-03") else _zoned(moment)
    except (ValueError, OverflowError):
        pass
    for form in _FORMS:
        if match := form.fullmatch(text):
            try:
                return _moment(match)
            except (ValueError, OverflowError):
                return None
    return None


def _zoned(moment: datetime) -> datetime:
    # A time without a zone is in UTC, so that the result does not depend on the machine.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment(match: re.Match[str]) -> date | datetime:
    day = date(int(match["year"]), _month(match["month"]), int(match["day"]))
    if match["hour"] is None:
        return day
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "p")
    zone = match["zone"]
    offset = timedelta()
    if zone:
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        offset = -offset if zone[0] == "-" else offset
    second = min(int(match["second"] or 0), 59)  # a leap second
    return datetime(
        day.year, day.month, day.day, hour, int(match["minute"]), second, tzinfo=timezone(offset)
    )


def _month(text: str) -> int:
    """The number of a month by its English name or its first three or four letters."""
    if text.isdigit():
        return int(text)
    name = text.lower()
    if name not in _NAMES and name not in (*_MONTHS, "sept"):
        raise ValueError(f"no month: {text}")
    return _MONTHS.index(name[:3]) + 1
