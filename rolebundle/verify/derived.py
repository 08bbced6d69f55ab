"""Whether a figure of a draft follows from others: a sum, difference, product or duration. Pure.

The others are those of the sentence, of the one before it, and of what the sentence cites. Many
figures give many results, one of which is soon the figure of the draft by chance. A result counts
only if the figure has so many digits that this is unlikely, or if the sentence says that it
calculates ("in all", "cheaper", "half", "so"). The numbers of names and paths do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

from rolebundle.resources import data_file
from rolebundle.storage.stored_values import grouped
from rolebundle.text.figures import Figure, is_equal, is_money
from rolebundle.text.languages import NUMBER_WORDS

_MAX_OPERANDS = 12
_DAY = 86_400
_POINTS = ("date", "clock")
_MONTH = Fraction(365 * _DAY, 12)
_YEARS = range(1900, 2101)
_WORDS = data_file(__file__, "words.toml")["calculation"]
_CONSTANT = {
    re.compile(rf"\b(?:{words})\b", re.I): [*map(Fraction, numbers.split())]
    for words, numbers in _WORDS["constants"].items()
}
_CUE = re.compile("".join(_WORDS["cue"]), re.IGNORECASE)
_NO_CUE = re.compile(
    r"\b(?:(?:more|less) than|over|under|above|below|up to) "
    rf"(?:\W?\d|(?:{'|'.join(NUMBER_WORDS)})\b)",
    re.IGNORECASE,
)


class _Term(NamedTuple):
    """A number to calculate with, the operands that it is made of, and how sure a result must be.

    Each operand that is not of the sentence, and each further operation, allows more coincidences.
    """

    value: Fraction
    text: str
    operands: frozenset[int] = frozenset()
    cost: int = 0

    def joined(self, sign: str, other: _Term, value: Fraction, cost: int = 0) -> _Term:
        """The result of an operation."""
        return _Term(
            value, f"{self.text} {sign} {other.text}", self.operands | other.operands,
            max(self.cost, other.cost) + cost,
        )  # fmt: skip


def derivation(
    figure: Figure, own: Sequence[Figure], others: Iterable[Figure], text: str, words: str
) -> str:
    """How a figure follows from others, as ``3 × 15 = 45``; "" if it does not.

    Args:
        figure: of the draft.
        own: the other figures of its sentence, the nearest first.
        others: the figures of the evidence that it may be calculated from, in their order.
        text: the sentence.
        words: where constants stand: the sentence, and what it cites.
    """
    amount = float(figure.amount) if figure.amount is not None else 111
    digits = len(re.sub(r"\D", "", f"{abs(amount):.10g}").strip("0"))
    is_said = calculates(text)
    certainty = digits + 2 * is_said - 1
    # The evidence counts with words what has nothing to do with a sentence that calculates nothing.
    others = others if is_said else (f for f in others if not f.text.isalpha())
    operands = [(figure, 0) for figure in own]
    for other in others:  # What is written twice is one.
        if len(operands) < _MAX_OPERANDS and not any(is_equal(other, f) for f, _ in operands):
            operands.append((other, 1))
    points = {place for place, (f, _) in enumerate(operands) if f.unit in _POINTS}
    for unit, _ in figure.readings[:2]:
        target = next(_values(figure, unit), None)
        if target:
            for term in _results(unit, target, figure, operands, words):
                if unit in _POINTS and len(term.operands & points) != 1:
                    continue  # A point in time is another one and a duration.
                has_constant = max(term.operands) >= len(operands)
                is_rounded = not has_constant and fits(figure, target, term.value)
                if is_money(figure) and not is_said and min(term.operands) >= len(own):
                    continue  # Two amounts of the evidence are no reason for a third one.
                is_same = term.value == target or is_rounded
                if is_same and certainty > term.cost + (term.value != target):  # Rounded.
                    return f"{term.text} = {figure.text}"
    return ""


def calculates(text: str) -> bool:
    """Whether a sentence says that it calculates."""
    return _CUE.search(_NO_CUE.sub(" ", text)) is not None


def is_year(figure: Figure) -> bool:
    """Whether a figure is likely a year."""
    return figure.amount in _YEARS and figure.text.isdecimal()


def _values(figure: Figure, unit: str) -> Iterator[Fraction]:
    """What a figure is in a unit; points in time are times since some day."""
    for own, value in figure.readings:
        if own == "date":
            year, month, day = value
            if unit == "month":
                yield Fraction(12 * (year or 2001) + (month or 1)) + Fraction((day or 1) - 1, 31)
            elif unit in ("date", "time") and month and day:
                try:
                    days = date(year or 2001, month, day).toordinal()
                except ValueError:
                    continue
                yield Fraction(days * _DAY)
        elif not isinstance(value, Fraction):
            continue
        elif own == unit or (own, unit) in (("time", "date"), ("%", "pp")):
            yield value
        elif (own, unit) == ("time", "month"):
            yield value / _MONTH
        elif (own, unit) in (("clock", "time"), ("time", "clock")):
            yield value * 60 if own == "clock" else value / 60
        elif (own, unit) == ("", "month") and value in _YEARS:
            yield value * 12


def _results(
    unit: str, target: Fraction, figure: Figure, operands: Sequence[tuple[Figure, int]], words: str
) -> Iterator[_Term]:
    """What may be calculated in a unit, the simplest first. Only sums that equal the target."""
    terms, factors, alike = list[_Term](), list[_Term](), list[tuple[Figure, _Term]]()
    days = set[int]()
    for place, (other, cost) in enumerate(operands):
        name = other.text, frozenset((place,)), cost
        values = [*_values(other, unit)][:2]
        is_bare = other.unit in ("", "x") and not (cost and is_year(other))
        # The unit is that of the result, if nothing else is counted ("ten teeth").
        if not values and is_bare and not other.nouns and other.amount and figure.amount:
            values = [other.amount * target / figure.amount]
        terms += [_Term(value, *name) for value in values if value]
        if other.unit in _POINTS:
            days.add(place)  # No day is multiplied.
        if not other.amount or other.unit in ("version", "name"):
            continue
        alike.append((other, _Term(Fraction(other.readings[0][1]), *name)))
        share = other.amount / 100
        if other.unit == "%" != unit and share != 1:
            factors += [_Term(n, *name) for n in (share, 1 + share, 1 - share) if n]
        elif is_bare or (other.unit != unit and unit not in ("", "x")):
            factors.append(_Term(other.amount, *name))
    for place, (pattern, numbers) in enumerate(_CONSTANT.items(), len(operands)):
        # 5 days are not 5 hours because a day has 24.
        if pattern.search(words) and (unit != "time" or max(numbers) < 4):
            factors += [_Term(n, str(n), frozenset((place,))) for n in numbers]
    yield from (t for t in terms if operands[min(t.operands)][0].unit == "time" != unit)
    yield from _pairs(target, terms, terms)
    for first in range(len(terms)):
        total = terms[first]
        for number, term in enumerate(terms[first + 1 :]):
            total = total.joined("+", term, total.value + term.value, min(number, 1))
            if total.value == target:
                yield total
    yield from _ratios(unit, alike)
    products = [
        a.joined(sign, b, value)
        for a in terms for b in factors
        if a.operands.isdisjoint(b.operands) and b.value != 1 and a.operands.isdisjoint(days)
        for sign, value in (("×", a.value * b.value), ("/", a.value / b.value))
    ]  # fmt: skip
    yield from products
    times = [a._replace(cost=a.cost + 1) for a in products if "×" in a.text]
    yield from _pairs(target, times, [*terms, *times])


def _ratios(unit: str, operands: Sequence[tuple[Figure, _Term]]) -> Iterator[_Term]:
    """Shares and ratios of figures in one unit, and the time that a rate takes for an amount."""
    for (figure, a), (other, b) in permutations(operands, 2):
        if figure.unit != other.unit:
            continue
        ratio = a.value / b.value
        if unit in ("%", "x", ""):
            yield a.joined("/", b, ratio * 100 if unit == "%" else ratio)
        if unit == "%":
            yield a.joined("compared with", b, 100 * abs(1 - ratio))
        if other.per.startswith(f"{unit} "):  # 3 litres at 0.5 litres a minute.
            factor = Fraction(other.per.split()[1])
            yield a.joined("/", b, ratio * factor)


def _pairs(target: Fraction, terms: Sequence[_Term], others: Sequence[_Term]) -> Iterator[_Term]:
    """The sums and differences of a term and another that are the target."""
    by_value = grouped((term.value, term) for term in others)
    for a in terms:
        for b in (*by_value.get(target - a.value, ()), *by_value.get(a.value - target, ())):
            sign = "+" if a.value + b.value == target else "−"
            if a.operands.isdisjoint(b.operands):
                yield a.joined(sign, b, target)
        for b in by_value.get(a.value + target, ()):
            if a.operands.isdisjoint(b.operands):
                yield b.joined("−", a, target)


def fits(figure: Figure, value: object, true: object) -> bool:
    """Whether a value is the true one, rounded."""
    if not isinstance(value, Fraction) or not isinstance(true, Fraction) or value * true <= 0:
        return False
    ratio, scale = value / true, value / (figure.amount or 1)
    is_digits = abs(true - value) <= abs(figure.step * scale) / 2
    # Not 2019 to 2020, nor 49 to 50: a number rounds a longer one.
    written = true / scale
    is_longer = written.denominator > 1 or (abs(written) >= 1000 and figure.step >= 100)
    return abs(ratio - 1) <= 0.05 and is_digits and is_longer
