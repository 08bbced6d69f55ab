"""`rolebundle corpus purge`: what it shows, says, and leaves with."""

from pathlib import Path
from typing import ClassVar

import pytest

from rolebundle.storage.file import published_folder
from rolebundle.storage.opening import open_reader
from rolebundle.storage.replicas import staging
from support.commands import invoke, is_coded
from support.publications import stage
from support.sound import assert_sound
from support.templates import Template

WORD = "xqvzkjwolvex"


def make(folder: Path) -> None:
    (folder / "docs" / "hr").mkdir(parents=True)
    for name in ("hr/review.md", "hr/pay.md", "plan.md"):
        shown_text = WORD if name.startswith("hr") else "ordinary"
        text = f"# {name}\n\nSome {shown_text} text.\n"
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    (folder / "corpus").mkdir()
    db = folder / "corpus" / "c.db"
    assert invoke("ingest", folder / "docs", "--lexical-only", "--db", db).code == 0


@pytest.fixture
def tree(template: Template) -> Path:
    return template.put_back() / "docs"


@pytest.fixture
def db(tree: Path) -> Path:
    return tree.with_name("corpus") / "c.db"


def documents(db: Path) -> set[str]:
    with open_reader(db) as corpus:
        return {name for (name,) in corpus.rows("SELECT document_id FROM document")}


def bytes_of(db: Path) -> bytes:
    return b"".join(entry.read_bytes() for entry in db.parent.iterdir())


def test_a_document_a_source_a_path_and_a_glob(db: Path) -> None:
    assert documents(db) == {"docs/hr/review.md", "docs/hr/pay.md", "docs/plan.md"}
    assert invoke("corpus", "purge", "docs/hr/review.md", "--yes", "--db", db).code == 0
    assert documents(db) == {"docs/hr/pay.md", "docs/plan.md"}
    assert WORD.encode() in bytes_of(db)
    assert invoke("corpus", "purge", "hr/pay.md", "--yes", "--db", db).code == 0
    assert documents(db) == {"docs/plan.md"}
    assert WORD.encode() not in bytes_of(db)
    assert b"pay.md" not in bytes_of(db)
    assert invoke("corpus", "purge", "docs", "--yes", "--db", db).code == 0
    assert documents(db) == set()
    assert_sound(db)


def test_files_that_would_come_back_are_named(db: Path, tree: Path) -> None:
    outcome = invoke("corpus", "purge", "docs/hr/pay.md", "--yes", "--json", "--db", db)
    assert outcome.json()["returning"] == [str(tree / "hr" / "pay.md")]
    assert "the next ingest would add it again" in outcome.err
    assert invoke("ingest", tree, "--lexical-only", "--db", db).code == 0
    assert "docs/hr/pay.md" in documents(db)
    (tree / "hr" / "pay.md").unlink()
    outcome = invoke("corpus", "purge", "docs/hr/pay.md", "--yes", "--json", "--db", db)
    assert outcome.json()["returning"] == []
    assert invoke("ingest", tree, "--lexical-only", "--db", db).code == 0
    assert "docs/hr/pay.md" not in documents(db)


def test_dry_run_erases_nothing(db: Path) -> None:
    before = db.read_bytes()
    outcome = invoke("corpus", "purge", "hr/*", "--dry-run", "--json", "--db", db)
    found = outcome.json()
    assert (outcome.code, found["documents"], found["chunks"], found["vectors"]) == (0, 2, 2, 0)
    assert found["document_ids"] == ["docs/hr/pay.md", "docs/hr/review.md"]
    shown_text = invoke("corpus", "purge", "hr/*", "--dry-run", "--db", db)
    assert "documents: 2\nchunks: 2\n" in shown_text.out
    assert "document ids: docs/hr/pay.md, docs/hr/review.md\n" in shown_text.out
    assert db.read_bytes() == before


@pytest.mark.parametrize("named", ["nothing", "*.pdf", "a\udcff"])
def test_a_name_of_nothing_erases_nothing(db: Path, named: str) -> None:
    outcome = invoke("corpus", "purge", "docs/hr/pay.md", named, "--yes", "--db", db)
    assert outcome.code == 2
    is_coded(outcome)
    assert "[nothing_to_purge]" in outcome.err
    assert len(documents(db)) == 3


def test_without_yes_it_only_shows_what_it_would_erase(db: Path) -> None:
    before = db.read_bytes()
    outcome = invoke("corpus", "purge", "docs/plan.md", "--db", db)
    assert outcome.code == 2
    assert "[not_confirmed]" in outcome.err
    assert "document ids: docs/plan.md\n" in outcome.out
    assert db.read_bytes() == before


