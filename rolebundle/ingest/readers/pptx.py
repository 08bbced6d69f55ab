"""PowerPoint presentations (Office Open XML): the text of each visible slide, with its notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office, ooxml
from rolebundle.ingest.readers.elements import ON, RELATION, integer_in, local_name, number_in
from rolebundle.ingest.readers.notation import list_number
from rolebundle.ingest.readers.office import Action, Look, Piece, Walk
from rolebundle.ingest.readers.package import package_reader
from rolebundle.resources import data_file
from rolebundle.scan.hidden_style import WHITE, Color

_EMU = 12_700  # per point
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


_Layout = tuple[ooxml.Theme, Color | None, Sequence[_Box], Sequence[tuple[str, _Shape]]]
"""What a slide inherits: colors, that of the background, the places of shapes and pictures, and the
shapes that it shows, each with the part that has it."""

_COLORS = {"solidFill": "color", "highlight": "fill"}
_BULLETS = frozenset(("buNone", "buChar", "buBlip", "buAutoNum"))
_NUMBERS = data_file(__file__, "list_numbers.toml")["powerpoint"]
_AROUND = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Minus": "{}-"}
_SCHEME = re.compile(rf"({'|'.join(_NUMBERS)}|)\w*?({'|'.join(_AROUND)}|)")


class _Pptx(Walk):
    """Reads the slides of a presentation."""

    def read(self) -> ParsedDocument:
        """The document."""
        main, properties = ooxml.main_part(self, "ppt/presentation.xml")
        root, slides = self.package.parse(main), self.package.relations(main)
        width, height = 1e9, 1e9
        for size in root.iterfind("{*}sldSz"):
            width, height = (number_in(size.get(key), 1e9) for key in ("cx", "cy"))
        self._slide_box = (0.0, 0.0, width, height)
        self._layouts: dict[str, _Layout] = {}
        self._shown_layouts: set[str] = set()
        self._body: Any = None
        # For each level of a list its kind of numbers, where they begin, and the last one.
        self._counts: dict[int, tuple[str, int, int]] = {}
        first = integer_in(root.get("firstSlideNum"), 1)
        for number, entry in enumerate(root.iter("{*}sldId"), start=1):
            self._number = str(first + number - 1)
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
        if root.get("showMasterSp", "1") in ON and layout not in self._shown_layouts:
            self._shown_layouts.add(layout)
            for part, shape in inherited:
                self.relations = self.package.relations(part)
                shapes.append((False, list(self.unseen(self._pieces_of(shape)))))
        self.slide(number, shapes, notes, footer)

    def _layout(self, name: str) -> _Layout:
        if name not in self._layouts:
            master = dict(self.package.relations(name).values()).get("slideMaster", "")
            parts = dict(self.package.relations(master).values())
            layout_root, master_root = self.package.parse(name), self.package.parse(master)
            theme = ooxml.theme_of(self.package, parts.get("theme", ""))
            names = [pair for mapping in master_root.iter("{*}clrMap") for pair in mapping.items()]
            theme = {**theme, **{key: theme[value] for key, value in names if value in theme}}
            background = _background(master_root, theme, theme.get("bg1", WHITE))
            shapes = [
                (part, shape)
                for part, root in ((master, master_root), (name, layout_root))
                for shape in _shapes(root.find(_TREE))
            ]
            boxes = [
                box for _, (part, box, _) in shapes if box and ooxml.shape_fill(part, theme)[0]
            ]
            background = _background(layout_root, theme, background)
            is_shown = layout_root.get("showMasterSp", "1") in ON
            own = [pair for pair in shapes if is_shown or pair[0] == name]
            inherited = [(part, shape) for part, shape in own if not _placeholder(shape[0])]
            self._layouts[name] = theme, background, boxes, inherited
        return self._layouts[name]

    def _pieces_of(self, shape: _Shape) -> Iterator[Piece]:
        element, box, is_hidden = shape
        is_seen = box is None or (
            _overlap(box, self._slide_box) and max(box[2] - box[0], box[3] - box[1]) >= _EMU
        )
        kind = "invisible_element" if is_hidden else "" if is_seen else "off_screen_element"
        is_list = _placeholder(element) in {"body", "obj"}
        look = {"fill": self._fill_behind(shape), "is_list": is_list, "away": kind}
        yield from self.pieces(element, look)

    def _fill_behind(self, shape: _Shape) -> Color | None:
        """The color behind the text of a shape; ``None`` if it is not known."""
        element, box, _ = shape
        is_known = box is not None and not any(_overlap(other, box) for other in self._drawn)
        is_filled, color = ooxml.shape_fill(element, self._theme)
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
            return {**look, "fill": None if fill is None else ooxml.fill_color(fill, self._theme)}
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
        if bullet is not None and (sign := bullet.get("char", "")).isdigit():
            fonts = (font.get("typeface", "") for font in bullet.itersiblings(preceding=True))
            label = label if ooxml.SYMBOLS.keys() & map(str.lower, fonts) else sign
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
                written = list_number(number, _NUMBERS.get(form, "1"))
                label = _AROUND.get(around, "{}").format(written)
            self._counts = counts
        return "  " * level + label if label else ""

    def _run(self, element: Any, look: Look) -> str:
        own: dict[str, Any] = {}
        for part in element.iterfind(f"{ooxml.DRAWING}rPr/*"):
            name = local_name(part)
            if name in _COLORS:
                own[_COLORS[name]] = ooxml.fill_color(part, self._theme)
            elif name == "noFill":
                own["hidden"] = True
            elif name in {"latin", "sym"}:
                own[name] = part.get("typeface", "").lower()
        for properties in element.iterfind(f"{ooxml.DRAWING}rPr[@sz]"):
            own["size"] = number_in(properties.get("sz"), 1800) / 100
        for properties in element.iterfind(f"{ooxml.DRAWING}rPr[@strike]"):
            own["struck"] = properties.get("strike") != "noStrike"
        return self.inline(element, {**look, **own, **ooxml.drawn_script(element)})

    def _field(self, element: Any, look: Look) -> str:
        """A field. The stored number of a slide may be that of another one, or a placeholder."""
        if element.get("type") == "slidenum":
            for text in element.iterfind(f"{ooxml.DRAWING}t"):
                text.text = self._number
        return self._run(element, look)

    def _run_text(self, element: Any, look: Look) -> str:
        text = ooxml.translated(element.text, look.get("latin"))
        # The other font is only for what are no letters of ASCII.
        if (font := look.get("sym")) in ooxml.SYMBOLS:
            text = re.sub(r"[^\0-\x7f]+", lambda part: ooxml.translated(part[0], font), text)
        return self.text(text, look)

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "r": _run,
        "fld": _field,
        "t": _run_text,
        "br": office.mark("\n"),
        "cNvPr": office.alt_text,
        **ooxml.DRAWN,
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


def _background(root: Any, theme: ooxml.Theme, inherited: Color | None) -> Color | None:
    """The color of a background; ``None`` if it is not known."""
    background = root.find("{*}cSld/{*}bg")
    if background is None:
        return inherited
    # Numbers other than 1001 are gradients and pictures.
    fills = (background.find("{*}bgPr/{*}solidFill"), background.find("{*}bgRef[@idx='1001']"))
    return next((ooxml.fill_color(fill, theme) for fill in fills if fill is not None), None)


def _placeholder(element: Any) -> str:
    """The type of a placeholder, ``obj`` if it has none; empty for other shapes."""
    found = element.find("*/{*}nvPr/{*}ph")
    return "" if found is None else found.get("type", "obj")


def _box(element: Any) -> _Box | None:
    """The place of a shape on the slide, if it does not have that of its layout."""
    for place in (*element.iterfind("{*}xfrm"), *element.iterfind("*/{*}xfrm")):
        offset, size = place.find("{*}off"), place.find("{*}ext")
        if offset is not None and size is not None:
            left, top = (number_in(offset.get(key)) for key in ("x", "y"))
            return left, top, left + number_in(size.get("cx")), top + number_in(size.get("cy"))
    return None


def _overlap(first: _Box, second: _Box) -> bool:
    is_beside = first[2] <= second[0] or second[2] <= first[0]
    return not is_beside and first[1] < second[3] and second[1] < first[3]


READERS = package_reader("pptx", 11, lambda package: _Pptx(package).read())
