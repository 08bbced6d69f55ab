"""The pure steps before and after ranking: merge, filter, select."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest

from rolebundle.contracts.documents import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import LANES, Fusion
from rolebundle.policy.trust import READ_PURPOSE, Purpose
from rolebundle.retrieval import merge as step
from rolebundle.retrieval.candidate import Candidate, Hit, Pool
from rolebundle.retrieval.filter import filter_candidates, freshness_of, is_readable, rejections
from rolebundle.retrieval.merge import RRF_K
from rolebundle.retrieval.rank import estimated_tokens, select
from rolebundle.retrieval.request import ResolvedRequest
from support.corpora import NOW, overlay, resolved
from support.values import candidate, passage, ranked, weights

# -- policy. Each row of the design's filter table, and how the rows combine ---------------


def days_ago(days: float) -> str:
    return iso_utc(NOW - timedelta(days=days))


def resolve(role: Overlay | None, purpose: Purpose = READ_PURPOSE) -> ResolvedRequest:
    return resolved(role)._replace(purpose=purpose)


def allowed(of: Passage, role: Overlay | None) -> Candidate:
    passed = candidate(of)
    filter_candidates([passed], resolve(role))
    assert passed.code is None
    return passed


def score(role: Overlay | None, **fields: Any) -> float:
    return allowed(passage(**fields), role).metadata_score


def rejection(
    of: Passage, role: Overlay | None, purpose: Purpose = READ_PURPOSE
) -> tuple[str, str]:
    row = candidate(of)
    filter_candidates([row], resolve(role, purpose))
    return row.code or "", row.note


def forbids(pattern: str) -> Overlay:
    return overlay(source_policy={"forbidden_sources": [{"pattern": pattern}]})


OTHERS, OURS = ("writer",), ("writer", "reviewer")


@pytest.mark.parametrize(
    ("policy", "fields", "expected"),
    [
        ({}, {}, 0.5),
        ({"allowed_sources": [{"pattern": "law"}]}, {"source_id": "Bylaws"}, 0.5),
        ({"allowed_sources": [{"pattern": "law"}]}, {"document_type": "Bylaws"}, 0.5),
        ({"allowed_sources": [{"pattern": "law"}]}, {"domain": "Bylaws"}, 0.5),
        ({}, {"applicable_roles": OURS}, 0.65),
        ({}, {"applicable_roles": OTHERS}, 0.25),
        ({"role_mismatch_penalty": 0.2}, {"applicable_roles": OTHERS}, 0.4),
        ({"role_mismatch_penalty": 0.99}, {"applicable_roles": OTHERS}, 0.01),  # not 0.005
        ({"freshness_max_age_days": 100}, {"updated_at": days_ago(101)}, 0.25),
        ({"freshness_max_age_days": 100}, {"updated_at": days_ago(100)}, 0.5),
        ({"freshness_max_age_days": 100, "stale_penalty": 1}, {"updated_at": days_ago(100)}, 0.5),
        (
            {"freshness_max_age_days": 100, "stale_penalty": 0.9},
            {"updated_at": days_ago(101)},
            0.05,
        ),
        ({"trust_tier_boosts": {"authoritative": 2.0}}, {"trust_tier": "authoritative"}, 1.0),
        ({"trust_tier_boosts": {"authoritative": 2.0}}, {"trust_tier": "general"}, 0.5),
        ({"trust_tier_boosts": {"general": 100.0}}, {}, 10.0),
        ({"document_type_boosts": {"runbook": 1.4}}, {"document_type": "runbook"}, 0.7),
        ({"document_type_boosts": {"runbook": 1.4}}, {"document_type": "runbooks"}, 0.5),
        ({"domain_boosts": {"security": 0.5}}, {"domain": "security"}, 0.25),
        ({"preferred_sources": [{"pattern": "WIK"}]}, {"source_id": "wiki"}, 0.75),
    ],
    ids=str,
)
def test_the_metadata_score(
    policy: dict[str, Any], fields: dict[str, Any], expected: float
) -> None:
    of_sources = {key: value for key, value in policy.items() if isinstance(value, list | dict)}
    others = {key: value for key, value in policy.items() if key not in of_sources}
    role = overlay(source_policy=of_sources, retrieval_policy=others)
    assert score(role, **fields) == pytest.approx(expected)


class TestForbiddenSources:
    @pytest.mark.parametrize("field", ["source_id", "document_type", "domain"])
    @pytest.mark.parametrize("value", ["marketing", "q3-MARKETING-plan", "Marketing"])
    def test_a_substring_of_source_type_or_domain_in_any_case(self, field: str, value: str) -> None:
        code, _ = rejection(passage(**{field: value}), forbids("mArKeTiNg"))
        assert code == "forbidden_source"

    def test_the_first_matching_pattern_is_named(self) -> None:
        rules = [{"pattern": "wiki-x"}, {"pattern": "wiki"}, {"pattern": "wik"}]
        role = overlay(source_policy={"forbidden_sources": rules})
        assert rejection(passage(source_id="wiki"), role)[1] == "wiki"


class TestPaths:
    """A rule by path matches the path of the file, with the globs of rolebundle.toml."""

    @pytest.mark.parametrize(
        ("glob", "path", "is_match"),
        [
            ("drafts/**", "drafts/2026/plan.md", True),
            ("drafts/*", "drafts/plan.md", True),
            ("drafts/*", "drafts/2026/plan.md", False),
            ("**/plan.md", "plan.md", True),
            ("drafts", "drafts/plan.md", False),
            ("drafts/**", "Drafts/plan.md", True),
            ("plan", "drafts/plan.md", False),
        ],
    )
    def test_a_forbidden_path(self, glob: str, path: str, is_match: bool) -> None:
        role = overlay(source_policy={"forbidden_sources": [{"path": glob, "reason": "early"}]})
        found = [*rejections(passage(path=path), resolve(role))]
        assert found == ([("forbidden_source", f"path {glob}: early")] if is_match else [])

    def test_allowed_paths(self) -> None:
        role = overlay(source_policy={"allowed_sources": [{"path": "docs/**"}, {"pattern": "law"}]})
        assert score(role, path="docs/a.md") == score(role, domain="law") == 0.5
        note = rejection(passage(path="src/a.md"), role)[1]
        assert note == "not one of the allowed sources: path docs/**, law"

    def test_a_preferred_path_is_multiplied_and_named(self) -> None:
        role = overlay(source_policy={"preferred_sources": [{"path": "docs/*", "boost": 3}]})
        found = allowed(passage(path="docs/a.md"), role)
        assert found.metadata_score == pytest.approx(1.5)
        assert found.metadata_hits == ("boost:preferred-source(path docs/*×3)",)

    def test_a_boost_of_1_is_no_reason(self) -> None:
        rules = [{"path": "docs/*", "boost": 1}, {"path": "**", "boost": 3}]
        role = overlay(source_policy={"preferred_sources": rules})
        assert allowed(passage(path="docs/a.md"), role).metadata_hits == ()


class TestAllowedSources:
    ROLE = overlay(source_policy={"allowed_sources": [{"pattern": "policy"}, {"pattern": "law"}]})

    def test_a_source_without_a_match_is_rejected_and_all_patterns_are_named(self) -> None:
        assert rejection(passage(source_id="wiki"), self.ROLE) == (
            "forbidden_source",
            "not one of the allowed sources: policy, law",
        )

    def test_a_forbidden_source_is_rejected_even_if_it_is_allowed(self) -> None:
        role = overlay(
            source_policy={
                "allowed_sources": [{"pattern": "wiki"}],
                "forbidden_sources": [{"pattern": "wiki"}],
            }
        )
        assert rejection(passage(source_id="wiki"), role)[1] == "wiki"


class TestRoles:
    def test_an_excluded_role_is_rejected_and_the_document_named(self) -> None:
        fields = {"document_id": "d7", "excluded_roles": ("writer", "reviewer")}
        assert rejection(passage(**fields), overlay()) == (
            "role_mismatch",
            "d7 excludes the role reviewer",
        )

    def test_a_chunk_may_exclude_a_role_by_itself(self) -> None:
        own = passage(excluded_roles=("reviewer",))
        assert rejection(own, overlay())[0] == "role_mismatch"

    def test_a_penalty_of_one_rejects_what_is_for_other_roles(self) -> None:
        role = overlay(retrieval_policy={"role_mismatch_penalty": 1.0})
        assert rejection(
            passage(document_id="d7", applicable_roles=("writer", "editor")), role
        ) == (
            "role_mismatch",
            "d7 is for writer, editor, not reviewer",
        )
        assert score(role, applicable_roles=("writer", "reviewer")) == pytest.approx(0.65)
        assert score(role, applicable_roles=()) == 0.5


class TestAge:
    def role(self, **policy: Any) -> Overlay:
        return overlay(retrieval_policy={"freshness_max_age_days": 100.0} | policy)

    def test_a_penalty_of_one_rejects_with_the_age_and_the_limit(self) -> None:
        role = self.role(stale_penalty=1.0)
        assert rejection(passage(updated_at=days_ago(101)), role) == (
            "stale",
            "101 days old, the limit is 100",
        )


class TestFreshness:
    @pytest.mark.parametrize(
        ("age", "status"),
        [
            (-1, "undated"),
            (0, "fresh"),
            (49, "fresh"),
            (50, "aging"),
            (99, "aging"),
            (100, "stale"),
        ],
    )
    def test_half_and_all_of_the_maximum(self, age: float, status: str) -> None:
        role = overlay(retrieval_policy={"freshness_max_age_days": 100.0})
        assert freshness_of(passage(updated_at=days_ago(age)), resolve(role)) == status
        assert allowed(passage(updated_at=days_ago(age)), role).freshness == status


class TestBoosts:
    def test_only_the_first_matching_preferred_source_counts_with_its_boost(self) -> None:
        rules = [
            {"pattern": "owasp", "boost": 9.0},
            {"pattern": "wiki", "boost": 1.2, "reason": "ours"},
            {"pattern": "wik", "boost": 3.0},
        ]
        role = overlay(source_policy={"preferred_sources": rules})
        found = allowed(passage(source_id="wiki"), role)
        assert found.metadata_score == pytest.approx(0.6)  # 0.5 × 1.2
        assert found.metadata_hits == ("boost:preferred-source(wiki: ours×1.2)",)


class TestCombination:
    ALL_RULES = overlay(
        source_policy={
            "trust_tier_boosts": {"preferred": 1.4},
            "document_type_boosts": {"runbook": 1.6},
            "domain_boosts": {"security": 1.1},
            "preferred_sources": [{"pattern": "wiki", "boost": 1.8}],
        },
        retrieval_policy={"freshness_max_age_days": 100.0},
    )

    def test_factors_multiply_and_are_listed_in_order(self) -> None:
        found = allowed(
            passage(
                source_id="wiki",
                trust_tier="preferred",
                document_type="runbook",
                domain="security",
                applicable_roles=("reviewer",),
                updated_at=days_ago(101),
            ),
            self.ALL_RULES,
        )
        # 0.5 × 1.3 × 0.5 × 1.4 × 1.6 × 1.1 × 1.8 = 1.44144
        assert found.metadata_score == pytest.approx(1.44144)
        assert found.metadata_hits == (
            "boost:applicable-role",
            "penalty:stale(101d > 100d)",
            "boost:trust-tier(preferred×1.4)",
            "boost:doc-type(runbook×1.6)",
            "boost:domain(security×1.1)",
            "boost:preferred-source(wiki×1.8)",
        )

    def test_the_order_is_role_then_taint_then_age_then_approval(
        self,
    ) -> None:
        role = overlay(
            source_policy={"forbidden_sources": [{"pattern": "wiki"}]},
            retrieval_policy={"freshness_max_age_days": 1.0, "stale_penalty": 1.0},
        )
        old: dict[str, Any] = {"updated_at": days_ago(99), "source_id": "x"}
        taints = (("untrusted", "taint_blocked"), ("external", "stale"))
        for origin, code in taints:
            found = passage(origin=origin, **old)
            assert rejection(found, role, Purpose("execute"))[0] == code
            excluded = passage(origin=origin, excluded_roles=("reviewer",), **old)
            assert rejection(excluded, role, Purpose("execute"))[0] == "role_mismatch"
            forbidden = passage(origin=origin, **old | {"source_id": "wiki"})
            assert rejection(forbidden, role, Purpose("execute"))[0] == "forbidden_source"
        # Nothing else stands against it.
        found = passage(origin="external", source_id="x", updated_at=days_ago(0))
        assert rejection(found, role, Purpose("execute"))[0] == "requires_approval"


class TestReading:
    """What an agent may look up: its roles decide, and not what is useful for a task."""

    ROLE = overlay(
        role_id="writer",
        source_policy={"forbidden_sources": [{"pattern": "draft"}]},
        retrieval_policy={
            "role_mismatch_penalty": 1.0,
            "stale_penalty": 1.0,
            "freshness_max_age_days": 100.0,
        },
    )

    @pytest.mark.parametrize(
        "fields",
        [
            {"source_id": "drafts"},
            {"excluded_roles": ("writer",)},
            {"applicable_roles": ("reviewer",)},
        ],
    )
    def test_what_the_role_may_not_see_is_not_readable(self, fields: dict[str, Any]) -> None:
        assert not is_readable(passage(**fields), resolve(self.ROLE))


# -- hits of two lanes become candidates with comparable scores ----------------------------


def merge(
    lexical: dict[int, tuple[float, float]],
    semantic: dict[int, float],
    fusion: Fusion = "weighted",
    only_scored: Collection[tuple[str, int]] = (),
    **fields: Any,
) -> list[Candidate]:
    """The candidates of hits, by number; ``only_scored`` are those that a lane did not propose."""
    hits = {
        n: Hit(
            passage(f"c{n}", rowid=n),
            tuple(
                lane
                for lane, found in zip(LANES, (lexical, semantic), strict=True)
                if n in found and (lane, n) not in only_scored
            ),
            0,
            *lexical.get(n, (None, None)),
            semantic.get(n),
        )
        for n in lexical.keys() | semantic.keys()
    }
    return step.merge(Pool(hits, **fields), weights(fusion=fusion))


def by_id(candidates: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.passage.chunk_id: candidate for candidate in candidates}


class TestWeighted:
    def test_bm25_is_divided_by_its_maximum(self) -> None:
        found = by_id(merge({1: (8.0, 0), 2: (2.0, 0)}, {}))
        assert found["c1"].lexical == 1.0
        assert found["c2"].lexical == 0.25  # 2 / 8

    def test_task_and_role_are_divided_by_their_own_maximum(self) -> None:
        hits = {1: (4.0, 0.0), 2: (1.0, 10.0), 3: (0.0, 5.0)}
        found = merge(hits, {})
        # Only the task's words count in the lexical score. The role's are a part of its own terms.
        assert [candidate.lexical for candidate in found] == [1.0, 0.25, 0.0]
        assert [candidate.expansion for candidate in found] == [0.0, 1.0, 0.5]

    def test_cosines_are_scaled_by_minimum_and_maximum(self) -> None:
        hits = {1: 0.9, 2: 0.5, 3: 0.1}
        found = by_id(merge({}, hits))
        assert [found[name].semantic for name in ("c1", "c2", "c3")] == pytest.approx([1, 0.5, 0])

    def test_equal_cosines_become_1(self) -> None:
        found = by_id(merge({}, {1: 0.2, 2: 0.2}))
        assert found["c1"].semantic == found["c2"].semantic == 1.0

    def test_the_score_of_a_lane_that_did_not_propose_counts_fully(self) -> None:
        hits = {1: 0.9, 2: 0.1}
        found = by_id(merge({1: (1.0, 0)}, hits, only_scored=[("semantic", 1)]))
        assert found["c1"].semantic == 1.0
        assert found["c1"].lanes == ("lexical",)

    def test_what_only_the_role_proposed_does_not_move_the_scale(self) -> None:
        lexical = {1: (2.0, 0.0), 2: (1.0, 0.0), 3: (0.0, 5.0)}
        semantic = {1: 0.9, 2: 0.5, 3: 0.1}
        proposed = {"by_task": {1: 2.0, 2: 1.0}, "by_role": {2: 1.0, 3: 5.0}}
        scored = [("semantic", 2), ("semantic", 3)]
        found = merge(lexical, semantic, only_scored=scored, **proposed)
        assert [candidate.semantic for candidate in found] == [1.0, 0.0, 0.0]
        # What the semantic lane proposed, too, is there for the task.
        found = merge(lexical, semantic, only_scored=scored[:1], **proposed)
        assert [candidate.semantic for candidate in found] == pytest.approx([1.0, 0.5, 0.0])


class TestReciprocalRanks:
    def test_a_worked_example(self) -> None:
        # k = 10; the score is (k + 1) / (k + rank), which is 1 for the first.
        lexical = {1: (9.0, 0), 2: (5.0, 0), 3: (1.0, 0)}
        semantic = {3: 0.9, 1: 0.8}
        found = by_id(merge(lexical, semantic, fusion="rrf"))
        assert RRF_K == 10
        assert found["c1"].lexical == 11 / 11
        assert found["c2"].lexical == 11 / 12
        assert found["c3"].lexical == 11 / 13
        assert found["c3"].semantic == 11 / 11
        assert found["c1"].semantic == 11 / 12
        assert found["c2"].semantic == 0.0

    def test_only_what_a_lane_proposed_has_a_rank(self) -> None:
        lexical = {1: (9.0, 0), 2: (5.0, 0)}
        found = by_id(merge(lexical, {1: 0.5}, "rrf", [("lexical", 1)]))
        assert (found["c1"].lexical, found["c2"].lexical) == (0.0, 1.0)


# -- candidates that fit are selected, all others are rejected with a code -----------------


def cut(
    candidates: list[Candidate], limit: int, min_score: float, token_budget: int | None = None
) -> list[Candidate]:
    request = resolved(limit=limit, token_budget=token_budget)
    select(candidates, request._replace(min_score=min_score))
    return candidates


def ids(candidates: list[Candidate]) -> list[str]:
    return [candidate.chunk_id for candidate in candidates if candidate.code is None]


def rejections_select(candidates: list[Candidate]) -> dict[str, tuple[str, str]]:
    return {row.chunk_id: (row.code, row.note) for row in candidates if row.code}


def of_length(chunk_id: str, characters: int, **fields: Any) -> Candidate:
    return ranked(passage(chunk_id, "x" * characters), **fields)


class TestFloor:
    def test_a_score_below_the_minimum_is_a_low_score(self) -> None:
        selection = cut([ranked(passage("a"), 0.1), ranked(passage("b"), 0.0999)], 9, 0.1)
        assert ids(selection) == ["a"]
        assert rejections_select(selection) == {
            "b": ("low_score", "score 0.100 is under the floor of 0.1")
        }

    def test_a_low_score_is_reported_before_the_limit(self) -> None:
        selection = cut([ranked(passage("a"), 0.9), ranked(passage("b"), 0.01)], 1, 0.1)
        assert rejections_select(selection)["b"][0] == "low_score"


class TestDuplicates:
    def test_a_duplicate_is_rejected_and_takes_no_place(self) -> None:
        selection = cut(
            [
                ranked(passage("a")),
                ranked(passage("b"), duplicate_of="a"),
                ranked(passage("c")),
            ],
            2,
            0.0,
        )
        assert ids(selection) == ["a", "c"]
        assert rejections_select(selection) == {"b": ("duplicate", "the same text as a")}


class TestTokenBudget:
    @pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
    def test_four_characters_a_token_rounded_up(self, characters: int, tokens: int) -> None:
        assert estimated_tokens("x" * characters) == tokens

    def test_greedy_by_final_score(self) -> None:
        # 10 + 15 of 30 tokens are used, 10 do not fit, 5 do: a passage that is too long ends
        # nothing for the shorter ones behind it.
        selection = cut(
            [of_length("a", 40), of_length("b", 60), of_length("c", 40), of_length("d", 20)],
            9,
            0.0,
            30,
        )
        assert ids(selection) == ["a", "b", "d"]
        assert rejections_select(selection) == {
            "c": ("budget_cut", "about 10 tokens do not fit: 25 of token_budget 30 are used")
        }

    def test_an_exact_fit_fits(self) -> None:
        assert ids(cut([of_length("a", 40), of_length("b", 40)], 9, 0.0, 20)) == ["a", "b"]
