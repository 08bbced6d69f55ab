"""The options of an ingest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolebundle.contracts.ingest import ScanOptions
from rolebundle.contracts.terms import TrustTier
from rolebundle.ingest.authority import GOVERNANCE_KEYS
from rolebundle.ingest.prepare import Verified
from rolebundle.scan.finding import SecretsPolicy


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Settings of a run. ``None`` stands for what an earlier ingest of the root was given.

    Attributes:
        flags: metadata of all files. Manifests and front matter take precedence, but may only lower
            what governs a document. The value ``None`` removes a remembered one.
        max_trust: the highest trust tier that manifests and documents may declare.
        chunking: ``size`` and ``maximum`` in characters; overrides the manifest.
        size_cap: the maximum file size in bytes; larger files are skipped.
        ignore: whether ignore files, and folders and files that are left out by default, count.
            Default: they do.
        secrets: what the intake scan does with secrets.
        lexical_only: whether the run does not embed; remembered for :func:`update`.
        workers: the number of processes that parse; 1 parses in the current process.
        reread: read every file, also those that did not change.
        verified: what earlier runs of this process found out; files that were not touched since
            are not read. ``None``: every file is read.
        seen: the size and time of change of files at the last run. Those that still have both are
            passed over, also if they were skipped.
        max_removed: the largest share of the files of one path that the run may remove.
        wait: embed for long if the active index is of a contextual model. If not, only a handful of
            passages is embedded, and others are found by their words until that is done later.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    max_trust: TrustTier | None = None
    chunking: Mapping[str, int] = field(default_factory=dict)
    size_cap: int | None = None
    ignore: bool | None = None
    secrets: SecretsPolicy | None = None
    lexical_only: bool | None = None
    workers: int = 1
    reread: bool = False
    verified: Verified | None = None
    seen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    max_removed: float = 1.0
    wait: bool = True

    def root_options(self) -> dict[str, Any]:
        """The given options that a root remembers, by their name in ``RootOptions``."""
        options = {
            "max_size": self.size_cap,
            "ignore": self.ignore,
            "lexical_only": self.lexical_only,
            "scan": ScanOptions(secrets=self.secrets) if self.secrets else None,
            "chunking": self.chunking or None,
            "meta": {key: value for key, value in self.flags.items() if key not in GOVERNANCE_KEYS}
            or None,
        }
        return {name: value for name, value in options.items() if value is not None}
