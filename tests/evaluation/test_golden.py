"""Golden sets: what they may say, and errors that name file, question, key and what is allowed."""

import json
from pathlib import Path

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.evaluation.questions import corpus_folder, find_golden_set, load_golden

COMPLETE_SET = """
role = "reviewer"
now = 2026-11-15
must_not_return = ["spam/**"]
corpus = "../docs"

[fail_under]
"ndcg@10" = 0.5

[[questions]]
id = "first"
task = "tokens"
expect = ["a.md", "b/**"]
must_not_return = ["c.md"]
expect_rejection = { "c.md" = "stale" }
expect_fallback = "healthy"

[[questions]]
task = "sessions"
role = "other"
limit = 3
now = 2026-01-01T12:00:00Z
expect = { "a.md" = 2 }
"""


def written(folder: Path, text: str, name: str = "set.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_json_as_an_object_or_as_a_list(tmp_path: Path) -> None:
    questions = [{"task": "tokens", "expect": ["a.md"]}]
    for values in (questions, {"questions": questions}):
        path = written(tmp_path, json.dumps(values), "set.json")
        assert load_golden(path).questions[0].expect == {"a.md": 1}
    assert corpus_folder(path, load_golden(path)) is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[[questions]]\ntask = "x"\nexpct = ["a"]', "question 1: expct: unknown key; did you mean expect?", "must_not_return"),
        ('rolle = "x"\n[[questions]]\ntask = "x"', "rolle: unknown key; did you mean role?", "questions"),
        ('[[questions]]\nid = "q7"\ntask = "x"\nexpect_rejection = { "a" = "stail" }', "question q7: expect_rejection.a: must be one of 'forbidden_source'", "conflict_downrank"),
        ('[[questions]]\nid = "q"', "question q: task: is missing", "keys"),
        ('[[questions]]\ntask = "x"\nexpect = { "a" = -1 }', "question 1: expect.a: must be 0 or more", "keys"),
        ('questions = []', "questions: must not be empty", "questions"),
        ('[[questions]]\ntask = "x"\nid = "a"\n[[questions]]\ntask = "y"\nid = "a"', "two have the id 'a'", "own"),
        ('[[questions]\n', "is not TOML", "JSON"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_golden(path)
    assert caught.value.code == "golden_malformed"
    assert caught.value.message.startswith(f"{path}: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("data", [None, b"\xff\xfe"])
def test_what_cannot_be_read(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "set.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=r"\[golden_unreadable\]"):
        load_golden(path)


def test_a_profile_is_found_by_its_name_alone(tmp_path: Path) -> None:
    folder = tmp_path / "overlays" / "golden"
    folder.mkdir(parents=True)
    path = written(folder, COMPLETE_SET, "mine-v1.toml")
    assert find_golden_set("mine-v1", (tmp_path / "none", tmp_path / "overlays")) == path
    assert find_golden_set("other", (tmp_path / "overlays",)) is None
    assert find_golden_set("../golden/mine-v1", (tmp_path / "overlays",)) is None
