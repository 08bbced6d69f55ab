"""A folder of documents and manifests beside an empty corpus."""

import pytest

from support.source_tree import Tree


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)
