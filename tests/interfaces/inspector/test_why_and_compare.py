"""The views `why` and `compare` of the application."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html

from rolebundle.engine import Engine
from rolebundle.interfaces.inspector import Inspector, Parameters, Response
from support.corpora import build, document, set_policy
from support.overlay_files import write
from support.pages import text_of

FREE = {"scopes": ["engineering"], "access_level": "internal"}
POLICY = {"ada": FREE}
DOCUMENTS = [
    document("plan", ["the token plan", "more of the plan"], scope="engineering"),
    document("notes", ["token notes", "something else"], scope="engineering"),
]
NOW = "2026-11-01T00:00:00Z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    for role in ("one", "two", "three"):
        write(folder, role, vocabulary={"boost_phrases": [f"token {role}"]})
    set_policy(build(folder, DOCUMENTS, name="team.db"), POLICY)
    return folder


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[Inspector]:
    with Engine(folder / "team.db", [folder]) as engine:
        yield Inspector(engine, "/token/")


def response_of(app: Inspector, view: str, **parameters: str | list[str]) -> Response:
    fields: dict[str, str | list[str]] = {"task": "token plan", "now": NOW, "agent": "ada"}
    fields |= parameters
    pairs = [
        (name, value)
        for name, values in fields.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return app.answer(view, Parameters(pairs))


def columns(answer: Response) -> list[str]:
    assert answer.status == 200, text_of(answer.page)
    heads = html.fromstring(answer.page).xpath("//table[@class='compared']/thead//th")
    return [head.text_content() for head in heads[1:]]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("parameters", "roles"),
    [
        ({"role": "one", "other": "two"}, ["one", "two"]),
        ({"roles": "one, three,,two"}, ["one", "three", "two"]),
        ({"roles": ["two", "one"]}, ["two", "one"]),
        ({"role": "one", "other": "one", "roles": "two"}, ["one", "two"]),
    ],
)
def test_roles_are_named_in_several_ways(
    app: Inspector, parameters: dict[str, str | list[str]], roles: list[str]
) -> None:
    assert columns(response_of(app, "compare", **parameters)) == ["no role", *roles]


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "²", "9" * 5_000])
def test_a_limit_that_is_no_positive_whole_number_is_refused(app: Inspector, limit: str) -> None:
    assert response_of(app, "why", id="plan", limit=limit).status == 400


@pytest.mark.parametrize("view", ["answer", "why", "compare"])
def test_a_task_that_is_too_long_for_the_links_is_refused(app: Inspector, view: str) -> None:
    parameters: dict[str, str | list[str]] = {"id": "d0", "roles": "one,two"}
    for task, is_refused in (("ä" * 2_000, False), ("ä" * 2_001, True)):
        answer = response_of(app, view, task=task, **parameters)
        assert ("task_too_long" in answer.page) == is_refused
