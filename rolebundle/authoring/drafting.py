"""What `init` and `overlay new` write: a manifest, neutral overlays; and the next commands."""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, NamedTuple

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.overlay import ROLE_ID_PATTERN, Vocabulary
from rolebundle.contracts.upkeep import DraftFile, InitReport, OverlayDraftReport
from rolebundle.errors import FULL_ERRNOS, ConfigurationError, StorageError, UsageError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.formats import kind_of
from rolebundle.ingest.manifests import MANIFEST_NAME, FileDefaults, read_manifest
from rolebundle.ingest.manifests import check_path as check_manifests
from rolebundle.ingest.readers import reader_name_for
from rolebundle.ingest.roots import check_no_link, holder_of, source_name
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, walk
from rolebundle.policy.lint import word_counts
from rolebundle.policy.overlays import is_shipped, load_role, locate
from rolebundle.storage import roots as root_storage
from rolebundle.storage.documents import document_kinds
from rolebundle.storage.file import (
    check_path,
    overlays_path,
    partial_file,
    rename_if_free,
    sync_file,
)
from rolebundle.storage.opening import corpus_format, open_reader
from rolebundle.storage.publications import refuse_changes, refuse_expired
from rolebundle.text.paths import matches
from rolebundle.text.words import counted

_QUESTION = "What should I look at first?"
_NEUTRAL = "the overlay is neutral: until you edit it, answers are as without a role"
MAX_PROPOSALS = 12
"""So many proposals of one kind are written, those with the highest counts."""

_MISSION = "one sentence on what the role does; agents choose a role by it"
# In front matter, or in JSON.
_DECLARED_SOURCE = re.compile(rb"^[\s{\[:\"]{0,8}source_id\"?\s*[:=]", re.MULTILINE)
_HEAD_BYTES = 1_024


