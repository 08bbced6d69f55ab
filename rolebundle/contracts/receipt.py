"""The receipt of a purge: how much was erased, but not what."""

from typing import Literal

from rolebundle.contracts.base import Contract

PurgeState = Literal["pending", "done"]
Obstacle = Literal["", "reader", "writer", "disk", "cache"]


class Receipt(Contract):
    """How much was erased. No field is derived from the erased content: the id is random.

    Attributes:
        purged_at: ISO 8601 in UTC.
        documents: number of erased documents; ``chunks`` and ``vectors`` likewise.
        state: ``pending`` means that nothing erased can be retrieved any more, but copies of its
            bytes may still be in the corpus file or its log. ``done`` means that none are.
        waiting_for: what prevented the overwriting of these copies; empty if ``done``.
    """

    id: str
    purged_at: str
    documents: int
    chunks: int
    vectors: int
    state: PurgeState
    waiting_for: Obstacle = ""
