"""The request: the same fields through every door. Only ``task`` is required."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from rolebundle.contracts.base import Contract, contract
from rolebundle.contracts.constraints import Range, Text
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.terms import Fusion

MAX_TASK_CHARACTERS = 1_000_000


@contract
class RetrievalRequest(Contract):
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

    task: Annotated[str, Text(MAX_TASK_CHARACTERS)]
    role: RoleId | None = None
    limit: Annotated[int, Range(least=1, most=1000)] | None = None
    token_budget: Annotated[int, Range(least=1)] | None = None
    lexical_only: bool = False
    fusion: Fusion | None = None
    now: datetime | None = None
