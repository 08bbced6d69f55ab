"""Reading and checking the signed manifest of a replica, and the file that it describes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import CorpusCorrupt, WrongFile
from rolebundle.replication.signatures import PublicKey, is_signed_by, key_id
from rolebundle.storage import seal
from rolebundle.storage.backup import page_problem
from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import CorpusCounts, corpus_counts
from rolebundle.storage.opening import corpus_format, latest_version, schema_version
from rolebundle.storage.records.replica import stored_manifest
from rolebundle.storage.replicas import replica_file


def read_manifest(content: str | bytes, source: str, key: PublicKey) -> SignedManifest:
    """A manifest whose signature is valid.

    Raises:
        CorpusCorrupt: ``bad_manifest`` or ``bad_signature``.
    """
    try:
        signed = SignedManifest.model_validate_json(content)
    except ValueError as error:
        raise CorpusCorrupt(
            "bad_manifest",
            f"{source}: the manifest cannot be read",
            "publish the replica again; what it holds cannot be trusted",
        ) from error
    if not is_signed_by(signed, key):
        raise CorpusCorrupt(
            "bad_signature",
            f"{source}: the manifest has no valid signature of the key {key_id(key)} "
            f"(it names the key {signed.key_id[:16]!r})",
            "compare FILE.pub with that of the publisher; do not use this replica",
        )
    return signed


def check_acceptable(
    manifest: ReplicaManifest, at_hand: ReplicaManifest | None, source: str
) -> None:
    """Check that a signed manifest may take the place of the one at hand.

    Raises:
        WrongFile: it has another schema, or is of another corpus or publication.
        CorpusCorrupt: it has expired, or is older than the one at hand.
    """
    if manifest.schema_version != latest_version():
        is_newer = manifest.schema_version > latest_version()
        raise WrongFile(
            "newer_schema" if is_newer else "older_schema",
            f"{source}: has schema {manifest.schema_version}, this version reads "
            f"{latest_version()}",
            "upgrade rolebundle here" if is_newer else "publish with the version that is used here",
        )
    if at_hand is not None and manifest.corpus_id != at_hand.corpus_id:
        raise WrongFile(
            "other_corpus",
            f"{source}: is a replica of another corpus than the one at hand",
            "name another file with --db",
        )
    if at_hand is not None and manifest.publication != at_hand.publication:
        raise WrongFile(
            "other_publication",
            f"{source}: is of another publication than the one at hand",
            "somebody may have exchanged two replicas: ask its publisher; name another file with "
            "--db if you want this one",
        )
    if manifest.expires_at <= iso_utc(datetime.now(UTC)):
        raise CorpusCorrupt(
            "offer_expired",
            f"{source}: this replica expired at {manifest.expires_at}",
            "ask its publisher to publish again",
        )
    if at_hand is not None and _age(manifest) < _age(at_hand):
        raise CorpusCorrupt(
            "replica_rolled_back",
            f"{source}: generation {manifest.generation} of {manifest.published_at} is older than "
            f"the one at hand, generation {at_hand.generation} of {at_hand.published_at}",
            "somebody may have put an older replica in its place: ask its publisher",
        )


def _age(manifest: ReplicaManifest) -> tuple[int, int, str]:
    return (manifest.purge_generation, manifest.generation, manifest.published_at)


def verify_replica(file: Path, source: str, key: PublicKey) -> SignedManifest:
    """Check that a file is a replica that the owner of a key built.

    Args:
        file: the file; it has no log.
        source: where it is from, for errors.
        key: the publisher's key.

    Returns:
        The manifest in the file.

    Raises:
        CorpusCorrupt: it is not: ``replica_unsound``, ``bad_manifest``, ``bad_signature``.
        WrongFile: it is of another application, or has a newer schema.
    """
    try:
        with Corpus.open_read_only(file, corpus_format()) as corpus, corpus.reading():
            stored = stored_manifest(corpus)
            if stored:
                signed = read_manifest(stored, source, key)
                problem = _problem(corpus, stored, signed)
            else:
                problem = "it has no manifest"
    except WrongFile as error:
        raise WrongFile(error.code, error.message.replace(str(file), source), error.hint) from error
    except CorpusCorrupt as error:
        if error.code in ("bad_manifest", "bad_signature"):
            raise
        problem = error.message.removeprefix(f"{file}: ")
    if problem:
        raise CorpusCorrupt(
            "replica_unsound",
            f"{source}: the replica cannot be trusted: {problem}",
            "ask its publisher to publish again",
        )
    return signed


def _problem(corpus: Corpus, stored: str, signed: SignedManifest) -> str:
    """In what a file differs from its manifest; empty if it does not."""
    manifest = signed.manifest
    # Of what is signed there is one way to write it. Whoever reads it later reads the same.
    if stored != signed.model_dump_json():
        return "its manifest is not written as a publisher writes it"
    described = CorpusCounts(
        manifest.corpus_id, manifest.generation, manifest.documents, manifest.chunks
    )
    if (corpus_counts(corpus), schema_version(corpus)) != (described, manifest.schema_version):
        return "the file is of another generation than its manifest"
    # Before SQLite's check, which runs the code of extensions on what is in the file.
    if replica_file.content_digest(corpus) != manifest.content_digest:
        return "its rows are not those that were signed"
    seal.verify(corpus)
    return page_problem(corpus)
