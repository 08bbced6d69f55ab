"""Rows 14, 15 and 17: files of others, of newer versions, and with a hostile schema are refused."""

from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.opening import latest_version
from rolebundle.storage.writing import open_writer
from support.damaged_files import codes_of, commands, run_without_change, tamper


def refused(db: Path, tree: Path, code: int) -> list[str]:
    """What each command and the check say of a file that they refuse and leave alone."""
    data = db.read_bytes()
    outcomes = [
        run_without_change(db, data, command) for command in (*commands(tree), ("corpus", "doctor"))
    ]
    assert {outcome.code for outcome in outcomes} == {code}
    return [outcome.err for outcome in outcomes]


FOREIGN = {
    "another application": ("PRAGMA application_id = 252006673", "CREATE TABLE t (a)"),
    "no application": ("CREATE TABLE chunk (a)", "INSERT INTO chunk VALUES ('mine')"),
    "in WAL mode": ("PRAGMA journal_mode = wal", "CREATE TABLE t (a)"),
    "our version, not our id": ("PRAGMA user_version = 1", "CREATE TABLE document (a)"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", FOREIGN)
def test_another_applications_file(tree: Path, tmp_path: Path, case: str) -> None:
    tamper(tmp_path / "c.db", *FOREIGN[case])
    assert all("[foreign_file]" in said for said in refused(tmp_path / "c.db", tree, 8))


@pytest.mark.parametrize("version", [2, 3, 1000])
def test_a_newer_schema(corpus_file: Path, tree: Path, version: int) -> None:
    tamper(corpus_file, f"PRAGMA user_version = {latest_version() + version - 1}")
    for said in refused(corpus_file, tree, 8):
        assert "[newer_schema]" in said
        assert "upgrade rolebundle" in said


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
    *of_commands, _ = refused(corpus_file, tree, 7)
    assert all("[foreign_schema]" in said for said in of_commands)


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
