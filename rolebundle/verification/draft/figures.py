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
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import log
from typing import Literal, NamedTuple

from rolebundle.text.figures import Figure, Reading, find_figures

Outcome = Literal["found", "elsewhere", "rounded", "computed", "unsupported"]

_MARGIN = 1.5
"""How many times more of the words must stand at another figure for that one to be meant."""
_LEAST = 0.2
"""The part of the draft's words that must stand at it."""
_POOL = 12
"""From how many figures of the evidence a figure may be calculated: those most like it."""
_OPPOSITE = [{"every", "max"}, {"every", "under"}, {"min", "max"}, {"over", "under"}]
_OPPOSITE += [{"min", "under"}, {"over", "max"}]
_LIST_NUMBER = re.compile(r"\s*(?:#{1,6}\s+(?:\d+\.)*\d+[.)]?|(?:\d+\.)*\d+[.)]|\(\d+\))\s")
_CODE = re.compile(r"`[^`\n]*\d[^`\n]*`")
_CALCULATED = re.compile(
    r"\b(?:total\w*|together|altogether|combined|sum|add\w*|overall|in all|plus|both|more|fewer|"
    r"less|higher|lower|longer|shorter|larger|smaller|faster|slower|differ\w*|gap|between|minus|left|"
    r"remain\w*|rest|increas\w*|decreas\w*|rise|rose|grew|fell|drop\w*|declin\w*|chang\w*|gain\w*|"
    r"los[st]|reduc\w*|sav\w+|shares?|portion|proportion|percent\w*|of all|per|each|every|times|twice|"
    r"double\w*|tripl\w*|half|halv\w*|third|quarter|ratio|average\w*|apart|later|earlier|extra)\b|%",
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
    for code in _CODE.finditer(sentence):
        literal = code[0].strip("` ")
        passage = everything.literal(literal)
        if passage is not None and not literal.isdecimal():
            checks.append(FigureCheck(*code.span(), code[0], "found", "", passage, literal))
        elif literal[0].isdecimal() or re.search(r"[=:\s]\W?\d", literal):
            continue
        figures = [figure for figure in figures if not code.start() < figure.start < code.end()]
    for figure in figures:
        check = _check(figure, sentence, figures, own)
        if check is None:
            continue
        if check.passage is not None:
            check = check._replace(passage=places[check.passage])
        elif check.outcome == "unsupported" and own is not everything:
            other = _check(figure, sentence, figures, everything)
            if other and other.outcome == "found":
                note = "it does not stand in what the sentence cites"
                check = other._replace(outcome="elsewhere", note=note)
        checks.append(check)
    return sorted(checks)


def _check(
    figure: Figure, sentence: str, figures: list[Figure], index: _Index
) -> FigureCheck | None:
    """What became of a figure among some passages; ``None`` if it states nothing."""
    if figure.is_counting and index.counted.isdisjoint(figure.nouns[:2]):
        return None
    bare = FigureCheck(figure.start, figure.end, figure.text, "unsupported")
    before = re.search(r"(\w+)[ -]$", sentence[: figure.start])
    is_literal = figure.unit in ("name", "version")
    for text in [figure.text] if is_literal else [f"{before[1]} {figure.text}"] if before else []:
        if (passage := index.literal(text)) is not None:
            return bare._replace(outcome="found", passage=passage, true_text=text)
    if is_literal:
        is_value = figure.unit == "version" or re.search(r"[A-Z]|/|@|^[\da-f]{7,}$", figure.text)
        return bare._replace(note="it stands nowhere in the evidence") if is_value else None
    likeness = index.likeness(figure)
    in_code = any(code.start() < figure.start < code.end() for code in _CODE.finditer(sentence))
    rival = None
    for outcome, (same, others) in (
        ("found", index.equal(figure, in_code)),
        ("rounded", index.rounded(figure)),
    ):
        if not same:
            continue
        best = max(same, key=lambda n: likeness[n])
        rival = index.rival(figure, best, others, likeness, figures)
        if rival is None:
            true = index.figures[best].text
            note = f"it is {true}" if outcome == "rounded" else ""
            return bare._replace(
                outcome=outcome, note=note, passage=index.passages[best], true_text=true
            )
        break
    if rival is not None:
        return bare._replace(note=f'the evidence has "{index.figures[rival].text}" there')
    if _CALCULATED.search(sentence) and (calculation := index.calculation(figure, likeness)):
        return bare._replace(outcome="computed", note=calculation)
    if figure.unit == "th":
        return None
    near = sorted(index.of_unit[figure.unit], key=lambda n: -likeness[n])
    names = [*dict.fromkeys(f'"{index.figures[n].text}"' for n in near)][:3]
    note = "it stands nowhere in the evidence"
    return bare._replace(note=note + (f", which has {', '.join(names)}" if names else ""))


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
        self._of_amount: defaultdict[Fraction | None, list[int]] = defaultdict(list)
        self._of_word: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        self._texts = [" ".join(text.lower().split()) for text in texts]
        self._literals: dict[str, int | None] = {}
        for number, figure in enumerate(self.figures):
            self._of_amount[figure.amount].append(number)
            for key in {key for reading in figure.readings for key in _less_precise(reading)}:
                self._of_reading[key].append(number)
            for unit in {unit for unit, _ in figure.readings}:
                self.of_unit[unit].append(number)
            for word, nearness in figure.words.items():
                self._of_word[word].append((number, nearness))

    def literal(self, text: str) -> int | None:
        """The first passage that has a text as it is, apart from case, spaces and hyphens."""
        if text not in self._literals:
            low = re.sub(r"^\w+://|^v(?=\d)", "", text.lower()).rstrip("/")
            parts = filter(None, re.split(r"[\s_-]+|(?<=[a-z])(?=\d)", low))
            pattern = r"[\s_-]*".join(map(re.escape, parts))
            pattern = re.sub(r"\\\.x$", r"\\.[\\dx]", pattern)
            search = re.compile(rf"(?<![^\W_v]){pattern}(?!\w|\.\d)").search
            found = (number for number, lower in enumerate(self._texts) if search(lower))
            self._literals[text] = next(found, None)
        return self._literals[text]

    def _rarity(self, word: str) -> float:
        return log(1 + len(self.figures) / len(self._of_word[word]))

    def likeness(self, figure: Figure) -> defaultdict[int, float]:
        """How much each figure shares of the words beside another one: near and rare ones most."""
        shared: defaultdict[int, float] = defaultdict(float)
        for word, nearness in figure.words.items():
            if word in self._of_word:
                weight = nearness * self._rarity(word)
                for number, other in self._of_word[word]:
                    shared[number] += weight * other
        return shared

    def equal(self, figure: Figure, in_code: bool) -> tuple[list[int], list[int]]:
        """The figures that have the same value and may be meant, and those with another one."""
        keys = [*figure.readings]
        same = [number for key in keys for number in self._of_reading.get(key, ())]
        if figure.amount is not None and not figure.unit and (in_code or not figure.nouns):
            same += self._of_amount[figure.amount]
        others = set(self.of_unit[figure.unit]).difference(same)
        return [n for n in same if self._is_compatible(figure, self.figures[n])], sorted(others)

    def _is_compatible(self, figure: Figure, other: Figure) -> bool:
        if {figure.hedge, other.hedge} in _OPPOSITE:
            return False
        if figure.per and other.per and figure.per != other.per:
            return False
        is_count = figure.nouns and other.nouns and not figure.unit and not other.unit
        return not is_count or not (
            self.counted.intersection(figure.nouns) and other.words.keys().isdisjoint(figure.nouns)
        )

    def rounded(self, figure: Figure) -> tuple[list[int], list[int]]:
        """The figures that another one rounds, and those of its unit that it does not."""
        unit, value = figure.readings[0]
        fits, others = list[int](), list[int]()
        for number in self.of_unit[unit] if figure.amount else ():
            true = next(v for u, v in self.figures[number].readings if u == unit)
            (fits if _fits(figure, value, true) else others).append(number)
        return fits, others

    def rival(
        self, figure: Figure, best: int, others: Sequence[int], likeness: defaultdict[int, float],
        figures: Sequence[Figure],
    ) -> int | None:  # fmt: skip
        """The figure that the words of the draft point to, if it is not the one with its value."""
        known = [(near, word) for word, near in figure.words.items() if word in self._of_word]
        least = max(
            _MARGIN * likeness[best], _LEAST * sum(n * self._rarity(word) for n, word in known)
        )
        rival = max(others, key=lambda n: likeness[n], default=None)
        if rival is None or likeness[rival] <= least:
            return None
        # If the sentence states that figure, too, the words of both count.
        for other in figures:
            if other is not figure and {*other.readings} & {*self.figures[rival].readings}:
                its = self.likeness(other)
                if likeness[best] + its[rival] >= likeness[rival] + its[best]:
                    return None
        return rival

    def calculation(self, figure: Figure, likeness: defaultdict[int, float]) -> str:
        """The calculation of a figure from two of the evidence; "" without one."""
        unit, value = figure.readings[0]
        if not figure.amount or not isinstance(value, Fraction):
            return ""
        tolerance = abs(value / figure.amount * figure.step) / 2
        numbers = sorted(
            (n for n in likeness if self.figures[n].amount), key=lambda n: -likeness[n]
        )
        pool = [self.figures[number] for number in numbers[:_POOL]]
        for first, second in permutations(pool, 2):
            for result, is_exact, text in _calculations(first, second, unit):
                if result == value or (not is_exact and abs(result - value) <= tolerance):
                    return f"{text} = {figure.text}"
        return ""


def _calculations(first: Figure, second: Figure, unit: str) -> Iterator[tuple[Fraction, bool, str]]:
    """What two figures give in a unit, whether it must be exact, and the calculation."""
    (a_unit, a), (b_unit, b) = first.readings[0], second.readings[0]
    if not (isinstance(a, Fraction) and isinstance(b, Fraction)) or a == b or not b:
        return
    if a_unit == b_unit == unit:
        yield a + b, True, f"{first.text} + {second.text}"
        yield a - b, True, f"{first.text} − {second.text}"
    if a_unit == b_unit and unit == "%":
        yield 100 * a / b, False, f"{first.text} / {second.text}"
        yield 100 * abs(a - b) / b, False, f"|{first.text} − {second.text}| / {second.text}"
    if a_unit == b_unit and unit in ("", "x") and a > b:
        yield a / b, False, f"{first.text} / {second.text}"
    if not a_unit and b_unit == unit and 1 < a <= 100:
        yield a * b, True, f"{first.text} × {second.text}"


def _fits(figure: Figure, value: Reading, true: Reading) -> bool:
    """Whether a value is the true one, rounded as the draft says."""
    if not isinstance(value, Fraction) or not isinstance(true, Fraction) or value * true <= 0:
        return False
    assert figure.amount
    ratio, scale = value / true, value / figure.amount
    if figure.hedge in ("over", "under"):
        return (
            Fraction(2, 3) <= ratio < 1 if figure.hedge == "over" else 1 < ratio <= Fraction(5, 4)
        )
    is_near = abs(ratio - 1) <= (Fraction(1, 10) if figure.hedge else Fraction(1, 20))
    is_digits = abs(true - value) <= figure.step * scale / 2
    if figure.hedge == "about":
        return is_near or (is_digits and abs(ratio - 1) <= Fraction(1, 5))
    # A number without a hedge rounds a longer one: not 2019 to 2020, nor 49 to 50.
    is_longer = (true / scale).denominator > 1 or (abs(true / scale) >= 1000 and figure.step >= 100)
    return not figure.hedge and is_near and is_digits and is_longer


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
