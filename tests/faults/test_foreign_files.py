"""Rows 14, 15 and 17: files of others, of newer versions, and with a hostile schema are refused."""

from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.damaged_files import codes_of, commands, run_without_change, tamper


def foreign(path: Path, *statements: str) -> Path:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


FOREIGN = {
    "another application": ("PRAGMA application_id = 252006673", "CREATE TABLE t (a)"),
    "no application": ("CREATE TABLE chunk (a)", "INSERT INTO chunk VALUES ('mine')"),
    "in WAL mode": ("PRAGMA journal_mode = wal", "CREATE TABLE t (a)"),
    "our version, not our id": ("PRAGMA user_version = 1", "CREATE TABLE document (a)"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", FOREIGN)
def test_another_applications_file(tree: Path, tmp_path: Path, case: str) -> None:
    db = foreign(tmp_path / "c.db", *FOREIGN[case])
    data = db.read_bytes()
    for command in (*commands(tree), ("corpus", "doctor")):
        outcome = invoke(*command, "--db", db)
        assert outcome.code == 8
        assert "[foreign_file]" in outcome.err
        assert db.read_bytes() == data


@pytest.mark.parametrize("version", [2, 3, 1000])
def test_a_newer_schema(image: bytes, tree: Path, tmp_path: Path, version: int) -> None:
    db = tmp_path / "c.db"
    db.write_bytes(image)
    with apsw.Connection(str(db)) as connection:
        connection.pragma("user_version", int(connection.pragma("user_version")) + version - 1)
    connection.close()
    data = db.read_bytes()
    for command in (*commands(tree), ("corpus", "doctor")):
        outcome = run_without_change(db, data, command)
        assert outcome.code == 8
        assert "[newer_schema]" in outcome.err
        assert "upgrade rolebundle" in outcome.err


HOSTILE: dict[str, str] = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON chunk BEGIN DELETE FROM document; END",
    "a trigger on reading's way": (
        "CREATE TRIGGER t AFTER UPDATE ON corpus_state BEGIN UPDATE document "
        "SET trust_tier = 'authoritative'; END"
    ),
    "a view in a table's place": ("CREATE VIEW v AS SELECT id, 'forged' AS content FROM chunk"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_schema_is_blocked(corpus_file: Path, tree: Path, case: str) -> None:
    tamper(corpus_file, HOSTILE[case])
    data = corpus_file.read_bytes()
    for command in (*commands(tree), ("corpus", "doctor")):
        outcome = run_without_change(corpus_file, data, command)
        assert outcome.code == 7
        assert "[foreign_schema]" in outcome.err or command == ("corpus", "doctor")


def test_hardening_holds_beneath_the_check(corpus_file: Path) -> None:
    """Were the check of the schema passed by, triggers and views would still not run."""
    with open_writer(corpus_file) as corpus:
        assert corpus.db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
        assert corpus.db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, -1) == 0
        assert corpus.db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, -1) == 0
        assert corpus.db.pragma("trusted_schema") == 0
        corpus.run("CREATE TABLE temporary_victim (a)")
        corpus.run(
            "CREATE TRIGGER t AFTER INSERT ON temporary_victim BEGIN DELETE FROM document; END"
        )
        corpus.run("INSERT INTO temporary_victim VALUES (1)")
        assert corpus.value("SELECT count(*) FROM document") == 40
        corpus.run("CREATE VIEW v AS SELECT 1")
        with pytest.raises(CorpusCorrupt, match="view"):
            corpus.rows("SELECT * FROM v")
        with pytest.raises(CorpusCorrupt):
            corpus.run("INSERT INTO lexical_1_data VALUES (1, x'00')")


SCHEMA = (
    "CREATE TABLE foreign_table (a)",
    "CREATE INDEX foreign_index ON chunk (title)",
    "ALTER TABLE chunk ADD COLUMN forged TEXT",
    "ALTER TABLE source ADD COLUMN forged TEXT AS (source_id || 'x') VIRTUAL",
    "DROP INDEX document_by_source",
    "DROP TABLE approved_manifest",
    "ALTER TABLE lexical_1_config ADD COLUMN forged TEXT",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("statement", SCHEMA)
def test_another_schema_is_found(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, statement)
    assert "schema_changed" in codes_of(corpus_file)
