"""Step 2: the lanes' hits become one list of candidates with comparable scores. Pure.

``weighted`` needs the true scores of both lanes for every candidate. So the pool has a hit of each
lane for every chunk that the lane can score, no matter which lane proposed it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

from rolebundle.contracts.terms import Lane
from rolebundle.retrieval.candidate import Candidate, LexicalHit, Pool, SemanticHit
from rolebundle.retrieval.score import Score, Weights

RRF_K = 10

_Key = TypeVar("_Key", int, str)


def merge(pool: Pool, weights: Weights) -> list[Candidate]:
    """One candidate for each chunk, ordered by chunk id.

    The lanes' scores are normalized to [0, 1]:

    - ``weighted``: BM25 is divided by its maximum; cosines are scaled by minimum and maximum and
      multiplied with the pool's confidence.
    - ``rrf``: (k + 1) / (k + rank) with k = 10 for what the lane proposed, else 0 (Cormack, Clarke
      and Buettcher, "Reciprocal rank fusion", SIGIR 2009). Their k is 60; with 10 the scores
      spread over [0, 1] about as the normalized ones do, so that the role's terms count alike.

    Neither deeper searches nor what only the role's terms proposed change these scores.

    Only what a candidate has of the task counts here. The role's terms count in ``rank``.

    Args:
        pool: the hits and their passages. A hit without a passage is ignored.
        weights: of the score's terms.
    """
    passages = pool.passages
    lexical_hits = {rowid: hit for rowid, hit in pool.lexical.items() if rowid in passages}
    semantic_hits = {rowid: hit for rowid, hit in pool.semantic.items() if rowid in passages}
    lexical = _divide_by_maximum(
        {rowid: hit.bm25 for rowid, hit in lexical_hits.items()}, without=pool.rounds
    )
    expansion = _divide_by_maximum(
        {rowid: hit.bm25_expansion for rowid, hit in lexical_hits.items()}, without=pool.rounds
    )
    cosines = {rowid: hit.cosine for rowid, hit in semantic_hits.items()}
    if weights.fusion == "rrf":
        chunk_ids = {rowid: passage.chunk_id for rowid, passage in passages.items()}
        lexical = _reciprocal_ranks(lexical, _proposed(lexical_hits), pool.rounds, chunk_ids)
        semantic = _reciprocal_ranks(cosines, _proposed(semantic_hits), pool.rounds, chunk_ids)
    else:
        scaled = scale_by_range(cosines, without=pool.rounds.keys() | _for_role_only(pool))
        semantic = {rowid: pool.confidence * score for rowid, score in scaled.items()}
    candidates = []
    for rowid in lexical_hits.keys() | semantic_hits.keys():
        lexical_hit, semantic_hit = lexical_hits.get(rowid), semantic_hits.get(rowid)
        candidates.append(
            Candidate(
                passage=passages[rowid],
                lanes=_lanes(lexical_hit, semantic_hit),
                bm25=lexical_hit.bm25 if lexical_hit else None,
                bm25_expansion=lexical_hit.bm25_expansion if lexical_hit else None,
                cosine=semantic_hit.cosine if semantic_hit else None,
                score=Score.of_lanes(lexical.get(rowid, 0.0), semantic.get(rowid, 0.0), weights),
                round=pool.rounds.get(rowid, 0),
                expansion=expansion.get(rowid, 0.0),
            )
        )
    return sorted(candidates, key=lambda candidate: candidate.passage.chunk_id)


def scale_by_range(
    scores: Mapping[_Key, float], without: Container[_Key] = ()
) -> dict[_Key, float]:
    """Scores scaled by their minimum and maximum to [0, 1]; if all are equal, they become 1.

    The minimum and the maximum are those of the scores other than ``without``.
    """
    measured = [score for key, score in scores.items() if key not in without]
    lowest, highest = min(measured, default=0.0), max(measured, default=0.0)
    width = highest - lowest
    return {
        key: min(1.0, max(0.0, (score - lowest) / width)) if width > 0 else 1.0
        for key, score in scores.items()
    }


def _divide_by_maximum(scores: Mapping[int, float], without: Container[int]) -> dict[int, float]:
    measured = (score for rowid, score in scores.items() if rowid not in without)
    highest = max(measured, default=0.0)
    return {
        rowid: min(1.0, max(0.0, score) / highest) if highest > 0 else 0.0
        for rowid, score in scores.items()
    }


def _for_role_only(pool: Pool) -> set[int]:
    """What neither the task's terms nor its meaning proposed."""
    by_role = pool.by_role.keys() - pool.by_task.keys()
    return {rowid for rowid in by_role if not (hit := pool.semantic.get(rowid)) or not hit.proposed}


def _proposed(hits: Mapping[int, LexicalHit] | Mapping[int, SemanticHit]) -> list[int]:
    return [rowid for rowid, hit in hits.items() if hit.proposed]


def _reciprocal_ranks(
    scores: Mapping[int, float],
    proposed: list[int],
    rounds: Mapping[int, int],
    chunk_ids: Mapping[int, str],
) -> dict[int, float]:
    ordered = sorted(
        proposed, key=lambda rowid: (rounds.get(rowid, 0), -scores[rowid], chunk_ids[rowid])
    )
    return {rowid: (RRF_K + 1) / (RRF_K + rank) for rank, rowid in enumerate(ordered, start=1)}


def _lanes(lexical: LexicalHit | None, semantic: SemanticHit | None) -> tuple[Lane, ...]:
    lanes: list[Lane] = []
    if lexical is not None and lexical.proposed:
        lanes.append("lexical")
    if semantic is not None and semantic.proposed:
        lanes.append("semantic")
    return tuple(lanes)
