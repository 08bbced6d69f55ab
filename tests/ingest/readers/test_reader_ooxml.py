"""What Word and PowerPoint show of lists, equations, charts, forms, symbols and pictures."""

import io
import struct
import zipfile

import pytest

from ingest.office.parts import OFFICE, relations, zipped
from ingest.office.slides import pptx, shape, slide
from ingest.office.word import docx, paragraph, run, text_box, word_part
from rolebundle.ingest.readers.metafile import metafile_lines
from support.reading import read_document

MATH = f'xmlns:m="{OFFICE}/math"'


def lines(data: bytes, path: str = "a.docx") -> list[str]:
    return [line for line in read_document(data, path).lines if line]


def body(content: str, parts: dict[str, str] | None = None, styles: str = "") -> str:
    return "\n".join(lines(docx(content, parts, styles)))


# Lists of Word


def level(n: int, form: str, text: str, more: str = "", start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{n}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(levels: str, **numbers: str) -> dict[str, str]:
    """A list with these levels, and for each of its numbers what it overrides."""
    nums = "".join(
        f'<w:num w:numId="{name[1:]}"><w:abstractNumId w:val="0"/>{more}</w:num>'
        for name, more in numbers.items()
    )
    return {
        "numbering": word_part(
            "numbering", f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>{nums}'
        )
    }


def labels(parts: dict[str, str], *items: tuple[int, int]) -> list[str]:
    look = '<w:numPr><w:ilvl w:val="{1}"/><w:numId w:val="{0}"/></w:numPr>'
    content = "".join(paragraph("x", in_paragraph=look.format(*item)) for item in items)
    return [line.strip().removesuffix(" x") for line in lines(docx(content, parts))]


@pytest.mark.parametrize(("form", "second"), [
    ("lowerLetter", "b"), ("upperLetter", "B"), ("lowerRoman", "ii"), ("upperRoman", "II"),
    ("decimalZero", "02"), ("ordinal", "2nd"), ("cardinalText", "Two"), ("russianLower", "б"),
    ("chineseCounting", "二"), ("decimalEnclosedCircle", "②"), ("unknown", "2"), ("none", ""),
])  # fmt: skip
def test_forms_of_numbers(form, second):
    parts = numbering(level(0, form, "Article %1"), n1="")
    assert labels(parts, (1, 0), (1, 0))[1] == f"Article {second}".strip()


def test_a_bullet_of_white_space_is_no_label():
    assert labels(numbering(level(0, "bullet", "•"), n1=""), (1, 0)) == ["-"]
    assert labels(numbering(level(0, "bullet", " "), n1=""), (1, 0)) == ["x"]


START = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{}"/></w:lvlOverride>'


def test_lists_of_one_definition_are_counted_together_until_one_starts_again():
    own = f'<w:lvlOverride w:ilvl="0">{level(0, "upperLetter", "[%1]")}</w:lvlOverride>'
    parts = numbering(
        level(0, "decimal", "%1."), n1="", n2=START.format(1), n3=START.format(7), n4=own
    )
    items = [(n, 0) for n in (1, 1, 2, 1, 2, 3, 1, 4)]
    assert labels(parts, *items) == ["1.", "2.", "1.", "2.", "3.", "7.", "8.", "[I]"]


def test_levels_start_again_as_they_say():
    levels = (
        level(0, "upperRoman", "%1.")
        + level(1, "decimal", "%1.%2", '<w:lvlRestart w:val="0"/>')
        + level(2, "lowerLetter", "%3)", '<w:lvlRestart w:val="1"/>')
        + level(3, "decimal", "%1-%4", "<w:isLgl/>", start=5)
        + level(4, "decimalZero", "%1.%5", "<w:isLgl/>")
    )
    items = [(1, at) for at in (0, 1, 2, 1, 2, 0, 1, 2, 3, 4)]
    expected = ["I.", "I.1", "a)", "I.2", "b)", "II.", "II.3", "a)", "2-5", "2.01"]
    assert labels(numbering(levels, n1=""), *items) == expected


def test_a_style_has_the_level_that_names_it():
    parts = numbering(
        level(0, "decimal", "Part %1", '<w:pStyle w:val="A"/>')
        + level(1, "decimal", "%1.%2", '<w:pStyle w:val="B"/>'),
        n1="",
    )
    number = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    style = '<w:style w:type="paragraph" w:styleId="{0}"><w:name w:val="{0}"/>{1}</w:style>'
    styles = "".join(style.format(name, number) for name in "AB")
    content = "".join(
        paragraph("x", in_paragraph=f'<w:pStyle w:val="{name}"/>') for name in "ABBAB"
    )
    found = [line.split(" x")[0].strip() for line in lines(docx(content, parts, styles))]
    assert found == ["Part 1", "1.1", "1.2", "Part 2", "2.1"]


# Text of Word


def script(place: str) -> str:
    return f'<w:vertAlign w:val="{place}script"/>'


def math(content: str) -> str:
    return f"<m:oMath {MATH}>{content}</m:oMath>"


def r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def box(*, is_checked: bool) -> str:
    state = f'<w14:checkbox><w14:checked w14:val="{int(is_checked)}"/></w14:checkbox>'
    return f"<w:sdt><w:sdtPr>{state}</w:sdtPr><w:sdtContent>{run('?')}</w:sdtContent></w:sdt>"


def form(state: str) -> str:
    begin = f'<w:fldChar w:fldCharType="begin"><w:ffData>{state}</w:ffData></w:fldChar>'
    end = '<w:fldChar w:fldCharType="end"/>'
    return f"<w:r>{begin}</w:r><w:r><w:instrText>FORM</w:instrText></w:r><w:r>{end}</w:r>"


CHOICES = '<w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="blue"/></w:ddList>'
SYMBOL = '<w:r><w:sym w:font="Symbol" w:char="F0B3"/></w:r>'
RUNS = [
    (run("2") + run("1", script("super")) + run("0", script("super")), "2^10"),
    (run("H") + run("2", script("sub")) + run("O"), "H_2O"),
    (run("x") + run("3", '<w:position w:val="8"/>'), "x^3"),
    (run("x") + run("3", '<w:position w:val="2"/>'), "x3"),
    (run("x") + run("2", '<w:rStyle w:val="Up"/>'), "x^2"),
    (run("m", '<w:rFonts w:ascii="Symbol"/>') + run("g"), "μg"),
    (run("p ") + SYMBOL + run(" 5"), "p ≥ 5"),
    (run("a ") + box(is_checked=True) + box(is_checked=False), "a [x][ ]"),
    (run("b ") + form("<w:checkBox><w:default w:val='1'/></w:checkBox>"), "b [x]"),
    (run("c ") + form("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>"), "c [ ]"),
    (run("d ") + form(CHOICES), "d blue"),
    (f"<w:r><w:ruby><w:rt>{run('かな')}</w:rt><w:rubyBase>{run('仮名')}</w:rubyBase></w:ruby></w:r>", "仮名 (かな)"),
]  # fmt: skip
EQUATIONS = [
    (f"<m:f><m:num>{r('1')}</m:num><m:den>{r('2')}</m:den></m:f>", "1/2"),
    (f"<m:sSup><m:e>{r('10')}</m:e><m:sup>{r('-5')}</m:sup></m:sSup>", "10^-5"),
    (f"<m:sSubSup><m:e>{r('x')}</m:e><m:sub>{r('1')}</m:sub><m:sup>{r('2')}</m:sup></m:sSubSup>", "x_1^2"),
    (f"<m:rad><m:deg/><m:e>{r('2')}</m:e></m:rad>", "√(2)"),
    (f"{r('f')}<m:d><m:e>{r('2.2')}</m:e></m:d>", "f(2.2)"),
    (f"<m:d><m:dPr><m:endChr m:val=''/></m:dPr><m:e>{r('a')}</m:e><m:e>{r('b')}</m:e></m:d>", "(a|b"),
    (f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{r('i=1')}</m:sub><m:sup>{r('9')}</m:sup>"
     f"<m:e>{r('i')}</m:e></m:nary>", "∑_(i=1)^9 i"),
    (f"<m:func><m:fName>{r('log')}</m:fName><m:e>{r('100')}</m:e></m:func>", "log 100"),
    (f"<m:acc><m:e>{r('x')}</m:e></m:acc>", "x\u0302"),
    (f"<m:m><m:mr><m:e>{r('1')}</m:e><m:e>{r('2')}</m:e></m:mr></m:m>", "1 2"),
    (r("12") + r("34"), "1234"),
    (r("A=π") + f"<m:sSup><m:e>{r('r')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>", "A=πr^2"),
]  # fmt: skip
UP = f'<w:style w:type="character" w:styleId="Up"><w:rPr>{script("super")}</w:rPr></w:style>'


@pytest.mark.parametrize(
    ("content", "expected"),
    [*RUNS, *((run("is ") + math(equation), f"is {text}") for equation, text in EQUATIONS)],
)
def test_paragraphs_of_word(content, expected):
    assert body(f"<w:p>{content}</w:p>", styles=UP) == expected


def test_a_number_before_an_equation_stays_a_number():
    half = math(EQUATIONS[0][0])
    assert body(f"<w:p>{run('3')}{half}{run('x')}</w:p>") == "3 1/2 x"


def test_marks_of_notes():
    note = "<w:{0}note w:id='{1}'>{2}</w:{0}note>"
    parts = {
        f"{kind}notes": word_part(
            f"{kind}notes", "".join(note.format(kind, n, paragraph(f"{kind} {n}")) for n in (1, 2))
        )
        for kind in ("foot", "end")
    }
    marks = [
        ("foot", 1, ""),
        ("end", 1, ""),
        ("end", 2, ""),
        ("foot", 2, "w:customMarkFollows='1'"),
    ]
    content = "".join(
        f"<w:r><w:{kind}noteReference w:id='{n}' {more}/>{'<w:t>†</w:t>' * bool(more)}</w:r>"
        for kind, n, more in marks
    )
    expected = ["1987[1][i][ii][†]", "[1] foot 1", "[i] end 1", "[ii] end 2", "[†] foot 2"]
    assert lines(docx(f"<w:p>{run('1987')}{content}</w:p>", parts)) == expected


def test_headers_of_first_and_even_pages_are_read_if_they_are_shown():
    kinds = ("default", "first", "even")
    parts = {kind: word_part("hdr", paragraph(f"on {kind} pages")) for kind in kinds}
    references = "".join(
        f"<w:headerReference w:type='{kind}' r:id='rId{n}'/>" for n, kind in enumerate(kinds, 1)
    )

    def shown(section: str, settings: str) -> list[str]:
        more = {**parts, "settings": word_part("settings", settings)}
        content = f"{paragraph('x')}<w:sectPr>{references}{section}</w:sectPr>"
        return [line.split()[1] for line in lines(docx(content, more)) if line.startswith("on ")]

    assert shown("", "") == ["default"]
    assert shown("<w:titlePg/>", "") == ["default", "first"]
    assert shown("<w:titlePg w:val='0'/>", "<w:evenAndOddHeaders/>") == ["default", "even"]


def test_a_box_that_grows_with_its_text_is_seen():
    caption = text_box(paragraph("Figure 7")).replace('cy="999999"', 'cy="635"')
    assert body(paragraph("x") + caption) == "x"
    grown = caption.replace("</wps:wsp>", "<wps:bodyPr><a:spAutoFit/></wps:bodyPr></wps:wsp>")
    assert body(paragraph("x") + grown) == "x\nFigure 7"


def test_a_large_initial_is_a_part_of_its_word():
    frame = '<w:framePr w:dropCap="drop" w:lines="3"/>'
    assert body(paragraph("D", in_paragraph=frame) + paragraph("rop caps")) == "Drop caps"


def test_included_documents_are_read_but_not_those_inside_of_them():
    page = b"<h1>Gate</h1><p>The code is 7781.</p><p style='display:none'>four words of secret</p>"
    chunks = {"word/a.html": page, "word/b.rtf": b"{\\rtf1 x}", "word/c.txt": b"plain 5"}
    chunk = "".join(f"<w:altChunk r:id='rId{n}'/>" for n in (1, 2, 3, 4))
    names = relations(*(("aFChunk", name) for name in ("a.html", "b.rtf", "c.txt", "d.docx")))

    def with_chunks(inner: bytes) -> bytes:
        return zipped({
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/document.xml": word_part("document", f"<w:body>{paragraph('x')}{chunk}</w:body>"),
            "word/_rels/document.xml.rels": names,
            **chunks,
            "word/d.docx": inner,
        })  # fmt: skip

    document = read_document(with_chunks(with_chunks(b"")), "a.docx")
    text = "\n".join(line for line in document.lines if line)
    assert text == "x\n# Gate\nThe code is 7781.\nplain 5\nx"
    left_out = [note for note in document.notes if note.startswith("included")]
    assert left_out == [f"included documents left out: {n}" for n in (1, 4)]
    assert "four words of secret" in [part.text for part in document.hidden]


def test_a_page_number_is_no_text():
    page = f"<w:p><w:fldSimple w:instr='PAGE'>{run('4')}</w:fldSimple></w:p>"
    section = '<w:sectPr><w:headerReference w:type="default" r:id="rId1"/></w:sectPr>'
    parts = {"header": word_part("hdr", page)}
    assert lines(docx(paragraph("Moorings") + section, parts)) == ["Moorings"]
    assert lines(docx(section, parts)) == []


# Charts, numbers, masters and footers

CHART = (
    '<c:chartSpace xmlns:c="{0}/chart" xmlns:a="{0}/main"><c:chart><c:title><c:tx><c:rich><a:p><a:r>'
    "<a:t>Rentals</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:pieChart>{1}</c:pieChart>"
    "</c:plotArea></c:chart></c:chartSpace>"
)
SERIES = (
    "<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>{0}</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Boats</c:v></c:pt><c:pt idx='1'><c:v>Kayaks</c:v>"
    "</c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:formatCode>General"
    "</c:formatCode><c:pt idx='0'><c:v>{1}</c:v></c:pt><c:pt idx='1'><c:v>{2}</c:v></c:pt></c:numCache>"
    "</c:numRef></c:val></c:ser>"
)
DRAWING = f"{OFFICE}/drawingml/2006"
PLACE = f'<c:chart xmlns:c="{DRAWING}/chart" r:id="rId1"/>'


def chart(series: str) -> str:
    return CHART.format(DRAWING, series)


def deck(shapes: str, kind: str = "chart", part: str = "", **more: str) -> bytes:
    """A presentation whose slide has these shapes and one related part."""
    target = f"../{kind}.xml"
    parts = {"ppt/slides/_rels/slide1.xml.rels": relations((kind, target)), f"ppt/{kind}.xml": part}
    return pptx(slide(shapes), parts={**parts, **more})


def test_charts_are_tables():
    series = SERIES.format(2030, "8.1999999999999993", 3) + SERIES.format(2031, 9, 4)
    table = [" | 2030 | 2031", "Boats | 8.2 | 9", "Kayaks | 3 | 4"]
    frame = f"<p:graphicFrame><a:graphic><a:graphicData>{PLACE}</a:graphicData></a:graphic></p:graphicFrame>"
    assert lines(deck(frame, part=chart(series)), "a.pptx")[1:] == ["Rentals", *table]
    content = f"<w:p><w:r><w:drawing>{PLACE}</w:drawing></w:r></w:p>"
    assert lines(docx(content, {"chart": chart(series)})) == ["Rentals", *table]
    # The format of labels is that of the values only if the labels show these, and set one.
    for value, linked, expected in [(1, 0, "$8.20"), (0, 0, "8.2"), (1, 1, "8.2")]:
        labels = (
            f"<c:dLbls><c:numFmt formatCode='$0.00' sourceLinked='{linked}'/>"
            f"<c:showVal val='{value}'/></c:dLbls>"
        )
        for labelled in (series.replace("<c:cat>", f"{labels}<c:cat>"), series + labels):
            assert f"Boats | {expected}" in body(content, {"chart": chart(labelled)})


def numbered(text: str, scheme: str = "arabicPeriod", more: str = "", lvl: int = 0) -> str:
    bullet = f'<a:buAutoNum type="{scheme}" {more}/>' if scheme else "<a:buNone/>"
    return f'<a:p><a:pPr lvl="{lvl}">{bullet}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def test_numbers_of_lists_on_slides():
    schemes = [("romanUcPeriod", "I."), ("alphaLcParenBoth", "(a)"), ("alphaUcParenR", "A)")]
    items = [numbered("a", more='startAt="4"'), numbered("b", more='startAt="4"')]
    items += [numbered("c", "alphaLcParenR", lvl=1), "<a:p/>", numbered("d", more='startAt="4"')]
    items += [numbered("e", ""), numbered("f"), *(numbered("g", name) for name, _ in schemes)]
    text = shape("x", ">").replace(
        "<a:p><a:r><a:rPr ></a:rPr><a:t>x</a:t></a:r></a:p>", "".join(items)
    )
    expected = [
        "4. a",
        "5. b",
        "a) c",
        "6. d",
        "e",
        "1. f",
        *(f"{label} g" for _, label in schemes),
    ]
    assert [line.strip() for line in lines(pptx(slide(text)), "a.pptx")[1:]] == expected


def placeholder(kind: str, content: str) -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="f"/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:p>{content}</a:p></p:txBody></p:sp>"
    )


