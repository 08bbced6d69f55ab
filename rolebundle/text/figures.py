"""Figures of a text: numbers with units, dates, times, versions, addresses, identifiers. Pure.

`find_figures` reads what a text states in figures, in whatever notation: 1,200 is 1.2k and twelve
hundred, 90 minutes are 1h30, 3 May 2026 is 2026-05-03. What is only about equal is not equal: 1.2k
is not 1,234, 90 days are not three months, version 1.2 is not 1.2.0.

A notation with several meanings has several *readings* (5 m are metres, minutes or millions). It is
enough that one of them stands in the evidence. A date that can be read in two orders (03/05/2026)
is the exception: both must.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from rolebundle.text.quantities import (
    COMMA_LANGUAGES,
    LANGUAGES,
    MONEY,
    UNITS_BY_NAME,
    Unit,
    Words,
    words_of,
)
from rolebundle.text.statements import NUMBERED
from rolebundle.text.stop_words import NUMBER_WORDS, STOP_WORDS
from rolebundle.text.words import stem

FigureKind = Literal[
    "number",
    "percent",
    "money",
    "quantity",
    "ordinal",
    "date",
    "time",
    "version",
    "url",
    "mail",
    "hash",
    "address",
    "identifier",
    "path",
]


COUNTED: tuple[FigureKind, ...] = ("number", "money", "percent", "quantity")
"""The kinds whose values are numbers."""


class Reading(NamedTuple):
    """What a figure may mean.

    Attributes:
        kind: the kind of figure.
        value: canonical; equal values are equal figures. A number is in the base unit of its
            dimension. A date is (year, month, day), with ``None`` for what it does not say.
        unit: the dimension; "" for a number that only counts.
        amount: the number before its unit was applied; ``None`` if it is no number.
    """

    kind: FigureKind
    value: Hashable
    unit: str = ""
    amount: Fraction | None = None


class TextFigure(NamedTuple):
    """A figure, and where it stands: characters from ``start`` to ``end``.

    Attributes:
        readings: what it may mean; the first is the most likely.
        needs_all: whether all readings must stand in the evidence, instead of one.
        per: what it is a rate of: "day" in "5 a day"; "" if it is no rate.
        nouns: stems of what a bare number counts, or an ordinal orders.
        label: the kind of thing that a number names: "section" in "section 4".
        before: the word right before a number.
        is_loose: whether a text can use it without stating a figure: "a day", "the first".
        parts: the figures that it consists of, if it may be several: "1 day and 2 hours".
        scale: what its scale words multiply with: 1,000,000 in "5 million".
    """

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    needs_all: bool = False
    per: str = ""
    nouns: frozenset[str] = frozenset()
    label: str = ""
    before: str = ""
    is_loose: bool = False
    parts: tuple[TextFigure, ...] = ()
    scale: int = 1

    @property
    def kind(self) -> FigureKind:
        """The most likely kind."""
        return self.readings[0].kind

    @property
    def value(self) -> Hashable:
        """The most likely value, in the base unit."""
        return self.readings[0].value

    @property
    def unit(self) -> str:
        """The dimension of the most likely reading."""
        return self.readings[0].unit


@lru_cache(maxsize=2048)
def find_figures(text: str, language: str = "en") -> tuple[TextFigure, ...]:
    """The figures of a text, in their order; they do not overlap.

    Args:
        text: any text.
        language: one of ``quantities.LANGUAGES``, for number words, dates and decimal commas; any
            other reads digits only.
    """
    return tuple(_Reader(text, language).figures())


# -- characters ------------------------------------------------------------------------------------


class _Plain(dict[int, str]):
    """Replaces one character by one: digits of all scripts, spaces, dashes, full width."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        digit = unicodedata.decimal(character, None)
        if digit is not None:
            character = str(digit)
        elif 0xFF01 <= code <= 0xFF5E:
            character = chr(code - 0xFEE0)
        elif unicodedata.category(character) == "Zs":
            character = " "
        self[code] = character
        return character


_PLAIN = _Plain(
    dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212, 0xFE63), "-")
    | dict.fromkeys((0x2018, 0x2019, 0x02BC), "'")
    | {0x130: "I", 0x2044: "/", 0xD7: "×"}
)
_FRACTIONS = {
    character: Fraction(unicodedata.numeric(character)).limit_denominator(10)
    for character in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

# -- patterns: addresses, identifiers --------------------------------------------------------------

# Where a figure may begin: a word, digits, what paths and addresses contain.
_TRIGGER = re.compile(r"[^\W\d_]+|\d+|[¼½¾⅐-⅞∞]|[/\\@_#]|\.(?=[a-z\d])")
# Characters that do not belong to an address or an identifier.
_OUTSIDE = frozenset(" \t\n\r\v\f\x85()[]{}<>\"'“”„«»‹›`*|,;=!?…—")
_CHUNK = re.compile(r"[^\s()\[\]{}<>\"'“”„«»‹›`*|,;=!?…—]+")
_CURRENCY = r"us\$|a\$|au\$|c\$|ca\$|nz\$|hk\$|s\$|r\$|[$€£¥₹₩₽₿¢]|rs\.?"
_CURRENCY_CODES = "usd eur gbp jpy cny rmb inr chf aud cad nzd hkd sgd krw brl sek nok dkk pln btc"
_CODES = "|".join(_CURRENCY_CODES.split())
_TLD = r"(?:com|org|net|io|dev|edu|gov|ai|app|info|eu|uk|de|fr|ch|nl|it|es|local|test|example)"
_SUFFIXES = (
    r"(?:py|js|ts|tsx|rs|go|c|h|cpp|java|rb|sh|sql|md|rst|txt|json|jsonl|toml|yaml|yml|xml|html|css"
    r"|csv|ini|cfg|conf|env|log|lock|pdf|docx?|xlsx?|pptx?|png|jpe?g|svg|zip|gz|tar|db|sqlite|exe)"
)
_URL = re.compile(r"(?:(?:https?|ftps?|sftp|ssh|git|file|s3|wss?)://|www\.)[^\s<>\"`|\]}]+")
_MAIL = re.compile(r"(?:mailto:)?([\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})\b")
_HOST = re.compile(rf"(?:[a-z\d-]+\.)+{_TLD}\b(?::\d+)?(?:/[^\s<>\"`|\]}})]*)?")
_PATH = re.compile(
    r"(?:[a-z]:[\\/]|~/|\.{1,2}[\\/]|/)?(?:[\w.@+-]+[\\/])*[\w.@+-]*\w[\\/]?(?::\d+(?:-\d+)?)?",
    re.IGNORECASE,
)
_FILE = re.compile(rf"[\w-][\w.-]*\.{_SUFFIXES}\b(?::\d+(?:-\d+)?)?", re.IGNORECASE)
_IP = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?)(?!\.?\w)")
_IP6 = re.compile(r"(?=[\da-f:]*::|(?:[\da-f]+:){7})([\da-f:]*[\da-f](?:/\d+)?)(?!\w)")
_MAC = re.compile(r"([\da-f]{2}([:-])[\da-f]{2}(?:\2[\da-f]{2}){4})(?!\w)")
_UUID = re.compile(r"([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?!\w)")
_HASH = re.compile(
    r"(?:(?:sha-?\d+|md5|blake\w+)[:-])?((?=\d*[a-f])(?=[a-f]*\d)[\da-f]{7,128})(?!\w)"
)
_DOI = re.compile(r"(?:doi:\s?)?(10\.\d{4,9}/[^\s<>\"`|\]}]*\w)")
_PHONE = re.compile(r"(\+\d(?:[ ()./-]{0,2}\d){6,14})(?!\d)")
_VERSION = re.compile(
    r"(v(?:ersion|er\.?)?[ .]?)?"
    r"(\d+(?:\.\d+)*(?:\.[x*])?(?:[.-]?(?:rc|alpha|beta|dev|pre|post|snapshot|final)"
    r"[.-]?\d*|[ab]\d+)?(?:\+\w+(?:\.\w+)*)?)(?![\w.]*\w)"
)
_CONSTANT = re.compile(r"[A-Z][A-Z\d]*(?:_[A-Z\d]+)+(?!\w)")
_IDENTIFIER = re.compile(r"#?[a-z]\w*(?:[-_/.:#]\w+)*|\d[\w-]*[a-z]\w*")
_HEX = re.compile(r"0x([\da-f]{1,40})(?!\w)")
_DURATION = re.compile(
    r"p(?=[\dt])(?:(\d+)y)?(?:(\d+)m)?(?:(\d+)w)?(?:(\d+)d)?"
    r"(?:t(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?(?!\w)"
)
_DURATION_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_TRAILING = ".,;:!?'\"…"

