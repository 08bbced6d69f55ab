"""Numbers, dates and texts of a spreadsheet, as the formats of their cells show them.

The codes of formats are those of Excel, such as ``#,##0.00 "EUR";[Red]-0``. Names of months and
days are English. In the format ``General`` a number has at most 11 digits, or all if it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from operator import eq, ge, gt, le, lt, ne

from rolebundle.ingest.readers.notation import chinese_number
from rolebundle.resources import data_file, inverted

_TABLES = data_file(__file__, "number_formats.toml")
BUILT_IN = {int(number): code for number, code in inverted(_TABLES["codes"]).items()}
"""The codes of the formats that have a number only."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|_(?P<space>.)|\*.'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[(?P<condition>[<>=]{1,2}-?[0-9]+(?:\.[0-9]+)?)\]|\[[^\]]*\]"
    r"|(?P<general>general)|(?P<text>@)|(?P<noon>am/pm|a/p)|(?P<power>e[+-][0#?]+)"
    r"|(?P<fraction>[#0?]+\s*/\s*(?:[#0?]+|\d+))|(?<=[s\]])\.(?P<split>0+)"
    r"|(?P<date>y{1,4}|m{1,5}|d{1,4}|h{1,2}|s{1,2}|e)|(?P<digit>[#0?])|(?P<point>\.)|(?P<comma>,)"
    r"|(?P<percent>%)|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_LITERALS = frozenset(("quoted", "escaped", "currency"))
_ENDS = frozenset(("power", "fraction"))
_TIMES = frozenset(("date", "elapsed"))
_COMPARED = {"<": lt, "<=": le, "=": eq, "<>": ne, ">": gt, ">=": ge}
# The conditions of the sections of a format with one, two or three of them for numbers.
_USUAL = {1: ("",), 2: (">=0", "<0"), 3: (">0", "<0", "")}
_LETTERS: Mapping[str, str] = _TABLES["letters"]
_NOT_ZERO = re.compile("[1-9]")
_MAX_CODE = 255
_MAX_WHOLE = Decimal(10) ** 21
_EPOCHS = (datetime(1899, 12, 30), datetime(1904, 1, 1))
_EXACT = Context(prec=2_000, rounding=ROUND_HALF_UP)

_Token = tuple[str, str]
"""A part of a code: its kind, which is a group of the pattern, and its text."""
_Show = Callable[[Decimal, datetime], str]
"""Writes a number, or the date that is so many days after another one."""
_Section = tuple[Callable[[Decimal], bool], _Show]
"""Which numbers a section of a code shows, and how."""


def shown_number(text: str, code: str, *, is_1904: bool) -> str:
    """A number as its format shows it; empty if the format shows nothing.

    Args:
        text: the number as the file has it. A date is the number of days since 1899-12-30.
        code: the code of the format.
        is_1904: whether days are counted from 1904-01-01.
    """
    # Excel counts with 15 digits; programs that write more mean an id.
    value = Decimal(text if text.isdecimal() else f"{float(text):.15g}")
    if code.startswith("[DBNum1]") and code.endswith("General") and value == abs(int(value)):
        return chinese_number(int(value))
    for meets, show in _sections(code)[0] if code != "General" else ():
        if meets(value):
            return show(value, _EPOCHS[is_1904])
    return _general(value)


def shown_text(text: str, code: str) -> str:
    """A text as the format of its cell shows it; empty if the format shows none."""
    if "@" not in code and code.count(";") < 3:
        return text
    tokens = _sections(code)[1]
    return "".join(text if kind in {"text", "general"} else part for kind, part in tokens)


# Codes


