"""Whether the figures of a draft stand in its evidence. Pure.

A figure is compared by its value, not by its notation (see ``text/figures/find.py``). What
stands next to a number counts as far as rules can tell:

- Units must be the same: "5 days" is not supported by "5 hours", "50%" not by "50". The evidence
  may have a bare number if it names the unit elsewhere, as tables do.
- "Every 14 days" is not supported by "within 14 days", but by "an interval of 14 days".
- A number that counts something is not supported by a number with a unit, nor by one that counts
  something else if the evidence has another number for the thing: "12 servers" is not supported by
  "9 servers for 12 people". Other nouns may be synonyms, and are not compared.
- A number that names something ("section 4") is not supported by "table 4" or "4 days".
- The draft may say less than the evidence: "May 2026" for "3 May 2026", a time without its zone, a
  file without its folders, a commit by its first seven characters. It may not say more.

Everything that the draft says is checked: headings without their section numbers, rows of tables,
inline code, and quotes, too. Blocks of code, questions, numbers of list items and citations are
not. A figure that was calculated from others, or rounded, stands nowhere, and is reported.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from heapq import merge
from itertools import islice

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import Finding, Span
from rolebundle.text.figures.find import find_figures
from rolebundle.text.figures.patterns import RECURRING
from rolebundle.text.figures.quantities import LANGUAGES, UNITS_BY_NAME
from rolebundle.text.figures.values import COUNTED, Reading, TextFigure, rate_of
from rolebundle.text.languages import latin_language
from rolebundle.text.words import language_of, stems_of
from rolebundle.verification.draft.findings import shorten, unchecked_language
from rolebundle.verification.draft.parse import Draft, DraftSentence

_MAX_NAMED = 3
"""How many figures of the evidence a finding names."""
_MAX_COMPARED = 100
"""With how many figures of the evidence a figure without support is compared."""
_CLOSE = Fraction(1, 20)
"""A figure within this part of another one is named as close to it."""
_SECTION_NUMBER = re.compile(r"\s*(?:\d+\.)*\d+[.)]?(?=\s)")
_CODE = ("```", "~~~")
# A name of one or two letters counts if it stands as a unit does: "(s)", "km/h", "in ms",
# "wait_ms", a cell of a table. The end of "it's", a variable, `min_age` and `min()` name no unit.
_NAMES = re.compile(
    r"(?:[(\[|/,_]|\bin)\s*([^\W\d_]{1,2})(?=\s*(?:[)\]|/,.;:=]|$))"
    r"|((?<![^\W\d_])[^\W\d_]{3,}(?![^\W\d]|\()|[%$€£¥])",
    re.MULTILINE,
)
_ANY_LABEL = frozenset(("#", "no", "number"))

Key = tuple[str, Hashable]


def check_figures(
    draft: Draft, passages: Sequence[Passage], cited: Mapping[int, Sequence[Passage]]
) -> list[Finding]:
    """One finding for each figure of the draft, and for each sentence that cannot be read.

    Args:
        draft: the parsed draft, or a part of it.
        passages: all passages of the evidence.
        cited: the passages that a sentence cites, by its number.

    Returns:
        ``figure_found``, ``should_cite`` (it fails if the sentence cites something else),
        ``unsupported_figure`` and ``unchecked_language``, in the order of the draft.
    """
    evidence = _Evidence()
    texts = draft.texts()
    citing = {citation.sentence for citation in draft.citations}
    default = latin_language(draft.text) or "en"
    findings = []
    for number, sentence in enumerate(draft.sentences):
        if not _is_checked(sentence):
            continue
        text = texts[number]
        language = language_of(text, default)
        if language not in LANGUAGES and sentence.has_content:
            span = Span(start=sentence.start, end=sentence.end)
            problem = f"numbers and dates in words cannot be read in this language ({language})"
            findings.append(unchecked_language("figures", span, text, problem))
        own = cited.get(number, ())
        citing_sentence = _Sentence(text, language, own, bool(own) or number in citing)
        for figure in find_figures(text, language):
            if figure.is_loose or _is_section_number(sentence, figure):
                continue
            span = Span(start=sentence.start + figure.start, end=sentence.start + figure.end)
            findings.append(_finding(figure, span, citing_sentence, passages, evidence))
    return findings


def _is_checked(sentence: DraftSentence) -> bool:
    """All but blocks of code and questions."""
    text = sentence.text.strip()
    return sentence.has_content or not (text.startswith(_CODE) or text.endswith("?"))


def _is_section_number(sentence: DraftSentence, figure: TextFigure) -> bool:
    if sentence.has_content:
        return False
    match = _SECTION_NUMBER.match(sentence.text)
    return match is not None and figure.end <= match.end()


@dataclass(frozen=True)
class _Sentence:
    """A sentence of the draft.

    Attributes:
        text: its text without citations.
        language: ISO 639-1 code.
        cited: the passages that it cites.
        has_citation: whether it has a citation, also one of an unknown passage.
    """

    text: str
    language: str
    cited: Sequence[Passage]
    has_citation: bool
    _shared: dict[str, int] = field(default_factory=dict, init=False)

    def nearest(
        self, supports: Sequence[tuple[TextFigure, Passage]], evidence: _Evidence
    ) -> tuple[TextFigure, Passage]:
        """The passage with most words of the sentence; the first one if several have as many."""
        if len(supports) == 1:
            return supports[0]
        return max(supports, key=lambda support: self._shared_words(support[1], evidence))

    def _shared_words(self, passage: Passage, evidence: _Evidence) -> int:
        if passage.chunk_id not in self._shared:
            self._shared[passage.chunk_id] = len(self._words & evidence.words_of(passage))
        return self._shared[passage.chunk_id]

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(stems_of(self.text, self.language).content)


def _finding(
    figure: TextFigure,
    span: Span,
    sentence: _Sentence,
    passages: Sequence[Passage],
    evidence: _Evidence,
) -> Finding:
    match, passage = next(_supports(figure, sentence.cited, evidence), (None, None))
    is_cited = match is not None
    if match is None and (supports := [*_supports(figure, passages, evidence)]):
        match, passage = sentence.nearest(supports, evidence)
    text = shorten(figure.text)
    if match is None or passage is None:
        near = evidence.similar(figure, sentence.cited or passages)
        remedy = "Use a figure of the evidence, or remove it."
        return Finding(
            check="figures", code="unsupported_figure", fails=True, span=span, text=text,
            note=_note(figure, near), remedy=remedy,
        )  # fmt: skip
    is_elsewhere = sentence.has_citation and not is_cited
    return Finding(
        check="figures",
        code="figure_found" if is_cited else "should_cite",
        fails=is_elsewhere,
        span=span,
        text=text,
        chunk_id=passage.chunk_id,
        locator=passage.locator,
        true_text=shorten(match.text),
        note="it does not stand in what the sentence cites" if is_elsewhere else None,
        remedy=None if is_cited else f"Cite {passage.locator}, if that is meant.",
    )


def _supports(
    figure: TextFigure, passages: Iterable[Passage], evidence: _Evidence
) -> Iterator[tuple[TextFigure, Passage]]:
    """The passages that support a figure, each with its figure."""
    for passage in passages:
        if match := evidence.of(passage).support(figure):
            yield match, passage


def _note(figure: TextFigure, near: Sequence[TextFigure]) -> str:
    if not near:
        return "it stands nowhere in the evidence"
    names = ", ".join(f'"{similar.text}"' for similar in near)
    if 0 < _distance(figure, near[0]) <= _CLOSE:
        return f"it stands nowhere in the evidence; close to it, but not equal: {names}"
    return f"it stands nowhere in the evidence, which has {names}"


def _distance(figure: TextFigure, candidate: TextFigure) -> Fraction:
    """The difference of two numbers in relation to the larger one; 1 for what is no number."""
    first, second = figure.value, candidate.value
    if not (isinstance(first, Fraction) and isinstance(second, Fraction)):
        return Fraction(1)
    if first == second:
        return Fraction(0)
    return min(abs(first - second) / max(abs(first), abs(second)), Fraction(1))


# -- evidence --------------------------------------------------------------------------------------


class _Evidence:
    """The figures and words of passages, which are read when they are first compared."""

    def __init__(self) -> None:
        self._indexes: dict[str, FigureIndex] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._by_kind: dict[tuple[str, ...], _FiguresByKind] = {}

    def of(self, passage: Passage) -> FigureIndex:
        index = self._indexes.get(passage.chunk_id)
        if index is None:
            index = self._indexes[passage.chunk_id] = evidence_of(passage)
        return index

    def similar(self, figure: TextFigure, passages: Sequence[Passage]) -> list[TextFigure]:
        """Up to three figures of the passages of the same kind and unit, the closest first."""
        key = tuple(passage.chunk_id for passage in passages)
        if key not in self._by_kind:
            self._by_kind[key] = _FiguresByKind(map(self.of, passages))
        return self._by_kind[key].similar(figure)

    def words_of(self, passage: Passage) -> frozenset[str]:
        """The stems of a passage with its title and headings."""
        words = self._words.get(passage.chunk_id)
        if words is None:
            text, declared = _text_of(passage), passage.document.language.partition("-")[0]
            language = language_of(text, declared if declared != "und" else "en")
            words = self._words[passage.chunk_id] = frozenset(stems_of(text, language).content)
        return words


class _FiguresByKind:
    """The figures of several passages by kind and unit. Numbers are in the order of their values.

    A draft may state as many figures as its evidence has, so one figure is not compared with all.
    """

    def __init__(self, indexes: Iterable[FigureIndex]) -> None:
        self._groups: defaultdict[tuple[str, str], list[TextFigure]] = defaultdict(list)
        distinct = {
            (figure.text, figure.nouns): figure for index in indexes for figure in index.figures
        }
        for figure in distinct.values():
            self._groups[figure.kind, figure.unit].append(figure)
        for (kind, _), group in self._groups.items():
            if kind in COUNTED:
                group.sort(key=_value_of)

    def similar(self, figure: TextFigure) -> list[TextFigure]:
        """Up to three figures of the same kind and unit, the closest first."""
        group = self._groups.get((figure.kind, figure.unit), [])
        near: Iterable[TextFigure] = group
        if figure.kind in COUNTED:
            place = bisect_left(group, _value_of(figure), key=_value_of)
            below = (group[n] for n in range(place - 1, -1, -1))
            above = (group[n] for n in range(place, len(group)))
            near = merge(below, above, key=lambda candidate: _distance(figure, candidate))
        found: dict[str, TextFigure] = {}
        for candidate in islice(near, _MAX_COMPARED):
            if not (figure.nouns and candidate.nouns) or figure.nouns & candidate.nouns:
                found.setdefault(candidate.text, candidate)
            if len(found) == _MAX_NAMED:
                break
        return [*found.values()]


def _value_of(figure: TextFigure) -> Fraction:
    assert isinstance(figure.value, Fraction)
    return figure.value


def evidence_of(passage: Passage) -> FigureIndex:
    """The figures of a passage, ready to be looked up."""
    declared = passage.document.language.partition("-")[0]
    return _evidence(_text_of(passage), declared if declared in LANGUAGES else "en")


def _text_of(passage: Passage) -> str:
    return "\n".join((passage.document.title, *passage.headings, passage.content))


@lru_cache(maxsize=1024)
def _evidence(text: str, declared: str) -> FigureIndex:
    # Cached, because the next draft often has much of the same evidence.
    return FigureIndex(text, latin_language(text) or declared)


class FigureIndex:
    """The figures of a passage with its title and headings, by what they support."""

    def __init__(self, text: str, language: str) -> None:
        self.figures = find_figures(text, language)
        self._text = text
        self._exact: dict[Key, TextFigure] = {}
        self._by_value: defaultdict[tuple[str, Hashable], list[TextFigure]] = defaultdict(list)
        self._by_count: defaultdict[Hashable, list[tuple[TextFigure, Reading]]] = defaultdict(list)
        self._counted: defaultdict[str, set[Hashable]] = defaultdict(set)
        self._years: set[Hashable] = set()
        self._named: frozenset[str] | None = None
        for figure in self.figures:
            for part in (figure, *figure.parts):
                self._index(part)

    def _index(self, figure: TextFigure) -> None:
        if figure.needs_all:
            values = frozenset(reading.value for reading in figure.readings)
            self._exact.setdefault(("ambiguous", values), figure)
            return
        for reading in figure.readings:
            if reading.kind not in COUNTED:
                for key in _less_precise(reading):
                    self._exact.setdefault(key, figure)
                continue
            if reading.unit:
                self._by_value[reading.unit, _ratio(reading.value)].append(figure)
            if reading.amount is not None:
                self._by_count[_ratio(reading.amount)].append((figure, reading))
        self._years.update(filter(None, map(_year_of, figure.readings)))
        for noun in figure.nouns if figure.kind in COUNTED else ():
            self._counted[noun].add(_ratio(figure.value))
        if figure.label and isinstance(figure.value, Fraction):
            self._exact.setdefault(("ordinal", int(figure.value)), figure)

    def support(self, figure: TextFigure) -> TextFigure | None:
        """The figure that supports another one, or ``None``."""
        if figure.needs_all:
            values = frozenset(reading.value for reading in figure.readings)
            if match := self._exact.get(("ambiguous", values)):
                return match
            matches = [self._exact.get(("date", value)) for value in values]
            return matches[0] if all(matches) else None
        for reading in figure.readings:
            match = (
                self._number(figure, reading)
                if reading.kind in COUNTED
                else self._first(_own_keys(figure, reading)) or self._without_year(reading)
            )
            if match:
                return match
        matches = [self.support(part) for part in figure.parts]
        return matches[0] if matches and all(matches) else None

    def _first(self, keys: Iterable[Key]) -> TextFigure | None:
        return next((self._exact[key] for key in keys if key in self._exact), None)

    def _without_year(self, reading: Reading) -> TextFigure | None:
        """A date without its year, if the whole passage is of that year."""
        year, value = _year_of(reading), reading.value
        if year is None or not isinstance(value, tuple) or self._years != {year}:
            return None
        return self._exact.get(("yearless", value[1:]))

    def _number(self, figure: TextFigure, reading: Reading) -> TextFigure | None:
        if reading.unit:
            for candidate in self._by_value.get((reading.unit, _ratio(reading.value)), ()):
                if self._has_rate(figure, candidate):
                    return candidate
        if reading.amount is None:
            return None
        for candidate, meaning in self._by_count.get(_ratio(reading.amount), ()):
            if not self._has_rate(figure, candidate):
                continue
            if reading.unit and not meaning.unit:
                if not (candidate.nouns or candidate.label) and reading.unit in self._names():
                    return candidate
            elif meaning.unit and not reading.unit:
                if not (figure.nouns or figure.label) and meaning.kind != "percent":
                    return candidate
            elif not reading.unit and self._counts_same(figure, candidate):
                return candidate
        return None

    def _counts_same(self, figure: TextFigure, candidate: TextFigure) -> bool:
        """Whether two bare numbers may count, or name, the same."""
        if figure.nouns & candidate.nouns:
            return True
        if figure.label and candidate.label:
            return _are_same_labels(figure.label, candidate.label)
        if figure.before and figure.before == candidate.before:
            return True
        if figure.label or candidate.label:
            return not (figure.nouns if candidate.label else candidate.nouns)
        if not (figure.nouns and candidate.nouns):
            return True
        return not any(noun in self._counted for noun in figure.nouns)

    def _has_rate(self, figure: TextFigure, candidate: TextFigure) -> bool:
        """Whether a rate is one in the evidence, or is named in it."""
        if not figure.per or figure.per == candidate.per:
            return True
        return not candidate.per and figure.per in self._names()

    def _names(self) -> frozenset[str]:
        """The dimensions and the rates whose units the text names."""
        if self._named is None:
            words = {match[1] or match[2] for match in _NAMES.finditer(self._text.lower())}
            units = [unit for word in words for unit in UNITS_BY_NAME.get(word, ())]
            rates = {rate for word in words if (rate := rate_of(word))}
            every = () if RECURRING.isdisjoint(words) else ("every",)
            self._named = frozenset({unit.dimension for unit in units} | rates).union(every)
        return self._named


def _ratio(value: Hashable) -> Hashable:
    """A fraction as two numbers, which are faster to look up."""
    return value.as_integer_ratio() if isinstance(value, Fraction) else value


def _year_of(reading: Reading) -> int | None:
    value = reading.value
    is_dated = reading.kind == "date" and isinstance(value, tuple) and isinstance(value[0], int)
    return value[0] if isinstance(value, tuple) and is_dated else None


def _are_same_labels(first: str, second: str) -> bool:
    """Labels may be abbreviated: "Section", "Sec."; "#" and "No." stand for any."""
    return first[:2] == second[:2] or not _ANY_LABEL.isdisjoint((first, second))


def _own_keys(figure: TextFigure, reading: Reading) -> Iterator[Key]:
    """The keys under which the evidence may have a reading."""
    yield reading.kind, reading.value
    if reading.kind == "url":
        yield "host", str(reading.value).partition("://")[2]
    elif reading.kind == "ordinal" and not figure.nouns:
        yield "day", reading.value  # "On the 9th".


def _less_precise(reading: Reading) -> Iterator[Key]:
    """The keys of what a figure of the evidence supports: itself, and what says less."""
    kind, value = reading.kind, reading.value
    yield kind, value
    if kind == "date" and isinstance(value, tuple):
        yield from _dates(value)
    elif kind == "time" and isinstance(value, tuple):
        yield kind, (value[0], "", *value[2:])
    elif not isinstance(value, str):
        return
    elif kind == "hash":
        for length in range(7, len(value)):
            yield kind, value[:length]
    elif kind == "url":
        _, separator, after_scheme = value.rpartition("://")
        yield kind, after_scheme
        yield kind, after_scheme.partition("/")[0]
        if not separator:
            yield "host", after_scheme
    elif kind == "address":
        yield kind, re.split(r"/|(?<=\.\d):|(?<=\.\d\d):|(?<=\.\d\d\d):", value)[0]
    elif kind == "path":
        path, _, line = value.partition(":") if not re.match(r"[a-z]:", value) else (value, "", "")
        parts = path.split("/")
        for first in range(len(parts)):
            name = "/".join(parts[first:])
            yield kind, name
            if line:
                yield kind, f"{name}:{line}"


def _dates(value: tuple[Hashable, ...]) -> Iterator[Key]:
    year, *month_and_day = value
    if isinstance(year, int):
        yield "date", (year, None, None)
    if len(month_and_day) == 2:
        month, day = month_and_day
        if year is None:
            yield "yearless", (month, day)
        yield "date", (year, month, None)
        yield "date", (None, month, day)
        yield "date", (None, month, None)
        if day is not None:
            yield "day", day
