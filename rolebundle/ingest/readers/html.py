"""HTML pages, and e-books (EPUB 2 and 3), whose chapters are such pages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.ingest import utc_text
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import title_in
from rolebundle.ingest.readers.html_hidden import HiddenElement, Page, hiding_sheets, parsed_page
from rolebundle.ingest.readers.package import (
    Package,
    TextBlocks,
    joined,
    local_name,
    package_reader,
    properties_of,
)
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import decode, one_line
from rolebundle.text.words import counted

_WORD = re.compile(r"[^\W\d_]{2,}")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
# Code listings number their lines beside the code, in elements of their own.
_LINE_NUMBER_CLASSES = frozenset(("src-line-numbers", "linenodiv", "linenos", "line-numbers"))
# What contains the page's own text, the most reliable first. A marker of several elements is none.
_PARTS = "//*[self::main or self::article or self::div or self::section]"
_MAIN_PARTS: tuple[Any, ...] = tuple(
    etree.XPath(path)
    for path in (
        "//main",
        f"{_PARTS}[self::main or @role = 'main']",
        "//article",
        f"{_PARTS}[@id = 'content']",
        f"{_PARTS}[contains(concat(' ', normalize-space(@class), ' '), ' body ')]",
    )
)
# Elements without readable text, or outside of the page's own text.
_SKIPPED_TAGS = (
    "script style template noscript nav svg button select textarea iframe object head".split()
)
_SURROUNDING_TAGS = ("header", "footer", "aside")
_ALNUM = re.compile(r"[^\W_]")
_CONTENTS = re.compile(
    r"(?:table of )?contents|on this page|inhalt(?:sverzeichnis)?|sommaire|índice", re.IGNORECASE
)
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MAX_COMMENT_CHARS = 4_000
"""Of a longer comment only the beginning is searched for instructions."""
_LINE_BREAK = re.compile("\r\n|\r|\n")


def read_page(data: bytes, path: str, *, is_message: bool = False) -> ParsedDocument:
    """The document of a page.

    Args:
        data: the bytes of the page.
        path: its file, for messages.
        is_message: whether all of it is its own text. Else it is searched for a main part.

    Raises:
        DocumentError: ``unreadable_html``, ``undecodable``.
    """
    declared = _CHARSET.search(data[:2048])
    text, notes = decode(data, path, declared[1].decode("ascii").lower() if declared else "")
    source = countable_source(text.encode())
    root: Any = _parsed(source, path)
    if root is None:
        return ParsedDocument(line_exact=False, notes=notes)
    body = root.find("body")
    body = root if body is None else body
    found = () if is_message else (find(root) for find in _MAIN_PARTS)
    main = next((parts[0] for parts in found if len(parts) == 1), body)
    inferred = _head_metadata(root)
    sheets = hiding_sheets(root)
    _empty_unread(main, source, is_whole=main is body and not is_message)
    hidden = Page(root, main, sheets).hidden()
    parts = (*(_hidden_parts(hidden, text) if hidden else ()), *_comments(text))
    removed = [element for element, part in hidden if not part.is_kept]
    for element in removed:
        _empty(element)
    blocks = html_blocks(main, source.count(b"\n") + (not source.endswith(b"\n")))
    return ParsedDocument(
        blocks=blocks,
        inferred={**inferred, "title": inferred["title"] or title_in(blocks)},
        line_exact=False,
        notes=(*notes, f"{counted(len(removed), 'hidden element')} left out") if removed else notes,
        hidden=parts,
    )


def _parsed(source: bytes, path: str) -> Any:
    """The root of a page; ``None`` if it is empty."""
    if not source or source.isspace():
        return None
    try:
        root, detail = parsed_page(source)
        if not detail:
            return root
    except (etree.LxmlError, ValueError) as error:
        detail = str(error)
    raise DocumentError(
        "unreadable_html",
        f"{path}: the page is damaged, or nested too deep",
        with_detail("repair or exclude it", detail),
    )


def _head_metadata(root: Any) -> Mapping[str, str]:
    """Language, title and date from the root element and the head."""
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    updated = ""
    for meta in root.iterfind("head/meta"):
        name = meta.get("property") or meta.get("name") or meta.get("http-equiv") or ""
        value = meta.get("content", "").strip()
        if name.lower() in _UPDATED and utc_text(value):
            updated = value
    title = one_line(root.findtext("head/title", ""))
    return {"language": language.strip(), "title": title, "updated_at": updated}


def _empty_unread(main: Any, source: bytes, *, is_whole: bool) -> None:
    """Empty the elements that are not part of the page's own text."""
    tags = (*_SKIPPED_TAGS, *_SURROUNDING_TAGS) if is_whole else _SKIPPED_TAGS
    for element in list(main.iter(*tags)):
        if element is not main:
            _empty(element)
    for link in list(main.iterfind(".//a[@href]")):
        if link.get("href")[:1] == "#" and not _ALNUM.search(_text(link)):
            _empty(link)  # Usually a mark beside a heading.
    # A table of contents repeats the headings. Its own heading would be above all that follows.
    heading = None
    for element in list(main.iter("ul", "ol", *_HEADINGS)):
        if element.tag in _HEADINGS:
            heading = element
        elif _links_within_page(element):
            _empty(element)
            if heading is not None and _CONTENTS.fullmatch(one_line(_text(heading))):
                _empty(heading)
    source = source.lower()
    has_line_numbers = b"lineno" in source or b"line-numbers" in source
    if has_line_numbers and next(main.iter("pre"), None) is not None:
        for element in list(main.iter("pre", "td", "div", "span")):
            if not _LINE_NUMBER_CLASSES.isdisjoint((element.get("class") or "").split()):
                _empty(element)


