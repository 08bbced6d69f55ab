"""Synchronizes the corpus with files: added, updated, unchanged, removed, skipped.

walk ─▶ prepare (in worker processes if there are many files) ─▶ store ─▶ merge the lexical index
     ─▶ embed

Each batch of files is stored in one transaction. A run that is killed leaves complete batches, and
the next run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.ingest import ERROR_CODES, LOST, IngestReport, Root, Skipped
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.registry import IN_PROCESS
from rolebundle.errors import DocumentError, EmbedderError, UsageError
from rolebundle.ingest import indexes, prepare
from rolebundle.ingest.authority import flags_after, given_flags
from rolebundle.ingest.locations import is_below, is_there, real_location
from rolebundle.ingest.metadata import validated
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.roots import Plan, Visit, missing_root, plan_run, record_counts
from rolebundle.ingest.walk import FileEntry, skipped_for
from rolebundle.ingest.workers import prepare_parallel, rare_garbage_collection
from rolebundle.policy.access import deny_matcher
from rolebundle.storage import compartments, facts, records, store
from rolebundle.storage import roots as root_storage
from rolebundle.storage.corpus import Corpus, corpus_counts, increment_generation
from rolebundle.storage.documents import count_trusted, dominating
from rolebundle.storage.vector_index import EmbeddingIndex

_CHUNKS_PER_BATCH = 8_000
_FILES_PER_BATCH = 2_000
_UNREAD_CODES = prepare.TRANSIENT_CODES - prepare.ENDED_CODES


def ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: indexes.Progress = indexes.no_progress,
) -> IngestReport:
    """Synchronize the corpus with all files at and below ``paths``.

    Args:
        corpus: opened for writing.
        paths: files and folders.
        provider: embeds new chunks; ``None`` leaves them without vectors.
        options: settings of the run.
        progress: called with the current step.

    Raises:
        UsageError: a path does not exist.
        ConfigurationError: a manifest or flag is invalid. Nothing was stored.
        EmbedderError: the corpus has an index of another model. Nothing was stored.
        DocumentError: ``worker_died``. Batches that were stored before stay stored.
        StorageError, CorpusBusy, CorpusCorrupt: batches that were stored before stay stored.
    """
    with rare_garbage_collection():
        options = options or IngestOptions()
        return _Run(corpus, provider, options, progress).ingest(paths)


def update(
    corpus: Corpus,
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: indexes.Progress = indexes.no_progress,
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
        step = "run `rolebundle ingest PATH` once for each folder"
        raise UsageError("no_roots", f"{corpus.path}: no folder or file is remembered", step)
    there = [root for root in roots if is_there(root.location)]
    outer = [
        root
        for root in roots
        if not any(is_below(root.location, at.location) for at in there if at != root)
    ]
    missing = [root for root in outer if _is_missing(root)]
    paths = [Path(root.location) for root in outer if root not in missing]
    report = ingest(corpus, paths, provider, options, progress)
    report.skipped += [skipped_for(root.location, missing_root(root)) for root in missing]
    report.failed = []  # No path was named in this run.
    return report


def _is_missing(root: Root) -> bool:
    path = Path(root.location)
    if not is_there(path):
        return True
    try:
        return bool(root.documents) and path.is_dir() and not any(path.iterdir())
    except OSError:
        return False  # The walk reports it.


@dataclass
class _Run:
    """One run: what it was given, and what it has found out and stored so far."""

    corpus: Corpus
    provider: EmbeddingProvider | None
    options: IngestOptions
    progress: indexes.Progress
    report: IngestReport = field(default_factory=IngestReport)
    problem: str = ""

    def __post_init__(self) -> None:
        # Before the walk: a file that another process adds meanwhile is not missing.
        self.known = store.known_files(self.corpus)

    def ingest(self, paths: Sequence[Path]) -> IngestReport:
        """Read and store the files at and below the paths, then complete the indexes."""
        corpus, report, provider = self.corpus, self.report, self.provider
        run, index = self._prepare(paths)
        if self.options.reread:
            # No file has such a recipe, so none is taken for unchanged.
            self.known = {location: (*file[:2], "") for location, file in self.known.items()}
        report.notes += run.notes
        changed: set[str] = set()
        for visit in run.visits:
            before = report.changes
            skipped_before = len(report.skipped)
            self._visit(visit)
            # A path that the run was given may be skipped as a whole.
            start, skipped = str(visit.start), report.skipped[skipped_before:]
            has_failed = start in visit.unreadable if visit.start.is_dir() else skipped
            if has_failed and not visit.is_nested:
                report.failed.append(start)
            if before != report.changes:
                changed.add(visit.root.location)
        record_counts(corpus, run.visits, changed)
        if any(report.changes):
            _merge_lexical_indexes(corpus)
            if note := dominating(corpus):
                report.notes.append(Skipped(note.partition(": has ")[0], "dominates", note))
        is_slow = index is not None and index.identity.model.provider in IN_PROCESS
        report.waiting = indexes.count_waiting(corpus)
        is_left = is_slow and not self.options.wait and report.waiting > indexes.HANDFUL
        if provider is not None and index is not None and not is_left:
            # What a contextual model leaves after this time, the command or a server goes on with.
            seconds = indexes.PATIENCE_SECONDS if is_slow else inf
            done = indexes.fill_index(corpus, index, provider, self.progress, max_seconds=seconds)
            report.embedded, self.problem = done.embedded, done.problem
        totals = corpus_counts(corpus)
        report.documents, report.chunks = totals.documents, totals.chunks
        report.trusted = count_trusted(corpus)
        report.waiting = indexes.count_waiting(corpus)
        # A model that is not needed may be away.
        report.embedding_problem = self.problem if report.waiting else ""
        return report

    def _prepare(self, paths: Sequence[Path]) -> tuple[Plan, EmbeddingIndex | None]:
        """Walk all paths, then store the roots and flags, so that they also hold after a kill.

        A wrong path or manifest stops the run before the first write.
        """
        corpus, options = self.corpus, self.options
        flags = validated(options.flags, "command line")
        command_flags = given_flags(options.flags, flags, options.max_trust)
        while True:
            roots = root_storage.load(corpus)
            run, changes_flags = plan_run(corpus, roots, paths, options, command_flags)
            for visit in run.visits if options.max_removed < 1 else ():
                self._check_removals(visit)
            index = self._index()
            if run.roots == roots and not changes_flags:
                return run, index
            with corpus.writing():
                if root_storage.load(corpus) != roots:
                    continue  # Another process has ingested: a new root may need another source.
                locations = [real_location(visit.start) for visit in run.visits]
                known_flags = records.load_path_flags(corpus)
                records.save_path_flags(corpus, flags_after(known_flags, locations, command_flags))
                root_storage.save(corpus, run.roots)
            return run, index

    def _index(self) -> EmbeddingIndex | None:
        """The index to fill; ``None`` if there is no model or it is not available.

        Without the model documents are stored and get their vectors later. A model that differs
        from that of the index is an error, which stops the run.
        """
        if self.provider is None:
            return None
        try:
            return indexes.ensure_index(self.corpus, self.provider)
        except EmbedderError as error:
            if error.code == "model_mismatch":
                raise
            self.problem = f"{error.message}; {error.hint}"
            return None

    def _check_removals(self, visit: Visit) -> None:
        """Check that a walk does not miss too many files.

        A file in whose place another one came is not missed: it may have been renamed or edited.

        Raises:
            UsageError: ``too_many_removed``.
        """
        present = {file.location for file in visit.files}
        removed = len(visit.missing(self.known, present)) - len(present - self.known.keys())
        total = len(visit.missing(self.known, ()))
        # A single file is always within what a person deletes.
        if removed > max(1, self.options.max_removed * total):
            raise UsageError(
                "too_many_removed",
                f"{visit.start}: {removed} of its {total} files disappeared at once; "
                "nothing was changed",
                "if that is meant, run `rolebundle ingest`; else bring the files back",
            )

    def _visit(self, visit: Visit) -> None:
        """Synchronize the corpus with the files of one path."""
        report, settings = self.report, visit.settings
        verified = {} if self.options.verified is None else self.options.verified
        report.skipped += visit.skipped
        report.notes += visit.notes
        # Removed before others are added: a file that was moved has the same document ids.
        removed = visit.missing(self.known, {file.location for file in visit.files})
        self._remove(removed)
        # Locations whose documents stay in the corpus.
        stored: set[str] = set()
        changed: list[FileEntry] = []
        batch: list[tuple[FileEntry, prepare.Outcome]] = []
        # In this thread: several would wait for each other, because most files are small.
        for file in visit.files:
            is_seen = self.options.seen.get(file.location) == [file.size, file.modified_ns]
            stored_file = self.known.get(file.location)
            known = is_seen or prepare.unread_outcome(file, stored_file, settings, verified)
            if isinstance(known, Skipped):
                batch.append((file, known))
            elif known:
                stored.add(file.location)
            else:
                changed.append(file)
        done = len(stored)
        report.unchanged += done
        total = done + len(changed)
        self.progress("reading", done, total)
        with closing(prepare_parallel(changed, settings, self.options.workers)) as read:
            chunks = 0
            for file, outcome in zip(changed, read, strict=True):
                if isinstance(outcome, Skipped) and outcome.code not in _UNREAD_CODES:
                    prepare.remember(verified, file, settings, outcome)
                batch.append((file, outcome))
                documents = getattr(outcome, "documents", ())
                chunks += sum(len(document.chunks) for document in documents)
                if chunks >= _CHUNKS_PER_BATCH or len(batch) >= _FILES_PER_BATCH:
                    stored |= self._store(batch)
                    batch, chunks = [], 0
                done += 1
                self.progress("reading", done, total)
            stored |= self._store(batch)
        # Files that were read and rejected: their former documents are removed.
        self._remove(visit.missing(self.known.keys() - set(removed), stored))

    def _store(self, batch: Sequence[tuple[FileEntry, prepare.Outcome]]) -> set[str]:
        """Store one batch; return the locations whose documents stay in the corpus."""
        corpus, report = self.corpus, self.report
        stored: set[str] = set()
        prepared: list[tuple[FileEntry, prepare.Prepared]] = []
        for file, outcome in batch:
            if isinstance(outcome, Skipped):
                report.skipped.append(outcome)
                # A file that could not be read may be unchanged, so its documents stay. If a file
                # was read and rejected, its former documents are removed.
                if outcome.code in prepare.TRANSIENT_CODES:
                    stored.add(file.location)
                elif file.location in self.known:
                    reason = outcome.message.removeprefix(f"{outcome.path}: ")
                    report.skipped[-1] = replace(outcome, message=f"{outcome.path}: {LOST}{reason}")
            else:
                prepared.append((file, outcome))
        if not prepared:
            return stored
        displaced: list[tuple[str, DocumentError]] = []
        files = [(one.file, one.documents) for _, one in prepared]
        ids = [document.metadata.document_id for _, documents in files for document in documents]
        with corpus.writing(), facts.marking_changed(corpus, ids, iso_utc(datetime.now(UTC))):
            problems = store.put_files(corpus, files, deny_matcher(corpus), displaced)
            increment_generation(corpus)
        report.removed += len(displaced)
        report.skipped += [skipped_for(path, problem) for path, problem in displaced]
        for (file, one), problem in zip(prepared, problems, strict=True):
            # The file is stored even if some of its records were rejected, which are errors.
            for note in one.notes:
                (report.skipped if note.code in ERROR_CODES else report.notes).append(note)
            verdicts = [document.scanned.verdict for document in one.documents if document.scanned]
            report.flagged += len(verdicts)
            report.quarantined += verdicts.count("quarantine")
            if problem is not None:
                report.skipped.append(skipped_for(file.path, problem))
                continue
            stored.add(file.location)
            report.updated += file.location in self.known
            report.added += file.location not in self.known
        return stored

    def _remove(self, locations: Sequence[str]) -> None:
        if not locations:
            return
        with self.corpus.writing():
            store.remove_files(self.corpus, locations)
            store.drop_unused(self.corpus)
            increment_generation(self.corpus)
        self.report.removed += len(locations)


def _merge_lexical_indexes(corpus: Corpus) -> None:
    """Merge in short transactions, so that other writers do not wait long."""
    for compartment in compartments.visible_compartments(corpus):
        has_more = True
        while has_more:
            with corpus.writing():
                has_more = corpus.lexical.merge(corpus, compartment.id)
