"""What the commands of the corpus's owner print with `--json`."""

from typing import Literal

from rolebundle.contracts.audit import AuditRow
from rolebundle.contracts.base import Contract
from rolebundle.contracts.lookup import IndexStatus
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.receipt import Receipt


class SkippedFile(Contract):
    """A file or document that was not ingested, or a note on one that was."""

    path: str
    code: str
    message: str


class IngestResult(Contract):
    """`ingest`: the files of the run, and the totals of the corpus after it.

    ``flagged`` and ``quarantined`` count documents of this run with findings of the scan.
    ``embedding_problem`` says why ``waiting`` chunks have no vector.
    """

    added: int
    updated: int
    unchanged: int
    removed: int
    skipped: list[SkippedFile]
    flagged: int
    quarantined: int
    notes: list[SkippedFile]
    documents: int
    chunks: int
    embedded: int
    waiting: int
    embedding_problem: str


class EmbedResult(Contract):
    """`embed`: chunks embedded and waiting, and the fast index if one was built.

    ``recall`` is the sampled recall of the fast index in [0, 1]; ``fast`` whether it is used.
    """

    embedded: int
    waiting: int
    recall: float | None
    fast: bool | None


class EmbedPlan(Contract):
    """`embed --dry-run`: what a run would take, in chunks, seconds and bytes."""

    chunks: int
    waiting: int
    seconds: float
    bytes: int


class EmbeddingIndexes(Contract):
    """`embed list`: the embedding indexes of the corpus."""

    indexes: list[IndexStatus]


class QuarantinedDocument(Contract):
    """A document with findings of the scan, and the kinds of the findings."""

    document_id: str
    title: str
    path: str
    verdict: Literal["label", "quarantine"]
    kinds: list[str]


class ScanFinding(Contract):
    """A finding at the characters ``start`` to ``end`` of a document."""

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
    """`scopes set`: the agents of the policy, and how many documents changed compartment."""

    agents: list[str]
    moved: int
    location: str


class AgentAccess(Contract):
    """What the policy allows an agent, and how many documents it sees."""

    agent: str
    scopes: list[str]
    access_level: Literal["denied", "public", "group", "internal", "confidential"]
    deny_patterns: list[str]
    documents: int


class PolicySummary(Contract):
    """`scopes show`: the current policy. ``doubt`` says why every agent is denied, if so."""

    policy: bool
    location: str
    set_at: str
    doubt: str
    documents: int
    agents: list[AgentAccess]


class LintProblem(Contract):
    """A problem in an overlay or a policy. ``place`` is the dotted path of the key."""

    level: Literal["error", "warning"]
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


class OverlayLint(Contract):
    """`overlay lint`: the problems of each overlay, and the corpus that the rules were run on."""

    corpus: str | None
    overlays: list[OverlayProblems]


class Role(Contract):
    """A role that has an overlay. ``problem`` says why it cannot be used, if so."""

    role_id: str
    label: str
    mission: str
    extends: str | None
    problem: str


class RoleList(Contract):
    """The method `roles.list` and the tool `list_roles`."""

    roles: list[Role]


class RoleDetails(Contract):
    """The method `roles.show`: an overlay with what it extends and all defaults."""

    digest: str
    overlay: Overlay


class OverlayFile(Contract):
    """An overlay and its file."""

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
    """`overlay show`: an overlay with what it extends and all defaults."""

    role_id: str
    digest: str
    path: str
    extends: list[ExtendedOverlay]
    overlay: Overlay


class PurgeResult(Contract):
    """`purge`.

    Attributes:
        receipts: one for each purge that was done or is pending.
        returning: files on disk that the next ingest would add again.
        backups: backups that may still hold the documents.
        backups_deleted: how many backups were deleted.
    """

    receipts: list[Receipt]
    returning: list[str]
    backups: list[str]
    backups_deleted: int


class PurgePreview(Contract):
    """`purge --dry-run`: what would be erased. Without names only the backups are listed."""

    backups: list[str]
    documents: int | None = None
    chunks: int | None = None
    vectors: int | None = None
    document_ids: list[str] | None = None
    returning: list[str] | None = None


class BridgeEnd(Contract):
    """One of the two passages of a bridge."""

    scope: str
    document_id: str
    title: str
    chunk_id: str
    locator: str


class BridgePair(Contract):
    """The closest two passages of two documents in different scopes."""

    cosine: float
    left: BridgeEnd
    right: BridgeEnd


class BridgeReport(Contract):
    """`bridges`: pairs with a cosine of at least ``threshold``, among ``vectors`` vectors."""

    threshold: float
    vectors: int
    scopes: int
    bridges: tuple[BridgePair, ...]
    more: bool


class AuditRows(Contract):
    """`audit list`."""

    rows: list[AuditRow]
