"""Text of a PDF that people do not see, such as white, tiny, clipped or covered text.

Places are rectangles, so a text counts as outside or covered only if all of its rectangle is.
Whether a layer is shown is seen by drawing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from ctypes import addressof, c_char, c_float, c_int, c_uint, c_ulong, c_ushort, c_void_p
from functools import lru_cache
from itertools import combinations, repeat
from math import atan2, hypot, pi
from struct import Struct
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rolebundle.scan.hidden_style import SAME_COLOR, WHITE, Color

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""
_Numbered = tuple[int, Box]
"""A rectangle with the number of its text or shape."""
Matrix = Sequence[float]
OBLIQUE = 4
"""The turn of a text that is not turned by quarters."""
_PATH, _IMAGE = pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_IMAGE
_FORM = pdfium.FPDF_PAGEOBJ_FORM
_MAX_FONT_SIZE = 1.0  # points
_MAX_OPACITY = 0.05
_MIN_SIDE = 1.0
"""Thinner shapes are lines, neither a background nor a cover."""
_MAX_COMPARISONS = 3_000_000
"""Texts times shapes of a page, about a second. On a page with more, all texts are labelled."""
_ROWS = 64
"""Of a page: a text is only compared with the shapes in its row."""
_MIN_SUBSTITUTE, _MIN_WIDTH = 8, 0.3
"""How long a text must be that stands for another one, and how wide its characters, of the size."""
_MAX_DEPTH = 20
_MAX_CLIP_SEGMENTS = 500
# An image that covers this share of the page is a scan, and invisible text on it is its OCR, which
# is seen where the scan shows something.
_SCAN_SHARE = 0.5
_UNPAINTED = "unpainted"
"""The kind of a text that is neither filled nor outlined, until it is known what is behind it."""
_SAME_PLACE = 0.8
"""How much of the smaller one of two texts in one place lies in the other one."""
_MIN_CONTRAST = 40
"""Between the darkest and the brightest of 256 shades in the place of a text."""
_NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_PIXELS = 256
"""The sides of the picture in which it is seen whether something is drawn."""
_SCAN_PIXELS = 1_024
_CLEAR, _ON_WHITE = 0, 0xFFFFFFFF


class _Text(NamedTuple):
    """An operator that shows text, how it is hidden, and how many shapes are drawn before."""

    box: Box
    place: Box
    """The same, turned back if it is turned."""
    base: float
    size: float
    turn: int
    kind: str
    color: Color | None
    paints: int


_Style = tuple[float, int, Color | None, str]
"""Size, turn and color of a text, and how it is hidden at any place."""


class _Paint(NamedTuple):
    """A filled shape or an image, as far as its clip shows it."""

    box: Box
    kind: int
    chain: tuple[int, ...]
    """The forms that it is in, and itself."""


class Shown:
    """The texts and shapes of a page in the order in which they are drawn."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.texts: list[_Text] = []
        self.numbers: dict[int, int] = {}
        """The number of each text, by its address."""
        self._paints: list[_Paint] = []
        self._objects: list[int] = []
        """What may be drawn."""
        self._substituted: dict[int, list[int]] = {}
        """The numbers of the texts for which a mark has another text, by the mark's address."""
        self._is_on: dict[int, bool] = {}
        """Whether what has a mark is on a layer that is shown, by the mark's address."""
        self._surfaces: dict[int, Color | None] = {}
        self._opaque_images: dict[int, bool] = {}
        self._last: tuple[object, _Style] = (None, (0.0, 0, None, ""))
        """What the style of the last text is made from, and this."""
        pdfium.FPDF_GetPageBoundingBox(page, bounds := pdfium.FS_RECTF())
        self._box = (bounds.left, bounds.bottom, bounds.right, bounds.top)
        count, address = pdfium.FPDFPage_CountObjects(page), address_of(page)
        objects = list(map(fast.Page_GetObject, repeat(address), range(count)))
        self._walk(objects, _IDENTITY, self._box, (), True)

    def hidden(self) -> tuple[dict[int, str], dict[int, str]]:
        """The kinds of the texts that are hidden, and of those that are kept, by their number."""
        images = (p.box for p in self._paints if p.kind == _IMAGE)
        # A scan is often stored in strips.
        scanned = sum(_area(_common(box, self._box)) for box in images)
        has_scan = scanned >= _SCAN_SHARE * _area(self._box)
        seen = self._seen_in_scan() if has_scan else set()
        is_compared = len(self.texts) * len(self._paints) <= _MAX_COMPARISONS
        rows = self._rows(enumerate(p.box for p in self._paints)) if is_compared else []
        removed: dict[int, str] = {}
        labelled: dict[int, str] = {}
        plain: Color | None = None  # what was seen where there is no shape
        for number, text in enumerate(self.texts):
            if number in seen:
                continue
            if text.kind:
                kind = "invisible_element" if text.kind == _UNPAINTED else text.kind
                is_ocr = has_scan and kind == "invisible_element"
                (labelled if is_ocr else removed)[number] = kind
                continue
            if not is_compared:
                labelled[number] = "invisible_element"
                continue
            row = rows[self._row((text.box[1] + text.box[3]) / 2)] if self._paints else ()
            if text.color and text.color is plain and not row:
                continue
            background, covers = self._around(text, row)
            if text.color and _is_alike(text.color, background):
                removed[number] = "white_text"
            elif covers := [paint for paint in covers if self._is_opaque(paint, text)]:
                is_image = any(cover.kind == _IMAGE for cover in covers)
                (labelled if is_image else removed)[number] = "invisible_element"
            elif not row:
                plain = text.color
        for mark, numbers in self._substituted.items():
            if self._is_too_long(mark, numbers):
                labelled |= dict.fromkeys({*numbers} - removed.keys(), "invisible_element")
        return removed, labelled

    def _seen_in_scan(self) -> set[int]:
        """The unpainted texts in whose place the images of the page show something.

        Of two texts in one place at most one can be what is shown, so neither counts.
        """
        texts = [(n, text.box) for n, text in enumerate(self.texts) if text.kind == _UNPAINTED]
        rows = self._rows(texts)
        is_dense = sum(_area(box) for _, box in texts) > 2 * _area(self._box)
        if not texts or is_dense or sum(len(row) ** 2 for row in rows) > _MAX_COMPARISONS:
            return set()
        images = [one for paint in self._paints if paint.kind == _IMAGE for one in paint.chain]
        shades = self._drawn(images, _SCAN_PIXELS, _ON_WHITE)[1::4]
        seen = {number for number, box in texts if self._contrast(shades, box) >= _MIN_CONTRAST}
        for row in rows:
            for (first, box), (second, other) in combinations(row, 2):
                if _area(_common(box, other)) > _SAME_PLACE * min(_area(box), _area(other)):
                    seen -= {first, second}
        return seen

    def _contrast(self, shades: bytes, box: Box) -> int:
        """The difference between the brightest and the darkest pixel of a picture in a place."""
        corners = [self._pixel(x, y, _SCAN_PIXELS) for x, y in (box[:2], box[2:])]
        (left, right), (top, bottom) = (sorted(values) for values in zip(*corners, strict=True))
        starts = range(top * _SCAN_PIXELS, (bottom + 1) * _SCAN_PIXELS, _SCAN_PIXELS)
        place = b"".join(shades[start + left : start + right + 1] for start in starts)
        return max(place) - min(place)

    def _pixel(self, x: float, y: float, side: int) -> tuple[int, int]:
        """The pixel of a picture of the page at a place: its column and row from the top."""
        column, row = c_int(), c_int()
        pdfium.FPDF_PageToDevice(self.page, 0, 0, side, side, 0, x, y, column, row)
        return min(max(column.value, 0), side - 1), min(max(row.value, 0), side - 1)

    def _is_too_long(self, mark: int, numbers: Sequence[int]) -> bool:
        """Whether the text that a mark has for others has no room in their place."""
        value = fast.PageObjMark_GetParamStringValue
        if not value(mark, b"ActualText", None, 0, addressof(length := c_ulong())):
            return False
        texts = [self.texts[number] for number in numbers]
        width = sum((t.place[2] - t.place[0]) / (t.size or 1.0) for t in texts)
        characters = length.value / 2 - 1
        return characters >= _MIN_SUBSTITUTE and width < _MIN_WIDTH * characters

    def _row(self, height: float) -> int:
        """Which of the rows of the page has a height."""
        bottom, top = self._box[1], self._box[3]
        share = (height - bottom) / max(top - bottom, 1.0)
        return min(max(int(share * _ROWS), 0), _ROWS - 1)

    def _rows(self, boxes: Iterable[_Numbered]) -> list[list[_Numbered]]:
        """The rectangles in each row of the page, with their numbers."""
        rows: list[list[_Numbered]] = [[] for _ in range(_ROWS)]
        for number, box in boxes:
            for row in rows[self._row(box[1]) : self._row(box[3]) + 1]:
                row.append((number, box))
        return rows

    def _around(self, text: _Text, row: Sequence[_Numbered]) -> tuple[Color | None, list[_Paint]]:
        """The color behind a text, ``None`` if it is not known, and the shapes before it."""
        left, bottom, right, top = text.box
        behind: _Paint | None = None
        before = []
        for number, box in row:
            if box[0] < right and box[2] > left and box[1] < top and box[3] > bottom:
                if number < text.paints:
                    behind = self._paints[number]
                elif _contains(box, text.box):
                    before.append(self._paints[number])
        if behind is None:
            return WHITE, before
        return self._surface(behind) if _contains(behind.box, text.box) else None, before

    def _surface(self, paint: _Paint) -> Color | None:
        """The color of a rectangle; ``None`` if it is transparent, or not known."""
        shape = paint.chain[-1]
        if shape not in self._surfaces:
            self._surfaces[shape] = None
            if paint.kind == _PATH and not fast.PageObj_HasTransparency(shape):
                count = fast.Path_CountSegments(shape)
                points = _points(fast.Path_GetPathSegment, (shape,), count, 5)
                if len({x for x, _ in points}) == len({y for _, y in points}) == 2:
                    self._surfaces[shape] = _color(fast.PageObj_GetFillColor, shape)
        return self._surfaces[shape]

    def _is_opaque(self, paint: _Paint, text: _Text) -> bool:
        """Whether a shape hides a text; that of an image is seen at one place."""
        if paint.kind != _IMAGE:
            return self._surface(paint) is not None
        image, box = paint.chain[-1], text.box
        if image not in self._opaque_images:
            alphas = self._drawn(paint.chain)[3::4]
            x, y = self._pixel((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, _PIXELS)
            self._opaque_images[image] = alphas[y * _PIXELS + x] == 255
        return self._opaque_images[image]

    def _drawn(self, chain: Sequence[int], side: int = _PIXELS, background: int = _CLEAR) -> bytes:
        """The pixels, of four bytes, if nothing of the page is drawn but these objects."""
        while self._objects:  # They stay so: their text was read before.
            fast.PageObj_SetIsActive(self._objects.pop(), 0)
        for one in chain:
            fast.PageObj_SetIsActive(one, 1)
        bitmap = pdfium.FPDFBitmap_Create(side, side, 1)
        pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, side, side, background)
        pdfium.FPDF_RenderPageBitmap(bitmap, self.page, 0, 0, side, side, 0, 0)
        pixels = ctypes.string_at(pdfium.FPDFBitmap_GetBuffer(bitmap), 4 * side**2)
        pdfium.FPDFBitmap_Destroy(bitmap)
        for one in chain:
            fast.PageObj_SetIsActive(one, 0)
        return pixels

    def _walk(
        self, objects: list[int], outer: Matrix, clip: Box, forms: tuple[int, ...], is_on: bool
    ) -> None:
        place, floats = _PLACE, _FLOATS
        self._objects += objects
        modes = list(map(fast.TextObj_GetTextRenderMode, objects))  # negative if it is no text
        texts = _numbers_of([one for one, mode in zip(objects, modes, strict=True) if mode >= 0])
        for pointer, mode in zip(objects, modes, strict=True):
            if mode >= 0:
                self._add_text(pointer, mode, next(texts), outer, clip, is_on)
                continue
            kind = fast.PageObj_GetType(pointer)
            fast.PageObj_GetBounds(pointer, place, place + 4, place + 8, place + 12)
            box = _box(outer, floats[:4])
            if kind == _PATH:
                side = min(box[2] - box[0], box[3] - box[1])
                fast.Path_GetDrawMode(pointer, place, place + 4)
                if side < _MIN_SIDE or not floats[0]:  # It has no fill.
                    continue
            is_shown = is_on and all(map(self._is_mark_shown, _marks(pointer)))
            seen = _clip(pointer, outer, clip)
            if kind == _FORM and len(forms) < _MAX_DEPTH:
                color = _color(fast.PageObj_GetFillColor, pointer)
                is_shown &= color is None or color.alpha > _MAX_OPACITY
                fast.PageObj_GetMatrix(pointer, place)
                matrix = _product(floats[:], outer)
                count = fast.FormObj_CountObjects(pointer)
                inner = [fast.FormObj_GetObject(pointer, number) for number in range(count)]
                self._walk(inner, matrix, seen, (*forms, pointer), is_shown)
            elif is_shown and (seen_box := _common(box, seen)):
                self._paints.append(_Paint(seen_box, kind, (*forms, pointer)))

    def _add_text(
        self, pointer: int, mode: int, numbers: Any, outer: Matrix, clip: Box, is_on: bool
    ) -> None:
        """Add a text from its numbers (see ``_numbers_of``)."""
        (left, bottom, right, top, look, x, y), has_color, mark_count, clip_count = numbers
        box = (left, bottom, right, top)
        if outer is not _IDENTITY:
            a, b, c, d, e, f = outer
            box, x, y = _box(outer, box), a * x + c * y + e, b * x + d * y + f
        number = self.numbers[pointer] = len(self.texts)
        for mark in _marks(pointer) if mark_count else ():
            is_on = is_on and self._is_mark_shown(mark)
            self._substituted.setdefault(mark, []).append(number)
        if clip_count > 0:
            clip = _clip(pointer, outer, clip)
        key = (look, has_color, mode, outer, is_on)
        if key != self._last[0] or mode in (1, 5):
            self._last = key, _style(pointer, mode, look, has_color, outer, is_on)
        size, turn, color, kind = self._last[1]
        place, base = _turned_back(box, x, y, turn) if turn else (box, y)
        if size <= _MAX_FONT_SIZE and box[3] - box[1] <= _MAX_FONT_SIZE:
            kind = "invisible_element"
        elif not (kind or _contains(clip, box)):
            is_off = _area(_common(box, clip)) < min(1.0, _area(box) / 2)
            kind = "off_screen_element" if is_off else ""
        self.texts.append(_Text(box, place, base, size, turn, kind, color, len(self._paints)))

    def _is_mark_shown(self, mark: int) -> bool:
        """Whether a mark is for no layer (optional content), or for one that is shown."""
        if mark not in self._is_on:
            self._is_on[mark] = self._is_layer_shown(mark)
        return self._is_on[mark]

    def _is_layer_shown(self, mark: int) -> bool:
        """Whether a rectangle with a mark is drawn."""
        name = (c_ushort * 4)()
        fast.PageObjMark_GetName(mark, addressof(name), 8, addressof(c_ulong()))
        if bytes(name) != b"O\0C\0\0\0\0\0":
            return True
        left, bottom, right, top = self._box
        shape = pdfium.FPDFPageObj_CreateNewRect(left, bottom, right - left, top - bottom)
        pdfium.FPDFPageObj_SetFillColor(shape, 0, 0, 0, 255)
        pdfium.FPDFPath_SetDrawMode(shape, pdfium.FPDF_FILLMODE_WINDING, 0)
        pdfium.FPDFPage_InsertObject(self.page, shape)
        fast.PageObj_AddExistingMark(shape, mark)
        is_drawn = any(self._drawn([address_of(shape)])[3::4])
        pdfium.FPDFPage_RemoveObject(self.page, shape)
        pdfium.FPDFPageObj_Destroy(shape)
        return is_drawn


