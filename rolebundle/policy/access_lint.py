"""Lint a policy: rules that are more open than they look, or that match nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rolebundle.errors import RolebundleError
from rolebundle.policy.access import denies, policy_problem
from rolebundle.policy.overlay_lint import LintFinding
from rolebundle.policy.policy_file import AgentRule, Policy, level_rank, parse_policy
from rolebundle.policy.trust import loosened_values
from rolebundle.storage import stored_policy
from rolebundle.storage.connection import Corpus
from rolebundle.storage.documents import AccessAttributes, access_attributes


def lint_policy(policy: Policy, corpus: Corpus | None = None) -> list[LintFinding]:
    """The findings for a policy, and for its effect on a corpus if one is given."""
    findings = list(_lint_rules(policy))
    if corpus is not None:
        documents = access_attributes(corpus)
        for agent, rule in policy.agents.items():
            findings += _lint_against(agent, rule, documents)
    return findings


def lint_active_policy(corpus: Corpus) -> list[LintFinding]:
    """The findings for the policy of a corpus."""
    stored = stored_policy.load_policy(corpus)
    if stored is None:
        message = "no policy was set: everyone sees every document, with or without an agent id"
        return [LintFinding("warning", "", "no_policy", message)]
    problem = policy_problem(stored)
    try:
        policy = parse_policy(stored.content, stored.format, stored.location or "the policy")
    except RolebundleError as error:
        return [LintFinding("error", "", error.code, f"everyone is denied: {error.message}")]
    findings = lint_policy(policy, corpus)
    if problem:
        message = f"everyone is denied: {problem}"
        findings.insert(0, LintFinding("error", "", "policy_doubtful", message))
    return findings


def _lint_rules(policy: Policy) -> Iterator[LintFinding]:
    if not policy.agents:
        yield LintFinding("warning", "", "no_agents", "names no agent: everyone is denied")
    for agent, rule in policy.agents.items():
        if rule.access_level == "denied":
            message = "has the access level denied: it sees nothing"
            yield LintFinding("warning", agent, "denied_agent", message)
        elif not rule.scopes:
            message = "is empty, which means EVERY scope, including later ones"
            yield LintFinding("warning", f"{agent}.scopes", "all_scopes", message)
    for message in loosened_values(policy.trust):
        yield LintFinding("warning", "trust", "trust_loosened", message)


def _lint_against(
    agent: str, rule: AgentRule, documents: Sequence[AccessAttributes]
) -> Iterator[LintFinding]:
    scopes = {document.scope for document in documents}
    for scope in rule.scopes:
        if scope not in scopes:
            known = ", ".join(sorted(scopes)) or "none"
            message = f"no document has the scope {scope!r}; in the corpus: {known}"
            yield LintFinding("warning", f"{agent}.scopes", "unknown_scope", message)
    in_scope = [
        document for document in documents if not rule.scopes or document.scope in rule.scopes
    ]
    rank = level_rank(rule.access_level)
    has_visible = any(rank >= level_rank(document.sensitivity) for document in in_scope)
    if in_scope and not has_visible and rule.access_level != "denied":
        message = f"{rule.access_level} reaches none of the {len(in_scope)} documents in its scopes"
        yield LintFinding("warning", f"{agent}.access_level", "level_too_low", message)
    for pattern in rule.deny_patterns:
        if not any(denies(pattern, document.path, document.location) for document in documents):
            message = f"{pattern!r} matches no document of the corpus"
            yield LintFinding(
                "warning", f"{agent}.deny_patterns", "pattern_matches_nothing", message
            )
