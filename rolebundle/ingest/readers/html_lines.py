"""The lines of the file that an element of a page covers.

libxml2 reports for each element the line where its start tag ends, and for each comment the line
where it ends, up to line 65,535. Line breaks in the text between them are counted here. Two things
would make the count wrong, so the source is changed before libxml2 parses it
(:func:`countable_source`):

- a line break inside an end tag, which no node records: a comment after the tag holds it;
- ``&#10;``, which is a line break on the page but not in the file: it becomes U+2028, which is
  white space as well.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2  # type: ignore[import-untyped, unused-ignore]

# A line break on the page that is not one in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
_MAX_LINE = 65_535
_BROKEN_END_TAG = re.compile(rb"</([A-Za-z][^\s<>]*)\s*\n\s*>")
_BREAK_ENTITY = re.compile(rb"&(?:#0*10|#[xX]0*[aA]|NewLine);")


def countable_source(page: bytes) -> bytes:
    """The source of a page to parse; its lines have the numbers of those of ``page``."""
    source = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in page else page
    source = _BROKEN_END_TAG.sub(
        lambda tag: b"</%b><!--%b-->" % (tag[1], b"\n" * tag[0].count(b"\n")), source
    )
    return _BREAK_ENTITY.sub(SOFT_BREAK.encode(), source)


def lines_in(source: bytes) -> int:
    """The number of lines of a source."""
    return source.count(b"\n") + (not source.endswith(b"\n"))


def file_lines(first: int, last: int, count: int) -> tuple[int, int]:
    """The lines of a file with ``count`` lines for those of libxml2, which does not count all."""
    first = min(first, _MAX_LINE, count)
    return first, count if last >= _MAX_LINE else max(first, min(last, count))


def start_line(element: Any) -> int:
    """The line where the content of ``element`` begins."""
    line: int = element.sourceline or 1
    return line


def end_line(element: Any, *, is_visible: bool = False) -> int:
    """The line where the content of ``element`` ends, or its visible text."""
    text = ""  # after the last start tag or comment inside
    while len(element):
        element = element[-1]
        text = (element.tail or "") + text
    # Only line breaks matter. A comment's line is that of its end, so its text is not counted.
    if isinstance(element.tag, str):
        text = (element.text or "") + text
    return start_line(element) + (text.rstrip() if is_visible else text).count("\n")


@cache
def byte_pattern(expression: bytes) -> Any:
    r"""Compile an RE2 pattern over bytes. Its ``\s`` does not match the vertical tab.

    RE2 finds quickly that a pattern is absent: several times as fast as ``re`` on most pages.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # One byte, one character.
    return re2.compile(expression, options)
