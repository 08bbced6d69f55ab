"""The schema's history. Kills, backups and older schemas: tests/faults/test_killed_migration.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from rolebundle.corpus import migrate
from rolebundle.corpus.connection import open_writer
from rolebundle.errors import CorpusCorrupt, StorageError, WrongFile
from support.commands import CHECKOUT
from support.corpora import build, document


def test_the_files_are_the_checkouts_and_numbered() -> None:
    found = [entry.name for entry in migrate.migrations()]
    assert found == sorted(entry.name for entry in (CHECKOUT / "migrations").glob("*.sql"))
    assert [int(name[:4]) for name in found] == list(range(1, len(found) + 1))
    assert migrate.latest_version() == len(found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(migrate, "data_folder", lambda _: tmp_path)
    migrate.migrations.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    migrate.migrations.cache_clear()


def test_a_gap_in_the_numbers_is_found(folder: Path) -> None:
    for name in ("0001_a.sql", "0003_b.sql"):
        (folder / name).touch()
    with pytest.raises(AssertionError, match="0003_b"):
        migrate.migrations()


def test_what_is_no_migration_is_passed_over(folder: Path) -> None:
    for name in ("0001_a.sql", "README.md", "0002_B.sql", "2_b.sql", "0002_b.sql~"):
        (folder / name).touch()
    assert [entry.name for entry in migrate.migrations()] == ["0001_a.sql"]


def test_every_table_of_ours_is_strict(tmp_path: Path) -> None:
    with open_writer(tmp_path / "c.db") as corpus:
        tables = corpus.rows(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE %' "
            "AND name NOT LIKE 'lexical%' AND name NOT LIKE 'vectors%' AND name NOT LIKE 'sqlite%'"
        )
        assert len(tables) >= 7
        for name, sql in tables:
            assert re.search(r"\)\s*STRICT", sql), name
        assert corpus.rows("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view')") == []
        assert corpus.db.pragma("user_version") == migrate.latest_version()
        assert corpus.db.pragma("application_id") == migrate.APPLICATION_ID


def test_each_corpus_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = set()
    for name in "ab":
        with open_writer(tmp_path / name) as corpus:
            ids.add(corpus.value("SELECT corpus_id FROM corpus_state"))
        with open_writer(tmp_path / name) as corpus:
            ids.add(corpus.value("SELECT corpus_id FROM corpus_state"))
    assert len(ids) == 2


def test_check_identity(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    db = apsw.Connection(str(path))
    with pytest.raises(WrongFile, match="another application"):
        migrate.check_identity(db, path)
    db.pragma("application_id", migrate.APPLICATION_ID)
    migrate.check_identity(db, path)
    db.pragma("user_version", migrate.latest_version() + 1)
    with pytest.raises(WrongFile, match="this version knows"):
        migrate.check_identity(db, path)
    db.pragma("user_version", migrate.latest_version())
    db.execute("CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(CorpusCorrupt, match="view 'v'"):
        migrate.check_identity(db, path)
    db.close()


def test_a_backup_is_whole_or_not_there(tmp_path: Path) -> None:
    db = build(tmp_path, [document("d0", ["the token"])])
    with open_writer(db) as corpus:
        migrate.back_up(corpus.db, tmp_path / "copy.bak")
        migrate.back_up(corpus.db, tmp_path / "copy.bak")
        with pytest.raises((StorageError, apsw.Error)):
            migrate.back_up(corpus.db, tmp_path / "none" / "copy.bak")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.bak", "copy.bak.2", db.name]
    for name in ("copy.bak", "copy.bak.2"):
        with open_writer(tmp_path / name) as corpus:
            assert corpus.value("SELECT content FROM chunk") == "the token"
