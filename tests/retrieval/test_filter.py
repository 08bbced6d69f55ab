"""The pure steps before and after ranking: score, filter, select."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest

from rolebundle.contracts.documents import DATED_BY, Noise, Passage, iso_utc
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import LANES, Fusion
from rolebundle.policy.trust import Purpose
from rolebundle.retrieval import scoring as step
from rolebundle.retrieval.filter import filter_candidates, freshness_of, is_readable
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.scoring import RRF_K
from rolebundle.retrieval.select import estimated_tokens, select
from rolebundle.retrieval.values import Candidate, Pool
from support.corpora import NOW, overlay, resolved
from support.values import candidate, passage, ranked, weights

# -- policy. Each row of the design's filter table, and how the rows combine ---------------


def days_ago(days: float) -> str:
    return iso_utc(NOW - timedelta(days=days))


READ = Purpose()


def resolve(role: Overlay | None, purpose: Purpose = READ) -> ResolvedRequest:
    return resolved(role)._replace(purpose=purpose)


def role_of(policy: dict[str, Any], **fields: Any) -> Overlay:
    """An overlay with rules of sources and of retrieval in one."""
    of_sources = {key: value for key, value in policy.items() if isinstance(value, list | dict)}
    others = {key: value for key, value in policy.items() if key not in of_sources}
    return overlay(source_policy=of_sources, retrieval_policy=others, **fields)


def filtered(of: Passage, policy: dict[str, Any], purpose: Purpose = READ) -> Candidate:
    row = candidate(of)
    filter_candidates([row], resolve(role_of(policy), purpose))
    return row


OTHERS, OURS = ("writer",), ("writer", "reviewer")
ALLOWS = {"allowed_sources": [{"path": "docs/**"}, {"pattern": "law"}]}


@pytest.mark.parametrize(
    ("policy", "fields", "expected"),
    [
        ({}, {}, 0.5),
        (ALLOWS, {"path": "docs/a.md"}, 0.5),
        (ALLOWS, {"source_id": "Bylaws"}, 0.5),
        (ALLOWS, {"document_type": "Bylaws"}, 0.5),
        (ALLOWS, {"domain": "Bylaws"}, 0.5),
        ({}, {"applicable_roles": OURS}, 0.65),
        ({}, {"applicable_roles": OTHERS}, 0.25),
        ({"role_mismatch_penalty": 0.2}, {"applicable_roles": OTHERS}, 0.4),
        ({"role_mismatch_penalty": 0.99}, {"applicable_roles": OTHERS}, 0.01),  # not 0.005
        ({"role_mismatch_penalty": 1.0}, {"applicable_roles": OURS}, 0.65),
        ({"role_mismatch_penalty": 1.0}, {}, 0.5),
        ({"freshness_max_age_days": 100}, {"updated_at": days_ago(101)}, 0.25),
        ({"freshness_max_age_days": 100}, {"updated_at": days_ago(100)}, 0.5),
        ({"freshness_max_age_days": 100, "stale_penalty": 1}, {"updated_at": days_ago(100)}, 0.5),
        ({"freshness_max_age_days": 9, "stale_penalty": 0.9}, {"updated_at": days_ago(10)}, 0.05),
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
    row = filtered(passage(**fields), policy)
    assert (row.code, row.metadata_score) == (None, pytest.approx(expected))


def sources(kind: str, *rules: str | dict[str, Any]) -> dict[str, Any]:
    """The rules of a kind of sources, each given as its pattern or whole."""
    return {kind: [{"pattern": rule} if isinstance(rule, str) else rule for rule in rules]}


@pytest.mark.parametrize(
    ("policy", "fields", "code", "note"),
    [
        # The first pattern that matches is named.
        (sources("forbidden_sources", "wiki-x", "wiki", "wik"), {}, "forbidden_source", "wiki"),
        (sources("forbidden_sources", "wiki") | sources("allowed_sources", "wiki"), {},
         "forbidden_source", "wiki"),
        (ALLOWS, {"path": "src/a.md"}, "forbidden_source",
         "not one of the allowed sources: path docs/**, law"),
        ({}, {"document_id": "d7", "excluded_roles": OURS}, "role_mismatch",
         "d7 excludes the role reviewer"),
        ({"role_mismatch_penalty": 1.0},
         {"document_id": "d7", "applicable_roles": ("writer", "editor")}, "role_mismatch",
         "d7 is for writer, editor, not reviewer"),
        ({"freshness_max_age_days": 100.0, "stale_penalty": 1.0}, {"updated_at": days_ago(101)},
         "stale", "101 days old, the limit is 100"),
    ],
)  # fmt: skip
def test_a_rejection_names_the_rule(
    policy: dict[str, Any], fields: dict[str, Any], code: str, note: str
) -> None:
    row = filtered(passage(**fields), policy)
    assert (row.code, row.note) == (code, note)


@pytest.mark.parametrize("field", ["source_id", "document_type", "domain"])
@pytest.mark.parametrize("value", ["marketing", "q3-MARKETING-plan", "Marketing"])
def test_a_substring_of_source_type_or_domain_in_any_case(field: str, value: str) -> None:
    row = filtered(passage(**{field: value}), sources("forbidden_sources", "mArKeTiNg"))
    assert row.code == "forbidden_source"


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
def test_a_forbidden_path(glob: str, path: str, is_match: bool) -> None:
    """A rule by path matches the path of the file, with the globs of rolebundle.toml."""
    policy = sources("forbidden_sources", {"path": glob, "reason": "early"})
    row = filtered(passage(path=path), policy)
    expected = ("forbidden_source", f"path {glob}: early") if is_match else (None, "")
    assert (row.code, row.note) == expected


@pytest.mark.parametrize(
    ("age", "status"),
    [(-1, "undated"), (0, "fresh"), (49, "fresh"), (50, "aging"), (99, "aging"), (100, "stale")],
)
def test_freshness_at_half_and_all_of_the_maximum(age: float, status: str) -> None:
    policy, of = {"freshness_max_age_days": 100.0}, passage(updated_at=days_ago(age))
    assert freshness_of(of, resolve(role_of(policy))) == status
    assert filtered(of, policy).freshness == status


@pytest.mark.parametrize(
    ("dated_by", "max_age", "status"),
    [
        ("name without a day", None, "aging"),
        ("name without a day", 100.0, "stale"),
        ("name", None, "stale"),
    ],
)
def test_a_year_in_a_name_makes_a_document_stale_for_a_role_with_a_maximum_age_only(
    dated_by: str, max_age: float | None, status: str
) -> None:
    of = passage(updated_at=days_ago(5000), attributes=((DATED_BY, (dated_by,)),))
    role = role_of({} if max_age is None else {"freshness_max_age_days": max_age})
    assert freshness_of(of, resolve(role)) == status


ALL_RULES = {
    "trust_tier_boosts": {"preferred": 1.4},
    "document_type_boosts": {"runbook": 1.6},
    "domain_boosts": {"security": 1.1},
    "preferred_sources": [{"pattern": "wiki", "boost": 1.8}],
    "freshness_max_age_days": 100.0,
}
OF_ALL_RULES = {
    "trust_tier": "preferred",
    "document_type": "runbook",
    "domain": "security",
    "applicable_roles": ("reviewer",),
    "updated_at": days_ago(101),
}
OWASP = {"pattern": "owasp", "boost": 9.0}
OWN = {"pattern": "wiki", "boost": 1.2, "reason": "ours"}


@pytest.mark.parametrize(
    ("policy", "fields", "score", "hits"),
    [
        (sources("preferred_sources", {"path": "docs/*", "boost": 3}), {}, 1.5,
         ["boost:preferred-source(path docs/*×3)"]),
        # Only the first one that matches counts, and a boost of 1 is no reason.
        (sources("preferred_sources", OWASP, OWN, {"pattern": "wik", "boost": 3.0}), {}, 0.6,
         ["boost:preferred-source(wiki: ours×1.2)"]),
        (sources("preferred_sources", {"path": "docs/*", "boost": 1}, {"path": "**", "boost": 3}),
         {}, 0.5, []),
        # 0.5 × 1.3 × 0.5 × 1.4 × 1.6 × 1.1 × 1.8: factors multiply and are listed in order.
        (ALL_RULES, OF_ALL_RULES, 1.44144,
         ["boost:applicable-role", "penalty:stale(101d > 100d)", "boost:trust-tier(preferred×1.4)",
          "boost:doc-type(runbook×1.6)", "boost:domain(security×1.1)",
          "boost:preferred-source(wiki×1.8)"]),
    ],
)  # fmt: skip
def test_each_factor_is_named(
    policy: dict[str, Any], fields: dict[str, Any], score: float, hits: list[str]
) -> None:
    row = filtered(passage(path="docs/a.md", **fields), policy)
    assert row.metadata_score == pytest.approx(score)
    assert [*row.metadata_factors] == hits


@pytest.mark.parametrize(
    ("origin", "fields", "code"),
    [
        ("untrusted", {}, "taint_blocked"),
        ("external", {}, "stale"),
        ("untrusted", {"excluded_roles": ("reviewer",)}, "role_mismatch"),
        ("external", {"excluded_roles": ("reviewer",)}, "role_mismatch"),
        ("untrusted", {"source_id": "wiki"}, "forbidden_source"),
        ("external", {"source_id": "wiki"}, "forbidden_source"),
        # Nothing else stands against it.
        ("external", {"updated_at": days_ago(0)}, "requires_approval"),
    ],
)
def test_the_order_is_role_then_taint_then_age_then_approval(
    origin: str, fields: dict[str, Any], code: str
) -> None:
    policy = {"freshness_max_age_days": 1.0, "stale_penalty": 1.0}
    of = passage(origin=origin, **{"updated_at": days_ago(99), "source_id": "x"} | fields)
    row = filtered(of, policy | sources("forbidden_sources", "wiki"), Purpose("execute"))
    assert row.code == code


@pytest.mark.parametrize(
    "fields",
    [{"source_id": "drafts"}, {"excluded_roles": ("writer",)}, {"applicable_roles": ("reviewer",)}],
)
def test_what_the_role_may_not_see_is_not_readable(fields: dict[str, Any]) -> None:
    """What an agent may look up: its roles decide, and not what is useful for a task."""
    policy = sources("forbidden_sources", "draft") | {"role_mismatch_penalty": 1.0}
    role = role_of(policy, role_id="writer")
    assert not is_readable(passage(**fields), resolve(role))


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
        n: Candidate(
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
    found = step.score_hits(Pool(hits, **fields), weights(fusion=fusion))
    return sorted(found, key=lambda row: row.chunk_id)


def test_task_and_role_are_divided_by_their_own_maximum() -> None:
    found = merge({1: (4.0, 0.0), 2: (1.0, 10.0), 3: (0.0, 5.0)}, {})
    # Only the task's words count in the lexical score. The role's are a part of its own terms.
    assert [row.lexical for row in found] == [1.0, 0.25, 0.0]
    assert [row.expansion_score for row in found] == [0.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [({1: 0.66, 2: 0.41, 3: 0.1}, [1, 0.5, 0]), ({1: 0.2, 2: 0.2}, [1, 1]), ({1: 0.1}, [0])],
)
def test_cosines_are_scaled_from_unrelated_texts_to_the_best_one(
    cosines: dict[int, float], expected: list[float]
) -> None:
    noise = Noise(floor=0.3, related=0.8)
    assert noise.unrelated == pytest.approx(0.16)
    assert [row.semantic for row in merge({}, cosines, noise=noise)] == pytest.approx(expected)


def test_the_score_of_a_lane_that_did_not_propose_counts_fully() -> None:
    first, _ = merge({1: (1.0, 0)}, {1: 0.9, 2: 0.1}, only_scored=[("semantic", 1)])
    assert (first.semantic, first.lanes) == (1.0, ("lexical",))


def test_a_further_candidate_does_not_move_the_scale() -> None:
    first, second = merge({}, {1: 0.9, 2: 0.5})
    assert merge({3: (0.0, 5.0)}, {1: 0.9, 2: 0.5, 3: 0.1})[:2] == [first, second]


def test_a_worked_example() -> None:
    # k = 10; the score is (k + 1) / (k + rank), which is 1 for the first.
    found = merge({1: (9.0, 0), 2: (5.0, 0), 3: (1.0, 0)}, {3: 0.9, 1: 0.8}, fusion="rrf")
    assert RRF_K == 10
    assert [row.lexical for row in found] == [11 / 11, 11 / 12, 11 / 13]
    assert [row.semantic for row in found] == [11 / 12, 0.0, 11 / 11]


def test_only_what_a_lane_proposed_for_the_task_has_a_rank() -> None:
    # The third was proposed for the role alone.
    found = merge({1: (9.0, 0), 2: (5.0, 0), 3: (0.0, 7.0)}, {1: 0.5}, "rrf", [("lexical", 1)])
    assert [row.lexical for row in found] == [0.0, 1.0, 0.0]


# -- candidates that fit are selected, all others are rejected with a code -----------------


def of_length(chunk_id: str, characters: int) -> Candidate:
    return ranked(passage(chunk_id, "x" * characters))


@pytest.mark.parametrize(
    ("candidates", "limit", "min_score", "token_budget", "rejected"),
    [
        ([ranked(passage("a"), 0.1), ranked(passage("b"), 0.0999)], 9, 0.1, None,
         {"b": ("low_score", "score 0.100 is under the floor of 0.1")}),
        # Before the limit.
        ([ranked(passage("a"), 0.9), ranked(passage("b"), 0.01)], 1, 0.1, None,
         {"b": ("low_score", "score 0.010 is under the floor of 0.1")}),
        # A duplicate takes no place.
        ([ranked(passage("a")), ranked(passage("b"), duplicate_of="a"), ranked(passage("c"))],
         2, 0.0, None, {"b": ("duplicate", "the same text as a")}),
        # 10 + 15 of 30 tokens are used, 10 do not fit, 5 do: a passage that is too long ends
        # nothing for the shorter ones behind it.
        ([of_length("a", 40), of_length("b", 60), of_length("c", 40), of_length("d", 20)],
         9, 0.0, 30,
         {"c": ("budget_cut", "about 10 tokens do not fit: 25 of token_budget 30 are used")}),
        ([of_length("a", 40), of_length("b", 40)], 9, 0.0, 20, {}),
    ],
)  # fmt: skip
def test_what_is_cut(
    candidates: list[Candidate],
    limit: int,
    min_score: float,
    token_budget: int | None,
    rejected: dict[str, tuple[str, str]],
) -> None:
    request = resolved(limit=limit, token_budget=token_budget)
    select(candidates, request._replace(min_score=min_score))
    assert {row.chunk_id: (row.code, row.note) for row in candidates if row.code} == rejected


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_four_characters_a_token_rounded_up(characters: int, tokens: int) -> None:
    assert estimated_tokens("x" * characters) == tokens
