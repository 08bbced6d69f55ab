"""A question asks for prose, unless it asks for code or tests or names identifiers."""

from __future__ import annotations

import pytest

from rolebundle.text.asked_kind import asked_kind, kind_of_text
from support.amounts import lengths, linear_time


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("How do I do a switchover?", "prose"),
        ("How do I upgrade PostgreSQL?", "prose"),
        ("How do I implement my own spawner?", "prose"),
        ("How do I mock responses in my tests?", "prose"),
        ("Users cannot log in. What can I check?", "prose"),
        ("Wie mache ich ein Backup?", "prose"),
        ("Where is the retry delay implemented?", "code"),
        ("Where are curl commands parsed?", "code"),
        ("Which function staples OCSP?", "code"),
        ("Which test covers pruning?", "tests"),
        ("Is there a test for recursive models?", "tests"),
        ("tests for nested blueprints", "tests"),
        ("TestMatchWildcard", "tests"),
        ("How does it avoid two calls at once?", None),
        ("Can I pass retry_delay twice?", None),
        ("What raises httpx.InvalidURL?", None),
        ("LineDecoder flush", None),
        ("Attachment uploads", None),
        ("Review the token refresh flow", None),
        ("", None),
    ],
)
def test_the_kind_that_a_task_asks_for(task: str, kind: str | None) -> None:
    assert asked_kind(task) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app.py", "code"),
        ("src/latest.py", "code"),
        ("tests/app.py", "tests"),
        ("src/borg/testsuite/prune.py", "tests"),
        ("cache_test.go", "tests"),
        ("src/app.spec.ts", "tests"),
        ("test_app.py", "tests"),
        ("conftest.py", "tests"),
        ("paper/main.tex", "prose"),
    ],
)
def test_the_kind_of_code(path: str, kind: str) -> None:
    assert kind_of_text(path, is_code=True) == kind
    assert kind_of_text(path, is_code=False) == "prose"


@lengths
def test_a_long_task_takes_linear_time(length: int) -> None:
    for piece in ("where ", "which test ", "aA", "how.", " ", "tests ", "x"):
        with linear_time(length):
            asked_kind(piece * (length // len(piece)))