@lru_cache(maxsize=512)
def _sections(code: str) -> tuple[Sequence[_Section], Sequence[_Token]]:
    """For each section of a code which numbers it shows, and how; and the tokens for texts."""
    parts: list[list[_Token]] = [[]]
    for match in _TOKEN.finditer(code if len(code) <= _MAX_CODE else "General"):
        kind = match.lastgroup
        if match[0] == ";":
            parts.append([])
        elif kind:
            text = " " if kind == "space" else match[kind]
            parts[-1].append(("literal" if kind in _LITERALS else kind, text))
    has_text = len(parts) > 3 or any(kind == "text" for kind, _ in parts[-1])
    texts = parts[-1] if has_text else [("text", "")]
    numbers = (parts[:-1] if has_text and parts[1:] else parts)[:3]
    own = [dict(part).get("condition", "") for part in numbers]
    # What does not meet the only condition is shown by the other section, with its sign.
    usual = ("", "") if len(own) == 2 and own[0] else _USUAL[len(own)]
    conditions = [one or other for one, other in zip(own, usual, strict=True)]
    shows = [
        _show(part, is_negative=condition in {"<0", "<=0"})
        for condition, part in zip(conditions, numbers, strict=True)
    ]
    return list(zip(map(_meets, conditions), shows, strict=True)), texts


def _meets(condition: str) -> Callable[[Decimal], bool]:
    """Whether a number meets a condition such as ``>=1000``."""
    operator = condition.rstrip("-.0123456789")
    compare, limit = _COMPARED.get(operator, eq), Decimal(condition[len(operator) :] or 0)
    return lambda value: not condition or compare(value, limit)


def _show(tokens: Sequence[_Token], *, is_negative: bool) -> _Show:
    """How a section writes a number; negative ones without their sign if it is for these."""
    kept: list[_Token] = []
    scale, is_grouped = 0, False
    for number, (kind, text) in enumerate(tokens):
        if kind == "comma" and number and tokens[number - 1][0] in {"digit", "comma"}:
            # Between digits it separates thousands; behind them it divides by a thousand.
            is_between = [kind for kind, _ in tokens[number + 1 : number + 2]] == ["digit"]
            is_grouped |= is_between
            scale -= 0 if is_between else 3
        elif kind != "condition":
            scale += 2 * (kind == "percent")
            kept.append((kind, text.lower() if kind in _TIMES else text))
    kinds = [kind for kind, _ in kept]
    if not _TIMES.isdisjoint(kinds):
        places = max((len(text) for kind, text in kept if kind == "split"), default=4)
        return partial(_date, _template(kept), places)
    at = min((at for at, kind in enumerate(kinds) if kind in _ENDS), default=len(kinds))
    point = kinds.index("point") if "point" in kinds[:at] else at
    above, below = kept[:point], kept[point:at]
    before, behind = _digits(above), _digits(below)

    def show(value: Decimal, _epoch: datetime) -> str:
        number, special = abs(value).scaleb(scale, _EXACT), ""
        for kind, text in kept[at : at + 1]:
            read = _power if kind == "power" else _fraction
            number, special = read(number, text, before, behind)
        special += "".join(text for _, text in kept[at + 1 :])
        if before or behind:
            shown = _in_places(number, above, below, is_grouped) + special
        else:
            usual = dict.fromkeys(("general", "text"), _general(number))
            shown = "".join(usual.get(kind, text) for kind, text in kept[:at]) + special
        shown = shown.strip()
        has_sign = value < 0 and not is_negative and _NOT_ZERO.search(shown)
        return f"-{shown}" if has_sign else shown

    return show


def _template(tokens: Sequence[_Token]) -> str:
    """How a date or time is written, for ``str.format`` and the arguments in :func:`_date`."""
    letters = [text[0] for kind, text in tokens if kind in _TIMES]
    has_noon = any(kind == "noon" for kind, _ in tokens)
    written, at = "", 0
    for kind, text in tokens:
        if kind in _TIMES:
            is_minute = "h" in letters[max(at - 1, 0) : at] or "s" in letters[at + 1 : at + 2]
            at += 1
        if kind == "elapsed":
            written += f"{{{'hms'.index(text[0]) + 2}:0{len(text)}}}"
        elif kind == "date":
            form = text.replace("h", "I") if has_noon else text
            written += _LETTERS[form.replace("m", "N") if is_minute and len(form) < 3 else form]
        elif kind in {"noon", "split"}:
            written += "{0:%p}" if kind == "noon" else "{5}"
        else:
            written += text.replace("{", "{{").replace("}", "}}")
    return written


