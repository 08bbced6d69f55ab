"""The warnings of an answer: what its reader should know. Pure.

Each warning has a function that returns its message, which is empty if the warning does not hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rolebundle.contracts.bundle import BundleWarning, ReplicaState, SelectedChunk
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import Where
from rolebundle.contracts.terms import (
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.retrieval.candidate import Candidate, Retrieval
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import conflicts
from rolebundle.text.common_words import is_ordinary
from rolebundle.text.counts import age, counted, first_of, words_found

MAX_NAMED_CONFLICTS = 5
"""So many conflicts are named; the others are counted."""
MAX_MISSING_WORDS = 5
"""So many missing words are named; the others are counted."""
_MAX_KINDS_CHARS = 500
# "2019-03", and neither "since 2019", which asks about today, nor "ISO 9001:2015" or "#2019".
_YEAR = re.compile(
    r"(?<![\w.:/#$€£-])(?<!since )(?<!seit )(?<!depuis )(?<!desde )((?:19|20)\d\d)"
    r"(?:-\d\d(?:-\d\d)?)?(?![\w:/%-]|\.\d)",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"[\w./:@#-]*\w")
LOW_DIVERSITY_FROM = 3
"""If at least so many passages are selected, all of one source, there may be a warning."""


def trust_posture(selected: Sequence[SelectedChunk], *, is_declared: bool = True) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak.

    For the answer, of the passages that are evidence for the task. ``undeclared`` if nobody
    declared any trust for what is visible.
    """
    if not is_declared:
        return "undeclared"
    tiers = {chunk.metadata.trust_tier for chunk in selected}
    if "authoritative" in tiers:
        return "strong"
    return "mixed" if "preferred" in tiers else "weak"


def freshness_posture(selected: Sequence[SelectedChunk]) -> FreshnessPosture:
    """Fresh with fresh and no stale passages, stale with stale and no fresh ones, else mixed."""
    statuses = {chunk.metadata.freshness.status for chunk in selected}
    if "fresh" in statuses and "stale" not in statuses:
        return "fresh"
    return "stale" if "stale" in statuses and "fresh" not in statuses else "mixed"


def warnings_for(
    selected: Sequence[SelectedChunk], request: ResolvedRequest, retrieval: Retrieval
) -> list[BundleWarning]:
    """What the reader of the bundle should know, in a fixed order.

    Args:
        selected: the passages of the answer.
        request: what was asked.
        retrieval: how it was searched.
    """
    overlay, semantic = request.overlay, retrieval.semantic
    codes = Counter(row.code for row in retrieval.rejected if row.code)
    found: list[tuple[WarningCode, str]] = [
        ("WEAK_EVIDENCE", _weak_evidence(retrieval, request)),
        ("NO_HIGH_TRUST_MATCH", _no_high_trust_match(selected, retrieval)),
        ("ONLY_SHARED_CORPUS", _only_shared_corpus(selected, overlay)),
        ("STALE_DOMINANT", _stale_dominant(selected, codes, request)),
        ("FORBIDDEN_SOURCE_HIT", _forbidden_source_hit(retrieval.forbidden_hits)),
        ("ACTION_RESTRICTED", _action_restricted(codes)),
        ("LOW_DIVERSITY", _low_diversity(selected, request, retrieval.candidates)),
        (
            "CONFLICTING_EVIDENCE",
            _conflicting_evidence(conflicts(retrieval.ranked, request.limit)),
        ),
        ("SUPERSEDE_IGNORED", _supersede_ignored(retrieval.selected)),
        ("EVIDENCE_KIND_MISSING", _evidence_kind_missing(selected, overlay)),
        ("SEMANTIC_LANE_DEGRADED", semantic.degraded or semantic.substitute),
        ("INDEX_STALE", _waiting(semantic.waiting)),
        ("INDEX_STALE", _unused_approximate_index(semantic.doubt)),
        ("WORDS_MISSING", _words_missing(retrieval)),
        ("WORDS_CORRECTED", _words_corrected(retrieval.query.corrected)),
        ("REPLICA_STALE", _replica_stale(retrieval.corpus.replica, request.now)),
        ("SEEN_UNKNOWN", "" if retrieval.seen else _seen_unknown(len(request.seen))),
        *(retrieval.rerank.warnings if retrieval.rerank else ()),
    ]
    return [
        BundleWarning.model_construct(code=code, message=message)
        for code, message in found
        if message
    ]


