"""PowerPoint presentations (Office Open XML): the text of each visible slide, with its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office
from rolebundle.ingest.readers.office import Action, Look, Piece, Theme, Walk, fill_color
from rolebundle.ingest.readers.package import (
    ON,
    RELATION,
    integer_in,
    local_name,
    number_in,
    package_reader,
)
from rolebundle.scan.hidden_style import WHITE, Color

_TITLES = frozenset(("title", "ctrTitle"))
# Date, footer and number, which all slides have.
_SURROUNDINGS = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_SHAPES = frozenset(("sp", "pic", "graphicFrame", "cxnSp"))
_TREE = "{*}cSld/{*}spTree"
_MIN_SIDE = 12_700  # a point
# Of so many shapes it is known what they cover.
_MAX_DRAWN = 500
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
                if box and _fill(element, theme)[0]
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
            _overlap(box, self._slide_box) and max(box[2] - box[0], box[3] - box[1]) >= _MIN_SIDE
        ):
            kind = "off_screen_element"
        is_list = placeholder in {"body", "obj"}
        look = {"fill": self._fill_behind(shape), "is_list": is_list, "away": kind}
        if placeholder not in _SURROUNDINGS:
            yield from self.pieces(element, look)

    def _fill_behind(self, shape: _Shape) -> Color | None:
        """The color behind the text of a shape; ``None`` if it is not known."""
        element, box, _ = shape
        is_known = len(self._drawn) < _MAX_DRAWN and not any(
            box is None or _overlap(other, box) for other in self._drawn
        )
        is_filled, color = _fill(element, self._theme)
        if box and is_filled and len(self._drawn) < _MAX_DRAWN:
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
        parts = () if properties is None else properties
        level = 0 if properties is None else integer_in(properties.get("lvl"), 0)
        level = min(max(level, 0), _MAX_LEVEL)
        bullets = {local_name(part) for part in parts}
        is_list = bullets & {"buChar", "buAutoNum"} or (
            (look["is_list"] or level) and "buNone" not in bullets
        )
        return {**look, "label": f"{'  ' * level}-"} if is_list else look

    def _run(self, element: Any, look: Look, parts: list[str]) -> None:
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
        self.inline(element, {**look, **own}, parts)

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


def _fill(element: Any, theme: Theme) -> tuple[bool, Color | None]:
    """Whether a shape is filled, and with which color if that is known."""
    is_picture = local_name(element) in {"pic", "graphicFrame"}
    return (True, None) if is_picture else office.shape_fill(element, theme)


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
    left, top = (number_in(offset.get(key), 0) for key in ("x", "y"))
    return left, top, left + number_in(size.get("cx"), 0), top + number_in(size.get("cy"), 0)


def _overlap(first: _Box, second: _Box) -> bool:
    is_beside = first[2] <= second[0] or second[2] <= first[0]
    return not is_beside and first[1] < second[3] and second[1] < first[3]


READERS = {"pptx": package_reader("pptx", 3, lambda package: _Pptx(package).read())}
