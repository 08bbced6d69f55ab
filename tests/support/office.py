"""Office documents and e-books, made by hand from their XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

FACT = "The vault of the north wing opens with the word zebra47."
_DAWN = "The harbour opens at dawn."

_OFFICE = "http://schemas.openxmlformats.org"
_RELATION = f"{_OFFICE}/officeDocument/2006/relationships"
_WORD = (
    f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main" xmlns:r="{_RELATION}"'
    f' xmlns:wp="{_OFFICE}/drawingml/2006/wordprocessingDrawing"'
    f' xmlns:a="{_OFFICE}/drawingml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml"'
    f' xmlns:mc="{_OFFICE}/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)
_SLIDES = (
    f'xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:a="{_OFFICE}/drawingml/2006/main"'
    f' xmlns:r="{_RELATION}"'
)
_SHEETS = f'xmlns="{_OFFICE}/spreadsheetml/2006/main" xmlns:r="{_RELATION}"'
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_OPEN = " ".join(
    f'xmlns:{prefix}="{_OASIS}:{name}:1.0"'
    for prefix, name in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("style", "style"),
        ("fo", "xsl-fo-compatible"),
        ("svg", "svg-compatible"),
        ("presentation", "presentation"),
    )
)


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """An archive of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """A file of relations ``rId1``, ``rId2``, … with these types and targets."""
    entries = "".join(
        f'<Relationship Id="rId{n}" Type="{_RELATION}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{entries}</Relationships>'


def word_part(tag: str, content: str) -> str:
    return f"<w:{tag} {_WORD}>{content}</w:{tag}>"


def docx(body: str, parts: Mapping[str, str] | None = None, styles: str = "") -> bytes:
    """A Word document. ``parts`` are members of the folder ``word``, such as ``comments``."""
    more = {**({"styles": word_part("styles", styles)} if styles else {}), **(parts or {})}
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/document.xml": word_part("document", f"<w:body>{body}</w:body>"),
            "word/_rels/document.xml.rels": relations(*((name, f"{name}.xml") for name in more)),
            **{f"word/{name}.xml": content for name, content in more.items()},
        }
    )


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text: str = _DAWN, properties: str = "", in_paragraph: str = "") -> str:
    return f"<w:p><w:pPr>{in_paragraph}</w:pPr>{run(text, properties)}</w:p>"


def field(code: str, result: str) -> str:
    marks = [f'<w:r><w:fldChar w:fldCharType="{k}"/></w:r>' for k in ("begin", "separate", "end")]
    return (
        f"<w:p>{run(_DAWN)}{marks[0]}<w:r><w:instrText>{code}</w:instrText></w:r>{run(code)}"
        f"{marks[1]}{run(result)}{marks[2]}</w:p>"
    )


def text_box(content: str, anchor: str = "", shape: str = "", doc: str = "") -> str:
    return (
        f'<w:p><w:r><w:drawing><wp:anchor><wp:extent cx="999999" cy="999999"/>{anchor}'
        f'<wp:docPr id="1" name="b" {doc}/><a:graphic><a:graphicData><wps:wsp>{shape}<wps:txbx>'
        f"<w:txbxContent>{content}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic>"
        "</wp:anchor></w:drawing></w:r></w:p>"
    )


def row(content: str, properties: str = "") -> str:
    cells = f"<w:tc>{paragraph('key')}</w:tc><w:tc>{content}</w:tc>"
    return f"<w:tr><w:trPr>{properties}</w:trPr>{cells}</w:tr>"


_D = paragraph()
_STYLE = '<w:style w:type="{}" w:styleId="S"><w:name w:val="s"/>{}</w:style>'
_VANISH = "<w:rPr><w:vanish/></w:rPr>"
_BLUE_TEXT = '<w:color w:val="1F3864"/>'
_WHITE_TEXT = '<w:color w:val="FFFFFF"/>'
_FLAT = '<w:trHeight w:val="1" w:hRule="exact"/>'
_DELETED = '<w:del w:id="1"/>'

