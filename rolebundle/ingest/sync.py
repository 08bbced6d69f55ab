"""Synchronizes the corpus with files: added, updated, unchanged, removed, skipped.

walk ─▶ prepare (in worker processes if there are many files) ─▶ store ─▶ merge the lexical index
     ─▶ embed

Each batch of files is stored in one transaction. A run that is killed leaves complete batches, and
the next run continues.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.terms import TrustTier, trust_rank
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.ingest.authority import GOVERNANCE_KEYS, Authority
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.indexes import (
    INPUT_VERSION,
    NO_CONNECTION,
    EmbeddingReport,
    Progress,
    count_waiting,
    ensure_index,
    fill_index,
)
from rolebundle.ingest.manifests import (
    IgnoredManifest,
    ManifestPolicy,
    check_path,
    read_manifest,
    root_of,
)
from rolebundle.ingest.metadata import FileDefaults, check_max_trust, check_reader, validated
from rolebundle.ingest.prepare import (
    TRANSIENT_CODES,
    FileTask,
    Outcome,
    Prepared,
    RunSettings,
    Unchanged,
)
from rolebundle.ingest.remembered import (
    LOST,
    Flags,
    Remembered,
    combined,
    describe,
    flags_at,
    given_flags,
    lifting_options,
    limits_in,
    remember,
    without,
)
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, Skipped, walk
from rolebundle.ingest.workers import (
    find_unchanged,
    prepare_parallel,
    rare_garbage_collection,
)
from rolebundle.policy.access import deny_matcher
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage import approvals, compartments, documents, lexical_index, path_flags, store
from rolebundle.storage.connection import Corpus
from rolebundle.storage.identifiers import Renamed
from rolebundle.storage.vector_index import EmbeddingIndex

ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Errors in documents that their author must correct. The run continues; its exit code is 10."""

_MANIFEST_CODES = frozenset({"manifest_ignored", "claim_refused"})
_CHUNKS_PER_BATCH = 8_000
_FILES_PER_BATCH = 2_000


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
        flagged: the number of stored documents with findings of the intake scan.
        quarantined: the number of stored documents that the intake scan quarantined.
        notes: remarks on files that were stored, and on manifests.
        grants: what manifests gave to documents that were stored in this run.
        documents, chunks: totals of the corpus after the run.
        embedded: the number of chunks that got a vector in this run.
        waiting: the number of chunks of the corpus without a vector.
        embedding_problem: why chunks are waiting; empty if the model was not used or had no error.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    flagged: int = 0
    quarantined: int = 0
    notes: list[Skipped] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    embedded: int = 0
    waiting: int = 0
    embedding_problem: str = ""

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Settings of a run.

    Attributes:
        flags: metadata of all files. Manifests and front matter take precedence, but may only lower
            what governs a document. What governs is remembered for later ingests of the paths; the
            value ``None`` lifts a remembered one.
        max_trust: the highest trust tier that manifests and documents may declare.
        manifests: whether folder manifests count; ``None`` for as in an earlier ingest, else yes.
        reader: the reader of files for which no manifest names one. Default: by the file's name.
        separator: in a ``separated`` file, a line that begins with this text starts a new document.
        chunking: ``size``, ``overlap`` and ``maximum`` in characters; overrides the manifest.
        size_cap: the maximum file size in bytes; larger files are skipped.
        workers: the number of processes that parse; 1 parses in the current process.
        connection: how to connect to the embedding model later, as JSON; stored with a new index.
        scan: settings of the intake scan; ``None`` for no scan.
        reread: read every file, also those that did not change.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    max_trust: TrustTier | None = None
    manifests: bool | None = None
    reader: str = ""
    separator: str = ""
    chunking: Mapping[str, int] = field(default_factory=dict)
    size_cap: int = DEFAULT_SIZE_CAP
    workers: int = 1
    connection: str = NO_CONNECTION
    scan: ScanSettings | None = field(default_factory=ScanSettings)
    reread: bool = False


def _no_progress(_step: str, _done: int, _total: int) -> None:
    pass


def ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: Progress = _no_progress,
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
        return _ingest(corpus, paths, provider, options or IngestOptions(), progress)


def _ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions,
    progress: Progress,
) -> IngestReport:
    flags = validated(options.flags, "command line", ConfigurationError, "bad_flag")
    check_reader(options.reader, "command line")
    approved = {
        manifest.location: manifest.content_hash for manifest in approvals.approvals(corpus)
    }
    given = given_flags(options.flags, flags, options.max_trust, options.manifests)
    starts = [_start_of(path) for path in paths]
    locations = [_real_location(start) for start in starts]
    for location in locations if given else ():
        check_path(Path(location))
    before = path_flags.load(corpus)
    memory = _Memory(before, remember(before, locations, given), given)
    # All walks come first, so that a wrong path or manifest stops the run before the first write.
    walks = [_walk_path(start, options, flags, approved, memory) for start in starts]
    index, problem = _index_for(corpus, provider, options.connection)
    if memory.after != before:
        # Before the first document, so that they also hold after a run that is killed.
        with corpus.writing():
            latest = path_flags.load(corpus)
            path_flags.save(corpus, remember(latest, locations, given))
    known = store.known_files(corpus)
    if options.reread:
        # No file has such a recipe, so none is taken for unchanged.
        known = {location: (*file[:2], "") for location, file in known.items()}
    report = IngestReport()
    for walk_result in walks:
        _ingest_files(corpus, walk_result, known, options, report, progress)
    if report.added or report.updated or report.removed:
        _merge_lexical_indexes(corpus)
    embedding = EmbeddingReport(0, count_waiting(corpus), problem)
    if provider is not None and index is not None:
        embedding = fill_index(corpus, index, provider, progress)
    totals = documents.counts(corpus)
    report.documents, report.chunks = totals.documents, totals.chunks
    report.embedded = embedding.embedded
    report.waiting = count_waiting(corpus)
    # A model that is not needed may be away.
    report.embedding_problem = embedding.problem if report.waiting else ""
    return report


def _index_for(
    corpus: Corpus, provider: EmbeddingProvider | None, connection: str
) -> tuple[EmbeddingIndex | None, str]:
    """The index to fill, or the reason why the model is not available.

    Without the model documents are stored and get their vectors later. A model that differs from
    that of the index is an error, which stops the run.
    """
    if provider is None:
        return None, ""
    try:
        return ensure_index(corpus, provider, INPUT_VERSION, connection), ""
    except EmbedderError as error:
        if error.code == "model_mismatch":
            raise
        return None, f"{error.message}; {error.hint}"


@dataclass(frozen=True, slots=True)
class _WalkResult:
    """The files at and below one path.

    ``unreadable`` lists the locations of files and folders that could not be read. Their documents
    stay in the corpus. ``notes`` are remarks on manifests.
    """

    start: str
    files: list[FileEntry]
    skipped: list[Skipped]
    notes: list[Skipped]
    unreadable: list[str]
    settings: RunSettings

    def missing(self, known: Iterable[str], present: Container[str]) -> list[str]:
        """Known locations below ``start`` that are neither present nor below an unreadable one."""
        return [
            location
            for location in known
            if location not in present  # first, because nearly all of them are present
            and _is_below(location, self.start)
            and not any(_is_below(location, folder) for folder in self.unreadable)
        ]


