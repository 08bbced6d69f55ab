"""How much the randomized tests do.

Properties are checked with ``EXAMPLES`` examples: 6, or the number in ``ROLEBUNDLE_EXAMPLES``;
expensive ones with a third of it (``few_examples``). Tests that kill processes or damage files have
a sample that runs by default, and a full number of rounds that only ``pytest -m slow`` runs. So have
tests with many cases of one kind: the mark ``sample(step)``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = int(os.environ.get("ROLEBUNDLE_EXAMPLES", "6"))


FEW_EXAMPLES = max(1, EXAMPLES // 3)


def few_examples(test: Any) -> Any:
    """For a property whose examples take long, such as one that builds a corpus file for each."""
    # The profile of the settings is not loaded before.
    return settings(max_examples=FEW_EXAMPLES)(test)


def rounds(sample: int, full: int) -> pytest.MarkDecorator:
    """Give a test the parameter ``rounds``: ``sample`` by default, ``full`` if slow tests run."""
    return pytest.mark.parametrize("rounds", [sample, pytest.param(full, marks=pytest.mark.slow)])


lengths = pytest.mark.parametrize(
    "length", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["20k", "1M"]
)
"""Give a test of linear time the parameter ``length``, in characters."""


@contextmanager
def linear_time(length: int) -> Iterator[None]:
    """Assert that the block takes at most 20 microseconds of processor time for each character.

    That is about twenty times what an idle processor takes. A second is always allowed, because
    what the block needs may be imported in it.
    """
    started = process_time()
    yield
    assert process_time() - started < max(1, length / 50_000)
