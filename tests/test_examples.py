"""The examples run as their first lines say. `test_docs` runs the same program as a process."""

from __future__ import annotations

import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

from rolebundle.interfaces import client
from support.commands import CHECKOUT, Outcome, forked_program

AGENT = CHECKOUT / "examples" / "citing_agent.py"


class Example:
    """The example in this process, with a forked server."""

    def __init__(self, db: Path, patch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]):
        self._db, self._patch, self._output = db, patch, output

    def run(self, task: str, role: str) -> Outcome:
        sidecar = partial(client.Sidecar, command=forked_program())
        self._patch.setattr(client, "Sidecar", sidecar)
        self._patch.setattr(sys, "argv", [str(AGENT), str(self._db), task, role])
        message = ""
        try:
            runpy.run_path(str(AGENT), run_name="__main__")
        except SystemExit as end:
            message = str(end.code)
        out, err = self._output.readouterr()
        return Outcome(int(bool(message)), out, err + message)


@pytest.fixture
def example(
    sample_without_vectors: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Example:
    return Example(sample_without_vectors, monkeypatch, capsys)


def test_the_citing_agent_cites_and_asks_why(example: Example) -> None:
    outcome = example.run("Can a stolen tablet replay a token?", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert "— security/threat-model-offline-sync.md:28-38" in outcome.out
    assert "Rejected: " in outcome.out


def test_it_says_when_nothing_has_the_words(example: Example) -> None:
    outcome = example.run("zxqv wvut", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("I found nothing to answer with (")


def test_an_unknown_role_gets_nothing(example: Example) -> None:
    outcome = example.run("Can a stolen tablet replay a token?", "no-such-role")
    assert outcome.code == 1
    assert outcome.out == ""
    assert "next:" in outcome.err
    assert "Traceback" not in outcome.err