def test_masters_are_read_once_and_footers_on_each_slide():
    footer = placeholder("ftr", "<a:r><a:t>Draft 7</a:t></a:r>")
    number = placeholder("sldNum", "<a:fld><a:t>{}</a:t></a:fld>")
    today = placeholder("dt", '<a:fld type="datetime1"><a:t>1/2/2003</a:t></a:fld>')
    slides = [slide(f"{shape('x', '>')}{today}{footer}{number.format(n)}") for n in (1, 2)]
    layout = relations(("slideLayout", "../layout.xml"))
    parts = {f"ppt/slides/_rels/slide{n}.xml.rels": layout for n in (1, 2)}
    parts["ppt/layout.xml"] = slide(shape("Restricted 77", ">") + placeholder("body", "prompt"))
    found = lines(pptx(*slides, slide(number), parts=parts), "a.pptx")
    expected = ["# Slide 1", "x", "Restricted 77", "Draft 7 | 1", "# Slide 2", "x", "Draft 7 | 2"]
    assert found == expected


def test_scripts_and_symbols_on_slides():
    text = shape("2", ">").replace(
        "</a:p>",
        '<a:r><a:rPr baseline="30000"/><a:t>10</a:t></a:r>'
        '<a:r><a:rPr><a:sym typeface="Wingdings"/></a:rPr><a:t> à go</a:t></a:r></a:p>',
    )
    assert lines(pptx(slide(text)), "a.pptx")[1:] == ["2^10 → go"]


