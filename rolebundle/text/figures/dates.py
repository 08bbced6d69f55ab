"""Dates, times, parts of years and ordinals of a text. Pure."""

from __future__ import annotations

import re
from fractions import Fraction

from rolebundle.text.figures import patterns
from rolebundle.text.figures.quantities import UNITS_BY_NAME
from rolebundle.text.figures.reader import PLAIN_FIGURE, FigureReader
from rolebundle.text.figures.units import nouns_after
from rolebundle.text.figures.values import Reading, clock_readings, integers, year_of


def read_period(reader: FigureReader, start: int, chunk: str) -> bool:
    """Quarters and halves of years, fiscal years, durations in ISO 8601."""
    low = reader.low
    if match := patterns.QUARTER.match(low, start):
        letter, number = match[1] or match[5], match[2] or match[6]
        year = int(match[3] or match[4])
        reader.add(start, match.end(), Reading("date", (year, letter + number)))
        return True
    if match := patterns.FISCAL.match(low, start):
        reader.add(start, match.end(), Reading("date", ("fy", year_of(match[1]))))
        return True
    if chunk[:1] == "p" and (match := patterns.DURATION.match(low, start)):
        parts = [
            (Fraction(text), UNITS_BY_NAME[name][0])
            for text, name in zip(match.groups(), patterns.DURATION_UNITS, strict=True)
            if text
        ]
        if len({unit.dimension for _, unit in parts}) == 1:
            value = sum((count * unit.factor for count, unit in parts), Fraction(0))
            unit = parts[0][1].dimension
            reader.add(start, match.end(), Reading("quantity", value, unit, parts[0][0]))
            return True
    return False


def read_date(reader: FigureReader, start: int) -> bool:
    """Read a date that begins with digits, or a decade."""
    low, grammar = reader.low, reader.grammar
    window = low[start : start + 48]
    if match := patterns.ISO_DATE.match(window):
        return _add_date(reader, start, match, integers(match, 1, 3, 4))
    if match := patterns.NUMERIC_DATE.match(window):
        return _numeric_date(reader, start, match)
    if match := grammar.day_month.match(window):
        name = start + match.start("month")
        is_name = reader.language != "en" or reader.text[name].isupper() or match["year"]
        if is_name and (not match["last"] or int(match["last"]) <= 31):
            return _month_date(reader, start, match, grammar.words.months[match["month"]])
    if match := grammar.year_month_day.match(window):
        month = grammar.words.months[match["month"]]
        return _add_date(reader, start, match, (int(match["year"]), month, int(match["day"])))
    if match := patterns.COMPACT_DATE.match(window):
        year, month, day = integers(match, 1, 2, 3)
        value = Fraction(match[0])
        number = Reading("number", value, "", value)
        return _add_date(reader, start, match, (year, month, day), number)
    if (match := patterns.YEAR_MONTH.match(window)) and 1 <= int(match[2]) <= 12:
        return _add_date(reader, start, match, (int(match[1]), int(match[2]), None))
    if (match := patterns.MONTH_YEAR.match(window)) and 1 <= int(match[1]) <= 12:
        return _add_date(reader, start, match, (int(match[2]), int(match[1]), None))
    if match := patterns.TENS_OF_YEARS.match(window):
        decade = int(match[1]) if match[1] else 1900 + int(match[2])
        reader.add(start, start + match.end(), Reading("date", ("decade", decade)))
        return True
    return False


def _add_date(
    reader: FigureReader,
    start: int,
    match: re.Match[str],
    date: tuple[int | None, int | None, int | None],
    *readings: Reading,
) -> bool:
    _, month, day = date
    if not (1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31):
        return False
    reader.add(start, start + match.end(), Reading("date", date), *readings)
    return True


def _numeric_date(reader: FigureReader, start: int, match: re.Match[str]) -> bool:
    first, second, year = int(match[1]), int(match[3]), year_of(match[4])
    orders = [(year, second, first), (year, first, second)]
    if match[2] == "." or reader.comma:
        orders = orders[:1]
    orders = [date for date in orders if 1 <= date[1] <= 12 and 1 <= date[2] <= 31]
    if not orders:
        return False
    readings = [Reading("date", date) for date in dict.fromkeys(orders)]
    like = PLAIN_FIGURE._replace(needs_all=len(readings) > 1)
    reader.add(start, start + match.end(), *readings, like=like)
    return True


