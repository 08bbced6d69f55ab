"""Synchronizes the corpus with files: added, updated, unchanged, removed, skipped.

walk ─▶ prepare (in worker processes if there are many files) ─▶ store ─▶ merge the lexical index
     ─▶ embed

Each batch of files is stored in one transaction. A run that is killed leaves complete batches, and
the next run continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path

from rolebundle.contracts.roots import Root
from rolebundle.contracts.terms import trust_rank
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import DocumentError, EmbedderError, UsageError
from rolebundle.ingest.dates import inferred_at, last_commits
from rolebundle.ingest.indexes import (
    PATIENCE_SECONDS,
    EmbeddingReport,
    Progress,
    count_waiting,
    ensure_index,
    fill_index,
    no_progress,
    optimize_large,
)
from rolebundle.ingest.manifests import is_valid_name
from rolebundle.ingest.metadata import validated
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.path_flags import flags_after, given_flags
from rolebundle.ingest.prepare import TRANSIENT_CODES, FileTask, Outcome, Prepared, check_unchanged
from rolebundle.ingest.report import (
    ERROR_CODES,
    Grant,
    IngestReport,
    OnReading,
    ReadingMeter,
    no_reading,
)
from rolebundle.ingest.roots import (
    is_below,
    is_there,
    missing_root,
    real_location,
    record_counts,
)
from rolebundle.ingest.run_plan import RunPlan, WalkResult, plan_run
from rolebundle.ingest.walk import Skipped, skipped_for
from rolebundle.ingest.workers import prepare_parallel, rare_garbage_collection
from rolebundle.policy.access import deny_matcher
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.content.documents import count_trusted
from rolebundle.storage.content.stored_document import FileIdentity
from rolebundle.storage.corpus_state import corpus_counts, increment_generation
from rolebundle.storage.indexes import compartments, lexical_index
from rolebundle.storage.indexes.vector_index import EmbeddingIndex
from rolebundle.storage.records import path_flags
from rolebundle.storage.records import roots as root_storage


def ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: Progress = no_progress,
    on_reading: OnReading = no_reading,
) -> IngestReport:
    """Synchronize the corpus with all files at and below ``paths``.

    Args:
        corpus: opened for writing.
        paths: files and folders.
        provider: embeds new chunks; ``None`` leaves them without vectors.
        options: settings of the run.
        progress: called with the current step.
        on_reading: called while files are read.

    Raises:
        UsageError: a path does not exist.
        ConfigurationError: a manifest or flag is invalid. Nothing was stored.
        EmbedderError: the corpus has an index of another model. Nothing was stored.
        DocumentError: ``worker_died``. Batches that were stored before stay stored.
        StorageError, CorpusBusy, CorpusCorrupt: batches that were stored before stay stored.
    """
    with rare_garbage_collection():
        return _ingest(corpus, paths, provider, options or IngestOptions(), progress, on_reading)


def update(
    corpus: Corpus,
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: Progress = no_progress,
    on_reading: OnReading = no_reading,
) -> IngestReport:
    """Synchronize the corpus with all roots, each with the options that it was ingested with.

    The documents of a root that is missing stay, and so do those of a root that is an empty folder
    now: it may be a disk that is not mounted. Both are skipped with the code ``root_missing``.

    Raises:
        UsageError: the corpus has no roots.
        Others: as :func:`ingest`.
    """
    roots = root_storage.load(corpus)
    if not roots:
        raise UsageError(
            "no_roots",
            f"{corpus.path}: no folder or file is remembered",
            "run `rolebundle ingest PATH` once for each folder",
        )
    for root in roots:
        is_valid_name(root.location)  # An error, because it would seem to be missing.
    outer = [root for root in roots if not _has_root_above(root, roots)]
    missing = [root for root in outer if _is_missing(root)]
    paths = [Path(root.location) for root in outer if root not in missing]
    report = ingest(corpus, paths, provider, options, progress, on_reading)
    report.skipped += [skipped_for(root.location, missing_root(root)) for root in missing]
    report.notes = [note for note in report.notes if note.code != "flags_remembered"]
    report.failed = []  # No path was named in this run.
    return report


def _has_root_above(root: Root, roots: Iterable[Root]) -> bool:
    return any(
        is_below(root.location, outer.location) and is_there(outer.location)
        for outer in roots
        if outer != root
    )


def _is_missing(root: Root) -> bool:
    path = Path(root.location)
    if not is_there(path):
        return True
    try:
        return bool(root.documents) and path.is_dir() and not any(path.iterdir())
    except OSError:
        return False  # The walk reports it.


def _ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions,
    progress: Progress,
    on_reading: OnReading,
) -> IngestReport:
    # Before the walk: a file that another process adds meanwhile is not missing.
    known = store.known_files(corpus)
    run, index, problem = _prepared(corpus, paths, provider, options, known)
    if options.reread:
        # No file has such a recipe, so none is taken for unchanged.
        known = {location: (*file[:2], "") for location, file in known.items()}
    report = IngestReport()
    report.notes += run.notes
    changed: set[str] = set()
    for walk_result in run.walks:
        before = (report.added, report.updated, report.removed)
        skipped_before = len(report.skipped)
        _ingest_files(corpus, walk_result, known, options, report, progress, on_reading)
        if _has_failed(walk_result, report.skipped[skipped_before:]):
            report.failed.append(str(walk_result.visit.start))
        if before != (report.added, report.updated, report.removed):
            changed.add(walk_result.visit.root.location)
    record_counts(corpus, [walk_result.visit for walk_result in run.walks], changed)
    if report.added or report.updated or report.removed:
        _merge_lexical_indexes(corpus)
    embedding = EmbeddingReport(0, count_waiting(corpus), problem)
    if provider is not None and index is not None:
        # What a contextual model leaves after this time, the command or a server goes on with.
        is_bounded = index.identity.model.provider == "onnx"
        max_seconds = PATIENCE_SECONDS if is_bounded else inf
        embedding = fill_index(corpus, index, provider, progress, max_seconds=max_seconds)
        report.optimized = optimize_large(corpus, index, progress)
    totals = corpus_counts(corpus)
    report.documents, report.chunks = totals.documents, totals.chunks
    report.trusted = count_trusted(corpus)
    report.embedded = embedding.embedded
    report.waiting = count_waiting(corpus)
    # A model that is not needed may be away.
    report.embedding_problem = embedding.problem if report.waiting else ""
    return report


def _prepared(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions,
    known: Mapping[str, FileIdentity],
) -> tuple[RunPlan, EmbeddingIndex | None, str]:
    """Walk all paths, then store the roots and flags, so that they also hold after a kill.

    A wrong path or manifest stops the run before the first write.
    """
    flags = validated(options.flags, "command line", "bad_flag")
    command_flags = given_flags(options.flags, flags, options.max_trust)
    while True:
        roots = root_storage.load(corpus)
        run = plan_run(corpus, roots, paths, options, command_flags)
        for walk_result in run.walks if options.max_removed < 1 else ():
            _check_removals(corpus, walk_result, known, options.max_removed)
        index, problem = _index_for(corpus, provider)
        if run.roots == roots and run.flags.after == run.flags.before:
            return run, index, problem
        with corpus.writing():
            if root_storage.load(corpus) != roots:
                continue  # Another process has ingested: a new root may need another source.
            locations = [real_location(walk_result.visit.start) for walk_result in run.walks]
            path_flags.save(corpus, flags_after(path_flags.load(corpus), locations, command_flags))
            root_storage.save(corpus, run.roots)
        return run, index, problem


def _index_for(
    corpus: Corpus, provider: EmbeddingProvider | None
) -> tuple[EmbeddingIndex | None, str]:
    """The index to fill, or the reason why the model is not available.

    Without the model documents are stored and get their vectors later. A model that differs from
    that of the index is an error, which stops the run.
    """
    if provider is None:
        return None, ""
    try:
        return ensure_index(corpus, provider), ""
    except EmbedderError as error:
        if error.code == "model_mismatch":
            raise
        return None, f"{error.message}; {error.hint}"


def _ingest_files(
    corpus: Corpus,
    walk_result: WalkResult,
    known: dict[str, FileIdentity],
    options: IngestOptions,
    report: IngestReport,
    progress: Progress,
    on_reading: OnReading,
) -> None:
    report.skipped += walk_result.skipped
    report.notes += walk_result.notes
    present = {file.location for file in walk_result.files}
    # Removed before others are added: a file that was moved has the same document ids.
    removed = walk_result.missing(known, present)
    _remove(corpus, removed, report)
    report.notes += walk_result.left_out(removed)
    tasks = [FileTask(file, known.get(file.location)) for file in walk_result.files]
    # Locations whose documents stay in the corpus.
    stored_locations: set[str] = set()
    verified = options.verified
    if verified is not None:
        verified.forget(walk_result.missing(verified.locations, present))
        skipped = [verified.skipped(task, walk_result.settings) for task in tasks]
        report.skipped += [outcome for outcome in skipped if outcome]
        stored_locations = {
            task.file.location
            for task, outcome in zip(tasks, skipped, strict=True)
            if outcome and outcome.code in TRANSIENT_CODES
        }
        tasks = [task for task, outcome in zip(tasks, skipped, strict=True) if not outcome]
    # In this thread: several would wait for each other, because most files are small.
    unchanged = check_unchanged(tasks, walk_result.settings, verified)
    stored_locations |= {
        task.file.location for task, same in zip(tasks, unchanged, strict=True) if same
    }
    done = sum(unchanged)
    report.unchanged += done
    progress("reading", done, len(tasks))
    changed = [task for task, same in zip(tasks, unchanged, strict=True) if not same]
    meter = ReadingMeter(tasks, stored_locations, on_reading)
    with ThreadPoolExecutor(1) as pool:
        # git reads its history while the files are read.
        commits = pool.submit(last_commits, [task.file.location for task in changed])
        with closing(
            prepare_parallel(changed, walk_result.settings, options.workers, meter.slow)
        ) as outcomes:
            for batch in batches(meter.measured(zip(changed, outcomes, strict=True))):
                for task, outcome in batch:
                    if verified is not None and isinstance(outcome, Skipped):
                        verified.add_skipped(task.file, walk_result.settings, outcome)
                stored_locations |= store_batch(corpus, batch, commits.result(), report)
                done += len(batch)
                progress("reading", done, len(tasks))
    # Files that were read and rejected: their former documents are removed.
    _remove(corpus, walk_result.missing(known.keys() - set(removed), stored_locations), report)


def _check_removals(
    corpus: Corpus,
    walk_result: WalkResult,
    known: Mapping[str, FileIdentity],
    max_removed: float,
) -> None:
    """Check that a walk does not miss too many documents.

    A file that was renamed is not missed. Neither is one in whose place another file came: it may
    have been renamed and edited.

    Raises:
        UsageError: ``too_many_removed``.
    """
    missing = walk_result.missing(known, {file.location for file in walk_result.files})
    # A rename keeps size and time.
    new = Counter(
        (file.size, file.modified_ns) for file in walk_result.files if file.location not in known
    )
    missing_locations = []
    for location, identity in root_storage.sizes_and_times(corpus, missing).items():
        if new[identity]:
            new[identity] -= 1
        else:
            missing_locations.append(location)
    removed = root_storage.count_documents_of(corpus, missing_locations) - new.total()
    total = root_storage.count_documents_of(corpus, walk_result.missing(known, ()))
    # A single document is always within what a person deletes.
    if removed > max(1, max_removed * total):
        raise UsageError(
            "too_many_removed",
            f"{walk_result.visit.start}: {removed} of its {total} documents disappeared at once; "
            "nothing was changed",
            "if that is meant, run `rolebundle ingest`; else bring the files back",
        )


def _has_failed(walk_result: WalkResult, skipped: Sequence[Skipped]) -> bool:
    """Whether a path that the run was given was skipped as a whole."""
    visit = walk_result.visit
    if visit.is_nested:
        return False
    if visit.start.is_dir():
        return str(visit.start) in walk_result.unreadable
    return bool(skipped)


def _merge_lexical_indexes(corpus: Corpus) -> None:
    """Merge in short transactions, so that other writers do not wait long."""
    for compartment in compartments.visible_compartments(corpus):
        has_more = True
        while has_more:
            with corpus.writing():
                has_more = lexical_index.merge(corpus, compartment.id)


def _remove(corpus: Corpus, locations: Sequence[str], report: IngestReport) -> None:
    if not locations:
        return
    with corpus.writing():
        store.remove_files(corpus, locations)
        store.drop_unused(corpus)
        increment_generation(corpus)
    report.removed += len(locations)


# -- batches --
#
# Stores prepared files in batches, each in one transaction.


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
