"""Decisions: what is recorded, the lists of them, and the request and answer of `check`."""

from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.declared import ShortLine, UtcEndText, UtcText
from rolebundle.contracts.marks import PersonName, Statement, one_line
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.request import AGENT_DESCRIPTION, MAX_ALSO, Name
from rolebundle.contracts.terms import (
    DEFAULT_SCOPE,
    Action,
    Authority,
    DecisionEffect,
    Origin,
    Ruling,
)

DecisionStatus = Literal["active", "proposed"]
DecisionState = Literal[
    "active", "proposed", "not_yet_valid", "expired", "superseded", "ended", "erased"
]
MAX_INTENT_CHARACTERS = 100_000
MAX_ABOUT = 50

IntentText = Annotated[str, StringConstraints(max_length=MAX_INTENT_CHARACTERS, pattern=r"\S")]
Scope = Annotated[ShortLine, AfterValidator(one_line)]
AboutWords = Annotated[
    list[Annotated[ShortLine, AfterValidator(one_line)]], Field(max_length=MAX_ABOUT)
]


class NewDecision(Contract):
    """A decision that is to be recorded. The descriptions are the help of the command line."""

    text: Statement = Field(description="The decision, in a sentence.")
    scope: Scope = Field(
        DEFAULT_SCOPE, description="Who it is for: agents that see this scope. Default: shared."
    )
    status: DecisionStatus = Field(
        "active", description="A proposed decision is listed and has no effect. Default: active."
    )
    effect: DecisionEffect | None = Field(
        None,
        description="What it does at most: block only for a command that matches, require_approval "
        "for a word of about, warn for a likeness. Default: block with commands, else warn.",
    )
    action: Action | None = Field(
        None, description="The only action that it is about. Default: every action."
    )
    about: AboutWords = Field(
        [],
        description="The words by which other people may name the thing, separated by commas; any "
        "one of them triggers the reminder. Example: spam filter, junk mail, rspamd",
    )
    commands: AboutWords = Field(
        [],
        description="A glob pattern over a shell command, as in 'restic forget*'; * is any text.",
    )
    reason: Statement | None = Field(None, description="Why it was decided.")
    valid_from: UtcText | None = Field(None, description="ISO 8601. Default: now.")
    valid_until: UtcEndText | None = Field(
        None, description="ISO 8601; a date is included. Default: for ever."
    )
    supersedes: list[str] = Field(
        [], description="A decision of the same scope that it replaces: a number, or an id."
    )
    decided_by: PersonName = Field(description="Who decided it.")


class DecisionEnd(Contract):
    """Who ends a decision, and why."""

    ended_by: PersonName
    reason: Statement


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

    intent: IntentText | None = Field(None, description="What you will do, in a sentence or two.")
    command: IntentText | None = Field(None, description="The shell command, if it is one.")
    also: Annotated[list[IntentText], Field(max_length=MAX_ALSO)] = Field(
        [], description="Other wordings of it."
    )
    action: Action | None = Field(
        None,
        description="execute changes something, external_send leaves the organization.",
    )
    agent: Name | None = Field(None, description=AGENT_DESCRIPTION)
    role: RoleId | None = Field(
        None,
        description="Your role. Documents that it forbids do not count.",
    )

    @model_validator(mode="after")
    def _has_an_intent(self) -> Self:
        if self.intent is None and self.command is None:
            raise ValueError("give intent or command")
        return self


CheckVerdict = Literal["none_found", "warn", "require_approval", "block"]
CHECK_VERDICTS: tuple[CheckVerdict, ...] = get_args(CheckVerdict)
"""The mildest first."""


class ActionRule(Contract):
    """What the policy's trust table says of an action.

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
        policies: what the trust table says of the action; empty if the request names none.
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
