"""The vectors of passages and questions that a rerank looked at, in a file beside the corpus.

A retrieve never writes the corpus (law 8), and no answer depends on this file: a vector is a pure
function of the model and the text, found here or made anew, so what others put in changes only how
long an answer takes. Whatever is wrong with the file is an error that the caller says and lives
with. Vectors can be turned back into text: the file is its owner's alone, and a purge deletes it.

Of a passage and of a question, which is a user's text, the hash and the vector are stored and no
word. That is not nothing: who has the file can find out whether a question that he guesses was
asked.

What a model turned out to be when it was loaded is stored as well, so that it need not be loaded
to be known: as rows like the others, with the same bound, checksum and end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import CorpusCorrupt, RolebundleError, StorageError, WrongFile
from rolebundle.storage.location import is_there, rerank_cache_path
from rolebundle.storage.sqlite_file import FileFormat, SqliteFile, create_file, is_missing_or_empty
from rolebundle.storage.vector_index import model_key

VERSION = 1
LIMIT_BYTES = 64 * 1024 * 1024
"""What the file may hold: some 40,000 vectors of 384 dimensions. The oldest go first."""
PATIENCE_MS = 250
"""An answer is worth more than what is kept of it: nobody waits for this file for long."""
SCHEMA = """CREATE TABLE vector (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum BLOB NOT NULL,
    UNIQUE (model, input_hash)
) STRICT"""

_MODELS = "models"
"""Stands in a row for the model's key, which is 24 digits, where the row is about a model."""
_BYTES_A_DIMENSION = 4
_FILES = ("", "-wal", "-shm", "-journal")


def recall(path: Path, model: ModelIdentity, input_hashes: Sequence[str]) -> dict[str, bytes]:
    """The vectors that are kept of these texts.

    Args:
        path: the cache's file; where there is none, nothing is kept.
        model: the model that made them; another one's are never found.
        input_hashes: what tells apart the texts that were embedded; a question's is no passage's.

    Returns:
        Input hash → little-endian float32 bytes, ``4 · dimensions`` of them. What does not fit its
        checksum is left out.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    if not input_hashes or is_missing_or_empty(path):
        return {}
    key = model_key(model)
    with _open_read_only(path) as cache:
        found = cache.rows(
            "SELECT input_hash, vector, checksum FROM vector WHERE model = ? "
            "AND length(vector) = ? AND input_hash IN (SELECT value FROM json_each(?))",
            (key, _BYTES_A_DIMENSION * model.dimensions, json.dumps(list(input_hashes))),
        )
    return {
        input_hash: vector
        for input_hash, vector, checksum in found
        if checksum == _checksum(key, input_hash, vector)
    }


def recognized(path: Path, recognition: str) -> ModelIdentity | None:
    """What the model was that had this recognition; see ``embed.provider.KnownByFiles``.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    if not recognition or is_missing_or_empty(path):
        return None
    with _open_read_only(path) as cache:
        found = cache.rows(
            "SELECT vector, checksum FROM vector WHERE model = ? AND input_hash = ?",
            (_MODELS, recognition),
        )
    if not found or found[0][1] != _checksum(_MODELS, recognition, found[0][0]):
        return None
    try:
        return ModelIdentity(**json.loads(found[0][0]))
    except (TypeError, ValueError):
        # Another version of this package knows more of a model.
        return None


def keep(
    path: Path, model: ModelIdentity, vectors: Mapping[str, bytes], recognition: str = ""
) -> None:
    """Keep vectors; the oldest beyond the limit are forgotten.

    Args:
        path: the cache's file; it is made where there is none.
        model: the model that made them.
        vectors: input hash → float32 bytes.
        recognition: by what :func:`recognized` is to find the model; empty for nothing.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: they cannot be kept. A file that is no
            such cache is not changed.
    """
    key = model_key(model)
    rows = [(key, input_hash, vector) for input_hash, vector in vectors.items()]
    if recognition:
        rows.append((_MODELS, recognition, json.dumps(asdict(model)).encode()))
    if not rows:
        return
    with _open_for_writing(path) as cache, cache.writing():
        cache.run_many(
            "INSERT OR REPLACE INTO vector (model, input_hash, vector, checksum) "
            "VALUES (?, ?, ?, ?)",
            ((*row, _checksum(*row)) for row in rows),
        )
        _forget_the_oldest(cache)


def size(path: Path) -> tuple[int, int]:
    """How many rows are kept, and how many bytes of the file they take.

    Raises:
        WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the file cannot be read.
    """
    if is_missing_or_empty(path):
        return 0, 0
    with _open_read_only(path) as cache:
        return int(cache.value("SELECT count(*) FROM vector")), _bytes(cache)


def erase(corpus: Path) -> None:
    """Delete the cache of a corpus with all that SQLite keeps beside it.

    An SQLite file of another application that has its name is left alone: it has no vector of ours.

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


def _forget_the_oldest(cache: SqliteFile) -> None:
    """Delete tenths of what there is until the rest fits; freed pages are used again."""
    while _bytes(cache) > LIMIT_BYTES:
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
    # NORMAL: what a power loss takes is computed again.
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
    return CorpusCorrupt("rerank_cache_damaged", error.message, "delete the file: it is made anew")


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
