"""A first ``rolebundle.toml`` of a folder: what the folder supports, with the evidence. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from rolebundle.authoring.kinds import CODE, Kind, domain_of_folder, domain_of_type
from rolebundle.authoring.survey import Survey, SurveyedDocument, counts_by_folder
from rolebundle.contracts.document import DocumentMetadata
from rolebundle.ingest.manifest_file import Manifest, parse_manifest
from rolebundle.ingest.manifests import MANIFEST_NAME
from rolebundle.ingest.roots import source_name
from rolebundle.text.counts import counted
from rolebundle.text.globs import matches

CERTAIN_SHARE = 0.8
"""A kind of at least this share of a folder's documents is the kind of the folder."""
UNCERTAIN_SHARE = 0.4
"""A smaller share is not mentioned."""
MAX_SOURCES = 20
MAX_FILE_RULES = 40

_MIN_SOURCE_FILES = 3
_ALL_IN_ONE = 0.9
_MAX_EXAMPLES = 2
_MAX_COMMENT_CHARS = 160
_DEFAULTS = DocumentMetadata._field_defaults
_HEAD = """\
# {name}: what the documents of this folder are. `rolebundle init` proposed it.
#
# It is yours: correct it, delete it, move it with the folder. Each [[rule]] sets metadata of the
# files that match its glob; later rules win over earlier ones, key by key, and a document's front
# matter wins over rules. Lines with # are explanations, or guesses that are not in force.
# All keys: docs/metadata.md.
"""
_TRUST = """
# -- Trust -------------------------------------------------------------------------------------
# Nothing here raises trust: without a declaration every document is `general`. If somebody keeps a
# folder correct, say so; roles can prefer it, and answers that rest on it are called strong.
#   authoritative: decides if documents disagree     preferred: maintained
#   general: everything else                         untrusted: written by strangers
#
# [[rule]]
# glob = {glob}
# trust_tier = "preferred"
"""


class DraftRule(NamedTuple):
    """One ``[[rule]]``. ``evidence`` becomes its comment; an uncertain rule is commented out."""

    glob: str
    values: Mapping[str, object]
    evidence: str
    is_certain: bool = True


class ManifestDraft(NamedTuple):
    """A manifest: its text, and the same as ingest reads it."""

    text: str
    manifest: Manifest
    rules: tuple[DraftRule, ...]

    def named(self, document: SurveyedDocument) -> tuple[str, str, str]:
        """The source id, type and domain that a document gets from an ingest with the manifest."""
        values = dict(self.manifest.defaults)
        for rule in self.manifest.rules:
            if matches(rule.glob, document.path):
                values.update(rule.values)
        own = document.metadata
        return (
            str(values.get("source_id", own.source_id)),
            _own_or(own, "document_type", values),
            _own_or(own, "domain", values),
        )


def draft_manifest(
    survey: Survey,
    reserved_names: Collection[str] = (),
    keep_source: str = "",
    ignored: Sequence[str] = (),
) -> ManifestDraft:
    """A manifest for a folder.

    Args:
        survey: what the folder has.
        reserved_names: casefolded ids of sources that documents of other folders have.
        keep_source: why the folder's documents should keep their source; empty if they need not.
        ignored: globs of files that are no documents, such as overlays.
    """
    sources = _source_rules(survey, reserved_names)
    kinds = [*_format_rules(survey), *_folder_rules(survey)]
    kinds += _file_rules(survey, kinds)
    dates = _date_rules(survey)
    sections = [
        _HEAD.format(name=MANIFEST_NAME),
        _left_out(survey, ignored),
        _TRUST.format(glob=_toml(_maintained(sources))),
        _title("Sources"),
        _sources_comment(survey, keep_source, sources),
        *(_rule_text(rule._replace(is_certain=not keep_source)) for rule in sources),
        _title("Types and domains"),
        "# Types are names of your choice. Roles rank them by document_type_boosts.\n",
        *(
            [_rule_text(rule) for rule in kinds]
            or ["# Nothing here tells the type of a document.\n"]
        ),
        _title("Dates"),
        _dates_comment(survey, dates),
        *map(_rule_text, dates),
    ]
    text = "\n\n".join(section.strip("\n") for section in sections if section) + "\n"
    rules = (*sources, *kinds, *dates)
    return ManifestDraft(text, parse_manifest(text.encode(), MANIFEST_NAME), rules)


# -- sources -------------------------------------------------------------------------------------


