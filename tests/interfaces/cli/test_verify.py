"""`rolebundle verify`: what a person reads, exit codes, and what a bundle's file may be."""

from pathlib import Path

import pytest

from rolebundle.engine import Engine
from rolebundle.errors import UsageError
from rolebundle.interfaces.servers.operations import Operations
from support.commands import invoke
from support.corpora import build, document
from support.embedding_server import embedding_server

LIFETIME = "The lifetime of an access token is fifteen minutes."
FALSE = "Elephants drink plenty of cold water every single day."


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("verify"), [document("tokens", [LIFETIME])])


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft.md"
    path.write_text(f"# Title\n\n{LIFETIME[:-1]} [1]. {FALSE[:-1]} [2].\n", encoding="utf-8")
    return path


def test_a_person_reads_the_verdict_then_what_fails_and_where(db: Path, draft: Path) -> None:
    outcome = invoke("verify", draft, "--chunk", "tokens#0", "--db", db)
    assert (outcome.code, outcome.err) == (1, "")
    first, *findings = outcome.out.splitlines()
    assert first == "verdict: failed: 1 unknown_citation; checked: 2 citations, 1 figure"
    column = len(f"{LIFETIME[:-1]} [1]. {FALSE[:-1]} ") + 1
    assert f"FAILS 3:{column} unknown_citation; [2]" in findings
    assert "remedy: " in outcome.out


def test_only_a_draft_in_which_nothing_is_wrong_has_the_exit_code_0(
    db: Path, tmp_path: Path
) -> None:
    for text, code in ((LIFETIME, 0), (FALSE, 1), ("# Only a heading\n", 1)):
        path = tmp_path / "draft.md"
        path.write_text(text, encoding="utf-8")
        outcome = invoke("verify", path, "--chunk", "tokens#0", "--db", db, "--json")
        assert outcome.code == code, outcome.out
        assert (outcome.json()["verdict"] == "clean") == (code == 0)


def test_publish_without_a_level_is_for_the_public(db: Path, tmp_path: Path) -> None:
    path = tmp_path / "draft.md"
    path.write_text(f"{LIFETIME} The password is password=Xk9mQ2vLp81zzT\n", encoding="utf-8")
    for level in ([], ["public"], ["internal"]):
        outcome = invoke("verify", path, "--chunk", "tokens#0", "--db", db, "--publish", *level)
        assert outcome.code == 1 and "secret_in_draft" in outcome.out
    assert "secret_in_draft" not in invoke("verify", path, "--chunk", "tokens#0", "--db", db).out


def test_redact_prints_what_is_left_of_the_draft(db: Path, tmp_path: Path) -> None:
    path = tmp_path / "draft.md"
    path.write_text(f"{LIFETIME}\n\n{FALSE} [2]\n", encoding="utf-8")
    common = ("verify", path, "--chunk", "tokens#0", "--db", db)
    _, _, draft_left = invoke(*common, "--redact").out.partition("the draft without what fails:")
    assert LIFETIME in draft_left and FALSE not in draft_left


def test_a_bundle_from_a_file(db: Path, draft: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    retrieved = invoke(
        "retrieve", "lifetime of a token", "--format", "json", "--lexical-only", "--db", db
    )
    bundle.write_text(retrieved.out, encoding="utf-8")
    answer = invoke("verify", draft, "--bundle", bundle, "--db", db, "--json", "--redact").json()
    assert [passage["chunk_id"] for passage in answer["passages"]] == ["tokens#0"]
    assert FALSE[:-1] not in answer["validated_draft"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", '{"selected": 1}', "\ufeff{}", "{" * 99_999]
)
def test_a_file_that_is_no_bundle(db: Path, draft: Path, tmp_path: Path, content: str) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_text(content, encoding="utf-8")
    outcome = invoke("verify", draft, "--bundle", bundle, "--db", db)
    assert outcome.code == 2
    assert "bundle" in outcome.err


def test_a_judge_is_a_setting_and_no_field(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "draft.md"
    path.write_text(LIFETIME, encoding="utf-8")
    with embedding_server() as server:
        answer = {"choices": [{"message": {"content": "No"}}]}
        server.faults["/v1/chat/completions"] = lambda handler: handler.json(answer)
        monkeypatch.setenv("ROLEBUNDLE_JUDGE", "ollama:m")
        monkeypatch.setenv("ROLEBUNDLE_JUDGE_URL", server.url)
        outcome = invoke("verify", path, "--db", db)
    assert outcome.code == 0
    assert "opinion of ollama:m: no 1:1" in outcome.out
    with Engine(db) as engine, pytest.raises(UsageError) as caught:
        Operations(engine).call("verify", {"draft": LIFETIME, "judge": "openai:m"})
    assert caught.value.code == "bad_request"
