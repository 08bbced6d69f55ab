"""The final score and its weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Superseder
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, Vocabulary
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.candidate import (
    FULL_EVIDENCE,
    VAGUE_FACTOR,
    Candidate,
    Pool,
    Weights,
    role_share,
)
from rolebundle.retrieval.pipeline import weights_for
from rolebundle.retrieval.rank import normalize_metadata, rank, vocabulary_score
from support.corpora import overlay, resolved
from support.values import SUPPORTED, passage, weights
from support.values import candidate as allowed

# -- the terms of the final score, duplicates, source diversity, and the order -------------


def rerank(
    candidates: list[Candidate], role: Overlay | None, fusion: Fusion | None = None
) -> list[Candidate]:
    request = resolved(role, fusion=fusion)
    return rank([*map(replace, candidates)], Pool(), request, weights(role, request.fusion))


def order(ranked: list[Candidate]) -> list[str]:
    return [candidate.chunk_id for candidate in ranked]


def by_id(ranked: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.chunk_id: candidate for candidate in ranked}


NINE = [f"w{n}" for n in range(9)]


@pytest.mark.parametrize(
    ("text", "tags", "words", "points"),
    [
        ("a Threat\n model", (), {"boost_phrases": ["threat model"]}, 0.15),
        ("threat threat threat", (), {"boost_phrases": ["threat"]}, 0.15),
        ("the owasp list", (), {"preferred_terms": ["OWASP"]}, 0.08),
        ("a list", ("owasp",), {"preferred_terms": ["OWASP"]}, 0.08),
        ("the owasp list", ("owasp",), {"preferred_terms": ["OWASP"]}, 0.08),
        ("x", ("access-control",), {"preferred_terms": ["access control"]}, 0.08),
        ("x", ("access-control",), {"preferred_terms": ["access-control"]}, 0.08),
        ("threat, trust and brand tone", (),
         {"boost_phrases": ["threat", "trust"], "suppress_phrases": ["brand tone"]}, 0.1),
        # Clamped to zero and one.
        ("brand", (), {"suppress_phrases": ["brand"]}, 0.0),
        (" ".join(NINE), (), {"boost_phrases": NINE}, 1.0),
        # A phrase begins where a word begins.
        ("threat models", (), {"boost_phrases": ["threat model"]}, 0.15),
        ("a rapid, an api", (), {"boost_phrases": ["api"]}, 0.15),
        ("a rapid", (), {"boost_phrases": ["api"]}, 0.0),
    ],
)  # fmt: skip
def test_vocabulary(text: str, tags: tuple[str, ...], words: dict[str, Any], points: float) -> None:
    assert vocabulary_score(text, tags, Vocabulary(**words))[0] == pytest.approx(points)


class TestFinal:
    VOCABULARY: ClassVar[dict[str, Any]] = {"boost_phrases": ["threat"]}

    def test_the_default_weights(self) -> None:
        candidate = allowed(passage("c", "a threat"), metadata_score=5.0, lexical=0.8, semantic=0.4)
        (ranked,) = rerank([candidate], overlay(vocabulary=self.VOCABULARY))
        # 0.8 · 0.36 + 0.4 · 0.24 for the lanes. The role's 0.4 as 0.2 to 0.15 · 0.2, for 1.0 and 0.8.
        assert ranked.final == pytest.approx(0.384 + 0.4 * (1.0 * 0.2 + 0.8 * 0.03) / 0.23)
        assert (ranked.metadata, ranked.vocabulary) == (1.0, 0.8)

    def test_the_overlays_weights(self) -> None:
        role = overlay(
            vocabulary=self.VOCABULARY,
            retrieval_policy={
                "lexical_weight": 0.2,
                "semantic_weight": 0.3,
                "metadata_weight": 0.2,
                "rerank_weight": 0.3,
            },
        )
        candidate = allowed(passage("c", "a threat"), metadata_score=5.0, lexical=0.8, semantic=0.4)
        # 0.6 · (0.8 · 0.4 + 0.4 · 0.6) for the lanes. The role's 0.4 as 0.2 to 0.15 · 0.3.
        final = 0.336 + 0.4 * (1.0 * 0.2 + 0.8 * 0.045) / 0.245
        assert rerank([candidate], role)[0].final == pytest.approx(final)

    def test_the_words_of_the_role_have_the_expansions_weight_in_the_vocabulary(self) -> None:
        role = overlay(vocabulary=self.VOCABULARY, retrieval_policy={"expansion_weight": 0.5})
        (ranked,) = rerank([allowed(passage("c", "a threat"), expansion=0.6)], role)
        # 0.5 · min(1, 0.15 / 0.08) + 0.5 · 0.6
        assert ranked.vocabulary == pytest.approx(0.8)

    def test_one_preferred_term_is_the_most_that_counts(self) -> None:
        role = overlay(
            vocabulary={"boost_phrases": ["a1", "a2"], "preferred_terms": ["b1", "b2"]},
            retrieval_policy={"expansion_weight": 0.0},
        )
        texts = {"a1": 1.0, "a1 a2 b1 b2": 1.0, "b1 b2": 1.0, "b1": 1.0, "c": 0.0}
        for text, vocabulary in texts.items():
            (ranked,) = rerank([allowed(passage("c", text))], role)
            assert ranked.vocabulary == pytest.approx(vocabulary), text

    @pytest.mark.parametrize(
        ("score", "normalized"),
        [(0.0, 0.0), (0.09, 0.04), (0.9, 0.4), (2.25, 1.0), (10.0, 1.0)],
    )
    def test_metadata_saturates(self, score: float, normalized: float) -> None:
        assert normalize_metadata(score) == pytest.approx(normalized, abs=1e-8)

    def test_rrf_gives_both_lanes_the_same_weight(self) -> None:
        role = overlay(
            retrieval_policy={
                "lexical_weight": 0.5,
                "semantic_weight": 0.1,
                "metadata_weight": 0.2,
                "rerank_weight": 0.2,
            }
        )
        candidate = allowed(
            passage(),
            metadata_score=5.0,
            lexical=11 / 11,
            semantic=11 / 12,
            of_weights=weights(role, "rrf"),
        )
        # (0.5 + 0.1) / 2 · (1 + 0.916667); of the role's 0.4, metadata has 0.2 to 0.15 · 0.2.
        (ranked,) = rerank([candidate], role, "rrf")
        assert ranked.final == pytest.approx(0.3 * (1 + 11 / 12) + 0.4 * 0.2 / 0.23)

    def test_without_a_role_only_the_lanes_count(self) -> None:
        (ranked,) = rerank([allowed(lexical=1.0, semantic=0.4, metadata_score=5.0)], None)
        assert ranked.final == pytest.approx(0.76)
        assert (ranked.metadata, ranked.vocabulary) == (0.0, 0.0)


class TestOrder:
    def test_ties_break_by_chunk_id(self) -> None:
        candidates = [allowed(passage(name)) for name in ("d", "b", "a", "c")]
        assert order(rerank(candidates, None)) == ["a", "b", "c", "d"]


class TestDiversity:
    POLICY: ClassVar[dict[str, Any]] = {"require_source_diversity": True, "min_score": 0.0}
    ROLE = overlay(retrieval_policy={**POLICY, "max_chunks_per_source": 2})

    def of_sources(self, *sources: str) -> list[Any]:
        # c1, c2, … from best to worst, each a tenth of the lexical score (0.03) apart.
        return [
            allowed(passage(f"c{n}", source_id=source, document_id=source), lexical=1 - n / 10)
            for n, source in enumerate(sources, start=1)
        ]

    def test_the_nth_past_the_maximum_loses_0_15_times_n_minus_max(self) -> None:
        candidates = [
            replace(candidate, lexical=candidate.lexical + 2)
            for candidate in self.of_sources("w", "w", "w", "w", "w")
        ]
        without = overlay(retrieval_policy={"max_chunks_per_source": 2})
        ranked, plain = by_id(rerank(candidates, self.ROLE)), by_id(rerank(candidates, without))
        assert [ranked[f"c{n}"].diversity_penalty for n in range(1, 6)] == pytest.approx(
            [0, 0, 0.15, 0.30, 0.45]
        )
        assert ranked["c5"].final == pytest.approx(plain["c5"].final - 0.45)
        assert ranked["c5"].before_diversity == pytest.approx(plain["c5"].final)

    def test_the_first_passage_of_a_document_loses_0_15_at_most(self) -> None:
        # "favourite" takes the whole share of source w and more; "other" may be the only answer.
        documents = ["favourite"] * 5 + ["other", "other"]
        candidates = [
            allowed(passage(f"c{n}", source_id="w", document_id=document), lexical=3 - n / 10)
            for n, document in enumerate(documents, start=1)
        ]
        ranked = by_id(rerank(candidates, self.ROLE))
        assert ranked["c5"].diversity_penalty == pytest.approx(0.45)
        assert ranked["c6"].diversity_penalty == pytest.approx(0.15)
        assert ranked["c7"].diversity_penalty == pytest.approx(0.75)

    @given(
        st.lists(st.tuples(st.floats(0, 1), st.sampled_from("vw")), max_size=9),
        st.sampled_from([0.0, 0.1, 0.2]),
    )
    def test_the_penalty_takes_no_score_under_the_floor(
        self, drawn: list[tuple[float, str]], floor: float
    ) -> None:
        candidates = [
            allowed(passage(f"c{n}", source_id=source, document_id=source), lexical=lexical)
            for n, (lexical, source) in enumerate(drawn)
        ]
        policy = {"max_chunks_per_source": 1, "min_score": floor}
        plain = by_id(rerank(candidates, overlay(retrieval_policy=policy)))
        ranked = rerank(
            candidates, overlay(retrieval_policy=policy | {"require_source_diversity": True})
        )
        for candidate in ranked:
            before = plain[candidate.chunk_id].final
            assert (candidate.final >= floor) == (before >= floor)
            assert 0 <= candidate.final <= before == pytest.approx(candidate.before_diversity)
        # Within a document, the order is as before.
        for source in "vw":
            names = [
                candidate.chunk_id
                for candidate in ranked
                if candidate.passage.document.source_id == source
            ]
            scores = [plain[name].final for name in names]
            assert scores == pytest.approx(sorted(scores, reverse=True))

    def test_the_order_is_by_what_is_left(self) -> None:
        # c3 (0.21 − 0.15 = 0.06 of lexical) falls behind c4 (0.18) from another source.
        assert order(rerank(self.of_sources("w", "w", "w", "v"), self.ROLE)) == [
            "c1",
            "c2",
            "c4",
            "c3",
        ]

    def test_no_penalty_if_diversity_is_not_required(self) -> None:
        assert all(
            not candidate.diversity_penalty
            for candidate in rerank(self.of_sources(*"wwwww"), overlay())
        )

    def test_copies_and_superseded_ones_take_no_share(self) -> None:
        candidates = [
            allowed(passage("a", "same", source_id="w"), lexical=0.9),
            allowed(passage("b", "same", source_id="w"), lexical=0.8),
            allowed(
                passage("c", source_id="w", superseded_by=(Superseder("new", "general"),)),
                lexical=0.7,
            ),
            allowed(passage("d", source_id="w"), lexical=0.6),
            allowed(passage("e", source_id="w"), lexical=0.5),
        ]
        ranked = by_id(rerank(candidates, self.ROLE))
        assert ranked["d"].diversity_penalty == 0
        assert ranked["e"].diversity_penalty == 0.15


# -- The weights of the final score: the role's share is the same with either lane and either fusion

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


def weights_policy(
    of: RetrievalPolicy, fusion: Fusion, has_semantic: bool, specificity: float
) -> Weights:
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
        role = VAGUE_FACTOR * 0.4
        assert role_share(RetrievalPolicy(), 0) == pytest.approx(role / (0.6 + role))
        assert role_share(RetrievalPolicy(), 3.6) == pytest.approx(role / 2 / (0.6 + role / 2))
        assert role_share(RetrievalPolicy(), 8) < 0.01


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@given(lexical=st.floats(0, 1), semantic=st.floats(0, 1), share=st.floats(0, 0.9))
def test_the_roles_part_needs_evidence_for_the_task(
    fusion: Fusion, lexical: float, semantic: float, share: float
) -> None:
    row = allowed(lexical=lexical, semantic=semantic)
    both = Weights.of(RetrievalPolicy(), fusion, has_semantic=True, role_share=share)
    of_lexical = 0.6 if fusion == "weighted" else 0.5
    mean = of_lexical * lexical + (1 - of_lexical) * semantic
    assert both.role_factor(row) == pytest.approx(min(1.0, mean / FULL_EVIDENCE))
    words = Weights.of(RetrievalPolicy(), fusion, has_semantic=False, role_share=share)
    assert words.role_factor(row) == 1


@pytest.mark.parametrize(("fusion", "has_semantic"), MODES)
@given(of=policies(), specificity=specificities)
@example(of=single_terms[0], specificity=0.0)
@example(of=single_terms[1], specificity=0.0)
@example(of=single_terms[2], specificity=0.0)
@example(of=single_terms[3], specificity=50.0)
@example(of=policy(1e-320, 0.0, 1.0, 0.0), specificity=3.0)
@example(of=policy(1.0, 0.0, 1e-320, 0.0), specificity=3.0)
def test_they_sum_to_1_and_the_task_always_counts(
    fusion: Fusion, has_semantic: bool, of: RetrievalPolicy, specificity: float
) -> None:
    result = weights_policy(of, fusion, has_semantic, specificity)
    assert sum(result[:4]) == pytest.approx(1, abs=1e-12)
    assert min(result[:4]) >= 0
    if of.lexical_weight or of.semantic_weight:
        assert share_of(result) <= 1
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
    results = [weights_policy(of, *mode, specificity) for mode in MODES]
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