def emf(*texts: tuple[int, int, str]) -> bytes:
    """A metafile with texts: from the left, from the top, characters. Each is ten units wide."""
    data = struct.pack("<II32s4s64x", 1, 108, b"", b" EMF")
    for x, y, text in texts:
        characters = text.encode("utf-16-le").ljust(40, b"\0")
        widths = struct.pack(f"<{len(text)}I", *[10] * len(text)).ljust(80, b"\0")
        place = struct.pack("<iiIII16xI", x, y, len(text), 76, 0, 116)
        data += struct.pack("<II28x", 84, 196) + place + characters + widths
    return data


def test_texts_of_a_metafile():
    texts = [(0, 5, "Har"), (30, 5, "bour"), (100, 5, "17"), (0, 20, "Fees")]
    data = emf(*texts)
    assert metafile_lines(data) == ["Harbour 17", "Fees"]
    assert metafile_lines(data[:-150]) == ["Harbour 17"]
    text = struct.pack("<IHhhhH", 11, 0x0A32, 5, 0, 7, 0) + b"XML.xml\0"
    assert metafile_lines(b"\xd7\xcd\xc6\x9a".ljust(40, b"\0") + text) == ["XML.xml"]


def test_pictures_of_embedded_objects():
    image = '<a:blip r:embed="rId1"/>'
    frame = f"<p:graphicFrame><p:oleObj><p:pic>{image}</p:pic></p:oleObj></p:graphicFrame>"
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations(("image", "../a.emf")),
        "ppt/a.emf": emf((0, 0, "Total 12")),
    }
    assert lines(pptx(slide(frame), parts=parts), "a.pptx")[1:] == ["Total 12"]
    parts["ppt/slides/_rels/slide1.xml.rels"] = relations(("image", "../a.png"))
    document = read_document(pptx(slide(frame), parts=parts), "a.pptx")
    assert document.notes == ("embedded objects left out: 1",)
    old = '<p:graphicFrame><p:oleObj spid="s1"/></p:graphicFrame>'
    image = '<v:imagedata xmlns:o="urn:schemas-microsoft-com:office:office" o:relid="rId1"/>'
    parts |= {
        "ppt/slides/_rels/slide1.xml.rels": relations(("vmlDrawing", "../old.vml")),
        "ppt/old.vml": f'<x xmlns:v="urn:schemas-microsoft-com:vml"><v:shape id="s1">{image}</v:shape></x>',
        "ppt/_rels/old.vml.rels": relations(("image", "a.emf")),
    }
    assert lines(pptx(slide(old), parts=parts), "a.pptx")[1:] == ["Total 12"]


