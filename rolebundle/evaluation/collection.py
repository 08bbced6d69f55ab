"""Read test collections in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``.

Thakur et al., "BEIR", NeurIPS 2021. The judgments may also be in ``qrels/test.tsv``, as in BEIR's
archives. They may have a header line, and the three columns of BEIR or the four of TREC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import ConfigurationError
from rolebundle.text.strict_json import NotStrictError, parse_strict

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
QRELS = ("qrels.tsv", "qrels/test.tsv")

_LAYOUT = f"a collection is a folder with {CORPUS}, {QUERIES} and {QRELS[0]} (or {QRELS[1]})"
_COLUMNS = "a line is: question id, tab, document id, tab, a whole number"


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions and their judgments: question id → document id → grade.

    ``without_relevant`` counts the questions without a relevant document. They are not asked,
    because all their rankings would be equally good.
    """

    name: str
    corpus: Path
    questions: dict[str, str]
    qrels: dict[str, dict[str, int]]
    without_relevant: int


def load_collection(folder: Path) -> Collection:
    """Read the collection in a folder.

    Raises:
        ConfigurationError: ``collection_incomplete`` if a file is missing, or
            ``collection_malformed`` with the file and the line.
    """
    corpus, queries = folder / CORPUS, folder / QUERIES
    qrels_file = next((folder / name for name in QRELS if (folder / name).is_file()), None)
    for name, path in ((CORPUS, corpus), (QUERIES, queries), (QRELS[0], qrels_file)):
        if path is None or not path.is_file():
            raise ConfigurationError("collection_incomplete", f"{folder}: has no {name}", _LAYOUT)
    assert qrels_file is not None
    texts = dict(_questions(queries))
    qrels: dict[str, dict[str, int]] = {}
    for question, document, grade in _judgments(qrels_file):
        qrels.setdefault(question, {})[document] = grade
    judged = {
        question: text
        for question, text in texts.items()
        if any(grade > 0 for grade in qrels.get(question, {}).values())
    }
    if not judged:
        raise ConfigurationError(
            "collection_malformed",
            f"{qrels_file}: judges no question of {QUERIES}",
            "use the same question ids in both files",
        )
    without_relevant = len(texts) - len(judged)
    judged_qrels = {question: qrels[question] for question in judged}
    return Collection(folder.resolve().name, corpus, judged, judged_qrels, without_relevant)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _malformed(
            path, 0, f"is not UTF-8 at byte {error.start}", "save it as UTF-8"
        ) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _questions(path: Path) -> Iterator[tuple[str, str]]:
    shape = 'a line is {"_id": "…", "text": "…"}'
    keys: set[str] = set()
    for number, line in _lines(path):
        try:
            record = parse_strict(line)
        except NotStrictError as error:
            raise _malformed(path, number, f"is not JSON: {error}", shape) from error
        if not isinstance(record, dict):
            raise _malformed(path, number, "is not a JSON object", shape)
        key, text = record.get("_id"), record.get("text")
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise _malformed(path, number, "_id: must be a text or a number", shape)
        try:
            task = RetrievalRequest.model_validate({"task": text}).task
        except ValidationError as error:
            message = mistakes_in(error, RetrievalRequest)[0].message
            raise _malformed(path, number, f"text: {message}", shape) from error
        if str(key) in keys:
            raise _malformed(path, number, f"repeats the _id {key}", "give each question its own")
        keys.add(str(key))
        yield str(key), task


def _judgments(path: Path) -> Iterator[tuple[str, str, int]]:
    first = True
    for number, line in _lines(path):
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) == 4:
            cells = [cells[0], *cells[2:]]
        grade = _grade(cells[2]) if len(cells) == 3 else None
        if grade is None:
            # A header line does not end with a number.
            if first and len(cells) == 3:
                first = False
                continue
            raise _malformed(path, number, f"is not a judgment: {line[:80]!r}", _COLUMNS)
        first = False
        yield cells[0].strip(), cells[1].strip(), grade


def _grade(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # A judgment below 0 counts as 0.
    return max(0, int(number)) if number == int(number) else None


def _malformed(path: Path, line: int, reason: str, hint: str) -> ConfigurationError:
    place = f"{path}: line {line}" if line else str(path)
    return ConfigurationError("collection_malformed", f"{place}: {reason}", hint)
