"""A browser of the system, and the application over two corpora."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolebundle.interfaces.inspector import Parameters
from support.browsing import ARGUMENTS, Corpus, Visitor
from support.corpora import NOW
from support.hostile_pages import ROLE, TASK, document_ids, hostile_corpus
from support.inspecting import Inspecting, inspecting


# Playwright's loop counts as running in this thread until it is stopped. Tests of other folders
# have loops of their own, so it ends with the tests of this package.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """The system's Chromium; the tests are skipped without one."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("ROLEBUNDLE_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium: install the package chromium, or set ROLEBUNDLE_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


# A new context costs a second of processor time, a page in an old one a quarter.
@pytest.fixture(scope="package")
def visitor(browser: Any) -> Visitor:
    return Visitor(browser)


@pytest.fixture(scope="package")
def plain_visitor(browser: Any) -> Visitor:
    """A visitor without JavaScript."""
    return Visitor(browser, java_script_enabled=False)


@pytest.fixture(scope="package")
def auditor(browser: Any, axe: str) -> Visitor:
    """A visitor with axe-core, which the policy of our pages would not allow."""
    return Visitor(browser, bypass_csp=True)


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, which checks a page's accessibility; the tests are skipped without it."""
    path = Path(os.environ.get("ROLEBUNDLE_AXE", "")) / "axe.min.js"
    if not path.is_file():
        pytest.skip("no axe-core: run .ci/browser FOLDER, and set ROLEBUNDLE_AXE=FOLDER")
    return path.read_text(encoding="utf-8")


def _corpus(running: Inspecting, other_role: str, **request: str) -> Corpus:
    request = {"now": NOW.isoformat(), **request}
    app = running.app
    bundle = app.engine.retrieve(app.request(Parameters(request.items())))
    documents = document_ids(app.engine.workspace.path)
    chosen, rejection = bundle.selected[0], bundle.rejected[0]
    return Corpus(
        running,
        request,
        other_role,
        chosen.chunk_id,
        rejection.chunk_id,
        documents[:: len(documents) // 31 + 1],
    )


@pytest.fixture(scope="package")
def sample(sample_with_vectors: Path) -> Iterator[Corpus]:
    """The sample corpus."""
    with inspecting(sample_with_vectors) as running:
        yield _corpus(
            running,
            "mossline-docs-writer",
            task="Review the token refresh flow",
            role="mossline-security-reviewer",
            limit="10",
        )


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """A corpus whose documents attack the page."""
    db = hostile_corpus(tmp_path_factory.mktemp("hostile"))
    with inspecting(db) as running:
        yield _corpus(running, "code-reviewer", task=TASK, role=ROLE, lexical_only="true")
