"""Why a file was skipped is a plain sentence: what is wrong with it, then what to do."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from rolebundle.ingest.readers import reader_names, suffixes_of
from support.commands import invoke


def archive(content: str) -> bytes:
    """An archive whose members have the names of those of documents, without a document."""
    names = "word/document.xml", "xl/workbook.xml", "ppt/presentation.xml", "content.xml"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name in names if content else ["a.txt"]:
            file.writestr(name, content)
    return data.getvalue()


BROKEN = {
    "bytes": bytes(range(128, 256)) * 5,
    "markup": b"<div>" * 300,
    "text": b'{"a": [1,\n}',
    "front_matter": b"---\ntrust_tier: [preferred\nx: : y\n---\nText.\n",
    "members": archive(""),
    "xml": archive("<a><b>"),
    "cut": archive("<a/>")[:-20],
}


def test_reasons_are_plain_sentences(tmp_path: Path) -> None:
    for reader in reader_names():
        for suffix in (*suffixes_of(reader)[:1], ".txt.gz"):
            for name, data in BROKEN.items():
                (tmp_path / f"{name}{suffix}").write_bytes(data)
    db = tmp_path.with_suffix(".db")
    options = "--lexical-only", "--no-scan", "--workers", "1"
    report = invoke("ingest", tmp_path, *options, "--db", db, "--json").json()
    entries = [*report["skipped"], *report["notes"]]
    assert len({entry["code"] for entry in entries}) > 12
    for entry in entries:
        plain, _, raw = entry["message"].partition(" (")
        assert not raw or raw.endswith(")"), entry
        assert not re.search(r"\w(Error|File)\b|codec|pypdf|libxml", plain), entry
        has_step = "; " in plain or entry["code"] in ("unsupported", "note")
        assert has_step, entry


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub", "a.pdf"])
def test_a_document_without_its_parts_is_called_damaged(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BROKEN["members"])
    out = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path.with_suffix(".db"))
    assert f"{name}: it is empty, damaged, or another kind of file" in out.err
