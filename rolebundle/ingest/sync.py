"""Synchronizes the corpus with files: added, updated, unchanged, removed, skipped.

walk ─▶ prepare (in worker processes if there are many files) ─▶ store ─▶ merge the lexical index
     ─▶ embed

Each batch of files is stored in one transaction. A run that is killed leaves complete batches, and
the next run continues.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.roots import Root, ScanOptions
from rolebundle.contracts.terms import TrustTier, trust_rank
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.ingest.authority import GOVERNANCE_KEYS, Authority
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.dates import inferred_at, last_commits
from rolebundle.ingest.indexes import (
    INPUT_VERSION,
    NO_CONNECTION,
    EmbeddingReport,
    Progress,
    count_waiting,
    ensure_index,
    fill_index,
    optimize_large,
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
    VerifiedFiles,
    check_unchanged,
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
from rolebundle.ingest.root_changes import apply_move, manifests_below, record_counts
from rolebundle.ingest.roots import (
    Surroundings,
    Visit,
    anchor_of,
    existing_start,
    find_moved,
    holder_of,
    is_below,
    missing_root_note,
    moved,
    moved_flags,
    moved_path,
    plan,
    real_location,
    source_name,
)
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, Skipped, leaves_out, walk
from rolebundle.ingest.workers import (
    prepare_parallel,
    rare_garbage_collection,
)
from rolebundle.policy.access import deny_matcher
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage import (
    approvals,
    compartments,
    documents,
    lexical_index,
    path_flags,
    store,
)
from rolebundle.storage import roots as root_storage
from rolebundle.storage.connection import Corpus
from rolebundle.storage.identifiers import Renamed
from rolebundle.storage.vector_index import EmbeddingIndex
from rolebundle.text.counts import counted

ERROR_CODES = frozenset(
    {"bad_metadata", "bad_front_matter", "duplicate_document_id", "duplicate_chunk_id"}
)
"""Errors in documents that their author must correct. The run continues; its exit code is 10."""

_MANIFEST_CODES = frozenset({"manifest_ignored", "claim_refused"})
_CHUNKS_PER_BATCH = 8_000
_FILES_PER_BATCH = 2_000
_SECONDS_BETWEEN_REPORTS = 0.2


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
        optimized: the number of approximate indexes that were built.
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
    optimized: int = 0

    def refused(self) -> list[Skipped]:
        """Skipped documents whose code is in ``ERROR_CODES``."""
        return [skipped for skipped in self.skipped if skipped.code in ERROR_CODES]


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Settings of a run. ``None`` stands for what an earlier ingest of the root was given.

    Attributes:
        flags: metadata of all files. Manifests and front matter take precedence, but may only lower
            what governs a document. The value ``None`` lifts a remembered one.
        max_trust: the highest trust tier that manifests and documents may declare.
        manifests: whether folder manifests count. Default: they do.
        reader: the reader of files for which no manifest names one. Default: by the file's name.
        separator: in a ``separated`` file, a line that begins with this text starts a new document.
        chunking: ``size``, ``overlap`` and ``maximum`` in characters; overrides the manifest.
        size_cap: the maximum file size in bytes; larger files are skipped.
        ignore: whether ignore files, and folders and files that are left out by default, count.
            Default: they do.
        scan: settings of the intake scan; False for no scan. Weights and thresholds are not
            remembered.
        lexical_only: whether the run does not embed; only remembered, for :func:`update`.
        workers: the number of processes that parse; 1 parses in the current process.
        connection: how to connect to the embedding model later, as JSON; stored with a new index.
        reread: read every file, also those that did not change.
        verified: what earlier runs of this process found out; files that were not touched since
            are not read. ``None``: every file is read.
        max_removed: the largest share of the documents of one path that the run may remove.
        optimize: build the approximate indexes of large compartments at the end.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    max_trust: TrustTier | None = None
    manifests: bool | None = None
    reader: str | None = None
    separator: str | None = None
    chunking: Mapping[str, int] = field(default_factory=dict)
    size_cap: int | None = None
    ignore: bool | None = None
    scan: ScanSettings | Literal[False] | None = None
    lexical_only: bool | None = None
    workers: int = 1
    connection: str = NO_CONNECTION
    reread: bool = False
    verified: VerifiedFiles | None = None
    max_removed: float = 1.0
    optimize: bool = True

    def root_options(self) -> dict[str, Any]:
        """The given options that a root remembers, by their name in ``RootOptions``."""
        given = {
            "reader": self.reader,
            "separator": self.separator,
            "max_size": self.size_cap,
            "ignore": self.ignore,
            "lexical_only": self.lexical_only,
            "scan": None if self.scan is None else _scan_options(self.scan),
            "chunking": self.chunking or None,
            "meta": {key: value for key, value in self.flags.items() if key not in GOVERNANCE_KEYS}
            or None,
        }
        return {name: value for name, value in given.items() if value is not None}


def _scan_options(scan: ScanSettings | Literal[False]) -> ScanOptions:
    if scan is False:
        return ScanOptions(enabled=False)
    patterns = "" if scan.patterns is None else str(scan.patterns.absolute())
    return ScanOptions(secrets=scan.secrets, patterns=patterns)


def _scan_settings(options: IngestOptions, remembered: ScanOptions) -> ScanSettings | None:
    if options.scan is not None:
        return options.scan or None
    if not remembered.enabled:
        return None
    patterns = Path(remembered.patterns) if remembered.patterns else None
    return ScanSettings(secrets=remembered.secrets, patterns=patterns)


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


def _no_progress(_step: str, _done: int, _total: int) -> None:
    pass


def _no_reading(_reading: Reading) -> None:
    pass


def ingest(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions | None = None,
    progress: Progress = _no_progress,
    on_reading: OnReading = _no_reading,
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
    progress: Progress = _no_progress,
    on_reading: OnReading = _no_reading,
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
    outer = [root for root in roots if not _has_root_above(root, roots)]
    missing = [root for root in outer if _is_missing(root)]
    paths = [Path(root.location) for root in outer if root not in missing]
    report = ingest(corpus, paths, provider, options, progress, on_reading)
    report.skipped += [
        Skipped(root.location, "root_missing", missing_root_note(root)) for root in missing
    ]
    report.notes = [note for note in report.notes if note.code != "flags_remembered"]
    return report


def _has_root_above(root: Root, roots: Iterable[Root]) -> bool:
    return any(
        is_below(root.location, other.location) and os.path.lexists(other.location)
        for other in roots
        if other != root
    )


def _is_missing(root: Root) -> bool:
    path = Path(root.location)
    if not os.path.lexists(path):
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
    if run.moves:
        known = store.known_files(corpus)
    if options.reread:
        # No file has such a recipe, so none is taken for unchanged.
        known = {location: (*file[:2], "") for location, file in known.items()}
    report = IngestReport()
    report.notes += run.notes
    changed: set[str] = set()
    for walk_result in run.walks:
        before = (report.added, report.updated, report.removed)
        _ingest_files(corpus, walk_result, known, options, report, progress, on_reading)
        if before != (report.added, report.updated, report.removed):
            changed.add(walk_result.visit.root.location)
    record_counts(corpus, [walk_result.visit for walk_result in run.walks], changed)
    if report.added or report.updated or report.removed:
        _merge_lexical_indexes(corpus)
    embedding = EmbeddingReport(0, count_waiting(corpus), problem)
    if provider is not None and index is not None:
        embedding = fill_index(corpus, index, provider, progress)
        if options.optimize:
            report.optimized = optimize_large(corpus, index, progress)
    totals = documents.counts(corpus)
    report.documents, report.chunks = totals.documents, totals.chunks
    report.embedded = embedding.embedded
    report.waiting = count_waiting(corpus)
    # A model that is not needed may be away.
    report.embedding_problem = embedding.problem if report.waiting else ""
    return report


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run is about to do. ``moves`` maps the former paths of roots to their new ones."""

    roots: list[Root]
    walks: list[_WalkResult]
    memory: _Memory
    moves: dict[str, str]
    notes: list[Skipped]


