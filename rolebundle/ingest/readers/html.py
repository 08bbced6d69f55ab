"""HTML pages, and e-books (EPUB 2 and 3), whose chapters are such pages."""

from __future__ import annotations

import email
import email.policy
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.ingest import utc_text
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import parser_errors, title_in
from rolebundle.ingest.readers.html_hidden import HiddenElement, Page, page_sheets, parsed_page
from rolebundle.ingest.readers.mathml import mathml_text
from rolebundle.ingest.readers.notation import (
    CHECKED,
    UNCHECKED,
    list_number,
    lowered,
    raised,
    ruby,
)
from rolebundle.ingest.readers.package import (
    Package,
    TextBlocks,
    integer_in,
    joined,
    local_name,
    package_reader,
    properties_of,
    row_line,
)
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import decode, one_line
from rolebundle.text.words import counted

_WORD = re.compile(r"[^\W\d_]{2,}")
# Code listings number their lines beside the code, in elements of their own.
_LINE_NUMBER_CLASSES = frozenset(("src-line-numbers", "linenodiv", "linenos", "line-numbers"))
_MAIN: Any = etree.XPath(
    "(descendant::*[self::main or self::article or @role = 'main' or @id = 'content'])[1]"
)
_SKIPPED_TAGS = "script style template noscript iframe object head".split()
# Where pages have their navigation.
_REGIONS: Any = etree.XPath(
    "descendant::*[self::nav or self::header or self::footer or self::aside or @role='navigation'"
    " or @role='banner' or @role='contentinfo' or @role='complementary']"
)
_GROUPS = ("ul", "ol", "menu", "div", "p", "nav", "section", "table", "form")
_MIN_LINKS = 3
_MAX_LINK_WORDS = 8
_LINK_SHARE = 0.9
"""In a list of links: how many links, words of a link, and words that are in links."""
_MIN_LEFT = 1 / 3
"""What is left of a page must have so many of its words; else all of it is read."""
_NOTED_SHARE = 1 / 3
_ALNUM = re.compile(r"[^\W_]")
_CONTENTS = re.compile(
    r"(?:table of )?contents|on this page|inhalt(?:sverzeichnis)?|sommaire|índice", re.IGNORECASE
)
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MAX_COMMENT_CHARS = 4_000
"""Of a longer comment only the beginning is searched for instructions."""
_LINE_BREAK = re.compile("\r\n|\r|\n")


def read_page(
    data: bytes, path: str, *, is_message: bool = False, declared: str = ""
) -> ParsedDocument:
    """The document of a page.

    Args:
        data: the bytes of the page.
        path: its file, for messages.
        is_message: whether all of it is its own text. Else lists of links are left out.

        declared: the label of the encoding that a mail or archive declares for the page.

    Raises:
        DocumentError: ``unreadable_html``, ``undecodable``.
    """
    text, notes = decode(data, path, declared)
    source = countable_source(text.encode())
    root: Any = _parsed(source, path)
    if root is None:
        return ParsedDocument(line_exact=False, notes=notes)
    body = root.find("body")
    body = root if body is None else body
    inferred = _head_metadata(root)
    sheets = page_sheets(root)
    _empty_unread(body, source)
    if not is_message:
        notes += _empty_link_lists(body)
    page = Page(root, body, sheets)
    for element in page.apart():
        _set_apart(element)
    hidden = page.hidden()
    parts = (*(_hidden_parts(hidden, text) if hidden else ()), *_comments(text))
    removed = [element for element, part in hidden if not part.is_kept]
    for element in removed:
        _empty(element)
    _write_signs(body)
    blocks = html_blocks(body, source.count(b"\n") + (not source.endswith(b"\n")))
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


def _empty_unread(main: Any, source: bytes) -> None:
    """Empty the elements without readable text, and what repeats the page's own text."""
    for element in list(main.iter(*_SKIPPED_TAGS)):
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


