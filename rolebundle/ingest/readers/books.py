"""E-books (EPUB 2 and 3) and saved pages (MHTML), which hold pages of HTML.

The chapters of a book are in reading order. Its style sheets are put into its chapters, so that
what they hide is hidden.
"""

from __future__ import annotations

import email
import email.policy
import posixpath
import re
from collections.abc import Iterator

from lxml import etree

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import parser_errors
from rolebundle.ingest.readers.html import read_page
from rolebundle.ingest.readers.html_hidden import parsed_page
from rolebundle.ingest.readers.package import Package, TextBlocks, package_reader, properties_of

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
        package.member(folder, item.get("href"))
        for reference in book.iter("{*}itemref")
        if (item := items.get(reference.get("idref", ""))) is not None
        and item.get("media-type", "application/xhtml+xml") in _CHAPTER_TYPES
        # The table of contents repeats the headings.
        and "nav" not in item.get("properties", "").split()
    ]
    # Chapters may be encrypted. Fonts often are, which does not matter.
    encryption = package.parse("META-INF/encryption.xml", is_lenient=True)
    for element in encryption.iter("{*}CipherReference"):
        if package.member("", element.get("URI", "")) in chapters:
            raise package.encrypted()
    blocks = TextBlocks(package.name, package.path)
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
    for element in container.iter("{*}rootfile"):
        if (name := element.get("full-path", "")) in package:
            return str(name)
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
            css = package.read(package.member(posixpath.dirname(name), link.get("href", "")))
            link.tag = link.tag.replace("link", "style")
            link.text = _NOT_IN_SHEETS.sub("", css[:_MAX_SHEET_BYTES].decode("utf-8", "replace"))
    etree.cleanup_namespaces(root)
    return bytes(etree.tostring(root, method="html", encoding="utf-8", with_tail=False))


def _saved_page(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
    """The page of a web archive (MHTML), without its images and frames."""
    with parser_errors("unreadable_mhtml", path):
        message = email.message_from_bytes(data, policy=email.policy.default)
        part = next(p for p in message.walk() if p.get_content_type() in _CHAPTER_TYPES)
        declared = (part.get_content_charset() or "").lower()
        page = read_page(bytes(part.get_payload(decode=True)), path, declared=declared)
        blocks = TextBlocks("mhtml", path)
        blocks.include(page)
        uri = str(message.get("Snapshot-Content-Location") or part.get("Content-Location") or "")
        inferred = {**page.inferred, "uri": uri} if uri.startswith("http") else page.inferred
        yield blocks.document(inferred)


READERS = {**package_reader("epub", 13, _book), "mhtml": (6, _saved_page)}
