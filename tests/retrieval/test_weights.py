"""The weights of the final score: the role's share is the same with either lane and either fusion."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import RetrievalPolicy
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.candidate import MAX_ROLE_SHARE, VAGUE_FACTOR, Weights, role_share
from rolebundle.retrieval.pipeline import weights_for
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


specificities = st.sampled_from([0.0, 3.65, 50.0]) | st.floats(0, 50)
single_terms = [policy(*(float(n == term) for n in range(4))) for term in range(4)]


def share_of(weights: Weights) -> float:
    return weights.metadata + weights.vocabulary


def weights(of: RetrievalPolicy, fusion: Fusion, has_semantic: bool, specificity: float) -> Weights:
    share = role_share(of, specificity)
    return Weights.of(of, fusion, has_semantic=has_semantic, role_share=share)


class TestDefault:
    def of(self, share: float, fusion: Fusion = "weighted", *, both: bool = True) -> list[float]:
        found = Weights.of(RetrievalPolicy(), fusion, has_semantic=both, role_share=share)
        return [*found[:4]]

    def test_without_a_role_the_lanes_have_all(self) -> None:
        assert self.of(0.0) == pytest.approx([0.6, 0.4, 0, 0])
        assert self.of(0.0, both=False) == pytest.approx([1, 0, 0, 0])

    def test_a_role_has_its_share(self) -> None:
        role = [0.4 * OF_METADATA, 0.4 * OF_VOCABULARY]
        assert self.of(0.4) == pytest.approx([0.36, 0.24, *role])
        assert self.of(0.4, "rrf") == pytest.approx([0.3, 0.3, *role])
        assert self.of(0.4, both=False) == pytest.approx([0.6, 0, *role])

    def test_a_vague_task_gives_the_role_more_and_a_specific_one_little(self) -> None:
        assert role_share(RetrievalPolicy(), 0) == MAX_ROLE_SHARE < VAGUE_FACTOR * 0.4
        assert role_share(RetrievalPolicy(), 3.65) == pytest.approx(VAGUE_FACTOR * 0.4 / 2)
        assert role_share(RetrievalPolicy(), 8) < 0.01


@pytest.mark.parametrize(("fusion", "has_semantic"), MODES)
@given(of=policies(), specificity=specificities)
@example(of=single_terms[0], specificity=0.0)
@example(of=single_terms[1], specificity=0.0)
@example(of=single_terms[2], specificity=0.0)
@example(of=single_terms[3], specificity=50.0)
@example(of=policy(1e-320, 0.0, 1.0, 0.0), specificity=3.0)
@example(of=policy(1.0, 0.0, 1e-320, 0.0), specificity=3.0)
def test_they_sum_to_1_and_the_role_has_at_most_its_maximum(
    fusion: Fusion, has_semantic: bool, of: RetrievalPolicy, specificity: float
) -> None:
    result = weights(of, fusion, has_semantic, specificity)
    assert sum(result[:4]) == pytest.approx(1, abs=1e-12)
    assert min(result[:4]) >= 0
    if of.lexical_weight or of.semantic_weight:
        assert share_of(result) <= MAX_ROLE_SHARE + 1e-12
    else:
        assert share_of(result) in (
            0,
            pytest.approx(1),
        )  # The overlay wants the role's terms alone.
    if not has_semantic:
        assert result.semantic == 0
    if fusion == "rrf" and has_semantic:
        assert result.lexical == result.semantic


@given(of=policies(), specificity=specificities)
def test_the_roles_terms_have_the_same_weights_in_every_mode(
    of: RetrievalPolicy, specificity: float
) -> None:
    results = [weights(of, *mode, specificity) for mode in MODES]
    hybrid = results[0]
    for result in results[1:]:
        assert (result.metadata, result.vocabulary) == (hybrid.metadata, hybrid.vocabulary)
        lanes = result.lexical + result.semantic
        assert lanes == pytest.approx(hybrid.lexical + hybrid.semantic, abs=1e-12)


@given(of=policies(), first=specificities, second=specificities)
def test_a_more_specific_task_gives_the_role_no_more(
    of: RetrievalPolicy, first: float, second: float
) -> None:
    low, high = sorted((first, second))
    assert role_share(of, high) <= role_share(of, low)


def test_without_a_role_the_lanes_have_the_whole_score() -> None:
    found = weights_for(resolved(), SUPPORTED, has_semantic=True)
    assert share_of(found) == 0
    assert found.lexical + found.semantic == pytest.approx(1.0)
    assert share_of(weights_for(resolved(overlay()), SUPPORTED, has_semantic=True)) == 0
    role = overlay(vocabulary={"preferred_terms": ["token"]})
    assert share_of(weights_for(resolved(role), SUPPORTED, has_semantic=True)) > 0
