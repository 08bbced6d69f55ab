"""Ids that documents declare for themselves give way to ids that others have by right.

By right a document has the ids that begin with its source and path, and one that its owner gives
it. Untrusted and external documents give way to others. Who keeps an id does not depend on who was
stored first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rolebundle.storage import digests
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.stored_document import StoredChunk, StoredDocument, StoredFile
from rolebundle.storage.files.stored_values import typed

Files = list[tuple[StoredFile, Sequence[StoredDocument]]]


class Renamed(NamedTuple):
    """A document or chunk whose declared id belongs to another; ``path`` is that of its file."""

    path: str
    claim: str


class _Stored(NamedTuple):
    row: int
    location: str
    is_claim: bool


def settle(corpus: Corpus, files: Files) -> tuple[Files, list[Renamed]]:
    """Rename whatever declares an id that belongs to another document, stored or among ``files``.

    Call it inside a write transaction.

    Returns:
        The files as they must be stored, and what was renamed.
    """
    renamed: list[Renamed] = []
    settled: Files = []
    held = {
        document.metadata.document_id: file.location
        for file, stored in files
        for document in stored
        if not _is_claim(document, file.path)
    }
    documents = _settle_stored_documents(corpus, files, held, renamed)
    for file, stored in files:
        result = []
        for document in stored:
            document_id = document.metadata.document_id
            other_file = documents.get(document_id)
            is_held = held.get(document_id, file.location) != file.location or (
                other_file is not None
                and not other_file.is_claim
                and other_file.location != file.location
            )
            if is_held and _is_claim(document, file.path):
                renamed.append(Renamed(file.path, f"document_id: {document_id}"))
                document = _renamed_document(document, file.path)  # noqa: PLW2901
            result.append(document)
        settled.append((file, result))
    return _settle_chunks(corpus, settled, renamed), renamed


def _settle_stored_documents(
    corpus: Corpus, files: Files, held: Mapping[str, str], renamed: list[Renamed]
) -> dict[str, _Stored]:
    """The stored documents with ids of ``files``. Those that must give way are renamed."""
    names = {document.metadata.document_id for _, stored in files for document in stored}
    found: dict[str, _Stored] = {}
    for document_id, row, location, path, source_id, tier, origin, declared, refused in corpus.rows(
        "SELECT d.document_id, d.id, f.location, f.path, s.source_id, d.trust_tier, d.origin, "
        "d.self_declared, d.refused_claims FROM document d JOIN file f ON f.id = d.file "
        "JOIN source s ON s.id = d.source WHERE d.document_id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(names)),),
    ):
        [(own, refused_before)] = typed([(declared, refused)], tuple[str, ...], tuple[str, ...])
        is_claim = _is_foreign(tier, origin) or _claims(own, document_id, source_id, path)
        if not is_claim or held.get(document_id, location) == location:
            found[document_id] = _Stored(row, location, is_claim)
            continue
        claim = f"document_id: {document_id}"
        renamed.append(Renamed(path, claim))
        new_id = _fallback(document_id, source_id, path)
        claims = (*refused_before, claim)
        with digests.renewing(corpus, [row]):
            corpus.run(
                "UPDATE document SET document_id = ?, self_declared = ?, refused_claims = ? "
                "WHERE id = ?",
                (new_id, _json(name for name in own if name != "document_id"), _json(claims), row),
            )
        chunks = corpus.rows("SELECT id, chunk_id FROM chunk WHERE document = ?", (row,))
        _rename_stored_chunks(
            corpus,
            [
                (_with_prefix(chunk_id, document_id, new_id), chunk)
                for chunk, chunk_id in chunks
                if chunk_id.startswith(f"{document_id}#")
            ],
        )
    return found


def _settle_chunks(corpus: Corpus, files: Files, renamed: list[Renamed]) -> Files:
    held = {
        chunk.chunk_id: document.metadata.document_id
        for _, documents in files
        for document in documents
        for chunk in document.chunks
        if _is_own(chunk.chunk_id, document.metadata.document_id)
    }
    names = {
        chunk.chunk_id
        for _, documents in files
        for document in documents
        for chunk in document.chunks
    }
    for chunk_id, row, document_id, path in corpus.rows(
        "SELECT c.chunk_id, c.id, d.document_id, f.path FROM chunk c "
        "JOIN document d ON d.id = c.document JOIN file f ON f.id = d.file "
        "WHERE c.chunk_id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(names)),),
    ):
        if _is_own(chunk_id, document_id):
            held.setdefault(chunk_id, document_id)
        elif held.get(chunk_id, document_id) != document_id:
            renamed.append(Renamed(path, f"chunk_id: {chunk_id}"))
            _rename_stored_chunks(corpus, [(f"{document_id}#{chunk_id}", row)])

    def settled(document: StoredDocument, path: str) -> StoredDocument:
        document_id = document.metadata.document_id
        chunks: list[StoredChunk] = []
        for chunk in document.chunks:
            if held.get(chunk.chunk_id, document_id) == document_id:
                chunks.append(chunk)
            else:
                renamed.append(Renamed(path, f"chunk_id: {chunk.chunk_id}"))
                chunks.append(chunk._replace(chunk_id=f"{document_id}#{chunk.chunk_id}"))
        return replace(document, chunks=tuple(chunks))

    return [
        (file, [settled(document, file.path) for document in documents])
        for file, documents in files
    ]


def _is_claim(document: StoredDocument, path: str) -> bool:
    metadata = document.metadata
    return _is_foreign(metadata.trust_tier, metadata.origin) or _claims(
        metadata.self_declared, metadata.document_id, metadata.source_id, path
    )


def _is_foreign(trust_tier: str, origin: str) -> bool:
    # Its folder may have the name of one of ours, so that both give the same ids.
    return trust_tier == "untrusted" or origin != "internal"


def _claims(self_declared: Sequence[str], document_id: str, source_id: str, path: str) -> bool:
    # The source is a part of the id, and may contain a slash.
    if "source_id" in self_declared:
        return True
    is_own = f"{document_id}#".startswith(f"{source_id}/{path}#")
    return "document_id" in self_declared and not is_own


def _is_own(chunk_id: str, document_id: str) -> bool:
    return chunk_id.startswith(f"{document_id}#")


def _fallback(document_id: str, source_id: str, path: str) -> str:
    return f"{source_id}/{path}#{document_id}"


def _with_prefix(chunk_id: str, before: str, after: str) -> str:
    return after + chunk_id[len(before) :] if _is_own(chunk_id, before) else chunk_id


def _renamed_document(document: StoredDocument, path: str) -> StoredDocument:
    metadata = document.metadata
    before = metadata.document_id
    after = _fallback(before, metadata.source_id, path)
    return replace(
        document,
        metadata=metadata._replace(
            document_id=after,
            self_declared=tuple(key for key in metadata.self_declared if key != "document_id"),
            refused_claims=(*metadata.refused_claims, f"document_id: {before}"),
        ),
        chunks=tuple(
            chunk._replace(chunk_id=_with_prefix(chunk.chunk_id, before, after))
            for chunk in document.chunks
        ),
    )


def _rename_stored_chunks(corpus: Corpus, changes: Sequence[tuple[str, int]]) -> None:
    with digests.renewing(corpus, [], chunk=[row for _, row in changes]):
        corpus.run_many("UPDATE chunk SET chunk_id = ? WHERE id = ?", changes)


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
