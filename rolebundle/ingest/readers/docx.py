"""Word documents (Office Open XML): headings, paragraphs, lists, tables, notes and text boxes.

The body is read as a stream, so that only one paragraph or table row is in memory as a tree. A
document has no pages until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.docx_styles import (
    PLAIN,
    VAL,
    Look,
    Numbering,
    Style,
    Styles,
    W,
    is_on,
    kind_of,
    look_of,
    numbering_of,
    outline_level,
    shading_of,
    value_of,
)
from rolebundle.ingest.readers.extracted import HiddenTexts, TextBlocks
from rolebundle.ingest.readers.office import diagram_text, hex_color, main_part
from rolebundle.ingest.readers.package import (
    RELATION,
    Package,
    PackageReader,
    local_name,
    number_in,
)
from rolebundle.scan.hidden_style import WHITE, Color, color, declarations, hiding

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_P, _TBL, _TR, _TC, _SDT, _R, _T = (W + name for name in ("p", "tbl", "tr", "tc", "sdt", "r", "t"))
_ALTERNATIVE = f"{_MC}AlternateContent"
_STREAMED = (_P, _TBL, _TR, _SDT, f"{W}customXml", f"{W}sectPr", _ALTERNATIVE)
# Word shows these choices; others are replaced by their fallback.
_KNOWN_CHOICES = re.compile(r"(?:w(?:p|ps|pg|pc|pi)|w(?:p)?1\d\w*|cx\d*|a14|am3d|aink|v|m)")
_CODE_STYLES = frozenset(
    ("code", "source code", "html preformatted", "preformatted text", "plain text", "macro")
)
_MAX_TINY_HEIGHT = 40  # twentieths of a point
_EMU = 12_700  # per point
_MAX_CELL_CHARS = 1_800
_MAX_CELLS = 1_000_000


def _document(package: Package) -> ParsedDocument:
    hidden = HiddenTexts()
    main, properties = main_part(package, "word/document.xml", hidden)
    walk = _Walk(package, main, hidden)
    walk.body(main)
    walk.headers_and_footers()
    title = walk.title or walk.blocks.title
    # The title of a template stays in all documents that are made from it.
    if title and not _shares_word(properties.get("title", ""), walk.beginning()):
        properties["title"] = title
    return walk.blocks.document(properties, hidden)


def _shares_word(title: str, text: str) -> bool:
    words = set(re.findall(r"\w{3,}", text.casefold()))
    return any(word in words for word in re.findall(r"\w{3,}", title.casefold()))


# The body


class _Inline:
    """What a paragraph consists of: its visible text, and what is printed elsewhere."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.boxes: list[tuple[Any, Color | None]] = []
        self.notes: list[tuple[str, Any]] = []


