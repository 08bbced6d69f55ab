"""Dates as people write them: in names of files, lines, and bounds such as "last week". Pure.

In the languages of ``dates.toml``, which has the words and forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from rolebundle.resources import data_file

_DAY_CHARS = 40
"""Of a line, in which a day may stand."""
_Dated = tuple[str, re.Match[str]]
"""A date, and where it stands."""
_REFERENCE = re.compile(r"(?<!\w)(?:@[^\W\d]\w*|[A-Z]{1,4}-\d{4}[-/]\d+(?![-/\d]))")
"""The key of a citation, ``@Hansson2021``, or a label such as ``AB-2026-0412``."""


@cache
def _table() -> Any:
    table = data_file(__file__, "dates.toml")
    words = {word: (kind, 1) for kind, texts in table["words"].items() for word in texts.split()}
    for kind, rows in table["values"].items():
        words |= {word: (kind, value) for value, row in enumerate(rows) for word in row.split()}
    for size, row in table["units"].items():
        words |= dict.fromkeys(row.split(), ("unit", int(size)))

    def compiled(pattern: str) -> re.Pattern[str]:
        for name, part in [*table["parts"].items()] * 2:  # A part may have others in it.
            pattern = pattern.replace(f"<{name}>", part)
        return re.compile(pattern)

    patterns = [compiled(rf"(?<!\d){pattern}(?!\d)") for pattern in table["patterns"]]
    statements = {form: compiled(pattern) for form, pattern in table["statements"].items()}
    asking = *table["newest"]["words"].split(), *table["newest"]["phrases"]
    newest = {_plain(words): _plain(words) for words in asking}
    newest |= {f"last {noun}": "last" for noun in table["newest"]["last"]}
    own = {"words": words, "patterns": patterns, "statements": statements, "newest": newest}
    return table | own | {name: compiled(table[name]) for name in ("entry", "part_end")}


def newest_words() -> Mapping[str, str]:
    """What asks for the newest version, in small letters → the words of it that say no matter."""
    return _table()["newest"]  # type: ignore[no-any-return]


def _plain(text: str) -> str:
    """In small letters, without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


@lru_cache(maxsize=4096)
def is_month(word: str) -> bool:
    """Whether a word in small letters is a month's name, or its first three letters or more."""
    return bool(_month_of(_plain(word)))


@lru_cache(maxsize=4096)
def is_of_date(word: str) -> bool:
    """Whether a word is a month's name, or a day's of the week, also with an ``s`` (Saturdays)."""
    names = " ".join([*_table()["values"]["weekday"], *_table()["months"]]).replace("=", "").split()
    return not {plain := _plain(word), plain.removesuffix("s")}.isdisjoint(names)


def weekdays_in(text: str) -> frozenset[int]:
    """The days of the week in a text, Monday is 0."""
    words, known = re.findall(r"[^\W\d_]+", _plain(text)), _table()["words"]
    found = (known.get(word) or known.get(word.removesuffix("s")) for word in words)
    return frozenset(day for kind, day in filter(None, found) if kind == "weekday")


def season_of(word: str) -> int:
    """The number of a season in its year, spring is 1; 0 for another word."""
    return _row_with(_table()["seasons"], f" {_plain(word)} ")


def _month_of(word: str) -> int:
    """The number of a month, by at least three letters of its name; 0 for another word."""
    return _row_with(_table()["months"], f" {word}", f" ={word} ") if len(word) > 2 else 0


def _row_with(rows: list[str], *texts: str) -> int:
    """The number of the first row with one of the texts; 0 without one."""
    return next((n for n, row in enumerate(rows, 1) if any(t in f" {row} " for t in texts)), 0)


def _date_of(match: re.Match[str]) -> str:
    """What was matched, as ``2026``, ``2026-03`` or ``2026-03-12``; empty if it is no date.

    Raises:
        ValueError: there is no such day.
    """
    part = {key: value for key, value in match.groupdict().items() if value}
    year = int(part.get("y") or f"20{part['yy']}")
    month, day = int(part.get("m", 0)), int(part.get("d", 0))
    if "week" in part:
        return date.fromisocalendar(year, int(part["week"]), 1).isoformat()
    if "name" in part or "q" in part:
        month = _month_of(part["name"]) if "name" in part else 3 * int(part["q"]) - 2
    elif not match[0].startswith(f"{year}") and part.get("sep", ".") != ".":
        if max(day, month) <= 12 and day != month:
            return ""  # 03-04-2026 is in March or in April.
        day, month = (month, day) if month > 12 else (day, month)
    elif not month:
        return f"{year}"
    return date(year, month, day or 1).isoformat()[: 10 if day else 7]


def date_in_name(name: str) -> str:
    """The date in the name of a file: ``2026``, ``2026-03`` or ``2026-03-12``; empty if none.

    ``2026-03-12``, ``20260312``, ``12.03.2026``, ``12 March 2026``, ``march26``, ``Q1 2026``,
    ``2026-W12``, ``2026``. The most exact one counts; of several that differ none. The numbers of
    a citation key, ``@Hansson2021``, or of a label, ``AB-2026-0412``, are no date.
    """
    found = _most_exact(_dates_in(_plain(_REFERENCE.sub(" ", name))))
    return found[0] if found else ""


