"""Files that are not read are named by their kind."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rolebundle.ingest import formats
from rolebundle.ingest.readers import reader_for, reader_names
from support.commands import invoke
from support.corpora import scratch_folder

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)

FILES = {
    "a.png": (PNG, "png: image"),
    "photo": (PNG, "image"),
    "letter.doc": (OLE, "doc: old Word format; save it as docx"),
    "sheet.XLS": (OLE, "xls: old Excel format; save it as xlsx"),
    "song.mp3": (b"ID3\xff\xfb" * 99, "mp3: audio"),
    "all.tar.gz": (b"\x1f\x8b\x08\x00\x00", "tar: archive; unpack it"),
    "a.rtf": (b"{\\rtf1\\ansi Hello}", "rtf: Rich Text; save it as docx"),
    "flat.fodt": (
        b"<?xml version='1.0'?>\n<office:document/>",
        "fodt: flat OpenDocument; save it as",
    ),
    "a.svg": (b"<?xml version='1.0'?>\n<svg><path d='M0 0'/></svg>", "svg: image"),
    "mail.pst": (b"!BDN" + bytes(99), "pst: Outlook mailbox; export it as mbox"),
    "program": (b"\x7fELF" + bytes(99), "program"),
    "long.mp4": (b"x" * 5000, "mp4: video"),
    "what": (bytes(99), "binary data, not text"),
}


def test_what_is_not_read_is_named() -> None:
    with scratch_folder() as folder:
        tree = folder / "tree"
        tree.mkdir()
        for name, (data, _) in FILES.items():
            (tree / name).write_bytes(data)
        with zipfile.ZipFile(tree / "all.zip", "w") as archive:
            archive.writestr("a.txt", "text")
        (tree / "notes.doc").write_text("A letter that is plain text.\n")
        (tree / "icon.rtf").write_text("Also plain text.\n")
        report = invoke(
            "ingest",
            tree,
            "--lexical-only",
            "--max-size",
            "4000",
            "--db",
            folder / "c.db",
            "--json",
        ).json()
    messages = {skip["path"]: skip["message"] for skip in report["skipped"]}
    assert report["added"] == 2
    for name, (_, message) in FILES.items():
        assert messages[name].startswith(f"{name}: {message}")
    assert messages["all.zip"] == "all.zip: zip: archive; unpack it"
    codes = {skip["path"]: skip["code"] for skip in report["skipped"]}
    assert {codes[name] for name in FILES} == {"unsupported", "binary"}
    assert codes["what"] == "binary"


def test_a_cap_under_which_no_file_fits_is_refused() -> None:
    """Else a second ingest would remove every document."""
    with scratch_folder() as folder:
        (folder / "a.md").write_text("# A\n")
        assert invoke("ingest", folder, "--max-size", "0", "--db", folder / "c.db").code == 2


def test_every_reader_is_listed() -> None:
    listing = formats.formats()
    assert sorted(item.name for item in listing.formats) == list(reader_names())
    assert [item.name for item in listing.formats if not item.suffixes] == ["man", "separated"]


def test_no_suffix_of_a_document_is_called_unsupported() -> None:
    read = {
        suffix
        for kind in formats.formats().unsupported
        for suffix in kind.suffixes
        if (reader := reader_for(f"a{suffix}")) and reader.name != "man"
    }
    assert read == {".dot"}  # text is Graphviz, and Word's old templates are not text


@pytest.mark.parametrize("name", [".pdf", ".docx", ".mbox", ".ipynb"])
def test_the_command_lists_formats(name: str, tmp_path: Path) -> None:
    answer = invoke("corpus", "formats", "--json").json()
    assert any(name in item["suffixes"] for item in answer["formats"])
    assert name in invoke("corpus", "formats").out
