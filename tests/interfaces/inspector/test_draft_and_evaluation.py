"""The views `draft` and `evaluation`: what they ask, whom they answer, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from lxml import html

from rolebundle.engine import Engine
from rolebundle.interfaces.inspector import evaluation
from rolebundle.interfaces.inspector.application import Inspector, Parameters
from rolebundle.interfaces.inspector.views import FORMS, MAX_DRAFT_BYTES, VIEWS
from support.commands import invoke
from support.corpora import build, document
from support.overlay_files import write

TRUE = "The lifetime of an access token is fifteen minutes."
FALSE = "Elephants drink plenty of cold water every single day."
QUESTION = {"task": "lifetime of an access token", "expect": ["tokens"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, an overlay with a golden set, and two reports."""
    folder = tmp_path_factory.mktemp("inspected")
    build(folder, [document("tokens", [TRUE]), document("launch", ["The launch is in May."])])
    overlays = folder / "overlays"
    (overlays / "golden").mkdir(parents=True)
    write(overlays, "guard", eval_profile={"golden_set_id": "guard-set"})
    write(overlays, "lost", eval_profile={"golden_set_id": "no-such-set"})
    golden = overlays / "golden" / "guard-set.json"
    golden.write_text(json.dumps({"questions": [QUESTION], "fail_under": {"mrr": 0.5}}), "utf-8")
    db = next(folder.glob("*.db"))
    for name in ("first", "second"):
        report = invoke("eval", golden, "--db", db, "--lexical-only", "--json")
        (folder / f"{name}.json").write_text(report.out, encoding="utf-8")
    return folder


def inspector(folder: Path, agent: str | None = None) -> Inspector:
    engine = Engine(next(folder.glob("*.db")), [folder / "overlays"], agent=agent)
    reports = [folder / "first.json", folder / "second.json"]
    return Inspector(engine, "/token/", VIEWS, FORMS, reports)


@pytest.fixture
def app(folder: Path) -> Iterator[Inspector]:
    app = inspector(folder)
    yield app
    app.close()


def page_text(app: Inspector, view: str, **fields: str) -> str:
    answer = app.answer(view, Parameters(fields.items()))
    assert answer.status == HTTPStatus.OK, answer.page
    return " ".join(html.fromstring(answer.page).xpath("//main")[0].text_content().split())


def refused(app: Inspector, view: str, **fields: str) -> tuple[HTTPStatus, str]:
    answer = app.answer(view, Parameters(fields.items()))
    return answer.status, html.fromstring(answer.page).xpath("string(//div[@class='error']//code)")


def test_a_draft_is_verified_against_the_corpus(app: Inspector) -> None:
    assert "Verify a draft" in page_text(app, "draft")
    page = app.answer(
        "draft", Parameters({"draft": f"{TRUE}\r\n{FALSE}", "role": "guard"}.items())
    ).page
    tree = html.fromstring(page)
    assert tree.xpath("string(//h1)") == "The draft fails"
    classes = {a.text: a.get("class") for a in tree.xpath("//pre[@class='draft']/a")}
    assert (classes[FALSE], classes["The lifetime of an access token is "]) == ("bad", "good")
    assert tree.xpath("//textarea")[0].text.strip() == f"{TRUE}\n{FALSE}"
    assert tree.xpath("//option[@selected]/text()") == ["guard"]
    assert tree.xpath("//article[@class='source']//a/@href") == ["/token/document?id=tokens%230"]


def test_a_draft_for_publication_is_checked_for_secrets(app: Inspector) -> None:
    draft = f"{TRUE} Write to jane.miller@corp-mail.com."
    page = app.answer("draft", Parameters({"draft": draft, "publish": "true"}.items())).page
    tree = html.fromstring(page)
    assert tree.xpath("//h3/code[text()='personal_data']")
    assert "jane" not in tree.xpath("string(//pre[@class='draft'])")
    assert tree.xpath("//input[@name='publish']/@checked")


def test_a_long_draft_is_for_the_command(app: Inspector) -> None:
    status, code = refused(app, "draft", draft="é" * (MAX_DRAFT_BYTES // 2 + 1))
    assert (status, code) == (HTTPStatus.BAD_REQUEST, "draft_too_long")


def test_golden_sets_and_reports_are_listed(app: Inspector) -> None:
    page = app.answer("evaluation", Parameters([])).page
    links = html.fromstring(page).xpath("//main//td/a/@href | //main//th/a/@href")
    assert links == [
        "/token/evaluation?golden=guard", "/token/evaluation?report=1",
        "/token/evaluation?report=2",
    ]  # fmt: skip
    assert "there is no golden set &#39;no-such-set&#39;" in page


def test_a_golden_set_runs_on_the_corpus_and_changes_nothing(app: Inspector, folder: Path) -> None:
    before = next(folder.glob("*.db")).read_bytes()
    text = page_text(app, "evaluation", golden="guard")
    assert text.startswith("Evaluation of a golden set guard-set") and "Passed" in text
    assert next(folder.glob("*.db")).read_bytes() == before


def test_stored_reports_are_shown_and_compared(app: Inspector, folder: Path) -> None:
    assert "guard-set" in page_text(app, "evaluation", report="2")
    text = page_text(app, "evaluation", before="1", after="2")
    assert f"{folder / 'first.json'} → {folder / 'second.json'}" in text
    for number in ("3", "0", "../first.json"):
        status, _ = refused(app, "evaluation", report=number)
        assert status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
    for parameter in ("before", "after"):
        status, code = refused(app, "evaluation", **{parameter: "1"})
        assert (status, code) == (HTTPStatus.BAD_REQUEST, "parameter_missing")


def test_what_takes_long_is_for_the_command(
    app: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "MAX_QUESTIONS", 0)
        assert refused(app, "evaluation", golden="guard")[1] == "too_many_questions"
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "MAX_SECONDS", -1.0)
        patch.setattr(evaluation, "load_golden", _of_two_questions)
        assert refused(app, "evaluation", golden="guard")[1] == "evaluation_too_long"


def _of_two_questions(path: Path) -> object:
    golden = evaluation_load(path)
    (question,) = golden.questions
    return golden.model_copy(update={"questions": [question, question]})


evaluation_load = evaluation.load_golden


def test_an_agent_has_no_evaluations(folder: Path) -> None:
    app = inspector(folder, agent="bot")
    for fields in ({}, {"golden": "guard"}, {"report": "1"}):
        status, code = refused(app, "evaluation", **fields)
        assert (status, code) == (HTTPStatus.FORBIDDEN, "owner_only")
    app.close()
