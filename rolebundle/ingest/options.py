"""What an ingest is told, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rolebundle.contracts.ingest import ScanOptions, TrustGrant
from rolebundle.contracts.terms import TrustTier
from rolebundle.ingest.authority import GOVERNANCE_KEYS
from rolebundle.ingest.prepare import VerifiedFiles
from rolebundle.ingest.walk import Skipped
from rolebundle.scan.finding import ScanSettings


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Settings of a run. ``None`` stands for what an earlier ingest of the root was given.

    Attributes:
        flags: metadata of all files. Manifests and front matter take precedence, but may only lower
            what governs a document. The value ``None`` lifts a remembered one.
        max_trust: the highest trust tier that manifests and documents may declare.
        chunking: ``size`` and ``maximum`` in characters; overrides the manifest.
        size_cap: the maximum file size in bytes; larger files are skipped.
        ignore: whether ignore files, and folders and files that are left out by default, count.
            Default: they do.
        scan: settings of the intake scan; False for no scan.
        lexical_only: whether the run does not embed; remembered for :func:`update`.
        workers: the number of processes that parse; 1 parses in the current process.
        reread: read every file, also those that did not change.
        verified: what earlier runs of this process found out; files that were not touched since
            are not read. ``None``: every file is read.
        max_removed: the largest share of the files of one path that the run may remove.
        wait: embed also if the active index is of a contextual model, which takes long. If not, new
            passages are found by their words until they are embedded later.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    max_trust: TrustTier | None = None
    chunking: Mapping[str, int] = field(default_factory=dict)
    size_cap: int | None = None
    ignore: bool | None = None
    scan: ScanSettings | Literal[False] | None = None
    lexical_only: bool | None = None
    workers: int = 1
    reread: bool = False
    verified: VerifiedFiles | None = None
    max_removed: float = 1.0
    wait: bool = True

    def root_options(self) -> dict[str, Any]:
        """The given options that a root remembers, by their name in ``RootOptions``."""
        options = {
            "max_size": self.size_cap,
            "ignore": self.ignore,
            "lexical_only": self.lexical_only,
            "scan": None if self.scan is None else _scan_options(self.scan),
            "chunking": self.chunking or None,
            "meta": {key: value for key, value in self.flags.items() if key not in GOVERNANCE_KEYS}
            or None,
        }
        return {name: value for name, value in options.items() if value is not None}


def _scan_options(scan: ScanSettings | Literal[False]) -> ScanOptions:
    if scan is False:
        return ScanOptions(enabled=False)
    return ScanOptions(secrets=scan.secrets)


def scan_settings(options: IngestOptions, remembered: ScanOptions) -> ScanSettings | None:
    """The settings of the intake scan for a root that remembers these; ``None`` for no scan."""
    if options.scan is not None:
        return options.scan or None
    return ScanSettings(remembered.secrets) if remembered.enabled else None


ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Errors in documents that their author must correct. The run continues; its exit code is 10."""


@dataclass(slots=True)
class IngestReport:
    """The result of a run.

    Attributes:
        added, updated, unchanged, removed: numbers of files.
        skipped: files, folders and records that were not stored.
        failed: paths that the run was given and that were skipped as a whole.
        flagged: the number of stored documents with findings of the intake scan.
        quarantined: the number of stored documents that the intake scan quarantined.
        notes: remarks on files that were stored, and on manifests.
        grants: what manifests gave to documents that were stored in this run.
        documents, chunks: totals of the corpus after the run.
        trusted: how many of these documents are preferred or authoritative.
        embedded: the number of chunks that got a vector in this run.
        waiting: the number of chunks of the corpus without a vector.
        embedding_problem: why chunks are waiting; empty if the model was not used or had no error.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    flagged: int = 0
    quarantined: int = 0
    notes: list[Skipped] = field(default_factory=list)
    grants: list[TrustGrant] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    trusted: int = 0
    embedded: int = 0
    waiting: int = 0
    embedding_problem: str = ""

    @property
    def changes(self) -> tuple[int, int, int]:
        """The numbers of files that were added, updated and removed."""
        return self.added, self.updated, self.removed

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]
