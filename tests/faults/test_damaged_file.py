"""Rows 11 to 15 and 17: damaged, foreign, newer and hostile files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import apsw
import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.doctor import RepairReport
from rolebundle.errors import CorpusCorrupt, WrongFile
from rolebundle.ingest import sync
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage import digests
from rolebundle.storage.corpus_state import increment_generation
from rolebundle.storage.damage import check
from rolebundle.storage.opening import open_reader, open_writer
from support.amounts import rounds
from support.commands import Outcome, invoke, is_coded
from support.corpora import ask, build, document, fill
from support.fake_embedder import HashingProvider
from support.sound import assert_sound, contents

PAGE = 4096
READING = (
    ("retrieve", "token rotation", "--lexical-only"),
    ("get", "notes/n03.md"),
    ("get", "n03.md:1-9"),
    ("status",),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "notes"
    folder.mkdir()
    for number in range(40):
        text = f"# Note {number}\n\n{f'token rotation {number} naïve ' * 60}\n"
        (folder / f"n{number:02}.md").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def image(tree: Path) -> bytes:
    """The bytes of a corpus with vectors, nothing left in its log."""
    db = tree.parent / "image.db"
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert_sound(db)
    return db.read_bytes()


def commands(tree: Path) -> list[tuple[str, ...]]:
    return [*READING, ("ingest", str(tree), "--lexical-only", "--workers", "1")]


def run_without_change(db: Path, data: bytes, command: tuple[str, ...]) -> Outcome:
    for suffix in ("-wal", "-shm"):
        Path(f"{db}{suffix}").unlink(missing_ok=True)
    db.write_bytes(data)
    outcome = invoke(*command, "--db", db)
    assert db.read_bytes() == data, "the file was changed"
    is_coded(outcome)
    return outcome


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


def test_a_file_without_bytes(tree: Path, tmp_path: Path) -> None:
    """Nothing to lose: what a kill in the first moment leaves is filled, and never read."""
    for command in READING:
        assert run_without_change(tmp_path / "c.db", b"", command).code == 7
    assert invoke("ingest", tree, "--lexical-only", "--db", tmp_path / "c.db").code == 0


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
        checked = invoke("status", "--check", "--db", db)
        is_coded(checked)
        assert checked.code in (0, 7), seed
        detected += checked.code == 7
        db.write_bytes(data)
        ingested = invoke("ingest", tree, "--lexical-only", "--workers", "1", "--db", db)
        is_coded(ingested)
        # 10: a lookup by a damaged key misses, and the ids seem taken.
        assert ingested.code in (0, 7, 10), (seed, ingested)
    assert detected >= rounds * 0.8


# -- damage that SQLite does not see ----------------------------------------------------------


def tamper(db: Path, *statements: str) -> None:
    """Change a corpus behind its back, as a flipped bit would."""
    import sqlite_vec

    connection = apsw.Connection(str(db))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    for statement in statements:
        connection.execute(statement)
    connection.close()


def codes_of(db: Path) -> set[str]:
    checked = invoke("status", "--check", "--json", "--db", db)
    assert checked.code in (0, 7)
    assert (checked.code == 7) == bool(checked.json()["problems"])
    return {problem["code"] for problem in checked.json()["problems"]}


def repair(db: Path) -> RepairReport:
    with Admin(db) as admin:
        return admin.repair()


@pytest.fixture
def corpus_file(image: bytes, tmp_path: Path) -> Path:
    (tmp_path / "c.db").write_bytes(image)
    return tmp_path / "c.db"


def test_a_flipped_bit_in_a_text_is_found(image: bytes, corpus_file: Path) -> None:
    sound = codes_of(corpus_file)
    assert sound == set()
    start = image.index(b"token rotation 7 ")
    for bit in range(8):
        data = bytearray(image)
        data[start] ^= 1 << bit
        corpus_file.write_bytes(data)
        assert codes_of(corpus_file) & {"content_damaged", "unreadable"}, bit


def test_a_flipped_bit_in_a_vector_is_found_and_mended(corpus_file: Path, tree: Path) -> None:
    expected = contents(corpus_file)
    with open_reader(corpus_file) as corpus:
        corpus.load_vectors()
        vector = corpus.value("SELECT embedding FROM vectors_1_1 WHERE rowid = 5")
    data = bytearray(corpus_file.read_bytes())
    # It stands in the file twice: beside its record, and among those that are scanned.
    places = [at for at in range(len(data)) if data.startswith(vector, at)]
    assert len(places) == 2
    for at in places:
        for bit in range(0, len(vector) * 8, 37):
            flipped = bytearray(data)
            flipped[at + bit // 8] ^= 1 << bit % 8
            corpus_file.write_bytes(flipped)
            assert codes_of(corpus_file) == {"vectors_damaged"}, bit
    assert repair(corpus_file).lost == []
    with open_writer(corpus_file) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert contents(corpus_file) == expected
    assert_sound(corpus_file)


MISSHAPEN = (
    "UPDATE vectors_1_1_vector_chunks00 SET vectors = x'00'",
    "UPDATE vectors_1_1_chunks SET rowids = x''",
    "UPDATE vectors_1_1_chunks SET validity = x'ff'",
    "UPDATE vectors_1_1_chunks SET size = 1000000",
    "UPDATE vectors_1_1_rowids SET chunk_offset = 5000 WHERE rowid = 3",
    "UPDATE vectors_1_1_rowids SET chunk_id = 77 WHERE rowid = 3",
    "DELETE FROM vectors_1_1_chunks",
)


@pytest.mark.sample(6)
@pytest.mark.parametrize("statement", MISSHAPEN)
def test_a_misshapen_vector_table_is_found_and_mended(
    corpus_file: Path, tree: Path, statement: str
) -> None:
    """sqlite-vec would read beyond what is there; it is not asked."""
    expected = contents(corpus_file)
    connection = apsw.Connection(str(corpus_file))
    connection.execute(statement)
    connection.close()
    assert codes_of(corpus_file) == {"vectors_damaged"}
    assert repair(corpus_file).lost == []
    # The vectors beside their records are what was stored.
    assert invoke("status", "--json", "--db", corpus_file).json()["waiting"] == 0
    with open_writer(corpus_file) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert contents(corpus_file) == expected
    assert_sound(corpus_file)


DRIFT: dict[str, tuple[str, set[str]]] = {
    "an emptied index": (
        "INSERT INTO lexical_1 (lexical_1) VALUES ('delete-all')",
        {"lexical_drift", "seal_broken"},
    ),
    "a chunk taken out of the index": (
        "INSERT INTO lexical_1 (lexical_1, rowid, title, headings, content, tags, hints) "
        "SELECT 'delete', id, title, headings, content, tags, hints FROM chunk WHERE id = 4",
        {"lexical_drift", "seal_broken"},
    ),
    "an entry too many": (
        "INSERT INTO lexical_1 (rowid, title, headings, content, tags, hints) "
        "VALUES (9999, 'a', 'b', 'c', 'd', 'e')",
        {"lexical_drift", "seal_broken"},
    ),
    "a vector lost": (
        "DELETE FROM vectors_1_1 WHERE rowid = 2",
        {"vectors_miscounted"},
    ),
    "a record lost": (
        "DELETE FROM embedded WHERE chunk = 2",
        {"vectors_miscounted", "vectors_damaged"},
    ),
    "a wrong count of vectors": (
        "UPDATE embedding_share SET vectors = vectors + 1",
        {"vectors_miscounted", "seal_broken"},
    ),
    "wrong counts": (
        "UPDATE corpus_state SET documents = 1, chunks = 2",
        {"miscounted", "seal_broken"},
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", DRIFT)
def test_drift_is_found_and_mended(corpus_file: Path, tree: Path, case: str) -> None:
    statement, expected_codes = DRIFT[case]
    expected = contents(corpus_file)
    tamper(corpus_file, statement)
    assert codes_of(corpus_file) == expected_codes
    assert repair(corpus_file).lost == []
    assert codes_of(corpus_file) == set()
    with open_writer(corpus_file) as corpus:
        # Without the seal, it is not known either what earlier ingests limited.
        options = IngestOptions(max_trust="authoritative")
        sync.ingest(corpus, [tree], HashingProvider(), options)
    assert contents(corpus_file) == expected
    assert_sound(corpus_file)


FORGED = {
    "UPDATE chunk SET content = 'forged' WHERE id = 3": {"content_damaged", "lexical_drift"},
    "UPDATE chunk SET title = 'forged' WHERE id = 3": {"row_damaged", "lexical_drift"},
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("statement", FORGED)
def test_damaged_content_is_found_and_read_again(
    corpus_file: Path, tree: Path, statement: str
) -> None:
    expected = contents(corpus_file)
    tamper(corpus_file, statement)
    assert codes_of(corpus_file) == FORGED[statement]
    assert len(repair(corpus_file).lost) == 1
    assert codes_of(corpus_file) == set()
    with open_writer(corpus_file) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert contents(corpus_file) == expected


def breaks_the_file(data: bytes, path: Path) -> bool:
    path.write_bytes(data)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bool(connection.execute("PRAGMA integrity_check(1)").get != "ok")
    except apsw.Error:
        return True
    finally:
        connection.close()


def test_a_check_of_damaged_pages_changes_nothing(image: bytes, tmp_path: Path) -> None:
    """On a row out of order, a scan by sqlite-vec would end the process."""
    damages = (damage(image, random.Random(seed)) for seed in count())
    for data in islice((data for data in damages if breaks_the_file(data, tmp_path / "d.db")), 3):
        for command in (("status", "--check"), ("doctor",)):
            assert run_without_change(tmp_path / "c.db", data, command).code in (7, 8)


def test_an_orphan_is_found(corpus_file: Path) -> None:
    tamper(corpus_file, "PRAGMA foreign_keys = OFF", "DELETE FROM file WHERE id = 1")
    assert "orphan" in codes_of(corpus_file)


# -- files of others ----------------------------------------------------------------------------


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
    for command in [*commands(tree), ("status", "--check"), ("doctor",)]:
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
    for command in [*commands(tree), ("status", "--check"), ("doctor",)]:
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
    for command in [*commands(tree), ("status", "--check"), ("doctor",)]:
        outcome = run_without_change(corpus_file, data, command)
        assert outcome.code == 7
        assert "[foreign_schema]" in outcome.err or command == ("doctor",)


def test_a_table_replaced_by_a_view(corpus_file: Path, tree: Path) -> None:
    tamper(
        corpus_file,
        "PRAGMA foreign_keys = OFF",
        "ALTER TABLE supersession RENAME TO hidden",
        "CREATE VIEW supersession AS SELECT * FROM hidden",
    )
    assert run_without_change(corpus_file, corpus_file.read_bytes(), READING[0]).code == 7


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


def test_reading_and_writing_refuse_with_the_same_error(tmp_path: Path) -> None:
    db = foreign(tmp_path / "c.db", *FOREIGN["no application"])
    for opened in (open_reader, open_writer):
        opener: Callable[[Path], object] = opened
        with pytest.raises(WrongFile) as caught:
            opener(db)
        assert caught.value.code == "foreign_file"


def test_a_check_of_a_file_that_is_not_there_makes_none(tmp_path: Path) -> None:
    for command in (("status", "--check"), ("doctor",), ("doctor", "--repair")):
        assert invoke(*command, "--db", tmp_path / "none.db").code == 2
    assert list(tmp_path.iterdir()) == []


def test_problems_of_a_sound_corpus(tmp_path: Path) -> None:
    db = build(tmp_path, [document("d0", ["the token"])], HashingProvider())
    with open_writer(db) as corpus:
        assert check.find_problems(corpus) == []
    assert json.loads(invoke("status", "--check", "--json", "--db", db).out)["checked"] is True


# -- files that were cut off --------------------------------------------------------------------


@pytest.mark.parametrize("with_log", [False, True])
@pytest.mark.parametrize("bytes_missing", [1, PAGE, 3 * PAGE + 7])
def test_a_file_shorter_than_its_header_says(
    image: bytes, tree: Path, tmp_path: Path, with_log: bool, bytes_missing: int
) -> None:
    """Also with a log beside it, whatever of the file a command reads."""
    db, longer = tmp_path / "c.db", tmp_path / "other.db"
    log = b""
    if with_log:
        longer.write_bytes(image)
        with open_writer(longer) as corpus:
            with corpus.writing():
                increment_generation(corpus)
            log = Path(f"{longer}-wal").read_bytes()
    data = image[:-bytes_missing]
    for command in (("status",), *commands(tree)):
        for suffix, content in (("", data), ("-wal", log)):
            Path(f"{db}{suffix}").write_bytes(content)
        Path(f"{db}-shm").unlink(missing_ok=True)
        outcome = invoke(*command, "--db", db)
        assert outcome.code == 7
        assert "[corpus_cut_off]" in outcome.err
        assert (db.read_bytes(), Path(f"{db}-wal").read_bytes()) == (data, log)


def test_a_log_has_the_pages_that_the_file_lacks(tmp_path: Path) -> None:
    """As while another process folds its log into the file: the first page comes first."""
    db, copy = tmp_path / "c.db", tmp_path / "copy.db"
    with open_writer(db) as corpus:
        short = db.read_bytes()
        fill(corpus, [document(f"d{n}", ["the token " * 400]) for n in range(9)])
        log = Path(f"{db}-wal").read_bytes()
        corpus.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        complete = db.read_bytes()
    assert len(short) < len(complete)
    copy.write_bytes(complete[:PAGE] + short[PAGE:])
    Path(f"{copy}-wal").write_bytes(log)
    assert_sound(copy)
    assert copy.read_bytes()[:PAGE] == complete[:PAGE]


def test_a_log_without_the_last_commit_is_not_enough(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    with open_writer(db) as corpus:
        short = db.read_bytes()
        fill(corpus, [document(f"d{n}", ["the token " * 400]) for n in range(9)])
        log = Path(f"{db}-wal").read_bytes()
        corpus.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        complete = db.read_bytes()
    db.write_bytes(complete[:PAGE] + short[PAGE:])
    Path(f"{db}-wal").write_bytes(log[: -PAGE // 2])
    with pytest.raises(CorpusCorrupt) as caught:
        open_reader(db)
    assert caught.value.code == "corpus_cut_off"


# -- damage that a reader notices ----------------------------------------------------------------

EMPTIED = {
    "all": "INSERT INTO lexical_1 (lexical_1) VALUES ('delete-all')",
    "its terms": "DELETE FROM lexical_1_idx",
    "its pages": "DELETE FROM lexical_1_data WHERE id > 10",
    "its records": "DELETE FROM lexical_1_data WHERE id <= 10",
    "its sizes": "DELETE FROM lexical_1_docsize",
    "the chunks": "PRAGMA foreign_keys = OFF; DELETE FROM chunk",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", EMPTIED)
def test_an_emptied_index_is_an_error_and_no_empty_answer(corpus_file: Path, case: str) -> None:
    tamper(corpus_file, EMPTIED[case])
    outcome = invoke("retrieve", "token rotation", "--lexical-only", "--db", corpus_file)
    assert outcome.code == 7, outcome.out
    assert "rolebundle doctor" in outcome.err


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM vectors_1_1",
        "DELETE FROM vectors_1_1 WHERE rowid > 20",
        "UPDATE vectors_1_1_chunks SET validity = zeroblob(128)",
        "DELETE FROM vectors_1_1_chunks",
        "DELETE FROM embedded",
    ],
)
def test_an_emptied_embedding_index_is_a_warning(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, statement)
    with open_reader(corpus_file) as corpus:
        bundle = ask(corpus, None, HashingProvider(), task="token rotation")
    assert bundle.selected
    [warning] = [warning for warning in bundle.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "the embedding index is damaged" in warning.message
    assert "rolebundle doctor" in warning.message


ALTERED = {
    "a text": "UPDATE chunk SET content = 'token rotation forged' WHERE id = 3",
    "a heading": "UPDATE chunk SET headings = '[\"forged\"]' WHERE id = 3",
    "a line": "UPDATE chunk SET end_line = 77 WHERE id = 3",
    "a tier": "UPDATE document SET trust_tier = 'authoritative' WHERE id = 3",
    "a path": "UPDATE file SET path = 'forged.md' WHERE id = 3",
    "a scope": "UPDATE document SET scope = 'forged' WHERE id = 3",
    "a source": "INSERT INTO source VALUES (9, 'x'); UPDATE document SET source = 9 WHERE id = 3",
    "a finding": "INSERT INTO scanned VALUES (3, 'label', 'x', '[\"forged\"]', '[]', '', x'00')",
    "a claim": "INSERT INTO supersession (newer, superseded) VALUES (3, 'forged')",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", ALTERED)
def test_an_altered_passage_is_not_shown(corpus_file: Path, case: str) -> None:
    with open_reader(corpus_file) as corpus:
        chunk_id, document_id = corpus.rows(
            "SELECT chunk_id, document_id FROM chunk c JOIN document d ON d.id = document "
            "WHERE c.id = 3 AND d.id = 3"
        )[0]
    tamper(corpus_file, ALTERED[case])
    for command in (
        ("get", chunk_id),
        ("get", document_id),
        ("why", chunk_id, "token rotation", "--lexical-only"),
        ("retrieve", "token rotation naïve", "--lexical-only", "--limit", "50"),
    ):
        outcome = invoke(*command, "--db", corpus_file)
        assert outcome.code == 7, (command, outcome)
        assert "[damaged_passage]" in outcome.err
        assert chunk_id in outcome.err or document_id in outcome.err
        assert "rolebundle doctor" in outcome.err
        assert outcome.out == ""


def test_a_broken_seal_refuses_readers_and_writers_and_not_the_check(
    corpus_file: Path, tree: Path
) -> None:
    tamper(corpus_file, "UPDATE compartment SET scope = 'forged'")
    for command in commands(tree):
        outcome = run_without_change(corpus_file, corpus_file.read_bytes(), command)
        assert outcome.code == 7
        assert "[seal_broken]" in outcome.err
        assert "rolebundle doctor" in outcome.err
    assert codes_of(corpus_file) == {"seal_broken", "misplaced"}


SCHEMA = {
    "CREATE TABLE foreign_table (a)": "foreign",
    "CREATE INDEX foreign_index ON chunk (title)": "foreign",
    "ALTER TABLE chunk ADD COLUMN forged TEXT": "changed",
    "ALTER TABLE source ADD COLUMN forged TEXT AS (source_id || 'x') VIRTUAL": "changed",
    "DROP INDEX document_by_source": "missing",
    "DROP TABLE approved_manifest": "missing",
    "ALTER TABLE lexical_1_config ADD COLUMN forged TEXT": "changed",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("statement", SCHEMA)
def test_another_schema_is_found(corpus_file: Path, statement: str) -> None:
    tamper(corpus_file, statement)
    checked = invoke("status", "--check", "--json", "--db", corpus_file)
    assert checked.code == 7
    assert SCHEMA[statement] in checked.out + checked.err


def test_a_document_in_another_compartment_is_found(tmp_path: Path) -> None:
    documents = [document("a", ["token"]), document("b", ["token"], scope="hr")]
    db = build(tmp_path, documents, HashingProvider())
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE document SET compartment = 1 WHERE document_id = 'b'")
        digests.write(corpus, "document", digests.checked_documents(corpus))
    assert "misplaced" in codes_of(db)
