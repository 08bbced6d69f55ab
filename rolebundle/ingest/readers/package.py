"""Archives of office formats with limits, and texts with what hides them."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

from lxml import etree

from rolebundle.contracts.ingest import utc_text
from rolebundle.errors import DocumentError
from rolebundle.ingest.declarations import limiting_key
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import Reader, encrypted, own_title, parser_errors
from rolebundle.ingest.readers.elements import local_name
from rolebundle.scan.finding import HiddenPart
from rolebundle.scan.hidden_style import SAME_COLOR, WHITE, Color
from rolebundle.text.decoding import clean, cleaned_note, one_line, with_newlines
from rolebundle.text.tables import header_index

_MAX_MEMBERS = 20_000
_MAX_EXPANDED = 400_000_000
"""All that is read of one file, in bytes. XML expands to ten or twenty times its packed size."""
_MAX_TREE = 16_000_000
"""The XML that is in memory as a tree at one time, in bytes.

A tree is about eight times as large, and thirty times if its elements are empty.
"""
_READ_BYTES = 1 << 16

_CENTRAL_ENTRY = b"PK\x01\x02"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
# "Strict" documents differ from the usual ones only in the names of their namespaces.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_PARSING: dict[str, Any] = {
    "remove_comments": True,
    "remove_pis": True,
    "no_network": True,
    "resolve_entities": False,
    "load_dtd": False,
    "huge_tree": False,
    "collect_ids": False,
}


def package_reader(
    name: str, version: int, document: Callable[[Package], ParsedDocument]
) -> dict[str, Reader]:
    """The reader of files that are archives of XML, by its name. Each file is one document.

    Args:
        name: the name of the reader, also for the codes of errors.
        version: the version of the reader.
        document: makes the document of an archive.
    """

    def read(data: bytes, path: str, _separator: str) -> Iterator[ParsedDocument]:
        """The document of a file.

        Raises:
            DocumentError: ``encrypted_NAME``, ``NAME_too_large`` or ``unreadable_NAME``.
        """
        with parser_errors(f"unreadable_{name}", path):
            yield document(Package(data, path, name))

    return {name: (version, read)}


def too_large(name: str, path: str, reason: str) -> DocumentError:
    """The error of a reader for a document that exceeds a limit."""
    return DocumentError(f"{name}_too_large", f"{path}: {reason}", "split it, or exclude it")


class Package:
    """The members of an archive.

    Args:
        data: the bytes of the file.
        path: the file, for messages.
        name: the name of the reader, for the codes of errors.

    Raises:
        DocumentError: ``encrypted_NAME``, ``NAME_too_large`` or ``unreadable_NAME``.
    """

    def __init__(self, data: bytes, path: str, name: str) -> None:
        self.name, self.path = name, path
        self.too_large = partial(too_large, name, path)
        self.encrypted = partial(encrypted, name, path)
        self._expanded = 0
        # How many bytes were read since an element was released.
        self._kept = 0
        if data.startswith(_OLE):
            if _ENCRYPTED_STREAM in data:
                raise self.encrypted()
            raise DocumentError(
                f"unreadable_{name}",
                f"{path}: it is a file of an old binary format (.doc, .xls, .ppt)",
                f"save it as {name}, or exclude it",
            )
        # Counted before the directory is read, which needs half a kilobyte for each member.
        if data.count(_CENTRAL_ENTRY) > _MAX_MEMBERS:
            raise self.too_large(f"more than {_MAX_MEMBERS:,} members")
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        # Names are compared without regard to case, as Office does.
        self._members = {info.filename.lower(): info for info in self._archive.infolist()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._members

    def names(self) -> list[str]:
        """The names of all members, in the order of the archive."""
        return [info.filename for info in self._members.values()]

    def read(self, name: str) -> bytes:
        """The content of a member; empty if there is none with this name."""
        return b"".join(self._chunks(name))

    def parse(self, name: str, *, is_lenient: bool = False) -> Any:
        """The root element of a member; an empty element if there is none with this name.

        Args:
            name: the name of the member.
            is_lenient: whether mistakes, such as a prefix without a namespace, are no error.
        """
        data = self.read(name)
        parser = etree.XMLParser(**_PARSING, recover=is_lenient)
        root = etree.fromstring(data, parser) if data else None
        return etree.Element("none") if root is None else root

    def stream(self, name: str, *tags: str) -> Iterator[Any]:
        """The elements with one of ``tags`` as they end, inner elements first.

        The caller passes the elements that it has read to :meth:`release`, so that the tree stays
        small. Only one member is streamed at a time.
        """
        parser = etree.XMLPullParser(("end",), tag=tags, **_PARSING)
        for chunk in self._chunks(name):
            parser.feed(chunk)
            for _, element in parser.read_events():
                yield element
        if name in self:
            parser.close()

    def release(self, element: Any) -> None:
        """Free an element of a stream that was read, and its siblings before it."""
        self._kept = 0
        element.clear()
        parent = element.getparent()
        if parent is not None:
            while parent[0] is not element:
                del parent[0]

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """The relations of a member: id → (the last word of the type, the name of the target).

        Targets outside of the archive are left out.
        """
        folder, file_name = posixpath.split(name)
        return {
            relation.get("Id", ""): (
                relation.get("Type", "").rpartition("/")[2],
                self.member(folder, relation.get("Target", "")),
            )
            for relation in self.parse(posixpath.join(folder, "_rels", f"{file_name}.rels"))
            if relation.get("TargetMode") != "External"
        }

    @staticmethod
    def member(folder: str, target: str) -> str:
        """The name of the member that ``target`` points to from ``folder``, without a fragment."""
        target = unquote(target.partition("#")[0])
        return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")

    def _chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member in pieces; none if there is no member with this name.

        Raises:
            DocumentError: ``NAME_too_large`` or ``encrypted_NAME``.
        """
        self._kept, is_first = 0, True
        info = self._members.get(name.lower())
        if info is None:
            return
        if info.flag_bits & 1:
            raise self.encrypted()
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ValueError(f"{name} is compressed in a way that its format does not have")
        with self._archive.open(info) as file:
            while data := file.read(_READ_BYTES):
                self._expanded += len(data)
                self._kept += len(data)
                if self._expanded > _MAX_EXPANDED:
                    raise self.too_large(f"it expands to more than {_MAX_EXPANDED:,} bytes")
                if self._kept > _MAX_TREE:
                    raise self.too_large(f"one part of it has more than {_MAX_TREE:,} bytes")
                yield _STRICT.sub(_USUAL, data) if is_first else data
                is_first = False


