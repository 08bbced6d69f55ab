"""Every view in a browser: nothing of a document becomes part of a page, and all can be read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rolebundle.interfaces.inspector import VIEWS, Parameters
from rolebundle.interfaces.pages.views import answer_page
from support.browsing import Corpus, Visitor

PARAMETERS: dict[str, Callable[[Corpus], list[dict[str, str]]]] = {
    "": lambda corpus: [{}, corpus.request],
    "answer": lambda corpus: [corpus.request],
    "why": lambda corpus: [
        {**corpus.request, "id": corpus.selected},
        {**corpus.request, "id": corpus.rejected},
    ],
    "compare": lambda corpus: [{**corpus.request, "other": corpus.other_role}],
    "document": lambda corpus: [{"id": document_id} for document_id in corpus.document_ids],
    "corpus": lambda corpus: [{}],
}
"""Of each view, the addresses that are tested."""


for_each_view = pytest.mark.parametrize(
    ("view", "name"), [(view, name) for view in VIEWS for name in ("sample", "hostile")]
)
"""Give a test each view on each corpus."""


@pytest.fixture
def corpus(request: pytest.FixtureRequest, name: str) -> Corpus:
    """The corpus of this name."""
    return request.getfixturevalue(name)


def addresses(corpus: Corpus, view: str) -> Iterator[str]:
    for parameters in PARAMETERS[view](corpus):
        yield corpus.running.to(view, **parameters)


def test_every_view_is_tested() -> None:
    assert set(VIEWS) <= set(PARAMETERS)


@pytest.mark.slow
@for_each_view
def test_a_view_is_text_and_its_own_parts_only(
    visitor: Visitor, plain_visitor: Visitor, corpus: Corpus, view: str
) -> None:
    for address in addresses(corpus, view):
        visitor.visit(address)
        text = visitor.text()
        assert "This cannot be shown" not in text
        assert visitor.page_problems(corpus.running.path) == []
        # The same page, so that times are equal.
        plain_visitor.visit(address, visitor.source)
        assert plain_visitor.text() == text
        assert plain_visitor.page_problems(corpus.running.path) == []


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
@for_each_view
def test_a_view_is_accessible(auditor: Visitor, axe: str, corpus: Corpus, view: str) -> None:
    for address in list(addresses(corpus, view))[:5]:
        auditor.visit(address)
        assert violations(auditor, axe) == []


@pytest.mark.slow
def test_an_answer_in_a_file_loads_nothing(
    visitor: Visitor, hostile: Corpus, tmp_path: Path
) -> None:
    app = hostile.running.app
    bundle = app.engine.retrieve(app.request(Parameters(hostile.request.items())))
    path = tmp_path / "answer.html"
    path.write_text(answer_page(bundle), encoding="utf-8")
    visitor.visit(path.as_uri())
    assert visitor.page_problems() == []
    assert visitor.page.locator("a:not(.skip):not([href^='#']), form, button").count() == 0
