"""What the owner of a corpus approves: the commands of gates' contracts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.document import iso_utc
from rolebundle.errors import UsageError
from rolebundle.storage.records import approvals
from rolebundle.storage.records.approvals import Approval
from rolebundle.verification.gate import contract as contracts
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Approvals:
    """The approvals of one corpus. Each holds until the content of its file changes."""

    workspace: Workspace

    def approve_contract(self, contract: Path) -> Approval:
        """Let the commands of a contract be run.

        The corpus file is created if it is missing.

        Raises:
            UsageError: there is no such contract.
            ConfigurationError: it is wrong.
        """
        loaded = contracts.load_contract(contract)
        return self._approve(str(loaded.path), loaded.content_hash)

    def revoke_contract(self, contract: Path) -> str:
        """Withdraw the approval of a contract, which may be gone; return its location.

        Raises:
            UsageError: it was not approved.
        """
        return self._revoke(str(contracts.location_of(contract)))

    def _approve(self, location: str, content_hash: str) -> Approval:
        approval = Approval(location, content_hash, iso_utc(datetime.now(UTC)))
        with self.workspace.recorded_change("trust", create=True) as (corpus, details):
            approvals.approve(corpus, approval)
            details["approved"] = 1
        return approval

    def _revoke(self, location: str) -> str:
        with self.workspace.recorded_change("trust") as (corpus, details):
            if not approvals.revoke(corpus, location):
                raise UsageError(
                    "not_approved",
                    f"{location}: was not approved",
                    "`rolebundle gate approve` shows what was approved",
                )
            details["revoked"] = 1
        return location
