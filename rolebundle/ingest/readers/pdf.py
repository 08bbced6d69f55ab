"""PDF by pdfium: the text layer with its places, the values of forms, and what people do not see.

Lines are those of the extracted text, numbered across the whole document. A block never spans two
pages and has the number of its page.

pdfium is not safe for threads and may crash on a broken file, so it runs in the processes that read
files (:mod:`rolebundle.ingest.workers`).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from ctypes import addressof, c_float, c_int, c_uint, c_ulong, c_ushort, c_void_p
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from math import atan2, hypot, pi
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import block_of, is_own_title, notation, parser_errors, runs
from rolebundle.scan.finding import HiddenPart
from rolebundle.scan.hidden_style import SAME_COLOR, WHITE, Color
from rolebundle.text.decoding import clean, cleaned, cleaned_note, one_line, split_lines
from rolebundle.text.words import counted

_MAX_NAMED_PAGES = 20
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-]\d\d)'?(\d\d)?)?")
_HYPHENS = re.compile("[\ufffe\x02]")
"""How pdfium writes a hyphen at the end of a line."""
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-‐\ufffe\x02\xad]\n([^\W\d_]\S*) ?")
_CONTROLS = re.compile(r"[\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f]")
_DENSE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""Characters of scripts without spaces between words."""


