"""`rolebundle compare`, of roles and of saved answers, on the sample corpus."""

from pathlib import Path

import pytest

from rolebundle.contracts.why import Comparison
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

    def test_json_says_why_another_role_lacks_a_passage(self, sample_db: Path) -> None:
        reply = Comparison.model_validate(self.compare(sample_db, "--limit", "3", "--json").json())
        assert [view.role_id for view in reply.roles] == ROLES.split(",")
        assert all(len(view.selected) == 3 for view in reply.roles)
        assert len(reply.overlaps) == 3
        lacking = [
            standing for passage in reply.passages for standing in passage.standings
            if standing.state != "selected"
        ]  # fmt: skip
        assert lacking
        assert all(standing.reason for standing in lacking if standing.state == "rejected")

    @pytest.mark.parametrize("roles", ["", ","])
    def test_no_role(self, sample_db: Path, roles: str) -> None:
        outcome = self.compare(sample_db, roles=roles)
        is_coded(outcome)
        assert outcome.code == 2


def test_a_comparison_of_answers_without_passages_says_so(sample_db: Path) -> None:
    task = ("compare", "zebra quagga okapi gnus", "--roles", ROLES, "--lexical-only")
    output = invoke(*task, "--db", sample_db).out
    assert output.count("0 passages, 0 for it alone") == 3
