"""The requests: that of `retrieve`, and those of the other operations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from rolebundle.contracts.base import Contract, optional, required, zoned
from rolebundle.contracts.dates import start_of
from rolebundle.contracts.overlay import MAX_LIMIT, Count, RoleId
from rolebundle.contracts.terms import Action, Detail, EvidenceNeed, Fusion

MAX_TASK_CHARACTERS = 1_000_000
MAX_REFERENCE_CHARACTERS = 10_000
MAX_NAME_CHARACTERS = 200
MAX_ALTERNATIVES = 100
"""How many values one key of ``where`` may have."""
MAX_ATTRIBUTES = 20
"""How many attributes ``where`` may name."""
MAX_ALSO = 8
MAX_SEEN = 1_000
"""How many ids ``seen`` may have."""
NO_RERANK = "none"
"""The value of ``rerank`` for no reranking, even if the server has a default model."""
MAX_DEADLINE_MS = 86_400_000
"""One day."""
MIN_MAX_CHARS = 1_000
"""The smallest ``max_chars``, so that at least a part of a passage fits in a packet."""
MIN_PACKET_TOKENS = 400
"""The smallest ``token_budget`` of a packet: its fixed lines take more than half of this."""


def _parse_moment(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        moment = zoned(datetime.fromisoformat(value.strip()))
        moment.astimezone(UTC)  # The first and last hours of the calendar have no time in UTC.
    except (ValueError, OverflowError):
        raise ValueError("must be an ISO 8601 time, such as 2026-03-01") from None
    return moment


def _parse_bound(value: object) -> object:
    """The time of an ISO 8601 text. ``last week`` or ``2026`` stays a text for :meth:`Where.at`."""
    text = value if isinstance(value, datetime) else str(value)
    try:
        return _parse_moment(text)
    except ValueError as error:
        if start_of(str(text), datetime.max.replace(tzinfo=UTC)) is None:
            raise ValueError(f"{error}, or such as 2026, march or last week") from None
    return text


def as_list(value: object) -> object:
    """A list as it is, and a text as a list of one."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple)):
        return value
    raise ValueError("must be a text or a list of texts")


Moment = Annotated[datetime, BeforeValidator(_parse_moment), PlainSerializer(datetime.isoformat)]
Bound = Annotated[
    datetime | str,
    BeforeValidator(_parse_bound),
    PlainSerializer(lambda bound: bound if isinstance(bound, str) else bound.isoformat()),
    WithJsonSchema({"type": "string"}),
]
TaskText = Annotated[str, StringConstraints(max_length=MAX_TASK_CHARACTERS, pattern=r"\S")]
Name = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS, pattern=r"\S")]
_JOINERS = "\u200c\u200d"


def printable_line(text: str) -> str:
    """The text on one line.

    Raises:
        ValueError: it has characters that cannot be shown, which could hide something.
    """
    line = " ".join(text.split())
    if not "".join(character for character in line if character not in _JOINERS).isprintable():
        raise ValueError("has characters that cannot be shown")
    return line


PersonName = Annotated[Name, AfterValidator(printable_line)]
Reference = Annotated[str, StringConstraints(max_length=MAX_REFERENCE_CHARACTERS, pattern=r"\S")]
Milliseconds = Annotated[int, Field(ge=1, le=MAX_DEADLINE_MS)]
References = Annotated[list[Reference], Field(max_length=MAX_SEEN)]
Prefix = Annotated[str, StringConstraints(max_length=MAX_REFERENCE_CHARACTERS)]
_Values = Annotated[list[Name], Field(min_length=1, max_length=MAX_ALTERNATIVES)]
Alternatives = Annotated[_Values, BeforeValidator(as_list, json_schema_input_type=Name | _Values)]
"""One value or a list of alternatives."""


AGENT_DESCRIPTION = (
    "Id of the agent that asks. Required if the corpus has a scopes policy. Never make one up."
)
AgentName = Annotated[Name | None, Field(description=AGENT_DESCRIPTION)]
MaxChars = Annotated[
    Annotated[int, Field(ge=MIN_MAX_CHARS)] | None,
    Field(description="Upper bound on the characters of the text, at least 1000."),
]


