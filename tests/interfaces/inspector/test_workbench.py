"""The view `workbench`: what an overlay does in a corpus, and an edited copy that is tried or saved."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from lxml import html

from rolebundle.admin import Admin
from rolebundle.admin.audit import set_audit
from rolebundle.contracts.request import MAX_TASK_CHARACTERS
from rolebundle.engine import Engine
from rolebundle.interfaces.inspector.application import Inspector, Parameters, Response
from rolebundle.interfaces.inspector.views import FORMS, VIEWS
from rolebundle.interfaces.inspector.workbench import GENERAL_TASKS, MAX_TASKS
from rolebundle.interfaces.servers.loopback import ADDRESS
from rolebundle.policy.overlays import load_role, overlay_folders
from support.corpora import build, document
from support.inspecting import Inspecting, inspecting
from support.overlay_files import write
from support.pages import section

DOCUMENTS = [
    document("runs/rollback", ["roll the release back", "the canary of the release"], source_id="runbooks"),
    document("runs/deploy", ["deploy the release to the canary"], source_id="runbooks", document_type="runbook"),
    document("ads/launch", ["the release is the best release ever"], source_id="marketing"),
    document("<img src=x onerror=alert(1)>", ["the release notes"], source_id="notes"),
]  # fmt: skip
RULES = {
    "mission": "Decide about a release.",
    "vocabulary": {"boost_phrases": ["canary", "no such words"], "synonyms": {"x": ["rollback"]}},
    "source_policy": {
        "preferred_sources": [{"pattern": "runbooks", "boost": 2.0}, {"path": "nowhere/**"}],
        "forbidden_sources": [{"path": "ads/**", "reason": "it </b> sells"}],
        "document_type_boosts": {"runbook": 1.6},
    },
}
TASK = "Which release is it?"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    (tmp_path / "roles").mkdir()
    write(tmp_path / "roles", "releaser", **RULES)
    return build(tmp_path, DOCUMENTS, name="team.db")


@pytest.fixture
def app(db: Path) -> Iterator[Inspector]:
    with Engine(db, overlay_folders([db.parent / "roles"], db)) as engine:
        yield Inspector(engine, "/token/", VIEWS, FORMS)


def sent(app: Inspector, action: str, overlay: object = None, **fields: str) -> Response:
    """The answer to the form."""
    text = json.dumps(overlay or changed(), ensure_ascii=False)
    text = overlay if isinstance(overlay, str) else text
    values = {"role": "releaser", "do": action, "overlay": text, "tasks": TASK, "new_role": "copy"}
    return app.answer("workbench", Parameters([]), form=Parameters((values | fields).items()))


def changed() -> dict[str, object]:
    """The overlay, without what it forbids."""
    return {"version": "1.0", "mission": "Sell a release.", "vocabulary": RULES["vocabulary"]}


def page_of(answer: Response) -> html.HtmlElement:
    assert answer.status == HTTPStatus.OK, answer.page
    return html.fromstring(answer.page)


def page_for(app: Inspector, **parameters: str) -> html.HtmlElement:
    return page_of(app.answer("workbench", Parameters(parameters.items())))


def files(folder: Path) -> dict[str, bytes]:
    """Everything below a folder; what SQLite leaves beside a corpus does not count."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if not path.name.endswith(("-wal", "-shm"))
    }


def test_the_list_has_every_role_by_where_it_comes_from(app: Inspector, db: Path) -> None:
    write(db.parent / "roles", "broken", vocabulary=1, nonsense=2)
    page = page_for(app)
    own, shipped = section(page, "folder-1"), section(page, "folder-2")
    assert f"From {db.parent / 'roles'}" in own
    assert "Decide about a release." in own
    assert "never_matches" in own
    assert "Come with rolebundle" in shipped
    assert page.xpath("//a[@href='/token/workbench?role=releaser']")
    # All mistakes of a role that cannot be used, which leads nowhere.
    assert "nonsense: unknown key" in own and "vocabulary: must be" in own
    assert not page.xpath("//a[contains(@href, 'role=broken')]")


