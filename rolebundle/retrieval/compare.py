"""Answers of several roles side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from rolebundle.contracts.base import attributes_of
from rolebundle.contracts.bundle import RetrievalBundle, SelectedPassage
from rolebundle.contracts.why import ComparedPassage, Comparison, Overlap, RoleView, Standing
from rolebundle.errors import CorpusBusy, UsageError


def compare_roles(bundles: Sequence[RetrievalBundle]) -> Comparison:
    """Compare what several roles get for one task: shared passages, own passages, overlaps.

    Args:
        bundles: one answer for each role, from the same corpus at the same time.

    Raises:
        UsageError: there is no bundle.
        CorpusBusy: the corpus was written to between two of the answers.
    """
    if not bundles:
        raise UsageError("no_roles", "there is no role to compare", "name two or more roles")
    if len({bundle.corpus.generation for bundle in bundles if bundle.corpus}) > 1:
        raise CorpusBusy(
            "corpus_changed",
            "the corpus was written to while the roles were compared",
            "run the same command again",
        )
    selected = [{passage.chunk_id for passage in bundle.selected} for bundle in bundles]
    passages = {passage.chunk_id: passage for bundle in bundles for passage in bundle.selected}
    shared = set.intersection(*selected)
    return Comparison(
        **attributes_of(bundles[0].query, "task_text", "generated_at"),
        corpus=bundles[0].corpus,
        roles=[
            _view(bundle, set().union(*selected[:position], *selected[position + 1 :]))
            for position, bundle in enumerate(bundles)
        ],
        shared=[chunk_id for chunk_id in passages if chunk_id in shared],
        overlaps=[overlap(first, second) for first, second in combinations(bundles, 2)],
        passages=_passages(passages.values(), bundles),
    )


def overlap(first: RetrievalBundle, second: RetrievalBundle) -> Overlap:
    """How many passages and documents the answers to two roles have in common."""
    passages = [{passage.chunk_id for passage in bundle.selected} for bundle in (first, second)]
    documents = [{passage.document_id for passage in bundle.selected} for bundle in (first, second)]
    return Overlap(
        first=first.role_id,
        second=second.role_id,
        chunks=jaccard(*passages),
        documents=jaccard(*documents),
        shared_chunks=len(set.intersection(*passages)),
        shared_documents=len(set.intersection(*documents)),
    )


def jaccard(first: set[str], second: set[str]) -> float:
    """The Jaccard similarity of two sets; 1 if both are empty."""
    union = first | second
    return round(len(first & second) / len(union), 6) if union else 1.0


def _view(bundle: RetrievalBundle, other_ids: set[str]) -> RoleView:
    return RoleView(
        **attributes_of(bundle, "role_id", "fallback"),
        overlay_digest=bundle.overlay.digest if bundle.overlay else "",
        candidates=bundle.summary.total_candidates,
        selected=[passage.chunk_id for passage in bundle.selected],
        own=[passage.chunk_id for passage in bundle.selected if passage.chunk_id not in other_ids],
        rejected_summary=dict(bundle.rejected_summary),
        **attributes_of(bundle.provenance, "trust_posture", "freshness_posture"),
        warnings=[warning.code for warning in bundle.warnings],
        role_share=bundle.evidence.role_share if bundle.evidence else None,
    )


def _passages(
    passages: Iterable[SelectedPassage], bundles: Sequence[RetrievalBundle]
) -> list[ComparedPassage]:
    by_role = [_standings(bundle) for bundle in bundles]
    return [
        ComparedPassage(
            **attributes_of(passage, "chunk_id", "document_id", "source_id", "title"),
            headings=list(passage.headings),
            locator=passage.citation.locator,
            flags=passage.metadata.flags,
            standings=[
                standings.get(passage.chunk_id, Standing(role_id=bundle.role_id, state="not_found"))
                for bundle, standings in zip(bundles, by_role, strict=True)
            ],
        )
        for passage in passages
    ]


def _standings(bundle: RetrievalBundle) -> dict[str, Standing]:
    """Rank or rejection of each candidate of a bundle, by chunk id."""
    role = bundle.role_id
    rejected = {
        row.chunk_id: Standing(role_id=role, state="rejected", reason=row.reason, notes=row.notes)
        for row in bundle.rejected
    }
    selected = {
        passage.chunk_id: Standing(
            role_id=role,
            state="selected",
            **attributes_of(passage, "rank", "moved_from"),
            score=passage.scores.final,
            overlay_hits=list(passage.overlay_hits),
        )
        for passage in bundle.selected
    }
    return rejected | selected
