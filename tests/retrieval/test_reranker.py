"""Reranking by a contextual model: what is embedded, what is cached, what is reported."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.embedding.texts import embedding_text
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError, EmbedderError, Interrupted
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.policy.purge import PurgeSelection
from rolebundle.retrieval import rank
from rolebundle.retrieval.pipeline import retrieve
from rolebundle.retrieval.rerank import reranker
from rolebundle.retrieval.rerank.reranker import Reranker
from rolebundle.retrieval.rerank.scorers import CosineScorer
from rolebundle.storage.content.passages import chunk_texts
from rolebundle.storage.content.stored_document import StoredDocument
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.amounts import few_examples
from support.commands import invoke
from support.corpora import (
    NOW,
    build,
    document,
    overlay,
    remove,
    resolved,
    scratch_folder,
    set_policy,
)
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, RecordingProvider, known
from support.strategies import corpora, overlays, requests
from support.values import passage

TASK = "token rotation audit"
DOCUMENTS = [
    document("plan", ["token rotation plan", "a moon over the audit"]),
    document("notes", ["notes on token audits", "rotation of crops"]),
    document("rivals", ["token rotation by rivals"], source_id="rivals"),
    document("secret", ["the token audit of salaries"], scope="hr", source_id="hr"),
]
FORBIDDING = overlay(source_policy={"forbidden_sources": [{"pattern": "rivals"}]})
RESOLVED = ResolvedOverlay(FORBIDDING, "digest", Path("reviewer.json"))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, DOCUMENTS, HashingProvider(), name="team.db")


def retrieve_reranked(
    db: Path, overlay: ResolvedOverlay | None = None, **fields: Any
) -> RetrievalBundle:
    with Engine(Workspace(db, HashingProvider())) as engine:
        request = RetrievalRequest(**{"task": TASK, "rerank": FAKE, "now": NOW} | fields)
        return engine.retrieve(request, overlay)


def rerank_warnings(bundle: RetrievalBundle) -> dict[str, str]:
    return {
        warning.code: warning.message
        for warning in bundle.warnings
        if warning.code.startswith("RERANK")
    }


def cosines_of(bundle: RetrievalBundle) -> dict[str, float | None]:
    return {chunk.chunk_id: chunk.raw.contextual for chunk in bundle.selected if chunk.raw}


class Silent(RecordingProvider):
    """Has an identity, and no answer."""

    def embed_queries(self, texts: Any) -> np.ndarray:
        raise EmbedderError("model_server_unreachable", "nobody answers", "start it")


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


@dataclass
class Hanging(RecordingProvider):
    """Scores so many passages and then hangs, until it is released. -1: while it loads."""

    passages: int = 0
    released: Event = field(default_factory=Event)

    def embed_queries(self, texts: Any) -> np.ndarray:
        if self.passages < 0:
            self.released.wait(60)
        return super().embed_queries(texts)

    def embed_passages(self, texts: Any) -> np.ndarray:
        if len(self.texts) >= self.passages:
            self.released.wait(60)
        return super().embed_passages(texts)


@contextmanager
def hanging(passages: int) -> Iterator[Hanging]:
    with known(Hanging(passages=passages)) as model:
        try:
            yield model
        finally:
            model.released.set()
            for thread in threading.enumerate():
                if thread.name == "rerank":
                    thread.join()


class TestDeadline:
    @pytest.fixture(autouse=True)
    def early(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reranking ends early, so that a busy machine has time for the rest."""
        monkeypatch.setattr(reranker, "RESERVED_SHARE", 0.9)

    def test_the_best_are_scored_first_and_the_answer_is_in_time(self, db: Path) -> None:
        with known() as model:
            complete = retrieve_reranked(db)
        rerank_cache.erase(db)
        with hanging(2) as slow:
            started = perf_counter()
            bundle = retrieve_reranked(db, deadline_ms=4000)
            assert perf_counter() - started < 4
        assert bundle.rerank is not None and complete.rerank is not None
        assert (bundle.rerank.scored, bundle.rerank.complete) == (2, False)
        assert (complete.rerank.scored, complete.rerank.complete) == (6, True)
        assert (
            "2 of the best passages were scored in context, and 4 were not"
            in (rerank_warnings(bundle)["RERANK_DEGRADED"])
        )
        assert [*cosines_of(bundle).values()].count(None) == 4
        # The first two by the lanes, in this order; what was begun was finished and kept.
        assert slow.texts == model.texts[:3]
        with known():
            assert retrieve_reranked(db).diagnostics.rerank_cached == 3

    def test_what_was_purged_after_the_answer_is_not_kept(self, db: Path) -> None:
        with hanging(2):
            retrieve_reranked(db, deadline_ms=4000)
            Admin(db).purges.purge(PurgeSelection(["plan"]))
        assert not rerank_cache_path(db).exists()

    @pytest.mark.parametrize("passages", [-1, 0])
    def test_without_a_score_in_time_the_answer_is_the_plain_one(
        self, db: Path, passages: int
    ) -> None:
        with hanging(passages):
            bundle = retrieve_reranked(db, deadline_ms=2000)
        plain = retrieve_reranked(db, rerank=None)
        assert "RERANK_DEGRADED" in rerank_warnings(bundle)
        assert [passage.scores for passage in bundle.selected] == [
            passage.scores for passage in plain.selected
        ]
        assert set(cosines_of(bundle).values()) == {None}

    def test_the_time_before_the_model_was_opened_counts(self) -> None:
        with known() as model:
            scorer = CosineScorer(model, TASK, None)
            late = Reranker(scorer, deadline=60, started=perf_counter() - 59)
            assert late.cosines([passage("a", "token")]) == {}
        assert model.texts == []
        assert "0 of the best passages were scored in context, and 1 were not" in str(
            late.warnings()
        )

    def test_with_enough_time_a_deadline_changes_nothing(self, db: Path) -> None:
        with known():
            assert (
                retrieve_reranked(db, deadline_ms=60_000).without_timings()
                == retrieve_reranked(db).without_timings()
            )

    def test_an_error_of_the_model_is_reported_as_without_a_deadline(self, db: Path) -> None:
        with known(Silent()):
            hurried, plain = retrieve_reranked(db, deadline_ms=60_000), retrieve_reranked(db)
        assert rerank_warnings(hurried) == rerank_warnings(plain) != {}

    def test_a_replay_of_an_incomplete_answer_says_that_it_was_one(self, db: Path) -> None:
        with hanging(2):
            hurried = retrieve_reranked(db, deadline_ms=4000)
        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            replay = engine.replay(hurried)
        assert {cause.kind for cause in replay.causes} == {"rerank"}


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


