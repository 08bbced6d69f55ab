"""Office documents of the usual libraries, and the limits of all formats that are archives of XML."""

import io
from datetime import date, datetime
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.office.ebooks import epub
from ingest.office.opendocuments import opendocument, opendocument_part, style
from ingest.office.parts import RELATION, members, relations, zipped
from ingest.office.samples import HIDDEN, VISIBLE
from ingest.office.slides import pptx, shape, slide
from ingest.office.word import docx, paragraph, run, text_box, word_part
from ingest.office.workbooks import cell, look, xlsx
from rolebundle.errors import DocumentError
from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import own_title, package, reader_name_for
from rolebundle.ingest.readers.number_format import shown_number, shown_text
from support.amounts import few_examples
from support.reading import properties, read_document


def refused(data: bytes, path: str) -> str:
    with pytest.raises(DocumentError) as caught:
        read_document(data, path)
    assert path in caught.value.message
    return caught.value.code


def texts(document: ParsedDocument) -> list[tuple[str, str]]:
    return [(block.kind, block.heading or block.text) for block in document.blocks]


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def sheet_called(title: str) -> tuple[Any, Any]:
    """A workbook with a sheet of this name, and the sheet."""
    import openpyxl

    workbook = openpyxl.Workbook()
    workbook.active.title = title
    return workbook, workbook.active


def test_a_word_document():
    from docx import Document

    word_document = Document()
    properties_of_word = word_document.core_properties
    properties_of_word.title, properties_of_word.author = "Word Document", "Ann Smith"
    properties_of_word.modified = datetime(2026, 3, 1, 12)
    word_document.add_heading("Harbour plan", 0)
    word_document.add_heading("Fees", 1)
    word_document.add_paragraph("All fees are in euros.")
    for name in ("ropes", "anchors"):
        word_document.add_paragraph(name, style="List Number")
    table = word_document.add_table(3, 2)
    for i, row in enumerate([("Berth", "Fee"), ("North", "12"), ("South", "14")]):
        for j, text in enumerate(row):
            table.cell(i, j).text = text
    word_document.sections[0].header.paragraphs[0].text = "Port Authority"
    document = read_document(saved(word_document), "a.docx")
    assert texts(document) == [
        ("heading", "Harbour plan"),
        ("heading", "Fees"),
        ("paragraph", "All fees are in euros."),
        ("list", "1. ropes\n2. anchors"),
        ("table", "Berth | Fee\nNorth | 12\nSouth | 14"),
        ("heading", "Page header and footer"),
        ("paragraph", "Port Authority"),
    ]
    assert properties(document) == {
        "title": "Harbour plan", "authors": ["Ann Smith"], "updated_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip
    chunks = chunk_document("d", document, ChunkSettings(20, 20))
    assert [chunk.headings[-1] for chunk in chunks if "South" in chunk.content] == ["Berth | Fee"]


def test_labels_of_lists_and_headings_are_those_that_word_shows():
    forms = [("decimal", "%1."), ("decimal", "%1.%2)"), ("upperRoman", "%3")]
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for n, (form, text) in enumerate(forms)
    )
    numbering = word_part(
        "numbering",
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="8"><w:abstractNumId w:val="0"/></w:num>',
    )
    items = [(7, 0), (7, 1), (7, 1), (7, 2), (7, 0), (7, 1), (8, 0), (8, 0)]
    look = '<w:numPr><w:ilvl w:val="{1}"/><w:numId w:val="{0}"/></w:numPr>'
    body = "".join(paragraph("x", in_paragraph=look.format(*item)) for item in items)
    [(_, text)] = texts(read_document(docx(body, {"numbering": numbering}), "a.docx"))
    labels = [line.split()[0] for line in text.split("\n")]
    assert labels == ["1.", "1.1)", "1.2)", "I", "2.", "2.1)", "3.", "4."]


def test_a_workbook():
    workbook, sheet = sheet_called("Budget")
    sheet.append(["Item", "Price", "Due", "Share"])
    for i in range(120):
        sheet.append([f"item {i}", 1234.5 * i, date(2026, 1, 1 + i % 28), i / 200])
        for column, code in ((2, '#,##0.00 "EUR"'), (3, "dd.mm.yyyy"), (4, "0.0%")):
            sheet.cell(sheet.max_row, column).number_format = code
    workbook.create_sheet("Notes")["B2"] = "only this"
    document = read_document(saved(workbook), "a.xlsx")
    first, *remaining = [block for block in document.blocks if block.kind == "table"]
    header, row = "Item | Price | Due | Share", "item 0 | 0.00 EUR | 01.01.2026 | 0.0%"
    assert first.text.startswith(f"{header}\n{row}\n")
    assert "item 3 | 3,703.50 EUR | 04.01.2026 | 1.5%" in first.text
    assert "title" not in properties(document)
    chunks = chunk_document("d", document, ChunkSettings())
    assert len(chunks) == len(remaining) + 1
    for chunk in chunks[1:-1]:
        assert chunk.headings == ("Budget", "Item | Price | Due | Share")
        start, end = map(int, chunk.anchor.removeprefix("sheet Budget, rows ").split("-"))
        assert chunk.content.startswith(f"item {start - 2} |")
        assert f"\nitem {end - 2} |" in chunk.content
    assert chunks[-1].anchor == "sheet Notes, row 2"
    assert chunks[-1].content == "# Notes\n\n | only this"


