"""Whether the figures of a draft stand in its evidence. Pure.

A figure is compared by its value and unit, not by its notation (see ``text/figures.py``), and
stands together with the words beside it:

- A number with a unit needs one with that unit, or one that converts to it exactly. A bare number
  needs a bare one.
- Among the figures of its kind in the evidence, the one whose words are most like the draft's must
  not have another value. So swapped cells, and counts of other things, do not pass.
- The draft may say less: "May 2026" for "3 May 2026". It may not say more.
- A number that is rounded, or calculated from two figures, is said to be so, with the true value
  or the calculation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import log
from typing import NamedTuple

from rolebundle.contracts.verification import FindingCode
from rolebundle.text.figures import Figure, Reading, find_figures

_MARGIN = 2.0
"""How many times more of the words must stand at another figure for that one to be meant."""
_CROSSED = 1.2
"""The same if the sentence states both figures, and the words of both count."""
_LEAST = 0.4
"""The part of the draft's words that must stand at it."""

_SLOT = 0.5
"""How like another figure's words must be for a figure to be that one, and not calculated."""
_POOL = 10
"""From how many figures of the evidence a figure may be calculated: those most like it."""
_OPPOSITE = [{"every", "max"}, {"every", "under"}, {"min", "max"}, {"over", "under"}]
_OPPOSITE += [{"min", "under"}, {"over", "max"}]
_LIST_NUMBER = re.compile(r"\s*(?:#{1,6}\s+(?:\d+\.)*\d+[.)]?|(?:\d+\.)*\d+[.)]|\(\d+\))\s")


class FigureCheck(NamedTuple):
    """What became of one figure of a sentence.

    Attributes:
        start: its first character in the sentence; ``end`` is behind the last one.
        outcome: ``figure_found``; ``should_cite``: not in the cited passages, but in another one;
            ``rounded`` and ``computed``: remarks; ``unsupported_figure``.
        note: the true value, the calculation, or the nearest true values; "" if it is found.
        passage: the number of the passage, in ``evidence``, that has it; ``None`` without one.
        true_text: what that passage writes.
    """

    start: int
    end: int
    text: str
    outcome: FindingCode
    note: str = ""
    passage: int | None = None
    true_text: str = ""


def check_figures(
    sentence: str, cited: Sequence[str], evidence: Sequence[str]
) -> list[FigureCheck]:
    """What became of each figure of a sentence, in their order.

    Args:
        sentence: a sentence, heading, list item, row or table of a draft, whose quotes and
            citations are blank.
        cited: the texts of the passages that it cites; empty if it cites none.
        evidence: the texts of all passages, with the cited ones.
    """
    number = _LIST_NUMBER.match(sentence)
    figures = [f for f in find_figures(sentence) if not number or f.start >= number.end()]
    if not figures:
        return []
    places = [n for n, text in enumerate(evidence) if text in cited] or [*range(len(evidence))]
    own, everything = _index(tuple(evidence[n] for n in places)), _index(tuple(evidence))
    checks = []
    figures = [
        figure
        for figure in figures
        if not (figure.is_counting and everything.counted.isdisjoint(figure.nouns[:2]))
    ]
    for figure in figures:
        check = _check(figure, sentence, figures, own)
        if check is None:
            continue
        if check.passage is not None:
            check = check._replace(passage=places[check.passage])
        elif check.outcome == "unsupported_figure" and own is not everything:
            other = _check(figure, sentence, figures, everything)
            if other and other.outcome == "figure_found":
                note = "another passage has it"
                if own.has_another(figure):
                    own_text = check.note.rpartition("; it has ")[2]
                    check = check._replace(
                        note=f"{note}; the passage of the sentence has {own_text}"
                    )
                else:
                    check = other._replace(outcome="should_cite", note=note)
        checks.append(check)
    return sorted(checks)


