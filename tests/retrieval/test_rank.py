"""The final score and its weights."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.documents import Superseder
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, Vocabulary
from rolebundle.contracts.terms import Fusion
from rolebundle.retrieval.filter import add_metadata_score
from rolebundle.retrieval.pipeline import weights_for
from rolebundle.retrieval.rank import rank
from rolebundle.retrieval.scoring import (
    PREFERRED_POINTS,
    add_moved_from,
    add_role_part,
    matched_phrases,
    phrase_score,
)
from rolebundle.retrieval.values import (
    FULL_LANE_SCORE,
    MIN_SPECIFICITY,
    ROLE_MARGIN,
    VAGUE_FACTOR,
    Candidate,
    Pool,
    Weights,
    role_share,
)
from support.corpora import overlay, resolved
from support.values import SUPPORTED, passage, weights
from support.values import candidate as allowed

# -- the components of the final score, duplicates, source diversity, and the order -------------


def rerank(
    candidates: list[Candidate], role: Overlay | None, fusion: Fusion | None = None
) -> list[Candidate]:
    request = resolved(role, fusion=fusion)
    return rank([*map(replace, candidates)], Pool(), request, weights(role, request.fusion))


def order(ranked: list[Candidate]) -> list[str]:
    return [candidate.chunk_id for candidate in ranked]


def by_id(ranked: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.chunk_id: candidate for candidate in ranked}


def policy(*weights: float) -> RetrievalPolicy:
    names = ("lexical_weight", "semantic_weight", "metadata_weight", "rerank_weight")
    return RetrievalPolicy.model_validate(dict(zip(names, weights, strict=True)))


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
    hits = matched_phrases(text, tags, Vocabulary(**words))
    assert phrase_score(hits) == pytest.approx(min(1.0, points / PREFERRED_POINTS))


VOCABULARY = {"boost_phrases": ["threat"]}


def weighing(*terms: float) -> Overlay:
    return overlay(
        vocabulary=VOCABULARY, retrieval_policy=policy(*terms).model_dump(exclude_unset=True)
    )


@pytest.mark.parametrize(
    ("role", "fusion", "lanes", "final"),
    [
        # The role's 0.4 as 0.2 to 0.15 · 0.2, for 1.0 and 0.8. Of it, 0.4 · 0.6 counts as often as
        # the task's score.
        (overlay(vocabulary=VOCABULARY), "weighted", {"lexical": 0.8, "semantic": 0.4},
         0.384 + (0.16 + 0.24 * 0.64) * (1.0 * 0.2 + 0.8 * 0.03) / 0.23),
        # 0.6 · (0.8 · 0.4 + 0.4 · 0.6) for the lanes. The role's 0.4 as 0.2 to 0.15 · 0.3.
        (weighing(0.2, 0.3, 0.2, 0.3), "weighted", {"lexical": 0.8, "semantic": 0.4},
         0.336 + (0.16 + 0.24 * 0.56) * (1.0 * 0.2 + 0.8 * 0.045) / 0.245),
        # (0.5 + 0.1) / 2 for each lane.
        (weighing(0.5, 0.1, 0.2, 0.2), "rrf", {"lexical": 11 / 11, "semantic": 11 / 12},
         0.575 + (0.16 + 0.24 * 0.575 / 0.6) * (1.0 * 0.2 + 0.8 * 0.03) / 0.23),
        # Without a role only the lanes count.
        (None, "weighted", {"lexical": 1.0, "semantic": 0.4}, 0.6 + 0.4 * 0.4),
    ],
)  # fmt: skip
def test_a_worked_example(
    role: Overlay | None, fusion: Fusion, lanes: dict[str, float], final: float
) -> None:
    row = allowed(
        passage("c", "a threat"), metadata_score=5.0, of_weights=weights(role, fusion), **lanes
    )
    (ranked,) = rerank([row], role, fusion)
    assert ranked.final == pytest.approx(final)
    terms = (1.0, 0.8) if role else (0.0, 0.0)
    assert (ranked.metadata, ranked.vocabulary) == tuple(
        sum(ranked.role_factors) * term for term in terms
    )


def test_the_words_of_the_role_have_the_expansions_weight_in_the_vocabulary() -> None:
    role = overlay(vocabulary=VOCABULARY, retrieval_policy={"expansion_weight": 0.5})
    (ranked,) = rerank(
        [allowed(passage("c", "a threat"), expansion_score=0.6, lexical=1.0, semantic=1.0)], role
    )
    # 0.5 · min(1, 0.15 / 0.08) + 0.5 · 0.6
    assert ranked.vocabulary == pytest.approx(0.8)


def test_one_preferred_term_is_the_most_that_counts() -> None:
    role = overlay(
        vocabulary={"boost_phrases": ["a1", "a2"], "preferred_terms": ["b1", "b2"]},
        retrieval_policy={"expansion_weight": 0.0},
    )
    texts = {"a1": 1.0, "a1 a2 b1 b2": 1.0, "b1 b2": 1.0, "b1": 1.0, "c": 0.0}
    for text, vocabulary in texts.items():
        (ranked,) = rerank([allowed(passage("c", text), lexical=1.0, semantic=1.0)], role)
        assert ranked.vocabulary == pytest.approx(vocabulary), text


@pytest.mark.parametrize(
    ("score", "normalized"), [(0.0, 0.0), (0.09, 0.04), (0.9, 0.4), (2.25, 1.0), (10.0, 1.0)]
)
def test_metadata_saturates(score: float, normalized: float) -> None:
    # Without lanes the task does not bound the role's components.
    only_metadata = Weights(0.0, 0.0, 1.0, 0.0, "weighted")
    row = allowed(metadata_score=score, of_weights=only_metadata)
    add_role_part(row, resolved(overlay(vocabulary=VOCABULARY)), only_metadata)
    assert row.metadata == pytest.approx(normalized, abs=1e-8)


@pytest.mark.parametrize(
    ("boost", "ratio"),
    [(0.5, 1.0), (1.0, 1.0), (1.5, 1.141), (2.0, 1.241), (3.0, 1.348), (9.0, 1.348)],
)
def test_among_passages_that_answer_about_equally_a_boost_counts(
    boost: float, ratio: float
) -> None:
    """Also in a specific task, and more for a higher boost: metadata has 20 of the role's 23."""
    for task, is_first in ((1.01 / ratio, True), (0.99 / ratio, False)):
        rows = [
            allowed(passage("b", "b"), metadata_score=0.5 * boost, lexical=task, semantic=task),
            allowed(passage("a", "a"), metadata_score=0.5, lexical=1.0, semantic=1.0),
        ]
        of = weights_policy(RetrievalPolicy(), "weighted", True, MIN_SPECIFICITY)
        role = overlay(source_policy={"preferred_sources": [{"path": "b"}]})
        ranked = rank(rows, Pool(), resolved(role), of)
        assert (order(ranked)[0] == "b") == is_first


