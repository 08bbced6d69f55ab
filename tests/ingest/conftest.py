"""A folder of documents and manifests, and a corpus beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.source_tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