def _check(
    figure: Figure, sentence: str, figures: list[Figure], index: _Index
) -> FigureCheck | None:
    """What became of a figure among some passages; ``None`` if it states nothing."""
    bare = FigureCheck(figure.start, figure.end, figure.text, "unsupported_figure")
    if figure.unit == "name":
        if (passage := index.literal(figure.text)) is not None:
            return bare._replace(outcome="figure_found", passage=passage, true_text=figure.text)
        is_value = re.search(r"[A-Z]|/|@|^[\da-f]{7,}$", figure.text)
        return bare._replace(note="the evidence does not have it") if is_value else None
    likeness = index.likeness(figure)
    kind = [n for n in index.of_unit[figure.unit] if index.figures[n].unit == figure.unit]
    kind = [n for n in kind if not index.figures[n].is_counting]
    numbers = index.equal(figure)
    is_rounded = not numbers
    numbers = numbers or index.rounded(figure)
    if same := sorted(n for n in numbers if index.is_compatible(figure, n)):
        others = [n for n in kind if n not in numbers]
        # A date often stands apart from what it dates, as the heading of a release.
        is_dated = figure.unit in ("date", "clock")
        rival = None if is_dated else index.rival(figure, same, others, likeness, figures)
        if rival is not None:
            return bare._replace(note=f'the evidence has "{index.figures[rival].text}" there')
        best = max(same, key=lambda n: likeness[n])
        true = index.figures[best].text
        found = bare._replace(outcome="figure_found", passage=index.passages[best], true_text=true)
        return found._replace(outcome="rounded", note=f"it is {true}") if is_rounded else found
    before = re.search(r"(\w+)[ -]$", sentence[: figure.start])
    literals = [figure.text] if figure.unit == "version" else []
    for text in [*literals, *([before[1] + figure.text] if before else [])]:
        if (passage := index.literal(text)) is not None:
            return bare._replace(outcome="figure_found", passage=passage, true_text=text)
    kind.sort(key=lambda n: -likeness[n])
    is_free = not kind or likeness[kind[0]] < _SLOT
    if is_free and (calculation := index.calculation(figure, likeness)):
        return bare._replace(outcome="computed", note=calculation)
    if figure.unit == "th" and not kind:  # "The 3rd step" may count what is not numbered.
        return None
    names = [*dict.fromkeys(f'"{index.figures[n].text}"' for n in kind)][:3]
    note = "the evidence does not have it"
    return bare._replace(note=note + (f"; it has {', '.join(names)}" if names else ""))


# -- evidence --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _figures_of(text: str) -> tuple[Figure, ...]:
    return tuple(find_figures(text))


@lru_cache(maxsize=64)
def _index(texts: tuple[str, ...]) -> _Index:
    return _Index(texts)


