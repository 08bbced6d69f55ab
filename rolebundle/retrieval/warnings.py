"""The warnings of an answer, what its caller should do, and why it is empty. Pure.

``CONDITIONS`` has the condition of each warning: a function of the retrieval that returns the
message, which is empty if the warning does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from rolebundle.contracts.bundle import BundleWarning, Fallback
from rolebundle.contracts.request import Where
from rolebundle.contracts.terms import (
    FALLBACK_ACTIONS,
    FALLBACK_STATES,
    REJECTION_CODES,
    REJECTIONS,
    WARNINGS,
    EmptyReason,
    FreshnessPosture,
    Limitation,
    TrustPosture,
    WarningCode,
)
from rolebundle.retrieval.candidate import Candidate, Retrieval
from rolebundle.retrieval.evidence import shown_kinds
from rolebundle.retrieval.passage_text import one_line
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.rank import conflicts
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.text.words import age, counted, first_of, is_ordinary, words_found

MAX_NAMED_CONFLICTS = 5
"""So many conflicts are named; the others are counted."""
COMMON_PLACE = 2_000
"""Words up to this place in the frequency of English are in most texts by chance, or are not."""
MAX_MISSING_WORDS = 5
"""So many missing words are named; the others are counted."""
_MAX_KINDS_CHARS = 500
LOW_DIVERSITY_FROM = 3
"""If at least so many passages are selected, all of one source, there may be a warning."""


def trust_posture(selected: Sequence[Candidate], *, is_declared: bool = True) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak.

    For the answer, of the passages that are evidence for the task. ``undeclared`` if nobody
    declared any trust for what is visible.
    """
    if not is_declared:
        return "undeclared"
    tiers = {row.passage.document.trust_tier for row in selected}
    if "authoritative" in tiers:
        return "strong"
    return "mixed" if "preferred" in tiers else "weak"


def freshness_posture(selected: Sequence[Candidate]) -> FreshnessPosture:
    """Fresh with fresh and no stale passages, stale with stale and no fresh ones, else mixed."""
    statuses = {row.freshness for row in selected}
    if "fresh" in statuses and "stale" not in statuses:
        return "fresh"
    return "stale" if "stale" in statuses and "fresh" not in statuses else "mixed"


def narrowed_by(where: Where | None) -> str:
    """That `where` narrowed a weak or empty answer, with the next step; empty without `where`."""
    if where is None:
        return ""
    is_by_date = where.updated_after is not None or where.updated_before is not None
    undated = ", and no document without a declared date meets its dates" if is_by_date else ""
    return f"; `where` narrowed the search{undated}: ask without it, too"


def _weak_evidence(retrieval: Retrieval) -> str:
    """What of the task the first passages have, if it is little. An empty answer has its reason."""
    evidence = retrieval.evidence
    if not retrieval.selected or evidence.verdict == "supported":
        return ""
    best = evidence.best
    first = [passage.rowid for passage in retrieval.evidence_passages]
    anywhere = {part for name in _names_missing(retrieval) for part in words_of(name)}
    words = _words_at(retrieval, evidence.missing(first))
    lacking = first_of(
        [word for word in words if word.casefold() not in anywhere], MAX_MISSING_WORDS
    )
    found = f"the best passage has {words_found(best.matched, best.words)}"
    without = f", and none of the first mentions: {lacking}" if lacking else ""
    return f"thin evidence: {found}{without}{narrowed_by(retrieval.request.where)}"


def _no_high_trust_match(retrieval: Retrieval) -> str:
    """Also empty if no document declares trust: then every answer would have the warning."""
    selected = retrieval.selected
    has_untrusted = any(row.passage.document.trust_tier == "untrusted" for row in selected)
    if trust_posture(selected) != "weak" or not (retrieval.has_trusted or has_untrusted):
        return ""
    return "no authoritative or preferred passage was selected"


def _only_shared_corpus(retrieval: Retrieval) -> str:
    if not retrieval.request.ranks_by_role or not retrieval.selected:
        return ""
    if any(map(_is_role_specific, retrieval.selected)):
        return ""
    return "no passage has anything of the role's own"


def _is_role_specific(row: Candidate) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred")
    return bool(row.vocabulary_hits) or any(hit.startswith(kinds) for hit in row.metadata_hits)


