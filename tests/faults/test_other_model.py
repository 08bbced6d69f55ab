"""Rows 20 and 24: another model, another dimension, and batches that are refused whole."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from rolebundle.errors import EmbedderError
from rolebundle.ingest import sync
from rolebundle.storage import vector_index
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.corpora import ask, build, document
from support.fake_embedder import DIMENSIONS, IDENTITY, BrokenProvider, HashingProvider
from support.sound import assert_sound, contents
from support.source_tree import write_files

OTHER_IDENTITIES = {
    "provider": IDENTITY._replace(provider="other"),
    "model": IDENTITY._replace(model="other"),
    "digest": IDENTITY._replace(digest="1111"),
    "dimensions": IDENTITY._replace(dimensions=DIMENSIONS * 2),
    "prefix": IDENTITY._replace(query_prefix="query: "),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", {f"{n}.md": f"token {n}\n" for n in range(5)})


@pytest.mark.parametrize("case", OTHER_IDENTITIES)
def test_another_model_writes_nothing_and_answers_lexically(
    tmp_path: Path, tree: Path, case: str
) -> None:
    db = build(tmp_path, [document("d0", ["the token"])], HashingProvider())
    before = db.read_bytes()
    other_provider = HashingProvider(OTHER_IDENTITIES[case])
    with open_writer(db) as corpus, pytest.raises(EmbedderError) as caught:
        sync.ingest(corpus, [tree], other_provider)
    assert (caught.value.code, caught.value.exit_code) == ("model_mismatch", 9)
    assert db.read_bytes() == before
    with open_reader(db) as corpus:
        bundle = ask(corpus, provider=other_provider, task="token")
        assert [chunk.lanes for chunk in bundle.selected] == [["lexical"]]
        assert "SEMANTIC_LANE_DEGRADED" in {warning.code for warning in bundle.warnings}
        assert len(vector_index.all_indexes(corpus)) == 1


# -- batches -----------------------------------------------------------------------------------

Answer = Callable[[Sequence[str]], np.ndarray]


def good(texts: Sequence[str]) -> np.ndarray:
    return HashingProvider().embed_passages(texts)


def zeroed(texts: Sequence[str]) -> np.ndarray:
    vectors = good(texts)
    vectors[["token 3" in text for text in texts]] = 0
    return vectors


BAD: dict[str, tuple[Answer, int]] = {
    "short": (lambda texts: good(texts)[:-1], 5),
    "long": (lambda texts: np.vstack([good(texts), good(["more"])]), 5),
    "wrong dimension": (lambda texts: good(texts)[:, :-1], 5),
    "one row for all": (lambda texts: good(texts)[0], 5),
    "zeros for one text": (zeroed, 1),
    "NaN": (lambda texts: good(texts) * np.nan, 5),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", BAD)
def test_a_bad_batch_is_refused_and_its_chunks_wait(tmp_path: Path, tree: Path, case: str) -> None:
    answer, waiting = BAD[case]
    db = tmp_path / "c.db"
    with open_writer(db) as corpus:
        report = sync.ingest(corpus, [tree], BrokenProvider(answer))
    assert (report.added, report.waiting) == (5, waiting)
    assert report.embedding_problem
    assert_sound(db)
    with open_writer(db) as corpus:
        report = sync.ingest(corpus, [tree], HashingProvider())
    assert (report.embedded, report.waiting) == (waiting, 0)
    with open_writer(tmp_path / "whole.db") as corpus:
        sync.ingest(corpus, [tree], HashingProvider())
    assert contents(db) == contents(tmp_path / "whole.db")
