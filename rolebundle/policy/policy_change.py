"""Putting a policy into force: which document is in which compartment, and who may see that."""

from __future__ import annotations

import json
import re
from fnmatch import translate
from functools import lru_cache
from unicodedata import normalize

from rolebundle.errors import AccessDenied, RolebundleError
from rolebundle.policy.access import UNREADABLE, active_policy, decision_scopes, may_see
from rolebundle.policy.policy_file import (
    Policy,
    parse_policy,
    parse_policy_file,
)
from rolebundle.storage import compartments, records
from rolebundle.storage.corpus import Corpus, increment_generation
from rolebundle.storage.partition import DeniedPatterns, assign_compartments, no_denied_patterns
from rolebundle.text.paths import compile_glob


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
        # The file is on one of the machines that use a database.
        location = "" if corpus.is_database else location
        records.save_policy(corpus, content, kind, location, set_at)
        moved = assign_compartments(corpus, _matcher(policy))
        increment_generation(corpus)
    return moved


def save_database_access(corpus: Corpus) -> None:
    """Tell a database what each agent may see, for statements of the user of its name.

    A corpus file has no users. Call it inside a write transaction.
    """
    if not corpus.is_database:
        return
    try:
        stored, policy = records.load_policy(corpus), active_policy(corpus)
    except AccessDenied:
        stored = policy = None
    access = []
    if stored and policy:
        file = parse_policy_file(stored.content, stored.format, "the policy")
        places = compartments.stored_compartments(corpus)
        for agent, rule in sorted(policy.agents.items()):
            own = file.model_copy(update={"agents": {agent: rule}})
            content = json.dumps(own.model_dump(exclude_unset=True))
            visible = tuple(place.id for place in places if may_see(rule, place))
            access.append((agent, visible, decision_scopes(rule), content))
    records.save_agent_access(corpus, access)


def deny_matcher(corpus: Corpus) -> DeniedPatterns:
    """The function that gives the policy's deny patterns that match a file.

    An ingest assigns documents to compartments by it. If the policy cannot be read, the documents
    that are assigned meanwhile are hidden from every agent until a policy is set.
    """
    try:
        stored = records.load_policy(corpus) if records.has_policy(corpus) else None
        if stored is None:
            return no_denied_patterns
        return _matcher(parse_policy(stored.content, stored.format, "the policy"))
    except RolebundleError:
        return lambda path, location: (UNREADABLE,)


def _matcher(policy: Policy) -> DeniedPatterns:
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
