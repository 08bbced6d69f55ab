"""Remembered facts: the request to file one, its answer, and the list of them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.request import AGENT_DESCRIPTION, Name, Reference
from rolebundle.contracts.terms import Sensitivity, TrustTier

MAX_FACT_CHARACTERS = 2_000
"""A fact is a statement and not a document."""


def _plain_lines(text: str) -> str:
    """The text with plain line ends, and nothing around it.

    Raises:
        ValueError: it has control characters.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if any(character < " " and character not in "\n\t" for character in lines):
        raise ValueError("has control characters")
    return lines


FactText = Annotated[
    str,
    StringConstraints(max_length=MAX_FACT_CHARACTERS, pattern=r"\S"),
    AfterValidator(_plain_lines),
]


class RememberRequest(Contract):
    """A request to file a fact with its source."""

    fact: FactText = Field(
        description="The fact, in one or a few sentences that can be understood alone."
    )
    source: Reference = Field(
        description="A path:start-end or chunk_id from an answer, or the http(s) address of a page."
    )
    scope: Annotated[Name, StringConstraints(pattern=r"^[^\x00-\x1f]+$")] | None = Field(
        None,
        description="The scope that the fact belongs to. Default: that of its source.",
    )
    agent: Name | None = Field(None, description=AGENT_DESCRIPTION)


class RememberedFact(Contract):
    """A fact as it was filed.

    Attributes:
        state: ``stored``; ``counted`` if the same fact was there already; ``quarantined`` if the
            scan found an attack in it, so that no agent sees it until a person releases it.
        locator: where the fact is cited.
        source: where it comes from: ``path:start-end`` or an address.
        fact: the text, with secrets masked and without hidden characters.
        count: how often it was filed.
        first_at, last_at: when it was filed first and last; ISO 8601 in UTC.
        flags: the kinds of what the scan found in it; null for nothing.
    """

    state: Literal["stored", "counted", "quarantined"]
    document_id: str
    chunk_id: str
    locator: str
    source: str
    fact: str
    scope: str
    sensitivity: Sensitivity
    trust_tier: TrustTier
    count: int
    first_at: str
    last_at: str
    flags: list[str] | None = None


class FactRecord(RememberedFact):
    """A fact as its owner sees it.

    Attributes:
        remembered_by: who filed it first.
        promoted_by: who promoted it; null if nobody did.
        source_is_gone: whether the corpus has no more the document that it cites.
    """

    remembered_by: str
    promoted_by: str | None = None
    source_is_gone: bool = False


FactList = list_of(FactRecord, "facts", "FactList", "`remember list`.")
