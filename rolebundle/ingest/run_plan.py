"""What an ingest run is about to do: the roots after it, and the files of each path.

Nothing is stored here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from rolebundle.contracts.roots import Root
from rolebundle.errors import UsageError
from rolebundle.ingest.authority import GOVERNANCE_KEYS, Authority
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.manifests import (
    MANIFEST_NAME,
    FileDefaults,
    Manifest,
    check_path,
    read_manifest,
)
from rolebundle.ingest.metadata import validated
from rolebundle.ingest.options import IngestOptions, scan_settings
from rolebundle.ingest.path_flags import (
    LOST,
    Flags,
    FlagsByPath,
    combined,
    describe,
    flags_after,
    flags_at,
    lifting_options,
    limits_in,
    without,
)
from rolebundle.ingest.prepare import TRANSIENT_CODES, RunSettings
from rolebundle.ingest.roots import (
    Visit,
    anchor_of,
    existing_start,
    folder_of,
    is_below,
    missing_root,
    plan,
    real_location,
    source_name,
)
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, Skipped, skipped_for, walk
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import path_flags, roots
from rolebundle.storage.records import roots as root_storage
from rolebundle.storage.records.stored_policy import load_policy
from rolebundle.text.counts import counted

_MANIFEST_CODES = frozenset({"manifest_ignored", "claim_refused", "glob_matches_nothing"})
_LINKS = frozenset({"escapes_root", "broken_link"})
_NEXT_STEP_OF_LINK = "; to have them again, ingest the folder that holds them now"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run is about to do."""

    roots: list[Root]
    walks: list[WalkResult]
    flags: RunFlags
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
    locations = [real_location(start) for start in starts]
    for location in locations if command_flags else ():
        check_path(Path(location))
    run_flags = RunFlags(flags, flags_after(flags, locations, command_flags), command_flags)

    def other_sources(folder: Path) -> set[str] | None:
        if source_name(folder) in root_storage.sources_below(corpus, str(folder)):
            return None
        return root_storage.sources_outside(corpus, str(folder))

    planned = plan(roots, starts, options.root_options(), other_sources)
    notes = [skipped_for(root.location, missing_root(root)) for root in planned.missing]
    policy = load_policy(corpus)
    policy_file = real_location(Path(policy.location)) if policy and policy.location else ""
    walks = []
    for visit in planned.visits:
        manifest = _manifest_of(visit.root, planned.roots, run_flags)
        base = folder_of(anchor_of(planned.roots, visit.root))
        walks.append(_walk_visit(visit, base, manifest, options, run_flags, policy_file))
    return RunPlan(planned.roots, walks, run_flags, notes)


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


# -- run flags --
#
# The governance flags that hold in a run: those of earlier runs, and those that it was given.


def flags_of(corpus: Corpus, location: str) -> dict[str, Any]:
    """The metadata that the flags of earlier runs give to the file at an absolute path."""
    above = [root for root in roots.load(corpus) if is_below(location, root.location)]
    nearest = max(above, key=lambda root: len(root.location), default=None)
    governing = flags_at(path_flags.load(corpus), location)
    return {**(nearest.options.meta if nearest else {}), **governing}


@dataclass(frozen=True, slots=True)
class RunFlags:
    """The flags that are remembered before and after this run, and those that it was given."""

    before: FlagsByPath
    after: FlagsByPath
    current: Flags

    def flags_at(self, location: str) -> Flags:
        """The flags that hold for a file or folder in this run."""
        return combined(flags_at(self.after, location), self.current)

    def why_no_manifest(self, folder: Path) -> str:
        """Why the manifest of a folder does not count; empty if flags do not say so."""
        flags = self.flags_at(real_location(folder))
        if flags.get("manifests") is False:
            return "manifests are turned off for it"
        return "its folder is untrusted" if flags.get("origin") == "untrusted" else ""

    def nested(self, location: str) -> dict[str, str]:
        """The remembered paths below a folder → what follows the folder in them."""
        prefix = location.rstrip(os.sep) + os.sep
        return {
            path: path[len(prefix) - 1 :]
            for path in sorted({*self.before, *self.after})
            if path.startswith(prefix) and path != location
        }

    def notes(self, start: str, location: str) -> Iterator[Skipped]:
        """What becomes of the flags that were remembered for a path and below it.

        Args:
            start: the path as it was given. Notes name it and not the real path.
            location: its real path.
        """
        remembered = {location: (start, flags_at(self.before, location))} | {
            path: (start.rstrip(os.sep) + relative, self.before.get(path, {}))
            for path, relative in self.nested(location).items()
        }
        for path, (shown, flags) in remembered.items():
            own, now = limits_in(flags), self.flags_at(path)
            kept = {key: value for key, value in without(own, self.current).items() if key in now}
            replaced = {key: value for key, value in own.items() if now.get(key) != value}
            if kept:
                message = f"{shown}: {describe(kept)}, as in an earlier ingest; "
                message += f"{lifting_options(kept)} lifts it"
                yield Skipped(shown, "flags_remembered", message)
            if replaced:
                message = f"{shown}: {describe(replaced)} of an earlier ingest is replaced"
                yield Skipped(shown, "flags_replaced", message)

    def defaults_at(self, location: str, root: Root) -> FileDefaults:
        """The defaults of the files of a root for which the flags of a path hold.

        Raises:
            ConfigurationError: ``bad_flag``: a flag of an earlier ingest is invalid.
        """
        limits = limits_in(self.flags_at(location))
        flags = {key: value for key, value in limits.items() if key in GOVERNANCE_KEYS}
        max_trust = limits.get("max_trust")
        place = "flags of an earlier ingest"
        validated({} if max_trust is None else {"trust_tier": max_trust}, place, "bad_flag")
        declared = validated({**root.options.meta, **flags}, place, "bad_flag")
        authority, _ = Authority(default_source=root.source_id).with_level(
            declared.declared_values(), max_trust=max_trust
        )
        return FileDefaults(authority, root.options.reader, root.options.separator)
