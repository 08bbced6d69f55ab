from collections.abc import Iterator
from pathlib import Path

import pytest

from support.corpora import scratch_folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder for the module's corpus files, the same for all examples of a property."""
    with scratch_folder() as path:
        yield path
