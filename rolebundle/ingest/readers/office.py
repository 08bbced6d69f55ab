"""What office formats share: archives with limits, XML, and blocks with styles."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from math import isfinite
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote

from lxml import etree

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers.base import Reader, ReaderOptions, damaged, is_own_title
from rolebundle.scan.finding import HiddenPart
from rolebundle.scan.hidden_style import SAME_COLOR, WHITE, Color, color
from rolebundle.text.decoding import clean, cleaned_note, with_newlines

_MAX_MEMBERS = 20_000
_MAX_EXPANDED = 400_000_000
"""All that is read of one file, in bytes. XML expands to ten or twenty times its packed size."""
_MAX_RATIO = 200
_MIN_RATIO_BYTES = 20_000_000
"""A member up to this size may have any ratio: a table of zeros is no bomb."""
_MAX_TREE = 16_000_000
"""The XML that is in memory as a tree at one time, in bytes.

A tree is about eight times as large, and thirty times if its elements are empty.
"""
_READ_BYTES = 1 << 16
_MAX_INTEGER = 2_000_000_000

_CENTRAL_ENTRY = b"PK\x01\x02"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
# "Strict" documents differ from the usual ones only in the names of their namespaces.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ON = frozenset(("1", "true"))
"""How an attribute says yes."""
_PARSING: dict[str, Any] = {
    **dict.fromkeys(("remove_comments", "remove_pis", "no_network"), True),
    **dict.fromkeys(("resolve_entities", "load_dtd", "huge_tree", "collect_ids"), False),
}


def package_reader(
    name: str, version: int, document: Callable[[Package], ParsedDocument]
) -> Reader:
    """The reader of files that are archives of XML. Each file is one document.

    Args:
        name: the name of the reader, also for the codes of errors.
        version: see :class:`rolebundle.ingest.readers.base.Reader`.
        document: makes the document of an archive.
    """

    def read(data: bytes, path: str, _options: ReaderOptions) -> Iterator[ParsedDocument]:
        """The document of a file.

        Raises:
            DocumentError: ``encrypted_NAME``, ``NAME_too_large`` or ``unreadable_NAME``.
        """
        try:
            yield document(Package(data, path, name))
        except DocumentError:
            raise
        except Exception as error:  # broken archives and documents raise nearly any exception
            raise damaged(f"unreadable_{name}", path, error) from error

    return Reader(name, version, read)


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
        self.path = path
        self._name = name
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

    def encrypted(self) -> DocumentError:
        """The error for a document that requires a password or a licence."""
        return DocumentError(
            f"encrypted_{self._name}",
            f"{self.path}: it is encrypted and requires a password",
            "save a copy without a password, or exclude it",
        )

    def too_large(self, reason: str) -> DocumentError:
        """The error for a document that exceeds a limit."""
        return DocumentError(
            f"{self._name}_too_large", f"{self.path}: {reason}", "split it, or exclude it"
        )

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
                joined(folder, relation.get("Target", "")),
            )
            for relation in self.parse(posixpath.join(folder, "_rels", f"{file_name}.rels"))
            if relation.get("TargetMode") != "External"
        }

    def _chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member in pieces; none if there is no member with this name.

        Raises:
            DocumentError: ``NAME_too_large`` or ``encrypted_NAME``.
        """
        self._kept = size = 0
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
                yield data if size else _STRICT.sub(_USUAL, data)
                size += len(data)
                if size > max(_MIN_RATIO_BYTES, info.compress_size * _MAX_RATIO):
                    raise self.too_large(f"a member expands more than {_MAX_RATIO} times")


def joined(folder: str, target: str) -> str:
    """The name of the member that ``target`` points to from ``folder``, without a fragment."""
    target = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")


def number_in(text: str | None, default: float) -> float:
    """The number that a text is; ``default`` if it is none, as with a unit."""
    try:
        number = float(text or "")
    except ValueError:
        return default
    return number if isfinite(number) else default


def integer_in(text: str | None, default: int) -> int:
    """The whole number that a text is, up to two billion; ``default`` if it is none."""
    return int(min(max(number_in(text, default), -_MAX_INTEGER), _MAX_INTEGER))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; empty for an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


# Core properties

_TEMPLATE_DATES = frozenset(("2013-12-23T23:15:00Z", "2013-01-27T09:15:58Z"))
"""Dates of the templates of python-docx and python-pptx, which their documents keep."""
_LIBRARIES = frozenset(("python-docx", "openpyxl", "steve canny", "unknown", "unknown author"))


