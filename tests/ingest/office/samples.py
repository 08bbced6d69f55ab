"""Office documents and e-books by the suffix of their files."""

from ingest.office.ebooks import EPUB, VISIBLE_EPUB
from ingest.office.opendocuments import ODT, VISIBLE_ODT
from ingest.office.slides import PPTX, VISIBLE_PPTX
from ingest.office.word import DOCX, VISIBLE_DOCX
from ingest.office.workbooks import VISIBLE_XLSX, XLSX

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
    "xlsx": XLSX["tiny"],
}