def test_ties_break_by_chunk_id() -> None:
    assert order(rerank([allowed(passage(name)) for name in "dbac"], None)) == [*"abcd"]


def of_sources(sources: str, best: float) -> list[Candidate]:
    """c1, c2, … from best to worst, each a tenth of the lexical score (0.03) apart."""
    return [
        allowed(passage(f"c{n}", source_id=source, document_id=source), lexical=best - n / 10)
        for n, source in enumerate(sources, start=1)
    ]


class TestDiversity:
    ROLE = overlay(
        retrieval_policy={
            "require_source_diversity": True, "min_score": 0.0, "max_chunks_per_source": 2
        }
    )  # fmt: skip

    def test_the_nth_past_the_maximum_loses_0_15_times_n_minus_max(self) -> None:
        candidates = of_sources("wwwww", best=3)
        without = overlay(retrieval_policy={"max_chunks_per_source": 2})
        ranked, plain = by_id(rerank(candidates, self.ROLE)), by_id(rerank(candidates, without))
        assert [ranked[f"c{n}"].diversity_penalty for n in range(1, 6)] == pytest.approx(
            [0, 0, 0.15, 0.30, 0.45]
        )
        assert ranked["c5"].final == pytest.approx(plain["c5"].final - 0.45)
        assert ranked["c5"].unadjusted_score == pytest.approx(plain["c5"].final)

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

    def test_the_order_is_by_what_is_left(self) -> None:
        # c3 (0.21 − 0.15 = 0.06 of lexical) falls behind c4 (0.18) from another source.
        assert order(rerank(of_sources("wwwv", best=1), self.ROLE)) == ["c1", "c2", "c4", "c3"]

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
            assert 0 <= candidate.final <= before == pytest.approx(candidate.unadjusted_score)
        # Within a document, the order is as before.
        for source in "vw":
            names = [
                candidate.chunk_id
                for candidate in ranked
                if candidate.passage.document.source_id == source
            ]
            scores = [plain[name].final for name in names]
            assert scores == pytest.approx(sorted(scores, reverse=True))

    def test_copies_and_superseded_ones_take_no_share(self) -> None:
        passages = [
            passage("a", "same"),
            passage("b", "same"),
            passage("c", superseded_by=(Superseder("new", "general"),)),
            passage("d"),
            passage("e"),
        ]
        rows = [allowed(of, lexical=0.9 - n / 10) for n, of in enumerate(passages)]
        ranked = by_id(rerank(rows, self.ROLE))
        assert ranked["d"].diversity_penalty == 0
        assert ranked["e"].diversity_penalty == 0.15


# -- The weights of the final score: the role's share is the same with either lane and either fusion

MODES: tuple[tuple[Fusion, bool], ...] = (
    ("weighted", True), ("weighted", False), ("rrf", True), ("rrf", False),
)  # fmt: skip

# Of the role's share: the two default weights are equal, and the vocabulary's counts 0.15 times.
OF_METADATA, OF_VOCABULARY = 1 / 1.15, 0.15 / 1.15