DOCX = {
    "vanish": docx(_D + paragraph(FACT, "<w:vanish/>")),
    "spec-vanish": docx(_D + paragraph(FACT, "<w:specVanish/>")),
    "character-style": docx(
        _D + paragraph(FACT, '<w:rStyle w:val="S"/>'), styles=_STYLE.format("character", _VANISH)
    ),
    "paragraph-style": docx(
        _D + paragraph(FACT, in_paragraph='<w:pStyle w:val="S"/>'),
        styles=_STYLE.format("paragraph", _VANISH),
    ),
    "inherited-style": docx(
        _D + paragraph(FACT, '<w:rStyle w:val="T"/>'),
        styles=_STYLE.format("character", _VANISH)
        + '<w:style w:type="character" w:styleId="T"><w:basedOn w:val="S"/></w:style>',
    ),
    "white": docx(_D + paragraph(FACT, '<w:color w:val="FFFFFF"/>')),
    "near-white": docx(_D + paragraph(FACT, '<w:color w:val="FEFDFC"/>')),
    "white-style": docx(
        _D + paragraph(FACT, '<w:rStyle w:val="S"/>'),
        styles=_STYLE.format("character", '<w:rPr><w:color w:val="ffffff"/></w:rPr>'),
    ),
    "black-on-black": docx(
        _D + paragraph(FACT, '<w:color w:val="000000"/><w:shd w:fill="000000"/>')
    ),
    "highlight": docx(
        _D + paragraph(FACT, '<w:color w:val="FFFF00"/><w:highlight w:val="yellow"/>')
    ),
    "shaded-cell": docx(
        f"{_D}<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:fill='1F3864'/></w:tcPr>"
        f"{paragraph(FACT, _BLUE_TEXT)}</w:tc>"
        f"<w:tc>{_D}</w:tc></w:tr></w:tbl>"
    ),
    "tiny": docx(_D + paragraph(FACT, '<w:sz w:val="2"/>')),
    "narrow": docx(_D + paragraph(FACT, '<w:w w:val="1"/>')),
    "transparent": docx(
        _D
        + paragraph(
            FACT,
            '<w14:textFill><w14:solidFill><w14:srgbClr w14:val="000000">'
            '<w14:alpha w14:val="100000"/></w14:srgbClr></w14:solidFill></w14:textFill>',
        )
    ),
    "line-height": docx(
        _D + paragraph(FACT, in_paragraph='<w:spacing w:line="1" w:lineRule="exact"/>')
    ),
    "frame": docx(_D + paragraph(FACT, in_paragraph='<w:framePr w:x="-30000" w:y="1"/>')),
    "indent": docx(_D + paragraph(FACT, in_paragraph='<w:ind w:left="-31680"/>')),
    "deletion": docx(
        f"{_D}<w:p><w:del w:id='1'><w:r><w:delText>{FACT}</w:delText></w:r></w:del></w:p>"
    ),
    "moved-from": docx(f"{_D}<w:p><w:moveFrom w:id='1'>{run(FACT)}</w:moveFrom></w:p>"),
    "comment": docx(
        f"<w:p>{run(_DAWN)}<w:r><w:commentReference w:id='0'/></w:r></w:p>",
        {"comments": word_part("comments", f"<w:comment w:id='0'>{paragraph(FACT)}</w:comment>")},
    ),
    "field-code": docx(field(FACT, "result")),
    "simple-field": docx(
        f'{_D}<w:p><w:fldSimple w:instr=" {FACT} ">{run("x")}</w:fldSimple></w:p>'
    ),
    "hidden-row": docx(f"{_D}<w:tbl>{row(_D)}{row(paragraph(FACT), '<w:hidden/>')}</w:tbl>"),
    "flat-row": docx(f"{_D}<w:tbl>{row(_D)}{row(paragraph(FACT), _FLAT)}</w:tbl>"),
    "deleted-row": docx(f"{_D}<w:tbl>{row(_D)}{row(paragraph(FACT), _DELETED)}</w:tbl>"),
    "merged-cell": docx(
        f"{_D}<w:tbl>{row(_D)}<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{paragraph(FACT)}</w:tc>"
        f"<w:tc>{_D}</w:tc></w:tr></w:tbl>"
    ),
    "off-page-box": docx(
        _D
        + text_box(
            paragraph(FACT),
            "<wp:positionH><wp:posOffset>-99999999</wp:posOffset></wp:positionH>",
        )
    ),
    "hidden-box": docx(_D + text_box(paragraph(FACT), doc='hidden="1"')),
    "white-box": docx(
        _D
        + text_box(
            paragraph(FACT, '<w:color w:val="FFFFFF"/>'),
            shape='<wps:spPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill></wps:spPr>',
        )
    ),
    "old-box": docx(
        f"{_D}<w:p><w:r><w:pict><v:shape style='position:absolute;margin-left:-9999pt'>"
        f"<v:textbox><w:txbxContent>{paragraph(FACT)}</w:txbxContent></v:textbox></v:shape>"
        "</w:pict></w:r></w:p>"
    ),
    "alt-text": docx(_D + text_box(_D, doc=f'descr="{FACT}" title="{FACT}"')),
    "fallback": docx(
        f"<w:p><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:t>{_DAWN}</w:t></mc:Choice>"
        f"<mc:Fallback><w:t>{FACT}</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    ),
    "unused-note": docx(
        _D,
        {
            "footnotes": word_part(
                "footnotes", f"<w:footnote w:id='9'>{paragraph(FACT)}</w:footnote>"
            )
        },
    ),
    "unused-header": docx(_D, {"header": word_part("hdr", paragraph(FACT))}),
    "placeholder": docx(
        f"{_D}<w:p><w:sdt><w:sdtPr><w:alias w:val='{FACT}'/><w:showingPlcHdr/></w:sdtPr>"
        f"<w:sdtContent>{run(FACT)}</w:sdtContent></w:sdt></w:p>"
    ),
    "ruby": docx(
        f"<w:p>{run(_DAWN)}<w:r><w:ruby><w:rt>{run(FACT)}</w:rt><w:rubyBase>{run('x')}</w:rubyBase>"
        "</w:ruby></w:r></w:p>"
    ),
}

_GREY_STYLE = (
    '<w:style w:type="table" w:styleId="G"><w:tblStylePr w:type="firstRow"><w:tcPr>'
    '<w:shd w:fill="1F3864"/></w:tcPr></w:tblStylePr></w:style>'
)
VISIBLE_DOCX = {
    "plain": docx(_D + paragraph(FACT)),
    "not-vanish": docx(_D + paragraph(FACT, '<w:vanish w:val="0"/>')),
    "own-look": docx(
        _D + paragraph(FACT, '<w:rStyle w:val="S"/><w:vanish w:val="false"/>'),
        styles=_STYLE.format("character", _VANISH),
    ),
    "white-on-blue": docx(
        _D + paragraph(FACT, '<w:color w:val="FFFFFF"/><w:shd w:fill="1F3864"/>')
    ),
    "white-in-style": docx(
        f"{_D}<w:tbl><w:tblPr><w:tblStyle w:val='G'/></w:tblPr>"
        f"{row(paragraph(FACT, _WHITE_TEXT))}</w:tbl>",
        styles=_GREY_STYLE,
    ),
    "insertion": docx(f"{_D}<w:p><w:ins w:id='1'>{run(FACT)}</w:ins></w:p>"),
    "field-result": docx(field("REF x", FACT)),
    "link": docx(f"{_D}<w:p><w:hyperlink>{run(FACT)}</w:hyperlink></w:p>"),
    "content-control": docx(f"{_D}<w:sdt><w:sdtContent>{paragraph(FACT)}</w:sdtContent></w:sdt>"),
    "box": docx(_D + text_box(paragraph(FACT))),
    "dark-box": docx(
        _D
        + text_box(
            paragraph(FACT, '<w:color w:val="FFFFFF"/>'),
            shape='<wps:spPr><a:solidFill><a:srgbClr val="000080"/></a:solidFill></wps:spPr>',
        )
    ),
    "footnote": docx(
        f"<w:p>{run(_DAWN)}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>",
        {
            "footnotes": word_part(
                "footnotes", f"<w:footnote w:id='2'>{paragraph(FACT)}</w:footnote>"
            )
        },
    ),
    "header": docx(
        f"{_D}<w:sectPr><w:headerReference w:type='default' r:id='rId1'/></w:sectPr>",
        {"header": word_part("hdr", paragraph(FACT))},
    ),
    "nested-table": docx(f"{_D}<w:tbl>{row(f'<w:tbl>{row(paragraph(FACT))}</w:tbl>')}</w:tbl>"),
    "choice": docx(
        f"<w:p>{run(_DAWN)}<w:r><mc:AlternateContent><mc:Choice Requires='unknown'><w:t>x</w:t>"
        f"</mc:Choice><mc:Fallback><w:t>{FACT}</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    ),
}


# Presentations


def shape(text: str, properties: str = "", box: str = "", more: str = "", doc: str = "") -> str:
    """A text box. ``properties`` are those of its run, ``more`` those of the shape."""
    place = box or '<a:off x="1" y="1"/><a:ext cx="99999" cy="99999"/>'
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="b" {doc}/><p:nvPr/></p:nvSpPr>'
        f"<p:spPr><a:xfrm>{place}</a:xfrm>{more}</p:spPr>"
        f"<p:txBody><a:p><a:r><a:rPr {properties}</a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def title_shape(text: str) -> str:
    return (
        '<p:sp><p:nvSpPr><p:cNvPr id="1" name="t"/><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def slide(shapes: str, attributes: str = "", background: str = "") -> str:
    return f"<p:sld {_SLIDES} {attributes}><p:cSld>{background}<p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def pptx(*slides: str, notes: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    """A presentation; ``notes`` are those of the first slide."""
    ids = "".join(f'<p:sldId id="{n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    members = {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {_SLIDES}><p:sldIdLst>{ids}</p:sldIdLst>"
        '<p:sldSz cx="1000000" cy="700000"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            *(("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1))
        ),
        **{f"ppt/slides/slide{n}.xml": content for n, content in enumerate(slides, start=1)},
        **(parts or {}),
    }
    if notes:
        body = title_shape(notes).replace("title", "body")
        members["ppt/slides/_rels/slide1.xml.rels"] = relations(("notesSlide", "../notes1.xml"))
        members["ppt/notes1.xml"] = (
            slide(body).replace("p:sld ", "p:notes ").replace("/p:sld>", "/p:notes>")
        )
    return zipped(members)


def _fill(color: str, alpha: str = "") -> str:
    inner = f'<a:alpha val="{alpha}"/>' if alpha else ""
    return f'<a:solidFill><a:srgbClr val="{color}">{inner}</a:srgbClr></a:solidFill>'


_S = title_shape("Harbour") + shape(_DAWN, ">")
_FAR = '<a:off x="-500000" y="1"/><a:ext cx="99999" cy="99999"/>'
_GROUP = (
    '<p:grpSp><p:grpSpPr><a:xfrm><a:off x="5000000" y="0"/><a:ext cx="10" cy="10"/>'
    '<a:chOff x="0" y="0"/><a:chExt cx="10" cy="10"/></a:xfrm></p:grpSpPr>{}</p:grpSp>'
)
PPTX = {
    "hidden-slide": pptx(slide(_S), slide(shape(FACT, ">"), 'show="0"')),
    "off-slide": pptx(slide(_S + shape(FACT, ">", _FAR))),
    "off-slide-group": pptx(slide(_S + _GROUP.format(shape(FACT, ">")))),
    "hidden-shape": pptx(slide(_S + shape(FACT, ">", doc='hidden="1"'))),
    "white": pptx(slide(_S + shape(FACT, ">" + _fill("FFFFFF")))),
    "transparent": pptx(slide(_S + shape(FACT, ">" + _fill("000000", "0")))),
    "no-fill": pptx(slide(_S + shape(FACT, "><a:noFill/>"))),
    "tiny": pptx(slide(_S + shape(FACT, 'sz="100">'))),
    "same-as-shape": pptx(slide(_S + shape(FACT, ">" + _fill("000080"), more=_fill("000080")))),
    "same-as-background": pptx(
        slide(
            _S + shape(FACT, ">" + _fill("112233")),
            background=f"<p:bg><p:bgPr>{_fill('112233')}</p:bgPr></p:bg>",
        )
    ),
    "alt-text": pptx(slide(_S + shape("x", ">", doc=f'descr="{FACT}"'))),
    "comment": pptx(slide(_S), parts={"ppt/comments/comment1.xml": f"<c><text>{FACT}</text></c>"}),
    "unused-slide": pptx(slide(_S), parts={"ppt/slides/slide9.xml": slide(shape(FACT, ">"))}),
    "layout": pptx(slide(_S), parts={"ppt/slideLayouts/slideLayout1.xml": slide(shape(FACT, ">"))}),
}
VISIBLE_PPTX = {
    "plain": pptx(slide(_S + shape(FACT, ">"))),
    "notes": pptx(slide(_S), notes=FACT),
    "white-on-blue": pptx(slide(_S + shape(FACT, ">" + _fill("FFFFFF"), more=_fill("000080")))),
    "white-over-picture": pptx(
        slide(
            '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x"/></p:nvPicPr><p:spPr><a:xfrm><a:off x="0" y="0"/>'
            f'<a:ext cx="1000000" cy="700000"/></a:xfrm></p:spPr></p:pic>{_S}'
            + shape(FACT, ">" + _fill("FFFFFF"))
        )
    ),
    "group": pptx(slide(_S + _GROUP.replace("5000000", "1").format(shape(FACT, ">")))),
    "white-over-layout": pptx(
        slide(_S + shape(FACT, ">" + _fill("FFFFFF"))),
        parts={
            "ppt/slides/_rels/slide1.xml.rels": relations(("slideLayout", "../layout.xml")),
            "ppt/layout.xml": slide(shape("", ">", more=_fill("000080"))),
        },
    ),
}


# Workbooks


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


_ROW = f'<row r="1">{cell("A1", _DAWN)}</row>'
_WHITE = '<color rgb="FFFFFFFF"/>'
_SECOND = f'<row r="2">{cell("A2", FACT, 1)}</row>'
XLSX = {
    "hidden-sheet": xlsx(_ROW, state="hidden", hidden_rows=_SECOND),
    "very-hidden-sheet": xlsx(_ROW, state="veryHidden", hidden_rows=_SECOND),
    "hidden-row": xlsx(_ROW + _SECOND.replace("<row", '<row hidden="1"')),
    "flat-row": xlsx(_ROW + _SECOND.replace("<row", '<row ht="0" customHeight="1"')),
    "hidden-column": xlsx(
        f'<row r="1">{cell("A1", _DAWN)}{cell("C1", FACT)}</row>',
        '<cols><col min="3" max="3" hidden="1"/></cols>',
    ),
    "narrow-column": xlsx(
        f'<row r="1">{cell("A1", _DAWN)}{cell("C1", FACT)}</row>',
        '<cols><col min="2" max="4" width="0"/></cols>',
    ),
    "white": xlsx(_ROW + _SECOND, styles=look(_WHITE)),
    "same-as-fill": xlsx(
        _ROW + _SECOND, styles=look('<color rgb="FF000080"/>', '<fgColor rgb="FF000080"/>')
    ),
    "tiny": xlsx(_ROW + _SECOND, styles=look('<sz val="1"/>')),
    "empty-format": xlsx(_ROW + _SECOND, styles=look(code=";;;")),
    "merged": xlsx(_ROW + _SECOND, after='<mergeCells><mergeCell ref="A1:B2"/></mergeCells>'),
    "tiny-part": xlsx(
        f'{_ROW}<row r="2"><c r="A2" t="s"><v>0</v></c></row>',
        strings=f"<si><r><t>x</t></r><r><rPr><sz val='1'/></rPr><t>{FACT}</t></r></si>",
    ),
    "phonetic": xlsx(
        f'{_ROW}<row r="2"><c r="A2" t="s"><v>0</v></c></row>',
        strings=f"<si><t>x</t><rPh sb='0' eb='1'><t>{FACT}</t></rPh></si>",
    ),
    "unused-string": xlsx(_ROW, strings=f"<si><t>{FACT}</t></si>"),
    "formula": xlsx(f'{_ROW}<row r="2"><c r="A2"><f>IF(1,2,"{FACT}")</f><v>2</v></c></row>'),
    "defined-name": xlsx(_ROW, after=f"<headerFooter><oddHeader>{FACT}</oddHeader></headerFooter>"),
}
VISIBLE_XLSX = {
    "plain": xlsx(_ROW + _SECOND),
    "rows-hidden-that-are-not-listed": xlsx(_ROW + _SECOND, '<sheetFormatPr zeroHeight="1"/>'),
    "white-on-blue": xlsx(_ROW + _SECOND, styles=look(_WHITE, '<fgColor rgb="FF000080"/>')),
    "shared": xlsx(
        f'{_ROW}<row r="2"><c r="A2" t="s"><v>0</v></c></row>', strings=f"<si><t>{FACT}</t></si>"
    ),
}
DOUBTFUL_XLSX = {
    "white-in-table": xlsx(
        _ROW + _SECOND, styles=look(_WHITE), after="<tableParts><tablePart/></tableParts>"
    ),
}


# OpenDocument


def opendocument(
    body: str, kind: str = "text", styles: str = "", parts: Mapping[str, str] | None = None
) -> bytes:
    """An OpenDocument file with these automatic styles."""
    return zipped(
        {
            "content.xml": f"<office:document-content {_OPEN}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            **(parts or {}),
        }
    )


def style(properties: str, family: str = "text", kind: str = "text") -> str:
    return (
        f'<style:style style:name="S" style:family="{family}">'
        f"<style:{kind}-properties {properties}/></style:style>"
    )


_O = f"<text:p>{_DAWN}</text:p>"
_SPAN = f'<text:p><text:span text:style-name="S">{FACT}</text:span></text:p>'
_TABLE_ROWS = (
    f"<table:table-row><table:table-cell>{_O}</table:table-cell><table:table-cell>{_O}"
    "</table:table-cell></table:table-row>"
)
ODT = {
    "display": opendocument(_O + _SPAN, styles=style('text:display="none"')),
    "paragraph-style": opendocument(
        f'{_O}<text:p text:style-name="S">{FACT}</text:p>',
        styles=style('text:display="none"', "paragraph"),
    ),
    "white": opendocument(_O + _SPAN, styles=style('fo:color="#ffffff"')),
    "same-color": opendocument(
        _O + _SPAN, styles=style('fo:color="#ff0000" fo:background-color="#ff0000"')
    ),
    "tiny": opendocument(_O + _SPAN, styles=style('fo:font-size="1pt"')),
    "hidden-section": opendocument(
        f'{_O}<text:section text:display="none"><text:p>{FACT}</text:p></text:section>'
    ),
    "deletion": opendocument(
        f"<text:tracked-changes><text:changed-region><text:deletion><text:p>{FACT}</text:p>"
        f"</text:deletion></text:changed-region></text:tracked-changes>{_O}"
    ),
    "annotation": opendocument(
        f"<text:p>{_DAWN}<office:annotation><text:p>{FACT}</text:p></office:annotation></text:p>"
    ),
    "hidden-text": opendocument(
        f'{_O}<text:p><text:hidden-text text:is-hidden="true" text:string-value="{FACT}">{FACT}'
        "</text:hidden-text></text:p>"
    ),
    "hidden-paragraph": opendocument(
        f'{_O}<text:p><text:hidden-paragraph text:is-hidden="true"/>{FACT}</text:p>'
    ),
    "variable": opendocument(
        f'{_O}<text:p><text:variable-set text:display="none">{FACT}</text:variable-set></text:p>'
    ),
    "script": opendocument(f"<text:p>{_DAWN}<text:script>{FACT}</text:script></text:p>"),
    "alt-text": opendocument(
        f"<text:p>{_DAWN}<draw:frame><svg:title>{FACT}</svg:title><svg:desc>{FACT}</svg:desc>"
        "</draw:frame></text:p>"
    ),
    "far-frame": opendocument(
        f'{_O}<text:p><draw:frame svg:x="-500cm"><draw:text-box><text:p>{FACT}</text:p>'
        "</draw:text-box></draw:frame></text:p>"
    ),
    "covered-cell": opendocument(
        f"{_O}<table:table>{_TABLE_ROWS}<table:table-row><table:table-cell>{_O}</table:table-cell>"
        f"<table:covered-table-cell><text:p>{FACT}</text:p></table:covered-table-cell>"
        "</table:table-row></table:table>"
    ),
    "sheet": opendocument(
        f'<table:table table:name="a">{_TABLE_ROWS}</table:table><table:table table:style-name="S">'
        f"<table:table-row><table:table-cell><text:p>{FACT}</text:p></table:table-cell>"
        "</table:table-row></table:table>",
        "spreadsheet",
        style('table:display="false"', "table", "table"),
    ),
    "sheet-row": opendocument(
        f'<table:table table:name="a">{_TABLE_ROWS}<table:table-row table:visibility="collapse">'
        f"<table:table-cell><text:p>{FACT}</text:p></table:table-cell></table:table-row></table:table>",
        "spreadsheet",
    ),
    "sheet-column": opendocument(
        '<table:table table:name="a"><table:table-column/><table:table-column'
        ' table:visibility="collapse"/><table:table-row><table:table-cell>'
        f"{_O}</table:table-cell><table:table-cell><text:p>{FACT}</text:p></table:table-cell>"
        "</table:table-row></table:table>",
        "spreadsheet",
    ),
    "slide": opendocument(
        f"<draw:page><draw:frame><draw:text-box>{_O}</draw:text-box></draw:frame></draw:page>"
        '<draw:page draw:style-name="S"><draw:frame><draw:text-box>'
        f"<text:p>{FACT}</text:p></draw:text-box></draw:frame></draw:page>",
        "presentation",
        style('presentation:visibility="hidden"', "drawing-page", "drawing-page"),
    ),
}
VISIBLE_ODT = {
    "plain": opendocument(f"{_O}<text:p>{FACT}</text:p>"),
    "white-on-blue": opendocument(
        _O + _SPAN, styles=style('fo:color="#ffffff" fo:background-color="#000080"')
    ),
    "note": opendocument(
        f"<text:p>{_DAWN}<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        f"<text:p>{FACT}</text:p></text:note-body></text:note></text:p>"
    ),
    "frame": opendocument(
        f"{_O}<text:p><draw:frame><draw:text-box><text:p>{FACT}</text:p></draw:text-box></draw:frame></text:p>"
    ),
    "section": opendocument(f"{_O}<text:section><text:p>{FACT}</text:p></text:section>"),
}


# E-books


def epub(page: str, sheet: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    """A book with one chapter, which links to the style sheet ``s.css``."""
    return zipped(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="o/b.opf"/></rootfiles></container>',
            "o/b.opf": '<package xmlns="http://www.idpf.org/2007/opf"'
            ' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Harbours</dc:title>'
            '</metadata><manifest><item id="a" href="t/a%201.xhtml"'
            ' media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
            "o/t/a 1.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
            '<link rel="stylesheet" href="../s.css"/></head>'
            f"<body><h1>One</h1><p>{_DAWN}</p>{page}</body></html>",
            "o/s.css": sheet,
            **(parts or {}),
        }
    )


EPUB = {
    "inline": epub(f'<p style="display:none">{FACT}</p>'),
    "linked-sheet": epub(f'<p class="x">{FACT}</p>', ".x { display: none }"),
    "linked-white": epub(f'<p class="x">{FACT}</p>', ".x { color: #fff }"),
    "own-sheet": epub(f'<p class="x">{FACT}</p><style>.x{{visibility:hidden}}</style>'),
    "hidden": epub(f'<p hidden="hidden">{FACT}</p>'),
    "comment": epub(f"<!-- {FACT} -->"),
    "alt-text": epub(f'<img alt="{FACT}" title="{FACT}"/>'),
    "unused-page": epub("", parts={"o/t/b.xhtml": f"<html><body>{FACT}</body></html>"}),
}
VISIBLE_EPUB = {
    "plain": epub(f"<p>{FACT}</p>"),
    "aside": epub(f"<aside><p>{FACT}</p></aside>"),
    "article": epub(f"<article><p>x</p></article><p>{FACT}</p>"),
    "header": epub(f"<header><p>{FACT}</p></header>"),
    "overridden": epub(
        f'<p class="x">{FACT}</p><style>.x{{display:block}}</style>', ".x{display:none}"
    ),
}

HIDDEN = {"docx": DOCX, "pptx": PPTX, "xlsx": XLSX, "odt": ODT, "epub": EPUB}
VISIBLE = {
    "docx": VISIBLE_DOCX,
    "pptx": VISIBLE_PPTX,
    "xlsx": VISIBLE_XLSX,
    "odt": VISIBLE_ODT,
    "epub": VISIBLE_EPUB,
}
SAMPLES = {
    "docx": DOCX["shaded-cell"],
    "epub": VISIBLE_EPUB["aside"],
    "opendocument": ODT["covered-cell"],
    "pptx": VISIBLE_PPTX["notes"],
    "xlsx": XLSX["merged"],
}
