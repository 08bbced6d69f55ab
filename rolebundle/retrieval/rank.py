"""The step rank: the order of the candidates that policy allows, and which are lifted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.retrieval.copies import combine_copies, copies_among
from rolebundle.retrieval.filter import is_rejected_only_by_role
from rolebundle.retrieval.messages import (
    combine_quotes,
    lift_later_ones_behind,
    put_doubtful_mail_behind,
    put_replies_first,
)
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.scoring import add_role_part, has_phrase, scale_by_range, score_hits
from rolebundle.retrieval.statements import lift_amendments_behind, put_newer_versions_first
from rolebundle.retrieval.values import Candidate, Pool, Weights, lift, ranking_order
from rolebundle.retrieval.versions import (
    ABOUT_AS_GOOD,
    combine_versions,
    equals_newest_first,
    kind_if_newest_asked,
    put_newest_first,
    words_if_newest_asked,
    words_with_names,
)
from rolebundle.text.languages import likely_languages, stop_words_of
from rolebundle.text.tasks import tasks_in, words_for_open_tasks

MAX_RERANKED = 40
"""How many candidates, the best by their lanes, a server's model reads: this bounds the cost."""
RERANKED_SHARE = 0.85
"""The model's share of the semantic component."""
DIVERSITY_STEP = 0.15

MAX_RANK_OF_BEST = 5
"""With a role, the passage that is first without one has this rank or a better one (law 11)."""
MAX_RANK_OF_EXACT = MAX_RANK_OF_WORDING = 3
"""A passage with a rare exact word of the task, or the best for a wording, has this rank or a
better one."""
ScorePassages = Callable[[Sequence[Passage]], Mapping[str, float]]
"""Asks a reranking model for the scores of passages, by chunk id; some may be missing."""
MAX_OPEN_TASKS = 5
"""How many passages with open tasks come first, if these are asked for."""


def rank(
    candidates: Sequence[Candidate],
    pool: Pool,
    request: ResolvedRequest,
    weights: Weights,
    rare_exact: Sequence[str] = (),
    pools_by_wording: Sequence[Pool] = (),
    score_passages: ScorePassages | None = None,
    max_passages: int = MAX_RERANKED,
) -> list[Candidate]:
    """Score and order the candidates that policy allows by :func:`ranking_order`.

    Args:
        candidates: all candidates; the ones that policy rejects have a code.
        pool: what the lanes proposed.
        request: the resolved request.
        weights: of the score's components.
        rare_exact: the rare exact words and phrases of the task.
        pools_by_wording: the hits of round 0, scored for each wording of the task alone.
        score_passages: scores the best passages; ``None`` for no reranking.
        max_passages: how many of them it reads.
    """
    allowed = [row for row in candidates if row.code is None]
    if score_passages is not None:
        first = [row for row in allowed if row.round == 0]
        add_rerank_scores(first, score_passages, weights, max_passages)
    for row in allowed:
        add_role_part(row, request, weights)
        row.weigh(weights)
    copy_groups = combine_copies(allowed, request.task)
    combine_quotes(allowed)
    wordings = " ".join((request.task, *request.also))
    combine_versions(allowed, wordings)
    ranked = sorted(allowed, key=ranking_order)
    penalize_sources(ranked, request)
    ranked.sort(key=ranking_order)
    put_newer_versions_first(ranked, request.task)
    words_if_newest = words_if_newest_asked(request.task)
    if words_if_newest is not None:
        kind = kind_if_newest_asked(request.task)
        put_newest_first(ranked, request.min_score, words_if_newest, kind)
    lift_later_ones_behind(ranked, request.task)
    lift_amendments_behind(ranked, wordings)
    for row in reversed(_with_open_tasks(ranked, request, words_if_newest)):
        _lift(ranked, row, 1, "open task")
    for phrase in rare_exact:
        having = (row for row in ranked if has_phrase(row.passage, phrase))
        _lift(ranked, next(having, None), MAX_RANK_OF_EXACT, f"exact:{phrase}")
    _lift_wordings(ranked, pools_by_wording, weights, request.min_score)
    if request.overlay is not None:
        best = _best_without_role(candidates, pool, request, weights, copy_groups, words_if_newest)
        _lift(ranked, best, MAX_RANK_OF_BEST, "first without a role")
    put_replies_first(ranked)
    put_doubtful_mail_behind(ranked)
    return ranked


