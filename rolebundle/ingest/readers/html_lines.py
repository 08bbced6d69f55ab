"""True line numbers out of libxml2.

libxml2 gives each element the line where its start tag ends, and each comment the line where it
ends, up to line 65,535. In between, the line breaks in the text are counted. Three things would
break the count, and are written otherwise in the source that libxml2 gets:

- a line break inside an end tag, which no node records: a comment after the tag holds it;
- ``&#10;``, a line break that is none in the file: it becomes U+2028, which is white space, too;
- more lines than libxml2 counts: only each n-th break stays, the others become form feeds, and
  lines are then true to within n.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rolebundle.ingest.readers.byte_patterns import byte_pattern

# Stands for a line break on the page that is none in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
# Stands for a line break of the file that libxml2 shall not count.
UNCOUNTED_BREAK = "\f"
_MOST_LINES = 65_000
_BROKEN_END_TAG = re.compile(rb"</([A-Za-z][^\s<>]*)\s*\n\s*>")
# Line breaks are fewer than end tags: this search is the quicker one.
_BREAK_BEFORE_CLOSE = rb"\n[\s\v]*>"
_BREAK_ENTITY = rb"&(?:#0*10|#[xX]0*[aA]|NewLine);"


def scaled_source(page: bytes) -> tuple[bytes, LineScale]:
    """The source to parse, and how its lines stand for those of ``page``; both are UTF-8."""
    source = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in page else page
    count = source.count(b"\n") + (not source.endswith(b"\n"))
    scale = -(-count // _MOST_LINES) or 1
    if scale > 1:
        lines = source.split(b"\n")
        groups = range(0, count, scale)
        uncounted = UNCOUNTED_BREAK.encode()
        source = b"\n".join(uncounted.join(lines[i : i + scale]) for i in groups)
    if byte_pattern(_BREAK_BEFORE_CLOSE).search(source):
        source = _BROKEN_END_TAG.sub(_with_comment, source)
    if byte_pattern(_BREAK_ENTITY).search(source):
        source = re.sub(_BREAK_ENTITY, SOFT_BREAK.encode(), source)
    return source, LineScale(scale, count)


def _with_comment(found: re.Match[bytes]) -> bytes:
    breaks = b"\n" * found[0].count(b"\n")
    return b"</%b><!--%b-->" % (found[1], breaks)


@dataclass(frozen=True, slots=True)
class LineScale:
    """From libxml2's lines to the file's."""

    scale: int
    last: int

    @property
    def is_coarse(self) -> bool:
        """Whether one line of libxml2 stands for several of the file."""
        return self.scale > 1

    def __call__(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last line of the file that libxml2's two stand for."""
        if self.scale > 1:
            first, last = (first - 1) * self.scale + 1, last * self.scale
        first = first if first <= self.last else self.last
        return first, (first if last < first else last if last <= self.last else self.last)


def start_line(element: Any) -> int:
    """The line where the content of ``element`` begins."""
    line: int = element.sourceline or 1
    return line


def end_line(element: Any) -> int:
    """The line where the content of ``element`` ends, by its last descendant."""
    line, text = _after_last_tag(element)
    return line + text.count("\n")


def text_end_line(element: Any) -> int:
    """The line where what can be seen of ``element`` ends."""
    line, text = _after_last_tag(element)
    return line + text.rstrip().count("\n") if text else line


def _after_last_tag(element: Any) -> tuple[int, str]:
    """The line of the last start tag or comment inside, and the text from there to the end."""
    text = ""
    while len(element):
        element = element[-1]
        tail = element.tail
        if tail:
            text = tail + text
    line: int = element.sourceline or 1
    own = element.text
    # Only line breaks count. A comment's line is that of its end, and its text comes before it.
    if own and "\n" in own and isinstance(element.tag, str):
        text = own + text
    return line, text
