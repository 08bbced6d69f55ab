"""Step 6: the bundle, which contains every candidate."""

from __future__ import annotations

from typing import Any

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.retrieval.bundle import assemble
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.evidence import Evidence
from support.corpora import overlay, resolved
from support.values import SUPPORTED, evidence, passage, ranked, rejected, retrieval

ROLE = overlay(vocabulary={"preferred_terms": ["rotation"]})


def bundle_of(
    selection: list[Candidate],
    before: tuple[Candidate, ...] = (),
    role: Any = None,
    fusion: Any = None,
    of_evidence: Evidence = SUPPORTED,
) -> RetrievalBundle:
    request = resolved(role, task="token token rotation", fusion=fusion)
    return assemble(request, retrieval(request, selection, before, evidence=of_evidence), 0.001)


class TestBundle:
    def test_rejections_are_ordered_by_code_and_then_by_step_order(self) -> None:
        selection = [
            rejected("budget_cut", passage("z")),
            rejected("duplicate", passage("y")),
            rejected("low_score", passage("x")),
        ]
        before = (rejected("stale", passage("b")), rejected("stale", passage("a")))
        bundle = bundle_of(selection, before)
        assert [(rejection.reason, rejection.chunk_id) for rejection in bundle.rejected] == [
            ("stale", "b"),
            ("stale", "a"),
            ("low_score", "x"),
            ("duplicate", "y"),
            ("budget_cut", "z"),
        ]
        assert bundle.rejected_summary == {
            "stale": 2,
            "low_score": 1,
            "duplicate": 1,
            "budget_cut": 1,
        }
        assert bundle.summary.total_candidates == 5

    def test_the_summary_counts(self) -> None:
        selection = [
            ranked(passage("a", trust_tier="authoritative", source_id="w"), freshness="stale"),
            ranked(passage("b", source_id="v"), freshness="fresh"),
            ranked(passage("c", source_id="w"), freshness="undated"),
        ]
        before = (rejected("stale", passage("d")), rejected("forbidden_source", passage("e")))
        summary = bundle_of(selection, before).summary
        assert summary.selected_count == 3
        assert summary.stale_count == 2  # one selected, one rejected
        assert summary.forbidden_hits == 1
        assert summary.trust_tier_breakdown == {
            "authoritative": 1,
            "preferred": 0,
            "general": 2,
            "untrusted": 0,
        }
        assert summary.source_breakdown == {"v": 1, "w": 2}


ROW = {name: row for row, name in enumerate("abc", start=1)}


def chosen(**tiers: str) -> list[Candidate]:
    """Selected passages with these trust tiers."""
    return [ranked(passage(name, rowid=ROW[name], trust_tier=tier)) for name, tier in tiers.items()]


class TestEvidence:
    """Figures: of the best passage of the corpus, and of each selected one."""

    @pytest.mark.parametrize(("role", "expected"), [(ROLE, "role"), (None, "task")])
    def test_a_passage_is_there_for_the_task_or_for_the_role(
        self, role: Any, expected: str
    ) -> None:
        # a has a word, b is close in meaning, c has neither.
        of_evidence = evidence({ROW["a"]: {0}}, cosines={ROW["b"]: 0.5, ROW["c"]: 0.3})
        selection = chosen(a="general", b="general", c="general")
        bundle = bundle_of(selection, role=role, of_evidence=of_evidence)
        assert [chunk.evidence for chunk in bundle.selected] == ["task", "task", expected]
        raw = [chunk.raw for chunk in bundle.selected if chunk.raw]
        assert [(raw_score.matched_words, raw_score.coverage, raw_score.closeness) for raw_score in raw] == [
            (1, 0.5, 0.0), (0, 0.0, 0.75), (0, 0.0, 0.25),
        ]  # fmt: skip


class TestTrustPosture:
    @pytest.mark.parametrize(
        ("matches", "posture"),
        [
            ({"a": {0}}, "strong"),
            ({"b": {0}, "c": {0}}, "mixed"),
            ({"c": {0, 1}}, "weak"),
            ({}, "weak"),
        ],
    )
    def test_it_is_of_the_passages_that_are_evidence_for_the_task(
        self, matches: dict[str, set[int]], posture: str
    ) -> None:
        selection = chosen(a="authoritative", b="preferred", c="general")
        of_evidence = evidence({ROW[name]: words for name, words in matches.items()})
        bundle = bundle_of(selection, role=ROLE, of_evidence=of_evidence)
        assert bundle.provenance.trust_posture == posture
        alone = bundle_of(selection, of_evidence=of_evidence)
        assert alone.provenance.trust_posture == posture
