"""PDF by pdfium: the text layer with its places, the values of forms, and what people do not see.

Lines are those of the extracted text, numbered across the whole document. A block never spans two
pages and has the number of its page.

pdfium is not safe for threads and may crash on a broken file, so it runs in the processes that read
files (:mod:`rolebundle.ingest.workers`).
"""

from __future__ import annotations

import base64
import logging
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing
from ctypes import c_ushort
from io import BytesIO
from itertools import chain, pairwise
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfiumError

from rolebundle.contracts.ingest import utc_text
from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import encrypted, notation, own_title, parser_errors
from rolebundle.ingest.readers.line_blocks import block_of, runs
from rolebundle.ingest.readers.pdf_hidden import OBLIQUE, Box, Shown, address_of, fast
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import clean, cleaned, cleaned_note, one_line, split_lines
from rolebundle.text.words import counted

# It warns of each form that has another one as XML; its values are read all the same.
logging.getLogger("pypdfium2").setLevel(logging.ERROR)
_DATE = re.compile(r"(?:D:)?(\d{8})(\d{6})?(?:([+-]\d\d)'?(\d\d)?)?")
_HYPHENS = re.compile("[\ufffe\x02]")
"""How pdfium writes a hyphen at the end of a line."""
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-‐\ufffe\x02\xad]\n([^\W\d_]\S*) ?")
_CONTROLS = re.compile(r"[\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f]|\xad(?!\n)")
_STREAM = re.compile(rb"\bstream\r?\n")
_OF_NO_TEXT = re.compile(
    rb"/Subtype\s*/(?!Form)|/(?:Length[123]|FunctionType|ShadingType|N)\b|/Type\s*/(?:XRef|ObjStm)"
)
"""In the heads of images, fonts, profiles, functions and tables."""
_MAX_HEAD, _MAX_CHUNK = 4_000, 1 << 22
_DENSE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""Characters of scripts without spaces between words."""
_WORD = re.compile(r"\w{2}")
_FROM_RIGHT, _FROM_LEFT = (
    re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"),
    re.compile("[a-zA-Z]"),
)


def _read(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``encrypted_pdf``, ``no_text_layer`` or ``unreadable_pdf``.
    """
    inferred, pages, notes = _extract(data, path)
    texts = [split_lines(visible) for visible, _ in pages]
    text, replaced = clean("\n".join("\n".join(lines) for lines in texts))
    if not text or text.isspace():
        problem = f"{path}: no text in its {counted(len(pages), 'page')}"
        step = "run it through OCR (ocrmypdf), or exclude it"
        raise DocumentError("no_text_layer", problem, step)
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
    with parser_errors("unreadable_pdf", path), closing(_opened(data, path)) as document:
        document.init_forms()
        count = len(document)
        pages = [_page_text(document, number) for number in range(count)]
        if pages.count(None) == count:
            raise ValueError("no page can be read")
        inferred = _metadata(document)
        is_damaged = _has_damage(data)
        damaged = [
            str(number + 1)
            for number, page in enumerate(pages)
            if page is None or (is_damaged and _has_damage(_copy(document, number)))
        ]
    verb = "is" if len(damaged) == 1 else "are"
    notes = [f"{len(damaged)} of {counted(count, 'page')} {verb} damaged: {', '.join(damaged)}"]
    return inferred, [page or ("", ()) for page in pages], notes if damaged else []


def _opened(data: bytes, path: str) -> PdfDocument:
    try:
        return PdfDocument(data)
    except PdfiumError as error:
        if error.err_code != pdfium.FPDF_ERR_PASSWORD:
            raise
        raise encrypted("pdf", path) from error


def _has_damage(data: bytes) -> bool:
    """Whether a compressed stream that may show text is broken. pdfium reads what it can of it."""
    end = 0
    for match in _STREAM.finditer(data):
        start = match.end()
        head = data[data.rfind(b"obj", max(end, start - _MAX_HEAD), start) : start]
        if start < end or b"FlateDecode" not in head or _OF_NO_TEXT.search(head):
            continue
        end = data.find(b"endstream", start)
        if end < 0:
            return True
        packed = data[start:end]
        try:
            if b"ASCII85Decode" in head:
                packed = base64.a85decode(packed.strip().removesuffix(b"~>"))
            stream = zlib.decompressobj()
            while not stream.eof:
                if not stream.decompress(packed, _MAX_CHUNK):
                    return not stream.eof
                packed = stream.unconsumed_tail
        except (zlib.error, ValueError):
            return True
    return False


