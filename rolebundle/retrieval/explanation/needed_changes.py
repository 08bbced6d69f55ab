"""What would have to be different for a passage to be selected, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta
from shlex import quote

from rolebundle.contracts.document import DocumentMetadata, Passage, iso_utc
from rolebundle.contracts.overlay import MAX_LIMIT
from rolebundle.contracts.terms import ORIGINS
from rolebundle.contracts.why import (
    LaneTrace,
    WordsTrace,
)
from rolebundle.policy.trust import Labels, Purpose
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.explanation.placement import Execution, Placement
from rolebundle.retrieval.filter import (
    age_days,
    first_rejection,
    is_for_other_roles,
    labels_of,
    matching_rules,
    rejections,
    rejects_other_roles,
    seen_rejection,
)
from rolebundle.retrieval.lanes import first_depth
from rolebundle.retrieval.outcome import Retrieval
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.select import estimated_tokens
from rolebundle.retrieval.where import Condition, values_of

MAX_NAMED_WORDS = 8
EPSILON = 1e-9


# -- what would have to change for its document to be searched, and for a lane to propose it -----


def where_changes(passage: Passage, conditions: Sequence[Condition]) -> list[str]:
    """The changes of ``where`` with which the passage's document would be searched."""
    return [
        f"a where without {condition.key}, or one that its document matches "
        f"({condition.wanted}, and it has "
        f"{_listed(values_of(passage, condition.field), 'and') or 'none'})"
        for condition in conditions
    ]


def lane_changes(
    execution: Execution, passage: Passage, lanes: Sequence[LaneTrace], words: WordsTrace
) -> list[str]:
    """What a lane would need to propose the passage. Empty if it was proposed."""
    if execution.was_proposed(passage):
        return []
    request = execution.request
    is_allowed = first_rejection(passage, request) is None
    if not is_allowed and execution.retrieval.pool.refills:
        depth = first_depth(len(request.seen))
        return [
            f"a lane would have to propose it: it is not among the first {depth} of any, and the "
            "deeper search leaves its document out because of policy"
        ]
    ways = _alternatives(_lane_change(lane, words) for lane in lanes if lane.ran)
    return [f"a lane would have to propose it: {ways or 'the task has no words to search for'}"]


def _lane_change(lane: LaneTrace, words: WordsTrace) -> str:
    measure = "cosine" if lane.by == "meaning" else "BM25"
    suffixes = {"task_words": " for the task's words", "role_words": " for the role's words"}
    label = f"{measure}{suffixes.get(lane.by, '')}"
    if lane.score is None:
        return "a vector, which `rolebundle corpus embed` makes: it has none yet"
    lacking = ""
    if lane.by == "task_words" and not words.task_found:
        lacking = f"none of {_listed(words.task_missing, 'and')} occurs in it"
    if lane.least is not None and lane.score > lane.least:
        return (
            f"an exhaustive search: its {label} {lane.score:.3f} is above {lane.least:.3f}, the "
            "lowest proposed, and the approximate search missed it"
        )
    if lane.least is not None and lane.pool >= lane.depth:
        least, has = distinct_decimals(lane.least, lane.score)
        return f"a {label} above {least} (it has {has}{f': {lacking}' if lacking else ''})"
    if lane.by == "role_words":
        return "one of the words that the role adds to the task: none occurs in it"
    return f"one of the task's words: {lacking}" if lacking else ""


# -- what would have to change for policy to allow it --------------------------------------------


def policy_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    """One sentence for everything in the policy that rejects the passage."""
    changes = [*_source_changes(passage, request), *_role_changes(passage, request)]
    codes = [code for code, _ in rejections(passage, request)]
    if "not_yet_valid" in codes or "expired" in codes:
        changes.append(_validity_change(passage.document, request))
    for code in codes:
        if code in ("taint_blocked", "requires_approval"):
            changes.append(_purpose_change(passage, request.purpose))
        elif code == "stale":
            changes.append(_age_change(passage, request))
        elif code == "rejected_by_mark":
            changes.append(
                "the mark would have to be removed: rolebundle mark remove "
                f"{quote(passage.chunk_id)}, or {quote(passage.document.document_id)} if the "
                "document is marked"
            )
    return changes


