"""The answer to `status`."""

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.terms import TrustTier, WatchState


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
    """The last state that `watch` wrote. Times are ISO 8601 in UTC.

    Attributes:
        state: what it does.
        process: the id of its process.
        polling: whether it looks at all files again and again, instead of receiving events.
        started_at: when it was started.
        heartbeat_at: when it said so.
        synced_at: when the corpus was last the same as the files; empty if it was not yet.
        pending_since: since when changes are not in the corpus; empty if none are known.
        seconds: how long the last change took to be in the corpus.
        problem: the code of what keeps it from going on, or why it ended; empty if nothing does.
    """

    state: WatchState
    process: int
    polling: bool
    started_at: str
    heartbeat_at: str
    synced_at: str = ""
    pending_since: str = ""
    seconds: float = 0.0
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
        self_declared: documents whose authority is their own declaration: a trust tier above
            `general`, or what they supersede. Only the command lists them.
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
    self_declared: list[SelfDeclaredDocument] = []
    path_flags: list[PathFlags] = []
    replica: ReplicaStatus | None = None
    publications: list[PublicationStatus] = []
    watch: WatchStatus | None = None
