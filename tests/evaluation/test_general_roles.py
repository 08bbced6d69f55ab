"""The shipped general roles govern the folder of any software team without declared metadata."""

from collections.abc import Iterator
from functools import cache

import pytest

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.resources import data_folder
from rolebundle.text.paths import matches
from support.commands import invoke

FOLDER = data_folder("overlays")
ROLES = [
    "code-reviewer",
    "incident-responder",
    "product-manager",
    "security-reviewer",
    "technical-writer",
]

OWN = {
    "code-reviewer": ("CONTRIBUTING.md", "docs/adr/*", "src/**", "tests/**"),
    "incident-responder": ("ops/**",),
    "product-manager": ("roadmap.md", "proposals/*", "CHANGELOG.md"),
    "security-reviewer": ("Security.md", "docs/security/*", "src/auth/*", "tests/*auth*"),
    "technical-writer": ("README.md", "docs/guide/*", "docs/faq.md", "CHANGELOG.md"),
}
"""The documents of a role's own domain, by globs."""

FILES_OF_A_TEAM = {
    "README.md": "# Parcel\n\nParcel prints labels for a shop. Install it, then print a label.",
    "CONTRIBUTING.md": "# Contributing\n\nEach pull request has a test and one reviewer. We follow "
    "the coding style of the team. Questions belong in the pull request.",
    "CHANGELOG.md": "# Changelog\n\n## 2.1\n\nLabels have a bar code. New: returns.",
    "Security.md": "# Security policy\n\nReport a vulnerability by mail. We fix the newest version. "
    "A stolen API token lets others print.",
    "roadmap.md": "# Roadmap\n\nNext quarter: returns. Later: customs forms. Price: ten cents.",
    "proposals/returns.md": "# Proposal: returns\n\nMotivation: users send goods back. Goals and "
    "what is not a goal. More support. Decision by May.",
    "proposals/customs.md": "# Proposal: customs forms\n\nUse cases of users who sell abroad.",
    "docs/guide/getting-started.md": "# Getting started\n\nInstall the program and print a label, "
    "step by step.",
    "docs/guide/printers.md": "# Printers\n\nThis page describes the supported printers.",
    "docs/faq.md": "# Frequently asked questions\n\nWhat should I do if a label is too small?",
    "docs/adr/0001-queue.md": "# Decision 1: a queue\n\nWe put print jobs in a queue. Context: the "
    "jobs must not get lost. Consequences: an old job may be printed late.",
    "docs/security/threat-model.md": "# Threat model\n\nAn attacker with a token can print labels "
    "at our cost. Addresses may leak. Access control is weak for guests.",
    "ops/runbooks/printer-queue.md": "# Runbook: the queue is full\n\nThe alert fires if jobs wait. "
    "Check the worker. Restart it. Rollback: stop the worker.",
    "ops/postmortems/2026-03-outage.md": "# Post-mortem: outage in March\n\nWhat happened: the "
    "version 2.0 filled the disk. Root cause: no limit. What we learned: watch the disk.",
    "ops/on-call.md": "# On-call\n\nWho is called in an incident, and how.",
    "src/label.py": '"""Labels."""\n\n\ndef render(order):\n    """The label of an order."""\n'
    "    return order.address\n",
    "src/worker.py": '"""Prints what waits in the queue."""\n\n\ndef run(queue):\n'
    "    return [job.print() for job in queue]\n",
    "src/auth/token.py": '"""Access tokens."""\n\n\ndef check(token):\n    return token.valid\n',
    "tests/test_label.py": "from label import render\n\n\ndef test_render():\n    assert render(1)\n",
    "tests/test_auth.py": "from auth.token import check\n\n\ndef test_check():\n    assert check(1)\n",
}

IN_EVERY_FILE = "What we need to know first before the next release: worries, open points, risks."
"""So that the generic tasks cannot choose among the files."""

TASKS = [
    "What should we worry about before the next release?",
    "What do I need to know first?",
    "What is open, and what are the risks?",
    "Which points are open before the release?",
]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("team")
    tree = folder / "parcel"
    for name, text in FILES_OF_A_TEAM.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        comment = "# " if path.suffix == ".py" else ""
        path.write_text(f"{text}\n\n{comment}{IN_EVERY_FILE}\n", encoding="utf-8")
    db = folder / "team.db"
    assert invoke("ingest", tree, "--workers", "1", "--db", db).code == 0
    with Engine(db, [FOLDER]) as engine:
        yield engine


def is_own(role: str, path: str | None) -> bool:
    return any(matches(glob, path or "") for glob in OWN[role])


@pytest.mark.parametrize("lexical_only", [pytest.param(False, marks=pytest.mark.slow), True])
def test_generic_tasks_begin_with_the_role_s_own_domain(team: Engine, lexical_only: bool) -> None:
    @cache
    def first(task: str, role: str | None) -> str | None:
        request = RetrievalRequest(task=task, role=role, lexical_only=lexical_only)
        return team.retrieve(request).selected[0].uri

    pairs = [(role, task) for role in ROLES for task in TASKS]
    own = [(role, task) for role, task in pairs if is_own(role, first(task, role))]
    assert len(own) >= 0.75 * len(pairs), [pair for pair in pairs if pair not in own]
    without = [(role, task) for role, task in pairs if is_own(role, first(task, None))]
    assert len(without) < 0.5 * len(pairs)