# -- patterns: times and numbers ------------------------------------------------------------------

_ZONE = r"(?: ?(?P<zone>utc|gmt|z|cest|cet|bst|est|edt|cst|cdt|mst|mdt|pst|pdt|jst|ist)\b)?"
_CLOCK = re.compile(
    r"(?P<h>[01]?\d|2[0-4])(?P<sep>[:.h])(?P<m>[0-5]\d)(?!\d)(?:[:.](?P<s>[0-5]\d)(?:[.,]\d+)?)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?)?(?: ?(?P<uhr>uhr|o'clock|hrs?|h)\b)?"
    rf"{_ZONE}(?P<offset>[+-]\d\d:?\d\d)?(?![\d:])"
)
_HOUR = re.compile(
    rf"(?P<h>1?\d|2[0-4])(?: ?(?P<half>[ap])(?:\.m\.|m\b)| ?(?P<uhr>o'clock|uhr\b)){_ZONE}"
)
_RATIO = re.compile(r"\d+(?::\d+)+(?![\w:])")
_COMMA_NUMBER = r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:,\d{2})+,\d{3}"
_NUMBER = re.compile(
    r"(?P<grouped>\d{1,3}(?P<g>[ '_])\d{3}(?:(?P=g)\d{3})*(?!\d)(?:[.,]\d+)?)"
    r"|(?P<us>\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?)"
    r"|(?P<eu>\d{1,3}(?:\.\d{3})+(?!\d)(?:,\d+)?)"
    r"|(?P<decimal>\d+[.,]\d+)"
    r"|(?P<half>\.\d+)"
    r"|(?P<whole>\d+)"
)
_POWER = re.compile(r" ?[×x*·] ?10(?:(?:\^\(?|\*\*)(-?\d{1,2})\)?|([⁻⁰¹²³⁴-⁹]{1,3}))")
_EXPONENT = re.compile(r"e([+-]?\d{1,2})(?![\w.])")
_MIXED = re.compile(r"(?: ?([¼½¾⅐-⅞])|[ -](\d{1,2})/(\d{1,3})(?![\w/]))")
_SLASH = re.compile(r"/(\d{1,3})(?![\w/.,]\w|\w|/)")
_AND_A_HALF = re.compile(r"(?: and (?:a |one )?(half|quarter|third)| and three (quarters))\b")
_NEXT_WORD = re.compile(r"[ -]?([^\W\d_]+)")
_GAP_WORD = re.compile(r"( ?-? ?)([^\W\d_][\w'’]*)")
_SIGN = re.compile(r" ?(%|‰|°[cf]?\b|[$€£¥₹₩₽₿¢]|µ[a-z]+|μ[a-z]+|[a-z]+[²³]|×|\")")
_PER = re.compile(
    r"(?: ?/ ?| per | a | an | each | every | pro | par | por | al | à l'|p\. ?)([^\W\d_]+)"
)
_PERIODS = {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter",
    "annually": "year", "yearly": "year", "annual": "year",
}  # fmt: skip
_RANGE_GAP = re.compile(
    r"\s*(?:-|/|–|—|\.\.\.?|,|,? ?(?:and|or|to|through|until|till|up to|versus|vs\.?|by|×|x|±"
    r"|bis|und|oder|et|ou|à|a|y|o|e|tot|en))\s*"
)
_SKIPPED = frozenset(
    "consecutive full whole more additional extra further entire other total straight calendar new "
    "last next first past".split()
)
_PREFIXES = frozenset(("mid-", "pre-", "post-", "early-", "late-", "non-"))
_TENS_OF_YEARS = re.compile(r"((?:1[0-9]|20)\d0)'?s\b|'(\d0)s\b")
_QUARTER = re.compile(r"(?:([qh])([1-4])[ /-]?(?:of )?(\d{4})|(\d{4})[ /-]?([qh])([1-4]))(?!\w)")
_FISCAL = re.compile(r"fy ?-?'?(\d{4}|\d\d)(?!\w)")
_OUT_OF = re.compile(r" (?:in|out of) (?:every )?(\w+)(?![\w.,]\w)")
_TIMES = {
    "once": 1, "twice": 2, "thrice": 3, "double": 2, "doubled": 2, "doubles": 2, "triple": 3,
    "tripled": 3, "triples": 3, **{f"{word}fold": int(n) for word, n in NUMBER_WORDS.items()},
}  # fmt: skip
_DECADES = {
    "thirties": 1930, "forties": 1940, "fifties": 1950, "sixties": 1960, "seventies": 1970,
    "eighties": 1980, "nineties": 1990,
}  # fmt: skip
_RATES = {
    "mph": ("mile", "hour"), "kph": ("km", "hour"), "kmh": ("km", "hour"),
    "kbps": ("kbit", "second"), "mbps": ("mbit", "second"), "gbps": ("gbit", "second"),
}  # fmt: skip
_SHARES = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
_NEGATIVE = ("minus ", "negative ")
_LETTER_SCALES = frozenset("k m mm b t".split())
_WORK_BEFORE = re.compile(r"(?:^|[.!?:;]\s+|\n\s*(?:[-*•+|#>]+\s*)?)$")
_ISO_DATE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d|[-/.]\d)")
_NUMERIC_DATE = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|(?<=[/])\d\d)(?!\d|[-/.]\d)")
_COMPACT_DATE = re.compile(r"((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?![\w.])")
_YEAR_MONTH = re.compile(r"((?:19|20)\d\d)-(0[1-9]|1[0-2])(?![\w-])")
_MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\w/])")
_AFTER_MONTH = re.compile(r"\.?,?[ -](?:of |de |del )?(\d{4}|'\d\d)(?![\d:]|[.,]\d)")
_PART_OF_YEAR = re.compile(r" (quarter|half) (?:of |in )?(\d{4})(?!\w)")
_ORDINAL_END = re.compile(r"(?:st|nd|rd|th|er|ère|º|ª)(?![\w])")
_SHARE_AFTER = re.compile(rf"[ -]({'|'.join(sorted(_SHARES, key=len, reverse=True))})\b")
_OWN_POWER = re.compile(r"(?:\^\(?|\*\*)(-?\d{1,2})\)?|([⁻⁰¹²³⁴-⁹]{1,3})")
_SPELLED = re.compile(r"[ -]?([^\W\d_]+)(?![’'][a-z])")
_POINT = re.compile(r" point((?: (?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b)+)")
_SCALE_WORD = re.compile(r"([ -]?)([^\W\d_]+\b\.?)")
_ONE_MORE = re.compile(r"[ -]([^\W\d_]+)\b")
_TWO_MORE = re.compile(r"[ -]([^\W\d_]+)[ -]([^\W\d_]+)\b")
_PERIOD = re.compile(rf" ({'|'.join(_PERIODS)})\b")
_CURRENCY_BEFORE = re.compile(rf"(?<![a-z])({_CURRENCY}|{_CODES}) ?[-+]?$")
_MORE = re.compile(r"(?:,? (?:and|und|et|y|e|en) |, ?| ?)(?=[^\W_])")
_BEFORE_MONTH = frozenset(
    "in by until since from before after during every of each early mid late through to between "
    "last next this and or".split()
)
_BEFORE_LENGTH = frozenset(
    "in within after for than least most about lasts takes under over to every exactly".split()
)
_CODE_NOUNS = frozenset(map(stem, "error status code response exception".split()))
_BEFORE_ONE = frozenset("no any this that each every the which another only a an".split())
_DETERMINERS = frozenset("the a an its our their his her this that every each my your".split())
_FIRST_WORDS = frozenset(name.split(" ")[0] for name in UNITS_BY_NAME if " " in name)
# No unit, scale or noun begins with these.
_NO_UNIT = frozenset(("", *',.;:!?)]}|\n"*/'))
# What follows a number and neither is its unit nor what it counts.
_BLOCKING = frozenset(
    "is are was were has have had will and or of in on at by for to if as".split()
)
# Units that may follow a word that is no unit: "5 sunny days".
_LENGTHS = frozenset(
    "seconds minutes hours days weeks months years second minute hour day week month year".split()
)
_PAST_HOUR = re.compile(r"(half|quarter) (past|to) (?:([a-z]+)|(\d\d?))\b")
_DATE_WORDS = "of de di d to and or bis und au al y e et".split()
_TIME_WORDS = frozenset("am pm a p o uhr".split())
# What a power, or a fraction behind a number, begins with; after a space as well.
_AFTER_DIGITS = frozenset("0123456789×x*·^⁻⁰¹²³⁴⁵⁶⁷⁸⁹e/-").union(_FRACTIONS)
_SHORT_VERSION = re.compile(r"\d+\.\d+")
_GROUPED = re.compile(r"\d[\d.,]*[.,]\d{3}")
_OLD = (" old", "-old", " of age")
_OF_UNIT = re.compile(r" (?:of )?an? ")
_CURRENCY_ENDS = frozenset("$€£¥₹₩₽₿¢.-+dryfkpnbs")
_MAX_CHUNK, _MAX_URL = 100, 2000
"""Longer identifiers and addresses are cut."""
_MAX_DIGITS = 60
"""Longer numbers are compared as text."""
# A whole number after these words names a version.
_VERSIONED = frozenset("version versions release releases ver v".split())
_NO_LABEL = frozenset("the a an in on at of by for to and or with from than over under".split())


