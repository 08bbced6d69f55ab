"""Figures in a text: numbers with units, dates, versions, addresses; cells of tables."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any
from unicodedata import numeric

from rolebundle.resources import data_file, expanded
from rolebundle.text.languages import ENGLISH_STOP_WORDS, STOP_WORDS, latin_language
from rolebundle.text.tables import Cell, cells_in
from rolebundle.text.words import stem

Reading = tuple[str, Any]
"""A dimension and a value in its base unit: ("time", 90) in seconds, ("", 3) for a bare number,
("date", (2026, 5, None)), ("version", "1.2"), ("name", "cve-2024-1")."""
Units = list[tuple[str, Fraction]]

_CURRENCIES = ("$", "€", "£", "¥", "₹", "franc")
_POWERS = str.maketrans("23", "²³")
_SIGNED = ("°C", "°F", "°", "version")
_LONG = 4
"""Two equal numbers with this many digits, without zeros at the end, are no coincidence."""

_TABLES = data_file(__file__, "figures.toml")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and where it stands: characters from ``start`` to ``end``.

    Attributes:
        readings: what it may mean, the most likely first.
        amount: the number before its unit; ``None`` if it is no number.
        step: what one unit of its last written digit is worth: 100,000 in "1.9 million".
        per: what it is a rate of: "time 1" in "5 MB/s"; "" if it is no rate.
        rate: the words for that which follow what is counted: " cells per batch".
        language: of the text that a number stands in.
        nouns: the stems of up to three words that follow a bare number.
        label: the stem of the content word right before it: "flat 7".
        words: the stems of its sentence; in a table, of its cell and headings.
        near: the stems of the part of the sentence that is about this figure, and not about the one
            before or after it.
        shared: the stems of its sentence before the first figure, which may be about all of them.
        bound: "least" or "most" if words beside it make it a limit; "" if they do not.
        bound_start: where these words begin.
        cell: the cell of a table that it stands in.
        is_counting: whether it is a word for a number up to twelve, without a unit.
    """

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    amount: Fraction | None = None
    step: Fraction = Fraction(1)
    per: str = ""
    rate: str = ""
    language: str = ""
    nouns: tuple[str, ...] = ()
    label: str = ""
    words: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    bound: str = ""
    bound_start: int = 0
    cell: Cell | None = None
    is_counting: bool = False

    @property
    def unit(self) -> str:
        """The dimension of the most likely reading."""
        return self.readings[0][0]

    @property
    def dates(self) -> list[Any]:
        """Its readings as a date: year, month and day, or ``None`` for each."""
        return [value for unit, value in self.readings if unit == "date"]

    @property
    def kind(self) -> str:
        """The dimension; months, years and working days are times here, though no seconds."""
        return "time" if self.unit in ("month", "working time", "working month") else self.unit


def find_figures(text: str) -> list[Figure]:
    """The figures of a text in their order. Ordinals in words do not count."""
    language = latin_language(text) or "en"
    figures: list[Figure] = []
    position = 0
    while match := _FIGURE.search(text, position):
        is_long = len(match[0]) > _LONGEST and match.lastgroup != "name"
        figure = None if is_long else _read(match, text, language)
        position = match.end() if is_long else max(figure.end if figure else 0, match.start() + 1)
        figures += [figure] if figure else []
    return _in_context(_with_shared_units(figures, text), text)


# -- units -----------------------------------------------------------------------------------------


@cache
def _units() -> dict[str, Units]:
    units: dict[str, Units] = {}

    def add(dimension: str, factor: Fraction, names: Iterable[str]) -> None:
        for name in names:
            of_name = units.setdefault(name, [])
            of_name += [] if (dimension, factor) in of_name else [(dimension, factor)]
            if len(name) > 2 and name.islower():
                units.setdefault(f"{name}s", of_name)
            if len(name) > 1:
                units.setdefault(name.lower(), of_name)

    tables = _TABLES["units"]
    for line in tables["others"]:
        dimension, factor, *names = line.split()
        add(dimension.replace("_", " "), Fraction(factor), names)
    for line in tables["with_prefixes"]:
        dimension, factor, sign, word = line.split()
        add(dimension, Fraction(factor), (sign, word))
        for prefix in tables["prefixes"]:
            power, short, long = prefix.split()
            names = [short + sign, long + word]
            add(dimension, Fraction(factor) * Fraction(10) ** int(power), names)
    for line in tables["sizes"]:
        exponent, *names = line.split()
        for base in (1000, 1024):
            add("byte", Fraction(base) ** int(exponent), names)
    return units