def test_a_heading_of_the_reader_is_no_title():
    import pptx

    presentation = pptx.Presentation()
    presentation.core_properties.title = ""
    for layout, text in ((6, ""), (0, "Harbour plan")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[layout])
        slide.notes_slide.notes_text_frame.text = "Greet the guests."
        if text:
            slide.shapes.title.text = text
    document = read_document(saved(presentation), "a.pptx")
    assert ("heading", "Slide 1") in texts(document)
    assert document.inferred["title"] == "Harbour plan"


def test_a_second_table_of_a_sheet_has_its_own_header():
    workbook, sheet = sheet_called("S")
    for header in (["Berth", "Fee"], ["Ship", "Tons"]):
        sheet.append(header)
        for i in range(60):
            sheet.append([f"a long name of number {i}", i])
        sheet.append([])
    document = read_document(saved(workbook), "a.xlsx")
    chunks = chunk_document("d", document, ChunkSettings())
    headers = [chunk.headings[-1] for chunk in chunks if len(chunk.headings) == 2]
    assert list(dict.fromkeys(headers)) == ["Berth | Fee", "Ship | Tons"]
    assert not any("Berth" in c.content and "Ship" in c.content for c in chunks)


@pytest.mark.parametrize("value", ["2026-04-20", "Quay 4"])
def test_a_header_stands_below_titles_and_keys_with_their_values(value):
    workbook, sheet = sheet_called("S")
    for row in (["Estimate of the quay"], ["Date", value], ["Code", "Item", "Firm"]):
        sheet.append(row)
    for i in range(60):
        sheet.append([f"{i}", f"a long name of number {i}", "Haldi"])
    chunks = chunk_document("d", read_document(saved(workbook), "a.xlsx"), ChunkSettings())
    assert {chunk.headings[-1] for chunk in chunks[1:]} == {"Code | Item | Firm"}


def test_an_insertion_in_a_sheet_changes_few_passages():
    def passages(names: list[str]) -> set[str]:
        rows = "".join(
            f'<row r="{n}">{cell(f"A{n}", name)}{cell(f"B{n}", "the same words")}</row>'
            for n, name in enumerate(names, start=1)
        )
        document = read_document(xlsx(rows), "a.xlsx")
        return {chunk.content_hash for chunk in chunk_document("d", document, ChunkSettings())}

    names = [f"number {n * 7919 % 1000}" for n in range(1000)]
    before = passages(names)
    assert len(before) > 20
    assert len(before - passages([*names[:100], "another", *names[100:]])) <= 4


def test_a_presentation():
    import pptx

    presentation = pptx.Presentation()
    presentation.core_properties.title = "PowerPoint Presentation"
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Opening hours"
    slide.placeholders[1].text = "summer\nwinter"
    slide.notes_slide.notes_text_frame.text = "Greet the audience."
    empty = presentation.slides.add_slide(presentation.slide_layouts[6])
    box = empty.shapes.add_textbox(0, 0, 999_999, 999_999)
    box.text_frame.text = "No title here."
    document = read_document(saved(presentation), "a.pptx")
    assert [(block.anchor, block.kind, block.text) for block in document.blocks] == [
        ("slide 1", "heading", "# Opening hours"),
        ("slide 1", "list", "- summer\n- winter"),
        ("slide 1, speaker notes", "heading", "## Speaker notes"),
        ("slide 1, speaker notes", "paragraph", "Greet the audience."),
        ("slide 2", "heading", "# Slide 2"),
        ("slide 2", "paragraph", "No title here."),
    ]
    assert properties(document) == {"title": "Opening hours"}
    notes = chunk_document("d", document, ChunkSettings())[1]
    assert notes.headings == ("Opening hours", "Speaker notes")


def test_an_opendocument_text():
    meta = (
        '<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta><dc:title>Harbour</dc:title>'
        "<dc:creator>Ann</dc:creator><dc:date>2026-03-01T10:00:00.12</dc:date></office:meta>"
        "</office:document-meta>"
    )
    body = (
        '<text:h text:outline-level="2">Fees</text:h><text:p>a<text:s text:c="2"/>b<text:tab/>c</text:p>'
        "<text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>"
        '<table:table><table:table-row><table:table-cell table:number-columns-repeated="2">'
        "<text:p>k</text:p></table:table-cell></table:table-row></table:table>"
    )
    document = read_document(opendocument(body, parts={"meta.xml": meta}), "a.odt")
    assert texts(document) == [
        ("heading", "Fees"),
        ("paragraph", "a  b\tc"),
        ("list", "- x"),
        ("table", "k | k"),
    ]
    assert properties(document) == {
        "title": "Harbour", "authors": ["Ann"], "updated_at": "2026-03-01T10:00:00.12",
    }  # fmt: skip


