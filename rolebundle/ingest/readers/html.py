"""HTML: the visible text of a page's main part, as blocks with their lines.

libxml2 parses, through lxml; nothing is fetched and no DTD is read. A document is not line-exact:
the lines of a block are those whose visible text contains it.

Text inside a block comes from libxml2's own text serializer, which is ten times as fast as a walk
in Python; the walk itself only visits elements that can contain blocks.

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
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from rolebundle.contracts.declared import utc_text
from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.html_hidden import HiddenElement, hidden_elements, hiding_sheets
from rolebundle.ingest.readers.html_reduce import byte_pattern, reduce_source
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import clean, cleaned_note, decode

# The page

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_ANY_LINE_NUMBER_HINT = rb"(?i)line(?:no|-numbers)"
# Code listings number their lines beside the code, in elements of their own.
_LINE_NUMBER_CLASSES = frozenset(("src-line-numbers", "linenodiv", "linenos", "line-numbers"))
# Text that the source contains if one of the classes is used, and the elements that have it. A page
# of source code may have a hundred thousand spans, which are only examined if necessary.
_LINE_NUMBER_TAGS = (
    (b"lineno", ("pre", "td", "div", "span")),
    (b"line-numbers", ("pre", "td", "div")),
)
# Markers of the element that contains the page's own text, the most reliable first: a tag or role,
# a tag, an id, and a class.
_MARKERS = ("main", "article", "content-id", "body-class")
# Elements without readable text, or outside of the page's own text.
_SKIPPED_TAGS = (
    "script",
    "style",
    "template",
    "nav",
    "svg",
    "button",
    "select",
    "textarea",
    "iframe",
    "object",
    "head",
)
_SURROUNDING_TAGS = ("header", "footer", "aside")
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}

_LINE_BREAK = re.compile("\r\n|\r|\n")

# Blocks

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

# Lines

# A line break on the page that is not one in the file, such as ``<br>``.
SOFT_BREAK = "\u2028"
# A line break of the file that libxml2 must not count.
UNCOUNTED_BREAK = "\f"
_MAX_LINES = 65_000
_BROKEN_END_TAG = re.compile(rb"</([A-Za-z][^\s<>]*)\s*\n\s*>")
# Searched first: line breaks are rarer than end tags.
_BREAK_BEFORE_CLOSE = rb"\n[\s\v]*>"
_BREAK_ENTITY = rb"&(?:#0*10|#[xX]0*[aA]|NewLine);"


class HtmlReader:
    """Reads ``.html`` and similar files."""

    name = "html"
    suffixes = suffixes_of("html")
    version = 4

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file.

        Raises:
            DocumentError: ``unreadable_html``, ``undecodable``.
        """
        yield read_page(data, path)


def read_page(data: bytes, path: str, *, is_message: bool = False) -> ParsedDocument:
    """The document of a page.

    Args:
        data: the bytes of the page.
        path: its file, for messages.
        is_message: whether all of it is its own text. Else it is searched for a main part.

    Raises:
        DocumentError: ``unreadable_html``, ``undecodable``.
    """
    page, notes = utf8_html(data, path)
    source, scale = scaled_source(page)
    sheets = hiding_sheets(source)
    markup, is_cut = reduce_source(source, keep_tags=bool(sheets))
    root = _parse(markup, path)
    if root is None:
        return ParsedDocument(line_exact=False, notes=notes)
    main, marker = _main_part(root)
    if is_cut and (marker != "main" or is_message):
        # reduce_source cut what precedes the first main part. The page has several main parts,
        # so none of them is used, and its text may be in the part that was cut.
        markup, root = source, _parse(source, path)
        main, marker = _main_part(root)
    if is_message:
        body = root.find("body")
        main = root if body is None else body
    inferred = _head_metadata(root)
    fallbacks = _empty_unread(main, marker is None and not is_message, markup)
    hidden = hidden_elements(root, main, markup, sheets, fallbacks)
    parts = _hidden_parts(hidden, page, scale) if hidden else ()
    removed = [item for item in hidden if not item.is_kept]
    for item in removed:
        _empty(item.element)
    blocks = html_blocks(main, scale)
    title = inferred.get("title") or next((b.heading for b in blocks if b.level == 1), "")
    return ParsedDocument(
        blocks=blocks,
        inferred={**inferred, "title": title} if title else inferred,
        line_exact=False,
        notes=(*notes, f"{len(removed)} hidden elements left out") if removed else notes,
        hidden=parts,
    )


def utf8_html(data: bytes, path: str = "") -> tuple[bytes, tuple[str, ...]]:
    """The page in UTF-8, and notes. Nearly every page is UTF-8 and stays unchanged.

    Raises:
        DocumentError: ``undecodable``.
    """
    if b"\x00" not in data and not data.startswith(BOM_UTF8) and _is_utf8(data):
        return data, ()
    text, notes = _decoded(data, path)
    return text.encode(), notes