def units_of(name: str) -> Units:
    """The dimensions and factors of a unit's name or symbol; empty if it is not known."""
    units, name = _units(), name.translate(_POWERS)
    return units.get(name) or (units.get(name.lower(), []) if len(name) > 1 else [])


# -- notations -------------------------------------------------------------------------------------


def _numbered(table: str) -> dict[str, int]:
    """The words of a table with their numbers."""
    rows = _TABLES[table].items()
    return {word: int(number) for number, words in rows for word in words.split()}


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_SMALL, _LARGE, _MONTHS, _FRACTIONS = map(_numbered, ("small", "large", "months", "fractions"))
_FEASTS = {name: day for day, names in _TABLES["feasts"].items() for name in names}
_LETTERS = {"M": 10**6, "G": 10**9, "T": 10**12}
_SPOKEN = {unit: re.compile(words, re.IGNORECASE) for unit, words in _TABLES["spoken"].items()}
_WORDS = _TABLES["words"] | {
    "spoken": "|".join(_TABLES["spoken"].values()),
    "small": _either(_SMALL),
    "months": _either(_MONTHS),
    "fractions": _either(_FRACTIONS),
    "feasts": _either(_FEASTS).replace("'", "['’]"),
}
_GAP = expanded("%gap%", _WORDS)


def _expressions(table: str) -> dict[str, str]:
    """The expressions of a table, with what stands for `%name%`."""
    return {name: expanded(pieces, _WORDS) for name, pieces in _TABLES[table].items()}


_PATTERNS = _expressions("figures")
_BESIDE = {name: re.compile(text, re.IGNORECASE) for name, text in _expressions("beside").items()}
_LONGEST = 60
"""A longer number is no figure."""
_EACH = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}
_FIGURE = re.compile(
    "|".join(f"(?P<{kind}>{re.sub('[?]P<.*?>', '', text)})" for kind, text in _PATTERNS.items()),
    re.IGNORECASE,
)
_SCALE = re.compile(rf"(?:-|{_GAP})?((?i:{_either(_LARGE)}))\b\.?|([mMGT])(?!\w)")
_NAMED = re.compile(
    r"(?:\w ?[A-Z]\w*|^[A-Z]\w+|\b[Vv]ersions?|\b[Rr]eleases?)(?: [<>=~^]=?)?\s{1,40}$"
)


def _read(match: re.Match[str], text: str, language: str) -> Figure | None:
    """The figure that begins at a match; ``None`` if the match turns out not to be one."""
    kind, start = match.lastgroup or "", match.start()
    own = _EACH[kind].match(text, start)
    assert own is not None
    part = {name: value for name, value in own.groupdict().items() if value}
    found, readings = own[0], list[Reading]()
    if kind in ("address", "name"):
        found = found.rstrip(".,;:'-")
        low = found.lower().removeprefix("v") if re.match(r"v?\d", found.lower()) else found.lower()
        readings = [("version" if low[0].isdigit() and "." in low else "name", low)]
        if re.fullmatch(r"\d+\.x", low):
            readings.insert(0, ("", Fraction(low[:-2])))
    elif kind == "clock":
        past = (part.get(name) for name in ("minute", "past", "mm", "after", "of_hour"))
        minutes = int(part["hour"]) * 60 + int(next(filter(None, past), 0))
        is_late = part.get("noon", "").lower() == "p"
        halves = (minutes % 720 + 720 * is_late,) if "noon" in part else (minutes, minutes + 720)
        readings = [("clock", Fraction(minutes)) for minutes in halves]
        readings += [("time", Fraction(60 * minutes))] if "of_hour" in part else []
    elif kind == "part_hour":
        readings = _part_of_hour(part, language)
    elif kind == "spoken":
        name = next(n for n, words in _SPOKEN.items() if words.fullmatch(text, start, own.end()))
        unit, _, number = name.partition(" ")
        return Figure(start, own.end(), found, ((unit, Fraction(number)),), Fraction(number))
    elif kind == "midday":
        readings = [("clock", Fraction(12 * 60))]
    elif kind == "twice":
        twice = (("x", Fraction(2)),)
        return Figure(start, own.end(), found, twice, Fraction(2), is_counting=True)
    elif kind == "share":
        percent = Fraction(100 * _SMALL[part["parts"].lower()], _FRACTIONS[part["of"].lower()])
        return Figure(start, own.end(), found, (("%", percent),), percent)
    elif kind == "fraction":
        value = Fraction(numeric(found)).limit_denominator(8)
        readings = [("%", 100 * value), ("", value)]
    elif kind == "ordinal":
        readings = [("th", Fraction(part["ordinal"]))]
    elif kind not in ("number", "word"):
        readings = _dates(kind, part)
    else:
        return _number(own, part, text, language)
    return Figure(start, start + len(found), found, tuple(readings)) if readings else None