class _Index:
    """The figures of passages, by what they support. Figures are known by their number."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.figures = [figure for text in texts for figure in _figures_of(text)]
        self.passages = [n for n, text in enumerate(texts) for _ in _figures_of(text)]
        self.counted = {noun for figure in self.figures for noun in figure.nouns}
        self.of_unit: defaultdict[str, list[int]] = defaultdict(list)
        self._of_reading: defaultdict[Reading, list[int]] = defaultdict(list)
        self._named = [
            {unit for f in _figures_of(text) for unit, _ in f.readings} for text in texts
        ]
        self._of_amount: defaultdict[Fraction | None, list[int]] = defaultdict(list)
        self._of_word: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        self._texts = [" ".join(text.lower().split()) for text in texts]
        self._numbers = [[(u, _number(v)) for u, v in figure.readings] for figure in self.figures]
        self._literals: dict[str, int | None] = {}
        for number, figure in enumerate(self.figures):
            self._of_amount[figure.amount].append(number)
            for key in {key for reading in figure.readings for key in _less_precise(reading)}:
                self._of_reading[key].append(number)
            for unit in {unit for unit, _ in figure.readings}:
                self.of_unit[unit].append(number)
            for word, nearness in figure.words.items():
                self._of_word[word].append((number, nearness))

        self._norms = [
            sum((near * self._rarity(word)) ** 2 for word, near in figure.words.items())
            for figure in self.figures
        ]

    def literal(self, text: str) -> int | None:
        """The first passage that has a text as it is, apart from case, spaces and hyphens."""
        if text not in self._literals:
            low = re.sub(r"^\w+://|^v(?=\d)", "", text.lower()).rstrip("/")
            parts = [*filter(None, re.split(r"[\s_-]+|(?<=[a-z])(?=\d)", low))] or [low]
            pattern = r"[\s_-]*".join(map(re.escape, parts))
            pattern = re.sub(r"\\\.x$", r"\\.[\\dx]", pattern)
            search = re.compile(rf"(?<![^\W_v]){pattern}(?!\w|\.\d)").search
            last = parts[-1].removesuffix(".x")
            found = (n for n, lower in enumerate(self._texts) if last in lower and search(lower))
            self._literals[text] = next(found, None)
        return self._literals[text]

    def _rarity(self, word: str) -> float:
        return log(1 + len(self.figures) / len(self._of_word[word]))

    def likeness(self, figure: Figure) -> defaultdict[int, float]:
        """How like the words beside each figure are to those beside another one, from 0 to 1.

        The cosine of the two; near and rare words count most.
        """
        like: defaultdict[int, float] = defaultdict(float)
        norm = 0.0
        for word, nearness in figure.words.items():
            if word in self._of_word:
                weight = nearness * self._rarity(word)
                norm += weight**2
                for number, other in self._of_word[word]:
                    like[number] += weight * other * self._rarity(word)
        for number in like:
            like[number] /= (norm * self._norms[number]) ** 0.5
        return like

    def has_another(self, figure: Figure) -> bool:
        """Whether another figure of the same kind stands in like words."""
        likeness = self.likeness(figure)
        return any(likeness[number] > _SLOT for number in self.of_unit[figure.unit])

    def equal(self, figure: Figure) -> set[int]:
        """The figures that have the same value."""
        keys = figure.readings[:1] if figure.unit == "version" else figure.readings
        equal = {number for key in keys for number in self._of_reading.get(key, ())}
        for amount in self._bare_amounts(figure):
            equal.update(
                n for n in self._of_amount.get(amount, ()) if self._is_bare(n, figure.unit)
            )
        if figure.amount is not None and not figure.unit and not figure.nouns:
            equal.update(self._of_amount[figure.amount])
        return equal

    def rounded(self, figure: Figure) -> set[int]:
        """The figures that another one rounds."""
        if not figure.amount or figure.unit == "version":
            return set()
        values = [(unit, _number(value)) for unit, value in figure.readings]
        # 11 GB does not round the 10 GB that are read as powers of 1,024.
        rounded = {
            n
            for place, (unit, value) in enumerate(values)
            for n in self.of_unit.get(unit, ())
            for other, (u, true) in enumerate(self._numbers[n])
            if u == unit and (u != "byte" or place == other) and _fits(figure, value, true)
        }
        amounts = [*map(float, self._bare_amounts(figure))]
        return rounded | {
            n
            for n in (self.of_unit[""] if amounts else ())
            if self._is_bare(n, figure.unit)
            and any(_fits(figure, amount, self._numbers[n][0][1]) for amount in amounts)
        }

    def _bare_amounts(self, figure: Figure) -> list[Fraction]:
        """What a bare number may be that means a figure: in its written unit or the base one."""
        value = figure.readings[0][1]
        if not figure.unit or not figure.amount or not isinstance(value, Fraction):
            return []
        return [figure.amount, value, *([value / 100] if figure.unit == "%" else [])]

    def _is_bare(self, number: int, unit: str) -> bool:
        """Whether a number has no unit, in a passage that names none of this dimension."""
        figure = self.figures[number]
        return (
            not figure.unit and not figure.nouns and unit not in self._named[self.passages[number]]
        )

    def is_compatible(self, figure: Figure, number: int) -> bool:
        """Whether nothing else that two figures say contradicts."""
        other = self.figures[number]
        if {figure.hedge, other.hedge} in _OPPOSITE:
            return False
        return not (figure.per and other.per and figure.per != other.per)

    def rival(
        self,
        figure: Figure,
        same: Sequence[int],
        others: Sequence[int],
        likeness: defaultdict[int, float],
        figures: Sequence[Figure],
    ) -> int | None:
        """The figure that the words of the draft point to, if it is not the one with its value."""
        best = max(same, key=lambda n: likeness[n])
        # "12 servers" is not "12 people" if there are "9 servers".
        counts = [n for n in others if figure.nouns[:1] == self.figures[n].nouns[:1] != ()]
        nouns = [self.figures[n].nouns for n in same]
        if counts and not any(figure.nouns[0] in other or not other for other in nouns):
            return counts[0]
        # If the sentence states both figures, the words of both count.
        for other in figures:
            places = [n for n in others if {*other.readings} & {*self.figures[n].readings}]
            if other is not figure and places:
                its = self.likeness(other)
                rival = max(places, key=lambda n: likeness[n])
                straight = likeness[best] + max(its[n] for n in places)
                crossed = likeness[rival] + max(its[n] for n in same)
                if crossed > _CROSSED * straight:
                    return rival
                others = [n for n in others if n not in places]
        if not others:
            return None
        rival = max(others, key=lambda n: likeness[n])
        return rival if likeness[rival] > max(_LEAST, _MARGIN * likeness[best]) else None

    def calculation(self, figure: Figure, likeness: defaultdict[int, float]) -> str:
        """The calculation of a figure from others of the evidence; "" without one."""
        unit, value = figure.readings[0][0], _number(figure.readings[0][1])
        if not figure.amount or not value:
            return ""
        exact = 1e-9 * abs(value)
        near = max(exact, abs(value * float(figure.step / figure.amount)) / 2)
        pool = sorted(range(len(self.figures)), key=lambda n: -likeness[n])[:_POOL]
        readings = [(*self._numbers[n][0], self.figures[n].text) for n in pool]
        if unit == "%":
            readings.append(("%", 100.0, "100%"))
        for (a_unit, a, first), (b_unit, b, second) in permutations(readings, 2):
            for result, is_exact, sign in _results(a_unit, a, b_unit, b, unit):
                if abs(result - value) <= (exact if is_exact and not figure.hedge else near):
                    return f"{first} {sign} {second} = {figure.text}"
        run = [n for n in self.of_unit[unit] if self.figures[n].unit == unit]
        for size in range(3, 7):
            for first_part in range(len(run) - size + 1):
                parts = run[first_part : first_part + size]
                if abs(sum(self._numbers[n][0][1] for n in parts) - value) <= exact:
                    return " + ".join(self.figures[n].text for n in parts) + f" = {figure.text}"
        return ""


def _results(
    a_unit: str, a: float, b_unit: str, b: float, unit: str
) -> Iterator[tuple[float, bool, str]]:
    """What two figures give in a unit, whether it must be exact, and the sign between them."""
    if unit in (a_unit, b_unit) and (a_unit == b_unit or (unit != "%" and "" in (a_unit, b_unit))):
        yield a + b, True, "+"
        yield a - b, True, "−"
    if a_unit == b_unit == "clock" and unit == "time":
        yield a - b, False, "−"
    if a_unit == b_unit == "date" and unit == "time":
        yield 86400 * (a - b), True, "−"
    if a_unit == b_unit and a != b and b:
        if unit == "%":
            yield 100 * a / b, False, "/"
            yield 100 * abs(a - b) / b, False, "compared with"
        elif unit == "x":
            yield a / b, False, "/"
    if not a_unit and b_unit == unit and unit and 1 < a <= 1000:
        yield a * b, True, "×"


def _number(value: Hashable) -> float:
    """A value as a number: a date is its day."""
    try:
        if isinstance(value, tuple):
            return float(date(*value).toordinal()) if all(value) else 0.0
        return float(value) if isinstance(value, Fraction) else 0.0
    except (ValueError, OverflowError):  # 31 June, or a number of 400 digits.
        return 0.0


def _fits(figure: Figure, value: float, true: float) -> bool:
    """Whether a value is the true one, rounded as the draft says."""
    if value * true <= 0:
        return False
    ratio, scale = value / true, value / float(figure.amount or 1)
    if figure.hedge in ("over", "under"):
        return 2 / 3 <= ratio < 1 if figure.hedge == "over" else 1 < ratio <= 5 / 4
    is_digits = abs(true - value) <= float(figure.step) * scale / 2
    if figure.hedge == "about":
        is_short = abs(figure.amount or Fraction(0)) <= 100 * figure.step
        return abs(ratio - 1) <= (0.15 if is_digits else 0.05 if is_short else 0)
    # A number without a hedge rounds a longer one: not 2019 to 2020, nor 49 to 50.
    written = round(true / scale, 9)
    is_longer = written % 1 or (abs(written) >= 1000 and figure.step >= 100)
    return not figure.hedge and abs(ratio - 1) <= 0.05 and is_digits and bool(is_longer)


def _less_precise(reading: Reading) -> Iterator[Reading]:
    """What a reading of the evidence supports: itself, and dates that say less."""
    yield reading
    unit, value = reading
    if unit == "date" and isinstance(value, tuple):
        year, month, day = value
        if year:
            yield "", Fraction(year)
        yield "date", (year, month, None)
        yield "date", (None, month, day)
        yield "date", (None, month, None)
    elif unit == "clock" and isinstance(value, Fraction):
        yield unit, value - value % 60
