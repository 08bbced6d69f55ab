"""Collections in the BEIR layout, as they are found and as they are broken."""

from pathlib import Path

import pytest

from rolebundle.errors import ConfigurationError
from rolebundle.evaluation.questions import load_collection

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
        "1 0 a 2\n2 0 b -1\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\n1\ta\t2\r\n\r\n2\tb\t0\r\n",
    ],
    ids=["header", "bare", "trec", "windows"],
)
def test_judgments_with_a_header_or_without(tmp_path: Path, qrels: str) -> None:
    collection = load_collection(write_collection(tmp_path, qrels))
    assert collection.questions == {"1": "one"}
    assert collection.qrels == {"1": {"a": 2}}
    assert collection.without_relevant == 2, "what is judged 0 or not at all is not asked"
    assert collection.name == tmp_path.name


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_collection(tmp_path, "1\ta\t1\n")
    (tmp_path / name).unlink()
    with pytest.raises(ConfigurationError, match=name) as caught:
        load_collection(tmp_path)
    assert caught.value.code == "collection_incomplete"


@pytest.mark.parametrize(
    ("qrels", "queries", "place"),
    [
        ("1\ta\t1\n1\tb\tgood\n", QUERIES, "qrels.tsv: line 2"),
        ("1\ta\n", QUERIES, "qrels.tsv: line 1"),
        ("1\ta\t0.5\nx\ty\tz\n", QUERIES, "qrels.tsv: line 2"),
        ("9\ta\t1\n", QUERIES, "judges no question"),
        ("1\ta\t1\n", '{"_id": "1"}\n', "queries.jsonl: line 1: text"),
        ("1\ta\t1\n", '{"text": "x"}\n', "queries.jsonl: line 1: _id"),
        ("1\ta\t1\n", "[1]\n", "queries.jsonl: line 1"),
        ("1\ta\t1\n", "{\n", "queries.jsonl: line 1"),
        ("1\ta\t1\n", QUERIES + QUERIES, "queries.jsonl: line 4: repeats"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, qrels: str, queries: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_collection(write_collection(tmp_path, qrels, queries))
    assert caught.value.code == "collection_malformed"
    assert place in caught.value.message
    assert caught.value.hint
