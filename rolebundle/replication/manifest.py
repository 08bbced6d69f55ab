"""Reading and checking the signed manifest of a replica."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.replica import ReplicaManifest, SignedManifest
from rolebundle.errors import CorpusCorrupt, RolebundleError, WrongFile
from rolebundle.replication.signatures import PublicKey, is_signed_by, key_id
from rolebundle.storage.opening import latest_version


def read_manifest(content: str | bytes, source: str, key: PublicKey) -> SignedManifest:
    """A manifest whose signature is valid.

    Raises:
        CorpusCorrupt: ``bad_manifest`` or ``bad_signature``.
    """
    try:
        signed = SignedManifest.model_validate_json(content)
    except (ValidationError, ValueError) as error:
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


def with_note_on_replica(
    error: RolebundleError, at_hand: ReplicaManifest | None
) -> RolebundleError:
    """The error, saying also that the replica at hand stays."""
    if at_hand is None:
        return error
    note = f"; the replica at hand, generation {at_hand.generation}, stays"
    return type(error)(error.code, f"{error.message}{note}", error.hint)
