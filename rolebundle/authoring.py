"""What `init` and `overlay new` write: a manifest, neutral overlays; and the next commands."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

from rolebundle.contracts.upkeep import DraftFile, InitReport, OverlayDraftReport
from rolebundle.errors import UsageError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.document_types import observed_type
from rolebundle.ingest.manifests import MANIFEST_NAME, FileDefaults, read_manifest
from rolebundle.ingest.manifests import check_path as check_manifests
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import kind_of, reader_name_for
from rolebundle.ingest.roots import check_no_link, source_name
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, walk
from rolebundle.policy.overlays import is_shipped, load_role, locate
from rolebundle.resources import data_file
from rolebundle.storage import roots as root_storage
from rolebundle.storage.documents import count_types, document_kinds
from rolebundle.storage.file import overlays_path, write_new
from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import refuse_changes, refuse_expired
from rolebundle.text.words import counted

_QUESTION = "What should I look at first?"
_NEUTRAL = "the overlay is neutral: until you edit it, answers are as without a role"
MAX_PROPOSALS = 12
"""How many proposals of one kind are written, those with the highest counts."""

_MISSION = "one sentence on what the role does; agents choose a role by it"
# In front matter, or in JSON.
_DECLARED_SOURCE = re.compile(rb"^[\s{\[:\"]{0,8}source_id\"?\s*[:=]", re.MULTILINE)
_HEAD_BYTES = 1_024


class Target(NamedTuple):
    """Where overlays of a corpus are found and written.

    Attributes:
        corpus: the corpus file; it need not exist.
        folders: the folders of overlays, in order of precedence.
        place: the options that name the corpus; empty for the usual one.
    """

    corpus: Path
    folders: Sequence[Path]
    place: Sequence[str] = ()

    def overlay_path(self, role_id: str) -> Path:
        """The file of a role in the corpus's own folder."""
        return overlays_path(self.corpus) / f"{role_id}.json"

    def command(self, *words: str) -> str:
        """A command line for this corpus."""
        return join(["rolebundle", *words, *self.place])


def init(
    folder: Path, role_id: str, target: Target, announce: Callable[[Path], None], *, dry_run: bool
) -> InitReport:
    """Look at the names of a folder's files, and write a manifest and, for a role, an overlay.

    A manifest that is there is kept if an overlay is asked for, so that a second role can be added.
    Its proposals are then of what the corpus has.

    Args:
        folder: the folder.
        role_id: the role; empty for no overlay.
        target: the corpus that the folder will be ingested into.
        announce: called with each file outside of the folder before anything is written.
        dry_run: write nothing.

    Raises:
        UsageError: it is no folder, or the corpus is a replica.
        OverlayError: the role id is none.
        ConfigurationError: ``file_exists``, or the folder has an invalid manifest.
        OSError: the files cannot be written. Nothing was written.
    """
    has_roots = False
    if target.corpus.exists():
        with open_reader(target.corpus) as corpus:
            refuse_changes(corpus)
            has_roots = bool(root_storage.load(corpus))
    folder = Path(folder).absolute()
    manifest, overlay = folder / MANIFEST_NAME, target.overlay_path(role_id)
    is_kept = bool(role_id) and manifest.is_file()
    if role_id:
        locate(role_id, target.folders)  # It refuses what is no role id.
    files, left_out = _files_of(folder)
    text, sources, types = "", dict[str, int](), dict[str, int]()
    if not is_kept:
        text, sources, types = draft_manifest(
            [file.path for file in files],
            source_name(folder),
            # A document in the corpus would get another id, and a declared source would not count.
            with_sources=not has_roots and not any(_declares_source(file) for file in files),
        )
    texts = {} if is_kept else {manifest: text}
    if role_id and is_kept:
        texts[overlay] = _neutral_for(role_id, target)
    elif role_id:
        texts[overlay] = neutral_overlay(role_id, sources, types, "file")
    if not dry_run:
        for path in texts:
            if not path.is_relative_to(folder):
                announce(path)
        write_new({path: text.encode() for path, text in texts.items()})
    drafts = [_draft_file(path, text, dry_run=dry_run) for path, text in texts.items()]
    if is_kept:
        drafts.insert(0, DraftFile(path=str(manifest), state="kept"))
    named = [] if "--in" in target.place else [str(folder)]
    asked = ["retrieve", _QUESTION, *(["--role", role_id] if role_id else [])]
    return InitReport(
        folder=str(folder),
        files=len(files),
        left_out=left_out,
        sources=sources,
        document_types=types,
        drafts=drafts,
        remarks=_remarks(role_id, target) if role_id else [],
        next=[target.command("ingest", *named), target.command(*asked)],
    )


