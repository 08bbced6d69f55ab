"""E-books (EPUB 2 and 3): the chapters in reading order, each read as HTML.

Style sheets of the book are put into its chapters, so that what they hide is hidden.
"""

from __future__ import annotations

import posixpath
import re

from lxml import etree

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.html import read_page
from rolebundle.ingest.readers.package import (
    Package,
    TextBlocks,
    joined,
    local_name,
    package_reader,
    properties_of,
)

_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
_MAX_SHEET_BYTES = 1_000_000
# What would end a style element, and what XML cannot contain.
_NOT_IN_SHEETS = re.compile(r"</|[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _document(package: Package) -> ParsedDocument:
    main = _main_member(package)
    book = package.parse(main, is_lenient=True)
    folder = posixpath.dirname(main)
    items = {item.get("id", ""): item for item in book.iter("{*}item") if item.get("href")}
    names = {key: joined(folder, item.get("href")) for key, item in items.items()}
    # The table of contents repeats the headings.
    contents = [key for key, item in items.items() if "nav" in item.get("properties", "").split()]
    chapters = [
        names[key]
        for reference in book.iter("{*}itemref")
        if (key := reference.get("idref", "")) in items
        and items[key].get("media-type", "application/xhtml+xml") in _PAGES
        and key not in contents
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
    metadata = book.find("{*}metadata")
    properties = properties_of(() if metadata is None else metadata)
    notes = [f"chapters that the book lacks: {missing}"] if missing else []
    return blocks.document(properties, notes)


def _main_member(package: Package) -> str:
    """The name of the package document."""
    container = package.parse("META-INF/container.xml", is_lenient=True)
    named = (e.get("full-path") for e in container.iter() if local_name(e) == "rootfile")
    others = (name for name in package.names() if name.lower().endswith(".opf"))
    found = next((name for name in (*named, *others) if name and name in package), "")
    if not found:
        raise ValueError("it has no package document")
    return found


def _chapter(package: Package, name: str, blocks: TextBlocks) -> None:
    page = read_page(_as_html(package, name), f"{package.path}: {name}", is_message=True)
    for part in page.hidden:
        blocks.hide(part.kind, part.text, is_usual=not part.is_labelled, is_kept=part.is_kept)
    for block in page.blocks:
        if block.level:
            blocks.heading(block.text, block.level, is_title=False)
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
        parser = etree.HTMLParser(encoding="utf-8", no_network=True, collect_ids=False)
        root = etree.fromstring(package.read(name) or b"<p>", parser)
    for link in list(root.iter("link", "{*}link")):
        if link.get("rel", "").lower().split() == ["stylesheet"]:
            css = package.read(joined(posixpath.dirname(name), link.get("href", "")))
            link.tag = link.tag.replace("link", "style")
            link.text = _NOT_IN_SHEETS.sub("", css[:_MAX_SHEET_BYTES].decode("utf-8", "replace"))
    etree.cleanup_namespaces(root)
    data: bytes = etree.tostring(root, method="html", encoding="utf-8", with_tail=False)
    return data


READERS = {"epub": package_reader("epub", 4, _document)}
