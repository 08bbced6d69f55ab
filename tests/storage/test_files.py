"""Files of SQLite: opening, reading, checking and interrupting."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any, Literal, NamedTuple

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Attributes
from rolebundle.errors import (
    CorpusCorrupt,
    Interrupted,
    RolebundleError,
    StorageError,
    UsageError,
    WrongFile,
)
from rolebundle.policy.access import deny_matcher, set_policy
from rolebundle.storage import check, digests, facts, lexical_index, partition, seal
from rolebundle.storage.audit import AUDIT_FORMAT
from rolebundle.storage.check import find_problems
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.documents import StoredFile
from rolebundle.storage.file import busy_timeout, corpus_path
from rolebundle.storage.lexical_index import verify_lexical_indexes
from rolebundle.storage.opening import APPLICATION_ID, open_reader
from rolebundle.storage.seal import row_digest
from rolebundle.storage.sqlite import SqliteFile, create_file
from rolebundle.storage.stored_values import rows_as
from rolebundle.storage.writing import open_writer
from support.corpora import FLAGGED, QUARANTINED, build, document, embed, file_of, put_file
from support.fake_embedder import HashingProvider
from support.rich_corpus import RICH_POLICY

# -- Opening: who waits for whom, what a transaction leaves, what every connection is set to -------


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
            with pytest.raises(StorageError, match=r"\[read_only\]"):
                corpus.run(statement)
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


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.db"
    open_writer(path).close()
    open_reader(path).close()
    with pytest.raises(StorageError) as caught:
        open_writer(path / "d.db")
    assert caught.value.exit_code == 6


def test_text_that_is_not_utf_8_is_reported_as_damage(db: Path) -> None:
    with apsw.Connection(str(db)) as behind:
        behind.execute("UPDATE chunk SET content = CAST(x'ff00fe' AS TEXT)")
    behind.close()
    with open_reader(db) as corpus, pytest.raises(CorpusCorrupt, match="UTF-8"):
        corpus.rows("SELECT content FROM chunk")


def test_busy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ROLEBUNDLE_BUSY_TIMEOUT_MS"
    monkeypatch.delenv(name, raising=False)
    assert busy_timeout() == 10_000
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


# -- A file of ours that is no corpus: the audit ---------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.db"


def create(path: Path) -> None:
    assert create_file(path, AUDIT_FORMAT, lambda file: file.run("CREATE TABLE t (a)"))


def refusal(path: Path) -> RolebundleError:
    """The error of both ways to open a file, which leave the file as it is."""
    before = path.read_bytes() if path.is_file() else None
    errors = []
    for opened in (SqliteFile.open_read_only, SqliteFile.open_for_writing):
        with pytest.raises(RolebundleError) as caught:
            opened(path, AUDIT_FORMAT)
        errors.append(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert errors[0].code == errors[1].code
    assert errors[0].hint, "each error names the next step"
    return errors[0]


def test_a_created_file_is_complete_and_private(path: Path) -> None:
    before = os.umask(0)
    try:
        create(path)
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        with SqliteFile.open_for_writing(path, AUDIT_FORMAT) as file:
            file.run("INSERT INTO t VALUES (1)")
            files = [*path.parent.iterdir()]
            assert {entry.name.removeprefix(path.name) for entry in files} == {"", "-wal", "-shm"}
            assert {stat.S_IMODE(entry.stat().st_mode) for entry in files} == {0o600}
            assert file.db.pragma("application_id") == AUDIT_FORMAT.application_id
            assert file.db.pragma("user_version") == AUDIT_FORMAT.newest
    finally:
        os.umask(before)
    assert [*path.parent.iterdir()] == [path], "the last one folds the log into the file"
    with SqliteFile.open_read_only(path, AUDIT_FORMAT) as file:
        assert file.rows("SELECT a FROM t") == [(1,)]
        assert file.is_current()
        with pytest.raises(StorageError):
            file.run("INSERT INTO t VALUES (2)")


@pytest.mark.parametrize("has_links", [True, False])
def test_an_existing_file_is_not_replaced(
    path: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError("no links here")

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    create(path)
    before = path.read_bytes()
    assert not create_file(path, AUDIT_FORMAT, lambda file: None)
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_cannot_be_filled_is_not_created(path: Path) -> None:
    with pytest.raises(CorpusCorrupt):
        create_file(path, AUDIT_FORMAT, lambda file: file.run("no statement"))
    assert [*path.parent.iterdir()] == []


@pytest.mark.parametrize("content", ["", "no database" * 100], ids=["empty", "text"])
def test_a_file_that_is_no_database_is_refused(path: Path, content: str) -> None:
    path.write_text(content)
    assert type(refusal(path)) is CorpusCorrupt


def test_a_foreign_files_log_is_not_folded_into_it(path: Path) -> None:
    other = path.with_name("other.db")
    with open_writer(other) as corpus:
        corpus.run("CREATE TABLE logged (x)")
        # What a kill at this moment would leave.
        path.write_bytes(other.read_bytes())
        log = Path(f"{path}-wal")
        log.write_bytes(path.with_name("other.db-wal").read_bytes())
    before = path.read_bytes(), log.read_bytes()
    with pytest.raises(WrongFile):
        SqliteFile.open_for_writing(path, AUDIT_FORMAT)
    assert (path.read_bytes(), log.read_bytes()) == before


# -- The mapper of rows: what comes out is what the annotations say, or the corpus is damaged ------


class Inner(NamedTuple):
    words: tuple[str, ...]
    numbers: tuple[int, ...]


class Outer(NamedTuple):
    name: str
    inner: Inner
    tier: Literal["a", "b"]
    is_set: bool
    size: int
    vector: bytes
    until: str | None
    attributes: Attributes


ROW = ("n", '["x"]', '["1"]', "a", 1, 7, b"v", None, '{"k": ["v"]}')
values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.binary(max_size=3),
    st.sampled_from(["", "a", "[]", '["x"]', "[1]", "{}", '{"k": "v"}', '{"k": [1]}', "[" * 9999]),
)  # fmt: skip


def test_a_row_as_it_is_stored() -> None:
    [record] = rows_as(Outer, [ROW])
    assert record == (
        "n", (("x",), (1,)), "a", True, 7, b"v", None, (("k", ("v",)),)
    )  # fmt: skip


@given(place=st.integers(0, len(ROW) - 1), value=values)
def test_any_other_value_is_damage(place: int, value: Any) -> None:
    row = [*ROW]
    row[place] = value
    try:
        [record] = rows_as(Outer, [ROW, row])[1:]
    except CorpusCorrupt as error:
        assert error.exit_code == 7 and "doctor" in error.hint
        return
    assert isinstance(record.name, str) and record.tier in ("a", "b")
    assert all(isinstance(word, str) for word in record.inner.words)
    assert all(type(number) is int for number in record.inner.numbers)
    assert record.is_set is True or record.is_set is False
    assert type(record.size) is int and type(record.vector) is bytes
    assert record.until is None or isinstance(record.until, str)
    assert all(isinstance(text, str) for _, texts in record.attributes for text in texts)


# -- A search that takes too long, or that nobody waits for, ends; the next one is not harmed ------

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
SHORT = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT max(x) FROM n"
)


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(tmp_path / "c.db") as opened:
        yield opened


def test_a_deadline_ends_a_running_statement(corpus: Corpus) -> None:
    started = perf_counter()
    with pytest.raises(Interrupted) as caught, corpus.interruptible(0.05):
        corpus.value(ENDLESS)
    assert perf_counter() - started < 5
    assert caught.value.retryable
    assert "deadline_ms" in caught.value.hint


def test_an_interrupt_comes_from_another_thread(corpus: Corpus) -> None:
    timer = Timer(0.05, corpus.interrupt)
    timer.start()
    with pytest.raises(Interrupted), corpus.interruptible():
        corpus.value(ENDLESS)
    timer.join()
    with corpus.interruptible():
        assert corpus.value(SHORT) == 9


def test_an_interrupt_between_two_statements_ends_the_next_one(corpus: Corpus) -> None:
    with pytest.raises(Interrupted), corpus.interruptible():
        assert corpus.value(SHORT) == 9
        corpus.interrupt()
        corpus.value(ENDLESS)


def test_an_interrupt_outside_a_block_has_no_effect(corpus: Corpus) -> None:
    corpus.interrupt()
    with corpus.interruptible(60):
        assert corpus.value(SHORT) == 9
    assert corpus.value(SHORT) == 9


def test_an_interrupt_while_a_virtual_table_is_set_up_is_one(corpus: Corpus) -> None:
    def set_up() -> None:
        corpus.interrupt()
        raise apsw.SQLError("vtable constructor failed: json_each")

    corpus.db.create_scalar_function("fail", set_up)
    with pytest.raises(Interrupted), corpus.interruptible():
        corpus.value("SELECT fail()")


# -- What is verified before an answer is shown ----------------------------------------------------


def test_an_index_with_fewer_chunks_is_damaged(tmp_path: Path) -> None:
    db = build(tmp_path, [document("a", ["token"]), document("b", ["rotation"])])
    with open_reader(db) as corpus:
        verify_lexical_indexes(corpus)
    with open_writer(db) as corpus, corpus.writing():
        [compartment] = searchable_compartments(corpus)
        lexical_index.remove_chunks(corpus, compartment.id, [1])
    with open_reader(db) as corpus, pytest.raises(CorpusCorrupt) as refused:
        verify_lexical_indexes(corpus)
    assert refused.value.code == "damaged_index"
    assert refused.value.message.startswith(str(db))


# -- Looking for damage. What each kind of damage looks like: tests/faults/test_damaged_content.py


@pytest.fixture
def db_check(tmp_path: Path) -> Path:
    documents = [document(f"d{n}", [f"token {n}", f"key {n}"]) for n in range(3)]
    return build(tmp_path, documents, HashingProvider())


def test_changed_words_are_found_if_the_checksum_of_fts5_is_the_same(
    db_check: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksum is an XOR, in which an even number of equal changes cancel each other out."""
    with open_writer(db_check) as corpus:
        with corpus.writing():
            lexical_index.remove_chunks(corpus, 1, [1, 2])
            corpus.run(
                "INSERT INTO lexical_1 (rowid, title, headings, content, tags, hints, names) "
                "SELECT c.id, c.title, headings, replace(content, 'token', 'tokem'), c.tags, hints, "
                "path FROM chunk c JOIN document d ON d.id = c.document JOIN file f ON f.id = d.file "
                "WHERE c.id IN (1, 2)"
            )
        monkeypatch.setattr(lexical_index, "_command", lambda *_: None)
        assert [problem.code for problem in check.find_problems(corpus)] == ["lexical_drift"]


