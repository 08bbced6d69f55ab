"""The blocks of a page: headings, paragraphs, lists, tables and code, with their lines.

Text inside a block comes from libxml2's own text serializer, which is ten times as fast as a walk
in Python; the walk itself only visits elements that can contain blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lxml import etree

from rolebundle.ingest.parsed import Block, BlockKind
from rolebundle.ingest.readers.html_lines import SOFT_BREAK, end_line, file_lines, start_line

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


def html_blocks(root: Any, count: int) -> tuple[Block, ...]:
    """The blocks of ``root`` in the order of the document; ``count`` is the number of its lines."""
    for element in root.iter("br"):
        # Not in its tail: lxml does not write a tail again that has a control character.
        element.text = SOFT_BREAK
    walk = _Walk(count)
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

    ``_run`` holds the pieces of the current inline content: each with what it is of an element,
    and the element.
    """

    def __init__(self, count: int) -> None:
        self.blocks: list[Block] = []
        self._count = count
        self._run: list[tuple[str, str, Any]] = []

    def container(self, element: Any) -> None:
        """Walk an element that may contain blocks, inline content or both."""
        self._inline("text", element.text, element)
        for child in element:
            tag = child.tag
            read = _READ.get(tag)
            if read is not None:
                self._flush()
                read(self, child)
            # The tag of a comment is a function. Comments only matter for line numbers.
            elif isinstance(tag, str):
                if len(child) and _holds_block(child):
                    self.container(child)
                else:
                    self._inline("all", _text(child), child)
            self._inline("tail", child.tail, child)
        if element.tag in _BLOCKS:
            self._flush()

    def _inline(self, place: str, text: str | None, element: Any) -> None:
        # Most text is white space between two blocks, which is dropped outside a run.
        if text and (self._run or not text.isspace()):
            self._run.append((text, place, element))

    def _flush(self) -> None:
        """End the paragraph of the current inline content."""
        if not self._run:
            return
        text = _words("".join([text for text, _, _ in self._run]))
        # White space separates words but does not extend the lines.
        while self._run[-1][0].isspace():
            self._run.pop()
        piece, place, element = self._run[0]
        leading = piece[: len(piece) - len(piece.lstrip())].count("\n")
        first = (end_line if place == "tail" else start_line)(element) + (
            0 if place == "all" and len(element) else leading
        )
        piece, place, element = self._run[-1]
        if place == "all":
            last = end_line(element, is_visible=True)
        else:
            last = (end_line if place == "tail" else start_line)(element)
            last += piece.rstrip().count("\n")
        self._run.clear()
        self._add("paragraph", text, first, last)

    def _add(
        self, kind: BlockKind, text: str, first: int, last: int, level: int = 0, header: str = ""
    ) -> None:
        if kind != "code" and text.endswith(_PERMALINK):
            text = text[:-1].rstrip()
        if text:
            first, last = file_lines(first, last, self._count)
            heading = text if level else ""
            self.blocks.append(Block(kind, text, first, last, level, heading, header=header))

    def _leaf(
        self, kind: BlockKind, element: Any, text: str, level: int = 0, header: str = ""
    ) -> None:
        if text:
            last = end_line(element, is_visible=True)
            self._add(kind, text, start_line(element), last, level, header)

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
        if _has_descendant(element, *_BLOCK_CONTENT):
            self.container(element)
            return
        rows = list(element.iter("tr", "caption"))
        # The first row, if it has several cells and all of them are header cells.
        first = next((row for row in rows if row.tag == "tr"), ())
        tags = [cell.tag for cell in first if isinstance(cell.tag, str)]
        header = _row_line(first) if len(tags) > 1 and set(tags) == {"th"} else ""
        if len(_text(element)) <= _MAX_LIST_CHARS:
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
        raw = _text(element)
        lines = [line.rstrip() for line in raw.replace(SOFT_BREAK, "\n").split("\n")]
        lines = [line.replace("\xa0", " ").rstrip() for line in lines]
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
    **dict.fromkeys(_BLOCKS, _Walk.container),
    **dict.fromkeys(_HEADINGS, _Walk.heading),
    **dict.fromkeys(_LISTS, _Walk.list_block),
    **dict.fromkeys(_VERBATIM, _Walk.code),
    "p": _Walk.paragraph,
    "table": _Walk.table,
}


def _list_lines(element: Any, depth: int = 0) -> Iterable[str]:
    """One line per item; nested lists are indented below their item."""
    indent = "  " * depth
    yield from _line(indent, element.text)
    for child in element:
        if child.tag in _LISTS:
            yield from _list_lines(child, depth + 1)
        elif isinstance(child.tag, str):
            yield from _item_lines(child, depth)
        yield from _line(indent, child.tail)


def _item_lines(item: Any, depth: int = 0) -> Iterable[str]:
    """The line of an item, and those of the lists in it."""
    indent = "  " * depth
    mark, text = "- ", item.text or ""
    for child in item:
        if child.tag in _LISTS or (isinstance(child.tag, str) and _has_descendant(child, *_LISTS)):
            yield from _line(indent + mark, text)
            mark, text = "  ", ""
            yield from _list_lines(child, depth + 1 if child.tag in _LISTS else depth)
        elif isinstance(child.tag, str):
            text += _spaced(child)
        text += child.tail or ""
    yield from _line(indent + mark, text)


def _line(mark: str, text: str | None) -> Iterable[str]:
    words = _words(text or "")
    return (mark + words,) if words else ()


def _spaced(element: Any) -> str:
    """The text of ``element``, with spaces between the blocks inside it."""
    if len(element) and _holds_block(element):
        text = element.text or ""
        for child in element:
            text += (_spaced(child) if isinstance(child.tag, str) else "") + (child.tail or "")
    else:
        text = _text(element)
    return f" {text} " if element.tag in _BLOCKS else text


def _row_line(row: Any) -> str:
    """A row as one line, with bars between its cells, or a caption."""
    if row.tag == "caption":
        return _words(_spaced(row))
    cells = [_words(_spaced(cell)) for cell in row if isinstance(cell.tag, str)]
    return " | ".join(cells) if any(cells) else ""
