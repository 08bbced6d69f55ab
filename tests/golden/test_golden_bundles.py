"""Bundles that must not change by accident.

Each case is one role, one task, one mode and one detail level, asked through `rolebundle serve`.
A few bundles are kept whole in `bundles/`, so that a difference can be read. The others are kept
as digests in `digests.json`. A digest leaves out the wording of messages and all times, so that a
better sentence does not break it; values, codes and fields do.

If a change of the ranking is intended, write the files anew and read the difference:

    ROLEBUNDLE_UPDATE_GOLDEN=1 pytest tests/golden -m "slow or not slow"
"""

import json
import os
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.commands import invoke
from support.served import Served

HERE = Path(__file__).parent
WRITE = bool(os.environ.get("ROLEBUNDLE_UPDATE_GOLDEN"))
NOW = "2026-11-15T00:00:00+00:00"
DETAILS = ("full", "compact")
MODES: dict[str, dict[str, Any]] = {
    "lexical": {"lexical_only": True},
    "weighted": {"fusion": "weighted"},
    "rrf": {"fusion": "rrf"},
}
SAMPLE_ROLES = (
    "mossline-security-reviewer",
    "mossline-code-reviewer",
    "mossline-product-strategist",
    "mossline-docs-writer",
    "mossline-incident-responder",
)
SAMPLE_TASKS = (
    "What should we worry about before release 3.0?", "What do we know about offline sync?",
    "Attachment uploads", "API rate limits", "Plan release 3.0",
    "How do sessions and tokens work?", "Can a stolen tablet replay a token?",
    "Review the token refresh flow", "how to train a puppy", "What has changed since October?",
    "Two versions of a note", "ApiRefusedHigh fires",
)  # fmt: skip
REFERENCE_ROLES = (
    "competitive-analyst",
    "critic-reviewer",
    "docs-architect",
    "product-strategist",
    "security-reviewer",
)
REFERENCE_TASKS = (
    "What are the risks of our plugin system?", "How should we design authentication?",
    "Compare us with competitors", "Write the API documentation", "injection",
    "Prioritize the roadmap", "Review the architecture", "access control",
    "user research findings", "supply chain", "performance of the search",
    "What should we improve?",
)  # fmt: skip
COMPLETE_CASES = (
    "mossline-security-reviewer/0/weighted/full",
    "mossline-security-reviewer/6/lexical/compact",
    "mossline-security-reviewer/8/weighted/compact",
    "mossline-code-reviewer/7/weighted/compact",
    "mossline-code-reviewer/2/rrf/compact",
    "mossline-product-strategist/4/weighted/compact",
    "mossline-product-strategist/1/lexical/compact",
    "mossline-docs-writer/10/weighted/compact",
    "mossline-docs-writer/3/rrf/compact",
    "mossline-incident-responder/11/weighted/compact",
    "mossline-incident-responder/9/lexical/compact",
    "mossline-incident-responder/5/rrf/compact",
)
"""The cases that are kept as readable files: role/number of the task/mode/detail."""

TIMES = {"latency_ms", "lexical_ms", "rerank_ms", "semantic_ms"}
VOLATILE = {"absolute_path", "corpus_id", "inferred_at", *TIMES}
WORDING = frozenset({"message", "notes", "reasons_selected"})


def without(value: Any, names: frozenset[str]) -> Any:
    """The value without the fields of these names, at any depth."""
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return value


def digest(bundle: Any) -> str:
    text = json.dumps(without(bundle, WORDING), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def ask(server: Served, tasks: tuple[str, ...], case: str) -> Any:
    """The bundle of a case, without its times."""
    role, number, mode, detail = case.split("/")
    task = tasks[int(number)]
    fields = {"task": task, "role": role, "now": NOW, "detail": detail, **MODES[mode]}
    return without(server.ask("retrieve", **fields)["result"], VOLATILE)


def cases(roles: tuple[str, ...], tasks: tuple[str, ...]) -> list[str]:
    numbers = range(len(tasks))
    return ["/".join(map(str, case)) for case in product(roles, numbers, MODES, DETAILS)]


def check_digests(name: str, digests: dict[str, str]) -> None:
    path = HERE / "digests.json"
    stored = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if WRITE:
        stored[name] = digests
        path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    different = [case for case in digests if digests[case] != stored[name].get(case)]
    assert not different, f"{len(different)} of {len(digests)} bundles changed: {different[:8]}"
    assert digests.keys() == stored[name].keys()


def test_the_readable_bundles(sample_with_vectors: Path) -> None:
    with Served("--db", sample_with_vectors) as server:
        for case in COMPLETE_CASES:
            path = HERE / "bundles" / f"{case.replace('/', '--')}.json"
            bundle = ask(server, SAMPLE_TASKS, case)
            if WRITE:
                text = json.dumps(bundle, indent=1, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")
            assert json.loads(path.read_text("utf-8")) == bundle, case


@pytest.mark.slow
def test_every_bundle_of_the_sample_corpus(sample_with_vectors: Path) -> None:
    with Served("--db", sample_with_vectors) as server:
        digests = {
            case: digest(ask(server, SAMPLE_TASKS, case))
            for case in cases(SAMPLE_ROLES, SAMPLE_TASKS)
        }
    check_digests("sample corpus", digests)


@pytest.mark.slow
def test_every_bundle_of_the_knowledge_core_corpus(tmp_path: Path, shared: Path) -> None:
    folder = shared / "compat" / "knowledge-core"
    db = tmp_path / "corpus.db"
    assert invoke("ingest", folder / "corpus-divergence.json", "--db", db).code == 0
    with Served("--db", db, "--overlay-dir", folder / "roles") as server:
        digests = {
            case: digest(ask(server, REFERENCE_TASKS, case))
            for case in cases(REFERENCE_ROLES, REFERENCE_TASKS)
        }
    check_digests("Knowledge Core", digests)