def _stale_dominant(retrieval: Retrieval) -> str:
    """Only if the role sets a maximum age: an old text is not outdated because it is old.

    Passages that are not older than the past that the task asks about do not count.
    """
    request, years = retrieval.request, retrieval.query.task.years
    if request.retrieval_policy.freshness_max_age_days is None:
        return ""
    is_past = all(int(year) < request.now.year for year in years)
    past_year = min(years, default="") if is_past else ""

    def is_stale(row: Candidate) -> bool:
        date = row.passage.document.updated_at or row.passage.document.inferred_at or ""
        return row.freshness == "stale" and not (past_year and date >= past_year)

    stale, considered = sum(map(is_stale, retrieval.selected)), len(retrieval.selected)
    return f"stale passages: {stale} of {considered}" if stale * 2 > considered else ""


def _forbidden_source_hit(retrieval: Retrieval) -> str:
    hits = retrieval.best_forbidden
    if not hits:
        return ""
    named = sorted({hit.passage.document.source_id for hit in hits})
    return (
        f"{counted(len(hits), 'passage')} of forbidden sources would have been selected: "
        f"{', '.join(named)}"
    )


def _action_restricted(retrieval: Retrieval) -> str:
    """A refused approval has its own warning, which says this as well."""
    return "" if retrieval.refusal else _restrictions(retrieval)


def _approval_refused(retrieval: Retrieval) -> str:
    if not retrieval.refusal:
        return ""
    refused = f"the action is not approved: {retrieval.refusal}"
    return "; ".join(filter(None, [refused, _restrictions(retrieval)]))


def _restrictions(retrieval: Retrieval) -> str:
    counts = retrieval.counts
    blocked, waiting = counts["taint_blocked"], counts["requires_approval"]
    parts = []
    if blocked:
        parts.append(f"not trusted enough for the action: {blocked}")
    if waiting:
        parts.append(f"usable for the action only with an approval: {waiting}")
    return "; ".join(parts)


def _low_diversity(retrieval: Retrieval) -> str:
    """Only for a role that requires diversity, if other sources had something for the task."""
    sources = {row.passage.document.source_id for row in retrieval.selected}
    if not retrieval.request.retrieval_policy.require_source_diversity or len(sources) != 1:
        return ""
    if len(retrieval.selected) < LOW_DIVERSITY_FROM:
        return ""
    source = sources.pop()
    others = any(
        row.bm25 and row.passage.document.source_id != source for row in retrieval.candidates
    )
    return f"every passage comes from {source}" if others else ""


def _conflicting_evidence(retrieval: Retrieval) -> str:
    """A sentence for each pair of documents, the best first."""
    pairs: dict[frozenset[str], str] = {}
    for first, second in conflicts(retrieval.ranked, retrieval.request.limit):
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


def _supersede_ignored(retrieval: Retrieval) -> str:
    claims = {
        f"{claiming} claims to supersede {row.passage.document.document_id}, but may not"
        for row in retrieval.selected
        for claiming in row.passage.ignored_claims
    }
    return "; ".join(sorted(claims))


def _evidence_kind_missing(retrieval: Retrieval) -> str:
    """The required evidence kinds that no passage shows. An empty answer has its own verdict."""
    overlay = retrieval.request.overlay
    if overlay is None or not retrieval.selected:
        return ""
    kinds = list(filter(str.strip, overlay.synthesis_policy.required_evidence_kinds))
    shown = {kind for row in retrieval.selected for kind in shown_kinds(kinds, row.passage)}
    missing = ", ".join(kind for kind in dict.fromkeys(kinds) if kind not in shown)
    if not missing:
        return ""
    return f"no passage shows what the role requires: {one_line(missing, _MAX_KINDS_CHARS)}"


def _index_stale(retrieval: Retrieval) -> str:
    chunks, remedy = retrieval.without_vector, "run `rolebundle corpus embed`"
    return f"{counted(chunks, 'chunk')} without a vector; {remedy}" if chunks else ""


def _seen_unknown(retrieval: Retrieval) -> str:
    request = retrieval.request
    ids = 0 if request.seen_texts else len(request.seen)
    return f"`seen` has no passage of the corpus: {counted(ids, 'id')}" if ids else ""


