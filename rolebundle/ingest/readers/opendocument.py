"""OpenDocument files, as of LibreOffice: texts, spreadsheets and presentations.

The content is read as a stream, so that only one paragraph, table row or slide is in memory as a
tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office
from rolebundle.ingest.readers.office import Action, Look, Piece, Sheet, Walk
from rolebundle.ingest.readers.package import (
    Package,
    integer_in,
    local_name,
    number_in,
    package_reader,
    properties_of,
)
from rolebundle.scan.hidden_style import color

_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE, _DRAW, _STYLE, _PRESENTATION, _SVG, _FO = (
    f"{{{_NAMES}{name}:1.0}}"
    for name in (
        "office text table drawing style presentation svg-compatible xsl-fo-compatible"
    ).split()
)
_HIDDEN: Look = {"hidden": True}
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {"cm": 1, "mm": 0.1, "in": 2.54, "pt": 0.0353, "pc": 0.423, "px": 0.0265, None: 1}
_FONT_SIZE = 12.0  # points
_MAX_SHARE = 5  # percent
_MIN_SIDE = 0.04  # centimetres
_MIN_HEIGHT = 0.07
_FAR = 100.0
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


# Looks


def _centimetres(value: str | None) -> float | None:
    """A length in centimetres; ``None`` if it is missing or malformed."""
    match = _LENGTH.fullmatch(value or "")
    return number_in(match[1]) * _CENTIMETRES[match[2]] if match else None


def _style_look(style: Any) -> dict[str, Any]:
    look: dict[str, Any] = {}
    for properties in style:
        values = {key.rpartition("}")[2]: value for key, value in properties.attrib.items()}
        if values.get("display") == "false" or values.get("visibility") == "hidden":
            look["hidden"] = True
        if local_name(properties) == "text-properties":
            look |= _text_look(values)
        if local_name(properties) == "paragraph-properties":
            height = _centimetres(values.get("line-height"))
            look |= _HIDDEN if height is not None and height < _MIN_HEIGHT else {}
        background = values.get("background-color", "transparent")
        if values.get("fill", "none") != "none":
            background = values.get("fill-color", "") if values["fill"] == "solid" else ""
        if background != "transparent":
            look["fill"] = color(background.lower())
    return look


def _text_look(values: Mapping[str, str]) -> dict[str, Any]:
    look: dict[str, Any] = {}
    if "display" in values:
        look["vanish"] = values["display"] == "none"
    size = values.get("font-size", "")
    if size.endswith("%"):
        look["size"] = _FONT_SIZE * number_in(size[:-1], 100) / 100
    elif (length := _centimetres(size)) is not None:
        look["size"] = length / _CENTIMETRES["pt"]
    # LibreOffice writes an opacity of 0 for texts in the automatic color.
    is_automatic = values.get("use-window-font-color") == "true"
    if is_automatic or "color" in values:
        look["color"] = None if is_automatic else color(values["color"].lower())
    shares = [values.get("text-scale", ""), "" if is_automatic else values.get("opacity", "")]
    if any(number_in(share.rstrip("%"), 100) <= _MAX_SHARE for share in shares):
        look["hidden"] = True
    return look


# The document


class _OpenDocument(Walk):
    """Reads the content of a document."""

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
        self._style_elements: dict[tuple[str, str], Any] = {}
        self._look_of_style = office.style_looks(self._style_elements, _parent_of, _style_look)
        self._add_styles(self._root)
        pages = self._root.iter(f"{_STYLE}page-layout-properties")
        self._page: Mapping[str, str] = dict(next(pages, self._root).attrib)
        self._pages = 0
        self._sheet: Sheet | None = None
        self._row_number = 0

    def read(self) -> ParsedDocument:
        """The document."""
        # Not parsed: in old files its namespace is only declared in a DTD, which is not read.
        if b"encryption-data" in self.package.read("META-INF/manifest.xml"):
            raise self.package.encrypted()
        if "content.xml" not in self.package:
            raise ValueError("it has no content.xml")
        self.read_stream("content.xml")
        if not self._sheet and not self._pages:
            self.page_margins(self._headers_and_footers())
        meta = self.package.parse("meta.xml").iterfind(f"{_OFFICE}meta/*")
        return self.document(properties_of(meta))

    def start_part(self, element: Any) -> None:
        """See Walk: the styles of the content."""
        if local_name(element) == "automatic-styles":
            self._add_styles(element)

    def _add_styles(self, root: Any) -> None:
        for style in root.iter(f"{_STYLE}style", f"{_STYLE}default-style"):
            key = style.get(f"{_STYLE}family", ""), style.get(f"{_STYLE}name", "")
            self._style_elements[key] = style

    def _look(self, family: str, element: Any, names: str = _TEXT) -> Look:
        """The look that the style of an element sets."""
        return self._look_of_style((family, element.get(f"{names}style-name", "")))

    def _headers_and_footers(self) -> Iterator[Any]:
        """The head and foot of the pages that a text uses."""
        used = {style.get(f"{_STYLE}master-page-name") for style in self._style_elements.values()}
        for master in self._root.iter(f"{_STYLE}master-page"):
            if master.get(f"{_STYLE}name") in used | {"Standard", "Default"}:
                for part in master:
                    is_margin = local_name(part).startswith(("header", "footer"))
                    if is_margin and part.get(f"{_STYLE}display") != "false":
                        yield part

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        if element.tag.startswith(_TABLE):
            own = dict(self._look(name, element, _TABLE))
            own["collapsed"] = own.pop("hidden", False) or _is_collapsed(element)
            if name == "covered-table-cell":
                own["away"] = "invisible_element"
            elif own["collapsed"] and not self._sheet:
                own["away"] = "hidden_cells"
            # A template of a slide's table has colors that are not known here.
            return {**({"fill": None} if self._pages else {}), **look, **own}
        style = self._base_style(element.get(f"{_TEXT}style-name", ""))
        own = {**self._look("paragraph", element), "style": style}
        if name == "h" or style == "heading":
            own["level"] = integer_in(element.get(f"{_TEXT}outline-level"), 1)
        for part in element.iter(f"{_TEXT}hidden-paragraph"):
            own |= _HIDDEN if part.get(f"{_TEXT}is-hidden") == "true" else {}
        return {**look, **own}

    def _base_style(self, name: str) -> str:
        """The name of a paragraph's style; of an automatic one, that of its parent."""
        if re.fullmatch(r"P\d+", name) and ("paragraph", name) in self._style_elements:
            name = _parent_of(self._style_elements["paragraph", name])[1]
        return name.replace("_20_", " ").lower()

    def pieces(self, element: Any, look: Look) -> Iterator[Piece]:
        """See Walk. Items of lists have a label that shows how deep they are."""
        if element.tag != f"{_TEXT}list":
            yield from super().pieces(element, look)
            return
        level = look.get("list_level", 0)
        look = {**look, "list_level": level + 1}
        for item in element:
            for child in item:
                is_paragraph = local_name(child) in office.PARAGRAPHS
                label = {"label": "  " * level + "-"} if is_paragraph else {}
                yield from self.pieces(child, {**look, **label})

    # Tables and sheets

    def start_table(self, table: Any, look: Look) -> None:
        """See Walk."""
        if table.getparent().tag == f"{_OFFICE}spreadsheet":
            name = table.get(f"{_TABLE}name", "")
            self._sheet, self._row_number = Sheet(self, name, is_shown=not look["collapsed"]), 1
            first = 1
            for column in table.iter(f"{_TABLE}table-column"):
                last = first + integer_in(column.get(office.REPEATED), 1) - 1
                if _is_collapsed(column):
                    self._sheet.hide_columns(first, last)
                first = last + 1

    def top_row(self, row: Any, look: Look) -> None:
        """See Walk."""
        if self._sheet is None:
            super().top_row(row, look)
            return
        look = self.look(row, look)
        self._sheet.add(self._row_number, self.cells(row, look), is_hidden=look["collapsed"])
        self._row_number += integer_in(row.get(f"{_TABLE}number-rows-repeated"), 1)

    def end_table(self) -> None:
        """See Walk."""
        super().end_table()
        if self._sheet is not None:
            self._sheet.end_group()

    # Slides

    def block(self, element: Any) -> None:
        """See Walk."""
        if element.tag != f"{_DRAW}page":
            super().block(element)
            return
        self._pages += 1
        if self._look("drawing-page", element, _DRAW).get("hidden"):
            self.left_out["hidden slides"] += 1
            self.blocks.hide("hidden_slide", office.all_text(element))
            return
        notes: list[str] = []
        shapes: list[tuple[bool, list[Piece]]] = []
        for shape in element:
            role = shape.get(f"{_PRESENTATION}class", "")
            if local_name(shape) == "notes":
                for box in shape.iter(f"{_DRAW}text-box"):
                    text = "\n".join(self.lines(self.pieces(box, {})))
                    notes += [line for line in text.split("\n") if line.strip()]
            elif role not in _SURROUNDINGS:
                # What is behind a shape on a slide is not known.
                shapes.append((role == "title", list(self.pieces(shape, {"fill": None}))))
        self.slide(self._pages, shapes, notes)

    # Elements inside of paragraphs

    def _spaces(self, element: Any, look: Look) -> str:
        count = min(integer_in(element.get(f"{_TEXT}c"), 1), _MAX_REPEATED)
        return "" if office.hides_all(look) else " " * count

    def _conditional(self, element: Any, look: Look) -> str:
        """A section, or a field that may be hidden."""
        style = self._look("section", element)
        is_hidden = element.get(f"{_TEXT}is-hidden") == "true" or style.get("hidden")
        if is_hidden or element.get(f"{_TEXT}display") in {"none", "condition"}:
            look = {**look, "away": "invisible_element"}
        return self.inline(element, {**look, **style})

    def _note(self, element: Any, look: Look) -> str:
        return "".join(self.note(body, look) for body in element.findall(f"{_TEXT}note-body"))

    def _drawing(self, element: Any, look: Look) -> str:
        """A picture, a shape or a text box. Its text does not look like what is around it."""
        style = self._look("graphic", element, _DRAW)
        kind = office.hides_all(look) or office.hides_all(style) or self._hiding_place(element)
        look = {key: value for key, value in {**look, **style}.items() if key == "fill"}
        return self.inline(element, {**look, "away": kind} if kind else look)

    def _hiding_place(self, element: Any) -> str:
        """How the place or size of a shape hides it; empty if it does not."""
        for axis, side in (("x", "width"), ("y", "height")):
            at = _centimetres(element.get(_SVG + axis))
            size = _centimetres(element.get(_SVG + side))
            if size is not None and size < _MIN_SIDE and element.tag == f"{_DRAW}frame":
                return "invisible_element"
            page = _centimetres(self._page.get(f"{_FO}page-{side}")) if self._pages else None
            is_beside = page is not None and at is not None and not -(size or 0.0) < at < page
            if is_beside or abs(at or 0.0) > _FAR:
                return "off_screen_element"
        return ""

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "s": _spaces,
        "tab": office.mark("\t"),
        "line-break": office.mark("\n"),
        "span": lambda self, element, look: self.inline(
            element, {**look, **self._look("text", element)}
        ),
        "note": _note,
        "section": _conditional,
        "hidden-text": _conditional,
        "variable-set": _conditional,
        "user-field-get": _conditional,
        **dict.fromkeys(
            ("ruby-text", "binary-data", "change-info", "forms", *_INDEXES), office.skip
        ),
        **dict.fromkeys(("desc", "title"), office.hides("alt_text")),
        **dict.fromkeys(_DRAWN, _drawing),
        "tracked-changes": office.hides("tracked_deletion"),
        "annotation": office.hides("comment"),
        "script": office.hides("field_code"),
    }


def _parent_of(style: Any) -> tuple[str, str]:
    return style.get(f"{_STYLE}family", ""), style.get(f"{_STYLE}parent-style-name", "")


def _is_collapsed(element: Any) -> bool:
    """Whether a row or column is hidden."""
    return element.get(f"{_TABLE}visibility") in {"collapse", "filter"}


READERS = {
    "opendocument": package_reader("opendocument", 5, lambda package: _OpenDocument(package).read())
}
