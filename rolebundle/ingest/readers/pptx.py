"""PowerPoint presentations (Office Open XML): the text of each visible slide, with its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.office import (
    Action,
    Look,
    Piece,
    Theme,
    Walk,
    all_text,
    alt_text,
    children,
    diagram,
    fill_color,
    main_part,
    mark,
    shape_fill,
    text_of,
    theme_of,
)
from rolebundle.ingest.readers.package import (
    RELATION,
    Package,
    PackageReader,
    integer_in,
    local_name,
    number_in,
)
from rolebundle.scan.hidden_style import WHITE, Color

_TITLES = frozenset(("title", "ctrTitle"))
# Date, footer and number, which all slides have.
_SURROUNDINGS = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_SHAPES = frozenset(("sp", "pic", "graphicFrame", "grpSp", "cxnSp"))
_MIN_SIDE = 12_700  # a point
# Of so many shapes it is known what they cover.
_MAX_DRAWN = 500
_MAX_LEVEL = 8
_ON = frozenset(("1", "true"))

_Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def _document(package: Package) -> ParsedDocument:
    walk = _Pptx(package)
    main, properties = main_part(package, "ppt/presentation.xml", walk.hidden)
    walk.read(main)
    return walk.document(properties)


class _Layout(NamedTuple):
    """What a slide inherits.

    Attributes:
        theme: its colors.
        roots: the elements of the layout and of its master.
        boxes: the places that shapes and pictures of both fill.
    """

    theme: Theme
    roots: Sequence[Any]
    boxes: Sequence[_Box]


class _Scale(NamedTuple):
    """From the coordinates inside of a group to those of the slide."""

    x: float = 0.0
    y: float = 0.0
    scale_x: float = 1.0
    scale_y: float = 1.0


class _Pptx(Walk):
    """Reads the slides of a presentation."""

    def read(self, main: str) -> None:
        """Read the slides in their order."""
        root, slides = self.package.parse(main), self.package.relations(main)
        size = root.find("{*}sldSz")
        keys = () if size is None else ("cx", "cy")
        self._size = [number_in(size.get(key), 0) for key in keys]
        self._layouts: dict[str, _Layout] = {}
        for number, entry in enumerate(root.iter("{*}sldId"), start=1):
            self._slide(number, slides.get(entry.get(f"{RELATION}id", ""), ("", ""))[1])

    def _slide(self, number: int, name: str) -> None:
        root = self.package.parse(name)
        self.relations = self.package.relations(name)
        parts = dict(self.relations.values())
        notes = [
            text
            for shape in self.package.parse(parts.get("notesSlide", "")).iter("{*}sp")
            if _placeholder(shape) == "body"
            for paragraph in shape.iter("{*}p")
            if (text := "".join(part.text or "" for part in paragraph.iter("{*}t")).strip())
        ]
        if root.get("show", "1") in {"0", "false"}:
            self.left_out["hidden slides"] += 1
            self.hidden.add("hidden_slide", " ".join([all_text(root), *notes]))
            return
        layout = self._layout(parts.get("slideLayout", ""))
        self._theme = layout.theme
        self._background = self._background_of([root, *layout.roots])
        # The places of filled shapes and pictures that were drawn.
        self._drawn = list(layout.boxes)
        title, pieces = "", []
        for shape, box, is_hidden in _shapes(root.find("{*}cSld/{*}spTree"), _Scale(), False):
            found = list(self._shape(shape, box, is_hidden))
            if not title and _placeholder(shape) in _TITLES:
                title = " ".join(piece.text for piece in found)
            else:
                pieces += found
        self.slide(number, title, pieces, notes)

    def _layout(self, name: str) -> _Layout:
        if name not in self._layouts:
            relations = dict(self.package.relations(name).values())
            master = relations.get("slideMaster", "")
            roots = [self.package.parse(name), self.package.parse(master)]
            theme = theme_of(
                self.package, dict(self.package.relations(master).values()).get("theme", "")
            )
            mapping = roots[1].find("{*}clrMap")
            names = {} if mapping is None else mapping.attrib
            theme |= {key: theme[value] for key, value in names.items() if value in theme}
            boxes = [
                box
                for root in roots
                for shape, box, _ in _shapes(root.find("{*}cSld/{*}spTree"), _Scale(), False)
                if box and _is_filled(shape, theme)
            ]
            self._layouts[name] = _Layout(theme, roots, boxes)
        return self._layouts[name]

    def _background_of(self, roots: Sequence[Any]) -> Color | None:
        """The color of the slide's background; ``None`` if it is not known."""
        for root in roots:
            background = root.find("{*}cSld/{*}bg")
            if background is not None:
                reference = background.find("{*}bgRef")
                # Other numbers are gradients and pictures.
                if reference is not None and reference.get("idx") != "1001":
                    return None
                fill = background.find("{*}bgPr/{*}solidFill") if reference is None else reference
                return None if fill is None else fill_color(fill, self._theme)
        return self._theme.get("bg1", WHITE)

    def _shape(self, shape: Any, box: _Box | None, is_hidden: bool) -> Iterator[Piece]:
        placeholder = _placeholder(shape)
        if placeholder in _SURROUNDINGS:
            return
        look = {"fill": self._fill_behind(shape, box), "is_list": placeholder in {"body", "obj"}}
        if is_hidden:
            look["away"] = "invisible_element"
        elif box and self._size and not self._is_on_slide(box):
            look["away"] = "off_screen_element"
        yield from self.pieces(shape, look)

    def _is_on_slide(self, box: _Box) -> bool:
        left, top, right, bottom = box
        is_flat = right - left < _MIN_SIDE and bottom - top < _MIN_SIDE
        return not is_flat and _overlap(box, (0.0, 0.0, self._size[0], self._size[1]))

    def _fill_behind(self, shape: Any, box: _Box | None) -> Color | None:
        """The color behind the text of a shape; ``None`` if it is not known."""
        is_known = len(self._drawn) < _MAX_DRAWN and not any(
            box is None or _overlap(other, box) for other in self._drawn
        )
        is_filled, color = shape_fill(shape, self._theme)
        if box and len(self._drawn) < _MAX_DRAWN and _is_filled(shape, self._theme):
            self._drawn.append(box)
        if is_filled:
            return color
        return self._background if is_known else None

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        if name == "tc":
            if any(element.get(key) in _ON for key in ("hMerge", "vMerge")):
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
        "t": text_of,
        "br": mark("\n"),
        "cNvPr": alt_text,
        "relIds": diagram,
    }


