"""The figures of a text, by value and unit, with the words beside them. Pure.

`find_figures` reads numbers in any notation: 1,200 is 1.2k and twelve hundred, 90 minutes are 1h30,
3 May 2026 is 2026-05-03. A cell of a table takes its unit and its words from its headings. Words
for numbers and months are English; digits, numeric dates and unit symbols are read in any language.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from rolebundle.text.languages import latin_language
from rolebundle.text.stop_words import ENGLISH
from rolebundle.text.words import stem

Reading = tuple[str, Hashable]
"""A dimension and a value in its base unit: ("time", 90), ("", 3) for a bare number,
("date", (2026, 5, None)), ("clock", 870) in minutes, ("version", "1.2"), ("name", "cve-2024-1")."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and where it stands: characters from ``start`` to ``end``.

    Attributes:
        readings: what it may mean, the most likely first.
        amount: the number as written, before its unit; ``None`` if it is no number.
        step: what one unit of its last written digit is worth: 100,000 in "1.9 million".
        hedge: "about", "over", "under", "min", "max" or "every"; "" without.
        per: what it is a rate of: "time 1" in "5 MB/s"; "" if it is no rate.
        nouns: the stems of up to three words that follow it: what a bare number counts.
        words: the stems beside it, each with its nearness from 1 down to 0.
        is_counting: whether it is a number word up to ten without a unit.
        in_table: whether it stands in a cell of a table.
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
    in_table: bool = False

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
        position = max(figure.end if figure else match.end(), match.start() + 1)
        if figure:
            figures.append(figure)
    figures = _with_shared_units(figures, text)
    cells, places = _cells(text), _Places(text, figures)
    return [_in_context(figure, text, cells, places, figures) for figure in figures]


# -- units -----------------------------------------------------------------------------------------

_DIMENSIONS = """
time: 0.001 ms millisecond milliseconds msec; 0.000001 µs μs us microsecond microseconds;
 0.000000001 ns nanosecond nanoseconds; 1 s sec secs second seconds; 60 min mins minute minutes;
 3600 h hr hrs hour hours; 86400 d day days; 604800 week weeks wk wks; 1209600 fortnight fortnights
month: 1 month months mo; 12 year years yr yrs; 120 decade decades; 1200 century centuries
byte: 1 B byte bytes; 1000 kB KB kilobyte kilobytes; 1000000 MB megabyte megabytes;
 1000000000 GB gigabyte gigabytes gig gigs; 1000000000000 TB terabyte terabytes;
 1000000000000000 PB petabyte petabytes; 1024 KiB kibibyte kibibytes; 1048576 MiB mebibyte mebibytes;
 1073741824 GiB gibibyte gibibytes; 1099511627776 TiB tebibyte tebibytes
bit: 1 bit bits; 1000 kbit kbits kilobit kilobits; 1000000 Mb Mbit Mbits megabit megabits;
 1000000000 Gb Gbit Gbits gigabit gigabits
bit/s: 1000 kbps; 1000000 Mbps; 1000000000 Gbps
length: 0.000000001 nm nanometre nanometres nanometer nanometers;
 0.000001 µm μm micron microns micrometre micrometres micrometer micrometers;
 0.001 mm millimetre millimetres millimeter millimeters;
 0.01 cm centimetre centimetres centimeter centimeters; 1 m metre metres meter meters;
 1000 km kilometre kilometres kilometer kilometers; 0.0254 inch inches; 0.3048 ft foot feet;
 0.9144 yd yard yards; 1609.344 mi mile miles
length2: 10000 ha hectare hectares; 1 sqm
length3: 0.000000001 µl μl; 0.000001 ml mL millilitre millilitres milliliter milliliters;
 0.001 l L litre litres liter liters
mass: 0.000001 µg μg mcg microgram micrograms; 0.001 mg milligram milligrams; 1 g gram grams;
 1000 kg kgs kilogram kilograms kilo kilos; 1000000 t tonne tonnes;
 453.59237 lb lbs pound pounds; 28.349523125 oz ounce ounces
°C: 1 °C ℃ celsius
°F: 1 °F ℉ fahrenheit
°: 1 ° degree degrees deg
K: 1 K kelvin
Hz: 1 Hz hertz; 1000 kHz; 1000000 MHz; 1000000000 GHz
W: 0.001 mW; 1 W watt watts; 1000 kW kilowatt kilowatts; 1000000 MW megawatt megawatts; 1000000000 GW
J: 1 J joule joules; 1000 kJ; 1000000 MJ; 3600 Wh; 3600000 kWh; 3600000000 MWh; 3600000000000 GWh
cal: 1 cal; 1000 kcal
V: 0.001 mV; 1 V volt volts; 1000 kV
A: 0.001 mA; 1 A amp amps ampere amperes
Pa: 1 Pa; 100 hPa; 1000 kPa; 1000000 MPa; 100000 bar; 100 mbar
psi: 1 psi
dB: 1 dB decibel decibels dBA
px: 1 px pixel pixels
pt: 1 pt
dpi: 1 dpi ppi
fps: 1 fps
rpm: 1 rpm
ppm: 1 ppm; 0.001 ppb
%: 1 % percent pct; 0.1 ‰
pp: 1 pp
x: 1 x × times
$: 1 $ USD dollar dollars; 0.01 ¢ cent cents
€: 1 € EUR euro euros
£: 1 £ GBP; 0.01 pence
¥: 1 ¥ JPY yen
₹: 1 ₹ INR rupee rupees
franc: 1 CHF franc francs
kr: 1 kr SEK NOK DKK
"""
UNITS: dict[str, list[tuple[str, Fraction]]] = {}
"""The dimensions and factors of a unit's name or symbol; a name in lower case stands for any."""
for _line in re.sub(r"\n ", " ", _DIMENSIONS).strip().splitlines():
    _dimension, _, _groups = _line.partition(": ")
    for _group in _groups.split(";"):
        _factor, *_names = _group.split()
        for _name in _names:
            UNITS.setdefault(_name, []).append((_dimension, Fraction(_factor)))
