"""Figures of a text: numbers with units, dates, times, versions, addresses, identifiers. Pure.

`find_figures` reads what a text states in figures, in whatever notation: 1,200 is 1.2k and twelve
hundred, 90 minutes are 1h30, 3 May 2026 is 2026-05-03. What is only about equal is not equal: 1.2k
is not 1,234, 90 days are not three months, version 1.2 is not 1.2.0.

A notation with several meanings has several *readings* (5 m are metres, minutes or millions). It is
enough that one of them stands in the evidence. A date that can be read in two orders (03/05/2026)
is the exception: both must.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rolebundle.text.figures import patterns
from rolebundle.text.figures.addresses import read_address, read_identifier, read_version
from rolebundle.text.figures.dates import (
    read_date,
    read_month,
    read_ordinal,
    read_period,
    read_time,
)
from rolebundle.text.figures.numbers import (
    groups_of_digits,
    number_in_words,
    scale_after,
    value_of_digits,
)
from rolebundle.text.figures.quantities import UNITS_BY_NAME, Unit
from rolebundle.text.figures.ranges import join_ranges
from rolebundle.text.figures.reader import LOOSE_FIGURE, PLAIN_FIGURE, FigureReader
from rolebundle.text.figures.units import (
    currency_before,
    is_currency,
    label_before,
    nouns_after,
    rate_after,
    unit_after,
)
from rolebundle.text.figures.values import (
    Reading,
    TextFigure,
    canonical_identifier,
    measured_readings,
    rate_of,
    share_readings,
    with_fraction,
)


@lru_cache(maxsize=2048)
def find_figures(text: str, language: str) -> tuple[TextFigure, ...]:
    """The figures of a text, in their order; they do not overlap.

    Args:
        text: any text.
        language: one of ``quantities.LANGUAGES``, for number words, dates and decimal commas; any
            other reads digits only.
    """
    reader = FigureReader(text, language)
    triggers = reader.grammar.triggers
    for match in patterns.TRIGGER.finditer(reader.low):
        start, token = match.start(), match[0]
        if start < reader.position:
            continue
        if token.isalpha() and token[0] not in patterns.FRACTIONS:
            if token in triggers:
                _at_word(reader, start, token)
        elif token[0] in "/\\@_#.":
            _at_mark(reader, start)
        else:
            _at_digit(reader, start)
    return tuple(join_ranges(reader.found, reader.low))


def _at_mark(reader: FigureReader, start: int) -> None:
    """A figure that may begin with a sign: an address, a path, ``.5``, ``ERR_TIMEOUT``."""
    first = reader.chunk_start(start)
    if read_address(reader, first):
        return
    follows = reader.low[start + 1 : start + 2]
    if reader.low[start] == "." and follows.isdecimal() and (start == first):
        _number(reader, start, start)


def _at_digit(reader: FigureReader, start: int) -> None:
    low, first = reader.low, reader.chunk_start(start)
    chunk_match = patterns.CHUNK.match(low, first, first + patterns.MAX_CHUNK)
    chunk = chunk_match[0].rstrip(patterns.TRAILING) if chunk_match else ""
    is_plain = chunk.isdecimal()
    if is_plain and first == start:
        _at_whole_number(reader, start, start + len(chunk))
        return
    if not is_plain and read_date(reader, start):
        return
    if not is_plain and (
        read_address(reader, first)
        or read_period(reader, first, chunk)
        or read_version(reader, first, chunk)
    ):
        return
    prefix = low[first:start].lstrip("~≈<>≤≥±^&§'.:")
    is_joined = first == reader.position and first > 0 and bool(reader.found)
    negative = False
    if prefix in ("", "+") or (is_joined and prefix[:1] in "-/—:tx×"):
        pass
    elif prefix in ("-", "--"):
        negative = prefix == "-"
    elif prefix.endswith((":", "(", "/")) and low[start - 2 : start - 1].isalpha():
        pass  # "limit:5"
    elif not is_currency(prefix.replace("-", "")):
        if prefix not in patterns.PREFIXES and read_identifier(reader, first):
            return
    else:
        negative = "-" in prefix
    if (is_plain or first != start) and read_date(reader, start):
        return
    if read_time(reader, start):
        return
    _number(reader, start, start if is_joined else first, negative=negative)


def _at_whole_number(reader: FigureReader, start: int, end: int) -> None:
    """A figure that begins with digits without anything joined to them, which is frequent."""
    # "3. Mai" is a date.
    match = patterns.ONE_MORE.match(reader.low, end + reader.low.startswith(".", end))
    word = match[1] if match else ""
    is_date = word in reader.grammar.date_words or end - start == 8
    is_date = is_date or reader.low.startswith(" - ", end)
    if is_date and read_date(reader, start):
        return
    if word in patterns.TIME_WORDS and read_time(reader, start):
        return
    _number(reader, start, start)


def _at_word(reader: FigureReader, start: int, word: str) -> None:
    grammar = reader.grammar
    words = grammar.words
    if reader.text[start - 1 : start] in ("_", "/", "\\", "@", "."):
        return
    if word in words.months and read_month(reader, start, word):
        return
    if word in words.weekdays:
        reader.add(start, start + len(word), Reading("date", words.weekdays[word]))
    elif word in ("noon", "midday", "midnight"):
        seconds = 0 if word == "midnight" else 43_200
        reader.add(start, start + len(word), Reading("time", (seconds, "")), like=LOOSE_FIGURE)
    elif word in words.ordinals or (word in words.numbers and words.numbers[word] in (20, 30)):
        if not read_ordinal(reader, start) and word in words.numbers:
            _number(reader, start, start)
        elif word in patterns.SHARES and start >= reader.position:
            _share(reader, start, word)
    elif word in patterns.DECADES:
        reader.add(start, start + len(word), Reading("date", ("decade", patterns.DECADES[word])))
    elif word in patterns.SHARES:
        _share(reader, start, word)
    elif word in patterns.TIMES:
        count = Fraction(patterns.TIMES[word])
        reading = Reading("quantity", count, "times", count)
        is_loose = word in ("once", "double", "triple")
        end = start + len(word)
        per, end = rate_after(reader, end)
        like = PLAIN_FIGURE._replace(per=per, is_loose=is_loose)
        reader.add(start, end, reading, like=like)
    elif word in grammar.articles:
        _article(reader, start, word)
    else:
        _number(reader, start, start)


def _share(reader: FigureReader, start: int, word: str) -> None:
    """A share without a number before it: "half of", "half a million", "a quarter of"."""
    low, end = reader.low, start + len(word)
    share = Fraction(1, patterns.SHARES[word])
    if match := patterns.PAST_HOUR.match(low, start):
        number = reader.grammar.words.numbers.get(match[3]) or int(match[4] or 0)
        seconds = 3600 * (number % 12) + (1800 if match[1] == "half" else 900) * (
            -1 if match[2] == "to" else 1
        )
        if number <= 12:
            reader.add(start, match.end(), Reading("time", (seconds % 43_200, "", "12h")))
            return
    if match := re.compile(r"(?: an?|-) ?(?=\w)").match(low, end):
        units, unit_end = unit_after(reader, match.end())
        if units:
            reader.add(start, unit_end, *measured_readings(share, units))
            return
        scale, scale_end = scale_after(reader, match.end())
        if scale > 1:
            _number_from(reader, share * scale, start, scale_end)
            return
    before = reader.word_before(start).lower()
    is_share = re.compile(r" (?:of|the|our|its|their|all)\b").match(low, end)
    if is_share and (word == "half" or before in reader.grammar.articles or before == "one"):
        reader.add(start, end, *share_readings(share))


def _article(reader: FigureReader, start: int, word: str) -> None:
    """An article states a figure in "a day" and "a million", and none in "a server"."""
    end = start + len(word)
    match = patterns.ONE_MORE.match(reader.low, end)
    follows = match[1] if match else ""
    if follows not in UNITS_BY_NAME and follows not in reader.grammar.words.scales:
        return
    scale, scale_end = scale_after(reader, end)
    if scale > 1:
        _number_from(reader, Fraction(scale), start, scale_end, scale=scale)
        return
    if patterns.SHARE_AFTER.match(reader.low, end):
        return
    units, unit_end = unit_after(reader, end, skips=False)
    if units and units[0].dimension in ("time", "month"):
        before = reader.word_before(start).lower()
        count, end = with_fraction(reader.low, Fraction(1), unit_end, 1)
        is_loose = before not in patterns.BEFORE_LENGTH and end == unit_end
        like = LOOSE_FIGURE if is_loose else PLAIN_FIGURE
        reader.add(start, end, *measured_readings(count, units), like=like)


def _number(reader: FigureReader, start: int, first: int, *, negative: bool = False) -> None:
    """A number in digits or words, with its scale, unit and rate.

    Args:
        reader: the text.
        start: where the number begins.
        first: where its sign or currency begins.
        negative: whether a sign before it says so.
    """
    low = reader.low
    match = patterns.NUMBER.match(low, start)
    parts: tuple[TextFigure, ...] = ()
    if low[start] in patterns.FRACTIONS:
        value, end = patterns.FRACTIONS[low[start]], start + 1
    elif match is None:
        spelled = number_in_words(reader, start)
        if spelled is None:
            return
        value, end = spelled
    elif match.end() - start > patterns.MAX_DIGITS:
        reader.add(start, match.end(), Reading("identifier", match[0]))
        return
    else:
        value, end = value_of_digits(reader, match)
        parts = groups_of_digits(match)
    if low.endswith(patterns.NEGATIVE, 0, start):
        negative = True
        first = low.rfind(" ", 0, start - 1) + 1
    value = -value if negative else value
    _number_from(reader, value, first, end, number=start, parts=parts)


def _number_from(
    reader: FigureReader,
    value: Fraction,
    first: int,
    end: int,
    *,
    number: int | None = None,
    parts: tuple[TextFigure, ...] = (),
    scale: int = 1,
) -> None:
    """Read what follows a number: its scale, its unit or noun, its rate.

    Args:
        reader: the text.
        value: the value that was read.
        first: where its sign or currency begins.
        end: where it ends.
        number: where it begins, if not at ``first``.
        parts: the numbers that it may consist of.
        scale: what was multiplied already.
    """
    low, start = reader.low, first if number is None else number
    is_digit = low[start].isdecimal() or low[start] == "."
    money = currency_before(reader, start)
    if money:
        first = min(first, money[1])
    if _is_special(reader, value, first, end, is_digit=is_digit):
        return
    factor, scale_end = scale_after(reader, end, is_money=bool(money))
    if factor > 1 and low[end] in "mbt" and scale_end == end + 1 and not money:
        # 5m: metres, minutes or millions.
        units, unit_end = unit_after(reader, end)
        if unit_end <= scale_end:
            scaled = measured_readings(value * factor, ())
            readings = [*measured_readings(value, units), *scaled]
            reader.add(first, scale_end, *readings)
            return
    elif factor > 1:
        value, end, scale = value * factor, scale_end, scale * factor
    value, end = with_fraction(low, value, end, scale)
    units, end = (money[0], end) if money else unit_after(reader, end)
    if units and units[0].dimension in ("time", "month"):
        value, end = with_fraction(low, value, end, 1)
    per = ""
    if not units and (match := patterns.GAP_WORD.match(low, end)) and match[2] in patterns.RATES:
        name, period = patterns.RATES[match[2]]
        units, per, end = UNITS_BY_NAME[name], rate_of(period), match.end()
    is_glued = is_digit and low[end - 1].isdecimal() and low[end : end + 1].isalpha()
    is_size = low[end : end + 1] == "x" and low[end + 1 : end + 2].isdecimal()
    if not units and is_glued and not is_size and read_identifier(reader, start):
        return
    figure = _described(reader, first, end, units)
    figure = figure._replace(per=per or figure.per)
    if units and _composite(reader, first, end, value, units[0], figure):
        return
    readings = measured_readings(value, units)
    if units and units[0].dimension == "month" and low.startswith(patterns.OLD, end):
        readings += measured_readings(value, ())  # "23 years old" is "aged 23".
    if not units and is_digit:
        readings = _other_readings(reader, low[start:end], readings, figure)
    elif is_digit and low[end - 1].isalpha() and " " not in low[start:end]:
        readings.append(Reading("identifier", canonical_identifier(low[start:end])))  # 3D, 5G.
    is_loose = value == 1 and not is_digit and not units and _is_pronoun(reader, start, figure)
    more = figure._replace(parts=parts, scale=scale, is_loose=is_loose)
    reader.add(first, max(end, more.end), *readings, like=more)


def _described(reader: FigureReader, first: int, end: int, units: tuple[Unit, ...]) -> TextFigure:
    """The rate of a number, and without a unit what it counts or names."""
    before, label, noun_end = "", "", end
    nouns: frozenset[str] = frozenset()
    if not units:
        before = reader.word_before(first)
        label = label_before(reader, first, before)
        nouns, noun_end = nouns_after(reader, end)
        if nouns & patterns.CODE_NOUNS:
            nouns, label = frozenset(), "#"  # "A 404 error" is "HTTP 404".
    per, per_end = rate_after(reader, noun_end)
    is_length = bool(units) and units[0].dimension in ("time", "month")
    if is_length and not per and patterns.EVERY.search(reader.low, max(0, first - 12), first):
        per = "every"
    # The range does not contain nouns.
    end = per_end if per and noun_end == end else end
    return TextFigure(first, end, "", (), per=per, nouns=nouns, label=label, before=before.lower())


def _is_special(
    reader: FigureReader, value: Fraction, first: int, end: int, *, is_digit: bool
) -> bool:
    """Read an ordinal, a share such as "two thirds", or "1 in 5"."""
    low = reader.low
    follows = low[end : end + 1]
    if is_digit and follows.isalpha() and (match := patterns.ORDINAL_END.match(low, end)):
        like = PLAIN_FIGURE._replace(nouns=nouns_after(reader, match.end())[0])
        reader.add(first, match.end(), Reading("ordinal", int(value)), like=like)
        return True
    if not is_digit and (match := patterns.SHARE_AFTER.match(low, end)):
        share = value / patterns.SHARES[match[1]]
        of_unit = patterns.OF_UNIT.match(low, match.end())
        units, unit_end = unit_after(reader, of_unit.end() - 1) if of_unit else ((), 0)
        is_of = re.match(r" (?:of|the)\b|[.,;:)]|$", low[match.end() : match.end() + 4])
        if units:
            reader.add(first, unit_end, *measured_readings(share, units))
        elif match[1] not in ("quarter", "quarters") or is_of:
            reader.add(first, match.end(), *share_readings(share))
        return bool(units or match[1] not in ("quarter", "quarters") or is_of)
    match = patterns.OUT_OF.match(low, end) if low[end : end + 2] in (" i", " o") else None
    return match is not None and _ratio(reader, value, first, end, match)


def _other_readings(
    reader: FigureReader, text: str, readings: list[Reading], figure: TextFigure
) -> list[Reading]:
    """The readings of bare digits: also a version, a year, a part of an identifier."""
    value, before, label = readings[0].value, figure.before, figure.label
    if text.isdecimal():
        if label in patterns.VERSIONED:
            readings.append(Reading("version", text))
        if len(text) == 4 and 1000 <= int(text) <= 2200:
            readings.append(Reading("date", (int(text), None, None)))
    elif patterns.SHORT_VERSION.fullmatch(text):
        version = Reading("version", text)
        # "Python 3.10" is not "Python 3.1".
        is_version = label in patterns.VERSIONED or reader.word_before(figure.start)[:1].isupper()
        is_version = is_version and before not in reader.grammar.stop_words
        readings = [version] if is_version else [*readings, version]
    elif "/" in text and isinstance(value, Fraction):
        readings += [share_readings(value)[0], Reading("identifier", text)]
    if patterns.GROUPED.fullmatch(text):
        readings.append(Reading("identifier", f"={text}"))
    if before:
        readings.append(Reading("identifier", canonical_identifier(f"{before} {text}")))
    return readings


def _is_pronoun(reader: FigureReader, start: int, figure: TextFigure) -> bool:
    """Whether "one" is no figure: "one of them", "this one"."""
    is_bare = not figure.nouns and not figure.per
    return is_bare or figure.before in patterns.BEFORE_ONE or reader.low[start - 1 : start] == "-"


def _ratio(
    reader: FigureReader, count: Fraction, first: int, end: int, match: re.Match[str]
) -> bool:
    """Read "1 in 5" or "four out of ten": a share, or two numbers."""
    word = match[1]
    value = Fraction(word) if word.isdecimal() else reader.grammar.words.numbers.get(word)
    if not value or not 0 < count < value or (value > 100 and value % 500):
        return False
    share = count / Fraction(value)
    numbers = []
    for begin, stop, number in ((first, end, count), (match.start(1), match.end(1), value)):
        reading = Reading("number", Fraction(number), "", Fraction(number))
        numbers.append(TextFigure(begin, stop, reader.original[begin:stop], (reading,)))
    like = PLAIN_FIGURE._replace(parts=tuple(numbers))
    reader.add(first, match.end(1), *share_readings(share), like=like)
    return True


def _composite(
    reader: FigureReader, first: int, end: int, value: Fraction, unit: Unit, like: TextFigure
) -> bool:
    """Read on, if a smaller unit follows: "1 hour 30 minutes", "5 feet 9 inches"."""
    gap = patterns.MORE.match(reader.low, end)
    if gap is None or unit.dimension not in ("time", "month", "foot", "ounce"):
        return False
    if (digits := patterns.NUMBER.match(reader.low, gap.end())) and len(
        digits[0]
    ) <= patterns.MAX_DIGITS:
        further, number_end = value_of_digits(reader, digits)
    elif not digits and (spelled := number_in_words(reader, gap.end())):
        further, number_end = spelled
    else:
        return False
    units, unit_end = unit_after(reader, number_end)
    smaller = next(
        (u for u in units if u.dimension == unit.dimension and u.factor < unit.factor), None
    )
    if smaller is None or further * smaller.factor >= unit.factor:
        return False
    total = value * unit.factor + further * smaller.factor
    # "1 hour 30 minutes 10 seconds".
    is_joined = not gap[0].strip()
    if is_joined and _composite(reader, first, unit_end, total / smaller.factor, smaller, like):
        return True
    parts: tuple[TextFigure, ...] = ()
    if not is_joined:
        texts = reader.original[first:end], reader.original[gap.end() : unit_end]
        parts = (
            TextFigure(first, end, texts[0], tuple(measured_readings(value, (unit,)))),
            TextFigure(
                gap.end(), unit_end, texts[1], tuple(measured_readings(further, (smaller,)))
            ),
        )
    reading = Reading("quantity", total, unit.dimension)
    reader.add(first, unit_end, reading, like=like._replace(parts=parts))
    return True
