"""A corpus with vectors for tests that damage it, and small batches for tests that kill."""

from pathlib import Path

import pytest

from rolebundle.ingest import indexes, sync
from rolebundle.storage import writing
from rolebundle.storage.writing import open_writer
from support.fake_embedder import HashingProvider
from support.sound import assert_sound
from support.source_tree import write_files


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {
        f"n{number:02}.md": f"# Note {number}\n\n{f'token rotation {number} naïve ' * 60}\n"
        for number in range(40)
    }
    return write_files(tmp_path_factory.mktemp("damaged") / "notes", texts)


@pytest.fixture(scope="session")
def image(tree: Path) -> bytes:
    """The bytes of a corpus with vectors, nothing left in its log."""
    db = tree.parent / "image.db"
    with open_writer(db) as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert_sound(db)
    return db.read_bytes()


@pytest.fixture
def corpus_file(image: bytes, tmp_path: Path) -> Path:
    (tmp_path / "c.db").write_bytes(image)
    return tmp_path / "c.db"


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small transactions, and a log that is folded into the file often."""
    monkeypatch.setattr(sync, "_FILES_PER_BATCH", 3)
    monkeypatch.setattr(indexes, "BATCH", 4)
    monkeypatch.setattr(writing, "LOG_PAGES", 60)
