"""The audit: its settings, its entries and rows, and the result of `policy audit verify`."""

from typing import Any, Literal, get_args

from rolebundle.contracts.base import Contract, list_of

AuditMode = Literal["off", "on", "required"]
QueryMode = Literal["text", "digest", "off"]
AuditKind = Literal[
    "retrieve", "get", "grep", "why", "verify", "compare", "replay", "status", "ingest",
    "embed", "quarantine", "release", "drop", "purge", "backup", "restore", "repair",
    "approval", "scopes", "bridges", "trust", "mark", "decide", "check", "gate", "remember",
    "promote", "forget", "publish", "pull", "refused", "settings",
]  # fmt: skip
AuditFlaw = Literal[
    "row_altered", "row_inserted", "head_differs", "settings_differ", "expected_differs",
    "file_damaged",
]  # fmt: skip

AUDIT_MODES: tuple[AuditMode, ...] = get_args(AuditMode)
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)


class AuditSettings(Contract):
    """Whether calls are recorded, and how the query is recorded.

    Attributes:
        mode: ``off`` records nothing. ``on`` gives the answer with a warning if the call cannot be
            recorded. ``required`` gives an error instead of the answer in that case.
        query: ``text`` records the query itself, ``digest`` only a digest of it, ``off`` neither.
    """

    mode: AuditMode = "off"
    query: QueryMode = "digest"


class AuditEntry(Contract):
    """What to record about one call. It must not contain texts or ids of documents.

    Attributes:
        kind: the call.
        agent: the agent that asked; empty if there was none.
        role: the role; empty if there was none.
        action: the action that was asked for; empty if there was none.
        query: the text of the query. The audit stores the text, a digest or nothing, as its
            settings require.
        bundle_digest: digest of the answer without timings; empty if there was no bundle.
        allowed: number of selected passages.
        blocked: number of rejected candidates by rejection code; and, for the owner alone, the
            number of passages with the task's words that ``scope``, ``access_level`` and
            ``deny_pattern`` kept from the agent, at most 100 of each kind of document.
        details: other small, plain values.
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

    An agent that reads its own rows gets them numbered from 1, and ``previous`` and ``hash`` are
    empty. The true values would reveal how much other agents do.

    Attributes:
        seq: number of the row, from 1.
        time: ISO 8601 in UTC.
        query: the text of the query, its digest, or empty, as the settings required.
        previous: hash of the row before it.
        hash: hash of this row. It covers ``previous``.
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
    """The first problem of an audit. ``seq`` is the row; ``None`` if it is not about one row."""

    code: AuditFlaw
    seq: int | None = None
    message: str


class AuditVerification(Contract):
    """The answer to `policy audit verify`.

    Attributes:
        ok: whether no row was changed, inserted or removed.
        rows: number of rows.
        head: ``seq:hash`` of the last row; empty if there are no rows. Store it elsewhere and pass
            it to a later check, which then also detects that rows were cut off at the end.
        expected: the head of an earlier check that was passed to this one; empty if none was.
        problem: the first problem; ``None`` if ``ok``.
    """

    ok: bool
    rows: int
    head: str = ""
    expected: str = ""
    problem: AuditProblem | None = None


AuditRows = list_of(AuditRow, "rows", "AuditRows", "`policy audit list`.")
