"""Law 1. Nothing vanishes: every candidate ends in ``selected`` or ``rejected``, and only once."""

from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests


@few_examples
@given(
    documents=corpora(),
    waiting=st.integers(0, 3),
    requests=st.lists(st.tuples(st.none() | overlays(), requests()), min_size=1, max_size=2),
)
def test_every_candidate_is_selected_or_rejected(
    folder: Path,
    documents: list[StoredDocument],
    waiting: int,
    requests: list[tuple[Overlay | None, dict[str, Any]]],
) -> None:
    provider = HashingProvider()
    with built(folder, documents, provider, waiting=waiting) as corpus:
        for overlay, fields in requests:
            assert_nothing_vanishes(ask(corpus, overlay, provider, **fields))


def assert_nothing_vanishes(bundle: RetrievalBundle) -> None:
    selected = [passage.chunk_id for passage in bundle.selected]
    rejected = [rejection.chunk_id for rejection in bundle.rejected]
    pool = bundle.diagnostics.candidate_pool_size

    assert len(selected) + len(rejected) == pool
    assert len({*selected, *rejected}) == pool, "an id occurs twice, or in both lists"

    codes = Counter(rejection.reason for rejection in bundle.rejected)
    assert bundle.rejected_summary == dict(codes)
    assert all(rejection.notes for rejection in bundle.rejected), "a code without a note"
    assert bundle.summary.total_candidates == pool
    assert bundle.summary.selected_count == len(selected)
    assert bundle.summary.forbidden_hits == codes["forbidden_source"]
    assert sum(bundle.summary.trust_tier_breakdown.values()) == len(selected)
    assert sum(bundle.summary.source_breakdown.values()) == len(selected)
    assert bundle.diagnostics.deduped_count == codes["duplicate"]
    assert bundle.diagnostics.dropped_forbidden_count == codes["forbidden_source"]
    assert bundle.diagnostics.dropped_stale_count == codes["stale"]
    assert [passage.rank for passage in bundle.selected] == [*range(1, len(selected) + 1)]
