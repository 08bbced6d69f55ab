"""Replay: build the request of a bundle again, and compare two answers to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import ValidationError

from rolebundle.contracts.bundle import (
    CorpusState,
    IndexState,
    Rejection,
    ReplicaState,
    RerankState,
    RetrievalBundle,
    SelectedChunk,
)
from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.contracts.replay import (
    Cause,
    CauseKind,
    Outcome,
    PassageChange,
    PassageChangeKind,
    Replay,
    Whereabouts,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import WarningCode
from rolebundle.errors import UsageError
from rolebundle.text.counts import counted

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
_AFTER_ALL_RANKS = 1 << 30

Result = SelectedChunk | Rejection


def request_of(bundle: RetrievalBundle) -> RetrievalRequest:
    """The request that a bundle answers.

    Raises:
        UsageError: ``bundle_not_replayable`` with the field that is missing, or
            ``bundle_malformed`` if a field has a value that no request may have.
    """
    missing = next(_missing(bundle), None)
    if missing is not None:
        raise UsageError(
            "bundle_not_replayable",
            f"{missing}: is missing, so the request cannot be repeated",
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


def _missing(bundle: RetrievalBundle) -> Iterator[str]:
    if bundle.corpus is None:
        yield "corpus"
    if bundle.request is None:
        yield "request"
    if bundle.role_id and bundle.overlay is None:
        yield "overlay"


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
    causes = [
        *_corpus_causes(before.corpus, after.corpus),
        *_overlay_causes(before, after),
        *_warning_causes(
            before, after, "SEMANTIC_LANE_DEGRADED", "semantic_lane", "as asked for", "degraded"
        ),
        *_warning_causes(before, after, "INDEX_STALE", "vectors", "complete", "incomplete"),
        *_rerank_causes(before, after),
    ]
    return causes or [
        _cause(
            "unknown",
            "",
            "",
            "corpus, overlay and index are the same: the version of rolebundle, of its libraries "
            "or of the model is another one, or the bundle was altered",
        )
    ]


def _corpus_causes(before: CorpusState | None, after: CorpusState | None) -> Iterator[Cause]:
    if before is None or after is None:
        return
    if before.corpus_id != after.corpus_id:
        yield _cause("corpus", before.corpus_id, after.corpus_id, "it is another corpus")
    elif before.generation != after.generation:
        yield _cause(
            "generation",
            str(before.generation),
            str(after.generation),
            "the corpus was written to: "
            f"{counted(before.documents, 'document')} and {counted(before.chunks, 'chunk')} "
            f"before, {after.documents} and {after.chunks} today",
        )
    elif before.replica != after.replica:
        yield _cause(
            "generation",
            _published(before.replica),
            _published(after.replica),
            "it is another replica of the corpus, or one that was published again",
        )
    if before.file != after.file:
        yield _cause("file", before.file, after.file, "the corpus file has another name")
    if before.schema_version != after.schema_version:
        yield _cause(
            "schema",
            str(before.schema_version),
            str(after.schema_version),
            "it is another version of rolebundle",
        )
    if before.index != after.index:
        yield _cause(
            "index", _index(before.index), _index(after.index), "it is another embedding index"
        )


def _overlay_causes(before: RetrievalBundle, after: RetrievalBundle) -> Iterator[Cause]:
    then, today = before.overlay, after.overlay
    if then == today:
        return
    yield _cause(
        "overlay",
        then.digest if then else "none",
        today.digest if today else "none",
        f"the overlay of {before.role_id or 'no role'} has other content",
    )


def _rerank_causes(before: RetrievalBundle, after: RetrievalBundle) -> Iterator[Cause]:
    yield from _warning_causes(
        before, after, "RERANK_DEGRADED", "rerank", "as asked for", "degraded"
    )
    then, today = before.rerank, after.rerank
    if then and today and _model(then) != _model(today):
        yield _cause("rerank", _model(then), _model(today), "another model reranks")


def _model(rerank: RerankState) -> str:
    return f"{rerank.provider}:{rerank.model}"


def _warning_causes(
    before: RetrievalBundle,
    after: RetrievalBundle,
    code: WarningCode,
    kind: CauseKind,
    without_warning: str,
    with_warning: str,
) -> Iterator[Cause]:
    then, today = _messages(before, code), _messages(after, code)
    if then != today:
        yield _cause(
            kind,
            with_warning if then else without_warning,
            with_warning if today else without_warning,
            f"today: {today}" if today else f"before: {then}",
        )


def _published(replica: ReplicaState | None) -> str:
    return f"{replica.generation} of {replica.published_at}" if replica else "no replica"


def _messages(bundle: RetrievalBundle, code: WarningCode) -> str:
    return "; ".join(warning.message for warning in bundle.warnings if warning.code == code)


def _index(index: IndexState | None) -> str:
    if index is None:
        return "none"
    return f"{index.provider}:{index.model}, {index.dimensions} dimensions, {index.chunker}"


def _cause(kind: CauseKind, before: str, after: str, message: str) -> Cause:
    return Cause(kind=kind, before=before, after=after, message=message)


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
