"""Bringing the corpus in step with files: added, updated, unchanged, removed, skipped.

walk ─▶ prepare (in worker processes where there is much to do) ─▶ store ─▶ merge the lexical index
     ─▶ embed what waits

Files are stored in batches, each in one transaction: a run that is killed anywhere leaves whole
batches, and the next run completes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.embedding import (
    EMBEDDED_AS,
    EmbeddingReport,
    Progress,
    count_waiting,
    ensure_index,
    fill_index,
)
from rolebundle.ingest.fan_out import prepared_ones, unchanged_ones
from rolebundle.ingest.metadata import (
    FileDefaults,
    check_reader,
    has_manifest,
    load_manifest,
    validated,
)
from rolebundle.ingest.prepare import (
    TRANSIENT,
    Outcome,
    Prepared,
    Settings,
    Task,
    Unchanged,
)
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FoundFile, Skipped, walk
from rolebundle.ingest.workers import few_collections
from rolebundle.policy.scopes import deny_matcher
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage import compartments, documents, lexical_index, store
from rolebundle.storage.connection import Corpus
from rolebundle.storage.vector_index import EmbeddingIndex

ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Skips that are the author's mistake to mend: the run goes on, and ends with exit code 10."""

_BATCH_CHUNKS = 8_000
_BATCH_FILES = 2_000


@dataclass(slots=True)
class IngestReport:
    """What a run did, counted in files; the totals are of the corpus afterwards."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    flagged: int = 0
    """Documents of this run in which the scan at the door found something."""
    quarantined: int = 0
    """Those of them that it keeps back."""
    notes: list[Skipped] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    embedded: int = 0
    waiting: int = 0
    embedding_problem: str = ""

    def refused(self) -> list[Skipped]:
        """Documents that were refused for a mistake in what they declare."""
        return [skip for skip in self.skipped if skip.code in ERROR_CODES]


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Settings of a run.

    Attributes:
        flags: metadata for every file, weaker than manifests and front matter.
        reader: the reader of every file, weaker than manifests; else by the file's name.
        separator: what begins each document of a ``separated`` file.
        chunking: ``size``, ``overlap`` and ``maximum`` in characters, over the manifest's.
        size_cap: the largest file that is read, in bytes.
        workers: processes that parse; 1 parses in this one.
        reach: how to reach the embedding model again, as JSON, for an index that is made now.
        scan: what the scan at the door looks for; ``None`` for no scan.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    reader: str = ""
    separator: str = ""
    chunking: Mapping[str, int] = field(default_factory=dict)
    size_cap: int = DEFAULT_SIZE_CAP
    workers: int = 1
    reach: str = "{}"
    scan: ScanSettings | None = field(default_factory=ScanSettings)


def _silent(_what: str, _done: int, _total: int) -> None:
    pass


def ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: Progress = _silent,
) -> IngestReport:
    """Bring the corpus in step with everything at and below ``paths``.

    Args:
        corpus: opened for writing.
        paths: files and folders.
        provider: embeds what is new; ``None`` leaves chunks waiting.
        options: settings of the run.
        progress: told what is being done.

    Raises:
        UsageError: a path that is not there.
        ConfigurationError: a wrong manifest or flag. Nothing was stored.
        EmbedderError: the corpus has an index of another model. Nothing was stored.
        StorageError, CorpusBusy, CorpusCorrupt: what was stored before stays.
    """
    with few_collections():
        return _ingest(corpus, paths, provider, options or IngestOptions(), progress)


def _ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions,
    progress: Progress,
) -> IngestReport:
    validated(options.flags, "command line", ConfigurationError, "bad_flag")
    check_reader(options.reader, "command line")
    # All walks come first, so that a wrong path, or a manifest deep down, stops the run before a
    # write.
    walks = [_walked(path, options) for path in paths]
    index, problem = _index_for(corpus, provider, options.reach)
    known = store.known_files(corpus)
    report = IngestReport()
    for walked in walks:
        _ingest_walked(corpus, walked, known, options, report, progress)
    if report.added or report.updated or report.removed:
        _merge_lexical_indexes(corpus)
    embedding = EmbeddingReport(0, count_waiting(corpus), problem)
    if provider is not None and index is not None:
        embedding = fill_index(corpus, index, provider, progress)
    totals = documents.counts(corpus)
    report.documents, report.chunks = totals.documents, totals.chunks
    report.embedded = embedding.embedded
    report.waiting = count_waiting(corpus)
    report.embedding_problem = embedding.problem
    return report


def _index_for(
    corpus: Corpus, provider: EmbeddingProvider | None, reach: str
) -> tuple[EmbeddingIndex | None, str]:
    """The index to fill; or why there is none while the model is not at hand.

    Documents are stored all the same, and wait for their vectors. Another model than the index's is
    no passing trouble, and stops the run.
    """
    if provider is None:
        return None, ""
    try:
        return ensure_index(corpus, provider, EMBEDDED_AS, reach), ""
    except EmbedderError as error:
        if error.code == "model_mismatch":
            raise
        return None, f"{error.message}; {error.hint}"


@dataclass(frozen=True, slots=True)
class _Walked:
    """What was found at and below one path, before anything is written."""

    start: str
    found: list[FoundFile]
    skipped: list[Skipped]
    unlisted: list[str]
    settings: Settings

    def gone(self, known: Iterable[str], kept: Container[str]) -> list[str]:
        """What the corpus has from here, and is neither kept nor where nobody could look."""
        return [
            location
            for location in known
            if location not in kept  # first, as nearly all of them are
            and _is_below(location, self.start)
            and not any(_is_below(location, folder) for folder in self.unlisted)
        ]


def _walked(path: Path, options: IngestOptions) -> _Walked:
    start = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link
    if any("\ud800" <= character <= "\udfff" for character in str(start)):
        raise UsageError(
            "bad_path_name",
            f"{path}: the path holds bytes that are no characters",
            "rename the file or folder and run the same command again",
        )
    if not os.path.lexists(start):
        raise UsageError(
            "path_missing", f"{path}: there is no such file or folder", "check the spelling"
        )
    root = root_of(start)
    found: list[FoundFile] = []
    skipped: list[Skipped] = []
    for entry in walk(root, start, FileDefaults(options.flags, options.reader, options.separator)):
        if isinstance(entry, FoundFile):
            found.append(entry)
        else:
            skipped.append(entry)
    unlisted = [str(root / entry.path) for entry in skipped if entry.code in TRANSIENT]
    chunks = ChunkSettings(**{**load_manifest(root).chunking, **options.chunking})
    settings = Settings(chunks, options.size_cap, source_name(root), options.scan)
    return _Walked(str(start), found, skipped, unlisted, settings)


def _ingest_walked(
    corpus: Corpus,
    walked: _Walked,
    known: dict[str, store.FileIdentity],
    options: IngestOptions,
    report: IngestReport,
    progress: Progress,
) -> None:
    report.skipped += walked.skipped
    # Before anything is added: a file that was moved brings its ids along.
    gone = walked.gone(known, {file.location for file in walked.found})
    _remove(corpus, gone, report)
    tasks = [Task(file, known.get(file.location)) for file in walked.found]
    unchanged = unchanged_ones(tasks, walked.settings, options.workers)
    taken = {task.file.location for task, same in zip(tasks, unchanged, strict=True) if same}
    done = len(taken)
    report.unchanged += done
    progress("reading", done, len(tasks))
    rest = [task for task, same in zip(tasks, unchanged, strict=True) if not same]
    outcomes = prepared_ones(rest, walked.settings, options.workers)
    for batch in _batches(zip(rest, outcomes, strict=True)):
        taken |= _store_batch(corpus, batch, report)
        done += len(batch)
        progress("reading", done, len(tasks))
    _remove(corpus, walked.gone(known.keys() - set(gone), taken), report)


def _merge_lexical_indexes(corpus: Corpus) -> None:
    """In short transactions, so that whoever else writes does not wait long."""
    for compartment in compartments.all_compartments(corpus):
        more = True
        while more:
            with corpus.writing():
                more = lexical_index.merge(corpus, compartment.id)


def _remove(corpus: Corpus, locations: Sequence[str], report: IngestReport) -> None:
    if not locations:
        return
    with corpus.writing():
        store.remove_files(corpus, locations)
        store.drop_unused(corpus)
        store.note_change(corpus)
    report.removed += len(locations)


def root_of(start: Path) -> Path:
    """The folder that document ids are relative to: the outermost one above with a manifest.

    Without a manifest it is the ingested folder itself, or the folder of an ingested file.
    """
    folder = start if start.is_dir() and not start.is_symlink() else start.parent
    with_manifest = [place for place in (folder, *folder.parents) if has_manifest(place)]
    return with_manifest[-1] if with_manifest else folder


def source_name(root: Path) -> str:
    """The source_id of documents for which nobody declares one: the folder's name as a slug."""
    return re.sub(r"[^\w.-]+", "-", root.name).strip("-") or "files"


