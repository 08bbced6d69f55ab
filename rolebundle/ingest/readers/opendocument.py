"""OpenDocument files, as of LibreOffice: texts, spreadsheets and presentations.

The content is read as a stream, so that only one paragraph, table row or slide is in memory as a
tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.extracted import SheetBlocks
from rolebundle.ingest.readers.office import (
    Action,
    Look,
    Piece,
    Walk,
    all_text,
    hides,
    hides_all,
    mark,
    skip,
)
from rolebundle.ingest.readers.opendocument_styles import (
    DRAW,
    FO,
    NAMES,
    PRESENTATION,
    STYLE,
    TABLE,
    TEXT,
    Styles,
    centimetres,
)
from rolebundle.ingest.readers.package import (
    Package,
    PackageReader,
    integer_in,
    local_name,
    properties_of,
)

_OFFICE = f"{{{NAMES}office:1.0}}"
_SVG = f"{{{NAMES}svg-compatible:1.0}}"
_INDEXES = (
    "table-of-content illustration-index table-index object-index user-index alphabetical-index"
    " bibliography"
).split()
_DRAWN = (
    "frame custom-shape g rect circle ellipse line connector polygon polyline path caption"
    " regular-polygon measure control"
).split()
_SURROUNDINGS = frozenset(("footer", "date-time", "page-number", "header"))
_MAX_REPEATED = 100
_MAX_COLUMNS = 20_000
_FAR = 100.0  # centimetres
_MIN_SIDE = 0.04


def _document(package: Package) -> ParsedDocument:
    # Not parsed: in old files its namespace is only declared in a DTD, which is not read.
    if b"encryption-data" in package.read("META-INF/manifest.xml"):
        raise package.encrypted()
    if "content.xml" not in package:
        raise ValueError("it has no content.xml")
    walk = _OpenDocument(package)
    walk.read_stream("content.xml")
    walk.page_margins(walk.headers_and_footers())
    meta = package.parse("meta.xml").find(f"{_OFFICE}meta")
    return walk.document(properties_of(() if meta is None else meta))


class _OpenDocument(Walk):
    """Reads the content of a document."""

    PARAGRAPHS = frozenset(("p", "h"))
    BLOCKS = frozenset(("p", "h", "list", "table"))
    TABLE, ROW = "table", "table-row"
    CELLS = frozenset(("table-cell", "covered-table-cell"))
    IS_MIXED = True
    STREAMED = (
        *("automatic-styles", "p", "h", "list", "table", "table-row", "page", "section"),
        *("tracked-changes", *_INDEXES, *_DRAWN),
    )
    BODIES = frozenset(
        _OFFICE + name for name in ("text", "spreadsheet", "presentation", "drawing")
    )

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self._root = package.parse("styles.xml")
        self._styles = Styles()
        self._styles.add(self._root)
        layout = next(self._root.iter(f"{STYLE}page-layout-properties"), None)
        self._size = [
            (None if layout is None else centimetres(layout.get(f"{FO}page-{side}"))) or _FAR
            for side in ("width", "height")
        ]
        self._pages = 0
        # Of the table whose rows are being read.
        self._sheet: SheetBlocks | None = None
        self._row_number = 0

    def start_part(self, element: Any) -> None:
        """Read the styles of the content."""
        if local_name(element) == "automatic-styles":
            self._styles.add(element)

    def headers_and_footers(self) -> Iterator[Any]:
        """The head and foot of the pages that a text uses."""
        used = self._styles.used_masters() | {"Standard", "Default"}
        for master in self._root.iter(f"{STYLE}master-page"):
            if master.get(f"{STYLE}name") in used and not self._sheet and not self._pages:
                for part in master:
                    is_margin = local_name(part).startswith(("header", "footer"))
                    if is_margin and part.get(f"{STYLE}display") != "false":
                        yield part

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        if element.tag.startswith(TABLE):
            own = dict(self._styles.look(name, element.get(f"{TABLE}style-name")))
            if name == self.TABLE:
                own["columns"] = _hidden_columns(element)
                # A template of a slide's table has colors that are not known here.
                own = {"fill": None, **own} if self._pages else own
            if name == "covered-table-cell":
                own["away"] = "invisible_element"
            return {**look, **own}
        style = element.get(f"{TEXT}style-name")
        own = {**self._styles.look("paragraph", style), "style": self._styles.base_name(style)}
        if name == "h" or own["style"] == "heading":
            own["level"] = integer_in(element.get(f"{TEXT}outline-level"), 1)
        for part in element.iter(f"{TEXT}hidden-paragraph"):
            if part.get(f"{TEXT}is-hidden") == "true":
                own["hidden"] = True
        return {**look, **own}

    def pieces(self, element: Any, look: Look) -> Iterator[Piece]:
        """See Walk. The label of a list's item is that of its first paragraph."""
        if element.tag != f"{TEXT}list":
            yield from super().pieces(element, look)
            return
        level = look.get("list_level", 0) + 1
        style = element.get(f"{TEXT}style-name") or look.get("list", "")
        form, suffix = self._styles.list_form(style, level)
        look = {**look, "list_level": level, "list": style}
        indent, number = "  " * (level - 1), 0
        for item in element:
            is_numbered = form == "1" and local_name(item) == "list-item"
            for child in item:
                if local_name(child) in self.PARAGRAPHS:
                    number += is_numbered
                    mark = f"{number}{suffix}" if is_numbered else "-"
                    is_numbered = False
                    yield from self.pieces(child, {**look, "label": indent + mark})
                else:
                    yield from self.pieces(child, look)

    # Tables and sheets

    def start_table(self, table: Any, look: Look) -> None:
        """See Walk."""
        self._row_number, self._sheet = 0, None
        if table.getparent().tag == f"{_OFFICE}spreadsheet":
            self._sheet = SheetBlocks(self.blocks, table.get(f"{TABLE}name", ""))
            self.left_out["hidden sheets"] += bool(look.get("hidden"))

    def top_row(self, row: Any, look: Look) -> None:
        """See Walk."""
        number = self._row_number + 1
        self._row_number += integer_in(row.get(f"{TABLE}number-rows-repeated"), 1)
        if self._sheet is None:
            super().top_row(row, look)
        elif look.get("hidden"):
            self.hidden.add("hidden_cells", all_text(row))
        else:
            self._sheet.add(number, self._cells(row, look))

    def end_table(self) -> None:
        """See Walk."""
        super().end_table()
        if self._sheet is not None:
            self._sheet.end()

    def row(self, row: Any, look: Look) -> list[str]:
        """See Walk."""
        return [text for text, _ in self._cells(row, look)]

    def _cells(self, row: Any, look: Look) -> list[tuple[str, bool]]:
        """The visible cells of a row, and for each whether it is a text."""
        look = self.look(row, look)
        is_hidden = row.get(f"{TABLE}visibility") in {"collapse", "filter"} or look.get("hidden")
        if is_hidden:
            if text := all_text(row).strip():
                self.left_out["hidden rows"] += 1
                self.hidden.add("hidden_cells", text)
            return []
        cells: list[tuple[str, bool]] = []
        column = 0
        for cell in row:
            if local_name(cell) not in self.CELLS:
                continue
            repeated = integer_in(cell.get(f"{TABLE}number-columns-repeated"), 1)
            # The cells to the right of the last column are one that is repeated 16,000 times.
            count = min(repeated, _MAX_REPEATED)
            shown = count - sum(look["columns"][column : column + count])
            column += repeated
            if shown:
                is_text = cell.get(f"{_OFFICE}value-type", "string") == "string"
                cells += [(self.cell(cell, look), is_text)] * shown
            else:
                self.hidden.add("hidden_cells", all_text(cell))
        while cells and not cells[-1][0].strip():
            cells.pop()
        self.count_cells(len(cells))
        return cells

    # Slides

    def block(self, element: Any) -> None:
        """See Walk."""
        if element.tag != f"{DRAW}page":
            super().block(element)
            return
        self._pages += 1
        if self._styles.look("drawing-page", element.get(f"{DRAW}style-name")).get("hidden"):
            self.left_out["hidden slides"] += 1
            self.hidden.add("hidden_slide", all_text(element))
            return
        title, notes, pieces = "", [], []
        for shape in element:
            role = shape.get(f"{PRESENTATION}class", "")
            if local_name(shape) == "notes":
                for box in shape.iter(f"{DRAW}text-box"):
                    text = "\n".join(self.lines(self.pieces(box, {})))
                    notes += [line for line in text.split("\n") if line.strip()]
            elif role not in _SURROUNDINGS and local_name(shape) != "forms":
                # What is behind a shape on a slide is not known.
                found = list(self.pieces(shape, {"fill": None}))
                if role == "title" and not title:
                    title = " ".join(piece.text for piece in found)
                else:
                    pieces += found
        self.slide(self._pages, title, pieces, notes)

    # Elements inside of paragraphs

    def _span(self, element: Any, look: Look, parts: list[str]) -> None:
        style = self._styles.look("text", element.get(f"{TEXT}style-name"))
        self.inline(element, {**look, **style}, parts)

    def _spaces(self, element: Any, look: Look, parts: list[str]) -> None:
        count = min(integer_in(element.get(f"{TEXT}c"), 1), _MAX_REPEATED)
        parts.append("" if hides_all(look) else " " * count)

    def _conditional(self, element: Any, look: Look, parts: list[str]) -> None:
        """A section, or a field that may be hidden."""
        style = self._styles.look("section", element.get(f"{TEXT}style-name"))
        is_hidden = element.get(f"{TEXT}is-hidden") == "true" or style.get("hidden")
        if is_hidden or element.get(f"{TEXT}display") in {"none", "condition"}:
            look = {**look, "away": "invisible_element"}
        self.inline(element, {**look, **style}, parts)

    def _note(self, element: Any, look: Look, parts: list[str]) -> None:
        for body in element.findall(f"{TEXT}note-body"):
            self.note(body, look, parts)

    def _drawing(self, element: Any, look: Look, parts: list[str]) -> None:
        """A picture, a shape or a text box. Its text does not look like what is around it."""
        style = self._styles.look("graphic", element.get(f"{DRAW}style-name"))
        kind = hides_all(look) or hides_all(style)
        if self._is_far(element):
            kind = kind or "off_screen_element"
        look = {key: value for key, value in {**look, **style}.items() if key == "fill"}
        self.inline(element, {**look, "away": kind} if kind else look, parts)

    def _is_far(self, element: Any) -> bool:
        """Whether a shape is off the page or the slide, or has no size."""
        places = (centimetres(element.get(_SVG + key)) for key in ("x", "y", "width", "height"))
        x, y, width, height = places
        if element.tag == f"{DRAW}frame" and any(
            side is not None and side < _MIN_SIDE for side in (width, height)
        ):
            return True
        edges = zip((x, y), (width, height), self._size, strict=True)
        if self._pages:
            return any(at and (at >= most or at + (side or 0.0) <= 0) for at, side, most in edges)
        return any(at is not None and abs(at) > _FAR for at in (x, y))

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "s": _spaces,
        "tab": mark("\t"),
        "line-break": mark("\n"),
        "span": _span,
        "note": _note,
        **dict.fromkeys(("section", "hidden-text", "variable-set", "user-field-get"), _conditional),
        **dict.fromkeys(("ruby-text", "binary-data", "change-info", *_INDEXES), skip),
        **dict.fromkeys(("desc", "title"), hides("alt_text")),
        **dict.fromkeys(_DRAWN, _drawing),
        "tracked-changes": hides("tracked_deletion"),
        "annotation": hides("comment"),
        "script": hides("field_code"),
    }


def _hidden_columns(table: Any) -> list[bool]:
    """For each column whether it is hidden, up to the last one that is."""
    columns: list[bool] = []
    for column in table.iter(f"{TABLE}table-column"):
        repeated = integer_in(column.get(f"{TABLE}number-columns-repeated"), 1)
        is_hidden = column.get(f"{TABLE}visibility") in {"collapse", "filter"}
        columns += [is_hidden] * min(repeated, _MAX_COLUMNS - len(columns))
    while columns and not columns[-1]:
        columns.pop()
    return columns


READER = PackageReader("opendocument", 3, _document)