def narrowed_by(where: Where | None) -> str:
    """That `where` narrowed a weak or empty answer, with the next step; empty without `where`."""
    if where is None:
        return ""
    is_by_date = where.updated_after is not None or where.updated_before is not None
    undated = ", and no document without a declared date meets its dates" if is_by_date else ""
    return f"; `where` narrowed the search{undated}: ask without it, too"


def _weak_evidence(retrieval: Retrieval, request: ResolvedRequest) -> str:
    """What of the task the first passages have, if it is little. An empty answer has its reason."""
    evidence = retrieval.evidence
    if not retrieval.selected or evidence.task == "supported":
        return ""
    best = evidence.best
    lacking = _named(retrieval, evidence.missing(retrieval.judged))
    found = f"the best passage has {words_found(best.matched, best.words)}"
    without = f", and none of the first mentions: {lacking}" if lacking else ""
    return f"thin evidence: {found}{without}{narrowed_by(request.where)}"


def _no_high_trust_match(selected: Sequence[SelectedChunk], retrieval: Retrieval) -> str:
    """Also empty if no document declares trust: then every answer would have the warning."""
    has_untrusted = any(chunk.metadata.trust_tier == "untrusted" for chunk in selected)
    if trust_posture(selected) != "weak" or not (retrieval.has_trusted or has_untrusted):
        return ""
    return "no authoritative or preferred passage was selected"


def _only_shared_corpus(selected: Sequence[SelectedChunk], overlay: Overlay | None) -> str:
    if overlay is None or not overlay.ranks or not selected:
        return ""
    if any(map(_is_role_specific, selected)):
        return ""
    return "no passage has anything of the role's own"


def _is_role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)


def _stale_dominant(
    selected: Sequence[SelectedChunk], codes: Mapping[RejectionCode, int], request: ResolvedRequest
) -> str:
    """Passages that are not older than the past that the task asks about do not count.

    The date of a file counts only if the role sets a maximum age: a copied or unpacked folder has
    old files, and that alone says nothing about what they say.
    """
    past_year = _past_year(request)
    counts_files = request.policy.freshness_max_age_days is not None

    def is_stale(chunk: SelectedChunk) -> bool:
        freshness = chunk.metadata.freshness
        date = freshness.updated_at or (freshness.inferred_at if counts_files else None)
        is_old = date is not None and freshness.status == "stale"
        return is_old and not (past_year and (date or "") >= past_year)

    rejected = codes.get("stale", 0)
    stale = rejected + sum(map(is_stale, selected))
    considered = rejected + len(selected)
    return f"stale passages: {stale} of {considered}" if stale * 2 > considered else ""


def _past_year(request: ResolvedRequest) -> str:
    """The first year that the task names, if it names past years only; else empty."""
    years = _YEAR.findall(request.task)
    return min(years, default="") if all(int(year) < request.now.year for year in years) else ""


def _forbidden_source_hit(hits: Sequence[Candidate]) -> str:
    if not hits:
        return ""
    named = sorted({hit.passage.document.source_id for hit in hits})
    return (
        f"{counted(len(hits), 'passage')} of forbidden sources would have been selected: "
        f"{', '.join(named)}"
    )


def _action_restricted(codes: Mapping[RejectionCode, int]) -> str:
    blocked, waiting = codes.get("taint_blocked", 0), codes.get("requires_approval", 0)
    parts = []
    if blocked:
        parts.append(f"not trusted enough for the action: {blocked}")
    if waiting:
        parts.append(f"usable for the action only with an approval: {waiting}")
    return "; ".join(parts)


def _low_diversity(
    selected: Sequence[SelectedChunk], request: ResolvedRequest, candidates: Sequence[Candidate]
) -> str:
    """Only for a role that requires diversity, if other sources had something for the task."""
    sources = {chunk.source_id for chunk in selected}
    if not request.policy.require_source_diversity or len(sources) != 1:
        return ""
    if len(selected) < LOW_DIVERSITY_FROM:
        return ""
    source = sources.pop()
    others = any(
        candidate.bm25 and candidate.passage.document.source_id != source
        for candidate in candidates
    )
    return f"every passage comes from {source}" if others else ""