class _Walk:
    """Reads the parts of a document into blocks."""

    def __init__(self, package: Package, main: str, hidden: HiddenTexts) -> None:
        self.blocks = TextBlocks(package.too_large)
        self.title = ""
        self._package = package
        self._hidden = hidden
        self._relations = package.relations(main)
        self._styles = Styles(package.parse(self._part("styles")))
        self._numbering = Numbering(package.parse(self._part("numbering")))
        self._notes: dict[tuple[str, str | None], Any] = {
            (kind, note.get(f"{W}id")): note
            for kind in ("footnote", "endnote")
            for note in package.parse(self._part(f"{kind}s"))
            if local_name(note) == kind and note.get(f"{W}type") is None
        }
        self._note_count = self._cell_count = 0
        self._background: Color | None = WHITE
        # For each open field whether its code is being read, which is not shown.
        self._fields: list[bool] = []
        self._sections: list[tuple[str, str]] = []
        self._beginning: list[str] = []

    def _part(self, kind: str) -> str:
        return next((name for found, name in self._relations.values() if found == kind), "")

    def beginning(self) -> str:
        """The text of the first paragraphs."""
        return " ".join(self._beginning)

    def body(self, main: str) -> None:
        """Read the body, one paragraph or table row at a time."""
        body = f"{W}body"
        rows: list[list[str]] = []
        for element in self._package.stream(main, *_STREAMED):
            parent = element.getparent()
            if parent is None:
                continue
            if element.tag == _TR:
                # Rows of a table of the body itself; what is inside of another one waits for it.
                if parent.getparent() is None or parent.getparent().tag != body:
                    continue
                rows += self._rows([element], self._table_fill(parent))
                self._package.release(element)
            elif parent.tag == body:
                if element.tag == _TBL:
                    self._table(rows)
                    rows = []
                else:
                    self._block(element, self._page_color(parent))
                self._package.release(element)

    def _page_color(self, body: Any) -> Color | None:
        page = body.getparent().find(f"{W}background") if body.getparent() is not None else None
        return self._background if page is None else hex_color(page.get(f"{W}color")) or WHITE

    def headers_and_footers(self) -> None:
        """Add the texts at the head and foot of pages that are printed, each once."""
        has_even = self._package.parse(self._part("settings")).find(f"{W}evenAndOddHeaders")
        lines: list[str] = []
        for relation, type_name in dict.fromkeys(self._sections):
            name = self._relations.get(relation, ("", ""))[1]
            if not name or (type_name == "even" and (has_even is None or not is_on(has_even))):
                continue
            lines += self._block_text(self._package.parse(name)).split("\n")
        self.blocks.page_margins(lines)

    def _block(self, element: Any, background: Color | None) -> None:
        """A paragraph, a table, or an element that contains such."""
        tag = element.tag
        if tag == _P:
            self._paragraph(element, background)
        elif tag == _TBL:
            self._table(self._rows(element, self._table_fill(element)))
        elif tag == _SDT:
            for child in element.findall(f"{W}sdtContent/*"):
                self._block(child, background)
        elif tag == f"{W}sectPr":
            self._section(element)
        elif tag == _ALTERNATIVE:
            for child in _choice(element):
                self._block(child, background)
        elif tag in {f"{W}customXml", f"{W}ins", f"{W}moveTo"}:
            for child in element:
                self._block(child, background)

    def _section(self, element: Any) -> None:
        title_page = element.find(f"{W}titlePg")
        for reference in element:
            if local_name(reference) in {"headerReference", "footerReference"}:
                type_name = reference.get(f"{W}type", "default")
                if type_name != "first" or (title_page is not None and is_on(title_page)):
                    self._sections.append((reference.get(f"{RELATION}id", ""), type_name))

    def _paragraph(self, element: Any, background: Color | None) -> None:
        properties = element.find(f"{W}pPr")
        style = self._paragraph_style(properties)
        inline = self._inline(element, style, properties, background)
        text = "".join(inline.parts).strip()
        level, numbering = style.level, style.numbering
        if properties is not None:
            level = outline_level(properties) or level
            numbering = numbering_of(properties, numbering) or numbering
            section = properties.find(f"{W}sectPr")
            if section is not None:
                self._section(section)
        # Word counts paragraphs without text as well.
        label = self._numbering.label(*numbering) if numbering else ""
        if text and not re.fullmatch(r"toc \d|table of figures", style.name):
            if len(self._beginning) < 30:
                self._beginning.append(text[:1000])
            if style.name == "title":
                self.title = self.title or " ".join(text.split())
                self.blocks.heading(text, 1)
            elif level:
                self.blocks.heading(f"{label} {text}" if label not in {"", "-"} else text, level)
            elif label:
                indent = "  " * numbering[1] if numbering else ""
                self.blocks.add("list", f"{indent}{label} {' '.join(text.split())}")
            elif style.name in _CODE_STYLES:
                self.blocks.add("code", "".join(inline.parts))
            else:
                self.blocks.add("paragraph", text)
        self._add_side_texts(inline)

    def _add_side_texts(self, inline: _Inline) -> None:
        """Add what is printed beside a paragraph: text boxes and notes."""
        for box, background in inline.boxes:
            for child in box:
                self._block(child, background)
        for label, note in inline.notes:
            text = " ".join(self._block_text(note).split())
            if text:
                self.blocks.add("paragraph", f"[{label}] {text}")

    def _paragraph_style(self, properties: Any) -> Style:
        style_id = "" if properties is None else value_of(properties, "pStyle")
        return self._styles.get(style_id or self._styles.default_paragraph)

    def _inline(
        self, element: Any, style: Style, properties: Any, background: Color | None
    ) -> _Inline:
        inline = _Inline()
        look = {**self._styles.default_look, **style.look}
        behind = style.fill or background
        if properties is not None:
            behind = shading_of(properties) or behind
            if _is_squeezed(properties):
                look["hidden"] = True
        self._walk_inline(element, inline, look, behind)
        return inline

    def _walk_inline(
        self, element: Any, inline: _Inline, look: Look, background: Color | None
    ) -> None:
        for child in element:
            tag = child.tag
            name = local_name(child)
            if tag == _R:
                self._run(child, inline, look, background)
            elif name in {"del", "moveFrom"}:
                self._hidden.add("tracked_deletion", _all_text(child), is_usual=True)
            elif name == "sdt":
                if child.find(f"{W}sdtPr/{W}showingPlcHdr") is None:
                    for content in child.findall(f"{W}sdtContent"):
                        self._walk_inline(content, inline, look, background)
            elif tag == _ALTERNATIVE:
                for part in _choice(child):
                    self._walk_inline([part], inline, look, background)
            elif name == "t":  # of a formula
                self._text(child.text or "", inline, look, background)
            elif name not in {"pPr", "rPr", "rt", "sdtPr"} and len(child):
                self._walk_inline(child, inline, look, background)

    def _run(  # noqa: PLR0912
        self, run: Any, inline: _Inline, look: Look, background: Color | None
    ) -> None:
        properties = run.find(f"{W}rPr")
        if properties is not None:
            style_id = value_of(properties, "rStyle")
            own = self._styles.get(style_id).look if style_id else PLAIN
            look = {**look, **own, **look_of(properties)}
        for child in run:
            name = local_name(child)
            if name == "t":
                self._text(child.text or "", inline, look, background)
            elif name in {"tab", "ptab"}:
                inline.parts.append("\t")
            elif name in {"br", "cr"}:
                inline.parts.append("\n")
            elif name == "noBreakHyphen":
                inline.parts.append("-")
            elif name in {"instrText", "delInstrText"}:
                self._hidden.add("field_code", child.text or "", is_usual=True)
            elif name == "delText":
                self._hidden.add("tracked_deletion", child.text or "", is_usual=True)
            elif name == "fldChar":
                self._field(child.get(f"{W}fldCharType"))
            elif name in {"footnoteReference", "endnoteReference"}:
                self._note(name.removesuffix("Reference"), child, inline)
            elif name in {"drawing", "pict", "object"}:
                self._drawing(child, inline, background)
            elif name == "ruby":
                for base in child.findall(f"{W}rubyBase"):
                    self._walk_inline(base, inline, look, background)
            elif child.tag == _ALTERNATIVE:
                for part in _choice(child):
                    if local_name(part) in {"drawing", "pict", "object"}:
                        self._drawing(part, inline, background)
                    elif part.tag == _T:
                        self._text(part.text or "", inline, look, background)

    def _text(self, text: str, inline: _Inline, look: Look, background: Color | None) -> None:
        if any(self._fields):
            self._hidden.add("field_code", text, is_usual=True)
            return
        kind = kind_of(look, background)
        if kind:
            self._hidden.add(kind, text)
        else:
            inline.parts.append(text)

    def _field(self, kind: str | None) -> None:
        if kind == "begin":
            self._fields.append(True)
        elif kind == "separate" and self._fields:
            self._fields[-1] = False
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _note(self, kind: str, reference: Any, inline: _Inline) -> None:
        note = self._notes.pop((kind, reference.get(f"{W}id")), None)
        if note is not None:
            self._note_count += 1
            label = str(self._note_count)
            inline.parts.append(f"[{label}]")
            inline.notes.append((label, note))

    def _drawing(self, element: Any, inline: _Inline, background: Color | None) -> None:
        """A picture, a diagram or shapes with text."""
        is_hidden = _is_hidden_drawing(element)
        for part in _visible_parts(element):
            name = local_name(part)
            if name in {"docPr", "cNvPr"}:
                for key in ("descr", "title"):
                    self._hidden.add("alt_text", part.get(key, ""), is_usual=True)
            elif name == "relIds":
                data = self._relations.get(part.get(f"{RELATION}dm", ""), ("", ""))[1]
                text = diagram_text(self._package.parse(data))
                if is_hidden:
                    self._hidden.add("invisible_element", text)
                elif text:
                    inline.parts.append(f"\n{text}\n")
            elif name == "txbxContent":
                if is_hidden or _is_hidden_shape(part):
                    self._hidden.add("off_screen_element", _all_text(part))
                else:
                    inline.boxes.append((part, _shape_fill(part, background)))

    # Tables

    def _table_fill(self, table: Any) -> Color | None:
        """The color behind the cells of a table; ``None`` if its style has several."""
        properties = table.find(f"{W}tblPr")
        style = self._styles.get("" if properties is None else value_of(properties, "tblStyle"))
        own = None if properties is None else shading_of(properties)
        return own or (None if style.is_shaded else self._background)

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        cells = [cell for row in rows for cell in row]
        if len({len(row) for row in rows} | {1}) == 1 or any(
            len(c) > _MAX_CELL_CHARS for c in cells
        ):
            # It only places paragraphs on the page.
            for cell in cells:
                self.blocks.add("paragraph", cell)
        else:
            self.blocks.table(rows)

    def _rows(self, rows: Iterable[Any], background: Color | None) -> list[list[str]]:
        found = []
        for row in rows:
            if local_name(row) in {"sdt", "customXml", "sdtContent", "ins"}:
                found += self._rows(row, background)
            elif row.tag == _TR:
                kind = _hidden_row(row)
                if kind:
                    self._hidden.add(kind, _all_text(row), is_usual=kind == "tracked_deletion")
                else:
                    found.append([self._cell(cell, background) for cell in _cells(row)])
                    self._cell_count += len(found[-1])
                    if self._cell_count > _MAX_CELLS:
                        raise self._package.too_large(f"more than {_MAX_CELLS:,} cells")
        return found

    def _cell(self, cell: Any, background: Color | None) -> str:
        properties = cell.find(f"{W}tcPr")
        if properties is not None:
            background = shading_of(properties) or background
            merged = properties.find(f"{W}vMerge")
            if merged is not None and merged.get(VAL) != "restart":
                self._hidden.add("invisible_element", _all_text(cell))
                return ""
        return self._block_text(cell, background)

    def _block_text(self, element: Any, background: Color | None = WHITE) -> str:
        """The visible text of an element with blocks, one line for each paragraph or row."""
        lines = []
        for child in element:
            if child.tag == _P:
                properties = child.find(f"{W}pPr")
                style = self._paragraph_style(properties)
                inline = self._inline(child, style, properties, background)
                numbering = style.numbering
                if properties is not None:
                    numbering = numbering_of(properties, numbering) or numbering
                label = self._numbering.label(*numbering) if numbering else ""
                text = "".join(inline.parts).strip()
                lines.append(f"{label} {text}" if label and text else text)
                lines += [self._block_text(box, fill) for box, fill in inline.boxes]
                lines += [f"[{label}] {self._block_text(note)}" for label, note in inline.notes]
            elif child.tag == _TBL:
                rows = self._rows(child, self._table_fill(child))
                lines += [", ".join(filter(None, row)) for row in rows]
            elif child.tag == _ALTERNATIVE:
                lines.append(self._block_text(list(_choice(child)), background))
            elif local_name(child) in {"sdt", "sdtContent", "customXml", "ins"}:
                lines.append(self._block_text(child, background))
        return "\n".join(line for line in lines if line)


