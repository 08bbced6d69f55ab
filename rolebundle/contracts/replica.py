"""Replicas: the signed manifest of a replica, and the answers of `publish` and `pull`."""

from typing import Literal

from rolebundle.contracts.base import Contract


class PublishedIndex(Contract):
    """An embedding index of a replica: its model, and the version of the chunker."""

    provider: str
    model: str
    model_digest: str
    dimensions: int
    chunker: str


class ReplicaManifest(Contract):
    """What a replica holds, and for how long it may answer. Times are ISO 8601 in UTC.

    Attributes:
        version: of this format.
        publisher: the name that the publisher gave itself.
        agent: the only agent that the replica answers; empty if it answers everyone.
        corpus_id: identity of the publisher's corpus, and of the replica.
        generation: counts the changes of what the replica holds.
        purge_generation: counts the purges of what this replica, or an earlier one of the same
            publication, held.
        content_digest: digest of the documents, passages and vectors, however they are stored.
        stored_digest: digest of every row of every table as it is stored, indexes included.
        schema_version: version of the schema.
        documents: number of documents; ``chunks`` likewise.
        quarantined: how many documents only the quarantine keeps from this agent.
        indexes: the embedding indexes.
        overlays: role → digest of the publisher's overlay. The overlays are not in the replica.
        policy_digest: digest of the policy in the replica; empty if it has none.
        published_at: when it was published.
        expires_at: from then on no `pull` accepts it, and its answers have the warning
            ``REPLICA_STALE``.
        refuses_at: from then on it gives no answers.
    """

    version: Literal[1] = 1
    publisher: str
    agent: str
    corpus_id: str
    generation: int
    purge_generation: int
    content_digest: str
    stored_digest: str
    schema_version: int
    documents: int
    chunks: int
    quarantined: int
    indexes: list[PublishedIndex]
    overlays: dict[str, str]
    policy_digest: str
    published_at: str
    expires_at: str
    refuses_at: str


class SignedManifest(Contract):
    """A manifest with its signature.

    Attributes:
        key_id: the first 16 hexadecimal digits of the SHA-256 of the raw public key.
        signature: Ed25519, in base64, over the manifest as JSON with sorted keys, without blanks,
            in ASCII.
    """

    manifest: ReplicaManifest
    key_id: str
    signature: str
