"""How far a selection can be trusted: postures, warnings and the fallback decision. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rolebundle.contracts.bundle import BundleWarning, CorpusState, Fallback, SelectedChunk
from rolebundle.contracts.candidate import Rejected
from rolebundle.contracts.document import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import (
    HIGH_TRUST,
    REJECTION_CODES,
    FallbackAction,
    FallbackState,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    Verdict,
    WarningCode,
)

_LOW_DIVERSITY_FROM = 3

# A copy leaves where its original was scored, and shares its fate.
_MEASURED: frozenset[RejectionCode] = frozenset({"low_score", "duplicate"})
_ONLY: dict[RejectionCode, Verdict] = {
    "forbidden_source": "all_forbidden",
    "taint_blocked": "all_taint_blocked",
    "stale": "all_stale",
    "conflict_downrank": "all_superseded",
}
_NEED_APPROVAL: frozenset[RejectionCode] = frozenset({"taint_blocked", "requires_approval"})
_SCORED: frozenset[RejectionCode] = frozenset({"low_score", "budget_cut"})
_DECIDED_BY: dict[Verdict, frozenset[RejectionCode]] = {
    "over_budget": frozenset({"budget_cut"}),
    "nothing_found": frozenset({"low_score"}),
    "all_below_floor": frozenset({"low_score"}),
    "approval_needed": frozenset({"requires_approval"}),
    "rejected_by_policy": frozenset(REJECTION_CODES) - _MEASURED,
    **{verdict: frozenset({code}) for code, verdict in _ONLY.items()},
}
# What happened, and the next step.
_EXPLAINED: dict[Verdict, tuple[str, str]] = {
    "over_budget": (
        "passages would answer, and none fits the token budget",
        "raise token_budget",
    ),
    "all_below_floor": (
        "what has the task's words is under the floor",
        "ask more precisely, or lower min_score in the role's overlay",
    ),
    "all_forbidden": (
        "everything relevant is forbidden to the role {role}",
        "ask for a role that may use these sources, or go without; do not guess what they say",
    ),
    "all_taint_blocked": (
        "everything relevant is of an origin that is not trusted enough for the action",
        "ask for the passages to read or analyze them, and do not act on them",
    ),
    "approval_needed": (
        "everything relevant is of an origin that may be used for the action only with an approval",
        "let a person decide, and ask again with that person's name as approval; do not act before",
    ),
    "all_stale": (
        "everything relevant is older than the role {role} accepts",
        "bring the documents up to date, or raise the overlay's freshness_max_age_days",
    ),
    "all_superseded": (
        "everything relevant was replaced by newer documents, which did not make it either",
        "look the newer documents up",
    ),
    "rejected_by_policy": (
        "{policy} rejected everything relevant",
        "read the notes of the rejected",
    ),
}


def trust_posture(selected: Sequence[SelectedChunk]) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak."""
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
    selected: Sequence[SelectedChunk],
    codes: Mapping[RejectionCode, int],
    conflicts: Sequence[Passage],
    overlay: Overlay | None,
    degraded: str,
    waiting: int,
    doubt: str = "",
) -> list[BundleWarning]:
    """What the reader of the bundle should know, in a fixed order.

    Args:
        selected: the passages of the answer.
        codes: how many candidates each code rejected.
        conflicts: superseded passages that would have been selected.
        overlay: the role's, or ``None``.
        degraded: why the semantic lane did not run, or empty.
        waiting: how many chunks have no vector yet.
        doubt: why the fast index does not answer, or empty.
    """
    found: list[tuple[WarningCode, str]] = []
    if trust_posture(selected) == "weak":
        found.append(("NO_HIGH_TRUST_MATCH", "no authoritative or preferred passage was selected"))
    if overlay is None:
        found.append(("ONLY_SHARED_CORPUS", "no role was given, so no overlay shaped the answer"))
    elif selected and not any(_role_specific(chunk) for chunk in selected):
        found.append(("ONLY_SHARED_CORPUS", "no passage has anything of the role's own"))
    rejected_stale = codes.get("stale", 0)
    stale = rejected_stale + sum(one.metadata.freshness.status == "stale" for one in selected)
    considered = rejected_stale + len(selected)
    if stale * 2 > considered:
        found.append(("STALE_DOMINANT", f"{stale} of {considered} passages are stale"))
    if forbidden := codes.get("forbidden_source"):
        found.append(
            ("FORBIDDEN_SOURCE_HIT", f"{forbidden} candidates came from forbidden sources")
        )
    if restricted := _restricted(codes):
        found.append(("ACTION_RESTRICTED", restricted))
    sources = {chunk.source_id for chunk in selected}
    if len(sources) == 1 and len(selected) >= _LOW_DIVERSITY_FROM:
        found.append(("LOW_DIVERSITY", f"every passage comes from {sources.pop()}"))
    pairs = conflicting(conflicts)
    if pairs:
        found.append(("CONFLICTING_EVIDENCE", f"high-trust documents disagree: {pairs}"))
    if degraded:
        found.append(("SEMANTIC_LANE_DEGRADED", degraded))
    if waiting:
        found.append(
            ("INDEX_STALE", f"{waiting} chunks wait for their vector; run `rolebundle embed`")
        )
    if doubt:
        found.append(
            ("INDEX_STALE", f"exact search answers: {doubt}; run `rolebundle embed --optimize`")
        )
    return [BundleWarning(code=code, message=message) for code, message in found]