def _empty_link_lists(body: Any) -> tuple[str, ...]:
    """Empty the lists of links outside of the main part, and in regions such as ``nav``.

    Returns:
        A note if much of the page was left out.
    """
    regions = _REGIONS(body)
    for main in _MAIN(body):
        for element in (main, *main.iterancestors()):
            if element is body:
                break
            siblings = element.getparent().iterchildren("*")
            regions += [e for e in siblings if e is not element and e.tag not in _HEADINGS]
    lists: dict[Any, int] = {}
    for region in regions:
        for element in (region, *region.iterdescendants(*_GROUPS)):
            if _is_link_list(element):
                lists[element] = 0
    lists = {e: _count_words(e) for e in lists if lists.keys().isdisjoint(e.iterancestors())}
    total, removed = _count_words(body), sum(lists.values())
    if not removed or total - removed < total * _MIN_LEFT:
        return ()
    for element in lists:
        _empty(element)
    share = removed / total
    note = f"left out: lists of links with {share:.0%} of the page's words"
    return (note,) if share > _NOTED_SHARE else ()


def _count_words(element: Any) -> int:
    return len(_spaced(element).split())


def _is_link_list(element: Any) -> bool:
    """Whether nearly all words of an element are in several short links."""
    links = list(element.iter("a"))
    if len(links) < _MIN_LINKS:
        return False
    words = [_count_words(link) for link in links]
    is_short = sum(words) <= _MAX_LINK_WORDS * len(links)
    return is_short and sum(words) >= _LINK_SHARE * _count_words(element)


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
_LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([\w-]+)", re.IGNORECASE)
_LABELLING = frozenset(("start", "type", "reversed", "style"))
_LIST_FORMS = {
    "decimal-leading-zero": "01", "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A",
    "upper-latin": "A", "lower-roman": "i", "upper-roman": "I", "none": "none",
}  # fmt: skip
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


# -- signs --
#
# What a browser shows by its place or by a drawing is written into the tree as text.


_CHECKS = {"checkbox": (UNCHECKED, CHECKED), "radio": (UNCHECKED, CHECKED)}
_UNSEEN_INPUTS = frozenset(("hidden", "password", "image", "file", "range", "color"))
_NOTE_MARK = re.compile(
    r"(?:^|[\s_-])(?:foot|end)?note(?:s|ref)?(?:$|[\s_-])|noteref|reference", re.I
)
_QUESTION = re.compile(r"(?:\w+\W+){1,40}\w+\W*")


def _write_signs(body: Any) -> None:
    """Write raised and lowered characters, formulas, readings, drawn texts and fields of forms."""
    for element in list(body.iter("math", "svg", "ruby", "sup", "sub", "input", "button")):
        tag = element.tag
        if tag == "math":
            _replace(element, f" {mathml_text(element)} ")
        elif tag == "svg":
            _replace(element, "".join(f" {one_line(_text(t))} " for t in element.iter("text")))
        elif tag == "ruby":
            readings = [_text(part) for part in element.iter("rt")]
            for part in list(element.iter("rt", "rp")):
                _replace(part, "")
            _replace(element, ruby(one_line(_text(element)), one_line("".join(readings))))
        elif tag == "input":
            kind = element.get("type", "text").lower()
            states = _CHECKS.get(kind)
            shown = "" if kind in _UNSEEN_INPUTS else element.get("value", "")
            text = states[element.get("checked") is not None] if states else shown
            _replace(element, f" {text} " if text else "")
        elif tag == "button":
            # A button that opens a section is its heading.
            is_switch = element.get("aria-expanded") or element.get("aria-controls")
            is_inside = any(e.tag in _HEADINGS or e.tag in _LISTS for e in element.iterancestors())
            if is_switch and not is_inside and _QUESTION.fullmatch(one_line(_text(element))):
                element.tag = "h6"
            else:
                _set_apart(element)
        elif not _holds_block(element):
            _write_script(element)


def _write_script(element: Any) -> None:
    """Write a raised or lowered element."""
    text, before = _text(element), _text_before(element)
    if element.tag == "sub":
        _replace(element, lowered(text, before))
        return
    around = (element, element.getparent(), *element.iter("a"))
    names = (f"{e.get('class', '')} {e.get('role', '')} {e.get('type', '')}" for e in around)
    links = [e for e in around if e.tag == "a" and "#" in e.get("href", "")]
    is_note = bool(links) or any(map(_NOTE_MARK.search, names))
    _replace(
        element, raised(text, before, element.tail or "", is_note=is_note and bool(text.strip()))
    )


def _text_before(element: Any) -> str:
    """The text of the same line that is next before an element; it may be a part of it."""
    while element.tag not in _BLOCKS:
        previous, parent = element.getprevious(), element.getparent()
        if previous is not None:
            inside = "" if previous.tag == "br" or not isinstance(previous.tag, str) else None
            if text := previous.tail or (_text(previous) if inside is None else inside):
                return text
            element = previous
        elif parent is None or parent.text:
            return (parent.text or "") if parent is not None else ""
        else:
            element = parent
    return ""