def test_diagrams_are_read_as_they_were_drawn():
    data = '<d:dataModel xmlns:d="d" xmlns:a="{0}/main"><d:ptLst>{1}</d:ptLst>{2}</d:dataModel>'
    text = "<d:pt><d:t><a:p><a:r><a:t>{}</a:t></a:r></a:p></d:t></d:pt>"
    points = text.format("first") + text.format("pres").replace("<d:pt>", '<d:pt type="pres">')
    frame = '<p:graphicFrame><d:relIds xmlns:d="d" r:dm="rId1"/></p:graphicFrame>'
    plain = deck(frame, "diagramData", data.format(DRAWING, points, ""))
    assert lines(plain, "a.pptx")[1:] == ["first"]
    drawing = (
        f'<d:x xmlns:d="d" xmlns:a="{DRAWING}/main"><d:txBody><a:p>{{}}</a:p></d:txBody></d:x>'
    )
    runs = '<a:r><a:t>10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r>'
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations(
            ("data", "../d.xml"), ("drawing", "../w.xml")
        ),
        "ppt/d.xml": data.format(DRAWING, points, '<d:dataModelExt relId="rId2"/>'),
        "ppt/w.xml": drawing.format(runs),
    }
    assert lines(pptx(slide(frame), parts=parts), "a.pptx")[1:] == ["10^6"]


