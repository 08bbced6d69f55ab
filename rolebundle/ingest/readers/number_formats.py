"""Numbers of a spreadsheet as their format shows them, such as ``1,234.50 €`` and ``2026-03-01``.

The codes are those of Excel. What depends on a machine's language is shown in English, and the
dates that do are shown as ISO 8601. Fractions, and numbers of several groups of digits, are
shown as plain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

_BUILT_IN = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00"},
    **{14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM"},
    **{19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm"},
    **{37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00"},
    **{45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "0.0E+0"},
}
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|[_*].'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[[^\]]*\]|(?P<half>am/pm|a/p)|(?P<general>general|@)"
    r"|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?)|(?P<digits>[#0?]+[#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+)"
    r"|(?P<power>e[+-][0#]+)|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MAX_DAY = 2_958_466  # the end of the year 9999
_TIMES = frozenset(("date", "elapsed"))
_SECONDS = {"h": 3600, "m": 60, "s": 1}


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
    tokens = sections[0]
    if value < 0 and len(sections) > 1:
        tokens, value = sections[1], -value
    elif value == 0 and len(sections) > 2:
        tokens = sections[2]
    is_date = any(kind in _TIMES for kind, _ in tokens)
    return _date(value, tokens, is_1904) if is_date else _number(value, tokens)


def shown_text(text: str, code: str) -> str:
    """A text as its format shows it: as it is, unless the format has an empty part for texts."""
    sections = _sections(code)
    is_shown = len(sections) < 4 or any(kind == "general" for kind, _ in sections[3])
    return text if is_shown else ""


@lru_cache(maxsize=512)
def _sections(code: str) -> Sequence[Sequence[tuple[str, str]]]:
    """The sections of a code, and their parts, each with its kind: a group of the pattern."""
    sections: list[list[tuple[str, str]]] = [[]]
    for match in _TOKEN.finditer(code):
        if match[0] == ";":
            sections.append([])
        elif match.lastgroup:
            sections[-1].append((match.lastgroup, match[match.lastgroup]))
    return sections


def _general(value: float) -> str:
    is_whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if is_whole else f"{value:.11g}"


def _number(value: float, tokens: Sequence[tuple[str, str]]) -> str:
    digits = [text for kind, text in tokens if kind == "digits"]
    if len(digits) > 1:
        return _general(value)  # a fraction, or a number with dashes
    value *= 100 ** tokens.count(("literal", "%"))
    if digits and any(kind == "power" for kind, _ in tokens):
        return f"{value:.{len(digits[0].partition('.')[2])}E}"
    parts = []
    for kind, text in tokens:
        if kind == "general":
            parts.append(_general(abs(value)))
        elif kind == "digits":
            parts.append(_digits(abs(value), text))
        else:
            parts.append(text)
    written = "".join(parts).strip()
    return f"-{written}" if value < 0 and re.search(r"[1-9]", written) else written


def _digits(value: float, digits: str) -> str:
    """A number as digits such as ``#,##0.0#`` show it. Each comma at their end divides by 1,000."""
    form = digits.rstrip(",")
    value /= 1000 ** (len(digits) - len(form))
    whole, point, fraction = form.partition(".")
    if not point and not value and "0" not in whole:
        return ""
    separator = "," if "," in whole else ""
    number, _, decimals = f"{value:{separator}.{len(fraction)}f}".partition(".")
    decimals = decimals.rstrip("0").ljust(len(fraction.rstrip("#?")), "0")
    if not separator:
        number = number.zfill(whole.count("0"))
    return f"{number}.{decimals}" if decimals else number


def _date(value: float, tokens: Sequence[tuple[str, str]], is_1904: bool) -> str:
    if not 0 <= value < _MAX_DAY:
        return _general(value)
    words = [text[0].lower() for kind, text in tokens if kind in _TIMES]
    has_fraction = any(kind == "date" and "." in text for kind, text in tokens)
    seconds = round(value * 86_400, 3 if has_fraction else 0)
    # Excel takes 1900 for a leap year, so that its first two months are a day later.
    epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 31 if value < 60 else 30)
    try:
        moment = epoch + timedelta(seconds=seconds)
    except OverflowError:
        return _general(value)
    has_half = any(kind == "half" for kind, _ in tokens)
    parts, at = [], -1
    for kind, text in tokens:
        at += kind in _TIMES
        if kind == "elapsed":
            parts.append(f"{int(seconds // _SECONDS[words[at]]):0{len(text)}}")
        elif kind == "date":
            # An ``m`` stands for minutes after hours and before seconds.
            is_minute = words[at - 1 : at] == ["h"] or words[at + 1 : at + 2] == ["s"]
            letter = "min" if is_minute and words[at] == "m" else words[at]
            parts.append(_date_part(moment, letter, text, has_half))
        else:
            parts.append(("AM" if moment.hour < 12 else "PM") if kind == "half" else text)
    return "".join(parts).strip()


def _date_part(moment: datetime, letter: str, text: str, has_half: bool) -> str:
    form, point, fraction = text.partition(".")
    width = len(form)
    if letter == "y":
        return f"{moment.year:04}" if width > 2 else f"{moment.year % 100:02}"
    if letter in {"m", "d"} and width > 2:
        name = _MONTHS[moment.month - 1] if letter == "m" else _DAYS[moment.weekday()]
        return {3: name[:3], 5: name[:1]}.get(width, name)
    hour = (moment.hour - 1) % 12 + 1 if has_half else moment.hour
    numbers = {"m": moment.month, "d": moment.day, "h": hour, "min": moment.minute}
    number = f"{numbers.get(letter, moment.second):0{min(width, 2)}}"
    return number + (f".{moment.microsecond:06}"[: 1 + len(fraction)] if point else "")
