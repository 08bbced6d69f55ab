"""What `init` and `overlay new` write: a manifest, overlays, and which commands come next."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from rolebundle.authoring.fields import label_of, read_role_name
from rolebundle.authoring.files import check_new, write_new
from rolebundle.authoring.manifest_draft import ManifestDraft, draft_manifest
from rolebundle.authoring.overlay_draft import OverlayDraft, draft_for_role, draft_from_examples
from rolebundle.authoring.subject import Named
from rolebundle.authoring.survey import Passage, Survey, SurveyedDocument, survey
from rolebundle.contracts.authoring import DraftFile, InitReport, OverlayDraftReport, OverlayOrigin
from rolebundle.contracts.overlay import ROLE_ID_PATTERN, Overlay
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.errors import EmbedderError, OverlayError, UsageError
from rolebundle.ingest.dates import date_in_name
from rolebundle.ingest.manifests import MANIFEST_NAME
from rolebundle.ingest.roots import holder_of
from rolebundle.policy.overlay_values import validate
from rolebundle.policy.overlays import load_role, locate
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import all_documents
from rolebundle.storage.content.passages import passages_of_documents
from rolebundle.storage.files.file_format import check_path
from rolebundle.storage.location import overlays_path
from rolebundle.storage.opening import corpus_format, open_reader
from rolebundle.storage.records import roots as root_storage
from rolebundle.storage.records.replica import refuse_changes, refuse_expired
from rolebundle.text.counts import counted

MIN_EXAMPLES, MAX_EXAMPLES = 5, 50
"""How many example documents and questions an overlay may be made from."""
BLANK = "blank"
"""The template without any values of a role."""

_MAX_QUESTION_BYTES = 1 << 20
_MAX_CORPUS_DOCUMENTS = 5_000
_QUESTION = "What should I look at first?"
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\..*)?")
_BLANK_VALUES: dict[str, Any] = {
    "mission": "Say in one sentence what the role does, for agents that choose a role.",
    "vocabulary": {
        "preferred_terms": [],
        "boost_phrases": [],
        "synonyms": {},
        "suppress_phrases": [],
    },
    "source_policy": {
        "preferred_sources": [],
        "forbidden_sources": [],
        "document_type_boosts": {},
        "domain_boosts": {},
        "trust_tier_boosts": {"authoritative": 1.5, "preferred": 1.2, "untrusted": 0.5},
    },
    "retrieval_policy": {"max_selected_chunks": 8},
    "synthesis_policy": {"prioritize": [], "avoid": []},
}


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


# -- init ----------------------------------------------------------------------------------------


def init(folder: Path, role_id: str, target: Target, *, dry_run: bool) -> InitReport:
    """Look at a folder, and write a manifest and, for a role, an overlay.

    A manifest that is there is kept if an overlay is asked for, so that a second role can be added.

    Args:
        folder: the folder.
        role_id: the role; empty for no overlay.
        target: the corpus that the folder will be ingested into.
        dry_run: write nothing.

    Raises:
        UsageError: it is no folder, the role id is none, or the corpus is a replica.
        ConfigurationError: ``file_exists``, or the folder has an invalid manifest.
        StorageError: the files cannot be written. Nothing was written.
    """
    if target.corpus.exists():
        with open_reader(target.corpus) as corpus:
            refuse_changes(corpus)
    path = Path(folder).absolute() / MANIFEST_NAME
    keeps = bool(role_id) and path.is_file()
    if role_id:
        check_role_id(role_id)
    if not dry_run:
        for new in ([target.overlay_path(role_id)] if role_id else []) + ([] if keeps else [path]):
            check_new(new)
    found = survey(folder)
    draft = _manifest_for(found, target)
    named = {
        document.metadata.document_id: Named(*draft.named(document)) for document in found.documents
    }
    if keeps:
        named = _declared(found.documents)
    texts = {} if keeps else {path: draft.text}
    remarks: list[str] = []
    if role_id:
        overlay = role_draft(role_id, found.documents, named, target)
        remarks += overlay.remarks
        texts[target.overlay_path(role_id)] = overlay.text
    if not dry_run:
        write_new(texts)
    drafts = [_draft_file(name, text, dry_run=dry_run) for name, text in texts.items()]
    if keeps:
        drafts.insert(0, DraftFile(path=str(path), state="kept"))
    return InitReport(
        folder=str(found.folder),
        files=len(found.files),
        read=found.read,
        documents=len(found.documents),
        left_out=dict(Counter(entry.code for entry in found.skipped if entry.code != "note")),
        sources=_counts(name.source_id for name in named.values()),
        document_types=_counts(name.document_type for name in named.values()),
        domains=_counts(name.domain for name in named.values()),
        dates=dict(Counter(document.date_origin for document in found.documents)),
        drafts=drafts,
        remarks=remarks,
        next=[
            target.command("ingest", str(folder)),
            target.command("retrieve", _QUESTION, *(["--role", role_id] if role_id else [])),
        ],
    )


def _draft_file(path: Path, text: str, *, dry_run: bool) -> DraftFile:
    return DraftFile(path=str(path), state="planned" if dry_run else "written", content=text)


def _manifest_for(found: Survey, target: Target) -> ManifestDraft:
    """The manifest, given what the corpus has already."""
    location = str(found.folder)
    ignored: list[str] = []
    own = overlays_path(target.corpus)
    if own.is_relative_to(found.folder):
        ignored.append(f"{own.relative_to(found.folder).as_posix()}/**")
    if not target.corpus.is_file():
        return draft_manifest(found, ignored=ignored)
    with open_reader(target.corpus) as corpus:
        holder = holder_of(root_storage.load(corpus), location)
        foreign_sources = root_storage.sources_outside(corpus, location, with_foreign=True)
    keep = ""
    if holder is not None:
        keep = (
            f"The corpus has this folder as {holder.source_id}. With these rules its documents "
            "would get other ids, and marks on them would be lost; so they are not in force."
        )
    return draft_manifest(found, foreign_sources, keep, ignored)


def role_draft(
    role_id: str,
    documents: Sequence[SurveyedDocument],
    named: Mapping[str, Named],
    target: Target,
) -> OverlayDraft:
    """The overlay of a role, by its name and some documents.

    It extends the shipped role that its name is close to. If it has the very name of a role of
    another folder, that role's values are the beginning.
    """
    base: Overlay | None = None
    values: dict[str, Any] | None = None
    own = target.overlay_path(role_id).parent
    folders = [folder for folder in target.folders if folder != own]
    if locate(role_id, folders) is not None:
        base = load_role(role_id, folders).overlay
        values = base.model_dump(exclude_unset=True, exclude_none=True)
    elif (name := read_role_name(role_id).base) and locate(name, target.folders) is not None:
        base = load_role(name, target.folders).overlay
    draft = draft_for_role(role_id, documents, named, base, values, _provider())
    return _checked(draft)


# -- overlay new ---------------------------------------------------------------------------------


def new_overlay(
    role_id: str,
    target: Target,
    *,
    parent: str,
    template: str,
    examples: Sequence[Path],
    questions: Path | None,
    output: Path | None,
    dry_run: bool,
) -> OverlayDraftReport:
    """Write a new overlay: from another role, a template, examples, or the documents of the corpus.

    Args:
        role_id: the role.
        target: the corpus; the overlay is written to its own folder.
        parent: the role that it extends.
        template: ``blank``, or a role whose values are copied.
        examples: files and folders of documents of the role's work.
        questions: a file with a question of the role on each line.
        output: the file to write instead.
        dry_run: write nothing.

    Raises:
        UsageError: the role id is none, there are too few or too many examples, the folder of
            ``output`` is missing, or the corpus is a folder.
        OverlayError: a role that is named has no valid overlay.
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
            "create it, or name another file with --output",
        )
    if target.corpus.is_dir():
        # Its folder of overlays would be that of no corpus.
        check_path(target.corpus, corpus_format())
    remarks: list[str] = []
    origin: OverlayOrigin
    if parent:
        origin, draft = "role", _extending(role_id, parent, target)
    elif template:
        origin, draft = "template", _from_template(role_id, template, target)
    elif examples or questions is not None:
        origin, draft = "examples", _from_examples(role_id, examples, questions, target)
    else:
        origin, draft = "corpus", _from_corpus(role_id, target)
    draft = _checked(draft)
    if not dry_run:
        write_new({path: draft.text})
    if output is not None and path.name != f"{role_id}.json":
        remarks.append(f"a role is found by the name of its file: {role_id}.json")
    name, ask = role_id, ["overlay", "try", role_id, _QUESTION]
    if output is not None:
        # A file elsewhere is no role yet.
        name, ask = str(path), ["retrieve", _QUESTION, "--overlay", str(path)]
    return OverlayDraftReport(
        role_id=role_id,
        origin=origin,
        draft=_draft_file(path, draft.text, dry_run=dry_run),
        remarks=[*draft.remarks, *remarks],
        next=[target.command("overlay", "lint", name), target.command(*ask)],
    )


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
    if _DEVICE.fullmatch(role_id):
        raise UsageError(
            "bad_role_id",
            f"{role_id!r} is the name of a device on Windows, and of no file there",
            "choose another one",
        )