_ROW, _LOOK = Struct("4f36s2f"), Struct("4I5f")
"""The numbers of a text: bounds, look and origin; of a look: color, size and matrix."""


def _numbers_of(texts: list[int]) -> Iterator[Any]:
    """For each text its row, whether it has a fill color, and how many marks and clips it has.

    All are read at once, as some files show each character by a text of its own.
    """
    memory = (c_char * (_ROW.size * len(texts)))()
    start, end = addressof(memory), addressof(memory) + len(memory)
    places = [range(start + 4 * n, end, _ROW.size) for n in range(10)]
    list(map(fast.PageObj_GetBounds, texts, *places[:4]))
    has_color = list(map(fast.PageObj_GetFillColor, texts, *places[4:8]))
    list(map(fast.TextObj_GetFontSize, texts, places[8]))
    list(map(fast.PageObj_GetMatrix, texts, places[9]))
    clips = map(fast.ClipPath_CountPaths, map(fast.PageObj_GetClipPath, texts))
    marks = map(fast.PageObj_CountMarks, texts)
    return zip(_ROW.iter_unpack(memory), has_color, marks, clips, strict=True)


def _style(
    pointer: int, mode: int, look: bytes, has_color: int, outer: Matrix, is_shown: bool
) -> _Style:
    *channels, size, a, b, c, d = _LOOK.unpack(look)
    color = _color_of(*channels) if has_color else None
    if mode in (1, 5):
        color = _color(fast.PageObj_GetStrokeColor, pointer)
    a, b, c, d, *_ = _product((a, b, c, d, 0.0, 0.0), outer)
    turn = 0
    if b or a <= 0:
        quarters = atan2(b, a) / (pi / 2)
        turn = round(quarters) % 4 if abs(quarters - round(quarters)) < 0.05 else OBLIQUE
    is_hidden = not is_shown or mode == 7 or (color and color.alpha <= _MAX_OPACITY)
    kind = "invisible_element" if is_hidden else _UNPAINTED if mode == 3 else ""
    return abs(size) * hypot(c, d), turn, color if mode in (0, 1, 4, 5) else None, kind