def test_an_overlay_says_what_its_rules_touch(app: Inspector) -> None:
    page = page_for(app, role="releaser")
    rules = section(page, "rules")
    assert "forbidden path ads/** it </b> sells 1 ads/launch.md this overlay" in rules
    assert "higher × 2 runbooks 2 runs/rollback.md runs/deploy.md this overlay" in rules
    assert "higher × 1.5 path nowhere/** none this overlay" in rules
    assert "higher × 1.6 document type runbook 1 runs/deploy.md this overlay" in rules
    words = section(page, "words")
    assert "canary: 2 no such words: none" in words
    assert "Synonyms of x this overlay rollback: 2" in words
    assert "never_matches" in section(page, "lint")
    values = section(page, "values")
    assert "retrieval_policy.min_score 0.1 default" in values


def test_inherited_values_name_their_overlay(app: Inspector, db: Path) -> None:
    write(db.parent / "roles", "child", extends="releaser", mission="Another.")
    page = page_for(app, role="child")
    assert "inherited from releaser" in section(page, "rules")
    assert json.loads(page.xpath("//textarea[@name='overlay']")[0].text_content()) == {
        "version": "1.0",
        "extends": "releaser",
        "mission": "Another.",
    }


def test_a_trial_shows_what_enters_and_leaves_and_writes_nothing(app: Inspector, db: Path) -> None:
    before = files(db.parent)
    page = page_of(sent(app, "try", tasks=f"{TASK}\r\n{TASK}\r\n\r\ncanary"))
    assert "2 tasks" in section(page, "tasks")
    entered = [row.text_content() for row in page.xpath("//tbody/tr[.//*[text()='entered']]")]
    assert any("ads/launch.md" in row for row in entered)
    changes = section(page, "task-1")
    assert "no longer: preferred source: runbooks ×2" in changes
    back = page_of(
        sent(app, "try", changed() | {"source_policy": {"allowed_sources": [{"path": "ads/**"}]}})
    )
    leaving = back.xpath("//tbody/tr[.//*[text()='left']]")
    assert len(leaving) == 4 and all("forbidden_source" in row.text_content() for row in leaving)
    assert files(db.parent) == before


def test_a_trial_of_the_copy_as_it_is_changes_nothing(app: Inspector) -> None:
    text = page_for(app, role="releaser").xpath("//textarea[@name='overlay']")[0].text_content()
    page = page_of(sent(app, "try", text))
    [row] = page.xpath("//section[@aria-labelledby='tasks']//tbody/tr")
    assert [cell.text_content() for cell in row.xpath("td")][:3] == ["0", "0", "0"]


def test_a_saved_copy_is_a_role_at_once(app: Inspector, db: Path) -> None:
    assert not db.with_name("team.db.overlays").exists()
    # The id of the form counts.
    page = page_of(sent(app, "save", changed() | {"role_id": "releaser"}))
    path = db.with_name("team.db.overlays") / "copy.json"
    assert str(path) in page.text_content()
    assert json.loads(path.read_text(encoding="utf-8")) == {"role_id": "copy", **changed()}
    saved = load_role("copy", overlay_folders([], db))
    assert saved.path == path and saved.overlay.mission == "Sell a release."
    [link] = [a.get("href") for a in page.iter("a") if a.text == TASK]
    view, _, query = link.removeprefix("/token/").partition("?")
    assert view == "answer"
    answer = page_of(app.answer(view, Parameters(parse_qsl(query))))
    assert answer.xpath("//select[@name='role']/option[@selected]/text()") == ["copy"]
    assert "Of this corpus" in section(page_for(app), "folder-2")


def test_no_file_is_overwritten_and_no_role_replaced(app: Inspector, db: Path) -> None:
    page_of(sent(app, "save"))
    before = files(db.parent)
    for existing_role in ("copy", "releaser", "code-reviewer"):
        page = page_of(
            sent(app, "save", {"version": "1.0", "mission": "x"}, new_role=existing_role)
        )
        assert "The copy was not saved" in page.text_content()
        assert "role_exists" in section(page, "lint")
    (db.with_name("team.db.overlays") / "link.json").symlink_to(db.parent / "outside.json")
    assert "role_exists" in page_of(sent(app, "save", new_role="link")).text_content()
    (db.with_name("team.db.overlays") / "link.json").unlink()
    assert files(db.parent) == before


