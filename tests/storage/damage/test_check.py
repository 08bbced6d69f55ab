"""Looking for damage. What each kind of damage looks like: tests/faults/test_damaged_content.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.storage import check, lexical_index
from rolebundle.storage.opening import open_writer
from support.corpora import build, document
from support.fake_embedder import HashingProvider


@pytest.fixture
def db(tmp_path: Path) -> Path:
    documents = [document(f"d{n}", [f"token {n}", f"key {n}"]) for n in range(3)]
    return build(tmp_path, documents, HashingProvider())


def test_changed_words_are_found_if_the_checksum_of_fts5_is_the_same(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksum is an XOR, in which an even number of equal changes cancel each other out."""
    with open_writer(db) as corpus:
        with corpus.writing():
            lexical_index.remove_chunks(corpus, 1, [1, 2])
            corpus.run(
                "INSERT INTO lexical_1 (rowid, title, headings, content, tags, hints) "
                "SELECT id, title, headings, replace(content, 'token', 'tokem'), tags, hints "
                "FROM chunk WHERE id IN (1, 2)"
            )
        monkeypatch.setattr(lexical_index, "_command", lambda *_: None)
        assert [problem.code for problem in check.find_problems(corpus)] == ["lexical_drift"]