def _links_within_page(element: Any) -> bool:
    """Whether a list has nothing but links to parts of its page, and more than two."""
    links = list(element.iter("a"))
    is_within = len(links) > 2 and all(link.get("href", "")[:1] == "#" for link in links)
    return is_within and one_line(" ".join(map(_text, links))) == one_line(_spaced(element))


def _empty(element: Any) -> None:
    """Remove the content of ``element`` except its line breaks, with which lines are counted."""
    breaks = end_line(element) - start_line(element)
    element.clear(keep_tail=True)
    element.text = "\n" * breaks or None


def _comments(page: str) -> Iterator[HiddenPart]:
    """The comments for people: `<!--[if IE]>` and one word such as `<!-- more -->` are not."""
    for comment in _COMMENT.finditer(page):
        text = one_line(comment[1][:_MAX_COMMENT_CHARS])
        if len(_WORD.findall(text)) > 1 and not text.startswith("[if "):
            yield HiddenPart("markup_comment", text, *comment.span(), is_labelled=False)


def _hidden_parts(hidden: Sequence[HiddenElement], page: str) -> Iterable[HiddenPart]:
    """The texts of hidden elements, with the offsets of their lines in the page."""
    breaks = [0, *(match.end() for match in _LINE_BREAK.finditer(page)), len(page)]
    for element, part in hidden:
        if part.text or part.is_labelled:
            first, last = file_lines(start_line(element), end_line(element), len(breaks) - 1)
            yield part._replace(start=breaks[first - 1], end=breaks[last])


# -- html lines --
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
_SOFT_HYPHEN = re.compile(rb"&(?:shy|#173|#[xX][aA][dD]);|\xc2\xad")
"""No search would find a word with one. It is only shown at the end of a line."""


def countable_source(page: bytes) -> bytes:
    """The source of a page to parse; its lines have the numbers of those of ``page``."""
    source = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in page else page
    source = _SOFT_HYPHEN.sub(b"", source)
    source = _BROKEN_END_TAG.sub(
        lambda tag: b"</%b><!--%b-->" % (tag[1], b"\n" * tag[0].count(b"\n")), source
    )
    return _BREAK_ENTITY.sub(SOFT_BREAK.encode(), source)


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


# -- html blocks --
#
# The blocks of a page: headings, paragraphs, lists, tables and code, with their lines.
#
# Text inside a block comes from libxml2's own text serializer, which is ten times as fast as a walk
# in Python; the walk itself only visits elements that can contain blocks.


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


def _has_descendant(element: Any, *tags: str) -> bool:
    """Whether ``element`` has a descendant with one of ``tags``."""
    return next(element.iterdescendants(*tags), None) is not None


