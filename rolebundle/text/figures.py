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
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from rolebundle.text import figure_patterns as patterns
from rolebundle.text.figure_ranges import join_ranges
from rolebundle.text.figure_values import (
    FigureKind,
    Reading,
    TextFigure,
    canonical_address,
    canonical_identifier,
    canonical_url,
    canonical_version,
    clock_readings,
    combined_words,
    digits_of,
    fraction_of,
    integers,
    is_word_character,
    measured_readings,
    rate_of,
    share_readings,
    with_fraction,
    year_of,
)
from rolebundle.text.quantities import (
    COMMA_LANGUAGES,
    UNITS_BY_NAME,
    Unit,
)
from rolebundle.text.statements import NUMBERED
from rolebundle.text.words import stem


@lru_cache(maxsize=2048)
def find_figures(text: str, language: str = "en") -> tuple[TextFigure, ...]:
    """The figures of a text, in their order; they do not overlap.

    Args:
        text: any text.
        language: one of ``quantities.LANGUAGES``, for number words, dates and decimal commas; any
            other reads digits only.
    """
    return tuple(_Reader(text, language).figures())


_PLAIN_FIGURE = TextFigure(0, 0, "", ())
_LOOSE_FIGURE = _PLAIN_FIGURE._replace(is_loose=True)

