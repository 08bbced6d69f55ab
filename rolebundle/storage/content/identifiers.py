"""Who keeps an id that two files claim.

By right a document has the id that is made of its source and path, and one that its owner gives it;
and the ids of chunks that begin with its own. An id that a document declares for itself gives way,
whoever was stored first. Of two such claims the first one is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.stored_document import StoredDocument, StoredFile
from rolebundle.storage.files.stored_values import typed

Files = Sequence[tuple[StoredFile, Sequence[StoredDocument]]]


def contested(corpus: Corpus, files: Files) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The files that declare an id which a document of ``files`` has by right.

    Returns:
        Of ``files``: location → id. Of the stored files: location → path and id.
    """
    by_right = {
        name: file.location
        for file, documents in files
        for name, is_right in _ids(file, documents)
        if is_right
    }
    refused = {
        file.location: name
        for file, documents in files
        for name, is_right in _ids(file, documents)
        if not is_right and by_right.get(name, file.location) != file.location
    }
    displaced = {
        location: (path, name)
        for name, location, path, is_right in _stored(corpus, sorted(by_right))
        if not is_right and by_right[name] != location
    }
    return refused, displaced


def _ids(file: StoredFile, documents: Sequence[StoredDocument]) -> Iterator[tuple[str, bool]]:
    """Each id of the documents and chunks, with whether it is theirs by right."""
    for document in documents:
        metadata = document.metadata
        name, declared = metadata.document_id, metadata.self_declared
        is_right = not _is_claim(declared, name, metadata.source_id, file.path)
        yield name, is_right
        for chunk in document.chunks:
            yield chunk.chunk_id, is_right and chunk.chunk_id.startswith(f"{name}#")


def _stored(corpus: Corpus, names: Sequence[str]) -> Iterator[tuple[str, str, str, bool]]:
    """Each of these ids that is stored, the location and path of its file, and whose right."""
    chosen = (json.dumps(names),)
    origin = "JOIN file f ON f.id = d.file JOIN source s ON s.id = d.source"
    columns = "f.location, f.path, d.document_id, s.source_id, d.self_declared"
    among = "IN (SELECT value FROM json_each(?))"
    for name, location, path, document_id, source_id, declared in [
        *corpus.rows(
            f"SELECT d.document_id, {columns} FROM document d {origin} WHERE d.document_id {among}",
            chosen,
        ),
        *corpus.rows(
            f"SELECT c.chunk_id, {columns} FROM chunk c JOIN document d ON d.id = c.document "
            f"{origin} WHERE c.chunk_id {among}",
            chosen,
        ),
    ]:
        [(own,)] = typed([(declared,)], tuple[str, ...])
        is_right = not _is_claim(own, document_id, source_id, path)
        is_own = name == document_id or name.startswith(f"{document_id}#")
        yield name, location, path, is_right and is_own


def _is_claim(declared: Sequence[str], document_id: str, source_id: str, path: str) -> bool:
    # The source is a part of the id, and may contain a slash.
    if "source_id" in declared:
        return True
    is_own = f"{document_id}#".startswith(f"{source_id}/{path}#")
    return "document_id" in declared and not is_own
