"""The blocks of a page: headings, paragraphs, lists, tables and code, with their lines.

Text inside a block comes from libxml2's own text serializer, which is ten times as fast as a walk
in Python; the walk itself only visits elements that can contain blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lxml import etree

from rolebundle.ingest.parsed import Block, BlockKind
from rolebundle.ingest.readers.html_lines import (
    SOFT_BREAK,
    UNCOUNTED_BREAK,
    LineScale,
    end_line,
    start_line,
    text_end_line,
)

_LineOf = Callable[[Any], int]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main"
    " menu nav ol optgroup option p plaintext pre search section summary table tbody td tfoot th"
    " thead tr ul xmp".split()
)
# Longer lists and tables are cut anyway. One block per item gives each chunk its own lines.
_MAX_LIST_CHARS = 1800
# Sphinx appends a link with this character to each heading.
_PERMALINK = "¶"
_VERBATIM = frozenset(("pre", "listing", "xmp", "plaintext"))
# A list or table that contains one of these is split into several blocks.
_BLOCK_CONTENT = ("pre", "table", "dl", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6")


def html_blocks(root: Any, scale: LineScale) -> tuple[Block, ...]:
    """The blocks of ``root`` in the order of the document."""
    for element in root.iter("br"):
        # Not in its tail: lxml does not write a tail again that has a control character.
        element.text = SOFT_BREAK
    walk = _Walk(scale)
    walk.container(root)
    return tuple(walk.blocks)


def _text(element: Any) -> str:
    """All text inside ``element``, with its white space."""
    if not len(element):
        return element.text or ""
    text: str = etree.tostring(element, method="text", encoding=str, with_tail=False)
    return text


def _words(text: str) -> str:
    """``text`` with white space collapsed, as a browser shows it."""
    return " ".join(text.split())


def _verbatim(text: str) -> tuple[str, int]:
    """``text`` with its line structure, and how many blank lines were dropped at its start."""
    text = text.replace(SOFT_BREAK, "\n").replace(UNCOUNTED_BREAK, "\n").replace("\xa0", " ")
    lines = [line.rstrip() for line in text.split("\n")]
    dropped = next((i for i, line in enumerate(lines) if line), len(lines))
    return "\n".join(lines[dropped:]).rstrip(), dropped


def _has_descendant(element: Any, *tags: str) -> bool:
    """Whether ``element`` has a descendant with one of ``tags``."""
    # iter() may also yield the element itself, always first.
    inside = element.iter(*tags)
    first = next(inside, None)
    return (next(inside, None) if first is element else first) is not None


def _holds_block(element: Any) -> bool:
    """Whether an inline element contains blocks, as in ``<a><div>``."""
    for inside in element.iterdescendants():  # noqa: SIM110 (any() is twice as slow)
        if inside.tag in _BLOCKS:
            return True
    return False


def _is_long(element: Any) -> bool:
    """Whether a list item or table row is long and contains blocks."""
    return len(_text(element)) > _MAX_LIST_CHARS and _holds_block(element)


class _Walk:
    """Collects blocks. Inline content between two blocks of a container is a paragraph.

    ``_run`` holds the pieces of the current inline content, ``_run_start`` its first line.
    """

    def __init__(self, scale: LineScale) -> None:
        self.blocks: list[Block] = []
        self._scale = scale
        # Up to this line libxml2's line numbers are those of the file.
        self._exact_until = 0 if scale.is_coarse else scale.last
        self._run: list[str] = []
        self._run_start = 1
        # The last line is computed when the run ends, because only its last piece counts.
        self._run_end: tuple[_LineOf, Any, str] = (end_line, None, "")

    def container(self, element: Any) -> None:
        """Walk an element that may contain blocks, inline content or both."""
        # Most text here is white space between two blocks, which is dropped outside a run. The
        # list stays the same one: _flush() empties it.
        run = self._run
        text = element.text
        if text and (run or not text.isspace()):
            self._text_run(text, start_line, element)
        for child in element:
            tag = child.tag
            read = _READ.get(tag)
            if read is not None:
                if run:
                    self._flush()
                read(self, child)
            # The tag of a comment is a function. Comments only matter for line numbers.
            elif isinstance(tag, str):
                if not len(child):
                    text = child.text
                    if text and (run or not text.isspace()):
                        self._text_run(text, start_line, child)
                elif _holds_block(child):
                    self.container(child)
                else:
                    self._inline(child)
            text = child.tail
            if text and (run or not text.isspace()):
                self._text_run(text, end_line, child)
        if run and element.tag in _BLOCKS:
            self._flush()

    def _text_run(self, text: str, line_of: _LineOf, element: Any) -> None:
        """Add ``text`` to the run. It begins on the line ``line_of(element)``."""
        run = self._run
        if not run:
            leading = len(text) - len(text.lstrip())
            self._run_start = line_of(element) + text.count("\n", 0, leading)
        run.append(text)
        # White space separates words but does not extend the lines of the run.
        if not text.isspace():
            self._run_end = line_of, element, text

    def _inline(self, element: Any) -> None:
        text = _text(element)
        if not text or text.isspace():
            return
        if not self._run:
            self._run_start = element.sourceline or 1
        self._run.append(text)
        self._run_end = text_end_line, element, ""

    def _flush(self) -> None:
        text = _words("".join(self._run))
        self._run.clear()
        if text:
            line_of, element, piece = self._run_end
            last = line_of(element) + piece.rstrip().count("\n")
            self._add("paragraph", text, self._run_start, last)

    def _add(
        self, kind: BlockKind, text: str, first: int, last: int, level: int = 0, header: str = ""
    ) -> None:
        if kind != "code" and text.endswith(_PERMALINK):
            text = text[:-1].rstrip()
        if not text:
            return
        if not first <= last <= self._exact_until:
            first, last = self._scale.file_lines(first, last)
        heading = text if level else ""
        self.blocks.append(Block(kind, text, first, last, level, heading, header=header))

    def paragraph(self, element: Any) -> None:
        if len(element) and _holds_block(element):
            self.container(element)
        else:
            self._leaf("paragraph", element, _words(_text(element)))

    def heading(self, element: Any) -> None:
        self._leaf("heading", element, _words(_text(element)), _HEADINGS[element.tag])

    def list_block(self, element: Any) -> None:
        """A list as one block, or a long list as one block per item, with its own lines."""
        if _has_descendant(element, *_BLOCK_CONTENT):
            self.container(element)
            return
        if len(_text(element)) <= _MAX_LIST_CHARS:
            self._leaf("list", element, "\n".join(_list_lines(element, 0)))
            return
        self._text_between_items(element.text, start_line, element)
        for item in element:
            if isinstance(item.tag, str):
                if _is_long(item):
                    self.container(item)
                else:
                    self._leaf("list", item, "\n".join(_item_lines(item, 0)))
            self._text_between_items(item.tail, end_line, item)

    def _text_between_items(self, text: str | None, line_of: _LineOf, element: Any) -> None:
        if text and not text.isspace():
            self._text_run(text, line_of, element)
            self._flush()

    def table(self, element: Any) -> None:
        """A table as one block, or a long table as one block per row, with its own lines."""
        if _has_descendant(element, *_BLOCK_CONTENT):
            self.container(element)
            return
        header = _header_row(element)
        if len(_text(element)) <= _MAX_LIST_CHARS:
            self._leaf("table", element, "\n".join(_table_rows(element)), header=header)
            return
        for row in element.iter("tr", "caption"):
            if _is_long(row):
                self.container(row)
            else:
                self._leaf("table", row, _table_row(row), header=header)

    def code(self, element: Any) -> None:
        """Preformatted text, which keeps its lines."""
        raw = _text(element)
        text, dropped = _verbatim(raw)
        if not text:
            return
        first, last = element.sourceline or 1, end_line(element)
        # The source has no other line breaks than the text.
        if last - first == raw.count("\n") and SOFT_BREAK not in raw and not self._scale.is_coarse:
            first += dropped
            last = first + text.count("\n")
            self.blocks.append(Block("code", text, first, last, aligned=True))
        else:
            self._add("code", text, first, last)

    def _leaf(
        self, kind: BlockKind, element: Any, text: str, level: int = 0, header: str = ""
    ) -> None:
        if text:
            self._add(kind, text, start_line(element), text_end_line(element), level, header)


_READ: Mapping[Any, Callable[[_Walk, Any], None]] = {
    **dict.fromkeys(_BLOCKS, _Walk.container),
    **dict.fromkeys(_HEADINGS, _Walk.heading),
    **dict.fromkeys(_LISTS, _Walk.list_block),
    **dict.fromkeys(_VERBATIM, _Walk.code),
    "p": _Walk.paragraph,
    "table": _Walk.table,
}


def _list_lines(element: Any, depth: int) -> Iterable[str]:
    """One line per item; nested lists are indented below their item."""
    item_lines = _nested_lines if _has_descendant(element, *_LISTS) else _flat_lines
    yield from _text_between(element.text, depth)
    for child in element:
        if child.tag in _LISTS:
            yield from _list_lines(child, depth + 1)
        elif isinstance(child.tag, str):
            yield from item_lines(child, depth)
        yield from _text_between(child.tail, depth)


def _text_between(text: str | None, depth: int) -> Iterable[str]:
    if text and not text.isspace():
        yield "  " * depth + _words(text)


def _item_lines(item: Any, depth: int) -> Iterable[str]:
    return (_nested_lines if _has_descendant(item, *_LISTS) else _flat_lines)(item, depth)


def _flat_lines(item: Any, depth: int) -> Iterable[str]:
    """The single line of an item without a nested list."""
    return _marked_line("  " * depth + "- ", [_spaced(item)])


def _nested_lines(item: Any, depth: int) -> Iterable[str]:
    """The lines of an item that may contain lists."""
    indent = "  " * depth
    mark, parts = "- ", [item.text or ""]
    for child in item:
        if child.tag in _LISTS or (isinstance(child.tag, str) and _has_descendant(child, *_LISTS)):
            yield from _marked_line(indent + mark, parts)
            mark, parts = "  ", []
            yield from _list_lines(child, depth + 1 if child.tag in _LISTS else depth)
        elif isinstance(child.tag, str):
            parts.append(_spaced(child))
        parts.append(child.tail or "")
    yield from _marked_line(indent + mark, parts)


def _marked_line(mark: str, parts: list[str]) -> Iterable[str]:
    text = _words("".join(parts))
    return (mark + text,) if text else ()


def _spaced(element: Any) -> str:
    """The text of ``element``, with spaces between the blocks inside it."""
    if len(element) and _holds_block(element):
        parts = [element.text or ""]
        for child in element:
            if isinstance(child.tag, str):
                parts.append(_spaced(child))
            parts.append(child.tail or "")
        text = "".join(parts)
    else:
        text = _text(element)
    return f" {text} " if element.tag in _BLOCKS else text


def _table_rows(table: Any) -> Iterable[str]:
    """One line per row, cells separated by bars."""
    rows = (_table_row(row) for row in table.iter("tr", "caption"))
    return (row for row in rows if row)


def _table_row(row: Any) -> str:
    if row.tag == "caption":
        return _words(_spaced(row))
    cells = [_words(_spaced(cell)) for cell in row if isinstance(cell.tag, str)]
    return " | ".join(cells) if any(cells) else ""


def _header_row(table: Any) -> str:
    """The first row of a table, if it has several cells and all of them are header cells."""
    row = next(table.iter("tr"), ())
    tags = [cell.tag for cell in row if isinstance(cell.tag, str)]
    return _table_row(row) if len(tags) > 1 and set(tags) == {"th"} else ""