@dataclass(frozen=True, slots=True)
class _Memory:
    """The flags that are remembered before and after this run, and those that it was given."""

    before: Remembered
    after: Remembered
    given: Flags

    def flags_at(self, location: str) -> Flags:
        """The flags that hold for a file or folder in this run."""
        return combined(flags_at(self.after, location), self.given)

    def nested(self, location: str) -> dict[str, str]:
        """The remembered paths below a folder → what follows the folder in them."""
        prefix = location.rstrip(os.sep) + os.sep
        return {
            path: path[len(prefix) - 1 :]
            for path in sorted({*self.before, *self.after})
            if path.startswith(prefix) and path != location
        }

    def _note(self, path: str, own: Flags, now: Flags) -> Iterator[Skipped]:
        """What becomes of the flags ``own`` that were remembered for a path."""
        kept = {key: value for key, value in without(own, self.given).items() if key in now}
        replaced = {key: value for key, value in own.items() if now.get(key) != value}
        if kept:
            yield Skipped(
                path,
                "flags_remembered",
                f"{path}: {describe(kept)}, as in an earlier ingest; "
                f"{lifting_options(kept)} lifts it",
            )
        if replaced:
            yield Skipped(
                path,
                "flags_replaced",
                f"{path}: {describe(replaced)} of an earlier ingest is replaced",
            )

    def notes(self, start: str, location: str) -> list[Skipped]:
        """What becomes of the flags that were remembered for a path and below it.

        Args:
            start: the path as it was given. Notes name it and not the real path.
            location: its real path.
        """
        before = limits_in(flags_at(self.before, location))
        notes = list(self._note(start, before, self.flags_at(location)))
        for path, rest in self.nested(location).items():
            own = limits_in(self.before.get(path, {}))
            notes += self._note(start.rstrip(os.sep) + rest, own, self.flags_at(path))
        return notes


def _start_of(path: Path) -> Path:
    start = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link
    check_path(start)
    if not os.path.lexists(start):
        raise UsageError("path_missing", f"{path}: no such file or folder", "check the spelling")
    return start


def _real_location(start: Path) -> str:
    """Where a path really is, so that a link above it does not hide it. It itself may be a link."""
    return str(Path(os.path.realpath(start.parent)) / start.name)


def _defaults_for(
    flags: Flags, declared: DeclaredMetadata, options: IngestOptions, source_id: str
) -> FileDefaults:
    """The defaults of files for which these governance flags hold."""
    limits = limits_in(flags)
    governed = {key: value for key, value in limits.items() if key in GOVERNANCE_KEYS}
    values = validated(governed, "flags of an earlier ingest", ConfigurationError, "bad_flag")
    others = {
        key: value for key, value in declared.declared_values().items() if key not in governed
    }
    max_trust = check_max_trust(limits.get("max_trust"), "flags of an earlier ingest")
    authority, _ = Authority(default_source=source_id).with_level(
        {**others, **values.declared_values()}, max_trust=max_trust
    )
    return FileDefaults(authority, options.reader, options.separator)


def _walk_path(
    start: Path,
    options: IngestOptions,
    declared: DeclaredMetadata,
    approved: Mapping[str, str],
    memory: _Memory,
) -> _WalkResult:
    location = _real_location(start)
    flags = memory.flags_at(location)
    if LOST in flags:
        raise UsageError(
            "flags_lost",
            f"{start}: a repair lost what --untrusted, --max-trust and --meta said of it before",
            "give them again, or --max-trust authoritative if there were none",
        )
    nested = {
        str(start).rstrip(os.sep) + rest: memory.flags_at(path)
        for path, rest in memory.nested(location).items()
    }
    excluded = frozenset(path for path, own in nested.items() if own.get("manifests") is False)
    policy = ManifestPolicy(flags.get("manifests") is not False, approved, excluded)
    root, ignored = root_of(start, policy)
    files: list[FileEntry] = []
    skipped: list[Skipped] = []
    notes = memory.notes(str(start), location)
    notes += [
        Skipped(m.location, "manifest_ignored", f"{m.location}: ignored, because {m.reason}")
        for m in ignored
    ]
    source_id = source_name(root)
    defaults = _defaults_for(flags, declared, options, source_id)
    nested_defaults = {
        path: _defaults_for(own, declared, options, source_id) for path, own in nested.items()
    }
    for entry in walk(root, start, defaults, policy, nested_defaults):
        if isinstance(entry, FileEntry):
            files.append(entry)
        elif entry.code in _MANIFEST_CODES:
            notes.append(entry)
        else:
            skipped.append(entry)
    unreadable = [str(root / entry.path) for entry in skipped if entry.code in TRANSIENT_CODES]
    manifest = read_manifest(root, root, policy)
    from_manifest = {} if isinstance(manifest, IgnoredManifest) else manifest.chunking
    chunks = ChunkSettings(**{**from_manifest, **options.chunking})
    settings = RunSettings(chunks, options.size_cap, options.scan)
    return _WalkResult(str(start), files, skipped, notes, unreadable, settings)


