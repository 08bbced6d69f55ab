"""A restricted connection sees the allowed compartments and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import compartments, vector_index, vector_search
from rolebundle.storage.corpus import RESTRICTING_VIEWS, Corpus, corpus_counts
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from rolebundle.storage.writing import open_writer
from support.commands import invoke
from support.compartments import search_everywhere
from support.corpora import build, document
from support.fake_embedder import HashingProvider

PROVIDER = HashingProvider()

NOT_RESTRICTED = {
    "embedding_index": "which models there are, and nothing of what they embedded",
    "policy": "asked for what may be shown, before anything is",
}
"""Tables that a restricted connection sees as they are, and why they may be seen."""

VIRTUAL = re.compile(r"lexical_\d+")
"""One table a compartment; which of them there are to ask is what the views say."""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(
        tmp_path,
        [
            document("a", ["token one", "token two"]),
            document(
                "b",
                ["token secret"],
                scope="hr",
                source_id="people",
                supersedes=("a",),
                reach="any",
            ),
            document("c", ["token board"], sensitivity="confidential", source_id="people"),
        ],
        PROVIDER,
    )


@pytest.fixture
def restricted(db: Path) -> Iterator[Corpus]:
    with open_reader(db) as corpus:
        corpus.enable_restriction()
        yield corpus


def places(corpus: Corpus) -> dict[str, int]:
    """The compartment of each document, as the file has them."""
    return dict(corpus.rows("SELECT document_id, compartment FROM main.document"))


def views() -> dict[str, str]:
    """What is put in front of the tables, by the name that it takes."""
    matches = (
        re.match(r"CREATE TEMP (VIEW|TABLE) (\w+)", statement) for statement in RESTRICTING_VIEWS
    )
    return {found[2]: found[1] for found in matches if found}


def plain_tables(corpus: Corpus) -> set[str]:
    """The tables of the file, less those that hold what a virtual table keeps."""
    kinds = {name: kind for _, name, kind, *_ in corpus.rows("PRAGMA main.table_list")}
    virtual = [name for name, kind in kinds.items() if kind == "virtual"]
    # SQLite calls not all of them shadow tables: sqlite-vec does not name all of its own.
    prefixes = (*(f"{name}_" for name in virtual), "sqlite_")
    return {
        name for name, kind in kinds.items() if kind == "table" and not name.startswith(prefixes)
    }


def seen(corpus: Corpus) -> dict[str, int]:
    """How many rows each of the views has."""
    names = [name for name, kind in views().items() if kind == "VIEW"]
    return {name: corpus.value(f"SELECT count(*) FROM {name}") for name in names}


class TestEveryTable:
    def test_is_behind_a_view_or_named_here(self, restricted: Corpus) -> None:
        behind = {name for name, kind in views().items() if kind == "VIEW"}
        assert plain_tables(restricted) == behind | NOT_RESTRICTED.keys()
        assert behind & NOT_RESTRICTED.keys() == set()
        assert len(views()) == len(RESTRICTING_VIEWS)
        assert views().keys() - behind == {"allowed_compartment", "restricted_state"}

    def test_that_is_virtual_belongs_to_one_compartment(self, restricted: Corpus) -> None:
        virtual = {
            name
            for _, name, kind, *_ in restricted.rows("PRAGMA main.table_list")
            if kind == "virtual"
        }
        assert len(virtual) == 3
        assert [name for name in virtual if not VIRTUAL.fullmatch(name)] == []

    def test_has_the_columns_of_its_view(self, restricted: Corpus) -> None:
        for name, kind in views().items():
            if kind == "VIEW":
                shapes = [
                    [row[1] for row in restricted.rows(f"PRAGMA {schema}.table_info({name})")]
                    for schema in ("main", "temp")
                ]
                assert shapes[0] == shapes[1], name

    def test_that_is_left_out_reveals_nothing(self, restricted: Corpus) -> None:
        columns = {
            name: {row[1] for row in restricted.rows(f"PRAGMA main.table_info({name})")}
            for name in NOT_RESTRICTED
        }
        assert columns["embedding_index"] == {
            "id", "provider", "model", "model_digest", "dimensions", "query_prefix",
            "passage_prefix", "chunker", "normalization", "active", "reach", "started_at",
            "noise_floor", "related_cosine",
        }  # fmt: skip
        assert columns["policy"] == {
            "only_row", "content", "format", "location", "digest", "set_at",
        }  # fmt: skip


class TestNothing:
    def assert_nothing_visible(self, corpus: Corpus) -> None:
        assert {name for name, count in seen(corpus).items() if count} == {"corpus_state"}
        counts = corpus_counts(corpus)
        assert (counts.documents, counts.chunks) == (0, 0)
        assert compartments.visible_compartments(corpus) == []
        assert search_everywhere(corpus, '"token"') == []
        index = vector_index.active_index(corpus)
        assert index is not None
        assert vector_index.current_counts(corpus, index.id) == {}
        assert passages_by_rowid(corpus, [1, 2, 3, 4]) == {}

    def test_is_visible_before_anything_is_allowed(self, restricted: Corpus) -> None:
        self.assert_nothing_visible(restricted)
        with restricted.reading():
            self.assert_nothing_visible(restricted)

    def test_is_visible_after_the_reading(self, restricted: Corpus) -> None:
        with restricted.reading():
            restricted.restrict_to_compartments(places(restricted).values())
            assert len(search_everywhere(restricted, '"token"')) == 4
        self.assert_nothing_visible(restricted)
        with restricted.reading():
            self.assert_nothing_visible(restricted)

    def test_is_visible_after_a_failed_reading(self, restricted: Corpus) -> None:
        for failure in (ZeroDivisionError, KeyboardInterrupt):
            with pytest.raises(failure), restricted.reading():
                restricted.restrict_to_compartments(places(restricted).values())
                raise failure
            self.assert_nothing_visible(restricted)
        with pytest.raises(CorpusCorrupt), restricted.reading():
            restricted.restrict_to_compartments(places(restricted).values())
            restricted.rows("SELECT * FROM nowhere")
        self.assert_nothing_visible(restricted)


class TestWhatIsAllowed:
    @pytest.mark.parametrize(
        ("scopes", "rows", "sources"),
        [
            ("a", [1, 2], ["wiki"]),
            ("b", [3], ["people"]),
            ("c", [4], ["people"]),
            ("ab", [1, 2, 3], ["people", "wiki"]),
            ("abc", [1, 2, 3, 4], ["people", "wiki"]),
        ],
    )
    def test_is_all_of_it_and_no_more(
        self, restricted: Corpus, scopes: str, rows: list[int], sources: list[str]
    ) -> None:
        with restricted.reading():
            restricted.restrict_to_compartments(places(restricted)[name] for name in scopes)
            assert search_everywhere(restricted, '"token"') == rows
            assert restricted.rows("SELECT id FROM chunk ORDER BY id") == [(row,) for row in rows]
            assert restricted.rows("SELECT chunk FROM embedded ORDER BY 1") == [
                (row,) for row in rows
            ]
            assert restricted.rows("SELECT source_id FROM source ORDER BY 1") == [
                (name,) for name in sources
            ]
            assert restricted.rows("SELECT path FROM file ORDER BY 1") == [
                (f"{name}.md",) for name in scopes
            ]
            assert seen(restricted)["supersession"] == ("b" in scopes)
            counts = corpus_counts(restricted)
            assert (counts.documents, counts.chunks) == (len(scopes), len(rows))
            index = vector_index.active_index(restricted)
            assert index is not None
            assert vector_index.count_vectors(restricted, index) == len(rows)
            vector = restricted.value("SELECT vector FROM main.embedded WHERE chunk = 3")
            found = vector_search.search(restricted, index, vector, 100)
            assert sorted(found) == rows
            assert [*vector_search.cosines(restricted, index.id, vector, [1, 2, 3, 4])] == rows
            assert [*passages_by_rowid(restricted, [1, 2, 3, 4])] == rows

    def test_is_the_same_to_the_end_of_a_snapshot(self, restricted: Corpus) -> None:
        found = places(restricted)
        with restricted.reading():
            restricted.restrict_to_compartments([found["b"]])
            restricted.restrict_to_compartments([found["b"]])
            for other in ([found["a"]], [], found.values()):
                with pytest.raises(AssertionError, match="must not change"):
                    restricted.restrict_to_compartments(other)
            assert search_everywhere(restricted, '"token"') == [3]
        with restricted.reading():
            restricted.restrict_to_compartments([])
            assert search_everywhere(restricted, '"token"') == []

    def test_is_not_superseded_by_what_is_hidden(self, restricted: Corpus) -> None:
        for scopes, newer in (("a", []), ("ab", ["b"])):
            with restricted.reading():
                restricted.restrict_to_compartments(places(restricted)[name] for name in scopes)
                assert [
                    newer_document.document_id
                    for newer_document in passages_by_rowid(restricted, [1])[1].superseded_by
                ] == newer

    def test_does_not_reveal_other_writes(self, restricted: Corpus) -> None:
        assert restricted.value("SELECT generation FROM main.corpus_state") > 0
        for name, generation in (("a", 0), ("a", 5), ("b", 3)):
            with restricted.reading():
                found = [places(restricted)[name]]
                restricted.restrict_to_compartments(found, generation=generation)
                assert restricted.rows("SELECT generation FROM corpus_state") == [(generation,)]
                assert restricted.value("SELECT count(*) FROM purge") == 0
        assert restricted.rows("SELECT generation FROM corpus_state") == [(0,)]

    def test_is_a_snapshot_that_a_writer_does_not_change(
        self, db: Path, restricted: Corpus
    ) -> None:
        with restricted.reading(), open_writer(db) as writer:
            restricted.restrict_to_compartments([places(restricted)["a"]])
            with writer.writing():
                writer.run("UPDATE document SET compartment = 77")
            assert search_everywhere(restricted, '"token"') == [1, 2]

    def test_also_applies_to_statements_that_ran_before(self, db: Path) -> None:
        with open_reader(db) as corpus:
            assert corpus.value("SELECT count(*) FROM chunk") == 4
            corpus.enable_restriction()
            assert corpus.value("SELECT count(*) FROM chunk") == 0
            corpus.enable_restriction()  # once more changes nothing
            with corpus.reading():
                corpus.restrict_to_compartments([places(corpus)["a"]])
                assert corpus.value("SELECT count(*) FROM chunk") == 2
            assert corpus.value("SELECT count(*) FROM chunk") == 0


FOREIGN = {
    "another text": (
        "CREATE VIEW indexed_9 AS SELECT id, title, headings, content, tags, hints FROM chunk"
    ),
    "a trigger": ("CREATE TRIGGER indexed_9 AFTER INSERT ON chunk BEGIN DELETE FROM document; END"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_view_that_is_not_ours_is_refused(db: Path, case: str) -> None:
    with apsw.Connection(str(db)) as behind:
        behind.execute(FOREIGN[case])
    behind.close()
    assert_foreign(db)


def assert_foreign(db: Path) -> None:
    before = db.read_bytes()
    for opened in (open_reader, open_writer):
        with pytest.raises(CorpusCorrupt, match=r"\[foreign_schema\]"):
            opened(db)
    assert invoke("retrieve", "token", "--lexical-only", "--db", db).code == 7
    assert db.read_bytes() == before
