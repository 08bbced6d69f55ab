"""Word documents (Office Open XML): headings, paragraphs, lists, tables, notes and text boxes.

The body is read as a stream, so that only one paragraph or table row is in memory as a tree. A
document has no pages until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office, ooxml, reader_name_for, reader_named
from rolebundle.ingest.readers.elements import ON, RELATION, integer_in, local_name, number_in
from rolebundle.ingest.readers.notation import CHECKED, UNCHECKED, list_number
from rolebundle.ingest.readers.office import Action, Look, Walk
from rolebundle.ingest.readers.package import Package, package_reader
from rolebundle.resources import data_file
from rolebundle.scan.hidden_style import WHITE, color

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
    found = ooxml.hex_color(item.get(f"{_W}fill"))
    return {} if found is None else {"fill": found}


def _text_fill(item: Any) -> Look:
    shares = (value for part in item.iter("{*}alpha") for value in part.attrib.values())
    is_clear = any(number_in(share) >= 95_000 for share in shares)
    return office.HIDDEN if is_clear or item.find("{*}noFill") is not None else {}


def _height(item: Any) -> Look:
    """The height of the lines of a paragraph, or of a row."""
    is_row = local_name(item) == "trHeight"
    rule, height = ("hRule", "val") if is_row else ("lineRule", "line")
    if item.get(_W + rule) != "exact" or _number(item, height, 1000) > _MAX_TINY_HEIGHT:
        return {}
    return _AWAY if is_row else office.HIDDEN


def _place(item: Any) -> Look:
    """The frame or the indent of a paragraph. A large initial is in a frame."""
    if item.get(f"{_W}dropCap", "none") != "none":
        return {"is_initial": True}
    places = (_number(item, name, 0) for name in ("x", "y", "left", "start"))
    return {} if all(_ON_PAGE[0] < place < _ON_PAGE[1] for place in places) else office.HIDDEN


def _outline(item: Any) -> Look:
    level = integer_in(item.get(_VAL), 9)
    return {"level": level + 1} if 0 <= level < 9 else {}


def _list(item: Any) -> Look:
    number, level = _value(item, "numId"), integer_in(_value(item, "ilvl"))
    return {"list_level": level, **({"list": number} if number else {})}


def _rise(item: Any) -> Look:
    """How far a run is raised, or lowered by a negative number."""
    rise = _number(item, "val", 0)
    return office.script(rise if abs(rise) >= _MIN_RISE else 0)


_PROPERTIES: Mapping[str, Callable[[Any], Look]] = {
    **dict.fromkeys(("vanish", "specVanish"), lambda item: {"vanish": _is_on(item)}),
    "color": lambda item: {"color": ooxml.hex_color(item.get(_VAL))},
    "vertAlign": lambda item: {"script": ooxml.SCRIPTS.get(item.get(_VAL), "")},
    "position": _rise,
    "rFonts": lambda item: {"font": item.get(f"{_W}ascii", "").lower()},
    "strike": lambda item: {"struck": _is_on(item)},
    "dstrike": lambda item: {"struck": True} if _is_on(item) else {},
    "sz": lambda item: {"size": _number(item, "val", 20) / 2},
    "w": lambda item: office.HIDDEN if _number(item, "val", 100) <= _MAX_WIDTH else {},
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
    if style.find(f"{_W}pPr/{_W}numPr") is not None:
        look["list_style"] = style.get(f"{_W}styleId")
    if any(map(_fill, style.iter(f"{_W}shd"))):
        look["is_shaded"] = True
    return {**look, **_look_of(style.find(f"{_W}pPr")), **_look_of(style.find(f"{_W}rPr"))}


# Numbers of lists


_FORMS = data_file(__file__, "list_numbers.toml")["word"]


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
            overrides = item.iter(f"{_W}startOverride")
            starts = {_level_of(one.getparent()): integer_in(one.get(_VAL)) for one in overrides}
            self._lists[item.get(f"{_W}numId", "")] = levels | _levels(item), counts, starts

        levels = root.iter(f"{_W}lvl")
        self.level_of_style = {_value(level, "pStyle"): _level_of(level) for level in levels}

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
            sign = _value(levels[level], "lvlText") if level in levels else ""
            for font in levels[level].iter(f"{_W}rFonts") if sign else ():
                sign = ooxml.translated(sign, font.get(f"{_W}ascii", "").lower())
            return "" if sign.isspace() else sign if sign.isdigit() else "-"
        is_legal = levels[level].find(f"{_W}isLgl") is not None

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            form = _form(levels[at]) if at in levels else ""
            form = "" if is_legal and form != "decimalZero" else form
            return "" if form == "none" else list_number(counts.get(at, 0), _FORMS.get(form, "1"))

        return re.sub("%([1-9])", shown, _value(levels[level], "lvlText")).strip()


def _form(level: Any) -> str:
    """The form of the numbers of a level. Newer ones are an alternative."""
    return next((item.get(_VAL, "") for item in [*level.iter(f"{_W}numFmt")][-1:]), "decimal")


# Numbers of notes


_SECTION = re.compile(rb"<w:sectPr[^>]*/>|<w:sectPr\b.*?</w:sectPr>", re.DOTALL)
_NOTES = re.compile(r"<w:(footnote|endnote)Pr>(.*?)</w:\1Pr>", re.DOTALL)
_NOTE_NUMBER = re.compile(r'<w:(numFmt|numStart|numRestart)\b[^>]*?w:val="(\w+)"')


def _note_numbers(part: bytes) -> dict[str, dict[str, str]]:
    """How footnotes and endnotes are numbered: what a section or the settings say of them."""
    found = _NOTES.findall(part.decode("latin-1"))
    return {kind: dict(_NOTE_NUMBER.findall(text)) for kind, text in found}


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
        self._main, self._properties = ooxml.main_part(self, "word/document.xml")
        self.relations = package.relations(self._main)
        self._part_names = dict(reversed(self.relations.values()))
        root = self._part("styles")
        styles = {style.get(f"{_W}styleId"): style for style in root.iter(f"{_W}style")}
        for style in list(styles.values()):
            if style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default") in ON:
                styles[None] = style
        parent_of = partial(_value, name="basedOn")
        self._look_of_style = office.style_looks(styles, parent_of, _style_look)
        self._default_look = _look_of(root.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr"))
        self._numbering = _Numbering(self._part("numbering"))
        self._notes_by_id = {
            (kind, note.get(f"{_W}id")): note
            for kind in ("footnote", "endnote")
            for note in self._part(f"{kind}s").iter(_W + kind)
            if note.get(f"{_W}type") is None
        }
        self._is_one_page = package.parse("docProps/app.xml").findtext("{*}Pages") == "1"
        self._has_even_pages = _is_on(self._part("settings").find(f"{_W}evenAndOddHeaders"))
        self._notes_so_far = Counter[str]()
        # How each section numbers its notes; the one that is being read is the first.
        usual = _note_numbers(package.read(self._part_names.get("settings", "")))
        main = package.read(self._main)
        sections = _SECTION.findall(main) if b"notePr>" in main else []
        self._note_numbers = [
            {kind: {**usual.get(kind, {}), **own.get(kind, {})} for kind in ("footnote", "endnote")}
            for own in (*map(_note_numbers, sections), {})
        ]
        self._is_last_of_section = False
        # The headers and footers of pages that are shown, each once.
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
            self.top = {"fill": ooxml.hex_color(element.get(f"{_W}color")) or WHITE}

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        properties = element.find(f"{_W}{name}Pr")
        own = _look_of(properties)
        if properties is None:
            properties = element
        if name == "p":
            if self._is_last_of_section and len(self._note_numbers) > 1:
                del self._note_numbers[0]
                for kind, numbers in self._note_numbers[0].items():
                    if numbers.get("numRestart") == "eachSect":
                        del self._notes_so_far[kind]
            section = properties.find(f"{_W}sectPr")
            self._is_last_of_section = section is not None
            self._section(section)
            style = self._look_of_style(_value(properties, "pStyle") or None)
            look = {**look, **self._default_look, **style, **own}
            by_style = self._numbering.level_of_style.get(look.get("list_style", ""))
            level = look.get("list_level", 0)
            level = level if by_style is None or "list_level" in own else by_style
            # Word counts paragraphs without text as well.
            label = self._numbering.label(look.get("list", ""), level)
            return {**look, "label": "  " * level + label} if label else look
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
        has_first = _is_on(section.find(f"{_W}titlePg"))
        shown = {
            "default": not (has_first and self._is_one_page),
            "first": has_first,
            "even": self._has_even_pages,
        }
        for part in section:
            name = self.target(part.get(f"{RELATION}id"))
            if name and shown[part.get(f"{_W}type", "default")]:
                self._margins[name] = None

    # Elements inside of paragraphs

    def _run(self, element: Any, look: Look) -> str:
        properties = element.find(f"{_W}rPr")
        if properties is not None:
            style = self._look_of_style(_value(properties, "rStyle"))
            look = {**look, **style, **_look_of(properties)}
        elif scripts := ooxml.drawn_script(element):
            look = {**look, **scripts}
        return self.inline(element, look)

    def _run_text(self, element: Any, look: Look) -> str:
        return self._shown(ooxml.translated(element.text, look.get("font")), look)

    def _shown(self, text: str, look: Look) -> str:
        return self.text(text, {**look, "away": "field_code"} if any(self._fields) else look)

    def _symbol(self, element: Any, look: Look) -> str:
        """A character of a font of symbols."""
        code = element.get(f"{_W}char", "")
        sign = chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{1,4}", code) else ""
        return self._shown(ooxml.translated(sign, element.get(f"{_W}font", "").lower()), look)

    def _field(self, element: Any, look: Look) -> str:
        """A mark of a field. That of a form has its state."""
        kind, state = element.get(f"{_W}fldCharType"), ""
        if kind == "begin":
            for box in element.iter(f"{_W}checkBox"):
                states = [*box.iterchildren(f"{_W}default", f"{_W}checked")]
                state = CHECKED if any(map(_is_on, states[-1:])) else UNCHECKED
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
        numbers = self._note_numbers[0][kind]
        form = _FORMS.get(numbers.get("numFmt", "decimal" if kind == "footnote" else "lowerRoman"))
        number = self._notes_so_far[kind] + integer_in(numbers.get("numStart"), 1) - 1
        return self.note(note, look, mark or list_number(number, form or "1"))

    def _chunk(self, element: Any, look: Look) -> None:
        """A document of another format that is included."""
        name = self.target(element.get(f"{RELATION}id"))
        reader = reader_name_for(name)
        path = f"{self.package.path}{_INSIDE}{name}"
        included: list[ParsedDocument] = []
        if reader in _INCLUDED and _INSIDE not in self.package.path and not office.hides_all(look):
            with suppress(DocumentError):
                read = reader_named(reader)[1](self.package.read(name), path, "")
                included = [one for one in read if isinstance(one, ParsedDocument)]
        self.left_out["included documents"] += not included
        for document in included:
            self.blocks.include(document)

    def _drawing(self, element: Any, look: Look) -> str:
        is_off = any(map(_is_off, element.iter()))
        look = {**look, "away": "off_screen_element"} if is_off else look
        is_object = element.find("{*}OLEObject") is not None
        return ooxml.embedded(self, element, look) if is_object else self.inline(element, look)

    def _shape(self, element: Any, look: Look) -> str:
        """A shape, also an old one (VML). Without a fill it is not known what is behind it."""
        look = {**look, "fill": ooxml.shape_fill(element, {})[1]}
        if local_name(element) != "wsp" and element.get("filled", "t") not in {"f", "false"}:
            look["fill"] = color(element.get("fillcolor", "white").partition(" ")[0].lower())
        properties = element.find("{*}cNvPr")
        if properties is not None and properties.get("hidden") in ON:
            look["away"] = "off_screen_element"
        return self.inline(element, look)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        **dict.fromkeys(("pPr", "rPr", "sdtPr"), office.skip),
        "ruby": office.ruby("rubyBase", "rt"),
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
        **dict.fromkeys(("footnoteReference", "endnoteReference"), _reference),
        **dict.fromkeys(("drawing", "pict", "object"), _drawing),
        **dict.fromkeys(("wsp", "shape", "rect", "roundrect", "oval"), _shape),
        **dict.fromkeys(("docPr", "cNvPr"), office.alt_text),
        **ooxml.DRAWN,
        "sectPr": lambda self, element, look: self._section(element),
    }


READERS = package_reader("docx", 14, lambda package: _Docx(package).read())
