"""PDF: the text layer, page by page.

Lines are those of the extracted text, numbered across the whole document. A block never spans two
pages and has the number of its page.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import hypot
from typing import Any, NamedTuple

import pypdf
from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, IndirectObject, TextStringObject

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import block_of, is_own_title, parser_errors, runs
from rolebundle.scan.finding import HiddenPart
from rolebundle.scan.hidden_style import BLACK, SAME_COLOR, WHITE, Color
from rolebundle.text.decoding import clean, cleaned, cleaned_note, one_line, split_lines
from rolebundle.text.words import counted

# pypdf logs a warning for each odd object of a broken file. The ingest report is sufficient.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def _read(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``encrypted_pdf``, ``no_text_layer`` or ``unreadable_pdf``.
    """
    inferred, pages = _extract(data, path)
    texts = [split_lines(visible) for visible, _ in pages]
    text, replaced = clean("\n".join("\n".join(lines) for lines in texts))
    if not text or text.isspace():
        raise DocumentError(
            "no_text_layer",
            f"{path}: no text in its {counted(len(pages), 'page')}",
            "run it through OCR (ocrmypdf), or exclude it",
        )
    lines = split_lines(text)
    yield ParsedDocument(
        blocks=tuple(_blocks(lines, texts)),
        inferred=inferred,
        lines=lines,
        notes=cleaned_note(replaced),
        hidden=tuple(part for _, hidden in pages for part in hidden),
    )


def _extract(data: bytes, path: str) -> tuple[dict[str, object], list[PageText]]:
    """Title and date, and the text of each page."""
    with parser_errors("unreadable_pdf", path):
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentError(
                "encrypted_pdf",
                f"{path}: the PDF is encrypted and requires a password",
                "save a copy without a password, or exclude it",
            )
        layers = hidden_layers(reader)
        return _metadata(reader), [page_text(page, layers) for page in reader.pages]


def _metadata(reader: pypdf.PdfReader) -> dict[str, object]:
    """The title, and the date of the last change. What is broken is left out."""
    found: dict[str, object] = {}
    # Bad metadata must not prevent reading the text.
    with suppress(Exception):
        title = one_line(cleaned(reader.metadata.title))  # type: ignore[union-attr, arg-type]
        found["title"] = title if is_own_title(title) else ""
    for name in ("creation_date", "modification_date"):
        with suppress(Exception):
            found["updated_at"] = getattr(reader.metadata, name).isoformat()
    return found


def _blocks(lines: list[str], pages: list[list[str]]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, 1):
        # In the joined text a page without text is one empty line.
        end = min(start + max(1, len(page)), len(lines))
        for first, last in runs(lines, start, end):
            yield block_of(lines, "paragraph", first, last)._replace(page=number)
        start = end


READERS = {"pdf": (5, _read)}


# -- pdf hidden --
#
# Text of a PDF page that people do not see, such as white, tiny, clipped or covered text.
#
# pypdf follows the matrices; the rest of the graphics state is followed here: colors, clips, marked
# content. Places are rectangles, and the width of a text is estimated, so a text counts as outside
# or covered only if all of its rectangle is. Annotations are not read.


Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""
Matrix = Sequence[float]

_NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_MAX_FONT_SIZE = 1.0  # points
_MAX_OPACITY = 0.05
_MAX_COMPARISONS = 3_000_000
"""Texts times shapes of a page, about a second. On a page with more, all texts are labelled."""
_CHARACTER_WIDTH = 0.5  # of the font size
# An image that covers this share of the page is a scan, and invisible text on it is its OCR.
_SCAN_SHARE = 0.5
# Operators that show text, with the place of the text in their operands.
_SHOWS = {b"Tj": 0, b"'": 0, b'"': 2, b"TJ": 0}
_FILLS = frozenset((b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"))
_PATH_ENDS = _FILLS | {b"n", b"S", b"s"}
_PATH_PARTS = frozenset((b"re", b"m", b"l", b"c", b"v", b"y", b"h"))
_MOVES = frozenset((b"BT", b"Td", b"TD", b"Tm", b"T*"))
_COLORS = frozenset((b"g", b"rg", b"k", b"sc", b"scn", b"cs"))


PageText = tuple[str, tuple[HiddenPart, ...]]
"""The text of a page without its hidden parts, and these. What is kept is in the text, too."""


def page_text(page: PageObject, layers: frozenset[int]) -> PageText:
    """Read a page; ``layers`` are the object numbers of the layers that are not shown."""
    tracker = _Tracker(page, layers)
    text = page.extract_text(
        visitor_operand_before=tracker.before, visitor_operand_after=tracker.after
    )
    removed, labelled = tracker.hidden()
    if removed:
        text = _extracted(page, set(range(len(tracker.texts))) - removed.keys())
    parts = [
        HiddenPart(kind, one_line(hidden), is_kept=is_kept)
        for kinds, is_kept in ((removed, False), (labelled, True))
        for kind in sorted(set(kinds.values()))
        if (hidden := _extracted(page, {n for n in kinds if kinds[n] == kind})).strip()
    ]
    return text, tuple(parts)


def _extracted(page: PageObject, wanted: set[int]) -> str:
    """The text of the operators that show text and are wanted, by their number on the page."""
    count = -1

    def before(operator: bytes, operands: Any, _cm: Any, _tm: Any) -> None:
        nonlocal count
        place = _SHOWS.get(operator)
        if place is not None:
            count += 1
            if count not in wanted and len(operands) > place:
                operands[place] = ArrayObject() if operator == b"TJ" else TextStringObject("")

    return page.extract_text(visitor_operand_before=before)


def hidden_layers(reader: PdfReader) -> frozenset[int]:
    """The object numbers of the layers (optional content) that a viewer does not show at first."""
    properties = _resolved(_resolved(reader.trailer["/Root"]).get("/OCProperties", {}))
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


class _State(NamedTuple):
    """The graphics state. The color is ``None`` if it is not known."""

    fill: Color | None = BLACK
    opacity: float = 1.0
    is_blended: bool = False
    render_mode: int = 0
    font_size: float = 1.0
    is_measured: bool = True
    clip: Box = _NOWHERE


class _Text(NamedTuple):
    """An operator that showed text, how it is hidden, and how many shapes were drawn before."""

    box: Box
    kind: str = ""
    color: Color | None = None
    paints: int = 0


class _Paint(NamedTuple):
    """A filled shape or an image; without a color if that is not known."""

    box: Box
    color: Color | None
    is_opaque: bool
    is_image: bool = False

    def covers(self, text: _Text) -> bool:
        return self.is_opaque and _contains(self.box, text.box)


_BROKEN_OPERATORS = suppress(TypeError, ValueError, IndexError, KeyError, AttributeError)


@dataclass(slots=True)
class _Tracker:
    """Follows the operators of a page and of the forms on it."""

    page: PageObject
    layers: frozenset[int]
    state: _State = field(init=False)
    stack: list[_State] = field(default_factory=list)
    outer: Matrix = _IDENTITY
    """Of the form that is drawn: pypdf begins each with a matrix of its own."""
    forms: list[tuple[_State, list[_State], Matrix, Any]] = field(default_factory=list)
    resources: Any = None
    box: Box = _NOWHERE
    advance: float = 0.0
    """How far the texts went since their matrix was set."""
    path: list[Box] = field(default_factory=list)
    is_rectangle: bool = True
    is_clipping: bool = False
    marks: list[bool] = field(default_factory=list)
    texts: list[_Text] = field(default_factory=list)
    paints: list[_Paint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resources = _resolved(self.page.get("/Resources", {}))
        self.box = _box(_IDENTITY, [float(value) for value in self.page.cropbox])
        self.state = _State(clip=self.box)

    def hidden(self) -> tuple[dict[int, str], dict[int, str]]:
        """The kinds of the texts that are hidden, and of those that are kept, by their number."""
        scanned = sum(_area(_common(p.box, self.box)) for p in self.paints if p.is_image)
        has_scan = scanned >= _SCAN_SHARE * _area(self.box)  # often stored in strips
        is_compared = len(self.texts) * len(self.paints) <= _MAX_COMPARISONS
        removed: dict[int, str] = {}
        labelled: dict[int, str] = {}
        for number, text in enumerate(self.texts):
            if text.kind:
                is_ocr = has_scan and text.kind == "invisible_element"
                (labelled if is_ocr else removed)[number] = text.kind
            elif not is_compared:
                labelled[number] = "invisible_element"
            elif self._is_like_its_background(text):
                removed[number] = "white_text"
            elif covers := [p for p in self.paints[text.paints :] if p.covers(text)]:
                is_image = any(cover.is_image for cover in covers)
                (labelled if is_image else removed)[number] = "invisible_element"
        return removed, labelled

    def _is_like_its_background(self, text: _Text) -> bool:
        paper = _Paint(text.box, WHITE, is_opaque=True)
        before = reversed(self.paints[: text.paints])
        behind = next((p for p in before if _common(p.box, text.box)), paper)
        if not (text.color and behind.color and _contains(behind.box, text.box)):
            return False
        return text.color.distance(behind.color) <= SAME_COLOR

    def before(self, operator: bytes, operands: Any, cm: Any, _tm: Any) -> None:
        """Called before an operator; ``cm`` is the matrix of the page or form."""
        if operator == b"Do":
            self.forms.append((self.state, self.stack, self.outer, self.resources))
        if operator not in _SHOWS:
            with _BROKEN_OPERATORS:
                self._operator(operator, operands, _product(cm, self.outer))

    def after(self, operator: bytes, operands: Any, cm: Any, tm: Any) -> None:
        """Called after an operator; a form is drawn between. ``tm`` is the matrix of the text."""
        if operator == b"Do" and self.forms:
            self.state, self.stack, self.outer, self.resources = self.forms.pop()
        if operator in _SHOWS:
            # Of a broken operator, too, because texts are numbered.
            self.texts.append(_Text(self.box, paints=len(self.paints)))
            with _BROKEN_OPERATORS:
                self.texts[-1] = self._shown(operator, operands, _product(cm, self.outer), tm)

    def _operator(self, operator: bytes, operands: Any, matrix: Matrix) -> None:  # noqa: PLR0912
        if operator == b"q":
            self.stack.append(self.state)
        elif operator == b"Q":
            self.state = self.stack.pop()
        elif operator == b"Do":
            self._draw(self.resources["/XObject"][operands[0]], matrix)
        elif operator in _MOVES:
            self.advance = 0.0
        elif operator in _PATH_ENDS:
            self._end_path(operator)
        elif operator in _PATH_PARTS:
            self._extend_path(operator, [float(value) for value in operands], matrix)
        elif operator in {b"W", b"W*"}:
            self.is_clipping = True
        elif operator in _COLORS:
            self.state = self.state._replace(fill=_color(operator, operands))
        elif operator == b"gs":
            parameters = self.resources["/ExtGState"][operands[0]]
            opacity = float(parameters.get("/ca", self.state.opacity))
            is_blended = parameters.get("/BM", "/Normal") not in {"/Normal", "/Compatible"}
            self.state = self.state._replace(opacity=opacity, is_blended=is_blended)
        elif operator == b"Tf":
            # Fonts of type 3 have their own units.
            is_measured = self.resources["/Font"][operands[0]].get("/Subtype") != "/Type3"
            size = float(operands[1])
            self.state = self.state._replace(font_size=size, is_measured=is_measured)
        elif operator == b"Tr":
            self.state = self.state._replace(render_mode=int(operands[0]))
        elif operator in {b"BDC", b"BMC"}:
            self.marks.append(False)
            self.marks[-1] = operator == b"BDC" and operands[0] == "/OC" and self._is_off(operands)
        elif operator == b"EMC":
            self.marks.pop()

    def _shown(self, operator: bytes, operands: Any, cm: Matrix, tm: Matrix) -> _Text:
        operand = operands[_SHOWS[operator]]
        length = sum(
            len(piece) * _CHARACTER_WIDTH
            if isinstance(piece, (str, bytes))
            else -float(piece) / 1000
            for piece in (operand if operator == b"TJ" else [operand])
        )
        size = self.state.font_size
        start = 0.0 if operator in {b"'", b'"'} else self.advance
        self.advance = end = start + length * size
        matrix = _product(tm, cm)
        box = _box(matrix, (start, -0.2 * size, end, 0.8 * size))
        kind = self._kind(box, abs(size) * hypot(matrix[2], matrix[3]))
        color = self.state.fill if self.state.render_mode in {0, 4} else None
        return _Text(box, kind, color, len(self.paints))

    def _kind(self, box: Box, height: float) -> str:
        """How a text is hidden without a look at its color."""
        state = self.state
        is_tiny = state.is_measured and height <= _MAX_FONT_SIZE
        if state.render_mode == 3 or any(self.marks) or is_tiny or state.opacity <= _MAX_OPACITY:
            return "invisible_element"
        return "off_screen_element" if _area(_common(box, state.clip)) < 1.0 else ""

    def _extend_path(self, operator: bytes, numbers: list[float], matrix: Matrix) -> None:
        if operator == b"re":
            x, y, width, height = numbers
            self.path.append(_box(matrix, (x, y, x + width, y + height)))
            return
        self.is_rectangle = False
        for x, y in zip(numbers[0::2], numbers[1::2], strict=False):
            self.path.append(_box(matrix, (x, y, x, y)))

    def _end_path(self, operator: bytes) -> None:
        state = self.state
        if self.path:
            left, bottom, right, top = zip(*self.path, strict=True)
            box = (min(left), min(bottom), max(right), max(top))
            if operator in _FILLS and state.opacity > _MAX_OPACITY:
                is_plain = self.is_rectangle and len(self.path) == 1
                is_opaque = is_plain and state.opacity >= 1 and not state.is_blended
                self._paint(_Paint(box, state.fill if is_opaque else None, is_opaque))
            if self.is_clipping:
                self.state = state._replace(clip=_common(box, state.clip) or _NOWHERE)
        self.path, self.is_rectangle, self.is_clipping = [], True, False

    def _paint(self, paint: _Paint) -> None:
        """Add a shape as far as the clip shows it."""
        if seen := _common(paint.box, self.state.clip):
            self.paints.append(paint._replace(box=seen))

    def _draw(self, drawn: Any, matrix: Matrix) -> None:
        """An image, or a form, whose operators follow."""
        if drawn["/Subtype"] == "/Image":
            is_masked = any(map(drawn.get, ("/SMask", "/Mask", "/ImageMask")))
            is_opaque = self.state.opacity >= 1 and not is_masked
            self._paint(_Paint(_box(matrix, (0.0, 0.0, 1.0, 1.0)), None, is_opaque, is_image=True))
            return
        self.outer = _product([float(value) for value in drawn.get("/Matrix", _IDENTITY)], matrix)
        self.stack = []
        self.resources = _resolved(drawn.get("/Resources", self.resources))

    def _is_off(self, operands: Sequence[Any]) -> bool:
        """Whether marked content is on layers that are not shown."""
        reference = self.resources["/Properties"].raw_get(operands[1])
        group = _resolved(reference)
        members = group.raw_get("/OCGs") if "/OCGs" in group else reference
        numbers = set(_numbers([members] if isinstance(_resolved(members), dict) else members))
        return bool(numbers) and numbers <= self.layers


def _color(operator: bytes, operands: Any) -> Color | None:
    """The color that an operator sets; ``None`` if it is not known."""
    if operator == b"cs":
        return BLACK if str(operands[0]).startswith("/Device") else None
    if any(isinstance(value, str) for value in operands):
        return None
    values = [min(max(float(value), 0.0), 1.0) for value in operands]
    if operator == b"g":
        values *= 3
    elif len(values) == 4:
        *inks, black = values
        values = [(1 - ink) * (1 - black) for ink in inks]
    # One ink of a color space that is not known has no color.
    return Color(*(255 * value for value in values)) if len(values) == 3 else None


def _product(first: Matrix, second: Matrix) -> Matrix:
    a, b, c, d, e, f = second
    rows = zip(first[0::2], first[1::2], (0.0, 0.0, 1.0), strict=True)
    return [v for x, y, z in rows for v in (a * x + c * y + e * z, b * x + d * y + f * z)]


def _box(matrix: Matrix, box: Sequence[float]) -> Box:
    """The rectangle around a transformed rectangle."""
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in box[0::2] for y in box[1::2]]
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _common(first: Box, second: Box) -> Box | None:
    """What two rectangles have in common, or ``None``."""
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