def test_hidden_cells_are_reported():
    rows = (
        f'<row r="1">{cell("A1", "North")}{cell("C1", "x")}{cell("D1", "12")}</row>'
        f'<row r="2" hidden="1">{cell("A2", "South")}</row>'
    )
    excel = xlsx(rows, '<cols><col min="3" max="3" hidden="1"/></cols>')
    hidden = 'table:visibility="collapse"'
    north, empty, other, number, south = (
        f"<table:table-cell><text:p>{text}</text:p></table:table-cell>"
        for text in ("North", "", "x", "12", "South")
    )
    calc = opendocument(
        f'<table:table><table:table-column table:number-columns-repeated="2"/>'
        f"<table:table-column {hidden}/><table:table-row>{north}{empty}{other}{number}"
        f"</table:table-row><table:table-row {hidden}>{south}</table:table-row></table:table>",
        "spreadsheet",
    )
    for data, path in ((excel, "a.xlsx"), (calc, "a.ods")):
        document = read_document(data, path)
        assert [b.text for b in document.blocks if b.kind == "table"] == ["North |  | 12"]
        assert document.notes == ("hidden cells left out: 2",)


WORD_ROW = "<w:tr><w:trPr>{}</w:trPr>{}</w:tr>"


def word_cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def test_cells_below_merged_ones_stay_in_their_columns():
    wide, end = '<w:gridSpan w:val="2"/>', '<w:gridBefore w:val="1"/>'
    last = "".join(map(word_cell, ("Meloxicam", "0.2", "0.1", "0.05")))
    tall = [word_cell("Cat", '<w:vMerge w:val="restart"/>'), word_cell("", "<w:vMerge/>")]
    word = "".join(
        (
            WORD_ROW.format("", word_cell("Drug") + word_cell("Dog", wide) + tall[0]),
            WORD_ROW.format(end, word_cell("first") + word_cell("then") + tall[1]),
            WORD_ROW.format("", last),
            WORD_ROW.format("", word_cell("Note", '<w:gridSpan w:val="4"/>')),
        )
    )
    document = read_document(docx(f"<w:tbl>{word}</w:tbl>"), "a.docx")
    rows = "Drug | Dog |  | Cat\n | first | then\nMeloxicam | 0.2 | 0.1 | 0.05\nNote"
    assert texts(document) == [("table", rows)]
    alone = WORD_ROW.format("", word_cell("Only a frame.", wide))
    assert texts(read_document(docx(f"<w:tbl>{alone}</w:tbl>"), "a.docx"))[0][0] == "paragraph"
    calc = (
        "<table:table><table:table-row><table:table-cell><text:p>Dogs</text:p></table:table-cell>"
        '<table:covered-table-cell table:number-columns-repeated="7"/>'
        "<table:table-cell><text:p>Cat</text:p></table:table-cell></table:table-row></table:table>"
    )
    (table,) = read_document(opendocument(calc), "a.odt").blocks
    assert table.text.split(" | ") == ["Dogs", *[""] * 7, "Cat"]


LINE_THROUGH = style('style:text-line-through-style="solid"')
NO_LINE = LINE_THROUGH.replace("solid", "none")
SPAN = '<text:p>over <text:span text:style-name="S">five </text:span>three</text:p>'
LINE = '<c r="A1" s="1"><v>2650</v></c><c r="B1" t="inlineStr"><is><r><t>over </t></r><r><rPr>{}</rPr><t>five </t></r><r><t>three</t></r></is></c>'


def word_runs(*properties: str) -> str:
    return (
        f"<w:p>{run('over ')}{''.join(run('five ', one) for one in properties)}{run('three')}</w:p>"
    )