def _words_missing(retrieval: Retrieval) -> str:
    named = first_of(_names_missing(retrieval), MAX_MISSING_WORDS)
    return f"no passage mentions: {named}" if named and retrieval.selected else ""


def _names_missing(retrieval: Retrieval) -> list[str]:
    """The exact words, quoted phrases and names of the task that occur nowhere.

    An exact word is not missing if all its parts occur. Nouns of other languages may have capitals,
    so names are of English tasks only.
    """
    query, missing = retrieval.query, retrieval.evidence.missing()
    words = {query.content_words[place][0].text: place for place in missing}
    absent = [
        exact
        for exact in retrieval.absent_exact
        if " " in exact or words.keys() & set(words_of(exact))
    ]
    parts = {part for exact in absent for part in words_of(exact)}
    names = () if query.task.languages else query.names
    named = (word for word, place in words.items() if place in names and word not in parts)
    return _as_written(retrieval, [*absent, *named])


def _words_not_found(retrieval: Retrieval) -> str:
    """The other content words of the task that occur nowhere, without the commonest of English."""
    query, evidence = retrieval.query, retrieval.evidence
    if evidence.verdict != "supported" or not retrieval.selected:
        return ""  # The caution names words.
    named = {word.casefold() for word in _names_missing(retrieval)} | query.corrected.keys()
    words = (query.content_words[place][0] for place in evidence.missing())
    absent = [
        word.text
        for word in words
        if not (word.form or word.text in named or is_ordinary(word.text, COMMON_PLACE))
    ]
    found = first_of(_as_written(retrieval, absent), MAX_MISSING_WORDS)
    return f"no passage has the word: {found}" if found else ""


def _words_corrected(retrieval: Retrieval) -> str:
    corrected = retrieval.query.corrected.items()
    pairs = ", ".join(f"{other} for {word}" for word, other in corrected)
    return f"also searched for likely spellings: {pairs}" if pairs else ""


def _words_at(retrieval: Retrieval, positions: Sequence[int]) -> list[str]:
    """The words at these positions, as the task has them, without the ordinary ones.

    That a text lacks an ordinary word says little.
    """
    query = retrieval.query
    words = [(place, query.content_words[place][0]) for place in positions]
    return _as_written(
        retrieval,
        [
            word.text
            for place, word in words
            if place in query.names or not (word.form or is_ordinary(word.text))
        ],
    )


def _as_written(retrieval: Retrieval, words: Sequence[str]) -> list[str]:
    written = retrieval.query.task.as_written
    return list(dict.fromkeys(written.get(word.lower(), word) for word in words))


def _replica_stale(retrieval: Retrieval) -> str:
    replica, now = retrieval.corpus.replica, retrieval.request.now
    if replica is None or now < datetime.fromisoformat(replica.expires_at):
        return ""
    return (
        f"the replica of {replica.publisher} was published {age(replica.age_hours)} ago and was to "
        f"be renewed by {replica.expires_at}; run `rolebundle replica pull`"
    )


def _database_unreachable(retrieval: Retrieval) -> str:
    corpus = retrieval.corpus
    if corpus.in_place_of is None or corpus.replica is None:
        return ""
    return (
        f"the database of {corpus.in_place_of} cannot be reached; the replica of "
        f"{corpus.replica.publisher} was published {age(corpus.replica.age_hours)} ago"
    )


CONDITIONS: Mapping[WarningCode, Callable[[Retrieval], str]] = {
    "WEAK_EVIDENCE": _weak_evidence,
    "NO_HIGH_TRUST_MATCH": _no_high_trust_match,
    "ONLY_SHARED_CORPUS": _only_shared_corpus,
    "STALE_DOMINANT": _stale_dominant,
    "FORBIDDEN_SOURCE_HIT": _forbidden_source_hit,
    "ACTION_RESTRICTED": _action_restricted,
    "LOW_DIVERSITY": _low_diversity,
    "CONFLICTING_EVIDENCE": _conflicting_evidence,
    "SUPERSEDE_IGNORED": _supersede_ignored,
    "EVIDENCE_KIND_MISSING": _evidence_kind_missing,
    "SEMANTIC_LANE_DEGRADED": lambda retrieval: retrieval.degraded,
    "INDEX_STALE": _index_stale,
    "WORDS_MISSING": _words_missing,
    "WORDS_NOT_FOUND": _words_not_found,
    "WORDS_CORRECTED": _words_corrected,
    "REPLICA_STALE": _replica_stale,
    "DATABASE_UNREACHABLE": _database_unreachable,
    "SEEN_UNKNOWN": _seen_unknown,
    "RERANK_DEGRADED": lambda retrieval: retrieval.rerank_problem,
    "SOURCE_CHANGED": lambda retrieval: retrieval.source_warnings.get("SOURCE_CHANGED", ""),
    "SOURCE_UNCHECKED": lambda retrieval: retrieval.source_warnings.get("SOURCE_UNCHECKED", ""),
    "APPROVAL_REFUSED": _approval_refused,
}
"""Each warning's condition, in the order of the bundle."""


