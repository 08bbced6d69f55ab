"""Excel workbooks (Office Open XML): the rows of each visible sheet, as their formats show them.

Sheets are read as streams. Of a formula its stored value is shown. Text boxes and diagrams follow
the rows of their sheet.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite, nan
from typing import Any, NamedTuple

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers.extracted import HiddenTexts, SheetBlocks, TextBlocks, hidden_kind
from rolebundle.ingest.readers.number_formats import format_code, shown_number, shown_text
from rolebundle.ingest.readers.office import Theme, hex_color, main_part, theme_of
from rolebundle.ingest.readers.package import (
    RELATION,
    Package,
    PackageReader,
    integer_in,
    local_name,
    number_in,
)
from rolebundle.scan.hidden_style import BLACK, WHITE, Color

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_THEME_ORDER = (
    "lt1 dk1 lt2 dk2 accent1 accent2 accent3 accent4 accent5 accent6 hlink folHlink".split()
)
# The colors of the old palette that are black and white.
_PALETTE = {0: BLACK, 1: WHITE, 8: BLACK, 9: WHITE, 64: BLACK, 65: WHITE}
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*ref=\"([A-Z]+)(\d+):([A-Z]+)(\d+)\"")
_MAX_COLUMNS = 16_384
_MAX_MERGED = 20_000
_MAX_EMPTY_CELLS = 100
_MAX_STRINGS = 1_500_000
_MAX_STRING_CHARS = 50_000_000
_MAX_TINY_HEIGHT = 2.0  # points
_MAX_TINY_WIDTH = 0.2  # characters
# Text cells shown by formats that other programs fill in, as of tables and by conditions.
_OTHER_FORMATS = (
    b"<conditionalFormatting",
    b"<tablePart",
    b":conditionalFormatting",
    b":tablePart",
)


class _Text(NamedTuple):
    """A text, and the parts of it that its own formats hide, with their kinds."""

    visible: str
    hidden: tuple[tuple[str, str], ...] = ()


class _Format(NamedTuple):
    """The format of a cell. ``fill`` is ``None`` if it has none or an unknown one."""

    code: str
    color: Color | None = None
    fill: Color | None = None
    size: float | None = None
    has_fill: bool = False


_PLAIN = _Format("General")


def _document(package: Package) -> ParsedDocument:
    blocks, hidden = TextBlocks(package.too_large), HiddenTexts()
    main, properties = main_part(package, "xl/workbook.xml", hidden)
    workbook = _Workbook(package, main, blocks, hidden)
    for sheet in package.parse(main).iter(f"{_S}sheet"):
        kind, name = workbook.relations.get(sheet.get(f"{RELATION}id", ""), ("", ""))
        if kind == "worksheet":
            is_shown = sheet.get("state", "visible") == "visible"
            workbook.sheet(name, sheet.get("name", ""), is_shown=is_shown)
    return blocks.document(properties, hidden, workbook.notes())


class _Workbook:
    """The parts that the sheets of a workbook share."""

    def __init__(
        self, package: Package, main: str, blocks: TextBlocks, hidden: HiddenTexts
    ) -> None:
        self.relations = package.relations(main)
        self._package = package
        self._blocks = blocks
        self._hidden = hidden
        self._left_out = Counter[str]()
        properties = package.parse(main).find(f"{_S}workbookPr")
        self._is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        parts = dict(self.relations.values())
        self._theme = theme_of(package, parts.get("theme", ""))
        self._formats = self._read_formats(package.parse(parts.get("styles", "")))
        # The hidden parts of strings, by their number.
        self._hidden_in: dict[int, tuple[tuple[str, str], ...]] = {}
        self._strings = self._read_strings(parts.get("sharedStrings", ""))

    def notes(self) -> list[str]:
        """What was left out."""
        return [f"{kind} left out: {count}" for kind, count in self._left_out.items() if count]

    def _read_strings(self, name: str) -> list[str]:
        strings: list[str] = []
        chars = 0
        for item in self._package.stream(name, f"{_S}si"):
            text = self._string(item)
            if text.hidden:
                self._hidden_in[len(strings)] = text.hidden
            strings.append(text.visible)
            chars += len(text.visible)
            if len(strings) > _MAX_STRINGS or chars > _MAX_STRING_CHARS:
                raise self._package.too_large("it has too many texts")
            self._package.release(item)
        return strings

    def _string(self, item: Any) -> _Text:
        """A text with formats of its own, without what they hide."""
        if len(item) == 1 and item[0].tag == f"{_S}t":
            return _Text(_unescaped(item[0].text or ""))
        visible, hidden = [], []
        for part in item:
            if part.tag == f"{_S}t":
                visible.append(part.text or "")
            elif part.tag == f"{_S}r":
                text = "".join(t.text or "" for t in part.iter(f"{_S}t"))
                properties = part.find(f"{_S}rPr")
                font = (None, None) if properties is None else _font(properties, self._theme)
                kind = hidden_kind(font[0], WHITE if font[0] else None, font[1])
                if kind == "invisible_element":
                    hidden.append((kind, text))
                else:
                    # Whether a color is that of the cell is not known here.
                    visible.append(text)
                    if kind:
                        hidden.append((kind, text))
        return _Text(_unescaped("".join(visible)), tuple(hidden))

    def _read_formats(self, root: Any) -> list[_Format]:
        codes = {
            integer_in(item.get("numFmtId"), 0): item.get("formatCode", "General")
            for item in root.iter(f"{_S}numFmt")
        }
        fonts = [_font(item, self._theme) for item in root.findall(f"{_S}fonts/{_S}font")]
        fills = [self._fill(item) for item in root.findall(f"{_S}fills/{_S}fill")]
        formats = []
        for item in root.findall(f"{_S}cellXfs/{_S}xf"):
            font, fill = integer_in(item.get("fontId"), 0), integer_in(item.get("fillId"), 0)
            text_color, size = fonts[font] if 0 <= font < len(fonts) else (None, None)
            has_fill, background = fills[fill] if 0 <= fill < len(fills) else (False, None)
            code = format_code(integer_in(item.get("numFmtId"), 0), codes)
            formats.append(_Format(code, text_color, background, size, has_fill))
        return formats

    def _fill(self, item: Any) -> tuple[bool, Color | None]:
        pattern = item.find(f"{_S}patternFill")
        if pattern is None:
            return True, None
        kind = pattern.get("patternType", "none")
        if kind == "none":
            return False, None
        front = pattern.find(f"{_S}fgColor")
        known = kind == "solid" and front is not None
        return True, _color(front, self._theme) if known else None

    def sheet(self, name: str, title: str, *, is_shown: bool) -> None:
        """Read a sheet.

        Args:
            name: the member of the archive.
            title: the name that people see.
            is_shown: whether people see the sheet.
        """
        if not is_shown:
            self._left_out["hidden sheets"] += 1
        groups = SheetBlocks(self._blocks, title)
        has_other_formats, merged = self._scan(name)
        hidden_columns: list[int] = []
        at = widest = 0
        # Not sheetFormatPr: its zeroHeight is about rows that the file does not list.
        tags = (_S + name for name in ("col", "row", "sheetData"))
        for element in self._package.stream(name, *tags):
            tag = local_name(element)
            if tag == "sheetData":
                break
            if tag == "col":
                if _has_hidden_flag(element) or _is_narrow(element):
                    # Excel requires that columns are in order.
                    above = hidden_columns[-1] if hidden_columns else 0
                    first = max(integer_in(element.get("min"), 1), above + 1)
                    last = min(integer_in(element.get("max"), 1), _MAX_COLUMNS)
                    hidden_columns += range(first, last + 1)
            else:
                at = integer_in(element.get("r"), at + 1)
                is_hidden = not is_shown or _is_hidden_row(element)
                cells = list(self._cells(element, at, has_other_formats, merged.get(at, ())))
                # All cells of a row may be the same long text of the file.
                if sum(len(text) for _, text, _ in cells) > _MAX_STRING_CHARS:
                    raise self._package.too_large("a row has too much text")
                if cells and is_hidden and is_shown:
                    self._left_out["hidden rows"] += 1
                widest = max(widest, *(column for column, _, _ in cells), 0)
                self._row(groups, at, cells, hidden_columns, is_hidden)
            self._package.release(element)
        groups.end()
        # Without those at the right of all cells, which many people hide.
        self._left_out["hidden columns"] += bisect_right(hidden_columns, widest)
        self._drawings(name, title, is_shown)

    def _row(
        self,
        groups: SheetBlocks,
        number: int,
        cells: Sequence[tuple[int, str, bool]],
        hidden_columns: Sequence[int],
        is_hidden: bool,
    ) -> None:
        values: list[str] = []
        is_text: list[bool] = []
        concealed = []
        columns = [column for column, _, _ in cells]
        if any(above >= below for above, below in pairwise(columns)):
            cells = sorted(cells, key=lambda cell: cell[0])
        last = 0
        for column, text, is_word in cells:
            at = bisect_left(hidden_columns, column)
            if is_hidden or hidden_columns[at : at + 1] == [column]:
                concealed.append(text)
                continue
            gaps = column - last - 1 - (at - bisect_left(hidden_columns, last))
            last = column
            # A far cell is not far from its neighbours in a line of text.
            values += [""] * (gaps if len(values) + gaps < _MAX_EMPTY_CELLS else 0)
            is_text += [False] * (len(values) - len(is_text))
            values.append(text)
            is_text.append(is_word)
        self._hidden.add("hidden_cells", " | ".join(filter(None, concealed)), is_usual=True)
        groups.add(number, values, is_text)

    def _cells(
        self, row: Any, number: int, has_other_formats: bool, covered: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, str, bool]]:
        """The cells of a row that are not empty: column from 1, text, whether it is a text."""
        column = 0
        for cell in row:
            if cell.tag != f"{_S}c":
                continue
            match = _CELL.fullmatch(cell.get("r", ""))
            column = _column(match[1]) if match else column + 1
            text, is_word, hidden = self._value(cell)
            if not text and not hidden:
                continue
            style = integer_in(cell.get("s"), 0)
            look = self._formats[style] if 0 <= style < len(self._formats) else _PLAIN
            if any(first <= column <= last for first, last in covered):
                self._hidden.add("invisible_element", text)
                continue
            background = look.fill if look.has_fill else WHITE
            kind = hidden_kind(look.color, background, look.size)
            for part_kind, part in hidden:
                is_kept = part_kind == "white_text"
                if not is_kept or (background is not None and background == WHITE):
                    self._hidden.add(part_kind, part, is_kept=is_kept)
            if kind == "white_text" and not look.has_fill and has_other_formats:
                self._hidden.add(kind, text, is_kept=True)
            elif kind:
                self._hidden.add(kind, text)
                continue
            if column <= _MAX_COLUMNS:
                yield column, text, is_word

    def _value(self, cell: Any) -> tuple[str, bool, tuple[tuple[str, str], ...]]:
        """What a cell shows, whether that is a text, and what is hidden of it."""
        kind = cell.get("t", "n")
        style = integer_in(cell.get("s"), 0)
        code = self._formats[style].code if 0 <= style < len(self._formats) else "General"
        if kind == "inlineStr":
            item = cell.find(f"{_S}is")
            return _text_value(_Text("") if item is None else self._string(item), code)
        element = cell.find(f"{_S}v")
        value = "" if element is None else element.text or ""
        if not value:
            if cell.find(f"{_S}f") is not None:
                self._left_out["formulas without a stored value"] += 1
            return "", False, ()
        number = number_in(value, nan) if kind in {"s", "n"} else nan
        if kind == "s" and 0 <= number < len(self._strings):
            at = int(number)
            text = _Text(self._strings[at], self._hidden_in.get(at, ()))
        elif kind == "n" and isfinite(number):
            formatted = shown_number(number, code, is_1904=self._is_1904)
            return formatted, False, () if formatted else (("invisible_element", value),)
        elif kind == "b":
            return ("TRUE" if value == "1" else "FALSE"), False, ()
        else:  # the text of a formula, a date, an error
            text = _Text(_unescaped(value))
        return _text_value(text, code)

    def _scan(self, name: str) -> tuple[bool, dict[int, list[tuple[int, int]]]]:
        """What follows the rows of a sheet but matters for them.

        Returns:
            Whether formats of tables, or by conditions, may change how cells look; and for each row
            the columns that are covered by a cell with which they are merged.
        """
        covered: dict[int, list[tuple[int, int]]] = {}
        count, has_other_formats, seen_ranges = 0, False, set()
        for data in self._package.pieces(name):
            has_other_formats |= any(tag in data for tag in _OTHER_FORMATS)
            for place in _MERGED.findall(data):
                if place in seen_ranges or count > _MAX_MERGED:
                    continue
                seen_ranges.add(place)
                left, top, right, bottom = place
                first, last = _column(left.decode()), _column(right.decode())
                for row in range(int(top), min(int(bottom), int(top) + _MAX_MERGED) + 1):
                    count += 1
                    start = first + (row == int(top))
                    if start <= last:
                        covered.setdefault(row, []).append((start, last))
        return has_other_formats, covered

    def _drawings(self, name: str, title: str, is_shown: bool) -> None:
        """The text boxes of a sheet."""
        for kind, target in self._package.relations(name).values():
            if kind != "drawing":
                continue
            for paragraph in self._package.parse(target).iter(f"{_DRAWING}p"):
                text = "".join(part.text or "" for part in paragraph.iter(f"{_DRAWING}t"))
                if is_shown:
                    self._blocks.add("paragraph", text, f"sheet {title}")
                else:
                    self._hidden.add("hidden_cells", text, is_usual=True)


def _text_value(text: _Text, code: str) -> tuple[str, bool, tuple[tuple[str, str], ...]]:
    """A text as its format shows it, that it is a text, and what is hidden of it."""
    if formatted := shown_text(text.visible, code):
        return formatted, True, text.hidden
    return "", True, (*text.hidden, ("invisible_element", text.visible))


def _has_hidden_flag(element: Any) -> bool:
    return element.get("hidden", "0").lower() in {"1", "true"}


def _is_narrow(element: Any) -> bool:
    return number_in(element.get("width"), 10) <= _MAX_TINY_WIDTH


def _is_hidden_row(row: Any) -> bool:
    height = row.get("ht")
    is_tiny = height is not None and number_in(height, 10) <= _MAX_TINY_HEIGHT
    return is_tiny or _has_hidden_flag(row)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _unescaped(text: str) -> str:
    """A text without the escapes of characters that XML cannot contain."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: _character(int(match[1], 16)), text)


def _character(code: int) -> str:
    return "\n" if code in {10, 13} else chr(code) if code >= 32 else ""


def _color(element: Any, theme: Theme) -> Color | None:
    """The color of an element; ``None`` if it is automatic or not known."""
    if element.get("rgb"):
        found = hex_color(element.get("rgb"))
    elif element.get("theme"):
        at = integer_in(element.get("theme"), 99)
        found = theme.get(_THEME_ORDER[at]) if 0 <= at < len(_THEME_ORDER) else None
    else:
        found = _PALETTE.get(integer_in(element.get("indexed"), -1))
    if found is None:
        return None
    tint = number_in(element.get("tint"), 0)
    if tint < 0:
        return Color(*(channel * (1 + tint) for channel in found[:3]))
    return Color(*(channel + (255 - channel) * tint for channel in found[:3]))


def _font(element: Any, theme: Theme) -> tuple[Color | None, float | None]:
    found, size = element.find(f"{_S}color"), element.find(f"{_S}sz")
    return (
        None if found is None else _color(found, theme),
        None if size is None else number_in(size.get("val"), 11),
    )


READER = PackageReader("xlsx", 2, _document)
