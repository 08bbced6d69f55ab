"""Which root a path belongs to, and what a run has to visit.

A file belongs to the innermost root at or above it. Document ids begin with the root's source, so a
root keeps its source for good: also when it is moved, or when another folder has the same name. A
folder or file below a root becomes a root of its own only if its options differ, or if a walk of
the outer root would leave it out. It then shares the source of the outer root, so that its ids do
not depend on how it is ingested.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import Any
from unicodedata import normalize

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.ingest import Root, RootChange, RootOptions, Skipped
from rolebundle.errors import UsageError
from rolebundle.ingest import authority, manifests, walk
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.locations import is_below, is_there, moved_path, real_location
from rolebundle.ingest.metadata import validated
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.prepare import TRANSIENT_CODES, RunSettings
from rolebundle.storage import records, store
from rolebundle.storage import roots as root_storage
from rolebundle.storage.corpus import Corpus, corpus_counts, increment_generation
from rolebundle.storage.records import load_policy
from rolebundle.text.words import counted

_MANIFEST_CODES = frozenset({"manifest_ignored", "claim_refused", "glob_matches_nothing"})

Options = Mapping[str, Any]
"""Fields of ``RootOptions`` that an ingest was given."""


@dataclass(slots=True)
class Visit:
    """A folder or file that a run walks, and what the walk found.

    Attributes:
        start: where the walk begins.
        root: the root that the files belong to, with the options that hold in this run.
        excluded: the roots below ``start``, which are visited on their own.
        is_nested: whether it is visited because it lies below a path of the run.
        settings: how the files are read.
        files, skipped: what was found.
        notes: remarks on flags and manifests.
        unreadable: the locations of files and folders that could not be read. Their documents stay.
    """

    start: Path
    root: Root
    excluded: frozenset[str]
    is_nested: bool
    settings: RunSettings
    files: list[walk.FileEntry] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Skipped] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def missing(self, known: Iterable[str], present: Container[str]) -> list[str]:
        """Known locations of the visit that are neither present nor below an unreadable one."""
        start = str(self.start)
        elsewhere = [*self.unreadable, *self.excluded]
        return [
            location
            for location in known
            if location not in present  # first, because nearly all of them are present
            and is_below(location, start)
            and not any(is_below(location, folder) for folder in elsewhere)
        ]


def absolute(path: Path, roots: Iterable[Root]) -> Path:
    """The absolute path, spelled as the root that it belongs to.

    A path through a symbolic link is the same root, and so is one in other letters where the file
    system finds the same folder by them. Its files must not be stored twice.
    """
    start = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link
    manifests.check_path(start)
    location = real_location(start)
    parts = Path(location).parts
    spelled = []
    for root in roots:
        real = Path(real_location(Path(root.location)))
        above = Path(*parts[: len(real.parts)])
        if above == real or (_folded(above) == _folded(real) and _is_same(above, real)):
            spelled.append(moved_path(location, str(above), root.location))
    return Path(min(spelled, key=len)) if spelled else start


def _folded(path: Path) -> str:
    return normalize("NFC", str(path)).casefold()


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False


def check_no_link(path: Path) -> None:
    """Check that a path that a person names is no symbolic link.

    Raises:
        UsageError: it is one.
    """
    if path.is_symlink():
        step = f"name what it leads to: {os.path.realpath(path)}"
        raise UsageError("path_is_link", f"{path}: is a symbolic link, which is not followed", step)


def existing_start(path: Path, roots: Sequence[Root]) -> Path:
    """The absolute path of a file or folder to ingest.

    Raises:
        UsageError: it does not exist, or is a symbolic link.
    """
    start = absolute(path, roots)
    if is_there(start):
        return start
    for root in roots:
        if root.location == str(start):
            raise missing_root(root)
    check_no_link(start)
    raise UsageError("path_missing", f"{path}: no such file or folder", "check the spelling")


def missing_root(root: Root) -> UsageError:
    """The error for a root that is not there."""
    documents = counted(root.documents, "document")
    is_link = os.path.islink(root.location)  # noqa: PTH114 - a location is a text
    state = "a symbolic link now, which is not followed" if is_link else "missing"
    return UsageError(
        "root_missing",
        f"{root.location}: this root is {state}; the corpus keeps its {documents}",
        f"if it was moved: `rolebundle corpus roots move {quote(root.location)} NEW`; "
        f"if it was deleted: `rolebundle corpus roots remove {quote(root.location)} --yes`",
    )


def holder_of(roots: Iterable[Root], location: str) -> Root | None:
    """The innermost root at or above a path."""
    above = [root for root in roots if is_below(location, root.location)]
    return max(above, key=lambda root: len(root.location), default=None)


def anchor_of(roots: Iterable[Root], root: Root) -> Path:
    """The outermost root above a root that shares its source. Paths are relative to its folder."""
    above = [outer for outer in roots if is_below(root.location, outer.location)]
    sharing = [outer.location for outer in above if outer.source_id == root.source_id]
    return Path(min([*sharing, root.location], key=len))


def folder_of(start: Path) -> Path:
    """The folder that the paths of files are relative to: an ingested folder, or that of a file."""
    return start if start.is_dir() and not start.is_symlink() else start.parent


@dataclass(slots=True)
class Plan:
    """What a run visits, and the roots after it.

    Attributes:
        by_location: the roots, by location.
        new_options: the options of the run. They hold for what is below its paths, too.
        other_sources: the sources of documents that do not come from a folder.
        starts: the paths to visit, by location; each with whether it is nested.
        visits: what the run has visited.
        notes: notes on the roots that are missing below a path of the run.
    """

    by_location: dict[str, Root]
    new_options: Options
    other_sources: Callable[[str], set[str]]
    starts: dict[str, tuple[Path, bool]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    notes: list[Skipped] = field(default_factory=list)

    @property
    def roots(self) -> list[Root]:
        """The roots after the run, ordered by location."""
        return sorted(self.by_location.values(), key=lambda root: root.location)

    def add(self, start: Path) -> None:
        """Add a path: as a new root, to the root that it is, or as a part of the root above it.

        The roots below it are visited, too. What the root above covers is no root.
        """
        location, known = str(start), self.by_location.values()
        holder = holder_of(known, location)
        if holder is None or holder.location != location:
            base = folder_of(anchor_of(known, holder) if holder else start)
            self.by_location[location] = Root(
                location=location,
                prefix="" if start == base else start.relative_to(base).as_posix(),
                source_id=holder.source_id if holder else self._source_of(base),
                options=holder.options if holder else RootOptions(),
            )
        self.starts[location] = start, False
        for at in [at for at in self.by_location if is_below(at, location)]:
            root = self.by_location[at]
            options = with_options(root.options, self.new_options)
            root = self.by_location[at] = root.model_copy(update={"options": options})
            if self._is_covered(root):
                del self.by_location[at]
            elif is_there(at):
                self.starts.setdefault(at, (Path(at), True))
            else:
                self.notes.append(walk.skipped_for(at, missing_root(root)))

    def _is_covered(self, root: Root) -> bool:
        """Whether a walk of the root above reads the same files with the same options and ids."""
        others = [other for other in self.by_location.values() if other != root]
        outer = holder_of(others, root.location)
        if outer is None or outer.source_id != root.source_id:
            return False
        # This option does not change how files are read.
        options = with_options(outer.options, {"lexical_only": root.options.lexical_only})
        return options == root.options and not walk.leaves_out(outer, Path(root.location))

    def _source_of(self, base: Path) -> str:
        """The source of a root: that of its base, or else one that no other folder has.

        The names of the folders above tell folders of the same name apart.
        """
        roots = list(self.by_location.values())
        for root in roots:
            if os.path.lexists(root.location) and folder_of(anchor_of(roots, root)) == base:
                return root.source_id
        name = source_name(base)
        sources = (*self.other_sources(str(base)), *(root.source_id for root in roots))
        used = {source.casefold() for source in sources}
        for parent in base.parents:
            if name.casefold() not in used:
                return name
            if parent.name:
                name = f"{source_name(parent)}-{name}"
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        return next(candidate for candidate in candidates if candidate.casefold() not in used)


def with_options(options: RootOptions, new_options: Options) -> RootOptions:
    """Options after others were given. A key of ``meta`` with the value ``None`` is removed."""
    values: dict[str, Any] = {**new_options}
    for name in ("meta", "chunking"):
        if name in new_options:
            merged = {**getattr(options, name), **new_options[name]}
            values[name] = {key: value for key, value in merged.items() if value is not None}
    return options.model_copy(update=values)


def source_name(folder: Path) -> str:
    """The name of a folder as the id of a source."""
    return re.sub(r"[^\w.-]+", "-", folder.name).strip("-") or "files"


# -- root changes --
#
# Changes of roots: what is recorded after a run, moving a root, and removing one.


def root_at(corpus: Corpus, path: Path) -> Root:
    """The root with this path; it may be missing.

    Raises:
        UsageError: there is none.
    """
    known = root_storage.load(corpus)
    location = str(absolute(path, known))
    holder = holder_of(known, location)
    if holder and holder.location == location:
        return holder
    problem = f"{path}: is {'a part of the root ' + holder.location if holder else 'no root'}"
    step = "`rolebundle corpus roots list` shows the roots"
    raise UsageError("no_root", problem, step)


def move_root(corpus: Corpus, old: Path, new: Path) -> RootChange:
    """Let a root and the roots below it have another path. Ids, vectors, options and flags stay.

    Raises:
        UsageError: ``old`` is no root, or ``new`` does not exist, is a symbolic link, or belongs to
            another root.
    """
    with corpus.writing():
        root = root_at(corpus, old)
        known = root_storage.load(corpus)
        others = [other for other in known if not is_below(other.location, root.location)]
        target = str(absolute(new, others))
        check_no_link(Path(target))
        if not os.path.lexists(target):
            raise UsageError(
                "path_missing", f"{new}: no such file or folder", "move the files first"
            )
        is_taken = any(is_below(other.location, target) for other in others)
        if is_taken or root_storage.files_below(corpus, target):
            raise UsageError(
                "root_exists",
                f"{new}: the corpus has documents from it already",
                "if it is a root, this removes them: "
                f"`rolebundle corpus roots remove {quote(str(new))} --yes`",
            )
        location = root.location
        files = root_storage.files_below(corpus, location)
        moves = {file: moved_path(file, location, target) for file in files}
        root_storage.move_files(corpus, moves)
        real_old, real_new = real_location(Path(location)), real_location(Path(target))
        flags: dict[str, authority.Flags] = {}
        for path, own in records.load_path_flags(corpus).items():
            after = moved_path(path, real_old, real_new)
            other = flags.get(after, {})
            # Flags of the new path count first.
            above, nearer = (own, other) if after != path else (other, own)
            flags[after] = authority.combined(above, nearer)
        records.save_path_flags(corpus, flags)
        increment_generation(corpus)
        moved = [
            other.model_copy(update={"location": moved_path(other.location, location, target)})
            for other in known
        ]
        root_storage.save(corpus, moved)
        documents = root_storage.count_documents(corpus, target)
    return RootChange(location=target, documents=documents)


def remove_root(corpus: Corpus, path: Path, *, confirmed: bool) -> RootChange:
    """Forget a root and remove its documents.

    The roots below it that share its source go with it; the others stay.

    Args:
        corpus: a corpus, open for writing if ``confirmed``.
        path: the root; it may be missing.
        confirmed: if false, only count the documents.

    Raises:
        UsageError: it is no root.
    """
    root = root_at(corpus, path)
    if not confirmed:
        return RootChange(location=root.location, documents=root.documents)
    with corpus.writing():
        known = root_storage.load(corpus)
        inner = [at for at in known if is_below(at.location, root.location)]
        others = [at.location for at in inner if at.source_id != root.source_id]
        remaining = [at for at in known if at not in inner or at.location in others]
        below = root_storage.files_below(corpus, root.location)
        files = [file for file in below if not any(is_below(file, other) for other in others)]
        before = corpus_counts(corpus).documents
        store.remove_files(corpus, files)
        store.drop_unused(corpus)
        root_storage.save(corpus, remaining)
        increment_generation(corpus)
        documents = before - corpus_counts(corpus).documents
    return RootChange(location=root.location, documents=documents)


def record_counts(corpus: Corpus, visits: Sequence[Visit], changed: Container[str]) -> None:
    """Record how many documents the roots have, and when the run changed the visited ones."""
    now = iso_utc(datetime.now(UTC))
    complete = {visit.root.location for visit in visits if str(visit.start) == visit.root.location}
    before = root_storage.load(corpus)
    counts = {at.location: root_storage.count_documents(corpus, at.location) for at in before}
    own = dict(counts)
    for inner in before:
        holder = holder_of((outer for outer in before if outer != inner), inner.location)
        if holder is not None:
            own[holder.location] -= counts[inner.location]
    after = []
    for root in before:
        location = root.location
        is_new = location in complete and (location in changed or not root.synced_at)
        updates = {"documents": own[location], "synced_at": now if is_new else root.synced_at}
        after.append(root.model_copy(update=updates))
    if after != before:
        with corpus.writing():
            root_storage.save(corpus, after)


# -- a run --


def plan_run(
    corpus: Corpus,
    roots: Sequence[Root],
    paths: Sequence[Path],
    options: IngestOptions,
    command_flags: authority.Flags,
) -> tuple[Plan, bool]:
    """Walk all paths, with the roots and flags that hold after the run; nothing is stored.

    Return what was found, and whether the run changes the remembered flags.

    Args:
        corpus: an open corpus.
        roots: its roots before the run.
        paths: the files and folders of the run.
        options: its settings.
        command_flags: what they say of governance.

    Raises:
        UsageError: a path does not exist.
        ConfigurationError: a manifest or flag is invalid.
    """
    starts = [existing_start(path, roots) for path in paths]
    flags: authority.FlagsByPath = records.load_path_flags(corpus)
    locations = [real_location(start) for start in starts]
    for location in locations if command_flags else ():
        manifests.check_path(Path(location))
    after = authority.flags_after(flags, locations, command_flags)

    def flags_of(location: str) -> authority.Flags:
        return authority.combined(authority.flags_at(after, location), command_flags)

    sources = partial(root_storage.sources_outside, corpus)
    planned = Plan({root.location: root for root in roots}, options.root_options(), sources)
    for path in starts:
        planned.add(path)
    policy = load_policy(corpus)
    policy_file = real_location(Path(policy.location)) if policy and policy.location else ""
    for start, (path, is_nested) in planned.starts.items():
        root, location = holder_of(planned.roots, start), real_location(path)
        assert root is not None
        manifest = _manifest_of(root, planned.roots, flags_of)
        defaults = {
            moved_path(at, location, start): _defaults(flags_of(at), root)
            for at in [location, *after]
            if is_below(at, location)
        }
        inner = [at for at in planned.by_location if at != start and is_below(at, start)]
        visit = Visit(path, root, frozenset(inner), is_nested, _settings(root, manifest))
        base = folder_of(anchor_of(planned.roots, root))
        _walk_visit(visit, base, manifest, defaults, policy_file)
        planned.visits.append(visit)
    return planned, after != flags


def _settings(root: Root, manifest: manifests.Manifest | str) -> RunSettings:
    of_manifest = manifest.file.chunking if isinstance(manifest, manifests.Manifest) else {}
    chunking = dict[str, int](**of_manifest) | root.options.chunking
    chunking.pop("overlap", None)  # Earlier versions remember it.
    size_cap = walk.DEFAULT_SIZE_CAP if root.options.max_size is None else root.options.max_size
    return RunSettings(ChunkSettings(**chunking), size_cap, root.options.scan.secrets)


def _manifest_of(
    root: Root, roots: Sequence[Root], flags_of: Callable[[str], authority.Flags]
) -> manifests.Manifest | str:
    """The manifest of a root: its own, else that of the nearest root above it that has one.

    A part of a root that has options of its own is no root in this sense.

    Return why the root's own does not count if there is none; empty without a reason.
    """
    reasons = []
    above = (outer for outer in roots if is_below(root.location, outer.location))
    for anchor in sorted({anchor_of(roots, outer) for outer in above}, reverse=True):
        folder = folder_of(anchor)
        is_untrusted = flags_of(real_location(folder)).get("origin") == "untrusted"
        found = "its folder is untrusted" if is_untrusted else manifests.read_manifest(folder)
        if isinstance(found, manifests.Manifest):
            return found
        reasons.append(found)
    return reasons[0]


def _walk_visit(
    visit: Visit,
    base: Path,
    manifest: manifests.Manifest | str,
    defaults: Mapping[str, manifests.FileDefaults],
    policy_file: str,
) -> None:
    start, ignore = visit.start, visit.root.options.ignore
    files, skipped, notes = visit.files, visit.skipped, visit.notes
    if manifest == "" and not visit.is_nested:  # A note on a folder covers what is below it.
        notes += _manifests_above(base)
    own = defaults[str(start)]
    for entry in walk.walk(base, start, own, manifest, defaults, visit.excluded, ignore=ignore):
        if not isinstance(entry, walk.FileEntry):
            (notes if entry.code in _MANIFEST_CODES else skipped).append(entry)
        elif policy_file and _is_at(entry, policy_file):
            # It names what an agent may not see.
            skipped.append(Skipped(entry.path, "ignored", "the policy of this corpus"))
        else:
            files.append(entry)
    unread = (entry.path for entry in skipped if entry.code in TRANSIENT_CODES)
    visit.unreadable = [str(base / path) for path in unread]


def _manifests_above(folder: Path) -> list[Skipped]:
    """A note on the nearest manifest above an ingested folder, which its owner may have meant."""
    for parent in folder.parents:
        path = parent / manifests.MANIFEST_NAME
        if path.is_file():
            step = f"`rolebundle ingest {quote(str(parent))}` uses it"
            message = f"{path}: not used, because only that of an ingested folder counts; {step}"
            return [Skipped(str(path), "manifest_ignored", message)]
    return []


def _is_at(entry: walk.FileEntry, location: str) -> bool:
    # The names are compared first, because that is fast.
    is_named_so = entry.location.endswith(Path(location).name)
    return is_named_so and real_location(Path(entry.location)) == location


def _defaults(flags: authority.Flags, root: Root) -> manifests.FileDefaults:
    """The defaults of the files of a root for which some flags hold.

    Raises:
        ConfigurationError: ``bad_flag``: a flag of an earlier ingest is invalid.
    """
    limits = authority.limits_in(flags)
    governing = {key: value for key, value in limits.items() if key in authority.GOVERNANCE_KEYS}
    max_trust = limits.get("max_trust")
    place = "flags of an earlier ingest"
    validated({} if max_trust is None else {"trust_tier": max_trust}, place)
    declared = validated({**root.options.meta, **governing}, place)
    first = authority.Authority(default_source=root.source_id)
    level, _ = first.with_level(declared.declared_values(), max_trust=max_trust)
    return manifests.FileDefaults(level)
