"""Who reads a replica, and the command that publishes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import join

from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.terms import ACCESS_LEVELS
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.policy.access import active_policy, restrict_to_rule
from rolebundle.policy.policy_file import (
    Policy,
)
from rolebundle.policy.trust import DEFAULT_TABLE, AgentView
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.publications import Publication, find_publication


@dataclass(frozen=True, slots=True)
class Audience:
    """Who reads a replica.

    Attributes:
        agent: the only agent that the replica answers; empty if it answers everyone.
        rule: what the replica may hold.
        policy: the corpus's policy; ``None`` if it has none.
    """

    agent: str
    rule: AgentRule
    policy: Policy | None

    def restrict(self, corpus: Corpus) -> AgentView:
        """Show in a restricted corpus what the replica may hold; inside ``corpus.reading()``."""
        return restrict_to_rule(corpus, self.policy or Policy(), self.rule)

    def replica_policy(self) -> str:
        """The policy in the replica, as JSON: the agent's own rule. Empty if it has none.

        Deny patterns have done their work: what they match is not in the replica. A replica is
        read-only, and knows no paths of the publisher's machine.
        """
        if not self.agent or self.policy is None:
            return ""
        rule: dict[str, object] = {
            "scopes": list(self.rule.scopes),
            "access_level": self.rule.access_level,
            "role_required": self.rule.role_required,
        }
        if self.rule.roles is not None:
            rule["roles"] = list(self.rule.roles)
        document: dict[str, object] = {"agents": {self.agent: rule}}
        if self.policy.trust != DEFAULT_TABLE:
            trust = self.policy.trust
            document["trust"] = {"origins": dict(trust.origins), "actions": dict(trust.actions)}
        return json.dumps(document, sort_keys=True)

    def visibility(self) -> str:
        """What the replica may hold, as JSON, to notice a change of it."""
        return json.dumps(
            {
                "scopes": sorted(self.rule.scopes),
                "access_level": self.rule.access_level,
                "deny_patterns": sorted(self.rule.deny_patterns),
            },
            sort_keys=True,
        )


def resolve_audience(
    corpus: Corpus, target: str, agent: str, scopes: Sequence[str], level: str
) -> Audience:
    """The audience that a publisher names: an agent, or scopes and an access level.

    Args:
        corpus: the publisher's corpus.
        target: where it is published. If neither an agent nor a level is given, the audience is
            that of the last publish to this target.
        agent: an agent of the policy; empty if ``level`` is given.
        scopes: the scopes; empty for every scope.
        level: the highest sensitivity; empty if ``agent`` is given.

    Raises:
        UsageError: both were named, or neither; or the target has another audience.
        ConfigurationError: the policy gives this agent nothing, or everyone would need its trust
            table.
        AccessDenied: the policy cannot be relied upon.
    """
    last = find_publication(corpus, target)
    if last is not None and last.visibility and not (agent or scopes or level):
        agent = last.agent
        if not agent:
            visibility = json.loads(last.visibility)
            scopes, level = visibility["scopes"], visibility["access_level"]
    if bool(agent) == bool(level) or (agent and scopes):
        raise UsageError(
            "no_audience",
            "a replica is published either for an agent or for a level",
            "give --agent ID, or --level LEVEL with or without --scopes A,B",
        )
    if last is not None and last.visibility and last.agent != agent:
        reader = f"for the agent {last.agent!r}" if last.agent else "for everyone who has it"
        raise UsageError(
            "other_audience",
            f"{target}: is published {reader}",
            "choose another target: those who read this one would get what others may see",
        )
    policy = active_policy(corpus)
    if not agent:
        known = next((name for name in ACCESS_LEVELS[1:] if name == level), None)
        if known is None:
            raise UsageError(
                "bad_level",
                f"{level!r} is not an access level",
                f"one of {', '.join(ACCESS_LEVELS[1:])}",
            )
        if policy is not None and policy.trust != DEFAULT_TABLE:
            raise ConfigurationError(
                "trust_needs_agent",
                "the policy has a trust table of its own, which a replica for everyone cannot keep",
                "publish for an agent of the policy with --agent ID",
            )
        return Audience(
            "", AgentRule.model_construct(scopes=tuple(scopes), access_level=known), None
        )
    rule = policy.agents.get(agent) if policy else None
    if policy is None or rule is None or rule.access_level == "denied":
        raise ConfigurationError(
            "agent_sees_nothing",
            f"the agent {agent!r} may see nothing of this corpus"
            + ("" if policy else ": it has no policy"),
            "see `rolebundle policy show`, or publish for a level with --level LEVEL",
        )
    return Audience(agent, rule, policy)


def publish_command(publication: Publication) -> str:
    """The command that publishes to a target again. A completed publish has set its audience."""
    audience = "" if publication.visibility else "(--agent ID | --level LEVEL) "
    return f"{join(['rolebundle', 'replica', 'publish', publication.target])} {audience}--key FILE"
