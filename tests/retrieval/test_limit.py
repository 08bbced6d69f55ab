"""The first passages do not depend on how many are asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.retrieval.lanes import POOL_DEPTH
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, build, built, document, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import LONG, corpora, overlays, requests

CROWD = [f"token rotation x{n} of {n % 9}" for n in range(POOL_DEPTH + 60)]
CROWDS = {
    "allowed": [document("crowd", CROWD)],
    "forbidden": [document("crowd", CROWD, source_id="vendor-blog")],
    # The role prefers what only a deeper search finds.
    "preferred": [
        document("crowd", CROWD),
        document("later", [f"a token {LONG} y{n}" for n in range(9)], source_id="policy"),
    ],
    "copies": [document("crowd", [f"{LONG} token rotation x{n}" for n in range(POOL_DEPTH + 60)])],
}


OF_THE_TASK = ("WEAK_EVIDENCE", "WORDS_MISSING", "WORDS_CORRECTED")


@cache
def _base(kind: str) -> bytes:
    with scratch_folder() as folder:
        return build(folder, CROWDS[kind], HashingProvider()).read_bytes()


@few_examples
@example(
    kind="preferred",
    documents=[],
    role=overlay(source_policy={"preferred_sources": [{"pattern": "policy", "boost": 9.0}]}),
    fields={"task": "", "lexical_only": True},
    limits=[10, 250],
)
@given(
    kind=st.sampled_from([*CROWDS]),
    documents=corpora(most=6),
    role=st.none() | overlays(min_score=0.0),
    fields=requests(limit=None, token_budget=None),
    limits=st.tuples(st.integers(1, 20), st.integers(1, 300)).map(sorted),
)
def test_the_answer_to_a_limit_begins_the_answer_to_a_larger_one(
    kind: str,
    documents: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
    limits: list[int],
) -> None:
    fields |= {"task": f"token rotation {fields['task']}"}
    smaller, larger = limits
    with (
        scratch_folder() as folder,
        built(folder, documents, HashingProvider(), base=_base(kind)) as corpus,
    ):
        few = ask(corpus, role, HashingProvider(), **fields | {"limit": smaller})
        many = ask(corpus, role, HashingProvider(), **fields | {"limit": larger})
    assert [(chunk.chunk_id, chunk.scores) for chunk in many.selected[:smaller]] == [
        (chunk.chunk_id, chunk.scores) for chunk in few.selected
    ]
    # Nor does the verdict depend on it.
    assert few.evidence == many.evidence
    assert {w.message for w in few.warnings if w.code in OF_THE_TASK} == {
        w.message for w in many.warnings if w.code in OF_THE_TASK
    }