def _turned_back(box: Box, x: float, y: float, turn: int) -> tuple[Box, float]:
    """A rectangle, and the height of a point, as they are if the text is not turned."""
    left, bottom, right, top = box
    if turn == 1:
        return (bottom, -right, top, -left), -x
    if turn == 2:
        return (-right, -top, -left, -bottom), -y
    return ((-top, left, -bottom, right), x) if turn == 3 else (box, y)


def _marks(pointer: int) -> list[int]:
    """The marks of an object, by their addresses."""
    count = fast.PageObj_CountMarks(pointer)
    return [fast.PageObj_GetMark(pointer, number) for number in range(count)]


def _clip(pointer: int, outer: Matrix, clip: Box) -> Box:
    """What is left of a clip of forms after that of an object."""
    path = fast.PageObj_GetClipPath(pointer)
    for number in range(fast.ClipPath_CountPaths(path) if path else 0):
        count = fast.ClipPath_CountPathSegments(path, number)
        segment = fast.ClipPath_GetPathSegment
        if points := _points(segment, (path, number), count, _MAX_CLIP_SEGMENTS):
            xs, ys = zip(*points, strict=True)
            box = _box(outer, (min(xs), min(ys), max(xs), max(ys)))
            clip = _common(box, clip) or _NOWHERE
    return clip