def _part_of_hour(part: dict[str, str], language: str) -> list[Reading]:
    """What "half past five", "halb sechs" and the like mean; "half five" is not read."""
    hour = part.get("hour") or part["heure"]
    minutes = 60 * (_SMALL.get(hour.lower()) or int(hour))
    if part.get("halb", "").lower() == "half" and language != "nl":
        return []
    later = {"plus_half": 30, "plus": 15, "nach": 15, "demi": 30, "quart": 15, "halb": -30}
    minutes += next((value for name, value in later.items() if name in part), -15)
    return [("clock", Fraction((minutes + half) % 1440)) for half in (0, 720)]


def _dates(kind: str, part: dict[str, str]) -> list[Reading]:
    """The dates that a notation may mean: day and month of a numeric one may be swapped."""
    if feast := part.get("feast", "").lower().replace("’", "'"):
        return [("date", (None, *map(int, _FEASTS[feast].split("-"))))]
    name = part.get("month", "").lower()
    year, month, day = (int(part.get(key, 0)) or None for key in ("year", "mm", "day"))
    dates = [(year, _MONTHS.get(name, month), day)]
    dates += [(year, day, month)] if kind == "numeric" or "swap" in part else []
    return [("date", d) for d in dates if 1 <= (d[1] or 1) <= 12 and 1 <= (d[2] or 1) <= 31]


def _number(own: re.Match[str], part: dict[str, str], text: str, language: str) -> Figure | None:
    """A number with its scale, its unit and what it is a rate of."""
    start, end, step, units = own.start(), own.end(), Fraction(1), Units()
    is_counting = is_article = False
    if "digits" in part:
        units = units_of(part.get("currency") or part.get("code") or "")
        # No amount of money has three decimals.
        of_money = {*_CURRENCIES}.intersection(u for u, _ in units or _unit_after(text, end)[0])
        values, step = _values(part["digits"], language != "en" or bool(of_money))
    else:
        value, end = _words(text, start, end)
        values, is_counting, is_article = [value], value <= 12, own[0].lower() not in _SMALL
    values = [-value for value in values] if "sign" in part else values
    factor, end = _scale(text, end, is_money=bool(units))
    values, step = [value * factor for value in values], step * factor
    if not units:
        units, end = _unit_after(text, end)
        if not units and "digits" in part and re.match(r"(?!x\d)[^\W\d_]", text[end : end + 2]):
            whole = re.compile(r"[\w.]*\w").match(text, start)
            return whole and Figure(start, whole.end(), whole[0], (("name", whole[0].lower()),))
    readings: list[Reading]
    readings = [(dimension, value * factor) for dimension, factor in units for value in values]
    if not units:
        readings = [("", value) for value in values]
    elif text[end - 1] == "m" and text[end - 2].isdigit():
        readings += [("time", values[0] * 60)]
    if values[0] in range(25) and (not units or ("time", Fraction(3600)) in units):
        is_hour = _BESIDE["hour_before"].search(text[max(0, start - 16) : start])
        readings += _hour(values[0]) if is_hour or text[end - 1] == "h" else []
    per, end, rate = _rate(text, end)
    if (
        "." in part.get("digits", "")
        and end == own.end()
        and _NAMED.search(text, max(0, start - _REACH), start)
    ):
        readings.insert(0, ("version", own[0]))
    return Figure(
        start, end, " ".join(text[start:end].split()), tuple(readings), values[0], step, per=per,
        rate=rate, language=language, is_counting=is_counting and (is_article or not units),
    )  # fmt: skip


def _scale(text: str, end: int, *, is_money: bool) -> tuple[int, int]:
    """What scale words multiply with, and their end."""
    product = 1
    while scale := _SCALE.match(text, end):
        name = scale[1] or scale[2]
        factor = _LETTERS.get(name) or _LARGE.get(name.lower())
        factor = 10**6 if name == "m" and is_money else factor
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
    whole, _, decimals = plain.partition(".")
    step = Fraction(10) ** (-len(decimals) if decimals else len(whole) - len(whole.rstrip("0")))
    values = [Fraction(plain)]
    if re.fullmatch(r"\d{1,3}[.,]\d{3}" if has_comma else r"\d{1,3}\.000", digits):
        values += [Fraction(re.sub("[.,]", mark, digits)) for mark in ("", ".")]
    return values, step


