"""The policy binds agents to roles: what is outside their roles is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rolebundle.contracts.audit import AuditRow
from rolebundle.contracts.bundle import RequestEcho
from rolebundle.contracts.memory import MarkRequest
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import AccessDenied
from rolebundle.interfaces.inspector.application import VIEWS, Inspector, Parameters
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.overlays import load_role
from support.agents import OVERLAYS, ask, ids
from support.corpora import build, document, set_policy

ROLE = "mossline-product-strategist"
"""An overlay that forbids the source `external-pentest`."""


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A corpus in which `ada` has one role, `bob` one or none, and `cy` has to name one."""
    path = build(
        tmp_path_factory.mktemp("bound"),
        [
            document("plan", ["the token plan", "more of the plan"]),
            document("secret", ["the token of the plan"], source_id="external-pentest"),
        ],
        name="team.db",
    )
    free = {"scopes": [], "access_level": "internal"}
    set_policy(
        path,
        {
            "ada": free | {"roles": [ROLE]},
            "bob": free | {"roles": [ROLE], "role_required": False},
            "cy": free | {"role_required": True},
            "dan": free,
            "fay": free | {"may_write": ["mark"]},
            "eva": free | {"roles": [ROLE], "may_write": ["mark", "remember"]},
        },
    )
    with Engine(path, (OVERLAYS,)) as opened:
        yield opened


def refusal(engine: Engine, call: Callable[[], object], code: str = "role_denied") -> str:
    """The error of a call that is refused, and recorded once."""
    before = len(refused_rows(engine))
    with pytest.raises(AccessDenied) as caught:
        call()
    assert caught.value.code == code
    rows = refused_rows(engine)
    assert len(rows) == before + 1
    assert rows[-1].agent and rows[-1].details == {"code": code}
    return str(caught.value)


def refused_rows(engine: Engine) -> list[AuditRow]:
    return list(AuditLog(engine.workspace.path).rows(kind="refused"))


OUTSIDE: dict[str, Callable[[Engine, RetrievalRequest], object]] = {
    "retrieve": lambda engine, request: engine.retrieve(request),
    "why": lambda engine, request: engine.why(request, "secret"),
    "compare": lambda engine, request: engine.compare(request, [ROLE, request.role or "x"]),
    "replay": lambda engine, request: engine.replay(
        engine.retrieve(request.model_copy(update={"agent": "dan"})).model_copy(
            update={"request": RequestEcho(agent=request.agent, lexical_only=True)}
        )
    ),
}


@pytest.mark.parametrize("call", OUTSIDE)
@pytest.mark.parametrize(
    ("agent", "role"),
    [("ada", None), ("ada", "mossline-docs-writer"), ("bob", "mossline-docs-writer"), ("cy", None)],
)
def test_a_request_outside_the_roles_is_refused(
    bound: Engine, call: str, agent: str, role: str | None
) -> None:
    if (agent, call) == ("cy", "compare"):
        pytest.skip("a comparison always names roles")
    request = ask(agent, role=role, lexical_only=True)
    text = refusal(bound, lambda: OUTSIDE[call](bound, request))
    assert "secret" not in text and "pentest" not in text


def test_a_role_that_does_not_exist_is_refused_like_one_that_does(bound: Engine) -> None:
    texts = {
        refusal(bound, lambda r=role: bound.retrieve(ask("ada", role=r, lexical_only=True)))
        for role in ("no-such-role", "mossline-docs-writer")
    }
    assert len(texts) == 1


def test_an_overlay_file_is_no_way_around_the_roles(bound: Engine) -> None:
    overlay = load_role(ROLE, (OVERLAYS,))
    request = ask("ada", role=ROLE, lexical_only=True)
    refusal(bound, lambda: bound.retrieve(request, overlay))
    assert bound.retrieve(ask("dan", lexical_only=True), overlay).role_id == ROLE


def test_what_the_roles_allow_is_answered(bound: Engine) -> None:
    for agent, role in (
        ("ada", ROLE),
        ("bob", ROLE),
        ("bob", None),
        ("cy", "mossline-docs-writer"),
    ):
        assert bound.retrieve(ask(agent, role=role, lexical_only=True)).selected
    assert ids(bound, "ada", role=ROLE, lexical_only=True) == ["plan"]


def test_what_no_role_may_read_is_not_read_by_its_reference_either(bound: Engine) -> None:
    for reference in ("secret", "secret#0", "secret.md:1-1", "#secret:1:1"):
        text = refusal(bound, lambda name=reference: bound.get(name, "ada"))
        assert "token of" not in text
        assert bound.get(reference, "bob").passages
    assert len(bound.get("plan", "ada").passages) == 2


