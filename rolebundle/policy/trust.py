"""What a passage may be used for: its trust against the risk of an action. Pure.

    origin      trust          action         risk          label          trust at most
    internal      3            read              1          flagged        2
    external      2            analyze           1          personal data  2 for external_send
    agent         2            suggest           2          untrusted tier as the origin untrusted
    untrusted     1            execute           3          confidential   1 for external_send
                               external_send     3

An action is allowed if the trust is at least the risk. If the risk is high (3 or more) and one
above the trust, the action requires an approval by a person. Everything else is blocked, approved
or not. The origin agent is that of facts that agents filed.

Four labels bound the trust that the origin gives. A document whose trust tier is untrusted may be
used for no more than one whose origin is, wherever it comes from. If the scan has flagged a
passage, for example for an instruction to a model, a person must approve every action with effects,
as for an external passage. Personal data, such as a mail address, is no reason to distrust a
passage, but a person must approve that it is sent outside. A confidential passage is never sent
outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.terms import (
    ACTIONS,
    FACTS_PER_DAY,
    Action,
    Origin,
    RejectionCode,
    Ruling,
    Sensitivity,
    WriteKind,
)

MIN_TRUST = 0
MAX_RISK = 4
HIGH_RISK = 3
"""From this risk on an action has effects outside, and a person may approve it."""
FLAGGED_TRUST = 2
"""The most trust of a flagged passage."""
PERSONAL_FLAG = "personal_"
"""How the flags of personal data begin."""
PERSONAL_TRUST = 2
"""The most trust of a passage with personal data for ``external_send``."""
CONFIDENTIAL_TRUST = 1
"""The most trust of a confidential passage for ``external_send``."""

_TRUST: Mapping[Origin, int] = {"internal": 3, "external": 2, "agent": 2, "untrusted": 1}
_RISKS: Mapping[Action, int] = {
    "read": 1,
    "analyze": 1,
    "suggest": 2,
    "execute": 3,
    "external_send": 3,
}


class Labels(NamedTuple):
    """What decides about the use of a passage.

    Attributes:
        origin: where its document comes from.
        sensitivity: that of its document.
        is_flagged: whether the scan has found something other than personal data.
        is_personal: whether the scan has found personal data.
        is_untrusted: whether the trust tier of its document is untrusted.
    """

    origin: Origin
    sensitivity: Sensitivity = "internal"
    is_flagged: bool = False
    is_personal: bool = False
    is_untrusted: bool = False

    @classmethod
    def of(cls, document: DocumentMetadata, flags: Sequence[str]) -> Labels:
        """The labels of the passages of a document."""
        personal = sum(flag.startswith(PERSONAL_FLAG) for flag in flags)
        return cls(
            document.origin,
            document.sensitivity,
            is_flagged=len(flags) > personal,
            is_personal=personal > 0,
            is_untrusted=document.trust_tier == "untrusted",
        )


def trust_for(labels: Labels, action: Action) -> tuple[int, str]:
    """The trust of passages for an action, 0 for an unknown origin, and what it comes from."""
    trusts = [(_TRUST.get(labels.origin, MIN_TRUST), f"origin {labels.origin}")]
    if labels.is_untrusted:
        trusts.append((_TRUST["untrusted"], "trust tier untrusted"))
    if labels.is_flagged:
        trusts.append((FLAGGED_TRUST, "a flagged passage"))
    if labels.is_personal and action == "external_send":
        trusts.append((PERSONAL_TRUST, "a passage with personal data"))
    if labels.sensitivity == "confidential" and action == "external_send":
        trusts.append((CONFIDENTIAL_TRUST, "a confidential passage"))
    return min(trusts, key=lambda trust: trust[0])


def risk_of(action: Action) -> int:
    """The risk of an action; the highest for an unknown one."""
    return _RISKS.get(action, MAX_RISK)


def ruling_of(labels: Labels, action: Action, *, approved: bool = False) -> Ruling:
    """Whether passages with these labels may be used for an action.

    Args:
        labels: the passages'.
        action: the intended action.
        approved: whether a person has approved the action.
    """
    (trust, _), risk = trust_for(labels, action), risk_of(action)
    if trust >= risk:
        return "allowed"
    if risk < HIGH_RISK or trust < risk - 1:
        return "taint_blocked"
    return "allowed" if approved else "requires_approval"


class Purpose(NamedTuple):
    """What the passages of one answer are for.

    ``approved_by`` is the person who approved the action, or empty.
    """

    action: Action = "read"
    approved_by: str = ""

    def ruling(self, labels: Labels) -> Ruling:
        """Whether passages with these labels may be used for this purpose."""
        return ruling_of(labels, self.action, approved=bool(self.approved_by))

    def rejection(self, labels: Labels) -> tuple[RejectionCode, str] | None:
        """The code and the note that reject passages with these labels, or None."""
        ruling = self.ruling(labels)
        if ruling == "allowed":
            return None
        trust, label = trust_for(labels, self.action)
        return ruling, f"{label} has trust {trust}, {self.action} has risk {risk_of(self.action)}"

    def is_allowed_by_approval(self, labels: Labels) -> bool:
        """Whether such passages are allowed only because a person approved the action."""
        without = ruling_of(labels, self.action)
        return without == "requires_approval" and self.ruling(labels) == "allowed"

    def allowed_actions(self, labels: Labels) -> list[Action]:
        """What passages with these labels may be used for, sorted by risk and then by name.

        An approval covers the request's own action and no other.
        """
        return [
            action
            for action in sorted(ACTIONS, key=lambda action: (risk_of(action), action))
            if (action == self.action and self.ruling(labels) == "allowed")
            or ruling_of(labels, action) == "allowed"
        ]


class AgentView(NamedTuple):
    """What holds for the part of the corpus that an agent may see.

    Attributes:
        quarantined: the number of documents that only the quarantine hides from the agent.
        roles: the roles that the agent may use; ``None`` for every role.
        role_required: whether the agent must name a role.
        may_write: what the agent may write; without a policy, everything that an interface offers.
        decision_scopes: the scopes whose decisions the agent sees; ``None`` for every scope.
        access_level: the highest sensitivity that the agent sees; ``None`` without a policy.
        show_paths: whether the agent learns where files lie on this machine, and may name them so.
        facts_per_day: how many new facts the agent may file on a day.
        may_set_time: whether the agent may ask as at another time.
    """

    quarantined: int = 0
    roles: tuple[str, ...] | None = None
    role_required: bool = False
    may_write: tuple[WriteKind, ...] = ("mark", "remember")
    decision_scopes: tuple[str, ...] | None = None
    access_level: Sensitivity | None = None
    show_paths: bool = True
    facts_per_day: int = FACTS_PER_DAY
    may_set_time: bool = True

    def allows_role(self, role: str | None) -> bool:
        """Whether the agent may ask with this role, or without one."""
        if role is None:
            return not self.role_required
        return self.roles is None or role in self.roles


UNRESTRICTED_VIEW = AgentView()
"""The view of a corpus without a policy and without quarantined documents."""
