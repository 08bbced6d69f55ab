"""What a folder has: its documents as an ingest would store them, and what is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple

from rolebundle.authoring.kinds import CODE, KindFound, kind_of_document
from rolebundle.authoring.terms import (
    PassageWords,
    stop_words_of,
    without_repeats,
    words_of_passage,
)
from rolebundle.contracts.document import DocumentMetadata
from rolebundle.errors import UsageError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.chunking import ChunkSettings
from rolebundle.ingest.dates import date_in_name
from rolebundle.ingest.manifest_file import FileDefaults
from rolebundle.ingest.manifests import ManifestPolicy, check_path
from rolebundle.ingest.prepare import FileTask, Prepared, RunSettings
from rolebundle.ingest.readers import reader_for
from rolebundle.ingest.roots import check_no_link, source_name
from rolebundle.ingest.unsupported import kind_of
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP, FileEntry, Skipped, walk
from rolebundle.ingest.workers import prepare_parallel
from rolebundle.scan.settings import ScanSettings
from rolebundle.storage.content.stored_document import StoredChunk

MAX_FILES = 3_000
"""The most files whose content is read. Of more, every n-th one is."""
MAX_BYTES = 64 * 1024 * 1024
"""The most bytes that are read."""
MAX_PASSAGES = 8_000
"""The most passages whose words are counted."""

DateOrigin = Literal["declared", "name", "inferred"]
"""Where the date of a document comes from: its text or format, or the name of its file. If neither
tells it, the last commit or the file's time counts."""

# Of Markdown, AsciiDoc and Org; and underlined, as in reStructuredText.
_HEADING = re.compile(
    r"^(?:#{1,6}|={1,5}|\*{1,5}) +(.{1,80})$|^(\S.{0,79})\n(?:=|-|~|\^|\+|\"){3,}$", re.MULTILINE
)


class Passage(NamedTuple):
    """A passage of a document that is looked at; ``headings`` outermost first."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SurveyedDocument:
    """A document that was read.

    Attributes:
        path: of its file, relative to the folder.
        metadata: what an ingest would store.
        passages: its passages; none if an ingest would quarantine it.
        kind: what kind of document it is; ``None`` if nothing tells it.
        date_in_name: the date in the name of its file.
    """

    path: str
    metadata: DocumentMetadata
    passages: tuple[Passage, ...]
    kind: KindFound | None
    date_in_name: date | None

    @property
    def date_origin(self) -> DateOrigin:
        """Where its date comes from."""
        if self.metadata.updated_at:
            return "declared"
        return "name" if self.date_in_name else "inferred"

    @property
    def document_type(self) -> str:
        """The type that it declares, or else that of its kind; empty if neither is known."""
        if self.metadata.document_type != DocumentMetadata._field_defaults["document_type"]:
            return self.metadata.document_type
        return self.kind.kind.document_type if self.kind else ""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a folder has.

    Attributes:
        folder: its absolute path.
        documents: what was read, in path order.
        files: the paths of all files that an ingest would read, also those that were not read here.
            A file that turned out to be unreadable is in ``skipped`` instead.
        skipped: what an ingest would leave out, and why.
        read: how many files were read.
    """

    folder: Path
    documents: tuple[SurveyedDocument, ...]
    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    read: int

    @property
    def is_sample(self) -> bool:
        """Whether only a part of the files was read."""
        return self.read < len(self.files)

    @property
    def source_id(self) -> str:
        """The source that an ingest of the folder has without a manifest."""
        return source_name(self.folder)


class Passages(NamedTuple):
    """The passages of a survey without boilerplate, and their words; both have the same order."""

    documents: tuple[SurveyedDocument, ...]
    headings: tuple[tuple[str, ...], ...]
    words: tuple[PassageWords, ...]


