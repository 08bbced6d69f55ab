"""The policy file of agents, what it gives them, and the audit of what they do."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract, list_of, without_repeats
from rolebundle.contracts.request import MAX_NAME_CHARACTERS
from rolebundle.contracts.terms import FACTS_PER_DAY, AccessLevel, WriteKind

MAX_ENTRIES = 1000
EVERY_SCOPE = "*"
"""What a rule lists for every scope, also later ones."""


def _check_agent_id(agent: str) -> str:
    if not agent.strip() or len(agent) > MAX_NAME_CHARACTERS:
        raise ValueError(f"an agent id has 1 to {MAX_NAME_CHARACTERS} characters")
    return agent


def _check_given(value: object) -> object:
    # A rule for every role leaves the key out, so that null cannot mean it by mistake.
    if value is None:
        raise ValueError("must be a list")
    return value


AgentId = Annotated[str, AfterValidator(_check_agent_id)]
Entry = Annotated[str, StringConstraints(max_length=500, pattern=r"\S")]
Entries = Annotated[
    tuple[Entry, ...], Field(strict=False, max_length=MAX_ENTRIES), AfterValidator(without_repeats)
]


class AgentRule(Contract):
    """The policy's rule for one agent.

    Attributes:
        scopes: the scopes that it sees; ``*`` is every scope. Without any it sees nothing.
        access_level: the highest sensitivity that it sees.
        deny_patterns: globs of files that it never sees. They always take precedence.
        roles: the roles that it may use; if missing, every role.
        role_required: whether it must name a role; if missing, true for a rule with ``roles``.
        may_write: what it may write.
        facts_per_day: how many new facts it may file on a day (in UTC).
        show_paths: whether it learns where the files that it sees lie on this machine.
        may_set_time: whether it may ask as at another time (``now``, ``as_of``).
    """

    scopes: Entries
    access_level: AccessLevel
    deny_patterns: Entries = ()
    roles: Annotated[Entries | None, BeforeValidator(_check_given)] = None
    role_required: bool = False
    may_write: Annotated[
        tuple[WriteKind, ...], Field(strict=False), AfterValidator(without_repeats)
    ] = ()
    facts_per_day: Annotated[int, Field(ge=0, le=100_000)] = FACTS_PER_DAY
    show_paths: bool = False
    may_set_time: bool = False

    @model_validator(mode="before")
    @classmethod
    def _require_role(cls, values: Any) -> Any:
        if isinstance(values, dict) and "roles" in values:
            return {"role_required": True, **values}
        return values

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if self.roles == () and self.role_required:
            raise ValueError(
                "roles is empty, and a role is required, so that the agent could ask nothing"
            )
        return self


class Policy(Contract):
    """A policy file, as TOML or JSON. The file may have the agents without this key.

    Attributes:
        agents: the rule of each agent. Every other agent sees nothing.
    """

    agents: dict[AgentId, AgentRule]


class PolicyChange(Contract):
    """`policy set`.

    Attributes:
        agents: ids of the policy's agents.
        moved: number of documents whose compartment (scope and sensitivity) changed.
        location: path of the policy file.
    """

    agents: list[str]
    moved: int
    location: str


class AgentAccess(AgentRule):
    """The policy's rule for one agent, and the number of documents that the agent may read."""

    agent: str
    documents: int


class PolicySummary(Contract):
    """`policy show`.

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


AuditMode = Literal["off", "on", "required"]
QueryMode = Literal["text", "digest", "off"]
AuditKind = Literal[
    "retrieve", "get", "grep", "why", "verify", "compare", "status", "ingest", "release", "drop",
    "purge", "backup", "restore", "repair", "approval", "scopes", "trust", "mark", "decide",
    "check", "gate", "remember", "promote", "forget", "publish", "pull", "refused", "settings",
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