def warnings_for(retrieval: Retrieval) -> list[BundleWarning]:
    """What the reader of the bundle should know; remembered facts do not count."""
    messages = {code: message_of(retrieval) for code, message_of in CONDITIONS.items()}
    return [
        BundleWarning.model_construct(code=code, message=message)
        for code, message in messages.items()
        if message
    ]


# -- what to do with the answer ------------------------------------------------------------------

_EVIDENCE_OF_AGE: dict[FreshnessPosture, str] = {
    "fresh": "current evidence",
    "mixed": "evidence of mixed or unknown age",
    "stale": "evidence, some of it old and none of it new",
}


_ONLY_FOR_ROLE = "none of these passages has enough of the task; only the role chose them"


def decide_fallback(warnings: Sequence[BundleWarning], retrieval: Retrieval) -> Fallback:
    """What the caller should do with the answer and, if nothing was selected, the reason.

    Args:
        warnings: the bundle's.
        retrieval: how it was searched.
    """
    messages = {warning.code: warning.message for warning in warnings}
    meanings = [row.limitation for code, row in WARNINGS.items() if code in messages]
    limitations = [limitation for limitation in meanings if limitation]
    if retrieval.request.overlay is None:
        limitations.append(Limitation("no_overlay", "continue"))
    if retrieval.degraded:
        limitations.append(Limitation(None, "degrade", "the semantic lane did not run"))
    cautions: tuple[WarningCode, ...] = ("WORDS_MISSING", "WEAK_EVIDENCE")
    for code in cautions:
        if caution := messages.get(code):
            limitations.append(Limitation(None, "warn", caution))
    if retrieval.selected:
        supports = [retrieval.evidence.support(row.passage.rowid) for row in retrieval.selected]
        if retrieval.request.ranks_by_role and not any(s.is_for_task for s in supports):
            limitations.append(Limitation(None, "warn", _ONLY_FOR_ROLE))
        freshness = freshness_posture(retrieval.selected)
        sound = sound_evidence(freshness, is_trusted=retrieval.has_trusted)
        return fallback_of([*limitations, Limitation(None, "continue", sound)])
    verdict = empty_verdict(retrieval)
    # The reason is enough: the other sentences are about the passages of an answer.
    limitations = [
        Limitation("no_strong_match", "block", _why_empty(verdict, retrieval)),
        *(limitation._replace(sentence="") for limitation in limitations),
    ]
    return fallback_of(limitations, verdict)


def sound_evidence(freshness: FreshnessPosture, *, is_trusted: bool) -> str:
    """What an answer without a limitation rests on.

    Args:
        freshness: how old its passages are.
        is_trusted: a document of the corpus declares trust.
    """
    evidence = _EVIDENCE_OF_AGE[freshness]
    if is_trusted:
        return f"trusted, {evidence}" if freshness == "fresh" else f"trusted {evidence}"
    return f"{evidence}; no document of the corpus declares trust"


