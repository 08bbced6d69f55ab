"""Who may see what: rules of agents, and for whom a document is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.terms import level_rank
from rolebundle.errors import AccessDenied, ConfigurationError, RolebundleError, UsageError
from rolebundle.policy.policy_file import (
    Policy,
    parse_policy,
    read_policy_file,
)
from rolebundle.policy.trust import DEFAULT_TABLE, AgentView
from rolebundle.storage import compartments, records
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.corpus import Corpus, true_generation
from rolebundle.storage.digests import content_hash
from rolebundle.storage.publications import load_manifest
from rolebundle.storage.records import StoredPolicy

UNREADABLE = "**: the policy could not be read"
"""In place of the patterns that deny a document."""


def access_denied() -> AccessDenied:
    """The error for an agent that may see nothing. A reason could reveal what exists."""
    return AccessDenied(
        "access_denied",
        "this agent may not see anything here",
        "name an agent that the policy allows (`agent`, or --agent); `rolebundle policy show` "
        "lists them to the owner",
    )


def check_agent(agent: str) -> None:
    """Raise a UsageError if the name of an agent is blank, as that of an unset variable."""
    if not agent.strip():
        raise UsageError(
            "blank_agent", "the name of the agent is blank", "name the agent, or leave --agent out"
        )


def role_denied(view: AgentView) -> AccessDenied:
    """The error for an agent that asks outside its roles. It does not say which roles exist."""
    if view.roles is None:
        return AccessDenied("role_denied", "this agent must name a role", "name your role")
    hint = f"its roles: {', '.join(view.roles)}" if view.roles else "leave `role` out"
    return AccessDenied("role_denied", "this agent may ask only with its own roles", hint)


def active_policy(corpus: Corpus) -> Policy | None:
    """The policy that applies to agents, or None if no policy was ever set.

    Raises:
        AccessDenied: the policy cannot be relied upon.
    """
    if not records.has_policy(corpus):
        return None
    try:
        stored = records.load_policy(corpus)
        if stored is None or policy_problem(stored):
            raise access_denied()
        return parse_policy(stored.content, stored.format, "the policy")
    except RolebundleError as error:
        raise access_denied() from error


def policy_problem(stored: StoredPolicy) -> str:
    """Why a stored policy denies everyone, or an empty text if it is intact."""
    if content_hash(stored.content) != stored.digest:
        return "the policy in the corpus was changed"
    if not stored.location:
        return ""
    try:
        content = read_policy_file(Path(stored.location))
    except ConfigurationError as error:
        return error.message
    if content_hash(content) != stored.digest:
        return f"{stored.location}: was changed since it was set"
    return ""


def rule_for(policy: Policy, agent: str | None) -> AgentRule:
    """The policy's rule for an agent.

    Raises:
        AccessDenied: the agent has no rule, or its level is ``denied``.
    """
    rule = policy.agents.get(agent) if agent is not None else None
    if rule is None or rule.access_level == "denied":
        raise access_denied()
    return rule


def restrict_to_agent(corpus: Corpus, agent: str | None) -> AgentView:
    """Show in a restricted corpus what an agent may see. Call it inside ``corpus.reading()``.

    Without a policy that is everything except quarantined documents.

    Raises:
        AccessDenied: the policy gives this agent nothing.
    """
    policy = active_policy(corpus)
    return restrict_to_rule(corpus, policy, rule_for(policy, agent) if policy else None)


def restrict_to_rule(corpus: Corpus, policy: Policy | None, rule: AgentRule | None) -> AgentView:
    """Show in a restricted corpus what a rule allows. Call it inside ``corpus.reading()``.

    Args:
        corpus: a restricted corpus.
        policy: the policy, or None if there is none.
        rule: the rule of an agent; None shows everything except quarantined documents.
    """
    stored = compartments.stored_compartments(corpus)
    replica = load_manifest(corpus)
    # Under a policy the generation is hidden: it also counts writes to what the agent cannot see.
    generation = 0 if policy else true_generation(corpus)
    visible = [compartment.id for compartment in stored if may_see(rule, compartment)]
    corpus.restrict_to_compartments(visible, generation=generation)
    quarantined = replica.manifest.quarantined if replica else count_quarantined(stored, rule)
    if policy is None or rule is None:
        return AgentView(DEFAULT_TABLE, quarantined)
    return AgentView(
        policy.trust,
        quarantined,
        rule.roles,
        rule.role_required,
        rule.may_write,
        decision_scopes(rule),
        rule.scopes,
        None if rule.access_level == "denied" else rule.access_level,
        rule.show_paths,
        rule.facts_per_day,
    )


def decision_scopes(rule: AgentRule) -> tuple[str, ...] | None:
    """The scopes whose decisions an agent sees. A decision has the sensitivity internal."""
    if level_rank(rule.access_level) < level_rank("internal"):
        return ()
    return rule.scopes or None


def count_quarantined(stored: Iterable[Compartment], rule: AgentRule | None) -> int:
    """The number of documents that only the quarantine hides from an agent.

    Args:
        stored: every compartment of the corpus.
        rule: the agent's rule, or None without a policy.
    """
    return sum(
        compartment.documents
        for compartment in stored
        if compartment.quarantined and _rule_allows(rule, compartment)
    )


def may_see(rule: AgentRule | None, compartment: Compartment) -> bool:
    """Whether an agent with this rule sees a compartment; without a rule, all see it."""
    return not compartment.quarantined and _rule_allows(rule, compartment)


def _rule_allows(rule: AgentRule | None, compartment: Compartment) -> bool:
    return rule is None or (
        (not rule.scopes or compartment.scope in rule.scopes)
        and level_rank(rule.access_level) >= level_rank(compartment.sensitivity)
        and not {UNREADABLE, *rule.deny_patterns} & set(compartment.denied)
    )
