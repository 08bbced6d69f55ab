"""Word documents (Office Open XML): headings, paragraphs, lists, tables, notes and text boxes.

The body is read as a stream, so that only one paragraph or table row is in memory as a tree. A
document has no pages until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office
from rolebundle.ingest.readers.office import Action, Look, Walk, hex_color
from rolebundle.ingest.readers.package import (
    ON,
    RELATION,
    Package,
    integer_in,
    local_name,
    number_in,
    package_reader,
)
from rolebundle.scan.hidden_style import WHITE, color

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
    is_clear = any(number_in(share, 0) >= 95_000 for share in shares)
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
    number, level = _value(item, "numId"), integer_in(_value(item, "ilvl"), 0)
    return {"list_level": level, **({"list": number} if number else {})}


_PROPERTIES: Mapping[str, Callable[[Any], Look]] = {
    **dict.fromkeys(("vanish", "specVanish"), lambda item: {"vanish": _is_on(item)}),
    "color": lambda item: {"color": hex_color(item.get(_VAL))},
    "sz": lambda item: {"size": _number(item, "val", 20) / 2},
    "w": lambda item: _HIDDEN if _number(item, "val", 100) <= _MAX_WIDTH else {},
    "shd": _fill,
    "highlight": lambda item: {"fill": color(item.get(_VAL, "").lower())} if _is_on(item) else {},
    "textFill": _text_fill,
    **dict.fromkeys(("spacing", "trHeight"), _height),
    **dict.fromkeys(("framePr", "ind"), _place),
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
            shared = definitions.get(_value(item, "abstractNumId"), ())
            levels = [
                level for level in (*shared, *item.iter(f"{_W}lvl")) if level.tag == f"{_W}lvl"
            ]
            by_level = {integer_in(level.get(f"{_W}ilvl"), 0): level for level in levels}
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
        forms = {at: _value(item, "numFmt") for at, item in levels.items()}
        form = forms.get(level, "bullet")
        if form != "decimal":
            return "" if form == "none" else "-"

        def written(match: re.Match[str]) -> str:
            return str(counts.get(int(match[1]) - 1, 0))

        return re.sub(r"%([1-9])", written, _value(levels[level], "lvlText")).strip()


# The document


def _is_off(part: Any) -> bool:
    """Whether a part of a drawing says that it is hidden, has no size, or is off the page."""
    name = local_name(part)
    if name == "docPr":
        return part.get("hidden", "0").lower() in ON
    if name == "extent":
        return min(number_in(part.get(side), 1e9) for side in ("cx", "cy")) <= _EMU
    if name == "posOffset":
        return not -720 < number_in(part.text, 0) / _EMU < 1600
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
        self._styles = office.Styles(styles, lambda style: _value(style, "basedOn"), _style_look)
        self._default_look = _look_of(root.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr"))
        self._numbering = _Numbering(self._part("numbering"))
        self._notes_by_id = {
            (kind, note.get(f"{_W}id")): note
            for kind in ("footnote", "endnote")
            for note in self._part(f"{kind}s").iter(_W + kind)
            if note.get(f"{_W}type") is None
        }
        self._has_even = _is_on(self._part("settings").find(f"{_W}evenAndOddHeaders"))
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
            style = self._styles.look(_value(properties, "pStyle") or None)
            look = {**look, **self._default_look, **style, **own}
            # Word counts paragraphs without text as well.
            label = self._numbering.label(look.get("list", ""), look.get("list_level", 0))
            return {**look, "label": "  " * look["list_level"] + label} if label else look
        if name == "tr" and properties.find(f"{_W}del") is not None:
            own["away"] = "tracked_deletion"
        # Which of the shades of a table's style are behind a cell is not known.
        if name == "tbl" and self._styles.look(_value(properties, "tblStyle")).get("is_shaded"):
            own = {"fill": None, **own}
        return {**look, **own}

    def _section(self, section: Any) -> None:
        """Remember the headers and footers that a section shows."""
        if section is None:
            return
        has_first = _is_on(section.find(f"{_W}titlePg"))
        shown = {"first": has_first, "even": self._has_even, "default": True}
        for part in section:
            _, name = self.relations.get(part.get(f"{RELATION}id"), ("", ""))
            if name and shown.get(part.get(f"{_W}type", "default")):
                self._margins[name] = None

    # Elements inside of paragraphs

    def _run(self, element: Any, look: Look, parts: list[str]) -> None:
        properties = element.find(f"{_W}rPr")
        if properties is not None:
            style = self._styles.look(_value(properties, "rStyle"))
            look = {**look, **style, **_look_of(properties)}
        self.inline(element, look, parts)

    def _run_text(self, element: Any, look: Look, parts: list[str]) -> None:
        is_code = any(self._fields)
        self.text(element.text, {**look, "away": "field_code"} if is_code else look, parts)

    def _field(self, element: Any, look: Look, parts: list[str]) -> None:
        kind = element.get(f"{_W}fldCharType")
        if kind == "begin":
            self._fields.append(True)
        elif self._fields and kind == "separate":
            self._fields[-1] = False
        elif self._fields and kind == "end":
            self._fields.pop()

    def _control(self, element: Any, look: Look, parts: list[str]) -> None:
        """A content control, which may show what to write into it."""
        if element.find(f"{_W}sdtPr/{_W}showingPlcHdr") is None:
            self.inline(element, look, parts)

    def _reference(self, element: Any, look: Look, parts: list[str]) -> None:
        """A note is added where the text refers to it for the first time."""
        kind = local_name(element).removesuffix("Reference")
        note = self._notes_by_id.pop((kind, element.get(f"{_W}id")), None)
        if note is not None:
            self.note(note, look, parts)

    def _drawing(self, element: Any, look: Look, parts: list[str]) -> None:
        is_off = any(map(_is_off, element.iter()))
        self.inline(element, {**look, "away": "off_screen_element"} if is_off else look, parts)

    def _shape(self, element: Any, look: Look, parts: list[str]) -> None:
        """A shape, also an old one (VML). Without a fill it is not known what is behind it."""
        look = {**look, "fill": office.shape_fill(element, {})[1]}
        if local_name(element) != "wsp" and element.get("filled", "t") not in {
            "f",
            "false",
        }:
            look["fill"] = color(element.get("fillcolor", "white").partition(" ")[0].lower())
        properties = element.find("{*}cNvPr")
        if properties is not None and properties.get("hidden") in ON:
            look["away"] = "off_screen_element"
        self.inline(element, look, parts)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        **dict.fromkeys(("pPr", "rPr", "rt", "sdtPr"), office.skip),
        **dict.fromkeys(("tab", "ptab"), office.mark("\t")),
        **dict.fromkeys(("br", "cr"), office.mark("\n")),
        "noBreakHyphen": office.mark("-"),
        "r": _run,
        "t": _run_text,
        "fldChar": _field,
        "sdt": _control,
        **dict.fromkeys(("del", "moveFrom", "delText"), office.hides("tracked_deletion")),
        **dict.fromkeys(("instrText", "delInstrText"), office.hides("field_code")),
        **dict.fromkeys(("footnoteReference", "endnoteReference"), _reference),
        **dict.fromkeys(("drawing", "pict", "object"), _drawing),
        **dict.fromkeys(("wsp", "shape", "rect", "roundrect", "oval"), _shape),
        **dict.fromkeys(("docPr", "cNvPr"), office.alt_text),
        "relIds": office.diagram,
        "sectPr": lambda self, element, look, parts: self._section(element),
    }


READERS = {"docx": package_reader("docx", 5, lambda package: _Docx(package).read())}
