"""The result of an ingest run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rolebundle.contracts.ingest import TrustGrant
from rolebundle.ingest.walk import Skipped

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
        optimized: the number of approximate indexes that were built.
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
    optimized: int = 0

    @property
    def changes(self) -> tuple[int, int, int]:
        """The numbers of files that were added, updated and removed."""
        return self.added, self.updated, self.removed

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]


# -- reading progress --
#
# How far the reading of files is.


class Reading(NamedTuple):
    """How far the reading of files is. ``slow`` is the path of a file that takes long, or empty."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0
    chunks: int = 0
    slow: str = ""


OnReading = Callable[[Reading], None]
"""Called a few times per second while files are read."""


def no_reading(_reading: Reading) -> None:
    """Report nothing."""
