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
    options = "--lexical-only", "--workers", "1"
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


@pytest.mark.parametrize(
    ("names", "failed", "code"),
    [
        (["cut.pdf"], ["cut.pdf"], 10),
        (["a.png"], ["a.png"], 10),
        (["a.md", "lines.jsonl"], ["lines.jsonl"], 10),
        (["a.md"], [], 0),
        (["."], [], 0),
    ],
)
def test_a_named_file_that_is_not_ingested_is_a_failure(
    names: list[str], failed: list[str], code: int, tmp_path: Path
) -> None:
    """A folder with skipped files is none, and neither is an update of such a file."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, data in {
        "a.md": b"# A\n\nText.\n",
        "a.png": b"\x89PNG\r\n\x1a\n" + bytes(99),
        "cut.pdf": b"%PDF-1.4\n",
        "lines.jsonl": b"{\nno line of it\n",
    }.items():
        (tree / name).write_bytes(data)
    db = tmp_path / "c.db"
    out = invoke("ingest", *(tree / name for name in names), "--lexical-only", "--db", db, "--json")
    assert out.code == code, out.err
    assert out.json()["failed"] == [str(tree / name) for name in failed]
    assert ("[not_ingested]" in out.err) == bool(failed)
    assert out.json()["documents"] == ("a.md" in names or names == ["."])
    assert invoke("ingest", "--db", db).code == 0


def test_a_named_folder_that_cannot_be_listed_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rolebundle.ingest.walk.os.scandir", refused)
    out = invoke("ingest", tmp_path, "--lexical-only", "--db", tmp_path.with_suffix(".db"))
    assert out.code == 10
    assert "cannot be listed; check its permissions (Permission denied)" in out.err