def fallback_of(limitations: Sequence[Limitation], verdict: EmptyReason | None = None) -> Fallback:
    """The fallback of all limitations: every state, the worst action, and the sentences.

    The sentences are in the order of their actions, those of the worst action first. If one asks
    for more than to continue, those that let the caller continue are left out.
    """
    holding = {limitation.state for limitation in limitations}
    states = [state for state in FALLBACK_STATES if state in holding] or ["healthy"]
    worst_first = sorted(
        limitations,
        key=lambda limitation: FALLBACK_ACTIONS.index(limitation.action),
        reverse=True,
    )
    action = worst_first[0].action if worst_first else "continue"
    sentences = [
        limitation.sentence
        for limitation in worst_first
        if limitation.sentence and (limitation.action != "continue" or action == "continue")
    ]
    return Fallback.model_construct(
        state=states[0],
        states=states,
        action=action,
        message="; ".join(sentences),
        verdict=verdict,
    )


# -- the verdict of an empty answer --------------------------------------------------------------

_BY_SCORE = ("over_budget", "nothing_found", "all_below_floor")
"""Verdicts about candidates in the order of their score."""
# What happened, and the next step.
_EXPLANATIONS: dict[EmptyReason, tuple[str, str]] = {
    "over_budget": (
        "passages would answer, and none fits the token budget",
        "raise token_budget",
    ),
    "nothing_found": (
        "nothing in {scope} has the task's words or is near enough in meaning",
        "ask in other words; the answer may be in no document",
    ),
    "no_evidence": (
        "{scope} has too little for this task",
        "do not guess; ask in other words (`also`); the answer may be in no document",
    ),
    "all_below_floor": (
        "what has the task's words is under the floor",
        "ask more precisely, or lower min_score in the role's overlay",
    ),
    "all_forbidden": (
        "everything relevant is forbidden to the role {role}",
        "say so; do not ask with another role or without one, and do not guess what they say",
    ),
    "all_taint_blocked": (
        "everything relevant is not trusted enough for the action",
        "ask for the passages to read or analyze them, and do not act on them",
    ),
    "approval_needed": (
        "everything relevant may be used for the action only with an approval",
        "let a person approve it, and do not act before",
    ),
    "none_valid": (
        "nothing relevant is valid at the time of the answer",
        "ask as of another time, or look for the document that applies",
    ),
    "all_stale": (
        "everything relevant is older than the role {role} accepts",
        "bring the documents up to date, or raise the overlay's freshness_max_age_days",
    ),
    "all_superseded": (
        "everything relevant was replaced by newer documents, which were rejected as well",
        "look the newer documents up",
    ),
    "all_seen": (
        "everything relevant is in `seen`",
        "use the passages that you have, or ask for something else",
    ),
    "rejected_by_policy": (
        "{policy} rejected everything relevant",
        "read the notes of the rejected",
    ),
}


def empty_verdict(retrieval: Retrieval) -> EmptyReason:
    """Why nothing was selected: the first rule that applies.

    1. ``corpus_empty``: there is no chunk to find.
    2. ``nothing_matches_where``: the request's ``where`` excludes every document.
    3. ``over_budget``: some candidate was rejected for the token budget alone. There is an answer.
    4. ``lane_down``: the semantic lane could not run, or chunks have no vector yet. The verdicts
       below are about *everything* relevant, which half a search cannot know.
    5. ``no_evidence``: nothing visible has the task, or too little has it and evidence is required;
       what policy rejects included. Then no candidate is relevant.
    6. By the *relevant* candidates. The semantic lane proposes the nearest chunks to any task, and
       the role's words find chunks for any task, so a candidate is not relevant by itself.
       Relevant are candidates with a word of the task. If there are none, no word of the task is
       in the corpus. Then neighbours that policy rejected are relevant, since nothing measured how
       near they are. A neighbour under the floor was measured, and is not near.

       - none: ``nothing_found``. A lexical-only request searches no meanings, and the message says
         so.
       - all under the floor, or copies of such: ``all_below_floor``.
       - else those under the floor do not count. If one code rejected the rest:
         ``all_forbidden``, ``all_taint_blocked``, ``all_stale``, ``all_superseded`` or
         ``all_seen``. What the agent has seen does not count beside another code.
       - if only the purpose rejected the rest, and an approval would allow some of it:
         ``approval_needed``.
       - if all of the rest is not valid yet or expired: ``none_valid``.
       - another code, or several: ``rejected_by_policy``.
    """
    if retrieval.corpus.chunks == 0:
        return "corpus_empty"
    if retrieval.unmatched:
        return "nothing_matches_where"
    if retrieval.counts["budget_cut"]:
        return "over_budget"
    if retrieval.degraded or retrieval.without_vector:
        return "lane_down"
    if retrieval.withheld_reason and retrieval.rejected and not retrieval.has_rejected_evidence:
        return "no_evidence"
    relevant = _relevant(retrieval.rejected)
    if not relevant:
        return "nothing_found"
    verdicts = {_verdict(row) for row in relevant} - {"all_below_floor"}
    if not verdicts:
        return "all_below_floor"
    if len(verdicts) > 1:
        verdicts -= {"all_seen"}
    if verdicts == {"approval_needed", "all_taint_blocked"}:
        return "approval_needed"
    return verdicts.pop() if len(verdicts) == 1 else "rejected_by_policy"


