"""The page of `why`: one passage through every step, and the score to beat."""

from __future__ import annotations

from rolebundle.contracts.why import Why
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.answer import score_parts
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.site import FILE, Site
from rolebundle.retrieval.where import conditions

_RESULTS = {
    (True, True): ("passed", "good"),
    (True, False): ("stopped here", "bad"),
    (False, True): ("not reached; would pass", "plain"),
    (False, False): ("not reached; would stop here, too", "caution"),
}
"""Whether a passage reached a step and passes it → the words, and the CSS class."""


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


def steps_of(why: Why) -> dict[str, tuple[str, str]]:
    """What each step did, or would have done if the passage had reached it, in words; its class."""
    passed = {
        "searched": why.step != "where",
        "proposed": any(lane.proposed for lane in why.lanes),
        "allowed": why.filter.allowed,
        "selected": why.score.code is None,
    }
    results, is_reached = {}, True
    for step, is_passed in passed.items():
        results[step] = _RESULTS[is_reached, is_passed]
        is_reached = is_reached and is_passed
    return results


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"Yes, at rank {why.rank} of {why.selected_count}."
    if why.step == "where":
        return "No: the request leaves its document out."
    if why.code is None:
        return "No: no lane proposed it."
    return f"No: {words.REJECTION[why.code]}."
