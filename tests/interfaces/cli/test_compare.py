"""`rolebundle compare`, of roles and of saved answers, on the sample corpus."""

from pathlib import Path

import pytest

from support.commands import Outcome, invoke, is_coded

TASK = "Review token rotation"
ROLES = "mossline-security-reviewer,mossline-product-strategist,mossline-incident-responder"


class TestCompare:
    def compare(self, db: Path, *options: str, roles: str = ROLES) -> Outcome:
        return invoke(
            "compare", TASK, "--roles", roles, "--lexical-only", "--db", db,
            "--now", "2026-11-15", *options,
        )  # fmt: skip

    def test_text(self, sample_db: Path) -> None:
        reply = self.compare(sample_db, "--limit", "3")
        assert (reply.code, reply.err) == (0, "")
        for role in ROLES.split(","):
            assert f"\n{role}: 3 passages, " in reply.out
        assert "first mossline-security-reviewer, second mossline-product-strategist, " in reply.out
        assert "trust " in reply.out

    @pytest.mark.parametrize("roles", ["", ","])
    def test_no_role(self, sample_db: Path, roles: str) -> None:
        outcome = self.compare(sample_db, roles=roles)
        is_coded(outcome)
        assert outcome.code == 2 and "at least two different roles" in outcome.err

    def test_a_rule_that_matches_nothing_is_named(self, sample_db: Path) -> None:
        reply = self.compare(sample_db, roles="product-manager")
        assert (
            "- source_policy.preferred_sources[0].path matches nothing in this corpus" in reply.out
        )
        assert " more rules of product-manager: `rolebundle overlay lint" in reply.out
