"""What an overlay changes in the answer to one task, and which of its rules moved each passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.upkeep import OverlayTrial, TriedPassage
from rolebundle.contracts.why import Why
from rolebundle.engine import Engine
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.compare import overlap


def trial_of(
    with_role: RetrievalBundle, without: RetrievalBundle, explanations: Mapping[str, Why]
) -> OverlayTrial:
    """Compare the answers to one task with a role and without it.

    Args:
        with_role: the answer to the role.
        without: the answer at the same time without a role.
        explanations: chunk id → what the role makes of a passage that it does not get.
    """
    after = {chunk.chunk_id: chunk for chunk in with_role.selected}
    before = {chunk.chunk_id: chunk for chunk in without.selected}
    lost = {chunk_id: chunk for chunk_id, chunk in before.items() if chunk_id not in after}
    rejected = {rejection.chunk_id: rejection for rejection in with_role.rejected}
    passages = []
    for chunk_id, chunk in {**after, **lost}.items():
        own, former = after.get(chunk_id), before.get(chunk_id)
        why, rejection = explanations.get(chunk_id), rejected.get(chunk_id)
        factors = [*why.filter.factors, *why.score.vocabulary] if why else []
        passages.append(
            TriedPassage(
                chunk_id=chunk_id,
                document_id=chunk.document_id,
                source_id=chunk.source_id,
                title=chunk.title,
                locator=chunk.citation.locator,
                rank_without=former.rank if former else None,
                rank_with=own.rank if own else None,
                score_without=former.scores.final if former else None,
                score_with=own.scores.final if own else None,
                moved_by=list(own.overlay_hits) if own else factors,
                code=rejection.reason if rejection else None,
                notes=rejection.notes if rejection else None,
            )
        )
    weights = with_role.weights
    hits = Counter(hit for chunk in with_role.selected for hit in chunk.overlay_hits)
    assert with_role.overlay is not None
    return OverlayTrial(
        task_text=with_role.query.task_text,
        role_id=with_role.role_id,
        overlay_digest=with_role.overlay.digest,
        generated_at=with_role.query.generated_at,
        corpus=with_role.corpus,
        role_share=round(weights.metadata + weights.rerank, 6) if weights else 0.0,
        overlap=overlap(with_role, without).chunks,
        rules_used=dict(sorted(hits.items(), key=lambda item: (-item[1], item[0]))),
        passages=passages,
        fallback=with_role.fallback,
    )


def try_role(
    engine: Engine, request: RetrievalRequest, overlay: ResolvedOverlay | None
) -> OverlayTrial:
    """Answer a request with its role and without, from one snapshot, and compare the answers.

    Args:
        engine: the engine.
        request: the task, and the role unless an overlay is given.
        overlay: used instead of the overlay of ``request.role``.

    Raises:
        AccessDenied, OverlayError, Interrupted, WrongFile, CorpusCorrupt, StorageError: as for
            :meth:`rolebundle.engine.Engine.retrieve`.
    """
    request = request.model_copy(update={"now": request.now or datetime.now(UTC)})
    access = engine.access
    with access.recording_refusals(request.agent, request.role), access.open_view(request.agent):
        with_role = engine.retrieve(request, overlay)
        without = engine.retrieve(request.model_copy(update={"role": None}))
        own = {chunk.chunk_id for chunk in with_role.selected}
        explanations = {
            chunk.chunk_id: engine.why(request, chunk.chunk_id, overlay)
            for chunk in without.selected
            if chunk.chunk_id not in own
        }
    return trial_of(with_role, without, explanations)
