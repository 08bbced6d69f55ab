"""PowerPoint presentations (Office Open XML): the text of each visible slide, with its notes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.extracted import HiddenTexts, TextBlocks, hidden_kind
from rolebundle.ingest.readers.office import Theme, diagram_text, fill_color, main_part, theme_of
from rolebundle.ingest.readers.package import (
    RELATION,
    Package,
    PackageReader,
    integer_in,
    local_name,
    number_in,
)
from rolebundle.scan.hidden_style import WHITE, Color

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_TITLES = frozenset(("title", "ctrTitle"))
# Date, footer and number, which all slides have.
_SURROUNDINGS = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_SHAPES = frozenset(("sp", "pic", "graphicFrame", "grpSp", "cxnSp"))
_MIN_SIDE = 12_700  # a point
# Of so many shapes it is known what they cover.
_MAX_DRAWN = 500
_MAX_LEVEL = 8

_Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def _document(package: Package) -> ParsedDocument:
    blocks, hidden = TextBlocks(package.too_large), HiddenTexts()
    main, properties = main_part(package, "ppt/presentation.xml", hidden)
    root = package.parse(main)
    relations = package.relations(main)
    size = root.find(f"{_P}sldSz")
    width, height = (
        (number_in(size.get(key), 0) for key in ("cx", "cy")) if size is not None else (0, 0)
    )
    layouts: dict[str, _Layout] = {}
    hidden_slides = 0
    for number, entry in enumerate(root.iter(f"{_P}sldId"), start=1):
        name = relations.get(entry.get(f"{RELATION}id", ""), ("", ""))[1]
        slide = _Slide(package, name, (0.0, 0.0, width, height), number, blocks, hidden, layouts)
        if not slide.read():
            hidden_slides += 1
    left_out = [f"hidden slides left out: {hidden_slides}"] if hidden_slides else []
    return blocks.document(properties, hidden, left_out)


_Filled = tuple[_Box, Color | None]
"""A place that a shape or picture fills, with its color if it is known."""


class _Layout(NamedTuple):
    """The theme of a layout, its root element and that of its master, and what both fill."""

    theme: Theme
    roots: list[Any]
    filled: list[_Filled]


def _layout(package: Package, name: str) -> _Layout:
    roots = [package.parse(name)]
    relations = package.relations(name)
    theme: Theme = {}
    for kind in ("slideMaster", "theme"):
        name = next((target for found, target in relations.values() if found == kind), "")
        if kind == "theme":
            theme = theme_of(package, name)
        else:
            roots.append(package.parse(name))
            relations = package.relations(name)
    mapping = roots[-1].find(f"{_P}clrMap")
    if mapping is not None:
        names = {key: value for key, value in mapping.attrib.items() if value in theme}
        theme = {**theme, **{key: theme[value] for key, value in names.items()}}
    filled = []
    for root in reversed(roots):  # the master is behind
        for element in root.iter(f"{_P}sp", f"{_P}pic"):
            box, _ = _place(element, _Transform())
            is_filled, own = _own_fill(element, theme)
            if is_filled and box is not None:
                filled.append((box, own))
    return _Layout(theme, roots, filled)


class _Shape(NamedTuple):
    """A shape on a slide, with its place and what fills it."""

    element: Any
    box: _Box | None
    is_hidden: bool


class _Transform(NamedTuple):
    """From the coordinates inside of a group to those of the slide."""

    x: float = 0.0
    y: float = 0.0
    scale_x: float = 1.0
    scale_y: float = 1.0

    def box(self, x: float, y: float, width: float, height: float) -> _Box:
        left, top = self.x + x * self.scale_x, self.y + y * self.scale_y
        return left, top, left + width * self.scale_x, top + height * self.scale_y


class _Slide:
    """One slide."""

    def __init__(
        self,
        package: Package,
        name: str,
        box: _Box,
        number: int,
        blocks: TextBlocks,
        hidden: HiddenTexts,
        layouts: dict[str, _Layout],
    ) -> None:
        self._package = package
        self._layouts = layouts
        self._root = package.parse(name)
        self._relations = package.relations(name)
        self._box = box
        self._anchor = f"slide {number}"
        self._number = number
        self._blocks = blocks
        self._hidden = hidden
        self._layout = self._own_layout()
        self._theme = self._layout.theme
        self._background = self._background_color()
        # Filled shapes and pictures that were drawn, with their color if it is known.
        self._drawn: deque[_Filled] = deque(self._layout.filled, maxlen=_MAX_DRAWN)

    def read(self) -> bool:
        """Add the blocks of the slide; false if the slide is hidden."""
        notes = self._notes()
        if self._root.get("show", "1") in {"0", "false"}:
            texts = [part.text or "" for part in self._root.iter(f"{_A}t")]
            self._hidden.add("hidden_slide", " ".join([*texts, *notes]), is_usual=True)
            return False
        tree = self._root.find(f"{_P}cSld/{_P}spTree")
        shapes = list(self._shapes(() if tree is None else tree, _Transform(), False))
        titles = [s for s in shapes if _placeholder(s.element) in _TITLES]
        bodies: list[tuple[str, str]] = []
        title = ""
        for shape in shapes:
            found = self._shape(shape)
            if shape in titles and not title:
                title = " ".join(" ".join(text for _, text in found).split())
            else:
                bodies += found
        if title or bodies or notes:
            # Each slide has a heading, so that it is not below that of another one.
            self._blocks.slide(title, self._number)
        for kind, text in bodies:
            if kind == "table":
                lines = text.split("\n")
                header = lines[0] if len(lines) > 1 else ""
                self._blocks.add("table", text, self._anchor, header)
                self._blocks.end_block()
            else:
                self._blocks.add("list" if kind == "list" else "paragraph", text, self._anchor)
        self._blocks.speaker_notes(notes, self._number)
        return True

    def _notes(self) -> list[str]:
        name = next((name for kind, name in self._relations.values() if kind == "notesSlide"), "")
        texts = []
        for shape in self._package.parse(name).iter(f"{_P}sp"):
            if _placeholder(shape) == "body":
                texts += [
                    "".join(part.text or "" for part in paragraph.iter(f"{_A}t")).strip()
                    for paragraph in shape.iter(f"{_A}p")
                ]
        return [text for text in texts if text]

    def _own_layout(self) -> _Layout:
        targets = dict(self._relations.values())
        name = targets.get("slideLayout", "")
        if name not in self._layouts:
            self._layouts[name] = _layout(self._package, name)
        return self._layouts[name]

    def _background_color(self) -> Color | None:
        """The color of the slide's background; ``None`` if it is not known."""
        theme = self._theme
        for root in (self._root, *self._layout.roots):
            background = root.find(f"{_P}cSld/{_P}bg")
            if background is not None:
                reference = background.find(f"{_P}bgRef")
                if reference is not None:
                    # Other numbers are gradients and pictures.
                    return fill_color(reference, theme) if reference.get("idx") == "1001" else None
                fills = [part for part in background.iter() if local_name(part).endswith("Fill")]
                is_solid = len(fills) == 1 and local_name(fills[0]) == "solidFill"
                return fill_color(fills[0], theme) if is_solid else None
        return theme.get("bg1", WHITE)

    def _shapes(self, tree: Any, transform: _Transform, is_hidden: bool) -> Iterator[_Shape]:
        """All shapes of a tree, in the order in which they are drawn."""
        for element in tree:
            name = local_name(element)
            if name == "AlternateContent":
                # The first choice is for current versions, and the fallback for others.
                for option in element:
                    yield from self._shapes(option, transform, is_hidden)
                    break
            if name not in _SHAPES:
                continue
            properties = next(
                (part for part in element.iter() if local_name(part) == "cNvPr"), None
            )
            hides = is_hidden
            if properties is not None:
                hides = hides or properties.get("hidden", "0") in {"1", "true"}
                for key in ("descr", "title"):
                    self._hidden.add("alt_text", properties.get(key, ""), is_usual=True)
            box, inner = _place(element, transform)
            if name == "grpSp":
                yield from self._shapes(element, inner, hides)
            else:
                yield _Shape(element, box, hides)

    def _shape(self, shape: _Shape) -> list[tuple[str, str]]:
        """The visible paragraphs and tables of a shape, each with its kind."""
        element, box, is_hidden = shape
        placeholder = _placeholder(element)
        if placeholder in _SURROUNDINGS:
            return []
        kind = "invisible_element" if is_hidden else ""
        if not kind and box is not None and not self._is_on_slide(box):
            kind = "off_screen_element"
        diagram = next((part for part in element.iter() if local_name(part) == "relIds"), None)
        if diagram is not None:
            data = self._relations.get(diagram.get(f"{RELATION}dm", ""), ("", ""))[1]
            text = diagram_text(self._package.parse(data))
            if kind:
                self._hidden.add(kind, text)
                return []
            return [("list", f"- {line}") for line in text.split("\n") if line]
        if kind:
            self._hidden.add(kind, " ".join(part.text or "" for part in element.iter(f"{_A}t")))
            return []
        behind = self._behind(element, box)
        table = next(element.iter(f"{_A}tbl"), None)
        if table is not None:
            rows = [
                " | ".join(" ".join(self._cell(cell).split()) for cell in row.iter(f"{_A}tc"))
                for row in table.iter(f"{_A}tr")
            ]
            return [("table", "\n".join(row for row in rows if row.strip(" |")))]
        body = element.find(f"{_P}txBody")
        if body is None:
            return []
        is_list = placeholder in {"body", "obj"}
        return list(self._paragraphs(body, behind, is_list))

    def _cell(self, cell: Any) -> str:
        if any(cell.get(key) in {"1", "true"} for key in ("hMerge", "vMerge")):
            self._hidden.add(
                "invisible_element", " ".join(t.text or "" for t in cell.iter(f"{_A}t"))
            )
            return ""
        properties = cell.find(f"{_A}tcPr")
        fill = None if properties is None else properties.find(f"{_A}solidFill")
        behind = None if fill is None else fill_color(fill, self._theme)
        body = cell.find(f"{_A}txBody")
        if body is None:
            return ""
        return " ".join(text for _, text in self._paragraphs(body, behind, False))

    def _paragraphs(
        self, body: Any, behind: Color | None, is_list: bool
    ) -> Iterator[tuple[str, str]]:
        styles = body.find(f"{_A}lstStyle")
        for paragraph in body.iter(f"{_A}p"):
            properties = paragraph.find(f"{_A}pPr")
            level = (
                0
                if properties is None
                else min(max(integer_in(properties.get("lvl"), 0), 0), _MAX_LEVEL)
            )
            inherited = None if styles is None else styles.find(f"{_A}lvl{level + 1}pPr/{_A}defRPr")
            parts = []
            for run in paragraph:
                name = local_name(run)
                if name == "br":
                    parts.append("\n")
                if name not in {"r", "fld"}:
                    continue
                text = "".join(part.text or "" for part in run.findall(f"{_A}t"))
                kind = self._kind(run.find(f"{_A}rPr"), inherited, behind)
                if kind:
                    self._hidden.add(kind, text)
                else:
                    parts.append(text)
            text = "".join(parts).strip()
            if not text:
                continue
            bullets = () if properties is None else [local_name(part) for part in properties]
            has_bullet = "buChar" in bullets or "buAutoNum" in bullets
            if has_bullet or ((is_list or level) and "buNone" not in bullets):
                yield "list", f"{'  ' * level}- {' '.join(text.split())}"
            else:
                yield "paragraph", text

    def _kind(self, own: Any, inherited: Any, behind: Color | None) -> str:
        """How the properties of a run hide it; empty if they do not."""
        found: Color | None = None
        size = None
        for properties in (inherited, own):
            if properties is None:
                continue
            if properties.get("sz"):
                size = number_in(properties.get("sz"), 1800) / 100
            for fill in properties:
                if local_name(fill) == "solidFill":
                    found = fill_color(fill, self._theme)
                elif local_name(fill) == "noFill":
                    return "invisible_element"
                elif local_name(fill) == "highlight":
                    behind = fill_color(fill, self._theme)
        return hidden_kind(found, behind, size)

    def _is_on_slide(self, box: _Box) -> bool:
        left, top, right, bottom = box
        if right - left < _MIN_SIDE and bottom - top < _MIN_SIDE:
            return False
        _, _, width, height = self._box
        return not width or (left < width and top < height and right > 0 and bottom > 0)

    def _behind(self, element: Any, box: _Box | None) -> Color | None:
        """The color behind the text of a shape; ``None`` if it is not known."""
        filled, own = _own_fill(element, self._theme)
        below = self._background
        if box is not None:
            under = next((e for e in reversed(self._drawn) if _overlap(e[0], box)), None)
            if under is not None:
                below = under[1] if _contains(under[0], box) else None
            elif len(self._drawn) == _MAX_DRAWN:
                below = None
        elif self._drawn:
            below = None  # It has the place that its layout says.
        if filled and box is not None:
            self._drawn.append((box, own))
        elif filled:
            return None
        return own if filled else below