# -- Digests and the seal: they cover every column, and every function keeps them true -------------

FIRST = document(
    "a", ["token", "key"], FLAGGED, supersedes=("b",), updated_at="2026-01-01T00:00:00Z"
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small corpus with a row in every table that has digests or is sealed."""
    documents = [
        FIRST,
        document("b", ["rotation"], valid_from="2026-01-01T00:00:00Z"),
        document("c", ["audit"], QUARANTINED),
    ]
    path = build(tmp_path_factory.mktemp("digests"), documents, HashingProvider())
    with open_writer(path) as corpus:
        set_policy(corpus, RICH_POLICY, "toml", "", "2026-01-01T00:00:00Z")
        with corpus.writing():
            put_file(corpus, file_of("b"), [document("b", ["another rotation"])])
            embed(corpus, HashingProvider())
            corpus.run("INSERT INTO purge VALUES ('id', '2026-01-01T00:00:00Z', 1, 1, 1, 'done')")
            corpus.run("INSERT INTO approved_manifest VALUES ('/m.toml', 'hash', 'now')")
            corpus.run("INSERT INTO path_flags VALUES ('/m', '{}')")
            corpus.run("INSERT INTO root VALUES ('/m', '', 'm', '{}', 1, 'now')")
            corpus.run("INSERT INTO audit_state VALUES (1, 1, 'log', 7, 'hash')")
            corpus.run(
                "INSERT INTO mark VALUES "
                "(1, 'document', 'c', 'hash', 'disputed', 'Ana', 'owner', 'old', 'now')"
            )
            corpus.run(
                "INSERT INTO decision VALUES ('s', 1, 'No posts', '', 'active', 'block', '', '[]', "
                "'[]', 'Ana', 'owner', 'now', NULL, 'now', '[]')"
            )
            corpus.run("INSERT INTO decision_end VALUES ('s', 1, 'Ana', '', 'now')")
            facts.put_fact(
                corpus,
                StoredFile("remembered:/docs/a.md/fact-1", "a.md/fact-1", "hash", ""),
                document("fact", ["tokens rotate"], origin="agent"),
                facts.Record("hash", "a", "bot", 1, "now", "now"),
                deny_matcher(corpus),
            )
            corpus.run("INSERT INTO gate_baseline VALUES ('/g.toml', 'hash', '{}', 'now')")
            corpus.run("INSERT INTO replica VALUES (1, '{}')")
            corpus.run(
                "INSERT INTO publication VALUES ('/r', 'bot', '{}', 'team', 'key', 1, 0, 'hash', "
                "'file', 'now', 'then', 0, x'')"
            )
        assert find_problems(corpus, deny_matcher(corpus)) == []
    return path.read_bytes()


@pytest.fixture
def corpus_digests(image: bytes, tmp_path: Path) -> Iterator[Corpus]:
    (tmp_path / "c.db").write_bytes(image)
    with open_writer(tmp_path / "c.db", replica=True) as opened:
        yield opened


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_change_of_any_column_is_found(corpus_digests: Corpus, step: int) -> None:
    """Behind SQLite's back, so that no constraint prevents it. By default every fifth column."""
    corpus_digests.run("PRAGMA foreign_keys = OFF")
    tables = corpus_digests.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%' "
        "AND name <> 'embedding_cache'"
    )
    assert len(tables) >= 15
    columns = []
    for (table,) in tables:
        assert corpus_digests.value(f"SELECT count(*) FROM {table}"), (
            f"{table} has no row to change"
        )
        rows = corpus_digests.rows(f"PRAGMA table_info({table})")
        columns += [(table, column, kind) for _, column, kind, *_ in rows]
    for table, column, kind in columns[::step]:
        changed = {"TEXT": f"coalesce({column}, '') || 'x'", "BLOB": "x'00'"}.get(
            kind, f"coalesce({column}, 0) + 70"
        )
        corpus_digests.run("PRAGMA ignore_check_constraints = ON")
        corpus_digests.run("BEGIN")
        corpus_digests.run(
            f"UPDATE {table} SET {column} = {changed} WHERE ({column}) IS "
            f"(SELECT max({column}) FROM {table})"
        )
        corpus_digests.run("PRAGMA ignore_check_constraints = OFF")
        found = find_problems(corpus_digests, deny_matcher(corpus_digests))
        corpus_digests.run("ROLLBACK")
        assert found, f"{table}.{column}"
    assert find_problems(corpus_digests, deny_matcher(corpus_digests)) == []