def _month_date(reader: FigureReader, start: int, match: re.Match[str], month: int) -> bool:
    """A day, or a range of days, of a month."""
    year = year_of(match["year"]) if match["year"] else None
    end = start + match.end()
    while reader.low[end - 1] in " .,-/":
        end -= 1
    if match["last"]:
        last = start + match.start("last")
        end_of_day = start + match.end("day")
        reader.add(start, end_of_day, Reading("date", (year, month, int(match["day"]))))
        start, day = last, int(match["last"])
    else:
        day = int(match["day"])
    reader.add(start, end, Reading("date", (year, month, day)))
    return True


def read_month(reader: FigureReader, start: int, word: str) -> bool:
    """Read a date that begins with the name of a month."""
    window = reader.low[start : start + 48]
    number = reader.grammar.words.months[word]
    is_name = reader.language != "en" or reader.text[start].isupper()
    match = reader.grammar.month_day.match(window)
    is_date = match and (is_name or match["year"]) and int(match["last"] or 1) <= 31
    if match and is_date:
        return _month_date(reader, start, match, number)
    if match := patterns.AFTER_MONTH.match(window, len(word)):
        return _add_date(reader, start, match, (year_of(match[1]), number, None))
    if (match := reader.grammar.ordinal_month.match(window)) and match["month"]:
        return read_ordinal(reader, start)
    before = reader.word_before(start).lower()
    is_date = before in patterns.BEFORE_MONTH or (is_name and len(word) > 3 and word != "march")
    if is_name and is_date and reader.language == "en":
        reader.add(start, start + len(word), Reading("date", (None, number, None)))
        return True
    return False


def read_ordinal(reader: FigureReader, start: int) -> bool:
    """Ordinals in words: "the third of May 2026", "third quarter of 2026", "twenty-first"."""
    window = reader.low[start : start + 64]
    match = reader.grammar.ordinal_month.match(window)
    if match is None:
        return False
    words = reader.grammar.words
    number = words.ordinals[match["ordinal"]] + words.numbers.get(match["tens"] or "", 0)
    month = match["month"] or match["month2"]
    if month and number <= 31:
        year = year_of(match["year"]) if match["year"] else None
        reader.add(start, start + match.end(), Reading("date", (year, words.months[month], number)))
        return True
    end = start + match.end("ordinal")
    if match := patterns.PART_OF_YEAR.match(reader.low, end):
        letter = "q" if match[1] == "quarter" else "h"
        value = (int(match[2]), f"{letter}{number}")
        reader.add(start, match.end(), Reading("date", value))
        return True
    before = reader.word_before(start).lower()
    is_share = before in words.numbers or before in ("a", "one")
    if is_share and number > 2 and reader.low[start - 1 : start] in " -":
        return False
    is_loose = number == 1 or before not in patterns.DETERMINERS
    like = PLAIN_FIGURE._replace(nouns=nouns_after(reader, end)[0], is_loose=is_loose)
    reader.add(start, end, Reading("ordinal", number), like=like)
    return True


def read_time(reader: FigureReader, start: int) -> bool:
    """Read a time of day, a length of time such as 1h30, or a ratio such as 16:9."""
    window = reader.low[start : start + 40]
    if match := patterns.CLOCK.match(window):
        separator, is_marked = match["sep"], match["half"] or match["uhr"]
        hour, minute, second = int(match["h"]), int(match["m"]), int(match["s"] or 0)
        if separator == "." and not is_marked:
            return False
        seconds = 3600 * hour + 60 * minute + second
        length = Reading("quantity", Fraction(seconds), "time", Fraction(hour))
        if separator == "h" and re.match(r" ?m(?:in)?\b", window[match.end() :]):
            unit_end = re.match(r" ?m(?:in)?\b", window[match.end() :])
            reader.add(start, start + match.end() + (unit_end.end() if unit_end else 0), length)
            return True
        readings = list(clock_readings(match, hour, seconds))
        if separator == "h" or match["s"]:
            readings.append(length)
        reader.add(start, start + match.end(), *readings)
        return True
    match = patterns.HOUR.match(window)
    if match and (not match["half"] or 1 <= int(match["h"]) <= 12):
        hour = int(match["h"])
        reader.add(start, start + match.end(), *clock_readings(match, hour, 3600 * hour))
        return True
    if match := patterns.RATIO.match(window):
        reader.add(start, start + match.end(), Reading("identifier", match[0]))
        return True
    return False