# Core properties

_TEMPLATE_DATES = frozenset(("2013-12-23T23:15:00Z", "2013-01-27T09:15:58Z"))
"""Dates of the templates of python-docx and python-pptx, which their documents keep."""


def properties_of(elements: Iterable[Any]) -> dict[str, Any]:
    """Title, author, date and language from the elements of the metadata.

    All formats call them ``title``, ``creator``, ``modified`` or ``date``, and ``language``.
    """
    texts: dict[str, list[str]] = defaultdict(list)
    limits: dict[str, str] = {}
    for element in elements:
        name = next((text for key, text in element.items() if key.endswith("name")), "")
        if limiting_key(name):
            limits[f"property.{name}"] = one_line("".join(element.itertext()))
        is_change = element.get("property") == "dcterms:modified"  # of an e-book
        if text := one_line(element.text or ""):
            texts["modified" if is_change else local_name(element)].append(text)
    dates = (text for name in ("modified", "date") for text in texts[name])
    own_dates = (d for d in dates if d not in _TEMPLATE_DATES and (utc_text(d) or "") >= "1970")
    return {
        **limits,
        "title": next(filter(own_title, texts["title"]), ""),
        "authors": texts["initial-creator"] or texts["creator"],
        "updated_at": next(own_dates, ""),
        "language": next(iter(texts["language"]), ""),
    }