class Where(Contract):
    """Which documents are searched: those that match every key that is given."""

    source: Alternatives | None = None
    document_type: Alternatives | None = None
    domain: Alternatives | None = None
    tags: Alternatives | None = None
    path: Alternatives | None = optional("Glob of the path or uri, such as manual/**.")
    attributes: Annotated[dict[Name, Alternatives], Field(max_length=MAX_ATTRIBUTES)] | None = (
        optional('Other keys of front matter, such as {"status": "draft"}.')
    )
    links_to: Alternatives | None = optional("A file that it links to.")
    task: Literal["open", "done"] | None = optional("It has such a [ ] task.")
    updated_after: Bound | None = optional("ISO 8601, or last week.")
    updated_before: Bound | None = optional("Before this time.")

    @model_validator(mode="after")
    def _check_dates(self) -> Self:
        after, before = self.updated_after, self.updated_before
        if isinstance(after, datetime) and isinstance(before, datetime) and after >= before:
            raise ValueError("updated_after must be earlier than updated_before")
        return self

    def at(self, now: datetime) -> Where:
        """The same, in which bounds such as ``last week`` are resolved to times."""
        bounds = {"updated_after": self.updated_after, "updated_before": self.updated_before}
        texts = ((key, bound) for key, bound in bounds.items() if isinstance(bound, str))
        return self.model_copy(update={key: start_of(text, now) for key, text in texts})


class RetrievalRequest(Contract):
    """A request for passages. Only ``task`` is required.

    The descriptions of the fields are also the help of the command line and the descriptions of the
    tools' parameters.
    """

    task: TaskText = required(
        "What you are about to do, in one or two sentences: the goal and its key terms."
    )
    also: Annotated[list[TaskText], Field(max_length=MAX_ALSO)] | None = optional(
        f"Up to {MAX_ALSO} other wordings of the task: synonyms, names, keywords that "
        "the documents may use, the answer that you expect. All are searched."
    )
    role: RoleId | None = optional(
        "The role whose overlay governs the answer. Without a role no overlay applies."
    )
    agent: AgentName = None
    action: Action | None = optional(
        "What the passages are for: execute changes something, external_send leaves "
        "the organization. Default: read. Ask again with that action before you use them for more."
    )
    approval: Name | None = optional(
        "Name of the person who approved the action; never make one up. Counts only if "
        "the host takes approvals from requests."
    )
    where: Where | None = optional(
        "Search only documents that match every key. Of several values of a key, one is enough."
    )
    seen: References | None = optional(
        "path:start-end or chunk_ids of passages that you already have. Others take their places."
    )
    limit: Count | None = optional(f"Number of passages, 1 to {MAX_LIMIT}. Default: the overlay's.")
    token_budget: Annotated[int, Field(ge=1)] | None = optional(
        "Upper bound on the estimated tokens of the passages; with packet, of the "
        f"packet, at least {MIN_PACKET_TOKENS}."
    )
    packet: bool = optional(
        "Return the answer also as one text for a model: what to beware of, the role's "
        "brief, how to cite, and the passages.",
        False,
    )
    lexical_only: bool = optional(
        "Match words only, without an embedding model: faster, but finds no synonyms.", False
    )
    fusion: Fusion | None = optional(
        "How matches of words and of meaning are combined. Default: the overlay's choice."
    )
    rerank: Name | None = optional(
        "The cross-encoder that scores the best passages again: rerank:MODEL in a server, or "
        "folder:PATH. Or none. Default: the configured model."
    )
    evidence: EvidenceNeed | None = optional(
        "required: return no passages if the documents have little of the task. Else "
        "they come with a caution, unless the overlay requires evidence."
    )
    as_of: Moment | None = optional(
        "As at this ISO 8601 time: without later and expired documents. "
        "Those without a declared date stay."
    )
    now: Moment | None = optional(
        "ISO 8601 time that ages are measured against. Default: as_of, or the current time."
    )
    detail: Detail | None = optional(
        "How much of the answer comes back as JSON. ids: references and scores. "
        "compact: passages to read. full: everything."
    )
    max_chars: MaxChars = None
    deadline_ms: Milliseconds | None = optional(
        "Stop the search after so many milliseconds, with an error that can be "
        "retried. Without reranking if its server is too slow for it."
    )

    @model_validator(mode="after")
    def _check_packet(self) -> Self:
        budget = self.token_budget
        if self.packet and budget is not None and budget < MIN_PACKET_TOKENS:
            raise ValueError(f"token_budget must be at least {MIN_PACKET_TOKENS} with packet")
        return self


