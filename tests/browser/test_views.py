"""Every page in a browser: nothing of a document becomes part of it, and all can be read."""

from pathlib import Path

import pytest

from browser.browsing import Visitor

for_each_page = pytest.mark.parametrize(
    ("page", "corpus"),
    [(page, corpus) for page in ("answer", "roles") for corpus in ("sample", "hostile")],
)
"""Give a test each page of each corpus."""


@pytest.fixture
def path(request: pytest.FixtureRequest, page: str, corpus: str) -> Path:
    """The file of this page."""
    pages: dict[str, Path] = request.getfixturevalue(corpus)
    return pages[page]


@pytest.mark.slow
@for_each_page
def test_a_page_is_text_and_its_own_parts_only(
    visitor: Visitor, plain_visitor: Visitor, path: Path
) -> None:
    visitor.visit(path)
    assert visitor.page_problems() == []
    assert visitor.page.locator("a:not(.skip):not([href^='#']), form, button").count() == 0
    plain_visitor.visit(path)
    assert plain_visitor.text() == visitor.text()
    assert plain_visitor.page_problems() == []


# Rows after the first ones are made like these, and axe-core takes long for each.
_PREPARE = """() => {
    document.querySelectorAll(".rows > li:nth-child(n+4), tbody > tr:nth-child(n+12)").forEach(
        row => row.remove()
    );
    document.querySelectorAll("details").forEach(part => { part.open = true });
    // Or what is below the window would not be laid out, and so not be checked.
    document.querySelectorAll(".passage").forEach(part => { part.style.contentVisibility = "visible" });
}"""


def violations(auditor: Visitor, axe: str) -> list[str]:
    """What axe-core finds serious, also in what is folded, in light and in dark."""
    page, found = auditor.page, []
    page.evaluate(_PREPARE)
    page.evaluate(axe)
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        options = {"resultTypes": ["violations"], **rules}
        result = page.evaluate("options => axe.run(document, options)", options)
        found += [
            f"{scheme} {violation['id']}: {violation['help']}: {node['html'][:300]}"
            for violation in result["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"][:5]
        ]
    return found


@pytest.mark.slow
@for_each_page
def test_a_page_is_accessible(auditor: Visitor, axe: str, path: Path) -> None:
    auditor.visit(path)
    assert violations(auditor, axe) == []
