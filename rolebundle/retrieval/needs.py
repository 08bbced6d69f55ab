"""What would have had to be different for a passage to be selected, in plain sentences. Pure.

Each sentence is computed, and where it names a figure the rule itself has been asked whether that
figure is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rolebundle.contracts.candidate import Ranked
from rolebundle.contracts.document import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import ORIGINS
from rolebundle.contracts.why import LaneTrace, WordsTrace
from rolebundle.policy.trust import UNRESTRICTED_PURPOSE, Purpose
from rolebundle.retrieval.assemble import estimated_tokens
from rolebundle.retrieval.filter import age_days, matching, rejection
from rolebundle.retrieval.pipeline import Run
from rolebundle.retrieval.suppose import Standing

MAX_LIMIT = 1000
"""The request takes no larger one."""
_WORDS_NAMED = 8
_NOTHING = 1e-9


def policy_needs(
    passage: Passage, overlay: Overlay | None, now: datetime, purpose: Purpose
) -> tuple[list[str], Passage, Overlay | None, Purpose]:
    """What in the role's policy, or in what the passages are wanted for, stands against one.

    Returns:
        A sentence for each obstacle; and the passage, the overlay and the purpose as they would
        have to be: with these three :func:`rejection` has nothing to say.
    """
    needs: list[str] = []
    document = passage.document
    while True:
        verdict = rejection(document, passage.excluded_roles, overlay, now, purpose)
        if verdict is None:
            return needs, passage, overlay, purpose
        if verdict[0] in ("taint_blocked", "requires_approval"):
            needs.append(_trusted(passage, purpose))
            purpose = UNRESTRICTED_PURPOSE
            continue
        # Every other rule is the overlay's.
        assert overlay is not None
        policy, limits = overlay.source_policy, overlay.retrieval_policy
        forbidding = [rule.pattern for rule in matching(policy.forbidden_sources, document)]
        if verdict[0] == "forbidden_source" and forbidding:
            needs.append(
                f"the overlay of {overlay.role_id} would have to drop {_listed(forbidding, 'and')} "
                "from its forbidden_sources"
            )
            overlay = overlay.model_copy(
                update={"source_policy": policy.model_copy(update={"forbidden_sources": []})}
            )
        elif verdict[0] == "forbidden_source":
            needs.append(
                f"the overlay of {overlay.role_id} would have to allow source "
                f"{document.source_id}: its allowed_sources do not name it"
            )
            overlay = overlay.model_copy(
                update={"source_policy": policy.model_copy(update={"allowed_sources": []})}
            )
        elif verdict[0] == "role_mismatch":
            needs.append(f"its excluded_roles would have to leave out {overlay.role_id}")
            passage = replace(passage, excluded_roles=())
        else:
            needs.append(_younger(passage, limits.freshness_max_age_days, now))
            without = limits.model_copy(update={"freshness_max_age_days": None})
            overlay = overlay.model_copy(update={"retrieval_policy": without})


def _trusted(passage: Passage, purpose: Purpose) -> str:
    origin, action = passage.document.origin, purpose.action
    ways = []
    if purpose.ruling(origin) == "requires_approval":
        ways.append(f"an approval of {action} with a person's name")
    actions = Purpose(table=purpose.table).allowed_actions(origin)
    if actions:
        ways.append(f"another action than {action}: {_listed(actions, 'or')}")
    origins = [one for one in ORIGINS if purpose.ruling(one) == "allowed"]
    if origins:
        ways.append(f"an origin of {_listed(origins, 'or')} (it is {origin})")
    return _either(ways) or f"a trust policy under which {origin} documents may be used"


def _younger(passage: Passage, maximum: float | None, now: datetime) -> str:
    age = age_days(passage.document, now)
    assert maximum is not None
    assert age is not None
    # Up to the next whole second: times are kept without fractions.
    date = (now.astimezone(UTC) - timedelta(days=maximum)).replace(microsecond=0)
    oldest = iso_utc(date + timedelta(seconds=1))
    return (
        f"an updated_at of {oldest} or later (it has {passage.document.updated_at}), or a "
        f"freshness_max_age_days of at least {math.ceil(age)} (the overlay has {maximum:g})"
    )


def lane_needs(
    lanes: Iterable[LaneTrace], words: WordsTrace, first_depth: int, *, searched_deeper: bool
) -> str:
    """What it would have taken for a lane to propose the passage.

    Args:
        lanes: the lanes' traces; none of them proposed it.
        words: which words of the task it has.
        first_depth: how many each lane was asked for at first.
        searched_deeper: whether its document took part in all that the lanes searched.
    """
    if not searched_deeper:
        return (
            f"a lane would have to propose it: it is not among the first {first_depth} of any, and "
            "policy keeps its document out of the deeper search"
        )
    ways = [way for lane in lanes if lane.ran for way in [_way_in(lane, words)] if way]
    if not ways:
        return "a lane would have to propose it: the task has no words to search for"
    return f"a lane would have to propose it: {', or '.join(ways)}"


def _way_in(lane: LaneTrace, words: WordsTrace) -> str:
    measure = "cosine" if lane.by == "meaning" else "BM25"
    whose = {"task_words": " for the task's words", "role_words": " for the role's words"}
    named = f"{measure}{whose.get(lane.by, '')}"
    if lane.score is None:
        return "a vector, which `rolebundle embed` makes: it has none yet"
    lacking = ""
    if lane.by == "task_words" and not words.task_found:
        lacking = f"none of {_listed(words.task_missing, 'and')} occurs in it"
    if lane.least is not None and lane.score > lane.least:
        return (
            f"an exhaustive search: its {named} {lane.score:.3f} is above {lane.least:.3f}, the "
            "least that was proposed, and the quick search passed it over"
        )
    if lane.least is not None and lane.pool >= lane.depth:
        least, has = apart(lane.least, lane.score)
        return f"a {named} above {least} (it has {has}{f': {lacking}' if lacking else ''})"
    if lane.by == "role_words":
        return "one of the words that the role adds to the task: none occurs in it"
    return f"one of the task's words: {lacking}" if lacking else ""


def cut_needs(standing: Standing, limit_holds: Callable[[int], bool]) -> list[str]:
    """What it would have taken to survive the cut.

    Args:
        standing: where the passage stands, or would stand.
        limit_holds: whether a limit that is enough for these candidates is enough for the request:
            a larger one makes the lanes look deeper, which can change the scores.
    """
    code = standing.code
    if code == "duplicate":
        original = standing.own.duplicate_of
        return [f"a text of its own: it says what {original} says, which stands higher"]
    if code == "low_score":
        return _floor_needs(standing)
    if code == "budget_cut":
        return [need for need in [_place_need(standing, limit_holds)] if need]
    return []


def _floor_needs(standing: Standing) -> list[str]:
    own, floor = standing.own, standing.min_score
    relevance = own.final + own.diversity_penalty
    least, has = apart(floor, relevance)
    need = f"a score of at least {least} before any diversity penalty ({_has(standing)} {has})"
    lower = math.floor(relevance * 10_000) / 10_000
    if replace(standing, min_score=lower).rank is not None:
        need += f", or an overlay with a min_score of at most {lower:g}"
    if standing.selected_at(own.final + (floor - relevance) + _NOTHING):
        return [need]
    further = _score_need(standing)
    if further and standing.made.selected[-1].final >= floor:
        # Whoever is above the last of the selected is above the floor.
        return [further]
    return [need, further] if further else [need]


def _score_need(standing: Standing) -> str:
    """The final score that is enough, or nothing where none is."""
    selected = standing.made.selected
    if not selected:
        return ""
    last, final = selected[-1].final, standing.own.final
    if final > last or not standing.selected_at(last + _NOTHING):
        return ""
    above, has = apart(last, final)
    # Equal scores are told apart by chunk id.
    return f"a final score above {above} ({_has(standing)} {has})"


def _place_need(standing: Standing, limit_holds: Callable[[int], bool]) -> str:
    ways = [_score_need(standing)]
    budget = standing.token_budget
    in_limit = standing.before_and_own(standing.limit, None)
    if budget is not None and in_limit and in_limit[-1] is standing.own:
        ways.append(_tokens_need(standing, in_limit))
        return _either(ways)
    reached = standing.before_and_own(None, budget)
    if reached and reached[-1] is standing.own:
        ways.append(_limit_need(standing, len(reached), limit_holds))
        return _either(ways)
    reached = standing.before_and_own(None, None)
    limit = _limit_need(standing, len(reached), limit_holds)
    if limit:
        ways.append(f"{limit} together with {_tokens_need(standing, reached)}")
    return _either(ways)


def _limit_need(standing: Standing, limit: int, limit_holds: Callable[[int], bool]) -> str:
    if limit > MAX_LIMIT or not limit_holds(limit):
        return ""
    return f"a limit of at least {limit} (it was {standing.limit})"


def _tokens_need(standing: Standing, selected: Sequence[Ranked]) -> str:
    tokens = sum(estimated_tokens(one.passage.content) for one in selected)
    return f"a token_budget of at least {tokens} (it was {standing.token_budget})"


def apart(threshold: float, has: float) -> tuple[str, str]:
    """Two numbers with as many decimals as it takes to tell them apart, three at least."""
    for digits in range(3, 10):
        texts = f"{threshold:.{digits}f}", f"{has:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return f"{threshold:.3f}", "the same"


def _has(standing: Standing) -> str:
    return "it would have" if standing.supposed else "it has"


def _either(ways: Iterable[str]) -> str:
    return ", or ".join(way for way in ways if way)


def _listed(words: Sequence[str], joined: str) -> str:
    quoted = [f"'{word}'" for word in words[:_WORDS_NAMED]]
    if len(words) > _WORDS_NAMED:
        return f"{', '.join(quoted)} {joined} {len(words) - _WORDS_NAMED} more"
    return f" {joined} ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))


def rerank_note(done: Run, stands: Standing) -> str:
    """Why a passage was not scored in context; empty where it was, or nobody asked for it."""
    if done.late is None or stands.own.filtered.candidate.contextual is not None:
        return ""
    if said := done.late.warnings():
        return "; ".join(message for _, message in said)
    if stands.supposed:
        return (
            "not scored in context: only what policy allows, and of that the best by the lanes, "
            "is sent to the model"
        )
    return "not scored in context: it is not among the best by the lanes"