def test_notes_are_numbered_as_their_section_says():
    def section(number: str, numbers: str) -> str:
        mark = run("").replace("<w:t", f'<w:footnoteReference w:id="{number}"/><w:t')
        own = f"<w:sectPr><w:footnotePr>{numbers}</w:footnotePr></w:sectPr>"
        return f"<w:p><w:pPr>{own}</w:pPr>{run('in 2003')}{mark}</w:p>"

    notes = "".join(f'<w:footnote w:id="{n}">{paragraph("note")}</w:footnote>' for n in "123")
    roman = '<w:numFmt w:val="lowerRoman"/><w:numStart w:val="2"/>'
    again = '<w:numFmt w:val="chicago"/><w:numRestart w:val="eachSect"/>'
    content = section("1", roman) + section("2", again) + section("3", again)
    read = lines(docx(content, {"footnotes": word_part("footnotes", notes)}))
    assert [line for line in read if "2003" in line] == ["in 2003[ii]", "in 2003[*]", "in 2003[*]"]


def test_a_number_is_shown_without_text():
    parts = numbering(level(0, "decimal", "%1.") + level(1, "bullet", "4"), n1="")
    item = '<w:p><w:pPr><w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr></w:pPr>{}</w:p>'
    row = f"<w:tr><w:tc>{item.format(0, '')}</w:tc><w:tc>{paragraph('Gate')}</w:tc></w:tr>"
    content = f"<w:tbl>{row * 2}</w:tbl>{item.format(0, '')}{item.format(1, run('x'))}"
    assert lines(docx(content, parts)) == ["1. | Gate", "2. | Gate", "3.", "  4 x"]


