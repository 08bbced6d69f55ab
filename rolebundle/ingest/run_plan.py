"""What an ingest run is about to do: the roots after it, and the files of each path.

Nothing is stored here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rolebundle.contracts.roots import Root
from rolebundle.errors import UsageError
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.manifests import MANIFEST_NAME, Manifest, check_path, read_manifest
from rolebundle.ingest.options import IngestOptions, scan_settings
from rolebundle.ingest.path_flags import LOST, Flags, FlagsByPath, flags_after
from rolebundle.ingest.prepare import TRANSIENT_CODES, RunSettings
from rolebundle.ingest.roots import (
    Visit,
    anchor_of,
    existing_start,
    find_moved,
    folder_of,
    holder_of,
    is_below,
    missing_root,
    moved,
    moved_flags,
    plan,
    real_location,
    source_name,
)
from rolebundle.ingest.run_flags import RunFlags
from rolebundle.ingest.walk import (
    DEFAULT_SIZE_CAP,
    FileEntry,
    Skipped,
    skipped_for,
    walk,
)
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import path_flags
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
    moves = _find_moves(corpus, roots, starts, flags)
    notes: list[Skipped] = []
    for old, new in moves.items():
        roots = [moved(root, old, new) for root in roots]
        real_old, real_new = real_location(Path(old)), real_location(Path(new))
        flags = moved_flags(flags, real_old, real_new)
        notes.append(Skipped(new, "root_moved", f"{new}: is the root that was {old}"))
    locations = [real_location(start) for start in starts]
    for location in locations if command_flags else ():
        check_path(Path(location))
    run_flags = RunFlags(flags, flags_after(flags, locations, command_flags), command_flags)

    def other_sources(folder: Path) -> set[str] | None:
        if source_name(folder) in root_storage.sources_below(corpus, str(folder)):
            return None
        return root_storage.sources_outside(corpus, str(folder))

    planned = plan(roots, starts, options.root_options(), other_sources)
    notes += [skipped_for(root.location, missing_root(root)) for root in planned.missing]
    policy = load_policy(corpus)
    policy_file = real_location(Path(policy.location)) if policy and policy.location else ""
    walks = []
    for visit in planned.visits:
        manifest = _manifest_of(visit.root, planned.roots, run_flags)
        base = folder_of(anchor_of(planned.roots, visit.root))
        walks.append(_walk_visit(visit, base, manifest, options, run_flags, policy_file))
    return RunPlan(planned.roots, walks, run_flags, moves, notes)


def _manifest_of(root: Root, roots: Sequence[Root], run_flags: RunFlags) -> Manifest | str:
    """The manifest of a root: its own, else that of the nearest root above it that has one.

    A part of a root that has options of its own is no root in this sense.

    Return why the root's own does not count if there is none; empty without a reason.
    """
    reasons = []
    above = (outer for outer in roots if is_below(root.location, outer.location))
    for anchor in sorted({anchor_of(roots, outer) for outer in above}, reverse=True):
        folder = folder_of(anchor)
        found = run_flags.why_no_manifest(folder) or read_manifest(folder)
        if isinstance(found, Manifest):
            return found
        reasons.append(found)
    return reasons[0]


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
    manifest: Manifest | str,
    options: IngestOptions,
    run_flags: RunFlags,
    policy_file: str,
) -> WalkResult:
    start, root = visit.start, visit.root
    location = real_location(start)
    if LOST in run_flags.flags_at(location):
        raise UsageError(
            "flags_lost",
            f"{start}: a repair lost what --untrusted, --max-trust and --meta said of it before",
            "give them again, or --max-trust authoritative if there were none",
        )
    files: list[FileEntry] = []
    skipped: list[Skipped] = []
    # A note on a folder covers what is below it.
    notes = [] if visit.is_nested else list(run_flags.notes(str(start), location))
    if manifest == "" and not visit.is_nested:
        notes += _manifests_above(base)
    nested_defaults = {
        str(start).rstrip(os.sep) + relative: run_flags.defaults_at(path, root)
        for path, relative in run_flags.nested(location).items()
    }
    defaults = run_flags.defaults_at(location, root)
    ignore = root.options.ignore
    for entry in walk(
        base, start, defaults, manifest, nested_defaults, visit.excluded, ignore=ignore
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
    chunking = dict(root.options.chunking)
    if isinstance(manifest, Manifest):
        chunking = manifest.file.chunking.model_dump(exclude_none=True) | chunking
    chunks = ChunkSettings(**chunking)
    size_cap = DEFAULT_SIZE_CAP if root.options.max_size is None else root.options.max_size
    settings = RunSettings(chunks, size_cap, scan_settings(options, root.options.scan))
    return WalkResult(visit, base, files, skipped, notes, unreadable, settings)


def _manifests_above(folder: Path) -> list[Skipped]:
    """A note on the nearest manifest above an ingested folder, which its owner may have meant."""
    for parent in folder.parents:
        path = parent / MANIFEST_NAME
        if path.is_file():
            step = f"`rolebundle ingest {quote(str(parent))}` uses it"
            message = f"{path}: not used, because only that of an ingested folder counts; {step}"
            return [Skipped(str(path), "manifest_ignored", message)]
    return []


def _is_at(entry: FileEntry, location: str) -> bool:
    # The names are compared first, because that is fast.
    is_named_so = entry.location.endswith(Path(location).name)
    return is_named_so and real_location(Path(entry.location)) == location
