"""The passages that a role is about, by its name or by examples of its work. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.authoring.fields import RoleName
from rolebundle.authoring.relevance import (
    LEAST_SHARE,
    Wanted,
    by_document,
    foreground,
    scores,
    wanted_words,
    words_close_to,
)
from rolebundle.authoring.survey import Passages, SurveyedDocument, passages_of
from rolebundle.authoring.terms import content_words
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.text.counts import counted

NAME_REASON = "a word of the role's name"
_DOCUMENT_SHARE = 0.5
_OWN_WEIGHT, _FIELD_WEIGHT = 1.5, 1.0
_TYPE_SHARE = 0.6


class Named(NamedTuple):
    """What rules see of a document once it is ingested."""

    source_id: str
    document_type: str
    domain: str


class Subject(NamedTuple):
    """The passages that a role is about, among others.

    Attributes:
        passages: all passages.
        inside: the positions of the subject's, in order.
        scored: how much each passage is about it.
        sought: the words by which the passages were found → why they were sought.
        is_guessed: whether they were only found by words.
    """

    passages: Passages
    inside: Sequence[int]
    scored: Sequence[float]
    sought: Mapping[str, str] = MappingProxyType({})
    is_guessed: bool = False


def subject_of_name(
    name: RoleName,
    passages: Passages,
    named: Mapping[str, Named],
    provider: EmbeddingProvider | None,
) -> Subject:
    """The passages that are about the field that a role's name tells.

    If it tells no field, words of the folder that are close to it in meaning count.

    Raises:
        EmbedderError: the model cannot be used.
    """
    sought = dict.fromkeys(name.words, "a word of the role's field")
    weights = dict.fromkeys(sought, _FIELD_WEIGHT)
    if not name.fields and provider is not None:
        for word, cosine in words_close_to(name.own, passages, provider).items():
            sought[word] = f"close in meaning to the role's name (cosine {cosine:.2f})"
            weights[word] = cosine
    sought |= dict.fromkeys(name.own, NAME_REASON)
    weights |= dict.fromkeys(name.own, _OWN_WEIGHT)
    types = {kind: _TYPE_SHARE / (1 + 0.2 * rank) for rank, kind in enumerate(name.types)}
    scored = scores(passages, Wanted(wanted_words(weights), types), _types(passages, named))
    return Subject(passages, foreground(passages, scored), scored, sought, is_guessed=True)


def subject_of_examples(
    examples: Sequence[SurveyedDocument],
    questions: Sequence[str],
    other_documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
) -> Subject:
    """The passages of documents of the role's work, and those that answer its questions best.

    Args:
        examples: documents of its work.
        questions: what the role asks.
        other_documents: the other documents of the corpus.
        named: document id → what rules see of the document.
    """
    ids = {document.metadata.document_id for document in examples}
    passages = passages_of([*examples, *other_documents])
    types = _types(passages, named)
    scored = [0.0] * len(passages.words)
    for question in questions:
        wanted = Wanted(wanted_words(dict.fromkeys(question.split(), 1.0)), {})
        for position, score in _best(scores(passages, wanted, types)):
            scored[position] = max(scored[position], score)
    for position, words in enumerate(passages.words):
        if words.document in ids:
            scored[position] = 1.0
    inside = [position for position, score in enumerate(scored) if score]
    return Subject(passages, inside, scored, _words_of_questions(questions))


def documents_of(subject: Subject) -> list[SurveyedDocument]:
    """The documents of the passages, each once."""
    unique = {document.metadata.document_id: document for document in subject.passages.documents}
    return list(unique.values())


def best_documents(subject: Subject) -> list[tuple[SurveyedDocument, float]]:
    """The documents that are most about the subject, the best first; one for each file.

    Each has the share of its score in the best one.
    """
    scored = by_document(subject.passages, subject.scored)
    best = max(scored.values(), default=0.0)
    inside = {subject.passages.words[position].document for position in subject.inside}
    by_path: dict[str, tuple[SurveyedDocument, float]] = {}
    for document in documents_of(subject):
        score = scored[document.metadata.document_id]
        share = score / best if best > 0 else 0.0
        is_about = document.metadata.document_id in inside and share >= _DOCUMENT_SHARE
        if is_about and (document.path not in by_path or share > by_path[document.path][1]):
            by_path[document.path] = document, share
    return sorted(by_path.values(), key=lambda pair: (-pair[1], pair[0].path))


def passages_about(subject: Subject) -> tuple[Counter[str], Counter[str]]:
    """Document id → how many of its passages are about the role, and how many it has."""
    least = LEAST_SHARE * max(subject.scored, default=0.0)
    documents = [words.document for words in subject.passages.words]
    about = Counter(
        document
        for document, score in zip(documents, subject.scored, strict=True)
        if score >= least > 0
    )
    return about, Counter(documents)


def _words_of_questions(questions: Sequence[str]) -> dict[str, str]:
    """The words of the questions, the most frequent first → why they are sought."""
    counts = Counter(
        word for question in questions for word in dict.fromkeys(content_words(question))
    )
    return {
        word: f"in {counted(count, 'question')} of the role" for word, count in counts.most_common()
    }


def _best(scored: Sequence[float]) -> list[tuple[int, float]]:
    """The three best positions with a share of the best score; none if nothing fits."""
    order = sorted(range(len(scored)), key=lambda position: (-scored[position], position))[:3]
    best = max(scored, default=0.0)
    return [(position, scored[position] / best) for position in order if scored[position] > 0]


def _types(passages: Passages, named: Mapping[str, Named]) -> list[str]:
    return [
        named[words.document].document_type if words.document in named else ""
        for words in passages.words
    ]