@pytest.mark.parametrize(("data", "path", "text"), [
    (docx(word_runs("<w:strike/>")), "a.docx", "over ~~five~~ three"),
    (docx(word_runs("<w:dstrike/>", "<w:strike/><w:b/>")), "a.docx", "over ~~five five~~ three"),
    (docx(word_runs('<w:strike/><w:dstrike w:val="0"/>')), "a.docx", "over ~~five~~ three"),
    (docx(word_runs('<w:strike w:val="false"/>')), "a.docx", "over five three"),
    (docx(paragraph("10", "<w:strike/>") .replace("</w:p>", run("2", '<w:strike/><w:vertAlign w:val="superscript"/>') + "</w:p>")),
     "a.docx", "~~10^2~~"),
    (pptx(slide(shape("five", 'strike="sngStrike">'))), "a.pptx", "~~five~~"),
    (pptx(slide(shape("five", 'strike="noStrike">'))), "a.pptx", "five"),
    (xlsx(f'<row r="1">{LINE.format("<strike/>")}</row>', styles=look("<strike/>")), "a.xlsx",
     "~~2650~~ | over ~~five~~ three"),
    (xlsx(f'<row r="1">{LINE.format("")}</row>', styles=look('<strike val="0"/>')), "a.xlsx",
     "2650 | over five three"),
    (opendocument(SPAN, styles=LINE_THROUGH), "a.odt", "over ~~five~~ three"),
    (opendocument(SPAN, styles=NO_LINE), "a.odt", "over five three"),
    (opendocument(f"<draw:page><draw:frame><draw:text-box>{SPAN}</draw:text-box></draw:frame></draw:page>",
                  "presentation", LINE_THROUGH), "a.odp", "over ~~five~~ three"),
    (opendocument('<table:table><table:table-row><table:table-cell table:style-name="S" office:value-type="float"'
                  ' office:value="2650"/></table:table-row></table:table>', "spreadsheet",
                  LINE_THROUGH.replace('family="text"', 'family="table-cell"')), "a.ods", "~~2650~~"),
])  # fmt: skip
def test_text_that_is_struck_out_is_marked(data, path, text):
    assert read_document(data, path).blocks[-1].text == text


ANNOTATED = "<text:p>a<office:annotation><text:p>b</text:p></office:annotation></text:p>"
THREAD = (
    "<t xmlns='x'><threadedComment id='1'/><threadedComment parentId='1'/></t>",
    "<comments xmlns='x'><commentList><comment ref='A1'/><comment ref='A2'/></commentList></comments>",
)


def with_members(data: bytes, **more: str) -> bytes:
    return zipped({**members(data), **more})


@pytest.mark.parametrize(("data", "path", "count"), [
    (docx(paragraph("a"), {"comments": word_part("comments", "<w:comment/><w:comment/>")}), "a.docx", 2),
    (with_members(xlsx(f'<row r="1">{cell("A1", "a")}</row>'), **{
        "xl/threadedComments/threadedComment1.xml": THREAD[0], "xl/comments1.xml": THREAD[1]}), "a.xlsx", 3),
    (with_members(pptx(slide(shape("a", ">"))), **{
        "ppt/comments/comment1.xml": "<cmLst><cm><reply/></cm></cmLst>",
        "ppt/commentAuthors.xml": "<cmAuthorLst><cmAuthor/></cmAuthorLst>"}), "a.pptx", 2),
    (opendocument(ANNOTATED), "a.odt", 1),
    (opendocument(f"<table:table><table:table-row><table:table-cell>{ANNOTATED}</table:table-cell>"
                  "</table:table-row></table:table>", "spreadsheet"), "a.ods", 1),
])  # fmt: skip
def test_a_note_counts_the_comments_that_are_left_out(data, path, count):
    assert read_document(data, path).notes == (f"comments left out: {count}",)


def test_notes_and_text_boxes_follow_their_paragraph():
    note = "<w:footnote w:id='{}'>{}</w:footnote>"
    notes = word_part("footnotes", "".join(note.format(n, paragraph(f"note {n}")) for n in (1, 2)))
    reference = "<w:r><w:footnoteReference w:id='{}'/></w:r>"
    deleted = f"<w:del>{reference.format(1)}</w:del>"
    body = f"<w:p>{run('a')}{deleted}{reference.format(2)}</w:p>{text_box(paragraph('box'))}"
    document = read_document(docx(body, {"footnotes": notes}), "a.docx")
    assert [text for _, text in texts(document)] == ["a[1]", "[1] note 2", "box"]


def test_equal_rows_of_a_sheet_are_all_read():
    row = (
        '<table:table-row table:number-rows-repeated="{}"><table:table-cell><text:p>7</text:p>'
        "</table:table-cell></table:table-row>"
    )
    body = '<table:table table:name="a">{}</table:table>'
    document = read_document(opendocument(body.format(row.format(3)), "spreadsheet"), "a.ods")
    assert (document.blocks[1].text, document.notes) == ("7\n7\n7", ())
    document = read_document(opendocument(body.format(row.format(1002)), "spreadsheet"), "a.ods")
    assert document.notes == ("repeated rows left out: 2",)


def test_rows_of_a_sheet_that_are_repeated_are_counted():
    body = (
        '<table:table table:name="a"><table:table-row table:number-rows-repeated="1000000">'
        '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
        "<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>"
        "</table:table>"
    )
    (heading, table) = read_document(opendocument(body, "spreadsheet"), "a.ods").blocks
    assert (table.text, table.anchor, heading.heading) == ("x", "sheet a, row 1000001", "a")


