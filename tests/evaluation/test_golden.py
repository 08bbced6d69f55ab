"""Golden sets: what they may say, and errors that name file, question, key and what is allowed."""

import json
from pathlib import Path

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.evaluation.questions import (
    corpus_folder,
    find_golden_set,
    load_collection,
    load_golden,
)

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
        ('[fail_under]\n"ndgc@10" = 0.5\n[[questions]]\ntask = "x"', "fail_under.ndgc@10: must be one of 'ndcg@10'", "leak_rate"),
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


# -- collections in the BEIR layout ----------------------------------------------------------------


QUERIES = '{"_id": "1", "text": "one"}\n{"_id": 2, "text": "two"}\n{"_id": "3", "text": "three"}\n'


def write_collection(
    folder: Path, qrels: str, queries: str = QUERIES, name: str = "qrels.tsv"
) -> Path:
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "words"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(qrels, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "qrels",
    [
        "query-id\tcorpus-id\tscore\n1\ta\t2\n2\tb\t-1\n",
        "1\ta\t2\n2\tb\t0\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\n1\ta\t2\r\n\r\n2\tb\t0\r\n",
    ],
    ids=["header", "bare", "windows"],
)
def test_judgments_with_a_header_or_without(tmp_path: Path, qrels: str) -> None:
    for name in ("qrels.tsv", "qrels/test.tsv"):
        folder = tmp_path / Path(name).parent.stem / "tiny"
        folder.mkdir(parents=True)
        golden = load_collection(write_collection(folder, qrels, name=name))
        # What is judged 0 or not at all is not asked.
        [question] = golden.questions
        assert (question.id, question.task, question.expect) == ("1", "one", {"a": 2})
        assert golden.name == "tiny"
        assert corpus_folder(folder, golden) == folder / "corpus.jsonl"


@pytest.mark.parametrize(
    ("qrels", "queries", "named"),
    [
        ("1\ta\t1\n1\tb\tgood\n", QUERIES, "qrels.tsv: line 2"),
        ("9\ta\t1\n", QUERIES, "must not be empty"),
        ("1\ta\t1\n", '{"_id": "1"}\n', "question 1: task"),
        ("1\ta\t1\n", "[1]\n", "queries.jsonl: line 1"),
        ("1\ta\t1\n", "{\n", "queries.jsonl: line 1"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, qrels: str, queries: str, named: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_collection(write_collection(tmp_path, qrels, queries))
    assert caught.value.code == "golden_malformed"
    assert named in caught.value.message
    assert caught.value.hint
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(ConfigurationError, match=r"queries.jsonl|qrels.tsv"):
        load_collection(tmp_path)
