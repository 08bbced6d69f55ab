"""HTML: what a person sees of the page's main part.

libxml2 parses, through lxml; nothing is fetched, no DTD is read. The document is not line-exact:
a block's lines are those whose visible text holds it.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lxml import etree

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.byte_patterns import byte_pattern
from rolebundle.ingest.readers.html_blocks import html_blocks
from rolebundle.ingest.readers.html_lines import end_line, scaled_source
from rolebundle.ingest.readers.html_reduce import reduced
from rolebundle.text.text_decoding import clean, cleaned_note, decode_noting

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
# Paths to attributes are twice as fast as one path to elements with a condition. What tells here or
# below that an element is not read has to be left in the source by html_reduce.py, too.
_HIDDEN: Any = etree.XPath(
    "descendant::*/@hidden/.. | descendant::*/@aria-hidden[.='true']/.. | descendant::*/@style"
    "[contains(translate(., 'DISPLAYNOE \t\n', 'displaynoe'), 'display:none')]/.."
)
# Most pages have no such attribute, and RE2 tells it soon.
_HIDDEN_HINT = rb"(?i)hidden(?:[\s\v]*[=/>]|[\s\v]+[a-z-]+[\s\v]*[=/>])"
_NONE_HINT = rb"(?i):[\s\v]*none"
_LINE_NUMBER_HINT = rb"(?i)line(?:no|-numbers)"
# Code listings number their lines beside the code, in elements of their own.
_LINE_NUMBER_CLASSES = frozenset(("src-line-numbers", "linenodiv", "linenos", "line-numbers"))
# What the page's source has where one of them is in use, and the elements that carry them: a page
# of source code has a hundred thousand spans to look at for nothing.
_LINE_NUMBER_HINTS = (
    (b"lineno", ("pre", "td", "div", "span")),
    (b"line-numbers", ("pre", "td", "div")),
)
# What tells the page's own text from what stands around it, the surest sign first.
_SIGNS = ("main", "article", "content", "body")
# What shows nothing to read, or is no part of the text.
_NEVER = (
    "script",
    "style",
    "template",
    "noscript",
    "nav",
    "svg",
    "button",
    "select",
    "textarea",
    "iframe",
    "object",
    "head",
)
_AROUND = ("header", "footer", "aside")
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}


class HtmlReader:
    """Reads ``.html`` and its kin."""

    name = "html"
    suffixes = suffixes_of("html")
    version = 2

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document a file.

        Raises:
            DocumentError: ``unreadable_html``, ``undecodable``.
        """
        page, notes = utf8_html(data, path)
        source, scale = scaled_source(page)
        markup, is_cut = reduced(source)
        root = _parse(markup, path)
        if root is None:
            yield ParsedDocument(line_exact=False, notes=notes)
            return
        main, sign = _main_part(root)
        if is_cut and sign != "main":
            # Two main parts are none, and the page's own text may be in what was left out.
            markup, root = source, _parse(source, path)
            main, sign = _main_part(root)
        found = _found(root)
        hidden = _leave_out(main, not sign, markup)
        blocks = html_blocks(main, scale)
        title = found.get("title") or next((b.heading for b in blocks if b.level == 1), "")
        yield ParsedDocument(
            blocks=blocks,
            found={**found, "title": title} if title else found,
            line_exact=False,
            notes=(*notes, f"{hidden} hidden elements left out") if hidden else notes,
        )


def utf8_html(data: bytes, path: str = "") -> tuple[bytes, tuple[str, ...]]:
    """The page in UTF-8, and notes: nearly every page is UTF-8 and stays as it is.

    Raises:
        DocumentError: ``undecodable``.
    """
    if b"\x00" not in data and not data.startswith(BOM_UTF8) and _is_utf8(data):
        return data, ()
    text, notes = _decoded(data, path)
    return text.encode(), notes