for _name in ("pound", "pounds"):
    UNITS[_name].append(("£", Fraction(1)))
for _name in list(UNITS):
    if len(_name) > 1:
        UNITS.setdefault(_name.lower(), UNITS[_name])
_MONEY = frozenset("$€£¥₹") | {"franc", "kr"}
_ATTACHED: dict[str, list[tuple[str, Fraction]]] = {"m": [*UNITS["m"], ("time", Fraction(60))]} | {
    sign: [("byte", Fraction(base) ** power) for base in (1000, 1024)]
    for power, signs in enumerate(("kK", "M", "G", "T"), 1)
    for sign in signs
}
"""What a letter that stands directly at a number may mean besides: "5m", "16M"."""


def units_of(name: str) -> list[tuple[str, Fraction]]:
    """The dimensions and factors of a unit; empty if it is none."""
    return UNITS.get(name) or (UNITS.get(name.lower(), []) if len(name) > 1 else [])


# -- grammar ---------------------------------------------------------------------------------------

_SMALL = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
} | {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2
    )
}
_LARGE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "dozen": 12}
_LARGE |= {"trillion": 10**12, "lakh": 10**5, "crore": 10**7, "mio": 10**6, "mrd": 10**9}
_LARGE |= {"bn": 10**9, "mn": 10**6, "k": 10**3}
_SHARES = {
    name: number
    for number, names in enumerate(
        ("half halves", "third", "quarter fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
         "tenth"), 2,
    )
    for name in names.split()
}  # fmt: skip
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
         "august aug", "september sept sep", "october oct", "november nov", "december dec"), 1,
    )
    for name in names.split()
}  # fmt: skip


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_GAP = r"[ \u00a0\u202f]"
_CURRENCY = r"(?:(?:US|HK|C|A)?[$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|INR)\b)"
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d])|\d{1,3}(?:[\u00a0\u202f '’]\d{3})+(?!\d)|\d+)(?:[.,]\d+)*"
)
_MONTH = rf"(?:{_either(_MONTHS)})\b\.?"
_SMALL_WORD = rf"(?:{_either(_SMALL)})"

_PATTERNS = {
    "address": r"(?:https?|ftp)://[^\s<>\"`|)\]]+|www\.[^\s<>\"`|)\]]+|[\w.+-]+@[\w-]+\.\w[\w.]*",
    "iso": r"(?<![\w.-])(\d{4})-(\d\d)(?:-(\d\d)(?:T[\d:.]+Z?)?)?(?![\w-])",
    "numeric_date": r"(?<![\w./-])(?:(\d\d?)(?P<mark>[./])(\d\d?)(?P=mark)(\d{4})"
    r"|(\d{4})/(\d\d?)/(\d\d?))(?![\w/]|\.\d)",
    "clock": rf"(?<![\w.:])(\d\d?)(?::([0-5]\d)(?::[0-5]\d)?)?(?:{_GAP}?([ap])\.?m\b\.?"
    r"|(?<=:\d\d))(?![\w:])",
    "money": rf"(?:(?<!\w)[-−])?(?:(?:US|HK|C|A)?([$€£¥₹])|\b(USD|EUR|GBP|CHF|JPY|INR)\b){_GAP}?"
    rf"({_NUMBER})",
    "name": r"(?<![\w.])(?:(?:\d+\.){2,}\d+(?!,\d)(?:[-+/]?\w+)*|\d+(?:\.\d+)*\.x\b|0x[\da-f]+\b"
    r"|(?=[\da-f]*\d)(?=\d*[a-f])[\da-f]{7,}\b"
    r"|(?!(?:mid|pre|post|top|under|over|sub)-\d)(?=[\w./-]*\d)[^\W\d]\w*(?:[-./]\w+)*)",
    "day_month": rf"(?<![\w.])(\d\d?)(?:st|nd|rd|th|\.)? (?:of )?({_MONTH})(?:,? (\d{{4}})\b)?",
    "month_day": rf"\b({_MONTH}) (\d\d?)(?:st|nd|rd|th)?\b(?![.:]?\d|,\d)(?:,? (\d{{4}})\b)?",
    "month_year": rf"\b({_MONTH}),? (\d{{4}})\b",
    "month": rf"(?<=in )may\b|\b(?!may)(?:{_either(name for name in _MONTHS if len(name) > 4)})\b",
    "share": rf"\b(a|{_SMALL_WORD}|\d+)[- ]({_either(_SHARES)})s?\b(?!-)"
    r"|(?<!first )(?<!second )(?<!other )(half) (?=of\b|the\b|an?\b|all\b|dozen)"
    rf"|\b(one|two|three|\d)(?: in (?={_SMALL_WORD}|\d\d?0?\b(?!\.\d))|/(?=\d+ of\b))"
    rf"({_SMALL_WORD}|\d+)\b(?! ?(?:%|(?:second|minute|hour|day|week|month|year)s?\b))",
    "ordinal": r"(?<![\w.])(\d+)(?:st|nd|rd|th)\b",
    "number": rf"(?:(?<![\w)\].])-|−|\bminus )?(?<![\w.])({_NUMBER})([½¼¾])?",
    "number_word": rf"\b(?:a(?= (?:hundred|thousand|million|billion|dozen)\b)|{_SMALL_WORD})\b"
    r"(?!-(?:first|second|third|\w+th)\b)",
}
_EACH = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}
_FIGURE = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()), re.IGNORECASE
)
_MORE_WORDS = re.compile(
    rf"(?:[- ]|(?<=hundred) and |(?<=thousand) and )({_SMALL_WORD}|{_either(_LARGE)})\b",
    re.IGNORECASE,
)
_SCALE = re.compile(rf"[- \u00a0]?((?i:{_either(_LARGE)}))\b\.?|([mMGT])(?!\w)")
_FRACTION = re.compile(r" and (?:a (half|quarter)|(three) quarters)\b")
_OF = re.compile(
    rf"(?:{_GAP}|-)?(?:(?:more|additional|extra|further|full|whole|consecutive|calendar|working|"
    r"business|US|of an?|an?) )?(square |cubic )?"
    r"(per ?cent\b|percentage points?|[^\W\d_²³]+|[°º]?[CF]\b|×(?! ?\d)|[%‰$€£¥₹¢°℃℉])([²³]?)(?![^\W\d])"
)
_RATE = re.compile(
    rf"{_GAP}?/{_GAP}?([^\W\d]+)| (?:per|pro) ([^\W\d]+)"
    r"| (?:an?|each|every) (second|minute|hour|day|week|month|year)\b"
)
_COMPOUND = re.compile(rf"(?:,? (?:and )?|,)?(\d+(?:\.\d+)?)(?:{_GAP}|-)?([^\W\d_]+)(?![^\W])")
_NAMED = re.compile(r"(?:\w ?[A-Z]\w*|^[A-Z]\w+|\b[Vv]ersions?|\b[Rr]eleases?)(?: [<>=~^]=?)? $")
_HEDGES = (
    ("every", r"every|each|all"),
    ("max", r"at most|up to|within|no more than|not more than|maximum(?: of)?|max\.?|no later than"
     r"|<=|≤"),
    ("min", r"at least|no less than|no fewer than|not less than|minimum(?: of)?|min\.?|>=|≥"),
    ("over", r"more than|over|above|exceed(?:s|ing|ed)?|greater than|longer than|upwards of|>"),
    ("under", r"less than|fewer than|under|below|almost|nearly|close to|just short of|<"),
    ("about", r"about|around|roughly|approximately|approx\.?|circa|ca\.?|some|~|≈|or so"),
)  # fmt: skip
_HEDGE = re.compile(
    r"(?:(?<!\w)|(?<=\W))(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in _HEDGES)
    + r")\s?(?:the\s|an?\s)?$",
    re.IGNORECASE,
)