class Target(NamedTuple):
    """Where overlays of a corpus are found and written.

    Attributes:
        corpus: the corpus file; it need not exist.
        folders: the folders of overlays, in order of precedence.
        db_option: the value of ``--db``; empty if it was not given.
    """

    corpus: Path
    folders: Sequence[Path]
    db_option: str = ""

    def overlay_path(self, role_id: str) -> Path:
        """The file of a role in the corpus's own folder."""
        return overlays_path(self.corpus) / f"{role_id}.json"

    def command(self, *words: str) -> str:
        """A command line for this corpus."""
        db = ["--db", self.db_option] if self.db_option else []
        return " ".join(["rolebundle", *(quote(word) for word in (*words, *db))])


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
        UsageError: it is no folder, the role id is none, or the corpus is a replica.
        ConfigurationError: ``file_exists``, or the folder has an invalid manifest.
        StorageError: the files cannot be written. Nothing was written.
    """
    if target.corpus.exists():
        with open_reader(target.corpus) as corpus:
            refuse_changes(corpus)
    folder = Path(folder).absolute()
    manifest, overlay = folder / MANIFEST_NAME, target.overlay_path(role_id)
    is_kept = bool(role_id) and manifest.is_file()
    if role_id:
        check_role_id(role_id)
    if not dry_run:
        for new in ([overlay] if role_id else []) + ([] if is_kept else [manifest]):
            check_new(new)
    files, left_out = _files_of(folder)
    draft = ManifestDraft("", {}, {}) if is_kept else _manifest_for(folder, files, target)
    texts = {} if is_kept else {manifest: draft.text}
    if role_id:
        texts[overlay] = (
            _neutral_for(role_id, target)
            if is_kept
            else neutral_overlay(role_id, {}, draft.sources, draft.document_types, "file")
        )
    if not dry_run:
        for path in texts:
            if not path.is_relative_to(folder):
                announce(path)
        write_new(texts)
    drafts = [_draft_file(path, text, dry_run=dry_run) for path, text in texts.items()]
    if is_kept:
        drafts.insert(0, DraftFile(path=str(manifest), state="kept"))
    asked = ["retrieve", _QUESTION, *(["--role", role_id] if role_id else [])]
    return InitReport(
        folder=str(folder),
        files=len(files),
        left_out=left_out,
        sources=dict(draft.sources),
        document_types=dict(draft.document_types),
        drafts=drafts,
        remarks=_remarks(role_id, target) if role_id else [],
        next=[target.command("ingest", str(folder)), target.command(*asked)],
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


def _manifest_for(folder: Path, files: Sequence[FileEntry], target: Target) -> ManifestDraft:
    """The manifest, given what the corpus has already."""
    own = overlays_path(target.corpus)
    kept_source, reserved = "", set[str]()
    if target.corpus.is_file():
        with open_reader(target.corpus) as corpus:
            holder = holder_of(root_storage.load(corpus), str(folder))
            kept_source = holder.source_id if holder else ""
            reserved = root_storage.sources_outside(corpus, str(folder))
    return draft_manifest(
        [file.path for file in files],
        source_name(folder),
        declaring={file.path for file in files if _declares_source(file)},
        reserved=reserved,
        kept_source=kept_source,
        ignored=[f"{own.relative_to(folder).as_posix()}/**"] if own.is_relative_to(folder) else [],
    )


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
    role_id: str, target: Target, *, parent: str, output: Path | None, dry_run: bool
) -> OverlayDraftReport:
    """Write a new overlay without effect, or one that extends another role.

    Args:
        role_id: the role.
        target: the corpus; the overlay is written to its own folder.
        parent: the role that it extends; empty for none.
        output: the file to write instead.
        dry_run: write nothing.

    Raises:
        UsageError: the role id is none, the folder of ``output`` is missing, or the corpus is a
            folder.
        OverlayError: the role that it extends has no valid overlay.
        ConfigurationError: ``file_exists``.
        StorageError: it cannot be written.
    """
    check_role_id(role_id)
    path = output or target.overlay_path(role_id)
    if not dry_run:
        check_new(path)
    if output is not None and not output.parent.is_dir():
        raise UsageError(
            "folder_missing",
            f"{output.parent}: there is no such folder",
            "create it, or name another file with --file",
        )
    if target.corpus.is_dir():
        # Its folder of overlays would be that of no corpus.
        check_path(target.corpus, corpus_format())
    if parent == role_id:
        raise UsageError(
            "extends_itself",
            f"{role_id}: a role cannot extend itself",
            "choose another id for the new role",
        )
    if parent:
        load_role(parent, target.folders)
        text = overlay_text(role_id, {"extends": parent, "notes": {"mission": _MISSION}})
        remarks = [
            f"all but the mission is inherited from {parent}; a list that you add replaces the "
            f"inherited one: `rolebundle overlay show {parent}`"
        ]
    else:
        text = _neutral_for(role_id, target)
        remarks = _remarks(role_id, target)
    if not dry_run:
        write_new({path: text})
    name, ask = role_id, ["compare", _QUESTION, "--roles", role_id]
    if output is not None:
        # A file elsewhere is no role yet.
        name, ask = str(path), ["retrieve", _QUESTION, "--overlay", str(path)]
        if path.name != f"{role_id}.json":
            remarks.append(f"a role is found by the name of its file: {role_id}.json")
    return OverlayDraftReport(
        role_id=role_id,
        draft=_draft_file(path, text, dry_run=dry_run),
        remarks=remarks,
        next=[target.command("overlay", "lint", name), target.command(*ask)],
    )


def _neutral_for(role_id: str, target: Target) -> str:
    """The overlay, with what the corpus has for proposals."""
    if not target.corpus.is_file():
        return neutral_overlay(role_id, {}, {}, {}, "document")
    named = Vocabulary(boost_phrases=words_of_role(role_id))
    with open_reader(target.corpus) as corpus:
        refuse_expired(corpus)
        with corpus.reading():
            words = dict(word_counts(named, corpus).values())
            kinds = document_kinds(corpus)
    named_alike: Counter[tuple[str, str, str]] = Counter()
    types: Counter[str] = Counter()
    for kind in kinds:
        named_alike[kind.source_id, kind.document_type, kind.domain] += kind.documents
        types[kind.document_type] += kind.documents
    # A pattern is searched for in all three names.
    sources = {
        source: sum(
            documents
            for names, documents in named_alike.items()
            if any(source.casefold() in name.casefold() for name in names)
        )
        for source, *_ in named_alike
    }
    del types[DocumentMetadata._field_defaults["document_type"]]  # It is of no type.
    return neutral_overlay(role_id, words, sources, types, "document")


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
    role_id: str,
    words: Mapping[str, int],
    sources: Mapping[str, int],
    document_types: Mapping[str, int],
    unit: str,
) -> str:
    """The text of an overlay that changes no answer.

    Args:
        role_id: the role.
        words: phrase → number of passages that have it.
        sources: source id → number of its documents or files.
        document_types: document type → number of its documents or files.
        unit: what is counted of sources and types: ``document`` or ``file``.
    """
    # A pattern also matches the names that it is a part of.
    patterns = {
        f"pattern {name}": count
        for name, count in sources.items()
        if sum(name.casefold() in other.casefold() for other in sources) == 1
    }
    notes = {
        "mission": _MISSION,
        "vocabulary.boost_phrases": _proposals(words, "passage"),
        # One source is no choice.
        "source_policy.preferred_sources": _proposals(patterns if len(sources) > 1 else {}, unit),
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
    return overlay_text(role_id, values)


def overlay_text(role_id: str, values: Mapping[str, Any]) -> str:
    """The text of the file of an overlay without a mission."""
    label = " ".join(part.capitalize() for part in re.split(r"[-._]+", role_id) if part)
    extends = {"extends": values["extends"]} if "extends" in values else {}
    head = {"version": "1.0", "role_id": role_id, **extends, "label": label, "mission": ""}
    return json.dumps({**head, **values}, ensure_ascii=False, indent=2) + "\n"


def words_of_role(role_id: str) -> list[str]:
    """The words of a role's name, and all of them as one phrase."""
    words = [word for word in re.split(r"[-._]+", role_id) if word]
    return list(dict.fromkeys([" ".join(words), *words]))