def _holds_block(element: Any) -> bool:
    """Whether an inline element contains blocks, as in ``<a><div>``."""
    return _has_descendant(element, *_BLOCKS)


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
        if len(element) and _holds_block(element):
            self.container(element)
        else:
            self._leaf("paragraph", element, one_line(_text(element)))

    def heading(self, element: Any) -> None:
        self._leaf("heading", element, one_line(_text(element)), _HEADINGS[element.tag])

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
    words = one_line(text or "")
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
        return one_line(_spaced(row))
    cells = [one_line(_spaced(cell)) for cell in row if isinstance(cell.tag, str)]
    return " | ".join(cells) if any(cells) else ""


# -- e-books --
#
# The chapters in reading order. Style sheets of the book are put into its chapters, so that what
# they hide is hidden.


_CHAPTER_TYPES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
_MAX_SHEET_BYTES = 1_000_000
# What would end a style element, and what XML cannot contain.
_NOT_IN_SHEETS = re.compile(r"</|[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _book(package: Package) -> ParsedDocument:
    main = _main_member(package)
    book = package.parse(main, is_lenient=True)
    folder = posixpath.dirname(main)
    items = {item.get("id", ""): item for item in book.iter("{*}item") if item.get("href")}
    chapters = [
        joined(folder, item.get("href"))
        for reference in book.iter("{*}itemref")
        if (item := items.get(reference.get("idref", ""))) is not None
        and item.get("media-type", "application/xhtml+xml") in _CHAPTER_TYPES
        # The table of contents repeats the headings.
        and "nav" not in item.get("properties", "").split()
    ]
    # Chapters may be encrypted. Fonts often are, which does not matter.
    for element in package.parse("META-INF/encryption.xml", is_lenient=True).iter():
        is_content = local_name(element) == "CipherReference"
        if is_content and joined("", element.get("URI", "")) in chapters:
            raise package.encrypted()
    blocks = TextBlocks(package.too_large)
    for name in chapters:
        if name in package:
            _chapter(package, name, blocks)
    missing = sum(name not in package for name in chapters)
    properties = properties_of(book.iterfind("{*}metadata/*"))
    notes = [f"chapters that the book lacks: {missing}"] if missing else []
    return blocks.document(properties, notes)


def _main_member(package: Package) -> str:
    """The name of the package document."""
    container = package.parse("META-INF/container.xml", is_lenient=True)
    for element in container.iter():
        name = element.get("full-path", "") if local_name(element) == "rootfile" else ""
        if name in package:
            return name
    raise ValueError("it has no package document")


def _chapter(package: Package, name: str, blocks: TextBlocks) -> None:
    page = read_page(_as_html(package, name), f"{package.path}: {name}", is_message=True)
    for part in page.hidden:
        blocks.hide(part.kind, part.text, is_usual=not part.is_labelled, is_kept=part.is_kept)
    for block in page.blocks:
        if block.level:
            blocks.heading(block.heading, block.level, is_title=False)
        else:
            blocks.add(block.kind, block.text, header=block.header)
            if not block.header:
                blocks.end_block()


def _as_html(package: Package, name: str) -> bytes:
    """A page as HTML, with its style sheets.

    In XML elements such as ``<title/>`` are complete, in HTML they are not.
    """
    try:
        root = package.parse(name)
    except etree.XMLSyntaxError:
        # It has mistakes, or entities such as `&nbsp;`, which HTML knows.
        root, _ = parsed_page(package.read(name) or b"<p>")
    for link in list(root.iter("link", "{*}link")):
        if link.get("rel", "").lower().split() == ["stylesheet"]:
            css = package.read(joined(posixpath.dirname(name), link.get("href", "")))
            link.tag = link.tag.replace("link", "style")
            link.text = _NOT_IN_SHEETS.sub("", css[:_MAX_SHEET_BYTES].decode("utf-8", "replace"))
    etree.cleanup_namespaces(root)
    data: bytes = etree.tostring(root, method="html", encoding="utf-8", with_tail=False)
    return data


READERS = {
    "html": (9, lambda data, path, _separator: [read_page(data, path)]),
    "epub": package_reader("epub", 6, _book),
}