class _Grammar(NamedTuple):
    """What a language adds: its words, and patterns of dates with its months."""

    words: Words
    triggers: frozenset[str]
    date_words: frozenset[str]
    stop_words: frozenset[str]
    articles: frozenset[str]
    day_month: re.Pattern[str]
    month_day: re.Pattern[str]
    year_month_day: re.Pattern[str]
    ordinal_month: re.Pattern[str]


@cache
def _grammar(language: str) -> _Grammar:
    words = words_of(language if language in LANGUAGES else "en")
    month = "|".join(sorted(words.months, key=len, reverse=True))
    ordinals = "|".join(sorted(words.ordinals, key=len, reverse=True)) or "(?!)"
    year = r"(?:,? ?(?:de |del |of |\|)?(?P<year>\d{4}|'\d\d)(?![\d:]|[.,]\d))?"
    end = r"(?:st|nd|rd|th|er|º|ª|e|\.)?"
    day = rf"(?P<day>0?[1-9]|[12]\d|3[01]){end}"
    last = rf"(?:(?: ?- ?| to | and | or | bis | und | au | al | y | e | et )(?P<last>\d\d?){end})?"
    by_number = {"en": ("a", "an"), "de": ("ein", "eine", "einen", "einem", "einer", "eines")}
    articles = by_number.get(language) or tuple(
        word for word, value in words.numbers.items() if value == 1
    )
    return _Grammar(
        words,
        frozenset(
            {
                *words.numbers, *words.scales, *words.ordinals, *words.months, *words.weekdays,
                *articles, *_SHARES, *_TIMES, *_DECADES, "noon", "midnight", "midday",
            }
            - {"k", "m", "b", "t", "mm"}
        ),
        frozenset({*words.months, *_DATE_WORDS}),
        STOP_WORDS.get(language, STOP_WORDS["en"]),
        frozenset(articles),
        re.compile(rf"{day}{last}(?: |-|/)?(?:of |de |di |d')?(?P<month>{month})\b\.?[-/]?{year}"),
        re.compile(rf"(?P<month>{month})\b\.?(?: |-)(?:the )?{day}(?![\d:%]|[.,]\d){last}{year}"),
        re.compile(rf"(?P<year>\d{{4}})[ -/](?P<month>{month})\b\.?[ -/]{day}(?!\w)"),
        re.compile(
            rf"(?:(?P<month>{month})\b\.? (?:the )?)?(?P<tens>twenty|thirty)?[ -]?"
            rf"(?P<ordinal>{ordinals})\b(?: (?:day )?(?:of )?(?P<month2>{month})\b\.?)?{year}"
        ),
    )  # fmt: skip


_PLAIN_FIGURE = TextFigure(0, 0, "", ())
_LOOSE_FIGURE = _PLAIN_FIGURE._replace(is_loose=True)