def _read(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``encrypted_pdf``, ``no_text_layer`` or ``unreadable_pdf``.
    """
    inferred, pages, notes = _extract(data, path)
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
        notes=(*notes, *cleaned_note(replaced)),
        hidden=tuple(part for _, hidden in pages for part in hidden),
    )


def _extract(data: bytes, path: str) -> tuple[dict[str, object], list[PageText], list[str]]:
    """Title and date, the text of each page, and a note if pages are damaged."""
    with parser_errors("unreadable_pdf", path):
        document = pdfium.FPDF_LoadMemDocument64(data, len(data), None)
        if not document and pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentError(
                "encrypted_pdf",
                f"{path}: the PDF is encrypted and requires a password",
                "save a copy without a password, or exclude it",
            )
        if not document:
            raise ValueError("no PDF")
        form = None
        try:
            if pdfium.FPDF_GetFormType(document) != pdfium.FORMTYPE_NONE:
                callbacks = pdfium.FPDF_FORMFILLINFO(version=2)
                form = pdfium.FPDFDOC_InitFormFillEnvironment(document, callbacks)
            count = pdfium.FPDF_GetPageCount(document)
            pages = [_page_text(document, form, number) for number in range(count)]
            inferred = _metadata(document)
        finally:
            if form:
                pdfium.FPDFDOC_ExitFormFillEnvironment(form)
            pdfium.FPDF_CloseDocument(document)
        damaged = [str(number) for number, page in enumerate(pages, 1) if page is None]
        if len(damaged) == count:
            raise ValueError("no page can be read")
        named = ", ".join(damaged[:_MAX_NAMED_PAGES]) + ", …" * (len(damaged) > _MAX_NAMED_PAGES)
        verb = "is" if len(damaged) == 1 else "are"
        notes = [f"{len(damaged)} of {counted(count, 'page')} {verb} damaged: {named}"]
        return inferred, [page or ("", ()) for page in pages], notes if damaged else []


def _metadata(document: Any) -> dict[str, object]:
    """The title, and the date of the last change. What is broken is left out."""
    found: dict[str, object] = {}
    title, *dates = (
        _string(pdfium.FPDF_GetMetaText, document, name)
        for name in (b"Title", b"CreationDate", b"ModDate")
    )
    if title:
        title = one_line(cleaned(title))
        found["title"] = title if is_own_title(title) else ""
    for date in filter(None, map(_DATE.match, dates)):
        year, month, day, hour, minute, second, zone, zone_minutes = date.groups("00")
        offset = f"{zone}:{zone_minutes}" if date[7] else "+00:00"
        day, month = max(day, "01"), max(month, "01")
        with suppress(ValueError):
            written = f"{year}-{month}-{day}T{hour}:{minute}:{second}{offset}"
            found["updated_at"] = datetime.fromisoformat(written).isoformat()
    return found


def _string(function: Any, *arguments: Any) -> str:
    """What a function of pdfium writes to a buffer, in UTF-16."""
    length = function(*arguments, None, 0)
    if length <= 2:
        return ""
    buffer = (pdfium.FPDF_WCHAR * (length // 2 + 1))()
    function(*arguments, buffer, length)
    return bytes(buffer).decode("utf-16-le", "replace").partition("\0")[0]


def _blocks(lines: list[str], pages: list[list[str]]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, 1):
        # In the joined text a page without text is one empty line.
        end = min(start + max(1, len(page)), len(lines))
        for first, last in runs(lines, start, end):
            yield block_of(lines, "paragraph", first, last)._replace(page=number)
        start = end


READERS = {"pdf": (7, _read)}


# -- the text of a page --


Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""
Matrix = Sequence[float]
PageText = tuple[str, tuple[HiddenPart, ...]]
"""The text of a page without its hidden parts, and these. What is kept is in the text, too."""

_SPACE, _NEAR = 0.3, 0.5
"""The gaps from which on there is a space, and is nothing raised or lowered, of the size."""
# How large raised and lowered characters are, and how far from the line, of the size of the line.
_SCRIPT_SIZES, _RAISED, _LOWERED = (0.4, 0.88), (0.12, 0.8), (-0.6, -0.05)
_PARAGRAPH = 1.35
"""How much farther below the last line than usual a paragraph begins."""


_SAME_LINE = 0.3
"""How far apart lines of neighbours may be that are the same, of the size."""
_OBLIQUE = 4


class _Piece(NamedTuple):
    """Neighbouring characters that one operator shows, or the value of a field."""

    text: str
    number: int
    """Of its text on the page; -1 for a field."""
    box: Box
    base: float
    """The height of its line."""
    size: float = 0.0
    """Of the font; 0 if it is not known."""
    turn: int = 0
    """How many quarter turns to the left it is turned; its places are turned back."""


def _page_text(document: Any, form: Any, number: int) -> PageText | None:
    """Read a page, ``None`` if it is damaged."""
    if not (page := pdfium.FPDF_LoadPage(document, number)):
        return None
    fields, is_changed = _fields(form, page)
    if is_changed:
        pdfium.FPDF_ClosePage(page)
        if not (page := pdfium.FPDF_LoadPage(document, number)):
            return None
    text_page = pdfium.FPDFText_LoadPage(page)
    shown = _Shown(page)
    pieces = _pieces(text_page, shown)
    removed, labelled = shown.hidden()
    pdfium.FPDFText_ClosePage(text_page)
    pdfium.FPDF_ClosePage(page)
    parts = [
        HiddenPart(kind, one_line(hidden), is_kept=is_kept)
        for kinds, is_kept in ((removed, False), (labelled, True))
        for kind in sorted(set(kinds.values()))
        if (hidden := _joined([p for p in pieces if kinds.get(p.number) == kind])).strip()
    ]
    seen = _placed([p for p in pieces if p.number not in removed], fields)
    return _joined(seen), tuple(parts)


def _pieces(text_page: Any, shown: _Shown) -> list[_Piece]:
    """The characters of a page by the operators that show them."""
    chars = _address(text_page)
    count = pdfium.FPDFText_CountChars(text_page)
    buffer = (c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    text = bytes(buffer).decode("utf-16-le", "replace")
    is_wide = written != count + 1 or len(text) != count + 1
    if is_wide:  # Some characters have no text, or two units.
        text = "".join(chr(_fast.Text_GetUnicode(chars, n) & 0xFFFF) for n in range(count))
    pieces: list[_Piece] = []
    end = 0
    while (start := end) < count:
        owner = _fast.Text_GetTextObject(chars, start)
        end = _end_of(chars, start, owner, text, count) if owner else start + 1
        part = text[start:end]
        number = shown.numbers.get(owner)
        if number is None or part.isspace():
            if pieces and " " in part:
                pieces[-1] = pieces[-1]._replace(text=f"{pieces[-1].text} ")
            continue
        if is_wide:
            part = part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        pieces.append(_Piece(part, number, *shown.texts[number][1:5]))
    return sorted(pieces, key=attrgetter("number"))


def _end_of(chars: int, start: int, owner: int, text: str, stop: int) -> int:
    """The end of the characters of one operator."""
    found = text.find("\r", start + 1)
    stop = found if found > 0 else stop
    # Most lines are shown by one operator.
    if _fast.Text_GetTextObject(chars, stop - 1) == owner:
        return stop
    others = (n for n in range(start + 1, stop) if _fast.Text_GetTextObject(chars, n) != owner)
    return next(others, stop)


def _joined(pieces: Sequence[_Piece]) -> str:
    """The text of pieces: lines, and an empty line between paragraphs."""
    lines: list[list[_Piece]] = []
    base: _Piece | None = None
    for piece in pieces:
        if base and _is_beside(piece, lines[-1][-1], base):
            _insert(piece, lines[-1])
        else:
            lines.append([piece])
            base = None
        if not base or not _script(piece, base):
            base = piece
    drops = [above[0].base - below[0].base for above, below in pairwise(lines)]
    usual = median([drop for drop in drops if drop > 0] or [0])
    breaks = ["\n" if 0 <= drop <= _PARAGRAPH * usual else "\n\n" for drop in drops]
    ends = zip(lines, [*breaks, ""], strict=False)
    text = "".join(_line(line) + end for line, end in ends)
    text = _CONTROLS.sub("", text)
    text = _BROKEN_WORD.sub(lambda m: f"{m[1]}\n" if m[1][0].islower() else m[0], text)
    return _HYPHENS.sub("-", text)


def _insert(piece: _Piece, line: list[_Piece]) -> None:
    """Add a piece to a line: at its end, or before its neighbour on the right.

    Words may be drawn from right to left. What is far apart stays as it is drawn.
    """
    right = piece.box[2]
    place = len(line)
    if line[-1].box[0] > right:
        near = (n for n, one in enumerate(line) if 0 <= one.box[0] - right < piece.size)
        place = next(near, place)
    line.insert(place, piece)


def _turned_back(box: Box, x: float, y: float, turn: int) -> tuple[Box, float]:
    """A rectangle, and the height of a point, as they are if the text is not turned."""
    left, bottom, right, top = box
    if turn == 1:
        return (bottom, -right, top, -left), -x
    if turn == 2:
        return (-right, -top, -left, -bottom), -y
    return ((-top, left, -bottom, right), x) if turn == 3 else (box, y)


def _is_beside(piece: _Piece, last: _Piece, base: _Piece) -> bool:
    """Whether a piece is on the line of the last one and of its base, which may be the same."""
    if piece.turn != last.turn or piece.turn == _OBLIQUE:
        return False
    if not (piece.size and last.size):
        return _share(piece.box[1::2], last.box[1::2]) > 0.5
    slack = _SAME_LINE * piece.size
    if abs(piece.base - base.base) <= slack or abs(piece.base - last.base) <= slack:
        return True
    is_near = _gap(last, piece) < _NEAR * max(piece.size, last.size)
    return is_near and bool(_script(piece, base) or _script(base, piece))


def _gap(first: _Piece, second: _Piece) -> float:
    """How far two pieces are apart along their line; negative if they overlap."""
    return max(second.box[0] - first.box[2], first.box[0] - second.box[2])


def _share(first: Sequence[float], second: Sequence[float]) -> float:
    """How much of the shorter one of two ranges is in the other one; negative if they are apart."""
    common = min(first[1], second[1]) - max(first[0], second[0])
    return common / max(min(first[1] - first[0], second[1] - second[0]), 0.01)


def _line(pieces: Sequence[_Piece]) -> str:
    """The text of a line with its spaces, and with signs for raised and lowered characters."""
    parts: list[tuple[str, notation.Script]] = []
    base = last = None
    for piece in pieces:
        text = piece.text.strip()
        script: notation.Script = ""
        if base and last:
            size = max(piece.size, last.size) or piece.box[3] - piece.box[1]
            gap = _gap(last, piece) / size
            is_apart = gap > _SPACE or not (piece.size and last.size)
            if is_apart and gap < 1 and _DENSE.match(text):
                is_apart = not _DENSE.match(last.text.strip()[-1:])
            script = _script(piece, base) if gap < _NEAR else ""
            if is_apart or last.text[-1:].isspace() or piece.text[:1].isspace():
                parts.append((" ", ""))
            elif len(parts) == 1 and _script(base, piece):
                parts.append((" ", ""))  # After a raised mark at the beginning of a line.
        base, last = base if base and script else piece, piece
        parts.append((text, script))
    return notation.joined_scripts(parts)


def _script(piece: _Piece, base: _Piece) -> notation.Script:
    """Whether a piece is raised or lowered beside another one."""
    if (
        piece.base == base.base
        or not base.size
        or not _SCRIPT_SIZES[0] <= piece.size / base.size <= _SCRIPT_SIZES[1]
    ):
        return ""
    rise = (piece.base - base.base) / base.size
    if _RAISED[0] <= rise <= _RAISED[1]:
        return "raised"
    return "lowered" if _LOWERED[0] <= rise <= _LOWERED[1] else ""


# -- fields and annotations --


_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
_BOXES = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_VALUES = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_WITH_TEXT = (pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_STAMP, pdfium.FPDF_ANNOT_WIDGET)


def _fields(form: Any, page: Any) -> tuple[list[_Piece], bool]:
    """The values of the fields of a page, and whether annotations became a part of the page.

    Buttons, signatures, free texts and stamps do. The page must then be loaded again.
    """
    fields: list[_Piece] = []
    others: list[int] = []
    texts = 0
    for number in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        is_field = kind == pdfium.FPDF_ANNOT_WIDGET and form
        value = _value(form, annotation) if is_field else None
        if kind in _WITH_TEXT and value is None:
            texts += 1
        else:
            others.append(number)
        if value and not pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            place = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(annotation, place)
            box = (place.left, place.bottom, place.right, place.top)
            fields.append(_Piece(value, -1, box, place.bottom, 0.0))
        pdfium.FPDFPage_CloseAnnot(annotation)
    if not texts:
        return fields, False
    for number in reversed(others):
        pdfium.FPDFPage_RemoveAnnot(page, number)
    result = pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
    return fields, result == pdfium.FLATTEN_SUCCESS


def _value(form: Any, field: Any) -> str | None:
    """What a field shows, without white space at the ends of its lines; ``None`` for a button."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, field)
    if kind in _BOXES:
        state = _string(pdfium.FPDFAnnot_GetStringValue, field, b"AS")
        is_checked = state != "Off" if state else pdfium.FPDFAnnot_IsChecked(form, field)
        return notation.CHECKED if is_checked else notation.UNCHECKED
    if kind in _VALUES:
        if pdfium.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD:
            return ""
        return one_line(_string(pdfium.FPDFAnnot_GetFormFieldValue, form, field))
    return None


def _placed(pieces: list[_Piece], fields: Iterable[_Piece]) -> list[_Piece]:
    """The pieces with each field beside what is nearest on its line, else below what is above."""
    for field in fields:
        left, bottom, right, top = field.box
        beside = [
            (max(box[0] - right, left - box[2]), number)
            for number, (_, _, box, *_) in enumerate(pieces)
            if _share(box[1::2], (bottom, top)) > 0.5
        ]
        above = [(p.box[1] - top, number) for number, p in enumerate(pieces) if p.box[1] >= top]
        number = min(beside or above or [(0.0, -1)])[1]
        is_after = number < 0 or not beside or pieces[number].box[0] <= left
        pieces.insert(number + is_after, field)
    return pieces


# -- what is hidden --
#
# Text of a page that people do not see, such as white, tiny, clipped or covered text.
#
# Places are rectangles, so a text counts as outside or covered only if all of its rectangle is.
# Whether a layer is shown is seen by drawing.


_TEXT, _PATH = pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_PATH
_IMAGE, _FORM = pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM
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
# An image that covers this share of the page is a scan, and invisible text on it is its OCR.
_SCAN_SHARE = 0.5
_NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_PIXELS = 256
"""The sides of the picture in which it is seen whether something is drawn."""


class _Text(NamedTuple):
    """An operator that shows text, how it is hidden, and how many shapes are drawn before."""

    box: Box
    place: Box
    """The same, turned back as in a :class:`_Piece`."""
    base: float
    size: float
    turn: int
    kind: str
    color: Color | None
    paints: int


class _Paint(NamedTuple):
    """A filled shape or an image, as far as its clip shows it."""

    box: Box
    kind: int
    chain: tuple[int, ...]
    """The forms that it is in, and itself."""


class _Shown:
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
        self._floats = (c_float * 6)()
        self._place = addressof(self._floats)
        pdfium.FPDF_GetPageBoundingBox(page, bounds := pdfium.FS_RECTF())
        self._box = (bounds.left, bounds.bottom, bounds.right, bounds.top)
        count, address = pdfium.FPDFPage_CountObjects(page), _address(page)
        objects = [_fast.Page_GetObject(address, number) for number in range(count)]
        self._walk(objects, _IDENTITY, self._box, (), True)

    def hidden(self) -> tuple[dict[int, str], dict[int, str]]:
        """The kinds of the texts that are hidden, and of those that are kept, by their number."""
        images = (p.box for p in self._paints if p.kind == _IMAGE)
        # A scan is often stored in strips.
        scanned = sum(_area(_common(box, self._box)) for box in images)
        has_scan = scanned >= _SCAN_SHARE * _area(self._box)
        is_compared = len(self.texts) * len(self._paints) <= _MAX_COMPARISONS
        rows = self._rows() if is_compared else []
        removed: dict[int, str] = {}
        labelled: dict[int, str] = {}
        for number, text in enumerate(self.texts):
            if text.kind:
                is_ocr = has_scan and text.kind == "invisible_element"
                (labelled if is_ocr else removed)[number] = text.kind
                continue
            if not is_compared:
                labelled[number] = "invisible_element"
                continue
            background, covers = self._around(text, rows)
            if text.color and _is_alike(text.color, background):
                removed[number] = "white_text"
            elif covers := [paint for paint in covers if self._is_opaque(paint, text)]:
                is_image = any(cover.kind == _IMAGE for cover in covers)
                (labelled if is_image else removed)[number] = "invisible_element"
        for mark, numbers in self._substituted.items():
            if self._is_too_long(mark, numbers):
                labelled |= dict.fromkeys({*numbers} - removed.keys(), "invisible_element")
        return removed, labelled

    def _is_too_long(self, mark: int, numbers: Sequence[int]) -> bool:
        """Whether the text that a mark has for others has no room in their place."""
        value = _fast.PageObjMark_GetParamStringValue
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

    def _rows(self) -> list[list[tuple[int, _Paint]]]:
        """The shapes in each row of the page, with their numbers."""
        rows: list[list[tuple[int, _Paint]]] = [[] for _ in range(_ROWS)]
        for entry in enumerate(self._paints):
            box = entry[1].box
            for row in rows[self._row(box[1]) : self._row(box[3]) + 1]:
                row.append(entry)
        return rows

    def _around(
        self, text: _Text, rows: list[list[tuple[int, _Paint]]]
    ) -> tuple[Color | None, list[_Paint]]:
        """The color behind a text, ``None`` if it is not known, and the shapes before it."""
        left, bottom, right, top = text.box
        behind: _Paint | None = None
        before = []
        for number, paint in rows[self._row((bottom + top) / 2)]:
            box = paint.box
            if box[0] < right and box[2] > left and box[1] < top and box[3] > bottom:
                if number < text.paints:
                    behind = paint
                elif _contains(box, text.box):
                    before.append(paint)
        if behind is None:
            return WHITE, before
        return self._surface(behind) if _contains(behind.box, text.box) else None, before

    def _surface(self, paint: _Paint) -> Color | None:
        """The color of a rectangle; ``None`` if it is transparent, or not known."""
        shape = paint.chain[-1]
        if shape not in self._surfaces:
            self._surfaces[shape] = None
            if paint.kind == _PATH and not _fast.PageObj_HasTransparency(shape):
                count = _fast.Path_CountSegments(shape)
                points = _points(_fast.Path_GetPathSegment, (shape,), count, 5)
                if len({x for x, _ in points}) == len({y for _, y in points}) == 2:
                    self._surfaces[shape] = _color(_fast.PageObj_GetFillColor, shape)
        return self._surfaces[shape]

    def _is_opaque(self, paint: _Paint, text: _Text) -> bool:
        """Whether a shape hides a text; that of an image is seen at one place."""
        if paint.kind != _IMAGE:
            return self._surface(paint) is not None
        image, box = paint.chain[-1], text.box
        if image not in self._opaque_images:
            alphas = self._drawn(paint.chain)
            x, y = c_int(), c_int()
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            pdfium.FPDF_PageToDevice(self.page, 0, 0, _PIXELS, _PIXELS, 0, *middle, x, y)
            place = min(max(y.value * _PIXELS + x.value, 0), len(alphas) - 1)
            self._opaque_images[image] = alphas[place] == 255
        return self._opaque_images[image]

    def _drawn(self, chain: Sequence[int]) -> bytes:
        """How opaque each pixel is if nothing of the page is drawn but one object."""
        while self._objects:  # They stay so: their text was read before.
            _fast.PageObj_SetIsActive(self._objects.pop(), 0)
        for one in chain:
            _fast.PageObj_SetIsActive(one, 1)
        bitmap = pdfium.FPDFBitmap_Create(_PIXELS, _PIXELS, 1)
        pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, _PIXELS, _PIXELS, 0)
        pdfium.FPDF_RenderPageBitmap(bitmap, self.page, 0, 0, _PIXELS, _PIXELS, 0, 0)
        pixels = ctypes.string_at(pdfium.FPDFBitmap_GetBuffer(bitmap), 4 * _PIXELS**2)
        pdfium.FPDFBitmap_Destroy(bitmap)
        for one in chain:
            _fast.PageObj_SetIsActive(one, 0)
        return pixels[3::4]

    def _walk(
        self, objects: list[int], outer: Matrix, clip: Box, forms: tuple[int, ...], is_on: bool
    ) -> None:
        place, floats = self._place, self._floats
        self._objects += objects
        for pointer in objects:
            kind = _fast.PageObj_GetType(pointer)
            _fast.PageObj_GetBounds(pointer, place, place + 4, place + 8, place + 12)
            box = (floats[0], floats[1], floats[2], floats[3])
            if outer is not _IDENTITY:
                box = _box(outer, box)
            if kind == _PATH:
                side = min(box[2] - box[0], box[3] - box[1])
                _fast.Path_GetDrawMode(pointer, place, place + 4)
                if side < _MIN_SIDE or not floats[0]:  # It has no fill.
                    continue
            marks = _marks(pointer)
            is_shown = is_on and all(map(self._is_mark_shown, marks))
            seen = _clip(pointer, outer, clip)
            if kind == _TEXT:
                self.numbers[pointer] = len(self.texts)
                for mark in marks:
                    self._substituted.setdefault(mark, []).append(len(self.texts))
                self.texts.append(self._text(pointer, box, outer, seen, is_shown))
            elif kind == _FORM and len(forms) < _MAX_DEPTH:
                color = _color(_fast.PageObj_GetFillColor, pointer)
                is_shown &= color is None or color.alpha > _MAX_OPACITY
                _fast.PageObj_GetMatrix(pointer, place)
                matrix = _product(tuple(floats), outer)
                count = _fast.FormObj_CountObjects(pointer)
                inner = [_fast.FormObj_GetObject(pointer, number) for number in range(count)]
                self._walk(inner, matrix, seen, (*forms, pointer), is_shown)
            elif is_shown and (seen_box := _common(box, seen)):
                self._paints.append(_Paint(seen_box, kind, (*forms, pointer)))

    def _text(self, pointer: int, box: Box, outer: Matrix, clip: Box, is_shown: bool) -> _Text:
        floats = self._floats
        _fast.TextObj_GetFontSize(pointer, self._place)
        size = abs(floats[0])
        _fast.PageObj_GetMatrix(pointer, self._place)
        matrix = floats if outer is _IDENTITY else _product(tuple(floats), outer)
        a, b, c, d, x, y = matrix
        size *= hypot(c, d)
        turn, place, base = 0, box, y
        if b or a <= 0:
            quarters = atan2(b, a) / (pi / 2)
            turn = round(quarters) % 4 if abs(quarters - round(quarters)) < 0.05 else _OBLIQUE
            place, base = _turned_back(box, x, y, turn)
        mode = _fast.TextObj_GetTextRenderMode(pointer)
        has_edge = mode in (1, 5)
        paint = _fast.PageObj_GetStrokeColor if has_edge else _fast.PageObj_GetFillColor
        color = _color(paint, pointer)
        is_tiny = size <= _MAX_FONT_SIZE and box[3] - box[1] <= _MAX_FONT_SIZE
        kind = ""
        if not is_shown or mode in (3, 7) or is_tiny or (color and color.alpha <= _MAX_OPACITY):
            kind = "invisible_element"
        elif not _contains(clip, box) and _area(_common(box, clip)) < min(1.0, _area(box) / 2):
            kind = "off_screen_element"
        color = color if mode in (0, 1, 4, 5) else None
        return _Text(box, place, base, size, turn, kind, color, len(self._paints))

    def _is_mark_shown(self, mark: int) -> bool:
        """Whether a mark is for no layer (optional content), or for one that is shown."""
        if mark not in self._is_on:
            self._is_on[mark] = self._is_layer_shown(mark)
        return self._is_on[mark]

    def _is_layer_shown(self, mark: int) -> bool:
        """Whether a rectangle with a mark is drawn."""
        name = (c_ushort * 4)()
        _fast.PageObjMark_GetName(mark, addressof(name), 8, addressof(c_ulong()))
        if bytes(name) != b"O\0C\0\0\0\0\0":
            return True
        left, bottom, right, top = self._box
        shape = pdfium.FPDFPageObj_CreateNewRect(left, bottom, right - left, top - bottom)
        pdfium.FPDFPageObj_SetFillColor(shape, 0, 0, 0, 255)
        pdfium.FPDFPath_SetDrawMode(shape, pdfium.FPDF_FILLMODE_WINDING, 0)
        pdfium.FPDFPage_InsertObject(self.page, shape)
        _fast.PageObj_AddExistingMark(shape, mark)
        is_drawn = any(self._drawn([_address(shape)]))
        pdfium.FPDFPage_RemoveObject(self.page, shape)
        pdfium.FPDFPageObj_Destroy(shape)
        return is_drawn


