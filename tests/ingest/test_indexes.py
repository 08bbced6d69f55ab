"""The life of an embedding index: building, filling, activating and dropping it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.indexes import drop_index, use_index
from rolebundle.embedding.noise import noise_of
from rolebundle.errors import EmbedderError, UsageError
from rolebundle.ingest import sync
from rolebundle.ingest.indexes import INPUT_VERSION, EmbeddingReport
from rolebundle.ingest.options import IngestOptions
from rolebundle.storage import vector_index
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader, open_writer
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.workspace import Workspace
from support.corpora import ask
from support.fake_embedder import IDENTITY, HashingProvider
from support.index_builds import BATCH, FILES, NEW, Watched, active, build, codes, write
from support.vectors import assert_never_mixed

# -- building beside, changing over --------------------------------------------------------------


def test_the_old_index_stays_active_until_the_new_one_is_complete(db: Path) -> None:
    seen = []

    def look(_call: int) -> None:
        with open_reader(db) as corpus:
            index = vector_index.active_index(corpus)
            assert index is not None
            bundle = ask(corpus, None, HashingProvider(), task="n3 tokens")
            assert bundle.selected
            assert all(passage.scores.semantic > 0 for passage in bundle.selected)
            seen.append((index.identity.model, codes(bundle) & {"SEMANTIC_LANE_DEGRADED"}))

    report = build(db, Watched(NEW, before=look))
    assert seen == [(IDENTITY, set())] * (FILES // BATCH)
    assert (report.embedded, report.waiting) == (FILES, 0)
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}
    with open_reader(db) as corpus:
        assert "SEMANTIC_LANE_DEGRADED" not in codes(
            ask(corpus, None, HashingProvider(NEW), task="n3")
        )
        old = ask(corpus, None, HashingProvider(), task="n3")
    [warning] = [warning for warning in old.warnings if warning.code == "SEMANTIC_LANE_DEGRADED"]
    assert "newer" in warning.message


def test_activation_is_one_transaction(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(corpus: Corpus, _index: EmbeddingIndex) -> None:
        corpus.run("UPDATE embedding_index SET active = 0")
        raise RuntimeError("killed between the two")

    with monkeypatch.context() as broken:
        broken.setattr(vector_index, "activate_index", half)
        with pytest.raises(RuntimeError):
            build(db, Watched(NEW))
    assert active(db).identity.model == IDENTITY
    second_run = Watched(NEW)
    build(db, second_run)
    assert second_run.batches == [], "nothing is embedded twice"
    assert active(db).identity.model == NEW


def test_the_noise_of_the_model_is_stored_once_something_is_embedded(db: Path, notes: Path) -> None:
    assert active(db).noise == noise_of(HashingProvider())
    with open_writer(db) as corpus, corpus.writing():
        corpus.run("UPDATE embedding_index SET noise_floor = NULL, related_cosine = NULL")
    assert active(db).noise is None
    with open_reader(db) as corpus:
        unknown = ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings()
    with open_writer(db) as corpus:
        sync.ingest(corpus, [notes], HashingProvider())
    assert active(db).noise == noise_of(HashingProvider())
    with open_reader(db) as corpus:
        assert ask(corpus, None, HashingProvider(), task="n3 tokens").without_timings() == unknown
    build(db, HashingProvider(NEW))
    assert active(db).noise == noise_of(HashingProvider(NEW))


@pytest.mark.parametrize("moment", [0, FILES // BATCH - 1])
def test_documents_ingested_during_the_build_are_embedded_before_activation(
    db: Path, notes: Path, moment: int
) -> None:
    def ingest(call: int) -> None:
        if call == moment:
            write(notes, "meanwhile")
            (notes / "n0.md").unlink()
            with open_writer(db) as corpus:
                sync.ingest(corpus, [notes], HashingProvider())

    report = build(db, Watched(NEW, before=ingest))
    assert report.waiting == 0
    assert active(db).identity.model == NEW
    assert assert_never_mixed(db) == {"hashed-words": FILES, "newer": FILES}


def test_a_failing_text_is_reported_and_the_others_are_embedded(db: Path) -> None:
    class Choosy(Watched):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
            if any("n7 " in text for text in texts):
                raise EmbedderError("input_too_long", "n7 is too long", "")
            return super().embed_passages(texts)

    report = build(db, Choosy(NEW))
    assert (report.embedded, report.waiting) == (FILES - 1, 1)
    assert "n7 is too long" in report.problem
    assert active(db).identity.model == IDENTITY, "an incomplete index does not take over"


# -- use, drop, plan -----------------------------------------------------------------------------


def test_use_and_drop(db: Path) -> None:
    build(db, Watched(NEW))
    admin = Admin(db)
    with pytest.raises(UsageError) as refused:
        drop_index(admin.workspace, "fake:newer")
    assert refused.value.code == "index_in_use"
    use_index(admin.workspace, "fake:hashed-words")
    assert active(db).identity.model == IDENTITY
    drop_index(admin.workspace, "2")
    assert assert_never_mixed(db) == {"hashed-words": FILES}
    with open_reader(db) as corpus:
        assert corpus.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'vectors_2%'") == []
    with pytest.raises(UsageError) as unknown:
        use_index(admin.workspace, "2")
    assert unknown.value.code == "unknown_index"
    assert "1 (fake:hashed-words)" in unknown.value.hint


def test_an_ambiguous_name(db: Path) -> None:
    build(db, Watched(NEW._replace(digest="3333")))
    build(db, Watched(NEW))
    with pytest.raises(UsageError) as refused:
        use_index(Workspace(db), "newer")
    assert refused.value.code == "ambiguous_index"
    use_index(Workspace(db), "2")
    assert active(db).identity.model.digest == "3333"


# -- another model, and outdated vectors ---------------------------------------------------------


def test_the_option_of_an_ingest_not_to_embed(notes: Path) -> None:
    with Admin(notes.with_name("new.db")) as admin:
        report = admin.ingest([notes], IngestOptions(lexical_only=True))
        assert (report.added, report.embedded) == (20, 0)


def test_outdated_vectors_of_an_older_index_are_replaced(notes: Path, db: Path) -> None:
    """Its vectors lack the tags: those chunks are embedded again, and no other."""
    for name in ("n1", "n2"):
        path = notes / f"{name}.md"
        path.write_text(f"---\ntags: [zebra]\n---\n{path.read_text('utf-8')}", encoding="utf-8")
    with open_writer(db) as corpus:
        sync.ingest(corpus, [notes], HashingProvider())
        index = vector_index.active_index(corpus)
        assert index is not None and index.identity.chunker == INPUT_VERSION
        tagged = [row for (row,) in corpus.rows("SELECT id FROM chunk WHERE tags <> '[]'")]
        assert len(tagged) == 2
        with corpus.writing():
            vector_index.set_chunker(corpus, index, "structure-1")
            corpus.run("UPDATE embedded SET input_hash = 'x' WHERE chunk = ?", (tagged[0],))
        before = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        counting = HashingProvider()
        report = sync.ingest(corpus, [notes], counting)
        assert (report.embedded, report.waiting) == (1, 0)
        after = dict(corpus.rows("SELECT chunk, input_hash FROM embedded"))
        assert {row for row in after if after[row] != before[row]} == {tagged[0]}
        renewed = vector_index.active_index(corpus)
        assert renewed is not None and renewed.identity.chunker == INPUT_VERSION
    assert build(db, HashingProvider()) == EmbeddingReport(0, 0)
