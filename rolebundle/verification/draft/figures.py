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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import Literal, NamedTuple

from rolebundle.text.figures import Figure, Reading, find_figures

Outcome = Literal["found", "elsewhere", "rounded", "computed", "unsupported"]

_MARGIN = 1.5
"""How much more of the words must stand at another figure, for it to be the one that is meant."""
_LEAST = 0.15
"""How much of the draft's words must stand at the other figure."""
_POOL = 12
"""From how many figures of the evidence a figure may be calculated: those with its words."""
_LITERAL = ("name", "version")
_OPPOSITE = {frozenset(pair) for pair in (
    ("every", "max"), ("every", "under"), ("min", "max"), ("over", "under"), ("min", "under"),
    ("over", "max"),
)}  # fmt: skip
_LIST_NUMBER = re.compile(r"\s*(?:#{1,6}\s+(?:\d+\.)*\d+[.)]?|(?:\d+\.)*\d+[.)]|\(\d+\))\s")
_CODE = re.compile(r"`[^`\n]+`")
_VALUE = re.compile(r"[=:\s]\W?\d")
_CALCULATED = re.compile(
    r"\b(?:totals?|totall?ing|together|altogether|combined|sum|add(?:s|ed)? up|overall|in all|plus|both|more|fewer|"
    r"less|higher|lower|longer|shorter|larger|smaller|faster|slower|differ\w*|gap|between|minus|"
    r"left|remain\w*|rest|increas\w*|decreas\w*|rose|ris\w+|grew|grow\w*|fell|drop\w*|declin\w*|"
    r"chang\w*|gain\w*|los[st]\w*|reduc\w*|sav\w+|shares?|portion|proportion|percent\w*|out of|of all|per|each|every|times|twice|double\w*|tripl\w*|"
    r"half|halv\w*|third|quarter|ratio|average\w*|apart|later|earlier|after|extra|additional)\b|%",
    re.IGNORECASE,
)


class FigureCheck(NamedTuple):
    """What became of one figure of a sentence.

    Attributes:
        start: its first character in the sentence; ``end`` is behind the last one.
        outcome: ``found``; ``elsewhere``: not in the cited passages, but in another one;
            ``rounded`` and ``computed``: remarks; ``unsupported``.
        note: the true value, the calculation, or the nearest true values; "" if it is found.
        passage: the number of the passage, in ``evidence``, that has it; ``None`` without one.
        true_text: what that passage writes.
    """

    start: int
    end: int
    text: str
    outcome: Outcome
    note: str = ""
    passage: int | None = None
    true_text: str = ""


class _Found(NamedTuple):
    figure: Figure
    passage: int


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
    if not any(map(str.isalnum, sentence)):
        return []
    everything = _index(tuple(evidence))
    own = _index(tuple(cited)) if cited else everything
    number = _LIST_NUMBER.match(sentence)
    first = number.end() if number else 0
    figures = [figure for figure in find_figures(sentence) if figure.start >= first]
    checks = []
    codes = [match for match in _CODE.finditer(sentence) if re.search(r"\d", match[0])]
    for code in codes:
        literal = code[0].strip("`").strip()
        passage = everything.literal(literal) if not literal.replace(".", "").isdecimal() else None
        if passage is not None:
            checks.append(FigureCheck(*code.span(), code[0], "found", "", passage, literal))
            figures = [figure for figure in figures if not code.start() < figure.start < code.end()]
        elif not _VALUE.search(literal) and not literal[0].isdecimal():
            figures = [figure for figure in figures if not code.start() < figure.start < code.end()]
    for figure in figures:
        in_code = any(code.start() < figure.start < code.end() for code in codes)
        check = _check(figure, sentence, figures, own, everything, in_code)
        if check is not None:
            if cited and check.outcome in ("found", "rounded") and check.passage is not None:
                text = own.texts[check.passage]
                place = evidence.index(text) if text in evidence else None
                check = check._replace(passage=place)
            checks.append(check)
    return sorted(checks)


