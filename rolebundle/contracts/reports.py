"""The answers of the owner's commands (printed with `--json`), `roles.list` and `roles.show`."""

from typing import Literal

from pydantic import JsonValue

from rolebundle.contracts.audit import AuditRow
from rolebundle.contracts.base import Contract
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.receipt import PublishedCopy, Receipt, StoreHistory
from rolebundle.contracts.status import IndexStatus
from rolebundle.contracts.terms import TrustTier


class SkippedFile(Contract):
    """A file or document that was not ingested, or a note on one that was."""

    path: str
    code: str
    message: str


class TrustGrant(Contract):
    """How many documents of a run were raised to a trust tier above `general`.

    ``path`` is the manifest that did it; empty if they declare it themselves.
    """

    path: str
    trust_tier: TrustTier
    documents: int


class Format(Contract):
    """A format that ingest reads.

    Attributes:
        name: name of the reader, for ``--reader`` and manifests.
        suffixes: suffixes of its files; empty if they are recognized in another way.
        content: what is read.
        anchor: an example of the place that a citation names; ``lines`` if it names only lines.
    """

    name: str
    suffixes: list[str]
    content: str
    anchor: str


class UnsupportedKind(Contract):
    """A kind of file that is skipped. Text with one of the suffixes is read."""

    kind: str
    suffixes: list[str]


class FormatList(Contract):
    """`formats`."""

    formats: list[Format]
    unsupported: list[UnsupportedKind]


class IngestResult(Contract):
    """`ingest`.

    Attributes:
        added: number of files that were added; ``updated``, ``unchanged``, ``removed`` likewise.
        skipped: files and documents that were not ingested.
        failed: the paths that the run was given and that were skipped as a whole: files, and
            folders that cannot be listed. ``skipped`` has the reasons.
        flagged: number of documents of this run with findings of the scan.
        quarantined: number of documents of this run that were put into quarantine.
        notes: notes on files that were ingested, and on manifests. The code ``claim_refused`` means
            that a document or manifest declares what the owner does not allow;
            ``manifest_ignored`` that a manifest does not count; ``glob_matches_nothing`` that a
            glob of a manifest has no file.
        grants: who raised the trust of documents of this run.
        documents: number of documents in the corpus after the run.
        chunks: number of chunks in the corpus after the run.
        trusted: number of documents in the corpus that are preferred or authoritative.
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks in the corpus without a vector.
        embedding_problem: why ``waiting`` chunks have no vector; empty if there was no problem.
        optimized: number of approximate indexes that were built in this run.
    """

    added: int
    updated: int
    unchanged: int
    removed: int
    skipped: list[SkippedFile]
    failed: list[str] = []
    flagged: int
    quarantined: int
    notes: list[SkippedFile]
    grants: list[TrustGrant]
    documents: int
    chunks: int
    trusted: int
    embedded: int
    waiting: int
    embedding_problem: str
    optimized: int = 0


class EmbedResult(Contract):
    """`embed`; with `--warm` its vectors are those of the rerank cache.

    Attributes:
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks without a vector.
        recall: recall of the approximate index on a sample, in [0, 1]; null if none was built.
        fast: whether the approximate index is used; null if none was built.
    """

    embedded: int
    waiting: int
    recall: float | None = None
    fast: bool | None = None


class EmbedPlan(Contract):
    """`embed --dry-run`: an estimate of a run.

    Attributes:
        chunks: number of chunks in the corpus.
        waiting: number of chunks to embed.
        seconds: duration.
        bytes: growth of the corpus file.
    """

    chunks: int
    waiting: int
    seconds: float
    bytes: int


class EmbeddingIndexes(Contract):
    """`embed list`: the embedding indexes of the corpus."""

    indexes: list[IndexStatus]


class QuarantinedDocument(Contract):
    """A document with findings of the scan, and the kinds of these findings.

    With the verdict ``quarantine`` it is not retrieved; with ``label`` it is, with flags.
    """

    document_id: str
    title: str
    path: str
    verdict: Literal["label", "quarantine"]
    kinds: list[str]


