"""A folder of documents and manifests beside an empty corpus, and notes beside their corpus."""

from pathlib import Path

import pytest

from rolebundle.ingest import indexes, sync
from rolebundle.storage.writing import open_writer
from support.fake_embedder import HashingProvider
from support.index_builds import BATCH, FILES, write
from support.source_tree import Tree
from support.templates import Template


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture(scope="session")
def _indexed_notes(tmp_path_factory):
    def make(folder: Path) -> None:
        (folder / "notes").mkdir()
        for number in range(FILES):
            write(folder / "notes", f"n{number}")
        with open_writer(folder / "c.db") as corpus:
            assert sync.ingest(corpus, [folder / "notes"], HashingProvider()).waiting == 0

    return Template(tmp_path_factory.mktemp("indexes"), make)


@pytest.fixture
def notes(_indexed_notes, monkeypatch):
    """Twenty notes. Indexes of them are built in batches of four."""
    monkeypatch.setattr(indexes, "BATCH", BATCH)
    return _indexed_notes.put_back() / "notes"


@pytest.fixture
def db(notes):
    """The corpus of the notes: twenty chunks, all with a vector of the old model."""
    return notes.with_name("c.db")
