"""OpenDocument files, as of LibreOffice: texts, spreadsheets and presentations.

The content is read as a stream, so that only one paragraph, table row or slide is in memory as a
tree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.extracted import (
    HiddenTexts,
    SheetBlocks,
    TextBlocks,
    hidden_kind,
)
from rolebundle.ingest.readers.opendocument_styles import (
    DRAW,
    FO,
    NAMES,
    PRESENTATION,
    STYLE,
    TABLE,
    TEXT,
    Look,
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
from rolebundle.scan.hidden_style import WHITE

_OFFICE = f"{{{NAMES}office:1.0}}"
_SVG = f"{{{NAMES}svg-compatible:1.0}}"
_P, _H, _LIST = f"{TEXT}p", f"{TEXT}h", f"{TEXT}list"
_TABLE_TAG, _ROW, _PAGE = f"{TABLE}table", f"{TABLE}table-row", f"{DRAW}page"
_BODIES = frozenset(_OFFICE + name for name in ("text", "spreadsheet", "presentation", "drawing"))
_INDEXES = frozenset(
    "table-of-content illustration-index table-index object-index user-index alphabetical-index"
    " bibliography".split()
)
_STREAMED = (
    f"{_OFFICE}automatic-styles",
    *(_P, _H, _LIST, _TABLE_TAG, _ROW, _PAGE),
    *(f"{TEXT}{name}" for name in ("section", "tracked-changes", *sorted(_INDEXES))),
    *(f"{DRAW}{name}" for name in ("frame", "custom-shape", "g", "rect")),
)
_CELLS = frozenset((f"{TABLE}table-cell", f"{TABLE}covered-table-cell"))
_CODE_STYLES = frozenset(("preformatted_20_text", "source_20_code", "code"))
_SPACE = re.compile(r"[ \t\r\n]+")
_MAX_REPEATED = 100
_MAX_CELLS = 1_000_000
_MAX_LIST_LEVEL = 10
_FAR = 100.0  # centimetres


def _document(package: Package) -> ParsedDocument:
    # Not parsed: in old files its namespace is only declared in a DTD, which is not read.
    if b"encryption-data" in package.read("META-INF/manifest.xml"):
        raise package.encrypted()
    if "content.xml" not in package:
        raise ValueError("it has no content.xml")
    walk = _Walk(package)
    walk.content()
    walk.headers_and_footers()
    meta = package.parse("meta.xml").find(f"{_OFFICE}meta")
    properties = properties_of(() if meta is None else meta)
    return walk.blocks.document(properties, walk.hidden, walk.notes())


class _Walk:
    """Reads a document into blocks."""

    def __init__(self, package: Package) -> None:
        self.blocks = TextBlocks(package.too_large)
        self.hidden = HiddenTexts()
        self._package = package
        self._styles = Styles()
        self._root = package.parse("styles.xml")
        self._styles.add(self._root)
        self._notes: list[str] = []
        self._note_count = self._cell_count = 0
        self._boxes: list[tuple[Any, Look]] = []
        self._left_out = Counter[str]()
        self._pages = 0
        # The table whose rows are being read.
        self._table: Any = None
        self._columns: list[bool] = []
        self._rows: list[list[str]] = []
        self._sheet: SheetBlocks | None = None
        self._row_number = 0

    def notes(self) -> list[str]:
        """What was left out."""
        return [f"{kind} left out: {count}" for kind, count in self._left_out.items() if count]

    def content(self) -> None:
        """Read the body."""
        for element in self._package.stream("content.xml", *_STREAMED):
            parent = element.getparent()
            if element.tag == f"{_OFFICE}automatic-styles":
                self._styles.add(element)
            elif element.tag == _ROW:
                table = _table_of(element)
                if table is None or table.getparent().tag not in _BODIES:
                    continue
                self._top_row(element, table)
                self._package.release(element)
            elif parent is not None and parent.tag in _BODIES:
                if element.tag == _TABLE_TAG:
                    self._end_table(element)
                elif element.tag == _PAGE:
                    self._page(element)
                else:
                    self._block(element, {})
                self._package.release(element)

    def headers_and_footers(self) -> None:
        """Add the texts at the head and foot of the pages that the document uses, each once."""
        used = self._styles.used_masters() | {"Standard", "Default"}
        lines: list[str] = []
        for master in self._root.iter(f"{STYLE}master-page"):
            if master.get(f"{STYLE}name") not in used or self._sheet or self._pages:
                continue
            for part in master:
                name = local_name(part)
                if name.startswith(("header", "footer")) and part.get(f"{STYLE}display") != "false":
                    lines += self._block_text(part, {}).split("\n")
        self.blocks.page_margins(lines)

    def _block(self, element: Any, look: Look) -> None:  # noqa: PLR0912
        name = local_name(element)
        if element.tag in {_P, _H}:
            self._paragraph(element, look)
        elif element.tag == _LIST:
            self._list(element, look, 1, "")
        elif name == "tracked-changes":
            for change in element.iter(f"{TEXT}deletion"):
                self.hidden.add("tracked_deletion", _all_text(change), is_usual=True)
        elif name == "section":
            style = self._styles.look("section", element.get(f"{TEXT}style-name"))
            if element.get(f"{TEXT}display") in {"none", "condition"} or style.get("hidden"):
                self.hidden.add("invisible_element", _all_text(element))
            else:
                for child in element:
                    self._block(child, {**look, **style})
        elif element.tag == _TABLE_TAG:
            self._whole_table(element)
        elif name in _INDEXES:
            pass  # its entries are headings of the document
        elif element.tag.startswith(DRAW):
            self._drawing(element, look)
            self._add_side_texts("")
        elif name in {"numbered-paragraph", "list-item", "list-header"}:
            for child in element:
                self._block(child, look)

    def _paragraph(self, element: Any, look: Look, label: str = "", anchor: str = "") -> None:
        full_text = self._text_of(element, look)
        text = full_text.strip()
        base = self._styles.base_name(element.get(f"{TEXT}style-name"))
        if text:
            if element.tag == _H or base in {"title", "heading"}:
                is_title = base == "title"
                level = 1 if is_title else integer_in(element.get(f"{TEXT}outline-level"), 1)
                self.blocks.heading(f"{label} {text}".strip(" -"), level, anchor)
            elif label:
                self.blocks.add("list", f"{label} {' '.join(text.split())}", anchor)
            elif base in _CODE_STYLES:
                self.blocks.add("code", full_text, anchor)
            else:
                self.blocks.add("paragraph", text, anchor)
        self._add_side_texts(anchor)

    def _add_side_texts(self, anchor: str) -> None:
        """Add the text boxes and notes of a paragraph."""
        boxes, self._boxes = self._boxes, []
        notes, self._notes = self._notes, []
        for box, look in boxes:
            for child in box:
                if anchor and child.tag in {_P, _H}:
                    self._paragraph(child, look, anchor=anchor)
                else:
                    self._block(child, look)
        for note in notes:
            self.blocks.add("paragraph", note, anchor)

    def _list(self, element: Any, look: Look, level: int, style: str, anchor: str = "") -> None:
        style = element.get(f"{TEXT}style-name") or style
        definition = self._styles.list_level(style, level)
        is_numbered = definition is not None and local_name(definition).endswith("number")
        suffix = definition.get(f"{STYLE}num-suffix", ".") if is_numbered else ""
        form = definition.get(f"{STYLE}num-format", "1") if is_numbered else ""
        number = 0
        for item in element:
            if local_name(item) not in {"list-item", "list-header"}:
                continue
            is_first = True
            for child in item:
                if child.tag == _LIST and level < _MAX_LIST_LEVEL:
                    self._list(child, look, level + 1, style, anchor)
                elif child.tag in {_P, _H}:
                    mark = "  " * (level - 1) + "-"
                    if is_first and form == "1" and local_name(item) == "list-item":
                        number += 1
                        mark = "  " * (level - 1) + f"{number}{suffix}"
                    is_first = False
                    self._paragraph(child, look, mark, anchor)
                else:
                    self._block(child, look)

    # Text inside of paragraphs

    def _text_of(self, element: Any, look: Look) -> str:
        """The visible text of a paragraph. Its text boxes and notes are kept for later."""
        own = self._styles.look("paragraph", element.get(f"{TEXT}style-name"))
        look = {**look, **own} if own else look
        for part in element.iter(f"{TEXT}hidden-paragraph") if len(element) else ():
            if part.get(f"{TEXT}is-hidden") == "true":
                look = {**look, "hidden": True}
        parts: list[str] = []
        self._inline(element, look, parts)
        return "".join(parts)

    def _inline(self, element: Any, look: Look, parts: list[str]) -> None:  # noqa: PLR0912
        self._add(element.text, look, parts)
        for child in element:
            name = local_name(child)
            if name == "s":
                count = integer_in(child.get(f"{TEXT}c"), 1)
                parts.append(" " * min(count, _MAX_REPEATED))
            elif name == "tab":
                parts.append("\t")
            elif name == "line-break":
                parts.append("\n")
            elif name == "span":
                own = self._styles.look("text", child.get(f"{TEXT}style-name"))
                self._inline(child, {**look, **own}, parts)
            elif name == "note":
                self._note(child, parts, look)
            elif name == "annotation":
                self.hidden.add("comment", _all_text(child), is_usual=True)
            elif name in {"hidden-text", "variable-set", "user-field-get"}:
                hides = (
                    child.get(f"{TEXT}is-hidden") == "true" or child.get(f"{TEXT}display") == "none"
                )
                self._inline(child, {**look, "hidden": True} if hides else look, parts)
            elif name == "ruby":
                for base in child.findall(f"{TEXT}ruby-base"):
                    self._inline(base, look, parts)
            elif name == "script":
                self.hidden.add("field_code", _all_text(child), is_usual=True)
            elif isinstance(child.tag, str) and child.tag.startswith(DRAW):
                if name == "a":
                    for part in child:
                        self._drawing(part, look)
                else:
                    self._drawing(child, look)
            elif child.tag == f"{_OFFICE}binary-data" or name in {"desc", "title"}:
                pass
            elif name:
                self._inline(child, look, parts)
            self._add(child.tail, look, parts)

    def _add(self, text: str | None, look: Look, parts: list[str]) -> None:
        if not text:
            return
        if look.get("hidden"):
            kind = "invisible_element"
        else:
            kind = hidden_kind(look.get("color"), look.get("fill", WHITE), look.get("size"))
        if kind:
            self.hidden.add(kind, text)
        else:
            # White space collapses; more than one space is an element.
            parts.append(_SPACE.sub(" ", text))

    def _note(self, note: Any, parts: list[str], look: Look) -> None:
        body = note.find(f"{TEXT}note-body")
        if look.get("hidden"):
            self.hidden.add("invisible_element", _all_text(note))
        elif body is not None:
            self._note_count += 1
            label = f"[{self._note_count}]"
            parts.append(label)
            text = " ".join(self._block_text(body, {}).split())
            if text:
                self._notes.append(f"{label} {text}")

    def _drawing(self, element: Any, look: Look) -> None:
        """A picture, a shape or a text box."""
        name = local_name(element)
        if name in {"desc", "title"} and element.tag.startswith(_SVG):
            self.hidden.add("alt_text", element.text or "", is_usual=True)
            return
        style = self._styles.look("graphic", element.get(f"{DRAW}style-name"))
        box = [centimetres(element.get(_SVG + key)) for key in ("x", "y", "width", "height")]
        is_far = any(place is not None and abs(place) > _FAR for place in box[:2])
        is_flat = any(side is not None and side < 0.04 for side in box[2:]) and name == "frame"
        if look.get("hidden") or style.get("hidden") or is_far or is_flat:
            kind = "off_screen_element" if is_far else "invisible_element"
            self.hidden.add(kind, _all_text(element))
            return
        # The look of a text does not depend on the paragraph in which its box is anchored.
        inner = {key: style[key] for key in ("fill",) if key in style}
        if name == "text-box":
            self._boxes.append((element, {key: look[key] for key in ("fill",) if key in look}))
            return
        if any(child.tag in {_P, _H, _LIST} for child in element):
            self._boxes.append((element, inner))
        for child in element:
            if isinstance(child.tag, str) and child.tag.startswith((DRAW, _SVG)):
                self._drawing(child, inner)

    def _block_text(self, element: Any, look: Look) -> str:
        """The visible text of an element with blocks, one line for each paragraph."""
        lines = []
        for child in element:
            if child.tag in {_P, _H}:
                lines.append(self._text_of(child, look))
                boxes, self._boxes = self._boxes, []
                lines += [self._block_text(box, box_look) for box, box_look in boxes]
                notes, self._notes = self._notes, []
                lines += notes
            elif child.tag == _LIST or local_name(child) in {"list-item", "list-header", "section"}:
                text = self._block_text(child, look)
                lines.append(f"- {text}" if local_name(child) == "list-item" else text)
            elif child.tag == _TABLE_TAG:
                rows = [self._row_cells(row) for row in child.iter(_ROW)]
                lines += [", ".join(filter(None, row)) for row in rows]
        return "\n".join(line for line in lines if line.strip())

    # Tables and sheets

    def _whole_table(self, table: Any) -> None:
        columns = _hidden_columns(table)
        rows = [self._cells(row, columns)[0] for row in table.iter(_ROW) if _table_of(row) is table]
        self._text_table(rows)

    def _text_table(self, rows: Sequence[Sequence[str]]) -> None:
        if max(map(len, rows), default=0) < 2:
            for row in rows:
                for cell in row:
                    self.blocks.add("paragraph", cell)
        else:
            self.blocks.table(rows)

    def _top_row(self, row: Any, table: Any) -> None:
        """A row of a table that is not inside of anything else."""
        if table is not self._table:
            self._table, self._columns, self._rows = table, _hidden_columns(table), []
            self._row_number = 0
            self._sheet = None
            if table.getparent().tag == f"{_OFFICE}spreadsheet":
                self._sheet = SheetBlocks(self.blocks, table.get(f"{TABLE}name", ""))
                if self._is_hidden_table(table):
                    self._left_out["hidden sheets"] += 1
        if self._sheet is None:
            self._rows.append(self._cells(row, self._columns)[0])
            return
        self._row_number += 1
        number = self._row_number
        self._row_number += integer_in(row.get(f"{TABLE}number-rows-repeated"), 1) - 1
        if self._is_hidden_table(table):
            self.hidden.add("hidden_cells", _all_text(row), is_usual=True)
            return
        cells, is_text = self._cells(row, self._columns)
        self._sheet.add(number, cells, is_text)

    def _end_table(self, table: Any) -> None:
        if table is self._table:
            if self._sheet is None:
                self._text_table(self._rows)
            else:
                self._sheet.end()
        self._table, self._rows = None, []

    def _is_hidden_table(self, table: Any) -> bool:
        return bool(self._styles.look("table", table.get(f"{TABLE}style-name")).get("hidden"))

    def _row_cells(self, row: Any) -> list[str]:
        """The visible cells of a row of a table without hidden columns."""
        return self._cells(row, ())[0]

    def _cells(self, row: Any, hidden_columns: Sequence[bool]) -> tuple[list[str], list[bool]]:
        """The visible cells of a row, and for each whether it is a text."""
        style = self._styles.look("table-row", row.get(f"{TABLE}style-name"))
        visibility = row.get(f"{TABLE}visibility", "visible")
        if visibility in {"collapse", "filter"} or style.get("hidden"):
            if text := _all_text(row):
                self._left_out["hidden rows"] += 1
                self.hidden.add("hidden_cells", text, is_usual=True)
            return [], []
        table = self._styles.look("table", _table_of(row).get(f"{TABLE}style-name"))
        # A template of a slide's table has colors that are not known here.
        look: Look = {**({"fill": None} if self._pages else {}), **table, **style}
        cells: list[str] = []
        is_text: list[bool] = []
        column = 0
        for cell in row:
            if cell.tag not in _CELLS:
                continue
            repeated = integer_in(cell.get(f"{TABLE}number-columns-repeated"), 1)
            # The cells to the right of the last column are one that is repeated 16,000 times.
            hides = [*hidden_columns[column : column + min(repeated, _MAX_REPEATED)]]
            hides += [False] * (min(repeated, _MAX_REPEATED) - len(hides))
            column += repeated
            if local_name(cell) == "covered-table-cell":
                self.hidden.add("invisible_element", _all_text(cell))
                text = ""
            elif all(hides):
                self.hidden.add("hidden_cells", _all_text(cell), is_usual=True)
                continue
            else:
                text = self._cell(cell, look)
            cells += [text] * hides.count(False)
            is_text += [cell.get(f"{_OFFICE}value-type", "string") == "string"] * hides.count(False)
        while cells and not cells[-1].strip():
            cells.pop()
        self._cell_count += len(cells)
        if self._cell_count > _MAX_CELLS:
            raise self._package.too_large(f"more than {_MAX_CELLS:,} cells")
        return cells, is_text[: len(cells)]

    def _cell(self, cell: Any, look: Look) -> str:
        for comment in cell.findall(f"{_OFFICE}annotation"):
            self.hidden.add("comment", _all_text(comment), is_usual=True)
        own = self._styles.look("table-cell", cell.get(f"{TABLE}style-name"))
        return self._block_text(cell, {**look, **own} if own else look)

    # Slides

    def _page(self, page: Any) -> None:  # noqa: PLR0912
        self._pages += 1
        anchor = f"slide {self._pages}"
        style = self._styles.look("drawing-page", page.get(f"{DRAW}style-name"))
        if style.get("hidden"):
            self._left_out["hidden slides"] += 1
            self.hidden.add("hidden_slide", _all_text(page), is_usual=True)
            return
        title, notes = "", []
        shapes: list[tuple[Any, Look]] = []
        for shape in page:
            if local_name(shape) == "notes":
                texts = [self._block_text(box, {}) for box in shape.iter(f"{DRAW}text-box")]
                notes = [line for text in texts for line in text.split("\n") if line.strip()]
                continue
            if not isinstance(shape.tag, str) or local_name(shape) == "forms":
                continue
            role = shape.get(f"{PRESENTATION}class", "")
            if role in {"footer", "date-time", "page-number", "header"}:
                continue
            if self._is_off_slide(shape):
                self.hidden.add("off_screen_element", _all_text(shape))
                continue
            table = next(shape.iter(_TABLE_TAG), None)
            self._drawing(shape, {"fill": None})
            boxes, self._boxes = self._boxes, []
            if role == "title" and not title:
                title = " ".join(
                    " ".join(self._block_text(box, look) for box, look in boxes).split()
                )
            else:
                # What is behind a shape on a slide is not known.
                shapes += [(box, {"fill": None, **look}) for box, look in boxes]
                if table is not None:
                    shapes.append((table, {}))
        if title or shapes or notes:
            self.blocks.slide(title, self._pages)
        for shape, look in shapes:
            if shape.tag == _TABLE_TAG:
                rows = [" | ".join(self._row_cells(row)) for row in shape.iter(_ROW)]
                self.blocks.add("table", "\n".join(filter(None, rows)), anchor, rows[0])
                self.blocks.end_block()
            for child in shape:
                if child.tag in {_P, _H}:
                    self._paragraph(child, look, anchor=anchor)
                elif child.tag == _LIST:
                    self._list(child, look, 1, "", anchor)
        self.blocks.speaker_notes(notes, self._pages)

    def _is_off_slide(self, shape: Any) -> bool:
        x, y, width, height = (
            centimetres(shape.get(_SVG + key)) for key in ("x", "y", "width", "height")
        )
        if x is None or y is None:
            return False
        layout = next(self._root.iter(f"{STYLE}page-layout-properties"), None)
        page_width, page_height = (
            None if layout is None else centimetres(layout.get(f"{FO}page-{side}"))
            for side in ("width", "height")
        )
        return (
            x + (width or 0.0) <= 0
            or y + (height or 0.0) <= 0
            or x >= (page_width or _FAR)
            or y >= (page_height or _FAR)
        )


def _table_of(element: Any) -> Any:
    """The table of a row."""
    return next(element.iterancestors(_TABLE_TAG), None)


def _hidden_columns(table: Any) -> list[bool]:
    """For each column whether it is hidden, up to the last one that is."""
    columns: list[bool] = []
    for column in table.iter(f"{TABLE}table-column"):
        repeated = integer_in(column.get(f"{TABLE}number-columns-repeated"), 1)
        is_hidden = column.get(f"{TABLE}visibility", "visible") in {"collapse", "filter"}
        columns += [is_hidden] * min(repeated, 20_000 - len(columns))
    while columns and not columns[-1]:
        columns.pop()
    return columns


def _all_text(element: Any) -> str:
    """The text of an element, visible or not."""
    paragraphs = [" ".join(part.itertext()) for part in element.iter(_P, _H)]
    return " ".join(paragraphs) if paragraphs else " ".join(element.itertext())


READER = PackageReader("opendocument", 2, _document)
