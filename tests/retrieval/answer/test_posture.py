"""Postures: how far an answer can be trusted, and how current it is."""

from __future__ import annotations

import pytest

from rolebundle.retrieval.warnings import freshness_posture, trust_posture
from support.values import answer_passage


class TestTrust:
    @pytest.mark.parametrize(
        ("tiers", "posture"),
        [
            (["untrusted", "authoritative"], "strong"),
            (["authoritative", "preferred"], "strong"),
            (["general", "preferred"], "mixed"),
            (["general"], "weak"),
            (["untrusted"], "weak"),
            ([], "weak"),
        ],
    )
    def test_strong_with_any_authoritative_mixed_with_any_preferred_else_weak(
        self, tiers: list[str], posture: str
    ) -> None:
        assert trust_posture([answer_passage(tier) for tier in tiers]) == posture


class TestFreshness:
    @pytest.mark.parametrize(
        ("statuses", "posture"),
        [
            (["fresh"], "fresh"),
            (["fresh", "aging", "undated"], "fresh"),
            (["fresh", "stale"], "mixed"),
            (["aging"], "mixed"),
            (["undated"], "mixed"),
            (["stale", "aging"], "stale"),
            (["stale"], "stale"),
            ([], "mixed"),
        ],
    )
    def test_fresh_mixed_or_stale(self, statuses: list[str], posture: str) -> None:
        assert freshness_posture([answer_passage(status=status) for status in statuses]) == posture
