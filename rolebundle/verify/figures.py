"""Whether the figures of a draft stand in its evidence. Pure.

A figure is compared by its value and unit, not by its notation (see ``text/figures.py``):

- A number with a unit needs one with that unit, or one that converts to it exactly. A bare number
  needs a bare one, or the same digits if they are many.
- The draft may say less: "May 2026" for "3 May 2026". It may not say more.
- It needs the same rate: not "per hour" for "per minute".
- A number that is rounded, or calculated from two figures of the sentence or of the evidence,
  holds; the note has the true value or the calculation.
- It stands beside words of the draft: the value of one row of a table, or of one part of a
  sentence, is not that of the row or part that the draft names.

Any other figure is unsupported, and to be checked. It does not fail, because half of such figures
in the drafts of other writers are right: sums, shares, the author's own.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from heapq import nsmallest
from itertools import product
from typing import NamedTuple

from rolebundle.contracts.dates import date_in_name, is_month
from rolebundle.contracts.verification import FindingCode
from rolebundle.retrieval.query import words_of
from rolebundle.text.figures import (
    Figure,
    Reading,
    cell_at,
    find_figures,
    is_equal,
    is_money,
    words_near,
)
from rolebundle.text.tables import Cell
from rolebundle.text.words import stem
from rolebundle.verify.derived import calculates, derivation, fits, is_year

_POOL = 10
"""From how many figures of the evidence a figure may be calculated. They are in the sentences that
are most like its own."""
_BEFORE = 4  # Figures of the sentence before.
_SHORT = 600
"""Characters: a passage as short says itself what to calculate ("half")."""
_MOST_ROUNDED = 0.06
"""The part of a figure by which the true value may differ at most."""
_ROW = re.compile(
    r"^[ \t]*(?:[-*•|│]|\**[^.:=|\n]{1,60}?\**[ \t]*(?:[:=]|[ \t][–-][ \t])"
    r"|\"[^\"\n]*\",|[^,;\n]+[,;][^\s,;]+[,;]\S|[^\n]*[^\s.!?:;] {2,}\S)[^\n]*$",
    re.MULTILINE,
)
_SECTION = re.compile(
    r"#{1,6}[ \t](?!\d{1,2}[.)\s]|\d+\.\d)[^\n]*\n((?:(?!#{1,6}[ \t])[^\n]*(?:\n|\Z))*)"
)
_SECTION_CHARS = 600
PLACE_END = "\n\x1e\n"
"""Stands between the names, date and headings of a passage and its text."""
_RANGE = 20
"""Characters from the first day of a range to the last one."""
LONGER = re.compile(r"\d+(?:[.,]\d+)+|\d{2,}")
"""Numbers that name a row or column ("10–24.9 kg", "2027"): one digit is found by chance."""
_SENTENCE_END = re.compile(r"[.;:!?]\s|\n\s*\n|\n\s*[-*•]")
_LINE_END = re.compile(r"\n")
_WIDE = 200  # Characters of a row.
_LIST_NUMBER = re.compile(r"\s*(?:#{1,6}\s+(?:\d+\.)*\d+[.)]?|(?:\d+\.)*\d+[.)]|\(\d+\))\s")

_NUMBERING = re.compile(r"(?:^|\n)[ \t#*]*(?:\d+\.)*\d+(?:\\?[.)]|(?<=\.\d))\W{0,2}$")


class FigureCheck(NamedTuple):
    """The outcome for one figure of a sentence.

    Attributes:
        start: its first character in the sentence; ``end`` is behind the last one.
        figure: of the sentence.
        outcome: ``figure_found``, ``rounded``, ``computed`` or ``unsupported_figure``.
        note: the true value, the calculation, or the nearest true values; "" if it is found.
        passage: the number of the passage, in ``evidence``, that has it; ``None`` without one.
        true_text: what that passage writes.
        found: the figure of that passage; ``None`` for a name or version.
        is_contradicted: whether the cited lines have the figure, with another bound or of
            something else.
        others: what the evidence has in place of an unsupported figure: figures of its kind beside
            words of its sentence, or the only one.
    """

    start: int
    end: int
    figure: Figure
    outcome: FindingCode
    note: str = ""
    passage: int | None = None
    true_text: str = ""
    found: Figure | None = None
    is_contradicted: bool = False
    others: tuple[str, ...] = ()


def check_figures(
    sentence: str,
    cited: Sequence[str],
    evidence: Sequence[str],
    beside: Sequence[str] = (),
    previous: str = "",
) -> Iterator[FigureCheck]:
    """The outcomes for the figures of a sentence, in their order.

    Args:
        sentence: a sentence, heading, list item, row or table of a draft, whose quotes and
            citations are blank.
        cited: the texts of the passages that it cites or repeats; empty if there are none.
        evidence: the texts of all passages, with the cited ones.
        beside: the texts of the passages that the sentences before and after it cite.
        previous: the two sentences before it.
    """
    match = _LIST_NUMBER.match(sentence)
    stated = find_figures(sentence)
    figures = [_of_draft(f) for f in stated if not match or f.start >= match.end()]
    places = [n for n, text in enumerate(evidence) if text in cited] or [*range(len(evidence))]
    words = " ".join([sentence, *(text for text in cited if len(text) < _SHORT)])
    before = find_figures(previous)[-_BEFORE:]
    places_beside = [n for n, text in enumerate(evidence) if text in beside]
    own, everything = _Index(tuple(evidence[n] for n in places)), _Index(tuple(evidence))
    for number, figure in enumerate(figures):
        if figure.is_counting and own.counted.isdisjoint(figure.nouns[:2]):
            continue
        near = (*reversed(figures[max(0, number - _POOL) : number]), *figures[number + 1 :][:_POOL])
        others = sorted(near, key=lambda other: abs(other.start - figure.start))[:_POOL]
        named = {*LONGER.findall(sentence)}.difference(LONGER.findall(figure.text))
        figure = replace(figure, near=figure.near | named)  # noqa: PLW2901
        first = None
        for reading in (figure, *_with_unit_before(figure, others), *own.without_year(figure)):
            check = own.check(reading, figures)
            first = first or check
            if check is None or check.outcome != "unsupported_figure":
                break
            found = own.operands(reading)
            calculation = derivation(reading, others, [*before, *found], sentence, words)
            if not calculation and calculates(sentence):
                calculation = own.sum_note(reading)
            if calculation and figure.cell is None:
                check = check._replace(outcome="computed", note=calculation)
                break
        else:
            check = first
        if check is None:
            continue
        if check.passage is not None:
            check = check._replace(passage=places[check.passage])
        if check.outcome == "unsupported_figure" and not check.is_contradicted:
            anywhere = everything.check(figure, figures)
            if anywhere and anywhere.outcome == "figure_found":
                note = f"{check.note}; another passage has it"
                is_beside = anywhere.passage in places_beside
                check = anywhere if is_beside else check._replace(note=note)
        yield check


def _of_draft(figure: Figure) -> Figure:
    """A figure beside the words of its part of the sentence; of all of it, if there is only one."""
    own = words_near(figure.text)
    near = figure.near - own
    words = frozenset(word for word in figure.words if not word.isdecimal())
    return replace(figure, near=near if len(near) > 1 else words - own)


def _with_unit_before(figure: Figure, others: Sequence[Figure]) -> list[Figure]:
    """A bare number with the unit of the figure before it: "52 weeks: 18 fully paid"."""
    if figure.unit or not figure.amount:
        return []
    before = [f for f in others if f.start < figure.start and f.unit and f.amount][:1]
    shared = [
        [(u, figure.amount / (f.amount or 1) * v) for u, v in f.readings if isinstance(v, Fraction)]
        for f in before
    ]
    return [replace(figure, readings=tuple(readings), nouns=()) for readings in shared]


# -- evidence --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _figures_of(text: str) -> list[Figure]:
    """The figures of the evidence; their readings are all that they support.

    A line such as ``deny = 4`` or ``- Adults: 55 000`` is a row of a table.
    """
    rows = (row for row in _ROW.finditer(text) if len(row[0]) <= 100)  # A longer line is prose.
    lines = [Cell(row.start(), row[0], "", row[0]) for row in rows]
    figures = []
    for figure in find_figures(text):
        readings = tuple(key for reading in figure.readings for key in _less_precise(reading))
        readings += tuple(_days_of_months(figure, text))
        row = None if figure.cell else cell_at(lines, figure.start)
        if row:
            figure = replace(figure, cell=row, near=words_near(row.row), shared=frozenset())  # noqa: PLW2901
        near, start = figure.near, figure.start
        end = _LINE_END if figure.cell else _SENTENCE_END
        before = end.split(text[max(0, start - _WIDE) : start])[-1]
        after = end.split(text[figure.end : start + _WIDE])[0]
        column = figure.cell.column if figure.cell else ""
        near |= {*LONGER.findall(f"{column} {before} {after}")}
        if not figure.cell:
            line_start = text.rfind("\n", 0, start) + 1
            section = _SECTION.match(text[line_start : line_start + _SECTION_CHARS])
            # A bare number names a thing: "Lindenweg 14".
            if section and (figure.unit or is_year(figure)):
                near |= words_near(section[1])  # The figure of a heading is about its section.
        figures.append(replace(figure, readings=readings, near=near))
    return figures


@lru_cache(maxsize=64)
class _Index:
    """The figures of passages, each with the number of its passage; cached by their texts.

    A figure of a draft is compared only with figures that have a key in common with it.
    """

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._figures = [(f, n) for n, text in enumerate(texts) for f in _figures_of(text)]
        around = (texts[n][max(0, f.start - 20) : f.end + 2] for f, n in self._figures)
        self._numbering = {at for at, text in enumerate(around) if _NUMBERING.search(text)}
        self._texts = [" ".join(text.lower().split()) for text in texts]
        self._place_ends = [text.find(PLACE_END) for text in texts]
        in_texts = (f for f, n in self._figures if f.start > self._place_ends[n])
        self.counted = {noun for figure in in_texts for noun in figure.nouns}
        self._having = defaultdict[object, list[int]](list)
        values = defaultdict[str, list[tuple[Fraction, int]]](list)
        for place, (figure, _) in enumerate(self._figures):
            words = (("word", word) for word in figure.words)
            near = (("near", word) for word in figure.near)
            for key in (*_keys(figure), figure.kind, *words, *near):
                self._having[key].append(place)
            for unit, value in figure.readings:
                if isinstance(value, Fraction):
                    values[unit].append((value, place))
        self._values = {unit: sorted(of_unit) for unit, of_unit in values.items()}
        self._ranked = lru_cache(self._rank)
        ends = enumerate(self._place_ends)  # Names begin with the path.
        self._files = [texts[n].partition("\n")[0] if end > 0 else str(n) for n, end in ends]
        self._of_places = [f for f, n in self._figures if f.start < self._place_ends[n]]
        columns = defaultdict[tuple[int, str], list[Figure]](list)
        for figure, n in self._figures:
            if figure.cell and (figure.cell.column or is_money(figure)):
                columns[n, figure.cell.column].append(figure)
        self._sums: dict[tuple[str, Fraction | int], str] = {
            (cells[0].unit, sum(amounts)): f"the sum of {name!r}"
            for (_, name), cells in columns.items()
            if len({cell.unit for cell in cells}) == 1
            and len(amounts := [c.amount for c in cells if c.amount and not is_year(c)]) > 2
        }

    def check(self, figure: Figure, stated: Sequence[Figure]) -> FigureCheck | None:
        """The outcome for one of the figures of a sentence; ``None`` if it needs no check."""
        bare = FigureCheck(figure.start, figure.end, figure, "unsupported_figure")
        if figure.unit in ("name", "version"):
            if (passage := self._literal(figure.text)) is not None:
                return bare._replace(outcome="figure_found", passage=passage, true_text=figure.text)
            is_value = re.search(r"/|@|\d{4}|^[\da-f]{7,}$", figure.text)
            if figure.unit == "name":
                note = "the evidence does not have it"
                return bare._replace(note=note) if is_value else None
        numbering = self._numbering if figure.is_counting else set[int]()
        equal = self._nearest(figure, self._with_keys(figure) - numbering, is_equal)
        same = equal or self._nearest(figure, self._close(figure) - self._numbering, _is_rounded)
        of_rate = [(other, n) for other, n in same if not _is_other_rate(figure, other)]
        if same and not of_rate:
            note = f'the evidence says "{same[0][0].text}{same[0][0].rate}"'
            end = figure.end + len(figure.rate)
            return bare._replace(end=end, note=note, is_contradicted=True)
        if same := of_rate:
            if moved := self._moved(figure, same, stated):
                note = f'the evidence has "{moved.text}" beside these words'
                return bare._replace(note=note, is_contradicted=True, others=(moved.text,))
            bounds = {other.bound for other, _ in same}
            if equal and figure.bound and not bounds & {"", figure.bound}:
                note = f'the evidence says "at {max(bounds)}"'
                return bare._replace(start=figure.bound_start, note=note, is_contradicted=True)
            true, passage = same[0]
            check = bare._replace(passage=passage, true_text=true.text, found=true)
            if equal:
                return check._replace(outcome="figure_found")
            return check._replace(outcome="rounded", note=f"it is {true.text}")
        of_kind = (self._figures[at][0] for at in self._having.get(figure.kind, [])[:_POOL])
        nearest = [*self._ranked(figure.words, figure.kind), *of_kind]
        kind = [o for o in nearest if o.kind == figure.kind and not o.is_counting]
        found = [*dict.fromkeys(other.text for other in kind)]
        names = ", ".join(f'"{other}"' for other in found[:3])
        alike = dict.fromkeys(o.text for o in kind if not figure.words.isdisjoint(o.words))
        others = (*(alike or found[: len(found) == 1]),)[:3]
        note = "the evidence does not have it"
        note += f"; it has {names}" if names else ", nor any figure of this kind"
        return bare._replace(note=note, others=others)

    def without_year(self, figure: Figure) -> list[Figure]:
        """A date without its year, if that stands elsewhere: in a title, or in another date."""
        dates = (date for date in figure.dates if date[0] and date[1])
        known = (date for date in dates if ("", Fraction(date[0])) in self._having)
        return [replace(figure, readings=(("date", (None, *date[1:])),)) for date in known]

    def operands(self, figure: Figure) -> list[Figure]:
        """The figures that one may be calculated from; none if one of them has its value."""
        if any(is_equal(figure, self._figures[at][0]) for at in self._with_keys(figure)):
            return []
        ranked = self._ranked(figure.words, figure.kind)
        return [other for other in ranked if other.unit or other not in self._of_places]

    def sum_note(self, figure: Figure) -> str:
        """Of which column of a table a figure is the sum, of three cells or more; "" if of none."""
        if not figure.amount:
            return ""
        found = (self._sums.get((unit, figure.amount)) for unit in ("", figure.unit))
        return next(filter(None, found), "")

    def _with_keys(self, figure: Figure) -> set[int]:
        """The places of the figures with a key of a figure."""
        return {at for key in _keys(figure) for at in self._having.get(key, ())}

    def _close(self, figure: Figure) -> set[int]:
        """The places of the figures of which a figure may be the rounded value."""
        found = set[int]()
        for unit, value in figure.readings if figure.amount else ():
            if isinstance(value, Fraction) and (values := self._values.get(unit)):
                rounding = abs(figure.step / (figure.amount or 1)) / 2
                most = abs(value) * min(Fraction(_MOST_ROUNDED), rounding)
                first = bisect_left(values, (value - most, 0))
                last = bisect_right(values, (value + most, len(self._figures)))
                found.update(at for _, at in values[first:last])
        return found

    def _nearest(
        self, figure: Figure, places: Iterable[int], test: Callable[[Figure, Figure], bool]
    ) -> list[tuple[Figure, int]]:
        """The figures that pass a test, the ones in the most similar sentences first."""
        passed = [at for at in places if test(figure, self._figures[at][0])]
        passed.sort(key=lambda at: (-len(figure.words & self._figures[at][0].words), at))
        return [self._figures[at] for at in passed]

    def _rank(self, words: frozenset[str], kind: str) -> list[Figure]:
        """The figures in the sentences most similar to these words; of this kind first."""
        counts = Counter(at for word in words for at in self._having.get(("word", word), ()))
        alike = self._having.get(kind, [])[:_POOL]
        counts.update(dict.fromkeys([*range(min(_POOL, len(self._figures))), *alike], 0))
        counted = counts.keys() - self._numbering
        is_other = {at: self._figures[at][0].kind != kind for at in counted}
        first = nsmallest(_POOL, counted, key=lambda at: (-counts[at], is_other[at], at))
        return [self._figures[at][0] for at in first]

    def _literal(self, text: str) -> int | None:
        """The first passage that has a text as it is, apart from case, spaces and hyphens."""
        low = re.sub(r"^\w+://|^v(?=\d)", "", text.lower()).rstrip("/")
        pattern = re.sub(r"(?:\\[ -]|_)+", r"[\\s_-]*", re.escape(low))
        search = re.compile(rf"(?<![^\W_v]){pattern}(?!\w|\.\d)").search
        return next((n for n, lower in enumerate(self._texts) if search(lower)), None)

    def _moved(
        self, figure: Figure, found: Sequence[tuple[Figure, int]], stated: Sequence[Figure]
    ) -> Figure | None:
        """The figure that stands beside the draft's words, if the draft's stands beside others."""
        same, files = [other for other, _ in found], {self._files[n] for _, n in found}
        if all(one.cell and not one.cell.row and not one.unit for one in same):
            return None  # It is the number of a row: "item 281".
        days = [other for other in stated if other.dates and not figure.dates]
        if any(_is_in_row_of(*pair) for pair in product(days, same)):
            return None
        beside = frozenset[str]().union(*(other.near | other.shared for other in same))
        kinds = {other.kind for other in same}
        kinds = {figure.kind} if figure.kind in kinds else kinds | {figure.kind}
        rows = {one.cell.row for one in same if one.cell}
        best, moved = (1, True), None
        labels = {other.label for other in same} - {""}
        counted = frozenset(figure.nouns[:1]).difference(*(other.nouns[:1] for other in same))
        own = (figure.near - beside) | counted
        for at in {at for word in own for at in self._having[("near", word)]}:
            other, passage = self._figures[at]
            if self._files[passage] not in files or other.kind not in kinds or other in same:
                continue  # Two texts may both be right.
            if other.start < self._place_ends[passage]:
                continue  # The date of a file is not in place of one in its text.
            if other.unit == "date" and any(abs(o.start - other.start) < _RANGE for o in same):
                continue  # "On 14 and 15 November".
            is_one = other.amount == 1 and stem(other.text.split()[-1]) in figure.near
            if is_one or (figure.unit and other.nouns):
                continue  # "A day" is one day.
            if figure.label != other.label and figure.label in labels:
                continue  # "Version 2" of chapter 4.
            if (other.is_counting and not figure.is_counting) or is_year(other) != is_year(figure):
                continue  # "Price list 2024", "two sides".
            gained = (figure.near & other.near - beside) | counted.intersection(other.nouns[:1])
            kept = other.near | other.shared | {*LONGER.findall(other.text)}
            loss = max(len(figure.near & one.near - kept) for one in same)
            # One word may be a coincidence if the values have nothing else in common.
            is_alike = other.cell is not None or not figure.near.isdisjoint(beside)
            is_alike |= any(one.shared and one.shared == other.shared for one in same)
            # The draft may have that one, too, if it does not swap them.
            is_mixed = all(_mixes_rows(figure.near, one.cell, other.cell) for one in same)
            # "The first £250, for water damage £500": all words of the other one.
            is_mixed |= not other.cell and len(gained) > 1 and other.near - beside <= gained
            is_mixed |= _is_swapped(other, same, stated)
            score = len(gained) + is_alike, other.cell is not None and other.cell.row in rows
            if (
                (is_mixed or 3 * loss <= len(gained))
                and score > best
                and not any(
                    is_equal(one, other)
                    and one.near & other.near
                    and beside.isdisjoint(one.near - other.near)
                    for one in stated
                )
            ):
                best, moved = score, other
        return moved


def _keys(figure: Figure) -> Iterator[object]:
    """What a figure is found by. Figures that are equal, or of which one is a slip, share a key."""
    yield from figure.readings
    if figure.amount is not None:
        yield "amount", abs(figure.amount)
        yield from ((unit, -n) for unit, n in figure.readings if isinstance(n, Fraction))


def _mixes_rows(words: frozenset[str], own: Cell | None, other: Cell | None) -> bool:
    """Whether words name a cell of another row, and not the one in its place."""
    if not own or not other:
        return False
    cells, others = ([cell.row, *cell.beside.split("|")] for cell in (own, other))
    pairs = zip(map(words_near, cells), map(words_near, others), strict=False)
    return any(a and b and b <= words and a.isdisjoint(words) for a, b in pairs)


def _is_in_row_of(day: Figure, figure: Figure) -> bool:
    """Whether the row of a figure is headed by a day."""
    row = figure.cell.row if figure.cell else ""
    return any(is_equal(day, other) for other in _figures_of(row))


def _is_swapped(other: Figure, same: Sequence[Figure], stated: Sequence[Figure]) -> bool:
    """Whether the draft states ``other``, too, beside the words of the same figure."""
    near = frozenset[str]().union(*(one.near for one in same))
    equal = [figure.near for figure in stated if is_equal(figure, other)]
    return any(own & (near - other.near) and own.isdisjoint(other.near - near) for own in equal)


def _is_other_rate(figure: Figure, other: Figure) -> bool:
    """Whether two figures are rates of different times, or of different things in one language."""
    rates = [one.per.split("|") if one.per else [] for one in (figure, other)]
    if figure.language != other.language and not all(" " in rate for own in rates for rate in own):
        return False
    is_time = [any(rate.startswith(("time", "month")) for rate in own) for own in rates]
    return all(rates) and {*rates[0]}.isdisjoint(rates[1]) and is_time[0] == is_time[1]


def _is_rounded(figure: Figure, other: Figure) -> bool:
    """Whether a figure rounds one of the evidence."""
    if not figure.amount or figure.unit == "version":
        return False
    # Of two figures in GB, both are multiples of 1000, or both of 1024.
    is_alike = len(figure.readings) == len(other.readings)
    pairs = (zip if is_alike else product)(figure.readings, other.readings)
    return any(own == unit and fits(figure, value, true) for (own, value), (unit, true) in pairs)


def _days_of_months(figure: Figure, text: str) -> Iterator[Reading]:
    """What an ordinal means beside the name of a month: "by Dec 3, and pick-up on the 9th"."""
    if figure.unit == "th":
        around = words_of(text[max(0, figure.start - _WIDE) : figure.end + _WIDE])
        months = {date_in_name(f"1 {word} 2000")[5:7] for word in around if is_month(word)}
        for month in filter(None, months):
            yield "date", (None, int(month), int(figure.readings[0][1]))


def _less_precise(reading: Reading) -> Iterator[Reading]:
    """What a reading of the evidence supports: itself, and dates and times that say less."""
    yield reading
    unit, value = reading
    if unit == "th":
        yield "", value
    if unit == "clock" and value % 60 == 0:
        yield "", Fraction((value // 60 - 1) % 12 + 1)  # "Between 5 and 7 pm".
    if unit == "date":
        year, month, day = value
        if year:
            yield "", Fraction(year)
        yield "date", (year, month, None)
        yield "date", (None, month, day)
        if day:
            yield "th", Fraction(day)