def source_folders(paths: Sequence[str]) -> list[tuple[str, int]]:
    """The subfolders that are sources of their own, and how many files each has.

    They are the folders of one level: the first one on which the files are not nearly all in one
    folder. Small folders stay with the files around them.
    """
    counts = counts_by_folder(paths)
    level = ""
    while True:
        prefix = f"{level}/" if level else ""
        below = {
            folder: count
            for folder, count in counts.items()
            if folder.startswith(prefix) and folder != level and "/" not in folder[len(prefix) :]
        }
        largest = max(below, key=lambda folder: (below[folder], folder), default="")
        if not largest or below[largest] < _ALL_IN_ONE * counts[level] or below[largest] == 1:
            break
        level = largest
    sources = [item for item in below.items() if item[1] >= _MIN_SOURCE_FILES]
    if len(sources) < 2:
        return []
    largest_first = sorted(sources, key=lambda item: (-item[1], item[0]))[:MAX_SOURCES]
    return sorted(largest_first)


def _source_rules(survey: Survey, reserved_names: Collection[str]) -> list[DraftRule]:
    base = survey.source_id
    declared = {
        document.path
        for document in survey.documents
        if document.metadata.source_id.casefold() != base.casefold()
    }
    used = {name.casefold() for name in reserved_names}
    rules = []
    for folder, count in source_folders([document.path for document in survey.documents]):
        if any(path.startswith(f"{folder}/") for path in declared):
            continue  # These documents say themselves of which source they are.
        name = f"{base}-{source_name_of(folder)}"
        unique = next(
            candidate
            for candidate in (name, *(f"{name}-{number}" for number in range(2, 1000)))
            if candidate.casefold() not in used
        )
        used.add(unique.casefold())
        rules.append(
            DraftRule(_glob(f"{folder}/**"), {"source_id": unique}, counted(count, "document"))
        )
    return rules


def source_name_of(folder: str) -> str:
    """A folder's path as a part of the id of a source: the names of its last two folders."""
    from pathlib import PurePosixPath

    return source_name(PurePosixPath(folder))  # type: ignore[arg-type]


def _sources_comment(survey: Survey, keep_source: str, sources: Sequence[DraftRule]) -> str:
    if not sources:
        return f"# All documents are of the source {_plain(survey.source_id)}.\n"
    lines = ["# A source is what roles prefer, limit or forbid, and what answers name.\n"]
    if keep_source:
        lines.append(_comment(keep_source))
    return "".join(lines)


# -- types and domains ---------------------------------------------------------------------------


def _typed(survey: Survey) -> list[SurveyedDocument]:
    """The documents that do not declare their type."""
    default = _DEFAULTS["document_type"]
    return [document for document in survey.documents if document.metadata.document_type == default]


def _format_rules(survey: Survey) -> list[DraftRule]:
    """Rules for the suffixes of which all documents are of one kind, because of their format."""
    by_suffix: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for document in _typed(survey):
        suffix = _suffix(document.path)
        if document.kind is not None and document.kind.by == "format":
            kind = document.kind.kind
            by_suffix[suffix][kind.document_type, kind.domain] += 1
        elif document.kind is None or document.kind.kind.document_type != "test-code":
            by_suffix[suffix]["", ""] += 1
    rules = []
    for suffix, kinds in sorted(by_suffix.items()):
        [(name, count)] = kinds.most_common(1)
        if name[0] and len(kinds) == 1:
            evidence = f"{counted(count, 'document')} in a format of this type"
            glob = f"**/*{suffix}" if suffix.startswith(".") else f"**/{_glob(suffix)}"
            rules.append(DraftRule(glob, _kind_values(*name), evidence))
    return rules


def _folder_rules(survey: Survey) -> list[DraftRule]:
    """Rules for the outermost folders whose documents are nearly all of one kind."""
    below: defaultdict[str, list[SurveyedDocument]] = defaultdict(list)
    for document in _typed(survey):
        for folder in _folders(document.path):
            below[folder].append(document)
    rules: list[DraftRule] = []
    typed_folders: set[str] = set()
    for folder in sorted(below):
        documents = below[folder]
        if len(documents) < 2:
            continue
        values: dict[str, object] = {}
        evidence: list[str] = []
        is_certain = True
        if not _is_below(folder, typed_folders):
            # Code among pages of text does not tell what the pages are.
            prose = [document for document in documents if document.document_type not in CODE]
            found = _main_kind(prose or documents)
            if found is not None:
                name, evidence_of_kind, is_certain = found
                values = _kind_values(name, domain_of_type(name))
                evidence.append(evidence_of_kind)
                if is_certain:
                    typed_folders.add(folder)
        domain = domain_of_folder(folder.rpartition("/")[2])
        if domain and _is_prose(documents) and (is_certain or not values):
            values.setdefault("domain", domain)
            evidence.append("domain by the name of the folder")
        if values:
            text = "; ".join(evidence)
            rules.append(DraftRule(_glob(f"{folder}/**"), values, text, is_certain))
    return rules


