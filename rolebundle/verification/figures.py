"""Whether the figures of a draft stand in its evidence. Pure.

A figure is compared by its value and unit, not by its notation (see ``text/figures.py``):

- A number with a unit needs one with that unit, or one that converts to it exactly. A bare number
  needs a bare one, or the same digits if they are many.
- The draft may say less: "May 2026" for "3 May 2026". It may not say more.
- A number that is rounded, or calculated from two figures of the sentence or of the evidence, is a
  remark with the true value or the calculation.
- "8 readers" are not there if there are "5 readers and 8 writers", and the value of one row of a
  table is not that of the row that the draft names.

Any other figure is unsupported. That is a remark, because half of such figures in the drafts of
other writers are right: sums, shares, the author's own. It fails if it looks like a figure of what
is cited with another unit, or with turned digits; if it is a version, or a day that differs in one
part; and if it is the only figure of a sentence that has no other word of its own.
It is not seen that the same value stands for another thing: rules that compare the words beside
figures find as many faults in faithful drafts as in wrong ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from typing import NamedTuple

from rolebundle.contracts.verification import FindingCode
from rolebundle.text.figures import Cell, Figure, Reading, find_figures, stems_in

_POOL = 10
"""A figure may be calculated from so many figures of the evidence: those in the most similar
sentences."""
_LONG = 4
"""Digits, without zeros at the end: two equal numbers of so many are no coincidence."""
_ROW = re.compile(
    r"^[ \t]*(?:[-*•|│]|\**[^.:=|\n]{1,60}?\**[ \t]*(?:[:=]|[ \t][–-][ \t]))[^\n]*$", re.MULTILINE
)
_SIGNED = ("°C", "°F", "°", "%", "version")
_LIST_NUMBER = re.compile(r"\s*(?:#{1,6}\s+(?:\d+\.)*\d+[.)]?|(?:\d+\.)*\d+[.)]|\(\d+\))\s")


class FigureCheck(NamedTuple):
    """The outcome for one figure of a sentence.

    Attributes:
        start: its first character in the sentence; ``end`` is behind the last one.
        outcome: ``figure_found``; ``rounded`` and ``computed``: remarks; ``unsupported_figure``.
        note: the true value, the calculation, or the nearest true values; "" if it is found.
        fails: whether it is wrong, and not only unsupported.
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
    fails: bool = False


def check_figures(
    sentence: str, cited: Sequence[str], evidence: Sequence[str], *, is_copy: bool = False
) -> list[FigureCheck]:
    """The outcomes for the figures of a sentence, in their order.

    Args:
        sentence: a sentence, heading, list item, row or table of a draft, whose quotes and
            citations are blank.
        cited: the texts of the passages that it cites or repeats; empty if there are none.
        evidence: the texts of all passages, with the cited ones.
        is_copy: whether it has no word of its own, so that its only figure should not be its own.
    """
    number = _LIST_NUMBER.match(sentence)
    figures = [f for f in find_figures(sentence) if not number or f.start >= number.end()]
    if not figures:
        return []
    places = [n for n, text in enumerate(evidence) if text in cited] or [*range(len(evidence))]
    own, everything = _index(tuple(evidence[n] for n in places)), _index(tuple(evidence))
    checks = []
    for figure in figures:
        if figure.is_counting and everything.counted.isdisjoint(figure.nouns[:2]):
            continue
        others = [other for other in figures if other is not figure]
        check = own.check(figure, others, is_cited=bool(cited))
        if check is None:
            continue
        if is_copy and len(figures) == 1 and check.outcome == "unsupported_figure":
            check = check._replace(fails=True)
        elif (
            check.outcome == "unsupported_figure"
            and figure.cell is None
            and (calculation := _calculation(figure, others, are_own=True))
        ):
            check = check._replace(outcome="computed", note=calculation, fails=False)
        if check.passage is not None:
            check = check._replace(passage=places[check.passage])
        if check.outcome == "unsupported_figure":
            anywhere = everything.check(figure, others, is_cited=False)
            if anywhere and anywhere.outcome == "figure_found":
                check = check._replace(note=f"{check.note}; another passage has it", fails=False)
        checks.append(check)
    return sorted(checks)