# -- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Reads a text from left to right.

    ``position`` is the end of the last figure; at ``tried`` no address begins.
    """

    def __init__(self, text: str, language: str) -> None:
        plain = text if text.isascii() else text.translate(_PLAIN)
        low = plain.lower()
        if len(low) != len(plain):
            low = "".join(c if len(c.lower()) != 1 else c.lower() for c in plain)
        self.original, self.text, self.low = text, plain, low
        self.language = language
        self.grammar = _grammar(language)
        self.comma = language in COMMA_LANGUAGES
        self.position, self.tried = 0, -1
        self.found: list[TextFigure] = []

    def figures(self) -> list[TextFigure]:
        triggers = self.grammar.triggers
        for match in _TRIGGER.finditer(self.low):
            start, token = match.start(), match[0]
            if start < self.position:
                continue
            if token.isalpha() and token[0] not in _FRACTIONS:
                if token in triggers:
                    self._at_word(start, token)
            elif token[0] in "/\\@_#.":
                self._at_mark(start)
            else:
                self._at_digit(start)
        return _joined(self.found, self.low)

    def _add(
        self, start: int, end: int, *readings: Reading, like: TextFigure | None = None
    ) -> None:
        """Add a figure; what its readings do not say is as in ``like``."""
        figure = like or _PLAIN_FIGURE
        text = self.original[start:end]
        self.found.append(figure._replace(start=start, end=end, text=text, readings=readings))
        self.position = end

    def _chunk_start(self, start: int) -> int:
        low, first = self.low, max(self.position, start - _MAX_CHUNK)
        while start > first and low[start - 1] not in _OUTSIDE:
            start -= 1
        return start

    def _word_before(self, start: int) -> str:
        """The word right before a place, or "#"."""
        text, first = self.text, max(self.position, start - _MAX_CHUNK)
        end = start
        if end > first and text[end - 1] == "#":
            end -= 1
        if end > first and text[end - 1] in " -":
            end -= 1
        start_of_word = end
        while start_of_word > first and _is_word_character(text[start_of_word - 1]):
            start_of_word -= 1
        word = text[start_of_word:end].lstrip("_.+0123456789")
        return word or ("#" if text[start - 1 : start] == "#" else "")

    # -- addresses and identifiers --

    def _at_mark(self, start: int) -> None:
        """A figure that may begin with a sign: an address, a path, ``.5``, ``ERR_TIMEOUT``."""
        first = self._chunk_start(start)
        if self._address(first):
            return
        follows = self.low[start + 1 : start + 2]
        if self.low[start] == "." and follows.isdecimal() and (start == first):
            self._number(start, start)

    def _address(self, start: int) -> bool:
        """Read an address, a path, a hash or a constant that begins here."""
        if start == self.tried:
            return False
        self.tried = start
        low, stop = self.low, start + _MAX_CHUNK
        chunk_match = _CHUNK.match(low, start, stop)
        if chunk_match is None:
            return False
        chunk = chunk_match[0]
        is_url = "://" in chunk or chunk.startswith("www.")
        if is_url and (match := _URL.match(low, start, start + _MAX_URL)):
            return self._url(match)
        for sign, pattern, kind, canonical in _ADDRESSES:
            if sign in chunk and (match := pattern.match(low, start, stop)):
                self._add(start, match.end(), Reading(kind, canonical(match[1])))
                return True
        if match := _HEX.match(low, start, stop):
            readings = _measured(Fraction(int(match[1], 16)), ())
            self._add(start, match.end(), Reading("identifier", match[0]), *readings)
            return True
        if match := _CONSTANT.match(self.text, start, stop):
            self._add(start, match.end(), Reading("identifier", _canonical(match[0])))
            return True
        return self._path(start, chunk)

    def _url(self, match: re.Match[str]) -> bool:
        text = match[0].rstrip(_TRAILING)
        while text.endswith(")") and text.count(")") > text.count("("):
            text = text[:-1].rstrip(_TRAILING)
        start = match.start()
        # Paths of addresses are compared with their case.
        self._add(
            start, start + len(text), Reading("url", _url(self.text[start : start + len(text)]))
        )
        return True

    def _path(self, start: int, chunk: str) -> bool:
        low = self.low
        if (
            "." in chunk
            and (match := _HOST.match(low, start, start + _MAX_CHUNK))
            and not _FILE.fullmatch(match[0])
        ):
            return self._url(match)
        has_slash = "/" in chunk or "\\" in chunk
        match = (
            _PATH.match(low, start, start + _MAX_CHUNK)
            if has_slash
            else _FILE.match(low, start, start + _MAX_CHUNK)
            if "." in chunk
            else None
        )
        if match is None:
            return False
        text = match[0].rstrip(_TRAILING + "/\\")
        path, _, line = re.sub(r"[:](?=\d+(?:-\d+)?$)", "\0", text).partition("\0")
        is_rooted = re.match(r"(?:[a-z]:[\\/]|~/|\.{1,2}[\\/]|/)[\w.@-]{2}", path)
        if not re.search(r"[a-z]", path) or not (is_rooted or _FILE.search(path)):
            return False
        path = path.replace("\\", "/").removeprefix("./")
        self._add(start, start + len(text), Reading("path", f"{path}:{line}" if line else path))
        return True

    # -- at a digit --

    def _at_digit(self, start: int) -> None:
        low, first = self.low, self._chunk_start(start)
        chunk_match = _CHUNK.match(low, first, first + _MAX_CHUNK)
        chunk = chunk_match[0].rstrip(_TRAILING) if chunk_match else ""
        is_plain = chunk.isdecimal()
        if is_plain and first == start:
            self._at_whole_number(start, start + len(chunk))
            return
        if not is_plain and self._date(start):
            return
        if not is_plain and (
            self._address(first) or self._named(first, chunk) or self._version(first, chunk)
        ):
            return
        prefix = low[first:start].lstrip("~≈<>≤≥±^&§'.:")
        is_joined = first == self.position and first > 0 and bool(self.found)
        negative = False
        if prefix in ("", "+") or (is_joined and prefix[:1] in "-/—:tx×"):
            pass
        elif prefix in ("-", "--"):
            negative = prefix == "-"
        elif prefix.endswith((":", "(", "/")) and low[start - 2 : start - 1].isalpha():
            pass  # "limit:5"
        elif not self._is_currency(prefix.replace("-", "")):
            if prefix not in _PREFIXES and self._identifier(first):
                return
        else:
            negative = "-" in prefix
        if (is_plain or first != start) and self._date(start):
            return
        if self._time(start):
            return
        self._number(start, start if is_joined else first, negative=negative)

    def _at_whole_number(self, start: int, end: int) -> None:
        """A figure that begins with digits without anything joined to them, which is frequent."""
        # "3. Mai" is a date.
        match = _ONE_MORE.match(self.low, end + self.low.startswith(".", end))
        word = match[1] if match else ""
        is_date = word in self.grammar.date_words or end - start == 8
        is_date = is_date or self.low.startswith(" - ", end)
        if is_date and self._date(start):
            return
        if word in _TIME_WORDS and self._time(start):
            return
        self._number(start, start)

    def _is_currency(self, text: str) -> bool:
        return re.fullmatch(rf"(?:{_CURRENCY}|{_CODES})", text) is not None

    def _named(self, start: int, chunk: str) -> bool:
        """Quarters and halves of years, fiscal years, durations in ISO 8601."""
        low = self.low
        if match := _QUARTER.match(low, start):
            letter, number = match[1] or match[5], match[2] or match[6]
            year = int(match[3] or match[4])
            self._add(start, match.end(), Reading("date", (year, letter + number)))
            return True
        if match := _FISCAL.match(low, start):
            self._add(start, match.end(), Reading("date", ("fy", _year(match[1]))))
            return True
        if chunk[:1] == "p" and (match := _DURATION.match(low, start)):
            parts = [
                (Fraction(text), UNITS_BY_NAME[name][0])
                for text, name in zip(match.groups(), _DURATION_UNITS, strict=True)
                if text
            ]
            if len({unit.dimension for _, unit in parts}) == 1:
                value = sum((count * unit.factor for count, unit in parts), Fraction(0))
                unit = parts[0][1].dimension
                self._add(start, match.end(), Reading("quantity", value, unit, parts[0][0]))
                return True
        return False

    def _version(self, start: int, chunk: str) -> bool:
        match = _VERSION.match(self.low, start, start + _MAX_CHUNK)
        if match is None:
            return False
        number = match[2]
        plain = number.replace(".", "").isdecimal()
        if not match[1] and number.count(".") < (2 if plain else 1):
            return False
        if match[1] and match[1][0] == "v" and match[1].strip(". ") not in ("v", "ver", "version"):
            return False
        readings = [Reading("version", _version(number))]
        grouped = re.fullmatch(r"\d{1,3}(?:\.\d{3})+", number)
        if grouped and not match[1]:
            if re.match(r",\d", self.low[match.end() : match.end() + 2]):
                return False
            value = Fraction(number.replace(".", ""))
            readings.append(Reading("number", value, "", value))
            if self.comma:
                return False
        self._add(start, match.end(), *readings)
        return True

    def _identifier(self, start: int) -> bool:
        """Letters with digits: CVE-2024-1234, RFC9110, E0308, x86-64."""
        match = _IDENTIFIER.match(self.low, start, start + _MAX_CHUNK)
        if match is None:
            return False
        text = match[0].rstrip("_")
        if text[0] != "#" and not re.search(r"\d", text):
            return False
        self._add(start, start + len(text), Reading("identifier", _canonical(text)))
        return True

    # -- dates and times --

    def _date(self, start: int) -> bool:
        low, grammar = self.low, self.grammar
        window = low[start : start + 48]
        if match := _ISO_DATE.match(window):
            return self._add_date(start, match, _numbers(match, 1, 3, 4))
        if match := _NUMERIC_DATE.match(window):
            return self._numeric_date(start, match)
        if match := grammar.day_month.match(window):
            name = start + match.start("month")
            is_name = self.language != "en" or self.text[name].isupper() or match["year"]
            if is_name and (not match["last"] or int(match["last"]) <= 31):
                return self._month_date(start, match, grammar.words.months[match["month"]])
        if match := grammar.year_month_day.match(window):
            month = grammar.words.months[match["month"]]
            return self._add_date(start, match, (int(match["year"]), month, int(match["day"])))
        if match := _COMPACT_DATE.match(window):
            year, month, day = _numbers(match, 1, 2, 3)
            value = Fraction(match[0])
            number = Reading("number", value, "", value)
            return self._add_date(start, match, (year, month, day), number)
        if (match := _YEAR_MONTH.match(window)) and 1 <= int(match[2]) <= 12:
            return self._add_date(start, match, (int(match[1]), int(match[2]), None))
        if (match := _MONTH_YEAR.match(window)) and 1 <= int(match[1]) <= 12:
            return self._add_date(start, match, (int(match[2]), int(match[1]), None))
        if match := _TENS_OF_YEARS.match(window):
            decade = int(match[1]) if match[1] else 1900 + int(match[2])
            self._add(start, start + match.end(), Reading("date", ("decade", decade)))
            return True
        return False

    def _add_date(
        self,
        start: int,
        match: re.Match[str],
        date: tuple[int | None, int | None, int | None],
        *others: Reading,
    ) -> bool:
        _, month, day = date
        if not (1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31):
            return False
        self._add(start, start + match.end(), Reading("date", date), *others)
        return True

    def _numeric_date(self, start: int, match: re.Match[str]) -> bool:
        first, second, year = int(match[1]), int(match[3]), _year(match[4])
        orders = [(year, second, first), (year, first, second)]
        if match[2] == "." or self.comma:
            orders = orders[:1]
        orders = [date for date in orders if 1 <= date[1] <= 12 and 1 <= date[2] <= 31]
        if not orders:
            return False
        readings = [Reading("date", date) for date in dict.fromkeys(orders)]
        like = _PLAIN_FIGURE._replace(needs_all=len(readings) > 1)
        self._add(start, start + match.end(), *readings, like=like)
        return True

    def _month_date(self, start: int, match: re.Match[str], month: int) -> bool:
        """A day, or a range of days, of a month."""
        year = _year(match["year"]) if match["year"] else None
        end = start + match.end()
        while self.low[end - 1] in " .,-/":
            end -= 1
        if match["last"]:
            last = start + match.start("last")
            end_of_day = start + match.end("day")
            self._add(start, end_of_day, Reading("date", (year, month, int(match["day"]))))
            start, day = last, int(match["last"])
        else:
            day = int(match["day"])
        self._add(start, end, Reading("date", (year, month, day)))
        return True

    def _time(self, start: int) -> bool:
        window = self.low[start : start + 40]
        if match := _CLOCK.match(window):
            separator, is_marked = match["sep"], match["half"] or match["uhr"]
            hour, minute, second = int(match["h"]), int(match["m"]), int(match["s"] or 0)
            if separator == "." and not is_marked:
                return False
            seconds = 3600 * hour + 60 * minute + second
            length = Reading("quantity", Fraction(seconds), "time", Fraction(hour))
            if separator == "h" and re.match(r" ?m(?:in)?\b", window[match.end() :]):
                unit_end = re.match(r" ?m(?:in)?\b", window[match.end() :])
                self._add(start, start + match.end() + (unit_end.end() if unit_end else 0), length)
                return True
            readings = list(_clock_readings(match, hour, seconds))
            if separator == "h" or match["s"]:
                readings.append(length)
            self._add(start, start + match.end(), *readings)
            return True
        if (match := _HOUR.match(window)) and (not match["half"] or 1 <= int(match["h"]) <= 12):
            hour = int(match["h"])
            self._add(start, start + match.end(), *_clock_readings(match, hour, 3600 * hour))
            return True
        if match := _RATIO.match(window):
            self._add(start, start + match.end(), Reading("identifier", match[0]))
            return True
        return False

    # -- at a word --

    def _at_word(self, start: int, word: str) -> None:
        grammar = self.grammar
        words = grammar.words
        if self.text[start - 1 : start] in ("_", "/", "\\", "@", "."):
            return
        if word in words.months and self._month(start, word):
            return
        if word in words.weekdays:
            self._add(start, start + len(word), Reading("date", words.weekdays[word]))
        elif word in ("noon", "midday", "midnight"):
            seconds = 0 if word == "midnight" else 43_200
            self._add(start, start + len(word), Reading("time", (seconds, "")), like=_LOOSE_FIGURE)
        elif word in words.ordinals or (word in words.numbers and words.numbers[word] in (20, 30)):
            if not self._ordinal(start) and word in words.numbers:
                self._number(start, start)
            elif word in _SHARES and start >= self.position:
                self._share(start, word)
        elif word in _DECADES:
            self._add(start, start + len(word), Reading("date", ("decade", _DECADES[word])))
        elif word in _SHARES:
            self._share(start, word)
        elif word in _TIMES:
            count = Fraction(_TIMES[word])
            reading = Reading("quantity", count, "times", count)
            is_loose = word in ("once", "double", "triple")
            end = start + len(word)
            per, end = self._per(end)
            like = _PLAIN_FIGURE._replace(per=per, is_loose=is_loose)
            self._add(start, end, reading, like=like)
        elif word in grammar.articles:
            self._article(start, word)
        else:
            self._number(start, start)

    def _month(self, start: int, word: str) -> bool:
        window = self.low[start : start + 48]
        number = self.grammar.words.months[word]
        is_name = self.language != "en" or self.text[start].isupper()
        match = self.grammar.month_day.match(window)
        is_date = match and (is_name or match["year"]) and int(match["last"] or 1) <= 31
        if match and is_date:
            return self._month_date(start, match, number)
        if match := _AFTER_MONTH.match(window, len(word)):
            return self._add_date(start, match, (_year(match[1]), number, None))
        if (match := self.grammar.ordinal_month.match(window)) and match["month"]:
            return self._ordinal(start)
        before = self._word_before(start).lower()
        is_date = before in _BEFORE_MONTH or (is_name and len(word) > 3 and word != "march")
        if is_name and is_date and self.language == "en":
            self._add(start, start + len(word), Reading("date", (None, number, None)))
            return True
        return False

    def _ordinal(self, start: int) -> bool:
        """Ordinals in words: "the third of May 2026", "third quarter of 2026", "twenty-first"."""
        window = self.low[start : start + 64]
        match = self.grammar.ordinal_month.match(window)
        if match is None:
            return False
        words = self.grammar.words
        number = words.ordinals[match["ordinal"]] + words.numbers.get(match["tens"] or "", 0)
        month = match["month"] or match["month2"]
        if month and number <= 31:
            year = _year(match["year"]) if match["year"] else None
            self._add(
                start, start + match.end(), Reading("date", (year, words.months[month], number))
            )
            return True
        end = start + match.end("ordinal")
        if match := _PART_OF_YEAR.match(self.low, end):
            letter = "q" if match[1] == "quarter" else "h"
            value = (int(match[2]), f"{letter}{number}")
            self._add(start, match.end(), Reading("date", value))
            return True
        before = self._word_before(start).lower()
        is_share = before in words.numbers or before in ("a", "one")
        if is_share and number > 2 and self.low[start - 1 : start] in " -":
            return False
        is_loose = number == 1 or before not in _DETERMINERS
        like = _PLAIN_FIGURE._replace(nouns=self._nouns(end)[0], is_loose=is_loose)
        self._add(start, end, Reading("ordinal", number), like=like)
        return True

    def _share(self, start: int, word: str) -> None:
        """A share without a number before it: "half of", "half a million", "a quarter of"."""
        low, end = self.low, start + len(word)
        share = Fraction(1, _SHARES[word])
        if match := _PAST_HOUR.match(low, start):
            number = self.grammar.words.numbers.get(match[3]) or int(match[4] or 0)
            seconds = 3600 * (number % 12) + (1800 if match[1] == "half" else 900) * (
                -1 if match[2] == "to" else 1
            )
            if number <= 12:
                self._add(start, match.end(), Reading("time", (seconds % 43_200, "", "12h")))
                return
        if match := re.compile(r"(?: an?|-) ?(?=\w)").match(low, end):
            units, unit_end = self._unit(match.end())
            if units:
                self._add(start, unit_end, *_measured(share, units))
                return
            scale, scale_end = self._scale(match.end())
            if scale > 1:
                self._number_from(share * scale, start, scale_end)
                return
        before = self._word_before(start).lower()
        is_share = re.compile(r" (?:of|the|our|its|their|all)\b").match(low, end)
        if is_share and (word == "half" or before in self.grammar.articles or before == "one"):
            self._add(start, end, *_shares(share))

    def _article(self, start: int, word: str) -> None:
        """An article states a figure in "a day" and "a million", and none in "a server"."""
        end = start + len(word)
        match = _ONE_MORE.match(self.low, end)
        follows = match[1] if match else ""
        if follows not in UNITS_BY_NAME and follows not in self.grammar.words.scales:
            return
        scale, scale_end = self._scale(end)
        if scale > 1:
            self._number_from(Fraction(scale), start, scale_end, scale=scale)
            return
        if _SHARE_AFTER.match(self.low, end):
            return
        units, unit_end = self._unit(end, skips=False)
        if units and units[0].dimension in ("time", "month"):
            before = self._word_before(start).lower()
            count, end = _and_a_half(self.low, Fraction(1), unit_end, 1)
            is_loose = before not in _BEFORE_LENGTH and end == unit_end
            like = _LOOSE_FIGURE if is_loose else _PLAIN_FIGURE
            self._add(start, end, *_measured(count, units), like=like)

    # -- numbers --

    def _number(self, start: int, first: int, *, negative: bool = False) -> None:
        """A number in digits or words, with its scale, unit and rate.

        Args:
            start: where the number begins.
            first: where its sign or currency begins.
            negative: whether a sign before it says so.
        """
        low = self.low
        match = _NUMBER.match(low, start)
        parts: tuple[TextFigure, ...] = ()
        if low[start] in _FRACTIONS:
            value, end = _FRACTIONS[low[start]], start + 1
        elif match is None:
            spelled = self._spelled(start)
            if spelled is None:
                return
            value, end = spelled
        elif match.end() - start > _MAX_DIGITS:
            self._add(start, match.end(), Reading("identifier", match[0]))
            return
        else:
            value, end = self._value(match)
            parts = self._groups(match)
        if low.endswith(_NEGATIVE, 0, start):
            negative, first = (
                True,
                low.rindex(" ", 0, start - 1) + 1 if " " in low[: start - 1] else 0,
            )
        value = -value if negative else value
        self._number_from(value, first, end, number=start, parts=parts)

    def _number_from(
        self,
        value: Fraction,
        first: int,
        end: int,
        *,
        number: int | None = None,
        parts: tuple[TextFigure, ...] = (),
        scale: int = 1,
    ) -> None:
        """Read what follows a number: its scale, its unit or noun, its rate.

        Args:
            value: the value that was read.
            first: where its sign or currency begins.
            end: where it ends.
            number: where it begins, if not at ``first``.
            parts: the numbers that it may consist of.
            scale: what was multiplied already.
        """
        low, start = self.low, first if number is None else number
        is_digit = low[start].isdecimal() or low[start] == "."
        money = self._currency_before(start)
        if money:
            first = min(first, money[1])
        if self._is_special(value, first, end, is_digit=is_digit):
            return
        factor, scale_end = self._scale(end, is_money=bool(money))
        if factor > 1 and low[end] in "mbt" and scale_end == end + 1 and not money:
            # 5m: metres, minutes or millions.
            units, unit_end = self._unit(end)
            if unit_end <= scale_end:
                readings = [*_measured(value, units), *_measured(value * factor, ())]
                self._add(first, scale_end, *readings)
                return
        elif factor > 1:
            value, end, scale = value * factor, scale_end, scale * factor
        value, end = _and_a_half(low, value, end, scale)
        units, end = (money[0], end) if money else self._unit(end)
        if units and units[0].dimension in ("time", "month"):
            value, end = _and_a_half(low, value, end, 1)
        per = ""
        if not units and (match := _GAP_WORD.match(low, end)) and match[2] in _RATES:
            name, period = _RATES[match[2]]
            units, per, end = UNITS_BY_NAME[name], rate_of(period), match.end()
        is_glued = is_digit and low[end - 1].isdecimal() and low[end : end + 1].isalpha()
        is_size = low[end : end + 1] == "x" and low[end + 1 : end + 2].isdecimal()
        if not units and is_glued and not is_size and self._identifier(start):
            return
        figure = self._described(first, end, units)
        figure = figure._replace(per=per or figure.per)
        if units and self._composite(first, end, value, units[0], figure):
            return
        readings = _measured(value, units)
        if units and units[0].dimension == "month" and low.startswith(_OLD, end):
            readings += _measured(value, ())  # "23 years old" is "aged 23".
        if not units and is_digit:
            readings = self._further(low[start:end], readings, figure)
        elif is_digit and low[end - 1].isalpha() and " " not in low[start:end]:
            readings.append(Reading("identifier", _canonical(low[start:end])))  # 3D, 5G.
        is_loose = value == 1 and not is_digit and not units and self._is_pronoun(start, figure)
        more = figure._replace(parts=parts, scale=scale, is_loose=is_loose)
        self._add(first, max(end, more.end), *readings, like=more)

    def _described(self, first: int, end: int, units: tuple[Unit, ...]) -> TextFigure:
        """The rate of a number, and without a unit what it counts or names."""
        before, label, noun_end = "", "", end
        nouns: frozenset[str] = frozenset()
        if not units:
            before = self._word_before(first)
            label = self._label(first, before)
            nouns, noun_end = self._nouns(end)
            if nouns & _CODE_NOUNS:
                nouns, label = frozenset(), "#"  # "A 404 error" is "HTTP 404".
        per, per_end = self._per(noun_end)
        # The range does not contain nouns.
        end = per_end if per and noun_end == end else end
        return TextFigure(
            first, end, "", (), per=per, nouns=nouns, label=label, before=before.lower()
        )

    def _is_special(self, value: Fraction, first: int, end: int, *, is_digit: bool) -> bool:
        """Read an ordinal, a share such as "two thirds", or "1 in 5"."""
        low = self.low
        follows = low[end : end + 1]
        if is_digit and follows.isalpha() and (match := _ORDINAL_END.match(low, end)):
            like = _PLAIN_FIGURE._replace(nouns=self._nouns(match.end())[0])
            self._add(first, match.end(), Reading("ordinal", int(value)), like=like)
            return True
        if not is_digit and (match := _SHARE_AFTER.match(low, end)):
            share = value / _SHARES[match[1]]
            of_unit = _OF_UNIT.match(low, match.end())
            units, unit_end = self._unit(of_unit.end() - 1) if of_unit else ((), 0)
            is_of = re.match(r" (?:of|the)\b|[.,;:)]|$", low[match.end() : match.end() + 4])
            if units:
                self._add(first, unit_end, *_measured(share, units))
            elif match[1] not in ("quarter", "quarters") or is_of:
                self._add(first, match.end(), *_shares(share))
            return bool(units or match[1] not in ("quarter", "quarters") or is_of)
        match = _OUT_OF.match(low, end) if low[end : end + 2] in (" i", " o") else None
        return match is not None and self._ratio(value, first, end, match)

    def _value(self, match: re.Match[str]) -> tuple[Fraction, int]:
        """The value of digits with a power, or a fraction behind them; and their end."""
        low, text, end = self.low, match[0], match.end()
        if match["grouped"]:
            text = re.sub("[ '_]", "", text).replace(",", ".")
        elif match["us"]:
            is_decimal = self.comma and text.count(",") == 1 and "." not in text
            text = text.replace(",", "." if is_decimal else "")
        elif match["eu"]:
            is_decimal = not self.comma and text.count(".") == 1 and "," not in text
            text = text if is_decimal else text.replace(".", "").replace(",", ".")
        value = Fraction(int(text) if text.isdecimal() else text.replace(",", "."))
        follows = low[end : end + 1]
        if (low[end + 1 : end + 2] if follows == " " else follows) not in _AFTER_DIGITS:
            return value, end
        is_ten = text == "10"
        if power := _POWER.match(low, end) or (_OWN_POWER.match(low, end) if is_ten else None):
            exponent = int(power[1] or (power[2] or "").translate(_SUPERSCRIPTS))
            base = 1 if power.re is _OWN_POWER else value
            return base * Fraction(10) ** exponent, power.end()
        if power := _EXPONENT.match(low, end):
            return value * Fraction(10) ** int(power[1]), power.end()
        if mixed := _MIXED.match(low, end):
            share = _FRACTIONS[mixed[1]] if mixed[1] else _divided(mixed[2], mixed[3])
            if share is not None and share < 1:
                return value + share, mixed.end()
        if match["whole"] and (slash := _SLASH.match(low, end)):
            share = _divided(text, slash[1])
            if share is not None:
                return share, slash.end()
        return value, end

    def _groups(self, match: re.Match[str]) -> tuple[TextFigure, ...]:
        """The numbers of "1 200", which may be two."""
        if not match["grouped"] or match["g"] != " ":
            return ()
        return tuple(
            TextFigure(match.start(), match.end(), group, tuple(_measured(Fraction(group), ())))
            for group in match[0].split(" ")
            if group.isdecimal()
        )

    def _further(self, text: str, readings: list[Reading], figure: TextFigure) -> list[Reading]:
        """The readings of bare digits: also a version, a year, a part of an identifier."""
        value, before, label = readings[0].value, figure.before, figure.label
        if text.isdecimal():
            if label in _VERSIONED:
                readings.append(Reading("version", text))
            if len(text) == 4 and 1000 <= int(text) <= 2200:
                readings.append(Reading("date", (int(text), None, None)))
        elif _SHORT_VERSION.fullmatch(text):
            version = Reading("version", text)
            # "Python 3.10" is not "Python 3.1".
            is_version = label in _VERSIONED or self._word_before(figure.start)[:1].isupper()
            is_version = is_version and before not in self.grammar.stop_words
            readings = [version] if is_version else [*readings, version]
        elif "/" in text and isinstance(value, Fraction):
            readings += [_shares(value)[0], Reading("identifier", text)]
        if _GROUPED.fullmatch(text):
            readings.append(Reading("identifier", f"={text}"))
        if before:
            readings.append(Reading("identifier", _canonical(f"{before} {text}")))
        return readings

    def _spelled(self, start: int) -> tuple[Fraction, int] | None:
        """The value of a number in words, and its end."""
        words, low = self.grammar.words, self.low
        total, end, place = 0, start, start
        current: int | None = None
        while match := _SPELLED.match(low, place):
            word, place = match[1], match.end()
            is_joined = word in words.joins and self._may_join(total, current, place)
            if is_joined and (match := _SPELLED.match(low, place)):
                word, place = match[1], match.end()
            value, scale = words.numbers.get(word), words.scales.get(word, 0)
            is_plural = self.language == "en" or word.endswith(("en", "s", "es"))
            if value is not None:
                value = _combined(current, value, joined=is_joined)
                if value is None:
                    break
                current = value
            elif len(word) < 3 or not scale or (current is None and (total or is_plural)):
                break
            elif scale in (100, 12):
                current = (current or 1) * scale
            else:
                total, current = total + (current or 1) * scale, None
            end = place
        if end == start:
            return None
        number = Fraction(total + (current or 0))
        if self.language == "en" and (match := _POINT.match(low, end)):
            digits = "".join(str(words.numbers.get(word, 0)) for word in match[1].split())
            number, end = number + Fraction(f"0.{digits}"), match.end()
        return number, end

    def _may_join(self, total: int, current: int | None, end: int) -> bool:
        """Whether "and" may join a number: "two hundred and five", but not "twenty and five"."""
        follows = _SPELLED.match(self.low, end)
        least = 100 if self.language == "en" else 1 if self.language == "de" else 20
        is_number = follows is not None and follows[1] in self.grammar.words.numbers
        return is_number and (total > 0 or (current or 0) >= least)

    def _scale(self, end: int, *, is_money: bool = False) -> tuple[int, int]:
        """What multiplies the number that ends here, and the end of that; 1 if nothing does."""
        scale, low, words = 1, self.low, self.grammar.words
        while low[end : end + 1] not in _NO_UNIT and (match := _SCALE_WORD.match(low, end)):
            name = match[2].removesuffix(".")
            factor = words.scales.get(name)
            if factor is None or (name in UNITS_BY_NAME and name not in ("m", "mm", "t", "b", "k")):
                break
            is_letter = len(name) == 1 or name == "mm"
            if is_letter and (match[1] or (name in ("mm", "t", "b") and not is_money)):
                break
            end, scale = match.end(), scale * factor
            if len(name) == 1:
                break
        return scale, end

    def _unit(self, end: int, *, skips: bool = True) -> tuple[tuple[Unit, ...], int]:
        """The units that may follow a number that ends here, and their end; empty if none does."""
        low = self.low
        if low[end : end + 1] in _NO_UNIT:
            return (), end
        if match := _SIGN.match(low, end):
            if match[1] == "×" and re.match(r" ?\d", low[match.end() : match.end() + 2]):
                return (), end
            if units := UNITS_BY_NAME.get(match[1]):
                return units, match.end()
        place, skipped = end, 0
        while match := _GAP_WORD.match(low, place):
            word, after = match[2], match.end()
            if match[1] == " -" or (match[1] == "" and skipped):
                break
            for further in (_TWO_MORE, _ONE_MORE) if word in _FIRST_WORDS else ():
                more = further.match(low, after)
                if more and (units := UNITS_BY_NAME.get(f"{word} {' '.join(more.groups())}")):
                    return units, more.end()
            units = UNITS_BY_NAME.get(self.text[match.start(2) : after]) or UNITS_BY_NAME.get(word)
            if units and not (skipped and len(word) < 3):
                return units, after
            # "30 consecutive days", "5 sunny days": at most one word.
            is_word = word not in _BLOCKING and word not in self.grammar.triggers
            is_word = is_word and (word in _SKIPPED or word not in self.grammar.stop_words)
            if skipped or not skips or match[1] == "" or not is_word:
                break
            further_word = _GAP_WORD.match(low, after)
            if not further_word or further_word[1] != " ":
                break
            if word not in _SKIPPED and further_word[2] not in _LENGTHS:
                break
            place, skipped = after, skipped + 1
        return (), end

    def _per(self, end: int) -> tuple[str, int]:
        """What a figure is a rate of, and the end of that."""
        low = self.low
        if low[end : end + 1] not in " /":
            return "", end
        if match := _PERIOD.match(low, end):
            return rate_of(match[1]), match.end()
        if match := _PER.match(low, end):
            word = match[1]
            is_explicit = "/" in match[0] or match[0].startswith(
                (" per ", " pro ", " par ", " por ")
            )
            units = UNITS_BY_NAME.get(word)
            is_period = units and units[0].dimension in ("time", "month")
            if is_explicit or (is_period and len(word) > 1):
                return rate_of(word) or stem(word), match.end()
        return "", end

    def _nouns(self, end: int) -> tuple[frozenset[str], int]:
        """The stems of up to three words that a number counts, and their end."""
        nouns, low = [], self.low
        for _ in range(3):
            match = _GAP_WORD.match(low, end)
            if match is None or match[1] not in (" ", "-") or match[2] in self.grammar.stop_words:
                break
            if match[2] in self.grammar.triggers or match[2] in _BLOCKING:
                break
            nouns.append(stem(match[2]))
            end = match.end()
        return frozenset(nouns), end

    def _label(self, start: int, before: str) -> str:
        """What kind of thing a number names: "section 4", "Windows 11", "#12"; "" if it counts."""
        if not before:
            return ""
        word = before.lower()
        if before == "#" or word in NUMBERED or word.removesuffix("s") in NUMBERED:
            return stem(word)
        if word in self.grammar.stop_words or word in _NO_LABEL or not before[0].isupper():
            return ""
        if before.isupper() and len(before) > 1:
            return word
        place = start - len(before) - 1
        is_first = _WORK_BEFORE.search(self.text[max(0, place - 4) : place]) is not None
        is_noun = self.language == "de" or word in self.grammar.triggers
        return "" if is_first or is_noun or place <= 0 else stem(word)

    def _currency_before(self, start: int) -> tuple[tuple[Unit, ...], int] | None:
        """The currency before a number, and where it begins."""
        last = self.low[max(self.position, start - 2) : start].rstrip(" ")[-1:]
        if not (last and last in _CURRENCY_ENDS):
            return None
        match = _CURRENCY_BEFORE.search(self.low, max(self.position, start - 6), start)
        return (UNITS_BY_NAME[match[1].rstrip(".")], match.start(1)) if match else None

    def _is_pronoun(self, start: int, figure: TextFigure) -> bool:
        """Whether "one" is no figure: "one of them", "this one"."""
        is_bare = not figure.nouns and not figure.per
        return is_bare or figure.before in _BEFORE_ONE or self.low[start - 1 : start] == "-"

    def _ratio(self, count: Fraction, first: int, end: int, match: re.Match[str]) -> bool:
        """Read "1 in 5" or "four out of ten": a share, or two numbers."""
        word = match[1]
        value = Fraction(word) if word.isdecimal() else self.grammar.words.numbers.get(word)
        if not value or not 0 < count < value or (value > 100 and value % 500):
            return False
        share = count / Fraction(value)
        numbers = []
        for begin, stop, number in ((first, end, count), (match.start(1), match.end(1), value)):
            reading = Reading("number", Fraction(number), "", Fraction(number))
            numbers.append(TextFigure(begin, stop, self.original[begin:stop], (reading,)))
        like = _PLAIN_FIGURE._replace(parts=tuple(numbers))
        self._add(first, match.end(1), *_shares(share), like=like)
        return True

    def _composite(
        self, first: int, end: int, value: Fraction, unit: Unit, like: TextFigure
    ) -> bool:
        """Read on, if a smaller unit follows: "1 hour 30 minutes", "5 feet 9 inches"."""
        gap = _MORE.match(self.low, end)
        if gap is None or unit.dimension not in ("time", "month", "foot", "ounce"):
            return False
        if (digits := _NUMBER.match(self.low, gap.end())) and len(digits[0]) <= _MAX_DIGITS:
            further, number_end = self._value(digits)
        elif not digits and (spelled := self._spelled(gap.end())):
            further, number_end = spelled
        else:
            return False
        units, unit_end = self._unit(number_end)
        smaller = next(
            (u for u in units if u.dimension == unit.dimension and u.factor < unit.factor), None
        )
        if smaller is None or further * smaller.factor >= unit.factor:
            return False
        total = value * unit.factor + further * smaller.factor
        # "1 hour 30 minutes 10 seconds".
        is_joined = not gap[0].strip()
        if is_joined and self._composite(first, unit_end, total / smaller.factor, smaller, like):
            return True
        parts: tuple[TextFigure, ...] = ()
        if not is_joined:
            texts = self.original[first:end], self.original[gap.end() : unit_end]
            parts = (
                TextFigure(first, end, texts[0], tuple(_measured(value, (unit,)))),
                TextFigure(gap.end(), unit_end, texts[1], tuple(_measured(further, (smaller,)))),
            )
        reading = Reading("quantity", total, unit.dimension)
        self._add(first, unit_end, reading, like=like._replace(parts=parts))
        return True


# -- canonical values ------------------------------------------------------------------------------


def _measured(value: Fraction, units: Iterable[Unit]) -> list[Reading]:
    """The readings of a number with each of the units; a bare number without one."""
    readings = []
    for unit in units:
        dimension = unit.dimension
        kind: FigureKind = (
            "percent" if dimension == "%" else "money" if dimension in MONEY else "quantity"
        )
        readings.append(Reading(kind, value * unit.factor, dimension, value))
    return readings or [Reading("number", value, "", value)]


def _and_a_half(low: str, value: Fraction, end: int, scale: int) -> tuple[Fraction, int]:
    """Add the fraction that follows a number: "two and a half"."""
    match = _AND_A_HALF.match(low, end) if low.startswith(" and", end) else None
    if match is None:
        return value, end
    share = Fraction(3, 4) if match[2] else Fraction(1, _SHARES[match[1]])
    return value + share * scale, match.end()


def _shares(share: Fraction) -> list[Reading]:
    return [Reading("percent", 100 * share, "%", 100 * share), Reading("number", share, "", share)]


def rate_of(name: str) -> str:
    """What "per" this name refers to: "day", "days" and "daily" are the same; "" for no unit."""
    units = UNITS_BY_NAME.get(_PERIODS.get(name, name))
    return f"{units[0].dimension}*{units[0].factor}" if units else ""


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character in "_.+"


def _divided(numerator: str, denominator: str) -> Fraction | None:
    return Fraction(int(numerator), int(denominator)) if int(denominator) else None


def _combined(current: int | None, value: int, *, joined: bool) -> int | None:
    """The number of two words, such as 20 and 5; ``None`` if they are two numbers."""
    if current is None:
        return value
    if current and current % 100 == 0 and value < 100:
        return current + value
    if current % 10 == 0 and current % 100 >= 20 and 0 < value < 10:
        return current + value
    if current == 4 and value == 20:
        return 80  # quatre-vingts
    if current in (60, 80) and 10 <= value < 20:
        return current + value  # soixante-dix, quatre-vingt-dix
    if not joined and 13 <= current <= 20 and 10 <= value < 100:
        return 100 * current + value  # nineteen ninety
    return None


def _year(text: str) -> int:
    """A year of four digits, or of two: 70 is 1970, 69 is 2069."""
    year = int(text.removeprefix("'"))
    return year if year > 99 else year + (1900 if year >= 70 else 2000)


def _numbers(match: re.Match[str], *groups: int) -> tuple[int, int, int]:
    year, month, day = (int(match[group]) for group in groups)
    return year, month, day


def _clock_readings(match: re.Match[str], hour: int, seconds: int) -> Iterator[Reading]:
    """A time of day in seconds with its zone; in the form of twelve hours as well."""
    groups = match.groupdict()
    zone = (groups.get("offset") or "").replace(":", "") or groups.get("zone") or ""
    zone = "utc" if zone in ("gmt", "z", "+0000") else zone
    half = groups.get("half")
    if half:
        yield Reading("time", ((seconds % 43_200) + (43_200 if half == "p" else 0), zone))
        return
    yield Reading("time", (seconds % 86_400, zone))
    if hour <= 12 and groups.get("uhr") not in ("uhr", "h"):
        yield Reading("time", (seconds % 43_200, zone, "12h"))


def _canonical(identifier: str) -> str:
    """RFC 9110, rfc-9110 and RFC9110 are the same; so are ERR_404 and err-404."""
    text = re.sub(r"[\s_]+", "-", identifier.strip().lower())
    text = re.sub(r"(?<=[a-z])[-./:#]+(?=\d)", "", text)
    return re.sub(r"^#", "", text)


def _version(number: str) -> str:
    """1.0.0-rc.1 and 1.0.0rc1 are the same."""
    number, plus, build = number.partition("+")
    return re.sub(r"[.-]?([a-z]+)[.-]?", r"\1", number.replace("*", "x")) + plus + build


def _shortened(address: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_interface(address))
    except ValueError:
        return address


def _url(text: str) -> str:
    """An address with its scheme and host in lower case, without "www." and the last slash."""
    scheme, separator, rest = text.rpartition("://")
    host, slash, path = rest.partition("/")
    host = host.lower().removeprefix("www.")
    host = host.removesuffix(":443" if scheme.lower() == "https" else ":80")
    return f"{scheme.lower()}{separator}{host}{slash}{path}".rstrip("/")


def _digits(phone: str) -> str:
    return "".join(filter(str.isdecimal, phone))


_ADDRESSES: tuple[tuple[str, re.Pattern[str], FigureKind, Callable[[str], str]], ...] = (
    ("@", _MAIL, "mail", str),
    ("-", _UUID, "hash", str),
    (".", _IP, "address", str),
    ("10.", _DOI, "identifier", str),
    ("-", _MAC, "address", lambda text: text.replace("-", ":")),
    (":", _MAC, "address", str),
    (":", _IP6, "address", _shortened),
    ("+", _PHONE, "identifier", _digits),
    ("", _HASH, "hash", str),
)
"""A sign, and the pattern of an address that contains it; its kind and canonical form."""

# -- lists and ranges ------------------------------------------------------------------------------


def _joined(figures: list[TextFigure], low: str) -> list[TextFigure]:
    """Give a number of a list or range the unit of the last one, and the currency of the first."""
    for place in range(len(figures) - 1, 0, -1):
        first, last = figures[place - 1], figures[place]
        gap = _RANGE_GAP.fullmatch(low, first.end, last.start)
        if gap is None and low[first.end : last.start].strip() == "":
            continue
        if gap is None or first.kind not in COUNTED or last.kind not in COUNTED:
            continue
        is_list = gap[0].strip() == ","
        if first.unit and first.unit == last.unit and first.scale == 1 < last.scale:
            # "$5 to $10 million".
            figures[place - 1] = first._replace(
                readings=(*first.readings, *_like(first, last, is_only=True))
            )
            continue
        if gap[0] == "-" and (short := _short_year(first, last)):
            figures[place] = last._replace(readings=(*last.readings, *short))
        if not first.unit and not first.label and not _is_year(first):
            readings = _like(first, last)
            if readings:
                more = first.readings if is_list else ()
                figures[place - 1] = first._replace(
                    readings=(*readings, *more), nouns=last.nouns, per=last.per
                )
            elif not first.nouns:
                figures[place - 1] = first._replace(nouns=last.nouns, per=last.per)
    for first_place in range(len(figures) - 1):
        first, last = figures[first_place], figures[first_place + 1]
        gap = _RANGE_GAP.fullmatch(low, first.end, last.start)
        if gap is None or last.kind != "number" or last.nouns or _is_year(last):
            continue
        if first.kind == "money" and gap[0].strip() in ("-", "to", "–", "and"):
            figures[first_place + 1] = last._replace(
                readings=tuple(_like(last, first, scaled=False))
            )
        elif first.label and not last.label:
            figures[first_place + 1] = last._replace(label=first.label)
    return figures


def _is_year(figure: TextFigure) -> bool:
    return any(reading.kind == "date" for reading in figure.readings)


def _short_year(first: TextFigure, last: TextFigure) -> list[Reading]:
    """The year of "23" in "2019-23"."""
    year, short = first.readings[0].amount, last.readings[0].amount
    if not _is_year(first) or not year or not short or not year % 100 < short < 100:
        return []
    value = year - year % 100 + short
    return [Reading("number", value, "", value), Reading("date", (int(value), None, None))]


def _like(
    bare: TextFigure, other: TextFigure, *, scaled: bool = True, is_only: bool = False
) -> list[Reading]:
    """The readings of a number with the unit and the scale of another one.

    Args:
        bare: the number.
        other: the other one.
        scaled: whether the scale applies, too.
        is_only: whether the number without the scale is left out.
    """
    count = bare.readings[0].amount
    if count is None:
        return []
    readings = []
    scale = other.scale if scaled and bare.scale == 1 else 1
    for reading in other.readings:
        if reading.amount and reading.kind in COUNTED and isinstance(reading.value, Fraction):
            factor = reading.value / reading.amount
            for value in dict.fromkeys((count * scale, count * scale if is_only else count)):
                if reading.unit or scale > 1:
                    readings.append(Reading(reading.kind, value * factor, reading.unit, value))
    return readings
