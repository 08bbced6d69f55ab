"""The schema's history. Kills, backups and older schemas: tests/faults/test_migration.py."""

import re
import stat
from pathlib import Path

import apsw
import apsw.sqlite_extra
import pytest

from rolebundle.errors import StorageError
from rolebundle.storage import opening, partition, vector_index, vector_search
from rolebundle.storage.backup import back_up
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import increment_generation
from rolebundle.storage.documents import StoredDocument, document_groups, self_declared
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_id
from rolebundle.storage.writing import open_writer
from support.compartments import assert_compartments_are_separate, kinds
from support.corpora import FLAGGED, build, document
from support.fake_embedder import DIMENSIONS, HashingProvider
from support.old_schema import build_schema_1
from support.sound import assert_sound, contents


def names_in(path: Path) -> set[str]:
    """Return all names in the schema of a file."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    finally:
        db.close()


def test_a_new_corpus_is_what_the_migrations_make(tmp_path: Path) -> None:
    db = apsw.Connection(":memory:")
    for entry in opening.migrations():
        db.execute(entry.read_text(encoding="utf-8"))
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid"
    expected = list(db.execute(schema))
    with open_writer(tmp_path / "c.db") as corpus:
        assert corpus.rows(schema)[: len(expected)] == expected
    # Their statements create no row, so none is missing.
    for kind, name, *_ in expected:
        assert kind != "table" or not db.execute(f"SELECT count(*) FROM {name}").get


def test_every_own_table_is_strict(tmp_path: Path) -> None:
    with open_writer(tmp_path / "c.db") as corpus:
        tables = corpus.rows(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE %' "
            "AND name NOT LIKE 'lexical%' AND name NOT LIKE 'vectors%' AND name NOT LIKE 'sqlite%'"
        )
        assert len(tables) >= 7
        for name, sql in tables:
            assert re.search(r"\)\s*STRICT", sql), name
        assert corpus.rows("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view')") == []
        with corpus.writing():
            partition.find_or_create(corpus, "hr", "internal", ())
        assert corpus.rows("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view')") == []
        assert corpus.db.pragma("user_version") == opening.latest_version()
        assert corpus.db.pragma("application_id") == opening.APPLICATION_ID


def test_a_backup_is_complete_or_missing(tmp_path: Path) -> None:
    db = build(tmp_path, [document("d0", ["the token"])])
    with open_writer(db) as corpus:
        back_up(corpus, tmp_path / "copy.bak")
        back_up(corpus, tmp_path / "copy.bak")  # It would be the same.
        with corpus.writing():
            increment_generation(corpus)
        back_up(corpus, tmp_path / "copy.bak")
        with pytest.raises(StorageError):
            back_up(corpus, tmp_path / "none" / "copy.bak")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.bak", "copy.bak.2", db.name]
    for name in ("copy.bak", "copy.bak.2"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        with open_writer(tmp_path / name) as corpus:
            assert corpus.value("SELECT content FROM chunk") == "the token"


def test_passages_of_an_older_corpus_have_the_flags_of_their_document(tmp_path: Path) -> None:
    db = build(tmp_path, [document("d0", ["a token", "a key"], FLAGGED), document("d1", ["one"])])
    old = apsw.Connection(str(db))
    old.execute("ALTER TABLE chunk DROP COLUMN flags")
    old.pragma("user_version", 14)
    old.close()
    with open_writer(db) as corpus:
        assert find_problems(corpus) == []
        passages = passages_by_id(corpus, ["d0#0", "d0#1", "d1#0"])
        groups = document_groups(corpus, by_date=False)
    assert [passage.flags for passage in passages] == [("instruction_override",)] * 2 + [()]
    assert {group.flags: len(group.rowids) for group in groups} == {(): 1, passages[0].flags: 1}


# -- the second migration --------------------------------------------------------------------------

PROVIDER = HashingProvider()
KINDS = (
    {},
    {"scope": "hr"},
    {"sensitivity": "confidential"},
    {"scope": "hr", "sensitivity": "public"},
)
WORDS = ("token", "rotation", "audit", "kernel", "release", "threat")


def varied(number: int = 24) -> list[StoredDocument]:
    return [
        document(
            f"d{n}",
            [
                " ".join(WORDS[(n * step + place) % len(WORDS)] for step in range(1, 4 + n % 5))
                for place in range(1 + n % 3)
            ],
            title=f"Title {WORDS[n % len(WORDS)]}",
            tags=("x",) if n % 4 == 0 else (),
            supersedes=("d1",) if n == 3 else (),
            **KINDS[n % len(KINDS)],
        )
        for n in range(number)
    ]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus of the first schema, and the same documents in one of today."""
    return build_schema_1(tmp_path_factory.mktemp("schema"), varied(), PROVIDER, waiting=2)


