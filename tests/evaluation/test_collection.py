"""Collections in the BEIR layout, as they are found and as they are broken."""

from pathlib import Path

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.evaluation.questions import corpus_folder, load_collection

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
