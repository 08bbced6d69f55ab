"""Passwords as people write them in notes: ``PW: …``, ``the root password is …``, ``admin / …``.

A label says that a value is a password: a word for it in one of many languages, a heading of a
table's column, or the name of an account before a slash. What follows is one if it is written
like a password and not like a word, a rule, a place or a piece of code. A plain word is never one,
because "password: optional" is no password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from rolebundle.resources import data_file
from rolebundle.text.tables import CELL_MARKS

Span = tuple[int, int]
Look = Literal["digits", "number", "weak", "strong", "unusual"]

_WORDS = {
    name: "|".join(words)
    for name, words in data_file(__file__, "findings.toml")["passwords"].items()
}
_NUMBER, _NETWORK, _KEY = (_WORDS[name] for name in ("number", "network", "key"))
LABEL = rf"(?i:{_WORDS['long']}|{_WORDS['short']}|{_NUMBER}|{_NETWORK}|{_KEY})"
"""An RE2 expression for the words before a password."""
PAIR = r"[^\s/] ?/ ?[^\s/]"
"""An RE2 expression for a name and a password with a slash between them."""

_LABEL = re.compile(LABEL)
_IS_NUMBER = re.compile(rf"(?i:{_NUMBER})\Z")
_IS_SHORT = re.compile(rf"(?i:pass|clave|parola|parole|wi-?fi|wlan|wpa2?|{_KEY})\Z")
_IS = f"(?:{_WORDS['is']})"
_STILL = r"(?:(?:still|now|always|again|immer|noch|jetzt|toujours|encore|ahora|sempre)\s{1,3})*"
_NOTE_SIGN = r"(?:[:：]=?|=>|->|→|={1,2}|(?<=\s)[-–—](?=\s))[*_]{0,2}"
_OPENING = rf"\s{{0,3}}{_STILL}[\"'`“„«*_]{{0,3}}"
_DIRECT = re.compile(
    rf"[^\W\d_]{{0,2}}[\"'`*_)\]]{{0,4}}\s{{0,3}}(?:{_NOTE_SIGN}|は|是|为|\b{_IS}\s){_OPENING}"
)
_FAR = re.compile(r"[^\W\d_]{0,2}[\"'`*_]{0,3}[ ,-][^\n;.!?|]{1,70}")
_FAR_SIGN = re.compile(rf"(?:\s?{_NOTE_SIGN}|[\s,]{_IS}\s){_OPENING}")
_SPACE = re.compile(rf"[ \t]{{1,3}}{_OPENING}")
_AFTER_NETWORK = re.compile(r"[^\W\d_]{0,2}\s?:[^\n:/]{1,40}\s/\s")
_CLOSING = " \t.!)\"'`”“"
_NOTE_VALUE = re.compile(r"[^\s|<>\"“”„«»`]{4,64}")
_END = re.compile(r"(?:;\w+=|\\[nt]).*|(?:[,;:.)\]}'*_]|\\[nt])+$")
_DIGITS = re.compile(r"\d{4,8}#?(?![\w-]|[.,:/]\d)(?! ?[\w%°])")
_NUMBERS = re.compile(r"\d{4,8}#?(?=[,;.)]?(?:\s|$))")
"""For a PIN, which may be followed by words."""

_NO_PASSWORD = re.compile(_WORDS["no_password"], re.IGNORECASE)
_LOGIN = re.compile(rf"(?i)\b(?:{_WORDS['login']})\b")
_ACCOUNT = re.compile(rf"(?i)(?:{_WORDS['account']})\Z")
_NAME = re.compile(r"[\w.@+-]{2,40}\Z")
_UNUSUAL = "!#$%&*?@^~"
"""Signs that are in no word and join none."""
_MAX_ROWS = 500
_MAX_CHARS = 160
_LEET = str.maketrans("013457@$!", "oleastasi")
_COMMON_PASSWORD = re.compile(
    r"(?:super|my|the|top)?(?:password|passwd|secret|admin|welcome|test|pass)+\W*\d*\W*", re.I
)


def is_common(value: str) -> bool:
    """Whether a value is a word for password, perhaps with digits for letters and at its end."""
    return _COMMON_PASSWORD.fullmatch(value.translate(_LEET)) is not None


def labelled(text: str, start: int) -> Iterator[Span]:
    """The passwords that a label at an offset announces: after it, or below it in a table."""
    label = _LABEL.match(text, start)
    if label is None:
        return
    end = label.end()
    line_end = text.find("\n", end)
    line_end = min(len(text) if line_end < 0 else line_end, end + _MAX_CHARS)
    is_number, is_short = _IS_NUMBER.match(label[0]), _IS_SHORT.match(label[0])
    far = _FAR.match(text, end, line_end)
    signs = list(_FAR_SIGN.finditer(text, end, far.end())) if far else []
    direct, space = (pattern.match(text, end, line_end) for pattern in (_DIRECT, _SPACE))
    ways: list[tuple[re.Match[str] | None, Look]] = [
        (direct, "strong" if is_short else "weak"),
        (direct, "number" if is_number else "digits"),
        (space if not is_short else None, "strong"),
        (space if is_number else None, "number"),
        *((sign, "number" if is_number else "strong") for sign in signs),
    ]
    for before, look in ways:
        if before and (found := _note_value(text, before.end(), line_end, look)):
            yield found
            return
    # The last word of a line: `netflix pw kettle22`, `wifi: NameOfNet / kettle22`.
    last = [_AFTER_NETWORK.match(text, end, line_end), direct] if is_short else [space]
    for before in last:
        is_sure = before and (not is_short or not {":", "="}.isdisjoint(before[0]))
        found = _note_value(text, before.end(), line_end, "weak") if before and is_sure else None
        if found and not text[found[1] : line_end].strip(_CLOSING):
            yield found
            return
    # Columns of keys have words for keys, too.
    yield from _below(text, start, end, "strong" if is_short and " " in label[0] else "weak")


def paired(text: str, start: int) -> Iterator[Span]:
    """The password after the name of an account and a slash, at the offset before the slash."""
    line_start = text.rfind("\n", 0, start) + 1
    slash = text.index("/", start + 1)
    before = text[max(line_start, start - _MAX_CHARS) : slash].rstrip()
    name, value_start = _NAME.search(before), slash + 1 + (text[slash + 1] == " ")
    if name is None or before[: name.start()][-1:].strip(" \t\"'`(:*|"):
        return
    is_spaced = text[slash - 1] == " " and text[slash + 1] == " "
    is_account = _ACCOUNT.match(name[0])
    is_login = "@" in name[0][1:] or _LOGIN.search(before[: name.start()])
    if "://" not in before.split()[-1] and (is_spaced or is_login):
        look: Look = "weak" if is_account else "strong" if is_login else "unusual"
        found = _note_value(text, value_start, len(text), look)
        # `a / b / c` is a list or a path.
        if found is not None and "/" not in text[found[0] : found[1] + 2]:
            yield found


def _below(text: str, start: int, end: int, look: Look) -> Iterator[Span]:
    """The passwords in the column of a table that a label is the heading of."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    header = text[line_start:line_end]
    after = text[end : line_end if line_end >= 0 else end].lstrip()[:1]
    before = text[line_start:start].rstrip()[-1:]
    sign = next((sign for sign in CELL_MARKS if sign in (after, before)), "")
    if line_end < 0 or not sign or {after, before} - {sign, ""}:
        return
    # Of code, an argument in a line of its own.
    if sign != "|" and (header[0].isspace() or not all(header.split(sign))):
        return
    column, columns = text.count(sign, line_start, start), header.count(sign)
    row_start = line_end + 1
    for row in text[row_start : row_start + _MAX_ROWS * _MAX_CHARS].split("\n")[:_MAX_ROWS]:
        if row.count(sign) != columns:
            return
        cells = row.split(sign)
        place = row_start + sum(len(cell) + 1 for cell in cells[:column])
        place += len(cells[column]) - len(cells[column].lstrip())
        if found := _note_value(text, place, row_start + len(row), look):
            yield found
        row_start += len(row) + 1