def _restricted(codes: Mapping[RejectionCode, int]) -> str:
    blocked, waiting = codes.get("taint_blocked", 0), codes.get("requires_approval", 0)
    told = []
    if blocked:
        told.append(f"{blocked} candidates are of origins not trusted enough for the action")
    if waiting:
        told.append(f"{waiting} candidates may be used for the action only with an approval")
    return "; ".join(told)


def conflicting(conflicts: Sequence[Passage]) -> str:
    """Pairs of high-trust documents of which one supersedes the other, as text; or empty."""
    pairs = {
        f"{passage.document.document_id} is superseded by {newer.document_id}"
        for passage in conflicts
        if passage.document.trust_tier in HIGH_TRUST
        for newer in passage.superseded_by
        if newer.trust_tier in HIGH_TRUST
    }
    return "; ".join(sorted(pairs))


def decide_fallback(
    selected: Sequence[SelectedChunk],
    rejected: Sequence[Rejected],
    warnings: Sequence[BundleWarning],
    overlay: Overlay | None,
    corpus: CorpusState,
    degraded: str,
    waiting: int = 0,
) -> Fallback:
    """What the caller should do with the answer; with nothing selected, why that is so.

    Args:
        selected: the passages of the answer.
        rejected: every other candidate, what was scored in the order of its score.
        warnings: what the reader was warned of.
        overlay: the role's, or ``None``.
        corpus: for how much there was to search.
        degraded: why the semantic lane did not run, or empty.
        waiting: how many chunks have no vector yet.
    """
    if not selected:
        verdict = empty_verdict(rejected, corpus.chunks, bool(degraded or waiting))
        return Fallback(
            state="no_strong_match",
            action="block",
            message=_why_empty(verdict, rejected, overlay, corpus, degraded, waiting),
            verdict=verdict,
        )
    state, action, message = _of_a_selection(
        {warning.code for warning in warnings}, overlay, degraded
    )
    if all(one.raw is not None and not one.raw.bm25 for one in selected):
        # Nearest neighbours are always found; where no floor held them back, say what they are.
        message += "; no passage has a word of the task"
    return Fallback(state=state, action=action, message=message)


def empty_verdict(rejected: Sequence[Rejected], chunks: int, incomplete: bool) -> Verdict:
    """Why nothing was selected: the one rule, first match wins.

    1. ``corpus_empty``: there is no chunk to find.
    2. ``over_budget``: some candidate failed on the token budget alone. There is an answer.
    3. ``lane_down``: the semantic lane could not run, or chunks wait for their vectors. Every
       verdict below speaks of *all* that is relevant, which half a search cannot.
    4. By the *relevant* candidates. The semantic lane proposes the nearest chunks to any task, and
       a role's own words find chunks whatever the task is, so being a candidate proves nothing.
       Relevant are those that have a word of the task. The lexical lane finds one wherever there
       is one, so without any, no word of the task occurs in the corpus; then those neighbours are
       relevant that policy withheld, since nothing measured how near they were. A neighbour under
       the floor was measured, and is not near.

       - none: ``nothing_found``, no such words and no such meaning. A request for words alone
         looks for no meanings, and the message says so.
       - all under the floor (or copies of such): ``all_below_floor``.
       - else the floor's are not counted, and if one code took the rest: ``all_forbidden``,
         ``all_taint_blocked``, ``all_stale`` or ``all_superseded``.
       - if the purpose alone took the rest, and an approval would bring some of it back:
         ``approval_needed``.
       - another code, or several: ``rejected_by_policy``.

    Args:
        rejected: every candidate.
        chunks: how many the corpus has.
        incomplete: a lane that was wanted could not search everything.
    """
    if chunks == 0:
        return "corpus_empty"
    if any(one.reason == "budget_cut" for one in rejected):
        return "over_budget"
    if incomplete:
        return "lane_down"
    relevant = _relevant(rejected)
    if not relevant:
        return "nothing_found"
    withheld = {one.reason for one in relevant} - _MEASURED
    if not withheld:
        return "all_below_floor"
    if "requires_approval" in withheld and withheld <= _NEED_APPROVAL:
        return "approval_needed"
    if len(withheld) > 1:
        return "rejected_by_policy"
    return _ONLY.get(withheld.pop(), "rejected_by_policy")