def _read(match: re.Match[str], text: str, has_comma: bool) -> Figure | None:
    """The figure that begins at a match; ``None`` if it is none after all."""
    kind = match.lastgroup or ""
    start, end = match.span()
    own = _EACH[kind].match(text, start)
    assert own is not None
    groups, readings, found = own.groups(), (), own[0]
    if kind == "address":
        found = found.rstrip(".,;:'")
        readings = (("name", found.lower().rstrip("/").partition("://")[2] or found.lower()),)
    elif kind == "name":
        readings = (("version" if found[0].isdigit() else "name", found.lower()),)
        found = found.rstrip("-")
    elif kind == "clock":
        readings = _clock(groups)
    elif kind == "ordinal":
        readings = (("th", Fraction(groups[0])),)
    elif kind in ("iso", "numeric_date", "day_month", "month_day", "month_year", "month"):
        readings = _dates(kind, groups, found)
    if readings:
        return Figure(start, start + len(found), found, readings)
    if kind in ("money", "number", "number_word", "share"):
        return _number(kind, own, text, has_comma)
    return None


def _dates(kind: str, groups: tuple[str | None, ...], found: str) -> tuple[Reading, ...]:
    def month(name: str | None) -> int:
        return _MONTHS[(name or "").rstrip(".").lower()]

    def number(digits: str | None) -> int | None:
        return int(digits) if digits else None

    dates: list[tuple[int | None, int | None, int | None]]
    if kind == "month":
        dates = [(None, month(found), None)] if found[0].isupper() else []
    elif kind == "month_year":
        dates = [(number(groups[1]), month(groups[0]), None)]
    elif kind == "day_month":
        dates = [(number(groups[2]), month(groups[1]), number(groups[0]))]
    elif kind == "month_day":
        dates = [(number(groups[2]), month(groups[0]), number(groups[1]))]
    elif kind == "iso":
        dates = [(number(groups[0]), number(groups[1]), number(groups[2]))]
    else:
        first, _, second, year, *parts = map(number, groups[:1] + (None,) + groups[2:])
        dates = [(parts[0], parts[1], parts[2]), (year, second, first), (year, first, second)]
        dates = [date for date in dates if date[0]]
    return tuple(
        ("date", date)
        for date in dates
        if 1 <= (date[1] or 1) <= 12 and 1 <= (date[2] or 1) <= 31
    )