def _source_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    if request.overlay is None:
        return []
    document, policy = passage.document, request.overlay.source_policy
    changes = []
    forbidding = [rule.condition for rule in matching_rules(policy.forbidden_sources, passage)]
    if forbidding:
        changes.append(
            f"the overlay of {request.role_id} would have to drop {_listed(forbidding, 'and')} "
            "from its forbidden_sources"
        )
    if policy.allowed_sources and not any(matching_rules(policy.allowed_sources, passage)):
        changes.append(
            f"the overlay of {request.role_id} would have to allow source {document.source_id}: "
            "its allowed_sources do not name it"
        )
    return changes


def _role_changes(passage: Passage, request: ResolvedRequest) -> list[str]:
    role_id = request.role_id
    changes = []
    if role_id in passage.excluded_roles:
        changes.append(f"its excluded_roles would have to leave out {role_id}")
    if rejects_other_roles(request) and is_for_other_roles(passage, role_id):
        changes.append(
            f"its applicable_roles would have to include {role_id}, or the overlay of {role_id} "
            "would have to have a role_mismatch_penalty below 1"
        )
    return changes


def _purpose_change(passage: Passage, purpose: Purpose) -> str:
    labels, action = labels_of(passage), purpose.action
    ways = []
    if purpose.ruling(labels) == "requires_approval":
        ways.append(f"an approval of {action} with a person's name")
    actions = Purpose(table=purpose.table).allowed_actions(labels)
    if actions:
        ways.append(f"another action than {action}: {_listed(actions, 'or')}")

    def is_allowed(changed: Labels) -> bool:
        return purpose.ruling(changed) == "allowed"

    tier = "a trust tier above untrusted"
    plain = labels._replace(is_untrusted=False)
    # Nobody gives a document the origin of facts.
    origins_tried = (origin for origin in ORIGINS if origin != "agent" or labels.origin == "agent")
    origins = [origin for origin in origins_tried if is_allowed(plain._replace(origin=origin))]
    if labels.origin in origins:
        ways.append(tier)
    elif origins:
        also = f" and {tier}" if labels.is_untrusted else ""
        ways.append(f"an origin of {_listed(origins, 'or')} (it is {labels.origin}){also}")
    if is_allowed(labels._replace(is_flagged=False, is_personal=False)):
        ways.append(f"a text without {_listed(passage.flags, 'and')}, which the scan found")
    if is_allowed(labels._replace(sensitivity="public")):
        ways.append(f"another sensitivity (it is {labels.sensitivity})")
    return (
        _alternatives(ways) or f"a trust policy under which {labels.origin} documents may be used"
    )


def _validity_change(document: DocumentMetadata, request: ResolvedRequest) -> str:
    starts = [date for date in (document.valid_from, document.updated_at) if date is not None]
    bounds = [f"from {max(starts)} on" if starts else ""]
    bounds += [f"until {document.valid_until}" if document.valid_until else ""]
    return (
        f"an as_of {' and '.join(filter(None, bounds))}, or other dates of its document (the "
        f"answer is as at {request.valid_at})"
    )


def _age_change(passage: Passage, request: ResolvedRequest) -> str:
    age, max_age = age_days(passage.document, request.now), request.max_age_days
    assert age is not None
    # Up to the next whole second: times are stored without fractions.
    oldest = (request.now.astimezone(UTC) - timedelta(days=max_age)).replace(microsecond=0)
    return (
        f"an updated_at of {iso_utc(oldest + timedelta(seconds=1))} or later (it has "
        f"{_dated(passage.document)}), or a freshness_max_age_days of at least "
        f"{math.ceil(age)} (the overlay has {max_age:g})"
    )


def _dated(document: DocumentMetadata) -> str:
    return document.updated_at or f"none, and its file is of {document.inferred_at}"


def seen_changes(passage: Passage, retrieval: Retrieval) -> list[str]:
    """The change of ``seen`` with which the passage would count as new. Empty if it does."""
    if seen_rejection(passage, retrieval.seen) is None:
        return []
    chunk_ids = retrieval.seen[passage.content_hash]
    if passage.chunk_id in chunk_ids:
        return [f"a `seen` without {_listed(chunk_ids, 'and')}"]
    return [f"a different text: it has the same text as {chunk_ids[0]}, which is in `seen`"]


# -- what would have to change for it to be selected ---------------------------------------------


