"""A first overlay of a role: from the name of the role and a folder, or from examples. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rolebundle.authoring.draft_source_policy import draft_source_policy
from rolebundle.authoring.draft_vocabulary import draft_vocabulary
from rolebundle.authoring.fields import label_of, read_role_name
from rolebundle.authoring.subject import (
    Named,
    Subject,
    best_documents,
    subject_of_examples,
    subject_of_name,
)
from rolebundle.authoring.survey import SurveyedDocument, passages_of
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import DEFAULT_SCOPE
from rolebundle.embedding.provider import EmbeddingProvider

WEIGHTS: Mapping[str, float] = {
    "lexical_weight": 0.39,
    "semantic_weight": 0.39,
    "metadata_weight": 0.02,
    "rerank_weight": 0.2,
}
"""If little metadata is declared, the role's words tell more than sources.

The role's part is 0.22: enough for vague tasks, and natural questions keep their documents. Words
have 0.6 of it, because the ranking counts them 0.15 times (decision 0021).
"""
EXPANSION_WEIGHT = 0.5
"""Half of the vocabulary's score is how much of the role's terms a passage has: nearly every
passage has some of the typical terms of its folder."""

_NUMBERED = re.compile(r"\d[-./]\d")
"""A version or a date: such a title names an issue of something, and not a subject."""

Values = dict[str, Any]


class OverlayDraft(NamedTuple):
    """A draft: the values of the file, and what a person should know."""

    values: Values
    remarks: list[str]

    @property
    def text(self) -> str:
        """The content of the file."""
        return overlay_text(self.values)


def overlay_text(values: Values) -> str:
    """The values of an overlay as the text of a file."""
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def usable(documents: Sequence[SurveyedDocument]) -> list[SurveyedDocument]:
    """The documents whose words may stand in an overlay, which every agent of the role may read."""
    return [
        document
        for document in documents
        if document.metadata.sensitivity != "confidential"
        and document.metadata.scope == DEFAULT_SCOPE
        and document.metadata.trust_tier != "untrusted"
    ]


def draft_for_role(
    role_id: str,
    documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
    base: Overlay | None,
    base_values: Values | None,
    provider: EmbeddingProvider | None,
) -> OverlayDraft:
    """The overlay of a role, by its name and what a folder has.

    Args:
        role_id: the role.
        documents: what the folder has.
        named: document id → what rules will see of the document.
        base: the shipped role that it extends; ``None`` for none.
        base_values: all values of that role if the new file replaces it instead of extending it,
            because it has the same id.
        provider: finds words that are close to a name of no known field; ``None`` for none.

    Raises:
        EmbedderError: the model cannot be used.
    """
    name = read_role_name(role_id)
    documents = usable(documents)
    passages = passages_of(documents)
    subject = subject_of_name(name, passages, named, provider)
    remarks = []
    if not subject.inside:
        remarks.append(
            f"nothing in the folder has the words of the name {role_id!r}; add terms by hand, or "
            f"delete the file and run `rolebundle overlay new {role_id} --examples PATH`"
        )
    values = _head(role_id, base, base_values, subject)
    _fill(values, subject, named, name.types, base)
    return OverlayDraft(values, remarks)


def draft_from_examples(
    role_id: str,
    examples: Sequence[SurveyedDocument],
    questions: Sequence[str],
    documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
) -> OverlayDraft:
    """The overlay of a role, by documents and questions of its work.

    The passages that answer a question best count as examples as well.

    Args:
        role_id: the role.
        examples: documents of its work; they may be among ``documents``.
        questions: what the role asks.
        documents: what the corpus has.
        named: document id → what rules see of the document.
    """
    ids = {document.metadata.document_id for document in examples}
    other_documents = [
        document for document in usable(documents) if document.metadata.document_id not in ids
    ]
    subject = subject_of_examples(examples, questions, other_documents, named)
    values = _head(role_id, None, None, subject)
    _fill(values, subject, named, [], None)
    remarks = []
    if not values["vocabulary"]["boost_phrases"]:
        remarks.append("the examples have no words that the other documents lack")
    return OverlayDraft(values, remarks)


def _head(
    role_id: str, base: Overlay | None, base_values: Values | None, subject: Subject
) -> Values:
    values: Values = {"version": "1.0", "role_id": role_id}
    if base_values is not None:
        copied = {
            key: value for key, value in base_values.items() if key not in ("extends", "notes")
        }
        return {**values, **copied, "role_id": role_id}
    if base is not None:
        values["extends"] = base.role_id
    values["label"] = label_of(role_id)
    if base is None:
        best = (document.metadata.title for document, _ in best_documents(subject))
        titles = [*dict.fromkeys(title for title in best if not _NUMBERED.search(title))][:3]
        about = f", such as {', '.join(titles)}" if titles else ""
        values["mission"] = (
            f"Do the work of the {label_of(role_id)} with the documents here{about}."
        )
    return values


def _fill(
    values: Values,
    subject: Subject,
    named: Mapping[str, Named],
    types: Sequence[str],
    base: Overlay | None,
) -> None:
    """Add vocabulary, source policy and notes."""
    notes: dict[str, str] = {}
    values["vocabulary"] = {
        **values.get("vocabulary", {}),
        **draft_vocabulary(subject, base, notes),
    }
    values["source_policy"] = draft_source_policy(values, subject, named, types, base, notes)
    values["retrieval_policy"] = {
        **values.get("retrieval_policy", {}),
        **WEIGHTS,
        "expansion_weight": EXPANSION_WEIGHT,
    }
    values["notes"] = notes
