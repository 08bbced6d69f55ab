"""Who may see which compartments. The default is to deny.

A policy file maps an agent's id to the scopes that it sees, the access level that it has, and the
deny patterns that always win. It is copied into the corpus when it is set, and the file must still
say the same when an agent asks: a policy that is missing, empty or malformed denies everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from errno import EINVAL
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

from rolebundle.errors import AccessDenied, ConfigurationError, RolebundleError
from rolebundle.policy.admitted import Admitted
from rolebundle.policy.policy import AgentRule, Policy, level_rank, parse_policy
from rolebundle.policy.trust import DEFAULT_TABLE
from rolebundle.storage import compartments, documents, stored_policy
from rolebundle.storage.compartments import Compartment
from rolebundle.storage.connection import Corpus
from rolebundle.storage.partition import DeniedPatterns, assign_compartments, no_denied_patterns
from rolebundle.storage.store import increment_generation
from rolebundle.storage.stored_policy import StoredPolicy
from rolebundle.text.globs import compile_glob

LARGEST_POLICY = 1_000_000
"""Bytes of a policy file that are read at all."""


def denied() -> AccessDenied:
    """The one refusal: whoever is refused learns nothing about why."""
    return AccessDenied(
        "access_denied",
        "this agent may not see anything here",
        "ask whoever runs the corpus: `rolebundle scopes show`",
    )


def policy_in_force(corpus: Corpus) -> Policy | None:
    """The policy that agents are held to; ``None`` where none was ever set.

    Raises:
        AccessDenied: there is one, and it cannot be relied upon.
    """
    if not stored_policy.has_policy(corpus):
        return None
    try:
        stored = stored_policy.load_policy(corpus)
        if stored is None or doubt(stored):
            raise denied()
        return parse_policy(stored.content, stored.format, "the policy")
    except RolebundleError as error:
        raise denied() from error


def doubt(stored: StoredPolicy) -> str:
    """Why the stored policy denies everybody; empty where it holds."""
    if stored_policy.policy_digest(stored.content) != stored.digest:
        return "the policy in the corpus was changed"
    if not stored.location:
        return ""
    try:
        content = read_policy_file(Path(stored.location))
    except ConfigurationError as error:
        return error.message
    if stored_policy.policy_digest(content) != stored.digest:
        return f"{stored.location}: was changed since it was set"
    return ""


def rule_of(policy: Policy, agent: str | None) -> AgentRule:
    """What the policy says of an agent.

    Raises:
        AccessDenied: it does not name it, or gives it nothing.
    """
    rule = policy.agents.get(agent) if agent is not None else None
    if rule is None or rule.access_level == "denied":
        raise denied()
    return rule


def show(corpus: Corpus, agent: str | None) -> Admitted:
    """Let a narrowed corpus show what an agent may see; inside ``corpus.reading()``.

    Without a policy that is everything but what the scan at the door keeps back.

    Raises:
        AccessDenied: the policy gives this agent nothing.
    """
    policy = policy_in_force(corpus)
    rule = rule_of(policy, agent) if policy else None
    places = compartments.stored_compartments(corpus)
    # Under a policy a count of writes would tell of those to what the agent cannot see.
    generation = 0 if policy else documents.true_generation(corpus)
    corpus.restrict_to_compartments(
        (place.id for place in places if (may_see(rule, place) if rule else not place.quarantined)),
        generation=generation,
    )
    return Admitted(policy.trust if policy else DEFAULT_TABLE, quarantined(places, rule))


def quarantined(places: Iterable[Compartment], rule: AgentRule | None) -> int:
    """How many documents are kept back by the scan that an agent would see else.

    Args:
        places: every compartment of the file.
        rule: the agent's; ``None`` where there is no policy.
    """
    return sum(
        place.documents
        for place in places
        if place.quarantined and (rule is None or _may_know(rule, place))
    )


def may_see(rule: AgentRule, compartment: Compartment) -> bool:
    """Whether an agent with this rule sees a compartment."""
    return not compartment.quarantined and _may_know(rule, compartment)


def _may_know(rule: AgentRule, compartment: Compartment) -> bool:
    return (
        (not rule.scopes or compartment.scope in rule.scopes)
        and level_rank(rule.access_level) >= level_rank(compartment.sensitivity)
        and not set(rule.deny_patterns) & set(compartment.denied)
    )


def read_policy_file(path: Path) -> str:
    """The text of a policy file.

    Raises:
        ConfigurationError: ``policy_missing``, ``policy_unreadable``.
    """
    try:
        if path.exists() and not path.is_file():
            # Reading a pipe or a terminal may never end, and is done for each request.
            raise OSError(EINVAL, "is not a file")
        with path.open("rb") as file:
            data = file.read(LARGEST_POLICY + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(
            "policy_missing",
            f"{path}: there is no such policy file",
            "restore it, or set another one with `rolebundle scopes set FILE`",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            "policy_unreadable",
            f"{path}: the policy file cannot be read ({error.strerror})",
            "name a file that can be read",
        ) from error
    return decoded_policy(data, str(path))


def decoded_policy(data: bytes, where: str) -> str:
    """The text of a policy.

    Raises:
        ConfigurationError: ``policy_unreadable``.
    """
    try:
        if len(data) > LARGEST_POLICY:
            raise ValueError(f"over {LARGEST_POLICY:,} bytes")
        return data.decode("utf-8-sig")
    except ValueError as error:
        raise ConfigurationError(
            "policy_unreadable",
            f"{where}: is not a policy file ({error})",
            "write it as TOML or JSON in UTF-8",
        ) from error


def set_policy(corpus: Corpus, content: str, kind: str, location: str, set_at: str) -> int:
    """Put a policy into force, and every document into the compartment that it now belongs to.

    Args:
        corpus: a corpus open for writing.
        content: the policy's text.
        kind: ``toml`` or ``json``.
        location: the file that must go on saying the same; empty where there is none.
        set_at: the time, ISO 8601.

    Returns:
        How many documents moved.

    Raises:
        ConfigurationError: it is malformed. What was in force stays in force.
    """
    policy = parse_policy(content, kind, location or "the policy")
    with corpus.writing():
        stored_policy.save_policy(corpus, content, kind, location, set_at)
        moved = assign_compartments(corpus, _matcher(_patterns(policy.agents.values())))
        increment_generation(corpus)
    return moved


def deny_matcher(corpus: Corpus) -> DeniedPatterns:
    """Which of the policy's deny patterns match a file: what an ingest sorts documents by.

    A policy that cannot be read denies everybody, so that nothing depends on it.
    """
    try:
        stored = stored_policy.load_policy(corpus) if stored_policy.has_policy(corpus) else None
        policy = parse_policy(stored.content, stored.format, "the policy") if stored else None
    except RolebundleError:
        policy = None
    return _matcher(_patterns(policy.agents.values())) if policy else no_denied_patterns


def _patterns(rules: Iterable[AgentRule]) -> tuple[str, ...]:
    return tuple(sorted({pattern for rule in rules for pattern in rule.deny_patterns}))


def _matcher(patterns: Sequence[str]) -> DeniedPatterns:
    if not patterns:
        return no_denied_patterns

    def matching(path: str, location: str) -> tuple[str, ...]:
        return tuple(pattern for pattern in patterns if denies(pattern, path, location))

    return matching


def denies(pattern: str, path: str, location: str = "") -> bool:
    """Whether a deny pattern hits a file. In doubt it does.

    Case does not count, a star may stand for folders as well, a folder stands for all that is in
    it, and a pattern hits wherever a folder of the file's whole location begins: ``hr/**`` also
    where ``docs/hr`` itself was ingested.

    Args:
        pattern: the glob.
        path: the file's path in the corpus.
        location: where the file lies on this machine.
    """
    hits = _expression(pattern).match
    return any(hits(place) for place in (_plain(path), _plain(location)) if place)


@lru_cache(maxsize=100_000)
def _expression(pattern: str) -> re.Pattern[str]:
    # All of a pattern's readings in one, kept for every file that it is held against.
    glob = _plain(pattern).rstrip("/")
    wide = glob.replace("**", "*").replace("*", "**")
    globs = {glob, wide, f"**/{glob}", f"**/{wide}"}
    globs |= {f"{one}/**" for one in globs}
    readings = [compile_glob(one).pattern for one in sorted(globs)]
    if "[" in glob:
        # A shell's glob has classes such as [a-m] as well.
        readings += [translate(one) for one in sorted(globs)]
    return re.compile("|".join(f"(?s:{one})" for one in readings))


def _plain(path: str) -> str:
    # One file system composes accents, another one takes them apart.
    plain = normalize("NFC", normalize("NFC", path).casefold()).replace("\\", "/")
    # Both begin at some folder, the root of the file system as well.
    return plain.removeprefix("./").lstrip("/")