def _shapes(tree: Any, scale: _Scale, is_hidden: bool) -> Iterator[tuple[Any, _Box | None, bool]]:
    """All shapes of a tree in the order in which they are drawn, with their boxes if they have one.

    The last value says whether a shape, or a group around it, is hidden.
    """
    for element in () if tree is None else children(tree):
        name = local_name(element)
        if name == "AlternateContent":
            yield from _shapes(element, scale, is_hidden)
        if name not in _SHAPES:
            continue
        properties = next(element.iter("{*}cNvPr"), None)
        hides = is_hidden or (properties is not None and properties.get("hidden") in _ON)
        box, inner = _place(element, scale)
        if name == "grpSp":
            yield from _shapes(element, inner, hides)
        else:
            yield element, box, hides


def _is_filled(shape: Any, theme: Theme) -> bool:
    return local_name(shape) in {"pic", "graphicFrame"} or shape_fill(shape, theme)[0]


def _placeholder(element: Any) -> str:
    """The type of a placeholder, ``obj`` if it has none; empty for other shapes."""
    found = element.find("*/{*}nvPr/{*}ph")
    return "" if found is None else found.get("type", "obj")


def _place(element: Any, scale: _Scale) -> tuple[_Box | None, _Scale]:
    """The box of a shape on the slide, and the scale of what is inside of it."""
    found = element.find("{*}xfrm")
    found = element.find("*/{*}xfrm") if found is None else found
    if found is None:
        return None, scale

    def pair(name: str, default: tuple[float, float]) -> tuple[float, float]:
        point = found.find(f"{{*}}{name}")
        if point is None:
            return default
        x, y = (point.get("x") or point.get("cx"), point.get("y") or point.get("cy"))
        return number_in(x, 0), number_in(y, 0)

    (x, y), (width, height) = pair("off", (0.0, 0.0)), pair("ext", (0.0, 0.0))
    (inner_x, inner_y), (inner_width, inner_height) = (
        pair("chOff", (x, y)),
        pair("chExt", (width, height)),
    )
    left, top = scale.x + x * scale.scale_x, scale.y + y * scale.scale_y
    box = left, top, left + width * scale.scale_x, top + height * scale.scale_y
    scale_x = scale.scale_x * (width / inner_width if inner_width else 1.0)
    scale_y = scale.scale_y * (height / inner_height if inner_height else 1.0)
    return box, _Scale(left - inner_x * scale_x, top - inner_y * scale_y, scale_x, scale_y)


def _overlap(first: _Box, second: _Box) -> bool:
    is_beside = first[2] <= second[0] or second[2] <= first[0]
    return not is_beside and first[1] < second[3] and second[1] < first[3]


READER = PackageReader("pptx", 3, _document)
