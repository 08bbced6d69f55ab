"""Every answer about a PDF names the page. The PDFs are made by ReportLab."""

import io
import re
from functools import cache
from typing import Any

import pypdf
import pytest
from pypdf.annotations import FreeText
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from support.commands import invoke
from support.corpora import scratch_folder
from support.reading import properties, read_document

STYLES = getSampleStyleSheet()
FILLER = (
    "The council met in the old hall and discussed the budget of the coming year at length. "
    "Most members agreed that repairs should begin before winter, and that costs be shared. "
)
FACTS = 5
"""In each PDF, one on each page."""


@cache
def pdf_of(number: int) -> bytes:
    """Minutes with one fact on each page."""
    out = io.BytesIO()
    story: list[Any] = [Paragraph(f"Minutes {number}", STYLES["Title"])]
    for part in range(FACTS):
        sentence = f"The opening code of lock{number:02}x{part} is {number * 100 + part}."
        is_table = part % 2 == 1
        fact = Table([["item", sentence]]) if is_table else Paragraph(sentence, STYLES["Normal"])
        filler = Paragraph(FILLER * 9, STYLES["Normal"])
        story += [Paragraph(f"Part {part}", STYLES["Heading1"]), filler, fact, PageBreak()]
    template = SimpleDocTemplate(out, title="untitled", pageCompression=number % 2, invariant=1)
    template.build(story)
    return out.getvalue()


@pytest.fixture(scope="module")
def db():
    """A corpus of two PDFs."""
    with scratch_folder() as folder:
        for number in range(2):
            (folder / f"m{number}.pdf").write_bytes(pdf_of(number))
        assert invoke("ingest", folder, "--lexical-only", "--db", folder / "c.db").code == 0
        yield folder / "c.db"


def test_the_cited_page_is_the_one_that_has_the_fact(db):
    for number in range(2):
        for part in range(FACTS):
            name = f"lock{number:02}x{part}"
            request = (f"opening code of {name}", "--lexical-only", "--limit", "1", "--db", db)
            answer = invoke("retrieve", *request, "--format", "json").json()["selected"][0]
            assert name in answer["content"]
            assert answer["citation"]["anchor"] == f"p. {part + 1}"


def test_every_answer_names_the_page(db):
    common = ("lock00x4", "--lexical-only", "--limit", "1", "--db", db)
    for detail in ("ids", "compact", "full"):
        answer = invoke("retrieve", *common, "--detail", detail, "--format", "json").json()
        assert answer["selected"][0]["citation"]["anchor"] == f"p. {FACTS}"
    for form in ("text", "prompt"):
        assert f"p. {FACTS}" in invoke("retrieve", *common, "--format", form).out
    assert f"(p. {FACTS})" in invoke("get", "m0.pdf", "--db", db).out
    why = ("why", "m0.pdf", "lock00x4", "--lexical-only", "--db", db)
    assert f"(p. {FACTS})" in invoke(*why).out
    assert invoke(*why, "--json").json()["anchor"] == f"p. {FACTS}"


def read(data: bytes) -> ParsedDocument:
    return read_document(data, "a.pdf")