_FLOATS, _INTEGERS = (c_float * 6)(), (c_uint * 4)()
_PLACE, _CHANNELS = addressof(_FLOATS), addressof(_INTEGERS)


def _points(
    segment: Any, owner: tuple[int, ...], count: int, most: int
) -> list[tuple[float, float]]:
    """The points of a path; none if there are too many."""
    points = []
    for number in range(count if count <= most else 0):
        fast.PathSegment_GetPoint(segment(*owner, number), _PLACE, _PLACE + 4)
        points.append((_FLOATS[0], _FLOATS[1]))
    return points


def _color(function: Any, pointer: int) -> Color | None:
    """A color of an object; ``None`` if it is not known."""
    place = _CHANNELS
    if not function(pointer, place, place + 4, place + 8, place + 12):
        return None
    return _color_of(*_INTEGERS)


@lru_cache(maxsize=256)
def _color_of(red: int, green: int, blue: int, opacity: int) -> Color:
    return Color(red, green, blue, opacity / 255)


@lru_cache(maxsize=256)
def _is_alike(color: Color, background: Color | None) -> bool:
    return background is not None and color.distance(background) <= SAME_COLOR


def _product(first: Matrix, second: Matrix) -> Matrix:
    a, b, c, d, e, f = second
    rows = zip(first[0::2], first[1::2], (0.0, 0.0, 1.0), strict=True)
    return tuple(v for x, y, z in rows for v in (a * x + c * y + e * z, b * x + d * y + f * z))


def _box(matrix: Matrix, box: Sequence[float]) -> Box:
    """The rectangle around a transformed rectangle."""
    if matrix is _IDENTITY:
        return (box[0], box[1], box[2], box[3])
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
    is_wide = outer[0] <= inner[0] + slack_x and outer[2] >= inner[2] - slack_x
    return is_wide and outer[1] <= inner[1] + slack_y and outer[3] >= inner[3] - slack_y


# -- functions of pdfium --


def address_of(pointer: Any) -> int:
    """The address that a pointer of pdfium has."""
    return ctypes.cast(pointer, c_void_p).value or 0


class _Fast:
    """Functions of pdfium by their names, with addresses in place of pointers.

    Its own types take three times as long.
    """

    def __getattr__(self, name: str) -> Any:
        function = getattr(pdfium, f"FPDF{name}")
        types = [function.restype, *function.argtypes]
        plain = ctypes.PYFUNCTYPE(*(t if t in _NUMBERS else c_void_p for t in types))
        setattr(self, name, found := plain(address_of(function)))
        return found


_NUMBERS = (c_int, c_uint, c_ulong)
fast = _Fast()