def _verdict(row: Candidate) -> EmptyReason:
    """The verdict if what rejected a candidate rejected everything relevant."""
    assert row.code is not None
    return REJECTIONS[row.code].verdict


def _relevant(rejected: Sequence[Candidate]) -> list[Candidate]:
    with_words = [row for row in rejected if row.bm25]
    neighbours = [row for row in rejected if row.cosine is not None]
    return with_words or [row for row in neighbours if _verdict(row) != "all_below_floor"]


def _why_empty(verdict: EmptyReason, retrieval: Retrieval) -> str:
    """The verdict in words: what happened, the counts of the codes, and the next step."""
    request, codes = retrieval.request, retrieval.counts
    reasons = ", ".join(f"{codes[code]} {code}" for code in REJECTION_CODES if codes[code])
    counts = f"candidates rejected: {reasons}" if reasons else "no candidates"
    if verdict == "nothing_matches_where":
        return f"no document matches {retrieval.unmatched}; correct `where`, or ask without it"
    if verdict == "corpus_empty":
        reason = _why_no_documents(request)
    elif verdict == "lane_down":
        problem = f"the semantic lane did not run: {retrieval.degraded}"
        if not retrieval.degraded:
            chunks = counted(retrieval.corpus.chunks, "chunk")
            without = f"{retrieval.without_vector} of {chunks} without a vector"
            problem = f"{without}; run `rolebundle corpus embed`"
        reason = f"the search was incomplete ({counts}); {problem}"
    else:
        reason = _why_none_selected(verdict, retrieval, counts)
    return reason + narrowed_by(request.where)


def _why_no_documents(request: ResolvedRequest) -> str:
    """Why there is no document to search, if there is none.

    Under a policy an agent gets the same message for an empty corpus and for a hidden one.
    """
    if request.has_policy:
        return "this agent sees no document here: ask the owner of the corpus"
    if request.quarantined:
        return (
            f"{counted(request.quarantined, 'document')} in quarantine and no other: "
            "see `rolebundle corpus quarantine list`"
        )
    return "the corpus is empty: run `rolebundle ingest PATH`"


def _why_none_selected(verdict: EmptyReason, retrieval: Retrieval, counts: str) -> str:
    request, rejected = retrieval.request, retrieval.rejected
    role = request.role_id or "(no role)"
    policy = f"the policy of the role {role}" if request.overlay else "policy"
    scope = "the corpus" if request.where is None else "what matches `where`"
    reason, step = _EXPLANATIONS[verdict]
    if verdict == "nothing_found" and retrieval.evidence.noise is None:
        reason = "nothing in {scope} has the task's words, and meanings were not searched"
        step = "ask in other words, or without lexical_only"
    reason = reason.format(role=role, policy=policy, scope=scope)
    relevant = _relevant(rejected)
    has_seen = any(row.code == "already_seen" for row in relevant)
    if has_seen and verdict not in (*_BY_SCORE, "no_evidence", "all_seen"):
        reason = f"apart from what is in `seen`, {reason}"
    # The note of one rejected candidate has the figures, or names the rule.
    ignored = {"all_below_floor", "all_seen"}
    notes = (
        row.note
        for row in relevant or rejected
        if _verdict(row) == verdict
        or (verdict == "rejected_by_policy" and _verdict(row) not in ignored)
        or (verdict == "nothing_found" and row.code == "low_score")
    )
    note = next(notes, "")
    which = "the best" if verdict in _BY_SCORE else "for one"
    example = f"; {which}: {note}" if note else ""
    return f"{reason} ({counts}{example}); {step}"