def properties_of(root: Any) -> dict[str, Any]:
    """Title, author, date and language from the elements below ``root``.

    All formats call them ``title``, ``creator``, ``modified`` or ``date``, and ``language``.
    """
    texts: dict[str, list[str]] = {}
    for element in root:
        is_change = element.get("property") == "dcterms:modified"  # of an e-book
        if text := " ".join((element.text or "").split()):
            name = "modified" if is_change else local_name(element)
            texts.setdefault(name, []).append(text)
    creators = texts.get("initial-creator") or texts.get("creator") or ()
    dates = (*texts.get("modified", ()), *texts.get("date", ()))
    found = {
        "title": next(filter(is_own_title, texts.get("title", ())), ""),
        "authors": [author for author in creators if author.lower() not in _LIBRARIES],
        "updated_at": next(filter(_is_own_date, dates), ""),
        "language": next(iter(texts.get("language", ())), ""),
    }
    return {key: value for key, value in found.items() if value}


def _is_own_date(text: str) -> bool:
    """Whether ``text`` is an ISO 8601 date or time that is not that of a template."""
    try:
        return text not in _TEMPLATE_DATES and datetime.fromisoformat(text).year >= 1970
    except ValueError:
        return False


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
        too_large: makes the error for a document with too much text.
    """

    def __init__(self, too_large: Callable[[str], DocumentError]) -> None:
        self._too_large = too_large
        self._blocks: list[Block] = []
        self._lines: list[str] = []
        self.title = ""
        """The first heading of the highest level that can be the title; empty if there is none."""
        self._title_level = 0
        self._kind: BlockKind | None = None
        self._pending: list[str] = []
        self._anchor = self._header = ""
        self._chars = self._replaced = self._hidden_chars = 0
        self._hidden: dict[tuple[str, bool, bool], list[str]] = {}

    def heading(self, text: str, level: int, anchor: str = "", *, is_title: bool = True) -> None:
        """Add a heading; white space is collapsed.

        Args:
            text: the heading.
            level: its level, from 1; 0 for a title of the document.
            anchor: where it is in the document.
            is_title: whether it can be the title of the document. A name of a sheet cannot.
        """
        words = " ".join(text.split())
        if words:
            self._count(len(words))
            self.end_block()
            if is_title and (not self.title or level < self._title_level):
                self.title, self._title_level = words, level
            self._store("heading", words, anchor, level=min(max(level, 1), 6))

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

    def beginning(self) -> str:
        """The first lines of the text."""
        return "\n".join(line[:1000] for line in self._lines[:60])

    def table(self, rows: Iterable[Sequence[str]], anchor: str = "") -> None:
        """Add a table, one line for each row. Its first row is the header row."""
        lines = []
        for row in rows:
            if line := row_line(row):
                self._count(len(line))
                lines.append(line)
        self.end_block()
        self.add("table", "\n".join(lines), anchor, lines[0] if len(lines) > 1 else "")
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

    def document(self, properties: Mapping[str, Any], notes: Iterable[str] = ()) -> ParsedDocument:
        """The document with all blocks.

        Args:
            properties: metadata that the document stores about itself.
            notes: what was left out, for the report.
        """
        self.end_block()
        inferred = dict(properties)
        if title := inferred.get("title") or self.title:
            inferred["title"] = title
        return ParsedDocument(
            blocks=tuple(self._blocks),
            inferred=inferred,
            lines=self._lines,
            notes=(*cleaned_note(self._replaced), *notes),
            hidden=tuple(self._hidden_parts()),
        )

    def _hidden_parts(self) -> Iterator[HiddenPart]:
        """The hidden texts of each kind as few parts, which the scan searches one by one."""
        for (kind, is_usual, is_kept), texts in self._hidden.items():
            joined = "\n".join(texts)
            is_labelled = (
                not is_usual and len(joined.split(None, _MIN_LABELLED_WORDS)) >= _MIN_LABELLED_WORDS
            )
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
        text, replaced = clean(text)
        self._replaced += replaced
        if self._lines:
            self._lines.append("")
        start = len(self._lines) + 1
        self._lines += text.split("\n")
        block = Block(kind, text, start, len(self._lines), level, text if level else "")
        self._blocks.append(block._replace(anchor=anchor, header=header))


def row_line(cells: Sequence[str]) -> str:
    """A row of a table as one line; empty if all of its cells are."""
    words = [" ".join(cell.split()) for cell in cells]
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


Look = Mapping[str, Any]
"""What is known of a text: ``color``, ``size`` in points, ``fill`` (the color behind it),
whether it is ``hidden``, and ``away``, the kind of finding if something around it hides it; of a
paragraph ``style`` (a name in lower case), ``level`` of a heading and ``label`` in a list."""
Action = Callable[[Any, Any, Look, list[str]], None]
"""What a walk does with an element inside of a paragraph; visible text is added to the list."""

_SPACE = re.compile(r"[ \t\r\n]+")
# Word shows these choices; others are replaced by their fallback.
_KNOWN_CHOICES = re.compile(r"(?:w(?:p|ps|pg|pc|pi)|w(?:p)?1\d\w*|cx\d*|a14|am3d|aink|v|m|p1\d)")
_UNSHOWN = re.compile(
    r"(?:^|/)(?:(?:modern)?comments?[^/]*|threadedcomments?/[^/]+|docprops/custom)\.xml$",
    re.IGNORECASE,
)
_CODE_STYLES = frozenset(
    ("code", "source code", "html preformatted", "preformatted text", "plain text", "macro")
)
_CONTENTS = re.compile(r"toc \d|table of figures")
_WORD = re.compile(r"[^\W\d_]{2}")
_INHERITED_BY_BOXES = ("fill", "away")
# The names of elements in all formats, without their namespaces.
PARAGRAPHS = frozenset(("p", "h"))
_TABLES = ("tbl", "table")
_BLOCKS = PARAGRAPHS | {"list", *_TABLES}
"""Paragraphs, tables and lists: what a text box contains."""
_ROWS = ("tr", "table-row")
_CELLS = ("{*}tc", "{*}table-cell", "{*}covered-table-cell")
REPEATED = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}number-columns-repeated"
"""How many columns a cell or column of OpenDocument stands for."""
_VALUE_TYPE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}value-type"
_MAX_CELL_CHARS = 1_800
_MAX_CELLS = 1_000_000
_MAX_REPEATED, _MAX_BLANK = 100, 5
_GROUP_CHARS = 1_000
_MAX_HEADER_ROW = 10
_MAX_COLUMNS = 16_384
_MAX_EMPTY_CELLS = 100


class Piece(NamedTuple):
    """A paragraph with its look, or the rows of a table."""

    text: str = ""
    look: Look = MappingProxyType({})
    rows: Sequence[Sequence[str]] = ()


class Walk:
    """Reads the parts of a document into blocks, and collects what it hides.

    A format sets what is done with its elements.
    """

    ACTIONS: ClassVar[Mapping[str, Action]] = {}
    """What is done with elements. Elements that are not here are entered."""
    IS_MIXED = False
    """Whether all text between tags is text of the document."""
    STREAMED: ClassVar[tuple[str, ...]] = ()
    """The elements of the main part that are read one by one, so that the tree stays small."""
    BODIES: ClassVar[frozenset[str]] = frozenset()
    """The elements, with namespaces, whose children these are."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.blocks = TextBlocks(package.too_large)
        self.relations: Mapping[str, tuple[str, str]] = {}
        self.left_out = Counter[str]()
        self.top: Look = {}
        self._boxes: list[tuple[Any, Look]] = []
        self._notes: list[tuple[str, Any]] = []
        self._note_count = self._cell_count = 0
        self._table: Any = None
        self._table_look: Look = {}
        self._rows: list[Sequence[str]] = []

    # What a format defines

    def look(self, element: Any, look: Look) -> Look:
        """The look of a paragraph, table, row or cell in something that has ``look``."""
        return look

    def start_part(self, element: Any) -> None:
        """Read a streamed element that is outside of the body."""

    # The main part

    def read_stream(self, part: str) -> None:
        """Read a part, one block, or row of a table, at a time."""
        for element in self.package.stream(part, *(f"{{*}}{name}" for name in self.STREAMED)):
            name, parent = local_name(element), element.getparent()
            table = self._table_of(element) if name in _ROWS else None
            if table is not None and table.getparent().tag in self.BODIES:
                if table is not self._table:
                    self._table, self._table_look = table, self.look(table, self.top)
                    self.start_table(table, self._table_look)
                self.top_row(element, self._table_look)
                self.package.release(element)
            elif parent is not None and parent.tag in self.BODIES:
                if name in _TABLES:
                    self.end_table()
                else:
                    self.block(element)
                self.package.release(element)
            else:
                self.start_part(element)

    def block(self, element: Any) -> None:
        """Read an element of the body that is no table."""
        self.add(self.pieces(element, self.top))

    def start_table(self, table: Any, look: Look) -> None:
        """Begin a table of the body."""

    def top_row(self, row: Any, look: Look) -> None:
        """Read a row of a table of the body."""
        self._rows.append(self.row(row, look))

    def end_table(self) -> None:
        """End the table whose rows were read."""
        rows, self._rows, self._table = self._rows, [], None
        self.add([Piece(rows=rows)])

    def _table_of(self, element: Any) -> Any:
        return next(element.iterancestors(*(f"{{*}}{name}" for name in _TABLES)), None)

    # From pieces to blocks

    def add(self, pieces: Iterable[Piece], anchor: str = "") -> None:
        """Add the blocks of some pieces."""
        for text, look, rows in pieces:
            label, style, words = look.get("label", ""), look.get("style", ""), text.split()
            if rows:
                self._add_table(rows, anchor)
            elif not words or _CONTENTS.fullmatch(style):
                continue
            elif style == "title" or look.get("level"):
                number = "" if label.strip() == "-" else label
                level = 0 if style == "title" else look["level"]
                self.blocks.heading(f"{number} {text}", level, anchor)
            elif label:
                self.blocks.add("list", f"{label} {' '.join(words)}", anchor)
            else:
                self.blocks.add("code" if style in _CODE_STYLES else "paragraph", text, anchor)

    def _add_table(self, rows: Sequence[Sequence[str]], anchor: str) -> None:
        cells = [cell for row in rows for cell in row]
        is_narrow = max(map(len, rows)) < 2
        if not anchor and (is_narrow or max(map(len, cells), default=0) > _MAX_CELL_CHARS):
            # It only places paragraphs on the page.
            self.add(map(Piece, cells))
        else:
            self.blocks.table(rows, anchor)

    def slide(
        self, number: int, shapes: Iterable[tuple[bool, list[Piece]]], notes: Sequence[str]
    ) -> None:
        """Add a slide. It has a heading, so that it is not below that of another one.

        Args:
            number: its number, from 1.
            shapes: for each whether it is a title, and what it contains.
            notes: the paragraphs of the speaker notes.
        """
        title, pieces = "", list[Piece]()
        for is_title, found in shapes:
            if is_title and not title:
                title = " ".join(piece.text for piece in found).strip()
            else:
                pieces += found
        anchor = f"slide {number}"
        if title or notes or any(piece.rows or piece.text.strip() for piece in pieces):
            self.blocks.heading(title or f"Slide {number}", 1, anchor, is_title=bool(title))
            self.add(pieces, anchor)
        if notes:
            anchor += ", speaker notes"
            self.blocks.heading("Speaker notes", 2, anchor, is_title=False)
            self.add(map(Piece, notes), anchor)

    def page_margins(self, elements: Iterable[Any]) -> None:
        """Add the texts at the head and foot of pages, each once, without page numbers."""
        lines = [line for part in elements for line in self.lines(self.pieces(part, {}))]
        texts = dict.fromkeys(" ".join(line.split()) for line in lines if _WORD.search(line))
        if texts:
            self.blocks.heading("Page header and footer", 1, is_title=False)
            self.blocks.add("paragraph", "\n".join(texts))

    def document(self, properties: Mapping[str, Any]) -> ParsedDocument:
        """The document that was read."""
        notes = [f"{kind} left out: {count}" for kind, count in self.left_out.items() if count]
        return self.blocks.document(properties, notes)

    # From elements to pieces

    def pieces(self, element: Any, look: Look) -> Iterator[Piece]:
        """The visible paragraphs and tables of an element; boxes and notes follow their anchor."""
        name = local_name(element)
        parts: list[str] = []
        if name in PARAGRAPHS:
            look = self.look(element, look)
            self.inline(element, look, parts)
            yield Piece("".join(parts), look)
        elif name in _TABLES:
            yield Piece(rows=self._rows_of(element, self.look(element, look)))
        elif name in self.ACTIONS:
            self.ACTIONS[name](self, element, look, parts)
            yield Piece("".join(parts))
        else:
            for child in children(element):
                yield from self.pieces(child, look)
        boxes, self._boxes = self._boxes, []
        notes, self._notes = self._notes, []
        for box, box_look in boxes:
            yield from self.pieces(box, box_look)
        for label, note in notes:
            words = " ".join(self.lines(self.pieces(note, {}))).split()
            yield Piece(" ".join([label, *words]) if words else "")

    def inline(self, element: Any, look: Look, parts: list[str]) -> None:
        """Add the visible text of a paragraph, or of a part of it."""
        if self.IS_MIXED:
            self.text(element.text, look, parts)
        for child in children(element):
            name = local_name(child)
            if name in _BLOCKS:
                box_look = {key: look[key] for key in _INHERITED_BY_BOXES if key in look}
                self._boxes.append((child, box_look))
            elif action := self.ACTIONS.get(name):
                action(self, child, look, parts)
            else:
                self.inline(child, look, parts)
            if self.IS_MIXED:
                self.text(child.tail, look, parts)

    def text(self, text: str | None, look: Look, parts: list[str]) -> None:
        """Add a text to what is visible, or to what is hidden."""
        if not text:
            return
        background = look.get("fill", WHITE)
        kind = hides_all(look) or hidden_kind(look.get("color"), background, look.get("size"))
        if kind:
            self.blocks.hide(kind, text)
        else:
            parts.append(_SPACE.sub(" ", text) if self.IS_MIXED else text)

    def note(self, note: Any, look: Look, parts: list[str]) -> None:
        """Add the number of a note, whose text follows the paragraph."""
        if kind := hides_all(look):
            self.blocks.hide(kind, all_text(note))
        else:
            self._note_count += 1
            parts.append(f"[{self._note_count}]")
            self._notes.append((parts[-1], note))

    def lines(self, pieces: Iterable[Piece]) -> Iterator[str]:
        """The lines of some pieces, one for each paragraph or row."""
        for text, look, rows in pieces:
            if text.strip():
                yield f"{look.get('label', '')} {text}".strip()
            yield from (", ".join(filter(None, row)) for row in rows if any(row))

    def _rows_of(self, table: Any, look: Look) -> list[list[str]]:
        rows = table.iter(*(f"{{*}}{name}" for name in _ROWS))
        return [self.row(row, look) for row in rows if self._table_of(row) is table]

    def row(self, row: Any, look: Look) -> list[str]:
        """The visible text of the cells of a row."""
        return [cell.text for cell in self.cells(row, self.look(row, look))]

    def cells(self, row: Any, look: Look) -> list[Cell]:
        """The cells of a row that has a look.

        Raises:
            DocumentError: all tables have too many.
        """
        cells: list[Cell] = []
        column = 1
        for element in row.iter(*_CELLS):
            if next(element.iterancestors(row.tag)) is row:
                text = self.cell(element, look)
                is_text = element.get(_VALUE_TYPE, "string") == "string"
                repeated = integer_in(element.get(REPEATED), 1)
                # The cells to the right of a sheet's last column are one that is repeated.
                count = min(repeated, _MAX_REPEATED if text.strip() else _MAX_BLANK)
                cells += [Cell(at, text, is_text) for at in range(column, column + count)]
                column += repeated
        self._cell_count += sum(bool(cell.text) for cell in cells)
        if self._cell_count > _MAX_CELLS:
            raise self.package.too_large(f"more than {_MAX_CELLS:,} cells")
        return cells

    def cell(self, cell: Any, look: Look) -> str:
        """The visible text of a cell."""
        look = self.look(cell, look)
        return "\n".join(
            line for child in children(cell) for line in self.lines(self.pieces(child, look))
        )


