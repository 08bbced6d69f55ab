"""Stores prepared files in batches, each in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rolebundle.contracts.terms import trust_rank
from rolebundle.errors import DocumentError
from rolebundle.ingest.dates import inferred_at
from rolebundle.ingest.prepare import TRANSIENT_CODES, FileTask, Outcome, Prepared
from rolebundle.ingest.report import ERROR_CODES, Grant, IngestReport
from rolebundle.ingest.walk import Skipped, skipped_for
from rolebundle.policy.access import deny_matcher
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.corpus_state import increment_generation

_CHUNKS_PER_BATCH = 8_000
_FILES_PER_BATCH = 2_000


def batches(
    outcomes: Iterable[tuple[FileTask, Outcome]],
) -> Iterator[list[tuple[FileTask, Outcome]]]:
    """Divide outcomes into batches, which one transaction can store without a long wait."""
    batch: list[tuple[FileTask, Outcome]] = []
    chunks = 0
    for task, outcome in outcomes:
        batch.append((task, outcome))
        if isinstance(outcome, Prepared):
            chunks += sum(len(document.chunks) for document in outcome.documents)
        if chunks >= _CHUNKS_PER_BATCH or len(batch) >= _FILES_PER_BATCH:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def store_batch(
    corpus: Corpus,
    batch: Sequence[tuple[FileTask, Outcome]],
    commits: Mapping[str, int | None],
    report: IngestReport,
) -> set[str]:
    """Store one batch; return the locations whose documents stay in the corpus."""
    stored_locations: set[str] = set()
    prepared: list[tuple[FileTask, Prepared]] = []
    for task, outcome in batch:
        if isinstance(outcome, Skipped):
            report.skipped.append(outcome)
            # A file that could not be read may be unchanged, so its documents stay. If a file was
            # read and rejected, its former documents are removed.
            if outcome.code in TRANSIENT_CODES:
                stored_locations.add(task.file.location)
        else:
            prepared.append((task, _dated(outcome, inferred_at(task.file, commits))))
    if not prepared:
        return stored_locations
    displaced: list[tuple[str, DocumentError]] = []
    with corpus.writing():
        problems = store.put_files(
            corpus,
            [(file.file, file.documents) for _, file in prepared],
            deny_matcher(corpus),
            displaced,
        )
        increment_generation(corpus)
    report.removed += len(displaced)
    report.skipped += [skipped_for(path, problem) for path, problem in displaced]
    for (task, file), problem in zip(prepared, problems, strict=True):
        # The file is stored even if some of its records were rejected, which are errors.
        report.skipped += [note for note in file.notes if note.code in ERROR_CODES]
        report.notes += [note for note in file.notes if note.code not in ERROR_CODES]
        verdicts = [document.scanned.verdict for document in file.documents if document.scanned]
        report.flagged += len(verdicts)
        report.quarantined += verdicts.count("quarantine")
        if problem is not None:
            report.skipped.append(skipped_for(task.file.path, problem))
            continue
        stored_locations.add(task.file.location)
        _count_grants(task, file, report)
        if task.known is None:
            report.added += 1
        else:
            report.updated += 1
    return stored_locations


def _dated(file: Prepared, date: str | None) -> Prepared:
    """The file with the inferred date in each document that has no date of its own."""
    documents = tuple(
        document
        if document.metadata.updated_at
        else replace(document, metadata=document.metadata._replace(inferred_at=date))
        for document in file.documents
    )
    return replace(file, documents=documents)


def _count_grants(task: FileTask, file: Prepared, report: IngestReport) -> None:
    for document in file.documents:
        metadata = document.metadata
        is_own = "trust_tier" in metadata.self_declared
        path = "" if is_own else task.file.defaults.authority.trust_from
        if (path or is_own) and trust_rank(metadata.trust_tier) > trust_rank("general"):
            grants = [
                grant
                for grant in report.grants
                if (grant.path, grant.trust_tier) == (path, metadata.trust_tier)
            ]
            if not grants:
                grants = [Grant(path, metadata.trust_tier, 0)]
                report.grants += grants
            grants[0].documents += 1