def _is_below(location: str, folder: str) -> bool:
    return location == folder or location.startswith(folder.rstrip(os.sep) + os.sep)


def _batches(
    outcomes: Iterable[tuple[Task, Outcome]],
) -> Iterator[list[tuple[Task, Outcome]]]:
    batch: list[tuple[Task, Outcome]] = []
    chunks = 0
    for task, outcome in outcomes:
        batch.append((task, outcome))
        if isinstance(outcome, Prepared):
            chunks += sum(len(document.chunks) for document in outcome.documents)
        if chunks >= _BATCH_CHUNKS or len(batch) >= _BATCH_FILES:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _store_batch(
    corpus: Corpus, batch: Sequence[tuple[Task, Outcome]], report: IngestReport
) -> set[str]:
    """Store one batch and return the locations that the corpus is to keep."""
    keep: set[str] = set()
    prepared: list[tuple[Task, Prepared]] = []
    for task, outcome in batch:
        if isinstance(outcome, Unchanged):
            report.unchanged += 1
            keep.add(outcome.location)
        elif isinstance(outcome, Skipped):
            report.skipped.append(outcome)
            # A file that could not be looked at has not changed as far as anyone knows. One that
            # was read and refused is doubtful, and its former version goes too.
            if outcome.code in TRANSIENT:
                keep.add(task.file.location)
        else:
            prepared.append((task, outcome))
    if not prepared:
        return keep
    with corpus.writing():
        problems = store.put_files(
            corpus,
            [(file.file, file.documents) for _, file in prepared],
            deny_matcher(corpus),
        )
        store.note_change(corpus)
    for (task, file), problem in zip(prepared, problems, strict=True):
        # One record of many that was refused: its file is taken, and it is a mistake all the same.
        report.skipped += [note for note in file.notes if note.code in ERROR_CODES]
        report.notes += [note for note in file.notes if note.code not in ERROR_CODES]
        verdicts = [one.scanned.verdict for one in file.documents if one.scanned]
        report.flagged += len(verdicts)
        report.quarantined += verdicts.count("quarantine")
        if problem is not None:
            path = task.file.path
            report.skipped.append(Skipped(path, problem.code, f"{path}: {problem.message}"))
            continue
        keep.add(task.file.location)
        if task.known is None:
            report.added += 1
        else:
            report.updated += 1
    return keep
