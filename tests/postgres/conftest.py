"""A server of PostgreSQL for these tests, or the one that already runs for all tests."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from support import databases
from support.commands import SAMPLE, invoke

IS_REQUIRED = os.environ.get("CI") == "true" and hasattr(os, "fork")
"""Then a server that cannot start is a failure, and not a reason to skip."""


@pytest.fixture(scope="session", autouse=True)
def server() -> Iterator[str]:
    if databases.IS_STORE:
        yield databases.server()
        return
    try:
        running = databases.running_server()
        host = running.__enter__()
    except Exception as error:
        if IS_REQUIRED:
            raise
        pytest.skip(f"no server of PostgreSQL could be started: {error}")
    yield host
    running.__exit__(None, None, None)


@pytest.fixture
def database(tmp_path: Path, server: str) -> Iterator[Callable[[], Path]]:
    """Makes a link to a new, empty database."""
    links: list[Path] = []
    numbers = count()

    def make(template: str = databases.EMPTY) -> Path:
        links.append(databases.create(tmp_path / f"team{next(numbers)}.link", template))
        return links[-1]

    yield make
    for link in links:
        databases.drop(link)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory, server: str) -> Path:
    """The sample corpus in a database. Tests share it, so they only read it."""
    link = databases.create(tmp_path_factory.mktemp("sample") / "sample.link")
    assert invoke("ingest", SAMPLE, "--workers", "1", "--db", link).code == 0
    return link
