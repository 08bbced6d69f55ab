"""Backups of a corpus and its audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rolebundle.contracts.backup import BackupReport, RestoreReport
from rolebundle.policy import backup
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Backups:
    """The backups of one corpus."""

    workspace: Workspace

    def create(self, target: Path, overlay_folders: Sequence[Path] = ()) -> BackupReport:
        """Copy the corpus and its audit; see :func:`rolebundle.policy.backup.back_up`."""
        report = backup.back_up(self.workspace.path, target, overlay_folders)
        self._record(report)
        return report

    def rotate(self, folder: Path, overlay_folders: Sequence[Path] = ()) -> BackupReport:
        """Add a backup to a folder of them; see :func:`rolebundle.policy.backup.rotate`."""
        report = backup.rotate(self.workspace.path, folder, overlay_folders)
        self._record(report)
        return report

    def restore(
        self, source: Path, overlay_folders: Sequence[Path] = (), *, confirmed: bool = False
    ) -> RestoreReport:
        """Put a backup in the place of the corpus; see :func:`rolebundle.policy.backup.restore`."""
        self.workspace.close()
        return backup.restore(source, self.workspace.path, overlay_folders, confirmed=confirmed)

    def _record(self, report: BackupReport) -> None:
        details = {"documents": report.manifest.documents}
        self.workspace.recorder.note(self.workspace.corpus, "backup", details=details)
