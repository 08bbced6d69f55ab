"""How much the randomized tests do.

Properties are checked with ``EXAMPLES`` examples: 20, or the number in ``ROLEBUNDLE_EXAMPLES``. Tests
that kill processes or damage files have a sample that runs by default, and a full number of rounds
that only ``pytest -m slow`` runs.
"""

from __future__ import annotations

import os

import pytest

EXAMPLES = int(os.environ.get("ROLEBUNDLE_EXAMPLES", "20"))


def rounds(sample: int, full: int) -> pytest.MarkDecorator:
    """Give a test the parameter ``rounds``: ``sample`` by default, ``full`` if slow tests run."""
    return pytest.mark.parametrize("rounds", [sample, pytest.param(full, marks=pytest.mark.slow)])
