"""A neutral overlay changes no answer."""

from pathlib import Path

import pytest

from support.commands import CHECKOUT, invoke

TASKS = (
    "Review the token refresh flow",
    "Can release 3.0 go out on Friday?",
    "How do I fly a kite at night?",
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("neutral") / "s.db"
    assert invoke("ingest", CHECKOUT / "sample_corpus", "--workers", "1", "--db", db).code == 0
    assert invoke("overlay", "new", "release-manager", "--db", db).code == 0
    return db


@pytest.mark.parametrize("lanes", [(), ("--lexical-only",)])
@pytest.mark.parametrize("task", TASKS)
def test_answers_are_as_without_a_role(sample: Path, task: str, lanes: tuple[str, ...]) -> None:
    common = ("retrieve", task, "--format", "json", "--limit", "30", "--db", sample, *lanes)
    now = ("--now", "2026-11-15")
    without = invoke(*common, *now).json()
    neutral = invoke(*common, *now, "--role", "release-manager").json()
    assert [
        (passage["chunk_id"], passage["scores"]["final"]) for passage in neutral["selected"]
    ] == [(passage["chunk_id"], passage["scores"]["final"]) for passage in without["selected"]]