def _most_exact(found: Iterable[_Dated]) -> _Dated | None:
    """The most exact of some dates; ``None`` without one, or if several differ."""
    dates = dict(found)
    exact = [date for date in dates if len(date) == max(map(len, dates))]
    return (exact[0], dates[exact[0]]) if len(exact) == 1 else None


def _dates_in(text: str) -> Iterator[_Dated]:
    for match in (match for pattern in _table()["patterns"] for match in pattern.finditer(text)):
        with suppress(ValueError):
            yield _date_of(match), match


def stated_day(line: str) -> tuple[str, str]:
    """The day in the first sentence of a line, and the form that dates the text; empty for none.

    ``label`` (``Stand: 2.11.2026, Bonn``), ``alone`` (``Bonn, 2 November 2026``), or ``title``: as
    a title has it (``Minutes of 2 November 2026``), and not that of something else (``Reply to your
    letter of …``, ``Deadline on …``); or ``number``, as what has one names itself (``Offer no. 7 of
    …``), ``valid``, when it begins to hold (``Valid from …``), or ``from``, when something does.
    The year has four digits. ``from March 2026`` is its first day.
    """
    text, *rest = _table()["part_end"].split(_plain(line), 1)
    dates = ((d, match) for d, match in _dates_in(text) if len(d) > 4 and d[:4] in match[0])
    found = _most_exact(dates)
    if found is None:
        return "", ""
    day, match = found
    shape = f"{text[: match.start()]}DAY{text[match.end() :]}{' REST' if rest else ''}"
    forms = _table()["statements"].items()
    form = next((form for form, pattern in forms if pattern.fullmatch(shape)), "")
    if len(day) < 10:
        day, form = f"{day}-01", form if form == "valid" else ""
    return (day, form) if form else ("", "")


def entries_of(text: str, until: str) -> list[tuple[str, str]]:
    """The parts of a text that begin with a day at the start of a line: it, and what follows it.

    ``22 Oct  Editor: …``, or ``2026-11-17`` alone. The first part may have no day.

    Args:
        text: of notes, a log or a diary.
        until: the last possible day of one without a year, ``2026-11-30``; "" if it is not known.
    """
    found = [("", list[str]())]
    for line in text.split("\n"):
        match = _table()["entry"].match(_plain(line[:_DAY_CHARS]))
        if match and (day := _entry_day(match[0].rstrip(" ."), until)):
            found.append((day, [line[match.end() :]]))
        else:
            found[-1][1].append(line)
    return [(day, "\n".join(lines)) for day, lines in found if lines]


@lru_cache(maxsize=4096)
def _entry_day(written: str, until: str) -> str:
    last, bare = int(until[:4] or 0), written.replace(" de ", " ")
    # The last 29 February may be years ago.
    days = (date_in_name(written), *(date_in_name(f"{bare}.{last - n}") for n in range(5)))
    return next((day for day in days if len(day) == 10 and (day <= until or day == days[0])), "")


def start_of(text: str, now: datetime) -> datetime | None:
    """When what a text names begins, in UTC; ``None`` if the text is nothing of this kind.

    A year, quarter, month or day (``2026``, ``Q3 2026``, ``März 2026``), or what is counted from
    ``now``: ``yesterday``, ``friday``, ``march``, ``this month``, ``last week`` (from its Monday),
    ``last 7 days``, ``vor drei Monaten``, ``il y a deux ans``, ``desde el lunes``.
    """
    known = _table()["words"]
    words = re.sub(r"\bl['’]", "", _plain(text)).split()
    words = [word for word in words if known.get(word) != ("no", 1)]
    written = " ".join(words)
    if any(pattern.fullmatch(written) for pattern in _table()["patterns"]):
        found = date_in_name(written)
        return datetime.fromisoformat(f"{found}-01-01"[:10]).replace(tzinfo=UTC) if found else None
    part: dict[str, int] = {}
    for word in words:
        number = int(word) if re.fullmatch("[1-9][0-9]{0,3}", word) else 0
        kind, value = known.get(word) or (("number", number) if number else ("m", _month_of(word)))
        if kind in part or not (value or kind in ("day", "weekday")):
            return None
        part[kind] = value
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with suppress(ValueError, OverflowError):
        return _counted_from(today, part)
    return None


def _counted_from(today: datetime, part: dict[str, int]) -> datetime | None:
    unit, number = part.get("unit", 0), part.get("number", 1)
    first, days_since = today, (today.weekday() - part.get("weekday", 0)) % 7
    match sorted(part):
        case ["day"]:
            return today - timedelta(days=part["day"])
        case ["weekday"] | ["last", "weekday"]:
            return today - timedelta(days=days_since or 7 * ("last" in part))
        case ["m"]:
            year = today.year - (part["m"] > today.month)
            return today.replace(year=year, month=part["m"], day=1)
        case ["last", "unit"] | ["this", "unit"]:
            number = int("last" in part)
            if unit == 7:
                first = today - timedelta(days=days_since)
            elif unit < 0:
                first = today.replace(month=1 + (today.month - 1) // -unit * -unit, day=1)
        case ["ago", "unit"] | ["ago", "number", "unit"] | ["last", "number", "unit"]:
            pass
        case _:
            return None
    if unit > 0:
        return first - timedelta(days=number * unit)
    year, month = divmod(12 * first.year + first.month - 1 + number * unit, 12)
    return first.replace(year=year, month=month + 1, day=min(first.day, 28))
