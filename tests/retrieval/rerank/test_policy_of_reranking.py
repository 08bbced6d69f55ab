"""Only texts that policy allows are embedded, and the cache shows nothing of the others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.texts import embedding_text
from rolebundle.engine import Engine
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.pipeline import retrieve
from rolebundle.retrieval.rerank.reranker import Reranker
from rolebundle.retrieval.rerank.scorers import CosineScorer
from rolebundle.storage.content.stored_document import StoredDocument
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace
from support.amounts import few_examples
from support.corpora import NOW, build, overlay, remove, resolved, scratch_folder, set_policy
from support.fake_embedder import HashingProvider
from support.reranking import FAKE, TASK, RecordingProvider, known, retrieve_reranked
from support.strategies import corpora, overlays, requests

FORBIDDING = overlay(source_policy={"forbidden_sources": [{"pattern": "rivals"}]})
RESOLVED = ResolvedOverlay(FORBIDDING, "digest", Path("reviewer.json"))


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
