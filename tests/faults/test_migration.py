"""Row 16: an older schema is backed up, then migrated; see `test_killed_writes` for row 2."""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import WrongFile
from rolebundle.storage import opening
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import build, document
from support.fake_embedder import HashingProvider
from support.operations import stored_rows
from support.sound import assert_sound, contents

DATA = Path(__file__).parent.parent / "data"
"""Corpora that releases made, one for each schema since the sixth."""
SECOND = """
ALTER TABLE document ADD COLUMN reviewed TEXT;
CREATE TABLE review (id INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO review (note) SELECT 'review ' || i FROM n;
UPDATE document SET reviewed = 'no';
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A filled corpus of the newest schema there is, which is about to become an older one."""
    documents = (document(f"d{n}", [f"the token number {n} of the kernel"]) for n in range(30))
    return build(tmp_path, documents, HashingProvider(), name="old.db")


@pytest.fixture
def newer(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """One more migration than this version of the package has."""
    known = opening.migrations()
    folder = shutil.copytree(known[0].parent, tmp_path / "migrations")
    (folder / f"{len(known) + 1:04}_second.sql").write_text(SECOND, encoding="utf-8")
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


@pytest.mark.parametrize("release", sorted(DATA.glob("schema-*.db.gz")), ids=lambda path: path.name)
def test_a_corpus_of_each_release_is_migrated(release: Path, tmp_path: Path) -> None:
    """A corpus that the release made, with a policy, a quarantined document and a purge."""
    db = tmp_path / "c.db"
    db.write_bytes(gzip.decompress(release.read_bytes()))
    before = stored_rows(db)
    open_writer(db).close()
    assert_sound(db)
    [backup] = backups(db)
    assert stored_rows(backup) == before
    found = contents(db)
    names = [row[:2] for row in found["documents"]]
    assert names == [("notes/a.md", "A"), ("notes/b.md", "B"), ("notes/d.md", "D")]
    assert len(found["vectors"]) == len(found["chunks"])
    with Engine(Workspace(db, HashingProvider()), agent="bot") as engine:
        bundle = engine.retrieve(RetrievalRequest(task="the token rotation"))
    assert {passage.document_id for passage in bundle.selected} == {"notes/a.md"}
