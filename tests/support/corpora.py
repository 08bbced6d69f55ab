"""Build small, real corpus files quickly."""

import json
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pytest

from rolebundle.access_control import AccessControl
from rolebundle.admin import Admin
from rolebundle.admin import records as owner
from rolebundle.admin.backups import copy_to
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import DocumentMetadata, IndexIdentity, Noise, iso_utc
from rolebundle.contracts.memory import NewDecision
from rolebundle.contracts.overlay import Overlay
from rolebundle.embedding.provider import EmbeddingProvider, embedding_text, unit_vectors
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.trust import UNRESTRICTED_VIEW, AgentView
from rolebundle.retrieval.bundle import bundle_of
from rolebundle.retrieval.pipeline import search
from rolebundle.retrieval.request import ResolvedRequest, resolve_request
from rolebundle.storage import store, vector_index
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.decisions import add_decision
from rolebundle.storage.digests import content_hash
from rolebundle.storage.documents import (
    Scanned,
    StoredChunk,
    StoredDocument,
    StoredFile,
    listed_documents,
)
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from rolebundle.storage.writing import open_writer
from rolebundle.text.forms import index_text
from rolebundle.workspace import Workspace
from support import databases
from support.databases import IS_STORE
from support.fake_embedder import HashingProvider

NOISE = Noise(0.15, 0.6)
"""What the tests' models are said to have; most of them cannot embed ordinary texts."""
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, in memory if possible."""
    with TemporaryDirectory(prefix="rolebundle-test-") as folder:
        yield Path(folder)


@cache
def _empty_corpus() -> bytes:
    folder = Path(mkdtemp(prefix="rolebundle-test-"))
    try:
        open_writer(folder / "empty.db").close()
        return (folder / "empty.db").read_bytes()
    finally:
        shutil.rmtree(folder)


FLAGGED = Scanned("label", "hash", '["instruction_override"]', "[]", "")
"""What the scan stores of a document with an instruction to a model."""
QUARANTINED = Scanned("quarantine", "hash", '["instruction_override"]', "[]", "the original text")


def chunk(chunk_id: str, content: str, **fields: Any) -> StoredChunk:
    """Make a chunk of one line; ``fields`` override its values."""
    settings: dict[str, Any] = {
        "headings": (),
        "content_type": "paragraph",
        "start_line": 1,
        "end_line": 1,
        "forms": index_text((content,), ""),
    }
    return StoredChunk(
        chunk_id=chunk_id,
        content=content,
        content_hash=content_hash(content),
        **(settings | fields),
    )


def document(
    document_id: str, texts: Sequence[str], scanned: Scanned | None = None, **metadata: Any
) -> StoredDocument:
    """Make a document with a chunk for each text: ``id#0``, ``id#1``, …"""
    fields: dict[str, Any] = {
        "source_id": "wiki",
        "title": document_id,
        "uri": f"file:{document_id}",
    }
    return StoredDocument(
        DocumentMetadata(document_id=document_id, **(fields | metadata)),
        tuple(
            chunk(f"{document_id}#{n}", text, start_line=n + 1, end_line=n + 1)
            for n, text in enumerate(texts)
        ),
        scanned,
    )


def file_of(document_id: str) -> StoredFile:
    return StoredFile(f"/docs/{document_id}.md", f"{document_id}.md", "hash", "recipe")


def put_file(corpus: Corpus, file: StoredFile, documents: Sequence[StoredDocument]) -> None:
    """Store one file, or raise why it is refused."""
    [problem] = store.put_files(corpus, [(file, documents)])
    if problem is not None:
        raise problem


def fill(
    corpus: Corpus,
    documents: Iterable[StoredDocument],
    provider: EmbeddingProvider | None = None,
    *,
    waiting: int = 0,
) -> None:
    """Store each document as a file of its own; all chunks but ``waiting`` get a vector."""
    with corpus.writing():
        for document in documents:
            put_file(corpus, file_of(document.metadata.document_id), [document])
        increment_generation(corpus)
        if provider is not None:
            embed(corpus, provider, waiting=waiting)


def embedding_texts(corpus: Corpus, rowids: Sequence[int]) -> list[str]:
    """What a model embeds of these chunks."""
    passages = passages_by_rowid(corpus, rowids)
    return [
        embedding_text(
            found.document.title,
            found.headings,
            found.content,
            found.tags,
            found.document.uri,
            found.document.updated_at,
        )
        for found in (passages[rowid] for rowid in rowids)
    ]


def embed(corpus: Corpus, provider: EmbeddingProvider, *, waiting: int = 0) -> None:
    """Inside a write transaction: vectors for what has none, but for the last ``waiting``."""
    index = vector_index.active_index(corpus) or vector_index.create_index(
        corpus, IndexIdentity(provider.identity, "test-chunker")
    )
    vector_index.set_noise(corpus, index, NOISE)
    rowids = vector_index.chunks_without_vector(corpus, index, 0, 1_000_000)
    rowids = rowids[: max(0, len(rowids) - waiting)]
    if not rowids:
        return
    texts = embedding_texts(corpus, rowids)
    vectors = unit_vectors(provider.embed_passages(texts), len(texts), provider.identity.dimensions)
    vector_index.add(
        corpus,
        index,
        [(row, "input", vector.tobytes()) for row, vector in zip(rowids, vectors, strict=True)],
    )


_numbers = count()
_MAX_TEMPLATES, _MAX_KEPT_BYTES = 128, 1_000_000
_BUILT: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
"""What was built last: most tests of a file ask for the same corpus."""