def _cells(row: Any) -> Iterator[Any]:
    for child in row:
        if child.tag == _TC:
            yield child
        elif local_name(child) in {"sdt", "sdtContent", "customXml"}:
            yield from _cells(child)


def _all_text(element: Any) -> str:
    """The text of an element, visible or not."""
    texts = (part.text for part in element.iter() if local_name(part) in {"t", "delText"})
    return "".join(text or "" for text in texts)


def _choice(element: Any) -> Iterator[Any]:
    """The content of an alternative that Word shows."""
    for option in element:
        if local_name(option) == "Fallback":
            yield from option
            return
        names = option.get("Requires", "").split()
        if all(map(_KNOWN_CHOICES.fullmatch, names)):
            yield from option
            return


def _visible_parts(element: Any) -> Iterator[Any]:
    """The elements inside of a drawing that Word shows, without what is in its text boxes."""
    for child in element:
        if child.tag == _ALTERNATIVE:
            for part in _choice(child):
                yield part
                yield from _visible_parts(part)
            continue
        yield child
        if local_name(child) != "txbxContent":
            yield from _visible_parts(child)


def _hidden_row(row: Any) -> str:
    """How a row is hidden; empty if it is not."""
    properties = row.find(f"{W}trPr")
    if properties is None:
        return ""
    for item in properties:
        name = local_name(item)
        if name == "del":
            return "tracked_deletion"
        if name == "hidden" and is_on(item):
            return "invisible_element"
        is_exact = name == "trHeight" and item.get(f"{W}hRule") == "exact"
        if is_exact and number_in(item.get(VAL), 1000) <= _MAX_TINY_HEIGHT:
            return "invisible_element"
    return ""


