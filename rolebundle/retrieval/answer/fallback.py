"""What the caller should do with an answer, and why an answer is empty. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.contracts.bundle import BundleWarning, Fallback, SelectedChunk
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    FALLBACK_ACTIONS,
    FALLBACK_STATES,
    REJECTION_CODES,
    EmptyReason,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    RejectionCode,
    WarningCode,
)
from rolebundle.retrieval.answer.posture import freshness_posture
from rolebundle.retrieval.answer.warnings import narrowed_by
from rolebundle.retrieval.candidate import RejectedCandidate
from rolebundle.retrieval.outcome import Retrieval, SemanticReport
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.text.counts import counted

_EVIDENCE_OF_AGE: dict[FreshnessPosture, str] = {
    "fresh": "current evidence",
    "mixed": "evidence of mixed or unknown age",
    "stale": "evidence, some of it old and none of it new",
}


class Limitation(NamedTuple):
    """One thing that limits the use of an answer.

    Attributes:
        state: the state that holds; ``None`` if the limitation is no state of its own.
        action: what the caller should do because of it.
        sentence: the reason, for the message; empty if it needs none.
    """

    state: FallbackState | None
    action: FallbackAction
    sentence: str = ""


def decide_fallback(
    selected: Sequence[SelectedChunk],
    rejected: Sequence[RejectedCandidate],
    warnings: Sequence[BundleWarning],
    request: ResolvedRequest,
    retrieval: Retrieval,
) -> Fallback:
    """What the caller should do with the answer and, if nothing was selected, the reason.

    Args:
        selected: the passages of the answer.
        rejected: all other candidates, those that were scored in the order of their score.
        warnings: the bundle's.
        request: what was asked.
        retrieval: how it was searched.
    """
    messages = {warning.code: warning.message for warning in warnings}
    limitations = _limitations(messages, request.overlay, retrieval.semantic)
    if selected:
        sound = sound_evidence(freshness_posture(selected), is_trusted=retrieval.has_trusted)
        return fallback_of([*limitations, Limitation(None, "continue", sound)])
    semantic = retrieval.semantic
    verdict = empty_verdict(
        rejected,
        retrieval.corpus.chunks,
        is_incomplete=bool(semantic.degraded or semantic.waiting),
        is_unmatched=bool(retrieval.unmatched),
        is_withheld=bool(retrieval.withheld),
    )
    # The reason is enough: the other sentences are about the passages of an answer.
    limitations = [
        Limitation("no_strong_match", "block", _why_empty(verdict, rejected, request, retrieval)),
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


def _limitations(
    warnings: Mapping[WarningCode, str],
    overlay: Overlay | None,
    semantic: SemanticReport,
) -> list[Limitation]:
    """What limits the use of the selected passages, in the order of the states."""
    limitations = []
    if "NO_HIGH_TRUST_MATCH" in warnings:
        sentence = "no authoritative or preferred source matched; treat the passages as hints"
        limitations.append(Limitation("no_strong_match", "degrade", sentence))
    if "FORBIDDEN_SOURCE_HIT" in warnings:
        sentence = "a source that is forbidden to the role would have answered, and was left out"
        limitations.append(Limitation("forbidden_hit", "continue", sentence))
    if "CONFLICTING_EVIDENCE" in warnings:
        sentence = "documents of equal trust disagree; say so, and name both"
        limitations.append(Limitation("conflicting", "warn", sentence))
    if "STALE_DOMINANT" in warnings:
        sentence = "most of the evidence is older than it should be; check before relying on it"
        limitations.append(Limitation("stale_dominant", "warn", sentence))
    if "REPLICA_STALE" in warnings:
        limitations.append(Limitation(None, "warn", "the replica was not renewed in time"))
    if overlay is None:
        limitations.append(Limitation("no_overlay", "continue"))
    if semantic.degraded:
        limitations.append(Limitation(None, "degrade", "the semantic lane did not run"))
    if caution := warnings.get("WEAK_EVIDENCE"):
        limitations.append(Limitation(None, "warn", caution))
    return limitations


# -- the verdict of an empty answer --------------------------------------------------------------

# A copy is rejected together with its original, which was scored.
_SCORED_TOO_LOW: frozenset[RejectionCode] = frozenset({"low_score", "duplicate"})
_VERDICT_OF: dict[RejectionCode, EmptyReason] = {
    "forbidden_source": "all_forbidden",
    "taint_blocked": "all_taint_blocked",
    "stale": "all_stale",
    "conflict_downrank": "all_superseded",
    "already_seen": "all_seen",
}
_BY_PURPOSE: frozenset[RejectionCode] = frozenset({"taint_blocked", "requires_approval"})
_BY_TIME: frozenset[RejectionCode] = frozenset({"not_yet_valid", "expired"})
_IN_SCORE_ORDER: frozenset[RejectionCode] = frozenset({"low_score", "budget_cut"})
_CODES_OF: dict[EmptyReason, frozenset[RejectionCode]] = {
    "over_budget": frozenset({"budget_cut"}),
    "nothing_found": frozenset({"low_score"}),
    "no_evidence": frozenset(),  # Their notes only repeat the verdict.
    "all_below_floor": frozenset({"low_score"}),
    "approval_needed": frozenset({"requires_approval"}),
    "none_valid": _BY_TIME,
    "rejected_by_policy": frozenset(REJECTION_CODES) - _SCORED_TOO_LOW - {"already_seen"},
    **{verdict: frozenset({code}) for code, verdict in _VERDICT_OF.items()},
}
_OF_THE_UNSEEN: frozenset[EmptyReason] = frozenset(
    {"approval_needed", "none_valid", "rejected_by_policy", *_VERDICT_OF.values()} - {"all_seen"}
)
# What happened, and the next step.
_EXPLANATIONS: dict[EmptyReason, tuple[str, str]] = {
    "over_budget": (
        "passages would answer, and none fits the token budget",
        "raise token_budget",
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


def empty_verdict(
    rejected: Sequence[RejectedCandidate],
    chunks: int,
    *,
    is_incomplete: bool,
    is_unmatched: bool = False,
    is_withheld: bool = False,
) -> EmptyReason:
    """Why nothing was selected: the first rule that applies.

    1. ``corpus_empty``: there is no chunk to find.
    2. ``nothing_matches_where``: the request's ``where`` excludes every document.
    3. ``over_budget``: some candidate was rejected for the token budget alone. There is an answer.
    4. ``lane_down``: the semantic lane could not run, or chunks have no vector yet. The verdicts
       below are about *everything* relevant, which half a search cannot know.
    5. ``no_evidence``: nothing visible has the task, what policy rejects included, or too little
       has it and evidence is required. Then no candidate is relevant.
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

    Args:
        rejected: all candidates.
        chunks: how many the corpus has.
        is_incomplete: a lane that was asked for could not search everything.
        is_unmatched: ``where`` excludes every document.
        is_withheld: nothing has the task, or too little has it and evidence is required.
    """
    if chunks == 0:
        return "corpus_empty"
    if is_unmatched:
        return "nothing_matches_where"
    if any(rejection.code == "budget_cut" for rejection in rejected):
        return "over_budget"
    if is_incomplete:
        return "lane_down"
    if is_withheld and rejected:
        return "no_evidence"
    relevant = _relevant(rejected)
    if not relevant:
        return "nothing_found"
    codes = {rejection.code for rejection in relevant} - _SCORED_TOO_LOW
    if not codes:
        return "all_below_floor"
    if len(codes) > 1:
        codes -= {"already_seen"}
    if "requires_approval" in codes and codes <= _BY_PURPOSE:
        return "approval_needed"
    if codes <= _BY_TIME:
        return "none_valid"
    if len(codes) > 1:
        return "rejected_by_policy"
    return _VERDICT_OF.get(codes.pop(), "rejected_by_policy")


def _relevant(rejected: Sequence[RejectedCandidate]) -> list[RejectedCandidate]:
    with_words = [rejection for rejection in rejected if rejection.candidate.bm25]
    if with_words:
        return with_words
    return [
        rejection
        for rejection in rejected
        if rejection.candidate.cosine is not None and rejection.code not in _SCORED_TOO_LOW
    ]


def _why_empty(
    verdict: EmptyReason,
    rejected: Sequence[RejectedCandidate],
    request: ResolvedRequest,
    retrieval: Retrieval,
) -> str:
    """The verdict in words: what happened, the counts of the codes, and the next step."""
    if verdict == "nothing_matches_where":
        return f"no document matches {retrieval.unmatched}; correct `where`, or ask without it"
    if verdict == "corpus_empty":
        reason = _why_no_documents(request)
    elif verdict == "lane_down":
        reason = _why_incomplete(rejected, retrieval)
    else:
        reason = _why_none_selected(verdict, rejected, request)
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


def _why_incomplete(rejected: Sequence[RejectedCandidate], retrieval: Retrieval) -> str:
    semantic = retrieval.semantic
    problem = f"the semantic lane did not run: {semantic.degraded}"
    if not semantic.degraded:
        problem = (
            f"{semantic.waiting} of {counted(retrieval.corpus.chunks, 'chunk')} without a vector; "
            "run `rolebundle corpus embed`"
        )
    return f"the search was incomplete ({_counts(rejected)}); {problem}"


def _why_none_selected(
    verdict: EmptyReason, rejected: Sequence[RejectedCandidate], request: ResolvedRequest
) -> str:
    overlay = request.overlay
    role = overlay.role_id if overlay else "(no role)"
    policy = f"the policy of the role {role}" if overlay else "policy"
    if verdict == "nothing_found":
        reason, step = _nothing_found(rejected)
    else:
        reason, step = _EXPLANATIONS[verdict]
    scope = "the corpus" if request.where is None else "what matches `where`"
    reason = reason.format(role=role, policy=policy, scope=scope)
    has_seen = any(rejection.code == "already_seen" for rejection in _relevant(rejected))
    if has_seen and verdict in _OF_THE_UNSEEN:
        reason = f"apart from what is in `seen`, {reason}"
    return f"{reason} ({_counts(rejected)}{_example(verdict, rejected)}); {step}"


def _nothing_found(rejected: Sequence[RejectedCandidate]) -> tuple[str, str]:
    if any(rejection.candidate.cosine is not None for rejection in rejected):
        return (
            "nothing in {scope} has the task's words or is near enough in meaning",
            "ask in other words; the answer may be in no document",
        )
    return (
        "nothing in {scope} has the task's words, and meanings were not searched",
        "ask in other words, or without lexical_only",
    )


def _counts(rejected: Sequence[RejectedCandidate]) -> str:
    codes = Counter(rejection.code for rejection in rejected)
    reasons = ", ".join(f"{codes[code]} {code}" for code in REJECTION_CODES if codes[code])
    return f"candidates rejected: {reasons}" if reasons else "no candidates"


def _example(verdict: EmptyReason, rejected: Sequence[RejectedCandidate]) -> str:
    """The note of one rejected candidate, which has the figures or names the rule."""
    codes = _CODES_OF[verdict]
    candidates = _relevant(rejected) or rejected
    notes = (rejection.note for rejection in candidates if rejection.code in codes)
    note = next(notes, "")
    which = "the best" if codes <= _IN_SCORE_ORDER else "for one"
    return f"; {which}: {note}" if note else ""
