"""Digests and the seal: they cover every column, and every function keeps them true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.policy.access import deny_matcher, set_policy
from rolebundle.storage import digests, facts, quarantine, seal
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.documents import StoredFile
from rolebundle.storage.opening import open_writer
from rolebundle.storage.seal import row_digest
from support.corpora import FLAGGED, build, document, embed, file_of, put_file
from support.fake_embedder import HashingProvider
from support.flipped_files import POLICY, QUARANTINED

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
        set_policy(corpus, POLICY, "toml", "", "2026-01-01T00:00:00Z")
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
def corpus(image: bytes, tmp_path: Path) -> Iterator[Corpus]:
    (tmp_path / "c.db").write_bytes(image)
    with open_writer(tmp_path / "c.db", replica=True) as opened:
        yield opened


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_change_of_any_column_is_found(corpus: Corpus, step: int) -> None:
    """Behind SQLite's back, so that no constraint prevents it. By default every fifth column."""
    corpus.run("PRAGMA foreign_keys = OFF")
    tables = corpus.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'"
    )
    assert len(tables) >= 15
    columns = []
    for (table,) in tables:
        assert corpus.value(f"SELECT count(*) FROM {table}"), f"{table} has no row to change"
        rows = corpus.rows(f"PRAGMA table_info({table})")
        columns += [(table, column, kind) for _, column, kind, *_ in rows]
    # Only its order counts, and the table's index has it a second time.
    columns.remove(("embedding_cache", "id", "INTEGER"))
    for table, column, kind in columns[::step]:
        changed = {"TEXT": f"coalesce({column}, '') || 'x'", "BLOB": "x'00'"}.get(
            kind, f"coalesce({column}, 0) + 70"
        )
        corpus.run("PRAGMA ignore_check_constraints = ON")
        corpus.run("BEGIN")
        corpus.run(
            f"UPDATE {table} SET {column} = {changed} WHERE ({column}) IS "
            f"(SELECT max({column}) FROM {table})"
        )
        corpus.run("PRAGMA ignore_check_constraints = OFF")
        found = find_problems(corpus, deny_matcher(corpus))
        corpus.run("ROLLBACK")
        assert found, f"{table}.{column}"
    assert find_problems(corpus, deny_matcher(corpus)) == []


@pytest.mark.parametrize("table", ["chunk", "document", "supersession", "scanned", "compartment"])
def test_a_lost_row_is_found(corpus: Corpus, table: str) -> None:
    corpus.run("PRAGMA foreign_keys = OFF")
    corpus.run(f"DELETE FROM {table}")
    assert find_problems(corpus)


def test_the_digest_depends_on_each_value_and_where_it_stands() -> None:
    rows = [
        (1, "a"), ("1", "a"), (1.5, "a"), (None, "a"), (1, "a", ""), (1, ""), ("a", 1), (),
        (1, 'a","b'), (1, "a", "b"), (1, "a\0"), (b"\x01", "a"), ([1], "a"), (1, "ä"),
    ]  # fmt: skip
    assert len({row_digest(row) for row in rows}) == len(rows)


def test_columns_of_later_schemas_leave_digests_of_earlier_ones_valid() -> None:
    columns = digests.FILE_ROW
    earlier = (1, "/a.md", "a.md", "hash", "recipe")
    assert columns.split(", ")[5:] == ["size", "modified_ns"]
    assert digests.file_digest((*earlier, 0, 0)) == row_digest(earlier)
    later = [(0, 0), (7, 0), (0, 7), (7, 7)]
    assert len({digests.file_digest((*earlier, *values)) for values in later}) == len(later)


def test_what_was_damaged_before_stays_damaged(corpus: Corpus) -> None:
    """A document that moves, is released or claims less gets a new digest only if it was sound."""
    corpus.run("UPDATE document SET title = 'forged' WHERE document_id = 'c'")
    flagged = quarantine.flagged_document(corpus, "c")
    assert flagged is not None
    with corpus.writing():
        quarantine.release(corpus, flagged)
    damaged = [row.name for row in digests.checked(corpus, "document") if not row.is_intact]
    assert damaged == ["c"]


def test_a_broken_seal_stays_broken(corpus: Corpus) -> None:
    corpus.run("UPDATE policy SET content = 'forged'")
    with corpus.writing():
        increment_generation(corpus)
    assert seal.broken(corpus) == {"policy"}


@pytest.mark.parametrize("change", ["digest = x'00'", "page = 7"])
def test_a_document_that_is_stored_again_is_sound_again(corpus: Corpus, change: str) -> None:
    corpus.run(f"UPDATE chunk SET {change} WHERE id = 1")
    assert not all(row.is_intact for row in digests.checked(corpus, "chunk"))
    with corpus.writing():
        put_file(corpus, file_of("a"), [FIRST])
    assert all(row.is_intact for row in digests.checked(corpus, "chunk"))
