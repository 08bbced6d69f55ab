"""Verifying that the file of a replica is what its publisher signed."""

from __future__ import annotations

from pathlib import Path

from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import CorpusCorrupt, WrongFile
from rolebundle.replication.manifest import read_manifest
from rolebundle.replication.signatures import PublicKey
from rolebundle.storage import seal
from rolebundle.storage.backup import page_problem, sha256_of
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.opening import corpus_format, schema_version
from rolebundle.storage.records import replica as replicas
from rolebundle.storage.replicas import replica_file

_UNSOUND, _OWN_CODES = "replica_unsound", ("replica_unsound", "bad_manifest", "bad_signature")


def verify_replica(
    file: Path, source: str, key: PublicKey, offered: SignedManifest | None = None
) -> SignedManifest:
    """Check that a file is a replica that the owner of a key built.

    Args:
        file: the file; it has no log.
        source: where it is from, for errors.
        key: the publisher's key.
        offered: the manifest beside the published file; ``None`` if there is none.

    Returns:
        The manifest in the file.

    Raises:
        CorpusCorrupt: it is not: ``replica_unsound``, ``bad_manifest``, ``bad_signature``.
        WrongFile: it is of another application, or has a newer schema.
    """
    if offered is not None and sha256_of(file) != offered.manifest.file_digest:
        raise _unsound(source, "the file is not the one that the manifest describes")
    try:
        with Corpus.open_read_only(file, corpus_format()) as corpus, corpus.reading():
            return _verified(corpus, source, key, offered)
    except WrongFile as error:
        raise WrongFile(error.code, error.message.replace(str(file), source), error.hint) from error
    except CorpusCorrupt as error:
        if error.code in _OWN_CODES:
            raise
        raise _unsound(source, error.message.removeprefix(f"{file}: ")) from error


def without_file_digest(manifest: ReplicaManifest) -> ReplicaManifest:
    """The manifest in the file that a manifest beside it describes."""
    return manifest.model_copy(update={"file_digest": ""})


def _verified(
    corpus: Corpus, source: str, key: PublicKey, offered: SignedManifest | None
) -> SignedManifest:
    stored = replicas.stored_manifest(corpus)
    if not stored:
        raise _unsound(source, "it has no manifest")
    signed = read_manifest(stored, source, key)
    manifest = signed.manifest
    # Of what is signed there is one way to write it. Whoever reads it later reads the same.
    if stored != signed.model_dump_json():
        raise _unsound(source, "its manifest is not written as a publisher writes it")
    if manifest.file_digest or (offered and without_file_digest(offered.manifest) != manifest):
        raise _unsound(source, "the manifest in the file is not the one beside it")
    counts = corpus_counts(corpus)
    if (counts.corpus_id, counts.generation, schema_version(corpus)) != (
        manifest.corpus_id,
        manifest.generation,
        manifest.schema_version,
    ):
        raise _unsound(source, "the file is of another generation than its manifest")
    # Before SQLite's check, which runs the code of extensions on what is in the file.
    if replica_file.stored_digest(corpus) != manifest.stored_digest:
        raise _unsound(source, "its rows are not those that were signed")
    problem = page_problem(corpus)
    if problem:
        raise _unsound(source, problem)
    seal.verify(corpus)
    return signed


def _unsound(source: str, problem: str) -> CorpusCorrupt:
    return CorpusCorrupt(
        _UNSOUND,
        f"{source}: the replica cannot be trusted: {problem}",
        "ask its publisher to publish again",
    )
