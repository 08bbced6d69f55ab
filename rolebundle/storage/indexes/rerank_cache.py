"""The vectors of passages that were reranked, in a file beside the corpus.

Retrieval never writes the corpus (law 8), so this is a file of its own. No answer depends on it: a
vector depends on the model and the text alone, so the cache changes only how long an answer takes.
The caller reports an error of this file and computes the vectors again.

A vector can be turned back into text. So only the owner can read the file, and a purge deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, WrongFile
from rolebundle.storage.files.file_format import FileFormat
from rolebundle.storage.files.sqlite_file import SqliteFile, create_file, is_missing_or_empty
from rolebundle.storage.indexes.vector_cache import model_key
from rolebundle.storage.location import is_there, rerank_cache_path

VERSION = 1
MAX_BYTES = 256 * 1024 * 1024
"""The size of the file: about 120,000 vectors of 384 dimensions."""
PATIENCE_MS = 250
"""Maximum time that an answer waits for this file."""
SCHEMA = """CREATE TABLE vector (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum BLOB NOT NULL,
    UNIQUE (model, input_hash)
) STRICT"""

_BYTES_PER_DIMENSION = 4
_BYTES_ON_DISK = 1.5
"""What a byte of a vector takes in the file, at most: keys, checksums and partly filled pages."""
_FILES = ("", "-wal", "-shm", "-journal")


def load(path: Path, model: ModelIdentity, input_hashes: Sequence[str]) -> dict[str, bytes]:
    """The stored vectors of some texts.

    Args:
        path: the cache's file, which may be missing.
        model: the model that made them.
        input_hashes: the hashes of the texts; see :func:`rolebundle.embedding.texts.input_hash`.

    Returns:
        Input hash → little-endian float32 bytes, ``4 · dimensions`` of them. A vector that does
        not match its checksum is left out.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    if not input_hashes or is_missing_or_empty(path):
        return {}
    key = model_key(model)
    with _open_read_only(path) as cache:
        rows = cache.rows(
            "SELECT input_hash, vector, checksum FROM vector WHERE model = ? "
            "AND length(vector) = ? AND input_hash IN (SELECT value FROM json_each(?))",
            (key, _BYTES_PER_DIMENSION * model.dimensions, json.dumps(list(input_hashes))),
        )
    return {
        input_hash: vector
        for input_hash, vector, checksum in rows
        if checksum == _checksum(key, input_hash, vector)
    }


def store(path: Path, model: ModelIdentity, vectors: Mapping[str, bytes]) -> None:
    """Store vectors. Beyond the limit, the oldest are deleted.

    Args:
        path: the cache's file; it is created if it is missing.
        model: the model that made them.
        vectors: input hash → little-endian float32 bytes.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: they cannot be stored. A file of
            another format is not changed.
    """
    if not vectors:
        return
    key = model_key(model)
    with _open_for_writing(path) as cache, cache.writing():
        cache.run_many(
            "INSERT OR REPLACE INTO vector (model, input_hash, vector, checksum) "
            "VALUES (?, ?, ?, ?)",
            (
                (key, input_hash, vector, _checksum(key, input_hash, vector))
                for input_hash, vector in vectors.items()
            ),
        )
        _delete_oldest(cache)


def size(path: Path) -> tuple[int, int]:
    """The number of vectors, and the bytes of the file that they use.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    if is_missing_or_empty(path):
        return 0, 0
    with _open_read_only(path) as cache:
        return int(cache.value("SELECT count(*) FROM vector")), _bytes(cache)


def is_full(path: Path, more: int) -> bool:
    """Whether so many more bytes of vectors would make the cache delete its oldest ones.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    return size(path)[1] + _BYTES_ON_DISK * more > MAX_BYTES


def erase(corpus: Path) -> None:
    """Delete the cache of a corpus with the files that SQLite puts beside it.

    An SQLite file of another application is not deleted, because it has no vectors of this corpus.

    Raises:
        StorageError: it cannot be deleted, or is not an SQLite file.
    """
    path = rerank_cache_path(corpus)
    if is_there(path) and not is_missing_or_empty(path):
        try:
            _open_read_only(path).close()
        except WrongFile as error:
            if error.code == "foreign_file":
                return
        except RolebundleError as error:
            raise StorageError(
                "rerank_cache_stays",
                f"{path}: it may be a damaged rerank cache, or something else: {error.message}",
                "delete it, or move it away if it is something else",
            ) from error
    try:
        for suffix in _FILES:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            "rerank_cache_stays",
            f"{path}: the rerank cache could not be deleted ({error.strerror})",
            "delete it yourself",
        ) from error


def _delete_oldest(cache: SqliteFile) -> None:
    """Delete the oldest tenth until the rest fits. SQLite uses the freed pages again."""
    while _bytes(cache) > MAX_BYTES:
        first, last = cache.rows("SELECT min(id), max(id) FROM vector")[0]
        if first is None:
            return
        cache.run("DELETE FROM vector WHERE id <= ?", (first + (last - first) // 10,))


def _bytes(cache: SqliteFile) -> int:
    used = cache.value("PRAGMA page_count") - cache.value("PRAGMA freelist_count")
    return int(used * cache.value("PRAGMA page_size"))


def _checksum(key: str, input_hash: str, vector: bytes) -> bytes:
    return blake2b(f"{key}\0{input_hash}\0".encode() + vector, digest_size=8).digest()


def _open_read_only(path: Path) -> SqliteFile:
    return SqliteFile.open_read_only(path, CACHE_FORMAT, patience_ms=PATIENCE_MS)


def _open_for_writing(path: Path) -> SqliteFile:
    if is_missing_or_empty(path):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(path) from error
        create_file(path, CACHE_FORMAT, lambda cache: cache.run(SCHEMA))
    cache = SqliteFile.open_for_writing(path, CACHE_FORMAT, wait=PATIENCE_MS)
    # NORMAL is enough: what is lost with the power is computed again.
    cache.run("PRAGMA synchronous = normal")
    return cache


def _unusable(path: Path) -> StorageError:
    return StorageError(
        "rerank_cache_unusable",
        f"{path}: the rerank cache cannot be a file here",
        "move away what has its name, and give yourself permission to the corpus's folder",
    )


def _cache_error(path: Path, error: RolebundleError) -> RolebundleError:
    """The error with the next step for the cache, and not for a corpus."""
    if not isinstance(error, CorpusCorrupt):
        return error
    return CorpusCorrupt(
        "rerank_cache_damaged", error.message, "delete the file; it is created again"
    )


CACHE_FORMAT = FileFormat(
    name="a rerank cache",
    application_id=0x5242524B,  # ``RBRK``
    oldest=VERSION,
    newest=VERSION,
    foreign_hint="move it away: this name is the cache's",
    newer_hint="upgrade rolebundle, or delete the cache",
    missing=_unusable,
    translate=_cache_error,
)
