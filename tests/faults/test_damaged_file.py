"""Rows 11 and 12: files that are unreadable, damaged inside or cut off."""

import random
from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.opening import latest_version
from rolebundle.storage.writing import open_writer
from support.amounts import rounds
from support.commands import invoke, is_coded
from support.damaged_files import PAGE, READING, codes_of, commands, run_without_change, tamper


def unreadable_files(image: bytes, cuts: int) -> dict[str, bytes]:
    """Files that nothing can be read from."""
    chance = random.Random(11)
    files = {
        "zeroed": bytes(len(image)),
        "random": chance.randbytes(len(image)),
        "text": b"# Not a database\n" * 400,
        "one byte": b"S",
        "header alone": image[:100],
        "header zeroed": bytes(100) + image[100:],
        "a page size that is none": image[:16] + b"\x12\x34" + image[18:],
        "first page zeroed behind the header": image[:100] + bytes(PAGE - 100) + image[PAGE:],
        "schema garbled": image[:100] + chance.randbytes(PAGE - 100) + image[PAGE:],
    }
    for _ in range(cuts):
        length = chance.randrange(1, len(image) - PAGE)
        files[f"cut at {length}"] = image[:length]
    return files


@rounds(1, 100)
def test_hopeless_files_are_refused_and_left_alone(
    image: bytes, tree: Path, tmp_path: Path, rounds: int
) -> None:
    for name, data in unreadable_files(image, cuts=rounds).items():
        for command in commands(tree):
            outcome = run_without_change(tmp_path / "c.db", data, command)
            assert outcome.code in (7, 8), (name, command, outcome)
            assert outcome.out == ""
            assert "next:" in outcome.err


def damage(image: bytes, chance: random.Random) -> bytes:
    data = bytearray(image)
    kind = chance.choice(["flip", "zero", "random", "swap"])
    for _ in range(chance.randint(1, 40)):
        at = chance.randrange(PAGE, len(data))
        length = chance.randint(1, PAGE if kind == "zero" else 600)
        if kind == "flip":
            data[at] ^= 1 << chance.randrange(8)
        elif kind == "zero":
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif kind == "random":
            data[at : at + length] = chance.randbytes(len(data[at : at + length]))
        else:
            start, second_start = (PAGE * chance.randrange(1, len(data) // PAGE) for _ in range(2))
            first, second = data[start : start + PAGE], data[second_start : second_start + PAGE]
            data[start : start + PAGE], data[second_start : second_start + PAGE] = second, first
    return bytes(data)


@rounds(8, 1000)
def test_damage_inside_is_an_answer_or_a_coded_error(
    image: bytes, tree: Path, tmp_path: Path, rounds: int
) -> None:
    """Readers may not meet the damage; they never change the file, and never end in a traceback."""
    db = tmp_path / "c.db"
    detected = 0
    for seed in range(rounds):
        data = damage(image, random.Random(seed))
        for command in READING:
            assert run_without_change(db, data, command).code in (0, 2, 7), seed
        db.write_bytes(data)
        checked = invoke("corpus", "doctor", "--db", db)
        is_coded(checked)
        assert checked.code in (0, 7), seed
        detected += checked.code == 7
        db.write_bytes(data)
        ingested = invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db)
        is_coded(ingested)
        # 10: a lookup by a damaged key misses, and the ids seem taken.
        assert ingested.code in (0, 7, 10), (seed, ingested)
    assert detected >= rounds * 0.8


@pytest.mark.parametrize("pages_missing", [1, 3])
def test_a_file_shorter_than_its_header_says(
    image: bytes, tree: Path, tmp_path: Path, pages_missing: int
) -> None:
    """Whatever of the file a command reads."""
    for command in (("status",), *commands(tree)):
        data = image[: -pages_missing * PAGE]
        assert run_without_change(tmp_path / "c.db", data, command).code == 7


# -- Files of others, of newer versions, and with a hostile schema ---------------------------------


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