def test_chapters_of_a_book_are_in_the_order_of_its_spine():
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    kind = 'media-type="application/xhtml+xml"'
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>Harbours</dc:title><dc:creator>Ann</dc:creator>"
        '<meta property="dcterms:modified">2026-03-01T00:00:00Z</meta></metadata><manifest>'
        f'<item id="n" href="n.xhtml" properties="nav" {kind}/><item id="a" href="a.xhtml" {kind}/>'
        f'<item id="b" href="b.xhtml" {kind}/>'
        '</manifest><spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
    data = zipped({
        "META-INF/container.xml": container,
        "b.opf": book.replace("<dc:creator", "<dc:creator opf:role='aut'"),
        "n.xhtml": page.format("<nav>contents</nav>"),
        "a.xhtml": page.format("<h1>First</h1><p>a&#160;<a id='x'/>text</p>"),
        "b.xhtml": page.format("<p>no heading</p>"),
    })  # fmt: skip
    document = read_document(data, "a.epub")
    expected = [("paragraph", "no heading"), ("heading", "First"), ("paragraph", "a text")]
    assert texts(document) == expected
    assert document.inferred["title"] == "Harbours"
    assert document.inferred["updated_at"] == "2026-03-01T00:00:00Z"


def test_a_chapter_may_have_named_entities():
    """EPUB 2 allows those of XHTML. Their DTD is not loaded."""
    page = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" '
        '"http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p class="body">'
        "salt&nbsp;and&mdash;tar</p></body></html>"
    )
    document = read_document(epub("", parts={"o/t/a 1.xhtml": page}), "a.epub")
    assert [block.text for block in document.blocks] == ["salt and\u2014tar"]


# Limits

SUFFIXES = sorted(HIDDEN)


MAIN = {
    "docx": "word/document.xml", "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml", "odt": "content.xml", "epub": "o/b.opf",
}  # fmt: skip


PLAIN = {suffix: variants["plain"] for suffix, variants in VISIBLE.items()}


def main_of(suffix: str) -> bytes:
    return members(PLAIN[suffix])[MAIN[suffix]]


def with_main(suffix: str, content: bytes) -> bytes:
    """The plain document with this main member."""
    return zipped({**members(PLAIN[suffix]), MAIN[suffix]: content})


def extended(suffix: str, more: bytes) -> bytes:
    """The plain document with ``more`` before the end of its main member."""
    end = b"</sheetData" if suffix == "xlsx" else b"</"
    return with_main(suffix, (more + end).join(main_of(suffix).rsplit(end, 1)))


def test_a_document_with_a_password_is_skipped():
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    encrypted = ole + "EncryptedPackage".encode("utf-16-le") + bytes(100)
    for suffix in ("docx", "xlsx", "pptx"):
        assert refused(encrypted, f"a.{suffix}") == f"encrypted_{suffix}"
        assert refused(ole, f"a.{suffix}") == f"unreadable_{suffix}"
    manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"
    data = opendocument("", parts={"META-INF/manifest.xml": manifest})
    assert refused(data, "a.odt") == "encrypted_opendocument"


def test_a_book_with_a_licence_is_skipped_and_one_with_encrypted_fonts_is_not():
    encryption = (
        "<encryption><EncryptedData><CipherReference URI='{}'/></EncryptedData></encryption>"
    )
    parts = {"META-INF/encryption.xml": encryption.format("o/t/a%201.xhtml")}
    assert refused(epub("", parts=parts), "a.epub") == "encrypted_epub"
    parts = {"META-INF/encryption.xml": encryption.format("o/font.otf")}
    assert read_document(epub("", parts=parts), "a.epub").blocks


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_member_that_is_encrypted_is_no_crash(suffix):
    # The flag is in the directory, 8 bytes after each signature.
    data = bytearray(PLAIN[suffix])
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 1)
    assert refused(bytes(data), f"a.{suffix}").startswith("encrypted_")


@pytest.mark.sample(2)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_that_expands_too_much_is_refused(suffix, monkeypatch):
    data = extended(suffix, b" " * 3_000_000)
    assert read_document(data, f"a.{suffix}").blocks
    code = f"{reader_name_for(f'a.{suffix}')}_too_large"
    for limit, value in (("_MAX_EXPANDED", 2_000_000), ("_MAX_TREE", 1_000_000)):
        with monkeypatch.context() as patched:
            patched.setattr(package, limit, value)
            assert refused(data, f"a.{suffix}") == code
    monkeypatch.setattr(package, "_MAX_MEMBERS", 0)
    assert refused(data, f"a.{suffix}") == code


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_too_much_text_is_refused(suffix, monkeypatch):
    monkeypatch.setattr("rolebundle.ingest.readers.package._MAX_CHARS", 20)
    assert refused(PLAIN[suffix], f"a.{suffix}").endswith("_too_large")


