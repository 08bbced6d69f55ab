"""Report on a policy, and lint it: rules that are more open than they look, or match nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rolebundle.contracts.lint import LintProblem
from rolebundle.contracts.policy import AgentRule
from rolebundle.contracts.scopes import AgentAccess, PolicySummary
from rolebundle.contracts.terms import level_rank
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.policy.access import denies, may_see, policy_problem
from rolebundle.policy.overlay_lint import lint_error, lint_warning
from rolebundle.policy.policy_file import Policy, parse_policy
from rolebundle.policy.trust import loosened_values
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import AccessAttributes, access_attributes
from rolebundle.storage.indexes import compartments
from rolebundle.storage.records import stored_policy
from rolebundle.text.counts import counted


def lint_policy(
    policy: Policy, corpus: Corpus | None = None, roles: Collection[str] | None = None
) -> list[LintProblem]:
    """The findings for a policy, and for its effect on a corpus if one is given.

    Args:
        policy: the policy.
        corpus: the corpus.
        roles: the roles that have an overlay; ``None`` if they are not known.
    """
    findings = [*_lint_rules(policy), *_lint_roles(policy, roles)]
    if corpus is not None:
        documents = access_attributes(corpus)
        for agent, rule in policy.agents.items():
            findings += _lint_against(agent, rule, documents)
    return findings


def lint_active_policy(corpus: Corpus, roles: Collection[str] | None = None) -> list[LintProblem]:
    """The findings for the policy of a corpus."""
    stored = stored_policy.load_policy(corpus)
    if stored is None:
        message = "no policy was set: everyone sees every document, with or without an agent id"
        return [lint_warning("", "no_policy", message)]
    problem = policy_problem(stored)
    try:
        policy = parse_policy(stored.content, stored.format, stored.location or "the policy")
    except RolebundleError as error:
        return [lint_error("", error.code, f"everyone is denied: {error.message}")]
    findings = lint_policy(policy, corpus, roles)
    if problem:
        message = f"everyone is denied: {problem}"
        findings.insert(0, lint_error("", "policy_doubtful", message))
    return findings


def _lint_rules(policy: Policy) -> Iterator[LintProblem]:
    if not policy.agents:
        yield lint_warning("", "no_agents", "names no agent: everyone is denied")
    for agent, rule in policy.agents.items():
        if rule.access_level == "denied":
            message = "has the access level denied: it sees nothing"
            yield lint_warning(agent, "denied_agent", message)
        elif not rule.scopes:
            message = "is empty, which means EVERY scope, including later ones"
            yield lint_warning(f"{agent}.scopes", "all_scopes", message)
        if rule.access_level == "denied" and rule.may_write:
            message = f"allows {', '.join(rule.may_write)}, but the agent sees nothing"
            yield lint_warning(f"{agent}.may_write", "useless_write", message)
        elif rule.may_write:
            message = f"allows {', '.join(rule.may_write)}: this changes what other agents read"
            yield lint_warning(f"{agent}.may_write", "agent_writes", message)
    for message in loosened_values(policy.trust):
        yield lint_warning("trust", "trust_loosened", message)


def _lint_roles(policy: Policy, roles: Collection[str] | None) -> Iterator[LintProblem]:
    for agent, rule in policy.agents.items():
        for role in rule.roles or ():
            if roles is not None and role not in roles:
                message = f"{role!r} has no overlay; roles: {', '.join(sorted(roles)) or 'none'}"
                yield lint_warning(f"{agent}.roles", "unknown_role", message)
        if rule.roles and not rule.role_required:
            message = "is false: without a role, no overlay forbids it any source"
            yield lint_warning(f"{agent}.role_required", "role_optional", message)


def _lint_against(
    agent: str, rule: AgentRule, documents: Sequence[AccessAttributes]
) -> Iterator[LintProblem]:
    scopes = {document.scope for document in documents}
    for scope in rule.scopes:
        if scope not in scopes:
            known = ", ".join(sorted(scopes)) or "none"
            message = f"no document has the scope {scope!r}; in the corpus: {known}"
            yield lint_warning(f"{agent}.scopes", "unknown_scope", message)
    in_scope = [
        document for document in documents if not rule.scopes or document.scope in rule.scopes
    ]
    rank = level_rank(rule.access_level)
    has_visible = any(rank >= level_rank(document.sensitivity) for document in in_scope)
    if in_scope and not has_visible and rule.access_level != "denied":
        reachable = counted(len(in_scope), "document")
        message = f"{rule.access_level} reaches none of the {reachable} in its scopes"
        yield lint_warning(f"{agent}.access_level", "level_too_low", message)
    for pattern in rule.deny_patterns:
        if not any(denies(pattern, document.path, document.location) for document in documents):
            message = f"{pattern!r} matches no document of the corpus"
            yield lint_warning(f"{agent}.deny_patterns", "pattern_matches_nothing", message)


def report_policy(corpus: Corpus, agent: str | None = None) -> PolicySummary:
    """The active policy and its effect.

    Args:
        corpus: a corpus as its owner sees it.
        agent: the only agent to report on.

    Raises:
        UsageError: the policy does not name that agent.
    """
    with corpus.reading():
        stored = stored_policy.load_policy(corpus)
        visible = compartments.visible_compartments(corpus)
    total = sum(compartment.documents for compartment in visible)
    policy, problem = Policy(), ""
    if stored is not None:
        problem = policy_problem(stored)
        try:
            policy = parse_policy(stored.content, stored.format, "the policy")
        except RolebundleError as error:
            problem = error.message
    if stored is not None and agent is not None and agent not in policy.agents:
        raise UsageError(
            "unknown_agent",
            f"{agent}: the policy does not name this agent, so it sees nothing",
            f"agents: {', '.join(policy.agents) or 'none'}",
        )
    return PolicySummary(
        policy=stored is not None,
        location=stored.location if stored else "",
        set_at=stored.set_at if stored else "",
        doubt=problem,
        documents=total,
        agents=[
            AgentAccess(
                agent=name,
                documents=0
                if problem
                else sum(
                    compartment.documents for compartment in visible if may_see(rule, compartment)
                ),
                **rule.model_dump(mode="json", exclude={"facts_per_day"}),
            )
            for name, rule in policy.agents.items()
            if agent in (None, name)
        ],
    )
