"""Opening: who waits for whom, what a transaction leaves, what every connection is set to."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, UsageError
from rolebundle.storage import sqlite
from rolebundle.storage.file import corpus_path
from rolebundle.storage.opening import (
    APPLICATION_ID,
    open_reader,
    open_writer,
)
from rolebundle.storage.sqlite import busy_timeout
from support.corpora import build, document


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("d0", ["the token"])])


def test_the_settings_of_a_writer(db: Path) -> None:
    with open_writer(db) as corpus:
        settings = {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "secure_delete": 1,
            "trusted_schema": 0,
            "cell_size_check": 1,
            "application_id": APPLICATION_ID,
        }
        assert {name: corpus.db.pragma(name) for name in settings} == settings
        assert corpus.writable


def test_a_reader_cannot_write(db: Path) -> None:
    before = db.read_bytes()
    with open_reader(db) as corpus:
        assert not corpus.writable
        for statement in (
            "DELETE FROM chunk",
            "CREATE TABLE x (a)",
            "PRAGMA user_version = 9",
            "INSERT INTO lexical_1 (lexical_1) VALUES ('rebuild')",
        ):
            with pytest.raises(StorageError) as caught:
                corpus.run(statement)
            assert caught.value.code == "read_only"
        with pytest.raises(StorageError), corpus.writing():
            corpus.run("DELETE FROM chunk")
    assert db.read_bytes() == before


def test_a_transaction_is_complete_or_has_no_effect(db: Path) -> None:
    with open_writer(db) as corpus:
        with pytest.raises(KeyError), corpus.writing():
            corpus.run("INSERT INTO source (source_id) VALUES ('x')")
            raise KeyError
        assert not corpus.db.in_transaction
        with corpus.writing():
            corpus.run("INSERT INTO source (source_id) VALUES ('y')")
        assert corpus.rows("SELECT source_id FROM source ORDER BY 1") == [("wiki",), ("y",)]


def test_a_transaction_inside_another_one_is_a_part_of_it(db: Path) -> None:
    with open_writer(db) as corpus:
        with pytest.raises(KeyError), corpus.writing():
            with corpus.writing():
                corpus.run("INSERT INTO source (source_id) VALUES ('x')")
            assert corpus.db.in_transaction
            raise KeyError
        assert corpus.rows("SELECT source_id FROM source") == [("wiki",)]
        # A snapshot must not become a transaction: its end would undo what was written.
        with corpus.reading(), pytest.raises(RolebundleError), corpus.writing():
            pass


def test_reading_is_one_snapshot(db: Path) -> None:
    with open_reader(db) as reader, open_writer(db) as writer, reader.reading():
        count = "SELECT count(*) FROM source"
        assert reader.value(count) == 1
        with writer.writing():
            writer.run("INSERT INTO source (source_id) VALUES ('x')")
        assert reader.value(count) == 1
        assert writer.value(count) == 2


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.db"
    open_writer(path).close()
    open_reader(path).close()
    with pytest.raises(StorageError) as caught:
        open_writer(path / "d.db")
    assert caught.value.exit_code == 6


def test_a_missing_file_a_folder_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.db", "corpus_missing"), (tmp_path, "corpus_is_folder")):
        with pytest.raises(UsageError) as caught:
            open_reader(path)
        assert caught.value.code == code
    with pytest.raises(UsageError):
        open_writer(tmp_path)
    (tmp_path / "empty.db").touch()
    with pytest.raises(CorpusCorrupt):
        open_reader(tmp_path / "empty.db")


def test_text_that_is_not_utf_8_is_reported_as_damage(db: Path) -> None:
    with apsw.Connection(str(db)) as behind:
        behind.execute("UPDATE chunk SET content = CAST(x'ff00fe' AS TEXT)")
    behind.close()
    with open_reader(db) as corpus, pytest.raises(CorpusCorrupt, match="UTF-8"):
        corpus.rows("SELECT content FROM chunk")


def test_busy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    name = sqlite.BUSY_TIMEOUT_ENVIRONMENT
    monkeypatch.delenv(name, raising=False)
    assert busy_timeout() == sqlite.BUSY_TIMEOUT_MS == 10_000
    for text, expected in (("0", 0), ("250", 250), ("", 10_000)):
        monkeypatch.setenv(name, text)
        assert busy_timeout() == expected


def test_the_path_of_the_corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROLEBUNDLE_DB", "/from/the/environment.db")
    assert corpus_path("option.db") == Path("option.db")
    assert corpus_path() == Path("/from/the/environment.db")
    assert corpus_path("~/x.db") == tmp_path / "x.db"
    assert corpus_path("~nobody-of-that-name/x.db") == Path("~nobody-of-that-name/x.db")
    monkeypatch.setenv("ROLEBUNDLE_DB", "")
    assert corpus_path().name == "corpus.db"
    for name in ("a\0b", "a\udcff"):
        with pytest.raises(UsageError):
            corpus_path(name)
    assert os.fspath(corpus_path(tmp_path / "y.db")) == str(tmp_path / "y.db")