def _marks(pointer: int) -> list[int]:
    """The marks of an object, by their addresses."""
    count = _fast.PageObj_CountMarks(pointer)
    return [_fast.PageObj_GetMark(pointer, number) for number in range(count)]


def _clip(pointer: int, outer: Matrix, clip: Box) -> Box:
    """What is left of a clip of forms after that of an object."""
    path = _fast.PageObj_GetClipPath(pointer)
    for number in range(_fast.ClipPath_CountPaths(path) if path else 0):
        count = _fast.ClipPath_CountPathSegments(path, number)
        segment = _fast.ClipPath_GetPathSegment
        if points := _points(segment, (path, number), count, _MAX_CLIP_SEGMENTS):
            xs, ys = zip(*points, strict=True)
            box = _box(outer, (min(xs), min(ys), max(xs), max(ys)))
            clip = _common(box, clip) or _NOWHERE
    return clip


_FLOATS, _INTEGERS = (c_float * 2)(), (c_uint * 4)()
_POINT, _CHANNELS = addressof(_FLOATS), addressof(_INTEGERS)


def _points(
    segment: Any, owner: tuple[int, ...], count: int, most: int
) -> list[tuple[float, float]]:
    """The points of a path; none if there are too many."""
    points = []
    for number in range(count if count <= most else 0):
        _fast.PathSegment_GetPoint(segment(*owner, number), _POINT, _POINT + 4)
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
    return (
        outer[0] <= inner[0] + slack_x
        and outer[1] <= inner[1] + slack_y
        and outer[2] >= inner[2] - slack_x
        and outer[3] >= inner[3] - slack_y
    )


# -- functions of pdfium --


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, c_void_p).value or 0


class _Fast:
    """Functions of pdfium by their names, with addresses in place of pointers.

    Its own types take three times as long.
    """

    def __getattr__(self, name: str) -> Any:
        function = getattr(pdfium, f"FPDF{name}")
        types = [function.restype, *function.argtypes]
        plain = ctypes.PYFUNCTYPE(*(t if t in _NUMBERS else c_void_p for t in types))
        setattr(self, name, found := plain(_address(function)))
        return found


_NUMBERS = (c_int, c_uint, c_ulong)
_fast = _Fast()
