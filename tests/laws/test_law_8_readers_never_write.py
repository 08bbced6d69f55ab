"""Law 8. Readers never write: retrieval takes no write lock and works on a read-only file."""

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.errors import RolebundleError
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.amounts import few_examples
from support.corpora import ask, build, document, fill, remove
from support.databases import of_file
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests

# PostgreSQL refuses the writes of a reader itself; see tests/postgres.
pytestmark = of_file

DOCUMENTS = [document("d0", ["token rotation"]), document("d1", ["an audit of tokens"])]


def log_of(path: Path) -> bytes:
    """The bytes of the write-ahead log; none if there is no log."""
    log = Path(f"{path}-wal")
    return log.read_bytes() if log.exists() else b""


@few_examples
@given(
    documents=corpora(),
    role=st.none() | overlays(),
    requests_drawn=st.lists(requests(), min_size=1, max_size=2),
    being_written=st.booleans(),
)
def test_retrieval_changes_no_byte(
    folder: Path,
    documents: list[StoredDocument],
    role: Overlay | None,
    requests_drawn: list[dict[str, Any]],
    being_written: bool,
) -> None:
    path = build(folder, documents, HashingProvider())
    writer = open_writer(path) if being_written else None
    try:
        if writer is not None:
            # One write is committed to the log and not yet in the file. Another is in progress, and
            # readers neither wait for it nor see it.
            fill(writer, [document("logged", ["token"])], HashingProvider())
            writer.run("BEGIN IMMEDIATE")
            writer.run("UPDATE corpus_state SET generation = 99")
        before = path.read_bytes(), log_of(path)
        started = perf_counter()
        with open_reader(path) as corpus:
            bundles = [ask(corpus, role, HashingProvider(), **fields) for fields in requests_drawn]
        assert perf_counter() - started < 5, "waited for the writer"
        assert (path.read_bytes(), log_of(path)) == before
        expected = len(documents) + being_written
        for bundle in bundles:
            assert bundle.corpus.documents == expected
            assert bundle.corpus.generation != 99
    finally:
        if writer is not None:
            writer.run("ROLLBACK")
            writer.close()
        remove(path)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO source (source_id) VALUES ('x')",
        "UPDATE corpus_state SET generation = 1",
        "DELETE FROM chunk",
        "CREATE TABLE own (x)",
        "INSERT INTO lexical_1 (lexical_1) VALUES ('rebuild')",
        "PRAGMA user_version = 7",
        "BEGIN IMMEDIATE",
        "VACUUM",
    ],
)
def test_a_readers_connection_refuses_to_write(folder: Path, statement: str) -> None:
    path = build(folder, DOCUMENTS)
    before = path.read_bytes()
    with open_reader(path) as corpus:
        try:
            corpus.run(statement)
        except RolebundleError as error:
            assert error.code == "read_only"
        else:
            # Some pragmas have no effect and raise no error.
            assert statement.startswith("PRAGMA")
    assert path.read_bytes() == before
    remove(path)


def test_the_log_of_a_killed_writer_is_read_and_not_merged(folder: Path) -> None:
    path, leftover = build(folder, DOCUMENTS), folder / "left.db"
    with open_writer(path) as writer:
        fill(writer, [document("logged", ["token"])])
        # The files that would be on the disk if the writer were killed now.
        leftover.write_bytes(path.read_bytes())
        Path(f"{leftover}-wal").write_bytes(log_of(path))
    before = leftover.read_bytes(), log_of(leftover)
    assert before[1], "the writer had no log"
    with open_reader(leftover) as corpus:
        bundle = ask(corpus, task="token", lexical_only=True)
    assert "logged#0" in [passage.chunk_id for passage in bundle.selected]
    assert (leftover.read_bytes(), log_of(leftover)) == before
    remove(path)
    remove(leftover)


def test_a_reader_does_not_block_a_writer(folder: Path) -> None:
    path = build(folder, DOCUMENTS)
    with open_writer(path) as writer, open_reader(path) as reader, reader.reading():
        reader.value("SELECT count(*) FROM chunk")
        started = perf_counter()
        fill(writer, [document("d2", ["token"])])
        assert perf_counter() - started < 1
    remove(path)
