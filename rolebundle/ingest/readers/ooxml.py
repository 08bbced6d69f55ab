"""Word documents and PowerPoint presentations (Office Open XML).

Of a document headings, paragraphs, lists, tables, notes and text boxes are read. Its body is read
as a stream, so that only one paragraph or table row is in memory as a tree. A document has no pages
until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office
from rolebundle.ingest.readers.office import Action, Look, Piece, Theme, Walk, fill_color, hex_color
from rolebundle.ingest.readers.package import (
    ON,
    RELATION,
    Package,
    integer_in,
    local_name,
    number_in,
    package_reader,
)
from rolebundle.scan.hidden_style import WHITE, Color, color

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VAL = f"{_W}val"
_MAX_TINY_HEIGHT = 40  # twentieths of a point
_MAX_WIDTH = 5  # percent
_ON_PAGE = (-10_000, 31_000)  # twentieths of a point
_EMU = 12_700  # per point
_OFF = re.compile(
    r"visibility\s*:\s*hidden|display\s*:\s*none|mso-hide\s*:\s*all"
    r"|(?:left|top)\s*:\s*-(?:(?:[89]\d\d|\d{4,})(?:\.\d+)?p[tx]|\d\d(?:\.\d+)?in)"
)
_HIDDEN: Look = {"hidden": True}
_AWAY: Look = {"away": "invisible_element"}


# Looks


def _value(element: Any, name: str) -> str:
    """The value of the child called ``name``; empty if there is none."""
    child = element.find(_W + name)
    return "" if child is None else child.get(_VAL, "")


def _number(item: Any, name: str, default: float) -> float:
    return number_in(item.get(_W + name, "").rstrip("%"), default)


def _is_on(item: Any) -> bool:
    """Whether there is an element, and it switches its property on."""
    return item is not None and item.get(_VAL, "1").lower() not in {"0", "false", "off", "none"}


def _fill(item: Any) -> Look:
    found = hex_color(item.get(f"{_W}fill"))
    return {} if found is None else {"fill": found}


def _text_fill(item: Any) -> Look:
    shares = (value for part in item.iter("{*}alpha") for value in part.attrib.values())
    is_clear = any(number_in(share) >= 95_000 for share in shares)
    return _HIDDEN if is_clear or item.find("{*}noFill") is not None else {}


def _height(item: Any) -> Look:
    """The height of the lines of a paragraph, or of a row."""
    is_row = local_name(item) == "trHeight"
    rule, height = ("hRule", "val") if is_row else ("lineRule", "line")
    if item.get(_W + rule) != "exact" or _number(item, height, 1000) > _MAX_TINY_HEIGHT:
        return {}
    return _AWAY if is_row else _HIDDEN


def _place(item: Any) -> Look:
    """The frame or the indent of a paragraph."""
    places = (_number(item, name, 0) for name in ("x", "y", "left", "start"))
    return {} if all(_ON_PAGE[0] < place < _ON_PAGE[1] for place in places) else _HIDDEN


def _outline(item: Any) -> Look:
    level = integer_in(item.get(_VAL), 9)
    return {"level": level + 1} if 0 <= level < 9 else {}


def _list(item: Any) -> Look:
    number, level = _value(item, "numId"), integer_in(_value(item, "ilvl"))
    return {"list_level": level, **({"list": number} if number else {})}


_PROPERTIES: Mapping[str, Callable[[Any], Look]] = {
    **dict.fromkeys(("vanish", "specVanish"), lambda item: {"vanish": _is_on(item)}),
    "color": lambda item: {"color": hex_color(item.get(_VAL))},
    "sz": lambda item: {"size": _number(item, "val", 20) / 2},
    "w": lambda item: _HIDDEN if _number(item, "val", 100) <= _MAX_WIDTH else {},
    "shd": _fill,
    "highlight": lambda item: {"fill": color(item.get(_VAL, "").lower())} if _is_on(item) else {},
    "textFill": _text_fill,
    "spacing": _height,
    "trHeight": _height,
    "framePr": _place,
    "ind": _place,
    "outlineLvl": _outline,
    "numPr": _list,
    "hidden": lambda item: _AWAY if _is_on(item) else {},
    "vMerge": lambda item: {} if item.get(_VAL) == "restart" else _AWAY,
}
"""How a property of a run, paragraph, table, row or cell changes the look."""


def _look_of(properties: Any) -> dict[str, Any]:
    look: dict[str, Any] = {}
    for item in () if properties is None else properties:
        if read := _PROPERTIES.get(local_name(item)):
            look.update(read(item))
    return look


def _style_look(style: Any) -> Look:
    name = _value(style, "name").lower()
    look: dict[str, Any] = {"style": name}
    if match := re.fullmatch(r"heading (\d)", name):
        look["level"] = int(match[1])
    if any(map(_fill, style.iter(f"{_W}shd"))):
        look["is_shaded"] = True
    return {**look, **_look_of(style.find(f"{_W}pPr")), **_look_of(style.find(f"{_W}rPr"))}


# Numbers of lists


class _Numbering:
    """The labels of numbered paragraphs, such as ``4.2``, as Word counts them."""

    def __init__(self, root: Any) -> None:
        definitions = {
            item.get(f"{_W}abstractNumId"): item for item in root.iter(f"{_W}abstractNum")
        }
        # Of each list its levels, and how far each level that has begun was counted.
        self._lists: dict[str, tuple[dict[int, Any], dict[int, int]]] = {}
        for item in root.iter(f"{_W}num"):
            shared = definitions.get(_value(item, "abstractNumId"), root)
            levels = (*shared.iterfind(f"{_W}lvl"), *item.iter(f"{_W}lvl"))
            by_level = {integer_in(level.get(f"{_W}ilvl")): level for level in levels}
            self._lists[item.get(f"{_W}numId", "")] = by_level, {}

    def label(self, number: str, level: int) -> str:
        """The label of the next paragraph; empty for one without a number or bullet."""
        if number not in self._lists or not 0 <= level < 9:
            return ""
        levels, counts = self._lists[number]
        for at in range(level + 1):
            start = integer_in(_value(levels[at], "start"), 1) if at in levels else 1
            counts.setdefault(at, start - (at == level))
        counts[level] += 1
        for at in range(level + 1, 9):
            counts.pop(at, None)
        form = _value(levels[level], "numFmt") if level in levels else "bullet"
        if form != "decimal":
            return "" if form == "none" else "-"

        text = _value(levels[level], "lvlText")
        return re.sub("%([1-9])", lambda at: str(counts.get(int(at[1]) - 1, 0)), text).strip()


# The document


def _is_off(part: Any) -> bool:
    """Whether a part of a drawing says that it is hidden, has no size, or is off the page."""
    name = local_name(part)
    if name == "docPr":
        return part.get("hidden", "0").lower() in ON
    if name == "extent":
        return min(number_in(part.get(side), 1e9) for side in ("cx", "cy")) <= _EMU
    if name == "posOffset":
        return not -720 < number_in(part.text) / _EMU < 1600
    return bool(_OFF.search(part.get("style", "")))


class _Docx(Walk):
    """Reads the parts of a Word document."""

    STREAMED = ("p", "tbl", "tr", "sdt", "customXml", "sectPr", "AlternateContent", "background")
    BODIES = frozenset((f"{_W}body",))

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self._main, self._properties = office.main_part(self, "word/document.xml")
        self.relations = package.relations(self._main)
        self._part_names = dict(reversed(self.relations.values()))
        root = self._part("styles")
        styles = {style.get(f"{_W}styleId"): style for style in root.iter(f"{_W}style")}
        for style in list(styles.values()):
            if style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default") in ON:
                styles[None] = style
        self._look_of_style = office.style_looks(
            styles, lambda style: _value(style, "basedOn"), _style_look
        )
        self._default_look = _look_of(root.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr"))
        self._numbering = _Numbering(self._part("numbering"))
        self._notes_by_id = {
            (kind, note.get(f"{_W}id")): note
            for kind in ("footnote", "endnote")
            for note in self._part(f"{kind}s").iter(_W + kind)
            if note.get(f"{_W}type") is None
        }
        self._margins: dict[str, None] = {}
        # For each open field whether its code is being read, which is not shown.
        self._fields: list[bool] = []

    def _part(self, kind: str) -> Any:
        return self.package.parse(self._part_names.get(kind, ""))

    def read(self) -> ParsedDocument:
        """The document."""
        self.read_stream(self._main)
        self.page_margins(map(self.package.parse, self._margins))
        return self.document(self._properties)

    def start_part(self, element: Any) -> None:
        """See Walk: the color of the pages."""
        if element.tag == f"{_W}background":
            self.top = {"fill": hex_color(element.get(f"{_W}color")) or WHITE}

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        properties = element.find(f"{_W}{name}Pr")
        own = _look_of(properties)
        if properties is None:
            properties = element
        if name == "p":
            self._section(properties.find(f"{_W}sectPr"))
            style = self._look_of_style(_value(properties, "pStyle") or None)
            look = {**look, **self._default_look, **style, **own}
            # Word counts paragraphs without text as well.
            label = self._numbering.label(look.get("list", ""), look.get("list_level", 0))
            return {**look, "label": "  " * look["list_level"] + label} if label else look
        if name == "tr" and properties.find(f"{_W}del") is not None:
            own["away"] = "tracked_deletion"
        # Which of the shades of a table's style are behind a cell is not known.
        if name == "tbl" and self._look_of_style(_value(properties, "tblStyle")).get("is_shaded"):
            own = {"fill": None, **own}
        return {**look, **own}

    def _section(self, section: Any) -> None:
        """Remember the headers and footers that a section shows."""
        if section is None:
            return
        for part in section:
            _, name = self.relations.get(part.get(f"{RELATION}id"), ("", ""))
            # Those of the first and of even pages are only shown by further settings.
            if name and part.get(f"{_W}type", "default") == "default":
                self._margins[name] = None

    # Elements inside of paragraphs

    def _run(self, element: Any, look: Look) -> str:
        properties = element.find(f"{_W}rPr")
        if properties is not None:
            style = self._look_of_style(_value(properties, "rStyle"))
            look = {**look, **style, **_look_of(properties)}
        return self.inline(element, look)

    def _run_text(self, element: Any, look: Look) -> str:
        is_code = any(self._fields)
        return self.text(element.text, {**look, "away": "field_code"} if is_code else look)

    def _field(self, element: Any, look: Look) -> None:
        kind = element.get(f"{_W}fldCharType")
        if kind == "begin":
            self._fields.append(True)
        elif self._fields and kind == "separate":
            self._fields[-1] = False
        elif self._fields and kind == "end":
            self._fields.pop()

    def _control(self, element: Any, look: Look) -> str:
        """A content control, which may show what to write into it."""
        is_shown = element.find(f"{_W}sdtPr/{_W}showingPlcHdr") is None
        return self.inline(element, look) if is_shown else ""

    def _reference(self, element: Any, look: Look) -> str:
        """A note is added where the text refers to it for the first time."""
        kind = local_name(element).removesuffix("Reference")
        note = self._notes_by_id.pop((kind, element.get(f"{_W}id")), None)
        return "" if note is None else self.note(note, look)

    def _drawing(self, element: Any, look: Look) -> str:
        is_off = any(map(_is_off, element.iter()))
        return self.inline(element, {**look, "away": "off_screen_element"} if is_off else look)

    def _shape(self, element: Any, look: Look) -> str:
        """A shape, also an old one (VML). Without a fill it is not known what is behind it."""
        look = {**look, "fill": office.shape_fill(element, {})[1]}
        if local_name(element) != "wsp" and element.get("filled", "t") not in {"f", "false"}:
            look["fill"] = color(element.get("fillcolor", "white").partition(" ")[0].lower())
        properties = element.find("{*}cNvPr")
        if properties is not None and properties.get("hidden") in ON:
            look["away"] = "off_screen_element"
        return self.inline(element, look)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "pPr": office.skip,
        "rPr": office.skip,
        "rt": office.skip,
        "sdtPr": office.skip,
        **dict.fromkeys(("tab", "ptab"), office.mark("\t")),
        **dict.fromkeys(("br", "cr"), office.mark("\n")),
        "noBreakHyphen": office.mark("-"),
        "r": _run,
        "t": _run_text,
        "fldChar": _field,
        "sdt": _control,
        **dict.fromkeys(("del", "moveFrom", "delText"), office.hides("tracked_deletion")),
        **dict.fromkeys(("instrText", "delInstrText"), office.hides("field_code")),
        "footnoteReference": _reference,
        "endnoteReference": _reference,
        "drawing": _drawing,
        "pict": _drawing,
        "object": _drawing,
        **dict.fromkeys(("wsp", "shape", "rect", "roundrect", "oval"), _shape),
        "docPr": office.alt_text,
        "cNvPr": office.alt_text,
        "relIds": office.diagram,
        "sectPr": lambda self, element, look: self._section(element),
    }


# -- presentations --
#
# The text of each visible slide, with its notes.


_TITLES = frozenset(("title", "ctrTitle"))
# Date, footer and number, which all slides have.
_SURROUNDINGS = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_SHAPES = frozenset(("sp", "pic", "graphicFrame", "cxnSp"))
_TREE = "{*}cSld/{*}spTree"
_MAX_LEVEL = 8

_Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


_Shape = tuple[Any, _Box | None, bool]
"""A shape, its place if that is known, and whether it or a group around it is hidden."""


_Layout = tuple[Theme, Color | None, Sequence[_Box]]
"""What a slide inherits: colors, that of the background, and the places of shapes and pictures."""


class _Pptx(Walk):
    """Reads the slides of a presentation."""

    def read(self) -> ParsedDocument:
        """The document."""
        main, properties = office.main_part(self, "ppt/presentation.xml")
        root, slides = self.package.parse(main), self.package.relations(main)
        size = root.find("{*}sldSz")
        width, height = (
            (1e9 if size is None else number_in(size.get(key), 1e9)) for key in ("cx", "cy")
        )
        self._slide_box = (0.0, 0.0, width, height)
        self._layouts: dict[str, _Layout] = {}
        for number, entry in enumerate(root.iter("{*}sldId"), start=1):
            self._slide(number, slides.get(entry.get(f"{RELATION}id", ""), ("", ""))[1])
        return self.document(properties)

    def _slide(self, number: int, name: str) -> None:
        root = self.package.parse(name)
        self.relations = self.package.relations(name)
        parts = dict(self.relations.values())
        notes = [
            text
            for shape in self.package.parse(parts.get("notesSlide", "")).iter("{*}sp")
            if _placeholder(shape) == "body"
            for paragraph in shape.iter("{*}p")
            if (text := office.all_text(paragraph).strip())
        ]
        if root.get("show", "1") in {"0", "false"}:
            self.left_out["hidden slides"] += 1
            self.blocks.hide("hidden_slide", " ".join([office.all_text(root), *notes]))
            return
        self._theme, background, boxes = self._layout(parts.get("slideLayout", ""))
        self._background = _background(root, self._theme, background)
        # The places of filled shapes and pictures that were drawn.
        self._drawn = list(boxes)
        shapes = (
            (_placeholder(shape[0]) in _TITLES, list(self._pieces_of(shape)))
            for shape in _shapes(root.find(_TREE))
        )
        self.slide(number, shapes, notes)

    def _layout(self, name: str) -> _Layout:
        if name not in self._layouts:
            master = dict(self.package.relations(name).values()).get("slideMaster", "")
            parts = dict(self.package.relations(master).values())
            layout_root, master_root = self.package.parse(name), self.package.parse(master)
            theme = office.theme_of(self.package, parts.get("theme", ""))
            names = [pair for mapping in master_root.iter("{*}clrMap") for pair in mapping.items()]
            theme = {**theme, **{key: theme[value] for key, value in names if value in theme}}
            background = _background(master_root, theme, theme.get("bg1", WHITE))
            boxes = [
                box
                for root in (master_root, layout_root)
                for element, box, _ in _shapes(root.find(_TREE))
                if box and office.shape_fill(element, theme)[0]
            ]
            background = _background(layout_root, theme, background)
            self._layouts[name] = theme, background, boxes
        return self._layouts[name]

    def _pieces_of(self, shape: _Shape) -> Iterator[Piece]:
        element, box, is_hidden = shape
        placeholder = _placeholder(element)
        kind = ""
        if is_hidden:
            kind = "invisible_element"
        elif box and not (
            _overlap(box, self._slide_box) and max(box[2] - box[0], box[3] - box[1]) >= _EMU
        ):
            kind = "off_screen_element"
        is_list = placeholder in {"body", "obj"}
        look = {"fill": self._fill_behind(shape), "is_list": is_list, "away": kind}
        if placeholder not in _SURROUNDINGS:
            yield from self.pieces(element, look)

    def _fill_behind(self, shape: _Shape) -> Color | None:
        """The color behind the text of a shape; ``None`` if it is not known."""
        element, box, _ = shape
        is_known = box is not None and not any(_overlap(other, box) for other in self._drawn)
        is_filled, color = office.shape_fill(element, self._theme)
        if box and is_filled:
            self._drawn.append(box)
        return color if is_filled else self._background if is_known else None

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        if name == "tc":
            if any(element.get(key) in ON for key in ("hMerge", "vMerge")):
                return {**look, "away": "invisible_element"}
            fill = element.find("{*}tcPr/{*}solidFill")
            return {**look, "fill": None if fill is None else fill_color(fill, self._theme)}
        properties = element.find("{*}pPr")
        if name != "p" or (properties is None and not look["is_list"]):
            return look
        level = 0 if properties is None else integer_in(properties.get("lvl"))
        level = min(max(level, 0), _MAX_LEVEL)
        bullets = {local_name(part) for part in element.iterfind("{*}pPr/*")}
        is_list = bullets & {"buChar", "buAutoNum"} or (
            (look["is_list"] or level) and "buNone" not in bullets
        )
        return {**look, "label": f"{'  ' * level}-"} if is_list else look

    def _run(self, element: Any, look: Look) -> str:
        properties = element.find("{*}rPr")
        own: dict[str, Any] = {}
        for part in () if properties is None else properties:
            name = local_name(part)
            if name == "solidFill":
                own["color"] = fill_color(part, self._theme)
            elif name == "noFill":
                own["hidden"] = True
            elif name == "highlight":
                own["fill"] = fill_color(part, self._theme)
        if properties is not None and properties.get("sz"):
            own["size"] = number_in(properties.get("sz"), 1800) / 100
        return self.inline(element, {**look, **own})

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "r": _run,
        "fld": _run,
        "t": office.text_of,
        "br": office.mark("\n"),
        "cNvPr": office.alt_text,
        "relIds": office.diagram,
    }


def _shapes(tree: Any, group: _Box | None = None, is_hidden: bool = False) -> Iterator[_Shape]:
    """The shapes of a tree as they are drawn. Those in a group have the place of the group."""
    for element in () if tree is None else office.children(tree):
        name = local_name(element)
        properties = next(element.iter("{*}cNvPr"), None)
        hides = is_hidden or (properties is not None and properties.get("hidden") in ON)
        box = group or _box(element)
        if name in {"grpSp", "AlternateContent"}:
            yield from _shapes(element, box, hides)
        elif name in _SHAPES:
            yield element, box, hides


def _background(root: Any, theme: Theme, inherited: Color | None) -> Color | None:
    """The color of a background; ``None`` if it is not known."""
    background = root.find("{*}cSld/{*}bg")
    if background is None:
        return inherited
    # Numbers other than 1001 are gradients and pictures.
    fills = (background.find("{*}bgPr/{*}solidFill"), background.find("{*}bgRef[@idx='1001']"))
    return next((fill_color(fill, theme) for fill in fills if fill is not None), None)


def _placeholder(element: Any) -> str:
    """The type of a placeholder, ``obj`` if it has none; empty for other shapes."""
    found = element.find("*/{*}nvPr/{*}ph")
    return "" if found is None else found.get("type", "obj")


def _box(element: Any) -> _Box | None:
    """The place of a shape on the slide, if it does not have that of its layout."""
    found = element.find("{*}xfrm")
    found = element.find("*/{*}xfrm") if found is None else found
    offset, size = (None, None) if found is None else (found.find("{*}off"), found.find("{*}ext"))
    if offset is None or size is None:
        return None
    left, top = (number_in(offset.get(key)) for key in ("x", "y"))
    return left, top, left + number_in(size.get("cx")), top + number_in(size.get("cy"))


def _overlap(first: _Box, second: _Box) -> bool:
    is_beside = first[2] <= second[0] or second[2] <= first[0]
    return not is_beside and first[1] < second[3] and second[1] < first[3]


READERS = {
    "docx": package_reader("docx", 6, lambda package: _Docx(package).read()),
    "pptx": package_reader("pptx", 4, lambda package: _Pptx(package).read()),
}