def _clock(groups: tuple[str | None, ...]) -> tuple[Reading, ...]:
    hour, half = int(groups[0] or 0), groups[2]
    minutes = 60 * hour + int(groups[1] or 0)
    if half:
        return (("clock", minutes % 720 + (720 if half in "pP" else 0)),)
    return (("clock", minutes), *([("clock", minutes + 720)] if hour <= 12 else []))


def _number(kind: str, own: re.Match[str], text: str, has_comma: bool) -> Figure | None:
    """A number with its scale, its unit and what it is a rate of."""
    start, end, unit_before, is_counting = own.start(), own.end(), "", False
    step = Fraction(1)
    if kind == "share":
        share = _share(own)
        if share is None:
            return None
        values, readings_of_share = [share], (("%", 100 * share), ("", share))
        if not (own[3] and _OF.match(text, end - 1)):
            return Figure(start, end, own[0].rstrip(), readings_of_share, 100 * share)
    elif kind == "number_word":
        values, end = _words(text, start, end)
        is_counting = values[0] <= 10
    else:
        digits = own[3] if kind == "money" else own[1]
        unit_before = (own[1] or own[2]) if kind == "money" else ""
        values, step = _values(digits, has_comma)
        if kind == "number" and own[2]:
            values = [values[0] + Fraction({"½": 2, "¼": 1, "¾": 3}[own[2]], 2 if own[2] == "½" else 4)]
        if own[0][0] in "-−m" and own[0][0] not in digits:
            values = [-value for value in values]
    if fraction := _FRACTION.match(text, end):
        share = Fraction(1, 2 if fraction[1] == "half" else 4) * (3 if fraction[2] else 1)
        values, end = [value + share for value in values], fraction.end()
    attached = ""
    while scale := _SCALE.match(text, end):
        name = scale[1] or scale[2]
        factor = _LARGE.get(name.lower())
        factor = {"M": 10**6, "G": 10**9, "T": 10**12}.get(name, factor)
        if name == "m" and kind == "money":
            factor = 10**6
        if factor is None:
            break
        attached = name if scale[2] or name == "k" else ""
        values, step, end = [value * factor for value in values], step * factor, scale.end()
    units, end_of_unit = ([*units_of(unit_before)], end) if unit_before else _unit_after(text, end)
    if kind == "number" and not units and re.match(r"(?!x\d)[^\W\d_]", text[end : end + 2]):
        whole = re.compile(r"[\w.]*\w").match(text, start)
        return whole and Figure(start, whole.end(), whole[0], (("name", whole[0].lower()),))
    end = end_of_unit
    readings = [(dimension, value * factor) for dimension, factor in units for value in values]
    if attached in _ATTACHED and not units:
        base = step if step >= 1000 else Fraction(1)
        readings = [("", value) for value in values]
        readings += [(d, value / base * factor) for d, factor in _ATTACHED[attached] for value in values]
    while units and (more := _COMPOUND.match(text, end)):
        parts = [
            unit
            for unit in [*units_of(more[2]), *_ATTACHED.get(more[2], [])]
            if unit[0] == units[0][0]
        ]
        if not parts or parts[0][1] >= units[0][1]:
            break
        readings = [(d, value + Fraction(more[1]) * parts[0][1]) for d, value in readings[:1]]
        units, end = parts, more.end()
    per = ""
    if rate := _RATE.match(text, end):
        name = rate[1] or rate[2] or rate[3]
        per = " ".join(map(str, units_of(name)[0])) if units_of(name) else stem(name.lower())
        end = rate.end()
    if not readings:
        readings = [("", value) for value in values]
    is_counting = is_counting and not units
    if kind == "number" and "." in own[0] and end == own.end() and _NAMED.search(text[:start]):
        readings.insert(0, ("version", own[0]))
    return Figure(
        start, end, text[start:end], tuple(readings), values[0], step, per=per, is_counting=is_counting
    )