def _copy(document: PdfDocument, number: int) -> bytes:
    """A file of one page, without its encryption."""
    file = BytesIO()
    with closing(PdfDocument.new()) as copy:
        copy.import_pages(document, [number])
        copy.save(file)
    return file.getvalue()


def _metadata(document: PdfDocument) -> dict[str, object]:
    """The title, and the date of the last change. What is broken is left out."""
    found: dict[str, object] = {}
    title, *dates = map(document.get_metadata_value, ("Title", "CreationDate", "ModDate"))
    if title:
        found["title"] = own_title(one_line(cleaned(title)))
    for date in filter(None, map(_DATE.match, dates)):
        day, time, *zone = date.groups("")
        if moment := utc_text(f"{day}T{time or '000000'}{''.join(zone)}"):
            found["updated_at"] = moment
    return found


def _string(function: Any, *arguments: Any) -> str:
    """What a function of pdfium writes to a buffer, in UTF-16."""
    length = function(*arguments, None, 0)
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


# -- the text of a page --


PageText = tuple[str, tuple[HiddenPart, ...]]
"""The text of a page without its hidden parts, and these. What is kept is in the text, too."""

_SPACE, _NEAR = 0.3, 0.5
"""The gaps from which on there is a space, and is nothing raised or lowered, of the size."""
# How large raised and lowered characters are, and how far from the line, of the size of the line.
_SCRIPT_SIZES, _RAISED, _LOWERED = (0.4, 0.88), (0.12, 0.8), (-0.6, -0.05)
_PARAGRAPH = 1.35
"""How much farther below the last line than usual a paragraph begins."""


_MIN_COLUMN, _FULL = 5, 0.7
"""How many lines a column of prose has, and how much of the longest one most of them fill."""
_SAME_LINE = 0.3
"""How far apart lines of neighbours may be that are the same, of the size."""


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


def _page_text(document: PdfDocument, number: int) -> PageText | None:
    """Read a page, ``None`` if it is damaged."""
    if not (page := pdfium.FPDF_LoadPage(document, number)):
        return None
    fields, is_changed = _fields(document.formenv, page)
    if is_changed:
        pdfium.FPDF_ClosePage(page)
        if not (page := pdfium.FPDF_LoadPage(document, number)):
            return None
    text_page = pdfium.FPDFText_LoadPage(page)
    shown = Shown(page)
    removed, labelled = shown.hidden()
    pieces = _pieces(text_page, shown, {**removed, **labelled})
    pdfium.FPDFText_ClosePage(text_page)
    pdfium.FPDF_ClosePage(page)
    parts = []
    for kinds, is_kept in ((removed, False), (labelled, True)):
        for kind in sorted(set(kinds.values())):
            hidden = _joined([p for p in pieces if kinds.get(p.number) == kind])
            # What stays is one part for each line, so that these are labelled and no others.
            texts = filter(_WORD.search, hidden.split("\n")) if is_kept else [hidden]
            parts += [HiddenPart(kind, one_line(t), is_kept=is_kept) for t in texts if t.strip()]
    seen = _placed([p for p in pieces if p.number not in removed], fields)
    return _joined(seen), tuple(parts)


