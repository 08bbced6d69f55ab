"""The examples run as their first lines say. `test_docs` runs the same program as a process."""

import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rolebundle.interfaces import client
from support.commands import CHECKOUT, Outcome, forked_program

AGENT = CHECKOUT / "examples" / "citing_agent.py"


@pytest.fixture
def answer(
    sample_without_vectors: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str, str], Outcome]:
    """Runs the example in this process, with a forked server."""

    monkeypatch.setattr(client, "Sidecar", partial(client.Sidecar, command=forked_program()))

    def run(task: str, role: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", [str(AGENT), str(sample_without_vectors), task, role])
        message = ""
        try:
            runpy.run_path(str(AGENT), run_name="__main__")
        except SystemExit as end:
            message = str(end.code)
        out, err = capsys.readouterr()
        return Outcome(int(bool(message)), out, err + message)

    return run


def test_the_citing_agent_cites_and_asks_why(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("Can a stolen tablet replay a token?", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert "— security/threat-model-offline-sync.md:28-38" in outcome.out
    assert "Rejected: " in outcome.out


def test_it_says_when_nothing_has_the_words(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("zxqv wvut", "mossline-security-reviewer")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("I found nothing to answer with (")


def test_an_unknown_role_gets_nothing(answer: Callable[[str, str], Outcome]) -> None:
    outcome = answer("Can a stolen tablet replay a token?", "no-such-role")
    assert outcome.code == 1
    assert outcome.out == ""
    assert "next:" in outcome.err
    assert "Traceback" not in outcome.err