def selection_changes(execution: Execution, placement: Placement) -> list[str]:
    """What the selection would need to take the passage. Empty if it does."""
    own = placement.own
    changes = []
    if own.is_superseded:
        newer = ", ".join(document.document_id for document in own.passage.superseded_by)
        changes.append(f"no newer version of its document in the corpus: {newer} replaces it")
        current = own.passage._replace(superseded_by=())
        ranked = execution.ranked_with([current])
        placement = Placement.of(own.chunk_id, ranked, placement.request, is_hypothetical=True)
    if placement.withheld:
        change = "another task" if own.score.lexical else "a task with words of the documents"
        if placement.request.requires_evidence:
            change = "evidence that is not required, or a task with more words of the documents"
        changes.append(f"{change}: {placement.withheld}")
        placement = Placement.of(
            own.chunk_id, placement.ranked, placement.request, is_hypothetical=True
        )
    if placement.code == "duplicate":
        original = placement.own.duplicate_of
        changes.append(f"a different text: it has the same text as {original}, which ranks higher")
    elif placement.code == "low_score":
        changes += _min_score_changes(placement)
    elif placement.code == "budget_cut":
        changes += filter(None, [_budget_change(execution, placement)])
    return changes


def _min_score_changes(placement: Placement) -> list[str]:
    score, floor = placement.own.score.final, placement.request.min_score
    least, has = distinct_decimals(floor, score)
    change = f"a score of at least {least} ({_it_has(placement)} {has})"
    lower = math.floor(score * 10_000) / 10_000
    if placement.is_selected_with(min_score=lower):
        change += f", or an overlay with a min_score of at most {lower:g}"
    if placement.is_selected_with(final=floor + EPSILON):
        return [change]
    further = _score_change(placement)
    if further and placement.selection.selected[-1].score.final >= floor:
        # A score above that of the last selected candidate is also above the minimum score.
        return [further]
    return [change, further] if further else [change]


def _score_change(placement: Placement) -> str:
    """The final score that would be enough; empty if no score is."""
    selected = placement.selection.selected
    if not selected:
        return ""
    last, final = selected[-1].score.final, placement.own.score.final
    if final > last or not placement.is_selected_with(final=last + EPSILON):
        return ""
    above, has = distinct_decimals(last, final)
    # "Above" and not "at least", because the chunk id decides between equal scores.
    return f"a final score above {above} ({_it_has(placement)} {has})"


def _budget_change(execution: Execution, placement: Placement) -> str:
    """Changes against the limit and the token budget: a score, one of the two, or both."""
    limit, budget = placement.request.limit, placement.request.token_budget
    ways = [_score_change(placement)]
    if budget is not None and (selected := placement.selected_up_to_own(limit, None)):
        ways.append(_tokens_change(placement, selected))
    elif selected := placement.selected_up_to_own(None, budget):
        ways.append(_limit_change(placement, len(selected)))
    else:
        selected = placement.selected_up_to_own(None, None)
        if by_limit := _limit_change(placement, len(selected)):
            ways.append(f"{by_limit} together with {_tokens_change(placement, selected)}")
    return _alternatives(ways)


def _limit_change(placement: Placement, limit: int) -> str:
    if limit > MAX_LIMIT:
        return ""
    return f"a limit of at least {limit} (it was {placement.request.limit})"


def _tokens_change(placement: Placement, selected: Iterable[Candidate]) -> str:
    tokens = sum(estimated_tokens(candidate.passage.content) for candidate in selected)
    return f"a token_budget of at least {tokens} (it was {placement.request.token_budget})"


# -- wording -------------------------------------------------------------------------------------


def distinct_decimals(threshold: float, score: float) -> tuple[str, str]:
    """Format two numbers with as many decimals as needed to differ, at least three."""
    for digits in range(3, 10):
        texts = f"{threshold:.{digits}f}", f"{score:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return f"{threshold:.3f}", "the same"


def _it_has(placement: Placement) -> str:
    return "it would have" if placement.is_hypothetical else "it has"


def _alternatives(ways: Iterable[str]) -> str:
    return ", or ".join(way for way in ways if way)


def _listed(words: Sequence[str], conjunction: str) -> str:
    quoted = [f"'{word}'" for word in words[:MAX_NAMED_WORDS]]
    if len(words) > MAX_NAMED_WORDS:
        return f"{', '.join(quoted)} {conjunction} {len(words) - MAX_NAMED_WORDS} more"
    return f" {conjunction} ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