class ScanFinding(Contract):
    """A finding in a document. ``start`` and ``end`` are offsets in characters, from 0."""

    kind: str
    start: int
    end: int
    note: str
    severity: Literal["low", "high"]


class QuarantineList(Contract):
    """`quarantine list`."""

    documents: list[QuarantinedDocument]


class QuarantineDetails(QuarantinedDocument):
    """`quarantine show`: one document with all its findings."""

    findings: list[ScanFinding]


class PolicyChange(Contract):
    """`scopes set`.

    Attributes:
        agents: ids of the policy's agents.
        moved: number of documents whose compartment (scope and sensitivity) changed.
        location: path of the policy file.
    """

    agents: list[str]
    moved: int
    location: str


class AgentAccess(Contract):
    """The policy's rule for one agent.

    Attributes:
        scopes: the allowed scopes; empty means all.
        access_level: the highest sensitivity that the agent may read.
        deny_patterns: globs over paths that the agent may not read.
        roles: the roles that the agent may use; ``None`` for every role.
        role_required: whether the agent must name a role.
        may_write: what the agent may write.
        show_paths: whether the agent learns where files lie on this machine.
        documents: number of documents that the agent may read.
    """

    agent: str
    scopes: list[str]
    access_level: Literal["denied", "public", "group", "internal", "confidential"]
    deny_patterns: list[str]
    roles: list[str] | None = None
    role_required: bool = False
    may_write: list[Literal["mark", "remember"]] = []
    show_paths: bool = False
    documents: int


class PolicySummary(Contract):
    """`scopes show`.

    Attributes:
        policy: whether the corpus has a policy.
        location: path of the policy file.
        set_at: time when the policy was set, ISO 8601 in UTC.
        doubt: why every agent is denied; empty if the policy is in effect.
        documents: number of documents in the corpus.
        agents: the rules of the agents.
    """

    policy: bool
    location: str
    set_at: str
    doubt: str
    documents: int
    agents: list[AgentAccess]


class LintProblem(Contract):
    """A problem in an overlay or a policy. ``place`` is the dotted path of the key.

    A note says what an overlay leaves to rolebundle. It is no problem.
    """

    level: Literal["error", "warning", "note"]
    place: str
    code: str
    message: str


class PolicyLint(Contract):
    """`scopes lint`."""

    findings: list[LintProblem]


class OverlayProblems(Contract):
    """The problems of one overlay file."""

    path: str
    findings: list[LintProblem]


class RuleNames(Contract):
    """The names in a corpus that the source rules of an overlay can match, sorted.

    ``folders`` are globs of the files in each folder, at most 2000.
    """

    sources: list[str]
    document_types: list[str]
    domains: list[str]
    trust_tiers: list[str]
    folders: list[str]


class OverlayLint(Contract):
    """`overlay lint`: the problems of each overlay.

    ``corpus`` is the corpus on which the rules and the vocabulary were tried, and ``names`` are the
    names in it; null if there was none.
    """

    corpus: str | None
    names: RuleNames | None = None
    overlays: list[OverlayProblems]


class Role(Contract):
    """A role that has an overlay. ``problem`` is why it cannot be used; empty if it can."""

    role_id: str
    label: str
    mission: str
    extends: str | None
    problem: str


class RoleList(Contract):
    """The method `roles.list` and the tool `list_roles`."""

    roles: list[Role]


class RoleDetails(Contract):
    """The method `roles.show`: an overlay after inheritance, with all defaults, and its digest."""

    digest: str
    overlay: Overlay


class OverlayFile(Contract):
    """An overlay and its file. ``problem`` is why it cannot be used; empty if it can."""

    role_id: str
    label: str
    mission: str
    path: str
    extends: str | None
    problem: str


class OverlayList(Contract):
    """`overlay list`."""

    overlays: list[OverlayFile]


class ExtendedOverlay(Contract):
    """An overlay that another one extends."""

    role_id: str
    path: str


