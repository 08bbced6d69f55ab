"""A browser of the system, and pages of two corpora."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.browsing import ARGUMENTS, Visitor
from browser.hostile_pages import ROLE, TASK, hostile_corpus
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.interfaces.pages.views import answer_page, compare_page
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.compare import compare_roles
from support.corpora import NOW


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


def _pages(folder: Path, db: Path, role: str, other_role: str, **fields: Any) -> dict[str, Path]:
    """Each kind of page for a request of a role, in a file of the folder."""
    request = RetrievalRequest(role=role, now=NOW, **fields)
    with Engine(db, overlay_folders(corpus=db)) as engine:
        bundle = engine.retrieve(request)
        roles = (role, other_role)
        bundles = engine.retrieve_for_roles(
            request.model_copy(update={"role": None}), roles, without_role=True
        )
        pages = {"answer": answer_page(bundle), "roles": compare_page(compare_roles(bundles))}
    paths = {name: folder / f"{name}.html" for name in pages}
    for name, page in pages.items():
        paths[name].write_text(page, encoding="utf-8")
    return paths


@pytest.fixture(scope="package")
def sample(sample_with_vectors: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of the sample corpus."""
    return _pages(
        tmp_path_factory.mktemp("sample-pages"),
        sample_with_vectors,
        "mossline-security-reviewer",
        "mossline-docs-writer",
        task="Review the token refresh flow",
        limit=10,
    )


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of a corpus whose documents attack them."""
    folder = tmp_path_factory.mktemp("hostile")
    db = hostile_corpus(folder)
    return _pages(folder, db, ROLE, "code-reviewer", task=TASK, lexical_only=True)
