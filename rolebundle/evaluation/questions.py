"""Questions with their judgments, from a golden set or a collection, resolved in a corpus.

A collection is a folder in the BEIR layout: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``
(Thakur et al., "BEIR", NeurIPS 2021). The judgments may also be in ``qrels/test.tsv``, as in BEIR's
archives, and may have a header line. It is read as a golden set.

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

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.base import first_mistake
from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.errors import ConfigurationError
from rolebundle.policy.overlays import load_role
from rolebundle.storage import documents
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.passages import passage_by_id, passages_at_lines
from rolebundle.text.paths import matches
from rolebundle.text.strict_json import NotStrictError, parse_strict

FOLDER = "golden"
"""The folder of golden sets beside the overlays."""
_SUFFIXES = (".toml", ".json")
_DEFAULTS = ("role", "agent", "limit", "now")
"""What a question has from its set unless it says otherwise."""

_QRELS = ("qrels.tsv", "qrels/test.tsv")
_QUERY = 'a line is {"_id": "…", "text": "…"}; the ids are those of the judgments'
_JUDGMENT = "a line is: question id, tab, document id, tab, a whole number"
_LOCATOR = re.compile(r"(.+):(\d{1,9})-(\d{1,9})")


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        ConfigurationError: ``golden_unreadable``.
    """
    try:
        return path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "name a TOML or JSON file, or a BEIR folder"
        raise ConfigurationError("golden_unreadable", f"{path}: {reason}", hint) from error


# -- collections -----------------------------------------------------------------------------------


def load_collection(folder: Path) -> GoldenSet:
    """Read the collection in a folder. Questions without a relevant document are left out.

    Raises:
        ConfigurationError: ``golden_unreadable``, or ``golden_malformed`` with the file.
    """
    found = (folder / name for name in _QRELS if (folder / name).is_file())
    grades = _judgments(next(found, folder / _QRELS[0]))
    queries = folder / "queries.jsonl"
    questions = [
        {"id": question, "task": text, "expect": grades[question]}
        for question, text in _texts(queries)
        if any(grades.get(question, {}).values())
    ]
    corpus = folder.resolve() / "corpus.jsonl"
    values = {"name": corpus.parent.name, "corpus": str(corpus), "questions": questions}
    return _checked(values, queries, _QUERY)


def _texts(path: Path) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            record = parse_strict(line) if line.strip() else {}
        except NotStrictError as error:
            raise _flawed(path, f"line {number}: is not JSON: {error}", _QUERY) from error
        if not isinstance(record, dict):
            raise _flawed(path, f"line {number}: is not a JSON object", _QUERY)
        if record:
            yield str(record.get("_id")), record.get("text")


def _judgments(path: Path) -> dict[str, dict[str, int]]:
    """Question id → document id → grade. A grade below 0 counts as 0."""
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            question, document, grade = line.split("\t")
            grades.setdefault(question, {})[document] = max(0, int(grade))
        except ValueError:
            if line.strip() and number > 1:  # The first line may be a header.
                raise _flawed(path, f"line {number}: is not a judgment", _JUDGMENT) from None
    return grades


# -- golden sets -----------------------------------------------------------------------------------


def load_golden(path: Path) -> GoldenSet:
    """Read a golden set; every question gets an id and the set's defaults.

    Raises:
        ConfigurationError: ``golden_unreadable``, or ``golden_malformed`` with the file, the
            question, the key and the allowed values.
    """
    golden = _checked(_normalized(_parsed(path)), path, "see docs/quality.md for the keys")
    questions = [
        question.model_copy(
            update={
                **{key: getattr(question, key) or getattr(golden, key) for key in _DEFAULTS},
                "id": question.id or str(number),
                "must_not_return": list(
                    dict.fromkeys([*golden.must_not_return, *question.must_not_return])
                ),
            }
        )
        for number, question in enumerate(golden.questions, 1)
    ]
    repeated, count = Counter(question.id for question in questions).most_common(1)[0]
    if count > 1:
        raise _flawed(path, f"questions: two have the id {repeated!r}", "give each its own")
    return golden.model_copy(update={"name": golden.name or path.stem, "questions": questions})


