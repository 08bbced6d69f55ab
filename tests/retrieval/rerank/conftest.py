"""A corpus for answers that are reranked."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.corpora import build
from support.fake_embedder import HashingProvider
from support.reranking import DOCUMENTS


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return build(tmp_path, DOCUMENTS, HashingProvider(), name="team.db")
