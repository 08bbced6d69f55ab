"""The request: the same fields through every door. Only ``task`` is required."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.terms import Fusion

MAX_TASK_CHARACTERS = 1_000_000


class RetrievalRequest(BaseModel):
    """What an agent asks.

    Attributes:
        task: what the agent is about to do, in its own words.
        role: whose overlay governs the answer; with none there is no overlay.
        limit: passages wanted; else the overlay's ``max_selected_chunks``.
        token_budget: upper bound on the estimated tokens of the selected passages.
        lexical_only: do without embeddings.
        fusion: how the lanes are joined; else the overlay's.
        now: the time that ages are measured against; else the clock's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str = Field(min_length=1, max_length=MAX_TASK_CHARACTERS)
    role: RoleId | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    token_budget: Annotated[int, Field(ge=1)] | None = None
    lexical_only: bool = False
    fusion: Fusion | None = None
    now: AwareDatetime | None = None
