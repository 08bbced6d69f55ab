"""Step 3: policy. Each row of the design's filter table, and how the rows combine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rolebundle.contracts.documents import Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.policy.trust import READ_PURPOSE, Purpose
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.filter import (
    filter_candidates,
    freshness_of,
    is_readable,
    rejections,
)
from rolebundle.retrieval.request import ResolvedRequest
from support.corpora import NOW, overlay, resolved
from support.values import candidate, passage


def days_ago(days: float) -> str:
    return iso_utc(NOW - timedelta(days=days))


def resolve(role: Overlay | None, purpose: Purpose = READ_PURPOSE) -> ResolvedRequest:
    return resolved(role)._replace(purpose=purpose)


def allowed(of: Passage, role: Overlay | None) -> Candidate:
    [passed] = filter_candidates([candidate(of)], resolve(role))
    return passed


def score(role: Overlay | None, **fields: Any) -> float:
    return allowed(passage(**fields), role).metadata_score


def rejection(
    of: Passage, role: Overlay | None, purpose: Purpose = READ_PURPOSE
) -> tuple[str, str]:
    row = candidate(of)
    assert filter_candidates([row], resolve(role, purpose)) == []
    return row.code or "", row.note


def forbids(pattern: str, reason: str = "") -> Overlay:
    return overlay(source_policy={"forbidden_sources": [{"pattern": pattern, "reason": reason}]})


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
