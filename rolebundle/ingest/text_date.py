"""The date that the beginning of a text states of it, as letters, minutes and offers do.

Of a page of documentation only its first heading is looked at, and what stands before its first
paragraph ends. A log or a list of releases, which states several dates, has the latest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rolebundle.contracts.dates import stated_day
from rolebundle.ingest.parsed import Block

_MAX_LINES = 12
"""How many lines with text are the beginning."""
_PROSE_WORDS = 25
"""A paragraph of so many words ends it."""
_DATED_LINE = re.compile(r"^(?=.{8,120}$).*\d{4}.*", re.MULTILINE)
"""A longer line is no title, and no line of the head of a letter."""
_FIRST_LINE = re.compile(r".*\Z|.{1,60}?\d(?:\W{1,3}\d\d?[:.h]\d\d)?\W*\n(?![^\W\d_A-Z])")
"""A first line that is a title: it stands alone, or ends with its day, and no sentence goes on."""
_FORMS = ("label", "alone", "title")
"""How a day is stated, the surest first."""


def day_of_text(blocks: Sequence[Block]) -> str:
    """The day that a text states at its beginning, as ``2026-03-12``; empty if it states none.

    A title is the first heading, or a first line that stands alone.
    """
    beginning = [*_stated(_beginning(blocks))]
    if not beginning:
        return ""
    best = min(beginning)[:2]
    others = beginning if best[0] == _FORMS.index("label") else _stated(blocks)
    return max(day for *kind, day in others if tuple(kind) == best)


def _beginning(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks up to the first paragraph, the second heading, or the twelfth line."""
    lines = headings = 0
    for block in blocks:
        headings += block.kind == "heading"
        if headings > 1 or lines >= _MAX_LINES or block.kind == "code":
            return
        own = block.text.split("\n")[: _MAX_LINES - lines]
        yield block._replace(text="\n".join(own))
        lines += len(own)
        if block.kind in ("list", "table") or len(block.text.split()) >= _PROSE_WORDS:
            return


def _stated(blocks: Iterable[Block]) -> Iterator[tuple[int, int, str]]:
    """The form of each stated day, the level of its heading (0 without one), and the day."""
    for number, block in enumerate(blocks):
        is_heading = block.kind == "heading"
        is_first = not number and _FIRST_LINE.match(block.text)
        for line in _DATED_LINE.findall(block.text if block.kind != "code" else ""):
            day, form = stated_day(line)
            form = "title" if is_heading else form
            is_title = is_heading or (is_first and block.text.startswith(line))
            is_misplaced = not is_title if form == "title" else block.kind in ("list", "table")
            if day and (form == "label" or not is_misplaced):
                yield _FORMS.index(form), block.level, day
