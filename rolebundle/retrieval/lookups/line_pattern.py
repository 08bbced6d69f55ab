"""What `grep` searches for: an exact text or a regular expression, within one line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rolebundle.errors import UsageError
from rolebundle.scan import linear
from rolebundle.text.references import may_be_stored

MAX_SHOWN = 300
"""So many characters of a longer line are shown."""
_EACH_LINE = "(?m)"
"""``^`` and ``$`` match at each line."""
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|.)", re.DOTALL)


class LineMatch(NamedTuple):
    """A line with a match: its number in the text, from 0, and what is shown of it."""

    number: int
    shown: str


class LinePattern:
    """An exact text or a regular expression of RE2. Case counts only if it has a capital letter.

    Args:
        pattern: what is searched for.
        is_regex: whether it is a regular expression.

    Raises:
        UsageError: ``bad_pattern``: it is empty, matches the empty text, or has a line break, or
            RE2 does not accept it.
    """

    def __init__(self, pattern: str, *, is_regex: bool) -> None:
        letters = _ESCAPE.sub("", pattern) if is_regex else pattern
        try:
            _check_text(pattern, is_regex=is_regex)
            self._regex = linear.check(
                _EACH_LINE + pattern if is_regex else pattern,
                literal=not is_regex,
                case_sensitive=any(map(str.isupper, letters)),
                never_nl=True,
            )
        except linear.PatternError as error:
            raise UsageError(
                "bad_pattern",
                f"pattern: {str(error).replace(_EACH_LINE, '')}",
                "give an exact text"
                + (r", or an expression of RE2 such as E-\d{4}" if is_regex else " of one line"),
            ) from None

    def find(self, text: str) -> Iterator[LineMatch]:
        """The lines of a text that have a match, in order."""
        data = text.encode()
        number = start = 0
        while start <= len(data) and (match := self._regex.search(data, start)):
            line_start = data.rfind(b"\n", 0, match.start()) + 1
            line_end = data.find(b"\n", match.end())
            line_end = len(data) if line_end < 0 else line_end
            number += data.count(b"\n", start, line_start)
            before, found, after = (
                part.decode()
                for part in (
                    data[line_start : match.start()],
                    data[match.start() : match.end()],
                    data[match.end() : line_end],
                )
            )
            yield LineMatch(number, _shown(before, found, after.rstrip()))
            number, start = number + 1, line_end + 1


def _check_text(pattern: str, *, is_regex: bool) -> None:
    if not pattern.strip():
        raise linear.PatternError("is empty")
    if not may_be_stored(pattern):
        raise linear.PatternError("holds unpaired surrogates, which are not Unicode text")
    breaks = {"\n", "\r"} | ({r"\n", r"\r"} if is_regex else set())
    if breaks & {*pattern, *_ESCAPE.findall(pattern)}:
        raise linear.PatternError("has a line break, and lines are searched one by one")


def _shown(before: str, found: str, after: str) -> str:
    """A line, or the part around its match if it is long."""
    line = f"{before}{found}{after}"
    if len(line) <= MAX_SHOWN:
        return line
    space = max(0, MAX_SHOWN - len(found))
    start = max(0, min(len(before) - space // 2, len(line) - MAX_SHOWN))
    end = start + MAX_SHOWN
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
