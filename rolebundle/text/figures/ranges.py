"""Lists and ranges: "5 to 10 million" and "3, 4 and 5 days" share a unit. Pure."""

from __future__ import annotations

from fractions import Fraction

from rolebundle.text.figures import patterns
from rolebundle.text.figures.values import COUNTED, Reading, TextFigure


def join_ranges(figures: list[TextFigure], low: str) -> list[TextFigure]:
    """Give a number of a list or range the unit of the last one, and the currency of the first."""
    for place in range(len(figures) - 1, 0, -1):
        first, last = figures[place - 1], figures[place]
        gap = patterns.RANGE_GAP.fullmatch(low, first.end, last.start)
        if gap is None and low[first.end : last.start].strip() == "":
            continue
        if gap is None or first.kind not in COUNTED or last.kind not in COUNTED:
            continue
        is_list = gap[0].strip() == ","
        if first.unit and first.unit == last.unit and first.scale == 1 < last.scale:
            # "$5 to $10 million".
            figures[place - 1] = first._replace(
                readings=(*first.readings, *_readings_like(first, last, is_only=True))
            )
            continue
        if gap[0] == "-" and (short := _short_year(first, last)):
            figures[place] = last._replace(readings=(*last.readings, *short))
        if not first.unit and not first.label and not _is_year(first):
            readings = _readings_like(first, last)
            if readings:
                more = first.readings if is_list else ()
                figures[place - 1] = first._replace(
                    readings=(*readings, *more), nouns=last.nouns, per=last.per
                )
            elif not first.nouns:
                figures[place - 1] = first._replace(nouns=last.nouns, per=last.per)
    for first_place in range(len(figures) - 1):
        first, last = figures[first_place], figures[first_place + 1]
        gap = patterns.RANGE_GAP.fullmatch(low, first.end, last.start)
        if gap is None or last.kind != "number" or last.nouns or _is_year(last):
            continue
        if first.kind == "money" and gap[0].strip() in ("-", "to", "–", "and"):
            figures[first_place + 1] = last._replace(
                readings=tuple(_readings_like(last, first, scaled=False))
            )
        elif first.label and not last.label:
            figures[first_place + 1] = last._replace(label=first.label)
    return figures


def _is_year(figure: TextFigure) -> bool:
    return any(reading.kind == "date" for reading in figure.readings)


def _short_year(first: TextFigure, last: TextFigure) -> list[Reading]:
    """The year of "23" in "2019-23"."""
    year, short = first.readings[0].amount, last.readings[0].amount
    if not _is_year(first) or not year or not short or not year % 100 < short < 100:
        return []
    value = year - year % 100 + short
    return [Reading("number", value, "", value), Reading("date", (int(value), None, None))]


def _readings_like(
    bare: TextFigure, neighbour: TextFigure, *, scaled: bool = True, is_only: bool = False
) -> list[Reading]:
    """The readings of a number with the unit and the scale of another one.

    Args:
        bare: the number.
        neighbour: the other one.
        scaled: whether the scale applies, too.
        is_only: whether the number without the scale is left out.
    """
    count = bare.readings[0].amount
    if count is None:
        return []
    readings = []
    scale = neighbour.scale if scaled and bare.scale == 1 else 1
    for reading in neighbour.readings:
        if reading.amount and reading.kind in COUNTED and isinstance(reading.value, Fraction):
            factor = reading.value / reading.amount
            for value in dict.fromkeys((count * scale, count * scale if is_only else count)):
                if reading.unit or scale > 1:
                    readings.append(Reading(reading.kind, value * factor, reading.unit, value))
    return readings