def test_a_row_that_repeats_a_long_text_is_refused(monkeypatch):
    """A small workbook would take gigabytes of memory."""
    monkeypatch.setattr("rolebundle.ingest.readers.xlsx._MAX_STRING_CHARS", 1_000)
    text, cells = f"<si><t>{'word ' * 100}</t></si>", '<c t="s"><v>0</v></c>'
    assert read_document(xlsx(f"<row>{cells * 2}</row>", strings=text), "a.xlsx").blocks
    assert refused(xlsx(f"<row>{cells * 3}</row>", strings=text), "a.xlsx") == "xlsx_too_large"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_entities_are_not_expanded(suffix):
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    doctype = f'<!DOCTYPE x [<!ENTITY e0 "spam">{declared}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    for entity in (b"&e11;", b"&f;"):
        content = main_of(suffix).replace(b"opens at dawn", b"opens at dawn" + entity)
        data = with_main(suffix, doctype.encode() + content)
        try:
            document = read_document(data, f"a.{suffix}")
        except DocumentError as error:
            assert error.code.startswith("unreadable_")
        else:
            text = "\n".join(document.lines)
            assert "spam" not in text and "root:" not in text


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_deep_nesting_is_refused_or_read(suffix):
    data = extended(suffix, b"<x>" * 5_000 + b"</x>" * 5_000)
    if suffix == "epub":  # Its package document may have mistakes.
        assert read_document(data, "a.epub").blocks
    else:
        assert refused(data, f"a.{suffix}").startswith("unreadable_")


def test_a_strict_document_is_read():
    usual = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    strict = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    data = with_main("docx", main_of("docx").replace(usual, strict))
    assert texts(read_document(data, "a.docx")) == texts(read_document(PLAIN["docx"], "a.docx"))


# Titles and numbers


def test_titles_of_programs_are_no_titles():
    titles = (
        "PowerPoint Presentation|Microsoft Word - plan v3 final.doc|Word Document|Untitled 1"
        "|untitled|Unbenannt|Document1|Book1|Presentation 2|Présentation PowerPoint"
        "|PowerPoint-Präsentation|plan.docx|(unspecified)|12|"
    ).split("|")
    assert not any(map(own_title, [*titles, "x" * 400]))
    own = "Document retention policy|Book of ropes|Budget 2026|漢字|Word of mouth".split("|")
    assert all(map(own_title, own))