def _checked(values: Any, path: Path, hint: str) -> GoldenSet:
    """The golden set with these values, of which a file is the source."""
    try:
        golden = GoldenSet.model_validate(values)
    except ValidationError as error:
        reason, allowed = first_mistake(error, GoldenSet, values, "questions", "question")
        raise _flawed(path, reason, allowed or hint) from error
    if not golden.questions:
        hint = "write one [[questions]] at least; in a collection, use the same ids in both files"
        raise _flawed(path, "questions: must not be empty", hint)
    return golden


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
    text = read_text(path)
    try:
        if path.suffix == ".json":
            return parse_strict(text)
        # TOML has dates; the contracts take them as text.
        return json.loads(json.dumps(tomllib.loads(text), default=str))
    except NotStrictError as error:
        raise _flawed(path, f"is not JSON: {error}", "write plain JSON") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _flawed(path, f"is not TOML: {error}", "correct it, or write JSON (.json)") from error


def _normalized(values: Any) -> Any:
    """Turn a list of questions into a set, and a list of references into references of grade 1."""
    values = {"questions": values} if isinstance(values, list) else values
    if isinstance(values, dict) and isinstance(values.get("questions"), list):
        for question in values["questions"]:
            expect = question.get("expect") if isinstance(question, dict) else None
            if isinstance(expect, list) and all(isinstance(item, str) for item in expect):
                question["expect"] = dict.fromkeys(expect, 1)
    return values


def _flawed(path: Path, reason: str, hint: str) -> ConfigurationError:
    return ConfigurationError("golden_malformed", f"{path}: {reason}", hint)


# -- questions in a corpus -------------------------------------------------------------------------


Judged = tuple[GoldenQuestion, dict[str, int]]
"""A question, with its role and its time, and the grade of each judged document or passage."""
References = Callable[[str], frozenset[str]]
"""The ids of the documents or chunks that a reference names; empty if it names nothing."""


def references_in(corpus: Corpus) -> References:
    """Resolve the ids, paths, locators and globs of a golden set in a corpus."""
    paths = [(name.document_id, name.path) for name in documents.document_names(corpus)]
    names: dict[str, set[str]] = {}
    for document_id, path in paths:
        for name in (document_id, path):
            names.setdefault(name, set()).add(document_id)

    @cache
    def matching_ids(reference: str) -> frozenset[str]:
        if named := names.get(reference):
            return frozenset(named)
        if passage_by_id(corpus, reference) is not None:
            return frozenset({reference})
        if located := _LOCATOR.fullmatch(reference):
            start, end = int(located[2]), int(located[3])
            passages = passages_at_lines(corpus, located[1], max(1, start), end)
            return frozenset(passage.chunk_id for passage in passages)
        if "*" not in reference and "?" not in reference:
            return frozenset()
        return frozenset(
            pair[0] for pair in paths if any(matches(reference, name) for name in pair)
        )

    return matching_ids


def from_golden(
    golden: GoldenSet, references: References, role: str | None, now: datetime
) -> tuple[list[Judged], list[str]]:
    """Return the questions of a golden set, and notes on references without a match in the corpus.

    An expected document that is not in the corpus counts as relevant and not retrieved. If several
    references name a document, the highest grade counts.

    Args:
        golden: the set.
        references: resolves references in the corpus.
        role: replaces the role of every question.
        now: the time of questions without their own.
    """
    questions, notes = list[Judged](), list[str]()
    for question in golden.questions:
        notes += [
            f"question {question.id}: {key}: {reference} names nothing in the corpus"
            for key in ("expect", "must_not_return", "expect_rejection")
            for reference in getattr(question, key)
            if not references(reference)
        ]
        grades: dict[str, int] = {}
        for reference, grade in question.expect.items():
            for matching_id in references(reference) or {reference}:
                grades[matching_id] = max(grade, grades.get(matching_id, 0))
        update = {"role": role or question.role, "now": question.now or now}
        questions.append((question.model_copy(update=update), grades))
    return questions, notes
