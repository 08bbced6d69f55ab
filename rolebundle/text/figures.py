"""Figures in a text: numbers with units, dates, versions, addresses; cells of tables."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any
from unicodedata import numeric

from rolebundle.text.languages import latin_language
from rolebundle.text.stop_words import ENGLISH
from rolebundle.text.units import MINUTE, Units, units_of
from rolebundle.text.words import stem

Span = tuple[int, int]
_RULE = re.compile(r"\s*[|+]?\s*:?[-=]{2,}:?\s*(?:[|+\s]\s*:?[-=]{2,}:?\s*)*[|+]?\s*")


def tables_in(text: str) -> Iterator[tuple[list[list[Span]], bool]]:
    """The rows of each table, and whether it has a header. It has pipes, "=", tabs or commas."""
    rows, has_header, columns, position = list[list[Span]](), False, list[int](), 0
    for line in [*text.split("\n"), ""]:
        start, position = position, position + len(line) + 1
        if line.strip() and _RULE.fullmatch(line):
            has_header = has_header or len(rows) == 1
            if line.strip()[0] == "=" and not columns:
                columns = [match.start() for match in re.finditer("=+", line)]
            continue
        spans = _row(line, columns, len(rows[0]) if rows else 0)
        if len(spans) > 1:
            rows.append([(start + first, start + last) for first, last in spans])
            continue
        if len(rows) > 1:
            yield rows, has_header
        rows, has_header, columns = [], False, []


def _row(line: str, columns: list[int], width: int) -> list[Span]:
    """The cells of a line; empty if it is no row of a table."""
    if columns:
        edges = [first for first in columns if first < len(line)]
        return [*zip(edges, [*edges[1:], len(line)], strict=True)] if line.strip() else []
    mark = "|" if line.count("|") > 1 or (width and "|" in line) else "\t" if "\t" in line else ","
    if mark == "," and (re.search(r"[.;:]\s|, ", line) or width not in (0, line.count(",") + 1)):
        return []
    edges = [-1, *(match.start() for match in re.finditer(re.escape(mark), line)), len(line)]
    spans = [(first + 1, last) for first, last in pairwise(edges)]
    if mark == "|":
        spans = [
            span
            for span in spans
            if line[slice(*span)].strip() or (span[0] and span[1] < len(line))
        ]
    return spans


def headed_cells(
    text: str, table: tuple[list[list[Span]], bool]
) -> Iterator[tuple[int, int, str, str, str]]:
    """Each cell: where it stands, the headings of its column and row, and the rest of its row."""
    rows, has_header = table
    texts = [[text[first:last].strip() for first, last in row] for row in rows]
    has_header = has_header or not any(re.match(r"\W*\d", cell) for cell in texts[0])
    for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
        header = texts[0] if has_header and number else []
        for column, (first, last) in enumerate(row):
            heading = header[column] if column < len(header) else ""
            others = " ".join(cell for n, cell in enumerate(cells) if n not in (0, column))
            yield first, last, heading, cells[0] if column and header else "", others


Reading = tuple[str, Any]
"""A dimension and a value in its base unit: ("time", 90) in seconds, ("", 3) for a bare number,
("date", (2026, 5, None)), ("clock", 52200), ("version", "1.2"), ("name", "cve-2024-1")."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and where it stands: characters from ``start`` to ``end``.

    Attributes:
        readings: what it may mean, the most likely first.
        amount: the number before its unit; ``None`` if it is no number.
        step: what one unit of its last written digit is worth: 100,000 in "1.9 million".
        hedge: "about", "over", "under", "min", "max" or "every"; "" without.
        per: what it is a rate of: "time 1" in "5 MB/s"; "" if it is no rate.
        nouns: the stems of up to three words that follow a bare number.
        words: the stems beside it, each with its nearness from 1 down to 0.
        is_counting: whether it is a word for a number up to ten, without a unit.
    """

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    amount: Fraction | None = None
    step: Fraction = Fraction(1)
    hedge: str = ""
    per: str = ""
    nouns: tuple[str, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)
    is_counting: bool = False

    @property
    def unit(self) -> str:
        """The dimension of the most likely reading."""
        return self.readings[0][0]


def find_figures(text: str) -> list[Figure]:
    """The figures of a text in their order. Ordinals in words are none."""
    has_comma = (latin_language(text) or "en") != "en"
    figures: list[Figure] = []
    position = 0
    while match := _FIGURE.search(text, position):
        figure = _read(match, text, has_comma)
        position = max(figure.end if figure else 0, match.start() + 1)
        figures += [figure] if figure else []
    figures = _with_shared_units(figures, text)
    context = _Context(text, figures)
    return [context.of(figure) for figure in figures]


# -- notations -------------------------------------------------------------------------------------


def _numbered(names: str, first: int) -> dict[str, int]:
    groups = enumerate(names.split("/"), first)
    return {name: number for number, group in groups for name in group.split()}


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_SMALL = _numbered(
    "zero/one/two/three/four/five/six/seven/eight/nine/ten/eleven/twelve/thirteen/fourteen/"
    "fifteen/sixteen/seventeen/eighteen/nineteen/twenty", 0,
) | {
    word: 10 * number
    for word, number in _numbered("thirty/forty/fifty/sixty/seventy/eighty/ninety", 3).items()
}  # fmt: skip
_LARGE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "dozen": 12}
_LARGE |= {"trillion": 10**12, "k": 10**3, "bn": 10**9, "mn": 10**6, "mio": 10**6, "mrd": 10**9}
_LETTERS = {"M": 10**6, "G": 10**9, "T": 10**12}
_SHARES = _numbered("half halves/third/quarter fourth/fifth/sixth/seventh/eighth/ninth/tenth", 2)
_MONTHS = _numbered(
    "january jan/february feb/march mar/april apr/may/june jun/july jul/august aug/"
    "september sept sep/october oct/november nov/december dec", 1,
)  # fmt: skip
_GAP = r"[ \u00a0\u202f]"
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d,])(?:\.\d+)?|\d{1,3}(?:[\u00a0\u202f '’]\d{3})+(?!\d)"
    r"(?:[.,]\d+)?|\d{1,3}(?:\.\d{3})+,\d+|(?<!,)\d+,\d+(?![,\d]|\.\d)|\d+(?:\.\d+)?)"
)
_WORD = rf"(?:{_either(_SMALL)})"
_MONTH = rf"(?P<month>{_either(_MONTHS)})\b\.?"
_ALONE = r"(?<![\w.])"
_PATTERNS = {
    "address": r"(?:https?|ftp)://[^\s<>\"`|)\]]+|www\.[^\s<>\"`|)\]]+|[\w.+-]+@[\w-]+\.\w[\w.]*",
    "iso": r"(?<![\w.-])(?P<year>\d{4})[-/](?P<mm>\d\d?)(?:[-/](?P<day>\d\d?))?(?=T\d|[^\w/-]|$)",
    "numeric": r"(?<![\w./-])(?P<day>\d\d?)[./](?P<mm>\d\d?)[./](?P<year>\d{4})(?![\w/]|\.\d)",
    "clock": rf"(?:(?<![\w.:])|(?<=\dT))(?P<hour>\d\d?)"
    r"(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?"
    rf"(?:{_GAP}?(?P<half>[ap])\.?m\b\.?|(?<=:\d\d)(?:Z|{_GAP}?h\b)?)(?![\w:])",
    "name": rf"{_ALONE}(?:(?:\d+\.){{2,}}\d+\b(?!,\d)(?:[-+/]?\w+)*|\d+(?:\.\d+)*\.x\b"
    r"|(?=[\da-f]*\d)(?=\d*[a-f])[\da-f]{7,}\b"
    r"|(?!(?:mid|pre|post|top|under|over|sub)-\d)(?=[\w./-]*\d)[^\W\d]\w*(?:[-./]\w+)*)",
    "day_month": rf"{_ALONE}(?P<day>\d\d?)(?:st|nd|rd|th|\.)? (?:of )?{_MONTH}"
    r"(?:,? (?P<year>\d{4})\b)?",
    "month_day": rf"\b{_MONTH} (?P<day>\d\d?)(?:st|nd|rd|th)?\b(?![.:]?\d|,\d)"
    r"(?:,? (?P<year>\d{4})\b)?",
    "month_year": rf"\b{_MONTH},? (?P<year>\d{{4}})\b",
    "month_name": r"(?<=in )(?P<may>may)\b|\b(?P<month>"
    rf"{_either(name for name in _MONTHS if len(name) > 4)})\b",
    "share": rf"\b(?P<top>a|{_WORD}|\d+)[- ](?P<part>{_either(_SHARES)})s?\b"
    r"(?= (?:of|an?)\b|[.,;)]|$)"
    r"|(?<!first )(?<!second )(?<!other )(?P<half>half)(?= (?:of|the|an?|all|dozen)\b)"
    rf"|\b(?P<some>one|two|three|\d)(?: in (?={_WORD}|\d\d?0?\b(?!\.\d))|/(?=\d+ of\b))"
    rf"(?P<all>{_WORD}|\d+)\b(?! ?(?:%|(?:second|minute|hour|day|week|month|year)s?\b))",
    "hex": r"\b0x(?P<hex>[\da-f]+)\b",
    "ordinal": rf"{_ALONE}(?P<ordinal>\d+)(?:st|nd|rd|th)\b",
    "number": r"(?P<sign>(?<![\w)\].])-|−|\bminus )?(?:(?:US|HK|C|A)?(?P<currency>[$€£¥₹])"
    r"|\b(?P<code>USD|EUR|GBP|CHF|JPY|INR) )?"
    rf"(?:(?<![\w.%])|(?<=\.\.)|(?<=\dx))(?P<digits>{_DIGITS})(?P<vulgar>[½¼¾])?",
    "word": rf"\b(?P<word>a(?= (?:hundred|thousand|million|billion|dozen)\b)|{_WORD})\b"
    r"(?!-(?:first|second|third|\w+th)\b)",
}
_LONGEST = 60
"""A longer number is no figure."""
_EACH = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}
_FIGURE = re.compile(
    "|".join(f"(?P<{kind}>{re.sub('[?]P<.*?>', '', text)})" for kind, text in _PATTERNS.items()),
    re.IGNORECASE,
)
_MORE_WORDS = re.compile(
    rf"(?:[- ]|(?<=hundred) and |(?<=thousand) and )"
    rf"({_WORD}|hundred|thousand|million|billion|dozen)\b",
    re.IGNORECASE,
)
_SCALE = re.compile(rf"[- \u00a0]?((?i:{_either(_LARGE)}))\b\.?|([mMGT])(?!\w)")
_UNIT = re.compile(
    rf"(?:{_GAP}|-)?(?:(?:more|additional|extra|further|full|whole|consecutive|calendar|working|"
    r"business|US|of an?|an?) )?(square |cubic )?(per ?cent\b|percentage points?|[^\W\d_²³]+"
    r"|[°º]?[CF]\b|×(?! ?\d)|[%‰$€£¥₹¢°℃℉])([²³]?)(?: (celsius|fahrenheit)|(?![^\W\d]))",
    re.IGNORECASE,
)
_COMPOUND = re.compile(rf"(?:,? (?:and )?|,)?(\d+(?:\.\d+)?)(?:{_GAP}|-)?([^\W\d_]+)(?![^\W])")
_RATE = re.compile(
    rf"{_GAP}?/{_GAP}?([^\W\d]+)| (?:per|pro) ([^\W\d]+)"
    r"| (?:an?|each|every) (second|minute|hour|day|week|month|year)\b"
)
_NAMED = re.compile(r"(?:\w ?[A-Z]\w*|^[A-Z]\w+|\b[Vv]ersions?|\b[Rr]eleases?)(?: [<>=~^]=?)? $")
_JOINT = re.compile(r"\s?(?:-|–|—|to|and|or|by|x|×|,|, and|, or|/)\s?")
_HEDGES = {
    "every": r"every|each",
    "max": r"at most|up to|within|no more than|not more than|maximum(?: of)?|no later than|<=|≤",
    "min": r"at least|no less than|no fewer than|not less than|minimum(?: of)?|>=|≥",
    "over": r"more than|over|above|exceed(?:s|ing|ed)?|greater than|longer than|>",
    "under": r"less than|fewer than|under|below|almost|nearly|close to|just short of|<",
    "about": r"about|around|roughly|approximately|approx\.?|circa|ca\.?|some|~|≈",
}
_HEDGE = re.compile(
    "|".join(rf"(?<!\w)(?P<{kind}>{words})" for kind, words in _HEDGES.items()),
    re.IGNORECASE,
)


def _read(match: re.Match[str], text: str, has_comma: bool) -> Figure | None:
    """The figure that begins at a match; ``None`` if it is none after all."""
    kind, start = match.lastgroup or "", match.start()
    own = _EACH[kind].match(text, start)
    assert own is not None
    part = {name: value for name, value in own.groupdict().items() if value}
    found, readings = own[0], list[Reading]()
    if len(found) > _LONGEST and "name" not in kind:
        return None
    if kind in ("address", "name"):
        found = found.rstrip(".,;:'-")
        low = found.lower().removeprefix("v") if re.match(r"v?\d", found.lower()) else found.lower()
        readings = [("version" if low[0].isdigit() and "." in low else "name", low)]
    elif kind == "clock":
        hour, minute, second = (int(part.get(key, 0)) for key in ("hour", "minute", "second"))
        seconds = Fraction(3600 * hour + 60 * minute + second)
        if half := part.get("half"):
            readings = [("clock", seconds % 43200 + 43200 * (half in "pP"))]
        else:
            readings = [
                ("clock", seconds),
                *([("clock", seconds + 43200)] if seconds < 46800 else []),
                ("time", seconds),
            ]
    elif kind == "hex":
        value = Fraction(int(part["hex"], 16))
        return Figure(start, own.end(), found, (("", value),), value)
    elif kind == "ordinal":
        readings = [("th", Fraction(part["ordinal"]))]
    elif kind not in ("share", "number", "word"):
        readings = _dates(kind, part, found)
    else:
        return _number(own, part, text, has_comma)
    return Figure(start, start + len(found), found, tuple(readings)) if readings else None


def _dates(kind: str, part: dict[str, str], found: str) -> list[Reading]:
    """The dates that a notation may mean: day and month of a numeric one may be swapped."""
    if kind == "month_name" and not found[0].isupper():
        return []
    name = part.get("month", part.get("may", "")).lower()
    year, month, day = (int(part.get(key, 0)) or None for key in ("year", "mm", "day"))
    dates = [(year, _MONTHS.get(name, month), day)]
    dates += [(year, day, month)] if kind == "numeric" else []
    return [("date", d) for d in dates if 1 <= (d[1] or 1) <= 12 and 1 <= (d[2] or 1) <= 31]


def _number(own: re.Match[str], part: dict[str, str], text: str, has_comma: bool) -> Figure | None:
    """A number with its scale, its unit and what it is a rate of."""
    start, end, step, units = own.start(), own.end(), Fraction(1), Units()
    is_counting = False
    readings: list[Reading]
    if "digits" in part:
        values, step = _values(part["digits"], has_comma)
        values[0] += Fraction(numeric(part["vulgar"])) if "vulgar" in part else 0
        units = units_of(part.get("currency") or part.get("code") or "")
    elif "word" in part:
        value, end = _words(text, start, end)
        values, is_counting = [value], value <= 10
    else:
        share, is_measured = _share(part, text, end)
        if share >= 1:
            return None
        if not is_measured:
            readings = [("%", 100 * share), ("", share)]
            return Figure(start, end, own[0], tuple(readings), 100 * share)
        values, end = [share], end + 2 * text.startswith(" a dozen", end)
    values = [-value for value in values] if "sign" in part else values
    factor, end = _scale(text, end, is_money=bool(units))
    values, step = [value * factor for value in values], step * factor
    if not units:
        units, end = _unit_after(text, end)
        if not units and "digits" in part and re.match(r"(?!x\d)[^\W\d_]", text[end : end + 2]):
            whole = re.compile(r"[\w.]*\w").match(text, start)
            return whole and Figure(start, whole.end(), whole[0], (("name", whole[0].lower()),))
    readings = [(dimension, value * factor) for dimension, factor in units for value in values]
    if not units:
        readings = [("", value) for value in values]
    elif text[end - 1] == "m" and text[end - 2].isdigit():
        readings += [("time", values[0] * 60)]
    readings, end = _compound(readings, units, text, end)
    per = ""
    if rate := _RATE.match(text, end):
        name, end = next(filter(None, rate.groups())), rate.end()
        per = " ".join(map(str, units_of(name)[0])) if units_of(name) else stem(name.lower())
    if "." in part.get("digits", "") and end == own.end() and _NAMED.search(text[:start]):
        readings.insert(0, ("version", own[0]))
    return Figure(
        start, end, text[start:end], tuple(readings), values[0], step, per=per,
        is_counting=is_counting and not units,
    )  # fmt: skip


def _compound(
    readings: list[Reading], units: Units, text: str, end: int
) -> tuple[list[Reading], int]:
    """The readings with the smaller units that follow, and their end: "2 hours 30 minutes"."""
    while units and (more := _COMPOUND.match(text, end)):
        parts = units_of(more[2]) + (MINUTE if more[2] == "m" else [])
        smaller = [unit for unit in parts if unit[0] == units[0][0] and unit[1] < units[0][1]]
        if not smaller:
            break
        readings = [
            (unit, value + Fraction(more[1]) * smaller[0][1]) for unit, value in readings[:1]
        ]
        units, end = smaller, more.end()
    return readings, end


def _share(part: dict[str, str], text: str, end: int) -> tuple[Fraction, bool]:
    """The share that words name, and whether it is one of a unit: "half an hour"."""
    words = part.get("top") or part.get("some", "one"), part.get("all", "")
    top, bottom = (int(word) if word.isdecimal() else _SMALL.get(word.lower(), 1) for word in words)
    named = _SHARES.get(part.get("part", part.get("half", "")).lower())
    is_of_one = re.compile(r" (?:of )?an? ").match(text, end) is not None
    is_measured = bool(_unit_after(text, end)[0]) or text.startswith(" a dozen", end)
    return Fraction(top, named or bottom or 1), is_of_one and is_measured


def _scale(text: str, end: int, *, is_money: bool) -> tuple[int, int]:
    """What scale words multiply with, and their end."""
    product = 1
    while scale := _SCALE.match(text, end):
        name = scale[1] or scale[2]
        factor = (
            10**6 if name == "m" and is_money else _LETTERS.get(name) or _LARGE.get(name.lower())
        )
        if factor is None:
            break
        product, end = product * factor, scale.end()
    return product, end


def _values(digits: str, has_comma: bool) -> tuple[list[Fraction], Fraction]:
    """What digits may mean, and what one unit of the last digit is worth."""
    plain = re.sub(r"[\u00a0\u202f '’]", "", digits)
    if re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", plain):
        plain = plain.replace(".", "")
    plain = plain.replace(",", ".")
    plain = plain if plain.count(".") < 2 else plain.replace(".", "")
    whole, _, decimals = plain.partition(".")
    step = Fraction(10) ** (-len(decimals) if decimals else len(whole) - len(whole.rstrip("0")))
    values = [Fraction(plain)]
    if has_comma and re.fullmatch(r"\d{1,3}[.,]\d{3}", digits):
        values += [Fraction(re.sub("[.,]", mark, digits)) for mark in ("", ".")]
    return values, step


def _words(text: str, start: int, end: int) -> tuple[Fraction, int]:
    """The value of a number in words, and its end: "twelve hundred", "two hundred and five"."""
    total, current = 0, _SMALL.get(text[start:end].lower(), 1)
    while more := _MORE_WORDS.match(text, end):
        value = _SMALL.get(more[1].lower())
        if value is None:
            scale = _LARGE[more[1].lower()]
            total, current = (
                (total, current * 100) if scale == 100 else (total + current * scale, 0)
            )
        elif current % 100 == 0 or (current % 10 == 0 and current % 100 >= 20 and value < 10):
            current += value
        elif 13 <= current <= 20 and value >= 10:
            current = 100 * current + value
        else:
            break
        end = more.end()
    return Fraction(total + current), end


def _unit_after(text: str, end: int) -> tuple[Units, int]:
    """The unit that follows a number, and its end; the number's end if there is none."""
    match = _UNIT.match(text, end)
    if match is None:
        return [], end
    name = {"per": "%", "º": "°"}.get(match[2][: 3 if "cent" in match[2] else 1].lower(), match[2])
    name = (
        "pp"
        if match[2].startswith("percentage")
        else f"°{match[4][0].upper()}"
        if match[4]
        else name
    )
    units = units_of(name)
    if power := match[1] or match[3]:
        exponent = 3 if power in ("cubic ", "³") else 2
        units = [(f"{unit}{exponent}", factor**exponent) for unit, factor in units]
    return (units, match.end()) if units else ([], end)


