"""Numbers of a spreadsheet as their format shows them, such as ``1,234.50 €`` and ``2026-03-01``.

The codes are those of Excel. What depends on a machine's language is shown in English, and the
dates that do are shown as ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

_BUILT_IN = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd hh:mm",
    37: "#,##0;-#,##0",
    38: "#,##0;-#,##0",
    39: "#,##0.00;-#,##0.00",
    40: "#,##0.00;-#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[(h+|m+|s+)\]|\[[^\]]*\]'
    r"|(am/pm|a/p|general|y+|m+|d+|h+|s+(?:\.0+)?|e[+-])|([#0?.,]+)|(%)|(.)",
    re.IGNORECASE | re.DOTALL,
)
_SECTION = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[])*)(?:;|$)')
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MAX_DAY = 2_958_466  # the end of the year 9999


def format_code(number_format: int, own: dict[int, str]) -> str:
    """The code of a number format.

    Args:
        number_format: its number.
        own: the codes that the workbook defines.
    """
    return own.get(number_format) or _BUILT_IN.get(number_format, "General")


def shown_number(value: float, code: str, *, is_1904: bool = False) -> str:
    """A number as its format shows it; empty if the format shows nothing.

    Args:
        value: the number. A date is the number of days since 1899-12-30.
        code: the code of the format.
        is_1904: whether days are counted from 1904-01-01.
    """
    sections = _sections(code)
    section = sections[0]
    if value < 0 and len(sections) > 1:
        section, value = sections[1], -value
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    tokens = _tokens(section)
    if any(kind in {"date", "elapsed"} for kind, _ in tokens):
        return _date(value, tokens, is_1904)
    return _number(value, tokens)


def shown_text(text: str, code: str) -> str:
    """A text as its format shows it: as it is, unless the format has an empty part for texts."""
    sections = _sections(code)
    if len(sections) < 4:
        return text
    return text if "@" in sections[3] or sections[3].lower() == "general" else ""


@lru_cache(maxsize=512)
def _sections(code: str) -> tuple[str, ...]:
    found = tuple(match[1] for match in _SECTION.finditer(code))
    # The pattern also matches the empty text at the end, which is no part.
    return found[:-1] if len(found) > 1 and not code.endswith(";") else found


@lru_cache(maxsize=512)
def _tokens(section: str) -> tuple[tuple[str, str], ...]:
    """The parts of a code: ``text``, ``date``, ``elapsed``, ``digits``, ``power``, ``general``."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(section):
        quoted, escaped, currency, elapsed, word, digits, percent, literal = match.groups()
        if word:
            lowered = word.lower()
            kind = {"general": "general"}.get(lowered, "power" if lowered[0] == "e" else "date")
            tokens.append((kind, lowered))
        elif elapsed:
            tokens.append(("elapsed", elapsed.lower()))
        elif digits and (digits.strip(".,") or digits == "."):
            tokens.append(("digits", digits))
        elif percent:
            tokens.append(("percent", "%"))
        elif literal != "@":
            tokens.append(("text", quoted or escaped or currency or digits or literal or ""))
    return tuple(tokens)


def _general(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.11g}"


def _number(value: float, tokens: Sequence[tuple[str, str]]) -> str:
    percents = sum(kind == "percent" for kind, _ in tokens)
    value *= 100**percents
    places = [text for kind, text in tokens if kind == "digits"]
    if any("?" in text for text in places) and any(t == ("text", "/") for t in tokens):
        return _general(value)  # a fraction
    if any(kind == "power" for kind, _ in tokens):
        decimals = _decimals(places[0]) if places else 0
        return f"{value:.{decimals}E}"
    sign = "-" if value < 0 else ""
    value = abs(value)
    has_number, parts = False, []
    for kind, text in tokens:
        if kind == "general":
            parts.append(_general(value))
        elif kind == "digits":
            parts.append("" if has_number else _digits(value, text))
            has_number = True
        else:
            parts.append(text)
    written = "".join(parts).strip()
    return f"{sign}{written}" if written and re.search(r"[1-9]", written) else written


