"""Every answer about a PDF names the page. The PDFs are made by ReportLab."""

import io
from functools import cache
from typing import Any

import pypdf
import pytest
from reportlab.lib.styles import getSampleStyleSheet
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
    assert read(changed(data, **dates)).inferred["updated_at"] == "2026-02-03T04:05:06+00:00"
    dates["ModDate"] = "next week"
    assert read(changed(data, **dates)).inferred["updated_at"] == "2025-01-02T03:04:05+01:00"