class OverlayDetails(Contract):
    """`overlay show`: an overlay after inheritance, with all defaults.

    ``extends`` are the overlays that it extends, the nearest first. ``rescaled`` are the weights
    that no file gives as they are: they share what the given ones leave of 1.
    """

    role_id: str
    digest: str
    path: str
    extends: list[ExtendedOverlay]
    rescaled: list[str] = []
    overlay: Overlay


class ExplainedValue(Contract):
    """One value of an overlay, and where it comes from.

    Attributes:
        place: the dotted path of the key. An entry of an open object, such as ``synonyms``, and a
            rule in a list have places of their own.
        value: the value in force.
        origin: ``file`` if a file gives it, ``rescaled`` if it is a weight that shares what the
            given ones leave of 1, or ``default``.
        path: the file that gives it, or that gives the other weights; null for a default.
        notes: what that file notes on the value, by place.
    """

    place: str
    value: JsonValue
    origin: Literal["file", "rescaled", "default"]
    path: str | None
    notes: dict[str, str] = {}


class OverlayExplanation(Contract):
    """`overlay explain`: each value of an overlay after inheritance, with its origin.

    ``extends`` are the overlays that it extends, the nearest first.
    """

    role_id: str
    digest: str
    path: str
    extends: list[ExtendedOverlay]
    values: list[ExplainedValue]


class PurgeResult(Contract):
    """`purge`.

    Attributes:
        receipts: one for each purge that was done or is pending.
        returning: files on disk that the next ingest would add again.
        backups: backup files that may still contain the documents.
        backups_deleted: how many backups were deleted.
        stores: with `--erase-published`, what was removed from the stores of publications.
    """

    receipts: list[Receipt]
    returning: list[str]
    backups: list[str]
    backups_deleted: int
    stores: list[StoreHistory]


class PurgePreview(Contract):
    """`purge --dry-run`: what would be erased. Without document names only ``backups`` is present.

    Attributes:
        backups: backup files that may contain the documents.
        documents: number of documents; ``chunks`` and ``vectors`` likewise.
        decision_ids: ids of the decisions.
        facts: the ids of remembered facts among them that are erased because they cite another one.
        returning: files on disk that the next ingest would add again.
        publications: those that ever held something of it.
        stores: with `--erase-published`, the older states in the stores of publications.
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
    stores: list[StoreHistory] | None = None


class ApprovedManifest(Contract):
    """A manifest in a checkout, or of another user, that the owner has approved.

    Attributes:
        location: absolute path.
        content_hash: SHA-256 of its content, hexadecimal. It counts while this is the same.
        approved_at: time of the approval, ISO 8601 in UTC.
    """

    location: str
    content_hash: str
    approved_at: str


class ApprovedManifests(Contract):
    """`trust list`."""

    manifests: list[ApprovedManifest]


class BridgeEnd(Contract):
    """One of the two passages of a bridge."""

    scope: str
    document_id: str
    title: str
    chunk_id: str
    locator: str


class BridgePair(Contract):
    """The most similar passages of two documents in different scopes.

    ``similarity`` is ``(cosine − noise_floor) / (1 − noise_floor)``, at most 1.
    """

    similarity: float
    cosine: float
    left: BridgeEnd
    right: BridgeEnd


class BridgeReport(Contract):
    """`bridges`: pairs of documents in different scopes with similar passages.

    Attributes:
        threshold: the lowest similarity of a listed pair, between 0 and 1.
        noise_floor: the cosine that 95 of 100 pairs of unrelated texts do not exceed by this model.
        vectors: number of vectors that were compared.
        scopes: number of scopes that were compared.
        bridges: the pairs, the closest first.
        below: the closest pairs under the threshold, if fewer than five are over it.
        more: whether there are more pairs than listed.
    """

    threshold: float
    noise_floor: float
    vectors: int
    scopes: int
    bridges: tuple[BridgePair, ...]
    below: tuple[BridgePair, ...]
    more: bool


class AuditRows(Contract):
    """`audit list`."""

    rows: list[AuditRow]