def test_a_reader_makes_it_pending(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "50")
    with open_reader(db) as reader, reader.reading():
        reader.value("SELECT count(*) FROM document")
        outcome = invoke("corpus", "purge", "hr/*", "--yes", "--json", "--db", db)
        assert outcome.code == 5
        is_coded(outcome)
        assert "run `rolebundle corpus purge`" in outcome.err
        [receipt] = outcome.json()["receipts"]
        assert (receipt["state"], receipt["waiting_for"]) == ("pending", "reader")
        assert invoke("corpus", "purge", "--db", db).code == 5
        # The same command again names what is gone already.
        assert invoke("corpus", "purge", "hr/*", "--yes", "--db", db).code == 5
    assert WORD.encode() in bytes_of(db)
    outcome = invoke("corpus", "purge", "--json", "--db", db)
    assert outcome.code == 0
    [finished] = outcome.json()["receipts"]
    assert (finished["id"], finished["state"]) == (receipt["id"], "done")
    assert WORD.encode() not in bytes_of(db)
    assert invoke("corpus", "purge", "--db", db).out == "no purge was pending\n"
    assert_sound(db)


def test_backups_are_listed_and_deleted_if_requested(db: Path) -> None:
    backup = db.with_name("c.db.schema-1.bak")
    backup.write_bytes(db.read_bytes())
    outcome = invoke("corpus", "purge", "docs/hr/pay.md", "--yes", "--json", "--db", db)
    assert outcome.code == 0
    assert outcome.json()["backups"] == [str(backup)]
    assert "--backups deletes it" in outcome.err
    assert invoke("corpus", "purge", "--backups", "--db", db).code == 2
    assert backup.exists()
    outcome = invoke("corpus", "purge", "--backups", "--yes", "--db", db)
    assert (outcome.code, outcome.out) == (0, "backups deleted: 1\n")
    assert not backup.exists()


def test_a_file_on_this_machine_names_its_document(
    db: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def documents_to_purge(name: str) -> list[str]:
        found = invoke("corpus", "purge", name, "--dry-run", "--json", "--db", db).json()
        return list(found["document_ids"])

    monkeypatch.chdir(tree / "hr")
    for name in (tree / "hr" / "pay.md", "pay.md", "hr/pay.md"):
        assert documents_to_purge(str(name)) == ["docs/hr/pay.md"]
    outcome = invoke("corpus", "purge", "pya.md", "--dry-run", "--db", db)
    assert (outcome.code, "did you mean docs/hr/pay.md" in outcome.err) == (2, True)


class TestPublications:
    COPY: ClassVar = {
        "target": "/share/a team",
        "agent": "ana",
        "generation": 3,
        "published_at": "2026-11-01T00:00:00Z",
        "refuses_at": "2026-12-01T00:00:00Z",
        "next_step": "rolebundle replica publish '/share/a team' --key FILE",
    }

    @pytest.fixture
    def published(self, db: Path) -> Path:
        stage(db, "/share/a team", ["docs/hr/pay.md"])
        stage(db, "/share/other", ["docs/plan.md"])
        return db

    def test_a_purge_lists_those_that_carried_it(self, published: Path) -> None:
        preview = invoke("corpus", "purge", "hr/pay.md", "--dry-run", "--json", "--db", published)
        assert preview.json()["publications"] == [self.COPY]
        plan = invoke("corpus", "purge", "hr/pay.md", "--dry-run", "--db", published)
        outcome = invoke("corpus", "purge", "hr/pay.md", "--yes", "--json", "--db", published)
        [receipt] = outcome.json()["receipts"]
        assert receipt["publications"] == [self.COPY]
        for text in (plan.err, outcome.err):
            assert "published: target /share/a team, agent ana, generation 3, " in text
            assert "refuses_at 2026-12-01T00:00:00Z" in text
            assert "cannot be reached from here" in text

    def test_a_remaining_replica_is_reported(
        self, published: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(path: Path, **_: object) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "unlink", refuse)
        outcome = invoke("corpus", "purge", "hr/pay.md", "--yes", "--db", published)
        assert outcome.code == 6
        assert str(published_folder(published)) in outcome.err

    def test_a_running_publish_is_reported(
        self, published: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "20")
        with staging(published):
            outcome = invoke("corpus", "purge", "hr/pay.md", "--yes", "--db", published)
        assert outcome.code == 5
        assert "another process publishes the corpus" in outcome.err