def _prepared(
    corpus: Corpus,
    paths: Sequence[Path],
    provider: EmbeddingProvider | None,
    options: IngestOptions,
    known: Mapping[str, store.FileIdentity],
) -> tuple[_Run, EmbeddingIndex | None, str]:
    """Walk all paths, then store the roots and flags, so that they also hold after a kill.

    A wrong path or manifest stops the run before the first write.
    """
    flags = validated(options.flags, "command line", ConfigurationError, "bad_flag")
    check_reader(options.reader or "", "command line")
    given = given_flags(options.flags, flags, options.max_trust, options.manifests)
    while True:
        roots = root_storage.load(corpus)
        run = _planned(corpus, roots, paths, options, given)
        for walk_result in run.walks if options.max_removed < 1 else ():
            _check_removals(corpus, walk_result, known, options.max_removed)
        index, problem = _index_for(corpus, provider, options.connection)
        if run.roots == roots and run.memory.after == run.memory.before and not run.moves:
            return run, index, problem
        with corpus.writing():
            if root_storage.load(corpus) != roots:
                continue  # Another process has ingested: a new root may need another source.
            for old, new in run.moves.items():
                apply_move(corpus, old, new)
            locations = [real_location(walk_result.visit.start) for walk_result in run.walks]
            path_flags.save(corpus, remember(path_flags.load(corpus), locations, given))
            root_storage.save(corpus, run.roots)
        return run, index, problem


