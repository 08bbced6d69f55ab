"""The date that the beginning of a text states of it, as letters, minutes and offers do.

Of a page of documentation only its first heading is looked at, and what stands before its first
paragraph ends. A log or a list of releases, which states several dates, has the latest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rolebundle.contracts.dates import entries_of, stated_day
from rolebundle.ingest.parsed import Block

_MAX_LINES = 12
"""How many lines with text are the beginning."""
_MAX_CHARS = 4_000
"""How much of a paragraph is searched for sentences with a day."""
_PROSE_WORDS = 25
"""A paragraph of so many words ends it."""
_DATED_LINE = re.compile(r"^(?=.{8,120}(?:$|(?<=\d{4})[.;]\s)).*\d{4}.*", re.MULTILINE)
"""A longer sentence is no title, and no line of the head of a letter."""
_SENTENCE = re.compile(r"(?:(?<=[.;)] )|^)[^.;]{0,20}\b\d{1,2}\b[^;]{0,20}\b\d{4}(?=[.;,]|$)")
_FIRST_LINE = re.compile(r".*\Z|.{1,60}?\d(?:\W{1,3}\d\d?[:.h]\d\d)?\W*\n(?![^\W\d_A-Z])")
"""A first line that is a title: it stands alone, or ends with its day, and no sentence goes on."""
_FORMS = ("label", "alone", "title", "number", "valid", "from", "below")
"""How a day is stated, the surest first. The last two count within the month of a file's name."""
_LINES_PER_ENTRY = 4


def day_of_text(blocks: Sequence[Block], until: str = "", name: str = "") -> str:
    """The day that a text states at its beginning, as ``2026-03-12``; empty if it states none.

    A title is the first heading, or a first line that stands alone. Notes whose lines or paragraphs
    begin with days are of the last of these.

    Args:
        blocks: of the text.
        until: the last possible day; "" if it is not known.
        name: the year or month in the name of the file; "" without one.
    """
    beginning = [*_stated(_beginning(blocks), name)]
    if not beginning:
        return _day_of_entries(blocks, until)
    best = min(beginning)[:2]
    others = _stated(blocks) if _FORMS[best[0]] in ("alone", "title") else beginning
    return max(day for *kind, day in others if tuple(kind) == best)


def _day_of_entries(blocks: Sequence[Block], until: str) -> str:
    """The last day, up to one, with which notes begin; "" if few lines do."""
    own = (block.text for block in blocks if block.kind in ("paragraph", "list"))
    days = [day for text in own for day, _ in entries_of(text, until) if day]
    lines = sum(bool(line.strip()) for block in blocks for line in block.text.split("\n"))
    is_log = len(days) > 1 and _LINES_PER_ENTRY * len(days) >= lines
    is_ordered = days in (sorted(days), sorted(days, reverse=True))
    return max((d for d in days if is_log and is_ordered and d <= until), default="")


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


def _stated(blocks: Iterable[Block], name: str = "") -> Iterator[tuple[int, int, str]]:
    """The form of each stated day, the level of its heading (0 without one), and the day.

    Below the first heading, such as that of a sheet, a title may be one within the month of a name.
    """
    for number, block in enumerate(blocks):
        is_heading = block.kind == "heading"
        is_first = number < 2 and _FIRST_LINE.match(block.text)
        text = block.text if block.kind != "code" else ""
        lines = _DATED_LINE.findall(text)
        # "Signed 3 March 2025." may end a long paragraph, or be broken into lines.
        prose = " ".join(text[:_MAX_CHARS].split()) if block.kind == "paragraph" else ""
        sentences = _SENTENCE.findall(prose)
        for line in dict.fromkeys((*lines, *sentences)):
            day, form = stated_day(line)
            if line not in lines and form != "label":
                continue
            is_title = is_heading or (is_first and block.text.startswith(line))
            is_below = number and is_first and form == "title"
            form = "title" if is_heading else "below" if is_below else form
            is_prose = block.kind not in ("list", "table")
            in_month = day.startswith(name or "-")
            may_be = {"alone": is_prose, "title": is_title, "from": in_month, "below": in_month}
            may_be["valid"] = day.startswith(name)
            if day and may_be.get(form, True):
                yield _FORMS.index(form), block.level, day
