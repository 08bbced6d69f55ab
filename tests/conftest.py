"""Settings and fixtures for all tests."""

import gc
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from rolebundle.resources import demo_overlays
from support import program_server
from support.scratch import write_in_memory
from support.templates import Template

# Tests start many processes of the command line. With cached bytecode they start in half the time,
# and so does pytest, which rewrites the tests' assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

write_in_memory()

# What was imported and collected stays until the end. To look through it again and again for
# garbage would cost a tenth of the time.
gc.set_threshold(50_000, 20, 50)

# For small matrices, a second thread of numpy mostly waits, and takes the processor from other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent
PROGRAM = CHECKOUT / "rolebundle"

# The roles of the sample corpus, which most tests ask.
os.environ["ROLEBUNDLE_OVERLAYS"] = str(demo_overlays())

# A contextual model takes long, also in the server of processes. Tests of the default turn it on.
os.environ["ROLEBUNDLE_MODEL"] = "static"


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        # Before xdist starts its workers: one server for all, which imports while they collect.
        program_server.share()
        config.option.tx = [program_server.forked_worker()] * len(config.option.tx)
    else:
        _prepare_for_tests()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Skip a test that itself calls what this system lacks. The program must not."""
    try:
        return (yield)
    except AttributeError as error:
        files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        own = [f for f in files if f.is_relative_to(TESTS) or f.is_relative_to(PROGRAM)]
        is_missing = error.obj in (os, signal) and not hasattr(os, "fork")
        if is_missing and own and own[-1].is_relative_to(TESTS):
            pytest.skip(str(error))
        raise


def _prepare_for_tests() -> None:
    # Imported here: without it, the process that only starts the workers does so a second earlier.
    from hypothesis import HealthCheck, settings

    from rolebundle.embedding import servers
    from support.amounts import EXAMPLES

    settings.register_profile(
        "default",
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=os.environ.get("CI") == "true",
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("default")
    program_server.fork_readers()
    # A model server that is down or busy is asked again after a pause.
    servers._FIRST_PAUSE = 0.01


@pytest.hookimpl(tryfirst=True)  # Before `-m` looks at the marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases: Counter[str] = Counter()
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample and not item.get_closest_marker("slow"):
            name = item.nodeid.partition("[")[0]
            if cases[name] % sample.args[0]:
                item.add_marker(pytest.mark.slow)
            cases[name] += 1


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and not among the tests: that saves an eighth of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker, send only the reports that are shown.

    The six messages that xdist sends of a test take longer than most tests.
    """
    if not hasattr(item.config, "workerinput") or item.config.option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of outside data; tests that need it are skipped if it does not exist."""
    folder = Path(os.environ.get("ROLEBUNDLE_SHARED", CHECKOUT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no outside data at {folder.name}/ beside the checkout")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep every test away from the user's corpus, cache and settings."""
    home = tmp_path_factory.getbasetemp() / "home"
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA"):
        os.environ[name] = str(home)
    names = ("COLUMNS", "NO_COLOR", "ROLEBUNDLE_DB", "ROLEBUNDLE_DEBUG", "ROLEBUNDLE_RERANK")
    for name in names:
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def sample_with_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus with the static model's vectors. Tests share it, so they only read it."""
    return _sample_corpus(tmp_path_factory.mktemp("sample"), program_server.SAMPLE_WITH_VECTORS)


@pytest.fixture(scope="session")
def sample_without_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus without vectors. Tests share it, so they only read it."""
    name = program_server.SAMPLE_WITHOUT_VECTORS
    return _sample_corpus(tmp_path_factory.mktemp("sample"), name, "--lexical-only")


def _sample_corpus(folder: Path, name: str, *options: str) -> Path:
    from support.commands import SAMPLE, invoke

    db = folder / "corpus.db"
    if made := program_server.shared_corpus(name):
        return Path(shutil.copyfile(made, db))
    assert invoke("ingest", SAMPLE, *options, "--workers", "1", "--db", db).code == 0
    return db


@pytest.fixture(scope="module")
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A folder that the function ``make`` of the test's module fills."""
    return Template(tmp_path_factory.mktemp("template"), request.module.make)


@pytest.fixture
def sample_db(sample_without_vectors: Path, tmp_path: Path) -> Path:
    """A copy of the sample corpus without vectors, which the test may change."""
    return Path(shutil.copy(sample_without_vectors, tmp_path / "sample.db"))


@pytest.fixture
def server() -> Iterator[Any]:
    """A model server on loopback (``support.embedding_server.EmbeddingServer``)."""
    from support.embedding_server import embedding_server

    with embedding_server() as running:
        yield running