def _extending(role_id: str, parent: str, target: Target) -> OverlayDraft:
    if parent == role_id:
        raise UsageError(
            "extends_itself",
            f"{role_id}: a role cannot extend itself",
            "use --template, which copies",
        )
    overlay = load_role(parent, target.folders).overlay
    values: dict[str, Any] = {
        "version": "1.0",
        "role_id": role_id,
        "extends": overlay.role_id,
        "label": label_of(role_id),
        "mission": overlay.mission or f"Do the work of the {label_of(role_id)}.",
    }
    remark = (
        f"everything else is inherited from {parent}; a list that you add replaces the inherited "
        f"one: `rolebundle overlay show {parent}`"
    )
    return OverlayDraft(values, [remark])


def _from_template(role_id: str, template: str, target: Target) -> OverlayDraft:
    head = {"version": "1.0", "role_id": role_id, "label": label_of(role_id)}
    if template == BLANK:
        return OverlayDraft({**head, **_BLANK_VALUES}, [])
    overlay = load_role(template, target.folders).overlay
    values = overlay.model_dump(exclude_unset=True, exclude_none=True)
    for key in ("extends", "notes", "eval_profile"):
        values.pop(key, None)
    return OverlayDraft({**values, **head}, [])


def _from_corpus(role_id: str, target: Target) -> OverlayDraft:
    if not target.corpus.is_file():
        raise UsageError(
            "no_corpus",
            f"{target.corpus}: there is no corpus to derive the role from",
            "ingest first, or begin with --template blank, --from ROLE or --examples PATH",
        )
    with open_reader(target.corpus) as corpus:
        documents = corpus_documents(corpus)
    named = _declared(documents)
    return role_draft(role_id, documents, named, target)


