"""What people and agents add to a corpus: decisions, marks and remembered facts."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract, list_of, optional, required
from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.ingest import ShortLine, UtcEndText, UtcText
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.request import (
    MAX_ALSO,
    AgentName,
    Name,
    PersonName,
    Reference,
    printable_line,
)
from rolebundle.contracts.terms import (
    DEFAULT_SCOPE,
    Action,
    Authority,
    DecisionEffect,
    MarkState,
    Origin,
    Ruling,
    Sensitivity,
    TrustTier,
)

MAX_STATEMENT_CHARACTERS = 1_000


Statement = Annotated[
    str,
    StringConstraints(max_length=MAX_STATEMENT_CHARACTERS, pattern=r"\S"),
    AfterValidator(printable_line),
]
"""A sentence or two, kept on one line."""


class MarkRequest(Contract):
    """A request to mark a passage or a document."""

    id: Reference = required("path:start-end, path, chunk_id or document_id, from an answer.")
    state: MarkState | Literal["unverified"] = required(
        "disputed (it may be wrong) or unverified (removes your own mark). Only a "
        "person marks what is rejected or verified: rejected, tool_verified, supervisor_verified."
    )
    reason: Statement = required("Why, in a sentence. Other readers see it.")
    agent: AgentName = None


class MarkRecord(Contract):
    """A mark.

    Attributes:
        kind: what is marked.
        target: its chunk_id or document_id.
        state: ``unverified`` if the mark was removed by the request that this answers.
        marked_at: ISO 8601 in UTC.
        ended: whether the text has changed or is gone since, so that the mark does not count.
    """

    kind: Literal["chunk", "document"]
    target: str
    state: MarkState | Literal["unverified"]
    marked_by: str
    authority: Authority
    reason: str
    marked_at: str
    ended: bool = False


MarkList = list_of(MarkRecord, "marks", "MarkList", "`mark list`.")


DecisionStatus = Literal["active", "proposed"]
DecisionState = Literal[
    "active", "proposed", "not_yet_valid", "expired", "superseded", "ended", "erased"
]
MAX_INTENT_CHARACTERS = 100_000
MAX_ABOUT = 50

IntentText = Annotated[str, StringConstraints(max_length=MAX_INTENT_CHARACTERS, pattern=r"\S")]
Scope = Annotated[ShortLine, AfterValidator(printable_line)]
AboutWords = Annotated[
    list[Annotated[ShortLine, AfterValidator(printable_line)]], Field(max_length=MAX_ABOUT)
]


class NewDecision(Contract):
    """A decision that is to be recorded. The descriptions are the help of the command line."""

    text: Statement = required("The decision, in a sentence.")
    scope: Scope = optional(
        "Who it is for: agents that see this scope. Default: shared.", DEFAULT_SCOPE
    )
    status: DecisionStatus = optional(
        "A proposed decision is listed and has no effect. Default: active.", "active"
    )
    effect: DecisionEffect | None = optional(
        "What it does at most: block only for a command that matches, require_approval "
        "for a word of about, warn for a likeness. Default: block with commands, else warn."
    )
    action: Action | None = optional("The only action that it is about. Default: every action.")
    about: AboutWords = optional(
        "The words by which other people may name the thing, separated by commas; any "
        "one of them triggers the reminder. Example: spam filter, junk mail, rspamd",
        [],
    )
    commands: AboutWords = optional(
        "A glob pattern over a shell command, as in 'restic forget*'; * is any text.", []
    )
    reason: Statement | None = optional("Why it was decided.")
    valid_from: UtcText | None = optional("ISO 8601. Default: now.")
    valid_until: UtcEndText | None = optional("ISO 8601; a date is included. Default: for ever.")
    supersedes: list[str] = optional(
        "A decision of the same scope that it replaces: a number, or an id.", []
    )
    decided_by: PersonName = required("Who decided it.")


class DecisionRecord(Contract):
    """A recorded decision.

    Attributes:
        id: ``SCOPE-NUMBER``.
        text: empty if a purge has erased it.
        state: whether it has an effect at the time of the answer, or why not.
        supersedes: ids of the decisions that it replaces.
        recorded_at: when it was recorded; times are ISO 8601 in UTC.
        ended_by: who ended it; missing if it was not ended.
    """

    id: str
    text: str
    scope: str
    state: DecisionState
    effect: DecisionEffect
    action: Action | None = None
    about: list[str]
    commands: list[str]
    reason: str
    supersedes: list[str]
    decided_by: str
    authority: Authority
    valid_from: str
    valid_until: str | None = None
    recorded_at: str
    ended_by: str | None = None
    end_reason: str | None = None
    ended_at: str | None = None


DecisionList = list_of(DecisionRecord, "decisions", "DecisionList", "`decisions list`.")


class CheckRequest(Contract):
    """A request to find the decisions that may apply to what somebody is about to do."""

    intent: IntentText | None = optional("What you will do, in a sentence or two.")
    command: IntentText | None = optional("The shell command, if it is one.")
    also: Annotated[list[IntentText], Field(max_length=MAX_ALSO)] = optional(
        "Other wordings of it.", []
    )
    action: Action | None = optional("As action of retrieve.")
    agent: AgentName = None
    role: RoleId | None = optional("Your role.")

    @model_validator(mode="after")
    def _has_an_intent(self) -> Self:
        if self.intent is None and self.command is None:
            raise ValueError("give intent or command")
        return self


CheckVerdict = Literal["none_found", "warn", "require_approval", "block"]
CHECK_VERDICTS: tuple[CheckVerdict, ...] = get_args(CheckVerdict)
"""The mildest first."""


class ActionRule(Contract):
    """What the table of origins and actions says of an action.

    Attributes:
        risk: of the action, 1 to 4.
        rulings: by the origin of the documents that the action is based on.
    """

    action: Action
    risk: int
    rulings: dict[Origin, Ruling]


class CheckAnswer(Contract):
    """The answer to `check`. It is advice: rolebundle does not see what is done.

    Attributes:
        verdict: the strictest of what follows; none_found says nothing of what is allowed.
        message: the verdict in words, and the next step.
        decisions: the active decisions that may apply, the strictest first. Those without a verdict
            are about the same thing, and for information.
        policies: what the table of origins and actions says of the action; empty if the request
            names none.
        degraded: why only words were compared, and no meanings; missing if both were.
        advisory: says that this is advice.
        checked_at: the time of the answer, ISO 8601 in UTC.
    """

    verdict: CheckVerdict
    message: str
    decisions: list[Constraint]
    policies: list[ActionRule]
    degraded: str | None = None
    advisory: str
    checked_at: str


MAX_FACT_CHARACTERS = 2_000
"""A fact is a statement and not a document."""


def _plain_lines(text: str) -> str:
    """The text with plain line ends, and nothing around it.

    Raises:
        ValueError: it has control characters.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if any(character < " " and character not in "\n\t" for character in lines):
        raise ValueError("has control characters")
    return lines


