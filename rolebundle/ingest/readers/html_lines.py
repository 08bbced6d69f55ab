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

from rolebundle.ingest.readers.text_decoding import with_newlines

# Stands for a line break on the page that is none in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
# Stands for a line break of the file that libxml2 shall not count.
UNCOUNTED_BREAK = "\f"
_MOST_LINES = 65_000
_BROKEN_END_TAG = re.compile(r"</([A-Za-z][^\s<>]*)\s*\n\s*>")
# Line breaks are fewer than end tags: this search is the quicker one.
_BREAK_BEFORE_CLOSE = re.compile(r"\n\s*>")
_BREAK_ENTITY = re.compile(r"&(?:#0*10|#[xX]0*[aA]|NewLine);")


def scaled_source(text: str) -> tuple[str, LineScale]:
    """The source to parse, and how its lines stand for those of ``text``."""
    source = with_newlines(text)
    count = source.count("\n") + (not source.endswith("\n"))
    scale = -(-count // _MOST_LINES) or 1
    if scale > 1:
        lines = source.split("\n")
        groups = range(0, count, scale)
        source = "\n".join(UNCOUNTED_BREAK.join(lines[i : i + scale]) for i in groups)
    if _BREAK_BEFORE_CLOSE.search(source):
        source = _BROKEN_END_TAG.sub(_with_comment, source)
    if "&#" in source or "&NewLine" in source:
        source = _BREAK_ENTITY.sub(SOFT_BREAK, source)
    return source, LineScale(scale, count)


def _with_comment(found: re.Match[str]) -> str:
    breaks = "\n" * found[0].count("\n")
    return f"</{found[1]}><!--{breaks}-->"


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
    # A comment's line is that of its end.
    own = element.text if isinstance(element.tag, str) else None
    return line, (own + text if own else text)
