"""What an overlay changes in the answer to one task, and which of its rules moved each passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rolebundle.contracts.authoring import OverlayTrial, TriedPassage
from rolebundle.contracts.bundle import RetrievalBundle, SelectedChunk
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.why import Why
from rolebundle.engine import Engine
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.retrieval.explanation.compare import overlap


def missing_passages(with_role: RetrievalBundle, without: RetrievalBundle) -> list[str]:
    """The ids of the passages that are only selected without the role."""
    own = {chunk.chunk_id for chunk in with_role.selected}
    return [chunk.chunk_id for chunk in without.selected if chunk.chunk_id not in own]


def trial_of(
    with_role: RetrievalBundle, without: RetrievalBundle, explanations: Mapping[str, Why]
) -> OverlayTrial:
    """Compare the answers to one task with a role and without it.

    Args:
        with_role: the answer to the role.
        without: the answer at the same time without a role.
        explanations: chunk id → what the role makes of a passage that it does not get.
    """
    before = {chunk.chunk_id: chunk for chunk in without.selected}
    rejected = {rejection.chunk_id: rejection for rejection in with_role.rejected}
    passages = []
    for chunk in with_role.selected:
        chunk_before = before.get(chunk.chunk_id)
        passages.append(_tried(chunk, chunk_before, chunk, list(chunk.overlay_hits)))
    for chunk in without.selected:
        if all(chunk.chunk_id != own.chunk_id for own in with_role.selected):
            rejection = rejected.get(chunk.chunk_id)
            why = explanations.get(chunk.chunk_id)
            moved_by = [*why.filter.factors, *why.score.vocabulary] if why else []
            tried = _tried(chunk, chunk, None, moved_by)
            passages.append(
                tried.model_copy(
                    update={
                        "code": rejection.reason if rejection else None,
                        "notes": rejection.notes if rejection else None,
                    }
                )
            )
    weights = with_role.weights
    assert with_role.overlay is not None
    return OverlayTrial(
        task_text=with_role.query.task_text,
        role_id=with_role.role_id,
        overlay_digest=with_role.overlay.digest,
        generated_at=with_role.query.generated_at,
        corpus=with_role.corpus,
        role_share=round(weights.metadata + weights.rerank, 6) if weights else 0.0,
        overlap=overlap(with_role, without).chunks,
        rules_used=_rules_used(with_role.selected),
        passages=passages,
        fallback=with_role.fallback,
    )


def _tried(
    chunk: SelectedChunk,
    without: SelectedChunk | None,
    with_role: SelectedChunk | None,
    moved_by: list[str],
) -> TriedPassage:
    return TriedPassage(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        source_id=chunk.source_id,
        title=chunk.title,
        locator=chunk.citation.locator,
        rank_without=without.rank if without else None,
        rank_with=with_role.rank if with_role else None,
        score_without=without.scores.final if without else None,
        score_with=with_role.scores.final if with_role else None,
        moved_by=moved_by,
    )


def _rules_used(selected: Sequence[SelectedChunk]) -> dict[str, int]:
    counts = Counter(hit for chunk in selected for hit in chunk.overlay_hits)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


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
    with access.call(request.agent, request.role), access.open_view(request.agent):
        with_role = engine.retrieve(request, overlay)
        without = engine.retrieve(request.model_copy(update={"role": None}))
        explanations = {
            chunk_id: engine.why(request, chunk_id, overlay)
            for chunk_id in missing_passages(with_role, without)
        }
    return trial_of(with_role, without, explanations)
