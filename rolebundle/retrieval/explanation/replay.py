"""Replay: build the request of a bundle again, and compare two answers to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import ValidationError

from rolebundle.contracts.bundle import (
    CorpusState,
    IndexState,
    Rejection,
    ReplicaState,
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
