"""What goes with the corpus as an agent sees it. Not in `scopes`, which takes longer to load."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.policy.trust import DEFAULT_TABLE, TrustTable


class Admitted(NamedTuple):
    """How far passages may be trusted, and what is kept back.

    ``quarantined`` is how many documents the scan at the door keeps back that the agent would see
    else.
    """

    trust: TrustTable = DEFAULT_TABLE
    quarantined: int = 0


NOBODY_GOVERNS = Admitted()
"""Where no policy was set and nothing is kept back."""
