"""Excel workbooks (Office Open XML): the rows of each visible sheet, as their formats show them.

Sheets are read as streams. Of a formula its stored value is shown. Text boxes follow the rows of
their sheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite, nan
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office, ooxml
from rolebundle.ingest.readers.elements import ON, RELATION, integer_in, local_name, number_in
from rolebundle.ingest.readers.notation import marked, written
from rolebundle.ingest.readers.number_format import BUILT_IN, shown_number, shown_text
from rolebundle.ingest.readers.office import Action, Cell, Sheet, Walk
from rolebundle.ingest.readers.package import hidden_kind, package_reader
from rolebundle.scan.hidden_style import BLACK, WHITE, Color

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_THEME_COLORS = "lt1 dk1 lt2 dk2 accent1 accent2 accent3 accent4 accent5 accent6 hlink folHlink"
_THEME_ORDER = dict(enumerate(_THEME_COLORS.split()))
# The colors of the old palette that are black and white.
_PALETTE = {0: BLACK, 1: WHITE, 8: BLACK, 9: WHITE, 64: BLACK, 65: WHITE}
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_REFERENCE = re.compile(r"([A-Z]{1,3})\d{1,7}")
_MAX_STRINGS = 1_500_000
_MAX_STRING_CHARS = 50_000_000
_MAX_TINY_HEIGHT = 2.0  # points
_MAX_TINY_WIDTH = 0.2  # characters


_Format = tuple[str, str, bool, bool]
"""The code of a cell's numbers, how it is hidden or an empty text, and whether it is filled, and
struck out."""
_GENERAL: _Format = ("General", "", False, False)


class _Xlsx(Walk):
    """Reads a workbook into blocks."""

    ACTIONS: ClassVar[Mapping[str, Action]] = {**ooxml.DRAWN, "t": office.text_of}
    HAS_CHART_DATA = False

    def read(self) -> ParsedDocument:
        """The document."""
        main, properties = ooxml.main_part(self, "xl/workbook.xml")
        root, relations = self.package.parse(main), self.package.relations(main)
        settings, parts = root.find(f"{_S}workbookPr"), dict(relations.values())
        self._is_1904 = settings is not None and settings.get("date1904") in ON
        self._theme = ooxml.theme_of(self.package, parts.get("theme", ""))
        styles = self.package.parse(parts.get("styles", ""))
        self._formats = dict(enumerate(self._read_formats(styles)))
        self._strings = self._read_strings(parts.get("sharedStrings", ""))
        for sheet in root.iter(f"{_S}sheet"):
            kind, name = relations.get(sheet.get(f"{RELATION}id", ""), ("", ""))
            if kind in {"worksheet", "chartsheet"}:
                is_shown = sheet.get("state", "visible") == "visible"
                self._sheet(name, sheet.get("name", ""), is_shown=is_shown)
        return self.document(properties)

    # What sheets share

    def _read_strings(self, name: str) -> list[str]:
        strings: list[str] = []
        chars = 0
        for item in self.package.stream(name, f"{_S}si"):
            strings.append(self._string(item))
            chars += len(strings[-1])
            if len(strings) > _MAX_STRINGS or chars > _MAX_STRING_CHARS:
                raise self.package.too_large("it has too many texts")
            self.package.release(item)
        return strings

    def _string(self, item: Any) -> str:
        """A text without the parts that are too small to be seen, and without phonetic guides."""
        visible = ""
        for part in item:
            text = "".join(t.text or "" for t in part.iter(f"{_S}t"))
            properties = part.find(f"{_S}rPr")
            if properties is not None and hidden_kind(None, None, self._font(properties)[1]):
                self.blocks.hide("invisible_element", text)
            elif local_name(part) != "rPh":
                place = None if properties is None else properties.find(f"{_S}vertAlign")
                script = "" if place is None else ooxml.SCRIPTS.get(place.get("val"), "")
                is_struck = properties is not None and self._font(properties)[2]
                visible += marked(text, script, is_struck=is_struck)
        return _unescaped(written(visible))

    def _read_formats(self, root: Any) -> Iterator[_Format]:
        codes = BUILT_IN | {
            integer_in(item.get("numFmtId")): item.get("formatCode", "General")
            for item in root.iter(f"{_S}numFmt")
        }
        fonts = dict(enumerate(map(self._font, root.findall(f"{_S}fonts/{_S}font"))))
        fills = dict(enumerate(map(self._fill, root.findall(f"{_S}fills/{_S}fill"))))
        for item in root.findall(f"{_S}cellXfs/{_S}xf"):
            color, size, is_struck = fonts.get(integer_in(item.get("fontId")), (None, None, False))
            has_fill, background = fills.get(integer_in(item.get("fillId")), (False, None))
            code = codes.get(integer_in(item.get("numFmtId"))) or "General"
            kind = hidden_kind(color, background if has_fill else WHITE, size)
            yield code, kind, has_fill, is_struck

    def _font(self, element: Any) -> tuple[Color | None, float | None, bool]:
        """The color and the size of a font, if they are known, and whether text is struck out."""
        color, size = element.find(f"{_S}color"), element.find(f"{_S}sz")
        is_struck = any(item.get("val", "1") in ON for item in element.iterfind(f"{_S}strike"))
        points = None if size is None else number_in(size.get("val"), 11)
        return self._color(color), points, is_struck

    def _fill(self, item: Any) -> tuple[bool, Color | None]:
        """Whether a cell is filled, and with which color if that is known."""
        pattern = item.find(f"{_S}patternFill")
        kind = "gradient" if pattern is None else pattern.get("patternType", "none")
        is_solid = kind == "solid" and pattern is not None
        return kind != "none", self._color(pattern.find(f"{_S}fgColor")) if is_solid else None

    def _color(self, element: Any) -> Color | None:
        """The color of an element; ``None`` if it is automatic or not known."""
        if element is None or number_in(element.get("tint")):
            return None
        if element.get("rgb"):
            return ooxml.hex_color(element.get("rgb"))
        if element.get("theme"):
            return self._theme.get(_THEME_ORDER.get(integer_in(element.get("theme"), -1), ""))
        return _PALETTE.get(integer_in(element.get("indexed"), -1))

    # Sheets

    def _sheet(self, name: str, title: str, *, is_shown: bool) -> None:
        sheet = Sheet(self, title, is_shown=is_shown)
        at = 0
        # Not sheetFormatPr: its zeroHeight is about rows that the file does not list.
        for element in self.package.stream(name, f"{_S}col", f"{_S}row", f"{_S}sheetData"):
            if element.tag == f"{_S}row":
                at = integer_in(element.get("r"), at + 1)
                cells = list(self._cells(element))
                # All cells of a row may be the same long text of the file.
                if sum(len(text) for _, text, _ in cells) > _MAX_STRING_CHARS:
                    raise self.package.too_large("a row has too much text")
                sheet.add(at, cells, is_hidden=_is_hidden(element, "ht", _MAX_TINY_HEIGHT))
            elif element.tag == f"{_S}sheetData":
                break
            elif _is_hidden(element, "width", _MAX_TINY_WIDTH):
                sheet.hide_columns(*(integer_in(element.get(key), 1) for key in ("min", "max")))
            self.package.release(element)
        sheet.end_group()
        for kind, target in self.package.relations(name).values():
            if kind == "drawing":
                look = {} if is_shown else {"away": "hidden_cells"}
                self.relations = self.package.relations(target)
                self.add(self.pieces(self.package.parse(target), look), f"sheet {title}")

    def _cells(self, row: Any) -> Iterator[Cell]:
        """The cells of a row that show something."""
        column = 0
        for cell in row.iter(f"{_S}c"):
            match = _REFERENCE.fullmatch(cell.get("r", ""))
            column = _column(match[1]) if match else column + 1
            code, kind, has_fill, is_struck = self._formats.get(integer_in(cell.get("s")), _GENERAL)
            text, is_text = self._value(cell, code)
            text = written(marked(text, "", is_struck=is_struck and "~~" not in text))
            # The style of a table, or a format by a condition, may fill the cell.
            is_kept = kind == "white_text" and not has_fill
            if kind:
                self.blocks.hide(kind, text, is_kept=is_kept)
            if text and (not kind or is_kept) and column <= office.MAX_COLUMNS:
                yield column, text, is_text

    def _value(self, cell: Any, code: str) -> tuple[str, bool]:
        """What a cell shows, and whether that is a text."""
        kind, value = cell.get("t", "n"), cell.findtext(f"{_S}v") or ""
        number = number_in(value, nan)
        if kind == "inlineStr":
            item = cell.find(f"{_S}is")
            value = "" if item is None else self._string(item)
        elif kind == "s" and 0 <= number < len(self._strings):
            value = self._strings[int(number)]
        elif kind == "b" and value:
            value = "TRUE" if value == "1" else "FALSE"
        elif not value:
            self.left_out["formulas without a stored value"] += cell.find(f"{_S}f") is not None
        else:  # a number, the text of a formula, a date, an error
            value = _unescaped(value)
        is_number = kind == "n" and isfinite(number)
        is_text = not is_number and kind != "b"
        shown = value
        if is_number:
            shown = shown_number(value, code, is_1904=self._is_1904)
        elif is_text:
            shown = shown_text(value, code)
        if not shown or (is_text and value not in shown):
            self.blocks.hide("invisible_element", value)
        return shown, is_text


def _is_hidden(element: Any, size: str, tiny: float) -> bool:
    """Whether a row or column is hidden, or too small to be seen."""
    is_tiny = number_in(element.get(size), tiny + 1) <= tiny
    return is_tiny or element.get("hidden", "0").lower() in ON


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _unescaped(text: str) -> str:
    """A text without the escapes of characters that XML cannot contain."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


READERS = package_reader("xlsx", 10, lambda package: _Xlsx(package).read())
