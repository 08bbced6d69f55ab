"""The receipt of a purge: that something was erased, and how much; never what."""

from typing import Literal

from rolebundle.contracts.base import Contract

PurgeState = Literal["pending", "done"]
Obstacle = Literal["", "reader", "writer", "disk", "cache"]


class Receipt(Contract):
    """That something was erased. Nothing in here is made of what it was: the id is random.

    ``pending`` means that it can no longer be found, and that copies of its bytes may still be in
    the corpus file or its log. ``waiting_for`` names what stood in the way.
    """

    id: str
    purged_at: str
    documents: int
    chunks: int
    vectors: int
    state: PurgeState
    waiting_for: Obstacle = ""
