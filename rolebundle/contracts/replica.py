"""Replicas: their signed manifest, and the answers of `replica publish` and `replica pull`."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.marks import PersonName


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
        publication: identity of the publication: a hash of its target. Generations of different
            publications cannot be compared.
        generation: counts the changes of what the replica holds.
        purge_generation: counts the purges of what this replica, or an earlier one of the same
            publication, held.
        content_digest: digest of every row of every table as it is stored, indexes included.
        packed_digest: SHA-256 of the compressed file beside the manifest; empty if there is none.
        unpacked_bytes: size of what is in that file.
        schema_version: version of the schema.
        documents: number of documents; ``chunks`` likewise.
        quarantined: how many documents only the quarantine keeps from this agent.
        indexes: the embedding indexes.
        overlays: role → digest of the publisher's overlay. The overlays are not in the replica.
        policy_digest: digest of the policy in the replica; empty if it has none.
        published_at: when it was published.
        expires_at: from then on no `replica pull` accepts it, and its answers have the warning
            ``REPLICA_STALE``.
        refuses_at: from then on it gives no answers.
    """

    version: Literal[1] = 1
    publisher: PersonName
    agent: str
    corpus_id: str
    publication: str = ""
    generation: int
    purge_generation: int
    content_digest: str
    packed_digest: str = ""
    unpacked_bytes: int = 0
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


class StoreHistory(Contract):
    """The older states of a replica in the store that it was published to.

    Versions, snapshots and backups that the store makes by itself are not seen.

    Attributes:
        erased: the states that were removed.
        left: the states that are still there.
        problem: why states are left, or are not known; empty if there was none.
    """

    erased: list[str] = []
    left: list[str] = []
    problem: str = ""


class PublishReport(Contract):
    """`replica publish`.

    Attributes:
        target: where the replica is published.
        manifest: the manifest in the replica.
        key_id: of the key that signed it.
        former_key_id: of the key that signed the last one; empty if there was none.
        changed: whether the replica holds something else than the last one.
        moved_bytes: how many bytes the transport wrote or sent.
        history: if the replica lacks something that the last one held, the older states in the
            store that were removed, and those that were not; else null.
    """

    target: str
    manifest: ReplicaManifest
    key_id: str
    former_key_id: str
    changed: bool
    moved_bytes: int
    history: StoreHistory | None = None


class PullReport(Contract):
    """`replica pull`.

    Attributes:
        source: where the replica was published.
        location: path of the replica on this machine.
        state: ``updated`` if it was replaced, ``current`` if it is the published one already.
        manifest: the manifest in the replica.
        key_id: of the key that signed it.
        former_generation: the generation that was replaced; null if there was no replica.
        moved_bytes: how many bytes the transport read or received.
        overlays_changed: roles whose overlay on this machine differs from the publisher's.
        overlays_missing: roles of the publisher that have no overlay on this machine.
    """

    source: str
    location: str
    state: Literal["updated", "current"]
    manifest: ReplicaManifest
    key_id: str
    former_generation: int | None
    moved_bytes: int
    overlays_changed: list[str] = []
    overlays_missing: list[str] = []
