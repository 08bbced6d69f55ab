"""Word documents (Office Open XML): headings, paragraphs, lists, tables, notes and text boxes.

The body is read as a stream, so that only one paragraph or table row is in memory as a tree. A
document has no pages until it is laid out; its lines are those of the extracted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.docx_styles import (
    Numbering,
    Styles,
    W,
    is_on,
    properties_look,
    value_of,
)
from rolebundle.ingest.readers.office import (
    Action,
    Look,
    Walk,
    alt_text,
    diagram,
    hex_color,
    hides,
    main_part,
    mark,
    shape_fill,
    skip,
)
from rolebundle.ingest.readers.package import (
    RELATION,
    Package,
    PackageReader,
    local_name,
    number_in,
)
from rolebundle.scan.hidden_style import WHITE, color

_EMU = 12_700  # per point
_OFF = re.compile(
    r"visibility\s*:\s*hidden|display\s*:\s*none|mso-hide|(?:left|top)\s*:\s*-(?:[89]\d\d|\d{4,})"
    r"|(?:width|height)\s*:\s*0(?![.\d])"
)


def _document(package: Package) -> ParsedDocument:
    walk = _Docx(package)
    main, properties = main_part(package, "word/document.xml", walk.hidden)
    walk.read(main)
    title = walk.blocks.title
    # The title of a template stays in all documents that are made from it.
    if title and not _shares_word(properties.get("title", ""), walk.blocks.beginning()):
        properties["title"] = title
    walk.page_margins(walk.headers_and_footers())
    return walk.document(properties)


def _shares_word(title: str, text: str) -> bool:
    words = set(re.findall(r"\w{3,}", text.casefold()))
    return any(word in words for word in re.findall(r"\w{3,}", title.casefold()))


class _Docx(Walk):
    """Reads the parts of a Word document."""

    STREAMED = ("p", "tbl", "tr", "sdt", "customXml", "sectPr", "AlternateContent", "background")
    BODIES = frozenset((f"{W}body",))

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        # For each open field whether its code is being read, which is not shown.
        self._fields: list[bool] = []
        self._sections: list[Any] = []

    def read(self, main: str) -> None:
        """Read the main part."""
        self.relations = self.package.relations(main)
        self._styles = Styles(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"))
        self._notes_by_id = {
            (kind, note.get(f"{W}id")): note
            for kind in ("footnote", "endnote")
            for note in self._part(f"{kind}s").iter(W + kind)
            if note.get(f"{W}type") is None
        }
        self.read_stream(main)

    def _part(self, kind: str) -> Any:
        names = (name for found, name in self.relations.values() if found == kind)
        return self.package.parse(next(names, ""))

    def start_part(self, element: Any) -> None:
        """Read the color of the pages."""
        if element.tag == f"{W}background":
            self.top = {"fill": hex_color(element.get(f"{W}color")) or WHITE}

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        properties = element.find(f"{W}{name}Pr")
        if name == "p":
            return self._paragraph_look(properties, look)
        if properties is None:
            return look
        own = properties_look(properties)
        if name == "tr" and properties.find(f"{W}del") is not None:
            own["away"] = "tracked_deletion"
        if name == "tbl":
            own = {**self._styles.table_look(value_of(properties, "tblStyle")), **own}
        return {**look, **own}

    def _paragraph_look(self, properties: Any, look: Look) -> Look:
        own, style = {}, ""
        if properties is not None:
            own, style = properties_look(properties), value_of(properties, "pStyle")
            self._add_section(properties.find(f"{W}sectPr"))
        look = {**look, **self._styles.paragraph_look(style), **own}
        # Word counts paragraphs without text as well.
        label = self._numbering.label(look.get("list", ""), look.get("list_level", 0))
        return {**look, "label": "  " * look["list_level"] + label} if label else look

    def _add_section(self, section: Any) -> None:
        """Remember the headers and footers that a section shows."""
        if section is not None:
            first = section.find(f"{W}titlePg")
            shown = {None, "default"} | ({"first"} if first is not None and is_on(first) else set())
            even = self._part("settings").find(f"{W}evenAndOddHeaders")
            shown |= {"even"} if even is not None and is_on(even) else set()
            self._sections += [part for part in section if part.get(f"{W}type") in shown]

    def headers_and_footers(self) -> Iterator[Any]:
        """The head and foot of the pages of all sections."""
        ids = (part.get(f"{RELATION}id", "") for part in self._sections)
        for name in dict.fromkeys(self.relations.get(key, ("", ""))[1] for key in ids):
            yield self.package.parse(name)

    # Elements inside of paragraphs

    def _run(self, element: Any, look: Look, parts: list[str]) -> None:
        properties = element.find(f"{W}rPr")
        if properties is not None:
            style = self._styles.look(value_of(properties, "rStyle"))
            look = {**look, **style, **properties_look(properties)}
        self.inline(element, look, parts)

    def _run_text(self, element: Any, look: Look, parts: list[str]) -> None:
        is_code = any(self._fields)
        self.text(element.text, {**look, "away": "field_code"} if is_code else look, parts)

    def _field(self, element: Any, look: Look, parts: list[str]) -> None:
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            self._fields.append(True)
        elif self._fields and kind == "separate":
            self._fields[-1] = False
        elif self._fields and kind == "end":
            self._fields.pop()

    def _control(self, element: Any, look: Look, parts: list[str]) -> None:
        """A content control, which may show what to write into it."""
        if element.find(f"{W}sdtPr/{W}showingPlcHdr") is None:
            self.inline(element, look, parts)

    def _reference(self, element: Any, look: Look, parts: list[str]) -> None:
        """A note is added where the text refers to it for the first time."""
        kind = local_name(element).removesuffix("Reference")
        note = self._notes_by_id.pop((kind, element.get(f"{W}id")), None)
        if note is not None:
            self.note(note, look, parts)

    def _drawing(self, element: Any, look: Look, parts: list[str]) -> None:
        is_off = any(map(_is_off, element.iter()))
        self.inline(element, {**look, "away": "off_screen_element"} if is_off else look, parts)

    def _shape(self, element: Any, look: Look, parts: list[str]) -> None:
        """A shape, also an old one (VML). Without a fill it is not known what is behind it."""
        if local_name(element) == "wsp":
            _, fill = shape_fill(element, {})
            look = {**look, "fill": fill}
            properties = element.find("{*}cNvPr")
            if properties is not None and properties.get("hidden") in {"1", "true"}:
                look["away"] = "off_screen_element"
        else:
            is_filled = element.get("filled", "t") not in {"f", "false"}
            name = element.get("fillcolor", "white").partition(" ")[0].lower()
            look = {**look, "fill": color(name) if is_filled else None}
        self.inline(element, look, parts)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        **dict.fromkeys(("pPr", "rPr", "rt", "sdtPr", "tblPr", "tblGrid"), skip),
        **dict.fromkeys(("tab", "ptab"), mark("\t")),
        **dict.fromkeys(("br", "cr"), mark("\n")),
        "noBreakHyphen": mark("-"),
        "r": _run,
        "t": _run_text,
        "fldChar": _field,
        "sdt": _control,
        **dict.fromkeys(("del", "moveFrom", "delText"), hides("tracked_deletion")),
        **dict.fromkeys(("instrText", "delInstrText"), hides("field_code")),
        **dict.fromkeys(("footnoteReference", "endnoteReference"), _reference),
        **dict.fromkeys(("drawing", "pict", "object"), _drawing),
        **dict.fromkeys(("wsp", "shape", "rect", "roundrect", "oval"), _shape),
        **dict.fromkeys(("docPr", "cNvPr"), alt_text),
        "relIds": diagram,
        "sectPr": lambda self, element, look, parts: self._add_section(element),
    }


def _is_off(part: Any) -> bool:
    """Whether a part of a drawing says that it is hidden, has no size, or is off the page."""
    name = local_name(part)
    if name == "docPr":
        return part.get("hidden", "0").lower() in {"1", "true"}
    if name == "extent":
        return min(number_in(part.get(side), 1e9) for side in ("cx", "cy")) <= _EMU
    if name == "posOffset":
        return not -720 < number_in(part.text, 0) / _EMU < 1600
    return bool(_OFF.search(part.get("style", "")))


READER = PackageReader("docx", 3, _document)
