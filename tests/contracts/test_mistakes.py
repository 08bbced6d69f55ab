"""pydantic's errors become a list of places, reasons and allowed values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rolebundle.contracts.base import Contract, Mistake, keys_at, mistakes_in
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest

OVERLAY: dict[str, Any] = {
    "version": "1.0",
    "role_id": "reviewer",
    "vocabulary": {"synonyms": {"auth": ["authentication"]}, "boost_phrases": ["boundary"]},
    "source_policy": {
        "preferred_sources": [{"pattern": "owasp", "boost": 2}],
        "trust_tier_boosts": {"authoritative": 2.0},
    },
    "retrieval_policy": {"max_selected_chunks": 8, "fusion": "rrf"},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=8), inner, max_size=3)
    ),
)


def mistakes(contract: type[Contract], values: object) -> list[Mistake]:
    with pytest.raises(ValidationError) as error:
        contract.model_validate(values)
    return mistakes_in(error.value, contract)


def changed(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    values = copy.deepcopy(OVERLAY)
    target: Any = values
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return values


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("label",), 1, "must be a text"),
        (
            ("vocabulary", "boost_phrases", 0),
            "\ud800",
            "must be Unicode text, without unpaired surrogates",
        ),
        (("vocabulary",), [], "must be an object"),
        (("vocabulary", "synonyms"), [], "must be an object"),
        (("vocabulary", "boost_phrases"), "x", "must be a list"),
        (("vocabulary", "boost_phrases", 0), "x" * 501, "must have 500 characters or less"),
        (("retrieval_policy", "max_selected_chunks"), 2.5, "must be a whole number"),
        (("retrieval_policy", "max_selected_chunks"), True, "must be a whole number"),
        (("retrieval_policy", "max_selected_chunks"), 0, "must be 1 or more"),
        (("retrieval_policy", "max_selected_chunks"), 1001, "must be 1000 or less"),
        (("retrieval_policy", "freshness_max_age_days"), 0, "must be more than 0"),
        (("retrieval_policy", "min_score"), "1", "must be a number"),
        (("retrieval_policy", "min_score"), float("nan"), "must be a finite number"),
        (("retrieval_policy", "require_source_diversity"), 1, "must be true or false"),
        (("retrieval_policy", "fusion"), "max", "must be one of 'weighted', 'rrf'"),
    ],
)
def test_each_reason_is_plain_english(place: tuple[Any, ...], value: Any, message: str) -> None:
    (mistake,) = mistakes(Overlay, changed(place, value))
    assert (mistake.place, mistake.kind, mistake.message) == (place, "value", message)


def test_an_unknown_key_lists_the_known_ones() -> None:
    (mistake,) = mistakes(
        Overlay, changed(("source_policy", "preferred_sources", 0, "patern"), "x")
    )
    assert (mistake.kind, mistake.allowed) == ("unknown", ("pattern", "path", "reason", "boost"))


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        (("source_policy", "preferred_sources", 0), ("pattern", "path", "reason", "boost")),
        (("vocabulary", "synonyms"), ()),
        (("no such key",), ()),
    ],
)
def test_keys_at_a_place(place: tuple[Any, ...], keys: tuple[str, ...]) -> None:
    assert keys_at(Overlay, place) == keys


@given(values=JSON, key=st.sampled_from([*RetrievalRequest.model_fields]))
def test_any_value_is_valid_or_has_mistakes(values: Any, key: str) -> None:
    for fields in (values, {"task": "x", key: values}):
        try:
            RetrievalRequest.model_validate(fields)
        except ValidationError as error:
            found = mistakes_in(error, RetrievalRequest)
            assert found
            assert all(mistake.message for mistake in found)
