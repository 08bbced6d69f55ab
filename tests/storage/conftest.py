"""An empty corpus that is open to write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.storage.corpus import Corpus
from rolebundle.storage.writing import open_writer


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    with open_writer(tmp_path / "corpus.db") as opened:
        yield opened
