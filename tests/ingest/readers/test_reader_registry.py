import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.ingest.readers import mail_reader_for, reader_for


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b.md", "markdown"),
        ("a/B.MD", "markdown"),
        ("a/b.txt", "text"),
        ("_sources/index.rst.txt", "rst"),
        ("b.rst", "rst"),
        ("b.xhtml", "html"),
        ("b.pdf", "pdf"),
        ("b.DOCX", "docx"),
        ("b.xlsm", "xlsx"),
        ("b.pptx", "pptx"),
        ("b.ods", "opendocument"),
        ("b.epub", "epub"),
        ("b.json", "json"),
        ("b.ndjson", "jsonl"),
        ("b.py", "source"),
        ("man3/printf.3posix", "man"),
        ("app.log.1", "man"),
        ("README", "text"),
        ("deep/LICENSE", "text"),
        ("Makefile", "source"),
    ],
)
def test_readers_by_file_name(path, name):
    reader = reader_for(path)
    assert reader is not None
    assert reader.name == name


@pytest.mark.parametrize("path", ["a.bin", "a", "a.tar.gz", "README.xyz", ".md/", ""])
def test_an_unknown_suffix_has_no_reader(path):
    assert path == ".md/" or reader_for(path) is None


def test_an_unknown_name_is_an_error_that_lists_the_names():
    with pytest.raises(ConfigurationError) as caught:
        reader_for("a.md", "wordstar")
    assert caught.value.code == "unknown_reader"
    assert "markdown" in caught.value.hint


MESSAGE = b"Subject: x\nFrom: a@b.c\nMessage-ID: <1@b>\n\ntext\n"


@pytest.mark.parametrize(
    ("path", "data", "name"),
    [
        ("Mail/Inbox", b"From - Mon Jan 01 09:30:00 2024\r\n" + MESSAGE, "mbox"),
        ("cur/1700000000.M1P2.host:2,S", MESSAGE, "eml"),
        ("Mail/Inbox", MESSAGE, "eml"),
        ("fix.patch", b"From 0123 Mon Sep 17 00:00:00 2001\n" + MESSAGE, None),
        ("README", b"From: here to there\n\nMessage-ID: x\n", None),
        ("README", b"Name: x\nFrom: y\n\ntext", None),
        ("notes", b"From noon at 09:30 we wait.\n", None),
    ],
)
def test_mail_without_a_suffix_is_recognized(path, data, name):
    reader = mail_reader_for(path, data)
    assert (reader.name if reader else None) == name