def _values(digits: str, has_comma: bool) -> tuple[list[Fraction], Fraction]:
    """What digits may mean, and what one unit of the last digit is worth."""
    plain = re.sub(r"[\u00a0\u202f '’]", "", digits)
    decimal = max(plain.rfind("."), plain.rfind(","))
    grouped = re.fullmatch(r"\d{1,3}(?:([.,])\d{2,3})*(?:[.,]\d{3})", plain)
    marks = {mark for mark in plain if mark in ".,"}
    whole = Fraction(re.sub("[.,]", "", plain))
    if decimal < 0:
        zeros = len(plain) - len(plain.rstrip("0"))
        return [whole], Fraction(10) ** zeros
    fraction = Fraction(re.sub("[.,]", "", plain[:decimal]) + "." + plain[decimal + 1 :])
    step = Fraction(1, 10 ** (len(plain) - decimal - 1))
    if grouped and len(marks) == 1:
        zeros = len(plain) - len(plain.rstrip("0"))
        if plain.count(".") + plain.count(",") > 1 or (("," in marks) != has_comma):
            return [whole], Fraction(10) ** zeros
        return [fraction, whole] if has_comma else [fraction], step
    return [fraction], step


def _words(text: str, start: int, end: int) -> tuple[list[Fraction], int]:
    """The value of a number in words, and its end: "twelve hundred", "two hundred and five"."""
    total, current = 0, _SMALL.get(text[start:end].lower(), 1)
    while more := _MORE_WORDS.match(text, end):
        word = more[1].lower()
        value = _SMALL.get(word)
        if value is None:
            if word in ("k", "mn", "bn", "mio", "mrd"):
                break
            scale = _LARGE[word]
            if scale == 100:
                current *= 100
            else:
                total, current = total + current * scale, 0
        elif current % 100 == 0 or (current % 10 == 0 and current % 100 >= 20 and value < 10):
            current += value
        elif 13 <= current <= 20 and value >= 10:
            current = 100 * current + value
        else:
            break
        end = more.end()
    return [Fraction(total + current)], end