class TestFromTheFirstSchema:
    @pytest.fixture
    def old(self, images: tuple[Path, Path], tmp_path: Path) -> Path:
        (tmp_path / "c.db").write_bytes(images[0].read_bytes())
        return tmp_path / "c.db"

    @pytest.fixture
    def new(self, images: tuple[Path, Path], tmp_path: Path) -> Path:
        """What the same documents are when they are put into a corpus of today."""
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "c.db").write_bytes(images[1].read_bytes())
        return tmp_path / "new" / "c.db"

    def test_the_origin_of_authority_is_unknown(self, old: Path) -> None:
        with open_writer(old) as corpus:
            found = {declared.document_id: declared.keys for declared in self_declared(corpus)}
        assert found == {"d3": ["unknown"]}

    def test_every_document_is_assigned_to_its_compartment(self, old: Path, new: Path) -> None:
        with open_writer(old) as corpus:
            assert corpus.db.pragma("user_version") == opening.latest_version()
            assert find_problems(corpus) == []
            assert_compartments_are_separate(corpus)
            found = kinds(corpus)
        assert {kind[:2] for kind in found.values()} == {
            ("shared", "internal"),
            ("hr", "internal"),
            ("shared", "confidential"),
            ("hr", "public"),
        }
        assert contents(old) == contents(new)
        assert_sound(old)

    def test_the_old_indexes_are_gone(self, old: Path) -> None:
        assert {"lexical", "lexical_data", "vectors_1", "vectors_1_chunks"} <= names_in(old)
        open_writer(old).close()
        remaining = {name for name in names_in(old) if re.match(r"(lexical|vectors)(_|$)", name)}
        assert all(re.match(r"lexical_\d", name) for name in remaining), remaining


def test_indexes_of_vectors_of_earlier_versions_are_dropped(tmp_path: Path) -> None:
    """Their tables and their seals; a reader ignores them."""
    path = build(tmp_path, [document("a", ["token rotation"])], HashingProvider())
    with open_writer(path) as corpus:
        apsw.sqlite_extra.load(corpus.db, "vec1")
        corpus.load_vector_functions()
        with corpus.writing():
            for create in (
                "CREATE VIRTUAL TABLE fast_1_1 USING vec1(vec)",
                f"CREATE VIRTUAL TABLE vectors_1_1 USING vec0(embedding float[{DIMENSIONS}])",
            ):
                corpus.run(create)
            for target in ("fast_1_1 (rowid, vec)", "vectors_1_1 (rowid, embedding)"):
                corpus.run(f"INSERT INTO {target} SELECT chunk, vector FROM embedded")
            corpus.run("INSERT INTO seal VALUES ('fast_1_1_config', x'00')")
            corpus.run("INSERT INTO seal VALUES ('vectors_1_1_info', x'00')")
    with open_reader(path) as corpus:
        index = vector_index.active_index(corpus)
        assert index is not None
        vector = corpus.value("SELECT vector FROM embedded WHERE chunk = 1")
        assert [*vector_search.search(corpus, index, vector, 5)] == [1]
    with open_writer(path) as corpus:
        assert find_problems(corpus) == []
    assert not [name for name in names_in(path) if name.startswith(("fast_", "vectors_"))]
    assert_sound(path)