def test_why_shows_no_mark_of_what_no_role_may_read(bound: Engine) -> None:
    mark = MarkRequest(id="secret#0", state="disputed", reason="7 days are too short", agent="fay")
    bound.mark(mark)
    marks = {
        agent: bound.why(ask(agent, role=ROLE, lexical_only=True), "secret").mark
        for agent in ("ada", "bob")
    }
    assert marks["ada"] is None
    assert marks["bob"] is not None and marks["bob"].reason == mark.reason


def test_what_no_role_may_read_is_not_marked(bound: Engine) -> None:
    for target in ("secret", "secret#0"):
        request = MarkRequest(id=target, state="disputed", reason="is wrong", agent="eva")
        refusal(bound, lambda request=request: bound.mark(request))
    request = MarkRequest(id="plan#0", state="disputed", reason="is wrong", agent="eva")
    assert bound.mark(request).target == "plan#0"


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a role": ("retrieve", {"task": "token", "agent": "eva"}, "role_denied"),
    "a comparison": (
        "compare",
        {"task": "token", "agent": "eva", "roles": [ROLE, "x"]},
        "role_denied",
    ),
    "a passage": ("get", {"id": "secret", "agent": "eva"}, "role_denied"),
    "a draft": ("verify", {"draft": "token", "chunk_ids": [], "agent": "eva"}, "role_denied"),
    "an intent": ("check", {"intent": "token", "agent": "eva"}, "role_denied"),
    "a role's file": ("roles.show", {"role": "x", "agent": "eva"}, "role_denied"),
    "a state": (
        "mark",
        {"id": "plan", "state": "tool_verified", "reason": "a", "agent": "eva"},
        "mark_denied",
    ),
    "a mark": (
        "mark",
        {"id": "plan", "state": "disputed", "reason": "a", "agent": "dan"},
        "write_denied",
    ),
    "a fact": ("remember", {"fact": "a", "source": "plan", "agent": "dan"}, "write_denied"),
    "a scope": (
        "remember",
        {"fact": "a", "source": "plan", "scope": "hr", "agent": "eva"},
        "scope_denied",
    ),
    "an ingest": ("ingest", {"paths": ["/a"]}, "read_only_server"),
    "a list": ("ls", {"agent": "nobody"}, "access_denied"),
    "lines": ("grep", {"pattern": "a", "agent": "nobody"}, "access_denied"),
    "a state of the corpus": ("status", {"agent": "nobody"}, "access_denied"),
    "roles": ("roles.list", {"agent": "nobody"}, "access_denied"),
}


@pytest.mark.parametrize("asked", REFUSED)
def test_each_refusal_leaves_one_record(bound: Engine, asked: str) -> None:
    method, fields, code = REFUSED[asked]
    audit = AuditLog(bound.workspace.path)
    before = len(list(audit.rows()))
    with pytest.raises(AccessDenied) as caught:
        Operations(bound, allow_write=True).call(method, fields)
    assert caught.value.code == code
    [row] = list(audit.rows())[before:]
    assert (row.kind, row.agent, row.details) == (
        "refused",
        fields.get("agent", ""),
        {"code": code},
    )
    assert row.role == fields.get("role", fields.get("roles", [""])[-1])


def test_a_refused_page_leaves_one_record(bound: Engine) -> None:
    before = refused_rows(bound)
    with Engine(bound.workspace.path, (OVERLAYS,), agent="ada") as pinned:
        Inspector(pinned, "/token/", VIEWS).answer("corpus", Parameters([("agent", "bob")]))
    [row] = refused_rows(bound)[len(before) :]
    assert (row.agent, row.details) == ("ada", {"code": "access_denied"})


def test_each_refused_reference_of_several_leaves_one_record(bound: Engine) -> None:
    before = refused_rows(bound)
    answer = bound.multi_get(["plan", "secret", "secret#0", "none"], "ada")
    assert [failure.code for failure in answer.failures] == ["role_denied"] * 2 + ["not_found"]
    rows = refused_rows(bound)[len(before) :]
    assert [(row.agent, row.details) for row in rows] == [("ada", {"code": "role_denied"})] * 2


def test_an_agent_replays_no_answer_of_another_one(bound: Engine) -> None:
    answer = bound.retrieve(ask("dan", lexical_only=True))
    refusal(bound, lambda: bound.replay(answer, agent="bob"), "access_denied")
    assert bound.replay(answer, agent="dan").same


def test_the_listing_has_the_roles_that_the_agent_may_use(bound: Engine) -> None:
    def listed(agent: str) -> list[str]:
        roles = Operations(bound).call("roles.list", {"agent": agent})["roles"]
        return [role["role_id"] for role in roles]

    assert listed("ada") == listed("bob") == [ROLE]
    assert len(listed("cy")) == len(listed("dan")) > 1
    refusal(bound, lambda: Operations(bound).call("roles.show", {"agent": "ada", "role": "x"}))