def _share(own: re.Match[str]) -> Fraction | None:
    """The share that words name: "two thirds", "half of", "one in five"."""

    def number(word: str) -> int:
        return int(word) if word.isdecimal() else _SMALL.get(word.lower(), 1)

    if own[3]:
        return Fraction(1, 2)
    top = number(own[1] or own[4])
    bottom = _SHARES[own[2].lower()] if own[2] else number(own[5])
    return Fraction(top, bottom) if 0 < top < bottom else None


def _unit_after(text: str, end: int) -> tuple[list[tuple[str, Fraction]], int]:
    match = _OF.match(text, end)
    if match is None:
        return [], end
    name = match[2]
    if name.startswith("percentage"):
        name = "pp"
    elif name in ("percent", "per cent"):
        name = "%"
    elif name[0] in "°º" and len(name) > 1:
        name = "°" + name[-1]
    units = units_of(name)
    scale = re.compile(r" (celsius|fahrenheit|[CF])\b", re.IGNORECASE).match(text, match.end())
    if units and units[0][0] == "°" and scale:
        return [("°" + scale[1][0].upper(), Fraction(1))], scale.end()
    if power := match[1] or match[3]:
        exponent = 3 if power in ("cubic ", "³") else 2
        units = [(f"{unit}{exponent}", factor**exponent) for unit, factor in units]
    return (units, match.end()) if units else ([], end)


_JOINT = re.compile(r"\s?(?:-|–|—|to|and|or|by|x|×|,|, and|, or|/)\s?")


def _with_shared_units(figures: list[Figure], text: str) -> list[Figure]:
    """Give the first numbers of a range or list the unit of the last: "5 to 10 minutes"."""
    shared = list(figures)
    for n in range(len(figures) - 2, -1, -1):
        figure, following = shared[n], shared[n + 1]
        between = text[figure.end : following.start]
        if figure.unit not in ("", following.unit) or figure.amount is None or not _JOINT.fullmatch(between):
            continue
        amount = figure.amount
        scale = _SCALE.search(following.text)
        factor = _LARGE.get((scale[1] or "").lower()) if scale else None
        if factor and figure.unit in ("", following.unit) and amount < 1000:
            readings = tuple((following.unit, value * factor) for _, value in figure.readings)
            shared[n] = replace(figure, readings=readings + figure.readings)
        elif following.unit == "date" and following.readings[0][1][2] and "–-".find(between.strip()) >= 0:
            year, month, _ = following.readings[0][1]
            shared[n] = replace(figure, readings=(("date", (year, month, int(amount))),), amount=None)
        elif not figure.unit and following.unit and following.amount and not (1900 <= amount <= 2100):
            readings = tuple((unit, value / following.amount * amount) for unit, value in following.readings)
            shared[n] = replace(figure, readings=readings, per=following.per, is_counting=False)
    return shared


# -- tables ----------------------------------------------------------------------------------------