FactText = Annotated[
    str,
    StringConstraints(max_length=MAX_FACT_CHARACTERS, pattern=r"\S"),
    AfterValidator(_plain_lines),
]


class RememberRequest(Contract):
    """A request to file a fact with its source."""

    fact: FactText = required("The fact, in one or a few sentences that can be understood alone.")
    source: Reference = required(
        "A path:start-end or chunk_id from an answer, or the http(s) address of a page."
    )
    scope: Annotated[Name, StringConstraints(pattern=r"^[^\x00-\x1f]+$")] | None = optional(
        "The scope that the fact belongs to. Default: that of its source."
    )
    agent: AgentName = None


class RememberedFact(Contract):
    """A fact as it was filed.

    Attributes:
        state: ``stored``; ``counted`` if the same fact was there already; ``quarantined`` if the
            scan found an attack in it, so that no agent sees it until a person releases it;
            ``forgotten`` if this answer is to the request that removed it.
        locator: where the fact is cited.
        source: where it comes from: ``path:start-end`` or an address.
        fact: the text, with secrets masked and without hidden characters.
        count: how often it was filed.
        first_at, last_at: when it was filed first and last; ISO 8601 in UTC.
        flags: the kinds of what the scan found in it; null for nothing.
    """

    state: Literal["stored", "counted", "quarantined", "forgotten"]
    document_id: str
    chunk_id: str
    locator: str
    source: str
    fact: str
    scope: str
    sensitivity: Sensitivity
    trust_tier: TrustTier
    count: int
    first_at: str
    last_at: str
    flags: list[str] | None = None


class FactRecord(RememberedFact):
    """A fact as its owner sees it.

    Attributes:
        remembered_by: who filed it first.
        promoted_by: who promoted it; null if nobody did.
        source_is_gone: whether the corpus has no more the document that it cites.
        source_has_changed: whether an ingest has changed the passage that it cites, and no person
            has removed the mark that says so.
    """

    remembered_by: str
    promoted_by: str | None = None
    source_is_gone: bool = False
    source_has_changed: bool = False


FactList = list_of(FactRecord, "facts", "FactList", "`remember list`.")
