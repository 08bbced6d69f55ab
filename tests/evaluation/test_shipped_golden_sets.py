"""Each shipped overlay names a golden set, and the sample corpus passes it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import mean

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.evaluation.evaluation import evaluate, with_thresholds
from rolebundle.evaluation.questions import (
    FOLDER,
    find_golden_set,
    from_golden,
    load_golden,
    references_in,
)
from rolebundle.policy.overlays import list_overlays, load_role, overlay_folders
from rolebundle.resources import demo_overlays
from rolebundle.retrieval.compare import overlap

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ROLES = [entry.role_id for entry in list_overlays([demo_overlays()])]


def silent(_step: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="module")
def sample(sample_with_vectors: Path) -> Iterator[Engine]:
    with Engine(sample_with_vectors, overlay_folders()) as engine:
        yield engine


def profile_of(role: str) -> Path:
    name = load_role(role, overlay_folders()).overlay.eval_profile.golden_set_id
    path = find_golden_set(name, overlay_folders())
    assert path is not None, f"{role} names {name!r}"
    return path


# By default, `test_eval` runs one of the sets through the command line.
@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_set_of_an_overlay_passes(sample: Engine, role: str) -> None:
    path = profile_of(role)
    golden = load_golden(path)
    assert golden.role == role
    assert golden.fail_under["leak_rate"] == 0
    report = evaluate(sample, golden, None, NOW, silent)
    assert report.notes == []
    report = with_thresholds(report, golden.fail_under)
    assert report.governance is not None
    assert [check for check in report.governance.checks if not check.held] == []
    assert [floor for floor in report.floors if not floor.held] == []
    assert report.passed


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_generic_tasks_tell_the_roles_apart(sample: Engine, step: int) -> None:
    """By default every fourth role."""
    golden = load_golden(demo_overlays() / FOLDER / "mossline-roles-v1.toml")
    questions, _ = from_golden(golden, references_in(sample.workspace.corpus), None, NOW)
    answers: dict[str, list[RetrievalBundle]] = {}
    for role in ROLES[::step]:
        requests = (RetrievalRequest(task=q.task, role=role, now=NOW) for q, _ in questions)
        answers[role] = [*map(sample.retrieve, requests)]
        boosts = load_role(role, overlay_folders()).overlay.source_policy.domain_boosts
        own = {domain for domain, boost in boosts.items() if boost > 1}
        own_first = [answer.selected[0].metadata.domain in own for answer in answers[role]]
        # One of six each: "Plan release 3.0" begins with the docs plan for both reviewers, and
        # "How do sessions and tokens work?" with security's audit for a product strategist.
        assert mean(own_first) >= 5 / 6
    shared = [
        both.documents
        for first, second in combinations(answers.values(), 2)
        for both in map(overlap, first, second)
    ]
    assert mean(shared) <= 0.4