class Cell(NamedTuple):
    """What a cell shows, its column from 1, and whether it is a text and no number or date."""

    column: int
    text: str
    is_text: bool


class Sheet:
    """Groups the rows of a sheet into blocks whose anchor names their rows.

    A group ends after about a thousand characters, or at a row whose hash says so. So an insertion
    does not move the ends of all groups below it.

    Args:
        walk: gets the blocks, and what hidden rows and columns contain.
        name: the name of the sheet.
        is_shown: whether people see the sheet.
    """

    def __init__(self, walk: Walk, name: str, *, is_shown: bool) -> None:
        self._walk, self._name, self._is_shown = walk, name, is_shown
        self._hidden_columns: set[int] = set()
        self._header = ""
        self._rows: list[tuple[int, str]] = []
        self._chars = self._count = self._last = self._widest = 0
        self._has_numbers = self._is_begun = False
        self._walk.left_out["hidden sheets"] += not is_shown

    def hide_columns(self, first: int, last: int) -> None:
        """Hide some columns, before the first row is added."""
        self._hidden_columns.update(range(max(first, 1), min(last, _MAX_COLUMNS) + 1))

    def add(self, number: int, cells: Sequence[Cell], *, is_hidden: bool) -> None:
        """Add a row.

        Args:
            number: its number, from 1.
            cells: its cells; blank ones may be missing.
            is_hidden: whether it is hidden.
        """
        cells = [cell for cell in cells if cell.text.strip()]
        self._widest = max(self._widest, *(cell.column for cell in cells), 0)
        self._walk.left_out["hidden rows"] += is_hidden and self._is_shown and bool(cells)
        shown: list[Cell] = []
        concealed: list[Cell] = []
        for cell in sorted(cells):
            hides = is_hidden or not self._is_shown or cell.column in self._hidden_columns
            (concealed if hides else shown).append(cell)
        self._walk.blocks.hide("hidden_cells", " | ".join(cell.text for cell in concealed))
        line = row_line(self._aligned(shown))
        if not line:
            return
        is_text = [cell.is_text for cell in shown]
        self._count += 1
        # A row of texts is the header of a table: at the top, or below an empty row if there were
        # numbers above it.
        is_top = not self._header and self._count <= _MAX_HEADER_ROW
        is_other = self._has_numbers and number > self._last + 1
        if (is_top or is_other) and len(is_text) > 1 and all(is_text):
            if is_other:
                self._end_group()
            self._header, self._has_numbers = line, False
        elif self._chars + len(line) > _GROUP_CHARS or (
            self._chars > _GROUP_CHARS // 4
            and blake2b(line.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] < 16
        ):
            self._end_group()
        self._has_numbers |= not all(is_text)
        self._last = number
        self._rows.append((number, line))
        self._chars += len(line) + 1

    def _aligned(self, cells: Sequence[Cell]) -> list[str]:
        """The texts of cells, with empty ones for the shown columns between them."""
        values: list[str] = []
        last = 0
        for column, text, _ in cells:
            between = range(last + 1, column)
            # A far cell is not far from its neighbours in a line of text.
            if len(values) + len(between) < _MAX_EMPTY_CELLS:
                values += ["" for at in between if at not in self._hidden_columns]
            values.append(text)
            last = column
        return values

    def end(self) -> None:
        """Add the last rows."""
        self._end_group()
        # Without those at the right of all cells, which many people hide.
        count = sum(column <= self._widest for column in self._hidden_columns)
        self._walk.left_out["hidden columns"] += count

    def _end_group(self) -> None:
        if not self._rows:
            return
        first, last = self._rows[0][0], self._rows[-1][0]
        rows = f"row {first}" if first == last else f"rows {first}-{last}"
        anchor = f"sheet {self._name}, {rows}"
        if not self._is_begun:
            self._walk.blocks.heading(self._name, 1, anchor, is_title=False)
        self._is_begun = True
        self._walk.blocks.add(
            "table", "\n".join(line for _, line in self._rows), anchor, self._header
        )
        self._walk.blocks.end_block()
        self._rows, self._chars = [], 0