def add_rerank_scores(
    rows: Sequence[Candidate],
    score_passages: ScorePassages,
    weights: Weights,
    max_passages: int = MAX_RERANKED,
) -> None:
    """Mix the reranking model's scores into the semantic component.

    ``semantic = 0.15 · semantic + 0.85 · score``, where ``score`` is scaled by minimum and maximum
    among the best ``max_passages``, and 0 for all others. A passage that the model could not read
    keeps its component, and so do all if there is no score.
    """
    ordered = sorted(rows, key=lambda row: (-weights.lane_score(row), row.chunk_id))
    best = ordered[:max_passages]
    found = score_passages([row.passage for row in best])
    scaled = scale_by_range(found)
    unscored = {row.chunk_id for row in best} - scaled.keys()
    for row in rows if found else ():
        if row.chunk_id not in unscored:
            by_model = RERANKED_SHARE * scaled.get(row.chunk_id, 0.0)
            row.semantic = (1 - RERANKED_SHARE) * row.semantic + by_model
            row.cross_encoder_score = found.get(row.chunk_id)


def _best_without_role(
    candidates: Sequence[Candidate],
    pool: Pool,
    request: ResolvedRequest,
    weights: Weights,
    copy_groups: Iterable[Sequence[Candidate]],
    words_if_newest: Set[str] | None,
) -> Candidate | None:
    """The allowed candidate that would be first without a role (law 11).

    Args:
        candidates: all candidates, scored with the ``weights``.
        pool: what the lanes proposed.
        request: the resolved request, which has a role.
        weights: of the score's components.
        copy_groups: the groups of copies (:func:`copies_among`) among the allowed candidates.
        words_if_newest: the task's content words if it asks for the newest version, else ``None``.
    """
    # The answer without a role would use the request's fusion, not the overlay's. If they differ,
    # the candidates are scored again with the request's.
    without_role, fusion = candidates, request.echo.fusion or "weighted"
    if fusion != weights.fusion:
        without_role = score_hits(pool, weights._replace(fusion=fusion))
    rows = [r for r in candidates if not r.code or is_rejected_only_by_role(r.passage, request)]
    if any(row.code for row in rows):
        copy_groups = copies_among(rows, request.task)
    # Whether meanings count does not depend on the role's weights.
    has_semantic = any(
        row.cosine is not None or row.cross_encoder_score is not None for row in without_role
    )
    policy, factor = RetrievalPolicy(), weights.words_factor
    weights = Weights.of(policy, fusion, has_semantic=has_semantic, words_factor=factor)
    scores = {row.chunk_id: weights.lane_score(row) for row in without_role}

    def order(copies: Sequence[Candidate]) -> tuple[int, float, float, str]:
        best = max(scores[row.chunk_id] for row in copies)
        first = copies[0]
        return first.round, -best, -scores[first.chunk_id], first.chunk_id

    best_first = [row for copies in sorted(copy_groups, key=order) for row in copies]
    allowed = [row for row in best_first if row.code is None]
    if words_if_newest is not None:
        allowed = equals_newest_first(allowed, lambda row: scores[row.chunk_id], words_if_newest)
    return next(iter(allowed), None)


