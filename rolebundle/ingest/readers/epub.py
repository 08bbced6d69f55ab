"""E-books (EPUB 2 and 3): the chapters in reading order, each read as HTML.

Style sheets of the book are put into its chapters, so that what they hide is hidden.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.base import ReaderOptions
from rolebundle.ingest.readers.extracted import HiddenTexts, TextBlocks
from rolebundle.ingest.readers.html import READER as HTML
from rolebundle.ingest.readers.package import (
    Package,
    PackageReader,
    joined,
    local_name,
    properties_of,
)

_XHTML = "{http://www.w3.org/1999/xhtml}"
_EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
# The reader of HTML takes these for what surrounds the text of a page. In a book they are its text.
_RENAMED = frozenset(_XHTML + name for name in ("header", "footer", "aside", "main", "article"))
_MAX_SHEET_BYTES = 1_000_000
_MAX_TAGS = 600_000


def _document(package: Package) -> ParsedDocument:
    main = _main_member(package)
    book = package.parse(main, is_lenient=True)
    folder = posixpath.dirname(main)
    items = {item.get("id", ""): item for item in book.iter("{*}item") if item.get("href")}
    names = {key: joined(folder, item.get("href")) for key, item in items.items()}
    spine = [
        key
        for reference in book.iter("{*}itemref")
        if (key := reference.get("idref", "")) in items
        and items[key].get("media-type", "application/xhtml+xml") in _PAGES
        # The table of contents repeats the headings.
        and "nav" not in items[key].get("properties", "").split()
    ]
    _check_encryption(package, {names[key] for key in spine})
    labels = _labels(package, book, items, names)
    blocks, hidden = TextBlocks(package.too_large), HiddenTexts()
    sheets: dict[str, bytes] = {}
    missing = 0
    for key in spine:
        if names[key] not in package:
            missing += 1
            continue
        _chapter(package, names[key], labels.get(names[key], ""), blocks, hidden, sheets)
    metadata = book.find("{*}metadata")
    properties = properties_of(() if metadata is None else _renamed_date(metadata))
    notes = [f"chapters that the book lacks: {missing}"] if missing else []
    return blocks.document(properties, hidden, notes)


def _main_member(package: Package) -> str:
    container = package.parse(_CONTAINER, is_lenient=True)
    for element in container.iter():
        if local_name(element) == "rootfile" and element.get("full-path") in package:
            return str(element.get("full-path"))
    for name in package.names():
        if name.lower().endswith(".opf"):
            return name
    raise ValueError("it has no package document")


def _renamed_date(metadata: Any) -> Iterator[Any]:
    """The metadata elements, with the date of the last change under its short name."""
    for element in metadata:
        if local_name(element) == "meta":
            if element.get("property") == "dcterms:modified":
                changed = etree.Element("modified")
                changed.text = element.text
                yield changed
        else:
            yield element


def _check_encryption(package: Package, chapters: set[str]) -> None:
    """Chapters may be encrypted. Fonts often are, which does not matter."""
    for element in package.parse(_ENCRYPTION, is_lenient=True).iter():
        is_content = local_name(element) == "CipherReference"
        if is_content and joined("", element.get("URI", "")) in chapters:
            raise package.encrypted()


def _labels(
    package: Package, book: Any, items: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, str]:
    """The title of each chapter in the table of contents, by the name of its member."""
    labels: dict[str, str] = {}
    spine = book.find("{*}spine")
    contents = "" if spine is None else names.get(spine.get("toc", ""), "")
    for key, item in items.items():
        if "nav" in item.get("properties", "").split():
            root = _parsed(package, names[key])
            for link in () if root is None else root.iter("{*}a"):
                target = joined(posixpath.dirname(names[key]), link.get("href", ""))
                labels.setdefault(target, " ".join("".join(link.itertext()).split()))
    for point in package.parse(contents, is_lenient=True).iter("{*}navPoint"):
        label, content = point.find("{*}navLabel/{*}text"), point.find("{*}content")
        if label is not None and content is not None:
            target = joined(posixpath.dirname(contents), content.get("src", ""))
            labels.setdefault(target, " ".join((label.text or "").split()))
    return labels


def _parsed(package: Package, name: str) -> Any:
    """The root of a page; ``None`` if it is no XML."""
    try:
        return package.parse(name)
    except etree.XMLSyntaxError:
        return None


def _chapter(
    package: Package,
    name: str,
    label: str,
    blocks: TextBlocks,
    hidden: HiddenTexts,
    sheets: dict[str, bytes],
) -> None:
    folder = posixpath.dirname(name)
    if package.read(name).count(b"<") > _MAX_TAGS:
        raise package.too_large(f"a chapter has more than {_MAX_TAGS:,} tags")
    root = _parsed(package, name)
    source = package.read(name) if root is None else _as_html(root)
    links = [joined(folder, href) for href in _linked_sheets(source)]
    for link in links:
        if link not in sheets:
            sheets[link] = _sheet(package, link)
    # Before the page, so that the page's own rules win.
    source = b"".join(map(sheets.__getitem__, links)) + _LINK.sub(b"", source)
    (page,) = HTML.read(source, f"{package.path}: {name}", ReaderOptions())
    for part in page.hidden:
        hidden.add(part.kind, part.text, is_usual=not part.is_labelled, is_kept=part.is_kept)
    if page.blocks and label and not any(block.level for block in page.blocks):
        blocks.heading(label, 1, is_title=False)
    for block in page.blocks:
        if block.level:
            blocks.heading(block.text, block.level, is_title=False)
        else:
            blocks.add(block.kind, block.text, header=block.header)
            if not block.header:
                blocks.end_block()


def _as_html(root: Any) -> bytes:
    """A page as HTML. In XML elements such as ``<title/>`` are complete, in HTML they are not."""
    for element in root.iter(*_RENAMED):
        element.tag = f"{_XHTML}div"
    # Not entities such as `&nbsp;`, which HTML knows.
    for element in root.iter("*"):
        # Names by which the reader of HTML finds the main part of a page.
        if element.get("id") == "content" or element.get("role") == "main":
            element.attrib.pop("id", None)
            element.attrib.pop("role", None)
        if "body" in element.get("class", "").split():
            element.set("class", element.get("class").replace("body", "body_"))
        if element.get(_EPUB_TYPE) == "pagebreak":
            element.clear(keep_tail=True)
    etree.cleanup_namespaces(root)
    data: bytes = etree.tostring(root, method="html", encoding="utf-8", with_tail=False)
    return data


_LINK = re.compile(rb"<link\b[^>]*>", re.IGNORECASE)
_HREF = re.compile(rb"href\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)


def _linked_sheets(source: bytes) -> Iterator[str]:
    for link in _LINK.findall(source):
        href = _HREF.search(link)
        if href and b"stylesheet" in link.lower() and b"alternate" not in link.lower():
            yield href[1].decode("utf-8", "replace")


def _sheet(package: Package, name: str) -> bytes:
    css = package.read(name)[:_MAX_SHEET_BYTES]
    return b"<style>" + css.replace(b"</", b"") + b"</style>" if css else b""


READER = PackageReader("epub", 1, _document)
