"""HTML: the visible text of a page's main part, as blocks with their lines.

libxml2 parses, through lxml; nothing is fetched and no DTD is read. A document is not line-exact:
the lines of a block are those whose visible text contains it.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.declared import utc_text
from rolebundle.errors import DocumentError, with_detail
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.html_blocks import html_blocks
from rolebundle.ingest.readers.html_hidden import HiddenElement, hidden_elements, hiding_sheets
from rolebundle.ingest.readers.html_lines import LineScale, end_line, scaled_source, start_line
from rolebundle.ingest.readers.html_reduce import byte_pattern, reduce_source
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.counts import counted
from rolebundle.text.decoding import clean, cleaned_note, decode

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
# A tag and the quoted values in it, as far as they are closed.
_VALUE = rb"=\s*(?:\"[^\"]*\"?|'[^']*'?)"
_TAG = rb"<[a-zA-Z](?:" + _VALUE + rb"|[^>])*"
_LONG_TAG_BYTES = 50_000
_MAX_ATTRIBUTES = 10_000


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
        notes=(*notes, f"{counted(len(removed), 'hidden element')} left out") if removed else notes,
        hidden=parts,
    )


def utf8_html(data: bytes, path: str) -> tuple[bytes, tuple[str, ...]]:
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
    _check_attributes(markup, path)
    parser = etree.HTMLParser(
        encoding="utf-8", recover=True, huge_tree=False, no_network=True, collect_ids=False
    )
    try:
        root = etree.fromstring(markup, parser)
    except (etree.LxmlError, ValueError) as error:
        raise _unreadable(path, error) from error
    # In recovery mode a fatal error is not raised, and the rest of the page is lost.
    last = parser.error_log.last_error
    if last is not None and last.level >= etree.ErrorLevels.FATAL:
        raise _unreadable(path, last.message)
    return root


def _check_attributes(markup: bytes, path: str) -> None:
    """Refuse a tag of which libxml2 would compare each attribute with all others for minutes."""
    if len(markup) < _LONG_TAG_BYTES:
        return
    for tag in byte_pattern(_TAG).finditer(markup):
        if tag.end() - tag.start() >= _LONG_TAG_BYTES:
            names = byte_pattern(_VALUE).sub(b" ", tag[0]).replace(b"/", b" ")
            if len(names.split()) > _MAX_ATTRIBUTES:
                raise _unreadable(path, f"a tag has more than {_MAX_ATTRIBUTES:,} attributes")


def _unreadable(path: str, detail: object) -> DocumentError:
    return DocumentError(
        "unreadable_html",
        f"{path}: the page is damaged, or nested too deep",
        with_detail("repair or exclude it", detail),
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


def _occurs(pattern: bytes, markup: bytes) -> bool:
    return byte_pattern(pattern).search(markup) is not None


def _empty_line_numbers(main: Any, markup: bytes) -> None:
    if not _occurs(_ANY_LINE_NUMBER_HINT, markup) or next(main.iter("pre"), None) is None:
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


READER = HtmlReader()