# Numbers


def _general(value: Decimal) -> str:
    if value == value.to_integral_value() and abs(value) < _MAX_WHOLE:
        return f"{value:.0f}"
    shown = f"{float(value):.11g}"
    if "e" not in shown:
        return shown
    rounded = Decimal(shown)
    return f"{rounded:f}" if -10 < rounded.adjusted() < 11 else f"{rounded.normalize():G}"


def _digits(tokens: Sequence[_Token]) -> str:
    """The places of digits, such as ``##0``."""
    return "".join(text for kind, text in tokens if kind == "digit")


def _in_places(
    value: Decimal, above: Sequence[_Token], below: Sequence[_Token], is_grouped: bool
) -> str:
    """A number in the places above and below the point, with what is between them."""
    behind = _digits(below)
    unit = Decimal(1).scaleb(-len(behind))
    whole, _, decimals = f"{value.quantize(unit, context=_EXACT):f}".partition(".")
    whole = whole.lstrip("0")
    written, left, count = "", len(_digits(above)), 0
    for kind, text in reversed(above):
        if kind != "digit":
            written = text + written
            continue
        # The first place has all digits that remain.
        left -= 1
        size = 1 if left else max(len(whole), 1)
        for digit in reversed(whole[-size:] or text.strip("#?")):
            is_next = is_grouped and count and count % 3 == 0
            written = digit + "," * bool(is_next) + written
            count += 1
        whole = whole[:-size]
    written += whole
    least = len(behind.rstrip("#?"))
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    digits = iter(decimals)
    for kind, text in below:
        written += next(digits, "") if kind == "digit" else text if decimals or text != "." else ""
    return written


def _power(value: Decimal, form: str, before: str, behind: str) -> tuple[Decimal, str]:
    """The factor before a power of ten, and the power such as ``E+05``."""
    step = len(before) or 1
    power = value.adjusted() // step * step if value else 0
    unit = Decimal(1).scaleb(-len(behind))
    if value.scaleb(-power).quantize(unit, context=_EXACT) >= 10**step:
        power += step
    sign = "-" if power < 0 else form[1].strip("-")
    return value.scaleb(-power), f"{form[0]}{sign}{str(abs(power)).zfill(len(form) - 2)}"


def _fraction(value: Decimal, form: str, before: str, behind: str) -> tuple[Decimal, str]:
    """What is before a fraction, and the fraction such as ``1/2``; empty if it is zero."""
    below = form.partition("/")[2].strip()
    whole = int(value) if before else 0
    part = Fraction(value - whole)
    if below.strip("#?0"):
        above = int(part * int(below) + Fraction(1, 2))
        part = Fraction(above, int(below))
    else:
        part = part.limit_denominator(10 ** len(below) - 1)
        above, below = part.numerator, str(part.denominator)
    if before and part in {0, 1}:
        return Decimal(whole + int(part)), "" if whole or part else "0"
    return Decimal(whole), f"{above}/{below}"


# Dates


def _date(template: str, places: int, value: Decimal, epoch: datetime) -> str:
    """A date, a time or both. A second has so many places."""
    if not 0 <= value < (datetime.max - epoch).days:
        return _general(value)
    # A time is not rounded up, apart from what is lost by counting in days.
    seconds = (value * 86_400).quantize(Decimal(1).scaleb(-places), context=_EXACT)
    elapsed = int(seconds)
    moment = epoch + timedelta(seconds=elapsed)
    spans = elapsed // 3600, elapsed // 60, elapsed
    return template.format(
        moment, (moment.hour - 1) % 12 + 1, *spans, f"{seconds % 1:f}"[1:]
    ).strip()