ALIASES: Mapping[str, tuple[str, ...]] = {
    "task": ("q", "query", "question"),
    "limit": ("top_k", "k", "n", "max_results"),
    "role": ("role_id",),
    "agent": ("agent_id",),
    "approval": ("approved_by",),
    "where": ("filter", "filters"),
    "source": ("source_id",),
    "id": ("reference", "ref", "locator", "path", "target", "chunk_id", "document_id"),
    "ids": ("references", "id", "reference", "path", "locator", "chunk_id", "document_id"),
    "prefix": ("path", "folder"),
}
"""Fields and the other names that models use for them. camelCase is accepted, too."""


MAX_LISTED = 1_000
"""How many documents `ls` lists at most."""
DEFAULT_LISTED = 100
MAX_LINES = 1_000
"""How many lines `grep` finds at most."""
DEFAULT_LINES = 50
MAX_PATTERN_CHARACTERS = 1_000
MAX_ROLES = 10
"""How many roles `compare` compares at most."""
MAX_REFERENCES = 100
"""How many references `multi_get` takes, and how many documents each of its globs may match."""


class WhyRequest(RetrievalRequest):
    """A request for passages, and the passage or document whose result is explained."""

    id: Reference = required(
        "The chunk_id, document_id, path or path:start-end to follow through the search."
    )


class CompareRequest(RetrievalRequest):
    """A request for passages, asked for several roles instead of one."""

    roles: Annotated[list[RoleId], Field(min_length=2, max_length=MAX_ROLES)] = required(
        f"Ids of the roles to compare, 2 to {MAX_ROLES}."
    )

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if self.role is not None:
            raise ValueError("give roles only, without role")
        if len({*self.roles}) < 2:
            raise ValueError("roles must name at least two different roles")
        return self


class MultiGetRequest(Contract):
    """A request for passages or documents by their references. `get` takes a single one."""

    ids: Annotated[
        list[Reference],
        Field(min_length=1, max_length=MAX_REFERENCES),
        BeforeValidator(as_list, json_schema_input_type=list[Reference]),
    ] = required("path:start-end, paths, chunk_ids, document_ids, or globs such as notes/*.txt.")
    outline: bool = optional("Return only the headings of the document, with their lines.", False)
    section: Name | None = optional("Return only the text below this heading of the document.")
    agent: AgentName = None
    max_chars: MaxChars = None

    @model_validator(mode="after")
    def _check_part(self) -> Self:
        if self.outline and self.section is not None:
            raise ValueError("give outline or section, not both")
        return self


class ListRequest(Contract):
    """A request for the documents below a path or of a source."""

    prefix: Prefix | None = optional(
        "A folder, a path, a source_id, or a glob such as manual/**. Default: all documents."
    )
    agent: AgentName = None
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] | None = optional(
        f"Number of documents, 1 to {MAX_LISTED}. Default: {DEFAULT_LISTED}."
    )
    after: Reference | None = optional(
        "The last document_id of the previous page: `next` of its answer."
    )


class GrepRequest(Contract):
    """A request for the lines with an exact text, or that a regular expression matches."""

    pattern: Annotated[str, StringConstraints(max_length=MAX_PATTERN_CHARACTERS)] = required(
        "Exact text. Case counts only if it has a capital letter."
    )
    regex: bool = optional("The pattern is an RE2 expression.", False)
    prefix: Prefix | None = optional("A folder, path, source_id or glob.")
    agent: AgentName = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] | None = optional(
        f"Number of lines, 1 to {MAX_LINES}. Default: {DEFAULT_LINES}."
    )
    after: Reference | None = optional("`next` of the previous answer.")


class StatusRequest(Contract):
    """The request of `status` and `roles.list`."""

    agent: AgentName = None


class IngestRequest(Contract):
    """Files and folders to synchronize the corpus with."""

    paths: list[str] = required("Absolute paths of files and folders.")
    lexical_only: bool = optional(
        "Do not embed. New chunks then have no vector, and only the lexical lane finds them.", False
    )