def _ingest_files(
    corpus: Corpus,
    walk_result: _WalkResult,
    known: dict[str, store.FileIdentity],
    options: IngestOptions,
    report: IngestReport,
    progress: Progress,
) -> None:
    report.skipped += walk_result.skipped
    report.notes += walk_result.notes
    # Removed before others are added: a file that was moved has the same document ids.
    removed = walk_result.missing(known, {file.location for file in walk_result.files})
    _remove(corpus, removed, report)
    tasks = [FileTask(file, known.get(file.location)) for file in walk_result.files]
    unchanged = find_unchanged(tasks, walk_result.settings, options.workers)
    # Locations whose documents stay in the corpus.
    kept = {task.file.location for task, same in zip(tasks, unchanged, strict=True) if same}
    done = len(kept)
    report.unchanged += done
    progress("reading", done, len(tasks))
    changed = [task for task, same in zip(tasks, unchanged, strict=True) if not same]
    outcomes = prepare_parallel(changed, walk_result.settings, options.workers)
    for batch in _batches(zip(changed, outcomes, strict=True)):
        kept |= _store_batch(corpus, batch, report)
        done += len(batch)
        progress("reading", done, len(tasks))
    # Files that were read and rejected: their former documents are removed.
    _remove(corpus, walk_result.missing(known.keys() - set(removed), kept), report)


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
        store.increment_generation(corpus)
    report.removed += len(locations)


def source_name(root: Path) -> str:
    """The default source_id: the name of the folder as a slug."""
    return re.sub(r"[^\w.-]+", "-", root.name).strip("-") or "files"


def _is_below(location: str, folder: str) -> bool:
    return location == folder or location.startswith(folder.rstrip(os.sep) + os.sep)


def _batches(
    outcomes: Iterable[tuple[FileTask, Outcome]],
) -> Iterator[list[tuple[FileTask, Outcome]]]:
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


def _store_batch(
    corpus: Corpus, batch: Sequence[tuple[FileTask, Outcome]], report: IngestReport
) -> set[str]:
    """Store one batch; return the locations whose documents stay in the corpus."""
    kept: set[str] = set()
    prepared: list[tuple[FileTask, Prepared]] = []
    for task, outcome in batch:
        if isinstance(outcome, Unchanged):
            report.unchanged += 1
            kept.add(outcome.location)
        elif isinstance(outcome, Skipped):
            report.skipped.append(outcome)
            # A file that could not be read may be unchanged, so its documents stay. If a file was
            # read and rejected, its former documents are removed.
            if outcome.code in TRANSIENT_CODES:
                kept.add(task.file.location)
        else:
            prepared.append((task, outcome))
    if not prepared:
        return kept
    renamed: list[Renamed] = []
    with corpus.writing():
        problems = store.put_files(
            corpus,
            [(file.file, file.documents) for _, file in prepared],
            deny_matcher(corpus),
            renamed,
        )
        store.increment_generation(corpus)
    report.notes += [
        Skipped(path, "claim_refused", f"{path}: {claim} belongs to another document")
        for path, claim in renamed
    ]
    for (task, file), problem in zip(prepared, problems, strict=True):
        # The file is stored even if some of its records were rejected, which are errors.
        report.skipped += [note for note in file.notes if note.code in ERROR_CODES]
        report.notes += [note for note in file.notes if note.code not in ERROR_CODES]
        verdicts = [document.scanned.verdict for document in file.documents if document.scanned]
        report.flagged += len(verdicts)
        report.quarantined += verdicts.count("quarantine")
        if problem is not None:
            path = task.file.path
            report.skipped.append(Skipped(path, problem.code, f"{path}: {problem.message}"))
            continue
        kept.add(task.file.location)
        _count_grants(task, file, report)
        if task.known is None:
            report.added += 1
        else:
            report.updated += 1
    return kept


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