def _decoded(data: bytes, path: str) -> tuple[str, tuple[str, ...]]:
    """The page's text by its mark, as UTF-8, or by its own ``<meta charset>``."""
    declared = _CHARSET.search(data[:2048])
    if declared and not data.startswith((BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = declared[1].decode("ascii").lower()
        # Browsers read what calls itself Latin-1 as cp1252.
        encoding = "cp1252" if encoding in {"iso-8859-1", "latin1", "us-ascii"} else encoding
        if encoding.replace("_", "-") not in {"utf-8", "utf8"} and not _is_utf8(data):
            try:
                text, count = clean(data.decode(encoding))
            except (LookupError, UnicodeError):
                return decode_noting(data, path)
            return text, cleaned_note(count)
    return decode_noting(data, path)


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
    # Recovery passes over a fatal error in silence, with the rest of the page lost.
    last = parser.error_log.last_error
    if last is not None and last.level >= etree.ErrorLevels.FATAL:
        raise _unreadable(path, last.message)
    return root


def _unreadable(path: str, reason: str) -> DocumentError:
    return DocumentError(
        "unreadable_html",
        f"{path}: libxml2 refuses the page: {reason}",
        "repair or exclude the file",
    )


def _found(root: Any) -> Mapping[str, str]:
    """What the page tells of itself in its head."""
    found: dict[str, str] = {}
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    if language and language.strip():
        found["language"] = language.strip()
    head = next(root.iterchildren("head"), None)
    if head is None:
        return found
    title = next(head.iterchildren("title"), None)
    if title is not None and title.text and not title.text.isspace():
        found["title"] = " ".join(title.text.split())
    for meta in head.iterchildren("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("http-equiv") or ""
        if name.lower() in _UPDATED:
            value = (meta.get("content") or "").strip()
            if _is_iso(value):
                found["updated_at"] = value
    return found


def _is_iso(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _main_part(root: Any) -> tuple[Any, str]:
    """The element that holds the page's own text, and its sign; none for the whole body.

    One pass over the few elements that may be it: an XPath for each sign would cost more than
    all the rest of the reader. A look for the one ``<main>`` is quicker still.
    """
    mains = list(root.iter("main"))
    if len(mains) == 1:
        return mains[0], "main"
    signs: dict[str, list[Any]] = {sign: [] for sign in _SIGNS}
    for element in root.iter("main", "article", "div", "section"):
        sign = _sign_of(element)
        if sign:
            signs[sign].append(element)
    for sign in _SIGNS:
        if len(signs[sign]) == 1:
            return signs[sign][0], sign
    body = root.find("body")
    return (root if body is None else body), ""


def _sign_of(element: Any) -> str:
    tag = element.tag
    if tag == "main" or element.get("role") == "main":
        return "main"
    if tag == "article":
        return "article"
    if element.get("id") == "content":
        return "content"
    return "body" if "body" in (element.get("class") or "").split() else ""


def _leave_out(main: Any, is_whole: bool, markup: bytes) -> int:
    """Empty what nobody sees, and count what was hidden on purpose.

    The elements stay in their place, empty: their line numbers help to find those of the text.
    """
    for element in list(main.iter(*(_NEVER + _AROUND if is_whole else _NEVER))):
        if element is not main:
            _empty(element)
    _leave_out_line_numbers(main, markup)
    hidden = _HIDDEN(main) if _may_hide(markup) else []
    hidden = [element for element in hidden if len(element) or element.text]
    for element in hidden:
        _empty(element)
    return len(hidden)


def _may_hide(markup: bytes) -> bool:
    if _has(_HIDDEN_HINT, markup):
        return True
    return _has(_NONE_HINT, markup) and b"display" in markup.lower()


def _has(pattern: bytes, markup: bytes) -> bool:
    return byte_pattern(pattern).search(markup) is not None


def _leave_out_line_numbers(main: Any, markup: bytes) -> None:
    if not _has(_LINE_NUMBER_HINT, markup) or next(main.iter("pre"), None) is None:
        return
    markup = markup.lower()
    for hint, tags in _LINE_NUMBER_HINTS:
        if hint in markup:
            for element in list(main.iter(*tags)):
                if not _LINE_NUMBER_CLASSES.isdisjoint((element.get("class") or "").split()):
                    _empty(element)
            return


def _empty(element: Any) -> None:
    """Leave a line break for each one inside, and nothing else."""
    breaks = end_line(element) - (element.sourceline or 1)
    element.clear(keep_tail=True)
    element.text = "\n" * breaks if breaks > 0 else None


READER = HtmlReader()
