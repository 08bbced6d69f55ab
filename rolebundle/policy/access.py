"""Who may see what: rules of agents, and for whom a document is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from shlex import join
from typing import NamedTuple
from unicodedata import normalize

from rolebundle.contracts.policy import EVERY_SCOPE, AgentRule, Policy
from rolebundle.contracts.terms import Sensitivity, level_rank
from rolebundle.errors import AccessDenied, ConfigurationError, RolebundleError, UsageError
from rolebundle.policy.policy_file import parse_policy, read_policy_file
from rolebundle.policy.trust import AgentView
from rolebundle.storage.compartments import Compartment, stored_compartments
from rolebundle.storage.corpus import Corpus, increment_generation, true_generation
from rolebundle.storage.digests import content_hash
from rolebundle.storage.partition import DenyMatcher, assign_compartments, no_denied_patterns
from rolebundle.storage.publications import Publication, find_publication, load_manifest
from rolebundle.storage.records import StoredPolicy, load_policy, save_agent_access, save_policy
from rolebundle.text.paths import compile_glob

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
    try:
        stored = load_policy(corpus)
        if stored is None:
            return None
        if policy_problem(stored):
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
    return restrict_to_rule(corpus, rule_for(policy, agent) if policy else None)


def restrict_to_rule(corpus: Corpus, rule: AgentRule | None) -> AgentView:
    """Show in a restricted corpus what a rule allows. Call it inside ``corpus.reading()``.

    Args:
        corpus: a restricted corpus.
        rule: the rule of an agent; None, without a policy, shows everything except quarantined
            documents.
    """
    stored = stored_compartments(corpus)
    replica = load_manifest(corpus)
    # Under a policy the generation is hidden: it also counts writes to what the agent cannot see.
    generation = 0 if rule else true_generation(corpus)
    visible = [compartment.id for compartment in stored if may_see(rule, compartment)]
    corpus.restrict_to_compartments(visible, generation=generation)
    quarantined = replica.manifest.quarantined if replica else count_quarantined(stored, rule)
    if rule is None:
        return AgentView(quarantined)
    return AgentView(
        quarantined,
        rule.roles,
        rule.role_required,
        rule.may_write,
        decision_scopes(rule),
        None if rule.access_level == "denied" else rule.access_level,
        rule.show_paths,
        rule.facts_per_day,
        rule.may_set_time,
    )


def decision_scopes(rule: AgentRule) -> tuple[str, ...] | None:
    """The scopes whose decisions an agent sees. A decision has the sensitivity internal."""
    if level_rank(rule.access_level) < level_rank("internal"):
        return ()
    return None if EVERY_SCOPE in rule.scopes else rule.scopes


def count_quarantined(stored: Iterable[Compartment], rule: AgentRule | None) -> int:
    """The number of documents that only the quarantine hides from an agent.

    Args:
        stored: every compartment of the corpus.
        rule: the agent's rule, or None without a policy.
    """
    return sum(
        place.documents for place in stored if place.quarantined and _rule_allows(rule, place)
    )


def may_see(rule: AgentRule | None, compartment: Compartment) -> bool:
    """Whether an agent with this rule sees a compartment; without a rule, all see it."""
    return not compartment.quarantined and _rule_allows(rule, compartment)


def _rule_allows(rule: AgentRule | None, compartment: Compartment) -> bool:
    return rule is None or (
        not {EVERY_SCOPE, compartment.scope}.isdisjoint(rule.scopes)
        and level_rank(rule.access_level) >= level_rank(compartment.sensitivity)
        and not {UNREADABLE, *rule.deny_patterns} & set(compartment.denied)
    )


# -- putting a policy into force -------------------------------------------------------------------


def set_policy(corpus: Corpus, content: str, kind: str, location: str, set_at: str) -> int:
    """Activate a policy and assign every document to its compartment under it.

    Args:
        corpus: a corpus open for writing.
        content: the policy's text.
        kind: ``toml`` or ``json``.
        location: the file that must keep this content; empty if there is none.
        set_at: the time, ISO 8601.

    Returns:
        How many documents changed their compartment.

    Raises:
        ConfigurationError: the policy is malformed. The former policy stays active.
    """
    policy = parse_policy(content, kind, location or "the policy")
    with corpus.writing():
        save_policy(corpus, content, kind, "" if corpus.is_shared else location, set_at)
        moved = assign_compartments(corpus, _matcher(policy))
        increment_generation(corpus)
    return moved


def save_database_access(corpus: Corpus) -> None:
    """Tell a database what each agent may see, for statements of the user of its name.

    Call it inside a write transaction of one.
    """
    try:
        policy = active_policy(corpus)
    except AccessDenied:
        policy = None
    access = []
    if policy:
        places = stored_compartments(corpus)
        for agent, rule in sorted(policy.agents.items()):
            content = json.dumps({"agents": {agent: rule.model_dump(exclude_unset=True)}})
            visible = tuple(place.id for place in places if may_see(rule, place))
            access.append((agent, visible, decision_scopes(rule), content))
    save_agent_access(corpus, access)


def deny_matcher(corpus: Corpus) -> DenyMatcher:
    """The function that gives the policy's deny patterns that match a file.

    An ingest assigns documents to compartments by it. If the policy cannot be read, the documents
    that are assigned meanwhile are hidden from every agent until a policy is set.
    """
    try:
        stored = load_policy(corpus)
        if stored is None:
            return no_denied_patterns
        return _matcher(parse_policy(stored.content, stored.format, "the policy"))
    except RolebundleError:
        return lambda path, location: (UNREADABLE,)


def _matcher(policy: Policy) -> DenyMatcher:
    patterns = sorted({p for rule in policy.agents.values() for p in rule.deny_patterns})
    if not patterns:
        return no_denied_patterns
    return lambda path, location: tuple(p for p in patterns if denies(p, path, location))


def denies(pattern: str, path: str, location: str = "") -> bool:
    """Whether a deny pattern matches a file. Patterns are read broadly, because they deny.

    Case is ignored, a star also matches folders, a folder matches everything in it, and a
    pattern may start at any folder of the file's location: ``hr/**`` matches even if ``docs/hr``
    itself was ingested.

    Args:
        pattern: the glob.
        path: the file's path in the corpus.
        location: the file's path on this machine.
    """
    matches = _deny_regex(pattern).match
    return any(matches(place) for place in (_plain(path), _plain(location)) if place)


@lru_cache(maxsize=100_000)
def _deny_regex(pattern: str) -> re.Pattern[str]:
    """All readings of a deny pattern as one regular expression."""
    glob = _plain(pattern).rstrip("/")
    wide = glob.replace("**", "*").replace("*", "**")
    globs = {glob, wide, f"**/{glob}", f"**/{wide}"}
    globs |= {f"{reading}/**" for reading in globs}
    regexes = [compile_glob(reading).pattern for reading in sorted(globs)]
    if "[" in glob:
        # Globs of a shell have classes such as [a-m].
        regexes += [translate(reading) for reading in sorted(globs)]
    return re.compile("|".join(f"(?s:{regex})" for regex in regexes))


def _plain(path: str) -> str:
    # File systems differ in whether they compose accents.
    plain = normalize("NFC", normalize("NFC", path).casefold()).replace("\\", "/")
    return plain.removeprefix("./").lstrip("/")


# -- who reads a replica ---------------------------------------------------------------------------


class Audience(NamedTuple):
    """Who reads a replica.

    Attributes:
        agent: the only agent that the replica answers; empty if it answers everyone.
        rule: what the replica may hold.
    """

    agent: str
    rule: AgentRule

    def replica_policy(self) -> str:
        """The policy in the replica, as JSON: the agent's own rule. Empty if it has none.

        Deny patterns have done their work: what they match is not in the replica. A replica is
        read-only, and knows no paths of the publisher's machine.
        """
        if not self.agent:
            return ""
        kept = {"scopes", "access_level", "role_required", "roles"}
        # An earlier version, which may read the replica, does not know the key.
        kept |= {"may_set_time"} if self.rule.may_set_time else set()
        rule = self.rule.model_dump(include=kept, exclude_none=True)
        return json.dumps({"agents": {self.agent: rule}}, sort_keys=True)

    def visibility(self) -> str:
        """Scopes and access level, as JSON, for the next publish to the target."""
        return json.dumps(self.rule.model_dump(include={"scopes", "access_level"}))


def resolve_audience(
    corpus: Corpus, target: str, agent: str, scopes: Sequence[str], level: Sensitivity | None
) -> Audience:
    """The audience that a publisher names: an agent, or scopes and an access level.

    Args:
        corpus: the publisher's corpus.
        target: where it is published. If neither an agent nor a level is given, the audience is
            that of the last publish to this target.
        agent: an agent of the policy; empty if ``level`` is given.
        scopes: the scopes; empty for every scope.
        level: the highest sensitivity; ``None`` if ``agent`` is given.

    Raises:
        UsageError: both were named, or neither; or the target has another audience.
        ConfigurationError: the policy gives this agent nothing.
        AccessDenied: the policy cannot be relied upon.
    """
    last = find_publication(corpus, target)
    if last is not None and last.visibility and not (agent or scopes or level):
        agent = last.agent
        if not agent:
            visibility = json.loads(last.visibility)
            scopes, level = visibility["scopes"], visibility["access_level"]
    if bool(agent) == bool(level) or (agent and scopes):
        problem = "a replica is published either for an agent or for a level"
        hint = "give --agent ID, or --level LEVEL with or without --scopes A,B"
        raise UsageError("no_audience", problem, hint)
    if last is not None and last.visibility and last.agent != agent:
        reader = f"for the agent {last.agent!r}" if last.agent else "for everyone who has it"
        step = "choose another target: those who read this one would get what others may see"
        raise UsageError("other_audience", f"{target}: is published {reader}", step)
    policy = active_policy(corpus)
    if level:
        chosen = tuple(scopes) or (EVERY_SCOPE,)
        return Audience("", AgentRule.model_construct(scopes=chosen, access_level=level))
    rule = policy.agents.get(agent) if policy else None
    if policy is None or rule is None or rule.access_level == "denied":
        raise ConfigurationError(
            "agent_sees_nothing",
            f"the agent {agent!r} may see nothing of this corpus"
            + ("" if policy else ": it has no policy"),
            "see `rolebundle policy show`, or publish for a level with --level LEVEL",
        )
    return Audience(agent, rule)


def publish_command(publication: Publication) -> str:
    """The command that publishes to a target again. A completed publish has set its audience."""
    audience = "" if publication.visibility else "(--agent ID | --level LEVEL) "
    return f"{join(['rolebundle', 'replica', 'publish', publication.target])} {audience}--key FILE"
