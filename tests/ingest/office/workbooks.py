"""Workbooks, made by hand from their XML, with a fact that people see, may see or do not see."""

from ingest.office.parts import DAWN, FACT, OFFICE, RELATION, relations, zipped

_SHEETS = f'xmlns="{OFFICE}/spreadsheetml/2006/main" xmlns:r="{RELATION}"'


def xlsx(
    rows: str,
    before: str = "",
    after: str = "",
    styles: str = "",
    strings: str = "",
    state: str = "visible",
    hidden_rows: str = "",
) -> bytes:
    """A workbook with the sheet ``Budget``, and the sheet ``Other`` with its own rows and state."""
    sheet = "<worksheet {}>{}<sheetData>{}</sheetData>{}</worksheet>"
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook {_SHEETS}><sheets><sheet name="Budget" r:id="rId1"/>'
            f'<sheet name="Other" state="{state}" r:id="rId2"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                ("worksheet", "worksheets/sheet1.xml"),
                ("worksheet", "worksheets/sheet2.xml"),
                ("styles", "styles.xml"),
                ("sharedStrings", "sharedStrings.xml"),
            ),
            "xl/worksheets/sheet1.xml": sheet.format(_SHEETS, before, rows, after),
            "xl/worksheets/sheet2.xml": sheet.format(_SHEETS, "", hidden_rows, ""),
            "xl/styles.xml": f"<styleSheet {_SHEETS}>{styles}</styleSheet>",
            "xl/sharedStrings.xml": f"<sst {_SHEETS}>{strings}</sst>",
        }
    )


def cell(reference: str, text: str, style: int = 0) -> str:
    return f'<c r="{reference}" t="inlineStr" s="{style}"><is><t>{text}</t></is></c>'


def look(font: str = "", fill: str = "", code: str = "General") -> str:
    """Styles of which number 1 has this font, fill and format."""
    return (
        f'<numFmts><numFmt numFmtId="200" formatCode="{code}"/></numFmts>'
        f"<fonts><font/><font>{font}</font></fonts><fills><fill><patternFill patternType='none'/></fill>"
        f"<fill><patternFill patternType='{'solid' if fill else 'none'}'>{fill}</patternFill></fill></fills>"
        '<cellXfs><xf/><xf fontId="1" fillId="1" numFmtId="200"/></cellXfs>'
    )


_ROW = f'<row r="1">{cell("A1", DAWN)}</row>'
_TWO_CELLS = f'<row r="1">{cell("A1", DAWN)}{cell("C1", FACT)}</row>'
_SHARED = f'{_ROW}<row r="2"><c r="A2" t="s"><v>0</v></c></row>'
_WHITE = '<color rgb="FFFFFFFF"/>'
_SECOND = f'<row r="2">{cell("A2", FACT, 1)}</row>'
_HIDDEN_LOOKS = {
    "same-as-fill": look('<color rgb="FF000080"/>', '<fgColor rgb="FF000080"/>'),
    "tiny": look('<sz val="1"/>'),
    "empty-format": look(code=";;;"),
}
XLSX = {
    "hidden-sheet": xlsx(_ROW, state="hidden", hidden_rows=_SECOND),
    "very-hidden-sheet": xlsx(_ROW, state="veryHidden", hidden_rows=_SECOND),
    "hidden-row": xlsx(_ROW + _SECOND.replace("<row", '<row hidden="1"')),
    "flat-row": xlsx(_ROW + _SECOND.replace("<row", '<row ht="0" customHeight="1"')),
    "hidden-column": xlsx(_TWO_CELLS, '<cols><col min="3" max="3" hidden="1"/></cols>'),
    "narrow-column": xlsx(_TWO_CELLS, '<cols><col min="2" max="4" width="0"/></cols>'),
    **{name: xlsx(_ROW + _SECOND, styles=styles) for name, styles in _HIDDEN_LOOKS.items()},
    "tiny-part": xlsx(
        _SHARED, strings=f"<si><r><t>x</t></r><r><rPr><sz val='1'/></rPr><t>{FACT}</t></r></si>"
    ),
    "phonetic": xlsx(_SHARED, strings=f"<si><t>x</t><rPh sb='0' eb='1'><t>{FACT}</t></rPh></si>"),
    "unused-string": xlsx(_ROW, strings=f"<si><t>{FACT}</t></si>"),
    "formula": xlsx(f'{_ROW}<row r="2"><c r="A2"><f>IF(1,2,"{FACT}")</f><v>2</v></c></row>'),
    "defined-name": xlsx(_ROW, after=f"<headerFooter><oddHeader>{FACT}</oddHeader></headerFooter>"),
}
VISIBLE_XLSX = {
    "plain": xlsx(_ROW + _SECOND),
    "rows-hidden-that-are-not-listed": xlsx(_ROW + _SECOND, '<sheetFormatPr zeroHeight="1"/>'),
    "white-on-blue": xlsx(_ROW + _SECOND, styles=look(_WHITE, '<fgColor rgb="FF000080"/>')),
    "shared": xlsx(_SHARED, strings=f"<si><t>{FACT}</t></si>"),
}
DOUBTFUL_XLSX = {"white": xlsx(_ROW + _SECOND, styles=look(_WHITE))}
