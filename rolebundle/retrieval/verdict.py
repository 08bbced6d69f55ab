"""What the caller should do with an answer, and why it is empty. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rolebundle.contracts.bundle import BundleWarning, Fallback
from rolebundle.contracts.terms import (
    FALLBACK_ACTIONS,
    FALLBACK_STATES,
    REJECTION_CODES,
    REJECTIONS,
    WARNINGS,
    EmptyReason,
    FreshnessPosture,
    Limitation,
    WarningCode,
)
from rolebundle.resources import data_file
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.values import Candidate, Retrieval
from rolebundle.retrieval.warnings import freshness_posture, narrowed_by, other_languages
from rolebundle.text.words import counted

# -- what to do with the answer ------------------------------------------------------------------

_AGES: dict[FreshnessPosture, str] = {
    "fresh": "recent passages",
    "mixed": "passages of mixed or unknown age",
    "stale": "passages of which some are old and none is recent",
}
_TRUST = ("; no document of the corpus declares trust", ", some from trusted documents")
"""The second part of a message without limitations. It never says that the passages answer."""
_ONLY_FOR_ROLE = "none of these passages has enough of the task; only the role chose them"


def decide_fallback(warnings: Sequence[BundleWarning], retrieval: Retrieval) -> Fallback:
    """What the caller should do with the answer and, if nothing was selected, the reason.

    Args:
        warnings: the bundle's.
        retrieval: how it was searched.
    """
    messages = {warning.code: warning.message for warning in warnings}
    rows = [row for code, row in WARNINGS.items() if code in messages]
    limitations = [row.limitation for row in rows if row.limitation]
    if retrieval.request.overlay is None:
        limitations.append(Limitation("no_overlay", "continue"))
    if retrieval.semantic_problem:
        limitations.append(Limitation(None, "degrade", "the semantic lane did not run"))
    cautions: tuple[WarningCode, ...] = ("WORDS_MISSING", "WEAK_EVIDENCE")
    limitations += [
        Limitation(None, "warn", messages[code]) for code in cautions if code in messages
    ]
    if retrieval.selected:
        supports = [retrieval.evidence.support(row.passage.rowid) for row in retrieval.selected]
        if retrieval.request.ranks_by_role and not any(s.is_for_task for s in supports):
            limitations.append(Limitation(None, "warn", _ONLY_FOR_ROLE))
        summary = _AGES[freshness_posture(retrieval.selected)] + _TRUST[retrieval.may_have_trusted]
        return fallback_of([*limitations, Limitation(None, "continue", summary)])
    verdict = empty_verdict(retrieval)
    # The reason is enough: the other sentences are about the passages of an answer.
    reason = retrieval.with_corpus(_why_empty(verdict, retrieval))
    others = (limitation._replace(sentence="") for limitation in limitations)
    return fallback_of([Limitation("no_strong_match", "block", reason), *others], verdict)


def fallback_of(limitations: Sequence[Limitation], verdict: EmptyReason | None = None) -> Fallback:
    """The fallback of all limitations: every state, the worst action, and the sentences.

    The sentences are ordered by their actions, the worst first. If one asks for more than to
    continue, the sentences that let the caller continue are left out.
    """
    holding = {limitation.state for limitation in limitations}
    states = [state for state in FALLBACK_STATES if state in holding] or ["healthy"]
    worst_first = sorted(
        limitations, key=lambda limitation: FALLBACK_ACTIONS.index(limitation.action), reverse=True
    )
    action = worst_first[0].action if worst_first else "continue"
    told = (one for one in worst_first if one.action != "continue" or action == "continue")
    sentences = [limitation.sentence for limitation in told if limitation.sentence]
    return Fallback.model_construct(
        state=states[0], states=states, action=action, message="; ".join(sentences), verdict=verdict
    )


# -- the verdict of an empty answer --------------------------------------------------------------

_BY_SCORE = ("over_budget", "nothing_found", "all_below_floor")
"""Verdicts about candidates in the order of their score."""
_WITHOUT_EVIDENCE = ("nothing_found", "no_evidence")


def empty_verdict(retrieval: Retrieval) -> EmptyReason:
    """Why nothing was selected: the first rule that applies.

    1. ``corpus_empty``: there is no chunk to find.
    2. ``nothing_matches_where``: the request's ``where`` excludes every document.
    3. ``over_budget``: some candidate was rejected for the token budget alone. There is an answer.
    4. ``lane_down``: the semantic lane could not run, or chunks have no vector yet. The verdicts
       below are about *everything* relevant, which half a search cannot know.
    5. ``no_evidence``: nothing visible has the task, or too little has it and evidence is required;
       what policy rejects included. Then no candidate is relevant.
    6. By the *relevant* candidates: those with a word of the task; if there are none, those with a
       cosine that are not under the floor, because every task has nearest chunks.

       - none: ``nothing_found``. A lexical-only request searches no meanings, and the message says
         so.
       - all under the floor, or copies of such: ``all_below_floor``.
       - else candidates under the floor do not count. If one code rejected the rest:
         ``all_forbidden``, ``all_taint_blocked``, ``all_stale``, ``all_superseded`` or
         ``all_seen``. What the agent has seen does not count beside another code.
       - if only the purpose rejected the rest, and an approval would allow some of it:
         ``approval_needed``.
       - if all of the rest is not valid yet or expired: ``none_valid``.
       - another code, or several: ``rejected_by_policy``.
    """
    if retrieval.corpus_state.chunks == 0:
        return "corpus_empty"
    if retrieval.unmet_where:
        return "nothing_matches_where"
    if retrieval.counts["budget_cut"]:
        return "over_budget"
    if retrieval.semantic_problem or retrieval.without_vector:
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
    request, counts, problem = retrieval.request, retrieval.counts, retrieval.semantic_problem
    reasons = ", ".join(f"{counts[code]} {code}" for code in REJECTION_CODES if counts[code])
    rejections = f"candidates rejected: {reasons}" if reasons else "no candidates"
    if verdict == "nothing_matches_where":
        return f"no document matches {retrieval.unmet_where}; correct `where`, or ask without it"
    if verdict == "corpus_empty":
        reason = _why_no_documents(request)
    elif verdict == "lane_down":
        state = f"did not run: {problem}" if problem else "lacks vectors"
        reason = f"the search was incomplete ({rejections}); the semantic lane {state}"
    else:
        reason = _why_none_selected(verdict, retrieval, rejections)
        languages = other_languages(retrieval) if verdict in _WITHOUT_EVIDENCE else ""
        reason += f"; {languages}" if languages else ""
    return reason + narrowed_by(request.echo.where)


def _why_no_documents(request: ResolvedRequest) -> str:
    """Why there is no document to search, if there is none.

    Under a policy an agent gets the same message for an empty corpus and for a hidden one.
    """
    if request.view.access_level:
        return "this agent sees no document here: ask the owner of the corpus"
    if request.view.quarantined:
        return (
            f"{counted(request.view.quarantined, 'document')} in quarantine and no other: "
            "see `rolebundle corpus quarantine list`"
        )
    return "the corpus is empty: no file was read, or none can be: run `rolebundle ingest PATH`"


def _why_none_selected(verdict: EmptyReason, retrieval: Retrieval, rejections: str) -> str:
    request, rejected = retrieval.request, retrieval.rejected
    role = request.role_id or "(no role)"
    policy = f"the policy of the role {role}" if request.overlay else "policy"
    scope = "the corpus" if request.echo.where is None else "what matches `where`"
    reason, step = data_file(__file__, "verdict.toml")[verdict].values()
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
    return f"{reason} ({rejections}{example}); {step}"
