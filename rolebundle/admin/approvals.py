"""What the owner of a corpus approves: manifests of others, and contracts of gates."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.document import iso_utc
from rolebundle.errors import UsageError
from rolebundle.ingest import manifests
from rolebundle.storage.records import approvals
from rolebundle.storage.records.approvals import Approval
from rolebundle.verification.gate import contract as contracts
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Approvals:
    """The approvals of one corpus. Each holds until the content of its file changes."""

    workspace: Workspace

    def approve_manifest(self, path: Path) -> Approval:
        """Let a manifest count although it lies in a checkout or belongs to another user.

        The corpus file is created if it is missing.

        Args:
            path: the manifest or its folder.

        Raises:
            UsageError: there is no manifest.
            ConfigurationError: it is invalid.
        """
        return self._approve(*manifests.approval_of(path))

    def revoke_manifest(self, path: Path) -> str:
        """Withdraw the approval of a manifest. The next ingest reads its documents again.

        Args:
            path: the manifest or its folder; it may be gone.

        Returns:
            The location of the manifest.

        Raises:
            UsageError: it was not approved.
        """
        return self._revoke(str(manifests.location_of(path)))

    def approve_contract(self, contract: Path, *, inline_code: bool = False) -> Approval:
        """Let the commands of a contract be run.

        The corpus file is created if it is missing.

        Args:
            contract: the contract's file.
            inline_code: also allow a shell, or an interpreter with code in an argument.

        Raises:
            UsageError: there is no such contract; or ``inline_code``: a command needs it.
            ConfigurationError: it is wrong.
        """
        loaded = contracts.load_contract(contract)
        for command in loaded.commands:
            if not inline_code and contracts.has_inline_code(command):
                raise UsageError(
                    "inline_code",
                    f"{loaded.path}: has a shell or code as argument: {shlex.join(command)[:200]}",
                    "put the code into a file beside the contract, or use --inline-code",
                )
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
                    "`rolebundle policy trust list` shows what was approved",
                )
            details["revoked"] = 1
        return location
