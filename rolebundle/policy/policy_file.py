"""The policy file: its format, and the errors in one.

    [reviewer]                      # an agent's id
    scopes = ["engineering"]        # an empty list means every scope
    access_level = "internal"       # denied < public < group < internal < confidential
    deny_patterns = ["hr/**"]       # always take precedence
    roles = ["security-reviewer"]   # the roles that it may use; if missing, any role or none
    role_required = true            # whether it must name one; true by default if it has `roles`
    may_write = ["mark"]            # what it may write: mark, remember; nothing by default
    show_paths = true               # whether it learns where files lie; false by default

JSON with the same content works too. If the file also has a trust table, the agents are under
``agents`` and the table is under ``trust``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import EINVAL
from pathlib import Path
from typing import Literal, get_args

from rolebundle.errors import ConfigurationError
from rolebundle.policy import policy_json
from rolebundle.policy.trust import DEFAULT_TABLE, TrustTable, WriteKind

AccessLevel = Literal["denied", "public", "group", "internal", "confidential"]
LEVELS: tuple[AccessLevel, ...] = ("denied", "public", "group", "internal", "confidential")

MAX_POLICY_BYTES = 1_000_000

_KEYS = (
    "scopes",
    "access_level",
    "deny_patterns",
    "roles",
    "role_required",
    "may_write",
    "show_paths",
)
_MAX_ID_CHARS = 200
_MAX_PATTERN_CHARS = 500
_MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class AgentRule:
    """The policy's rule for one agent.

    Attributes:
        scopes: the scopes that it sees; empty for every scope.
        access_level: the highest sensitivity that it sees.
        deny_patterns: globs of files that it never sees.
        roles: the roles that it may use; ``None`` for every role.
        role_required: whether it must name a role.
        may_write: what it may write.
        show_paths: whether it learns where the files that it sees lie on this machine.
    """

    scopes: tuple[str, ...]
    access_level: AccessLevel
    deny_patterns: tuple[str, ...] = ()
    roles: tuple[str, ...] | None = None
    role_required: bool = False
    may_write: tuple[WriteKind, ...] = ()
    show_paths: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule of each agent, and the trust table."""

    agents: Mapping[str, AgentRule] = field(default_factory=dict)
    trust: TrustTable = DEFAULT_TABLE


def level_rank(level: str) -> int:
    """The place of an access level, or of a document's sensitivity, from 0 for ``denied`` up."""
    return LEVELS.index(level)


def read_policy_file(path: Path) -> str:
    """The text of a policy file.

    Raises:
        ConfigurationError: ``policy_missing`` or ``policy_unreadable``.
    """
    try:
        if path.exists() and not path.is_file():
            # The file is read for each request, and reading a pipe or a terminal may never end.
            raise OSError(EINVAL, "is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_POLICY_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(
            "policy_missing",
            f"{path}: the policy file does not exist",
            "restore it, or set another one with `rolebundle scopes set FILE`",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            "policy_unreadable",
            f"{path}: the policy file cannot be read ({error.strerror})",
            "make the file readable, or set another one with `rolebundle scopes set FILE`",
        ) from error
    return decode_policy(data, str(path))