@pytest.mark.parametrize("table", ["chunk", "document", "supersession", "scanned", "compartment"])
def test_a_lost_row_is_found(corpus_digests: Corpus, table: str) -> None:
    corpus_digests.run("PRAGMA foreign_keys = OFF")
    corpus_digests.run(f"DELETE FROM {table}")
    assert find_problems(corpus_digests)


def test_columns_of_later_schemas_leave_digests_of_earlier_ones_valid() -> None:
    columns = digests.FILE_ROW
    earlier = (1, "/a.md", "a.md", "hash", "recipe")
    assert columns.split(", ")[5:] == ["size", "modified_ns"]
    assert digests.file_digest((*earlier, 0, 0)) == row_digest(earlier)
    later = [(0, 0), (7, 0), (0, 7), (7, 7)]
    assert len({digests.file_digest((*earlier, *values)) for values in later}) == len(later)


def test_what_was_damaged_before_stays_damaged(corpus_digests: Corpus) -> None:
    """A document that moves, is released or claims less gets a new digest only if it was sound."""
    corpus_digests.run("UPDATE document SET title = 'forged' WHERE document_id = 'c'")
    flagged = partition.flagged_document(corpus_digests, "c")
    assert flagged is not None
    with corpus_digests.writing():
        partition.release(corpus_digests, flagged)
    damaged = [
        name
        for _, name, _, is_intact in digests.checked(corpus_digests, "document")
        if not is_intact
    ]
    assert damaged == ["c"]


def test_a_broken_seal_stays_broken(corpus_digests: Corpus) -> None:
    corpus_digests.run("UPDATE policy SET content = 'forged'")
    with corpus_digests.writing():
        increment_generation(corpus_digests)
    assert seal.broken(corpus_digests) == {"policy"}