def survey(folder: Path, *, only: str = "") -> Survey:
    """Look at a folder as an ingest does: the same walk, ignore rules, readers and scan.

    Args:
        folder: an existing folder.
        only: the name of the only file in it to read; empty for all.

    Raises:
        UsageError: it is no folder, or a symbolic link.
        ConfigurationError: it has an invalid manifest.
    """
    folder = Path(folder).absolute()
    check_path(folder)
    check_no_link(folder)
    if not folder.is_dir():
        raise UsageError("not_a_folder", f"{folder}: is no folder", "name a folder of documents")
    defaults = FileDefaults(Authority(default_source=source_name(folder)))
    entries = walk(folder, folder / only, defaults, ManifestPolicy())
    files = [entry for entry in entries if isinstance(entry, FileEntry)]
    skipped = [entry for entry in entries if isinstance(entry, Skipped)]
    refused = {file.path: entry for file in files if (entry := _refused_unread(file))}
    sample = sampled([file for file in files if file.path not in refused])
    settings = RunSettings(ChunkSettings(), DEFAULT_SIZE_CAP, ScanSettings())
    documents: list[SurveyedDocument] = []
    tasks = [FileTask(file, None) for file in sample]
    with closing(prepare_parallel(tasks, settings, workers=1)) as outcomes:
        for file, outcome in zip(sample, outcomes, strict=True):
            if isinstance(outcome, Skipped):
                refused[file.path] = outcome
            elif isinstance(outcome, Prepared):
                documents += _documents(file.path, outcome)
    return Survey(
        folder,
        tuple(documents),
        tuple(file.path for file in files if file.path not in refused),
        (*skipped, *refused.values()),
        sum(file.path not in refused for file in sample),
    )


def _refused_unread(file: FileEntry) -> Skipped | None:
    """Why an ingest leaves out a file by its name or size; ``None`` if it reads the file."""
    kind = "" if reader_for(file.path) else kind_of(file.path)
    if kind:
        return Skipped(file.path, "unsupported", kind)
    if file.size > DEFAULT_SIZE_CAP:
        return Skipped(file.path, "too_large", f"over the cap of {DEFAULT_SIZE_CAP:,} bytes")
    return None


def sampled(files: Sequence[FileEntry]) -> list[FileEntry]:
    """At most so many files and bytes as are read: all, or every n-th one."""
    for share in range(1, MAX_FILES + 1):
        step = max(share, -(-len(files) // MAX_FILES))
        chosen = list(files[::step])
        if sum(file.size for file in chosen) <= MAX_BYTES:
            break
    return chosen


def passages_of(documents: Sequence[SurveyedDocument]) -> Passages:
    """The passages of documents whose words are counted: at most ``MAX_PASSAGES`` of them."""
    texts = {
        document.metadata.document_id: [passage.text for passage in document.passages]
        for document in documents
    }
    plain = without_repeats(texts)
    owners, headings, pieces = [], [], []
    # Names in code are no words. They count only if there is nothing else.
    prose = [document for document in documents if document.document_type not in CODE]
    for document in prose or documents:
        for passage, text in zip(
            document.passages, plain[document.metadata.document_id], strict=True
        ):
            owners.append(document)
            headings.append(passage.headings)
            pieces.append(text)
    step = max(1, -(-len(pieces) // MAX_PASSAGES))
    stop_words = {
        document: stop_words_of(" ".join(passages[:2])) for document, passages in texts.items()
    }
    words = (
        words_of_passage(name, text, stop_words[name])
        for owner, text in zip(owners[::step], pieces[::step], strict=True)
        for name in [owner.metadata.document_id]
    )
    return Passages(tuple(owners[::step]), tuple(headings[::step]), tuple(words))


def counts_by_folder(paths: Iterable[str]) -> Counter[str]:
    """Folder → how many of the files lie at or below it. The folder itself is ``""``."""
    counts: Counter[str] = Counter()
    for path in paths:
        parts = path.split("/")[:-1]
        counts.update("/".join(parts[:depth]) for depth in range(len(parts) + 1))
    return counts


def _headings(chunk: StoredChunk) -> Iterator[str]:
    """The headings above a passage and in it."""
    yield from chunk.headings
    for marked, underlined in _HEADING.findall(chunk.content):
        yield marked or underlined


def _documents(path: str, prepared: Prepared) -> Iterable[SurveyedDocument]:
    reader = reader_for(path)
    reader_name = reader.name if reader else "text"
    is_single = len(prepared.documents) == 1
    for document in prepared.documents:
        chunks = document.chunks
        scanned = document.scanned
        if scanned is not None and scanned.verdict == "quarantine":
            chunks = ()
        headings = [heading for chunk in chunks for heading in _headings(chunk)]
        if "from" in dict(document.metadata.attributes) and reader_name == "text":
            reader_name = "eml"  # A message without a suffix.
        if reader_name == "json" and not is_single:
            reader_name = "text"  # A corpus of ready-made chunks.
        kind = kind_of_document(path, reader_name, list(dict.fromkeys(headings)))
        yield SurveyedDocument(
            path=path,
            metadata=document.metadata,
            passages=tuple(Passage(chunk.headings, chunk.content) for chunk in chunks),
            kind=kind,
            date_in_name=date_in_name(path) if is_single else None,
        )
