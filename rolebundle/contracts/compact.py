"""The answer to `retrieve` with detail `ids` or `compact`: a projection of the full bundle.

``FIELDS`` is the projection. A field has the same path and type as in the full bundle. It is
missing if the detail leaves it out, or if there was no room for it. Counts are those of the full
bundle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import create_model

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.terms import Detail

Form = Literal["whole", "text", "sentences", "line", "first", "date", "fields"]
"""How a value is shown: as it is; cut to one, two or half a text; the first texts that fit on a
line; the day; the fields of a request that are not too long."""
IDS: tuple[Detail, ...] = ("ids", "compact")
COMPACT: tuple[Detail, ...] = ("compact",)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the projection.

    Attributes:
        path: names in the bundle, joined by dots. A list's name stands for each of its items.
        form: how its value is shown.
        details: the details that have it.
    """

    path: str
    form: Form = "whole"
    details: tuple[Detail, ...] = IDS


FIELDS = (
    Field("version"),
    Field("detail"),
    Field("role_id"),
    Field("query.task_text", "text"),
    Field("query.generated_at"),
    Field("summary.total_candidates"),
    Field("summary.selected_count"),
    # What the reader must know of all passages comes before them.
    Field("provenance.trust_posture"),
    Field("provenance.freshness_posture"),
    Field("warnings.code"),
    Field("warnings.message", "text"),
    Field("fallback.state"),
    Field("fallback.states"),
    Field("fallback.action"),
    Field("fallback.message", "sentences"),
    Field("fallback.verdict"),
    Field("constraints.id"),
    Field("constraints.text", "sentences"),
    Field("constraints.effect"),
    Field("constraints.reason", "text"),
    Field("constraints.decided_at", "date"),
    Field("constraints.locator"),
    Field("selected.rank"),
    Field("selected.chunk_id"),
    Field("selected.document_id"),
    Field("selected.source_id"),
    Field("selected.title", "text"),
    Field("selected.headings", "text", COMPACT),
    Field("selected.content", details=COMPACT),
    Field("selected.truncated", details=COMPACT),
    Field("selected.content_chars", details=COMPACT),
    Field("selected.scores.final"),
    Field("selected.evidence_kinds", "text", COMPACT),
    Field("selected.bridge_role"),
    Field("selected.reasons_selected", "first", COMPACT),
    Field("selected.metadata.trust_tier", details=COMPACT),
    Field("selected.metadata.freshness.status", details=COMPACT),
    Field("selected.metadata.freshness.updated_at", "date", COMPACT),
    Field("selected.metadata.freshness.inferred_at", "date", COMPACT),
    Field("selected.metadata.flags"),
    Field("selected.metadata.mark.state"),
    Field("selected.metadata.mark.marked_by", "text"),
    Field("selected.metadata.mark.reason", "text"),
    Field("selected.metadata.remembered_from", "text"),
    Field("selected.citation.locator"),
    Field("selected.citation.anchor"),
    Field("selected.citation.absolute_path", details=COMPACT),
    Field("selected.allowed_actions"),
    Field("rejected.chunk_id", details=COMPACT),
    Field("rejected.reason", details=COMPACT),
    Field("rejected.notes", "line", COMPACT),
    Field("rejected_summary"),
    Field("kept_back"),
    Field("approvals.approved_by", "text"),
    Field("approvals.action"),
    Field("approvals.chunk_ids"),
    Field("request", "fields"),
    Field("overlay"),
    Field("corpus.file", "text"),
    Field("corpus.corpus_id"),
    Field("corpus.generation"),
    Field("corpus.documents"),
    Field("corpus.chunks"),
    Field("corpus.replica.publisher", "text"),
    Field("corpus.replica.generation"),
    Field("corpus.replica.published_at"),
    Field("corpus.replica.expires_at"),
    Field("corpus.replica.age_hours"),
    Field("diagnostics.candidate_pool_size"),
)


def field_tree(detail: Detail) -> Mapping[str, Any]:
    """The fields of one detail as nested mappings, with a ``Field`` at each leaf."""
    tree: dict[str, Any] = {}
    for field in FIELDS:
        if detail in field.details:
            *names, last = field.path.split(".")
            branch = tree
            for name in names:
                branch = branch.setdefault(name, {})
            branch[last] = field
    return tree


class Omitted(Contract):
    """How much of the full bundle is not in this answer: numbers of items and of characters."""

    passages: int
    rejections: int
    content_chars: int


class More(Contract):
    """How to fetch the full bundle.

    Attributes:
        method: the method to call.
        params: its parameters: those of this request, but detail `full`, and the time of this
            answer, so that the same passages are returned.
        repeat: parameters that are too long to be in ``params``: copy them from this request.
        omitted: how much is not in this answer.
        notes: what was left out or shortened, in words.
    """

    method: Literal["retrieve"]
    params: dict[str, Any]
    repeat: list[str] | None = None
    omitted: Omitted
    notes: list[str] | None = None


_ADDED: Mapping[str, Any] = {"truncated": bool | None, "content_chars": int | None}
"""Types of fields that the full bundle does not have: whether ``content`` is only a part of the
text, and the length of the whole text in characters. `get` returns it."""


def _projected(full: type[Contract], tree: Mapping[str, Any], **more: Any) -> Any:
    """The contract with those fields of a full contract that the tree names.

    A field is required if the full contract and both details have it.
    """
    fields: dict[str, Any] = {}
    for name, branch in tree.items():
        if name in more or name in _ADDED:
            fields[name] = (_ADDED[name], None) if name in _ADDED else more[name]
            continue
        type_: Any = full.model_fields[name].annotation
        is_required = full.model_fields[name].is_required()
        if isinstance(branch, Field):
            is_required = is_required and branch.details == IDS
        else:
            is_list = "list[" in str(type_)
            part = _projected(_contract_in(type_), branch)
            is_required = is_required and any(
                field.is_required() for field in part.model_fields.values()
            )
            type_ = list.__class_getitem__(part) if is_list else part
        fields[name] = (type_, ...) if is_required else (type_ | None, None)
    fields |= {name: value for name, value in more.items() if name not in fields}
    description = f"What `ids` and `compact` have of `{full.__name__}`."
    name = f"Compact{full.__name__.removeprefix('Retrieval')}"
    return create_model(name, __base__=Contract, __doc__=description, **fields)


def _contract_in(annotation: Any) -> type[Contract]:
    """The contract in ``X``, ``X | None``, ``list[X]`` or ``list[X] | None``."""
    while not isinstance(annotation, type) or not issubclass(annotation, Contract):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return annotation


CompactBundle: Any = _projected(
    RetrievalBundle,
    field_tree("compact"),
    detail=(Literal["ids", "compact"], ...),
    more=(More, ...),
    packet=(str | None, None),
)