def _with_shared_units(figures: list[Figure], text: str) -> list[Figure]:
    """Give the first numbers of a range or list the unit of the last: "5 to 10 minutes"."""
    shared = list(figures)
    for n in range(len(figures) - 2, -1, -1):
        figure, following = shared[n], shared[n + 1]
        amount, (unit, value) = figure.amount, following.readings[0]
        if amount is None or figure.unit not in ("", unit):
            continue
        between = text[figure.end : following.start]
        if not _JOINT.fullmatch(between):
            continue
        scale = _SCALE.search(following.text)
        factor = (
            _LETTERS.get(scale[2] or "") or _LARGE.get((scale[1] or "").lower()) if scale else None
        )
        readings: tuple[Reading, ...] = ()
        if factor and amount < 1000:
            readings = (
                tuple((unit, value * factor) for _, value in figure.readings) + figure.readings
            )
        elif isinstance(value, tuple) and value[2] and figure.text.isdecimal() and amount <= 31:
            readings = (("date", (value[0], value[1], int(amount))),)
        elif not figure.unit and unit and following.amount and not 1900 <= amount <= 2100:
            readings = tuple((u, v / following.amount * amount) for u, v in following.readings)
        if readings:
            is_counting = figure.is_counting and not readings[0][0]
            shared[n] = replace(
                figure, readings=readings, per=following.per, is_counting=is_counting
            )
    return shared


