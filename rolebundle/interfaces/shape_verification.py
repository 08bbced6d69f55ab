"""How much of a verification comes back."""

from __future__ import annotations

from rolebundle.contracts.verification import Verification, VerifyDetail
from rolebundle.interfaces.character_budget import Answer


def shaped_verification(verification: Verification, detail: VerifyDetail) -> Answer:
    """The answer to `verify` as plain values.

    Args:
        verification: what was found.
        detail: `full` has all findings; `compact` those that fail or have a remedy.
    """
    values = verification.model_dump(exclude_none=True)
    if detail == "compact":
        values["findings"] = [
            finding for finding in values["findings"] if finding["fails"] or "remedy" in finding
        ]
    return values