def _own_fill(element: Any, theme: Theme) -> tuple[bool, Color | None]:
    """Whether a shape is filled, and its color if it is known."""
    if local_name(element) in {"pic", "graphicFrame"}:
        return True, None
    properties = element.find(f"{_P}spPr")
    for part in () if properties is None else properties:
        name = local_name(part)
        if name == "solidFill":
            return True, fill_color(part, theme)
        if name == "noFill":
            return False, None
        if name.endswith("Fill"):
            return True, None
    reference = element.find(f"{_P}style/{_A}fillRef")
    if reference is not None and reference.get("idx", "0") != "0":
        return True, fill_color(reference, theme)
    # The layout may fill a placeholder.
    return (True, None) if _placeholder(element) and properties is None else (False, None)


def _placeholder(element: Any) -> str:
    """The type of a placeholder, ``obj`` if it has none; empty for other shapes."""
    found = element.find(f".//{_P}nvPr/{_P}ph")
    return "" if found is None else found.get("type", "obj")


def _place(element: Any, transform: _Transform) -> tuple[_Box | None, _Transform]:
    """The box of a shape on the slide, and the transform for what is inside of it."""
    found = next(
        (part for child in element for part in (child, *child) if local_name(part) == "xfrm"), None
    )
    if found is None:
        return None, transform
    points = {local_name(part): part for part in found}

    def pair(name: str, x: str, y: str, default: Sequence[float]) -> tuple[float, float]:
        point = points.get(name)
        if point is None:
            return default[0], default[1]
        return number_in(point.get(x), 0), number_in(point.get(y), 0)

    x, y = pair("off", "x", "y", (0.0, 0.0))
    width, height = pair("ext", "cx", "cy", (0.0, 0.0))
    box = transform.box(x, y, width, height)
    child_x, child_y = pair("chOff", "x", "y", (x, y))
    child_width, child_height = pair("chExt", "cx", "cy", (width, height))
    scale_x = transform.scale_x * (width / child_width if child_width else 1.0)
    scale_y = transform.scale_y * (height / child_height if child_height else 1.0)
    inner = _Transform(box[0] - child_x * scale_x, box[1] - child_y * scale_y, scale_x, scale_y)
    return box, inner


def _overlap(first: _Box, second: _Box) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


def _contains(outer: _Box, inner: _Box) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and outer[2] >= inner[2]
        and outer[3] >= inner[3]
    )


READER = PackageReader("pptx", 2, _document)
