"""The warnings of an answer: what its reader should know. Pure.

Each warning has a function that returns its message, which is empty if the warning does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import BundleWarning, ReplicaState, SelectedChunk
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import Where
from rolebundle.contracts.terms import RejectionCode, WarningCode
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.retrieval.answer.posture import trust_posture
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.evidence import HAS_WORDS, NAME_COVERAGE
from rolebundle.retrieval.outcome import Retrieval, SemanticReport
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.text.counts import age, counted, first_of, words_found
from rolebundle.text.languages import likely_languages

if TYPE_CHECKING:
    from rolebundle.retrieval.conflicts import Conflict

MAX_NAMED_CONFLICTS = 5
"""So many conflicts are named; the others are counted."""
MAX_MISSING_WORDS = 10
"""So many missing words are named; the others are counted."""
_MAX_KINDS_CHARS = 500
_IDENTIFIER = re.compile(r"(?<![^\W_])[A-Z][A-Za-z]*+[-_#](\d++)(?![^\W_])")
# "2019-03", and neither "since 2019", which asks about today, nor "ISO 9001:2015" or "#2019".
_YEAR = re.compile(
    r"(?<![\w.:/#$€£-])(?<!since )(?<!seit )(?<!depuis )(?<!desde )((?:19|20)\d\d)"
    r"(?:-\d\d(?:-\d\d)?)?(?![\w:/%-]|\.\d)",
    re.IGNORECASE,
)
LOW_DIVERSITY_FROM = 3
"""If at least so many passages are selected, all of one source, there may be a warning."""


def warnings_for(
    selected: Sequence[SelectedChunk],
    codes: Mapping[RejectionCode, int],
    request: ResolvedRequest,
    retrieval: Retrieval,
) -> list[BundleWarning]:
    """What the reader of the bundle should know, in a fixed order.

    Args:
        selected: the passages of the answer.
        codes: how many candidates each code rejected.
        request: what was asked.
        retrieval: how it was searched.
    """
    overlay, semantic = request.overlay, retrieval.semantic
    found: list[tuple[WarningCode, str]] = [
        ("WEAK_EVIDENCE", _weak_evidence(retrieval, request)),
        ("NO_HIGH_TRUST_MATCH", _no_high_trust_match(selected, retrieval)),
        ("ONLY_SHARED_CORPUS", _only_shared_corpus(selected, overlay)),
        ("STALE_DOMINANT", _stale_dominant(selected, codes, _past_year(request))),
        ("FORBIDDEN_SOURCE_HIT", _forbidden_source_hit(retrieval.forbidden_hits)),
        ("ACTION_RESTRICTED", _action_restricted(codes)),
        ("LOW_DIVERSITY", _low_diversity(selected, retrieval.candidates)),
        ("CONFLICTING_EVIDENCE", _conflicting_evidence(retrieval.selection.conflicts)),
        ("SUPERSEDE_IGNORED", _supersede_ignored(retrieval.selection.selected)),
        ("EVIDENCE_KIND_MISSING", _evidence_kind_missing(selected, overlay)),
        ("SEMANTIC_LANE_DEGRADED", semantic.degraded or semantic.substitute),
        ("INDEX_STALE", _chunks_without_vector(semantic)),
        ("INDEX_STALE", _unused_approximate_index(semantic)),
        ("NAMES_MISSING", _names_missing(retrieval)),
        ("WORDS_MISSING", _words_missing(retrieval)),
        ("REPLICA_STALE", _replica_stale(retrieval.corpus.replica, request.now)),
        ("SEEN_UNKNOWN", _seen_unknown(request, retrieval)),
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
    selected = retrieval.selection.selected
    if not selected:
        return ""
    task, vagueness = retrieval.evidence.task, retrieval.vagueness
    supports = [retrieval.evidence.support(candidate.passage.rowid) for candidate in selected]
    best = max(supports, key=lambda support: support.strength)
    if task == "off_topic":
        problem = "the corpus has nothing for this task, so these passages are guesses"
    elif task == "supported" and best.is_for_task:
        return ""
    elif vagueness and not vagueness.intent.has_topic:
        return (
            f"the task is vague: it asks {vagueness.intent.description}, and names no topic, so "
            "the passages are those that fit this and the role best"
        )
    elif vagueness and vagueness.intent.intents:
        problem = (
            f"the task is vague, so treat the passages as hints: besides its topic it asks "
            f"{vagueness.intent.description}, and the passages were chosen by this and by the "
            "role, too"
        )
    elif not best.is_for_task:
        problem = "no passage has what the task asks for"
        problem += "; they are here for the role" if request.ranks_by_role else ""
    else:
        problem = "thin evidence, so treat the passages as hints"
    closeness = "" if best.closeness is None else f" and a closeness of {best.closeness:.2f}"
    found = f"{problem}: the best has {words_found(best.matched, best.words)}{closeness}"
    return found + narrowed_by(request.where)


def _no_high_trust_match(selected: Sequence[SelectedChunk], retrieval: Retrieval) -> str:
    """Also empty if no document declares trust: then every answer would have the warning."""
    has_untrusted = any(chunk.metadata.trust_tier == "untrusted" for chunk in selected)
    if trust_posture(selected) != "weak" or not (retrieval.has_trusted or has_untrusted):
        return ""
    return "no authoritative or preferred passage was selected"


def _only_shared_corpus(selected: Sequence[SelectedChunk], overlay: Overlay | None) -> str:
    if overlay is None:
        return "no role was given, so no overlay shaped the answer"
    if not selected or not overlay.ranks or any(map(_is_role_specific, selected)):
        return ""
    return "no passage has anything of the role's own"


def _is_role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)


def _stale_dominant(
    selected: Sequence[SelectedChunk], codes: Mapping[RejectionCode, int], past_year: str
) -> str:
    """Passages that are not older than the past that the task asks about do not count."""
    rejected = codes.get("stale", 0)
    stale = rejected + sum(_is_stale(chunk, past_year) for chunk in selected)
    considered = rejected + len(selected)
    return f"stale passages: {stale} of {considered}" if stale * 2 > considered else ""


def _is_stale(chunk: SelectedChunk, past_year: str) -> bool:
    freshness = chunk.metadata.freshness
    date = freshness.updated_at or freshness.inferred_at or ""
    return freshness.status == "stale" and not (past_year and date >= past_year)


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


def _low_diversity(selected: Sequence[SelectedChunk], candidates: Sequence[Candidate]) -> str:
    sources = {chunk.source_id for chunk in selected}
    if len(sources) != 1 or len(selected) < LOW_DIVERSITY_FROM:
        return ""
    source = sources.pop()
    # If most candidates are of one source, it is no surprise that the best ones are, too.
    found = sum(candidate.passage.document.source_id == source for candidate in candidates)
    return "" if found * 2 > len(candidates) else f"every passage comes from {source}"


def _conflicting_evidence(conflicts: Sequence[Conflict]) -> str:
    """A sentence for each of the conflicts nearest to the task; one for a pair of documents."""
    nearest: dict[frozenset[str], Conflict] = {}
    for conflict in sorted(conflicts, key=lambda conflict: -conflict.relevance):
        documents = conflict.first.document.document_id, conflict.second.document.document_id
        nearest.setdefault(frozenset(documents), conflict)
    sentences = [conflict.sentence for conflict in nearest.values()]
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


def _chunks_without_vector(semantic: SemanticReport) -> str:
    if not semantic.waiting:
        return ""
    return f"{counted(semantic.waiting, 'chunk')} without a vector; run `rolebundle embed`"


def _unused_approximate_index(semantic: SemanticReport) -> str:
    if not semantic.doubt:
        return ""
    return f"exact search answers: {semantic.doubt}; run `rolebundle embed --optimize`"


def _names_missing(retrieval: Retrieval) -> str:
    """Empty if the names that no visible passage has are less than 0.15 of the task's words."""
    words, names = retrieval.evidence.words, _missing_names(retrieval)
    if not names or words.weight(names) < NAME_COVERAGE * words.total:
        return ""
    return f"no passage of the corpus has these names of the task: {_named(retrieval, names)}"