# -- extracted --
#
# The text of documents whose format has no lines. A locator counts the lines of this text.


_MAX_CHARS = 20_000_000
# What a block, or a line of one, needs in memory besides its text.
_CHARS_OF_BLOCK = 50
_MAX_HIDDEN_CHARS = 2_000_000
_MAX_PART_CHARS = 20_000
_MIN_LABELLED_WORDS = 4
_MAX_FONT_SIZE = 1.5  # points
_MAX_OPACITY = 0.05
_USUAL_KINDS = frozenset(
    ("alt_text", "comment", "field_code", "hidden_cells", "hidden_slide", "tracked_deletion")
)
"""Kinds of hidden text that ordinary documents have."""
_JOINED: frozenset[BlockKind] = frozenset(("list", "table", "code"))


class TextBlocks:
    """Collects the blocks of a document in its order, and numbers their lines.

    Adjacent lists, tables and pieces of code at the same anchor are one block each.

    Args:
        name: the name of the reader, for the error of a document with too much text.
        path: the file, for the same.
    """

    def __init__(self, name: str, path: str) -> None:
        self._too_large = partial(too_large, name, path)
        self._blocks: list[Block] = []
        self._lines: list[str] = []
        self.title = ""
        """The first heading that can be the title; empty if there is none."""
        self._kind: BlockKind | None = None
        self._pending: list[str] = []
        self._anchor = self._header = ""
        self._chars = self._replaced = self._hidden_chars = self._title_levels = 0
        self._hidden: dict[tuple[str, bool, bool], list[str]] = {}
        self._notes: dict[str, None] = {}

    def heading(self, text: str, level: int, anchor: str = "", *, is_title: bool = True) -> None:
        """Add a heading; white space is collapsed.

        Args:
            text: the heading.
            level: its level, from 1; 0 for a title of the document, below which all others are.
            anchor: where it is in the document.
            is_title: whether it can be the title of the document. A name of a sheet cannot.
        """
        if words := one_line(text):
            self._count(len(words))
            self.end_block()
            if is_title and not self.title:
                self.title = words
            self._title_levels |= level == 0
            level = level + self._title_levels if level else 1
            self._store("heading", words, anchor, level=min(level, 6))

    def add(self, kind: BlockKind, text: str, anchor: str = "", header: str = "") -> None:
        """Add a block.

        Args:
            kind: the kind of the block.
            text: its text; nothing is added if it is blank.
            anchor: where it is in the document, such as ``slide 4``.
            header: the header row of a table, as it is in the text of its first block.
        """
        self._count(len(text))
        text = with_newlines(text).strip("\n")
        text = text.strip() if kind == "paragraph" else text.rstrip()
        if not text or text.isspace():
            return
        if kind not in _JOINED:
            self.end_block()
            self._store(kind, text, anchor)
            return
        if (kind, anchor, header) != (self._kind, self._anchor, self._header):
            self.end_block()
            self._kind, self._anchor, self._header = kind, anchor, header
        self._pending.append(text)

    def end_block(self) -> None:
        """End a list, table or piece of code: what follows is another one."""
        if self._kind is not None:
            kind, self._kind = self._kind, None
            self._store(kind, "\n".join(self._pending), self._anchor, header=self._header)
            self._pending = []

    def table(self, rows: Iterable[Sequence[str]], anchor: str = "") -> None:
        """Add a table, one line for each row."""
        lines = [*filter(None, map(row_line, rows))]
        self._count(sum(map(len, lines)) + _CHARS_OF_BLOCK * len(lines))
        self.end_block()
        header = lines[header_index(lines)] if len(lines) > 1 else ""
        self.add("table", "\n".join(lines), anchor, header)
        self.end_block()

    def hide(self, kind: str, text: str, *, is_usual: bool = False, is_kept: bool = False) -> None:
        """Add a hidden text.

        Args:
            kind: the kind of the finding.
            text: the text.
            is_usual: whether ordinary documents have such parts; those of some kinds are usual.
            is_kept: whether the text stays in the document, because people may see it.
        """
        words = text.split()
        self._hidden_chars += len(text)
        if words and self._hidden_chars <= _MAX_HIDDEN_CHARS:
            key = kind, is_usual or kind in _USUAL_KINDS, is_kept
            self._hidden.setdefault(key, []).append(" ".join(words))

    def include(self, page: ParsedDocument) -> None:
        """Add the blocks, hidden parts and notes of a document that is a part of this one."""
        self._notes.update(dict.fromkeys(page.notes))
        for part in page.hidden:
            self.hide(part.kind, part.text, is_usual=not part.is_labelled, is_kept=part.is_kept)
        for block in page.blocks:
            if block.level:
                self.heading(block.heading, block.level, is_title=False)
            else:
                self.add(block.kind, block.text, header=block.header)
                if not block.header:
                    self.end_block()

    def document(self, properties: Mapping[str, Any], notes: Iterable[str] = ()) -> ParsedDocument:
        """The document with all blocks.

        Args:
            properties: metadata that the document stores about itself.
            notes: what was left out, for the report.
        """
        self.end_block()
        return ParsedDocument(
            blocks=tuple(self._blocks),
            inferred={**properties, "title": properties["title"] or self.title},
            lines=self._lines,
            notes=(*cleaned_note(self._replaced), *notes, *self._notes),
            hidden=tuple(self._hidden_parts()),
        )

    def _hidden_parts(self) -> Iterator[HiddenPart]:
        """The hidden texts of each kind as few parts, which the scan searches one by one."""
        for (kind, is_usual, is_kept), texts in self._hidden.items():
            joined = "\n".join(texts)
            has_words = len(joined.split(None, _MIN_LABELLED_WORDS)) >= _MIN_LABELLED_WORDS
            is_labelled = has_words and not is_usual
            for start in range(0, len(joined), _MAX_PART_CHARS):
                text = joined[start : start + _MAX_PART_CHARS]
                yield HiddenPart(kind, text, is_labelled=is_labelled, is_kept=is_kept)

    def _count(self, chars: int) -> None:
        self._chars += chars + _CHARS_OF_BLOCK
        if self._chars > _MAX_CHARS:
            raise self._too_large(f"more than {_MAX_CHARS:,} characters of text")

    def _store(
        self, kind: BlockKind, text: str, anchor: str, level: int = 0, header: str = ""
    ) -> None:
        # A soft hyphen is only shown at the end of a line. It would divide words and numbers.
        text, replaced = clean(text.replace("\u00ad", ""))
        self._replaced += replaced
        if self._lines:
            self._lines.append("")
        start = len(self._lines) + 1
        heading, text = (text, f"{'#' * level} {text}") if level else ("", text)
        self._lines += text.split("\n")
        block = Block(kind, text, start, len(self._lines), level, heading)
        self._blocks.append(block._replace(anchor=anchor, header=header))


def row_line(cells: Sequence[str]) -> str:
    """A row of a table as one line; empty if all of its cells are."""
    words = [one_line(cell) for cell in cells]
    while words and not words[-1]:
        words.pop()
    return " | ".join(words)


# Hidden text


def hidden_kind(text_color: Color | None, background: Color | None, size: float | None) -> str:
    """How a text is hidden by its look; empty if it is not.

    Args:
        text_color: the color of the text; ``None`` if it is the usual one or not known.
        background: the color behind it; ``None`` if that is not known.
        size: the size of the font in points; ``None`` if it is the usual one.
    """
    is_clear = text_color is not None and text_color.alpha <= _MAX_OPACITY
    if is_clear or (size is not None and size <= _MAX_FONT_SIZE):
        return "invisible_element"
    if text_color is None or background is None:
        return ""
    behind = background.over(WHITE)
    return "white_text" if text_color.over(behind).distance(behind) <= SAME_COLOR else ""