def _check(
    figure: Figure, sentence: str, figures: list[Figure], own: _Index, everything: _Index,
    in_code: bool,
) -> FigureCheck | None:  # fmt: skip
    start, end, text = figure.start, figure.end, figure.text
    if figure.unit in _LITERAL:
        return _literal(figure, own, everything)
    if figure.is_counting and not any(noun in own.counted for noun in figure.nouns[:2]):
        return None
    match, rival = own.support(figure, figures, in_code)
    if match and not rival:
        return FigureCheck(start, end, text, "found", "", match.passage, match.figure.text)
    before = re.search(r"(\w+)[ -]$", sentence[:start])
    if before and (passage := own.literal(f"{before[1]} {text}")) is not None:
        return FigureCheck(start, end, text, "found", "", passage, f"{before[1]} {text}")
    if not match:
        rounded, rival = own.rounded(figure, figures)
        if rounded and not rival:
            true = rounded.figure.text
            return FigureCheck(start, end, text, "rounded", f"it is {true}", rounded.passage, true)
    if own is not everything:
        other, other_rival = everything.support(figure, figures, in_code)
        if other and not other_rival and everything.texts[other.passage] not in own.texts:
            return FigureCheck(
                start, end, text, "elsewhere", "it does not stand in what the sentence cites",
                other.passage, other.figure.text,
            )  # fmt: skip
    if _CALCULATED.search(sentence) and (calculation := own.computed(figure, sentence)):
        return FigureCheck(start, end, text, "computed", calculation)
    if figure.unit == "th" and figure.readings[0][1] <= 10:
        return None
    return FigureCheck(start, end, text, "unsupported", _note(figure, rival, own))


def _literal(figure: Figure, own: _Index, everything: _Index) -> FigureCheck | None:
    """The check of a version, identifier or address, which must stand as it is."""
    start, end, text = figure.start, figure.end, figure.text
    passage = own.literal(text)
    if passage is not None:
        return FigureCheck(start, end, text, "found", "", passage, text)
    passage = everything.literal(text)
    if passage is not None:
        note = "it does not stand in what the sentence cites"
        return FigureCheck(start, end, text, "elsewhere", note, passage, text)
    is_value = figure.unit == "version" or re.search(r"[A-Z]|://|@|^[\da-fA-F]{7,}$", text)
    note = "it stands nowhere in the evidence"
    return FigureCheck(start, end, text, "unsupported", note) if is_value else None


def _note(figure: Figure, rival: _Found | None, own: _Index) -> str:
    if rival:
        return f'the evidence has "{rival.figure.text}" there'
    same = own.by_unit.get(figure.unit, [])
    near = sorted(same, key=lambda found: -own.likeness(figure, found.figure))
    names = [*dict.fromkeys(f'"{found.figure.text}"' for found in near)][:3]
    return "it stands nowhere in the evidence" + (f", which has {', '.join(names)}" if names else "")


# -- evidence --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _figures_of(text: str) -> tuple[Figure, ...]:
    return tuple(find_figures(text))


@lru_cache(maxsize=64)
def _index(texts: tuple[str, ...]) -> _Index:
    return _Index(texts)


