"""A corpus of the sample documents, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.commands import SAMPLE, invoke


@pytest.fixture(scope="session")
def _sample_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("sample") / "sample.db"
    assert invoke("ingest", SAMPLE, "--lexical-only", "--workers", "1", "--db", db).code == 0
    return db


@pytest.fixture
def sample_db(_sample_image: Path, tmp_path: Path) -> Path:
    """The sample corpus without vectors, a test's own copy."""
    return Path(shutil.copy(_sample_image, tmp_path / "sample.db"))
