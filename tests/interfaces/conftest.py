"""A sidecar on a small corpus."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.corpora import build, document
from support.served import Served


@pytest.fixture(scope="module")
def small_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [
        document("auth", ["the token refresh flow", "tokens expire after an hour"]),
        document("plan", ["the plan of release three", "half \u2028 line \u00e9 \U0001f600"]),
    ]
    return build(tmp_path_factory.mktemp("served"), documents)


@pytest.fixture(scope="module")
def shared_server(small_db: Path) -> Iterator[Served]:
    with Served("--db", small_db) as server:
        yield server
        remaining, err = server.end_of_input()
        assert remaining == []
        assert err == ""
