from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.corpora import scratch_folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the module's corpus files lie; one folder for all examples of a property."""
    with scratch_folder() as place:
        yield place
