from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.engine import Engine
from rolebundle.interfaces.inspector import Inspector


@pytest.fixture
def app(db: Path) -> Iterator[Inspector]:
    """The views of the corpus that the test's module makes, for its owner."""
    with Engine(db) as engine:
        yield Inspector(engine, "/token/")