class _Index:
    """The figures of passages, by what they support."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.texts = texts
        self.by_reading: defaultdict[Reading, list[_Found]] = defaultdict(list)
        self.by_unit: defaultdict[str, list[_Found]] = defaultdict(list)
        self.by_amount: defaultdict[Fraction | None, list[_Found]] = defaultdict(list)
        self.counted: set[str] = set()
        self.words: set[str] = set()
        self._frequency: defaultdict[str, int] = defaultdict(int)
        self._literals: dict[str, int | None] = {}
        self._lower = [" ".join(text.lower().split()) for text in texts]
        for passage, text in enumerate(texts):
            for figure in _figures_of(text):
                found = _Found(figure, passage)
                for reading in figure.readings:
                    for key in _less_precise(reading):
                        self.by_reading[key].append(found)
                for unit in {unit for unit, _ in figure.readings}:
                    self.by_unit[unit].append(found)
                self.by_amount[figure.amount].append(found)
                self.counted.update(figure.nouns)
                for word in figure.words:
                    self._frequency[word] += 1
        self.total = 1 + sum(map(len, self.by_unit.values()))

    def literal(self, text: str) -> int | None:
        """The first passage that has a text as it is, apart from case, spaces and hyphens."""
        if text not in self._literals:
            low = re.sub(r"^(?:https?|ftp)://", "", text.lower()).rstrip("/")
            parts = re.split(r"[\s_-]+|(?<=[a-z])(?=\d)", re.sub(r"^v(?=\d)", "", low))
            pattern = r"[\s_-]*".join(map(re.escape, filter(None, parts)))
            if low.endswith(".x"):
                pattern = pattern.removesuffix("x") + r"[\dx]"
            search = re.compile(rf"(?<![^\W_v]){pattern}(?!\w|\.\d)").search
            self._literals[text] = next(
                (number for number, lower in enumerate(self._lower) if search(lower)), None
            )
        return self._literals[text]

    def likeness(self, first: Figure, second: Figure) -> float:
        """How much two figures share of the words beside them; rare and near ones count most."""
        return sum(
            nearness * second.words[word] * log(1 + self.total / self._frequency[word])
            for word, nearness in first.words.items()
            if word in second.words
        )

    def support(
        self, figure: Figure, figures: list[Figure], in_code: bool
    ) -> tuple[_Found | None, _Found | None]:
        """The figure that has the same value, and another one if that is meant instead."""
        keys: list[Reading] = [*figure.readings]
        if figure.unit == "" and figure.amount and 1500 <= figure.amount <= 2100:
            keys.append(("date", (int(figure.amount), None, None)))
        same = [found for key in dict.fromkeys(keys) for found in self.by_reading.get(key, ())]
        if not figure.unit and (in_code or not figure.nouns):
            same += self.by_amount.get(figure.amount, []) if figure.amount is not None else []
        same = [found for found in same if self._is_compatible(figure, found.figure)]
        values = set(keys)
        others = [
            found
            for found in self.by_unit.get(figure.unit, ())
            if values.isdisjoint(key for r in found.figure.readings for key in _less_precise(r))
            and (figure.amount is None or found.figure.amount != figure.amount)
        ]
        return self._choose(figure, same, others, figures)

    def _is_compatible(self, figure: Figure, found: Figure) -> bool:
        if frozenset((figure.hedge, found.hedge)) in _OPPOSITE:
            return False
        if figure.per and found.per and figure.per != found.per:
            return False
        if figure.unit or found.unit or not figure.nouns or set(figure.nouns) & set(found.words):
            return True
        return not (found.nouns and self.counted.intersection(figure.nouns))

    def _choose(
        self, figure: Figure, same: list[_Found], others: Iterable[_Found], figures: list[Figure]
    ) -> tuple[_Found | None, _Found | None]:
        if not same:
            return None, None
        best = max(same, key=lambda found: self.likeness(figure, found.figure))
        own = self.likeness(figure, best.figure)
        whole = sum(
            nearness * log(1 + self.total / self._frequency[word])
            for word, nearness in figure.words.items()
            if word in self._frequency
        )
        for rival in others:
            likeness = self.likeness(figure, rival.figure)
            if likeness < _MARGIN * own or likeness < _LEAST * whole:
                continue
            # The sentence may state both figures: then all words of both count.
            stated = [other for other in figures if other is not figure and set(other.readings) & set(rival.figure.readings)]
            if any(
                own + self.likeness(other, rival.figure)
                >= likeness + self.likeness(other, best.figure)
                for other in stated
            ):
                continue
            return best, rival
        return best, None

    def rounded(
        self, figure: Figure, figures: list[Figure]
    ) -> tuple[_Found | None, _Found | None]:
        """The figure of which another one is the rounded or hedged value."""
        unit, value = figure.readings[0]
        if figure.amount is None or not isinstance(value, Fraction):
            return None, None
        fits, others = [], []
        for found in self.by_unit.get(unit, ()):
            if found.figure.amount is None:
                continue
            true = next(v for u, v in found.figure.readings if u == unit)
            (fits if _fits(figure, value, true) else others).append(found)
        return self._choose(figure, fits, others, figures)

    def computed(self, figure: Figure, sentence: str) -> str:
        """The calculation of a figure from two of the evidence; "" without one."""
        unit, value = figure.readings[0]
        if figure.amount is None or not isinstance(value, Fraction) or not value:
            return ""
        pool = [
            (found.figure, *found.figure.readings[0])
            for found in self.likest(figure)
            if isinstance(found.figure.readings[0][1], Fraction)
        ]
        tolerance = abs(value / figure.amount * figure.step) / 2
        for n, (first, first_unit, a) in enumerate(pool):
            for second, second_unit, b in pool[n + 1 :]:
                large, small = (first, second) if a >= b else (second, first)
                high, low = max(a, b), min(a, b)
                if first_unit == second_unit == unit and unit != "%x":
                    if a + b == value:
                        return f"{first.text} + {second.text} = {figure.text}"
                    if high - low == value:
                        return f"{large.text} − {small.text} = {figure.text}"
                if first_unit == second_unit and unit in ("%", "x", "") and low > 0:
                    scale = 100 if unit == "%" else 1
                    ratios = [(high, low), *([(low, high)] if scale == 100 else [])]
                    for x, y in ratios:
                        if abs(scale * x / y - value) <= tolerance and (unit or figure.step >= 1):
                            names = (large, small) if x == high else (small, large)
                            return f"{names[0].text} / {names[1].text} = {figure.text}"
                    for x, y in ((high, low), (low, high)) if unit == "%" else ():
                        if abs(100 * (high - low) / y - value) <= tolerance:
                            return f"({large.text} − {small.text}) / {(small if y == low else large).text} = {figure.text}"
                for count, other, x, y in ((first, second, a, b), (second, first, b, a)):
                    other_unit = second_unit if other is second else first_unit
                    if not count.unit and other_unit == unit and x * y == value and 1 < x <= 100:
                        return f"{count.text} × {other.text} = {figure.text}"
        return ""

    def likest(self, figure: Figure) -> list[_Found]:
        """The figures of the evidence whose words are most like those of another one."""
        every = {id(found): found for group in self.by_unit.values() for found in group}
        ranked = sorted(every.values(), key=lambda found: -self.likeness(figure, found.figure))
        return ranked[:_POOL]


def _fits(figure: Figure, value: Fraction, true: Fraction) -> bool:
    """Whether a value is the true one, rounded as its words say."""
    if not true or not value or (true < 0) != (value < 0):
        return False
    ratio = value / true
    scale = value / figure.amount if figure.amount else Fraction(1)
    step = figure.step * scale
    is_digits = abs(true - value) <= step / 2
    if figure.hedge == "over":
        return Fraction(2, 3) <= ratio < 1
    if figure.hedge == "under":
        return 1 < ratio <= Fraction(5, 4)
    if figure.hedge in ("about", ""):
        near = Fraction(1, 10) if figure.hedge else Fraction(1, 20)
        if figure.hedge:
            return abs(ratio - 1) <= near or (is_digits and abs(ratio - 1) <= 2 * near)
        is_year = figure.amount == value and 1500 <= value <= 2100
        is_precise = (true / step).denominator > 1 and (true / scale).denominator > 1 or abs(true / scale) >= 1000
        return not is_year and is_digits and is_precise and abs(ratio - 1) <= near
    return False


def _less_precise(reading: Reading) -> Iterator[Reading]:
    """What a reading of the evidence supports: itself, and dates that say less."""
    yield reading
    unit, value = reading
    if unit == "date" and isinstance(value, tuple):
        year, month, day = value
        if year and month:
            yield "date", (year, None, None)
            yield "", Fraction(year)
        if day:
            yield "date", (year, month, None)
            yield "date", (None, month, day)
        if month:
            yield "date", (None, month, None)
