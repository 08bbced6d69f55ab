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
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

import apsw

from rolebundle.contracts.index import ModelIdentity
from rolebundle.errors import CorpusCorrupt, StorageError, WrongFile
from rolebundle.storage.connection import Corpus
from rolebundle.storage.failures import mapped
from rolebundle.storage.location import is_there, rerank_cache_path
from rolebundle.storage.opening import connect_read_only, harden
from rolebundle.storage.vector_cache import model_key

APPLICATION_ID = 0x5242524B
"""``RBRK`` in the file's header."""
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
_HEADER = b"SQLite format 3\0"
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
    if not input_hashes or _is_nothing(path):
        return {}
    key = model_key(model)
    with _reading(path) as cache:
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
    if not recognition or _is_nothing(path):
        return None
    with _reading(path) as cache:
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
    with _errors(path):
        _make(path)
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        with Corpus(path, db, writable=True) as cache:
            # A foreign file's log is not folded by having been looked at.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.set_busy_timeout(PATIENCE_MS)
            harden(db)
            _fill_or_check(cache)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            # NORMAL: what a power loss takes is made anew.
            db.pragma("synchronous", "normal")
            with cache.writing():
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
    if _is_nothing(path):
        return 0, 0
    with _reading(path) as cache:
        return int(cache.value("SELECT count(*) FROM vector")), _bytes(cache)


def erase(corpus: Path) -> None:
    """Delete the cache of a corpus with all that SQLite keeps beside it.

    Another SQLite file that has its name is left alone: it has no vector of ours.

    Raises:
        StorageError: it cannot be deleted, or what lies there cannot be told from a damaged cache.
    """
    path = rerank_cache_path(corpus)
    try:
        if is_there(path):
            with path.open("rb") as stream:
                header = stream.read(100)
            if header.startswith(_HEADER) and not _may_be_ours(header):
                return
            if header and not header.startswith(_HEADER):
                raise StorageError(
                    "rerank_cache_stays",
                    f"{path}: has the name of the rerank's cache and is none, or is damaged",
                    "delete it, or move it away where it is something else",
                )
        for suffix in _FILES:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            "rerank_cache_stays",
            f"{path}: the rerank's cache could not be deleted ({error.strerror})",
            "delete it yourself",
        ) from error


def _may_be_ours(header: bytes) -> bool:
    identity, pages = (int.from_bytes(header[at : at + 4], "big") for at in (68, 28))
    # Until its log is folded for the first time, the file itself is one page without an identity.
    return identity == APPLICATION_ID or (identity == 0 and pages <= 1)


def _is_nothing(path: Path) -> bool:
    # A file without bytes is what a kill in the first moment leaves.
    try:
        return path.is_file() and path.stat().st_size == 0 if is_there(path) else True
    except OSError:
        return False


def _make(path: Path) -> None:
    """See that there is a file, readable by its owner alone: SQLite's files beside it follow."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if _is_nothing(path):
            path.chmod(0o600)


def _fill_or_check(cache: Corpus) -> None:
    if _is_blank(cache):
        cache.run("PRAGMA journal_mode = wal")
        with cache.writing():
            # Looked at again: of two that begin the file, the second finds it filled.
            if _is_blank(cache):
                cache.run(f"PRAGMA application_id = {APPLICATION_ID}")
                cache.run(f"PRAGMA user_version = {VERSION}")
                cache.run(SCHEMA)
    _check_identity(cache.db, cache.path)


def _is_blank(cache: Corpus) -> bool:
    # Also what a kill left that came after the first page and before the rest.
    unnamed = cache.value("PRAGMA application_id") == 0
    return unnamed and not cache.value("SELECT count(*) FROM sqlite_schema")


def _check_identity(db: apsw.Connection, path: Path) -> None:
    if db.pragma("application_id") != APPLICATION_ID:
        raise WrongFile(
            "foreign_file",
            f"{path}: is an SQLite file, and no cache of a rerank; it was not changed",
            "move it away: this name is the cache's",
        )
    version = db.pragma("user_version")
    if version != VERSION:
        raise WrongFile(
            "newer_schema",
            f"{path}: is a cache of version {version}, this rolebundle knows {VERSION}; "
            "it was not changed",
            "upgrade rolebundle, or delete the cache",
        )


def _forget_the_oldest(cache: Corpus) -> None:
    """Delete tenths of what there is until the rest fits; freed pages are used again."""
    while _bytes(cache) > LIMIT_BYTES:
        first, last = cache.rows("SELECT min(id), max(id) FROM vector")[0]
        if first is None:
            return
        cache.run("DELETE FROM vector WHERE id <= ?", (first + (last - first) // 10,))


def _bytes(cache: Corpus) -> int:
    used = cache.value("PRAGMA page_count") - cache.value("PRAGMA freelist_count")
    return int(used * cache.value("PRAGMA page_size"))


def _checksum(key: str, input_hash: str, vector: bytes) -> bytes:
    return blake2b(f"{key}\0{input_hash}\0".encode() + vector, digest_size=8).digest()


@contextmanager
def _reading(path: Path) -> Iterator[Corpus]:
    with _errors(path):
        db, _ = connect_read_only(path, PATIENCE_MS)
        with Corpus(path, db, writable=False) as cache:
            harden(db)
            db.pragma("query_only", True)
            _check_identity(db, path)
            yield cache


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Raise what happens to the file as errors that speak of the cache."""
    try:
        with mapped(path):
            yield
    except CorpusCorrupt as error:
        raise CorpusCorrupt(
            "rerank_cache_damaged", error.message, "delete the file: it is made anew"
        ) from error
    except OSError as error:
        raise StorageError(
            "rerank_cache_unusable",
            f"{path}: {error.strerror}",
            "give yourself permission to the corpus's folder",
        ) from error
