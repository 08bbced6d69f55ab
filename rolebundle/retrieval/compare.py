"""One task, several roles: what each of them sees, and why another does not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from rolebundle.contracts.bundle import RetrievalBundle, SelectedChunk
from rolebundle.contracts.comparison import (
    ComparedPassage,
    Comparison,
    Overlap,
    RoleView,
    Standing,
)
from rolebundle.errors import CorpusBusy, UsageError


def compare_roles(bundles: Sequence[RetrievalBundle]) -> Comparison:
    """What the answers to one task have in common and what each has alone.

    Args:
        bundles: one answer a role, from the same corpus at the same time.

    Raises:
        UsageError: there is no bundle.
        CorpusBusy: the corpus was written to between two of the answers.
    """
    if not bundles:
        raise UsageError("no_roles", "there is no role to compare", "name two or more roles")
    if len({bundle.corpus.generation for bundle in bundles if bundle.corpus}) > 1:
        raise CorpusBusy(
            "corpus_changed",
            "the corpus was written to while the roles were asked",
            "run the same command again",
        )
    seen = [{one.chunk_id for one in bundle.selected} for bundle in bundles]
    chunks = {one.chunk_id: one for bundle in bundles for one in bundle.selected}
    everyones = set.intersection(*seen)
    first = bundles[0]
    return Comparison(
        task_text=first.query.task_text,
        generated_at=first.query.generated_at,
        corpus=first.corpus,
        roles=[
            _view(bundle, set().union(*seen[:place], *seen[place + 1 :]))
            for place, bundle in enumerate(bundles)
        ],
        shared=[name for name in chunks if name in everyones],
        overlaps=[overlap(one, other) for one, other in combinations(bundles, 2)],
        passages=_passages(chunks.values(), bundles),
    )


def overlap(first: RetrievalBundle, second: RetrievalBundle) -> Overlap:
    """How far two roles see the same passages, and the same documents."""
    chunks = [{one.chunk_id for one in bundle.selected} for bundle in (first, second)]
    documents = [{one.document_id for one in bundle.selected} for bundle in (first, second)]
    return Overlap(
        first=first.role_id,
        second=second.role_id,
        chunks=jaccard(*chunks),
        documents=jaccard(*documents),
        shared_chunks=len(set.intersection(*chunks)),
        shared_documents=len(set.intersection(*documents)),
    )


def jaccard(one: set[str], other: set[str]) -> float:
    """The share of what is in either that is in both; 1 where there is nothing in either."""
    either = one | other
    return round(len(one & other) / len(either), 6) if either else 1.0


def _view(bundle: RetrievalBundle, others: set[str]) -> RoleView:
    return RoleView(
        role_id=bundle.role_id,
        overlay_digest=bundle.overlay.digest if bundle.overlay else "",
        candidates=bundle.summary.total_candidates,
        selected=[one.chunk_id for one in bundle.selected],
        own=[one.chunk_id for one in bundle.selected if one.chunk_id not in others],
        rejected_summary=dict(bundle.rejected_summary),
        trust_posture=bundle.provenance.trust_posture,
        freshness_posture=bundle.provenance.freshness_posture,
        warnings=[one.code for one in bundle.warnings],
        fallback=bundle.fallback,
    )


def _passages(
    chunks: Iterable[SelectedChunk], bundles: Sequence[RetrievalBundle]
) -> list[ComparedPassage]:
    by_role = [_standings(bundle) for bundle in bundles]
    return [
        ComparedPassage(
            chunk_id=chunk.chunk_id,
            document_id=chunk.document_id,
            source_id=chunk.source_id,
            title=chunk.title,
            headings=list(chunk.headings),
            locator=chunk.citation.locator,
            standings=[
                told.get(chunk.chunk_id) or Standing(role_id=bundle.role_id, state="not_found")
                for bundle, told in zip(bundles, by_role, strict=True)
            ],
        )
        for chunk in chunks
    ]


def _standings(bundle: RetrievalBundle) -> dict[str, Standing]:
    role = bundle.role_id
    rejected = {
        one.chunk_id: Standing(role_id=role, state="rejected", reason=one.reason, notes=one.notes)
        for one in bundle.rejected
    }
    selected = {
        one.chunk_id: Standing(
            role_id=role, state="selected", rank=one.rank, score=one.scores.final
        )
        for one in bundle.selected
    }
    return rejected | selected
