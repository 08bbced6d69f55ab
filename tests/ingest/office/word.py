"""Word documents, made by hand from their XML, with a fact that people see or do not see."""

from collections.abc import Mapping

from ingest.office.parts import DAWN, FACT, OFFICE, RELATION, relations, zipped

_WORD = (
    f'xmlns:w="{OFFICE}/wordprocessingml/2006/main" xmlns:r="{RELATION}"'
    f' xmlns:wp="{OFFICE}/drawingml/2006/wordprocessingDrawing"'
    f' xmlns:a="{OFFICE}/drawingml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml"'
    f' xmlns:mc="{OFFICE}/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)


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


def paragraph(text: str = DAWN, properties: str = "", in_paragraph: str = "") -> str:
    return f"<w:p><w:pPr>{in_paragraph}</w:pPr>{run(text, properties)}</w:p>"


def field(code: str, result: str) -> str:
    marks = [f'<w:r><w:fldChar w:fldCharType="{k}"/></w:r>' for k in ("begin", "separate", "end")]
    return (
        f"<w:p>{run(DAWN)}{marks[0]}<w:r><w:instrText>{code}</w:instrText></w:r>{run(code)}"
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
_STYLE = '<w:style w:type="{}" w:styleId="{}"><w:name w:val="s"/>{}</w:style>'
_SHAPE_FILL = '<wps:spPr><a:solidFill><a:srgbClr val="{}"/></a:solidFill></wps:spPr>'
_ALTERNATIVE = (
    "<w:p><w:r><mc:AlternateContent><mc:Choice Requires='{}'><w:t>{}</w:t></mc:Choice>"
    "<mc:Fallback><w:t>{}</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"
)
_BLUE_TEXT = '<w:color w:val="1F3864"/>'
_WHITE_TEXT = '<w:color w:val="FFFFFF"/>'
_OFF_PAGE = "<wp:positionH><wp:posOffset>-99999999</wp:posOffset></wp:positionH>"
_FLAT = '<w:trHeight w:val="1" w:hRule="exact"/>'
_DELETED = '<w:del w:id="1"/>'


_TRANSPARENT = (
    '<w14:textFill><w14:solidFill><w14:srgbClr w14:val="000000"><w14:alpha w14:val="100000"/>'
    "</w14:srgbClr></w14:solidFill></w14:textFill>"
)
_HIDDEN_RUNS = {
    "vanish": "<w:vanish/>",
    "spec-vanish": "<w:specVanish/>",
    "white": _WHITE_TEXT,
    "near-white": '<w:color w:val="FEFDFC"/>',
    "black-on-black": '<w:color w:val="000000"/><w:shd w:fill="000000"/>',
    "highlight": '<w:color w:val="FFFF00"/><w:highlight w:val="yellow"/>',
    "tiny": '<w:sz w:val="2"/>',
    "narrow": '<w:w w:val="1"/>',
    "transparent": _TRANSPARENT,
}
_HIDDEN_PARAGRAPHS = {
    "line-height": '<w:spacing w:line="1" w:lineRule="exact"/>',
    "frame": '<w:framePr w:x="-30000" w:y="1"/>',
    "indent": '<w:ind w:left="-31680"/>',
}
# What follows the paragraph that people see.
_HIDDEN_BODIES = {
    **{name: paragraph(FACT, look) for name, look in _HIDDEN_RUNS.items()},
    **{name: paragraph(FACT, in_paragraph=look) for name, look in _HIDDEN_PARAGRAPHS.items()},
    "shaded-cell": "<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:fill='1F3864'/></w:tcPr>"
    f"{paragraph(FACT, _BLUE_TEXT)}</w:tc><w:tc>{_D}</w:tc></w:tr></w:tbl>",
    "deletion": f"<w:p><w:del w:id='1'><w:r><w:delText>{FACT}</w:delText></w:r></w:del></w:p>",
    "moved-from": f"<w:p><w:moveFrom w:id='1'>{run(FACT)}</w:moveFrom></w:p>",
    "field-code": field(FACT, "result"),
    "simple-field": f'<w:p><w:fldSimple w:instr=" {FACT} ">{run("x")}</w:fldSimple></w:p>',
    "hidden-row": f"<w:tbl>{row(_D)}{row(paragraph(FACT), '<w:hidden/>')}</w:tbl>",
    "flat-row": f"<w:tbl>{row(_D)}{row(paragraph(FACT), _FLAT)}</w:tbl>",
    "deleted-row": f"<w:tbl>{row(_D)}{row(paragraph(FACT), _DELETED)}</w:tbl>",
    "merged-cell": f"<w:tbl>{row(_D)}<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{paragraph(FACT)}"
    f"</w:tc><w:tc>{_D}</w:tc></w:tr></w:tbl>",
    "off-page-box": text_box(paragraph(FACT), _OFF_PAGE),
    "hidden-box": text_box(paragraph(FACT), doc='hidden="1"'),
    "white-box": text_box(paragraph(FACT, _WHITE_TEXT), shape=_SHAPE_FILL.format("FFFFFF")),
    "old-box": "<w:p><w:r><w:pict><v:shape style='position:absolute;margin-left:-9999pt'>"
    f"<v:textbox><w:txbxContent>{paragraph(FACT)}</w:txbxContent></v:textbox></v:shape>"
    "</w:pict></w:r></w:p>",
    "alt-text": text_box(_D, doc=f'descr="{FACT}" title="{FACT}"'),
    "equation": f"<w:p><oMath><w:r><w:rPr><w:vanish/></w:rPr><w:t>{FACT}</w:t></w:r></oMath></w:p>",
    "fallback": _ALTERNATIVE.format("wps", DAWN, FACT),
    "placeholder": f"<w:p><w:sdt><w:sdtPr><w:alias w:val='{FACT}'/><w:showingPlcHdr/></w:sdtPr>"
    f"<w:sdtContent>{run(FACT)}</w:sdtContent></w:sdt></w:p>",
}
# The style S hides; T is based on it.
_HIDING_STYLES = (
    _STYLE.format("character", "S", "<w:rPr><w:vanish/></w:rPr>")
    + _STYLE.format("paragraph", "P", "<w:rPr><w:vanish/></w:rPr>")
    + _STYLE.format("character", "T", '<w:basedOn w:val="S"/>')
    + _STYLE.format("character", "W", '<w:rPr><w:color w:val="ffffff"/></w:rPr>')
)
_HIDDEN_STYLES = {
    "character-style": paragraph(FACT, '<w:rStyle w:val="S"/>'),
    "paragraph-style": paragraph(FACT, in_paragraph='<w:pStyle w:val="P"/>'),
    "inherited-style": paragraph(FACT, '<w:rStyle w:val="T"/>'),
    "white-style": paragraph(FACT, '<w:rStyle w:val="W"/>'),
}
_COMMENT = word_part("comments", f"<w:comment w:id='0'>{paragraph(FACT)}</w:comment>")
_FOOTNOTE = word_part("footnotes", f"<w:footnote w:id='2'>{paragraph(FACT)}</w:footnote>")
_HEADER = word_part("hdr", paragraph(FACT))
DOCX = {
    **{name: docx(_D + body) for name, body in _HIDDEN_BODIES.items()},
    **{name: docx(_D + body, styles=_HIDING_STYLES) for name, body in _HIDDEN_STYLES.items()},
    "comment": docx(f"{_D}<w:p><w:commentReference w:id='0'/></w:p>", {"comments": _COMMENT}),
    "unused-note": docx(_D, {"footnotes": _FOOTNOTE}),
    "unused-header": docx(_D, {"header": _HEADER}),
}
_VISIBLE_BODIES = {
    "plain": paragraph(FACT),
    "not-vanish": paragraph(FACT, '<w:vanish w:val="0"/>'),
    "white-on-blue": paragraph(FACT, _WHITE_TEXT + '<w:shd w:fill="1F3864"/>'),
    "insertion": f"<w:p><w:ins w:id='1'>{run(FACT)}</w:ins></w:p>",
    "field-result": field("REF x", FACT),
    "link": f"<w:p><w:hyperlink>{run(FACT)}</w:hyperlink></w:p>",
    "content-control": f"<w:sdt><w:sdtContent>{paragraph(FACT)}</w:sdtContent></w:sdt>",
    "box": text_box(paragraph(FACT)),
    "dark-box": text_box(paragraph(FACT, _WHITE_TEXT), shape=_SHAPE_FILL.format("000080")),
    "nested-table": f"<w:tbl>{row(f'<w:tbl>{row(paragraph(FACT))}</w:tbl>')}</w:tbl>",
    "choice": _ALTERNATIVE.format("unknown", "x", FACT),
    "ruby": f"<w:p><w:r><w:ruby><w:rt>{run(FACT)}</w:rt><w:rubyBase>{run('x')}</w:rubyBase>"
    "</w:ruby></w:r></w:p>",
}
_OWN_LOOK = '<w:rStyle w:val="S"/><w:vanish w:val="false"/>'
_WITH_NOTE = f"<w:p>{run(DAWN)}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
_WITH_HEADER = f"{_D}<w:sectPr><w:headerReference w:type='default' r:id='rId1'/></w:sectPr>"
VISIBLE_DOCX = {
    **{name: docx(_D + body) for name, body in _VISIBLE_BODIES.items()},
    "own-look": docx(_D + paragraph(FACT, _OWN_LOOK), styles=_HIDING_STYLES),
    "white-in-style": docx(
        f"{_D}<w:tbl><w:tblPr><w:tblStyle w:val='G'/></w:tblPr>"
        f"{row(_D)}{row(paragraph(FACT, _WHITE_TEXT))}</w:tbl>",
        styles='<w:style w:type="table" w:styleId="G"><w:tblStylePr w:type="firstRow"><w:tcPr>'
        '<w:shd w:fill="1F3864"/></w:tcPr></w:tblStylePr></w:style>',
    ),
    "footnote": docx(_WITH_NOTE, {"footnotes": _FOOTNOTE}),
    "header": docx(_WITH_HEADER, {"header": _HEADER}),
}
