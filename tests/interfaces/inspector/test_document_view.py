"""The view `document`: what the indexes have of a document, for its owner and for an agent."""

from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from lxml import html

from rolebundle.admin import Admin
from rolebundle.admin.records import put_mark
from rolebundle.interfaces.inspector import Inspector, Parameters
from rolebundle.interfaces.pages.views import MAX_PASSAGES
from rolebundle.storage.documents import Scanned
from support.corpora import build, document
from support.fake_embedder import HashingProvider
from support.pages import section

DOCUMENTS = [
    document("new", ["the token plan of May"], supersedes=("old", "gone"), trust_tier="preferred"),
    document("old", ["the token plan of April", "a second part"], tags=("plans",)),
    document(
        "notes",
        ["planned work"],
        Scanned("quarantine", "hash", '["instruction_override"]', "[]", ""),
    ),
    document("long", [f"chapter {number}" for number in range(1, MAX_PASSAGES + 3)]),
    document(
        "hostile",
        ["</pre><script>alert(1)</script>"],
        title='"><img src=x onerror=alert(1)>',
        tags=("<svg onload=alert(1)>",),
        attributes=(("</td><b>key", ("javascript:alert(1)",)),),
    ),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("look"), DOCUMENTS, HashingProvider(), name="team.db")
    with Admin(path) as admin:
        put_mark(admin.workspace, "old#1", "disputed", "Ana", "the figures are of 2019")
    return path


def page_of(app: Inspector, **parameters: str) -> html.HtmlElement:
    answer = app.answer("document", Parameters(parameters.items()))
    assert answer.status == HTTPStatus.OK, answer.page
    return html.fromstring(answer.page)


def text_of(element: html.HtmlElement) -> str:
    return " ".join(" ".join(element.itertext()).split()).replace(" ,", ",")


def test_a_document_has_its_passages_metadata_and_what_limits_its_use(app: Inspector) -> None:
    page = page_of(app, id="old", chunk="old#1")
    passages = section(page, "passages")
    for expected in ("the token plan of April", "a second part", "old#0", "old#1"):
        assert expected in passages
    [chosen] = page.xpath("//article[contains(@class, 'chosen')]")
    assert "a second part" in text_of(chosen)
    assert "disputed by Ana: the figures are of 2019" in text_of(chosen)
    assert "source_id wiki" in section(page, "metadata")
    assert "Replaced by new" in section(page, "metadata")
    assert "A newer document replaces it." in section(page, "use")
    assert "Some of it is marked as wrong or disputed." in section(page, "use")


def test_an_agent_sees_nothing_of_a_quarantined_document(app: Inspector) -> None:
    answers = [
        app.answer("document", Parameters([("id", name), ("agent", "ada")]))
        for name in ("notes", "nil")
    ]
    assert [answer.status for answer in answers] == [HTTPStatus.NOT_FOUND] * 2
    assert "planned" not in answers[0].page


def test_a_long_document_has_pages(app: Inspector) -> None:
    first, second = page_of(app, id="long"), page_of(app, id="long", first=str(MAX_PASSAGES + 1))
    assert [len(page.xpath("//article")) for page in (first, second)] == [MAX_PASSAGES, 2]
    link = f"/token/document?id=long&first={MAX_PASSAGES + 1}#passages"
    assert first.xpath(f"//a[@href='{link}']")
    last = f"long#{MAX_PASSAGES + 1}"
    assert last in section(page_of(app, id="long", chunk=last), "passages")


def test_nothing_of_a_document_is_markup(app: Inspector) -> None:
    page = page_of(app, id="hostile")
    assert not page.xpath("//script | //img | //main//svg | //b")
    assert "javascript:alert(1)" in section(page, "metadata")
    assert not page.xpath("//a[starts-with(@href, 'javascript:')]")
    assert quote_plus('"><img') not in "".join(page.xpath("//@href"))