def written(writer: pypdf.PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def changed(data: bytes, **information: str) -> bytes:
    """The PDF with other metadata."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.add_metadata({f"/{key}": value for key, value in information.items()})
    return written(writer)


def test_a_block_is_on_one_page_and_its_lines_are_those_of_the_document():
    document = read(pdf_of(1))
    pages = [block.page for block in document.blocks]
    assert pages == sorted(pages) and len(set(pages)) > 1
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def test_unreadable_pdfs_have_their_codes():
    blank = io.BytesIO()
    SimpleDocTemplate(blank, invariant=1).build([Spacer(1, 9)])
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf_of(1)))
    writer.encrypt("secret", algorithm="AES-256")
    for data, code in (
        (blank.getvalue(), "no_text_layer"),
        (written(writer), "encrypted_pdf"),
        (b"%PDF-1.4 nothing", "unreadable_pdf"),
        (b"", "unreadable_pdf"),
    ):
        with pytest.raises(DocumentError, match=rf"\[{code}\]"):
            read(data)


def test_the_title_is_that_of_the_metadata_unless_a_program_wrote_it():
    for declared, title in (("Our minutes", "Our minutes"), ("Document1", None)):
        assert properties(read(changed(pdf_of(1), Title=declared))).get("title") == title


def test_the_date_is_that_of_the_last_change():
    data = pdf_of(1)
    dates = {"CreationDate": "D:20250102030405+01'00'", "ModDate": "D:20260203040506Z"}
    assert read(changed(data, **dates)).inferred["updated_at"] == "2026-02-03T04:05:06Z"
    dates["ModDate"] = "next week"
    assert read(changed(data, **dates)).inferred["updated_at"] == "2025-01-02T02:04:05Z"


# -- What a page shows is what is read


def drawn(*pages: str | list[tuple[float, float, float, str]]) -> bytes:
    """A PDF of pages with these texts: place from the left and the bottom, size, and text."""
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    for page in pages:
        for x, y, size, text in [(72, 700, 12, page)] if isinstance(page, str) else page:
            canvas.setFont("Helvetica", size)
            canvas.drawString(x, y, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def text_of(data: bytes) -> str:
    return "\n".join(read(data).lines)


def on_a_line(*parts: tuple[float, float, float, str]) -> list[tuple[float, float, float, str]]:
    """Texts by the gap before them, their height above the line, and their size."""
    x, places = 300.0, []
    for gap, y, size, text in parts:
        places.append((x + gap, 700 + y, size, text))
        x += gap + stringWidth(text, "Helvetica", size)
    return places


@pytest.mark.parametrize(("parts", "text"), [
    ([(60, 0, 12, "30"), (-73, 0, 12, "20"), (-73, 0, 12, "10")], "30 20 10"),
    ([(0, 0, 12, "Total"), (50, 0, 12, "1 234"), (6, 0, 12, "56")], "Total 1 234 56"),
    ([(0, 0, 12, "sat"), (-38, 0, 12, "cat"), (-44, 0, 12, "The")], "The cat sat"),
    ([(0, 0, 12, "num"), (0.3, 0, 12, "ber")], "number"),
    ([(0, 0, 12, "holds 2"), (0, 4, 7, "10"), (3.3, 0, 12, "coins")], "holds 2^10 coins"),
    ([(0, 0, 12, "10"), (0.5, 4, 7, "-5"), (0, 0, 12, " m")], "10^-5 m"),
    ([(0, 0, 12, "built in 1987"), (0, 4, 7, "3"), (3.3, 0, 12, "by")], "built in 1987[3] by"),
    ([(0, 0, 12, "H"), (0, -2, 7, "2"), (0, 0, 12, "O")], "H_2O"),
    ([(0, 0, 12, "x"), (0, -2, 7, "1"), (0, 4, 7, "2"), (3.3, 0, 12, "is")], "x_1^2 is"),
    ([(0, 0, 12, "log"), (0, -2, 7, "2"), (3.3, 0, 12, "64")], "log_2 64"),
    ([(0, 4, 7, "1"), (0, 0, 12, "See the annex")], "1 See the annex"),
    ([(1.5 + 4 * (n == 5), 0, 12, figure) for n, figure in enumerate("11.05at")], "11.05 at"),
    ([(0, 0, 12, "an exam-"), (-50, -14, 12, "ple of 1990-"), (-60, -28, 12, "1995")],
     "an example\nof 1990-\n1995"),
    ([(0, 0, 12, "one"), (-20, -14, 12, "two"), (-20, -28, 12, "three"), (-20, -60, 12, "four")],
     "one\ntwo\nthree\n\nfour"),
    ([(0, -line, 12, f"line at {line}") for line in (0, 14, 42, 56, 84, 112)],
     "line at 0\nline at 14\n\nline at 42\nline at 56\n\nline at 84\n\nline at 112"),
])  # fmt: skip
def test_places_decide_what_belongs_together(parts, text):
    assert text_of(drawn(on_a_line(*parts))) == text


COLUMNS = (
    "Last year 214 ships came to|tons of cod, and 88 tons of\n"
    "our harbour, 37 more than in|crab. On 30 days the storm\n"
    "2022. The new pier of 480 m|was too strong, and only 9\n"
    "was opened in May. It cost|boats went out. The prices\n"
    "6.3 million, and there are|rose to 7.20 at the end."
)


@pytest.mark.parametrize(("rows", "is_prose"), [
    (COLUMNS, True), (COLUMNS.replace(". ", " "), False),
    ("check the oil|once a month\nclean the filter|each second week\n" * 3, False),
])  # fmt: skip
def test_columns_of_prose_are_read_one_after_the_other(rows, is_prose):
    cells = [row.split("|") for row in rows.splitlines()]
    places = [
        (72 + 200 * column, 700 - 14 * number, 12, text)
        for number, row in enumerate(cells)
        for column, text in enumerate(row)
    ]
    across = "\n".join(map(" ".join, cells))
    down = "\n\n".join(map("\n".join, zip(*cells, strict=True)))
    assert text_of(drawn(places)) == (down if is_prose else across)


def with_glyphs(data: bytes, first: str, *glyphs: str) -> bytes:
    """The PDF with glyphs in place of a character and those that follow it."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    [font] = writer.pages[0]["/Resources"]["/Font"].values()
    name, number = pypdf.generic.NameObject, pypdf.generic.NumberObject
    differences = [number(ord(first)), *map(name, glyphs)]
    encoding = {name("/Differences"): pypdf.generic.ArrayObject(differences)}
    font.get_object()[name("/Encoding")] = pypdf.generic.DictionaryObject(encoding)
    return written(writer)


def test_ligatures_are_letters():
    assert text_of(with_glyphs(drawn("e#cient $ow"), "#", "/ffi", "/fl")) == "efficient flow"


def test_a_line_from_right_to_left_is_read_so():
    places = [(100.0, 700.0, 12.0, "8"), (120.0, 700.0, 12.0, "#$")]
    data = with_glyphs(drawn(places), "#", "/afii57664", "/afii57665")
    word, number = text_of(data).split()
    assert {*word} == {"א", "ב"} and number == "8"


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_text_is_read_in_its_direction(turn):
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    canvas.translate(300, 400)
    canvas.rotate(turn)
    for y, line in ((0, ("the", "first")), (-14, ("the", "second"))):
        for x, word in enumerate(line):
            canvas.drawString(30 * x, y, word)
    canvas.save()
    assert text_of(out.getvalue()) == "the first\nthe second"


def test_fields_are_beside_their_labels():
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    form = canvas.acroForm
    canvas.drawString(72, 720, "Ship:")
    form.textfield(name="ship", value="Petrel Nine", x=120, y=715, width=200, height=18)
    for x, name, is_checked in ((72, "Accept", True), (150, "Decline", False)):
        form.checkbox(name=name, checked=is_checked, x=x, y=690, size=12)
        canvas.drawString(x + 18, 692, name)
    canvas.drawString(72, 660, "Color:")
    options = ["cobalt", "amber"]
    form.choice(name="c", value="cobalt", options=options, x=120, y=655, width=80, height=18)
    canvas.drawString(72, 630, "Password:")
    form.textfield(name="p", value="sesame", fieldFlags="password", x=140, y=625, height=18)
    canvas.save()
    text = text_of(out.getvalue())
    assert text == "Ship: Petrel Nine\n[x] Accept [ ] Decline\nColor: cobalt\nPassword:"


@pytest.mark.parametrize("is_hidden", [False, True])
def test_the_text_of_annotations_is_read_unless_they_are_hidden(is_hidden):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(drawn("The harbour opens at dawn.")))
    note = FreeText(text="Gate 77 is closed.", rect=(72, 500, 300, 520))
    appearance = pypdf.generic.StreamObject()
    appearance.set_data(b"BT /F1 12 Tf 2 5 Td (Gate 77 is closed.) Tj ET")
    name = pypdf.generic.NameObject
    box = pypdf.generic.ArrayObject(map(pypdf.generic.NumberObject, (0, 0, 228, 20)))
    appearance |= {
        name("/Type"): name("/XObject"),
        name("/Subtype"): name("/Form"),
        name("/BBox"): box,
        name("/Resources"): writer.pages[0]["/Resources"],
    }
    stream = writer._add_object(appearance)
    note[name("/AP")] = pypdf.generic.DictionaryObject({name("/N"): stream})
    note[name("/F")] = pypdf.generic.NumberObject(2 if is_hidden else 4)
    writer.add_annotation(0, note)
    text = text_of(written(writer))
    assert ("Gate 77 is closed." in text) is not is_hidden
    assert "The harbour opens at dawn." in text


def test_damaged_pages_are_named_and_the_others_are_read():
    data = drawn("one", "two", "three", "four")
    kids = data.index(b"/Kids [ ") + len(b"/Kids [ ")
    document = read(data[:kids] + b"99" + data[data.index(b" ", kids) :])
    assert [block.page for block in document.blocks] == [2, 3, 4]
    assert document.notes == ("1 of 4 pages is damaged: 1",)


@pytest.mark.parametrize("change", [b"\1" * 30, b""], ids=["other", "cut"])
@pytest.mark.parametrize("has_text", [True, False])
def test_pages_whose_content_is_broken_are_named(change, has_text):
    data = bytearray(pdf_of(1))
    start = [found.end() for found in re.finditer(rb"\bstream\r?\n", data)][1]
    end = data.index(b"endstream", start)
    place = (start + end) // 2 if has_text else start
    data[place:end] = change.ljust(end - place)
    document = read(bytes(data))
    assert document.notes == ("1 of 5 pages is damaged: 2",)
    assert {1, 3, 4, 5} <= {block.page for block in document.blocks}
    assert read(pdf_of(1)).notes == ()