def _pieces(text_page: Any, shown: Shown, hidden: Container[int]) -> list[_Piece]:
    """The characters of a page by the operators that show them.

    Words that are shown one character after the other are one piece, unless they are hidden.
    """
    chars = address_of(text_page)
    count = pdfium.FPDFText_CountChars(text_page)
    buffer = (c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    text = bytes(buffer).decode("utf-16-le", "replace")
    is_wide = written != count + 1 or len(text) != count + 1
    if is_wide:  # Some characters have no text, or two units.
        text = "".join(chr(fast.Text_GetUnicode(chars, n) & 0xFFFF) for n in range(count))
    pieces: list[_Piece] = []
    owner_of = fast.Text_GetTextObject
    end = stop = previous = 0
    following = owner_of(chars, 0)
    while (start := end) < count:
        if start == stop:
            found = text.find("\r", start + 1)
            stop = found if found > 0 else count
            last = owner_of(chars, stop - 1)
        owner = following
        # Most lines are shown by one operator.
        end = stop if owner and owner == last else start + 1
        while (following := owner_of(chars, end)) == owner and owner and end < stop:
            end += 1
        part = text[start:end]
        number = shown.numbers.get(owner)
        if number is None or part.isspace():
            if pieces and " " in part:
                pieces[-1] = pieces[-1]._replace(text=f"{pieces[-1].text} ")
            continue
        if is_wide:
            part = part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        _, box, base, size, turn, *_ = shown.texts[number]
        operator = number
        if pieces and number == previous + 1 and not (number in hidden or previous in hidden):
            word, first, (left, bottom, right, top), *style = pieces[-1]
            is_same = style == [base, size, turn] and size > 0 and turn != OBLIQUE
            # The ink of a one is narrow: what is beside it is farther away.
            space = _SPACE + 0.15 * (word[-1] == "1") + 0.1 * (part == "1")
            is_next = left <= box[0] <= right + space * size and right <= box[2]
            if is_same and is_next and not (word[-1].isspace() or part[0].isspace()):
                part, number, box = word + part, first, (left, bottom, box[2], top)
                pieces.pop()
        pieces.append(_Piece(part, number, box, base, size, turn))
        previous = operator
    return sorted(pieces, key=attrgetter("number"))


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
    lines = _by_columns(lines)
    drops = [above[0].base - below[0].base for above, below in pairwise(lines)]
    down = sorted(drop for drop in drops if drop > 0) or [0]
    usual, low = median(down), down[len(down) // 4]
    # In a short letter most lines begin a paragraph, below a blank line.
    if usual > 1.8 * low and low >= median(piece.size for piece in pieces):
        usual = low
    breaks = ["\n" if 0 <= drop <= _PARAGRAPH * usual else "\n\n" for drop in drops]
    ends = zip(lines, [*breaks, ""], strict=False)
    text = "".join(_line(line) + end for line, end in ends)
    text = _CONTROLS.sub("", text)
    text = _BROKEN_WORD.sub(lambda m: f"{m[1]}\n" if m[1][0].islower() else m[0], text)
    return _HYPHENS.sub("-", text)


def _by_columns(lines: Iterable[list[_Piece]]) -> list[list[_Piece]]:
    """The lines, with one column of prose after the other where each line is drawn across two."""
    read: list[list[_Piece]] = []
    rows: list[tuple[list[_Piece], list[_Piece]]] = []
    for line in (*lines, list[_Piece]()):
        cut = _gutter(line)
        parts = line[:cut], line[cut:]
        if rows and not (cut and all(map(_begin_alike, rows[-1], parts))):
            columns = [list(column) for column in zip(*rows, strict=True)]
            is_prose = len(rows) >= _MIN_COLUMN and all(map(_is_prose, columns))
            read += chain(*columns) if is_prose else (left + right for left, right in rows)
            rows = []
        if cut:
            rows.append(parts)
        elif line:
            read.append(line)
    return read


def _gutter(line: Sequence[_Piece]) -> int:
    """The index of the piece after the only wide gap of a line; 0 if it has not exactly one."""
    wide = [n for n, (a, b) in enumerate(pairwise(line), 1) if b.box[0] - a.box[2] > max(a.size, 1)]
    return wide[0] if len(wide) == 1 else 0


def _begin_alike(above: Sequence[_Piece], below: Sequence[_Piece]) -> bool:
    """Whether two parts of a column begin at the same distance from the left."""
    return abs(above[0].box[0] - below[0].box[0]) < _SAME_LINE * max(above[0].size, 1)


def _is_prose(column: Sequence[Sequence[_Piece]]) -> bool:
    """Whether most lines of a column are full and go on in the next one, unlike cells of tables."""
    texts = [" ".join(_line(line).split()) for line in column]
    goes_on = [a[-1] not in ".:;!?" and not b[0].isupper() for a, b in pairwise(texts)]
    widths = [line[-1].box[2] - line[0].box[0] for line in column]
    has_sentences = any(re.search(r"[.!?](?: |$)", text) for text in texts)
    is_full = median(widths) > _FULL * max(widths) and median(map(len, map(str.split, texts))) > 2
    return has_sentences and is_full and 2 * sum(goes_on) >= len(goes_on)


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


def _is_beside(piece: _Piece, last: _Piece, base: _Piece) -> bool:
    """Whether a piece is on the line of the last one and of its base, which may be the same."""
    if piece.turn != last.turn or piece.turn == OBLIQUE:
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
    letters = "".join(piece.text for piece in pieces)
    if _FROM_RIGHT.search(letters) and not _FROM_LEFT.search(letters):
        pieces = sorted(pieces, key=lambda piece: -piece.box[2])
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
    if piece.base == base.base or not base.size:
        return ""
    if not _SCRIPT_SIZES[0] <= piece.size / base.size <= _SCRIPT_SIZES[1]:
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
        value = _value(form, annotation) if kind == pdfium.FPDF_ANNOT_WIDGET and form else None
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


READERS = {"pdf": (12, _read)}
