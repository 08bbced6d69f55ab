"""HTML: the visible text of a page's main part, as blocks with their lines.

libxml2 parses, through lxml; nothing is fetched and no DTD is read. A document is not line-exact:
the lines of a block are those whose visible text contains it.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.declared import utc_text
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions
from rolebundle.ingest.readers.html_blocks import html_blocks
from rolebundle.ingest.readers.html_hidden import HiddenElement, hidden_elements, hiding_sheets
from rolebundle.ingest.readers.html_lines import (
    countable_source,
    end_line,
    file_lines,
    lines_in,
    start_line,
)
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.counts import counted
from rolebundle.text.decoding import clean, cleaned_note, decode, has_bom

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
_SKIPPED_TAGS = "script style template nav svg button select textarea iframe object head".split()
_SURROUNDING_TAGS = ("header", "footer", "aside")
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}
_LINE_BREAK = re.compile("\r\n|\r|\n")


def _read(data: bytes, path: str, _options: ReaderOptions) -> Iterable[ParsedDocument]:
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
    page, notes = _utf8(data, path)
    source = countable_source(page)
    root: Any = _parsed(source, path)
    if root is None:
        return ParsedDocument(line_exact=False, notes=notes)
    body = root.find("body")
    body = root if body is None else body
    found = () if is_message else (find(root) for find in _MAIN_PARTS)
    main = next((parts[0] for parts in found if len(parts) == 1), body)
    inferred = _head_metadata(root)
    _empty_unread(main, source, is_whole=main is body and not is_message)
    fallbacks = list(main.iter("noscript"))
    hidden = hidden_elements(root, main, source, hiding_sheets(source), fallbacks)
    parts = tuple(_hidden_parts(hidden, page)) if hidden else ()
    removed = [item for item in hidden if not item.is_kept]
    for item in removed:
        _empty(item.element)
    blocks = html_blocks(main, lines_in(source))
    title = inferred.get("title") or next((b.heading for b in blocks if b.level == 1), "")
    return ParsedDocument(
        blocks=blocks,
        inferred={**inferred, "title": title} if title else inferred,
        line_exact=False,
        notes=(*notes, f"{counted(len(removed), 'hidden element')} left out") if removed else notes,
        hidden=parts,
    )


def _utf8(data: bytes, path: str) -> tuple[bytes, tuple[str, ...]]:
    """The page in UTF-8, and notes. Other encodings are those of a mark, or ``<meta charset>``.

    Raises:
        DocumentError: ``undecodable``.
    """
    try:
        data.decode("utf-8")
        if b"\x00" not in data and not data.startswith(BOM_UTF8):
            return data, ()
    except UnicodeDecodeError:
        declared = _CHARSET.search(data[:2048])
        if declared and not has_bom(data):
            encoding = declared[1].decode("ascii").lower()
            # Browsers decode pages that declare Latin-1 as cp1252.
            encoding = "cp1252" if encoding in {"iso-8859-1", "latin1", "us-ascii"} else encoding
            try:
                text, count = clean(data.decode(encoding))
                return text.encode(), cleaned_note(count)
            except (LookupError, UnicodeError):
                pass
    text, notes = decode(data, path)
    return text.encode(), notes


def _parsed(source: bytes, path: str) -> Any:
    """The root of a page; ``None`` if it is empty."""
    if not source or source.isspace():
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", recover=True, huge_tree=False, no_network=True, collect_ids=False
    )
    detail: object = ""
    try:
        root = etree.fromstring(source, parser)
        # In recovery mode a fatal error is not raised, and the rest of the page is lost.
        last = parser.error_log.last_error
        if last is None or last.level < etree.ErrorLevels.FATAL:
            return root
        detail = last.message
    except (etree.LxmlError, ValueError) as error:
        detail = error
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
        value = (meta.get("content") or "").strip()
        if name.lower() in _UPDATED and utc_text(value):
            updated = value
    title = " ".join((root.findtext("head/title") or "").split())
    metadata = {"language": language.strip(), "title": title, "updated_at": updated}
    return {key: value for key, value in metadata.items() if value}


def _empty_unread(main: Any, source: bytes, *, is_whole: bool) -> None:
    """Empty the elements that are not part of the page's own text."""
    tags = (*_SKIPPED_TAGS, *_SURROUNDING_TAGS) if is_whole else _SKIPPED_TAGS
    for element in list(main.iter(*tags)):
        if element is not main:
            _empty(element)
    source = source.lower()
    has_line_numbers = b"lineno" in source or b"line-numbers" in source
    if has_line_numbers and next(main.iter("pre"), None) is not None:
        for element in list(main.iter("pre", "td", "div", "span")):
            if not _LINE_NUMBER_CLASSES.isdisjoint((element.get("class") or "").split()):
                _empty(element)


def _empty(element: Any) -> None:
    """Remove the content of ``element`` except its line breaks, with which lines are counted."""
    breaks = end_line(element) - start_line(element)
    element.clear(keep_tail=True)
    element.text = "\n" * breaks or None


def _hidden_parts(hidden: Sequence[HiddenElement], page: bytes) -> Iterable[HiddenPart]:
    """The texts of hidden elements, with the offsets of their lines in the page."""
    source = page.decode("utf-8", "replace")
    breaks = [0, *(match.end() for match in _LINE_BREAK.finditer(source)), len(source)]
    for element, kind, text, is_kept, is_labelled in hidden:
        if text or is_labelled:
            first, last = file_lines(start_line(element), end_line(element), len(breaks) - 1)
            yield HiddenPart(kind, text, breaks[first - 1], breaks[last], is_labelled, is_kept)


READER = Reader("html", 5, _read)