def _planned(
    corpus: Corpus,
    roots: Sequence[Root],
    paths: Sequence[Path],
    options: IngestOptions,
    given: Flags,
) -> _Run:
    starts = [existing_start(path, roots) for path in paths]
    flags: Remembered = path_flags.load(corpus)
    approved = {
        manifest.location: manifest.content_hash for manifest in approvals.approvals(corpus)
    }
    moves = _find_moves(corpus, roots, starts, flags)
    notes: list[Skipped] = []
    for old, new in moves.items():
        roots = [moved(root, old, new) for root in roots]
        real_old, real_new = real_location(Path(old)), real_location(Path(new))
        flags = moved_flags(flags, real_old, real_new)
        approved |= {
            moved_path(path, old, new): approved[path] for path in manifests_below(approved, old)
        }
        notes.append(Skipped(new, "root_moved", f"{new}: is the root that was {old}"))
    locations = [real_location(start) for start in starts]
    for location in locations if given else ():
        check_path(Path(location))
    memory = _Memory(flags, remember(flags, locations, given), given)

    def base_of(start: Path) -> Path:
        return root_of(start, memory.policy_at(str(start), approved))[0]

    def sources_of_others(base: Path, with_foreign: bool) -> set[str] | None:
        if source_name(base) in root_storage.sources_below(corpus, str(base)):
            return None
        return root_storage.sources_outside(corpus, str(base), with_foreign=with_foreign)

    def is_foreign(start: Path) -> bool:
        limits = limits_in(memory.flags_at(real_location(start)))
        origin = limits.get("origin", "internal")
        return limits.get("trust_tier") == "untrusted" or origin != "internal"

    surroundings = Surroundings(base_of, sources_of_others, is_foreign, leaves_out)
    planned = plan(roots, starts, options.root_options(), surroundings)
    notes += [
        Skipped(root.location, "root_missing", missing_root_note(root)) for root in planned.missing
    ]
    walks = []
    for visit in planned.visits:
        anchor = anchor_of(planned.roots, visit.root)
        walks.append(_walk_visit(visit, base_of(anchor), options, approved, memory))
    return _Run(planned.roots, walks, memory, moves, notes)