# -- context ---------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\d+(?:[,.]\d+)+|[^\W_]+|[,;:()—.!?|\n]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COST = {",": 1.0, ";": 2.0, ":": 0.5, "(": 1.0, ")": 1.0, "—": 2.0, "|": 1.0, "\n": 1.5}
_COST |= dict.fromkeys("and or while whereas but versus vs".split(), 1.5)
_REACH = 15.0
_NAMED_UNIT = re.compile(
    r"[(\[]\s*(?:in )?([^\W\d_]{1,14}|[%°$€£¥][CF]?)\s*[)\]]|\bin ([^\W\d_]{1,14})\b"
    r"|[a-z]_([a-z]{1,12})\b|[a-z](M[sS]|Secs?|Seconds|Minutes|Hours|Days|Bytes|MB|KB)\b"
    r"|(?<![\w/])([^\W\d_]{3,14})\b|([%$€£¥])"
)


class _Context:
    """The words of a text and its tables, by place.

    Words of prose have a distance: a word is 1, a function word 0.3, the end of a sentence 5.
    """

    def __init__(self, text: str, figures: list[Figure]) -> None:
        self._text = text
        measured = [
            (figure.unit, figure.readings[0][1] / figure.amount)
            for figure in figures
            if figure.unit and figure.amount and isinstance(figure.readings[0][1], Fraction)
        ]
        self._units = [*dict.fromkeys(measured + _named_units(text))]
        self._cells = [cell for table in tables_in(text) for cell in headed_cells(text, table)]
        self._starts: list[int] = []
        self._tokens: list[tuple[tuple[str, ...], float, float]] = []
        place, number = 0.0, 0
        for match in _TOKEN.finditer(text):
            token, before = match[0].lower(), place
            while number < len(figures) and figures[number].end <= match.start():
                number += 1
            is_measure = (
                number < len(figures)
                and figures[number].start <= match.start()
                and figures[number].unit not in ("", "name", "date")
            )
            stems: tuple[str, ...] = ()
            if token in ".!?" and not text[match.end() : match.end() + 1].strip():
                place += 5.0
            elif token in _COST or not token[0].isalnum():
                place += _COST.get(token, 0.0)
            elif token in ENGLISH:
                place += 0.3
            else:
                place += 1.0
                is_word = not is_measure and (len(token) > 2 or not token.isdecimal())
                stems = stems_of_name(match[0]) if is_word else ()
            self._starts.append(match.start())
            self._tokens.append((stems, before, place))

    def of(self, figure: Figure) -> Figure:
        """A figure with its hedge and the words beside it; in a table, with its headings' unit."""
        text = self._text
        before = text[max(0, figure.start - 20) : figure.start].rstrip()
        before = re.sub(r"\s(?:the|an?)$", "", before)
        hedge = next((m for m in _HEDGE.finditer(before) if m.end() == len(before)), None)
        nouns = () if figure.unit else self._nouns(figure.end)
        readings, units = figure.readings, Units()
        cell = next((cell for cell in self._cells if cell[0] <= figure.start < cell[1]), None)
        is_bare = figure.amount is not None and not figure.unit
        if cell and (cell[2] or cell[3]):
            _, _, column, row, others = cell
            words = dict.fromkeys(_stems(others), 0.3)
            words |= dict.fromkeys(filter(str.isalpha, _stems(text[cell[0] : cell[1]])), 0.7)
            words |= dict.fromkeys(_stems(f"{row} {column}"), 1.0)
            units = _named_units(column) or _named_units(row) or units_of(others) if is_bare else []
        else:
            words = self._near(figure)
            units = self._units if is_bare and not nouns else []
        measured = tuple(
            (unit, figure.amount * factor) for unit, factor in units if figure.amount is not None
        )
        readings = measured + readings if cell else readings + measured
        return replace(
            figure,
            hedge=(hedge.lastgroup or "") if hedge else "",
            nouns=nouns,
            words=words,
            readings=readings,
        )

    def _near(self, figure: Figure) -> dict[str, float]:
        first, last = (bisect_left(self._starts, place) for place in (figure.start, figure.end))
        words: dict[str, float] = {}
        before, after = self._tokens[max(0, first - 60) : first], self._tokens[last : last + 60]
        distances = [(stems, before[-1][2] - end) for stems, _, end in before]
        distances += [(stems, start - after[0][1]) for stems, start, _ in after]
        for stems, distance in distances:
            for name in stems if distance <= _REACH else ():
                words[name] = max(words.get(name, 0.0), 1 / (1 + distance))
        return words

    def _nouns(self, end: int) -> tuple[str, ...]:
        nouns: list[str] = []
        while len(nouns) < 3 and (match := re.compile(r"[ -]([^\W\d_]+)").match(self._text, end)):
            if match[1].lower() in ENGLISH:
                break
            nouns += stems_of_name(match[1])
            end = match.end()
        return tuple(nouns)


@lru_cache(maxsize=16_384)
def stems_of_name(name: str) -> tuple[str, ...]:
    """The stems of the words of a name: of `maxIdleTime`, max, idl and time."""
    parts = _CAMEL.sub(" ", name.replace(",", "")).split()
    return tuple(stem(part.lower()) for part in parts)


def _stems(text: str) -> list[str]:
    words = [
        word for word in re.findall(r"\d+(?:[,.]\d+)+|[^\W_]+", text) if word.lower() not in ENGLISH
    ]
    return [name for word in words for name in stems_of_name(word)]


def _named_units(text: str) -> Units:
    """The units that a heading or a sentence names without a number."""
    names = (next(filter(None, match.groups())) for match in _NAMED_UNIT.finditer(text))
    return [unit for name in names for unit in units_of(name)[:1]]