def _words(text: str, start: int, end: int) -> tuple[Fraction, int]:
    """The value of a number in words, and its end: "twelve hundred", "two hundred and five"."""
    total, current = 0, _SMALL.get(text[start:end].lower(), 1)
    while more := _BESIDE["more_words"].match(text, end):
        value = _SMALL.get(more[1].lower())
        if value is None:
            scale = _LARGE[more[1].lower()]
            total, current = (
                (total, current * 100) if scale == 100 else (total + current * scale, 0)
            )
        elif current % 100 == 0 or (current % 10 == 0 and current % 100 >= 20 and value < 10):
            current += value
        else:
            break
        end = more.end()
    return Fraction(total + current), end


def _unit_after(text: str, end: int) -> tuple[Units, int]:
    """The unit that follows a number, and its end; the number's end if there is none."""
    match = _BESIDE["unit"].match(text, end)
    if match is None:
        return [], end
    name = re.sub("(?<=[°º]) ", "", match[2]).replace("per cent", "percent").replace(" ", "-")
    units = units_of(name)
    if _BESIDE["working"].search(match[0]):
        units = [(f"working {unit}", factor) for unit, factor in units]
    if word := (match[1] or match[3] or "").lower():
        power = 3 if re.match("[ck]u[bú]", word) else 2
        units = [(f"{unit}{power}", factor**power) for unit, factor in units if unit == "length"]
    return (units, match.end()) if units else ([], end)


def _rate(text: str, end: int) -> tuple[str, int, str]:
    """What a number is a rate of, its end, and the words behind that if it counts something."""
    match = _BESIDE["rate"].match(text, end)
    if match is None:
        return "", end, ""
    units, after = _unit_after(text, match.start("of"))
    unit, factor = units[0] if units else ("", Fraction(1))
    unit = unit.removeprefix("working ")
    if match["time"] and unit not in ("time", "month"):
        return "", end, ""  # "Three apples a child".
    part = {"q": 4, "h": 2}[match["part"][0].lower()] if match["part"] else 1
    name = f"{unit} {factor / part}" if unit else stem(match["of"].lower())
    after = after if unit else match.end()
    if more := _BESIDE["more_rates"].match(text, after):
        name += f"|{stem(more[1].lower())}"  # "£10 per dog and night" in any order.
    return (name, end, text[end:after]) if match["counted"] else (name, after, "")


def _with_shared_units(figures: list[Figure], text: str) -> list[Figure]:
    """Give the first numbers of a range or list the unit of the last: "5 to 10 minutes".

    Or the month: "5 to 10 May".
    """
    shared = list(figures)
    for n in range(len(figures) - 2, -1, -1):
        figure, following = shared[n], shared[n + 1]
        amount = figure.amount
        is_bare = amount is not None and not figure.unit and not 1900 <= amount <= 2100
        between = text[figure.end : following.start]
        is_joint = _BESIDE["joined"].fullmatch(between) and following.unit != "x"
        amounts = [(unit, n) for unit, n in following.readings if isinstance(n, Fraction)]
        if is_bare and amount and is_joint and following.unit and following.amount and amounts:
            factor = amount / following.amount
            readings = tuple((unit, value * factor) for unit, value in amounts)
            shared[n] = replace(figure, readings=readings, per=following.per, is_counting=False)
        elif is_bare and amount and amount <= 24 and is_joint and following.unit == "clock":
            shared[n] = replace(figure, readings=_hour(amount), amount=None, is_counting=False)
        elif is_joint and following.unit == "date" and "by" not in between:
            shared[n] = _of_month(figure, following, keeps="," in between)
        elif figure.unit == "date" and figure.text[0].isalpha() and between.strip() in ("-", "–"):
            shared[n + 1] = _of_month(following, figure)
    return shared


def _hour(amount: Fraction) -> tuple[Reading, Reading]:
    return ("clock", amount * 60), ("clock", amount * 60 + 720)


def _of_month(figure: Figure, dated: Figure, *, keeps: bool = False) -> Figure:
    """A number as a day in the month of a date: before it, or after "May 5–".

    Args:
        figure: a number, or an ordinal.
        dated: the date that it is joined with.
        keeps: whether the number may also be one of something else.
    """
    day = next((int(value) for unit, value in figure.readings if unit in ("", "th")), 0)
    is_before = figure.start < dated.start
    days = (d for d in dated.dates if d[2])
    dates = [d for d in days if 0 < day <= 31 and (day < d[2]) == is_before]
    readings = (*(("date", (*d[:2], day)) for d in dates), *(figure.readings if keeps else ()))
    return replace(figure, readings=readings, amount=None, is_counting=False) if dates else figure


