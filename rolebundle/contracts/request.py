"""The request: the same fields through every door. Only ``task`` is required."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints

from rolebundle.contracts.base import Contract
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.terms import Action, Detail, Fusion

MAX_TASK_CHARACTERS = 1_000_000
MAX_REFERENCE_CHARACTERS = 10_000
MAX_NAME_CHARACTERS = 200
NO_RERANK = "none"
"""Says in a request that nothing is reranked, also where the door was set to do so."""
LEAST_CHARACTERS = 1_000
"""An answer needs this much to say what was found, and what was left out."""


def _parse_moment(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("must be an ISO 8601 time, such as 2026-03-01") from None
    # A time without a zone is UTC, so that an answer does not depend on the machine.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, BeforeValidator(_parse_moment), PlainSerializer(datetime.isoformat)]
TaskText = Annotated[str, StringConstraints(max_length=MAX_TASK_CHARACTERS, pattern=r"\S")]
Name = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS, pattern=r"\S")]
Reference = Annotated[str, StringConstraints(max_length=MAX_REFERENCE_CHARACTERS, pattern=r"\S")]


class RetrievalRequest(Contract):
    """What an agent asks.

    Attributes:
        task: what the agent is about to do, in its own words.
        role: whose overlay governs the answer; with none there is no overlay.
        agent: who asks, by its id.
        action: what the passages are wanted for; with none they are wanted to read.
        approval: the name of the person who approved the action.
        limit: passages wanted; else the overlay's ``max_selected_chunks``.
        token_budget: upper bound on the estimated tokens of the selected passages.
        lexical_only: do without embeddings.
        fusion: how the lanes are joined; else the overlay's.
        rerank: the model, ``PROVIDER:MODEL``, that re-scores the best candidates; else what the
            door was set to. ``none``: nothing is reranked.
        now: the time that ages are measured against; else the clock's.
        detail: how much of the bundle comes back; else the door's own default.
        max_chars: upper bound on the characters of the whole answer.
        deadline_ms: after so many milliseconds the search is interrupted.
    """

    task: TaskText
    role: RoleId | None = None
    agent: Name | None = None
    action: Action | None = None
    approval: Name | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    token_budget: Annotated[int, Field(ge=1)] | None = None
    lexical_only: bool = False
    fusion: Fusion | None = None
    rerank: Name | None = None
    now: Moment | None = None
    detail: Detail | None = None
    max_chars: Annotated[int, Field(ge=LEAST_CHARACTERS)] | None = None
    deadline_ms: Annotated[int, Field(ge=1)] | None = None


class WhyRequest(RetrievalRequest):
    """A request, and the passage or document to follow through it."""

    id: Reference


class GetRequest(Contract):
    """What to look up: a chunk id, a document id, ``path:start-end``, ``#id:from:count``."""

    id: Reference
    agent: Name | None = None
    max_chars: Annotated[int, Field(ge=LEAST_CHARACTERS)] | None = None


class RoleRequest(Contract):
    """Which role's overlay to show."""

    role: RoleId
    agent: Name | None = None


class StatusRequest(Contract):
    """Nothing to say but who asks: `status` and `roles.list` take no other field."""

    agent: Name | None = None


class IngestRequest(Contract):
    """Files and folders to bring the corpus in step with."""

    paths: list[str]
    lexical_only: bool = False


ALIASES = {
    "q": "task",
    "query": "task",
    "question": "task",
    "top_k": "limit",
    "k": "limit",
    "n": "limit",
    "max_results": "limit",
    "role_id": "role",
    "agent_id": "agent",
    "approved_by": "approval",
    "reference": "id",
    "chunk_id": "id",
    "document_id": "id",
}
"""What models guess, and what they mean. camelCase is taken, too. All are listed in the schema."""
