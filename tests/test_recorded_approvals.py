"""An approval is recorded with its name, whoever gave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.engine import Engine
from rolebundle.policy.approvals import Approvals
from rolebundle.policy.audit import AuditLog
from rolebundle.retrieval.compare import request_of
from support.agents import ask
from support.corpora import build, document, set_policy


@pytest.mark.parametrize(
    ("script", "row"),
    [
        ("echo Ana", {"approved_by": "Ana"}),
        ("exit 3", {"claim": "me", "refused": "sh did not approve it"}),
    ],
)
def test_what_the_program_of_the_host_decides_is_recorded(
    tmp_path: Path, script: str, row: dict[str, str]
) -> None:
    db = build(tmp_path, [document("x", ["the token"], origin="external")], name="team.db")
    set_policy(db, {"ada": {"scopes": [], "access_level": "internal"}})
    approvals = Approvals("command", ("/bin/sh", "-c", script))
    with Engine(db, approvals=approvals) as engine:
        request = ask("ada", action="execute", approval="me", lexical_only=True)
        bundle = engine.retrieve(request)
        assert [approval.approved_by for approval in bundle.approvals or ()] == (
            ["Ana"] if "approved_by" in row else []
        )
        assert bundle.model_copy(update={"warnings": []}).without_timings() == (
            repeated(db, bundle).model_copy(update={"warnings": []}).without_timings()
        )
    recorded = next(iter(AuditLog(db).rows(kind="approval")))
    assert (recorded.agent, recorded.action, recorded.details) == ("ada", "execute", row)


def repeated(db: Path, bundle: RetrievalBundle) -> RetrievalBundle:
    """The answer to what a bundle says of its request, if the caller is trusted."""
    with Engine(db) as engine:
        return engine.retrieve(request_of(bundle))


def test_an_approval_is_recorded_with_its_name(tmp_path: Path) -> None:
    db = build(tmp_path, [document("x", ["the token"], origin="external")], name="team.db")
    set_policy(db, {"ada": {"scopes": [], "access_level": "internal"}})
    with Engine(db) as engine:
        withheld = engine.retrieve(ask("ada", action="execute", lexical_only=True))
        assert [rejection.reason for rejection in withheld.rejected] == ["requires_approval"]
        approved = engine.retrieve(ask("ada", action="execute", approval="Ana", lexical_only=True))
        assert len(approved.selected) == 1
    [row] = AuditLog(db).rows(kind="approval")
    assert (row.agent, row.action, row.allowed) == ("ada", "execute", 1)
    assert row.details == {"approved_by": "Ana"}
