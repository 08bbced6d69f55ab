"""Word documents and PowerPoint presentations (Office Open XML).

Of a document headings, paragraphs, lists, tables, notes and text boxes are read. Its body is read
as a stream, so that only one paragraph or table row is in memory as a tree. A document has no pages
until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office, reader_name_for, reader_named
from rolebundle.ingest.readers.drawings import DRAWN, embedded
from rolebundle.ingest.readers.notation import CHECKED, UNCHECKED, list_number
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
from rolebundle.ingest.readers.symbols import SYMBOLS
from rolebundle.scan.hidden_style import WHITE, Color, color

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VAL = f"{_W}val"
_MAX_TINY_HEIGHT = 40  # twentieths of a point
_MAX_WIDTH = 5  # percent
_ON_PAGE = (-10_000, 31_000)  # twentieths of a point
_MIN_RISE = 4  # half-points
_EMU = 12_700  # per point
_INCLUDED = ("html", "text", "mhtml", "docx")  # readers
_INSIDE = "!/"  # between the path of a file and the name of a document in it
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
    """The frame or the indent of a paragraph. A large initial is in a frame."""
    if item.get(f"{_W}dropCap", "none") != "none":
        return {"is_initial": True}
    places = (_number(item, name, 0) for name in ("x", "y", "left", "start"))
    return {} if all(_ON_PAGE[0] < place < _ON_PAGE[1] for place in places) else _HIDDEN


def _outline(item: Any) -> Look:
    level = integer_in(item.get(_VAL), 9)
    return {"level": level + 1} if 0 <= level < 9 else {}


def _list(item: Any) -> Look:
    number, level = _value(item, "numId"), integer_in(_value(item, "ilvl"))
    return {"list_level": level, **({"list": number} if number else {})}


def _rise(item: Any) -> Look:
    """How far a run is raised, or lowered by a negative number."""
    rise = _number(item, "val", 0)
    return _script(rise if abs(rise) >= _MIN_RISE else 0)


def _script(rise: float) -> Look:
    return {"script": "raised" if rise > 0 else "lowered" if rise < 0 else ""}


def _translated(text: str | None, font: str | None) -> str:
    """The characters of a text in a font that may be one of symbols."""
    return (text or "").translate(SYMBOLS.get(font or "", {}))


def _drawn_script(run: Any) -> Look:
    """How a run of a drawing is raised or lowered."""
    properties = run.find(f"{_A}rPr")
    baseline = None if properties is None else properties.get("baseline")
    return {} if baseline is None else _script(number_in(baseline.rstrip("%")))


_PROPERTIES: Mapping[str, Callable[[Any], Look]] = {
    **dict.fromkeys(("vanish", "specVanish"), lambda item: {"vanish": _is_on(item)}),
    "color": lambda item: {"color": hex_color(item.get(_VAL))},
    "vertAlign": lambda item: _script({"superscript": 1, "subscript": -1}.get(item.get(_VAL), 0)),
    "position": _rise,
    "rFonts": lambda item: {"font": item.get(f"{_W}ascii", "").lower()},
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
    if style.find(f"{_W}pPr/{_W}numPr") is not None:
        look["list_style"] = style.get(f"{_W}styleId")
    if any(map(_fill, style.iter(f"{_W}shd"))):
        look["is_shaded"] = True
    return {**look, **_look_of(style.find(f"{_W}pPr")), **_look_of(style.find(f"{_W}rPr"))}


# Numbers of lists


_FORMS = {
    **{"lowerLetter": "aa", "upperLetter": "AA", "lowerRoman": "i", "upperRoman": "I"},
    **{"decimalZero": "01", "ordinal": "1st", "cardinalText": "One", "decimalEnclosedCircle": "①"},
    **{"russianLower": "а", "russianUpper": "А", "chineseCounting": "一"},
    **{
        "chineseCountingThousand": "一",
        "japaneseCounting": "一",
        "taiwaneseCountingThousand": "一",
    },
}
"""The forms of numbers, as those of the first item; others are decimal."""


def _levels(root: Any) -> dict[int, Any]:
    """The levels of a list that an element defines."""
    return {_level_of(level): level for level in root.iter(f"{_W}lvl")}


def _level_of(item: Any) -> int:
    return integer_in(item.get(f"{_W}ilvl"))


class _Numbering:
    """The labels of numbered paragraphs, such as ``4.2`` or ``(b)``, as Word counts them."""

    def __init__(self, root: Any) -> None:
        # All lists that share a definition are counted together.
        definitions = {
            item.get(f"{_W}abstractNumId"): (_levels(item), dict[int, int]())
            for item in root.iter(f"{_W}abstractNum")
        }
        # For each list its levels, the numbers that they have reached, and where those that it
        # starts again begin.
        self._lists: dict[str, tuple[dict[int, Any], dict[int, int], dict[int, int]]] = {}
        for item in root.iter(f"{_W}num"):
            levels, counts = definitions.get(_value(item, "abstractNumId"), ({}, {}))
            starts = {
                _level_of(part): integer_in(_value(part, "startOverride"))
                for part in item.iter(f"{_W}lvlOverride")
                if _value(part, "startOverride")
            }
            self._lists[item.get(f"{_W}numId", "")] = levels | _levels(item), counts, starts
        self.level_of_style = {
            _value(level, "pStyle"): _level_of(level) for level in root.iter(f"{_W}lvl")
        }

    def label(self, number: str, level: int) -> str:
        """The label of the next paragraph; empty for one without a number or bullet."""
        if number not in self._lists or not 0 <= level < 9:
            return ""
        levels, counts, starts = self._lists[number]
        if level in starts:
            counts[level] = starts.pop(level) - 1
        for at in range(level + 1):
            start = integer_in(_value(levels[at], "start"), 1) if at in levels else 1
            counts.setdefault(at, start - (at == level))
        counts[level] += 1
        for at in range(level + 1, 9):
            # A level starts again below each higher one, or only below the one that it names.
            if at not in levels or level < integer_in(_value(levels[at], "lvlRestart"), at):
                counts.pop(at, None)
        form = _form(levels[level]) if level in levels else "bullet"
        if form == "bullet":
            # One of white space continues an item.
            has_space = level in levels and _value(levels[level], "lvlText").isspace()
            return "" if has_space else "-"
        is_legal = levels[level].find(f"{_W}isLgl") is not None

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            form = _form(levels[at]) if at in levels and not is_legal else ""
            return "" if form == "none" else list_number(counts.get(at, 0), _FORMS.get(form, "1"))

        return re.sub("%([1-9])", shown, _value(levels[level], "lvlText")).strip()


def _form(level: Any) -> str:
    """The form of the numbers of a level. Newer ones are an alternative."""
    return next((item.get(_VAL, "") for item in [*level.iter(f"{_W}numFmt")][-1:]), "decimal")


# The document


def _is_off(part: Any) -> bool:
    """Whether a part of a drawing says that it is hidden, has no size, or is off the page."""
    name = local_name(part)
    if name == "docPr":
        return part.get("hidden", "0").lower() in ON
    if name == "extent":  # A box may grow with its text.
        is_fixed = next(part.getparent().iter("{*}spAutoFit"), None) is None
        return is_fixed and min(number_in(part.get(side), 1e9) for side in ("cx", "cy")) <= _EMU
    if name == "posOffset":
        return not -720 < number_in(part.text) / _EMU < 1600
    return bool(_OFF.search(part.get("style", "")))


class _Docx(Walk):
    """Reads the parts of a Word document."""

    STREAMED = tuple("p tbl tr sdt customXml sectPr AlternateContent background altChunk".split())
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
        self._has_even_pages = _is_on(self._part("settings").find(f"{_W}evenAndOddHeaders"))
        self._notes_so_far = Counter[str]()
        # The headers and footers of the present section by their element and type; all that are
        # shown.
        self._of_section: dict[tuple[str, str], str] = {}
        self._margins: dict[str, None] = {}
        # For each open field whether its code is being read, which is not shown.
        self._fields: list[bool] = []

    def _part(self, kind: str) -> Any:
        return self.package.parse(self._part_names.get(kind, ""))

    def read(self) -> ParsedDocument:
        """The document."""
        self.read_stream(self._main)
        self.page_margins(map(self._margin, self._margins))
        return self.document(self._properties)

    def _margin(self, name: str) -> Any:
        self.relations = self.package.relations(name)
        return self.package.parse(name)

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
            if "list_level" not in own:
                by_style = self._numbering.level_of_style
                look["list_level"] = by_style.get(
                    look.get("list_style", ""), look.get("list_level", 0)
                )
            # Word counts paragraphs without text as well.
            label = self._numbering.label(look.get("list", ""), look["list_level"])
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
            if name := self.target(part.get(f"{RELATION}id")):
                self._of_section[local_name(part), part.get(f"{_W}type", "default")] = name
        # Those of the first and of even pages are only shown by further settings.
        shown = {"default", "even" if self._has_even_pages else ""}
        shown.add("first" if _is_on(section.find(f"{_W}titlePg")) else "")
        for (_, kind), name in self._of_section.items():
            if kind in shown:
                self._margins[name] = None

    # Elements inside of paragraphs

    def _run(self, element: Any, look: Look) -> str:
        properties = element.find(f"{_W}rPr")
        if properties is not None:
            style = self._look_of_style(_value(properties, "rStyle"))
            look = {**look, **style, **_look_of(properties)}
        elif scripts := _drawn_script(element):
            look = {**look, **scripts}
        return self.inline(element, look)

    def _run_text(self, element: Any, look: Look) -> str:
        return self._shown(_translated(element.text, look.get("font")), look)

    def _shown(self, text: str, look: Look) -> str:
        is_code = any(self._fields)
        return self.text(text, {**look, "away": "field_code"} if is_code else look)

    def _symbol(self, element: Any, look: Look) -> str:
        """A character of a font of symbols."""
        code = element.get(f"{_W}char", "")
        sign = chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{1,4}", code) else ""
        return self._shown(_translated(sign, element.get(f"{_W}font", "").lower()), look)

    def _field(self, element: Any, look: Look) -> str:
        """A mark of a field. That of a form has its state."""
        kind, state = element.get(f"{_W}fldCharType"), ""
        if kind == "begin":
            for box in element.iter(f"{_W}checkBox"):
                states = [box.find(_W + name) for name in ("checked", "default")]
                known = next((item for item in states if item is not None), None)
                state = CHECKED if _is_on(known) else UNCHECKED
            for choice in element.iter(f"{_W}ddList"):
                at = integer_in(_value(choice, "result") or _value(choice, "default"))
                entries = [item.get(_VAL, "") for item in choice.iterfind(f"{_W}listEntry")]
                state = "".join(entries[at : at + 1])
            state = self._shown(state, look)
            self._fields.append(True)
        elif self._fields and kind == "separate":
            self._fields[-1] = False
        elif self._fields and kind == "end":
            self._fields.pop()
        return state

    def _control(self, element: Any, look: Look) -> str:
        """A content control, which may show what to write into it, or whether a box is checked."""
        for box in element.iterfind(f"{_W}sdtPr/{{*}}checkbox"):
            states = [value for item in box.iter("{*}checked") for value in item.attrib.values()]
            return self._shown(CHECKED if ON.intersection(states) else UNCHECKED, look)
        is_shown = element.find(f"{_W}sdtPr/{_W}showingPlcHdr") is None
        return self.inline(element, look) if is_shown else ""

    def _reference(self, element: Any, look: Look) -> str:
        """A note is added where the text refers to it for the first time."""
        kind = local_name(element).removesuffix("Reference")
        note = self._notes_by_id.pop((kind, element.get(f"{_W}id")), None)
        if note is None:
            return ""
        mark = ""
        if element.get(f"{_W}customMarkFollows", "0") in ON:
            for part in element.itersiblings(f"{_W}t"):
                mark += part.text or ""
                part.clear()
        self._notes_so_far[kind] += not mark and not office.hides_all(look)
        form = "1" if kind == "footnote" else "i"
        return self.note(note, look, mark or list_number(self._notes_so_far[kind], form))

    def _chunk(self, element: Any, look: Look) -> None:
        """A document of another format that is included."""
        name = self.target(element.get(f"{RELATION}id"))
        reader = reader_name_for(name)
        path = f"{self.package.path}{_INSIDE}{name}"
        documents: list[ParsedDocument | DocumentError] = []
        if reader in _INCLUDED and _INSIDE not in self.package.path and not office.hides_all(look):
            with suppress(DocumentError):
                documents += reader_named(reader)[1](self.package.read(name), path, "")
        included = [one for one in documents if isinstance(one, ParsedDocument)]
        self.left_out["included documents"] += not included
        for document in included:
            self.notes += document.notes
            self.blocks.include(document)

    def _drawing(self, element: Any, look: Look) -> str:
        is_off = any(map(_is_off, element.iter()))
        look = {**look, "away": "off_screen_element"} if is_off else look
        is_object = element.find("{*}OLEObject") is not None
        return embedded(self, element, look) if is_object else self.inline(element, look)

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
        "ruby": office.ruby("rubyBase", "rt"),
        "sdtPr": office.skip,
        **dict.fromkeys(("tab", "ptab"), office.mark("\t")),
        **dict.fromkeys(("br", "cr"), office.mark("\n")),
        "noBreakHyphen": office.mark("-"),
        "r": _run,
        "t": _run_text,
        "sym": _symbol,
        "altChunk": _chunk,
        "textpath": lambda self, element, look: self._shown(element.get("string", ""), look),
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
        **DRAWN,
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


_Layout = tuple[Theme, Color | None, Sequence[_Box], Sequence[tuple[str, _Shape]]]
"""What a slide inherits: colors, that of the background, the places of shapes and pictures, and the
shapes that it shows, each with the part that has it."""

_BULLETS = frozenset(("buNone", "buChar", "buBlip", "buAutoNum"))
_NUMBERS = {"alphaLc": "aa", "alphaUc": "AA", "romanLc": "i", "romanUc": "I"}
_NUMBERS |= {"circleNum": "①", "ea1": "一"}
_AROUND = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Minus": "{}-"}
_SCHEME = re.compile(rf"({'|'.join(_NUMBERS)}|)\w*?({'|'.join(_AROUND)}|)")


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
        self._inherited: set[str] = set()  # layouts, and their texts
        self._body: Any = None
        # For each level of a list its kind of numbers, where they begin, and the last one.
        self._counts: dict[int, tuple[str, int, int]] = {}
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
        layout = parts.get("slideLayout", "")
        self._theme, background, boxes, inherited = self._layout(layout)
        self._background = _background(root, self._theme, background)
        # The places of filled shapes and pictures that were drawn.
        self._drawn = list(boxes)
        shapes, footer = [], []
        for shape in _shapes(root.find(_TREE)):
            kind, pieces = _placeholder(shape[0]), list(self._pieces_of(shape))
            if kind in _SURROUNDINGS:
                # An automatic date is shown as that of today.
                fields = [field.get("type", "") for field in shape[0].iter("{*}fld")]
                is_today = any(re.fullmatch(r"datetime\d*", name) for name in fields)
                footer += [piece.text for piece in pieces if piece.text.strip() and not is_today]
            else:
                shapes.append((kind in _TITLES, pieces))
        if root.get("showMasterSp", "1") in ON and layout not in self._inherited:
            self._inherited.add(layout)
            shapes.append((False, [piece for shape in inherited for piece in self._new(*shape)]))
        self.slide(number, shapes, notes, footer)

    def _new(self, part: str, shape: _Shape) -> Iterator[Piece]:
        """What a shape of a layout or master contains, if no slide before shows it."""
        self.relations = self.package.relations(part)
        for piece in self._pieces_of(shape):
            if piece.rows or piece.text not in self._inherited:
                self._inherited.add(piece.text)
                yield piece

    def _layout(self, name: str) -> _Layout:
        if name not in self._layouts:
            master = dict(self.package.relations(name).values()).get("slideMaster", "")
            parts = dict(self.package.relations(master).values())
            layout_root, master_root = self.package.parse(name), self.package.parse(master)
            theme = office.theme_of(self.package, parts.get("theme", ""))
            names = [pair for mapping in master_root.iter("{*}clrMap") for pair in mapping.items()]
            theme = {**theme, **{key: theme[value] for key, value in names if value in theme}}
            background = _background(master_root, theme, theme.get("bg1", WHITE))
            shapes = [
                (part, shape)
                for part, root in ((master, master_root), (name, layout_root))
                for shape in _shapes(root.find(_TREE))
            ]
            boxes = [
                box for _, (part, box, _) in shapes if box and office.shape_fill(part, theme)[0]
            ]
            background = _background(layout_root, theme, background)
            is_shown = layout_root.get("showMasterSp", "1") in ON
            inherited = [
                (part, shape)
                for part, shape in shapes
                if not _placeholder(shape[0]) and (part == name or is_shown)
            ]
            self._layouts[name] = theme, background, boxes, inherited
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
        return {**look, "label": self._label(element, look)} if name == "p" else look

    def _label(self, paragraph: Any, look: Look) -> str:
        """The number or bullet of a paragraph; empty if it has none."""
        properties = paragraph.find("{*}pPr")
        level = 0 if properties is None else integer_in(properties.get("lvl"))
        level = min(max(level, 0), _MAX_LEVEL)
        body = paragraph.getparent()
        if body is not self._body:
            self._body, self._counts = body, {}
        styles = (properties, body.find(f"{{*}}lstStyle/{{*}}lvl{level + 1}pPr"))
        parts = (part for style in styles if style is not None for part in style)
        bullet = next((part for part in parts if local_name(part) in _BULLETS), None)
        kind = "" if bullet is None else local_name(bullet)
        label = "" if kind == "buNone" or not (kind or level or look.get("is_list")) else "-"
        if any(text.strip() for text in paragraph.itertext()):
            is_numbered = kind == "buAutoNum"
            counts = {at: count for at, count in self._counts.items() if at < level + is_numbered}
            if bullet is not None and is_numbered:
                scheme, start = bullet.get("type", ""), integer_in(bullet.get("startAt"), 1)
                before = counts.get(level, ("", 0, 0))
                number = before[2] + 1 if before[:2] == (scheme, start) else start
                counts[level] = scheme, start, number
                parts_of = _SCHEME.fullmatch(scheme)
                form, around = parts_of.groups() if parts_of else ("", "")
                label = _AROUND.get(around, "{}").format(
                    list_number(number, _NUMBERS.get(form, "1"))
                )
            self._counts = counts
        return "  " * level + label if label else ""

    def _run(self, element: Any, look: Look) -> str:
        properties = element.find(f"{_A}rPr")
        own: dict[str, Any] = {}
        for part in () if properties is None else properties:
            name = local_name(part)
            if name == "solidFill":
                own["color"] = fill_color(part, self._theme)
            elif name == "noFill":
                own["hidden"] = True
            elif name == "highlight":
                own["fill"] = fill_color(part, self._theme)
            elif name in {"latin", "sym"}:
                own[name] = part.get("typeface", "").lower()
        if properties is not None and properties.get("sz"):
            own["size"] = number_in(properties.get("sz"), 1800) / 100
        return self.inline(element, {**look, **own, **_drawn_script(element)})

    def _run_text(self, element: Any, look: Look) -> str:
        text = _translated(element.text, look.get("latin"))
        # The other font is only for what are no letters of ASCII.
        if look.get("sym") in SYMBOLS:
            text = re.sub(r"[^\0-\x7f]+", lambda part: _translated(part[0], look["sym"]), text)
        return self.text(text, look)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "r": _run,
        "fld": _run,
        "t": _run_text,
        "br": office.mark("\n"),
        "cNvPr": office.alt_text,
        **DRAWN,
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
    "docx": package_reader("docx", 8, lambda package: _Docx(package).read()),
    "pptx": package_reader("pptx", 6, lambda package: _Pptx(package).read()),
}