# -- evidence --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _figures_of(text: str) -> list[Figure]:
    """The figures of the evidence; their readings are all that they support.

    A line such as ``deny = 4`` or ``- Adults: 55 000`` is a row of a table.
    """
    lines = [
        Cell(match.start(), match[0], "", re.sub(r"\d", " ", match[0]))
        for match in _ROW.finditer(text)
        if len(match[0]) <= 100  # A longer line is prose.
    ]
    return [
        replace(
            figure,
            readings=tuple(key for r in figure.readings for key in _less_precise(r)),
            cell=figure.cell or next((c for c in lines if c.start <= figure.start < c.end), None),
        )
        for figure in find_figures(text)
    ]


@lru_cache(maxsize=64)
def _index(texts: tuple[str, ...]) -> _Index:
    return _Index(texts)


class _Index:
    """The figures of passages, each with the number of its passage."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._figures = [
            (figure, n) for n, text in enumerate(texts) for figure in _figures_of(text)
        ]
        self._texts = [" ".join(text.lower().split()) for text in texts]
        self.counted = {noun for figure, _ in self._figures for noun in figure.nouns}

    def check(
        self, figure: Figure, beside: Sequence[Figure], *, is_cited: bool
    ) -> FigureCheck | None:
        """The outcome for a figure; ``None`` if it needs no check.

        Args:
            figure: of the draft.
            beside: the other figures of its sentence.
            is_cited: whether the passages are what the sentence cites or repeats.
        """
        bare = FigureCheck(figure.start, figure.end, figure.text, "unsupported_figure")
        if figure.unit in ("name", "version"):
            if (passage := self._literal(figure.text)) is not None:
                return bare._replace(outcome="figure_found", passage=passage, true_text=figure.text)
            is_value = re.search(r"/|@|\d{4}|^[\da-f]{7,}$", figure.text)
            if figure.unit == "name":
                note = "the evidence does not have it"
                return bare._replace(note=note, fails=is_cited) if is_value else None
        # Those in the sentences most similar to the figure's come first.
        nearest = sorted(self._figures, key=lambda placed: -len(figure.words & placed[0].words))
        equal = [(other, n) for other, n in nearest if _is_equal(figure, other)]
        same = equal or [(other, n) for other, n in nearest if _is_rounded(figure, other)]
        rates = ("", figure.per)
        if same := [(other, n) for other, n in same if not figure.per or other.per in rates]:
            if meant := self._meant(figure, [other for other, _ in same], beside):
                note = f'the evidence has "{meant.text}" there'
                return bare._replace(note=note, fails=True)
            true, passage = same[0]
            check = bare._replace(passage=passage, true_text=true.text)
            if equal:
                return check._replace(outcome="figure_found")
            return check._replace(outcome="rounded", note=f"it is {true.text}")
        if calculation := _calculation(figure, [other for other, _ in nearest[:_POOL]]):
            return bare._replace(outcome="computed", note=calculation)
        for slip, passage in nearest:
            if _is_slip(figure, slip, is_cited=is_cited):
                note = f'the evidence has "{slip.text}"'
                return bare._replace(note=note, passage=passage, true_text=slip.text, fails=True)
        kind = [o for o, _ in nearest if _kind(o) == _kind(figure) and not o.is_counting]
        if figure.unit == "th" and not kind:  # "The 3rd step" may count what is not numbered.
            return None
        names = [*dict.fromkeys(f'"{other.text}"' for other in kind)][:3]
        note = "the evidence does not have it"
        note += f"; it has {', '.join(names)}" if names else ", nor any figure of this kind"
        return bare._replace(note=note)

    def _literal(self, text: str) -> int | None:
        """The first passage that has a text as it is, apart from case, spaces and hyphens."""
        low = re.sub(r"^\w+://|^v(?=\d)", "", text.lower()).rstrip("/")
        pattern = re.sub(r"(?:\\[ -]|_)+", r"[\\s_-]*", re.escape(low))
        search = re.compile(rf"(?<![^\W_v]){pattern}(?!\w|\.\d)").search
        return next((n for n, lower in enumerate(self._texts) if search(lower)), None)

    def _meant(
        self, figure: Figure, same: Sequence[Figure], beside: Sequence[Figure]
    ) -> Figure | None:
        """The figure of the thing that the draft names, if its value stands at others only."""
        nouns, sentences = figure.nouns[:1], {other.words for other in same}
        if nouns and not any(nouns[0] in other.nouns or not other.nouns for other in same):
            counts = (other for other, _ in self._figures if other.nouns[:1] == nouns)
            return next((count for count in counts if count.words in sentences), None)
        kinds = {(other.unit, other.per, other.cell and other.cell.column) for other in same}
        rows: dict[tuple[int, str], list[Figure]] = {}
        for other, _ in self._figures:
            if other.cell and (other.unit, other.per, other.cell.column) in kinds:
                rows.setdefault((other.cell.start, other.cell.row), []).append(other)
        stems = {row: {*stems_in(row[1])} for row, own in rows.items() if len(own) == 1}
        common = Counter(stem for of_row in stems.values() for stem in of_row)
        own_words = {row: {s for s in of_row if common[s] == 1} for row, of_row in stems.items()}
        named = [row for row, words in own_words.items() if not figure.words.isdisjoint(words)]
        of_same = [other.cell and (other.cell.start, other.cell.row) for other in same]
        if any(row is None or row in named or not own_words.get(row) for row in of_same):
            return None
        # A sentence that names several rows compares them, perhaps with one that it does not name.
        if len(named) != 1:
            return None
        [meant] = rows[named[0]]
        is_said = any(_is_equal(f, meant) or _is_rounded(f, meant) for f in beside)
        return None if is_said and figure.cell is None else meant


def _is_slip(figure: Figure, other: Figure, *, is_cited: bool) -> bool:
    """Whether a figure looks like another one that was copied wrongly.

    It has turned digits or, of what is cited, another unit or version, or one part of a date.
    """
    is_alike = _kind(figure) == _kind(other)
    if figure.unit in ("version", "date"):
        return is_cited and is_alike and (figure.unit == "version" or _is_other_day(figure, other))
    own, true = (re.sub(r"\D", "", f.text).lstrip("0") for f in (figure, other))
    if figure.amount and figure.amount == other.amount:
        # A number of one digit stands beside many units.
        is_alike |= len(own.strip("0")) > 1 and other.unit != ""
        return is_cited and is_alike and figure.unit != ""
    return is_alike and own != true and sorted(own) == sorted(true)


def _is_other_day(figure: Figure, other: Figure) -> bool:
    """Whether two dates are days that differ in one part: year, month or day."""
    dates = figure.readings[0][1], other.readings[0][1]
    differing = [a != b for a, b in zip(*dates, strict=True) if a and b]
    return all(day for *_, day in dates) and sum(differing) == 1


def _kind(figure: Figure) -> str:
    """The dimension of a figure; months and years are times here, though no seconds."""
    return "time" if figure.unit == "month" else figure.unit


def _is_equal(figure: Figure, other: Figure) -> bool:
    """Whether a figure of the evidence has the same value."""
    is_version = figure.unit == "version"
    wanted = figure.readings[:1] if is_version else figure.readings
    if any(reading in wanted for reading in other.readings):
        return True
    if figure.unit not in _SIGNED and other.amount is not None and other.amount < 0:
        # "2000 m of descent".
        numbers = [(unit, value) for unit, value in other.readings if isinstance(value, Fraction)]
        return any((unit, -value) in wanted for unit, value in numbers)
    if is_version or figure.amount is None or other.amount is None:
        return False
    if abs(figure.amount) != abs(other.amount):
        return False
    # "Level 9" is the option -9. A long number is the same one in whatever column it is.
    is_long = len(re.sub(r"\D", "", figure.text).strip("0")) >= _LONG
    return (not figure.unit and not figure.nouns) or (is_long and not other.unit)


def _is_rounded(figure: Figure, other: Figure) -> bool:
    """Whether a figure rounds one of the evidence."""
    if not figure.amount or figure.unit == "version":
        return False
    # Of two figures in GB, both are multiples of 1000, or both of 1024.
    is_alike = len(figure.readings) == len(other.readings)
    pairs = (zip if is_alike else product)(figure.readings, other.readings)
    return any(own == unit and _fits(figure, value, true) for (own, value), (unit, true) in pairs)


def _calculation(figure: Figure, operands: Sequence[Figure], *, are_own: bool = False) -> str:
    """The calculation of a figure from two others; "" without one.

    Args:
        figure: of the draft.
        operands: what it may be calculated from.
        are_own: they stand in the sentence of the figure, so that bare numbers and products are no
            coincidence.
    """
    for place in (0, 1):
        unit, value = _reading(figure, place)
        if not isinstance(value, Fraction) or not value or not figure.amount:
            continue
        readings = [(*_reading(f, place), f.text) for f in operands if f.amount is not None]
        if unit == "%":
            readings.append(("%", Fraction(100), "100%"))
        for (a_unit, a, first), (b_unit, b, second) in permutations(readings, 2):
            if not isinstance(a, Fraction) or not isinstance(b, Fraction):
                continue
            if a_unit == b_unit:
                results = _results(a, b, unit, is_same=unit == a_unit, are_own=are_own)
            else:
                results = [(a * b, "×")] if are_own and unit == a_unit and not b_unit else []
            for result, sign in results:
                if result == value or _fits(figure, value, result):
                    return f"{first} {sign} {second} = {figure.text}"
    return ""


def _reading(figure: Figure, place: int) -> Reading:
    return figure.readings[min(place, len(figure.readings) - 1)]


def _results(
    a: Fraction, b: Fraction, unit: str, *, is_same: bool, are_own: bool
) -> list[tuple[Fraction, str]]:
    """What two figures with the same unit give in a unit, and their sign."""
    results = [(a + b, "+"), (a - b, "−")] if is_same and (unit or are_own) else []
    if unit == "%" and b and not is_same:
        results += [(100 * a / b, "/"), (100 * abs(a - b) / b, "compared with")]
    elif b and (unit == "x" or (are_own and not unit)):
        results.append((a / b, "/"))
    if are_own and not unit and is_same:
        results.append((a * b, "×"))
    return results


def _fits(figure: Figure, value: object, true: object) -> bool:
    """Whether a value is the true one, rounded."""
    if not isinstance(value, Fraction) or not isinstance(true, Fraction) or value * true <= 0:
        return False
    ratio, scale = value / true, value / (figure.amount or 1)
    is_digits = abs(true - value) <= abs(figure.step * scale) / 2
    # Not 2019 to 2020, nor 49 to 50: a number rounds a longer one.
    written = true / scale
    is_longer = written.denominator > 1 or (abs(written) >= 1000 and figure.step >= 100)
    return abs(ratio - 1) <= 0.05 and is_digits and is_longer


def _less_precise(reading: Reading) -> Iterator[Reading]:
    """What a reading of the evidence supports: itself, and dates that say less."""
    yield reading
    unit, value = reading
    if unit == "date":
        year, month, day = value
        if year:
            yield "", Fraction(year)
        yield "date", (year, month, None)
        yield "date", (None, month, day)
