"""A passage is embedded once for reranking; its vector is cached, and purged with the passage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.purges import PurgeSelection
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted
from rolebundle.retrieval.pipeline import retrieve
from rolebundle.retrieval.rerank.reranker import Reranker
from rolebundle.retrieval.rerank.scorers import CosineScorer
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.commands import invoke
from support.corpora import resolved
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, TASK, RecordingProvider, known, retrieve_reranked


class TestCache:
    def test_the_second_answer_embeds_no_passage(self, db: Path) -> None:
        with known() as model:
            first, before = retrieve_reranked(db), len(model.texts)
            second = retrieve_reranked(db)
        assert len(model.texts) == before
        assert second.diagnostics.rerank_embedded == 0
        assert second.diagnostics.rerank_cached == 6
        assert first.without_timings() == second.without_timings()

    def test_the_question_is_embedded_every_time(self, db: Path) -> None:
        with known() as model:
            retrieve_reranked(db)
            warm = retrieve_reranked(db)
        assert model.queries == [TASK, TASK]
        assert warm.diagnostics.rerank_question_embedded is True

    def test_the_cache_contains_no_word_of_a_question(self, db: Path) -> None:
        with known():
            retrieve_reranked(db, task="zebra token")
        files = [*db.parent.glob("team.db.rerank*")]
        assert files and not any(b"zebra" in file.read_bytes() for file in files)

    def test_a_model_with_another_digest_has_its_own_vectors(self, db: Path) -> None:
        with known():
            retrieve_reranked(db)
        second_model = RecordingProvider(replace(RecordingProvider().identity, digest="other"))
        with known(second_model):
            assert retrieve_reranked(db).diagnostics.rerank_embedded == 6

    def test_the_corpus_is_not_written(self, db: Path) -> None:
        before = db.read_bytes()
        with known():
            retrieve_reranked(db)
        assert db.read_bytes() == before
        assert rerank_cache_path(db).exists()

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("damage", ["text", "foreign", "newer", "locked", "folder"])
    def test_the_answer_is_the_same_if_the_cache_is_unusable(
        self, db: Path, damage: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rerank_cache, "PATIENCE_MS", 20)
        path = rerank_cache_path(db)
        with known():
            expected = retrieve_reranked(db).without_timings()
            holding = None
            if damage == "newer" or damage == "locked":
                holding = apsw.Connection(str(path))
                if damage == "newer":
                    holding.pragma("user_version", 99)
                else:
                    holding.execute("DELETE FROM vector")
                    holding.execute("BEGIN IMMEDIATE")
            else:
                rerank_cache.erase(db)
                if damage == "text":
                    path.write_text("my notes\n" * 99)
                elif damage == "folder":
                    path.mkdir()
                else:
                    database = apsw.Connection(str(path))
                    database.execute("CREATE TABLE mine (x)")
                    database.close()
            bundle = retrieve_reranked(db)
            if holding is not None:
                holding.close()
        note = bundle.diagnostics.rerank_note or ""
        assert "team.db.rerank" in note and str(db.parent) not in note
        assert bundle.without_timings() == expected
        with known():
            outcome = invoke("retrieve", TASK, "--rerank", FAKE, "--lexical-only", "--db", db)
        assert outcome.code == 0
        if damage != "locked":
            assert "note: passages are embedded anew" in outcome.err

    def test_a_purge_erases_the_cache(self, db: Path) -> None:
        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            engine.retrieve(RetrievalRequest(task=TASK, rerank=FAKE))
            path = rerank_cache_path(db)
            assert path.exists()
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").touch()
            receipt = Admin(engine.workspace).purges.purge(PurgeSelection(["plan"]))
        assert receipt.state == "done"
        assert not [*db.parent.glob("*rerank*")]

    def test_a_purge_stays_pending_if_the_cache_cannot_be_erased(self, db: Path) -> None:
        path = rerank_cache_path(db)
        path.write_text("not a cache, or torn")
        outcome = invoke("purge", "plan", "--yes", "--db", db)
        assert outcome.code == 6
        assert "team.db.rerank" in outcome.err
        path.unlink()
        assert invoke("purge", "--finish", "--db", db).code == 0

    def test_vectors_of_an_interrupted_answer_are_cached(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with known() as model, open_reader(db) as corpus:
            looks = iter([None, None, Interrupted("interrupted", "over")])

            def refuse() -> None:
                if (error := next(looks)) is not None:
                    raise error

            interrupted = Reranker(CosineScorer(model, TASK, rerank_cache_path(db)), refuse)
            with pytest.raises(Interrupted):
                retrieve(corpus, resolved(task=TASK), HashingProvider(), interrupted)
            assert retrieve_reranked(db).diagnostics.rerank_cached == 2