def _words_missing(retrieval: Retrieval) -> str:
    """Empty if the words that no visible passage has are only a small part of the task."""
    words, missing = retrieval.evidence.words, _missing(retrieval)
    if words.weight(missing) < HAS_WORDS * words.total:
        return ""
    if _names_missing(retrieval):
        missing = sorted({*missing} - {*_missing_names(retrieval)})
    if not missing:
        return ""
    return f"no passage of the corpus has these words of the task: {_named(retrieval, missing)}"


def _missing_names(retrieval: Retrieval) -> list[int]:
    """Those of the missing words that are names or numbers of identifiers, such as INC-124.

    Without capitalized words in German, which has a capital in every noun.
    """
    query, words = retrieval.query, retrieval.evidence.words
    names = frozenset[int]() if "de" in likely_languages(query.task_text) else words.names
    numbers = set(_IDENTIFIER.findall(query.task_text))
    return [
        position
        for position in _missing(retrieval)
        if position in names or query.content_words[position][0].text in numbers
    ]


def _missing(retrieval: Retrieval) -> list[int]:
    """The positions of the task's words that no visible passage has; none for an empty answer."""
    if not retrieval.selection.selected:
        return []
    words = retrieval.evidence.words
    return [
        position
        for position, frequency in enumerate(words.frequencies)
        if not frequency and position not in words.general
    ]


def _named(retrieval: Retrieval, positions: Sequence[int]) -> str:
    content = retrieval.query.content_words
    return first_of([content[position][0].label for position in positions], MAX_MISSING_WORDS)


def _replica_stale(replica: ReplicaState | None, now: datetime) -> str:
    if replica is None or now < datetime.fromisoformat(replica.expires_at):
        return ""
    return (
        f"the replica of {replica.publisher} was published {age(replica.age_hours)} ago and was to "
        f"be renewed by {replica.expires_at}; run `rolebundle pull`"
    )


def _seen_unknown(request: ResolvedRequest, retrieval: Retrieval) -> str:
    if not request.seen or retrieval.seen:
        return ""
    return f"`seen` has no passage of the corpus: {counted(len(request.seen), 'id')}"