class TestPolicy:
    def test_forbidden_passages_are_not_embedded(self, db: Path) -> None:
        with known() as model, Engine(Workspace(db, HashingProvider())) as engine:
            request = RetrievalRequest(task=TASK, rerank=FAKE, now=NOW)
            bundle = engine.retrieve(request, RESOLVED)
            assert bundle.rejected_summary["forbidden_source"] == 1
            explanation = engine.why(request, "rivals#0", RESOLVED)
        assert model.texts and not any("rivals" in text for text in model.texts)
        assert explanation.score.raw.contextual is None
        assert "only what policy allows" in explanation.score.rerank_note

    def test_hidden_passages_are_not_embedded_and_the_cache_is_not_visible(self, db: Path) -> None:
        policy = {
            "ada": {"scopes": ["shared"], "access_level": "internal"},
            "hugo": {"scopes": [], "access_level": "confidential"},
        }
        set_policy(db, policy)
        alone = Path(shutil.copytree(db.parent, db.parent.parent / "alone")) / "team.db"
        with known() as model:
            of_ada = retrieve_reranked(alone, agent="ada")
            assert not any("salaries" in text for text in model.texts)
            retrieve_reranked(db, agent="hugo")
            assert any("salaries" in text for text in model.texts)
            after_hugo = retrieve_reranked(db, agent="ada")
        assert of_ada.diagnostics.rerank_ms is not None
        assert of_ada.diagnostics.rerank_question_embedded is None
        of_ada, after_hugo = (bundle.model_dump() for bundle in (of_ada, after_hugo))
        for plain in (of_ada, after_hugo):
            for name in ("latency_ms", "lexical_ms", "semantic_ms", "rerank_ms"):
                del plain["diagnostics"][name]
        # Whether a vector was there is nowhere in the answer.
        assert of_ada == after_hugo

    @few_examples
    @given(corpora(), overlays(), requests(), st.booleans())
    def test_only_allowed_texts_are_embedded_and_the_cache_changes_nothing(
        self,
        documents: list[StoredDocument],
        role: Overlay,
        fields: dict[str, Any],
        in_order: bool,
    ) -> None:
        """Only allowed texts are sent; cold and warm, in any order, the same bytes come out."""
        with scratch_folder() as folder:
            path, model = build(folder, documents, HashingProvider()), RecordingProvider()
            cache = rerank_cache_path(path)
            reordered = documents if in_order else documents[::-1]
            other_path = build(folder, reordered, HashingProvider())
            try:
                with known(model), open_reader(path) as corpus:
                    fields = fields | {"now": NOW}
                    cold, warm = (
                        retrieve(
                            corpus,
                            resolved(role, **fields),
                            None if fields.get("lexical_only") else HashingProvider(),
                            Reranker(CosineScorer(model, fields["task"], cache)),
                        )
                        for _ in range(2)
                    )
                assert cold.without_timings() == warm.without_timings()
                reasons = {"low_score", "duplicate", "conflict_downrank", "budget_cut"}
                allowed = {passage.chunk_id for passage in cold.selected} | {
                    rejection.chunk_id for rejection in cold.rejected if rejection.reason in reasons
                }
                texts = {
                    embedding_text(
                        "" if chunk.content == doc.metadata.title else doc.metadata.title,
                        chunk.headings,
                        chunk.content,
                        (*doc.metadata.tags, *chunk.tags),
                    )
                    for doc in documents
                    for chunk in doc.chunks
                    if chunk.chunk_id in allowed
                }
                assert set(model.texts) <= texts
                assert {len(batch) for batch in model.batches} <= {1}
                assert len(model.texts) == len(set(model.texts)), "embedded twice"
                assert set(model.queries) <= {fields["task"]}, "embedded twice"
                pool = cold.diagnostics.candidate_pool_size
                assert pool == len(cold.selected) + len(cold.rejected)
            finally:
                remove(path)
                remove(other_path)
                rerank_cache.erase(path)