@st.composite
def policies(draw: st.DrawFn) -> RetrievalPolicy:
    """Any policy; often with weights of 0."""
    parts = draw(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any))
    return policy(*(part / sum(parts) for part in parts))


specificities = st.sampled_from([0.0, 1.25, 50.0]) | st.floats(0, 50)
single_terms = [policy(*(float(n == term) for n in range(4))) for term in range(4)]


def share_of(weights: Weights) -> float:
    return weights.metadata + weights.vocabulary


def weights_policy(
    of: RetrievalPolicy, fusion: Fusion, has_semantic: bool, specificity: float
) -> Weights:
    share = role_share(of, specificity)
    return Weights.of(of, fusion, has_semantic=has_semantic, role_share=share)


@pytest.mark.parametrize(
    ("share", "fusion", "both", "lanes"),
    [
        (0.0, "weighted", True, (0.6, 0.4)),
        (0.0, "weighted", False, (1, 0)),
        (0.4, "weighted", True, (0.36, 0.24)),
        (0.4, "rrf", True, (0.3, 0.3)),
        (0.4, "weighted", False, (0.6, 0)),
    ],
)
def test_a_role_has_its_share(
    share: float, fusion: Fusion, both: bool, lanes: tuple[float, float]
) -> None:
    found = Weights.of(RetrievalPolicy(), fusion, has_semantic=both, role_share=share)
    expected = (*lanes, share * OF_METADATA, share * OF_VOCABULARY)
    assert found[:4] == pytest.approx(expected)


def test_a_vague_task_gives_the_role_more_and_a_specific_one_little() -> None:
    for specificity, weight in (
        (0, 0.4),
        (MIN_SPECIFICITY - 0.01, 0.4),
        (MIN_SPECIFICITY, 0.0),
        (50, 0.0),
    ):
        role = VAGUE_FACTOR * weight
        share = (role / (0.6 + role) + ROLE_MARGIN) / (1 + ROLE_MARGIN)
        assert role_share(RetrievalPolicy(), specificity) == pytest.approx(share)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@given(lexical=st.floats(0, 1), semantic=st.floats(0, 1), share=st.floats(0, 0.9))
def test_the_roles_part_needs_evidence_for_the_task(
    fusion: Fusion, lexical: float, semantic: float, share: float
) -> None:
    row = allowed(lexical=lexical, semantic=semantic)
    both = Weights.of(RetrievalPolicy(), fusion, has_semantic=True, role_share=share)
    of_lexical = 0.6 if fusion == "weighted" else 0.5
    mean = of_lexical * lexical + (1 - of_lexical) * semantic
    near_tie = min(share, ROLE_MARGIN * (1 - share))
    of_role = share - near_tie
    expected = near_tie * mean + of_role * min(1.0, mean / FULL_LANE_SCORE)
    assert share * sum(both.role_factors(row)) == pytest.approx(expected if share else 0)
    words = Weights.of(RetrievalPolicy(), fusion, has_semantic=False, role_share=share)
    expected = near_tie * lexical + of_role
    only_words = replace(row, semantic=0.0)
    assert share * sum(words.role_factors(only_words)) == pytest.approx(expected if share else 0)


@given(task=st.floats(0.2, 1), role=st.floats(0, 1))
def test_for_a_specific_task_the_role_decides_between_near_equal_passages(
    task: float, role: float
) -> None:
    share = role_share(RetrievalPolicy(), MIN_SPECIFICITY)
    of = Weights.of(RetrievalPolicy(), "weighted", has_semantic=True, role_share=share)
    row = allowed(lexical=task, semantic=task)
    row.metadata = row.vocabulary = role * sum(of.role_factors(row))
    row.weigh(of)
    assert row.final == pytest.approx(task * (1 + ROLE_MARGIN * role) / (1 + ROLE_MARGIN))


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
        # The overlay wants the role's components alone.
        assert share_of(result) in (0, pytest.approx(1))
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


def test_a_rule_is_named_only_if_it_changes_the_place() -> None:
    # All match the domain's boost, so that it decides nothing. The type's decides between two.
    role = overlay(
        source_policy={"domain_boosts": {"legal": 1.3}, "document_type_boosts": {"final": 1.5}}
    )
    request = resolved(role)
    rows = [
        allowed(passage("draft", domain="legal"), lexical=0.9, semantic=0.9),
        allowed(
            passage("final", domain="legal", document_type="final"), lexical=0.85, semantic=0.9
        ),
    ]
    for row in rows:
        add_metadata_score(row, request)
    of = weights(role)
    ranked = rank(rows, Pool(), request, of)
    add_moved_from(ranked, ranked, request, of)
    assert order(ranked) == ["final", "draft"]
    assert [dict(row.moved_from) for row in ranked] == [{"boost:doc-type(final×1.5)": 2}, {}]
    assert all(len(row.rules) == number for row, number in zip(ranked, (2, 1), strict=True))