NUMBERS = [
    ("1234.5", "General", "1234.5"),
    ("0.30000000000000004", "General", "0.3"),
    ("1E-10", "General", "1E-10"),
    ("4111111111111117", "General", "4111111111111117"),
    ("12", "@", "12"),
    ("1234.5", "#,##0.00", "1,234.50"),
    ("-1234.5", "#,##0.00;(#,##0.00)", "(1,234.50)"),
    ("-0.4", "0", "0"),
    ("7", "000", "007"),
    ("12", "0,000", "0,012"),
    ("0.5", "#.##", ".5"),
    ("5", "0.0#%", "500.0%"),
    ("12", "[$€-407] #,##0", "€ 12"),
    ("0", '0;-0;"none"', "none"),
    # Half a unit is rounded up, also if it cannot be stored exactly.
    ("2.5", "0", "3"),
    ("1.005", "0.00", "1.01"),
    ("1234567", '#,##0,"K"', "1,235K"),
    ("45600000", '0.0,,"M"', "45.6M"),
    ("123456789", "000-00-0000", "123-45-6789"),
    ("5551234567", "(000) 000-0000", "(555) 123-4567"),
    ("1500", '[>=1000]0.0,"k";0', "1.5k"),
    ("-15", '[>=1000]0.0,"k";0', "-15"),
    ("12", '[>=1000]0.0,"k"', "12"),
    ("1.5", "# ?/?", "1 1/2"),
    ("0.3125", "# ??/??", "5/16"),
    ("1.25", "# ?/8", "1 2/8"),
    ("12345", "0.00E+00", "1.23E+04"),
    ("0.00012", "##0.0E+0", "120.0E-6"),
    ("-3", '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$(3.00)"),
    ("12003", "[DBNum1][$-804]General", "一万二千〇三"),
    ("46082", "dd.mm.yyyy", "01.03.2026"),
    ("46082.5", "d.m.yy h:mm", "1.3.26 12:00"),
    ("46082", "[$-409]dddd, mmmm d, yyyy;@", "Sunday, March 1, 2026"),
    ("0.75", "h:mm AM/PM", "6:00 PM"),
    ("1.5", "[h]:mm:ss", "36:00:00"),
    ("0.01234567", "mm:ss.00", "17:46.67"),
    ("0.999999", "h:mm", "23:59"),
    ("1e12", "yyyy-mm-dd", "1000000000000"),
    ("a", "0.00", "a"),
    ("a", '0;-0;0;@" x"', "a x"),
]


def test_cells_are_shown_by_their_formats():
    codes = "".join(
        f'<numFmt numFmtId="{200 + n}" formatCode={quoteattr(code)}/>'
        for n, (_, code, _) in enumerate(NUMBERS)
    )
    formats = "".join(f'<xf numFmtId="{200 + n}"/>' for n in range(len(NUMBERS)))
    rows = "".join(
        f'<row><c s="{n}" t="{"str" if value == "a" else "n"}"><v>{value}</v></c></row>'
        for n, (value, _, _) in enumerate(NUMBERS)
    )
    data = xlsx(rows, styles=f"<numFmts>{codes}</numFmts><cellXfs>{formats}</cellXfs>")
    table = read_document(data, "a.xlsx").blocks[1]
    assert table.text.split("\n") == [expected for _, _, expected in NUMBERS]


CODES = st.text('0#?,.%E+-/;[]<>=@_*"\\\\ymdhs$ GeneralAM/PM{}', max_size=20)


@few_examples
@given(st.floats(allow_nan=False, allow_infinity=False), CODES)
def test_any_format_shows_something_of_any_number(number, code):
    shown = shown_number(repr(number), code, is_1904=False)
    assert isinstance(shown, str)
    assert "a" in shown_text("a", "@" + code.replace(";", ""))


def test_a_sheet_has_its_charts_and_raised_digits():
    title = "<c:title><c:tx><c:rich><a:p><a:t>Fees of 2026</a:t></a:p></c:rich></c:tx></c:title>"
    chart = f"<c:chart xmlns:c='c' xmlns:a='a'>{title}</c:chart>"
    parts = members(
        xlsx(
            '<row r="1"><c r="A1" t="s"><v>0</v></c></row>',
            strings="<si>"
            '<r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>5</t></r></si>',
        )
    )
    parts |= {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(("drawing", "../drawings/a.xml")).encode(),
        "xl/drawings/a.xml": f'<d xmlns:r="{RELATION}"><chart r:id="rId1"/></d>'.encode(),
        "xl/drawings/_rels/a.xml.rels": relations(("chart", "../charts/b.xml")).encode(),
        "xl/charts/b.xml": chart.encode(),
    }
    document = read_document(zipped(parts), "a.xlsx")
    assert texts(document)[1:] == [("table", "10^5"), ("paragraph", "Fees of 2026")]


LIST_STYLES = """
<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="a"
 style:num-prefix="(" style:num-suffix=")"/><text:list-level-style-number text:level="2"
 style:num-format="1" style:num-suffix="." text:display-levels="2"/></text:list-style>
<text:list-style style:name="A"><text:list-level-style-number text:level="1" style:num-format="I"
 style:num-prefix="Article " text:start-value="4"/></text:list-style>
<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"
 style:num-suffix="."/></text:outline-style>
<style:style style:name="S" style:family="text"><style:text-properties
 style:text-position="super 58%"/></style:style>
"""


def items(*texts: str) -> str:
    wrapped = (text if text.startswith("<") else f"<text:p>{text}</text:p>" for text in texts)
    return "".join(f"<text:list-item>{text}</text:list-item>" for text in wrapped)


def test_lists_and_headings_have_their_numbers():
    inner = f"<text:p>b</text:p><text:p>more</text:p><text:list>{items('c')}</text:list>"
    body = (
        '<text:p text:style-name="Heading">Title</text:p>'
        '<text:h text:outline-level="1">Harbour</text:h>'
        f'<text:list text:style-name="L">{items("a", inner)}</text:list><text:p>x</text:p>'
        f'<text:list text:style-name="L" text:continue-numbering="true">{items("d")}</text:list>'
        f'<text:list text:style-name="A">{items("e", "f")}</text:list>'
        '<text:h text:outline-level="1">Ships</text:h>'
    )
    document = read_document(opendocument(body, styles=LIST_STYLES), "a.odt")
    assert [text for _, text in texts(document)] == [
        "Title",
        "1. Harbour",
        "(a) a\n(b) b\n   more\n  b.1. c",
        "x",
        "(c) d\nArticle IV e\nArticle V f",
        "2. Ships",
    ]


FORMULA = "<math><mfrac><mn>3</mn><mn>4</mn></mfrac></math>"
CHART = (
    '<o:document-content xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><o:body><o:chart>'
    "<title><text:p>Fees</text:p></title><table:table><table:table-row><table:table-cell>"
    "<text:p>North</text:p></table:table-cell><table:table-cell><text:p>12</text:p>"
    "</table:table-cell></table:table-row></table:table>{}</o:chart></o:body></o:document-content>"
)
OBJECT = (
    '<d:frame xmlns:d="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"><d:object'
    ' xmlns:x="http://www.w3.org/1999/xlink" x:href="./{}"/></d:frame>'
)


def test_formulas_charts_and_raised_digits_of_an_opendocument():
    note = "<text:note><text:note-citation>*</text:note-citation><text:note-body><text:p>n</text:p>"
    body = (
        f"<text:p>2<text:span text:style-name='S'>10</text:span> and 2{OBJECT.format('F')} "
        f"x{note}</text:note-body></text:note></text:p><text:p>{OBJECT.format('C')}</text:p>"
        "<text:bibliography><text:p>Knuth 1968</text:p></text:bibliography>"
    )
    parts = {"F/content.xml": FORMULA, "C/content.xml": CHART.format(OBJECT.format("."))}
    document = read_document(opendocument(body, styles=LIST_STYLES, parts=parts), "a.odt")
    assert texts(document) == [
        ("paragraph", "2^10 and 2 3/4 x[*]"),
        ("paragraph", "[*] n"),
        ("paragraph", "Fees"),
        ("table", "North | 12"),
        ("paragraph", "Knuth 1968"),
    ]
    cells = f"<table:table-row><table:table-cell>{OBJECT.format('C')}</table:table-cell>"
    body = f'<table:table table:name="S">{cells}<table:table-cell office:value="7"/>'
    body += "</table:table-row></table:table>"
    document = read_document(opendocument(body, "spreadsheet", parts=parts), "a.ods")
    assert texts(document)[1:] == [("table", " | 7"), ("paragraph", "Fees")]


def test_a_master_shows_its_text_once_and_the_numbers_of_slides():
    names = 'style:name="M" style:page-layout-name="P"'
    page = '<style:page-layout style:name="{}"><style:page-layout-properties fo:page-width="{}"/>'
    shapes = "<draw:frame svg:x='23cm' {}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    master = shapes.format("", "Draft") + shapes.format(
        "", "<text:page-number>#</text:page-number>"
    )
    master += shapes.format('presentation:class="title"', "Click to add a title")
    root = opendocument_part(
        f"{page.format('Notes', '21cm')}</style:page-layout>{page.format('P', '28cm')}"
        f"</style:page-layout><style:master-page {names}>{master}</style:master-page>"
    )
    body = '<draw:page draw:master-page-name="M"/>' * 2
    data = opendocument(body, "presentation", parts={"styles.xml": root})
    blocks = [block.text for block in read_document(data, "a.odp").blocks if not block.level]
    assert blocks == ["Draft", "1", "2"]


