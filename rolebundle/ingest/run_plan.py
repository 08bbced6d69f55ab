"""What an ingest run is about to do: the roots after it, and the files of each path.

Nothing is stored here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolebundle.contracts.roots import Root
from rolebundle.errors import UsageError
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.manifests import IgnoredManifest, check_path, read_manifest, root_of
from rolebundle.ingest.metadata import validated
from rolebundle.ingest.options import IngestOptions, scan_settings
from rolebundle.ingest.path_flags import LOST, Flags, FlagsByPath, flags_after, limits_in
from rolebundle.ingest.prepare import TRANSIENT_CODES, RunSettings
from rolebundle.ingest.root_changes import manifests_below
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
from rolebundle.ingest.run_flags import RunFlags, defaults_for
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, Skipped, leaves_out, walk
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import approvals, path_flags
from rolebundle.storage.records import roots as root_storage
from rolebundle.storage.records.stored_policy import load_policy
from rolebundle.text.counts import counted

_MANIFEST_CODES = frozenset({"manifest_ignored", "claim_refused", "glob_matches_nothing"})
_LINKS = frozenset({"escapes_root", "broken_link"})
_NEXT_STEP_OF_LINK = "; to have them again, ingest the folder that holds them now"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run is about to do. ``moves`` maps the former paths of roots to their new ones."""

    roots: list[Root]
    walks: list[WalkResult]
    flags: RunFlags
    moves: dict[str, str]
    notes: list[Skipped]


def plan_run(
    corpus: Corpus,
    roots: Sequence[Root],
    paths: Sequence[Path],
    options: IngestOptions,
    command_flags: Flags,
) -> RunPlan:
    """Walk all paths, with the roots and flags that hold after the run.

    Args:
        corpus: an open corpus.
        roots: its roots before the run.
        paths: the files and folders of the run.
        options: its settings.
        command_flags: what they say of governance.

    Raises:
        UsageError: a path does not exist, or a repair lost its flags.
        ConfigurationError: a manifest or flag is invalid.
    """
    starts = [existing_start(path, roots) for path in paths]
    flags: FlagsByPath = path_flags.load(corpus)
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
    for location in locations if command_flags else ():
        check_path(Path(location))
    run_flags = RunFlags(flags, flags_after(flags, locations, command_flags), command_flags)
    surroundings = _surroundings(corpus, run_flags, approved)
    planned = plan(roots, starts, options.root_options(), surroundings)
    notes += [
        Skipped(root.location, "root_missing", missing_root_note(root)) for root in planned.missing
    ]
    policy = load_policy(corpus)
    policy_file = real_location(Path(policy.location)) if policy and policy.location else ""
    walks = []
    for visit in planned.visits:
        base = surroundings.base_of(anchor_of(planned.roots, visit.root))
        walks.append(_walk_visit(visit, base, options, approved, run_flags, policy_file))
    return RunPlan(planned.roots, walks, run_flags, moves, notes)


def _surroundings(corpus: Corpus, run_flags: RunFlags, approved: Mapping[str, str]) -> Surroundings:
    def base_of(start: Path) -> Path:
        return root_of(start, run_flags.policy_at(str(start), approved))[0]

    def sources_of_others(base: Path, with_foreign: bool) -> set[str] | None:
        if source_name(base) in root_storage.sources_below(corpus, str(base)):
            return None
        return root_storage.sources_outside(corpus, str(base), with_foreign=with_foreign)

    def is_foreign(start: Path) -> bool:
        limits = limits_in(run_flags.flags_at(real_location(start)))
        origin = limits.get("origin", "internal")
        return limits.get("trust_tier") == "untrusted" or origin != "internal"

    return Surroundings(base_of, sources_of_others, is_foreign, leaves_out)


def _find_moves(
    corpus: Corpus, roots: Sequence[Root], starts: Sequence[Path], flags: FlagsByPath
) -> dict[str, str]:
    moves: dict[str, str] = {}
    for start in starts:
        is_known = holder_of(roots, str(start)) or root_storage.files_below(corpus, str(start))
        if is_known:
            continue
        root = find_moved(
            [root for root in roots if root.location not in moves],
            start,
            lambda location: root_storage.content_hashes(corpus, location),
            flags,
            DEFAULT_SIZE_CAP,
        )
        if root is not None:
            moves[root.location] = str(start)
    return moves


@dataclass(frozen=True, slots=True)
class WalkResult:
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
        """Notes on removed files that are left out now, or lie behind a link out of the folder."""
        entries = {
            str(self.base / entry.path): entry
            for entry in self.skipped
            if entry.code in ("ignored", *_LINKS)
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
                f"{entries[path].message}"
                f"{_NEXT_STEP_OF_LINK if entries[path].code in _LINKS else ''}",
            )
            for path, count in counts.items()
        ]


def _walk_visit(
    visit: Visit,
    base: Path,
    options: IngestOptions,
    approved: Mapping[str, str],
    run_flags: RunFlags,
    policy_file: str,
) -> WalkResult:
    start, root = visit.start, visit.root
    location = real_location(start)
    flags_of_start = run_flags.flags_at(location)
    if LOST in flags_of_start:
        raise UsageError(
            "flags_lost",
            f"{start}: a repair lost what --untrusted, --max-trust and --meta said of it before",
            "give them again, or --max-trust authoritative if there were none",
        )
    declared = validated({**root.options.meta, **options.flags}, "command line", "bad_flag")
    policy = run_flags.policy_at(str(start), approved)
    _, ignored = root_of(start, policy)
    files: list[FileEntry] = []
    skipped: list[Skipped] = []
    # A note on a folder covers what is below it.
    notes = [] if visit.is_nested else run_flags.notes(str(start), location)
    notes += [
        Skipped(m.location, "manifest_ignored", f"{m.location}: ignored, because {m.reason}")
        for m in ignored
    ]
    nested_defaults = {
        str(start).rstrip(os.sep) + relative: defaults_for(run_flags.flags_at(path), declared, root)
        for path, relative in run_flags.nested(location).items()
    }
    defaults = defaults_for(flags_of_start, declared, root)
    ignore = root.options.ignore
    for entry in walk(
        base, start, defaults, policy, nested_defaults, visit.excluded, ignore=ignore
    ):
        if isinstance(entry, FileEntry):
            if policy_file and _is_at(entry, policy_file):
                # It names what an agent may not see.
                skipped.append(Skipped(entry.path, "ignored", "the policy of this corpus"))
            else:
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
    settings = RunSettings(chunks, size_cap, scan_settings(options, root.options.scan))
    return WalkResult(visit, base, files, skipped, notes, unreadable, settings)


def _is_at(entry: FileEntry, location: str) -> bool:
    # The names are compared first, because that is fast.
    is_named_so = entry.location.endswith(Path(location).name)
    return is_named_so and real_location(Path(entry.location)) == location
