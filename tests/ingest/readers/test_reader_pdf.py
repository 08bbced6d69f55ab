import io

import pypdf
import pytest

from rolebundle.errors import DocumentError
from support.reading import read_document


def make_pdf(pages):
    """A PDF whose pages hold the given lines, written by hand."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, lines in enumerate(pages):
        operators = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 12 Tf 72 720 Td {operators}ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
            f" /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * i} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    xref = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R >>"
    return (
        out
        + (
            f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{xref}"
            f"trailer\n{trailer}\nstartxref\n{len(out)}\n%%EOF\n"
        ).encode()
    )


def read(data):
    return read_document(data, "a.pdf")


def refused(data):
    with pytest.raises(DocumentError) as caught:
        read(data)
    return caught.value.code


def test_a_block_is_on_one_page_and_its_lines_are_those_of_the_document():
    data = make_pdf([["first line", "second line"], [], ["third page"]])
    document = read(data)
    assert [(b.page, b.text) for b in document.blocks] == [
        (1, "first line\nsecond line"),
        (3, "third page"),
    ]
    for block in document.blocks:
        assert block.text == "\n".join(document.lines[block.start_line - 1 : block.end_line])


def rewritten(data, change):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_the_title_is_read_from_the_pdf():
    data = rewritten(make_pdf([["x"]]), lambda w: w.add_metadata({"/Title": "The title"}))
    assert read(data).inferred == {"title": "The title"}


def test_unreadable_pdfs_have_their_codes():
    plain = make_pdf([["secret"]])
    assert refused(rewritten(plain, lambda w: w.encrypt("password", algorithm="RC4-128"))) == (
        "encrypted_pdf"
    )
    assert refused(make_pdf([[], []])) == "no_text_layer"
    assert refused(b"%PDF-1.4 nothing") == "unreadable_pdf"
    assert refused(b"") == "unreadable_pdf"
