"""The lines of the file that an element of a page covers.

libxml2 reports for each element the line where its start tag ends, and for each comment the line
where it ends, up to line 65,535. Line breaks in the text between them are counted here. Three
things would make the count wrong, so the source is changed before libxml2 parses it
(:func:`scaled_source`):

- a line break inside an end tag, which no node records: a comment after the tag holds it;
- ``&#10;``, which is a line break on the page but not in the file: it becomes U+2028, which is
  white space as well;
- more lines than libxml2 counts: only every n-th break stays and the others become form feeds.
  Lines are then correct to within n.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rolebundle.ingest.readers.html_reduce import byte_pattern

# A line break on the page that is not one in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
# A line break of the file that libxml2 must not count.
UNCOUNTED_BREAK = "\f"
_MAX_LINES = 65_000
_BROKEN_END_TAG = re.compile(rb"</([A-Za-z][^\s<>]*)\s*\n\s*>")
# Searched first: line breaks are rarer than end tags.
_BREAK_BEFORE_CLOSE = rb"\n[\s\v]*>"
_BREAK_ENTITY = rb"&(?:#0*10|#[xX]0*[aA]|NewLine);"


def scaled_source(page: bytes) -> tuple[bytes, LineScale]:
    """The source to parse, and how its lines map to those of ``page``; both are UTF-8."""
    source = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in page else page
    count = source.count(b"\n") + (not source.endswith(b"\n"))
    factor = -(-count // _MAX_LINES) or 1
    if factor > 1:
        lines = source.split(b"\n")
        groups = range(0, count, factor)
        uncounted = UNCOUNTED_BREAK.encode()
        source = b"\n".join(uncounted.join(lines[i : i + factor]) for i in groups)
    if byte_pattern(_BREAK_BEFORE_CLOSE).search(source):
        source = _BROKEN_END_TAG.sub(_with_comment, source)
    if byte_pattern(_BREAK_ENTITY).search(source):
        source = re.sub(_BREAK_ENTITY, SOFT_BREAK.encode(), source)
    return source, LineScale(factor, count)


def _with_comment(match: re.Match[bytes]) -> bytes:
    breaks = b"\n" * match[0].count(b"\n")
    return b"</%b><!--%b-->" % (match[1], breaks)


@dataclass(frozen=True, slots=True)
class LineScale:
    """Maps libxml2's line numbers to those of the file.

    Attributes:
        factor: how many lines of the file are one line of libxml2.
        last: the last line of the file.
    """

    factor: int
    last: int

    @property
    def is_coarse(self) -> bool:
        """Whether one line of libxml2 covers several lines of the file."""
        return self.factor > 1

    def file_lines(self, first: int, last: int) -> tuple[int, int]:
        """The first and last line of the file for libxml2's ``first`` and ``last``."""
        if self.factor > 1:
            first, last = (first - 1) * self.factor + 1, last * self.factor
        first = min(first, self.last)
        return first, max(first, min(last, self.last))


def start_line(element: Any) -> int:
    """The line where the content of ``element`` begins."""
    line: int = element.sourceline or 1
    return line


def end_line(element: Any) -> int:
    """The line where the content of ``element`` ends."""
    line, text = _after_last_tag(element)
    return line + text.count("\n")


def text_end_line(element: Any) -> int:
    """The line where the visible text of ``element`` ends."""
    line, text = _after_last_tag(element)
    return line + text.rstrip().count("\n") if text else line


def _after_last_tag(element: Any) -> tuple[int, str]:
    """The line of the last start tag or comment inside, and the text after it."""
    text = ""
    while len(element):
        element = element[-1]
        tail = element.tail
        if tail:
            text = tail + text
    line: int = element.sourceline or 1
    own = element.text
    # Only line breaks matter. A comment's line is that of its end, so its text is not counted.
    if own and "\n" in own and isinstance(element.tag, str):
        text = own + text
    return line, text
