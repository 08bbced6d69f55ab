"""The policy of a corpus: which agent may see what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.scopes import BridgeReport
from rolebundle.ingest.indexes import Progress
from rolebundle.policy import access, bridges
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Policy:
    """The policy of one corpus."""

    workspace: Workspace

    def set(self, content: str, kind: str, location: str = "") -> int:
        """Put a policy into force.

        Args:
            content: the policy's text.
            kind: ``toml`` or ``json``.
            location: the policy file; empty if there is none. If the file is missing or changed
                later, every agent is denied.

        Returns:
            The number of documents that moved to another compartment.

        Raises:
            ConfigurationError: the policy is malformed. The former policy stays in force.
            StorageError: the audit cannot be created or written. The former policy stays in force.
        """
        now = iso_utc(datetime.now(UTC))
        with self.workspace.recorded_change("scopes") as (corpus, details):
            moved = access.set_policy(corpus, content, kind, location, now)
            self.workspace.recorder.begin(corpus)
            details["moved"] = moved
        return moved

    def find_bridges(
        self, threshold: float, limit: int, *, progress: Progress | None = None
    ) -> BridgeReport:
        """See :func:`rolebundle.policy.bridges.find_bridges`."""
        found = bridges.find_bridges(self.workspace.answering_corpus, threshold, limit, progress)
        self.workspace.recorder.note(self.workspace.corpus, "bridges", allowed=len(found.bridges))
        return found