@dataclass
class Styles:
    """The looks of the styles of a document.

    Args:
        elements: the styles by a key.
        parent_of: the key of the style on which a style is based.
        own_look: what a style itself sets.
    """

    elements: Mapping[Any, Any]
    parent_of: Callable[[Any], Any]
    own_look: Callable[[Any], Look]
    _looks: dict[Any, Look] = field(default_factory=dict)

    def look(self, key: Any) -> Look:
        """What a style and those on which it is based set."""
        chain: dict[Any, Any] = {}
        while key in self.elements and key not in self._looks and key not in chain:
            chain[key] = self.elements[key]
            key = self.parent_of(chain[key])
        look = self._looks.get(key, {})
        for below, element in reversed(chain.items()):
            look = self._looks[below] = {**look, **self.own_look(element)}
        return look


def children(element: Any) -> Any:
    """The elements inside of an element; of an alternative those that Word shows."""
    if local_name(element) != "AlternateContent":
        return element
    for option in element:
        required = option.get("Requires", "").split()
        if local_name(option) == "Fallback" or all(map(_KNOWN_CHOICES.fullmatch, required)):
            return option
    return ()


def hides_all(look: Look) -> str:
    """How a look hides everything, whatever its colors and size; empty if it does not."""
    is_hidden = look.get("hidden") or look.get("vanish")
    return look.get("away") or ("invisible_element" if is_hidden else "")


