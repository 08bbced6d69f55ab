"""The weights of the final score: the role's share is the same with either lane and either fusion."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.evidence import MAX_ROLE_FACTOR
from rolebundle.retrieval.pipeline import weights_for
from rolebundle.retrieval.score import MAX_ROLE_SHARE, Weights
from support.corpora import overlay, resolved
from support.values import SUPPORTED

MODES: tuple[tuple[Fusion, bool], ...] = (
    ("weighted", True), ("weighted", False), ("rrf", True), ("rrf", False),
)  # fmt: skip

# Of the role's share: the two default weights are equal, and the vocabulary's counts 0.15 times.
OF_METADATA, OF_VOCABULARY = 1 / 1.15, 0.15 / 1.15


def policy(*weights: float) -> RetrievalPolicy:
    names = ("lexical_weight", "semantic_weight", "metadata_weight", "rerank_weight")
    return RetrievalPolicy.model_validate(dict(zip(names, weights, strict=True)))


@st.composite
def policies(draw: st.DrawFn) -> RetrievalPolicy:
    """Any policy; often with weights of 0."""
    parts = draw(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any))
    return policy(*(part / sum(parts) for part in parts))


factors = st.sampled_from([0.0, 1.0, MAX_ROLE_FACTOR]) | st.floats(0, MAX_ROLE_FACTOR)
single_terms = [policy(*(float(n == term) for n in range(4))) for term in range(4)]


def share_of(weights: Weights) -> float:
    return weights.metadata + weights.vocabulary


class TestDefault:
    def weights(
        self, factor: float, fusion: Fusion = "weighted", *, has_semantic: bool = True
    ) -> list[float]:
        result = Weights.of(
            RetrievalPolicy(), fusion, has_semantic=has_semantic, role_factor=factor
        )
        return [*result[:4]]

    def test_without_a_role_the_lanes_have_all(self) -> None:
        assert self.weights(0.0) == pytest.approx([0.5, 0.5, 0, 0])
        assert self.weights(0.0, has_semantic=False) == pytest.approx([1, 0, 0, 0])

    def test_the_factor_1_gives_the_role_the_policys_share(self) -> None:
        assert self.weights(1.0) == pytest.approx(
            [0.3, 0.3, 0.4 * OF_METADATA, 0.4 * OF_VOCABULARY]
        )

    def test_the_role_has_its_share_times_the_factor(self) -> None:
        for factor, share in ((0.5, 0.2), (1.5, 0.6), (2.2, MAX_ROLE_SHARE)):
            lane = (1 - share) / 2
            assert self.weights(factor) == pytest.approx(
                [lane, lane, share * OF_METADATA, share * OF_VOCABULARY]
            )

    def test_a_removed_lane_gives_its_weight_to_the_other(self) -> None:
        expected = pytest.approx([0.6, 0, 0.4 * OF_METADATA, 0.4 * OF_VOCABULARY])
        assert self.weights(1.0, has_semantic=False) == expected
        assert self.weights(1.0, "rrf", has_semantic=False) == expected

    def test_rrf_has_one_weight_for_both_lanes(self) -> None:
        result = Weights.of(policy(0.5, 0.1, 0.4, 0.0), "rrf", has_semantic=True, role_factor=1.0)
        assert [*result[:4]] == pytest.approx([0.3, 0.3, 0.4, 0])


@pytest.mark.parametrize(("fusion", "has_semantic"), MODES)
@given(of=policies(), factor=factors)
@example(of=single_terms[0], factor=2.2)
@example(of=single_terms[1], factor=2.2)
@example(of=single_terms[2], factor=2.2)
@example(of=single_terms[3], factor=0.0)
@example(of=policy(1e-320, 0.0, 1.0, 0.0), factor=1.0)
@example(of=policy(1.0, 0.0, 1e-320, 0.0), factor=1.0)
def test_they_sum_to_1_and_the_role_has_at_most_its_maximum(
    fusion: Fusion, has_semantic: bool, of: RetrievalPolicy, factor: float
) -> None:
    result = Weights.of(of, fusion, has_semantic=has_semantic, role_factor=factor)
    assert sum(result[:4]) == pytest.approx(1, abs=1e-12)
    assert min(result[:4]) >= 0
    if not factor:
        assert share_of(result) == 0
    elif of.lexical_weight or of.semantic_weight:
        assert share_of(result) <= MAX_ROLE_SHARE + 1e-12
    else:
        assert share_of(result) == pytest.approx(1)  # The overlay wants the role's terms alone.
    if not has_semantic:
        assert result.semantic == 0
    if fusion == "rrf" and has_semantic:
        assert result.lexical == result.semantic


@given(of=policies(), factor=factors)
def test_the_roles_terms_have_the_same_weights_in_every_mode(
    of: RetrievalPolicy, factor: float
) -> None:
    results = [
        Weights.of(of, fusion, has_semantic=has_semantic, role_factor=factor)
        for fusion, has_semantic in MODES
    ]
    hybrid = results[0]
    for result in results[1:]:
        assert (result.metadata, result.vocabulary) == (hybrid.metadata, hybrid.vocabulary)
        lanes = result.lexical + result.semantic
        assert lanes == pytest.approx(hybrid.lexical + hybrid.semantic, abs=1e-12)


@given(of=policies(), first_factor=factors, second_factor=factors)
def test_a_more_specific_task_gives_the_role_no_more(
    of: RetrievalPolicy, first_factor: float, second_factor: float
) -> None:
    shares = [
        share_of(Weights.of(of, "weighted", has_semantic=True, role_factor=factor))
        for factor in sorted((first_factor, second_factor))
    ]
    assert shares[0] <= shares[1] + 1e-12


def test_without_a_role_the_lanes_have_the_whole_score() -> None:
    weights = weights_for(resolved(), SUPPORTED, has_semantic=True)
    assert share_of(weights) == 0
    assert weights.lexical + weights.semantic == pytest.approx(1.0)
    assert share_of(weights_for(resolved(overlay()), SUPPORTED, has_semantic=True)) == 0
    role = overlay(vocabulary={"preferred_terms": ["token"]})
    assert share_of(weights_for(resolved(role), SUPPORTED, has_semantic=True)) > 0