def _files_of(folder: Path) -> tuple[list[FileEntry], dict[str, int]]:
    """The files that an ingest of a folder reads; and what it leaves out, by code.

    Raises:
        UsageError: it is no folder, or a symbolic link.
        ConfigurationError: it has an invalid manifest.
    """
    check_manifests(folder)
    check_no_link(folder)
    if not folder.is_dir():
        raise UsageError("not_a_folder", f"{folder}: is no folder", "name a folder of documents")
    files: list[FileEntry] = []
    left_out: Counter[str] = Counter()
    defaults = FileDefaults(Authority(default_source=source_name(folder)))
    for entry in walk(folder, folder, defaults, read_manifest(folder)):
        if not isinstance(entry, FileEntry):
            left_out[entry.code] += entry.code != "note"
        elif reader_name_for(entry.path) is None and kind_of(entry.path):
            left_out["unsupported"] += 1
        elif entry.size > DEFAULT_SIZE_CAP:
            left_out["too_large"] += 1
        else:
            files.append(entry)
    return files, dict(+left_out)


def _declares_source(file: FileEntry) -> bool:
    """Whether a file seems to declare its source; a rule would be in its way."""
    if reader_name_for(file.path) == "source":
        return False
    try:
        with Path(file.location).open("rb") as opened:
            return _DECLARED_SOURCE.search(opened.read(_HEAD_BYTES)) is not None
    except OSError:
        return False


def new_overlay(
    role_id: str, target: Target, *, parent: str = "", dry_run: bool
) -> OverlayDraftReport:
    """Write a new overlay without effect, or one that extends another role.

    Args:
        role_id: the role.
        target: the corpus; the overlay is written to its own folder.
        parent: the role that it extends; empty for none.
        dry_run: write nothing.

    Raises:
        UsageError: the corpus is a folder.
        OverlayError: the role id is none, or the role that it extends has no valid overlay.
        ConfigurationError: ``file_exists``.
        OSError: it cannot be written.
    """
    locate(role_id, target.folders)  # It refuses what is no role id.
    path = target.overlay_path(role_id)
    if parent == role_id:
        raise UsageError(
            "extends_itself",
            f"{role_id}: a role cannot extend itself",
            "choose another id for the new role",
        )
    if parent:
        load_role(parent, target.folders)
        text = _overlay_text(role_id, {"extends": parent, "notes": {"mission": _MISSION}})
        remarks = [
            f"all but the mission is inherited from {parent}; a list that you add replaces the "
            f"inherited one: `rolebundle overlay show {parent}`"
        ]
    else:
        text = _neutral_for(role_id, target)
        remarks = _remarks(role_id, target)
    if not dry_run:
        write_new({path: text.encode()})
    return OverlayDraftReport(
        role_id=role_id,
        draft=_draft_file(path, text, dry_run=dry_run),
        remarks=remarks,
        next=[
            target.command("overlay", "lint", role_id),
            target.command("compare", _QUESTION, "--roles", role_id),
        ],
    )


def _neutral_for(role_id: str, target: Target) -> str:
    """The overlay, with what the corpus has for proposals."""
    sources: Counter[str] = Counter()
    types: Counter[str] = Counter()
    if target.corpus.exists():
        with open_reader(target.corpus) as corpus:
            refuse_expired(corpus)
            for kind in document_kinds(corpus):
                sources[kind.source_id] += kind.documents
            types = count_types(corpus)
    return neutral_overlay(role_id, sources, types, "document")


def _remarks(role_id: str, target: Target) -> list[str]:
    """What a person should know of a neutral overlay."""
    own = target.overlay_path(role_id).parent
    other = locate(role_id, [folder for folder in target.folders if folder != own])
    if other is None:
        return [_NEUTRAL]
    step = f"to keep its rules, choose another id and `rolebundle overlay new ID --from {role_id}`"
    place = "of rolebundle" if is_shipped(other) else f"in {other}"
    return [_NEUTRAL, f"there is also a role {role_id} {place}; {step}"]


