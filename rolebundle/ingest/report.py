"""The result of an ingest run."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from rolebundle.contracts.terms import TrustTier
from rolebundle.ingest.prepare import FileTask, Outcome, Prepared
from rolebundle.ingest.walk import Skipped

ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Errors in documents that their author must correct. The run continues; its exit code is 10."""


@dataclass(slots=True)
class Grant:
    """How many documents a manifest, or documents themselves, raised to a trust tier.

    ``path`` is the manifest's; empty for the documents themselves.
    """

    path: str
    trust_tier: TrustTier
    documents: int


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
    grants: list[Grant] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    trusted: int = 0
    embedded: int = 0
    waiting: int = 0
    embedding_problem: str = ""
    optimized: int = 0

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]


# -- reading progress --
#
# How far the reading of files is.


_SECONDS_BETWEEN_REPORTS = 0.2


class Reading(NamedTuple):
    """How far the reading of files is. ``slow`` is the path of a file that takes long, or empty."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    chunks: int
    slow: str = ""


OnReading = Callable[[Reading], None]
"""Called a few times per second while files are read."""


def no_reading(_reading: Reading) -> None:
    """Report nothing."""


class ReadingMeter:
    """Reports how far the reading of files is."""

    def __init__(
        self, tasks: Sequence[FileTask], unchanged: Container[str], on_reading: OnReading
    ) -> None:
        self.on_reading = on_reading
        sizes = [(task.file.size, task.file.location in unchanged) for task in tasks]
        self.now = Reading(
            sum(is_done for _, is_done in sizes),
            len(tasks),
            sum(size for size, is_done in sizes if is_done),
            sum(size for size, _ in sizes),
            0,
        )

    def slow(self, path: str) -> None:
        """Report a file that takes long."""
        self.on_reading(self.now._replace(slow=path))

    def measured(
        self, outcomes: Iterable[tuple[FileTask, Outcome]]
    ) -> Iterator[tuple[FileTask, Outcome]]:
        """Yield the outcomes, and report how many there were."""
        reported_at = monotonic()
        for task, outcome in outcomes:
            now = self.now
            chunks = now.chunks
            if isinstance(outcome, Prepared):
                chunks += sum(len(document.chunks) for document in outcome.documents)
            self.now = now._replace(
                files=now.files + 1, bytes=now.bytes + task.file.size, chunks=chunks
            )
            if monotonic() - reported_at > _SECONDS_BETWEEN_REPORTS:
                reported_at = monotonic()
                self.on_reading(self.now)
            yield task, outcome