def _from_examples(
    role_id: str, paths: Sequence[Path], questions: Path | None, target: Target
) -> OverlayDraft:
    examples = [document for path in paths for document in _read_examples(path)]
    texts = _read_questions(questions)
    for kind, number in (("example documents", len(examples)), ("questions", len(texts))):
        if number > MAX_EXAMPLES:
            raise UsageError(
                "too_many_examples",
                f"{number} {kind}; at most {MAX_EXAMPLES} are of use",
                "name those that are most typical of the role",
            )
    if len(examples) + len(texts) < MIN_EXAMPLES:
        raise UsageError(
            "too_few_examples",
            f"{counted(len(examples), 'example document')} and {counted(len(texts), 'question')}: "
            "too few to tell what is typical of the role",
            f"give {MIN_EXAMPLES} to {MAX_EXAMPLES} with --examples and --questions",
        )
    with open_reader(target.corpus) if target.corpus.is_file() else nullcontext() as corpus:
        documents = corpus_documents(corpus) if corpus is not None else []
    hashes = {_text_of(document) for document in examples}
    stored = [document for document in documents if _text_of(document) in hashes]
    if len({_text_of(document) for document in stored}) == len(hashes):
        examples = stored  # With the paths and types that rules will see.
    ids = {document.metadata.document_id for document in stored}
    documents = [document for document in documents if document.metadata.document_id not in ids]
    if texts and not documents and not examples:
        raise UsageError(
            "no_corpus",
            f"{target.corpus}: there is no corpus in which questions could be looked up",
            "ingest first, or give documents with --examples",
        )
    named = _declared([*documents, *examples])
    draft = draft_from_examples(role_id, examples, texts, documents, named)
    if not documents:
        draft.remarks.append(
            "without a corpus the terms of the examples cannot be compared with other documents; "
            "ingest a folder first for better ones"
        )
    return draft


