"""Questions with their judgments, from a collection or a golden set, resolved in a corpus."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.errors import UsageError
from rolebundle.evaluation.collection import Collection
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import documents
from rolebundle.storage.content.passages import passage_by_id, passages_at_lines
from rolebundle.text.globs import matches

_LOCATOR = re.compile(r"(.+):(\d{1,9})-(\d{1,9})")


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
        grades: dict[str, int] = {}
        named: set[str] = set()
        for reference, grade in question.expect.items():
            ids = references.matching_ids(reference)
            if not ids:
                notes.append(
                    f"question {question.id}: expect: {reference} names nothing in the corpus"
                )
            named |= ids
            for matching_id in ids or {reference}:
                grades[matching_id] = max(grade, grades.get(matching_id, 0))
        for key, graded_references in (
            ("must_not_return", question.must_not_return),
            ("expect_rejection", list(question.expect_rejection)),
        ):
            notes += [
                f"question {question.id}: {key}: {reference} names nothing in the corpus"
                for reference in graded_references
                if not references.matching_ids(reference)
            ]
        passages = frozenset(named & references.passages)
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
