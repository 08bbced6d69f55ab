"""Plain text for what it has no sign for: raised and lowered characters, fractions, roots, ruby.

All readers write them alike, so that a number never joins its exponent, index or note:
``2^10``, ``10^-5``, ``x_1``, ``1987[3]``, ``1 1/2``, ``√(2)``, ``東京 (とうきょう)``, ``[x]``,
``~~struck out~~``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from rolebundle.resources import data_file

Script = Literal["", "raised", "lowered"]
"""The place of characters: on the line, raised as exponents are, or lowered as indices are."""

CHECKED, UNCHECKED = "[x]", "[ ]"
_SIMPLE = re.compile(r"[-+−±]?[\w.,′'*]*")
_NOTE = re.compile(r"[\d*†‡§]{1,3}(?:\s?[,–-]\s?\d{1,3})*|[*†‡§]+")
_NUMBERED_NOTE = re.compile(r"\d{1,3}\)")
_LETTERS = re.compile(r"[^\W\d_]+")
# A raised number is an exponent after a short number, a unit or a variable. After a year, a word
# or a mark of punctuation it is the number of a note.
_NOTED = re.compile(r"(?:(?<!\d)(?:1\d{3}|20\d{2})|[^\W\d_]{4}|[.,;:!?»”\"’…])\Z")
_VARIABLE = re.compile(r"(?:(?<![^\W_])[^\W\d_]|[)\]}])\Z")
_ROMAN = ("", "0", "00", "000", "01", "1", "10", "100", "1000", "02")
_MAX_LIST_NUMBER = 3999
_TABLES = data_file(__file__, "list_numbers.toml")
_REPEATED, _COUNTING, _NUMERALS = (_TABLES[name] for name in ("repeated", "counting", "numerals"))
_ONES, _TENS = (_TABLES["english"][name] for name in ("ones", "tens"))
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_FRACTION_BAR = ("/", "⁄")
_MARKS: dict[Script, str] = {"": "", "raised": "\x0e", "lowered": "\x0f"}
_MARK_END = "\x10"  # like the others, a character that XML cannot contain
_FORMULA = "\x11"
_STRUCK, _STRUCK_END = "\x12", "\x13"
_STRUCK_RUN = re.compile(f"{_STRUCK}(\\s*)([^{_STRUCK_END}]*?)(\\s*){_STRUCK_END}")
_PLACES: dict[str | None, Script] = {None: "", "\x0e": "raised", "\x0f": "lowered"}
_RUN = re.compile("([\x0e\x0f])([^\x10]*)\x10|([^\x0e\x0f\x10]+)")
_PRIMES = re.compile("[′″‴⁗']+|°")


def raised(text: str, before: str, after: str = "", *, is_note: bool = False) -> str:
    """How raised characters are written.

    Args:
        text: the characters.
        before: the text of the same line before them.
        after: the text after them.
        is_note: whether the format says that they are the mark of a note.
    """
    plain = text.strip()
    if not plain or plain[0] in "[(^,;®™©":
        return text
    if is_note or _NUMBERED_NOTE.fullmatch(plain):
        return f"[{plain.rstrip(')')}]"
    if after.lstrip().startswith(_FRACTION_BAR) and plain.isdecimal():
        return f" {plain}" if before[-1:].isalnum() else plain
    if not before and after[:1].isalpha():
        return f"{plain} "  # The number of a verse.
    if not before or before[-1:].isspace():
        return f"[{plain}]" if _NOTE.fullmatch(plain) and before else text
    if _NOTE.fullmatch(plain) and _NOTED.search(before):
        return f"[{plain}]"
    if _LETTERS.fullmatch(plain) and not _VARIABLE.search(before):
        return plain  # 1st, Mme
    return _apart(f"^{_grouped(plain)}", after)


def lowered(text: str, before: str, after: str = "") -> str:
    """How lowered characters are written between the texts of the same line."""
    plain = text.strip()
    is_joined = before[-1:].isalnum() or before[-1:] in {")", "]", "}"}
    if not plain or not is_joined or plain[0] == "_" or before.rstrip().endswith(_FRACTION_BAR):
        return text
    return _apart(f"_{_grouped(plain)}", after)


def _apart(script: str, after: str) -> str:
    """A script that does not join the number after it, as in ``log_2 64``."""
    return f"{script} " if script[-1].isdigit() and after[:1].isdigit() else script


def joined_scripts(runs: Iterable[tuple[str, Script]]) -> str:
    """The text of the runs of one line or paragraph, with signs for their places."""
    merged: list[tuple[str, Script]] = []
    for text, script in runs:
        if merged and merged[-1][1] == script:
            merged[-1] = (merged[-1][0] + text, script)
        elif text:
            merged.append((text, script))
    result = ""
    write = {"raised": raised, "lowered": lowered}
    for (text, script), (after, place) in pairwise([*merged, ("", "")]):
        result += write[script](text, result, "" if place else after) if script else text
    return result


def marked(text: str, script: Script, *, is_struck: bool = False) -> str:
    """A text with its place, and whether it is struck out, for :func:`written`."""
    text = f"{_MARKS[script]}{text}{_MARK_END}" if script and text else text
    return f"{_STRUCK}{text}{_STRUCK_END}" if is_struck and text.strip() else text


def formula(text: str) -> str:
    """A formula in a line, which :func:`written` keeps apart from numbers and words beside it."""
    return f"{_FORMULA}{text}{_FORMULA}" if text else ""


def written(line: str) -> str:
    """A line or paragraph that is complete, with signs for the places that were marked in it."""
    if _FORMULA in line:
        line = re.sub(rf"(?<=[\w{_MARK_END}]){_FORMULA}+(?=\w)", " ", line).replace(_FORMULA, "")
    line = line.replace(_STRUCK_END + _STRUCK, "")
    if _MARK_END in line:
        runs = ((match[2] or match[3], _PLACES[match[1]]) for match in _RUN.finditer(line))
        line = joined_scripts(runs)
    return _STRUCK_RUN.sub(r"\1~~\2~~\3", line)


def scripts(base: str, below: str, above: str) -> str:
    """A part of a formula with its index and exponent: ``x_1^2``, ``∑_(i=1)^n``, ``f′``."""
    text = base + (f"_{_grouped(below)}" if below else "")
    return text + (above if _PRIMES.fullmatch(above) else f"^{_grouped(above)}" if above else "")


def fraction(numerator: str, denominator: str) -> str:
    """A fraction with a bar: ``1/2``, ``(a+b)/2``."""
    return f"{_grouped(numerator)}/{_grouped(denominator)}"


def root(radicand: str, degree: str = "") -> str:
    """A root: ``√(2)``, ``√[3](x)``."""
    return f"√{f'[{degree}]' if degree else ''}({radicand})"


def ruby(base: str, reading: str) -> str:
    """A word with its reading: ``東京 (とうきょう)``."""
    return f"{base} ({reading.strip('()（） ')})" if reading.strip("()（） ") else base


def list_number(number: int, form: str) -> str:
    """The number of an item in a list.

    Args:
        number: the number, from 1.
        form: what the first item has: ``1``, ``01``, ``1st``, ``One``, ``a``, ``A``, ``i``, ``I``,
            ``①``, ``一``, a digit of another script, or the first letter of Russian, Greek,
            Armenian, Hebrew, Georgian, hiragana or katakana; ``aa`` or ``AA`` if ``z`` is followed
            by ``aa``, ``bb``; ``*`` for the marks of notes. Other forms are as ``1``.
    """
    if number < 1 or number > _MAX_LIST_NUMBER:
        return str(number)
    if form == "1st":
        is_teen = number // 10 % 10 == 1
        return f"{number}{'th' if is_teen else _ENDINGS.get(number % 10, 'th')}"
    if form == "One" and number < 100:
        tens, ones = divmod(number, 10) if number >= 20 else (0, number)
        return "-".join(filter(None, (_TENS[tens], _ONES[ones]))).capitalize()
    if form == "①" and number <= 20:
        return chr(ord(form) + number - 1)
    if form == "一":
        return re.sub("^一十", "十", chinese_number(number))
    written = str(number).zfill(len(form))
    if len(form) == 1 and form.isdecimal():
        return "".join(chr(ord(form) + int(digit) - 1) for digit in written)
    if alphabet := _REPEATED.get(form.lower()):
        repeated, at = divmod(number - 1, len(alphabet))
        written = alphabet[at] * (repeated + 1)
    elif alphabet := _COUNTING.get(form.lower()):
        written = ""
        while number:
            number, letter = divmod(number - 1, len(alphabet))
            written = alphabet[letter] + written
    elif (letters := _NUMERALS.get(form.lower())) and number < 100:
        tens, ones = divmod(number, 10)
        written = (letters[8 + tens] if tens else "") + (letters[ones - 1] if ones else "")
        written = {"יה": "טו", "יו": "טז"}.get(written, written)
    elif form.lower() == "i":
        digits = zip(reversed(str(number)), ("ivx", "xlc", "cdm", "m"), strict=False)
        parts = ["".join(unit[int(at)] for at in _ROMAN[int(digit)]) for digit, unit in digits]
        written = "".join(reversed(parts))
    return written.upper() if form.isupper() else written


def chinese_number(number: int) -> str:
    """A whole number as it is written in Chinese."""
    groups = ""
    for power, sign in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if number >= power:
            groups += chinese_number(number // power) + sign
            number %= power
            groups += "〇" if 0 < number < power // 10 else ""
    return groups + "〇一二三四五六七八九"[number] if number or not groups else groups


def _grouped(text: str) -> str:
    text = text.strip()
    return text if _SIMPLE.fullmatch(text) else f"({text})"