Span = tuple[int, int]
_RULE = re.compile(r"\s*[|+]?\s*:?[-=]{2,}:?\s*(?:[|+\s]\s*:?[-=]{2,}:?\s*)*[|+]?\s*")


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table: where it stands, its headings, and the rest of its row."""

    start: int
    end: int
    column: str
    row: str
    others: str


def _cells(text: str) -> list[_Cell]:
    """The cells of the tables of a text: with pipes, grids, rules of "=", tabs or commas."""
    cells: list[_Cell] = []
    rows: list[list[Span]] = []
    has_header, columns, position = False, list[Span](), 0
    for line in [*text.split("\n"), ""]:
        start, position = position, position + len(line) + 1
        if line.strip() and _RULE.fullmatch(line):
            has_header = has_header or len(rows) == 1
            if line.strip()[0] == "=":
                columns = columns or [match.span() for match in re.finditer("=+", line)]
            continue
        spans = _row(line, columns, len(rows[0]) if rows else 0)
        if len(spans) > 1:
            rows.append([(start + first, start + last) for first, last in spans])
            continue
        if len(rows) > 1 or (rows and "|" in text):
            cells += _table(text, rows, has_header)
        rows, has_header, columns = [], False, []
    return cells


def _row(line: str, columns: list[Span], width: int) -> list[Span]:
    """The cells of a line; empty if it is no row of a table."""
    if columns:
        firsts = [first for first, _ in columns if first < len(line)]
        lasts = [*firsts[1:], len(line)]
        return [*zip(firsts, lasts, strict=True)] if line.strip() else []
    mark = "|" if line.count("|") >= 2 or (width and "|" in line) else "\t" if "\t" in line else ","
    if mark == "," and (re.search(r"[.;:]\s|, ", line) or not 1 < line.count(",") + 1 == (width or line.count(",") + 1)):
        return []
    edges = [-1, *(match.start() for match in re.finditer(re.escape(mark), line)), len(line)]
    spans = [(first + 1, last) for first, last in zip(edges, edges[1:], strict=False)]
    if mark == "|":
        spans = spans[not line[slice(*spans[0])].strip() :]
        spans = spans[: len(spans) - (not line[slice(*spans[-1])].strip())] if spans else spans
    return spans


def _table(text: str, rows: list[list[Span]], has_header: bool) -> Iterator[_Cell]:
    texts = [[text[first:last].strip() for first, last in row] for row in rows]
    has_header = has_header or not any(re.search(r"\d", cell) for cell in texts[0][1:])
    header = texts[0] if has_header else []
    for row, cell_texts in zip(rows, texts, strict=True):
        for column, (first, last) in enumerate(row):
            is_head = has_header and row is rows[0]
            yield _Cell(
                first,
                last,
                header[column] if column < len(header) and not is_head else "",
                cell_texts[0] if column and not is_head else "",
                " ".join(other for n, other in enumerate(cell_texts) if n not in (0, column)),
            )


# -- words -----------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W_]+|[,;:()—.!?|\n]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_JOINING = frozenset("and or while whereas but versus vs".split())
_COST = {",": 1.0, ";": 2.0, ":": 0.5, "(": 1.0, ")": 1.0, "—": 2.0, "|": 1.0, "\n": 1.5}
_REACH = 15.0
_NAMED_UNIT = re.compile(
    r"[(\[/]\s*(?:in )?([^\W\d_]{1,14}|[%°$€£¥][CF]?)\s*[)\]]|\bin ([^\W\d_]{1,14})\b"
    r"|[a-z]_([a-z]{1,12})\b|[a-z](M[sS]|Sec|Secs|Seconds|Minutes|Hours|Days|Bytes|MB|KB)\b"
    r"|\b([^\W\d_]{3,14})\b|([%$€£¥])"
)


class _Places:
    """The words of a text and how far apart they are: a word is 1, the end of a sentence is 5."""

    def __init__(self, text: str, figures: list[Figure]) -> None:
        self.starts: list[int] = []
        self.words: list[tuple[str, float, float]] = []
        self.edges: list[float] = []
        place = 0.0
        measured = {
            position
            for figure in figures
            if figure.unit not in ("", "name", "date")
            for position in range(figure.start, figure.end)
        }
        for match in _TOKEN.finditer(text):
            token = match[0]
            before = place
            if token[0].isalnum():
                low = token.lower()
                is_function = low in ENGLISH
                place += 1.5 if low in _JOINING else 0.3 if is_function else 1.0
                stems = () if is_function or match.start() in measured else stems_of_name(token)
            else:
                is_end = token in ".!?" and not text[match.end() : match.end() + 1].strip()
                place += 5.0 if is_end else _COST.get(token, 0.0)
                stems = ()
            self.starts.append(match.start())
            self.edges.append(before)
            self.words.append((" ".join(stems), before, place))
        self.edges.append(place)

    def near(self, start: int, end: int) -> dict[str, float]:
        """The stems around a figure, each with its nearness."""
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        here, there = self.edges[first], self.edges[last]
        words: dict[str, float] = {}
        for index, step in ((first - 1, -1), (last, 1)):
            while 0 <= index < len(self.words):
                stems, before, after = self.words[index]
                distance = here - after if step < 0 else before - there
                if distance > _REACH:
                    break
                for name in stems.split():
                    words[name] = max(words.get(name, 0.0), 1 / (1 + distance))
                index += step
        return words

    def after(self, text: str, end: int) -> tuple[str, ...]:
        """The stems of up to three words that directly follow."""
        nouns: list[str] = []
        while len(nouns) < 3 and (match := re.compile(r"[ -]([^\W\d_]+)").match(text, end)):
            if match[1].lower() in ENGLISH:
                break
            nouns += stems_of_name(match[1])
            end = match.end()
        return tuple(nouns)


@lru_cache(maxsize=16_384)
def stems_of_name(name: str) -> tuple[str, ...]:
    """The stems of the words of a name: of `maxIdleTime`, max, idl and time."""
    return tuple(stem(part.lower()) for part in re.findall(r"[^\W_]+", _CAMEL.sub(" ", name)))


def _named_units(text: str) -> list[tuple[str, Fraction]]:
    """The units that a heading or a sentence names without a number."""
    names = (next(filter(None, match.groups())) for match in _NAMED_UNIT.finditer(text))
    return [unit for name in names for unit in units_of(name)[:1]]


def _masked(text: str, figures: list[Figure], start: int, end: int) -> str:
    """A part of a text without its figures."""
    kept, position = [], start
    for figure in figures:
        if start <= figure.start < end:
            kept.append(text[position : figure.start])
            position = figure.end
    return " # ".join((*kept, text[position:end]))


def _in_context(
    figure: Figure, text: str, cells: list[_Cell], places: _Places, figures: list[Figure]
) -> Figure:
    """A figure with its hedge and the words beside it; in a table, with the unit of its heading."""
    hedge = _HEDGE.search(text, max(0, figure.start - 24), figure.start)
    kind = (hedge.lastgroup or "") if hedge else ""
    nouns = places.after(text, figure.end) if not figure.unit else ()
    cell = next((cell for cell in cells if cell.start <= figure.start < cell.end), None)
    if cell is None or not (cell.column or cell.row):
        words, readings = places.near(figure.start, figure.end), figure.readings
        if figure.amount is not None and not figure.unit and not nouns:
            first = max(text.rfind(mark, 0, figure.start) for mark in ("\n", ". "))
            last = min(text.find(mark, figure.end) % (len(text) + 1) for mark in ("\n", ". "))
            units = _named_units(_masked(text, figures, first + 1, last))
            readings += tuple((unit, figure.amount * factor) for unit, factor in units)
    else:
        words = {name: 0.3 for name in _stems(cell.others)}
        words |= dict.fromkeys([*_stems(cell.row), *_stems(cell.column)], 1.0)
        own = text[cell.start : cell.end]
        words |= {name: max(words.get(name, 0), 0.7) for name in _stems(own) if not name.isdigit()}
        readings = figure.readings
        units = _named_units(cell.column) or _named_units(cell.row) or units_of(cell.others)
        if figure.amount is not None and not figure.unit and units:
            readings = tuple((unit, figure.amount * factor) for unit, factor in units)
            readings += figure.readings if "(" not in cell.column + cell.row else ()
    return replace(
        figure, hedge=kind, nouns=nouns, words=words, readings=readings, in_table=cell is not None
    )


def _stems(text: str) -> list[str]:
    return [
        name
        for word in re.findall(r"[^\W_]+", text)
        if word.lower() not in ENGLISH
        for name in stems_of_name(word)
    ]