def _draft_file(path: Path, text: str, *, dry_run: bool) -> DraftFile:
    return DraftFile(path=str(path), state="planned" if dry_run else "written", content=text)


# -- overlays without effect -----------------------------------------------------------------------


def neutral_overlay(
    role_id: str, sources: Mapping[str, int], document_types: Mapping[str, int], unit: str
) -> str:
    """The text of an overlay that changes no answer.

    Args:
        role_id: the role.
        sources: source id → number of its documents or files.
        document_types: document type → number of its documents or files.
        unit: what is counted: ``document`` or ``file``.
    """
    # A pattern also matches the names that it is a part of. One source is no choice.
    patterns = {
        f"pattern {name}": count
        for name, count in sources.items()
        if len(sources) > 1 and sum(name.casefold() in other.casefold() for other in sources) == 1
    }
    notes = {
        "mission": _MISSION,
        "source_policy.preferred_sources": _proposals(patterns, unit),
        "source_policy.document_type_boosts": _proposals(document_types, unit),
    }
    values = {
        "vocabulary": {"preferred_terms": [], "boost_phrases": [], "synonyms": {}},
        "source_policy": {
            "preferred_sources": [],
            "forbidden_sources": [],
            "document_type_boosts": {},
        },
        "notes": {place: note for place, note in notes.items() if note},
    }
    return _overlay_text(role_id, values)


def _overlay_text(role_id: str, values: Mapping[str, Any]) -> str:
    """The text of the file of an overlay without a mission."""
    label = " ".join(part.capitalize() for part in re.split(r"[-._]+", role_id) if part)
    extends = {"extends": values["extends"]} if "extends" in values else {}
    head = {"version": "1.0", "role_id": role_id, **extends, "label": label, "mission": ""}
    return json.dumps({**head, **values}, ensure_ascii=False, indent=2) + "\n"


def _proposals(counts: Mapping[str, int], unit: str) -> str:
    """The proposals with the highest counts, on one line; empty if there are none."""
    found = Counter(counts).most_common()
    listed = [f"{name} ({counted(count, unit)})" for name, count in found[:MAX_PROPOSALS]]
    more = f", and {len(found) - MAX_PROPOSALS} more" if found[MAX_PROPOSALS:] else ""
    return f"not in force; you could add: {', '.join(listed)}{more}" if listed else ""


# -- the manifest ----------------------------------------------------------------------------------


_UNREAD = ParsedDocument()
_TEXTS = data_file(__file__, "authoring.toml")


def draft_manifest(
    paths: Sequence[str], source: str, *, with_sources: bool = True
) -> tuple[str, dict[str, int], dict[str, int]]:
    """The text of a manifest for a folder, and the numbers of files by source and by type.

    Args:
        paths: the files that an ingest reads, relative to the folder.
        source: the source that the documents have without a manifest.
        with_sources: whether folders get sources of their own.
    """
    sources = _folder_sources(paths, source) if with_sources else {}
    types = Counter(found[0] for path in paths if (found := observed_type(path, "", _UNREAD)))
    seen = "".join(f"#   {kind}: {counted(n, 'file')}\n" for kind, n in types.most_common())
    of_files = (sources.get(path.partition("/")[0], source) for path in paths if with_sources)
    by_source = dict(Counter(of_files).most_common())
    rules = "".join(
        # A star in the name of a folder would match others.
        f"\n# {counted(by_source[name], 'file')}\n[[rule]]\n"
        f"glob = {_toml(folder.replace('*', '?') + '/**')}\nsource_id = {_toml(name)}\n"
        for folder, name in sources.items()
    )
    text = _TEXTS["manifest"].format(
        name=MANIFEST_NAME,
        rules=rules or _TEXTS["one_source"].format(source=source),
        types=seen or "#   none\n",
    )
    return text, by_source, dict(types.most_common())


def _folder_sources(paths: Sequence[str], source: str) -> dict[str, str]:
    """Folder at the top with several files → source."""
    folders = Counter(path.partition("/")[0] for path in paths if "/" in path)
    sources: dict[str, str] = {}
    for folder, count in sorted(folders.items()):
        name = f"{source}-{source_name(Path(folder))}"
        if count > 1 and name.casefold() not in map(str.casefold, sources.values()):
            sources[folder] = name
    return sources


def _toml(value: str) -> str:
    # JSON's escapes are TOML's; only the delete character may not be bare.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
