"""Step 2: what the lanes found becomes one list of candidates, their scores made comparable. Pure.

``weighted`` needs both lanes' true scores for every candidate: a chunk that only one lane proposed
is scored by the other lane too, instead of being given a zero that it did not earn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rolebundle.contracts.candidate import Candidate, LexicalHit, Query, SemanticHit
from rolebundle.contracts.document import Passage
from rolebundle.contracts.terms import Fusion, Lane

RRF_K = 60

_Key = TypeVar("_Key", int, str)


def merge(
    lexical: Iterable[LexicalHit],
    semantic: Iterable[SemanticHit],
    passages: Mapping[int, Passage],
    query: Query,
    fusion: Fusion = "weighted",
    say: float = 1.0,
) -> list[Candidate]:
    """One candidate a chunk, ordered by chunk id.

    Args:
        lexical: hits of the lexical lane, proposed or only scored.
        semantic: hits of the semantic lane, proposed or only scored.
        passages: the chunks by rowid; a hit whose chunk is not there is not a candidate.
        query: for the weights of task and expansion.
        fusion: how scores are normalized to [0, 1]. ``weighted``: BM25 by its maximum, cosine by
            minimum and maximum. ``rrf``: (k + 1) / (k + rank) with k = 60 for what the lane
            proposed, else 0 (Cormack, Clarke and Buettcher, SIGIR 2009).
        say: what the semantic scores are multiplied by where they are weighed; less than 1 where
            the model does not read the question well.
    """
    by_lexical = {hit.rowid: hit for hit in lexical if hit.rowid in passages}
    by_semantic = {hit.rowid: hit for hit in semantic if hit.rowid in passages}
    weights = query.weights
    task = _by_maximum({rowid: hit.bm25 for rowid, hit in by_lexical.items()})
    expansion = _by_maximum({rowid: hit.bm25_expansion for rowid, hit in by_lexical.items()})
    # By the maximum once more: where nobody has the role's words, the lane keeps its say.
    lexical_scores = _by_maximum(
        {
            rowid: weights.lexical_task * task[rowid] + weights.lexical_expansion * expansion[rowid]
            for rowid in by_lexical
        }
    )
    cosines = {rowid: hit.cosine for rowid, hit in by_semantic.items()}
    if fusion == "rrf":
        ids = {rowid: passage.chunk_id for rowid, passage in passages.items()}
        proposed = {row for row, hit in by_lexical.items() if hit.proposed}
        lexical_scores = _reciprocal_ranks(lexical_scores, proposed, ids)
        proposed = {row for row, hit in by_semantic.items() if hit.proposed}
        semantic_scores = _reciprocal_ranks(cosines, proposed, ids)
    else:
        semantic_scores = {row: say * score for row, score in by_range(cosines).items()}
    candidates = [
        Candidate(
            passage=passages[rowid],
            lanes=_lanes(by_lexical.get(rowid), by_semantic.get(rowid)),
            lexical=lexical_scores.get(rowid, 0.0),
            semantic=semantic_scores.get(rowid, 0.0),
            bm25=by_lexical[rowid].bm25 if rowid in by_lexical else None,
            bm25_expansion=by_lexical[rowid].bm25_expansion if rowid in by_lexical else None,
            cosine=cosines.get(rowid),
        )
        for rowid in by_lexical.keys() | by_semantic.keys()
    ]
    return sorted(candidates, key=lambda candidate: candidate.passage.chunk_id)


def _lanes(lexical: LexicalHit | None, semantic: SemanticHit | None) -> tuple[Lane, ...]:
    lanes: list[Lane] = []
    if lexical is not None and lexical.proposed:
        lanes.append("lexical")
    if semantic is not None and semantic.proposed:
        lanes.append("semantic")
    return tuple(lanes)


def _by_maximum(scores: Mapping[int, float]) -> dict[int, float]:
    highest = max(scores.values(), default=0.0)
    return {
        rowid: max(0.0, score) / highest if highest > 0 else 0.0 for rowid, score in scores.items()
    }


def by_range(scores: Mapping[_Key, float]) -> dict[_Key, float]:
    """Scores by their minimum and maximum, to [0, 1]; equal ones are all 1."""
    lowest, highest = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    width = highest - lowest
    return {
        rowid: (score - lowest) / width if width > 0 else 1.0 for rowid, score in scores.items()
    }


def _reciprocal_ranks(
    scores: Mapping[int, float], proposed: set[int], chunk_ids: Mapping[int, str]
) -> dict[int, float]:
    ordered = sorted(proposed, key=lambda rowid: (-scores[rowid], chunk_ids[rowid]))
    return {rowid: (RRF_K + 1) / (RRF_K + rank) for rank, rowid in enumerate(ordered, start=1)}
