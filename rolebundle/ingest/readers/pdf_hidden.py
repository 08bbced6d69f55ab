"""Text of a PDF page that people do not see, such as white, tiny, clipped or covered text.

The operators of a page are followed with their graphics state: matrices, colors, clips, marked
content. Places are rectangles, and the width of a text is estimated, so a text counts as outside or
covered only if all of its rectangle is. Annotations are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any, NamedTuple

from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, IndirectObject, TextStringObject

from rolebundle.scan.hidden_style import BLACK, SAME_COLOR, WHITE, Color

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""

_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_MAX_FONT_SIZE = 1.0  # points
_MAX_OPACITY = 0.05
_MAX_COMPARISONS = 3_000_000
"""Of the texts and the shapes of a page, about a second. What is not compared is labelled."""
_CHARACTER_WIDTH = 0.5  # of the font size
# An image that covers this share of the page is a scan, and invisible text on it is its OCR.
_SCAN_SHARE = 0.5
_SHOWS = {b"Tj": 0, b"'": 0, b'"': 2, b"TJ": 0}
_FILLS = frozenset((b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"))
_PATH_ENDS = _FILLS | {b"n", b"S", b"s"}


class PageText(NamedTuple):
    """The text of a page without its hidden parts, and the hidden parts with their kinds.

    A part that is kept is also in the text, because people may see what it says. ``operators`` is
    how many instructions draw the page.
    """

    visible: str
    removed: tuple[tuple[str, str], ...]
    labelled: tuple[tuple[str, str], ...]
    operators: int


def page_text(page: PageObject, hidden_groups: frozenset[int]) -> PageText:
    """Read a page.

    Args:
        page: the page.
        hidden_groups: the object numbers of optional content that is not shown.
    """
    tracker = _Tracker(page, hidden_groups)
    text = page.extract_text(
        visitor_operand_before=tracker.before, visitor_operand_after=tracker.after
    )
    kinds, labelled = tracker.hidden()
    if not kinds and not labelled:
        return PageText(text, (), (), tracker.operators)
    visible = _extracted(page, lambda i: i not in kinds) if kinds else text
    removed, kept = tuple(_parts(page, kinds)), tuple(_parts(page, labelled))
    return PageText(visible, removed, kept, tracker.operators)


def _parts(page: PageObject, kinds: dict[int, str]) -> Iterator[tuple[str, str]]:
    for kind in sorted(set(kinds.values())):
        text = _extracted(page, lambda i, kind=kind: kinds.get(i) == kind)  # type: ignore[misc]
        if text.strip():
            yield kind, text


def _extracted(page: PageObject, is_wanted: Callable[[int], bool]) -> str:
    """The text of the operators that show text and are wanted, by their number on the page."""
    count = -1

    def before(operator: bytes, operands: Any, _cm: Any, _tm: Any) -> None:
        nonlocal count
        place = _SHOWS.get(operator)
        if place is not None:
            count += 1
            if not is_wanted(count) and len(operands) > place:
                operands[place] = ArrayObject() if operator == b"TJ" else TextStringObject("")

    return page.extract_text(visitor_operand_before=before)


def hidden_groups(reader: PdfReader) -> frozenset[int]:
    """The object numbers of the optional content groups that a viewer does not show at first."""
    properties = _resolved(reader.trailer["/Root"]).get("/OCProperties")
    if properties is None:
        return frozenset()
    properties = _resolved(properties)
    default = _resolved(properties.get("/D", {}))
    hidden = set(_numbers(default.get("/OFF", ())))
    if default.get("/BaseState") == "/OFF":
        hidden |= set(_numbers(properties.get("/OCGs", ()))) - set(_numbers(default.get("/ON", ())))
    return frozenset(hidden)


def _resolved(value: Any) -> Any:
    return value.get_object() if isinstance(value, IndirectObject) else value


def _numbers(references: Any) -> Iterator[int]:
    for reference in _resolved(references):
        if isinstance(reference, IndirectObject):
            yield reference.idnum


@dataclass(slots=True)
class _State:
    """The graphics state."""

    matrix: Matrix = _IDENTITY
    fill: Color | None = BLACK
    opacity: float = 1.0
    is_blended: bool = False
    render_mode: int = 0
    font_size: float = 1.0
    is_measured: bool = True
    leading: float = 0.0
    clip: Box | None = None


class _ShownBox(NamedTuple):
    """An operator that showed text, with how it is hidden, if it is."""

    box: Box
    kind: str
    is_certain: bool
    paints: int


class _Paint(NamedTuple):
    """A filled shape or an image; without a color if that is not known."""

    box: Box
    color: Color | None
    is_opaque: bool
    is_image: bool


@dataclass(slots=True)
class _Tracker:
    """Follows the operators of a page and of the forms on it."""

    page: PageObject
    hidden_groups: frozenset[int]
    state: _State = field(default_factory=_State)
    stack: list[_State] = field(default_factory=list)
    forms: list[tuple[_State, list[_State], Any]] = field(default_factory=list)
    resources: Any = None
    box: Box = (0.0, 0.0, 0.0, 0.0)
    text_matrix: Matrix = _IDENTITY
    line_matrix: Matrix = _IDENTITY
    path: list[Box] = field(default_factory=list)
    is_rectangle: bool = True
    is_clipping: bool = False
    marks: list[bool] = field(default_factory=list)
    boxes: list[_ShownBox] = field(default_factory=list)
    paints: list[_Paint] = field(default_factory=list)
    operators: int = 0
    comparisons: int = 0

    def __post_init__(self) -> None:
        self.resources = _resolved(self.page.get("/Resources", {}))
        corners = [float(value) for value in self.page.cropbox]
        self.box = (
            min(corners[0::2]),
            min(corners[1::2]),
            max(corners[0::2]),
            max(corners[1::2]),
        )

    def hidden(self) -> tuple[dict[int, str], dict[int, str]]:
        """The kinds of the texts that are hidden, and of those that are kept, by their number."""
        scanned = sum(_area(_common(p.box, self.box)) for p in self.paints if p.is_image)
        has_scan = scanned >= _SCAN_SHARE * _area(self.box)
        removed: dict[int, str] = {}
        labelled: dict[int, str] = {}
        for number, (box, kind, is_certain, paints) in enumerate(self.boxes):
            if kind:
                # Scans are often stored in strips.
                is_ocr = has_scan and kind == "invisible_element"
                (removed if is_certain and not is_ocr else labelled)[number] = kind
                continue
            self.comparisons += len(self.paints) - paints
            if self.comparisons > _MAX_COMPARISONS:
                labelled[number] = "invisible_element"
                continue
            covers = [p for p in self.paints[paints:] if p.is_opaque and _contains(p.box, box)]
            if covers:
                is_image = any(cover.is_image for cover in covers)
                (labelled if is_image else removed)[number] = "invisible_element"
        return removed, labelled

    def before(self, operator: bytes, operands: Any, _cm: Any, _tm: Any) -> None:
        """Called before an operator."""
        self.operators += 1
        if operator == b"Do":
            self.forms.append((self.state, self.stack, self.resources))
        try:
            self._operator(operator, operands)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            # A broken operator; the number of texts must still be right.
            if operator in _SHOWS:
                self.boxes.append(_ShownBox(self.box, "", False, len(self.paints)))

    def after(self, operator: bytes, operands: Any, _cm: Any, _tm: Any) -> None:
        """Called after an operator; a form is drawn between."""
        if operator == b"Do" and self.forms:
            self.state, self.stack, self.resources = self.forms.pop()

    def _operator(self, operator: bytes, operands: Any) -> None:  # noqa: PLR0912
        state = self.state
        if operator in _SHOWS:
            self._show(operator, operands)
        elif operator == b"q":
            self.stack.append(replace(state))
        elif operator == b"Q":
            if self.stack:
                self.state = self.stack.pop()
        elif operator == b"cm":
            state.matrix = _product(_matrix(operands), state.matrix)
        elif operator == b"Do":
            self._draw(operands[0])
        elif operator in _PATH_ENDS:
            self._end_path(operator)
        elif operator in {b"re", b"m", b"l", b"c", b"v", b"y", b"h"}:
            self._extend_path(operator, operands)
        elif operator in {b"W", b"W*"}:
            self.is_clipping = True
        elif operator in {b"g", b"rg", b"k", b"sc", b"scn", b"cs"}:
            state.fill = _color(operator, operands)
        elif operator == b"gs":
            self._set_parameters(_resolved(self.resources["/ExtGState"])[operands[0]])
        elif operator in {b"BDC", b"BMC"}:
            self.marks.append(operator == b"BDC" and self._is_off(operands))
        elif operator == b"EMC":
            if self.marks:
                self.marks.pop()
        else:
            self._text_state(operator, operands)

    def _text_state(self, operator: bytes, operands: Any) -> None:
        state = self.state
        if operator == b"BT":
            self.text_matrix = self.line_matrix = _IDENTITY
        elif operator == b"Tm":
            self.text_matrix = self.line_matrix = _matrix(operands)
        elif operator in {b"Td", b"TD"}:
            if operator == b"TD":
                state.leading = -float(operands[1])
            self._move(float(operands[0]), float(operands[1]))
        elif operator == b"T*":
            self._move(0.0, -state.leading)
        elif operator == b"TL":
            state.leading = float(operands[0])
        elif operator == b"Tf":
            state.font_size = float(operands[1])
            # Fonts of type 3 have their own units.
            font = _resolved(_resolved(self.resources["/Font"])[operands[0]])
            state.is_measured = font.get("/Subtype") != "/Type3"
        elif operator == b"Tr":
            state.render_mode = int(operands[0])

    def _move(self, x: float, y: float) -> None:
        self.line_matrix = _product((1.0, 0.0, 0.0, 1.0, x, y), self.line_matrix)
        self.text_matrix = self.line_matrix

    def _show(self, operator: bytes, operands: Any) -> None:
        if operator in {b"'", b'"'}:
            self._move(0.0, -self.state.leading)
        operand = operands[_SHOWS[operator]]
        pieces = operand if operator == b"TJ" else [operand]
        length = 0.0
        for piece in pieces:
            if isinstance(piece, (str, bytes)):
                length += len(piece) * _CHARACTER_WIDTH
            else:
                length -= float(piece) / 1000
        size = self.state.font_size
        matrix = _product(self.text_matrix, self.state.matrix)
        box = _box(matrix, (0.0, -0.2 * size, length * size, 0.8 * size))
        height = abs(size) * hypot(matrix[2], matrix[3])
        kind, is_certain = self._kind(box, height)
        self.boxes.append(_ShownBox(box, kind, is_certain, len(self.paints)))
        self.text_matrix = _product((1.0, 0.0, 0.0, 1.0, length * size, 0.0), self.text_matrix)

    def _kind(self, box: Box, height: float) -> tuple[str, bool]:
        """How a text is hidden, and whether that is certain; no kind if it is not."""
        state = self.state
        if state.render_mode == 3 or any(self.marks):
            return "invisible_element", True
        if (state.is_measured and height <= _MAX_FONT_SIZE) or state.opacity <= _MAX_OPACITY:
            return "invisible_element", True
        if _common(box, self.box) is None:
            return "off_screen_element", True
        if state.clip is not None and _area(_common(box, state.clip)) < 1.0:
            return "off_screen_element", True
        if state.fill is None or state.render_mode not in {0, 4}:
            return "", True
        if self.comparisons > _MAX_COMPARISONS:
            return "invisible_element", False
        behind = self._behind(box)
        background = WHITE if behind is None else behind.color
        if background is None or (behind is not None and not _contains(behind.box, box)):
            return "", True
        is_same = state.fill.distance(background) <= SAME_COLOR
        return ("white_text" if is_same else ""), True

    def _behind(self, box: Box) -> _Paint | None:
        """The last paint that overlaps a box."""
        for paint in reversed(self.paints):
            self.comparisons += 1
            if _common(paint.box, box) is not None:
                return paint
        return None

    def _extend_path(self, operator: bytes, operands: Any) -> None:
        numbers = [float(value) for value in operands]
        if operator == b"re":
            x, y, width, height = numbers
            box = (min(x, x + width), min(y, y + height), max(x, x + width), max(y, y + height))
            self.path.append(_box(self.state.matrix, box))
            return
        self.is_rectangle = False
        for x, y in zip(numbers[0::2], numbers[1::2], strict=False):
            self.path.append(_box(self.state.matrix, (x, y, x, y)))

    def _end_path(self, operator: bytes) -> None:
        state = self.state
        if self.path:
            left, bottom, right, top = zip(*self.path, strict=True)
            box = (min(left), min(bottom), max(right), max(top))
            if operator in _FILLS and state.opacity > _MAX_OPACITY:
                is_plain = self.is_rectangle and len(self.path) == 1
                seen = box if state.clip is None else _common(box, state.clip)
                if seen is not None:
                    is_opaque = is_plain and state.opacity >= 1 and not state.is_blended
                    color = state.fill if is_opaque else None
                    self.paints.append(_Paint(seen, color, is_opaque, is_image=False))
            if self.is_clipping:
                state.clip = box if state.clip is None else _common(box, state.clip) or (0, 0, 0, 0)
        self.path, self.is_rectangle, self.is_clipping = [], True, False

    def _draw(self, name: Any) -> None:
        """An image, or a form, whose operators follow."""
        drawn = _resolved(_resolved(self.resources["/XObject"])[name])
        self.state = replace(self.state)
        if drawn["/Subtype"] == "/Image":
            box = _box(self.state.matrix, (0.0, 0.0, 1.0, 1.0))
            see_through = ("/SMask", "/Mask", "/ImageMask")
            is_opaque = self.state.opacity >= 1 and not any(map(drawn.get, see_through))
            seen = box if self.state.clip is None else _common(box, self.state.clip)
            if seen is not None:
                self.paints.append(_Paint(seen, None, is_opaque, is_image=True))
            return
        if "/Matrix" in drawn:
            self.state.matrix = _product(_matrix(drawn["/Matrix"]), self.state.matrix)
        self.stack = []
        self.resources = _resolved(drawn.get("/Resources", self.resources))

    def _set_parameters(self, parameters: Any) -> None:
        parameters = _resolved(parameters)
        if "/ca" in parameters:
            self.state.opacity = float(parameters["/ca"])
        if "/BM" in parameters:
            self.state.is_blended = parameters["/BM"] not in {"/Normal", "/Compatible"}

    def _is_off(self, operands: Sequence[Any]) -> bool:
        """Whether marked content is optional content that is not shown."""
        if operands[0] != "/OC" or not self.hidden_groups:
            return False
        reference = _resolved(self.resources["/Properties"]).raw_get(operands[1])
        if isinstance(reference, IndirectObject) and reference.idnum in self.hidden_groups:
            return True
        members = _resolved(reference).get("/OCGs")
        if members is None:
            return False
        if isinstance(_resolved(members), dict):
            members = [_resolved(reference).raw_get("/OCGs")]
        numbers = set(_numbers(members))
        return bool(numbers) and numbers <= self.hidden_groups


def _color(operator: bytes, operands: Any) -> Color | None:
    """The color that an operator sets; ``None`` if it is not known."""
    if operator == b"cs":
        return BLACK if str(operands[0]).startswith("/Device") else None
    if any(isinstance(value, str) for value in operands):
        return None
    values = [min(max(float(value), 0.0), 1.0) for value in operands]
    if operator == b"g":
        return Color(*[255 * values[0]] * 3)
    if len(values) == 3:
        red, green, blue = values
        return Color(255 * red, 255 * green, 255 * blue)
    if len(values) == 4:
        *inks, black = values
        red, green, blue = (255 * (1 - ink) * (1 - black) for ink in inks)
        return Color(red, green, blue)
    return None  # One ink of a color space that is not known.


def _matrix(values: Any) -> Matrix:
    a, b, c, d, e, f = (float(value) for value in values)
    return (a, b, c, d, e, f)


def _product(first: Matrix, second: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


def _box(matrix: Matrix, box: Box) -> Box:
    """The rectangle around a transformed rectangle."""
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in box[0::2] for y in box[1::2]]
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _common(first: Box | None, second: Box | None) -> Box | None:
    """What two rectangles have in common, or ``None``."""
    if first is None or second is None:
        return None
    left, bottom = max(first[0], second[0]), max(first[1], second[1])
    right, top = min(first[2], second[2]), min(first[3], second[3])
    return (left, bottom, right, top) if left < right and bottom < top else None


def _area(box: Box | None) -> float:
    return 0.0 if box is None else (box[2] - box[0]) * (box[3] - box[1])


def _contains(outer: Box, inner: Box) -> bool:
    """Whether a rectangle contains another one, to within a tenth of its size."""
    slack_x, slack_y = 0.1 * (inner[2] - inner[0]), 0.1 * (inner[3] - inner[1])
    return (
        outer[0] <= inner[0] + slack_x
        and outer[1] <= inner[1] + slack_y
        and outer[2] >= inner[2] - slack_x
        and outer[3] >= inner[3] - slack_y
    )
