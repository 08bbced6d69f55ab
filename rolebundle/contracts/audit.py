"""The audit: what is put on record, a row as it stands, and what a check of the rows says."""

from typing import Any, Literal, get_args

from rolebundle.contracts.base import Contract

AuditMode = Literal["off", "on", "required"]
QueryMode = Literal["text", "digest", "off"]
AuditKind = Literal[
    "retrieve",
    "get",
    "why",
    "compare",
    "replay",
    "status",
    "ingest",
    "embed",
    "quarantine",
    "release",
    "drop",
    "purge",
    "approval",
    "scopes",
    "bridges",
    "refused",
    "settings",
]
AuditFlaw = Literal[
    "row_altered",
    "row_missing",
    "row_inserted",
    "chain_broken",
    "head_differs",
    "settings_differ",
    "expected_differs",
    "file_damaged",
]

AUDIT_MODES: tuple[AuditMode, ...] = get_args(AuditMode)
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)
AUDIT_KINDS: tuple[AuditKind, ...] = get_args(AuditKind)


class AuditSettings(Contract):
    """Whether a record is made, and what it keeps of the query.

    Attributes:
        mode: ``on`` warns where a record cannot be made, ``required`` refuses the answer.
        query: the text itself, its digest, or nothing.
    """

    mode: AuditMode = "off"
    query: QueryMode = "digest"


class AuditEntry(Contract):
    """What is to be put on record. No text of a document, and no id of one, belongs in here.

    ``query`` is the text; the audit itself makes of it what its settings say.
    """

    kind: AuditKind
    agent: str = ""
    role: str = ""
    action: str = ""
    query: str = ""
    bundle_digest: str = ""
    allowed: int = 0
    blocked: dict[str, int] = {}
    details: dict[str, Any] = {}


class AuditRow(Contract):
    """A row of the audit.

    An agent that reads its own rows gets them counted from 1 and without ``previous`` and ``hash``:
    the true ones would tell how much others do.
    """

    seq: int
    time: str
    kind: str
    agent: str
    role: str
    action: str
    query: str
    bundle_digest: str
    allowed: int
    blocked: dict[str, int]
    details: dict[str, Any]
    previous: str
    hash: str


class AuditProblem(Contract):
    """The first thing that a check of the audit found."""

    code: AuditFlaw
    seq: int | None = None
    message: str


class Verification(Contract):
    """The answer to `audit verify`.

    ``head`` is ``seq:hash`` of the last row. Kept elsewhere and given back as ``expected``, it
    shows later that nothing up to there was changed or cut off.
    """

    ok: bool
    rows: int
    head: str = ""
    expected: str = ""
    problem: AuditProblem | None = None