def _relevant(rejected: Sequence[Rejected]) -> list[Rejected]:
    with_words = [one for one in rejected if one.candidate and one.candidate.bm25]
    if with_words:
        return with_words
    return [one for one in rejected if _has_meaning(one) and one.reason not in _MEASURED]


def _has_meaning(one: Rejected) -> bool:
    return one.candidate is not None and one.candidate.cosine is not None


def _of_a_selection(
    said: set[WarningCode], overlay: Overlay | None, degraded: str
) -> tuple[FallbackState, FallbackAction, str]:
    """The first state that fits, worst first."""
    if "CONFLICTING_EVIDENCE" in said:
        return (
            "conflicting",
            "warn",
            "trusted documents disagree; the superseded one was left out, say so",
        )
    if "STALE_DOMINANT" in said:
        return (
            "stale_dominant",
            "warn",
            "most of the evidence is older than it should be; check before relying on it",
        )
    if overlay is None:
        return (
            "no_overlay",
            "degrade" if degraded else "continue",
            "no role was given: shared corpus only, no role policy was applied",
        )
    if "NO_HIGH_TRUST_MATCH" in said:
        return (
            "no_strong_match",
            "degrade",
            "no authoritative or preferred source matched; treat the passages as hints",
        )
    if "FORBIDDEN_SOURCE_HIT" in said:
        return (
            "forbidden_hit",
            "degrade" if degraded else "continue",
            "forbidden sources matched and were left out",
        )
    if degraded:
        return "healthy", "degrade", "the evidence is sound, but the semantic lane did not run"
    return "healthy", "continue", "trusted, current evidence"


def _why_empty(
    verdict: Verdict,
    rejected: Sequence[Rejected],
    overlay: Overlay | None,
    corpus: CorpusState,
    degraded: str,
    waiting: int,
) -> str:
    """The verdict in words: what happened (how many candidates, which codes); the next step."""
    if verdict == "corpus_empty":
        return "the corpus is empty: ingest documents first"
    if verdict == "lane_down":
        missing = f"the semantic lane did not run: {degraded}"
        if not degraded:
            missing = (
                f"{waiting} of {corpus.chunks} chunks wait for their vector; run `rolebundle embed`"
            )
        return f"the search was incomplete ({_counted(rejected)}); {missing}"
    role = overlay.role_id if overlay else "(no role)"
    policy = f"the policy of the role {role}" if overlay else "policy"
    if verdict == "nothing_found":
        what, step = _nothing(rejected, overlay)
    else:
        what, step = _EXPLAINED[verdict]
    what = what.format(role=role, policy=policy)
    return f"{what} ({_counted(rejected)}{_noted(verdict, rejected)}); {step}"


def _nothing(rejected: Sequence[Rejected], overlay: Overlay | None) -> tuple[str, str]:
    if any(_has_meaning(one) for one in rejected):
        return (
            "nothing in the corpus has the task's words or is near enough in meaning",
            "ask in other words, or ingest what would answer",
        )
    return (
        "nothing in the corpus has the task's words, and meanings were not searched",
        "ask in other words, or without lexical_only",
    )


def _counted(rejected: Sequence[Rejected]) -> str:
    codes = Counter(one.reason for one in rejected)
    reasons = ", ".join(f"{codes[code]} {code}" for code in REJECTION_CODES if codes[code])
    return f"candidates rejected: {reasons}" if reasons else "no candidates"


def _noted(verdict: Verdict, rejected: Sequence[Rejected]) -> str:
    """One candidate's own note: it has the figures, or names the rule."""
    codes = _DECIDED_BY[verdict]
    note = next((one.notes for one in _relevant(rejected) or rejected if one.reason in codes), "")
    # Only what was scored stands in the order of its score.
    which = "the best" if codes <= _SCORED else "for one"
    return f"; {which}: {note}" if note else ""


def _role_specific(chunk: SelectedChunk) -> bool:
    kinds = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred", "vocab:")
    return any(hit.startswith(kinds) for hit in chunk.overlay_hits)