def _decoded(data: bytes, path: str) -> tuple[str, tuple[str, ...]]:
    """Decode by byte order mark, as UTF-8, or by the page's ``<meta charset>``."""
    declared = _CHARSET.search(data[:2048])
    if declared and not data.startswith((BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = declared[1].decode("ascii").lower()
        # Browsers decode pages that declare Latin-1 as cp1252.
        encoding = "cp1252" if encoding in {"iso-8859-1", "latin1", "us-ascii"} else encoding
        if encoding.replace("_", "-") not in {"utf-8", "utf8"} and not _is_utf8(data):
            try:
                text, count = clean(data.decode(encoding))
            except (LookupError, UnicodeError):
                return decode(data, path)
            return text, cleaned_note(count)
    return decode(data, path)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parse(markup: bytes, path: str) -> Any:
    if not markup or markup.isspace():
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", recover=True, huge_tree=False, no_network=True, collect_ids=False
    )
    try:
        root = etree.fromstring(markup, parser)
    except (etree.LxmlError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    # In recovery mode a fatal error is not raised, and the rest of the page is lost.
    last = parser.error_log.last_error
    if last is not None and last.level >= etree.ErrorLevels.FATAL:
        raise _unreadable(path, last.message)
    return root


def _unreadable(path: str, reason: str) -> DocumentError:
    return DocumentError(
        "unreadable_html",
        f"{path}: libxml2 cannot parse the page: {reason}",
        "repair or exclude the file",
    )


def _head_metadata(root: Any) -> Mapping[str, str]:
    """Language, title and date from the root element and the head."""
    metadata: dict[str, str] = {}
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    if language and language.strip():
        metadata["language"] = language.strip()
    head = next(root.iterchildren("head"), None)
    if head is None:
        return metadata
    title = next(head.iterchildren("title"), None)
    if title is not None and title.text and not title.text.isspace():
        metadata["title"] = " ".join(title.text.split())
    for meta in head.iterchildren("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("http-equiv") or ""
        if name.lower() in _UPDATED:
            value = (meta.get("content") or "").strip()
            if utc_text(value):
                metadata["updated_at"] = value
    return metadata


def _main_part(root: Any) -> tuple[Any, str | None]:
    """The element with the page's own text and its marker; ``<body>`` and ``None`` without one.

    A marker that several elements have is not used. One pass over the few candidate elements: an
    XPath per marker would cost more than the rest of the reader. A search for a single ``<main>``
    is faster still.
    """
    mains = list(root.iter("main"))
    if len(mains) == 1:
        return mains[0], "main"
    marked: dict[str, list[Any]] = {marker: [] for marker in _MARKERS}
    for element in root.iter("main", "article", "div", "section"):
        marker = _marker_of(element)
        if marker is not None:
            marked[marker].append(element)
    for marker, elements in marked.items():
        if len(elements) == 1:
            return elements[0], marker
    body = root.find("body")
    return (root if body is None else body), None


def _marker_of(element: Any) -> str | None:
    tag = element.tag
    if tag == "main" or element.get("role") == "main":
        return "main"
    if tag == "article":
        return "article"
    if element.get("id") == "content":
        return "content-id"
    return "body-class" if "body" in (element.get("class") or "").split() else None


def _empty_unread(main: Any, is_whole: bool, markup: bytes) -> list[Any]:
    """Empty the elements that are not part of the page's own text; return ``<noscript>`` elements.

    The empty elements stay in place, because their line numbers are needed to count lines.
    """
    tags = _SKIPPED_TAGS + _SURROUNDING_TAGS if is_whole else _SKIPPED_TAGS
    fallbacks = []
    for element in list(main.iter("noscript", *tags)):
        if element.tag == "noscript":
            fallbacks.append(element)
        elif element is not main:
            _empty(element)
    _empty_line_numbers(main, markup)
    # One inside of an element that was emptied is not in the page.
    return [e for e in fallbacks if e.getroottree().getroot() is main.getroottree().getroot()]


def _hidden_parts(
    hidden: Sequence[HiddenElement], page: bytes, scale: LineScale
) -> tuple[HiddenPart, ...]:
    """The texts of hidden elements, with the offsets of their lines in the page."""
    source = page.decode("utf-8", "replace")
    breaks = [0, *(match.end() for match in _LINE_BREAK.finditer(source)), len(source)]
    parts = []
    for element, kind, text, is_kept, is_labelled in hidden:
        if not text and not is_labelled:
            continue
        first, last = scale.file_lines(start_line(element), end_line(element))
        start, end = breaks[min(first, len(breaks)) - 1], breaks[min(last, len(breaks) - 1)]
        parts.append(HiddenPart(kind, text, start, end, is_labelled, is_kept))
    return tuple(parts)


def _has(pattern: bytes, markup: bytes) -> bool:
    return byte_pattern(pattern).search(markup) is not None


def _empty_line_numbers(main: Any, markup: bytes) -> None:
    if not _has(_ANY_LINE_NUMBER_HINT, markup) or next(main.iter("pre"), None) is None:
        return
    markup = markup.lower()
    for hint, tags in _LINE_NUMBER_TAGS:
        if hint in markup:
            for element in list(main.iter(*tags)):
                if not _LINE_NUMBER_CLASSES.isdisjoint((element.get("class") or "").split()):
                    _empty(element)
            # The tags of the first hint include those of the second.
            return


def _empty(element: Any) -> None:
    """Remove the content of ``element`` except its line breaks."""
    breaks = end_line(element) - (element.sourceline or 1)
    element.clear(keep_tail=True)
    element.text = "\n" * breaks if breaks > 0 else None


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


def _holds(element: Any, *tags: str) -> bool:
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
        if _holds(element, *_BLOCK_CONTENT):
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
        if _holds(element, *_BLOCK_CONTENT):
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
    item_lines = _nested_lines if _holds(element, *_LISTS) else _flat_lines
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
    return (_nested_lines if _holds(item, *_LISTS) else _flat_lines)(item, depth)


def _flat_lines(item: Any, depth: int) -> Iterable[str]:
    """The single line of an item without a nested list."""
    return _marked_line("  " * depth + "- ", [_spaced(item)])


def _nested_lines(item: Any, depth: int) -> Iterable[str]:
    """The lines of an item that may contain lists."""
    indent = "  " * depth
    mark, parts = "- ", [item.text or ""]
    for child in item:
        if child.tag in _LISTS or (isinstance(child.tag, str) and _holds(child, *_LISTS)):
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


READER = HtmlReader()
