"""What is wrong with a policy, or more open than it looks; before it is set, and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rolebundle.errors import RolebundleError
from rolebundle.policy.overlay_lint import LintFinding
from rolebundle.policy.policy import AgentRule, Policy, level_rank, parse_policy
from rolebundle.policy.scopes import denies, doubt
from rolebundle.policy.trust import loosened_values
from rolebundle.storage import stored_policy
from rolebundle.storage.connection import Corpus
from rolebundle.storage.documents import AccessAttributes, access_attributes


def lint_policy(policy: Policy, corpus: Corpus | None = None) -> list[LintFinding]:
    """What to look at twice in a policy; with a corpus also what in it matches nothing there.

    Args:
        policy: the policy.
        corpus: the corpus that it is for.
    """
    found = list(_of_the_policy(policy))
    if corpus is not None:
        documents = access_attributes(corpus)
        for agent, rule in policy.agents.items():
            found += _against(agent, rule, documents)
    return found


def lint_stored(corpus: Corpus) -> list[LintFinding]:
    """What to look at twice in the policy that the corpus is under."""
    stored = stored_policy.load_policy(corpus)
    if stored is None:
        return [
            LintFinding(
                "warning",
                "",
                "no_policy",
                "no policy was set: every agent, named or not, sees every document",
            )
        ]
    reason = doubt(stored)
    doubts = [LintFinding("error", "", "policy_doubtful", f"everybody is denied: {reason}")]
    try:
        policy = parse_policy(stored.content, stored.format, stored.location or "the policy")
    except RolebundleError as error:
        return [LintFinding("error", "", error.code, f"everybody is denied: {error.message}")]
    return (doubts if reason else []) + lint_policy(policy, corpus)


def _of_the_policy(policy: Policy) -> Iterator[LintFinding]:
    if not policy.agents:
        yield LintFinding("warning", "", "no_agents", "names no agent: everybody is denied")
    for agent, rule in policy.agents.items():
        if rule.access_level == "denied":
            yield LintFinding(
                "warning", agent, "denied_agent", "has the level denied: sees nothing"
            )
        elif not rule.scopes:
            yield LintFinding(
                "warning",
                f"{agent}.scopes",
                "all_scopes",
                "is empty, which means EVERY scope, those that come later as well",
            )
    for message in loosened_values(policy.trust):
        yield LintFinding("warning", "trust", "trust_loosened", message)


def _against(
    agent: str, rule: AgentRule, documents: Sequence[AccessAttributes]
) -> Iterator[LintFinding]:
    scopes = {scope for scope, *_ in documents}
    for scope in rule.scopes:
        if scope not in scopes:
            known = ", ".join(sorted(scopes)) or "none"
            yield LintFinding(
                "warning",
                f"{agent}.scopes",
                "unknown_scope",
                f"no document has the scope {scope!r}; in the corpus: {known}",
            )
    in_scope = [one for one in documents if not rule.scopes or one[0] in rule.scopes]
    reached = [one for one in in_scope if level_rank(rule.access_level) >= level_rank(one[1])]
    if in_scope and not reached and rule.access_level != "denied":
        yield LintFinding(
            "warning",
            f"{agent}.access_level",
            "level_too_low",
            f"{rule.access_level} reaches none of the {len(in_scope)} documents in its scopes",
        )
    for pattern in rule.deny_patterns:
        if not any(denies(pattern, path, location) for _, _, path, location in documents):
            yield LintFinding(
                "warning",
                f"{agent}.deny_patterns",
                "pattern_matches_nothing",
                f"{pattern!r} matches no document of the corpus",
            )