class TestInterfaces:
    def test_the_command_line_and_the_environment_name_the_model(
        self, db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with known():
            flag = invoke(
                "retrieve", TASK, "--rerank", FAKE, "--lexical-only", "--db", db, "--format", "json"
            ).json()
            assert flag["request"]["rerank"] == FAKE and "rerank" in flag
            monkeypatch.setenv("ROLEBUNDLE_RERANK", FAKE)
            by_setting = invoke(
                "retrieve", TASK, "--lexical-only", "--db", db, "--format", "json"
            ).json()
            assert by_setting["request"]["rerank"] == FAKE
            off = ("retrieve", TASK, "--rerank", NO_RERANK, "--lexical-only", "--db", db)
            assert "rerank" not in invoke(*off, "--format", "json").json()
            why = invoke("why", "plan", TASK, "--lexical-only", "--db", db)
            assert "in context    score" in why.out
            roles = (
                "compare",
                TASK,
                "--roles",
                "mossline-security-reviewer,mossline-docs-writer",
                "--lexical-only",
            )
            assert invoke(*roles, "--db", db).code == 0
            monkeypatch.setenv("ROLEBUNDLE_RERANK", "nonsense")
            assert invoke("retrieve", TASK, "--db", db).code == 3

    def test_a_replay_reranks_only_a_reranked_bundle(self, db: Path) -> None:
        with known():
            with Engine(Workspace(db, HashingProvider()), rerank=FAKE) as engine:
                reranked = engine.retrieve(RetrievalRequest(task=TASK))
                plain = engine.retrieve(RetrievalRequest(task=TASK, rerank=NO_RERANK))
                assert (reranked.rerank is None, plain.rerank is None) == (False, True)
                assert engine.replay(reranked).same
                assert engine.replay(plain).same
            with Engine(Workspace(db, HashingProvider())) as engine:
                assert engine.replay(reranked).same
                assert engine.retrieve(RetrievalRequest(task=TASK)).rerank is None
        second_model = RecordingProvider(replace(RecordingProvider().identity, digest="other"))
        with known(second_model), Engine(Workspace(db, HashingProvider())) as engine:
            replay = engine.replay(reranked)
        assert [(cause.kind, cause.message) for cause in replay.causes] == [
            ("rerank", "another model reranks")
        ]
        with known(Silent()), Engine(Workspace(db, HashingProvider())) as engine:
            replay = engine.replay(reranked)
        assert [(cause.kind, cause.after) for cause in replay.causes] == [("rerank", "degraded")]

    def test_a_server_refuses_a_model_folder_in_a_request(self, db: Path) -> None:
        from rolebundle.errors import AccessDenied
        from rolebundle.interfaces.servers.operations import Operations

        folder = "sentence-transformers:/home/somebody/model"
        with Engine(db) as engine:
            for method, more in (("retrieve", {}), ("why", {"id": "plan"})):
                with pytest.raises(AccessDenied) as caught:
                    Operations(engine).call(method, {"task": TASK, "rerank": folder} | more)
                assert caught.value.code == "rerank_folder"
        with Engine(db, rerank=folder) as engine:
            answer = Operations(engine).call("retrieve", {"task": TASK, "lexical_only": True})
            codes = [warning["code"] for warning in answer["warnings"]]
            assert "RERANK_DEGRADED" in codes  # There is no such folder.

    def test_a_compact_answer_repeats_the_model_in_its_next_request(self, db: Path) -> None:
        from rolebundle.interfaces.servers.operations import Operations

        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            answer = Operations(engine).call("retrieve", {"task": TASK, "rerank": FAKE})
        assert answer["more"]["params"]["rerank"] == FAKE

    def test_an_evaluation_is_reranked(self, db: Path, tmp_path: Path) -> None:
        golden = tmp_path / "golden.toml"
        golden.write_text(f'[[questions]]\nid = "q"\ntask = "{TASK}"\nexpect = ["plan"]\n')
        with known() as model:
            run = invoke("eval", golden, "--db", db, "--lexical-only", "--rerank", FAKE, "--json")
            assert run.code == 0, run.err
            assert f"governed: reranked by {FAKE}" in run.json()["notes"]
            assert model.texts

    def test_at_most_two_models_stay_loaded(self, db: Path) -> None:
        with known(), Engine(Workspace(db, HashingProvider())) as engine:
            for number in range(9):
                engine.retrieve(RetrievalRequest(task=TASK, rerank=f"fake:{number}"))
            assert len(engine.answering.rerank_models._models) == 2


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
