"""Law 9 in commands of the owner: no agent reaches them, and an evaluation as an agent shows its view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolebundle.admin import Admin
from rolebundle.admin.records import set_policy
from rolebundle.engine import Engine
from rolebundle.interfaces.servers.operations import METHODS, TOOLS, Operations
from support.commands import invoke
from support.corpora import build, document

GOLDEN = """
agent = "AGENT"
[[questions]]
id = "q1"
task = "the token plan"
expect = { "salary" = 3, "plan" = 1 }
must_not_return = ["bonus"]
"""
HIDDEN = [document(name, ["the token plan"], scope="hr") for name in ("salary", "bonus")]
SEEN = [
    document(name, [f"the token plan of {name}"], scope="engineering") for name in ("plan", "note")
]


def test_no_interface_of_agents_has_commands_of_the_owner() -> None:
    owners = {"eval", "ingest", "purge", "audit", "policy", "quarantine", "embed"}
    owners |= {"decide", "decisions"}
    assert {tool.method for tool in TOOLS} & owners == {"ingest"}
    assert set(METHODS) & owners == {"ingest"}
    agents = Operations(Engine(Path("none.db"), agent="ada"), allow_write=True)
    assert "ingest" not in agents.offered_methods
    assert "--agent" not in invoke("eval", "--help").out


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """A corpus with hidden documents and one without them, under a policy."""
    paths = []
    for name, stored in (("whole", [*HIDDEN, *SEEN]), ("part", SEEN)):
        (tmp_path / name).mkdir()
        paths.append(build(tmp_path / name, stored, name="corpus.db"))
        with Admin(paths[-1]) as admin:
            policy = {"ada": {"scopes": ["engineering"], "access_level": "internal"}}
            set_policy(admin.workspace, json.dumps(policy), "json")
    return paths


@pytest.mark.parametrize("agent", ["eve", "ADA"])
def test_an_evaluation_as_an_unknown_agent_is_refused_with_the_same_bytes(
    pair: list[Path], agent: str
) -> None:
    golden = pair[0].parent.parent / "golden.toml"
    golden.write_text(GOLDEN.replace("AGENT", agent), encoding="utf-8")
    refusals = []
    for db in pair:
        outcome = invoke("eval", golden, "--lexical-only", "--json", "--db", db)
        refusals.append((outcome.code, outcome.out, outcome.err))
    assert refusals[0] == refusals[1]
    assert refusals[0][:2] == (4, "")
    assert "salary" not in refusals[0][2]


def test_an_evaluation_as_an_agent_measures_what_the_agent_gets(pair: list[Path]) -> None:
    golden = pair[0].parent.parent / "golden.toml"
    golden.write_text(GOLDEN.replace("AGENT", "ada"), encoding="utf-8")
    measured = []
    for db in pair:
        [result] = invoke("eval", golden, "--lexical-only", "--json", "--db", db).json()[
            "questions"
        ]
        result.pop("latency_ms")
        measured.append(result)
    assert measured[0] == measured[1]
    assert set(measured[0]["best"]) == {"plan", "note"}
