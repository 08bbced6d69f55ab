"""What a rerank model is asked, and what an answer says of it, also if the model fails."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rolebundle.embedding.texts import embedding_text
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError, EmbedderError
from rolebundle.retrieval import rank
from rolebundle.storage.content.passages import chunk_texts
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader
from support.commands import invoke
from support.corpora import build, document
from support.fake_embedder import HashingProvider
from support.reranking import (
    DOCUMENTS,
    FAKE,
    TASK,
    RecordingProvider,
    cosines_of,
    known,
    rerank_warnings,
    retrieve_reranked,
)


class TestAnswers:
    def test_a_bundle_names_the_model_that_reranked_it(self, db: Path) -> None:
        with known() as model:
            bundle = retrieve_reranked(db)
        assert bundle.request is not None and bundle.request.rerank == FAKE
        assert bundle.rerank is not None
        assert (bundle.rerank.model, bundle.rerank.digest, bundle.rerank.scored) == (
            "contextual",
            "c0ffee",
            6,
        )
        assert bundle.summary.rerank_strategy == "default-weighted-contextual"
        assert model.queries == [TASK]
        assert rerank_warnings(bundle) == {}
        scores = cosines_of(bundle)
        assert None not in scores.values()
        best = max(bundle.selected, key=lambda passage: passage.raw.contextual)  # type: ignore[union-attr, arg-type, return-value]
        assert best.scores.semantic == 1.0
        assert any(reason.startswith("reranked: score ") for reason in best.reasons_selected)
        assert bundle.diagnostics.rerank_embedded == 6
        assert bundle.diagnostics.rerank_cached == 0
        assert bundle.diagnostics.rerank_question_embedded is True
        assert bundle.diagnostics.rerank_ms is not None

    def test_without_a_rerank_model_no_vector_is_computed(self, db: Path) -> None:
        with known() as model:
            plain = retrieve_reranked(db, rerank=None)
        assert plain.rerank is None and plain.diagnostics.rerank_ms is None
        assert not model.batches and not rerank_cache_path(db).exists()
        assert set(cosines_of(plain).values()) == {None}

    def test_the_cosine_is_computed_from_the_indexed_text(self, db: Path) -> None:
        with known() as model:
            bundle = retrieve_reranked(db)
            by_id = {chunk.chunk_id: chunk for chunk in bundle.selected}
            for name, cosine in cosines_of(bundle).items():
                chunk = by_id[name]
                text = embedding_text(
                    chunk.title or "", chunk.headings, chunk.content, chunk.metadata.tags
                )
                assert text in model.texts
                task_vector, text_vector = model._embed([TASK, text]).astype(np.float64)
                expected = (
                    task_vector
                    @ text_vector
                    / np.linalg.norm(task_vector)
                    / np.linalg.norm(text_vector)
                )
                assert cosine == pytest.approx(expected, abs=2e-6)

    def test_each_text_is_embedded_alone_and_once(self, db: Path) -> None:
        with known() as model:
            retrieve_reranked(db)
        assert {len(batch) for batch in model.batches} == {1}
        assert len(model.texts) == len(set(model.texts)) == 6

    def test_a_lexical_answer_is_reranked_if_requested(self, db: Path) -> None:
        with known():
            bundle = retrieve_reranked(db, lexical_only=True)
        assert bundle.rerank is not None and None not in cosines_of(bundle).values()
        assert "SEMANTIC_LANE_DEGRADED" not in {warning.code for warning in bundle.warnings}

    def test_only_the_best_fifty_candidates_are_embedded(self, tmp_path: Path) -> None:
        many = [document(f"d{n:03}", [f"token number{n}"]) for n in range(80)]
        db = build(tmp_path, many, HashingProvider(), name="many.db")
        with known() as model:
            bundle = retrieve_reranked(db, limit=80)
        assert len(model.texts) == rank.MAX_RESCORED
        assert bundle.rerank is not None and bundle.rerank.scored == rank.MAX_RESCORED
        scored = [chunk.raw.contextual is not None for chunk in bundle.selected if chunk.raw]
        assert scored == [True] * rank.MAX_RESCORED + [False] * 30

    def test_reranking_can_change_the_order(self, db: Path) -> None:
        class Backwards(RecordingProvider):
            def embed_queries(self, texts: Any) -> np.ndarray:
                return -super().embed_queries(texts)

        with known(), known(Backwards()):
            backwards = retrieve_reranked(db, limit=6)
        with known():
            forwards = retrieve_reranked(db, limit=6)
        assert [passage.chunk_id for passage in backwards.selected] != [
            passage.chunk_id for passage in forwards.selected
        ]


class TestDegraded:
    def fault(self, code: str, only: str = "") -> RecordingProvider:
        error = EmbedderError(code, "the model is ill", "start it")
        return RecordingProvider(refuse=lambda text: error if only in text else None)

    def test_without_the_model_the_answer_is_the_plain_one(self, db: Path) -> None:
        with known(self.fault("model_server_unreachable")):
            degraded, plain = retrieve_reranked(db), retrieve_reranked(db, rerank=None)
        assert rerank_warnings(degraded) == {
            "RERANK_DEGRADED": "the answer is not reranked: the model is ill; start it"
        }
        assert degraded.rerank is None
        assert degraded.selected == plain.selected and degraded.rejected == plain.rejected
        assert degraded.fallback == plain.fallback and degraded.summary == plain.summary

    def test_a_model_that_fails_on_every_text_is_called_twice(self, db: Path) -> None:
        with known(self.fault("server_error")) as model:
            degraded = retrieve_reranked(db)
        assert len(model.batches) == 2  # The first passage, and the text that harms nobody.
        assert "RERANK_DEGRADED" in rerank_warnings(degraded) and degraded.rerank is None

    def test_a_text_that_cannot_be_embedded_keeps_its_score(self, db: Path) -> None:
        with known(self.fault("input_too_long", "moon")):
            cold, warm = retrieve_reranked(db), retrieve_reranked(db)
        assert rerank_warnings(cold)["RERANK_DEGRADED"].startswith("1 of the best passages")
        assert cosines_of(cold)["plan#1"] is None
        assert [*cosines_of(cold).values()].count(None) == 1
        assert cold.rerank is not None and cold.rerank.scored == 5
        assert cold.without_timings() == warm.without_timings()

    @pytest.mark.parametrize("rows", [0, 2])
    def test_a_model_with_invalid_vectors_degrades_the_answer(self, db: Path, rows: int) -> None:
        class Wrong(RecordingProvider):
            def embed_queries(self, texts: Any) -> np.ndarray:
                return np.zeros((rows, 8), dtype=np.float32)

        with known(Wrong()):
            assert "RERANK_DEGRADED" in rerank_warnings(retrieve_reranked(db))

    def test_nothing_is_cached_if_the_model_fails(self, db: Path) -> None:
        with known(self.fault("model_server_unreachable")):
            retrieve_reranked(db)
        assert not rerank_cache_path(db).exists()

    @pytest.mark.parametrize("name", ["nonsense", "nonsense:m", "ollama", "openai:m"])
    def test_a_malformed_model_name_is_refused(self, db: Path, name: str) -> None:
        with pytest.raises(ConfigurationError):
            retrieve_reranked(db, rerank=name)
        assert invoke("retrieve", TASK, "--rerank", name, "--db", db).code == 3

    def test_a_malformed_default_model_is_refused_by_the_engine(self, db: Path) -> None:
        with pytest.raises(ConfigurationError):
            Engine(db, rerank="nonsense")


def test_the_order_of_requests_does_not_matter(db: Path) -> None:
    tasks = [TASK, "moon crops", "salaries of rivals", "notes"]

    def answers(order: list[str]) -> dict[str, Any]:
        rerank_cache.erase(db)
        with known():
            return {task: retrieve_reranked(db, task=task).without_timings() for task in order}

    expected = answers(tasks)
    for seed in range(4):
        shuffled = random.Random(seed).sample(tasks, len(tasks))
        assert answers(shuffled) == expected


def test_the_model_embeds_the_same_text_as_an_index(tmp_path: Path) -> None:
    same = document("token", ["token rotation"])
    same = replace(same, metadata=same.metadata._replace(title="token rotation"))
    db = build(tmp_path, [*DOCUMENTS, same], HashingProvider(), name="team.db")
    with known() as model:
        retrieve_reranked(db)
    with open_reader(db) as corpus:
        indexed = {embedding_text(*row[1:]) for row in chunk_texts(corpus, range(1, 99))}
    assert "\ntoken rotation" in indexed
    assert set(model.texts) == indexed
