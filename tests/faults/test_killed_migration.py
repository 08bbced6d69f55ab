"""Rows 2 and 16: an older schema is backed up, then migrated, and a kill leaves nothing between."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
import sqlite_vec

from rolebundle.errors import WrongFile
from rolebundle.storage import opening
from rolebundle.storage.opening import open_reader, open_writer
from support.amounts import rounds
from support.commands import invoke
from support.corpora import build, document, scratch_folder
from support.fake_embedder import HashingProvider
from support.killing import run_child
from support.old_schema import of_schema_1
from support.sound import assert_sound, contents

SECOND = """
ALTER TABLE document ADD COLUMN reviewed TEXT;
CREATE TABLE review (id INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO review (note) SELECT 'review ' || i FROM n;
UPDATE document SET reviewed = 'no';
"""


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A filled corpus of the newest schema there is, which is about to become an older one."""
    with scratch_folder() as folder:
        texts = (f"the token number {n} of the kernel" for n in range(30))
        documents = (document(f"d{n}", [text]) for n, text in enumerate(texts))
        yield build(folder, documents, HashingProvider(), name="old.db")


@pytest.fixture
def newer(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """One more migration than this version of the package has."""
    known = opening.migrations()
    (tmp_path / "migrations").mkdir()
    for entry in known:
        (tmp_path / "migrations" / entry.name).write_bytes(entry.read_bytes())
    added = tmp_path / "migrations" / f"{len(known) + 1:04}_second.sql"
    added.write_text(SECOND, encoding="utf-8")
    monkeypatch.setattr(opening, "data_folder", lambda name: tmp_path / name)
    forget_migrations()
    yield len(known) + 1
    monkeypatch.undo()
    forget_migrations()


def forget_migrations() -> None:
    opening.migrations.cache_clear()
    opening.corpus_format.cache_clear()


def backups(db: Path) -> list[Path]:
    return sorted(db.parent.glob(f"{db.name}.schema-*"))


def test_an_older_corpus_is_refused_for_reading_and_unchanged(old: Path, newer: int) -> None:
    before = old.read_bytes()
    with pytest.raises(WrongFile) as caught:
        open_reader(old)
    assert (caught.value.code, caught.value.exit_code) == ("older_schema", 8)
    assert "rolebundle ingest" in caught.value.hint
    assert invoke("retrieve", "token", "--lexical-only", "--db", old).code == 8
    assert invoke("status", "--check", "--db", old).code == 8
    assert old.read_bytes() == before
    assert backups(old) == []


def test_an_older_corpus_is_backed_up_then_migrated(
    old: Path, newer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_writer(old).close()
    with open_reader(old) as corpus:
        assert corpus.value("PRAGMA user_version") == newer
        assert corpus.value("SELECT count(*) FROM review") == 20000
        assert corpus.value("SELECT count(*) FROM document WHERE reviewed = 'no'") == 30
    assert_sound(old)
    [backup] = backups(old)
    assert backup.name == f"old.db.schema-{newer - 1}.bak"
    after = contents(old)
    # The version that made it still reads the backup.
    monkeypatch.undo()
    forget_migrations()
    assert contents(backup) == after
    assert_sound(backup)


def test_an_earlier_backup_keeps_its_name_and_stops_nobody(old: Path, newer: int) -> None:
    earlier = old.with_name(f"old.db.schema-{newer - 1}.bak")
    earlier.write_text("mine", encoding="utf-8")
    open_writer(old).close()
    assert earlier.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in backups(old)] == [earlier.name, f"{earlier.name}.2"]


def test_a_migration_that_fails_leaves_the_old_schema(
    old: Path, newer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = opening.migrations()[-1]
    script.write_text(f"{SECOND}; INSERT INTO nowhere VALUES (1);", encoding="utf-8")
    with pytest.raises(Exception, match="nowhere"):
        open_writer(old)
    monkeypatch.undo()
    forget_migrations()
    assert_sound(old)
    with open_reader(old) as corpus:
        assert corpus.value("SELECT count(*) FROM sqlite_schema WHERE name = 'review'") == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@rounds(3, 100)
def test_kill_at_any_moment_leaves_old_or_new(old: Path, newer: int, rounds: int) -> None:
    image = old.read_bytes()
    seconds = run_child(lambda _: open_writer(old).close()).seconds
    expected = contents(old)
    chance = random.Random(3)
    versions = set()
    for number in range(rounds):
        db = old.with_name(f"killed-{number}.db")
        db.write_bytes(image)
        run_child(lambda _, db=db: open_writer(db).close(), chance.uniform(0, seconds))
        versions.add(state_of(db, newer))
        open_writer(db).close()
        assert state_of(db, newer) == newer
        assert contents(db) == expected
        assert_sound(db)
        # Complete backups only: half a copy never has a backup's name.
        for backup in backups(db):
            if ".partial" in backup.name:  # and the journal of one
                continue
            assert state_of(backup, newer) == newer - 1
    assert newer - 1 in versions


def state_of(db: Path, newer: int) -> int:
    """The schema's version, once everything in the file agrees with it."""
    with apsw.Connection(str(db)) as connection:
        version = connection.pragma("user_version")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        columns = {row[1] for row in connection.execute("PRAGMA table_info(document)")}
        assert connection.pragma("integrity_check") == "ok"
        if version == newer:
            assert "review" in tables
            assert "reviewed" in columns
            assert connection.execute("SELECT count(*) FROM review").get == 20000
        else:
            assert version == newer - 1
            assert "review" not in tables
            assert "reviewed" not in columns
    connection.close()
    return int(version)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@rounds(3, 100)
def test_kill_while_a_corpus_is_made(rounds: int) -> None:
    """The first moments of a file: whatever a kill leaves, the next run fills."""
    chance = random.Random(4)
    with scratch_folder() as folder:
        seconds = run_child(lambda _: open_writer(folder / "whole.db").close()).seconds
        for number in range(rounds):
            db = folder / f"{number}.db"
            run_child(lambda _, db=db: open_writer(db).close(), chance.uniform(0, seconds))
            open_writer(db).close()
            assert_sound(db)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@rounds(3, 100)
def test_kill_while_documents_are_put_into_compartments(rounds: int) -> None:
    """From the first schema to the second: one index, or one a compartment, and nothing between."""
    scopes = ("shared", "hr", "board")
    documents = [
        document(f"d{n}", [f"the token number {n}", f"part {n % 7}"], scope=scopes[n % 3])
        for n in range(120)
    ]
    chance = random.Random(5)
    with scratch_folder() as folder:
        old, new = of_schema_1(folder, documents, HashingProvider())
        image, before, expected = old.read_bytes(), plain_contents(old), contents(new)
        seconds = run_child(lambda _: open_writer(old).close()).seconds
        assert contents(old) == expected
        versions = set()
        for number in range(rounds):
            db = folder / f"killed-{number}.db"
            db.write_bytes(image)
            # The first one is killed at once, so that at least one is left with the old schema.
            moment = chance.uniform(0, seconds) if number else 0
            run_child(lambda _, db=db: open_writer(db).close(), moment)
            versions.add(schema_of(db))
            if schema_of(db) == 1:
                assert plain_contents(db) == before
            elif schema_of(db) == opening.latest_version():
                assert contents(db) == expected
            open_writer(db).close()
            assert contents(db) == expected
            assert_sound(db)
            for backup in db.parent.glob(f"{db.name}.schema-1.bak*"):
                if ".partial" not in backup.name:
                    assert (schema_of(backup), plain_contents(backup)) == (1, before)
        assert 1 in versions


def schema_of(db: Path) -> int:
    with apsw.Connection(str(db)) as connection:
        version = connection.pragma("user_version")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert connection.pragma("integrity_check") == "ok"
    connection.close()
    assert ("compartment" in tables) == (version > 1)
    assert ("lexical" in tables, "vectors_1" in tables) == (version == 1, version == 1)
    assert ("lexical_1" in tables, "vectors_1_1" in tables) == (version > 1, version > 1)
    return int(version)


def plain_contents(db: Path) -> list[object]:
    """What a corpus of the first schema answers from."""
    with apsw.Connection(str(db)) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        tables_read = [
            connection.execute(f"SELECT * FROM {table}").fetchall()
            for table in ("document", "chunk", "embedded", "corpus_state", "embedding_index")
        ]
        tables_read.append(connection.execute("SELECT rowid, embedding FROM vectors_1").fetchall())
        for word in ("token", "part", "d7"):
            tables_read.append(
                connection.execute(
                    "SELECT rowid, bm25(lexical) FROM lexical WHERE lexical MATCH ?", (word,)
                ).fetchall()
            )
    connection.close()
    return tables_read