@pytest.mark.parametrize("action", ["try", "save"])
def test_a_broken_copy_is_refused_with_all_mistakes(app: Inspector, db: Path, action: str) -> None:
    before = files(db.parent)
    broken = {"version": 3, "nonsense": 1, "vocabulary": {"boost_phrases": ["zzz"], "x": 1}}
    page = page_of(sent(app, action, broken))
    lint = section(page, "lint")
    for mistake in ("version: must be", "nonsense: unknown key", "vocabulary.x: unknown key"):
        assert mistake in lint
    assert "no passage has 'zzz'" in lint
    assert json.loads(page.xpath("//textarea[@name='overlay']")[0].text_content()) == broken
    for text in (
        "",
        "{",
        "[]",
        "null",
        '{"version": "1.0", "version": "1.0"}',
        "[" * 5000,
        "\ud800",
    ):
        assert "bad_json" in section(page_of(sent(app, action, text or " ")), "lint")
    assert files(db.parent) == before


@pytest.mark.parametrize("change", [{"extends": "nobody"}, {"extends": "copy"}])
def test_a_copy_of_what_is_not_there_is_refused(
    app: Inspector, db: Path, change: dict[str, str]
) -> None:
    before = files(db.parent)
    for action in ("try", "save"):
        assert "has no overlay" in section(page_of(sent(app, action, changed() | change)), "lint")
    assert files(db.parent) == before


def test_a_copy_with_an_error_of_lint_is_tried_but_not_saved(app: Inspector, db: Path) -> None:
    before = files(db.parent)
    useless = changed() | {"source_policy": {"forbidden_sources": [{"path": "**"}]}}
    assert "forbids_everything" in section(page_of(sent(app, "try", useless)), "lint")
    assert "not saved" in page_of(sent(app, "save", useless)).text_content()
    assert files(db.parent) == before


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "role",
    [
        "../x",
        "..",
        "/tmp/x",
        "x/y",
        "x\\y",
        "",
        " ",
        ".x",
        "x" * 65,
        "x" * 100_000,
        "X",
        "x\0y",
        "x\ny",
        "x\u202ey",
        "con",
        "nul.x",
        "lpt1",
        "\u00e9",
    ],
)
def test_an_id_that_leaves_the_folder_is_refused(app: Inspector, db: Path, role: str) -> None:
    before = files(db.parent)
    for action in ("try", "save"):
        page = page_of(sent(app, action, new_role=role))
        assert "bad_role_id" in section(page, "lint")
        assert not page.xpath("//section[@aria-labelledby='tasks']")
    assert files(db.parent) == before


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "tasks",
    ["", " \r\n ", "\n".join(map(str, range(MAX_TASKS + 1))), "x" * (MAX_TASK_CHARACTERS + 1)],
)
def test_a_trial_has_bounded_tasks(app: Inspector, tasks: str) -> None:
    page = page_of(sent(app, "try", tasks=tasks))
    assert section(page, "lint")
    assert not page.xpath("//section[@aria-labelledby='tasks']")


def test_the_tasks_are_those_of_the_address_or_of_the_golden_set(app: Inspector, db: Path) -> None:
    def tasks(*chosen: str) -> list[str]:
        answer = app.answer(
            "workbench", Parameters([("role", "releaser"), *(("task", task) for task in chosen)])
        )
        return page_of(answer).xpath("//textarea[@name='tasks']")[0].text_content().split("\n")

    assert tasks() == [*GENERAL_TASKS]
    assert tasks("one", "two") == ["one", "two"]
    with Admin(db) as admin:
        set_audit(admin.workspace, "on", "text")
    page_of(app.answer("answer", Parameters([("task", "asked"), ("role", "releaser")])))
    assert tasks() == ["asked"]
    folder = db.parent / "roles"
    (folder / "golden").mkdir()
    golden = folder / "golden" / "set.json"
    golden.write_text('[{"task": "golden", "expect": []}, {"task": "other", "role": "x"}]')
    write(folder, "releaser", eval_profile={"golden_set_id": "set"})
    assert tasks() == ["golden"]
    golden.write_text("[")
    assert tasks() == ["asked"]