FORMS = (
    '<office:forms xmlns:f="urn:oasis:names:tc:opendocument:xmlns:form:1.0"><f:form>'
    '<f:text f:id="a" f:current-value="7274"/><f:password f:id="b" f:value="secret"/>'
    '<f:checkbox f:id="c" f:label="Rate 6" f:current-state="checked"/>'
    '<f:listbox f:id="d"><f:option f:label="3"/><f:option f:label="4" f:current-selected="true"/>'
    "</f:listbox></f:form></office:forms>"
)


def test_numbered_paragraphs_and_controls_of_an_opendocument():
    numbered = '<text:numbered-paragraph text:list-id="q" text:style-name="L" text:level="{}">{}'
    items = [(1, "a"), (1, "b"), (2, "c"), (1, "d")]
    body = "".join(
        f"{numbered.format(level, f'<text:p>{text}</text:p>')}</text:numbered-paragraph>"
        for level, text in items
    )
    control = (
        '<d:control xmlns:d="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" d:control="{}"/>'
    )
    controls = " ".join(f"{name}{control.format(name)}" for name in "abcd")
    body = f"{FORMS}{body}<text:p>{controls}</text:p>"
    document = read_document(opendocument(body, styles=LIST_STYLES), "a.odt")
    assert [text for _, text in texts(document)] == [
        "(a) a\n(b) b\n  b.1. c\n(c) d",
        "a7274 b c[x] Rate 6 d4",
    ]


def test_a_soft_hyphen_is_no_part_of_a_word_or_number():
    body = "<text:p>No. 7734\u00ad5521, Bohr\u00adkopf</text:p>"
    document = read_document(opendocument(body), "a.odt")
    assert [text for _, text in texts(document)] == ["No. 77345521, Bohrkopf"]


@pytest.mark.parametrize(("sheet", "is_noted"), [
    ("h1::before{content: 'No. ' counter(c)}", True), ("p::after{content:\"(p. 4)\"}", True),
    ("p::after{content:attr(data-price)}", True),
    ("p::after{content:'\\2014 '} q::before{content:''} .content{color:red}", False),
])  # fmt: skip
def test_a_note_says_that_a_style_sheet_adds_text(sheet, is_noted):
    notes = read_document(epub("<p>Gate</p>", sheet), "a.epub").notes
    assert notes == ("left out: text that style sheets add",) * is_noted
    page = f"<style>{sheet}</style><p>Gate</p>".encode()
    assert read_document(page, "a.html").notes == notes
