"""Staged replicas: a purge erases those that may hold what was purged, and no others."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from rolebundle.admin.purges import PurgeSelection, finish_purges, purge
from rolebundle.contracts.upkeep import Receipt
from rolebundle.errors import CorpusBusy
from rolebundle.storage.file import published_folder
from rolebundle.storage.opening import open_writer
from rolebundle.storage.publications import publications, save_publication
from rolebundle.storage.replicas import staging
from support.canaries import files_of, found_in
from support.corpora import build, document
from support.publications import stage

WORD = "xqzjkvwp"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, [document("a", [f"{WORD} one"]), document("b", ["two"])])


def purged(db: Path, *names: str) -> Receipt:
    with open_writer(db) as corpus:
        return purge(corpus, PurgeSelection(names))


def traces_in(db: Path) -> set[bytes]:
    return found_in(files_of(db), {WORD.encode()})


def test_a_purge_erases_the_staged_replicas_that_carried_it(db: Path) -> None:
    carrying, without = stage(db, "/one", ["a", "b"]), stage(db, "/two", ["b"])
    for copy in without.rglob("*"):
        if copy.is_file():
            copy.write_bytes(b"nothing of a")
    assert traces_in(db)
    receipt = purged(db, "a")
    assert receipt.state == "done"
    assert [copy.target for copy in receipt.publications] == ["/one"]
    assert not traces_in(db)
    assert not carrying.exists()
    assert without.exists()


def test_a_replica_of_no_publication_is_erased(db: Path) -> None:
    """A publish that was killed before it stored what the replica holds."""
    staged = stage(db, "/one", [])
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("DELETE FROM publication")
    assert purged(db, "a").state == "done"
    assert not staged.exists()
    assert not traces_in(db)


def test_a_partial_file_of_a_killed_publish_is_erased(db: Path) -> None:
    """It may hold what is not stored as carried yet."""
    staged = stage(db, "/one", ["b"])
    partial = staged / f"replica.db.{'0' * 32}.partial"
    (staged / "replica.db").rename(partial)
    (staged / ".engine" / "0001.state").unlink()
    receipt = purged(db, "a")
    assert (receipt.state, receipt.publications) == ("done", [])
    assert not partial.exists()
    assert staged.exists()
    assert not traces_in(db)


def test_a_replica_that_was_renewed_stays(db: Path) -> None:
    stage(db, "/one", ["a"])
    purged(db, "a")
    with open_writer(db) as corpus, corpus.writing():
        [known] = publications(corpus)
        save_publication(corpus, known._replace(published_purges=known.purge_generation))
    published_folder(db).joinpath("0" * 16).mkdir()
    staged = stage(db, "/two", ["b"])
    receipt = purged(db, "b")
    assert [copy.target for copy in receipt.publications] == ["/two"]
    assert not staged.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no lock of folders")
def test_a_publish_makes_it_pending(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEBUNDLE_BUSY_TIMEOUT_MS", "20")
    stage(db, "/one", ["a"])
    with staging(db):
        receipt = purged(db, "a")
        assert (receipt.state, receipt.waiting_for) == ("pending", "publisher")
        assert traces_in(db)
        with pytest.raises(CorpusBusy), staging(db):
            pass
    with open_writer(db) as corpus:
        [receipt] = finish_purges(corpus)
    assert (receipt.state, receipt.waiting_for) == ("done", "")
    assert [copy.target for copy in receipt.publications] == ["/one"]
    assert not traces_in(db)


def test_a_folder_that_cannot_be_deleted_makes_it_pending(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    stage(db, "/one", ["a"])
    monkeypatch.setattr(shutil, "rmtree", refuse)
    receipt = purged(db, "a")
    assert (receipt.state, receipt.waiting_for) == ("pending", "staging")
    monkeypatch.undo()
    with open_writer(db) as corpus:
        assert [purge.state for purge in finish_purges(corpus)] == ["done"]
    assert not traces_in(db)


def test_a_link_is_removed_and_not_followed(db: Path, tmp_path: Path) -> None:
    staged = stage(db, "/one", ["a"])
    shutil.rmtree(staged)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("stays")
    staged.symlink_to(elsewhere)
    assert purged(db, "a").state == "done"
    assert not staged.is_symlink()
    assert (elsewhere / "file").read_text() == "stays"
