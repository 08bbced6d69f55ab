"""The blocks of a page (headings, paragraphs, lists, tables and code) and their lines in the file.

Text inside a block comes from libxml2's own text serializer, which is ten times as fast as a walk
in Python; the walk itself only visits elements that can contain blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.documents import QUOTED
from rolebundle.ingest.parsed import Block, BlockKind
from rolebundle.ingest.readers import notation
from rolebundle.ingest.readers.elements import integer_in
from rolebundle.ingest.readers.html_hidden import LIST_STYLE
from rolebundle.ingest.readers.package import row_line
from rolebundle.ingest.turns import attribution
from rolebundle.resources import data_file
from rolebundle.text.decoding import one_line

# -- lines --
#
# The lines of the file that an element of a page covers.
#
# libxml2 reports for each element the line where its start tag ends, and for each comment the line
# where it ends, up to line 65,535. Line breaks in the text between them are counted here. Two
# things would make the count wrong, so the source is changed before libxml2 parses it
# (:func:`countable_source`):
#
# - a line break inside an end tag, which no node records: a comment after the tag holds it;
# - ``&#10;``, which is a line break on the page but not in the file: it becomes U+2028, which is
#   white space as well.


# A line break on the page that is not one in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
_MAX_LINE = 65_535
_BROKEN_END_TAG = re.compile(rb"</([A-Za-z][^\s<>]*)\s*\n\s*>")
_BREAK_ENTITY = re.compile(rb"&(?:#0*10|#[xX]0*[aA]|NewLine);")
_LAST_TAGS = re.compile(rb"</(?:body|html)[ \t]*>", re.IGNORECASE)
"""Browsers show what is after them, such as the footer of a mailing list. libxml2 loses it."""
_SOFT_HYPHEN = re.compile(rb"&(?:shy|#173|#[xX][aA][dD]);|\xc2\xad")
"""No search would find a word with one. It is only shown at the end of a line."""


def countable_source(page: bytes) -> bytes:
    """The source of a page to parse; its lines have the numbers of those of ``page``."""
    source = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in page else page
    source = _SOFT_HYPHEN.sub(b"", source)
    source = _BROKEN_END_TAG.sub(
        lambda tag: b"</%b><!--%b-->" % (tag[1], b"\n" * tag[0].count(b"\n")), source
    )
    return _BREAK_ENTITY.sub(SOFT_BREAK.encode(), _LAST_TAGS.sub(b"", source))


def file_lines(first: int, last: int, count: int) -> tuple[int, int]:
    """The lines of a file with ``count`` lines for those of libxml2, which does not count all."""
    first = min(first, _MAX_LINE, count)
    return first, count if last >= _MAX_LINE else max(first, min(last, count))


def start_line(element: Any) -> int:
    """The line where the content of ``element`` begins."""
    return int(element.sourceline or 1)


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


# -- blocks --


HEADINGS = {f"h{level}": level for level in range(1, 7)}
LISTS = frozenset(("ul", "ol", "menu", "dir"))
BLOCKS = frozenset(data_file(__file__, "html.toml")["blocks"].split())
# Longer lists and tables are cut anyway. One block per item gives each chunk its own lines.
_MAX_LIST_CHARS = 1800
_LIST_FORMS = data_file(__file__, "list_numbers.toml")["css"]
_PLAIN_FORMS = {"ol": "1", "1": "1", "a": "a", "A": "A", "i": "i", "I": "I"}
"""The forms of lists without a style, by their tag and the values of `type`."""
VERBATIM = frozenset(("pre", "listing", "xmp", "plaintext"))
_SPLIT = LISTS | {"table"}
# A list or table that contains one of these is split into several blocks.
_BLOCK_CONTENT = ("pre", "table", "dl", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6")


def html_blocks(root: Any, count: int, *, is_mail: bool = False) -> tuple[Block, ...]:
    """The blocks of ``root`` in the order of the document; ``count`` is the number of its lines.

    What a mail has in a ``blockquote`` is a message that it quotes.
    """
    for element in root.iter("br"):
        # Not in its tail: lxml does not write a tail again that has a control character.
        element.text = SOFT_BREAK
    walk = _Walk(count)
    walk.container(root)
    if is_mail:
        _mark_quotes(walk.blocks, walk.quotes)
    return tuple(walk.blocks)


def _mark_quotes(blocks: list[Block], quotes: Sequence[range]) -> None:
    """Set quoted messages apart; with answers between them, put ``>`` before their lines.

    Args:
        blocks: of a mail; changed in place.
        quotes: the places of the blocks of each quoted message, inner ones before outer ones.
    """
    quoted = {place for quote in quotes for place in quote}
    has_answers = bool(quoted) and len(quoted) <= max(quoted) - min(quoted)
    for number, quote in enumerate(quotes, 1):
        first = max(0, quote.start - 2)
        name, start = attribution([block.text for block in blocks[first : quote.start]])
        header = name or QUOTED
        if not has_answers:
            quoted.update(range(first + start, quote.start))
        for place in quoted.intersection(range(first + start, quote.stop)):
            block = blocks[place]
            blocks[place] = (
                block._replace(text="> " + block.text.replace("\n", "\n> "))
                if has_answers
                else block._replace(anchor=f"{QUOTED} {number}", header=block.header or header)
            )
        quoted.difference_update(range(first + start, quote.stop))


def text_of(element: Any) -> str:
    """All text inside ``element``, with its white space."""
    if not len(element):
        return element.text or ""
    return str(etree.tostring(element, method="text", encoding=str, with_tail=False))


def _has_descendant(element: Any, *tags: str) -> bool:
    """Whether ``element`` has a descendant with one of ``tags``."""
    return next(element.iterdescendants(*tags), None) is not None


def holds_block(element: Any) -> bool:
    """Whether an inline element contains blocks, as in ``<a><div>``."""
    return _has_descendant(element, *BLOCKS)


def _is_long(element: Any) -> bool:
    """Whether a list item or table row is long and contains blocks."""
    return len(text_of(element)) > _MAX_LIST_CHARS and holds_block(element)


class _Walk:
    """Collects blocks. Inline content between two blocks of a container is a paragraph.

    ``_run`` holds the pieces of the current inline content: each with what it is of an element,
    and the element.
    """

    def __init__(self, count: int) -> None:
        self.blocks: list[Block] = []
        self.quotes: list[range] = []
        self._count = count
        self._run: list[tuple[str, str, Any]] = []

    def container(self, element: Any) -> None:
        """Walk an element that may contain blocks, inline content or both."""
        first = len(self.blocks)
        self._inline("text", element.text, element)
        for child in element:
            tag = child.tag
            read = _READ.get(tag)
            if read is not None:
                self._flush()
                is_split = tag in _SPLIT and _has_descendant(child, *_BLOCK_CONTENT)
                (_Walk.container if is_split else read)(self, child)
            # The tag of a comment is a function. Comments only matter for line numbers.
            elif isinstance(tag, str):
                if len(child) and holds_block(child):
                    self.container(child)
                else:
                    self._inline("all", text_of(child), child)
            self._inline("tail", child.tail, child)
        if element.tag in BLOCKS:
            self._flush()
        if element.tag == "blockquote":
            self.quotes.append(range(first, len(self.blocks)))

    def _inline(self, place: str, text: str | None, element: Any) -> None:
        # Most text is white space between two blocks, which is dropped outside a run.
        if text and (self._run or not text.isspace()):
            self._run.append((text, place, element))

    def _flush(self) -> None:
        """End the paragraph of the current inline content."""
        if not self._run:
            return
        text = one_line("".join([text for text, _, _ in self._run]))
        # White space separates words but does not extend the lines.
        while self._run[-1][0].isspace():
            self._run.pop()
        piece, place, element = self._run[0]
        leading = piece[: len(piece) - len(piece.lstrip())].count("\n")
        first = end_line(element) if place == "tail" else start_line(element)
        if not (place == "all" and len(element)):
            first += leading
        piece, place, element = self._run[-1]
        if place == "all":
            last = end_line(element, is_visible=True)
        else:
            last = end_line(element) if place == "tail" else start_line(element)
            last += piece.rstrip().count("\n")
        self._run.clear()
        self._add("paragraph", text, first, last)

    def _add(
        self, kind: BlockKind, text: str, first: int, last: int, level: int = 0, header: str = ""
    ) -> None:
        if text:
            first, last = file_lines(first, last, self._count)
            heading, text = (text, f"{'#' * level} {text}") if level else ("", text)
            self.blocks.append(Block(kind, text, first, last, level, heading, header=header))

    def _leaf(
        self, kind: BlockKind, element: Any, text: str, level: int = 0, header: str = ""
    ) -> None:
        last = end_line(element, is_visible=True)
        self._add(kind, text, start_line(element), last, level, header)

    def paragraph(self, element: Any) -> None:
        if len(element) and holds_block(element):
            self.container(element)
        else:
            self._leaf("paragraph", element, one_line(text_of(element)))

    def heading(self, element: Any) -> None:
        self._leaf("heading", element, one_line(text_of(element)), HEADINGS[element.tag])

    def list_block(self, element: Any) -> None:
        """A list as one block, or a long list as one block per item, with its own lines."""
        if len(text_of(element)) <= _MAX_LIST_CHARS:
            self._leaf("list", element, "\n".join(_list_lines(element)))
            return
        self._inline("text", element.text, element)
        for item in element:
            if isinstance(item.tag, str):
                self._flush()
                if _is_long(item):
                    self.container(item)
                else:
                    self._leaf("list", item, "\n".join(_item_lines(item)))
            self._inline("tail", item.tail, item)
        self._flush()

    def table(self, element: Any) -> None:
        """A table as one block, or a long table as one block per row, with its own lines."""
        rows = list(element.iter("tr", "caption"))
        # The first row, if it has several cells and all of them are header cells.
        first = next((row for row in rows if row.tag == "tr"), ())
        tags = [cell.tag for cell in first if isinstance(cell.tag, str)]
        header = _row_line(first) if len(tags) > 1 and set(tags) == {"th"} else ""
        _write_spans(rows)
        header = _row_line(first) if header else ""
        if len(text_of(element)) <= _MAX_LIST_CHARS:
            text = "\n".join(filter(None, map(_row_line, rows)))
            self._leaf("table", element, text, header=header)
            return
        for row in rows:
            if _is_long(row):
                self.container(row)
            else:
                self._leaf("table", row, _row_line(row), header=header)

    def code(self, element: Any) -> None:
        """Preformatted text, which keeps its lines."""
        raw = _code_text(element)
        lines = raw.replace(SOFT_BREAK, "\n").replace("\xa0", " ").split("\n")
        lines = [line.rstrip() for line in lines]
        dropped = next((i for i, line in enumerate(lines) if line), len(lines))
        text = "\n".join(lines[dropped:]).rstrip()
        first, last = start_line(element), end_line(element)
        # The source has no other line breaks than the text.
        is_aligned = last - first == raw.count("\n") and SOFT_BREAK not in raw
        if text and is_aligned and last <= self._count and file_lines(first, last, last)[1] == last:
            first += dropped
            last = first + text.count("\n")
            self.blocks.append(Block("code", text, first, last, aligned=True))
        else:
            self._add("code", text, first, last)


_READ: Mapping[Any, Callable[[_Walk, Any], None]] = {
    **dict.fromkeys(BLOCKS, _Walk.container),
    **dict.fromkeys(HEADINGS, _Walk.heading),
    **dict.fromkeys(LISTS, _Walk.list_block),
    **dict.fromkeys(VERBATIM, _Walk.code),
    "p": _Walk.paragraph,
    "table": _Walk.table,
}


def _list_lines(element: Any, depth: int = 0) -> Iterable[str]:
    """One line per item; nested lists are indented below their item."""
    indent = "  " * depth
    yield from _line(indent, element.text)
    for child in element:
        if child.tag in LISTS:
            yield from _list_lines(child, depth + 1)
        elif isinstance(child.tag, str):
            yield from _item_lines(child, depth)
        yield from _line(indent, child.tail)


def _label(item: Any) -> str:
    """The label of an item as it is shown: ``7.``, ``b.``; ``-`` for bullets and no label."""
    parent = item.getparent()
    if parent is None or parent.tag not in LISTS or item.tag != "li":
        return "- "
    form = _PLAIN_FORMS.get(parent.tag, "")
    for element in (parent, item):
        form = _PLAIN_FORMS.get(element.get("type", ""), form)
        words = element.get(LIST_STYLE, "").split()
        form = next((_LIST_FORMS[word] for word in words if word in _LIST_FORMS), form)
    if not form:
        return "- "
    if item.get("_number") is None:
        items = list(parent.iterchildren("li"))
        step = -1 if parent.get("reversed") is not None else 1
        number = integer_in(parent.get("start"), len(items) if step < 0 else 1)
        for each in items:
            number = integer_in(each.get("value"), number)
            each.set("_number", str(number))
            number += step
    return f"{notation.list_number(integer_in(item.get('_number')), form)}. "


def _item_lines(item: Any, depth: int = 0) -> Iterable[str]:
    """The line of an item, and those of the lists in it."""
    indent = "  " * depth
    mark, text = _label(item), item.text or ""
    for child in item:
        if child.tag in LISTS or (isinstance(child.tag, str) and _has_descendant(child, *LISTS)):
            yield from _line(indent + mark, text)
            mark, text = "  ", ""
            yield from _list_lines(child, depth + 1 if child.tag in LISTS else depth)
        elif isinstance(child.tag, str):
            text += spaced_text(child)
        text += child.tail or ""
    yield from _line(indent + mark, text)


def _line(mark: str, text: str | None) -> Iterable[str]:
    words = one_line(text or "")
    return (mark + words,) if words else ()


def spaced_text(element: Any) -> str:
    """The text of ``element``, with spaces between the blocks inside it."""
    if len(element) and holds_block(element):
        text = element.text or ""
        for child in element:
            text += (spaced_text(child) if isinstance(child.tag, str) else "") + (child.tail or "")
    else:
        text = text_of(element)
    return f" {text} " if element.tag in BLOCKS else text


def _code_text(element: Any) -> str:
    """The text of code, with a line for each block inside that is a line."""
    if not holds_block(element):
        return text_of(element)
    text = element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            inside = _code_text(child)
            is_line = child.tag in BLOCKS and child.tag not in VERBATIM
            if is_line and text and not text.endswith(("\n", SOFT_BREAK)):
                text += SOFT_BREAK
            text += inside
            tail = child.tail or ""
            if is_line and not inside.endswith("\n") and not tail.startswith(("\n", "\r")):
                text += SOFT_BREAK
        text += child.tail or ""
    return text


_MAX_SPAN = 1_000


def _write_spans(rows: Sequence[Any]) -> None:
    """Add empty cells where a cell of a row above, or one of several columns, is shown."""
    left: dict[int, int] = {}
    for row in rows:
        cells = [cell for cell in row if cell.tag in {"td", "th"}] if row.tag == "tr" else []
        column, spans = 0, left
        left = {c: n - 1 for c, n in spans.items() if n > 1} if row.tag == "tr" else left
        for cell in cells:
            while column in spans:
                cell.addprevious(_empty_cell(cell.tag, start_line(cell)))
                column += 1
            width = min(integer_in(cell.get("colspan"), 1), _MAX_SPAN)
            height = min(integer_in(cell.get("rowspan"), 1), _MAX_SPAN)
            for place in range(max(width, 1)):
                if place:
                    added = _empty_cell(cell.tag, end_line(cell))
                    added.tail, cell.tail = cell.tail, None
                    cell.addnext(added)
                if height > 1:
                    left[column + place] = height - 1
            column += max(width, 1)


def _empty_cell(tag: str, line: int) -> Any:
    cell: Any = etree.Element(tag)
    cell.sourceline = min(line, _MAX_LINE)
    return cell


def _row_line(row: Any) -> str:
    """A row as one line, with bars between its cells, or a caption."""
    if row.tag == "caption":
        return one_line(spaced_text(row))
    return row_line([spaced_text(cell) for cell in row if isinstance(cell.tag, str)])
