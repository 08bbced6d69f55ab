"""Reranking ends in time: the best passages are scored first, and the rest keep their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from rolebundle.admin import Admin
from rolebundle.admin.purges import PurgeSelection
from rolebundle.engine import Engine
from rolebundle.retrieval.rerank import reranker
from rolebundle.retrieval.rerank.reranker import Reranker
from rolebundle.retrieval.rerank.scorers import CosineScorer
from rolebundle.storage.indexes import rerank_cache
from rolebundle.storage.location import rerank_cache_path
from rolebundle.workspace import Workspace
from support.fake_embedder import HashingProvider
from support.reranking import (
    TASK,
    RecordingProvider,
    Silent,
    cosines_of,
    known,
    rerank_warnings,
    retrieve_reranked,
)
from support.values import passage


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
