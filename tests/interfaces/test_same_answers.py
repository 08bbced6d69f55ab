"""The same requests get the same answers through every interface, timings aside."""

import json
from functools import cache
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

import pytest

from rolebundle.engine import Engine
from rolebundle.interfaces.client import Sidecar
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.policy.overlays import overlay_folders
from support.bundles import without_timings
from support.commands import forked_program, run
from support.mcp import needs_mcp, run_session, server_of, stdio_session, text_of

NOW = "2026-11-15T00:00:00Z"
TASKS = (
    "Can a stolen tablet replay a token?",
    "What should we worry about before release 3.0?",
    "How is a sync conflict resolved?",
    'quotes "and" NEAR(operators) * ^ col:x',
    "zxqv wvut",
    "Русский текст, 漢字 and 🎉",
    "Who decides about pricing?",
)
ROLES = (None, "mossline-security-reviewer", "mossline-product-strategist", "mossline-docs-writer")
SHAPES: tuple[dict[str, Any], ...] = (
    {"detail": "compact"},
    {"detail": "ids", "limit": 3},
    {"detail": "full", "limit": 2},
    {"detail": "compact", "max_chars": 2_000},
    {"detail": "full", "fusion": "rrf", "token_budget": 300},
    {"detail": "full", "as_of": "2026-03-01", "now": "2026-06-01"},
    {"detail": "ids", "packet": True, "token_budget": 900, "limit": 3},
    {"detail": "full", "where": {"domain": ["product", "security"], "updated_after": "2026-01-01"}},
    {
        "detail": "full",
        "limit": 3,
        "seen": ["product-strategy/product/strategy-2026.md#58dcf6c790"],
    },
)
REQUESTS = [
    {"task": task, "now": NOW, "lexical_only": bool(number % 3)}
    | ({"role": role} if role else {})
    | shape
    for number, ((task, role), shape) in enumerate(
        islice(zip(product(TASKS, ROLES), cycle(SHAPES), strict=False), 25)
    )
] + [
    {"q": task, "topK": limit, "now": NOW, "detail": "full", "role_id": role}
    for task, limit, role in zip(
        islice(cycle(TASKS), 25), range(1, 26), cycle(ROLES[1:]), strict=False
    )
]


@pytest.fixture(scope="module")
def db(sample_with_vectors: Path) -> Path:
    return sample_with_vectors


@cache
def texts_of_python(db: Path, step: int) -> list[str]:
    with Engine(db, overlay_folders()) as engine:
        return [Operations(engine).text("retrieve", fields) for fields in REQUESTS[::step]]


@cache
def answers_of_python(db: Path, step: int) -> list[dict[str, Any]]:
    with Engine(db, overlay_folders()) as engine:
        requests = [request_from(fields) for fields in REQUESTS[::step]]
        return [
            without_timings(
                shaped_bundle(engine.retrieve(asked), asked.detail or "compact", asked.max_chars)
            )
            for asked in requests
        ]


steps = pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
"""Every thirteenth request; all of them if slow tests run."""


@steps
def test_serve_answers_as_python_does(db: Path, step: int) -> None:
    with Sidecar(db=db, command=forked_program()) as sidecar:
        served = [
            without_timings(sidecar.call("retrieve", **fields)) for fields in REQUESTS[::step]
        ]
    assert served == answers_of_python(db, step)


@steps
def test_one_shot_answers_as_python_does(db: Path, step: int) -> None:
    answers = []
    for fields in REQUESTS[::step]:
        request = json.dumps(fields).encode()
        outcome = run("retrieve", "--request", "-", "--db", db, stdin=request)
        assert outcome.code == 0, outcome.err
        answers.append(without_timings(json.loads(outcome.out)))
    assert answers == answers_of_python(db, step)


@needs_mcp
@steps
def test_mcp_answers_as_python_does(db: Path, step: int) -> None:
    async def talk(session: Any) -> list[Any]:
        return [await session.call_tool("retrieve", fields) for fields in REQUESTS[::step]]

    found = run_session(stdio_session(server_of(db)), talk)
    assert [text_of(answer) for answer in found] == texts_of_python(db, step)
