"""Every answer about a PDF names the page. The PDFs are made by ReportLab."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pypdf
import pytest
from reportlab.lib.pagesizes import A4, letter
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import (
    Flowable,
    KeepTogether,
    PageBreak,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
)

from rolebundle.errors import DocumentError
from rolebundle.ingest.parsed import ParsedDocument
from support.commands import invoke
from support.corpora import scratch_folder
from support.reading import read_document

STYLES = getSampleStyleSheet()
FILLER = (
    "The council met in the old hall and discussed the budget of the coming year at length. "
    "Most members agreed that repairs should begin before winter, and that costs be shared. "
)
FACTS = 5
"""In each PDF."""


class Mark(Flowable):
    """Notes the page on which it is drawn."""

    def __init__(self, name: str, pages: dict[str, int]) -> None:
        super().__init__()
        self.name, self.pages = name, pages

    def draw(self) -> None:
        self.pages[self.name] = self.canv.getPageNumber()


def pdf_of(number: int, pages: dict[str, int]) -> bytes:
    """A document with five facts; ``pages`` gets the page of each, as the tool placed it."""
    random = Random(number)
    out = io.BytesIO()
    story: list[Any] = []
    for part in range(FACTS):
        name = f"lock{number:02}x{part}"
        sentence = f"The opening code of {name} is {number * 100 + part}."
        text: list[Any] = [
            Paragraph(FILLER * random.randint(1, 9), STYLES["Normal"])
            for _ in range(random.randint(2, 9))
        ]
        paragraphs = (
            Table([["item", "cost"], [sentence, "7"]])
            if random.random() < 0.3
            else Paragraph(sentence, STYLES["Normal"])
        )
        text.insert(random.randint(0, len(text)), KeepTogether([Mark(name, pages), paragraphs]))
        story += [Paragraph(f"Part {part}", STYLES["Heading1"]), Spacer(1, 9), *text]
        if random.random() < 0.5:
            story.append(PageBreak())
    template = SimpleDocTemplate(
        out,
        pagesize=random.choice([A4, letter]),
        title="untitled",
        pageCompression=number % 2,
        invariant=1,
    )

    def footer(canvas: Any, _template: object) -> None:
        canvas.drawString(72, 30, f"page {canvas.getPageNumber()} of the minutes")

    template.build([Paragraph(f"Minutes {number}", STYLES["Title"]), *story], footer, footer)
    return out.getvalue()


@cache
def minutes() -> bytes:
    """One of the documents."""
    return pdf_of(1, {})


def test_the_cited_page_is_the_one_that_has_the_fact() -> None:
    pages: dict[str, int] = {}
    with scratch_folder() as folder:
        (folder / "minutes").mkdir()
        for number in range(2):
            (folder / "minutes" / f"m{number:02}.pdf").write_bytes(pdf_of(number, pages))
        db = folder / "c.db"
        assert invoke("ingest", folder / "minutes", "--lexical-only", "--db", db).code == 0
        for name, page in pages.items():
            request = (f"opening code of {name}", "--lexical-only", "--limit", "1", "--db", db)
            answer = invoke("retrieve", *request, "--format", "json").json()["selected"][0]
            assert name in answer["content"]
            assert answer["title"] == f"Minutes {int(name[4:6])}"
            assert answer["citation"]["anchor"] == f"p. {page}", name
    assert len(pages) == 2 * FACTS


@pytest.fixture(scope="module")
def corpus() -> Iterator[tuple[Path, int]]:
    """A corpus of one PDF, and the page of its last fact."""
    pages: dict[str, int] = {}
    with scratch_folder() as folder:
        (folder / "m.pdf").write_bytes(pdf_of(0, pages))
        invoke("ingest", folder / "m.pdf", "--lexical-only", "--db", folder / "c.db")
        yield folder / "c.db", pages["lock00x4"]


def test_every_answer_names_the_page(corpus: tuple[Path, int]) -> None:
    db, page = corpus
    common = ("lock00x4", "--lexical-only", "--limit", "1", "--db", db)
    for detail in ("ids", "compact", "full"):
        answer = invoke("retrieve", *common, "--detail", detail, "--format", "json").json()
        assert answer["selected"][0]["citation"]["anchor"] == f"p. {page}"
    for form in ("text", "prompt"):
        assert f"p. {page}" in invoke("retrieve", *common, "--format", form).out
    assert f"(p. {page})" in invoke("get", "m.pdf", "--db", db).out
    why = ("why", "m.pdf", "lock00x4", "--lexical-only", "--db", db)
    assert f"(p. {page})" in invoke(*why).out
    assert invoke(*why, "--json").json()["anchor"] == f"p. {page}"


def read(data: bytes) -> ParsedDocument:
    return read_document(data, "a.pdf")


def changed(data: bytes, **information: str) -> bytes:
    """The PDF with other metadata."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.add_metadata({f"/{key}": value for key, value in information.items()})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_block_is_on_one_page_and_its_lines_are_those_of_the_document() -> None:
    document = read(minutes())
    pages = [block.page for block in document.blocks]
    assert pages == sorted(pages) and len(set(pages)) > 1
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def test_unreadable_pdfs_have_their_codes() -> None:
    blank = io.BytesIO()
    SimpleDocTemplate(blank, invariant=1).build([Spacer(1, 9)])
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(minutes()))
    writer.encrypt("secret", algorithm="AES-256")
    protected = io.BytesIO()
    writer.write(protected)
    for data, code in (
        (blank.getvalue(), "no_text_layer"),
        (protected.getvalue(), "encrypted_pdf"),
        (b"%PDF-1.4 nothing", "unreadable_pdf"),
        (b"", "unreadable_pdf"),
    ):
        with pytest.raises(DocumentError, match=rf"\[{code}\]"):
            read(data)


def test_the_title_is_declared_or_the_largest_text() -> None:
    assert read(minutes()).inferred["title"] == "Minutes 1"
    for declared, title in (("Our minutes", "Our minutes"), ("Document1", "Minutes 1")):
        assert read(changed(minutes(), Title=declared)).inferred["title"] == title


def test_a_hidden_text_is_no_title() -> None:
    out = io.BytesIO()
    hidden = Paragraph('<font color="white" size="30">zebra47 secret</font>', STYLES["Title"])
    text = [Paragraph("Plain text of the page.", STYLES["Normal"])]
    SimpleDocTemplate(out, invariant=1).build([hidden, *text])
    document = read(out.getvalue())
    assert document.inferred["title"] == "Plain text of the page."
    assert "zebra47" in document.hidden[0].text


def test_the_date_is_that_of_the_last_change() -> None:
    data = minutes()
    dates = {"CreationDate": "D:20250102030405+01'00'", "ModDate": "D:20260203040506Z"}
    assert read(changed(data, **dates)).inferred["updated_at"] == "2026-02-03T04:05:06+00:00"
    dates["ModDate"] = "next week"
    assert read(changed(data, **dates)).inferred["updated_at"] == "2025-01-02T03:04:05+01:00"
