"""Files that other programs have written are read as they should be, or skipped by their kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks/real_folder.py"


@pytest.mark.slow
def test_a_folder_of_the_kinds_that_people_have() -> None:
    result = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
