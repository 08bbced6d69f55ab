"""A first ``rolebundle.toml`` of a folder, from the names of its folders and files alone. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from rolebundle.ingest.manifests import MANIFEST_NAME
from rolebundle.ingest.readers import reader_name_for
from rolebundle.text.counts import counted
from rolebundle.text.globs import matches

FORMAT_TYPES: Mapping[str, str] = {
    "eml": "mail",
    "ipynb": "notebook",
    "man": "man-page",
    "mbox": "mail",
    "pptx": "slides",
    "source": "source-code",
    "subtitles": "transcript",
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