def all_text(element: Any) -> str:
    """The text of an element, visible or not."""
    paragraphs = element.iter("{*}p", "{*}h")
    return " ".join("".join(part.itertext()) for part in paragraphs) or "".join(element.itertext())


# Actions


def mark(text: str) -> Action:
    """An element that stands for a text."""

    def action(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
        parts += () if hides_all(look) else (text,)

    return action


def hides(kind: str) -> Action:
    """An element whose text people do not see."""

    def action(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
        look = {**look, "away": kind}
        if not walk.IS_MIXED:
            walk.text(element.text, look, parts)
        walk.inline(element, look, parts)

    return action


def skip(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
    """An element without text of the document."""


def text_of(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
    """An element that contains text only."""
    walk.text(element.text, look, parts)


def alt_text(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
    """An element with the description of a picture."""
    for key in ("descr", "title"):
        walk.blocks.hide("alt_text", element.get(key, ""))


def diagram(walk: Walk, element: Any, look: Look, parts: list[str]) -> None:
    """A diagram: one line for each of its points."""
    data = walk.relations.get(element.get(f"{RELATION}dm", ""), ("", ""))[1]
    points = walk.package.parse(data).iter("{*}pt")
    texts = (all_text(point) for point in points if point.get("type", "node") in {"node", "asst"})
    lines = "\n".join(filter(None, (" ".join(text.split()) for text in texts)))
    walk.text(lines and f"\n{lines}\n", look, parts)


# Office Open XML

Theme = Mapping[str, Color]
"""The colors of a theme by their names, such as ``accent1``."""


def main_part(walk: Walk, default: str) -> tuple[str, dict[str, Any]]:
    """The name of the main part, and the properties of the document.

    Args:
        walk: the reader; it gets comments and properties that people define, which none shows.
        default: the usual name of the main part.

    Raises:
        ValueError: there is no main part.
    """
    package = walk.package
    kinds = dict(package.relations("").values())
    main = kinds.get("officeDocument", default)
    if main not in package:
        raise ValueError(f"it has no {main}")
    for name in filter(_UNSHOWN.search, package.names()):
        walk.blocks.hide("comment", " ".join(package.parse(name).itertext()))
    return main, properties_of(package.parse(kinds.get("core-properties", "docProps/core.xml")))


def theme_of(package: Package, name: str) -> Theme:
    """The colors of the theme in the member ``name``."""
    return {
        local_name(entry): found
        for entry in next(package.parse(name).iter("{*}clrScheme"), ())
        for value in entry
        if (found := hex_color(value.get("lastClr") or value.get("val")))
    }


def hex_color(value: str | None) -> Color | None:
    """A color of six or, with the opacity first, eight hexadecimal digits."""
    return color(f"#{value[-6:].lower()}") if value and len(value) in {6, 8} else None


def fill_color(fill: Any, theme: Theme) -> Color | None:
    """The color of an ``a:solidFill``; ``None`` if it is not known, as of one that is changed."""
    for value in fill:
        name = value.get("val", "")
        found = theme.get(name) or hex_color(value.get("lastClr") or name) or color(name.lower())
        for change in value:
            if local_name(change) != "alpha":
                return None
            opacity = number_in(change.get("val"), 100_000) / 100_000
            found = found and found._replace(alpha=opacity)
        return found
    return None


def shape_fill(shape: Any, theme: Theme) -> tuple[bool, Color | None]:
    """Whether a shape is filled, and its color if it is known."""
    for part in shape.find("{*}spPr") if shape.find("{*}spPr") is not None else ():
        name = local_name(part)
        if name.endswith("Fill"):
            return name != "noFill", fill_color(part, theme) if name == "solidFill" else None
    style = shape.find("{*}style/{*}fillRef")
    if style is not None and style.get("idx", "0") != "0":
        return True, fill_color(style, theme)
    return False, None