def _decimals(digits: str) -> int:
    return sum(character in "0#?" for character in digits.partition(".")[2])


def _digits(value: float, digits: str) -> str:
    integer_digits, point, fraction_digits = digits.partition(".")
    # Commas at the end scale, and commas inside separate thousands.
    scaling = (
        len(integer_digits)
        - len(integer_digits.rstrip(","))
        + (len(fraction_digits) - len(fraction_digits.rstrip(",")))
    )
    value /= 1000**scaling
    decimals = _decimals(digits)
    separator = "," if "," in integer_digits.rstrip(",") else ""
    text = f"{value:{separator}.{decimals}f}"
    if decimals:
        needed = len(fraction_digits.rstrip("#,")) if "0" in fraction_digits else 0
        number, _, fraction = text.partition(".")
        fraction = fraction.rstrip("0").ljust(needed, "0")
        text = f"{number}.{fraction}" if fraction else number
    width = integer_digits.replace(",", "").count("0")
    number, dot, fraction = text.partition(".")
    if not separator:
        number = number.zfill(width)
    return (
        "" if not value and not width and not decimals and point == "" else number + dot + fraction
    )


def _date(value: float, tokens: Sequence[tuple[str, str]], is_1904: bool) -> str:
    if not 0 <= value < _MAX_DAY:
        return _general(value)
    has_fraction = any(kind == "date" and ".0" in text for kind, text in tokens)
    seconds = round(value * 86_400, 3 if has_fraction else 0)
    days = timedelta(seconds=seconds)
    # Excel takes 1900 for a leap year, so that its first two months are a day later.
    epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 31 if value < 60 else 30)
    try:
        moment = epoch + days
    except OverflowError:
        return _general(value)
    has_half = any(text in {"am/pm", "a/p"} for kind, text in tokens if kind == "date")
    parts = []
    for i, (kind, text) in enumerate(tokens):
        if kind == "elapsed":
            parts.append(f"{int(seconds // {'h': 3600, 'm': 60, 's': 1}[text[0]]):0{len(text)}}")
        elif kind == "date":
            parts.append(_date_part(moment, text, _is_minute(tokens, i), has_half))
        else:
            parts.append(text)
    return "".join(parts).strip()


def _is_minute(tokens: Sequence[tuple[str, str]], at: int) -> bool:
    """Whether an ``m`` stands for minutes: after hours or before seconds."""
    words = [(i, text) for i, (kind, text) in enumerate(tokens) if kind in {"date", "elapsed"}]
    place = next(n for n, (i, _) in enumerate(words) if i == at)
    before = words[place - 1][1][0] if place else ""
    after = words[place + 1][1][0] if place + 1 < len(words) else ""
    return before == "h" or after == "s"


def _date_part(moment: datetime, text: str, is_minute: bool, has_half: bool) -> str:
    letter, width = text[0], len(text)
    if text in {"am/pm", "a/p"}:
        return "AM" if moment.hour < 12 else "PM"
    if letter == "y":
        return f"{moment.year:04}" if width > 2 else f"{moment.year % 100:02}"
    if letter == "m" and not is_minute:
        name = _MONTHS[moment.month - 1]
        return [str(moment.month), f"{moment.month:02}", name[:3], name, name[:1]][
            min(width, 5) - 1
        ]
    if letter == "d":
        name = _DAYS[moment.weekday()]
        return [str(moment.day), f"{moment.day:02}", name[:3], name][min(width, 4) - 1]
    if letter == "h":
        hour = (moment.hour - 1) % 12 + 1 if has_half else moment.hour
        return f"{hour:0{min(width, 2)}}"
    if letter == "m":
        return f"{moment.minute:0{min(width, 2)}}"
    seconds, point, fraction = text.partition(".")
    second = f"{moment.second:0{min(len(seconds), 2)}}"
    return second + (f".{moment.microsecond:06}"[: 1 + len(fraction)] if point else "")