def check_role_id(role_id: str) -> None:
    """Check that a role may have this id.

    Raises:
        UsageError: ``bad_role_id``.
    """
    if not re.fullmatch(ROLE_ID_PATTERN, role_id):
        raise UsageError(
            "bad_role_id",
            f"{role_id[:80]!r} is not a role id",
            "a role id has 1 to 64 of a-z 0-9 . _ - and begins with a letter or a digit, such as "
            "release-manager",
        )


def _proposals(counts: Mapping[str, int], unit: str) -> str:
    """The proposals with the highest counts, on one line; empty if there are none."""
    found = sorted((item for item in counts.items() if item[1]), key=lambda item: -item[1])
    listed = [f"{name} ({counted(count, unit)})" for name, count in found[:MAX_PROPOSALS]]
    more = f", and {len(found) - MAX_PROPOSALS} more" if found[MAX_PROPOSALS:] else ""
    return f"not in force; you could add: {', '.join(listed)}{more}" if listed else ""


# -- new files -------------------------------------------------------------------------------------


def check_new(path: Path) -> None:
    """Check that there is nothing at a path.

    Raises:
        ConfigurationError: ``file_exists``.
    """
    if os.path.lexists(path):
        raise ConfigurationError(
            "file_exists",
            f"{path}: exists, and is never overwritten",
            "edit it, or move it away and run the same command again",
        )


def write_new(texts: Mapping[Path, str]) -> None:
    """Write new files: all of them or none, and never over another one.

    A missing folder for one is made, such as that of a corpus's overlays. Each is written under
    another name first, and gets its own name when it is complete.

    Args:
        texts: path → content.

    Raises:
        ConfigurationError: ``file_exists``: one of them exists. Nothing was written.
        StorageError: one cannot be written. Nothing was written.
    """
    written: list[Path] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial_file(path) as partial:
                # Not private, as a partial file is: whoever reads the folder may read its settings.
                partial.unlink()
                partial.write_text(text, encoding="utf-8", newline="\n")
                sync_file(partial)
                if not rename_if_free(partial, path):
                    check_new(path)
            written.append(path)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        is_full = error.errno in FULL_ERRNOS
        is_denied = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        raise StorageError(
            "storage_full" if is_full else "not_writable" if is_denied else "io_error",
            f"{path}: cannot be written ({error.strerror}); nothing was written",
            "free some disk space" if is_full else "check the folder and its permissions",
        ) from error