def _replace(element: Any, text: str) -> None:
    """Replace the content of an element by a text, with as many line breaks."""
    _empty(element)
    element.text = text + (element.text or "")


def _set_apart(element: Any) -> None:
    """Separate the text of an element from the text beside it, except a large first letter."""
    text = _text(element)
    is_initial = len(text.strip()) == 1 and text.strip().isalpha()
    if text and not is_initial:
        is_code = any(e.tag in _VERBATIM for e in element.iterancestors())
        element.tag = "div" if is_code else element.tag
        if not is_code:
            element.text = f" {element.text or ''}"
            element.tail = f" {element.tail or ''}"


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
        _write_spans(rows)
        header = _row_line(first) if header else ""
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


def _label(item: Any) -> str:
    """The label of an item as it is shown: ``7.``, ``b.``; ``-`` in a list that counts from 1."""
    parent = item.getparent()
    if parent is None or parent.tag != "ol":
        return "- "
    if _LABELLING.isdisjoint(parent.keys()) and not any(e.get("value") for e in parent):
        return "- "
    if item.get("_number") is None:
        items = list(parent.iterchildren("li"))
        step = -1 if parent.get("reversed") is not None else 1
        number = integer_in(parent.get("start"), len(items) if step < 0 else 1)
        for each in items:
            number = integer_in(each.get("value"), number)
            each.set("_number", str(number))
            number += step
    form = item.get("type") or parent.get("type") or "1"
    if style := _LIST_STYLE.search(parent.get("style") or ""):
        form = _LIST_FORMS.get(style[1].lower(), form)
    return f"{list_number(integer_in(item.get('_number')), form)}. " if form != "none" else "- "


def _item_lines(item: Any, depth: int = 0) -> Iterable[str]:
    """The line of an item, and those of the lists in it."""
    indent = "  " * depth
    mark, text = _label(item), item.text or ""
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


def _code_text(element: Any) -> str:
    """The text of code, with a line for each block inside that is a line."""
    if not _holds_block(element):
        return _text(element)
    text = element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            inside = _code_text(child)
            is_line = child.tag in _BLOCKS and child.tag not in _VERBATIM
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
                cell.addprevious(etree.Element(cell.tag))
                column += 1
            width = min(integer_in(cell.get("colspan"), 1), _MAX_SPAN)
            height = min(integer_in(cell.get("rowspan"), 1), _MAX_SPAN)
            for place in range(max(width, 1)):
                if place:
                    cell.addnext(_moved_tail(cell, etree.Element(cell.tag)))
                if height > 1:
                    left[column + place] = height - 1
            column += max(width, 1)


def _moved_tail(cell: Any, added: Any) -> Any:
    """The element that is added behind a cell, with the text behind it."""
    added.tail, cell.tail = cell.tail, None
    return added


def _row_line(row: Any) -> str:
    """A row as one line, with bars between its cells, or a caption."""
    if row.tag == "caption":
        return one_line(_spaced(row))
    cells = [one_line(_spaced(cell)) for cell in row if isinstance(cell.tag, str)]
    return row_line(cells)


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
            page = _as_html(package, name)
            blocks.include(read_page(page, f"{package.path}: {name}", is_message=True))
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


def _saved_page(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
    """The page of a web archive (MHTML), without its images and frames."""
    with parser_errors("unreadable_mhtml", path):
        message = email.message_from_bytes(data, policy=email.policy.default)
        parts = (part for part in message.walk() if part.get_content_type() in _CHAPTER_TYPES)
        part = next(parts)
        declared = (part.get_content_charset() or "").lower()
        source = part.get_payload(decode=True)
        page = read_page(bytes(source), path, declared=declared)
        blocks = TextBlocks(
            lambda reason: DocumentError(
                "mhtml_too_large", f"{path}: {reason}", "split it, or exclude it"
            )
        )
        blocks.include(page)
        uri = str(message.get("Snapshot-Content-Location") or part.get("Content-Location") or "")
        inferred = {**page.inferred, "uri": uri} if uri.startswith("http") else page.inferred
        yield blocks.document(inferred, page.notes)


READERS = {
    "html": (11, lambda data, path, _separator: [read_page(data, path)]),
    "mhtml": (1, _saved_page),
    "epub": package_reader("epub", 8, _book),
}
