"""The values of numbers in digits and in words. Pure."""

from __future__ import annotations

import re
from fractions import Fraction

from rolebundle.text.figures import patterns
from rolebundle.text.figures.quantities import UNITS_BY_NAME
from rolebundle.text.figures.reader import FigureReader
from rolebundle.text.figures.values import (
    TextFigure,
    combined_words,
    fraction_of,
    measured_readings,
)


def value_of_digits(reader: FigureReader, match: re.Match[str]) -> tuple[Fraction, int]:
    """The value of digits with a power, or a fraction behind them; and their end."""
    low, text, end = reader.low, match[0], match.end()
    if match["grouped"]:
        text = re.sub("[ '_]", "", text).replace(",", ".")
    elif match["us"]:
        is_decimal = reader.comma and text.count(",") == 1 and "." not in text
        text = text.replace(",", "." if is_decimal else "")
    elif match["eu"]:
        is_decimal = not reader.comma and text.count(".") == 1 and "," not in text
        text = text if is_decimal else text.replace(".", "").replace(",", ".")
    value = Fraction(int(text) if text.isdecimal() else text.replace(",", "."))
    follows = low[end : end + 1]
    if (low[end + 1 : end + 2] if follows == " " else follows) not in patterns.AFTER_DIGITS:
        return value, end
    is_ten = text == "10"
    if power := patterns.POWER.match(low, end) or (
        patterns.OWN_POWER.match(low, end) if is_ten else None
    ):
        exponent = int(power[1] or (power[2] or "").translate(patterns.SUPERSCRIPTS))
        base = 1 if power.re is patterns.OWN_POWER else value
        return base * Fraction(10) ** exponent, power.end()
    if power := patterns.EXPONENT.match(low, end):
        return value * Fraction(10) ** int(power[1]), power.end()
    if mixed := patterns.MIXED.match(low, end):
        share = patterns.FRACTIONS[mixed[1]] if mixed[1] else fraction_of(mixed[2], mixed[3])
        if share is not None and share < 1:
            return value + share, mixed.end()
    if match["whole"] and (slash := patterns.SLASH.match(low, end)):
        share = fraction_of(text, slash[1])
        if share is not None:
            return share, slash.end()
    return value, end


def groups_of_digits(match: re.Match[str]) -> tuple[TextFigure, ...]:
    """The numbers of "1 200", which may be two."""
    if not match["grouped"] or match["g"] != " ":
        return ()
    return tuple(
        TextFigure(match.start(), match.end(), group, tuple(measured_readings(Fraction(group), ())))
        for group in match[0].split(" ")
        if group.isdecimal()
    )


def number_in_words(reader: FigureReader, start: int) -> tuple[Fraction, int] | None:
    """The value of a number in words, and its end."""
    words, low = reader.grammar.words, reader.low
    total, end, place = 0, start, start
    current: int | None = None
    while match := patterns.SPELLED.match(low, place):
        word, place = match[1], match.end()
        is_joined = word in words.joins and _may_join(reader, total, current, place)
        if is_joined and (match := patterns.SPELLED.match(low, place)):
            word, place = match[1], match.end()
        value, scale = words.numbers.get(word), words.scales.get(word, 0)
        is_plural = reader.language == "en" or word.endswith(("en", "s", "es"))
        if value is not None:
            value = combined_words(current, value, joined=is_joined)
            if value is None:
                break
            current = value
        elif len(word) < 3 or not scale or (current is None and (total or is_plural)):
            break
        elif scale in (100, 12):
            current = (current or 1) * scale
        else:
            total, current = total + (current or 1) * scale, None
        end = place
    if end == start:
        return None
    number = Fraction(total + (current or 0))
    if reader.language == "en" and (match := patterns.POINT.match(low, end)):
        digits = "".join(str(words.numbers.get(word, 0)) for word in match[1].split())
        number, end = number + Fraction(f"0.{digits}"), match.end()
    return number, end


def _may_join(reader: FigureReader, total: int, current: int | None, end: int) -> bool:
    """Whether "and" may join a number: "two hundred and five", but not "twenty and five"."""
    follows = patterns.SPELLED.match(reader.low, end)
    least = 100 if reader.language == "en" else 1 if reader.language == "de" else 20
    is_number = follows is not None and follows[1] in reader.grammar.words.numbers
    return is_number and (total > 0 or (current or 0) >= least)


def scale_after(reader: FigureReader, end: int, *, is_money: bool = False) -> tuple[int, int]:
    """What multiplies the number that ends here, and the end of that; 1 if nothing does."""
    scale, low, words = 1, reader.low, reader.grammar.words
    while low[end : end + 1] not in patterns.NO_UNIT and (
        match := patterns.SCALE_WORD.match(low, end)
    ):
        name = match[2].removesuffix(".")
        factor = words.scales.get(name)
        if factor is None or (name in UNITS_BY_NAME and name not in ("m", "mm", "t", "b", "k")):
            break
        is_letter = len(name) == 1 or name == "mm"
        if is_letter and (match[1] or (name in ("mm", "t", "b") and not is_money)):
            break
        end, scale = match.end(), scale * factor
        if len(name) == 1:
            break
    return scale, end
