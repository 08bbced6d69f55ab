"""Marks: the request to mark a passage or document, and the list of marks."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.request import AGENT_DESCRIPTION, Name, Reference
from rolebundle.contracts.terms import Authority, MarkState

MAX_STATEMENT_CHARACTERS = 1_000
_JOINERS = "\u200c\u200d"


def one_line(text: str) -> str:
    """The text on one line.

    Raises:
        ValueError: it has characters that cannot be shown, which could hide something.
    """
    line = " ".join(text.split())
    if not "".join(character for character in line if character not in _JOINERS).isprintable():
        raise ValueError("has characters that cannot be shown")
    return line


Statement = Annotated[
    str,
    StringConstraints(max_length=MAX_STATEMENT_CHARACTERS, pattern=r"\S"),
    AfterValidator(one_line),
]
"""A sentence or two, kept on one line."""
PersonName = Annotated[Name, AfterValidator(one_line)]


class MarkRequest(Contract):
    """A request to mark a passage or a document."""

    id: Reference = Field(
        description="path:start-end, path, chunk_id or document_id, from an answer."
    )
    state: MarkState | Literal["unverified"] = Field(
        description="disputed (it may be wrong) or unverified (removes your own mark). Only a "
        "person marks what is rejected or verified: rejected, tool_verified, supervisor_verified."
    )
    reason: Statement = Field(description="Why, in a sentence. Other readers see it.")
    agent: Name | None = Field(None, description=AGENT_DESCRIPTION)


class MarkRecord(Contract):
    """A mark.

    Attributes:
        kind: what is marked.
        target: its chunk_id or document_id.
        state: ``unverified`` if the mark was removed by the request that this answers.
        marked_at: ISO 8601 in UTC.
        ended: whether the text has changed or is gone since, so that the mark does not count.
    """

    kind: Literal["chunk", "document"]
    target: str
    state: MarkState | Literal["unverified"]
    marked_by: str
    authority: Authority
    reason: str
    marked_at: str
    ended: bool = False


MarkList = list_of(MarkRecord, "marks", "MarkList", "`mark list`.")