def _main_kind(documents: Sequence[SurveyedDocument]) -> tuple[str, str, bool] | None:
    """The type of most documents of a folder, the evidence, and whether it is certain."""
    own = [
        document
        for document in documents
        if document.kind is not None and not _is_known_by_format(document)
    ]
    names = Counter(document.kind.kind.document_type for document in own if document.kind)
    total = sum(1 for document in documents if not _is_known_by_format(document))
    [(name, count)] = names.most_common(1) or [("", 0)]
    if not total or count < 2 or count < UNCERTAIN_SHARE * total:
        return None
    by = Counter(
        document.kind.by if document.kind.by == "headings" else document.kind.evidence
        for document in own
        if document.kind and document.kind.kind.document_type == name
    )
    how = "; ".join(
        f"{number} by {_plain(reason)}" for reason, number in by.most_common(_MAX_EXAMPLES)
    )
    return name, f"{count} of {total} documents: {how}", count >= CERTAIN_SHARE * total


def _is_prose(documents: Sequence[SurveyedDocument]) -> bool:
    return sum(document.document_type in CODE for document in documents) < len(documents) / 2


def _file_rules(survey: Survey, rules: Sequence[DraftRule]) -> list[DraftRule]:
    """Rules for documents whose own name or headings tell another kind than the rules before."""
    differing: list[SurveyedDocument] = []
    for document in _typed(survey):
        kind = document.kind
        if kind is None or kind.by == "format":
            continue
        if _type_by(rules, document.path) != kind.kind.document_type:
            differing.append(document)
    added: list[DraftRule] = []
    for glob, documents in _groups(differing, survey):
        kind = documents[0].kind
        assert kind is not None
        is_certain = kind.by != "headings"
        evidence = _plain(kind.evidence)
        if len(documents) > 1:
            evidence = f"{counted(len(documents), 'document')}: {evidence}"
        values = _kind_values(kind.kind.document_type, kind.kind.domain)
        added.append(DraftRule(glob, values, evidence, is_certain))
    return added[:MAX_FILE_RULES]


def _groups(
    documents: Sequence[SurveyedDocument], survey: Survey
) -> list[tuple[str, list[SurveyedDocument]]]:
    """The documents by the glob of a rule for them: of their kind, name, folder, or path."""
    groups: defaultdict[str, list[SurveyedDocument]] = defaultdict(list)
    same_name = Counter(path.rpartition("/")[2] for path in survey.files)
    of_a_folder = Counter(map(_folder_glob, documents))
    for document in documents:
        kind = document.kind
        assert kind is not None
        name = document.path.rpartition("/")[2]
        glob = next((glob for glob in kind.kind.globs if matches(glob, document.path)), "")
        if not glob and kind.by == "name" and same_name[name] > 1:
            glob = f"**/{_glob(name)}"
        in_folder = _folder_glob(document)
        if not glob and of_a_folder[in_folder] > 1 and _is_all_of(kind.kind, in_folder, survey):
            glob = in_folder
        groups[glob or _glob(document.path)].append(document)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def _folder_glob(document: SurveyedDocument) -> str:
    """The glob of the files with its suffix in the folder that tells its kind; or empty."""
    if document.kind is None or document.kind.by != "folder":
        return ""
    folder = _folder_named(document.path, document.kind.evidence)
    return f"{_glob(folder)}/**/*{_suffix(document.path)}"


def _is_all_of(kind: Kind, glob: str, survey: Survey) -> bool:
    """Whether all documents that a glob matches are of one kind."""
    return all(
        document.document_type == kind.document_type
        for document in survey.documents
        if matches(glob, document.path)
    )


def _type_by(rules: Iterable[DraftRule], path: str) -> object:
    name: object = ""
    for rule in rules:
        if rule.is_certain and "document_type" in rule.values and matches(rule.glob, path):
            name = rule.values["document_type"]
    return name


def _is_known_by_format(document: SurveyedDocument) -> bool:
    return document.kind is not None and document.kind.by == "format"


def _kind_values(document_type: str, domain: str) -> dict[str, object]:
    return {"document_type": document_type, **({"domain": domain} if domain else {})}


# -- dates ---------------------------------------------------------------------------------------


def _date_rules(survey: Survey) -> list[DraftRule]:
    """A rule for each file with a date in its name, if they are few."""
    named = [document for document in survey.documents if document.date_origin == "name"]
    if not named or len(named) > MAX_FILE_RULES:
        return []
    return [
        DraftRule(_glob(document.path), {"updated_at": document.date_in_name}, "")
        for document in named
    ]