FORMAT_TYPES: Mapping[str, str] = {
    "eml": "mail",
    "ipynb": "notebook",
    "mbox": "mail",
    "pptx": "slides",
    "source": "source-code",
    "xlsx": "spreadsheet",
}
"""Reader → the type of every document of its formats. Other formats tell no type."""
FOLDER_TYPES: Mapping[str, str] = {
    name: document_type
    for document_type, names in {
        "adr": "adr adrs architecture-decisions decision-records",
        "api-reference": "api-docs api-reference apidocs",
        "changelog": "changelogs release-notes",
        "design-doc": "design-docs rfcs",
        "guide": "guides how-to how-tos howto howtos user-guide user-guides",
        "meeting-notes": "meeting-notes meetings minutes",
        "postmortem": "incident-reports post-mortems postmortems",
        "runbook": "playbooks runbooks",
        "threat-model": "threat-models",
        "tutorial": "tutorial tutorials",
    }.items()
    for name in names.split()
}
"""The name of a folder, without a number before it → the type of its documents."""

# The reader of source code also reads these, which are settings or data.
_NO_CODE = frozenset(".cfg .ini .properties .toml .xml .yaml .yml".split())
_HEAD = f"""\
# {MANIFEST_NAME}: what the documents of this folder are. `rolebundle init` wrote it from the names
# of folders and the formats of files. It is yours: correct it.
#
# Each [[rule]] sets metadata of the files that match its glob. Later rules win over earlier ones,
# key by key. A type that a document declares wins over rules, and a source does not. All keys:
# docs/metadata.md.
"""
_SOURCES = """
# -- Sources -----------------------------------------------------------------------------------
# A source is what roles prefer, limit or forbid, and what answers name.
"""
_ONE_SOURCE = "# All documents are of the source {}.\n"
_DECLARED = "# The documents declare their sources, or are of the source {}.\n"
_KEPT_SOURCE = """\
# The corpus has this folder as {}. With other sources its documents would get other ids, and marks
# on them would be lost.
"""
_TYPES = """
# -- Types -------------------------------------------------------------------------------------
# Types are names of your choice. Roles can rank them (document_type_boosts).
"""
_TRUST = """
# -- Trust -------------------------------------------------------------------------------------
# Without a declaration every document is `general`. If somebody keeps a folder correct, say so;
# roles can prefer it, and answers that rest on it are called strong.
#   authoritative: decides if documents disagree     preferred: maintained
#   general: everything else                         untrusted: written by strangers
#
# [[rule]]
# glob = "FOLDER/**"
# trust_tier = "preferred"
"""


class DraftRule(NamedTuple):
    """One ``[[rule]]``, which sets one key. ``evidence`` becomes its comment."""

    glob: str
    key: str
    value: str
    evidence: str


class ManifestDraft(NamedTuple):
    """A manifest: its text, and the numbers of files by source and by type that it gives them."""

    text: str
    sources: Mapping[str, int]
    document_types: Mapping[str, int]


def draft_manifest(
    paths: Sequence[str],
    source: str,
    *,
    declaring: Collection[str] = (),
    reserved: Collection[str] = (),
    kept_source: str = "",
    ignored: Sequence[str] = (),
) -> ManifestDraft:
    """A manifest for a folder.

    Args:
        paths: the files that an ingest reads, relative to the folder.
        source: the source that the documents have without a manifest.
        declaring: those of the files that declare their source. No rule is for their folders.
        reserved: the sources of documents of other folders.
        kept_source: the source that the corpus has for the folder; empty if it has none. No rule
            then sets another one.
        ignored: globs of files that are no documents, such as overlays.
    """
    sources = [] if kept_source else _source_rules(paths, source, declaring, reserved)
    types = [*_folder_type_rules(paths), *_format_rules(paths)]
    if kept_source:
        about_source = _KEPT_SOURCE.format(kept_source)
    else:
        about_source = (_DECLARED if declaring else _ONE_SOURCE).format(source)
    text = _HEAD
    if ignored:
        text += "\n# Settings of the corpus are no documents.\n"
        text += f"ignore = [{', '.join(map(_toml, ignored))}]\n"
    text += _SOURCES
    text += "".join(map(_rule_text, sources)) or about_source
    text += _TYPES
    text += "".join(map(_rule_text, types)) or "# No name of a folder and no format tells a type.\n"
    text += _TRUST
    own_source = [path for path in paths if path not in declaring]
    return ManifestDraft(
        text, _counts(own_source, sources, kept_source or source), _counts(paths, types, "")
    )


