"""A policy file: what it may say, and what is wrong with one. Pure.

    [reviewer]                      # an agent's id
    scopes = ["engineering"]        # an empty list means every scope
    access_level = "internal"       # denied < public < group < internal < confidential
    deny_patterns = ["hr/**"]       # always win

The same as JSON works as well. Where the file also says how far origins are trusted, the agents
stand under ``agents`` and the table under ``trust``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rolebundle.errors import ConfigurationError
from rolebundle.policy import overlay_json
from rolebundle.policy.trust import DEFAULT_TABLE, TrustTable

AccessLevel = Literal["denied", "public", "group", "internal", "confidential"]
LEVELS: tuple[AccessLevel, ...] = ("denied", "public", "group", "internal", "confidential")

_KEYS = ("scopes", "access_level", "deny_patterns")
_LONGEST_ID = 200
_LONGEST_PATTERN = 500
_MOST = 1000


@dataclass(frozen=True, slots=True)
class AgentRule:
    """What the policy says of one agent. No scopes means every scope."""

    scopes: tuple[str, ...]
    access_level: AccessLevel
    deny_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may see what, and how far passages may be trusted with an action."""

    agents: Mapping[str, AgentRule] = field(default_factory=dict)
    trust: TrustTable = DEFAULT_TABLE


def level_rank(level: str) -> int:
    """How much a level reaches; a document's sensitivity is on the same scale."""
    return LEVELS.index(level)


def parse_policy(content: str, kind: str, where: str) -> Policy:
    """The policy in a file's text. A file without agents is sound, and denies everybody.

    Args:
        content: the text.
        kind: ``toml`` or ``json``.
        where: what the text was read from, for the error.

    Raises:
        ConfigurationError: ``bad_policy``, naming the file, the agent, the key and what is allowed.
    """
    values = _from_json(content, where) if kind == "json" else _from_toml(content, where)
    trust = DEFAULT_TABLE
    if _is_wrapped(values):
        unknown = sorted(values.keys() - {"agents", "trust"})
        if unknown:
            raise _bad(where, f"the key {unknown[0]!r} is unknown beside agents", "agents, trust")
        if "trust" in values:
            trust = TrustTable.from_mapping(_mapping(values["trust"], where, "trust"), where)
        values = _mapping(values["agents"], where, "agents")
    return Policy({agent: _rule(agent, rule, where) for agent, rule in values.items()}, trust)


def _is_wrapped(values: Mapping[str, object]) -> bool:
    # An agent could be called "agents"; then what stands there is its rule, of plain values. One
    # could be called "scopes" as well; then what stands there is a table.
    agents = values.get("agents")
    return isinstance(agents, Mapping) and all(
        isinstance(agents.get(key, {}), Mapping) for key in _KEYS
    )


def _from_toml(content: str, where: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise _bad(where, f"is not TOML ({error})", "a table for each agent") from error


def _from_json(content: str, where: str) -> Mapping[str, object]:
    parsed = overlay_json.parse(content.encode("utf-8", "surrogatepass"))
    if isinstance(parsed, list):
        first = parsed[0]
        what = f"{first.place}: {first.message}" if first.place else first.message
        raise _bad(where, what, "one JSON object: agent id → rule")
    return parsed


def _rule(agent: str, rule: object, where: str) -> AgentRule:
    if not agent.strip() or len(agent) > _LONGEST_ID:
        raise _bad(where, f"{agent[:40]!r} is no agent id", f"1 to {_LONGEST_ID} characters")
    values = _mapping(rule, where, agent)
    unknown = sorted(values.keys() - set(_KEYS))
    if unknown:
        raise _bad(where, f"{agent}: the key {unknown[0]!r} is unknown", ", ".join(_KEYS))
    for key in ("scopes", "access_level"):
        if key not in values:
            raise _bad(where, f"{agent}: {key} is missing", "scopes and access_level are required")
    level = values["access_level"]
    if level not in LEVELS:
        raise _bad(where, f"{agent}: access_level {level!r} is unknown", " < ".join(LEVELS))
    return AgentRule(
        scopes=_texts(values["scopes"], f"{agent}: scopes", where),
        access_level=level,
        deny_patterns=_texts(values.get("deny_patterns", []), f"{agent}: deny_patterns", where),
    )


def _mapping(value: object, where: str, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _bad(
            where, f"{name}: {_kind(value)} is not a rule", "a table with " + ", ".join(_KEYS)
        )
    return value


def _texts(value: object, name: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad(where, f"{name} is {_kind(value)}", "a list of texts")
    if len(value) > _MOST:
        raise _bad(where, f"{name} has {len(value)} entries", f"at most {_MOST}")
    for item in value:
        if not item.strip() or len(item) > _LONGEST_PATTERN:
            raise _bad(
                where,
                f"{name} has the entry {item[:40]!r}",
                f"texts of 1 to {_LONGEST_PATTERN} characters",
            )
    return tuple(dict.fromkeys(value))


def _kind(value: object) -> str:
    return "a list with other things than texts" if isinstance(value, list) else repr(value)[:40]


def _bad(where: str, what: str, allowed: str) -> ConfigurationError:
    return ConfigurationError("bad_policy", f"{where}: {what}", f"allowed: {allowed}")
