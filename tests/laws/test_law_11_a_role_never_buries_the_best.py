"""Law 11. A role never buries the best.

The passage that is first without a role is among the first five with one, unless policy rejects it
with its code, or a passage with the same text stands for it.
"""

from pathlib import Path
from typing import Any, get_args

from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Mark
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import MarkState
from rolebundle.storage import marks
from rolebundle.storage.documents import StoredDocument
from rolebundle.storage.writing import open_writer
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay
from support.fake_embedder import HashingProvider
from support.strategies import NAMES, corpora, overlays, requests

PROVIDER = HashingProvider()
FIRST = 5
BY_POLICY = {
    "forbidden_source", "role_mismatch", "stale", "taint_blocked", "requires_approval",
    "conflict_downrank", "rejected_by_mark",
}  # fmt: skip

# Many passages that a role prefers, of one source, and one that answers.
CROWD = [
    document(f"liked{n}", [f"token of the release{n}"], domain="security", source_id="wiki")
    for n in range(9)
]
ANSWER = document("answer", ["token rotation audit"], domain="platform", source_id="wiki")
LIKES_SECURITY: dict[str, Any] = {
    "source_policy": {"domain_boosts": {"security": 100.0, "platform": 0.01}},
    "vocabulary": {"boost_phrases": ["release"], "suppress_phrases": ["audit"]},
}
ROLE_ALONE: dict[str, Any] = {
    "lexical_weight": 0.0, "semantic_weight": 0.0, "metadata_weight": 0.5, "rerank_weight": 0.5,
    "min_score": 0.0,
}  # fmt: skip

# Copies: the one that is found best does not stand for the others.
COPIES = [
    document("found", ["token of the plan"], title="rotation audit", source_id="drafts"),
    document("stands", ["token of the plan"], trust_tier="preferred", source_id="wiki"),
    document("third", ["rotation of tokens in the plan"], source_id="wiki"),
]

marked = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(get_args(MarkState))))


def crowded(
    documents: list[StoredDocument],
    policy: dict[str, Any],
    *,
    crowd: list[StoredDocument] = CROWD,
    lexical_only: bool = True,
    forbidden: str = "",
) -> Any:
    """An example of passages beside a crowd that the role prefers."""
    sources = LIKES_SECURITY["source_policy"]
    if forbidden:
        sources = {**sources, "forbidden_sources": [{"pattern": forbidden}]}
    return example(
        documents=documents,
        crowd=crowd,
        marked=[],
        role=overlay(**LIKES_SECURITY | {"source_policy": sources}, retrieval_policy=policy),
        fields={"task": "token rotation audit", "lexical_only": lexical_only},
    )


def one_source(most: int) -> dict[str, Any]:
    return {"min_score": 0.0, "diversity": "hard", "max_chunks_per_source": most}


@few_examples
@given(
    documents=corpora(least=1),
    crowd=st.sampled_from([[], CROWD, [*CROWD, ANSWER]]),
    marked=marked,
    role=overlays(min_score=0.0, max_selected_chunks=50),
    fields=requests(limit=None, token_budget=None, evidence=None),
)
@crowded([ANSWER], ROLE_ALONE, lexical_only=False)
@crowded([ANSWER], ROLE_ALONE | {"fusion": "rrf"})
@crowded([ANSWER], one_source(1))
@crowded([ANSWER], one_source(2), crowd=CROWD[:3])
@crowded(COPIES, ROLE_ALONE)
@crowded(COPIES, ROLE_ALONE, forbidden="drafts")
def test_the_first_passage_without_a_role_is_among_the_first_five_with_one(
    folder: Path,
    documents: list[StoredDocument],
    crowd: list[StoredDocument],
    marked: list[tuple[str, MarkState]],
    role: Overlay,
    fields: dict[str, Any],
) -> None:
    with built(folder, [*documents, *crowd], PROVIDER) as corpus:
        with open_writer(corpus.path) as writer, writer.writing():
            for name, state in marked:
                if text_hash := marks.text_hash(writer, "document", name):
                    mark = Mark(state, "Ana", "owner", "checked", "2026-11-01T00:00:00Z")
                    marks.put_mark(writer, marks.StoredMark("document", name, text_hash, mark))
        plain = ask(corpus, None, PROVIDER, **fields)
        bundle = ask(corpus, role, PROVIDER, **fields)
    if not plain.selected:
        return
    best = plain.selected[0]
    first = {passage.chunk_id for passage in bundle.selected[:FIRST]}
    rejected = {rejection.chunk_id: rejection for rejection in bundle.rejected}
    if best.chunk_id in first or rejected[best.chunk_id].reason in BY_POLICY:
        return
    assert rejected[best.chunk_id].reason == "duplicate"
    assert {passage.content for passage in bundle.selected[:FIRST]} & {best.content}