def _read_examples(path: Path) -> Sequence[SurveyedDocument]:
    if path.is_dir():
        return survey(path).documents
    if not path.is_file():
        raise UsageError("path_missing", f"{path}: no such file or folder", "check the spelling")
    own = survey(path.absolute().parent, only=path.name).documents
    if not own:
        raise UsageError(
            "unreadable_example", f"{path}: it cannot be read as a document", "leave it out"
        )
    return own


def _read_questions(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        # A device such as /dev/zero has no end.
        with path.open("rb") as file:
            content = file.read(_MAX_QUESTION_BYTES + 1)
        if len(content) > _MAX_QUESTION_BYTES:
            raise ValueError(f"more than {_MAX_QUESTION_BYTES:,} bytes")
        lines = content.decode("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            "unreadable_questions", f"{path}: cannot be read ({error})", "write one question a line"
        ) from error
    plain = (" ".join(line.split()) for line in lines)
    return list(dict.fromkeys(line for line in plain if line and not line.startswith("#")))


def corpus_documents(corpus: Corpus) -> list[SurveyedDocument]:
    """The documents of a corpus that are not in quarantine; of very many, every n-th one."""
    refuse_expired(corpus)
    with corpus.reading():
        rows = all_documents(corpus)
        step = max(1, -(-len(rows) // _MAX_CORPUS_DOCUMENTS))
        found = []
        for row, metadata in rows[::step]:
            passages = passages_of_documents(corpus, [row])
            if passages:
                found.append(
                    SurveyedDocument(
                        path=passages[0].path,
                        metadata=metadata,
                        passages=tuple(
                            Passage(passage.headings, passage.content) for passage in passages
                        ),
                        kind=None,
                        date_in_name=date_in_name(passages[0].path),
                    )
                )
    return found


# -- shared --------------------------------------------------------------------------------------


def _provider() -> EmbeddingProvider | None:
    """The model that comes with rolebundle, or ``None`` if it cannot be used."""
    from rolebundle.embedding.static import StaticProvider

    provider = StaticProvider()
    try:
        provider.embed_passages(["word"])
    except EmbedderError:
        return None
    return provider


def _checked(draft: OverlayDraft) -> OverlayDraft:
    """The draft, if it is a valid overlay. What it extends has been loaded already."""
    values = json.loads(draft.text)
    problems = validate(values)
    if isinstance(problems, list):
        first = problems[0]
        raise OverlayError(
            "overlay_malformed",
            f"the draft is not valid: {first.place}: {first.message}",
            "please report this",
        )
    return draft


def _declared(documents: Iterable[SurveyedDocument]) -> dict[str, Named]:
    """The names that documents have by their metadata, by document id."""
    all_metadata = [document.metadata for document in documents]
    return {
        own.document_id: Named(own.source_id, own.document_type, own.domain) for own in all_metadata
    }


def _text_of(document: SurveyedDocument) -> str:
    return "\n".join(passage.text for passage in document.passages)


def _counts(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