def _find_moves(
    corpus: Corpus, roots: Sequence[Root], starts: Sequence[Path], flags: Remembered
) -> dict[str, str]:
    moves: dict[str, str] = {}
    for start in starts:
        is_known = holder_of(roots, str(start)) or root_storage.files_below(corpus, str(start))
        root = (
            None
            if is_known
            else find_moved(
                [root for root in roots if root.location not in moves],
                start,
                lambda location: root_storage.content_hashes(corpus, location),
                flags,
                DEFAULT_SIZE_CAP,
            )
        )
        if root is not None:
            moves[root.location] = str(start)
    return moves


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

    visit: Visit
    base: Path
    files: list[FileEntry]
    skipped: list[Skipped]
    notes: list[Skipped]
    unreadable: list[str]
    settings: RunSettings

    def missing(self, known: Iterable[str], present: Container[str]) -> list[str]:
        """Known locations of the visit that are neither present nor below an unreadable one."""
        start = str(self.visit.start)
        elsewhere = [*self.unreadable, *self.visit.excluded]
        return [
            location
            for location in known
            if location not in present  # first, because nearly all of them are present
            and is_below(location, start)
            and not any(is_below(location, folder) for folder in elsewhere)
        ]

    def left_out(self, removed: Sequence[str]) -> list[Skipped]:
        """Notes on removed files that still exist, but are left out."""
        entries = {
            str(self.base / entry.path): entry for entry in self.skipped if entry.code == "ignored"
        }
        counts: Counter[str] = Counter()
        for location in removed if entries else ():
            path = Path(location)
            found = (str(parent) for parent in (path, *path.parents) if str(parent) in entries)
            counts.update([next(found, "")])
        del counts[""]
        return [
            Skipped(
                entries[path].path,
                "left_corpus",
                f"{entries[path].path}: {counted(count, 'file')} left the corpus: "
                f"{entries[path].message}",
            )
            for path, count in counts.items()
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

    def policy_at(self, location: str, approved: Mapping[str, str]) -> ManifestPolicy:
        """Which manifests count at and below a path, as it is spelled."""
        real = real_location(Path(location))
        excluded = [
            location.rstrip(os.sep) + rest
            for path, rest in self.nested(real).items()
            if self.flags_at(path).get("manifests") is False
        ]
        enabled = self.flags_at(real).get("manifests") is not False
        return ManifestPolicy(enabled, approved, frozenset(excluded))

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


def _defaults_for(flags: Flags, declared: DeclaredMetadata, root: Root) -> FileDefaults:
    """The defaults of files for which these governance flags hold."""
    limits = limits_in(flags)
    governed = {key: value for key, value in limits.items() if key in GOVERNANCE_KEYS}
    values = validated(governed, "flags of an earlier ingest", ConfigurationError, "bad_flag")
    others = {
        key: value for key, value in declared.declared_values().items() if key not in governed
    }
    max_trust = check_max_trust(limits.get("max_trust"), "flags of an earlier ingest")
    authority, _ = Authority(default_source=root.source_id).with_level(
        {**others, **values.declared_values()}, max_trust=max_trust
    )
    return FileDefaults(authority, root.options.reader, root.options.separator)


def _walk_visit(
    visit: Visit,
    base: Path,
    options: IngestOptions,
    approved: Mapping[str, str],
    memory: _Memory,
) -> _WalkResult:
    start, root = visit.start, visit.root
    location = real_location(start)
    flags = memory.flags_at(location)
    if LOST in flags:
        raise UsageError(
            "flags_lost",
            f"{start}: a repair lost what --untrusted, --max-trust and --meta said of it before",
            "give them again, or --max-trust authoritative if there were none",
        )
    declared = validated(
        {**root.options.meta, **options.flags}, "command line", ConfigurationError, "bad_flag"
    )
    policy = memory.policy_at(str(start), approved)
    _, ignored = root_of(start, policy)
    files: list[FileEntry] = []
    skipped: list[Skipped] = []
    # A note on a folder covers what is below it.
    notes = [] if visit.is_nested else memory.notes(str(start), location)
    notes += [
        Skipped(m.location, "manifest_ignored", f"{m.location}: ignored, because {m.reason}")
        for m in ignored
    ]
    nested_defaults = {
        str(start).rstrip(os.sep) + rest: _defaults_for(memory.flags_at(path), declared, root)
        for path, rest in memory.nested(location).items()
    }
    defaults = _defaults_for(flags, declared, root)
    ignore = root.options.ignore
    for entry in walk(
        base, start, defaults, policy, nested_defaults, visit.excluded, ignore=ignore
    ):
        if isinstance(entry, FileEntry):
            files.append(entry)
        elif entry.code in _MANIFEST_CODES:
            notes.append(entry)
        else:
            skipped.append(entry)
    unreadable = [str(base / entry.path) for entry in skipped if entry.code in TRANSIENT_CODES]
    manifest = read_manifest(base, base, policy)
    from_manifest = {} if isinstance(manifest, IgnoredManifest) else manifest.chunking
    chunks = ChunkSettings(**{**from_manifest, **root.options.chunking})
    size_cap = DEFAULT_SIZE_CAP if root.options.max_size is None else root.options.max_size
    settings = RunSettings(chunks, size_cap, _scan_settings(options, root.options.scan))
    return _WalkResult(visit, base, files, skipped, notes, unreadable, settings)


def _ingest_files(
    corpus: Corpus,
    walk_result: _WalkResult,
    known: dict[str, store.FileIdentity],
    options: IngestOptions,
    report: IngestReport,
    progress: Progress,
    on_reading: OnReading,
) -> None:
    report.skipped += walk_result.skipped
    report.notes += walk_result.notes
    # Removed before others are added: a file that was moved has the same document ids.
    removed = walk_result.missing(known, {file.location for file in walk_result.files})
    _remove(corpus, removed, report)
    report.notes += walk_result.left_out(removed)
    tasks = [FileTask(file, known.get(file.location)) for file in walk_result.files]
    verified = options.verified
    if verified is not None:
        skipped = [verified.skipped(task, walk_result.settings) for task in tasks]
        report.skipped += [outcome for outcome in skipped if outcome]
        tasks = [task for task, outcome in zip(tasks, skipped, strict=True) if not outcome]
    # In this thread: several would wait for each other, because most files are small.
    unchanged = check_unchanged(tasks, walk_result.settings, verified)
    # Locations whose documents stay in the corpus.
    kept = {task.file.location for task, same in zip(tasks, unchanged, strict=True) if same}
    done = len(kept)
    report.unchanged += done
    progress("reading", done, len(tasks))
    changed = [task for task, same in zip(tasks, unchanged, strict=True) if not same]
    meter = _ReadingMeter(tasks, kept, on_reading)
    with ThreadPoolExecutor(1) as pool:
        # git reads its history while the files are read.
        commits = pool.submit(last_commits, [task.file.location for task in changed])
        outcomes = prepare_parallel(changed, walk_result.settings, options.workers, meter.slow)
        for batch in _batches(meter.each(zip(changed, outcomes, strict=True))):
            for task, outcome in batch:
                if verified is not None and isinstance(outcome, Skipped):
                    verified.add_skipped(task.file, walk_result.settings, outcome)
            kept |= _store_batch(corpus, batch, commits.result(), report)
            done += len(batch)
            progress("reading", done, len(tasks))
    # Files that were read and rejected: their former documents are removed.
    _remove(corpus, walk_result.missing(known.keys() - set(removed), kept), report)


def _check_removals(
    corpus: Corpus,
    walk_result: _WalkResult,
    known: Mapping[str, store.FileIdentity],
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
    gone = []
    for location, identity in root_storage.sizes_and_times(corpus, missing).items():
        if new[identity]:
            new[identity] -= 1
        else:
            gone.append(location)
    removed = root_storage.count_documents_of(corpus, gone) - new.total()
    total = root_storage.count_documents_of(corpus, walk_result.missing(known, ()))
    # A single document is always within what a person deletes.
    if removed > max(1, max_removed * total):
        raise UsageError(
            "too_many_removed",
            f"{walk_result.visit.start}: {removed} of its {total} documents disappeared at once; "
            "nothing was changed",
            "if that is meant, run `rolebundle update`, or use --allow-removal; "
            "else bring the files back",
        )


class _ReadingMeter:
    """Reports how far the reading of files is."""

    def __init__(
        self, tasks: Sequence[FileTask], kept: Container[str], on_reading: OnReading
    ) -> None:
        self.on_reading = on_reading
        sizes = [(task.file.size, task.file.location in kept) for task in tasks]
        self.now = Reading(
            sum(is_done for _, is_done in sizes),
            len(tasks),
            sum(size for size, is_done in sizes if is_done),
            sum(size for size, _ in sizes),
            0,
        )

    def slow(self, path: str) -> None:
        self.on_reading(self.now._replace(slow=path))

    def each(
        self, outcomes: Iterable[tuple[FileTask, Outcome]]
    ) -> Iterator[tuple[FileTask, Outcome]]:
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
    corpus: Corpus,
    batch: Sequence[tuple[FileTask, Outcome]],
    commits: Mapping[str, int | None],
    report: IngestReport,
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
            prepared.append((task, _dated(outcome, inferred_at(task.file, commits))))
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
