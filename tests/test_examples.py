"""The examples run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import CHECKOUT

AGENT = CHECKOUT / "examples" / "citing_agent.py"


def ran(db: Path, task: str, role: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, AGENT, db, task, role],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def db(sample_without_vectors: Path) -> Path:
    return sample_without_vectors


def test_the_citing_agent_cites_and_asks_why(db: Path) -> None:
    done = ran(db, "Can a stolen tablet replay a token?", "security-reviewer")
    assert (done.returncode, done.stderr) == (0, "")
    assert "— security/threat-model-offline-sync.md:28-38" in done.stdout
    assert "Rejected: " in done.stdout


def test_it_says_when_nothing_has_the_words(db: Path) -> None:
    done = ran(db, "zxqv wvut", "security-reviewer")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("I found nothing to answer with (")


def test_an_unknown_role_gets_nothing(db: Path) -> None:
    done = ran(db, "Can a stolen tablet replay a token?", "no-such-role")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "next:" in done.stderr
    assert "Traceback" not in done.stderr
