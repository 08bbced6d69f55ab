"""Answers side by side: several roles today, or one request then and now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from pydantic import ValidationError

from rolebundle.contracts.base import mistakes_in
from rolebundle.contracts.bundle import (
    CorpusState,
    IndexState,
    Rejection,
    ReplicaState,
    RetrievalBundle,
    SelectedChunk,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import WarningCode
from rolebundle.contracts.why import (
    Cause,
    CauseKind,
    ComparedPassage,
    Comparison,
    Overlap,
    PassageChange,
    PassageChangeKind,
    Replay,
    RoleView,
    Standing,
    Whereabouts,
)
from rolebundle.contracts.why import ReplayOutcome as Outcome
from rolebundle.errors import CorpusBusy, UsageError
from rolebundle.text.words import counted


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
    selected = [{chunk.chunk_id for chunk in bundle.selected} for bundle in bundles]
    chunks = {chunk.chunk_id: chunk for bundle in bundles for chunk in bundle.selected}
    shared = set.intersection(*selected)
    return Comparison(
        task_text=bundles[0].query.task_text,
        generated_at=bundles[0].query.generated_at,
        corpus=bundles[0].corpus,
        roles=[
            _view(bundle, set().union(*selected[:position], *selected[position + 1 :]))
            for position, bundle in enumerate(bundles)
        ],
        shared=[chunk_id for chunk_id in chunks if chunk_id in shared],
        overlaps=[overlap(first, second) for first, second in combinations(bundles, 2)],
        passages=_passages(chunks.values(), bundles),
    )


def overlap(first: RetrievalBundle, second: RetrievalBundle) -> Overlap:
    """How many passages and documents the answers to two roles have in common."""
    chunks = [{chunk.chunk_id for chunk in bundle.selected} for bundle in (first, second)]
    documents = [{chunk.document_id for chunk in bundle.selected} for bundle in (first, second)]
    return Overlap(
        first=first.role_id,
        second=second.role_id,
        chunks=jaccard(*chunks),
        documents=jaccard(*documents),
        shared_chunks=len(set.intersection(*chunks)),
        shared_documents=len(set.intersection(*documents)),
    )


def jaccard(first: set[str], second: set[str]) -> float:
    """The Jaccard similarity of two sets; 1 if both are empty."""
    union = first | second
    return round(len(first & second) / len(union), 6) if union else 1.0


def _view(bundle: RetrievalBundle, other_chunks: set[str]) -> RoleView:
    return RoleView(
        role_id=bundle.role_id,
        overlay_digest=bundle.overlay.digest if bundle.overlay else "",
        candidates=bundle.summary.total_candidates,
        selected=[chunk.chunk_id for chunk in bundle.selected],
        own=[chunk.chunk_id for chunk in bundle.selected if chunk.chunk_id not in other_chunks],
        rejected_summary=dict(bundle.rejected_summary),
        trust_posture=bundle.provenance.trust_posture,
        freshness_posture=bundle.provenance.freshness_posture,
        warnings=[warning.code for warning in bundle.warnings],
        fallback=bundle.fallback,
        role_share=bundle.evidence.role_share if bundle.evidence else None,
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
            flags=chunk.metadata.flags,
            standings=[
                standings.get(chunk.chunk_id) or Standing(role_id=bundle.role_id, state="not_found")
                for bundle, standings in zip(bundles, by_role, strict=True)
            ],
        )
        for chunk in chunks
    ]


def _standings(bundle: RetrievalBundle) -> dict[str, Standing]:
    """Rank or rejection of each candidate of a bundle, by chunk id."""
    role = bundle.role_id
    rejected = {
        rejection.chunk_id: Standing(
            role_id=role, state="rejected", reason=rejection.reason, notes=rejection.notes
        )
        for rejection in bundle.rejected
    }
    selected = {
        chunk.chunk_id: Standing(
            role_id=role,
            state="selected",
            rank=chunk.rank,
            score=chunk.scores.final,
            overlay_hits=list(chunk.overlay_hits),
        )
        for chunk in bundle.selected
    }
    return rejected | selected


_FIELD_OF = {
    "task": "query.task_text",
    "role": "overlay.role_id",
    "now": "query.generated_at",
}
_KIND_OF_FIELD: dict[str, PassageChangeKind] = {
    "rank": "rank",
    "content": "content",
    "scores": "score",
    "raw": "score",
    "lanes": "score",
    "reasons_selected": "score",
    "overlay_hits": "score",
}
"""The kind of a change by the field of a passage; for any other field it is `metadata`."""
_OF_WARNINGS: tuple[tuple[WarningCode, CauseKind, str, str], ...] = (
    ("SEMANTIC_LANE_DEGRADED", "semantic_lane", "as asked for", "degraded"),
    ("INDEX_STALE", "vectors", "complete", "incomplete"),
    ("RERANK_DEGRADED", "rerank", "as asked for", "degraded"),
)
"""Warnings that are causes, with the words for answers without and with them."""
_UNKNOWN = (
    "corpus, overlay and index are the same: the version of rolebundle, of its libraries "
    "or of the model is another one, or the bundle was altered"
)
_AFTER_ALL_RANKS = 1 << 30

Result = SelectedChunk | Rejection


def request_of(bundle: RetrievalBundle) -> RetrievalRequest:
    """The request that a bundle answers.

    Raises:
        UsageError: ``bundle_not_replayable`` with the field that is missing, or
            ``bundle_malformed`` if a field has a value that no request may have.
    """
    needed = {"corpus": bundle.corpus, "request": bundle.request, "overlay": bundle.overlay}
    if not bundle.role_id:
        del needed["overlay"]
    for field, value in needed.items():
        if value is None:
            raise UsageError(
                "bundle_not_replayable",
                f"{field}: is missing, so the request cannot be repeated",
                "replay takes a whole bundle of `rolebundle retrieve --format json`",
            )
    assert bundle.request is not None
    values = {
        "task": bundle.query.task_text,
        "role": bundle.overlay.role_id if bundle.overlay else None,
        "now": bundle.query.generated_at,
        # The echo in a bundle has the field names of the request.
        **bundle.request.model_dump(exclude_none=True),
    }
    try:
        return RetrievalRequest.model_validate(values)
    except ValidationError as error:
        mistake = mistakes_in(error, RetrievalRequest)[0]
        name = str(mistake.place[0])
        raise UsageError(
            "bundle_malformed",
            f"{_FIELD_OF.get(name, f'request.{name}')}: {mistake.message}",
            "use the bundle as it was written",
        ) from None


def compare_bundles(
    before: RetrievalBundle,
    after: RetrievalBundle,
    whereabouts: Callable[[str, str | None], Whereabouts | None] = lambda _chunk, _document: None,
) -> Replay:
    """Whether two answers to the same request are equal, and what is different.

    Args:
        before: the recorded bundle.
        after: the bundle of the replay.
        whereabouts: where a candidate that is gone is today, by its chunk id and, if it is known,
            its document id.
    """
    then, today = before.without_timings(), after.without_timings()
    differs = [name for name in then.keys() | today.keys() if then.get(name) != today.get(name)]
    selected_before = [chunk.chunk_id for chunk in before.selected]
    selected_after = [chunk.chunk_id for chunk in after.selected]
    return Replay(
        same=not differs,
        same_selection=selected_before == selected_after,
        role_id=before.role_id,
        task_text=before.query.task_text,
        generated_at=before.query.generated_at,
        selected_before=len(selected_before),
        selected_after=len(selected_after),
        kept=len({*selected_before} & {*selected_after}),
        differs=sorted(differs),
        causes=_causes(before, after) if differs else [],
        passages=_passage_changes(before, after, whereabouts),
    )


# -- causes ----------------------------------------------------------------------------------------


def _causes(before: RetrievalBundle, after: RetrievalBundle) -> list[Cause]:
    """One cause for each part of the two bundles that is different."""
    overlays = [bundle.overlay.digest if bundle.overlay else "none" for bundle in (before, after)]
    message = f"the overlay of {before.role_id or 'no role'} has other content"
    parts = [*_corpus_parts(before.corpus, after.corpus)]
    parts.append(("overlay", overlays[0], overlays[1], message))
    causes = [Cause(kind=kind, before=a, after=b, message=c) for kind, a, b, c in parts if a != b]
    for code, kind, sound, poor in _OF_WARNINGS:
        then, today = _messages(before, code), _messages(after, code)
        if then != today:
            values = [poor if messages else sound for messages in (then, today)]
            message = f"today: {today}" if today else f"before: {then}"
            causes.append(Cause(kind=kind, before=values[0], after=values[1], message=message))
    if before.rerank and after.rerank:
        models = [f"{rerank.provider}:{rerank.model}" for rerank in (before.rerank, after.rerank)]
        message = "another model reranks"
        if models[0] != models[1]:
            causes.append(Cause(kind="rerank", before=models[0], after=models[1], message=message))
    return causes or [Cause(kind="unknown", before="", after="", message=_UNKNOWN)]


def _corpus_parts(
    before: CorpusState | None, after: CorpusState | None
) -> Iterator[tuple[CauseKind, str, str, str]]:
    if before is None or after is None:
        return
    if before.corpus_id != after.corpus_id:
        yield "corpus", before.corpus_id, after.corpus_id, "it is another corpus"
    elif before.generation != after.generation:
        counts = f"{counted(before.documents, 'document')} and {counted(before.chunks, 'chunk')}"
        yield (
            "generation",
            str(before.generation),
            str(after.generation),
            f"the corpus was written to: {counts} before, "
            f"{after.documents} and {after.chunks} today",
        )
    else:
        again = "it is another replica of the corpus, or one that was published again"
        yield "generation", _published(before.replica), _published(after.replica), again
    yield "file", before.file, after.file, "the corpus file has another name"
    versions = str(before.schema_version), str(after.schema_version)
    yield "schema", *versions, "it is another version of rolebundle"
    yield "index", _index(before.index), _index(after.index), "it is another embedding index"


def _published(replica: ReplicaState | None) -> str:
    return f"{replica.generation} of {replica.published_at}" if replica else "no replica"


def _messages(bundle: RetrievalBundle, code: WarningCode) -> str:
    return "; ".join(warning.message for warning in bundle.warnings if warning.code == code)


def _index(index: IndexState | None) -> str:
    if index is None:
        return "none"
    return f"{index.provider}:{index.model}, {index.dimensions} dimensions, {index.chunker}"


# -- candidates ----------------------------------------------------------------------------------


def _passage_changes(
    before: RetrievalBundle,
    after: RetrievalBundle,
    whereabouts: Callable[[str, str | None], Whereabouts | None],
) -> list[PassageChange]:
    then, today = _results(before), _results(after)
    # By the better of the two ranks. Candidates without a rank are last, in the bundles' order.
    chunk_ids = sorted(
        dict.fromkeys([*then, *today]),
        key=lambda chunk_id: min(_rank(then, chunk_id), _rank(today, chunk_id)),
    )
    changes = []
    for chunk_id in chunk_ids:
        old, new = then.get(chunk_id), today.get(chunk_id)
        kinds = _kinds(old, new)
        if kinds:
            document = _document(old) or _document(new)
            changes.append(
                PassageChange(
                    chunk_id=chunk_id,
                    document_id=document,
                    kinds=kinds,
                    before=_outcome(old),
                    after=_outcome(new),
                    whereabouts=whereabouts(chunk_id, document) if new is None else None,
                )
            )
    return changes


def _results(bundle: RetrievalBundle) -> dict[str, Result]:
    """What the bundle has for each candidate, by chunk id."""
    results: dict[str, Result] = {chunk.chunk_id: chunk for chunk in bundle.selected}
    return results | {rejection.chunk_id: rejection for rejection in bundle.rejected}


def _rank(results: Mapping[str, Result], chunk_id: str) -> int:
    result = results.get(chunk_id)
    return (result.rank or 0) if isinstance(result, SelectedChunk) else _AFTER_ALL_RANKS


def _kinds(old: Result | None, new: Result | None) -> list[PassageChangeKind]:
    if old is None:
        return ["new"]
    if new is None:
        return ["gone"]
    if isinstance(old, SelectedChunk) and isinstance(new, SelectedChunk):
        then, today = old.model_dump(), new.model_dump()
        different = [name for name in then if then[name] != today[name]]
        return list(dict.fromkeys(_KIND_OF_FIELD.get(name, "metadata") for name in different))
    if isinstance(old, Rejection) and isinstance(new, Rejection):
        if old.reason != new.reason:
            return ["reason"]
        return ["notes"] if old.notes != new.notes else []
    return ["selected"] if isinstance(new, SelectedChunk) else ["rejected"]


def _outcome(result: Result | None) -> Outcome | None:
    if result is None:
        return None
    if isinstance(result, SelectedChunk):
        return Outcome(rank=result.rank, score=result.scores.final)
    return Outcome(reason=result.reason, notes=result.notes)


def _document(result: Result | None) -> str | None:
    return result.document_id if isinstance(result, SelectedChunk) else None