# -- context ---------------------------------------------------------------------------------------

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n(?![ \t]*[a-z])|(?<![^\n]{40})\n")
"""A line of prose may go on in the next line, in lowercase."""
SEPARATORS = [re.compile(pattern, re.IGNORECASE) for pattern in _TABLES["separators"]]
_NOUN = re.compile(rf"(?:{_GAP}|-)([^\W\d_]+)")
_LABEL = re.compile(rf"(?<![^\W\d_])([^\W\d_]{{3,30}}){_GAP}$")
_REACH = 120
"""Characters: so far from a figure are the words that count, in a long sentence."""
_UNIT_NAME = re.compile(
    r"(?<![\w/])[^\W\d_]{3,14}(?![^\W_])"
    r"|(?:(?<=[(\[_0])|(?<=0 ))[^\W\d_]{1,14}(?=[)\]\s=:/]|_\d|$)|[%$€£¥]|°[CF]?"
    r"|(?:^|(?<= ))[a-z]{2}$"
)

_SCALE_OF_UNIT = re.compile(r"\b1?[, ]?000(?= ?[^\W\d])|thousands?\b|millions?\b", re.IGNORECASE)


def _in_context(figures: list[Figure], text: str) -> list[Figure]:
    """Figures with the words beside them; in a table, with a heading's unit."""
    blank = list(text)
    for figure in figures:
        if figure.unit not in ("", "name", "date"):
            blank[figure.start : figure.end] = " " * (figure.end - figure.start)
        elif figure.unit == "date":
            blank[figure.start : figure.end] = text[figure.start : figure.end].replace(".", " ")
    plain = "".join(blank)
    edges = [0, *(match.end() for match in _SENTENCE_END.finditer(plain)), len(text) + 1]
    cells = [*cells_in(text)]
    values = [figure for figure in figures if figure.unit != "name"]

    def with_context(figure: Figure) -> Figure:
        place = figure.start
        shared = frozenset[str]()
        cell = cell_at(cells, place)
        nouns = () if figure.unit else _nouns(text, figure, cell)
        if cell:
            # A cell of its own may have the unit: "| 92 | m2 |".
            name = re.split(r"[|\n]", text[cell.end + 1 : cell.end + _REACH], maxsplit=1)[0].strip()
            units = units_of(name) if len(name) > 1 or name.islower() else Units()
            units = units or _named_units(cell.column) or _named_units(cell.row)
            beside = f"{cell.row} {cell.column} {cell.text}"
            own = f"{beside} {cell.beside}"
        else:
            edge = bisect_right(edges, place)
            start, end = edges[edge - 1], edges[edge]
            units = [] if nouns else _named_units(text[start:end])
            opening = bisect_left(figures, start, key=attrgetter("start"))
            clause = max(start, place - _REACH, plain.rfind(";", 0, place))
            shared = words_near(plain[clause : figures[opening].start])
            beside = plain[max(start, place - _REACH) : min(end, place + _REACH)]
            first = bisect_left(values, place, key=attrgetter("start"))
            last = bisect_right(values, place, key=attrgetter("start"))
            if first and start <= values[first - 1].start:
                start = _split(plain, values[first - 1].end, place)[1]
            if last < len(values) and values[last].start < end:
                end = _split(plain, figure.end, values[last].start)[0]
            own = plain[start:place].rpartition(";")[2] + plain[place:end].partition(";")[0]
        measured: tuple[Reading, ...] = ()
        if figure.amount is not None and not figure.unit:
            measured = tuple((unit, figure.amount * factor) for unit, factor in units)
        bound, bound_start = _bound(text, figure)
        label = _LABEL.search(text[max(0, place - _REACH) : place])
        return replace(
            figure,
            nouns=nouns,
            label="".join(stems_in(label[1])) if label else "",
            words=frozenset(stems_in(beside)),
            near=words_near(own),
            shared=shared,
            bound=bound,
            bound_start=bound_start,
            cell=cell,
            readings=measured + figure.readings if cell else figure.readings + measured,
        )

    placed = [*map(with_context, figures)]
    for at, figure in enumerate(placed[1:], 1):
        before = placed[at - 1]
        if joint := _BESIDE["joint"].fullmatch(text, before.end, figure.start):
            near = before.near | figure.near
            placed[at - 1] = replace(before, near=near) if joint["range"] else before
            placed[at] = replace(figure, near=near)
        elif not figure.near and figure.start - before.end < 6:  # "23 June at 2 pm"
            placed[at] = replace(figure, near=before.near)
    return placed


