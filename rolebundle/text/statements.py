"""What a sentence states: its words, its figures and its negations. Pure.

Negations and opposites are English; figures are of any language with spaces between its words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rolebundle.text.sentences import CONTRACTIONS, OPPOSITES, is_denied
from rolebundle.text.stop_words import ENGLISH, NEGATIONS, NUMBER_WORDS, ORDINALS
from rolebundle.text.unit_names import FREQUENCIES, MONTHS, NUMBERED, SCALES, UNITS, WEEKDAYS
from rolebundle.text.words import stem

MIN_WORDS, MAX_WORDS = 2, 40
"""A sentence with fewer words that are not general does not name what it is about."""

Value = float | str | tuple[float, float] | tuple[int | None, int | None, int | None]


class Figure(NamedTuple):
    """A figure: what it measures ("time", "number of book", "date"), its value, unit and text."""

    kind: str
    value: Value
    unit: str
    text: str


class Statement(NamedTuple):
    """What a sentence states.

    Attributes:
        words: the stems of its content words, without units, numbers and negations.
        names: those of the words that are names or identifiers.
        references: numbered things that it refers to.
        figures: its figures, in their order.
        negations: the parity of its negations; of all, and of those outside of conditions.
        bounds: "least", "most", or both.
    """

    words: frozenset[str]
    names: frozenset[str]
    references: frozenset[str]
    figures: tuple[Figure, ...]
    negations: tuple[int, int]
    bounds: frozenset[str]


# Source code, markup, tables, numbers of issues; "this option" and times that depend on today.
_UNREADABLE = re.compile(
    r"[=<>{}\\|\[\]~^@_©]|::|->|\w\(|\$[A-Za-z{]|#\w|\b0x|//|--"
    r"|^(?:it|this|these|those|they|he|she|such|here|its|their|that)\b"
    r"|\b(?:today|yesterday|tomorrow|ago|copyright)\b",
    re.IGNORECASE,
)


# lm80, max_epu16, fromStr, core::arch, pg.conf.
_IDENTIFIER = re.compile(
    r"\b(?=\w*[a-zA-Z_])(?=\w*[\d_])\w+|\b[a-z]+[A-Z]\w*|\w+::\w+|\b[a-zA-Z_]\w+\.\w+"
)


def identifiers(text: str) -> frozenset[str]:
    """The identifiers of software and machines in a text, in lower case."""
    return frozenset(map(str.lower, _IDENTIFIER.findall(text)))


# -- words ---------------------------------------------------------------------------------------

_CONDITIONS = frozenset("if when whenever unless whether where wherever while because".split())
# Function words whose exchange changes what a figure counts from.
_DIRECTIONS = frozenset("above after before below between during until down last first".split())
_FUNCTION_WORDS = (
    ENGLISH
    | frozenset(
        "least most maximum minimum about exactly currently already still every always ever each "
        "any all or more less fewer need needs needed have has had to yet".split()
    )
) - _DIRECTIONS
# They do not count as what a sentence is about.
_GENERAL_WORDS = (
    "data value default long wide high deep large size length width height depth range valid "
    "result example note option parameter argument function number field type setting possible "
    "usual other new old use using set see return"
)


_GENERAL = frozenset(map(stem, _GENERAL_WORDS.split()))
_MEANINGS: dict[str, tuple[str, bool]] = {
    word: (stem(line.split()[0]), side == 1)
    for line in OPPOSITES.strip().splitlines()
    for side, words in enumerate(line.split("|"))
    for word in words.split()
}


@lru_cache(maxsize=8192)
def _meaning(word: str) -> tuple[str, bool]:
    """The stem of a lowercase word, and whether it denies; an empty stem for a function word."""
    if word in _MEANINGS:
        return _MEANINGS[word]
    if word in _FUNCTION_WORDS:
        return "", False
    if is_denied(word):
        return stem(word[2:]), True
    return stem(word), False


# -- figures -------------------------------------------------------------------------------------

_NUMBER_OF = "number of "
# Words that are a whole figure: its kind, and its value.
_COUNTED = {
    "once": (_NUMBER_OF + stem("times"), 1.0),
    "twice": (_NUMBER_OF + stem("times"), 2.0),
    "noon": ("clock", 720.0),
    "midday": ("clock", 720.0),
    "midnight": ("clock", 0.0),
    **{word: ("th", number) for word, number in ORDINALS.items()},
}
# Before a month that stands alone: it may be a name or a verb as well.
_BEFORE_MONTH = frozenset("in by until since from before after during every of".split())
_WORDS_FOR_ONE = {"a": 1.0, "an": 1.0, "half": 0.5, "every": 1.0, "each": 1.0}
# After such a word "a week" is a figure; in "two euros a week" it is none.
_BEFORE_ONE = frozenset(
    "about after for in least most last lasts once take takes than within".split()
)
_RANGE = frozenset(("-", "–", " - ", " – "))
_TOKEN = re.compile(
    r"""
      (?P<iso> \b\d{4}-\d\d-\d\d\b )
    | (?P<currency> [$€£] | \b(?:EUR|USD|GBP|CHF)[ ] )?
      (?P<number> (?:(?<![\w).])[-−])? \d+ (?:[.,:]\d+)* )
      (?: [ ]?(?P<sign> [%$€£] )(?!\d) | (?P<suffix> [^\W\d_]\w* ) )?
    | (?P<word> [^\W\d_][\w’']* )
    | (?P<comma> , )
    """,
    re.VERBOSE,
)
_DAY_HALF = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)
# What bounds a value is no negation: "must not be larger than", "3.8 or later", "3.8+".
_AT_MOST = re.compile(
    r"\b(?:no|not|never|cannot)((?: \w+){0,2}) (?:more|longer|later|greater|higher|larger) than\b"
    r"|\b(?:not|never|cannot) exceed(?:s|ing)?\b|\ba maximum of\b"
    r"|\bor (?:less|fewer|earlier|lower|older|smaller|below)\b",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"\b(?:no|not|never|cannot)((?: \w+){0,2}) (?:less|fewer|shorter|earlier|lower|smaller) than\b"
    r"|(?<=\.\d)\+|(?<=\.\d\d)\+|\ba minimum of\b"
    r"|\bor (?:more|longer|later|higher|newer|greater|larger|above)\b",
    re.IGNORECASE,
)
_NO_NEGATION = re.compile(r"\bnot (?:only|necessarily)\b|\bor not\b", re.IGNORECASE)
_NO_LONGER = re.compile(r"\bno longer\b", re.IGNORECASE)
_ON = re.compile(r"\b(?:turned|switched) on\b|\bon(?= by default\b)", re.IGNORECASE)
_TURNED = re.compile(r"\b(?:turned|switched) (?=off\b)", re.IGNORECASE)
_MOST = re.compile(r"\b(?:at most|maximum|up to|within|under|below|(?:less|fewer) than)\b", re.I)
_LEAST = re.compile(r"\b(?:at least|minimum|over|above|more than)\b", re.I)
_BOUND_BEFORE = re.compile(r"\b(?:at (?:least|most)|minimum|maximum) (?:\w+ ){1,3}$", re.I)
_BOUND_AFTER = re.compile(r" (?:at (?:least|most)|is the (?:minimum|maximum))\b", re.I)


@lru_cache(maxsize=4096)
def read(sentence: str) -> Statement | None:
    """What a sentence states; ``None`` if it cannot be understood without its surroundings."""
    if _UNREADABLE.search(sentence):
        return None
    reader = _Reader(sentence)
    statement = reader.statement()
    counted = {
        figure.kind.removeprefix(_NUMBER_OF)
        for figure in statement.figures
        if figure.kind.startswith(_NUMBER_OF)
    }
    is_specific = len((statement.words | counted) - _GENERAL) >= MIN_WORDS
    return statement if is_specific and len(statement.words) <= MAX_WORDS else None


class _Token(NamedTuple):
    """A token of a sentence: a number, a word or a comma, and what is joined to a number."""

    kind: str
    text: str
    start: int
    end: int
    number: str = ""
    unit: str = ""

    @property
    def value(self) -> float | None:
        """The value of a number, of a time of day in minutes; ``None`` for 9.2.1 and for words."""
        if self.kind == "word":
            return NUMBER_WORDS.get(self.text.lower())
        return _value_of(self.number) if self.kind == "number" else None


def _tokens(sentence: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(sentence):
        number = match["number"] or ""
        unit = (match["currency"] or match["sign"] or match["suffix"] or "").strip().lower()
        kind = "number" if number else str(match.lastgroup)
        text = match.group().rstrip("'’")  # "two weeks' notice"
        start = match.start()
        tokens.append(_Token(kind, text, start, start + len(text), number, unit))
    return tokens


def _value_of(number: str) -> float | None:
    hours, colon, minutes = number.partition(":")
    if colon:
        is_time = len(hours) < 3 and len(minutes) == 2 and (hours + minutes).isdigit()
        return 60 * float(hours) + float(minutes) if is_time else None
    first_group, *groups = number.split(",")
    if groups and all(len(group.partition(".")[0]) == 3 for group in groups):
        number = first_group + "".join(groups)
    try:
        return float(number.replace(",", ".").replace("−", "-"))
    except ValueError:
        return None


def _minutes(value: float, *, is_clock: bool, unit: str) -> float:
    """The minutes of a time of day: "8:30 pm" was read as minutes, "8 pm" as hours."""
    minutes = value if is_clock else 60 * value
    return minutes + 720 if unit == "pm" and minutes < 720 else minutes


def _normalized(sentence: str) -> str:
    """The sentence with one notation for halves of a day, bounds and negations."""
    sentence = _NO_NEGATION.sub(" ", _DAY_HALF.sub(r"\1m", sentence))
    sentence = _AT_LEAST.sub(r"\1 at least", _AT_MOST.sub(r"\1 at most", sentence))
    sentence = _ON.sub("enabled", _TURNED.sub("", _NO_LONGER.sub("not", sentence)))
    return " ".join(sentence.split())


class _Reader:
    """Reads one sentence from left to right."""

    def __init__(self, sentence: str) -> None:
        self.text = _normalized(sentence)
        self.tokens = _tokens(self.text)
        self.position = 0
        self.words: set[str] = set()
        self.names: set[str] = set()
        self.references: set[str] = set()
        self.figures: list[Figure] = []
        self.negations = self.outside = 0
        self.noun = ""
        """The last content word, as it is written."""

    def statement(self) -> Statement:
        is_condition = False
        while self.position < len(self.tokens):
            token = self.tokens[self.position]
            self.position += 1
            word = token.text.lower()
            if token.kind == "comma":
                is_condition = False
            elif word in FREQUENCIES and not _meaning(self._next())[0]:
                kind, period = UNITS[FREQUENCIES[word]]
                self.figures.append(Figure(kind, float(period), "", token.text))
            elif counted := _COUNTED.get(word):
                self.figures.append(Figure(*counted, "", token.text))
            elif token.kind in ("number", "iso") or self._is_number(word) or self._is_date(word):
                self._figure(token)
            else:
                is_condition = is_condition or word in _CONDITIONS
                denies = self._word(token.text, word)
                self.negations += denies
                self.outside += denies and not is_condition
        bounds = {
            bound
            for bound, pattern in (("least", _LEAST), ("most", _MOST))
            if pattern.search(self.text)
        }
        return Statement(
            frozenset(self.words),
            frozenset(self.names),
            frozenset(self.references),
            tuple(self.figures),
            (self.negations % 2, self.outside % 2),
            frozenset(bounds),
        )

    def _next(self, offset: int = 0) -> str:
        """The next token in lower case; empty at the end."""
        place = self.position + offset
        return self.tokens[place].text.lower() if 0 <= place < len(self.tokens) else ""

    def _number_at(self, offset: int = 0) -> int | None:
        """The next token as a whole number of at most four digits."""
        number = self._next(offset).rstrip("stndrh")
        return int(number) if number.isdecimal() and len(number) <= 4 else None

    def _gap(self, place: int) -> str:
        """The text between the token at a place and the one before it."""
        return self.text[self.tokens[place - 1].end : self.tokens[place].start]

    def _is_number(self, word: str) -> bool:
        """Whether a word is a number: "two", "a" in "for a week", "every" in "every week"."""
        if word not in _WORDS_FOR_ONE:
            return word in NUMBER_WORDS
        if self._next() in SCALES:
            return True
        if word == "half" and self._next() in ("a", "an"):
            self.position += 1
        elif self._next() == "second" or (
            word in ("a", "an") and self._next(-2) not in _BEFORE_ONE
        ):
            return False
        return UNITS.get(self._next(), ("", 0))[0] == "time"

    def _word(self, text: str, word: str) -> bool:
        """Read a word, and return whether it denies."""
        if word in NEGATIONS or word.endswith(CONTRACTIONS):
            return True
        content, denies = _meaning(word)
        if content:
            self.words.add(content)
            self.noun = text
            if self.position > 1 and not text.islower():
                self.names.add(content)
        return denies

    # -- dates --

    def _is_date(self, word: str) -> bool:
        if word not in MONTHS:
            return word in WEEKDAYS
        return self._next(-2) in _BEFORE_MONTH or self._number_at() is not None

    def _date(self, token: _Token) -> Figure | None:
        """The date that begins with a token, if one does; moves behind it."""
        word, start = token.text.lower(), self.position
        year = month = day = None
        if token.kind == "iso":
            year, month, day = map(int, word.split("-"))
        elif word in WEEKDAYS:
            return Figure("date", WEEKDAYS[word], "", token.text)
        elif word in MONTHS:
            month = MONTHS[word]
            if (self._number_at() or 32) <= 31:
                day = self._number_at()
                self.position += 1
            year = self._year()
        elif (
            (day := self._number_at(-1))
            and day <= 31
            and token.unit in ("", "st", "nd", "rd", "th")
        ):
            self.position += self._next() == "of"
            if self._next() in MONTHS:
                month = MONTHS[self._next()]
                self.position += 1
                year = self._year()
        if month is None:
            self.position = start
            return None
        text = self.text[token.start : self.tokens[self.position - 1].end]
        return Figure("date", (year, month, day), "", text)

    def _year(self) -> int | None:
        comma = self._next() == ","
        year = self._number_at(comma)
        if year is None or year < 1000:
            return None
        self.position += comma + 1
        return year

    # -- other figures --

    def _figure(self, token: _Token) -> None:
        if date := self._date(token):
            self.figures.append(date)
            return
        if token.number and not token.unit and self._is_bounded(token):
            self.figures.append(Figure("version", token.number, "", token.text))
            return
        value, upper = self._value(token)
        unit = token.unit or (self._unit() if value is not None else "")
        if value is None or unit.startswith("-") or (token.unit and unit not in UNITS):
            self._name(token.text.lower() + unit.removeprefix(token.unit))  # 9.2.1, 3D, two-factor.
            return
        kind, factor = UNITS.get(unit, (_NUMBER_OF + stem(unit), 1.0))
        if kind == "clock":
            value, factor = _minutes(value, is_clock=":" in token.number, unit=unit), 1.0
        figure: Value = value * factor if upper is None else (value * factor, upper * factor)
        if not unit:
            kind = self._kind_without_unit(token)
            is_year = 1900 <= value <= 2100 and token.number.isdecimal() and upper is None
            if is_year and kind.startswith("of "):
                kind, figure = "date", (int(value), None, None)
        if kind:
            text = self.text[token.start : self.tokens[self.position - 1].end]
            self.figures.append(Figure(kind, figure, unit.removesuffix("s"), text))

    def _kind_without_unit(self, token: _Token) -> str:
        """What a number without a unit measures; empty if it is a part of a name, or "one"."""
        noun = self.noun.lower()
        is_name = self.noun[:1].isupper() and self.noun != self.tokens[0].text
        # "Bus 12 leaves at 8:30", "The bus 12 leaves at 8:30".
        is_label = any(self.noun == token_before.text for token_before in self.tokens[:2]) and (
            self.tokens.index(token) <= 2
        )
        if ":" in token.number:
            return "clock"
        if token.text.lower() == "one":
            return ""  # "one of them"
        if noun in NUMBERED or is_name or is_label:
            self.references.add(f"{noun} {token.text.lower()}")
            return ""
        return f"of {stem(noun)}"

    def _value(self, token: _Token) -> tuple[float | None, float | None]:
        """A number, with the words and the scale that belong to it, and the end of a range."""
        value = _WORDS_FOR_ONE.get(token.text.lower(), token.value)
        if value is None:
            return None, None
        if token.kind == "word" and value >= 20:
            value += self._following_number(10)
        upper = None if token.unit else self._upper()
        if self._next() in SCALES:
            factor = SCALES[self._next()]
            value, upper = value * factor, upper and upper * factor
            self.position += 1
            value += self._following_number(factor) if upper is None else 0.0
        return value, upper

    def _name(self, name: str) -> None:
        self.words.add(name)
        self.names.add(name)

    def _is_bounded(self, token: _Token) -> bool:
        """Whether a number is a version with a bound: "Python 3.8 or later", normalized."""
        is_product = self.noun[:1].isupper() and self._next(-2) == self.noun.lower()
        return (is_product or self.noun.lower() in ("version", "release")) and bool(
            _BOUND_AFTER.match(self.text, token.end)
            or _BOUND_BEFORE.search(self.text[: token.start])
        )

    def _following_number(self, scale: float) -> float:
        """What follows a number: five in "twenty-five", eighty in "three hundred and eighty"."""
        has_and = self._next() == "and"
        number = NUMBER_WORDS.get(self._next(has_and), 0.0)
        if not 0 < number < scale or self._next(has_and + 1) in SCALES:
            return 0.0
        self.position += has_and + 1
        return number + (self._following_number(10) if number >= 20 else 0.0)

    def _upper(self) -> float | None:
        """The second number of a range: 8-12, 8 to 12, 40 and 60; moves behind it."""
        place = self.position
        if place < len(self.tokens) and self._gap(place) not in _RANGE:
            place += self._next() in ("to", "and", "or")
        upper = self.tokens[place] if place < len(self.tokens) else None
        is_joined = place > self.position or (upper and self._gap(place) in _RANGE)
        if upper is None or not is_joined or upper.value is None or upper.unit:
            return None
        self.position = place + 1
        return upper.value

    def _unit(self) -> str:
        """The unit after a number, empty if there is none; moves behind it.

        "30 days", "30-day", "30 working days", "30 people". A compound like "two-factor" measures
        nothing, and is returned with its hyphen.
        """
        place = self.position
        word, further = self._next(), self._next(1)
        if not word or self.tokens[place].kind != "word" or self._gap(place) not in (" ", "-"):
            return ""
        content, denies = _meaning(word)
        is_unit = word in UNITS
        is_compound = self._gap(place) == "-" and not is_unit
        if not is_unit and not is_compound:
            if not content or denies or word in NEGATIONS or word in _CONDITIONS:
                return ""
            if further in UNITS and self._gap(place + 1) == " ":
                self.words.add(content)
                self.position += 2
                return further
        self.position += 1
        return f"-{word}" if is_compound else word
