"""Questions with their judgments, from a collection or a golden set, resolved in a corpus.

A collection is a folder in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``
(Thakur et al., "BEIR", NeurIPS 2021). The judgments may also be in ``qrels/test.tsv``, as in BEIR's
archives. They may have a header line, and the three columns of BEIR or the four of TREC.

A golden set is a TOML or JSON file of :class:`~rolebundle.contracts.evaluation.GoldenSet`::

    role = "security-reviewer"
    now = 2026-11-15

    [[questions]]
    task = "Can a stolen tablet replay a token?"
    expect = { "security/threat-model-offline-sync.md" = 3, "security/**" = 1 }
    must_not_return = ["marketing/**"]
    expect_rejection = { "product/competitive-notes-2026.md" = "forbidden_source" }

A reference is an id, a path, or a glob over either.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.base import mistakes_in
from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import ConfigurationError, RolebundleError, UsageError
from rolebundle.policy.overlays import load_role
from rolebundle.storage import documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import passage_by_id, passages_at_lines
from rolebundle.text.paths import matches
from rolebundle.text.strict_json import NotStrictError, parse_strict

MAX_BYTES = 256 << 20
FOLDER = "golden"
"""The folder of golden sets beside the overlays."""
_SUFFIXES = (".toml", ".json")

_CORPUS, _QUERIES = "corpus.jsonl", "queries.jsonl"
_QRELS = ("qrels.tsv", "qrels/test.tsv")
_LAYOUT = f"a collection is a folder with {_CORPUS}, {_QUERIES} and {_QRELS[0]} (or {_QRELS[1]})"
_QUERY = 'a line is {"_id": "…", "text": "…"}'
_JUDGMENT = "a line is: question id, tab, document id, tab, a whole number"
_LOCATOR = re.compile(r"(.+):(\d{1,9})-(\d{1,9})")


def read_text(path: Path, failed: Callable[[str], RolebundleError]) -> str:
    """The text of a file; ``failed`` makes the error from the reason why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise failed(f"is longer than {MAX_BYTES >> 20} MiB")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise failed(error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise failed(f"is not UTF-8 at byte {error.start}") from error


# -- collections -----------------------------------------------------------------------------------


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
    qrels_file = next((folder / name for name in _QRELS if (folder / name).is_file()), None)
    for name in (_CORPUS, _QUERIES):
        if not (folder / name).is_file():
            raise ConfigurationError("collection_incomplete", f"{folder}: has no {name}", _LAYOUT)
    if qrels_file is None:
        raise ConfigurationError("collection_incomplete", f"{folder}: has no {_QRELS[0]}", _LAYOUT)
    texts = _texts(folder / _QUERIES)
    qrels = _judgments(qrels_file)
    judged = {
        question: text
        for question, text in texts.items()
        if any(grade > 0 for grade in qrels.get(question, {}).values())
    }
    if not judged:
        hint = "use the same question ids in both files"
        raise _malformed(qrels_file, 0, f"judges no question of {_QUERIES}", hint)
    return Collection(
        folder.resolve().name,
        folder / _CORPUS,
        judged,
        {question: qrels[question] for question in judged},
        len(texts) - len(judged),
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = read_text(path, lambda reason: _malformed(path, 0, reason, "save it as UTF-8"))
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _texts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for number, line in _lines(path):
        try:
            record = parse_strict(line)
        except NotStrictError as error:
            raise _malformed(path, number, f"is not JSON: {error}", _QUERY) from error
        if not isinstance(record, dict):
            raise _malformed(path, number, "is not a JSON object", _QUERY)
        key, text = record.get("_id"), record.get("text")
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise _malformed(path, number, "_id: must be a text or a number", _QUERY)
        if str(key) in texts:
            raise _malformed(path, number, f"repeats the _id {key}", "give each question its own")
        try:
            texts[str(key)] = RetrievalRequest.model_validate({"task": text}).task
        except ValidationError as error:
            message = mistakes_in(error, RetrievalRequest)[0].message
            raise _malformed(path, number, f"text: {message}", _QUERY) from error
    return texts


def _judgments(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for count, (number, line) in enumerate(_lines(path)):
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) == 4:
            cells = [cells[0], *cells[2:]]
        grade = _grade(cells[2]) if len(cells) == 3 else None
        if grade is not None:
            qrels.setdefault(cells[0].strip(), {})[cells[1].strip()] = grade
        elif count or len(cells) != 3:  # A header line does not end with a number.
            raise _malformed(path, number, f"is not a judgment: {line[:80]!r}", _JUDGMENT)
    return qrels


def _grade(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # A judgment below 0 counts as 0.
    return max(0, int(number)) if number.is_integer() else None


def _malformed(path: Path, line: int, reason: str, hint: str) -> ConfigurationError:
    place = f"{path}: line {line}" if line else str(path)
    return ConfigurationError("collection_malformed", f"{place}: {reason}", hint)


# -- golden sets -----------------------------------------------------------------------------------


def load_golden(path: Path) -> GoldenSet:
    """Read a golden set; every question gets an id and the set's defaults.

    Raises:
        ConfigurationError: ``golden_unreadable``, or ``golden_malformed`` with the file, the
            question, the key and the allowed values.
    """
    values = _normalized(_parsed(path))
    try:
        golden = GoldenSet.model_validate(values)
    except ValidationError as error:
        first, *more = mistakes_in(error, GoldenSet)
        text = first.text_in(values, "questions", "question")
        allowed = f"allowed here: {', '.join(first.allowed)}" if first.allowed else ""
        raise _flawed(
            path,
            f"{text} (and {len(more)} more)" if more else text,
            allowed or "see docs/quality.md for the keys",
        ) from error
    if not golden.questions:
        raise _flawed(path, "questions: must not be empty", "write one [[questions]] at least")
    questions = [
        question.model_copy(
            update={
                "id": question.id or str(number),
                "role": question.role or golden.role,
                "agent": question.agent or golden.agent,
                "limit": question.limit or golden.limit,
                "now": question.now or golden.now,
                "must_not_return": list(
                    dict.fromkeys([*golden.must_not_return, *question.must_not_return])
                ),
            }
        )
        for number, question in enumerate(golden.questions, 1)
    ]
    ids = [question.id for question in questions]
    repeated = next((key for key in ids if ids.count(key) > 1), None)
    if repeated is not None:
        raise _flawed(path, f"questions: two have the id {repeated!r}", "give each its own")
    return golden.model_copy(update={"name": golden.name or path.stem, "questions": questions})


def find_golden_set(name: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the golden set that an overlay's ``eval_profile`` names; the first folder wins.

    Golden sets are in the folder ``golden`` beside the overlays.
    """
    is_plain = name == Path(name).name
    candidates = (folder / FOLDER / f"{name}{end}" for folder in folders for end in _SUFFIXES)
    return next((path for path in candidates if is_plain and path.is_file()), None)


def golden_set_of_role(role_id: str, folders: tuple[Path, ...]) -> Path:
    """Return the file of the golden set that a role's overlay names.

    Raises:
        OverlayError: the overlay cannot be loaded.
        ConfigurationError: ``no_golden_set``.
    """
    name = load_role(role_id, folders).overlay.eval_profile.golden_set_id
    path = find_golden_set(name, folders) if name else None
    if path is None:
        raise ConfigurationError(
            "no_golden_set",
            f"{role_id}: eval_profile.golden_set_id: "
            + (f"there is no golden set {name!r}" if name else "the overlay names none"),
            "set it to ID and write golden/ID.toml beside the overlay, or name a PATH",
        )
    return path


def corpus_folder(path: Path, golden: GoldenSet) -> Path | None:
    """Return the folder of documents that a set names, or ``None``."""
    return (path.parent / golden.corpus).resolve() if golden.corpus else None


def _parsed(path: Path) -> Any:
    hint = "name a TOML or JSON file, or a BEIR folder"
    text = read_text(
        path, lambda reason: ConfigurationError("golden_unreadable", f"{path}: {reason}", hint)
    )
    try:
        return parse_strict(text) if path.suffix == ".json" else tomllib.loads(text)
    except NotStrictError as error:
        raise _flawed(path, f"is not JSON: {error}", "write plain JSON") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _flawed(path, f"is not TOML: {error}", "correct it, or write JSON (.json)") from error


def _normalized(values: Any) -> Any:
    """Turn a list of questions into a set, and a list of references into references of grade 1."""
    values = _without_dates({"questions": values} if isinstance(values, list) else values)
    if isinstance(values, dict) and isinstance(values.get("questions"), list):
        for question in values["questions"]:
            expect = question.get("expect") if isinstance(question, dict) else None
            if isinstance(expect, list) and all(isinstance(item, str) for item in expect):
                question["expect"] = dict.fromkeys(expect, 1)
    return values


def _without_dates(value: Any) -> Any:
    # TOML has dates; the contracts take them as text.
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    return [_without_dates(item) for item in value] if isinstance(value, list) else value


def _flawed(path: Path, reason: str, hint: str) -> ConfigurationError:
    return ConfigurationError("golden_malformed", f"{path}: {reason}", hint)


# -- questions in a corpus -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its judgments.

    ``grades`` has a grade for each unit. A unit is a document, or a passage that the golden set
    names. ``passages`` are the chunk ids that are units; any other chunk counts for its document.
    """

    id: str
    task: str
    role: str | None
    limit: int | None
    now: datetime
    grades: dict[str, int]
    passages: frozenset[str]
    agent: str | None = None
    golden: GoldenQuestion | None = None

    @property
    def judged(self) -> bool:
        """Whether any document or passage is relevant."""
        return any(grade > 0 for grade in self.grades.values())

    def judged_id(self, chunk_id: str, document_id: str) -> str:
        """Return the id of the chunk if it is judged as a passage, else the id of its document."""
        return chunk_id if chunk_id in self.passages else document_id


class References:
    """Resolve the ids, paths, locators and globs of a golden set in a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._matching_ids: dict[str, frozenset[str]] = {}
        self.passages: set[str] = set()
        """The chunk ids that references resolved to so far."""

    def matching_ids(self, reference: str) -> frozenset[str]:
        """Return the ids of the documents or chunks that a reference names, or none."""
        if reference not in self._matching_ids:
            self._matching_ids[reference] = frozenset(self._resolve(reference))
        return self._matching_ids[reference]

    def documents(self) -> frozenset[str]:
        """Return the ids of all documents."""
        return frozenset(document_id for document_id, _ in self._paths)

    def _resolve(self, reference: str) -> Iterable[str]:
        named = {
            document_id for document_id, path in self._paths if reference in (document_id, path)
        }
        if named:
            return named
        if passage_by_id(self._corpus, reference) is not None:
            self.passages.add(reference)
            return {reference}
        located = _LOCATOR.fullmatch(reference)
        if located is not None:
            path, start, end = located[1], int(located[2]), int(located[3])
            passages = passages_at_lines(self._corpus, path, max(1, start), end)
            chunks = {passage.chunk_id for passage in passages}
            self.passages |= chunks
            return chunks
        if "*" in reference or "?" in reference:
            return {
                document_id
                for document_id, path in self._paths
                if matches(reference, document_id) or matches(reference, path)
            }
        return ()

    @cached_property
    def _paths(self) -> list[tuple[str, str]]:
        """The id of each document, and the path of its file."""
        names = documents.document_names(self._corpus)
        return [(name.document_id, name.path) for name in names]


def from_collection(
    collection: Collection, references: References, role: str | None, now: datetime
) -> tuple[list[Question], list[str]]:
    """Return a collection's judged questions, and a note on documents missing in the corpus.

    Raises:
        UsageError: ``other_corpus`` if the corpus has none of the relevant documents.
    """
    relevant = {
        document
        for grades in collection.qrels.values()
        for document, grade in grades.items()
        if grade > 0
    }
    missing = relevant - references.documents()
    if missing == relevant:
        raise UsageError(
            "other_corpus",
            f"the corpus has none of the {len(relevant)} relevant documents of {collection.name}",
            "leave --db out, or name a file that does not exist yet",
        )
    notes = []
    if missing:
        notes.append(f"{len(missing)} of {len(relevant)} relevant documents are not in the corpus")
    questions = [
        Question(key, text, role, None, now, collection.qrels[key], frozenset())
        for key, text in collection.questions.items()
    ]
    return questions, notes


def from_golden(
    golden: GoldenSet, references: References, role: str | None, now: datetime
) -> tuple[list[Question], list[str]]:
    """Return the questions of a golden set, and notes on references without a match in the corpus.

    An expected document that is not in the corpus counts as relevant and not retrieved. If several
    references name a document, the highest grade counts.

    Args:
        golden: the set.
        references: resolves references in the corpus.
        role: replaces the role of every question.
        now: the time of questions without their own.
    """
    questions, notes = [], []
    for question in golden.questions:
        notes += [
            f"question {question.id}: {key}: {reference} names nothing in the corpus"
            for key in ("expect", "must_not_return", "expect_rejection")
            for reference in getattr(question, key)
            if not references.matching_ids(reference)
        ]
        grades: dict[str, int] = {}
        for reference, grade in question.expect.items():
            for matching_id in references.matching_ids(reference) or {reference}:
                grades[matching_id] = max(grade, grades.get(matching_id, 0))
        passages = frozenset(grades.keys() & references.passages)
        questions.append(
            Question(
                question.id,
                question.task,
                role or question.role,
                question.limit,
                question.now or now,
                grades,
                passages,
                question.agent,
                question,
            )
        )
    return questions, notes