def build(
    folder: Path,
    documents: Iterable[StoredDocument],
    provider: EmbeddingProvider | None = None,
    *,
    waiting: int = 0,
    name: str = "",
    base: bytes = b"",
) -> Path:
    """A corpus file with these documents. Its corpus id is the same for all of a test run.

    ``base`` are the bytes of a corpus that was built before: what stands in it stays.
    """
    path = folder / (name or f"corpus-{next(_numbers)}.db")
    documents = tuple(documents)
    if IS_STORE:
        databases.create(path, *[databases.name_in(base.decode())] if base else [])
        with open_writer(path) as corpus:
            fill(corpus, documents, provider, waiting=waiting)
        return path
    key = None
    if provider is None or type(provider) is HashingProvider:
        key = repr((documents, provider and provider.identity, waiting)), base
        if key in _BUILT:
            _BUILT.move_to_end(key)
            path.write_bytes(_BUILT[key])
            return path
    path.write_bytes(base or _empty_corpus())
    with open_writer(path) as corpus:
        fill(corpus, documents, provider, waiting=waiting)
    if key and path.stat().st_size <= _MAX_KEPT_BYTES:
        _BUILT[key] = path.read_bytes()
        if len(_BUILT) > _MAX_TEMPLATES:
            _BUILT.popitem(last=False)
    return path


def put_decision(corpus: Corpus, new: NewDecision) -> None:
    """Store a decision at the time of the tests."""
    stored = new.model_copy(update={"effect": new.effect or "warn"})
    with corpus.writing():
        add_decision(corpus, stored, [*map(int, new.supersedes)], iso_utc(NOW))
        increment_generation(corpus)


def as_owner(
    corpus: Path | Workspace, act: Callable[..., Any], *arguments: Any, **more: Any
) -> Any:
    """What an act of the owner on a workspace returns."""
    with Admin(corpus) as admin:
        return act(admin.workspace, *arguments, **more)


def set_policy(corpus: Path | Workspace, policy: Any) -> None:
    """Put a policy into force, as the owner does. Its agents may ask at the time of the tests."""
    rules = policy.get("agents", policy) if isinstance(policy, dict) else {}
    if all(isinstance(rule, dict) for rule in rules.values()):
        policy = {name: {"may_set_time": True, **rule} for name, rule in rules.items()}
    as_owner(corpus, owner.set_policy, json.dumps(policy), "json")


def set_policy_after_first_check(
    monkeypatch: pytest.MonkeyPatch, corpus: Path, policy: Any
) -> None:
    """Put a policy into force when an agent has been checked once for a write."""
    original = AccessControl.check_write
    calls = []

    def check(access: AccessControl, *arguments: Any) -> None:
        original(access, *arguments)
        if not calls:
            calls.append(1)
            set_policy(corpus, policy)

    monkeypatch.setattr(AccessControl, "check_write", check)


def copy_corpus(path: Path, copy: Path) -> None:
    """Copy a corpus, which others may have open."""
    if IS_STORE:
        databases.create(copy)
        Path(f"{copy}.audit").unlink(missing_ok=True)
        copy_to(Workspace(path), copy)
        return
    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")


def remove(path: Path) -> None:
    """Delete the corpus file and what SQLite left beside it."""
    if IS_STORE and path.exists():
        databases.drop(path)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def built(
    folder: Path,
    documents: Iterable[StoredDocument],
    provider: EmbeddingProvider | None = None,
    *,
    waiting: int = 0,
    base: bytes = b"",
) -> Iterator[Corpus]:
    """Build a corpus, open it for reading, and delete it afterwards."""
    path = build(folder, documents, provider, waiting=waiting, base=base)
    try:
        with open_reader(path) as corpus:
            yield corpus
    finally:
        remove(path)


def overlay(**fields: Any) -> Overlay:
    """Make an overlay from plain values; missing fields have their defaults."""
    return Overlay.model_validate({"version": "1.0", "role_id": "reviewer"} | fields)


def retrieve(
    corpus: Corpus, request: ResolvedRequest, provider: EmbeddingProvider | None = None
) -> RetrievalBundle:
    """Run the real pipeline on a resolved request."""
    return bundle_of(search(corpus, request, provider))


def ask(
    corpus: Corpus,
    role: Overlay | None = None,
    provider: EmbeddingProvider | None = None,
    **fields: Any,
) -> RetrievalBundle:
    """Run the real pipeline on a request given as plain fields."""
    request = resolved(role, **fields)
    return retrieve(corpus, request, None if request.echo.lexical_only else provider)


def answered(
    documents: Iterable[StoredDocument],
    role: Overlay | None = None,
    provider: EmbeddingProvider | None = None,
    **fields: Any,
) -> RetrievalBundle:
    """What a corpus with these documents answers; without a model, by its words alone."""
    with scratch_folder() as folder, built(folder, documents, provider) as corpus:
        return ask(corpus, role, provider, **{"lexical_only": provider is None} | fields)


def resolved(
    role: Overlay | None = None, view: AgentView = UNRESTRICTED_VIEW, **fields: Any
) -> ResolvedRequest:
    """A request given as plain fields, resolved with a role."""
    request = request_from({"task": "token rotation"} | fields)
    now = request.now or request.as_of or NOW
    return resolve_request(request, now, role, "digest" if role else "", view)


def all_documents(corpus: Corpus) -> list[tuple[int, DocumentMetadata]]:
    """(rowid, metadata) of every document."""
    rows = corpus.column("SELECT id FROM document ORDER BY document_id")
    listed = listed_documents(corpus, rows)
    return sorted((row, document) for row, (document, _) in zip(rows, listed, strict=True))
