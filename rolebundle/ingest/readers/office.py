"""What office formats share: one walker with a table of elements for each format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import notation
from rolebundle.ingest.readers.elements import integer_in, local_name
from rolebundle.ingest.readers.notation import marked, written
from rolebundle.ingest.readers.package import Package, TextBlocks, hidden_kind, row_line
from rolebundle.scan.hidden_style import WHITE
from rolebundle.text.decoding import one_line
from rolebundle.text.tables import MAX_HEADER_ROW, names_columns

Look = Mapping[str, Any]
"""What is known of a text: ``color``, ``size`` in points, ``fill`` (the color behind it),
``script`` (a place of notation.py), whether it is ``struck`` out or ``hidden``, and ``away``, the
kind of finding if something around it hides it; of a paragraph ``style`` (a name in lower case),
``level`` of a heading and ``label`` in a list."""
Action = Callable[[Any, Any, Look], str | None]
"""What a walk does with an element inside of a paragraph; returns its visible text."""

_SPACE = re.compile(r"[ \t\r\n]+")
# Word shows these choices; others are replaced by their fallback.
_KNOWN_CHOICES = re.compile(r"(?:w(?:p|ps|pg|pc|pi)|w(?:p)?1\d\w*|cx\d*|a14|am3d|aink|m|p1\d)")
_CODE_STYLES = frozenset(
    ("code", "source code", "html preformatted", "preformatted text", "plain text", "macro")
)
_CONTENTS = re.compile(r"toc \d|table of figures")
_WORD = re.compile(r"[^\W\d_]{2}|(?:\d\D*){5}")  # no page number
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
_MAX_REPEATED = 100
_GROUP_CHARS = 1_000
MAX_COLUMNS = 16_384
HIDDEN: Look = {"hidden": True}
_MAX_EMPTY_CELLS = 100


Cell = tuple[int, str, bool]
"""The column of a cell, from 1; what it shows; and whether that is a text and no number or date."""


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
    HAS_CHART_DATA = True
    """Whether the numbers of a chart are not those of a sheet that is read."""
    IS_MIXED = False
    """Whether all text between tags is text of the document."""
    STREAMED: ClassVar[tuple[str, ...]] = ()
    """The elements of the main part that are read one by one, so that the tree stays small."""
    BODIES: ClassVar[frozenset[str]] = frozenset()
    """The elements, with namespaces, whose children these are."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.blocks = TextBlocks(package.name, package.path)
        self.relations: Mapping[str, tuple[str, str]] = {}
        self.left_out = Counter[str]()
        self.notes: list[str] = []
        self.top: Look = {}
        self._later: list[Iterable[Piece]] = []
        self._seen: set[str] = set()
        self._initial = ""
        self.pictures: dict[str, str] = {}
        """The texts of the pictures that were read, by the names of their members."""
        self._note_count = 0
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
        for piece, look, rows in pieces:
            text, self._initial = self._initial + piece, ""
            label, style, words = look.get("label", ""), look.get("style", ""), text.split()
            if look.get("is_initial"):
                self._initial = text.strip()
            elif rows:
                self._add_table(rows, anchor)
            elif not (words or _is_number(label, look)) or _CONTENTS.fullmatch(style):
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
        self,
        number: int,
        shapes: Iterable[tuple[bool, list[Piece]]],
        notes: Sequence[str],
        footer: Sequence[str] = (),
    ) -> None:
        """Add a slide. It has a heading, so that it is not below that of another one.

        Args:
            number: its number, from 1.
            shapes: for each whether it is a title, and what it contains.
            notes: the paragraphs of the speaker notes.
            footer: its footer, date and number. A number alone is no slide.
        """
        title, pieces = "", list[Piece]()
        for is_title, found in shapes:
            if is_title and not title:
                title = " ".join(piece.text for piece in found).strip()
            else:
                pieces += found
        anchor = f"slide {number}"
        has_text = any(piece.rows or piece.text.strip() for piece in pieces)
        if title or notes or has_text or any(map(_WORD.search, footer)):
            self.blocks.heading(title or f"Slide {number}", 1, anchor, is_title=bool(title))
            self.add([*pieces, Piece(" | ".join(footer))], anchor)
        if notes:
            anchor += ", speaker notes"
            self.blocks.heading("Speaker notes", 2, anchor, is_title=False)
            self.add(map(Piece, notes), anchor)

    def unseen(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """What a layout or master shows, without what a slide before has shown."""
        for piece in pieces:
            text = piece.text.strip()
            if piece.rows or text not in self._seen:
                self._seen.add(text)
                yield piece

    def page_margins(self, elements: Iterable[Any]) -> None:
        """Add the texts at the head and foot of pages, each once; none if it is a page number."""
        lines = (line for part in elements for line in self.lines(self.pieces(part, {})))
        texts = dict.fromkeys(map(one_line, lines))
        if any(map(_WORD.search, texts)):
            self.blocks.heading("Page header and footer", 1, is_title=False)
            self.blocks.add("paragraph", "\n".join(texts))

    def document(self, properties: Mapping[str, Any]) -> ParsedDocument:
        """The document that was read."""
        notes = [f"{kind} left out: {count}" for kind, count in self.left_out.items() if count]
        return self.blocks.document(properties, [*notes, *self.notes])

    # From elements to pieces

    def pieces(self, element: Any, look: Look) -> Iterator[Piece]:
        """The visible paragraphs and tables of an element; boxes and notes follow their anchor."""
        name = local_name(element)
        if name in PARAGRAPHS:
            look = self.look(element, look)
            yield Piece(written(self.inline(element, look)), look)
        elif name in _TABLES:
            yield Piece(rows=self._rows_of(element, self.look(element, look)))
        elif action := self.ACTIONS.get(name):
            yield Piece(written(action(self, element, look) or ""))
        else:
            for child in children(element):
                yield from self.pieces(child, look)
        later, self._later = self._later, []
        for pieces in later:
            yield from pieces

    def later(self, pieces: Iterable[Piece]) -> None:
        """Add pieces behind the paragraph that is being read."""
        self._later.append(pieces)

    def box(self, element: Any, look: Look) -> None:
        """Add a box with text behind the paragraph that is being read."""
        inherited = {key: look[key] for key in _INHERITED_BY_BOXES if key in look}
        self.later(self.pieces(element, inherited))

    def inline(self, element: Any, look: Look) -> str:
        """The visible text of a paragraph, or of a part of it."""
        text = self.text(element.text, look) if self.IS_MIXED else ""
        for child in children(element):
            name = local_name(child)
            if name in _BLOCKS:
                self.box(child, look)
            elif action := self.ACTIONS.get(name):
                text += action(self, child, look) or ""
            else:
                text += self.inline(child, look)
            if self.IS_MIXED:
                text += self.text(child.tail, look)
        return text

    def text(self, text: str | None, look: Look) -> str:
        """A text, if it is visible. If not, it is added to what is hidden."""
        if not text:
            return ""
        background = look.get("fill", WHITE)
        kind = hides_all(look) or hidden_kind(look.get("color"), background, look.get("size"))
        if kind:
            self.blocks.hide(kind, text)
            return ""
        text = _SPACE.sub(" ", text) if self.IS_MIXED else text
        return marked(text, look.get("script", ""), is_struck=look.get("struck", False))

    def target(self, relation: str | None) -> str:
        """The name of the member that a relation of the part names; empty if there is none."""
        return self.relations.get(relation or "", ("", ""))[1]

    def note(self, note: Any, look: Look, mark: str = "") -> str:
        """The mark of a note, whose text follows the paragraph; a number if it is not given."""
        if kind := hides_all(look):
            self.blocks.hide(kind, all_text(note))
            return ""
        self._note_count += not mark
        label = f"[{mark or self._note_count}]"
        self.later(self._note_pieces(label, note))
        return label

    def _note_pieces(self, label: str, note: Any) -> Iterator[Piece]:
        # The relations of the part that contains the notes are not read.
        relations, self.relations = self.relations, {}
        words = " ".join(self.lines(self.pieces(note, {}))).split()
        self.relations = relations
        yield Piece(" ".join([label, *words]) if words else "")

    def lines(self, pieces: Iterable[Piece]) -> Iterator[str]:
        """The lines of some pieces, one for each paragraph or row."""
        for text, look, rows in pieces:
            label = look.get("label", "")
            if text.strip() or _is_number(label, look):
                yield f"{label} {text}".strip()
            yield from (", ".join(filter(None, row)) for row in rows if any(row))

    def _rows_of(self, table: Any, look: Look) -> list[list[str]]:
        rows = table.iter(*(f"{{*}}{name}" for name in _ROWS))
        return [self.row(row, look) for row in rows if self._table_of(row) is table]

    def row(self, row: Any, look: Look) -> list[str]:
        """The visible text of the cells of a row."""
        return [text for _, text, _ in self.cells(row, self.look(row, look))]

    def cells(self, row: Any, look: Look) -> list[Cell]:
        """The cells of a row that has a look."""
        cells: list[Cell] = []
        column = 1
        covered = _span(row.find("{*}trPr/{*}gridBefore"))
        for element in row.iter(*_CELLS):
            if next(element.iterancestors(row.tag)) is row:
                # Word has no cells for the columns that another one covers.
                cells += [(column, "", True)] * covered
                covered = _span(element.find("{*}tcPr/{*}gridSpan")) - 1
                text = self.cell(element, look)
                is_text = element.get(_VALUE_TYPE, "string") == "string"
                repeated = integer_in(element.get(REPEATED), 1)
                # The cells to the right of a sheet's last column are one that is repeated.
                count = min(repeated, _MAX_REPEATED)
                self.left_out["repeated cells"] += (repeated - count) * bool(text.strip())
                cells += [(at, text, is_text) for at in range(column, column + count)]
                column += repeated
        return cells

    def cell(self, cell: Any, look: Look) -> str:
        """The visible text of a cell."""
        look = self.look(cell, look)
        pieces = (piece for child in children(cell) for piece in self.pieces(child, look))
        return "\n".join(self.lines(pieces))


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
        self._chars = self._count = self._last = 0
        self._has_numbers = self._is_begun = False
        self._walk.left_out["hidden sheets"] += not is_shown

    def hide_columns(self, first: int, last: int) -> None:
        """Hide some columns, before the first row is added."""
        self._hidden_columns.update(range(max(first, 1), min(last, MAX_COLUMNS) + 1))

    def add(self, number: int, cells: Sequence[Cell], *, is_hidden: bool) -> None:
        """Add a row.

        Args:
            number: its number, from 1.
            cells: its cells; blank ones may be missing.
            is_hidden: whether it is hidden.
        """
        filled = [cell for cell in sorted(cells) if cell[1].strip()]
        is_hidden |= not self._is_shown
        columns = self._hidden_columns
        shown = [cell for cell in filled if not is_hidden and cell[0] not in columns]
        concealed = [text for at, text, _ in filled if is_hidden or at in columns]
        self._walk.left_out["hidden cells"] += len(concealed)
        self._walk.blocks.hide("hidden_cells", " | ".join(concealed))
        line = row_line(self._aligned(shown))
        if not line:
            return
        is_text = [cell[2] for cell in shown]
        self._count += 1
        # A row of texts is the header of a table: at the top, or below an empty row if there were
        # numbers above it.
        is_top = self._count <= MAX_HEADER_ROW and names_columns(line, self._header)
        is_other = self._has_numbers and number > self._last + 1
        if (is_top or is_other) and len(is_text) > 1 and all(is_text):
            if is_other:
                self.end_group()
            self._header, self._has_numbers = line, False
        elif self._chars + len(line) > _GROUP_CHARS or (
            self._chars > _GROUP_CHARS // 4
            and blake2b(line.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] < 16
        ):
            self.end_group()
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

    def end_group(self) -> None:
        """Add the rows that were read since the last group."""
        if not self._rows:
            return
        first, last = self._rows[0][0], self._rows[-1][0]
        rows = f"row {first}" if first == last else f"rows {first}-{last}"
        anchor = f"sheet {self._name}, {rows}"
        if not self._is_begun:
            self._walk.blocks.heading(self._name, 1, anchor, is_title=False)
        self._is_begun = True
        text = "\n".join(line for _, line in self._rows)
        self._walk.blocks.add("table", text, anchor, self._header)
        self._walk.blocks.end_block()
        self._rows, self._chars = [], 0


def style_looks(
    elements: Mapping[Any, Any], parent_of: Callable[[Any], Any], own_look: Callable[[Any], Look]
) -> Callable[[Any], Look]:
    """A function that says what a style and those on which it is based set.

    Args:
        elements: the styles by a key.
        parent_of: the key of the style on which a style is based.
        own_look: what a style itself sets.
    """

    @cache
    def look_of(key: Any) -> Look:
        look: Look = {}
        chain = set()
        while key in elements and key not in chain:
            chain.add(key)
            look = {**own_look(elements[key]), **look}
            key = parent_of(elements[key])
        return look

    return look_of


def children(element: Any) -> Any:
    """The elements inside of an element; of an alternative those that Word shows."""
    if local_name(element) != "AlternateContent":
        return element
    for option in element:
        required = option.get("Requires", "").split()
        if local_name(option) == "Fallback" or all(map(_KNOWN_CHOICES.fullmatch, required)):
            return option
    return ()


def _span(item: Any) -> int:
    """How many columns a property of Word covers; 0 or less if it is missing or none."""
    values = () if item is None else item.attrib.values()
    return min(max((integer_in(value) for value in values), default=0), _MAX_REPEATED)


def hides_all(look: Look) -> str:
    """How a look hides everything, whatever its colors and size; empty if it does not."""
    is_hidden = look.get("hidden") or look.get("vanish")
    return look.get("away") or ("invisible_element" if is_hidden else "")


def _is_number(label: str, look: Look) -> bool:
    """Whether a paragraph shows a number, even if it has no text."""
    return any(map(str.isalnum, label)) and not look.get("level") and not hides_all(look)


def all_text(element: Any) -> str:
    """The text of an element, visible or not."""
    paragraphs = element.iter("{*}p", "{*}h")
    return " ".join("".join(part.itertext()) for part in paragraphs) or "".join(element.itertext())


def script(rise: float) -> Look:
    """The look of characters that are raised, or lowered by a negative number."""
    return {"script": "raised" if rise > 0 else "lowered" if rise < 0 else ""}


# Actions


def mark(text: str) -> Action:
    """An element that stands for a text."""
    return lambda walk, element, look: "" if hides_all(look) else text


skip = mark("")
"""An element without text of the document."""


def hides(kind: str) -> Action:
    """An element whose text people do not see."""

    def action(walk: Walk, element: Any, look: Look) -> str:
        look = {**look, "away": kind}
        walk.left_out["comments"] += kind == "comment"
        if not walk.IS_MIXED:
            walk.text(element.text, look)
        return walk.inline(element, look)

    return action


def ruby(base: str, reading: str) -> Action:
    """An element with a word and its reading, each in elements of these names."""

    def action(walk: Walk, element: Any, look: Look) -> str:
        parts = (element.iterfind(f"{{*}}{name}") for name in (base, reading))
        return notation.ruby(*("".join(walk.inline(one, look) for one in part) for part in parts))

    return action


def text_of(walk: Walk, element: Any, look: Look) -> str:
    """An element that contains text only."""
    return walk.text(element.text, look)


def alt_text(walk: Walk, element: Any, look: Look) -> None:
    """An element with the description of a picture."""
    for key in ("descr", "title"):
        walk.blocks.hide("alt_text", element.get(key, ""))
