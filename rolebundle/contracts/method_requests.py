"""The requests of the methods besides retrieve."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import (
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from rolebundle.contracts.base import Contract
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.request import (
    MAX_REFERENCE_CHARACTERS,
    AgentName,
    MaxChars,
    Name,
    Reference,
    RetrievalRequest,
    as_list,
)

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

    id: Reference = Field(
        description="The chunk_id, document_id, path or path:start-end to follow through the "
        "search."
    )


class CompareRequest(RetrievalRequest):
    """A request for passages, asked for several roles instead of one."""

    roles: Annotated[list[RoleId], Field(min_length=2, max_length=MAX_ROLES)] = Field(
        description=f"Ids of the roles to compare, 2 to {MAX_ROLES}."
    )

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if self.role is not None:
            raise ValueError("give roles only, without role")
        if len({*self.roles}) < 2:
            raise ValueError("roles must name at least two different roles")
        return self


class _Part(Contract):
    """Which part of a document is asked for."""

    outline: bool = Field(
        False, description="Return only the headings of the document, with their lines."
    )
    section: Name | None = Field(
        None, description="Return only the text below this heading of the document."
    )

    @model_validator(mode="after")
    def _check_part(self) -> Self:
        if self.outline and self.section is not None:
            raise ValueError("give outline or section, not both")
        return self


class GetRequest(_Part):
    """A request for a passage or document by its reference."""

    id: Reference = Field(
        description="A chunk_id, a document_id, a path, path:start-end or "
        "#document_id:place:count, from an answer."
    )
    agent: AgentName = None
    max_chars: MaxChars = None


class ListRequest(Contract):
    """A request for the documents below a path or of a source."""

    prefix: Annotated[str, StringConstraints(max_length=MAX_REFERENCE_CHARACTERS)] | None = Field(
        None,
        description="A folder, a path, a source_id, or a glob such as manual/**. Default: all "
        "documents.",
    )
    agent: AgentName = None
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] | None = Field(
        None, description=f"Number of documents, 1 to {MAX_LISTED}. Default: {DEFAULT_LISTED}."
    )
    after: Reference | None = Field(
        None, description="The last document_id of the previous page: `next` of its answer."
    )


class GrepRequest(Contract):
    """A request for the lines with an exact text, or that a regular expression matches."""

    pattern: Annotated[str, StringConstraints(max_length=MAX_PATTERN_CHARACTERS)] = Field(
        description="Exact text. Case counts only if it has a capital letter."
    )
    regex: bool = Field(False, description="The pattern is an RE2 expression.")
    prefix: Annotated[str, StringConstraints(max_length=MAX_REFERENCE_CHARACTERS)] | None = Field(
        None, description="A folder, path, source_id or glob."
    )
    agent: AgentName = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] | None = Field(
        None, description=f"Number of lines, 1 to {MAX_LINES}. Default: {DEFAULT_LINES}."
    )
    after: Reference | None = Field(None, description="`next` of the previous answer.")


class MultiGetRequest(_Part):
    """A request for several passages or documents."""

    ids: Annotated[
        list[Reference],
        Field(min_length=1, max_length=MAX_REFERENCES),
        BeforeValidator(as_list, json_schema_input_type=list[Reference]),
    ] = Field(
        description="path:start-end, paths, chunk_ids, document_ids, or globs such as notes/*.txt."
    )
    agent: AgentName = None
    max_chars: MaxChars = None


class RoleRequest(Contract):
    """A request for the overlay of a role."""

    role: RoleId = Field(description="Id of the role.")
    agent: AgentName = None


class StatusRequest(Contract):
    """The request of `status` and `roles.list`."""

    agent: AgentName = None


class IngestRequest(Contract):
    """Files and folders to synchronize the corpus with."""

    paths: list[str] = Field(description="Absolute paths of files and folders.")
    lexical_only: bool = Field(
        False,
        description="Do not embed. New chunks then have no vector, and only the lexical lane finds "
        "them.",
    )
