"""`contracts.check` gives pydantic's verdict: one rule, two readers (docs/decisions/0003)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rolebundle.contracts.check import checked, keys_at
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest

SOUND: dict[str, Any] = {
    "version": "1.0",
    "role_id": "reviewer",
    "extends": None,
    "label": "Reviewer",
    "mission": "Review.",
    "vocabulary": {
        "preferred_terms": ["threat model"],
        "synonyms": {"auth": ["authentication"]},
        "boost_phrases": ["trust boundary"],
    },
    "source_policy": {
        "preferred_sources": [{"pattern": "owasp", "reason": "canonical", "boost": 2}],
        "forbidden_sources": [{"pattern": "marketing"}],
        "trust_tier_boosts": {"authoritative": 2.0},
        "domain_boosts": {"security": 1.5},
    },
    "retrieval_policy": {"max_selected_chunks": 8, "stale_penalty": 1, "fusion": "rrf"},
    "synthesis_policy": {"citation_style": "footnote"},
    "eval_profile": {"golden_set_id": "reviewer-v1"},
}

# Values that sit on and around every border that an overlay has.
VALUES = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 2, 100, 101, 1000, 1001, 0.0, 0.5, 1.0, 1.0001, -0.1, 1e308]
    ),
    st.sampled_from(["", " ", "a", " a", "a ", "a b", "A", "1.0", "rrf", "general", "x" * 501]),
    st.sampled_from(["a\n", "a\nb", "-a", "a" * 64, "a" * 65, "inline", "authoritative"]),
    st.sampled_from([[], ["a"], [1], [""], {}, {"a": 1}, {"": 1}, {"general": 0.5}, {"a": ["b"]}]),
)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*here, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += places(item, (*here, number))
    return found


def replaced(place: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(SOUND)
    target = changed
    for step in place[:-1]:
        target = target[step]
    if not place:
        return value
    target[place[-1]] = value
    return changed


def pydantic_takes(contract: Any, value: Any) -> bool:
    try:
        contract.model_validate(value)
    except ValidationError:
        return False
    return True


def test_the_sound_overlay_is_taken_by_both() -> None:
    assert isinstance(checked(Overlay, SOUND), Overlay)
    assert pydantic_takes(Overlay, SOUND)


@given(place=st.sampled_from(places(SOUND)), value=VALUES)
def test_a_changed_value_gets_the_same_verdict(place: tuple[Any, ...], value: Any) -> None:
    changed = replaced(place, value)
    ours = not isinstance(checked(Overlay, changed), list)
    assert ours == pydantic_takes(Overlay, changed), json.dumps(changed)


@given(
    place=st.sampled_from([place for place in places(SOUND) if place]),
    key=st.sampled_from(["boost", "patern", "pattern", "general", "", "version"]),
    value=VALUES,
)
def test_an_added_key_gets_the_same_verdict(place: tuple[Any, ...], key: str, value: Any) -> None:
    changed = copy.deepcopy(SOUND)
    target: Any = changed
    for step in place:
        target = target[step]
    if isinstance(target, dict):
        target[key] = value
    ours = not isinstance(checked(Overlay, changed), list)
    assert ours == pydantic_takes(Overlay, changed), json.dumps(changed)


@given(
    request=st.fixed_dictionaries(
        {},
        optional={
            "task": VALUES,
            "role": VALUES,
            "limit": VALUES,
            "token_budget": VALUES,
            "lexical_only": VALUES,
            "fusion": VALUES,
            "taks": VALUES,
        },
    )
)
def test_a_request_gets_the_same_verdict(request: dict[str, Any]) -> None:
    ours = not isinstance(checked(RetrievalRequest, request), list)
    assert ours == pydantic_takes(RetrievalRequest, request)


def test_every_mistake_is_found_with_its_place() -> None:
    broken = copy.deepcopy(SOUND)
    broken["retrieval_policy"]["lexical_weight"] = "much"
    broken["vocabulary"]["boost_phrases"] = ["fine", ""]
    broken["source_policy"]["forbiden_sources"] = []
    del broken["version"]
    mistakes = checked(Overlay, broken)
    assert isinstance(mistakes, list)
    assert {(one.place, one.kind) for one in mistakes} == {
        (("retrieval_policy", "lexical_weight"), "value"),
        (("vocabulary", "boost_phrases", 1), "value"),
        (("source_policy", "forbiden_sources"), "unknown"),
        (("version",), "missing"),
    }


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (("source_policy", "preferred_sources", 0), ("pattern", "reason", "boost")),
        (("vocabulary", "synonyms"), ()),
        (("nothing",), ()),
    ],
)
def test_the_keys_of_a_place(place: tuple[Any, ...], expected: tuple[str, ...]) -> None:
    assert keys_at(Overlay, place) == expected