def _conflicting_evidence(conflicts: Iterable[tuple[Passage, Passage]]) -> str:
    """A sentence for each pair of documents, the best first."""
    pairs: dict[frozenset[str], str] = {}
    for first, second in conflicts:
        documents = frozenset((first.document.document_id, second.document.document_id))
        sentence = (
            f"{first.chunk_id} and {second.chunk_id} disagree, as one of their documents declares"
        )
        pairs.setdefault(documents, sentence)
    sentences = [*pairs.values()]
    more = len(sentences) - MAX_NAMED_CONFLICTS
    if more > 0:
        sentences[MAX_NAMED_CONFLICTS:] = [f"so do {more} further pairs of documents"]
    return "; ".join(sentences)


def _supersede_ignored(selected: Sequence[Candidate]) -> str:
    claims = {
        f"{claiming} claims to supersede {candidate.passage.document.document_id}, but may not"
        for candidate in selected
        for claiming in candidate.passage.ignored_claims
    }
    return "; ".join(sorted(claims))


def _evidence_kind_missing(selected: Sequence[SelectedChunk], overlay: Overlay | None) -> str:
    """The required evidence kinds that no passage shows. An empty answer has its own verdict."""
    if overlay is None or not selected:
        return ""
    shown_kinds = {kind for chunk in selected for kind in chunk.evidence_kinds or ()}
    kinds = dict.fromkeys(filter(str.strip, overlay.synthesis_policy.required_evidence_kinds))
    missing = one_line(
        ", ".join(kind for kind in kinds if kind not in shown_kinds), _MAX_KINDS_CHARS
    )
    return f"no passage shows what the role requires: {missing}" if missing else ""


def _waiting(chunks: int) -> str:
    remedy = "run `rolebundle corpus embed`"
    return f"{counted(chunks, 'chunk')} without a vector; {remedy}" if chunks else ""


def _unused_approximate_index(doubt: str) -> str:
    remedy = "run `rolebundle corpus embed --optimize`"
    return f"exact search answers: {doubt}; {remedy}" if doubt else ""


def _seen_unknown(ids: int) -> str:
    return f"`seen` has no passage of the corpus: {counted(ids, 'id')}" if ids else ""


def _words_missing(retrieval: Retrieval) -> str:
    """The words and quoted phrases of the task that occur nowhere, except for ordinary words."""
    corrected = retrieval.query.corrected
    missing = [
        place
        for place in retrieval.evidence.missing()
        if retrieval.query.content_words[place][0].text not in corrected
    ]
    named = _named(retrieval, missing)
    return f"no passage mentions: {named}" if named and retrieval.selected else ""


def _words_corrected(corrected: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{other} for {word}" for word, other in corrected.items())
    return f"also searched for likely spellings: {pairs}" if pairs else ""


def _named(retrieval: Retrieval, positions: Sequence[int]) -> str:
    """The exact words that occur nowhere, and the words at these positions that are not ordinary.

    That a text lacks an ordinary word says little.
    """
    query, absent = retrieval.query, retrieval.absent_exact
    words = [(place, query.content_words[place][0]) for place in positions]
    labels = [
        word.text
        for place, word in words
        if place in query.names or not (word.form or is_ordinary(word.text))
    ]
    parts = {part for exact in absent for part in words_of(exact)}
    named = [*absent, *(label for label in labels if label not in parts)]
    as_written = {word.lower(): word for word in _WRITTEN.findall(query.task_text)}
    named = [as_written.get(label.lower(), label) for label in named]
    return first_of([*dict.fromkeys(named)], MAX_MISSING_WORDS)


def _replica_stale(replica: ReplicaState | None, now: datetime) -> str:
    if replica is None or now < datetime.fromisoformat(replica.expires_at):
        return ""
    return (
        f"the replica of {replica.publisher} was published {age(replica.age_hours)} ago and was to "
        f"be renewed by {replica.expires_at}; run `rolebundle replica pull`"
    )
