"""What is asked: a question, its judgments, and the expectations that a golden set adds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.errors import UsageError
from rolebundle.evaluation.collection import Collection
from rolebundle.storage import documents
from rolebundle.storage.connection import Corpus
from rolebundle.storage.documents import DocumentPath
from rolebundle.text.globs import matches

_LOCATOR = re.compile(r"(.+):(\d{1,9})-(\d{1,9})")
_LEAST_LINE = 1


@dataclass(frozen=True, slots=True)
class Question:
    """A question ready to be asked.

    ``grades`` are by unit: a document, or a passage where the golden set names one. ``passages``
    are the chunk ids that are units of their own; every other chunk stands for its document.
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
        """Whether something is relevant to it."""
        return any(grade > 0 for grade in self.grades.values())

    def unit_of(self, chunk_id: str, document_id: str) -> str:
        """What a chunk counts for."""
        return chunk_id if chunk_id in self.passages else document_id


class References:
    """What the ids, paths, locators and globs of a golden set name in one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._paths: list[DocumentPath] | None = None
        self._found: dict[str, frozenset[str]] = {}
        self.passages: set[str] = set()
        """Those of the units resolved so far that are chunk ids."""

    def units(self, reference: str) -> frozenset[str]:
        """The ids of the documents, or of the chunks, that a reference names; maybe none."""
        if reference not in self._found:
            self._found[reference] = frozenset(self._resolve(reference))
        return self._found[reference]

    def documents(self) -> frozenset[str]:
        """The ids of all documents of the corpus."""
        return frozenset(document_id for document_id, _ in self._all())

    def _resolve(self, reference: str) -> Iterable[str]:
        named = {
            document_id for document_id, path in self._all() if reference in (document_id, path)
        }
        if named:
            return named
        if documents.passage_by_id(self._corpus, reference) is not None:
            self.passages.add(reference)
            return {reference}
        located = _LOCATOR.fullmatch(reference)
        if located is not None:
            path, start, end = located[1], int(located[2]), int(located[3])
            found = documents.passages_at_lines(self._corpus, path, max(_LEAST_LINE, start), end)
            chunks = {passage.chunk_id for passage in found}
            self.passages |= chunks
            return chunks
        if "*" in reference or "?" in reference:
            return {
                document_id
                for document_id, path in self._all()
                if matches(reference, document_id) or matches(reference, path)
            }
        return ()

    def _all(self) -> list[DocumentPath]:
        if self._paths is None:
            self._paths = documents.document_paths(self._corpus)
        return self._paths


def from_collection(
    collection: Collection, references: References, role: str | None, now: datetime
) -> tuple[list[Question], list[str]]:
    """The judged questions of a collection in its order, and a note on what the corpus has not.

    Raises:
        UsageError: ``other_corpus``, where the corpus has nothing of the collection.
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
        Question(one, text, role, None, now, collection.qrels[one], frozenset())
        for one, text in collection.questions.items()
    ]
    return questions, notes


def from_golden(
    golden: GoldenSet, references: References, role: str | None, now: datetime
) -> tuple[list[Question], list[str]]:
    """The questions of a golden set, and notes on what they name that the corpus has not.

    What is expected and not there counts as relevant and never found. Of several references that
    name one document the highest grade holds.

    Args:
        golden: the set.
        references: resolves against the corpus.
        role: asks in place of every question's own.
        now: the time of questions that name none.
    """
    questions, notes = [], []
    for one in golden.questions:
        grades: dict[str, int] = {}
        named: set[str] = set()
        for reference, grade in one.expect.items():
            units = references.units(reference)
            if not units:
                notes.append(f"question {one.id}: expect: {reference} names nothing in the corpus")
            named |= units
            for unit in units or {reference}:
                grades[unit] = max(grade, grades.get(unit, 0))
        for key, others in (
            ("must_not_return", one.must_not_return),
            ("expect_rejection", list(one.expect_rejection)),
        ):
            notes += [
                f"question {one.id}: {key}: {reference} names nothing in the corpus"
                for reference in others
                if not references.units(reference)
            ]
        passages = frozenset(named & references.passages)
        questions.append(
            Question(
                one.id,
                one.task,
                role or one.role,
                one.limit,
                one.now or now,
                grades,
                passages,
                one.agent,
                one,
            )
        )
    return questions, notes