def _dates_comment(survey: Survey, rules: Sequence[DraftRule]) -> str:
    counts = Counter(document.date_origin for document in survey.documents)
    total = len(survey.documents)
    lines = [
        _comment(
            f"{counts['declared']} of {total} documents declare a date: front matter, mail headers."
        ),
        _comment(
            f"{counts['inferred']} have none: the last commit, or else the time of the file, "
            "counts for freshness only."
        ),
    ]
    if counts["name"]:
        text = f"{counts['name']} have it in the name of the file only."
        if not rules:
            text += " It counts for freshness; they are too many for rules that declare it."
        lines.append(_comment(text))
    return "".join(lines)


# -- text ----------------------------------------------------------------------------------------


def _maintained(sources: Sequence[DraftRule]) -> str:
    """The glob of what somebody most likely keeps correct: the documentation, or the first."""
    globs = [rule.glob for rule in sources]
    documentation = (
        glob for glob in globs if domain_of_folder(glob.partition("/")[0]) == "documentation"
    )
    return next(documentation, globs[0] if globs else "**")


def _left_out(survey: Survey, ignored: Sequence[str]) -> str:
    """A comment on what an ingest leaves out, and a proposal of more."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for skipped in survey.skipped:
        if skipped.code not in ("note", "claim_refused", "glob_matches_nothing"):
            reason = skipped.message if skipped.code == "ignored" else skipped.code
            reasons[_plain(reason.removeprefix(f"{skipped.path}: "))].append(skipped.path)
    lines = [_title("What is left out")]
    for reason, paths in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        examples = ", ".join(map(_plain, paths[:_MAX_EXAMPLES]))
        more = ", …" if paths[_MAX_EXAMPLES:] else ""
        lines.append(_comment(f"{reason}: {len(paths)} ({examples}{more})"))
    if not reasons:
        lines.append("# Nothing.\n")
    old = sorted(
        {
            _glob(f"{folder}/**")
            for document in survey.documents
            if document.kind is not None
            and document.kind.kind.document_type in ("archived", "draft")
            for folder in [_folder_named(document.path, document.kind.evidence)]
        }
    )
    if old:
        lines.append("# Drafts and archives can be left out as well:\n")
        lines.append(f"# ignore = [{', '.join(map(_toml, [*ignored, *old]))}]\n")
    if ignored:
        lines.append("# Settings of the corpus are no documents.\n")
        lines.append(f"ignore = [{', '.join(map(_toml, ignored))}]\n")
    if survey.is_sample:
        lines.append(
            _comment(
                f"{survey.read} of {len(survey.files)} files were read, and are counted below."
            )
        )
    return "".join(lines)


def _folder_named(path: str, evidence: str) -> str:
    name = evidence.removeprefix("the folder ")
    folders = list(_folders(path))
    return next((folder for folder in folders if folder.lower().split("/")[-1] == name), folders[0])


def _rule_text(rule: DraftRule) -> str:
    lines = [_comment(rule.evidence)] if rule.evidence else []
    if not rule.is_certain:
        lines = [_comment(f"uncertain: {rule.evidence}")]
    mark = "" if rule.is_certain else "# "
    lines += [f"{mark}[[rule]]\n", f"{mark}glob = {_toml(rule.glob)}\n"]
    lines += [f"{mark}{key} = {_toml(value)}\n" for key, value in rule.values.items()]
    return "\n" + "".join(lines)


def _title(text: str) -> str:
    return f"\n# -- {text} ".ljust(97, "-") + "\n"


def _comment(text: str) -> str:
    plain = _plain(text)
    if len(plain) > _MAX_COMMENT_CHARS:
        plain = f"{plain[: _MAX_COMMENT_CHARS - 1]}…"
    return f"# {plain}\n"


def _plain(text: str) -> str:
    """A text on one line, without characters that TOML or a terminal does not show."""
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "�" for letter in line)


def _toml(value: object) -> str:
    """A string or a date in TOML."""
    if isinstance(value, date):
        return value.isoformat()
    # JSON's escapes are TOML's; only the delete character may not be bare.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _glob(path: str) -> str:
    """A glob for one path: a star or question mark in it matches any one character.

    The two stars at the end of a folder's glob stay.
    """
    stem, stars = (path[:-2], "**") if path.endswith("/**") else (path, "")
    return re.sub(r"[*?]", "?", stem) + stars


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _is_below(folder: str, folders: Collection[str]) -> bool:
    return any(folder == outer or folder.startswith(f"{outer}/") for outer in folders)


def _suffix(path: str) -> str:
    """The suffix of a file; its name if it has none."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix}" if dot and stem and suffix.isalnum() else name


def _own_or(metadata: DocumentMetadata, key: str, values: Mapping[str, object]) -> str:
    own = getattr(metadata, key)
    return str(values.get(key, own)) if own == _DEFAULTS[key] else str(own)
