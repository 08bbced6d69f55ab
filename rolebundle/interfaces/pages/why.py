"""The page of `why`: one passage through every step, and the score to beat."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.contracts.why import Why
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.answer import score_parts
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.retrieval.where import conditions


class StepResult(NamedTuple):
    """What a step did with the passage, in words, and the CSS class of how good it is."""

    words: str
    level: str


class Steps(NamedTuple):
    """The results of the steps that can stop a passage, in their order."""

    searched: StepResult
    proposed: StepResult
    allowed: StepResult
    selected: StepResult


def why_page(why: Why, site: Site = FILE) -> str:
    """The page of an explanation."""
    parts = score_parts(why.score.scores, why.score.weights)
    # Before the penalty for source diversity the parts are longer than the score.
    longest = sum(part.points for part in parts if part.points > 0)
    where = why.request.where
    return render(
        "why",
        site,
        why=why,
        verdict=_verdict(why),
        steps=steps_of(why),
        conditions=[condition.wanted for condition in conditions(where)] if where else [],
        parts=parts,
        top=max(longest, *(rival.final for rival in why.lost_to), 0.0),
        rules=words.rules(
            [*why.filter.factors, *why.score.vocabulary]
            + ([f"lifted: {why.score.lift}"] if why.score.lift else [])
        ),
    )


def steps_of(why: Why) -> Steps:
    """What each step did, or would have done if the passage had reached it."""
    passed = (
        why.step != "where",
        any(lane.proposed for lane in why.lanes),
        why.filter.allowed,
        why.score.code is None,
    )
    return Steps(
        *(
            _result(is_passed=is_passed, is_reached=all(passed[:number]))
            for number, is_passed in enumerate(passed)
        )
    )


def _result(*, is_passed: bool, is_reached: bool) -> StepResult:
    if is_reached:
        return StepResult("passed", "good") if is_passed else StepResult("stopped here", "bad")
    if is_passed:
        return StepResult("not reached; would pass", "plain")
    return StepResult("not reached; would stop here, too", "caution")


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"Yes, at rank {why.rank} of {why.selected_count}."
    if why.step == "where":
        return "No: the request leaves its document out."
    if why.code is None:
        return "No: no lane proposed it."
    return f"No: {words.REJECTION[why.code]}."
