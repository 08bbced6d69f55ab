"""The policy in force as whoever owns the corpus sees it."""

from __future__ import annotations

from typing import TypedDict

from rolebundle.errors import RolebundleError, UsageError
from rolebundle.policy.policy import Policy, parse_policy
from rolebundle.policy.scopes import doubt, may_see
from rolebundle.storage import compartments, stored_policy
from rolebundle.storage.connection import Corpus


class AgentReport(TypedDict):
    """One agent's rule, and how many documents it sees."""

    agent: str
    scopes: list[str]
    access_level: str
    deny_patterns: list[str]
    documents: int


class PolicyReport(TypedDict):
    """The policy, why it may deny everybody, and what each agent sees."""

    policy: bool
    location: str
    set_at: str
    doubt: str
    documents: int
    agents: list[AgentReport]


def report(corpus: Corpus, only: str | None = None) -> PolicyReport:
    """What the policy says, and what comes of it.

    Args:
        corpus: a corpus as its owner sees it.
        only: the one agent to report on.

    Raises:
        UsageError: the policy does not name that agent.
    """
    with corpus.reading():
        stored = stored_policy.load_policy(corpus)
        places = compartments.visible_compartments(corpus)
    total = sum(place.documents for place in places)
    if stored is None:
        return PolicyReport(
            policy=False, location="", set_at="", doubt="", documents=total, agents=[]
        )
    reason = doubt(stored)
    try:
        policy = parse_policy(stored.content, stored.format, "the policy")
    except RolebundleError as error:
        policy, reason = Policy(), error.message
    if only is not None and only not in policy.agents:
        raise UsageError(
            "unknown_agent",
            f"{only}: the policy does not name this agent, so it sees nothing",
            f"agents: {', '.join(policy.agents) or 'none'}",
        )
    return PolicyReport(
        policy=True,
        location=stored.location,
        set_at=stored.set_at,
        doubt=reason,
        documents=total,
        agents=[
            AgentReport(
                agent=agent,
                scopes=list(rule.scopes),
                access_level=rule.access_level,
                deny_patterns=list(rule.deny_patterns),
                documents=0
                if reason
                else sum(place.documents for place in places if may_see(rule, place)),
            )
            for agent, rule in policy.agents.items()
            if only in (None, agent)
        ],
    )