def _bound(text: str, figure: Figure) -> tuple[str, int]:
    """Whether a figure is the "most" or the "least", "" for neither, and where this begins."""
    place = max(0, figure.start - _REACH)
    before = _BESIDE["bound_before"].search(text[place : figure.start])
    after = _BESIDE["bound_after"].match(text, figure.end)
    kinds = ("most" if found["most"] else "least" for found in (before, after) if found)
    start = place + before.start() if before else figure.start
    # "No later than 30 days before" is "at least 30 days before".
    is_of_day = before and figure.kind == "time" and re.search("late|up to", before[0])
    is_turned = is_of_day and _BESIDE["turned"].match(text, figure.end)
    return "least" if is_turned else next(kinds, ""), start


def _split(text: str, start: int, end: int) -> tuple[int, int]:
    """Where what is about the first of two figures ends, and what is about the second begins.

    That is at the last of the strongest separators between them; without one, all is about both.
    """
    for separator in SEPARATORS:
        if found := [match.start() for match in separator.finditer(text, start, end)]:
            return found[-1], found[-1]
    return end, start


def cell_at(cells: Sequence[Cell], place: int) -> Cell | None:
    """The cell, of cells in their order, that a place is in."""
    at = bisect_right(cells, place, key=lambda cell: cell.start) - 1
    return cells[at] if at >= 0 and place < cells[at].end else None


def _nouns(text: str, figure: Figure, cell: Cell | None) -> tuple[str, ...]:
    nouns, end, text = list[str](), figure.end, text[: cell.end] if cell else text
    stop_words = ENGLISH_STOP_WORDS | STOP_WORDS.get(figure.language, frozenset())
    while len(nouns) < 3 and (match := _NOUN.match(text, end)):
        if match[1].lower() in stop_words:
            break
        nouns += stems_of_name(match[1])
        end = match.end()
    return tuple(nouns)


@lru_cache(maxsize=16_384)
def stems_of_name(name: str) -> tuple[str, ...]:
    """The stems of the words of a name: of `maxIdleTime`, max, idl and time."""
    return tuple(stem(part.lower()) for part in _CAMEL.sub(" ", name).split())


def stems_in(text: str) -> list[str]:
    """The stems of the content words of a text, and of its longer numbers."""
    words = [word for word in re.findall(r"[^\W_]+", text) if len(word) > 2 or not word.isdecimal()]
    content = [word for word in words if word.lower() not in ENGLISH_STOP_WORDS]
    return [name for word in content for name in stems_of_name(word)]


def words_near(text: str) -> frozenset[str]:
    """The stems of the content words beside a figure: without numbers."""
    return frozenset(word for word in stems_in(text) if not word.isdecimal())


@lru_cache(maxsize=1024)
def _named_units(text: str) -> Units:
    """The units that a heading or a sentence names: "Size (MB)", "retention_days", "(1000 km)"."""
    scale = _SCALE_OF_UNIT.search(text)
    factor = 10 ** (6 if scale and scale[0].startswith("mil") else 3 if scale else 0)
    names = dict.fromkeys(_UNIT_NAME.findall(_CAMEL.sub("_", text)))
    units = [unit for name in names for unit in units_of(name)[:1]]
    working = "working " if _BESIDE["working"].search(text) else ""
    return [(working + dimension, factor * size) for dimension, size in units]


# -- equality --------------------------------------------------------------------------------------


def is_money(figure: Figure) -> bool:
    """Whether a figure may be an amount of money: "5 pounds" is a mass, too."""
    return any(unit in _CURRENCIES for unit, _ in figure.readings)


def is_equal(figure: Figure, other: Figure) -> bool:
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
    column = other.cell.column if other.cell else ""
    is_open = is_money(figure) or _BESIDE["count"].fullmatch(column)
    if is_open and ("", other.amount) in other.readings and not other.nouns:
        return True  # Tables seldom repeat it.
    # "Level 9" is the option -9. A long number is the same one in whatever column it is.
    is_long = len(re.sub(r"\D", "", figure.text).strip("0")) >= _LONG
    return (not figure.unit and not figure.nouns) or (is_long and not other.unit)
