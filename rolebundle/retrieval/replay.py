"""Replay: the request of a bundle is asked again, and the two answers are compared. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import ValidationError

from rolebundle.contracts.bundle import (
    CorpusState,
    IndexState,
    Rejection,
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
"""What a difference in a field of a passage is called; in any other field it is `metadata`."""
_LAST = 1 << 30

Fate = SelectedChunk | Rejection


def request_of(bundle: RetrievalBundle) -> RetrievalRequest:
    """The request that a bundle is the answer to.

    Raises:
        UsageError: ``bundle_not_replayable``, naming the field that is missing, or
            ``bundle_malformed``, where a field has what no request may have.
    """
    missing = next(_missing(bundle), None)
    if missing is not None:
        raise UsageError(
            "bundle_not_replayable",
            f"{missing}: is missing, so that nobody can ask the same again",
            "replay takes a whole bundle of `rolebundle retrieve --format json`",
        )
    assert bundle.request is not None
    values = {
        "task": bundle.query.task_text,
        "role": bundle.overlay.role_id if bundle.overlay else None,
        "now": bundle.query.generated_at,
        # A bundle echoes its request under the request's own names.
        **bundle.request.model_dump(),
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
    """Whether two answers to one request are the same, and what is different.

    Args:
        before: the bundle as it was.
        after: the bundle that comes out today.
        whereabouts: returns what became of a candidate that is gone, by its chunk id and, if it is
            known, its document id.
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


# -- what the answer depends on ------------------------------------------------------------------


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
            "corpus, overlay and index are those of then: another version of rolebundle, of its "
            "libraries or of the model answers, or the bundle was altered",
        )
    ]


def _corpus_causes(before: CorpusState | None, after: CorpusState | None) -> Iterator[Cause]:
    if before is None or after is None:
        return
    if before.corpus_id != after.corpus_id:
        yield _cause("corpus", before.corpus_id, after.corpus_id, "another corpus answers")
    elif before.generation != after.generation:
        yield _cause(
            "generation",
            str(before.generation),
            str(after.generation),
            "the corpus was written to: "
            f"{before.documents} documents and {before.chunks} chunks then, "
            f"{after.documents} and {after.chunks} today",
        )
    if before.file != after.file:
        yield _cause("file", before.file, after.file, "the corpus file has another name")
    if before.schema_version != after.schema_version:
        yield _cause(
            "schema",
            str(before.schema_version),
            str(after.schema_version),
            "another version of rolebundle answers",
        )
    if before.index != after.index:
        yield _cause(
            "index", _index(before.index), _index(after.index), "another embedding index answers"
        )


def _overlay_causes(before: RetrievalBundle, after: RetrievalBundle) -> Iterator[Cause]:
    then, today = before.overlay, after.overlay
    if then == today:
        return
    yield _cause(
        "overlay",
        then.digest if then else "none",
        today.digest if today else "none",
        f"the overlay of {before.role_id or 'no role'} means something else",
    )


def _rerank_causes(before: RetrievalBundle, after: RetrievalBundle) -> Iterator[Cause]:
    yield from _warning_causes(
        before, after, "RERANK_DEGRADED", "rerank", "as asked for", "degraded"
    )
    then, today = before.rerank, after.rerank
    if then and today and _model(then) != _model(today):
        yield _cause("rerank", _model(then), _model(today), "another model reranks")


def _model(rerank: RerankState) -> str:
    return f"{rerank.provider}:{rerank.model}, {rerank.dimensions} dimensions, {rerank.digest}"


def _warning_causes(
    before: RetrievalBundle,
    after: RetrievalBundle,
    code: WarningCode,
    kind: CauseKind,
    well: str,
    ill: str,
) -> Iterator[Cause]:
    then, today = _messages(before, code), _messages(after, code)
    if then != today:
        what = f"today: {today}" if today else f"then: {then}"
        yield _cause(kind, ill if then else well, ill if today else well, what)


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
    then, today = _fates(before), _fates(after)
    # In order of the first rank that a candidate had or has; the rejected as the bundles list them.
    names = sorted(
        dict.fromkeys([*then, *today]), key=lambda name: min(_rank(then, name), _rank(today, name))
    )
    changes = []
    for name in names:
        old, new = then.get(name), today.get(name)
        kinds = _kinds(old, new)
        if kinds:
            document = _document(old) or _document(new)
            changes.append(
                PassageChange(
                    chunk_id=name,
                    document_id=document,
                    kinds=kinds,
                    before=_outcome(old),
                    after=_outcome(new),
                    whereabouts=whereabouts(name, document) if new is None else None,
                )
            )
    return changes


def _fates(bundle: RetrievalBundle) -> dict[str, Fate]:
    fates: dict[str, Fate] = {one.chunk_id: one for one in bundle.selected}
    return fates | {one.chunk_id: one for one in bundle.rejected}


def _rank(fates: Mapping[str, Fate], name: str) -> int:
    fate = fates.get(name)
    return (fate.rank or 0) if isinstance(fate, SelectedChunk) else _LAST


def _kinds(old: Fate | None, new: Fate | None) -> list[PassageChangeKind]:
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


def _outcome(fate: Fate | None) -> Outcome | None:
    if fate is None:
        return None
    if isinstance(fate, SelectedChunk):
        return Outcome(rank=fate.rank, score=fate.scores.final)
    return Outcome(reason=fate.reason, notes=fate.notes)


def _document(fate: Fate | None) -> str | None:
    return fate.document_id if isinstance(fate, SelectedChunk) else None
