"""False completions are never a success, and honest ones are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.admin.records import start_gate
from rolebundle.contracts.gate import GateReport
from rolebundle.engine import Engine
from rolebundle.workspace import Workspace
from support.gate_scenarios import (
    CONTRACT,
    FALSE_COMPLETIONS,
    HONEST_COMPLETIONS,
    Scenario,
    write,
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp("gate") / "corpus.db")
    yield workspace
    workspace.close()


def attempt(workspace: Workspace, folder: Path, scenario: Scenario) -> GateReport:
    contract = folder / CONTRACT
    contract.write_text(scenario.contract, encoding="utf-8")
    write(folder, scenario.before)
    if scenario.started:
        start_gate(workspace, contract)
    scenario.perform(folder)
    if scenario.edited is not None:
        contract.write_text(scenario.edited, encoding="utf-8")
    return Engine(workspace).gate_check(contract)


def test_there_are_enough_scenarios_and_each_has_a_name() -> None:
    assert len(FALSE_COMPLETIONS) >= 55
    assert len(HONEST_COMPLETIONS) >= 40
    names = [scenario.name for scenario in (*FALSE_COMPLETIONS, *HONEST_COMPLETIONS)]
    assert len(set(names)) == len(names)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scenario", FALSE_COMPLETIONS, ids=lambda scenario: scenario.name)
def test_a_false_completion_is_no_success(
    scenario: Scenario, workspace: Workspace, tmp_path: Path
) -> None:
    report = attempt(workspace, tmp_path, scenario)
    assert report.verdict != "success", report.model_dump_json(indent=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scenario", HONEST_COMPLETIONS, ids=lambda scenario: scenario.name)
def test_an_honest_completion_is_a_success(
    scenario: Scenario, workspace: Workspace, tmp_path: Path
) -> None:
    report = attempt(workspace, tmp_path, scenario)
    assert report.verdict == "success", report.message
