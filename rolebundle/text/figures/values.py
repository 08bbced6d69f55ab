"""What a figure is worth: its readings, and the canonical values of notations."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from typing import Literal, NamedTuple

from rolebundle.text.figures import patterns
from rolebundle.text.figures.quantities import MONEY, UNITS_BY_NAME, Unit

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
        per: what it is a rate of: "day" in "5 a day"; "every" in "every 14 days"; "" if it is no
            rate.
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


def measured_readings(value: Fraction, units: Iterable[Unit]) -> list[Reading]:
    """The readings of a number with each of the units; a bare number without one."""
    readings = []
    for unit in units:
        dimension = unit.dimension
        kind: FigureKind = (
            "percent" if dimension == "%" else "money" if dimension in MONEY else "quantity"
        )
        readings.append(Reading(kind, value * unit.factor, dimension, value))
    return readings or [Reading("number", value, "", value)]


def with_fraction(low: str, value: Fraction, end: int, scale: int) -> tuple[Fraction, int]:
    """Add the fraction that follows a number: "two and a half"."""
    match = patterns.AND_A_HALF.match(low, end) if low.startswith(" and", end) else None
    if match is None:
        return value, end
    share = Fraction(3, 4) if match[2] else Fraction(1, patterns.SHARES[match[1]])
    return value + share * scale, match.end()


def share_readings(share: Fraction) -> list[Reading]:
    """The readings of a share: a percentage or a number."""
    return [Reading("percent", 100 * share, "%", 100 * share), Reading("number", share, "", share)]


def rate_of(name: str) -> str:
    """What "per" this name refers to: "day", "days" and "daily" are the same; "" for no unit."""
    units = UNITS_BY_NAME.get(patterns.PERIODS.get(name, name))
    return f"{units[0].dimension}*{units[0].factor}" if units else ""


def is_word_character(character: str) -> bool:
    """Whether a character is part of a word, also in its middle."""
    return character.isalnum() or character in "_.+"


def fraction_of(numerator: str, denominator: str) -> Fraction | None:
    """A fraction in digits; ``None`` if it divides by zero."""
    return Fraction(int(numerator), int(denominator)) if int(denominator) else None


def combined_words(current: int | None, value: int, *, joined: bool) -> int | None:
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


def year_of(text: str) -> int:
    """A year of four digits, or of two: 70 is 1970, 69 is 2069."""
    year = int(text.removeprefix("'"))
    return year if year > 99 else year + (1900 if year >= 70 else 2000)


def integers(match: re.Match[str], *groups: int) -> tuple[int, int, int]:
    """Three groups of a match, as numbers."""
    year, month, day = (int(match[group]) for group in groups)
    return year, month, day


def clock_readings(match: re.Match[str], hour: int, seconds: int) -> Iterator[Reading]:
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


def canonical_identifier(identifier: str) -> str:
    """RFC 9110, rfc-9110 and RFC9110 are the same; so are ERR_404 and err-404."""
    text = re.sub(r"[\s_]+", "-", identifier.strip().lower())
    text = re.sub(r"(?<=[a-z])[-./:#]+(?=\d)", "", text)
    return re.sub(r"^#", "", text)


def canonical_version(number: str) -> str:
    """1.0.0-rc.1 and 1.0.0rc1 are the same."""
    number, plus, build = number.partition("+")
    return re.sub(r"[.-]?([a-z]+)[.-]?", r"\1", number.replace("*", "x")) + plus + build


def canonical_address(address: str) -> str:
    """The short form of an IPv6 address."""
    import ipaddress

    try:
        return str(ipaddress.ip_interface(address))
    except ValueError:
        return address


def canonical_url(text: str) -> str:
    """An address with its scheme and host in lower case, without "www." and the last slash."""
    scheme, separator, after_scheme = text.rpartition("://")
    host, slash, path = after_scheme.partition("/")
    host = host.lower().removeprefix("www.")
    host = host.removesuffix(":443" if scheme.lower() == "https" else ":80")
    return f"{scheme.lower()}{separator}{host}{slash}{path}".rstrip("/")


def digits_of(phone: str) -> str:
    """The digits of a telephone number."""
    return "".join(filter(str.isdecimal, phone))
