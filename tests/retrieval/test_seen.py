"""`seen` leaves out what the agent already has, and others take the places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.retrieval.lanes import POOL_DEPTH
from rolebundle.storage.corpus import Corpus
from support.corpora import ask, built, document, overlay
from support.fake_embedder import HashingProvider

PROVIDER = HashingProvider()
CROWD = POOL_DEPTH + 50


def ids(bundle: RetrievalBundle) -> list[str]:
    return [chunk.chunk_id for chunk in bundle.selected]


def codes(bundle: RetrievalBundle) -> dict[str, str]:
    return {rejection.chunk_id: rejection.reason for rejection in bundle.rejected}


def notes(bundle: RetrievalBundle, chunk_id: str) -> str | None:
    [note] = [rejection.notes for rejection in bundle.rejected if rejection.chunk_id == chunk_id]
    return note


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    texts = [f"token {'filler ' * (n % 40)}number{n}" for n in range(CROWD)]
    with built(tmp_path_factory.mktemp("seen"), [document("many", texts)], PROVIDER) as corpus:
        yield corpus


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_the_next_ones_take_the_places(shelf: Corpus, fusion: str) -> None:
    fields = {"task": "token", "lexical_only": True, "fusion": fusion}
    first = ask(shelf, None, limit=5, **fields)
    second = ask(shelf, None, limit=5, seen=ids(first), **fields)
    assert ids(first) + ids(second) == ids(ask(shelf, None, limit=10, **fields))
    assert {codes(second)[chunk_id] for chunk_id in ids(first)} == {"already_seen"}
    assert second.rejected_summary["already_seen"] == 5
    assert notes(second, ids(first)[0]) == "it is in `seen`"


def test_what_must_not_be_used_keeps_its_code(tmp_path: Path) -> None:
    documents = [
        document("forbidden", ["token one"], source_id="blog"),
        document("external", ["token two"], origin="external"),
        document("old", ["token three"]),
        document("new", ["token four"], supersedes=("old",)),
    ]
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog"}]})
    seen = ["forbidden#0", "external#0", "old#0"]
    with built(tmp_path, documents) as corpus:
        bundle = ask(corpus, role, task="token", action="execute", seen=seen)
    assert codes(bundle) == {
        "forbidden#0": "forbidden_source",
        "external#0": "requires_approval",
        "old#0": "conflict_downrank",
    }


class TestVerdict:
    def test_what_was_not_seen_decides(self, tmp_path: Path) -> None:
        documents = [document("a", ["token"]), document("b", ["token two"], source_id="blog")]
        role = overlay(source_policy={"forbidden_sources": [{"pattern": "blog", "reason": "so"}]})
        with built(tmp_path, documents) as corpus:
            fallback = ask(corpus, role, task="token", seen=["a#0"]).fallback
        assert fallback is not None
        assert fallback.verdict == "all_forbidden"
        assert fallback.message.startswith(
            "apart from what is in `seen`, everything relevant is forbidden to the role reviewer "
            "(candidates rejected: 1 forbidden_source, 1 already_seen; for one: blog: so)"
        )
