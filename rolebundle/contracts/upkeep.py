"""The answers of the owner's commands: status, drafts, backups, purges, replicas, indexes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.request import PersonName
from rolebundle.contracts.terms import TrustTier


class SourceStatus(Contract):
    """Numbers of one source. ``trust_tiers`` has the number of documents of each trust tier."""

    source_id: str
    documents: int
    chunks: int
    trust_tiers: dict[str, int]


class IndexStatus(Contract):
    """One embedding index.

    Attributes:
        digest: identifies the version of the model.
        query_prefix: text that is put before a query.
        passage_prefix: text that is put before a passage.
        chunker: version of the chunker and of the text that is embedded for a chunk.
        active: whether this index is searched.
        vectors: number of chunks with a vector.
        waiting: number of chunks without a vector.
        since: time when the index was created, ISO 8601 in UTC.
        noise_floor: the cosine that 95% of unrelated texts have at most by this model, measured on
            a fixed sample, in [-1, 1]; missing if it was not measured yet.
        related_cosine: the cosine that 90% of related texts have at most, likewise.
    """

    id: int
    provider: str
    model: str
    digest: str
    dimensions: int
    query_prefix: str
    passage_prefix: str
    normalization: str
    chunker: str
    active: bool
    vectors: int
    waiting: int
    since: str
    noise_floor: float | None = None
    related_cosine: float | None = None


class SelfDeclaredDocument(Contract):
    """A document whose authority is its own declaration.

    ``keys`` are ``trust_tier``, ``supersedes`` or both; ``unknown`` if an earlier version of
    rolebundle stored the document, until the next `ingest` of it.
    """

    document_id: str
    path: str
    trust_tier: TrustTier
    keys: list[str]


class PathFlags(Contract):
    """Flags of an earlier `ingest`, which hold for every later one of a path and what is below it.

    ``location`` is an absolute path, or empty for every path. ``flags`` are ``key=value``, or
    ``no-manifests``. ``lost=True``: a repair lost the flags, and an ingest without new ones is
    refused.
    """

    location: str
    flags: list[str]


class CheckProblem(Contract):
    """A problem that a check of the corpus found."""

    code: str
    message: str


class WatchStatus(Contract):
    """Of `watch`, which keeps the corpus in step with its roots.

    Attributes:
        running: whether it runs.
        problem: the code of what keeps it from going on, or why it ended; empty if nothing does.
    """

    running: bool
    problem: str = ""


class ReplicaStatus(Contract):
    """What a replica says of itself; see ``ReplicaManifest``. Times are ISO 8601 in UTC.

    Attributes:
        agent: the only agent that it answers; empty if it answers everyone.
        expired: whether its answers have the warning ``REPLICA_STALE`` now.
        refusing: whether it gives no answers now.
    """

    publisher: str
    agent: str
    generation: int
    purge_generation: int
    published_at: str
    expires_at: str
    refuses_at: str
    key_id: str
    expired: bool
    refusing: bool


class PublicationStatus(Contract):
    """What was published to one target.

    Attributes:
        agent: for whom; empty for whoever can read the replica.
        published_at: when it was last published, as ISO 8601 in UTC; empty if no publish was
            completed.
        purge_pending: whether something was purged that the published replica may still hold.
    """

    target: str
    agent: str
    generation: int
    published_at: str
    purge_pending: bool


class CorpusStatus(Contract):
    """The answer to `status`.

    Attributes:
        location: path of the corpus file.
        bytes: size of the corpus file.
        waiting: number of chunks without a vector in the active index.
        model_reason: why it has the model that it has. Only the command shows it.
        building: how far the index of its contextual model is; empty if none is being built.
        dominating: which document has more than half of the passages of a corpus with more than ten
            documents, and what to do; empty if none has. Only the command shows it.
        self_declared: documents whose authority is their own declaration: a trust tier above
            `general`, or what they supersede. Only the command lists them.
        partly_read: number of documents of which a reader left out a tenth or more.
        path_flags: flags of earlier ingests that later ones keep. Only the command lists them.
        replica: what it is a copy of; missing if it is not a replica.
        publications: where it was published to. Only the command lists them.
        watch: what `watch` last said; missing if it never ran. Only the command shows it.
    """

    location: str
    bytes: int
    corpus: CorpusState
    sources: list[SourceStatus]
    waiting: int
    indexes: list[IndexStatus] = []
    model_reason: str = ""
    building: str = ""
    dominating: str = ""
    self_declared: list[SelfDeclaredDocument] = []
    partly_read: int = 0
    path_flags: list[PathFlags] = []
    replica: ReplicaStatus | None = None
    publications: list[PublicationStatus] = []
    watch: WatchStatus | None = None


DraftState = Literal["written", "planned", "kept"]
"""``written``; ``planned``: only proposed (``--dry-run``); ``kept``: it was there already."""


class DraftFile(Contract):
    """A file of settings. ``content`` is its text; empty if it was kept."""

    path: str
    state: DraftState
    content: str = ""


class InitReport(Contract):
    """`init`.

    Attributes:
        folder: the folder that was looked at.
        files: number of files that an ingest would read.
        left_out: number of files and folders that an ingest leaves out by their name or size, by
            code.
        sources: number of files by source id, as the proposed manifest declares them. Empty if it
            proposes none, or if a manifest was kept.
        document_types: number of files by document type, as their names and folders show it;
            without files of no type. Empty if a manifest was kept.
        drafts: the files that were written, or would be.
        remarks: what a person should know.
        next: the next commands.
    """

    folder: str
    files: int
    left_out: dict[str, int]
    sources: dict[str, int]
    document_types: dict[str, int]
    drafts: list[DraftFile]
    remarks: list[str] = []
    next: list[str]


class OverlayDraftReport(Contract):
    """`overlay new`.

    Attributes:
        role_id: the role.
        draft: the file.
        remarks: what a person should know.
        next: the next commands.
    """

    role_id: str
    draft: DraftFile
    remarks: list[str] = []
    next: list[str]


class BackedUpFile(Contract):
    """A file of a backup. ``sha256`` is hexadecimal."""

    name: str
    bytes: int
    sha256: str


class BackupManifest(Contract):
    """What a backup holds: the file FILE.manifest.json beside it.

    Attributes:
        version: of this format.
        created_at: ISO 8601 in UTC.
        corpus_id: identity of the corpus.
        schema_version: version of its schema.
        generation: how many writes it had.
        documents: number of documents; ``chunks`` likewise.
        policy_digest: digest of the policy in the corpus; empty if it has none.
        overlays: what earlier versions recorded of overlays; it is not read.
        corpus: the corpus file.
        audit: the audit's file; null if there was none.
        audit_head: ``seq:hash`` of the audit's last row; empty if there was no intact audit.
    """

    version: Literal[1] = 1
    created_at: str
    corpus_id: str
    schema_version: int
    generation: int
    documents: int
    chunks: int
    policy_digest: str
    overlays: dict[str, str] = {}
    corpus: BackedUpFile
    audit: BackedUpFile | None
    audit_head: str


class BackupReport(Contract):
    """`corpus backup`.

    Attributes:
        location: path of the backup.
        files: the paths of all of its files.
        manifest: what it holds.
        warnings: what the owner should look at.
    """

    location: str
    files: list[str]
    manifest: BackupManifest
    warnings: list[str] = []


class RestoreReport(Contract):
    """`corpus restore`.

    Attributes:
        backup: path of the backup.
        location: path of the corpus that it replaces.
        done: false if this is only what `--yes` would do.
        created_at: when the backup was made; empty if it has no manifest.
        documents: number of documents in the backup; ``chunks`` likewise.
        replaced: under which name the former file is kept; null if there was none, or not yet done.
        audit: ``kept`` if the present audit stays, because it continues that of the backup;
            ``restored`` if that of the backup takes its place; ``none`` if there is none.
        purges_undone: number of purges after the backup, whose documents come back.
    """

    backup: str
    location: str
    done: bool
    created_at: str
    documents: int
    chunks: int
    replaced: str | None
    audit: Literal["kept", "restored", "none"]
    purges_undone: int


CheckState = Literal["ok", "warning", "problem"]


class DoctorCheck(Contract):
    """One check. ``remedy`` is what to do, such as a command; empty if there is nothing to do."""

    name: str
    state: CheckState
    message: str
    remedy: str = ""


class DoctorReport(Contract):
    """`corpus doctor`.

    Attributes:
        location: path of the corpus file.
        sound: whether no check found a problem. Warnings do not count.
        checks: all checks, in a fixed order.
    """

    location: str
    sound: bool
    checks: list[DoctorCheck]


class RepairReport(Contract):
    """`corpus doctor --repair`.

    Attributes:
        location: path of the corpus file.
        repaired: false if it was sound, so that nothing was done.
        problems: what was mended. Vectors that were removed are made by the next ingest.
    """

    location: str
    repaired: bool
    problems: list[CheckProblem] = []


PurgeState = Literal["pending", "done"]
Obstacle = Literal["", "reader", "writer", "disk", "publisher", "staging"]


class PublishedCopy(Contract):
    """The last replica that was published to a target, and may hold what is purged.

    Whoever pulled it keeps it until the next `replica pull` after ``next_step``.

    Attributes:
        target: where it was published to.
        agent: for whom; empty: for everyone who can read it.
        generation: of the replica.
        published_at: ISO 8601 in UTC, as all times; empty if no publish was completed.
        refuses_at: from then on copies that were not renewed give no answers. Their bytes stay.
        next_step: the command that replaces it.
    """

    target: str
    agent: str
    generation: int
    published_at: str
    refuses_at: str
    next_step: str


class Receipt(Contract):
    """How much was erased. No field is derived from the erased content: the id is random.

    ``publications`` comes from the publisher's own records, and is not stored with the receipt.

    Attributes:
        purged_at: ISO 8601 in UTC.
        documents: number of erased documents; ``chunks`` and ``vectors`` likewise.
        state: ``pending`` means that nothing erased can be retrieved any more, but copies of its
            bytes may still be in the corpus file or the files beside it. ``done`` means that none
            are.
        waiting_for: what prevented the erasing of these copies; empty if ``done``.
        publications: those that were not renewed since a purge of what they held.
    """

    id: str
    purged_at: str
    documents: int
    chunks: int
    vectors: int
    state: PurgeState
    waiting_for: Obstacle = ""
    publications: list[PublishedCopy] = []


class PurgeResult(Contract):
    """`corpus purge`.

    Attributes:
        receipts: one for each purge that was done or is pending.
        returning: files on disk that the next ingest would add again.
        backups: backup files that may still contain the documents.
        backups_deleted: how many backups were deleted.
    """

    receipts: list[Receipt]
    returning: list[str]
    backups: list[str]
    backups_deleted: int


class PurgePreview(Contract):
    """`corpus purge --dry-run`: what would be erased. Without names only ``backups`` is there.

    Attributes:
        backups: backup files that may contain the documents.
        documents: number of documents; ``chunks`` and ``vectors`` likewise.
        decision_ids: ids of the decisions.
        facts: the ids of remembered facts among them that are erased because they cite another one.
        returning: files on disk that the next ingest would add again.
        publications: those that ever held something of it.
    """

    backups: list[str]
    documents: int | None = None
    chunks: int | None = None
    vectors: int | None = None
    document_ids: list[str] | None = None
    decision_ids: list[str] | None = None
    facts: list[str] | None = None
    returning: list[str] | None = None
    publications: list[PublishedCopy] | None = None


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
        indexes, overlays: what earlier versions recorded of them; it is not read.
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
    indexes: list[dict[str, str | int]] = []
    overlays: dict[str, str] = {}
    policy_digest: str
    published_at: str
    expires_at: str
    refuses_at: str

    def has_content_of(self, other: ReplicaManifest) -> bool:
        """Whether both are manifests of one replica, which may have been renewed."""
        return (self.generation, self.content_digest) == (other.generation, other.content_digest)

    def age_hours(self, now: datetime) -> float:
        """Hours since it was published, to a tenth; 0 before that."""
        seconds = (now - datetime.fromisoformat(self.published_at)).total_seconds()
        return round(max(0.0, seconds) / 3600, 1)

    def is_expired(self, now: datetime) -> bool:
        """Whether its answers need a warning, and no `replica pull` accepts it any more."""
        return now >= datetime.fromisoformat(self.expires_at)

    def is_refusing(self, now: datetime) -> bool:
        """Whether it gives no answers any more."""
        return now >= datetime.fromisoformat(self.refuses_at)


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


class PublishReport(Contract):
    """`replica publish`.

    Attributes:
        target: where the replica is published.
        manifest: the manifest in the replica.
        key_id: of the key that signed it.
        former_key_id: of the key that signed the last one; empty if there was none.
        changed: whether the replica holds something else than the last one.
        moved_bytes: how many bytes were written.
    """

    target: str
    manifest: ReplicaManifest
    key_id: str
    former_key_id: str
    changed: bool
    moved_bytes: int


class PullReport(Contract):
    """`replica pull`.

    Attributes:
        source: where the replica was published.
        location: path of the replica on this machine.
        state: ``updated`` if it was replaced, ``current`` if it is the published one already.
        manifest: the manifest in the replica.
        key_id: of the key that signed it.
        former_generation: the generation that was replaced; null if there was no replica.
        moved_bytes: how many bytes were read.
    """

    source: str
    location: str
    state: Literal["updated", "current"]
    manifest: ReplicaManifest
    key_id: str
    former_generation: int | None
    moved_bytes: int


class EmbedResult(Contract):
    """`corpus embed`.

    Attributes:
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks without a vector.
    """

    embedded: int
    waiting: int
