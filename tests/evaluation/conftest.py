"""A small corpus with vectors, and an engine that asks it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rolebundle.engine import Engine
from rolebundle.workspace import Workspace
from support.corpora import build, document
from support.fake_embedder import HashingProvider
from support.overlay_files import write


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    documents = [
        document("auth", ["the token refresh flow", "tokens expire after an hour"], domain="security"),
        document("plan", ["the plan of release three", "a token effort"], domain="product"),
        document("launch", ["tokens that nobody can steal"], source_id="marketing", domain="marketing"),
        document("old", ["the token refresh flow of last year"], domain="security"),
        document("new", ["the token refresh flow of this year"], domain="security", supersedes=("old",)),
    ]  # fmt: skip
    provider = HashingProvider()
    overlays = tmp_path / "overlays"
    overlays.mkdir()
    write(
        overlays,
        "guard",
        source_policy={
            "forbidden_sources": [{"pattern": "marketing"}],
            "domain_boosts": {"security": 1.6},
        },
    )
    write(overlays, "planner", source_policy={"domain_boosts": {"product": 4.0}})
    with Engine(Workspace(build(tmp_path, documents, provider), provider), [overlays]) as engine:
        yield engine