def test_the_header_of_further_pages_is_not_that_of_one_page():
    section = '<w:sectPr><w:headerReference w:type="default" r:id="rId1"/><w:titlePg/></w:sectPr>'
    parts = {"header": word_part("hdr", paragraph("Harbour board"))}
    for pages, expected in (("1", ["Moorings"]), ("2", ["Moorings", "Harbour board"])):
        data = io.BytesIO(docx(paragraph("Moorings") + section, parts))
        with zipfile.ZipFile(data, "a") as package:
            package.writestr("docProps/app.xml", f"<Properties><Pages>{pages}</Pages></Properties>")
        assert [line for line in lines(data.getvalue()) if line[0] != "#"] == expected


# Headings


def test_headings_are_below_a_title() -> None:
    styles = "".join(
        f'<w:style w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in (("T", "Title"), ("H", "heading 1"))
    )

    def styled(text: str, key: str) -> str:
        return paragraph(text, in_paragraph=f'<w:pStyle w:val="{key}"/>')

    sections = styled("Diet", "H") + paragraph("Soft food.") + styled("Contacts", "H")
    read = read_document(docx(styled("Care plan", "T") + sections, styles=styles), "a.docx")
    assert [b.level for b in read.blocks if b.level] == [1, 2, 2]
    read = read_document(docx(sections, styles=styles), "a.docx")
    assert [b.level for b in read.blocks if b.level] == [1, 1]