def test_no_text_is_markup(app: Inspector) -> None:
    hostile = "</textarea><script>alert(1)</script><b style=color:red>\u202e"
    overlay = changed() | {"label": hostile, "vocabulary": {"boost_phrases": [hostile]}}
    overlay["source_policy"] = {"forbidden_sources": [{"pattern": hostile, "reason": hostile}]}
    pages = [
        page_for(app, role="releaser", task=hostile),
        page_of(sent(app, "try", overlay, tasks=f"release {hostile}", new_role="a")),
        page_of(sent(app, "try", overlay, new_role=f'"{hostile}')),
        page_of(sent(app, "save", overlay, tasks=hostile, new_role="b")),
        page_for(app, role="b"),
    ]
    for page in pages:
        assert not page.xpath("//script | //img | //b | //@style")
        assert "\u202e" not in page.text_content()
    text = pages[1].xpath("//textarea[@name='overlay']")[0].text_content()
    assert json.loads(text) == overlay


def test_the_view_of_an_agent_is_refused(db: Path) -> None:
    with Engine(db, overlay_folders([db.parent / "roles"], db), agent="ada") as engine:
        agent = Inspector(engine, "/token/", VIEWS, FORMS)
        before = files(db.parent)
        answers = [
            agent.answer("workbench", Parameters([])),
            agent.answer("workbench", Parameters([("role", "releaser")])),
            sent(agent, "try"),
            sent(agent, "save"),
        ]
        assert [answer.status for answer in answers] == [HTTPStatus.FORBIDDEN] * 4
        assert all("owner_only" in answer.page for answer in answers)
        assert not any("Decide about" in answer.page for answer in answers)
        assert files(db.parent) == before


def test_a_form_that_is_not_ours_is_refused(app: Inspector, db: Path) -> None:
    before = files(db.parent)
    assert sent(app, "").status == HTTPStatus.BAD_REQUEST
    assert sent(app, "delete").status == HTTPStatus.BAD_REQUEST
    assert sent(app, "save", role="").status == HTTPStatus.BAD_REQUEST
    assert sent(app, "save", role="../releaser").status == HTTPStatus.BAD_REQUEST
    assert app.answer("answer", Parameters([]), form=Parameters([])).status == HTTPStatus.NOT_FOUND
    assert files(db.parent) == before


def test_only_our_own_page_can_save(db: Path) -> None:
    with inspecting(db, (db.parent / "roles",)) as server:
        own = f"http://{ADDRESS}:{server.port}"
        before = files(db.parent)
        for path, headers, status in (
            (f"{server.path}workbench", {}, 403),
            (f"{server.path}workbench", {"Origin": "http://example.com"}, 403),
            (f"{server.path}workbench", {"Origin": "null"}, 403),
            (f"{server.path}workbench", {"Origin": own, "Host": "example.com"}, 421),
            (f"{server.path}answer", {"Origin": own}, 404),
            ("/workbench", {"Origin": own}, 403),
            (f"/{'x' * 43}/workbench", {"Origin": own}, 403),
            (f"{server.path}workbench?do=save", {"Origin": own, "Content-Type": "text/plain"}, 400),
        ):
            assert posted(server, path, headers) == status
        assert files(db.parent) == before
        assert posted(server, f"{server.path}workbench", {"Origin": own}) == 200
    assert db.with_name("team.db.overlays").joinpath("copy.json").exists()


def posted(server: Inspecting, path: str, headers: dict[str, str]) -> int:
    """The status of the answer to a form that would save an overlay."""
    form = {"role": "releaser", "do": "save", "overlay": json.dumps(changed()), "new_role": "copy"}
    connection = http.client.HTTPConnection(ADDRESS, server.port, timeout=30)
    try:
        own = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, urlencode(form), own | headers)
        return connection.getresponse().status
    finally:
        connection.close()