def decode_policy(data: bytes, source: str) -> str:
    """The text of a policy.

    Raises:
        ConfigurationError: ``policy_unreadable``.
    """
    try:
        if len(data) > MAX_POLICY_BYTES:
            raise ValueError(f"over {MAX_POLICY_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except ValueError as error:
        raise ConfigurationError(
            "policy_unreadable",
            f"{source}: is not a policy file ({error})",
            "write it as TOML or JSON in UTF-8",
        ) from error


def parse_policy(content: str, kind: str, source: str) -> Policy:
    """The policy in a file's text. A file without agents is valid and denies everyone.

    Args:
        content: the text.
        kind: ``toml`` or ``json``.
        source: the file's name, for errors.

    Raises:
        ConfigurationError: ``bad_policy``, naming the file, the agent, the key and what is allowed.
    """
    values = _parse_json(content, source) if kind == "json" else _parse_toml(content, source)
    trust = DEFAULT_TABLE
    if _has_agents_key(values):
        unknown = sorted(values.keys() - {"agents", "trust"})
        if unknown:
            raise _bad_policy(
                source, f"the key {unknown[0]!r} is unknown beside agents", "agents, trust"
            )
        if "trust" in values:
            trust = TrustTable.from_mapping(_mapping(values["trust"], source, "trust"), source)
        values = _mapping(values["agents"], source, "agents")
    return Policy({agent: _rule(agent, rule, source) for agent, rule in values.items()}, trust)


def _has_agents_key(values: Mapping[str, object]) -> bool:
    # An agent may be named "agents"; then the value is its rule, whose values are not tables. An
    # agent under ``agents`` may be named "scopes"; then its value is a table.
    agents = values.get("agents")
    return isinstance(agents, Mapping) and all(
        isinstance(agents.get(key, {}), Mapping) for key in _KEYS
    )


def _parse_toml(content: str, source: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise _bad_policy(source, f"is not TOML ({error})", "a table for each agent") from error


def _parse_json(content: str, source: str) -> Mapping[str, object]:
    parsed = policy_json.parse(content.encode("utf-8", "surrogatepass"))
    if isinstance(parsed, list):
        first = parsed[0]
        message = f"{first.place}: {first.message}" if first.place else first.message
        raise _bad_policy(source, message, "one JSON object: agent id → rule")
    return parsed


def _rule(agent: str, rule: object, source: str) -> AgentRule:
    if not agent.strip() or len(agent) > _MAX_ID_CHARS:
        raise _bad_policy(
            source, f"{agent[:40]!r} is not an agent id", f"1 to {_MAX_ID_CHARS} characters"
        )
    values = _mapping(rule, source, agent)
    unknown = sorted(values.keys() - set(_KEYS))
    if unknown:
        raise _bad_policy(source, f"{agent}: the key {unknown[0]!r} is unknown", ", ".join(_KEYS))
    for key in ("scopes", "access_level"):
        if key not in values:
            raise _bad_policy(
                source, f"{agent}: {key} is missing", "scopes and access_level are required"
            )
    level = values["access_level"]
    if level not in LEVELS:
        raise _bad_policy(source, f"{agent}: access_level {level!r} is unknown", " < ".join(LEVELS))
    roles = _texts(values["roles"], f"{agent}: roles", source) if "roles" in values else None
    role_required = _flag(values, "role_required", agent, source, default=roles is not None)
    if roles == () and role_required:
        raise _bad_policy(
            source,
            f"{agent}: roles is empty, and a role is required, so the agent could ask nothing",
            "at least one role, or role_required = false for an agent that asks without a role",
        )
    return AgentRule(
        scopes=_texts(values["scopes"], f"{agent}: scopes", source),
        access_level=level,
        deny_patterns=_texts(values.get("deny_patterns", []), f"{agent}: deny_patterns", source),
        roles=roles,
        role_required=role_required,
        may_write=_may_write(values.get("may_write", []), agent, source),
        show_paths=_flag(values, "show_paths", agent, source, default=False),
    )


def _flag(
    values: Mapping[str, object], key: str, agent: str, source: str, *, default: bool
) -> bool:
    value = values.get(key, default)
    if not isinstance(value, bool):
        raise _bad_policy(source, f"{agent}: {key} is {repr(value)[:40]}", "true or false")
    return value


def _may_write(value: object, agent: str, source: str) -> tuple[WriteKind, ...]:
    known: tuple[WriteKind, ...] = get_args(WriteKind)
    named = _texts(value, f"{agent}: may_write", source)
    for name in named:
        if name not in known:
            raise _bad_policy(
                source, f"{agent}: may_write has the entry {name[:40]!r}", ", ".join(known)
            )
    return tuple(kind for kind in known if kind in named)


def _mapping(value: object, source: str, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _bad_policy(
            source,
            f"{name}: {_value_text(value)} is not a table",
            "a table with " + ", ".join(_KEYS),
        )
    return value


def _texts(value: object, name: str, source: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad_policy(source, f"{name} is {_value_text(value)}", "a list of texts")
    if len(value) > _MAX_ENTRIES:
        raise _bad_policy(source, f"{name} has {len(value)} entries", f"at most {_MAX_ENTRIES}")
    for item in value:
        if not item.strip() or len(item) > _MAX_PATTERN_CHARS:
            raise _bad_policy(
                source,
                f"{name} has the entry {item[:40]!r}",
                f"texts of 1 to {_MAX_PATTERN_CHARS} characters",
            )
    return tuple(dict.fromkeys(value))


def _value_text(value: object) -> str:
    return "a list with other values than texts" if isinstance(value, list) else repr(value)[:40]


def _bad_policy(source: str, message: str, allowed: str) -> ConfigurationError:
    return ConfigurationError("bad_policy", f"{source}: {message}", f"allowed: {allowed}")