def _counts(paths: Sequence[str], rules: Sequence[DraftRule], default: str) -> dict[str, int]:
    """The numbers of files by what the last rule that matches sets, or else the default."""
    counts = Counter(
        next((rule.value for rule in reversed(rules) if matches(rule.glob, path)), default)
        for path in paths
    )
    counts.pop("", None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _source_rules(
    paths: Sequence[str], source: str, declaring: Collection[str], reserved: Collection[str]
) -> list[DraftRule]:
    """A source for each folder with several files of the first level that has several folders."""
    level = ""
    folders = _folders(paths, level)
    while len(folders) == 1:
        level = f"{next(iter(folders))}/"
        folders = _folders(paths, level)
    used = {name.casefold() for name in reserved}
    rules = []
    for folder, count in sorted(folders.items()):
        if count == 1 or any(path.startswith(f"{folder}/") for path in declaring):
            continue
        part = re.sub(r"[^\w.-]+", "-", folder.rpartition("/")[2]).strip("-") or "files"
        name = f"{source}-{part}"
        unique = next(
            candidate
            for candidate in (name, *(f"{name}-{number}" for number in range(2, len(paths) + 999)))
            if candidate.casefold() not in used
        )
        used.add(unique.casefold())
        rules.append(DraftRule(f"{_glob(folder)}/**", "source_id", unique, counted(count, "file")))
    return rules


def _folders(paths: Sequence[str], level: str) -> Counter[str]:
    """The folders inside a level, empty or ending with a slash, and their numbers of files."""
    inner = (path.removeprefix(level).split("/") for path in paths if path.startswith(level))
    return Counter(f"{level}{folder}" for folder, *rest in inner if rest)


def _folder_type_rules(paths: Sequence[str]) -> list[DraftRule]:
    """A rule for each name of a folder that tells the type of what is in it."""
    counts = Counter(name for path in paths for name in set(path.split("/")[:-1]))
    return [
        DraftRule(
            f"**/{_glob(name)}/**",
            "document_type",
            FOLDER_TYPES[plain],
            f"{counted(count, 'file')}, by the name of the folder",
        )
        for name, count in sorted(counts.items())
        for plain in [re.sub(r"^\d+-(?=\D)|-$", "", re.sub(r"[\W_]+", "-", name.lower()))]
        if plain in FOLDER_TYPES
    ]


def _format_rules(paths: Sequence[str]) -> list[DraftRule]:
    """A rule for each suffix that tells the type."""
    by_suffix: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in paths:
        suffix = PurePosixPath(path).suffix
        if suffix and suffix.lower() not in _NO_CODE:
            by_suffix[suffix][FORMAT_TYPES.get(reader_name_for(path) or "", "")] += 1
    return [
        DraftRule(
            f"**/*{_glob(suffix)}",
            "document_type",
            document_type,
            f"{counted(count, 'file')}, by the format",
        )
        for suffix, types in sorted(by_suffix.items())
        for document_type, count in types.items()
        if document_type and len(types) == 1
    ]


# -- text ----------------------------------------------------------------------------------------


def _rule_text(rule: DraftRule) -> str:
    lines = (f"# {rule.evidence}", "[[rule]]", f"glob = {_toml(rule.glob)}")
    return "\n".join(("", *lines, f"{rule.key} = {_toml(rule.value)}", ""))


def _toml(value: str) -> str:
    # JSON's escapes are TOML's; only the delete character may not be bare.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _glob(path: str) -> str:
    """A glob for one path: a star or question mark in it matches any one character."""
    return re.sub(r"[*?]", "?", path)