def _with_open_tasks(
    ranked: Sequence[Candidate], request: ResolvedRequest, words_if_newest: Set[str] | None
) -> list[Candidate]:
    """The passages with open tasks that the words or `where` ask for; empty without such a request.

    First own documents, then those with the most of the task's other words, then the newest if the
    task asks for these, then those that rank higher. What is untrusted is not among them.
    """
    text, where = " ".join((request.task, *request.also)), request.echo.where
    asking = words_for_open_tasks(words := words_of(text))
    if not (asking or (where is not None and where.task == "open")):
        return []
    trusted = [r for r in ranked if r.passage.document.trust_tier != "untrusted"]
    having = [r for r in trusted if r.can_be_selected and "open" in tasks_in(r.passage.content)]
    others = {*words} if words_if_newest is None else words_if_newest
    others = others - asking - stop_words_of(likely_languages(text))
    # The second sort decides: anybody who can send a mail can write a box.
    having.sort(key=lambda row: -len(others & words_with_names(row.passage)))
    having.sort(key=lambda row: row.passage.document.origin != "internal")
    return having[:MAX_OPEN_TASKS]


def _lift(ranked: list[Candidate], lifted: Candidate | None, max_rank: int, reason: str) -> None:
    """Move a candidate up to a rank, counted from 1, and exempt it from a hard limit.

    For a copy, the passage that stands for it is lifted. Copies and superseded passages are not
    selected, so they are not counted.
    """
    if lifted is None or lifted.passage.superseded_by:
        return
    chunk_id = lifted.duplicate_of or lifted.newer_version or lifted.chunk_id
    rows = [row for row in ranked if row.can_be_selected]
    for index, row in enumerate(rows):
        if row.chunk_id == chunk_id:
            row.ignores_source_limit = True
            if index >= max_rank:
                lift(ranked, row, rows[max_rank - 1], reason)


def _lift_wordings(
    ranked: list[Candidate], pools: Sequence[Pool], weights: Weights, min_score: float
) -> None:
    """If the first three score under 70% of a wording's own best passage, lift it among them.

    Such a wording asks about another subject. Wordings of one subject have the same best passages.
    If any passage reaches ``min_score``, the best one of a wording does, if it has a word of it.
    """
    missed: dict[str, Candidate] = {}
    for pool in pools:
        alone = {row.chunk_id: weights.lane_score(row) for row in score_hits(pool, weights)}
        rows = [row for row in ranked if row.can_be_selected and row.chunk_id in alone]
        best = max(rows, key=lambda row: alone[row.chunk_id], default=None)
        first = max((alone[row.chunk_id] for row in rows[:MAX_RANK_OF_WORDING]), default=0.0)
        if best is not None and first < ABOUT_AS_GOOD * alone[best.chunk_id]:
            missed[best.chunk_id] = best
        if best is not None and best.bm25 and rows[0].final >= min_score:
            best.raise_to(min_score, "best for a wording")
    lifted = [*missed.values()][: MAX_RANK_OF_WORDING - 1]
    for max_rank, row in enumerate(lifted, MAX_RANK_OF_WORDING + 1 - len(lifted)):
        _lift(ranked, row, max_rank, "best for a wording")


# -- source diversity ----------------------------------------------------------------------------


def penalize_sources(ranked: Sequence[Candidate], request: ResolvedRequest) -> None:
    """Take 0.15 · (n − max) from the n-th candidate of a source, if the role requires diversity.

    The first passage of each document loses 0.15 at most. Otherwise the only answer could sink just
    because other documents of the same source rank above it (docs/decisions/0021).

    The penalty stops at ``request.min_score``. Duplicates and superseded candidates will
    not be selected, so they do not count.
    """
    if not request.retrieval_policy.require_source_diversity:
        return
    counts, documents = Counter[str](), set[str]()
    for row in [row for row in ranked if row.can_be_selected]:
        document = row.passage.document
        counts[document.source_id] += 1
        excess = counts[document.source_id] - request.retrieval_policy.max_chunks_per_source
        if document.document_id not in documents:
            documents.add(document.document_id)
            excess = min(excess, 1)
        if excess > 0:
            before, least = row.final, min(row.final, request.min_score)
            row.final = max(least, before - DIVERSITY_STEP * excess)
            row.diversity_penalty = min(DIVERSITY_STEP * excess, before - least)