# -- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Reads a text from left to right.

    ``position`` is the end of the last figure; at ``tried`` no address begins.
    """

    def __init__(self, text: str, language: str) -> None:
        plain = text if text.isascii() else text.translate(patterns.PLAIN)
        low = plain.lower()
        if len(low) != len(plain):
            low = "".join(c if len(c.lower()) != 1 else c.lower() for c in plain)
        self.original, self.text, self.low = text, plain, low
        self.language = language
        self.grammar = patterns.grammar(language)
        self.comma = language in COMMA_LANGUAGES
        self.position, self.tried = 0, -1
        self.found: list[TextFigure] = []

    def figures(self) -> list[TextFigure]:
        triggers = self.grammar.triggers
        for match in patterns.TRIGGER.finditer(self.low):
            start, token = match.start(), match[0]
            if start < self.position:
                continue
            if token.isalpha() and token[0] not in patterns.FRACTIONS:
                if token in triggers:
                    self._at_word(start, token)
            elif token[0] in "/\\@_#.":
                self._at_mark(start)
            else:
                self._at_digit(start)
        return join_ranges(self.found, self.low)

    def _add(
        self, start: int, end: int, *readings: Reading, like: TextFigure | None = None
    ) -> None:
        """Add a figure; what its readings do not say is as in ``like``."""
        figure = like or _PLAIN_FIGURE
        text = self.original[start:end]
        self.found.append(figure._replace(start=start, end=end, text=text, readings=readings))
        self.position = end

    def _chunk_start(self, start: int) -> int:
        low, first = self.low, max(self.position, start - patterns.MAX_CHUNK)
        while start > first and low[start - 1] not in patterns.OUTSIDE:
            start -= 1
        return start

    def _word_before(self, start: int) -> str:
        """The word right before a place, or "#"."""
        text, first = self.text, max(self.position, start - patterns.MAX_CHUNK)
        end = start
        if end > first and text[end - 1] == "#":
            end -= 1
        if end > first and text[end - 1] in " -":
            end -= 1
        start_of_word = end
        while start_of_word > first and is_word_character(text[start_of_word - 1]):
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
        low, stop = self.low, start + patterns.MAX_CHUNK
        chunk_match = patterns.CHUNK.match(low, start, stop)
        if chunk_match is None:
            return False
        chunk = chunk_match[0]
        is_url = "://" in chunk or chunk.startswith("www.")
        if is_url and (match := patterns.URL.match(low, start, start + patterns.MAX_URL)):
            return self._url(match)
        for sign, pattern, kind, canonical in _ADDRESSES:
            if sign in chunk and (match := pattern.match(low, start, stop)):
                self._add(start, match.end(), Reading(kind, canonical(match[1])))
                return True
        if match := patterns.HEX.match(low, start, stop):
            readings = measured_readings(Fraction(int(match[1], 16)), ())
            self._add(start, match.end(), Reading("identifier", match[0]), *readings)
            return True
        if match := patterns.CONSTANT.match(self.text, start, stop):
            self._add(start, match.end(), Reading("identifier", canonical_identifier(match[0])))
            return True
        return self._path(start, chunk)

    def _url(self, match: re.Match[str]) -> bool:
        text = match[0].rstrip(patterns.TRAILING)
        while text.endswith(")") and text.count(")") > text.count("("):
            text = text[:-1].rstrip(patterns.TRAILING)
        start = match.start()
        # Paths of addresses are compared with their case.
        self._add(
            start,
            start + len(text),
            Reading("url", canonical_url(self.text[start : start + len(text)])),
        )
        return True

    def _path(self, start: int, chunk: str) -> bool:
        low = self.low
        if (
            "." in chunk
            and (match := patterns.HOST.match(low, start, start + patterns.MAX_CHUNK))
            and not patterns.FILE.fullmatch(match[0])
        ):
            return self._url(match)
        has_slash = "/" in chunk or "\\" in chunk
        match = (
            patterns.PATH.match(low, start, start + patterns.MAX_CHUNK)
            if has_slash
            else patterns.FILE.match(low, start, start + patterns.MAX_CHUNK)
            if "." in chunk
            else None
        )
        if match is None:
            return False
        text = match[0].rstrip(patterns.TRAILING + "/\\")
        path, _, line = re.sub(r"[:](?=\d+(?:-\d+)?$)", "\0", text).partition("\0")
        is_rooted = re.match(r"(?:[a-z]:[\\/]|~/|\.{1,2}[\\/]|/)[\w.@-]{2}", path)
        if not re.search(r"[a-z]", path) or not (is_rooted or patterns.FILE.search(path)):
            return False
        path = path.replace("\\", "/").removeprefix("./")
        self._add(start, start + len(text), Reading("path", f"{path}:{line}" if line else path))
        return True

    # -- at a digit --

    def _at_digit(self, start: int) -> None:
        low, first = self.low, self._chunk_start(start)
        chunk_match = patterns.CHUNK.match(low, first, first + patterns.MAX_CHUNK)
        chunk = chunk_match[0].rstrip(patterns.TRAILING) if chunk_match else ""
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
            if prefix not in patterns.PREFIXES and self._identifier(first):
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
        match = patterns.ONE_MORE.match(self.low, end + self.low.startswith(".", end))
        word = match[1] if match else ""
        is_date = word in self.grammar.date_words or end - start == 8
        is_date = is_date or self.low.startswith(" - ", end)
        if is_date and self._date(start):
            return
        if word in patterns.TIME_WORDS and self._time(start):
            return
        self._number(start, start)

    def _is_currency(self, text: str) -> bool:
        return re.fullmatch(rf"(?:{patterns.CURRENCY}|{patterns.CODES})", text) is not None

    def _named(self, start: int, chunk: str) -> bool:
        """Quarters and halves of years, fiscal years, durations in ISO 8601."""
        low = self.low
        if match := patterns.QUARTER.match(low, start):
            letter, number = match[1] or match[5], match[2] or match[6]
            year = int(match[3] or match[4])
            self._add(start, match.end(), Reading("date", (year, letter + number)))
            return True
        if match := patterns.FISCAL.match(low, start):
            self._add(start, match.end(), Reading("date", ("fy", year_of(match[1]))))
            return True
        if chunk[:1] == "p" and (match := patterns.DURATION.match(low, start)):
            parts = [
                (Fraction(text), UNITS_BY_NAME[name][0])
                for text, name in zip(match.groups(), patterns.DURATION_UNITS, strict=True)
                if text
            ]
            if len({unit.dimension for _, unit in parts}) == 1:
                value = sum((count * unit.factor for count, unit in parts), Fraction(0))
                unit = parts[0][1].dimension
                self._add(start, match.end(), Reading("quantity", value, unit, parts[0][0]))
                return True
        return False

    def _version(self, start: int, chunk: str) -> bool:
        match = patterns.VERSION.match(self.low, start, start + patterns.MAX_CHUNK)
        if match is None:
            return False
        number = match[2]
        plain = number.replace(".", "").isdecimal()
        if not match[1] and number.count(".") < (2 if plain else 1):
            return False
        if match[1] and match[1][0] == "v" and match[1].strip(". ") not in ("v", "ver", "version"):
            return False
        readings = [Reading("version", canonical_version(number))]
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
        match = patterns.IDENTIFIER.match(self.low, start, start + patterns.MAX_CHUNK)
        if match is None:
            return False
        text = match[0].rstrip("_")
        if text[0] != "#" and not re.search(r"\d", text):
            return False
        self._add(start, start + len(text), Reading("identifier", canonical_identifier(text)))
        return True

    # -- dates and times --

    def _date(self, start: int) -> bool:
        low, grammar = self.low, self.grammar
        window = low[start : start + 48]
        if match := patterns.ISO_DATE.match(window):
            return self._add_date(start, match, integers(match, 1, 3, 4))
        if match := patterns.NUMERIC_DATE.match(window):
            return self._numeric_date(start, match)
        if match := grammar.day_month.match(window):
            name = start + match.start("month")
            is_name = self.language != "en" or self.text[name].isupper() or match["year"]
            if is_name and (not match["last"] or int(match["last"]) <= 31):
                return self._month_date(start, match, grammar.words.months[match["month"]])
        if match := grammar.year_month_day.match(window):
            month = grammar.words.months[match["month"]]
            return self._add_date(start, match, (int(match["year"]), month, int(match["day"])))
        if match := patterns.COMPACT_DATE.match(window):
            year, month, day = integers(match, 1, 2, 3)
            value = Fraction(match[0])
            number = Reading("number", value, "", value)
            return self._add_date(start, match, (year, month, day), number)
        if (match := patterns.YEAR_MONTH.match(window)) and 1 <= int(match[2]) <= 12:
            return self._add_date(start, match, (int(match[1]), int(match[2]), None))
        if (match := patterns.MONTH_YEAR.match(window)) and 1 <= int(match[1]) <= 12:
            return self._add_date(start, match, (int(match[2]), int(match[1]), None))
        if match := patterns.TENS_OF_YEARS.match(window):
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
        first, second, year = int(match[1]), int(match[3]), year_of(match[4])
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
        year = year_of(match["year"]) if match["year"] else None
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
        if match := patterns.CLOCK.match(window):
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
            readings = list(clock_readings(match, hour, seconds))
            if separator == "h" or match["s"]:
                readings.append(length)
            self._add(start, start + match.end(), *readings)
            return True
        match = patterns.HOUR.match(window)
        if match and (not match["half"] or 1 <= int(match["h"]) <= 12):
            hour = int(match["h"])
            self._add(start, start + match.end(), *clock_readings(match, hour, 3600 * hour))
            return True
        if match := patterns.RATIO.match(window):
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
            elif word in patterns.SHARES and start >= self.position:
                self._share(start, word)
        elif word in patterns.DECADES:
            self._add(start, start + len(word), Reading("date", ("decade", patterns.DECADES[word])))
        elif word in patterns.SHARES:
            self._share(start, word)
        elif word in patterns.TIMES:
            count = Fraction(patterns.TIMES[word])
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
        if match := patterns.AFTER_MONTH.match(window, len(word)):
            return self._add_date(start, match, (year_of(match[1]), number, None))
        if (match := self.grammar.ordinal_month.match(window)) and match["month"]:
            return self._ordinal(start)
        before = self._word_before(start).lower()
        is_date = before in patterns.BEFORE_MONTH or (is_name and len(word) > 3 and word != "march")
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
            year = year_of(match["year"]) if match["year"] else None
            self._add(
                start, start + match.end(), Reading("date", (year, words.months[month], number))
            )
            return True
        end = start + match.end("ordinal")
        if match := patterns.PART_OF_YEAR.match(self.low, end):
            letter = "q" if match[1] == "quarter" else "h"
            value = (int(match[2]), f"{letter}{number}")
            self._add(start, match.end(), Reading("date", value))
            return True
        before = self._word_before(start).lower()
        is_share = before in words.numbers or before in ("a", "one")
        if is_share and number > 2 and self.low[start - 1 : start] in " -":
            return False
        is_loose = number == 1 or before not in patterns.DETERMINERS
        like = _PLAIN_FIGURE._replace(nouns=self._nouns(end)[0], is_loose=is_loose)
        self._add(start, end, Reading("ordinal", number), like=like)
        return True

    def _share(self, start: int, word: str) -> None:
        """A share without a number before it: "half of", "half a million", "a quarter of"."""
        low, end = self.low, start + len(word)
        share = Fraction(1, patterns.SHARES[word])
        if match := patterns.PAST_HOUR.match(low, start):
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
                self._add(start, unit_end, *measured_readings(share, units))
                return
            scale, scale_end = self._scale(match.end())
            if scale > 1:
                self._number_from(share * scale, start, scale_end)
                return
        before = self._word_before(start).lower()
        is_share = re.compile(r" (?:of|the|our|its|their|all)\b").match(low, end)
        if is_share and (word == "half" or before in self.grammar.articles or before == "one"):
            self._add(start, end, *share_readings(share))

    def _article(self, start: int, word: str) -> None:
        """An article states a figure in "a day" and "a million", and none in "a server"."""
        end = start + len(word)
        match = patterns.ONE_MORE.match(self.low, end)
        follows = match[1] if match else ""
        if follows not in UNITS_BY_NAME and follows not in self.grammar.words.scales:
            return
        scale, scale_end = self._scale(end)
        if scale > 1:
            self._number_from(Fraction(scale), start, scale_end, scale=scale)
            return
        if patterns.SHARE_AFTER.match(self.low, end):
            return
        units, unit_end = self._unit(end, skips=False)
        if units and units[0].dimension in ("time", "month"):
            before = self._word_before(start).lower()
            count, end = with_fraction(self.low, Fraction(1), unit_end, 1)
            is_loose = before not in patterns.BEFORE_LENGTH and end == unit_end
            like = _LOOSE_FIGURE if is_loose else _PLAIN_FIGURE
            self._add(start, end, *measured_readings(count, units), like=like)

    # -- numbers --

    def _number(self, start: int, first: int, *, negative: bool = False) -> None:
        """A number in digits or words, with its scale, unit and rate.

        Args:
            start: where the number begins.
            first: where its sign or currency begins.
            negative: whether a sign before it says so.
        """
        low = self.low
        match = patterns.NUMBER.match(low, start)
        parts: tuple[TextFigure, ...] = ()
        if low[start] in patterns.FRACTIONS:
            value, end = patterns.FRACTIONS[low[start]], start + 1
        elif match is None:
            spelled = self._spelled(start)
            if spelled is None:
                return
            value, end = spelled
        elif match.end() - start > patterns.MAX_DIGITS:
            self._add(start, match.end(), Reading("identifier", match[0]))
            return
        else:
            value, end = self._value(match)
            parts = self._groups(match)
        if low.endswith(patterns.NEGATIVE, 0, start):
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
                scaled = measured_readings(value * factor, ())
                readings = [*measured_readings(value, units), *scaled]
                self._add(first, scale_end, *readings)
                return
        elif factor > 1:
            value, end, scale = value * factor, scale_end, scale * factor
        value, end = with_fraction(low, value, end, scale)
        units, end = (money[0], end) if money else self._unit(end)
        if units and units[0].dimension in ("time", "month"):
            value, end = with_fraction(low, value, end, 1)
        per = ""
        if (
            not units
            and (match := patterns.GAP_WORD.match(low, end))
            and match[2] in patterns.RATES
        ):
            name, period = patterns.RATES[match[2]]
            units, per, end = UNITS_BY_NAME[name], rate_of(period), match.end()
        is_glued = is_digit and low[end - 1].isdecimal() and low[end : end + 1].isalpha()
        is_size = low[end : end + 1] == "x" and low[end + 1 : end + 2].isdecimal()
        if not units and is_glued and not is_size and self._identifier(start):
            return
        figure = self._described(first, end, units)
        figure = figure._replace(per=per or figure.per)
        if units and self._composite(first, end, value, units[0], figure):
            return
        readings = measured_readings(value, units)
        if units and units[0].dimension == "month" and low.startswith(patterns.OLD, end):
            readings += measured_readings(value, ())  # "23 years old" is "aged 23".
        if not units and is_digit:
            readings = self._further(low[start:end], readings, figure)
        elif is_digit and low[end - 1].isalpha() and " " not in low[start:end]:
            readings.append(Reading("identifier", canonical_identifier(low[start:end])))  # 3D, 5G.
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
            if nouns & patterns.CODE_NOUNS:
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
        if is_digit and follows.isalpha() and (match := patterns.ORDINAL_END.match(low, end)):
            like = _PLAIN_FIGURE._replace(nouns=self._nouns(match.end())[0])
            self._add(first, match.end(), Reading("ordinal", int(value)), like=like)
            return True
        if not is_digit and (match := patterns.SHARE_AFTER.match(low, end)):
            share = value / patterns.SHARES[match[1]]
            of_unit = patterns.OF_UNIT.match(low, match.end())
            units, unit_end = self._unit(of_unit.end() - 1) if of_unit else ((), 0)
            is_of = re.match(r" (?:of|the)\b|[.,;:)]|$", low[match.end() : match.end() + 4])
            if units:
                self._add(first, unit_end, *measured_readings(share, units))
            elif match[1] not in ("quarter", "quarters") or is_of:
                self._add(first, match.end(), *share_readings(share))
            return bool(units or match[1] not in ("quarter", "quarters") or is_of)
        match = patterns.OUT_OF.match(low, end) if low[end : end + 2] in (" i", " o") else None
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
        if (low[end + 1 : end + 2] if follows == " " else follows) not in patterns.AFTER_DIGITS:
            return value, end
        is_ten = text == "10"
        if power := patterns.POWER.match(low, end) or (
            patterns.OWN_POWER.match(low, end) if is_ten else None
        ):
            exponent = int(power[1] or (power[2] or "").translate(patterns.SUPERSCRIPTS))
            base = 1 if power.re is patterns.OWN_POWER else value
            return base * Fraction(10) ** exponent, power.end()
        if power := patterns.EXPONENT.match(low, end):
            return value * Fraction(10) ** int(power[1]), power.end()
        if mixed := patterns.MIXED.match(low, end):
            share = patterns.FRACTIONS[mixed[1]] if mixed[1] else fraction_of(mixed[2], mixed[3])
            if share is not None and share < 1:
                return value + share, mixed.end()
        if match["whole"] and (slash := patterns.SLASH.match(low, end)):
            share = fraction_of(text, slash[1])
            if share is not None:
                return share, slash.end()
        return value, end

    def _groups(self, match: re.Match[str]) -> tuple[TextFigure, ...]:
        """The numbers of "1 200", which may be two."""
        if not match["grouped"] or match["g"] != " ":
            return ()
        return tuple(
            TextFigure(
                match.start(), match.end(), group, tuple(measured_readings(Fraction(group), ()))
            )
            for group in match[0].split(" ")
            if group.isdecimal()
        )

    def _further(self, text: str, readings: list[Reading], figure: TextFigure) -> list[Reading]:
        """The readings of bare digits: also a version, a year, a part of an identifier."""
        value, before, label = readings[0].value, figure.before, figure.label
        if text.isdecimal():
            if label in patterns.VERSIONED:
                readings.append(Reading("version", text))
            if len(text) == 4 and 1000 <= int(text) <= 2200:
                readings.append(Reading("date", (int(text), None, None)))
        elif patterns.SHORT_VERSION.fullmatch(text):
            version = Reading("version", text)
            # "Python 3.10" is not "Python 3.1".
            is_version = (
                label in patterns.VERSIONED or self._word_before(figure.start)[:1].isupper()
            )
            is_version = is_version and before not in self.grammar.stop_words
            readings = [version] if is_version else [*readings, version]
        elif "/" in text and isinstance(value, Fraction):
            readings += [share_readings(value)[0], Reading("identifier", text)]
        if patterns.GROUPED.fullmatch(text):
            readings.append(Reading("identifier", f"={text}"))
        if before:
            readings.append(Reading("identifier", canonical_identifier(f"{before} {text}")))
        return readings

    def _spelled(self, start: int) -> tuple[Fraction, int] | None:
        """The value of a number in words, and its end."""
        words, low = self.grammar.words, self.low
        total, end, place = 0, start, start
        current: int | None = None
        while match := patterns.SPELLED.match(low, place):
            word, place = match[1], match.end()
            is_joined = word in words.joins and self._may_join(total, current, place)
            if is_joined and (match := patterns.SPELLED.match(low, place)):
                word, place = match[1], match.end()
            value, scale = words.numbers.get(word), words.scales.get(word, 0)
            is_plural = self.language == "en" or word.endswith(("en", "s", "es"))
            if value is not None:
                value = combined_words(current, value, joined=is_joined)
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
        if self.language == "en" and (match := patterns.POINT.match(low, end)):
            digits = "".join(str(words.numbers.get(word, 0)) for word in match[1].split())
            number, end = number + Fraction(f"0.{digits}"), match.end()
        return number, end

    def _may_join(self, total: int, current: int | None, end: int) -> bool:
        """Whether "and" may join a number: "two hundred and five", but not "twenty and five"."""
        follows = patterns.SPELLED.match(self.low, end)
        least = 100 if self.language == "en" else 1 if self.language == "de" else 20
        is_number = follows is not None and follows[1] in self.grammar.words.numbers
        return is_number and (total > 0 or (current or 0) >= least)

    def _scale(self, end: int, *, is_money: bool = False) -> tuple[int, int]:
        """What multiplies the number that ends here, and the end of that; 1 if nothing does."""
        scale, low, words = 1, self.low, self.grammar.words
        while low[end : end + 1] not in patterns.NO_UNIT and (
            match := patterns.SCALE_WORD.match(low, end)
        ):
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
        if low[end : end + 1] in patterns.NO_UNIT:
            return (), end
        if match := patterns.SIGN.match(low, end):
            if match[1] == "×" and re.match(r" ?\d", low[match.end() : match.end() + 2]):
                return (), end
            if units := UNITS_BY_NAME.get(match[1]):
                return units, match.end()
        place, skipped = end, 0
        while match := patterns.GAP_WORD.match(low, place):
            word, after = match[2], match.end()
            if match[1] == " -" or (match[1] == "" and skipped):
                break
            for further in (
                (patterns.TWO_MORE, patterns.ONE_MORE) if word in patterns.FIRST_WORDS else ()
            ):
                more = further.match(low, after)
                if more and (units := UNITS_BY_NAME.get(f"{word} {' '.join(more.groups())}")):
                    return units, more.end()
            units = UNITS_BY_NAME.get(self.text[match.start(2) : after]) or UNITS_BY_NAME.get(word)
            if units and not (skipped and len(word) < 3):
                return units, after
            # "30 consecutive days", "5 sunny days": at most one word.
            is_word = word not in patterns.BLOCKING and word not in self.grammar.triggers
            is_word = is_word and (word in patterns.SKIPPED or word not in self.grammar.stop_words)
            if skipped or not skips or match[1] == "" or not is_word:
                break
            further_word = patterns.GAP_WORD.match(low, after)
            if not further_word or further_word[1] != " ":
                break
            if word not in patterns.SKIPPED and further_word[2] not in patterns.LENGTHS:
                break
            place, skipped = after, skipped + 1
        return (), end

    def _per(self, end: int) -> tuple[str, int]:
        """What a figure is a rate of, and the end of that."""
        low = self.low
        if low[end : end + 1] not in " /":
            return "", end
        if match := patterns.PERIOD.match(low, end):
            return rate_of(match[1]), match.end()
        if match := patterns.PER.match(low, end):
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
            match = patterns.GAP_WORD.match(low, end)
            if match is None or match[1] not in (" ", "-") or match[2] in self.grammar.stop_words:
                break
            if match[2] in self.grammar.triggers or match[2] in patterns.BLOCKING:
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
        if word in self.grammar.stop_words or word in patterns.NO_LABEL or not before[0].isupper():
            return ""
        if before.isupper() and len(before) > 1:
            return word
        place = start - len(before) - 1
        is_first = patterns.WORK_BEFORE.search(self.text[max(0, place - 4) : place]) is not None
        is_noun = self.language == "de" or word in self.grammar.triggers
        return "" if is_first or is_noun or place <= 0 else stem(word)

    def _currency_before(self, start: int) -> tuple[tuple[Unit, ...], int] | None:
        """The currency before a number, and where it begins."""
        last = self.low[max(self.position, start - 2) : start].rstrip(" ")[-1:]
        if not (last and last in patterns.CURRENCY_ENDS):
            return None
        match = patterns.CURRENCY_BEFORE.search(self.low, max(self.position, start - 6), start)
        return (UNITS_BY_NAME[match[1].rstrip(".")], match.start(1)) if match else None

    def _is_pronoun(self, start: int, figure: TextFigure) -> bool:
        """Whether "one" is no figure: "one of them", "this one"."""
        is_bare = not figure.nouns and not figure.per
        return is_bare or figure.before in patterns.BEFORE_ONE or self.low[start - 1 : start] == "-"

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
        self._add(first, match.end(1), *share_readings(share), like=like)
        return True

    def _composite(
        self, first: int, end: int, value: Fraction, unit: Unit, like: TextFigure
    ) -> bool:
        """Read on, if a smaller unit follows: "1 hour 30 minutes", "5 feet 9 inches"."""
        gap = patterns.MORE.match(self.low, end)
        if gap is None or unit.dimension not in ("time", "month", "foot", "ounce"):
            return False
        if (digits := patterns.NUMBER.match(self.low, gap.end())) and len(
            digits[0]
        ) <= patterns.MAX_DIGITS:
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
                TextFigure(first, end, texts[0], tuple(measured_readings(value, (unit,)))),
                TextFigure(
                    gap.end(), unit_end, texts[1], tuple(measured_readings(further, (smaller,)))
                ),
            )
        reading = Reading("quantity", total, unit.dimension)
        self._add(first, unit_end, reading, like=like._replace(parts=parts))
        return True


_ADDRESSES: tuple[tuple[str, re.Pattern[str], FigureKind, Callable[[str], str]], ...] = (
    ("@", patterns.MAIL, "mail", str),
    ("-", patterns.UUID, "hash", str),
    (".", patterns.IP, "address", str),
    ("10.", patterns.DOI, "identifier", str),
    ("-", patterns.MAC, "address", lambda text: text.replace("-", ":")),
    (":", patterns.MAC, "address", str),
    (":", patterns.IP6, "address", canonical_address),
    ("+", patterns.PHONE, "identifier", digits_of),
    ("", patterns.HASH, "hash", str),
)
"""A sign, and the pattern of an address that contains it; its kind and canonical form."""
