"""The roots of a corpus, as its owner moves and removes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rolebundle.contracts.roots import RootChange
from rolebundle.ingest import root_changes
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Roots:
    """Changes to the roots of one corpus."""

    workspace: Workspace

    def move(self, old: Path, new: Path) -> RootChange:
        """See :func:`rolebundle.ingest.root_changes.move_root`."""
        with self.workspace.recorded_change("ingest") as (corpus, details):
            change = root_changes.move_root(corpus, old, new)
            details["moved"] = change.documents
        return change

    def remove(self, path: Path, *, confirmed: bool = False) -> RootChange:
        """See :func:`rolebundle.ingest.root_changes.remove_root`."""
        if not confirmed:
            return root_changes.remove_root(self.workspace.corpus, path, confirmed=False)
        with self.workspace.recorded_change("ingest") as (corpus, details):
            change = root_changes.remove_root(corpus, path, confirmed=True)
            details["removed"] = change.documents
        return change
