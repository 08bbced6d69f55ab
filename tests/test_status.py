"""What `status` reports of a corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.status import checked_status, corpus_status
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.corpora import build, document
from support.fake_embedder import HashingProvider


@pytest.fixture
def path(tmp_path: Path) -> Path:
    documents = [
        document("guide", ["one two three", "five six"]),
        document("page", ["all of it"], source_id="site", trust_tier="preferred"),
        document("guide-2", ["text"], supersedes=("guide",)),
    ]
    return build(tmp_path, documents, HashingProvider(), waiting=1)


def test_the_status_of_a_corpus(path: Path) -> None:
    with open_reader(path) as corpus:
        status = corpus_status(corpus)
    assert (status.corpus.documents, status.corpus.chunks, status.waiting) == (3, 4, 1)
    sources = [(s.source_id, s.documents, s.chunks, s.trust_tiers) for s in status.sources]
    assert sources == [
        ("site", 1, 1, {"preferred": 1}),
        ("wiki", 2, 3, {"general": 2}),
    ]
    assert status.bytes > 0
    assert not status.checked


def test_without_an_index_everything_waits(tmp_path: Path) -> None:
    with open_reader(build(tmp_path, [document("a", ["x", "y"])])) as corpus:
        status = corpus_status(corpus)
    assert (status.corpus.index, status.waiting) == (None, 2)


def test_a_check_finds_nothing_in_a_sound_corpus(path: Path) -> None:
    status = checked_status(Workspace(path))
    assert (status.checked, status.problems) == (True, [])
