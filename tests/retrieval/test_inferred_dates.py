"""Inferred dates count for freshness only: a fresh copy of an old text is not newer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay

OLD, RECENT, FUTURE = "2020-01-01T00:00:00Z", "2026-10-30T00:00:00Z", "2030-01-01T00:00:00Z"
"""The time of a request that names none is the first of November 2026."""
DATES = (None, OLD, RECENT, FUTURE)
ROLE = overlay(retrieval_policy={"min_score": 0.0})

_documents = st.lists(
    st.tuples(
        st.sampled_from((30, 60, 90)),
        st.sampled_from((None, None, OLD, RECENT)),
        st.sampled_from(DATES),
        st.sampled_from(((), ("d0",), ("d1",))),
        st.sampled_from(((), (), ("d0",))),
    ),
    min_size=2,
    max_size=5,
)


def stored(number: int, drawn: Any, *, inferred: bool) -> StoredDocument:
    days, date, file_date, supersedes, contradicts = drawn
    return document(
        f"d{number}",
        [f"The gateway keeps a token log for {days} days."],
        updated_at=date,
        inferred_at=file_date if inferred and date is None else None,
        supersedes=supersedes,
        contradicts=contradicts,
    )


def outcome(bundle: RetrievalBundle) -> Any:
    """All of the answer that is no freshness."""
    return (
        [chunk.chunk_id for chunk in bundle.selected],
        [chunk.scores for chunk in bundle.selected],
        [(rejection.chunk_id, rejection.reason, rejection.notes) for rejection in bundle.rejected],
        [
            (warning.code, warning.message)
            for warning in bundle.warnings
            if warning.code != "STALE_DOMINANT"
        ],
    )


@few_examples
@given(_documents, st.sampled_from((None, "2019-01-01", "2026-10-01", "2031-01-01")))
def test_inferred_dates_change_no_conflict_no_order_and_no_as_of(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], as_of: str | None
) -> None:
    folder = tmp_path_factory.mktemp("dates")
    answers = []
    for inferred in (False, True):
        documents = [
            stored(n, drawn_document, inferred=inferred) for n, drawn_document in enumerate(drawn)
        ]
        with built(folder, documents) as corpus:
            fields = {"task": "token log of the gateway", "as_of": as_of, "lexical_only": True}
            answers.append(outcome(ask(corpus, ROLE, **fields)))
    assert answers[0] == answers[1]


def bundle_of(folder: Path, role: Overlay | None = None, **metadata: Any) -> RetrievalBundle:
    with built(folder, [document("d", ["token rotation"], **metadata)]) as corpus:
        return ask(corpus, role, lexical_only=True)


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"inferred_at": RECENT}, "fresh"),
        ({"inferred_at": OLD}, "stale"),
        ({"inferred_at": FUTURE}, "undated"),
        ({"inferred_at": RECENT, "updated_at": OLD}, "stale"),
        ({"inferred_at": RECENT, "updated_at": FUTURE}, "undated"),
    ],
)
def test_freshness(tmp_path: Path, metadata: dict[str, str], status: str) -> None:
    [chunk] = bundle_of(tmp_path, **metadata).selected
    assert chunk.metadata.freshness.status == status


def test_staleness_rejects_and_is_explained(tmp_path: Path) -> None:
    role = overlay(retrieval_policy={"freshness_max_age_days": 100, "stale_penalty": 1.0})
    [rejection] = bundle_of(tmp_path, role, inferred_at=OLD).rejected
    assert rejection.reason == "stale"
    assert "by the date of its file" in str(rejection.notes)