def _is_squeezed(properties: Any) -> bool:
    """Whether the lines of a paragraph have no height, or its frame is off the page."""
    spacing, frame = properties.find(f"{W}spacing"), properties.find(f"{W}framePr")
    is_exact = spacing is not None and spacing.get(f"{W}lineRule") == "exact"
    if is_exact and number_in(spacing.get(f"{W}line"), 240) <= _MAX_TINY_HEIGHT:
        return True
    if frame is not None:
        places = [number_in(frame.get(W + axis), 0) for axis in ("x", "y")]
        if any(place < -10_000 or place > 31_000 for place in places):
            return True
    indent = properties.find(f"{W}ind")
    if indent is not None:
        left = indent.get(f"{W}left") or indent.get(f"{W}start")
        return abs(number_in(left, 0)) > 31_000
    return False


def _is_hidden_drawing(element: Any) -> bool:
    """Whether a drawing is hidden, has no size, or is off the page."""
    for part in element.iter():
        name = local_name(part)
        if name == "docPr" and part.get("hidden", "0").lower() in {"1", "true"}:
            return True
        if name == "extent":
            sides = [number_in(part.get(side), 1e9) for side in ("cx", "cy")]
            if min(sides) <= _EMU:
                return True
        if name == "posOffset":
            offset = number_in(part.text, 0) / _EMU
            if not -720 < offset < 1600:
                return True
        if name in {"shape", "rect", "textbox"} and part.get("style"):
            way = hiding(declarations(part.get("style")))
            if way is not None and way.is_certain:
                return True
    return False


def _is_hidden_shape(content: Any) -> bool:
    """Whether the shape of a text box is hidden by its own properties."""
    for shape in content.iterancestors():
        if local_name(shape) in {"wsp", "sp"}:
            return any(
                part.get("hidden") in {"1", "true"} for part in shape if local_name(part) == "cNvPr"
            )
    return False


def _shape_fill(content: Any, background: Color | None) -> Color | None:
    """The color behind the text of a text box; ``None`` if it is not known."""
    for shape in content.iterancestors():
        name = local_name(shape)
        if name in {"shape", "rect", "roundrect", "oval"}:
            if shape.get("filled", "t") in {"f", "false"}:
                return None
            return color(shape.get("fillcolor", "white").partition(" ")[0].lower())
        if name == "wsp":
            for part in shape:
                if local_name(part) == "spPr":
                    for fill in part:
                        if local_name(fill) == "solidFill" and len(fill):
                            return hex_color(fill[0].get("val"))
                        if local_name(fill).endswith("Fill"):
                            return None
            # Without a fill of its own it may have one by its style.
            has_style = any(local_name(part) == "style" for part in shape)
            return None if has_style else background
        if name == "drawing":
            break
    return background


READER = PackageReader("docx", 2, _document)