def _note_value(text: str, start: int, end: int, look: Look) -> Span | None:
    """The value at an offset, if it looks like a password."""
    if look in ("digits", "number"):
        digits = (_DIGITS if look == "digits" else _NUMBERS).match(text, start, end)
        is_placeholder = look == "digits" and digits and "1234567890".startswith(digits[0])
        return digits.span() if digits and not is_placeholder else None
    match = _NOTE_VALUE.match(text, start, end)
    if match is None:
        return None
    value = _END.sub("", match[0])
    return (start, start + len(value)) if _looks_like_password(value, look) else None


def _looks_like_password(value: str, look: Look) -> bool:
    """Whether a value has letters and other signs, and is not something else that has them.

    ``strong``: it has lower case, upper case and digits, or a sign that words do not have;
    ``unusual``: it has such a sign.
    """
    if len(value) < (6 if look == "weak" else 7) or _NO_PASSWORD.match(value):
        return False
    if is_common(value) and not value.isalpha():
        return False
    lower, upper, digits = (
        sum(map(is_kind, value)) for is_kind in (str.islower, str.isupper, str.isdigit)
    )
    # "Never!" and "String!" are words.
    unusual = sum(map(value.rstrip("!?*").count, _UNUSUAL)) or (digits and value[-1] in "!?*")
    if lower + upper < 3 or not (digits or unusual) or not (lower or unusual):
        return False
    if look == "strong":
        return bool(unusual or (lower and upper and digits))
    return look == "weak" or bool(unusual)
