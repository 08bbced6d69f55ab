"""Policy files: how they are read, and what is wrong in one.

A file names its agents under ``agents``, beside ``trust``. Without a trust table it may name them
at the top. :mod:`rolebundle.contracts.policy` has the keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from errno import EINVAL
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.contracts.policy import AgentRule, PolicyFile
from rolebundle.errors import ConfigurationError
from rolebundle.policy import policy_json
from rolebundle.policy.policy_json import Problem, problem_of
from rolebundle.policy.trust import DEFAULT_TABLE, TrustTable

MAX_POLICY_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule of each agent, and the trust table."""

    agents: Mapping[str, AgentRule] = field(default_factory=dict)
    trust: TrustTable = DEFAULT_TABLE


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
            "restore it, or set another one with `rolebundle policy set FILE`",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            "policy_unreadable",
            f"{path}: the policy file cannot be read ({error.strerror})",
            "make the file readable, or set another one with `rolebundle policy set FILE`",
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
        ConfigurationError: ``bad_policy``, naming the file, the agent, the key and what is allowed;
            ``bad_trust_table`` for the trust table.
    """
    values = _parse_json(content, source) if kind == "json" else _parse_toml(content, source)
    if not _has_agents_key(values, AgentRule.model_fields):
        values = {"agents": values}
    try:
        file = PolicyFile.model_validate(values)
    except ValidationError as error:
        mistake = mistakes_in(error, PolicyFile)[0]
        if mistake.place[0] == "trust":
            raise bad_policy(source, problem_of(mistake), "bad_trust_table") from error
        # The file may name its agents without `agents`.
        place = mistake.place[1:] or mistake.place
        raise bad_policy(source, problem_of(mistake._replace(place=place))) from error
    return Policy(file.agents, TrustTable.of(file.trust, source))


def _has_agents_key(values: Mapping[str, object], rule_keys: Iterable[str]) -> bool:
    # An agent may be named "agents"; then the value is its rule, whose values are not tables. An
    # agent under ``agents`` may be named "scopes"; then its value is a table.
    agents = values.get("agents")
    return isinstance(agents, Mapping) and all(
        isinstance(agents.get(key, {}), Mapping) for key in rule_keys
    )


def _parse_toml(content: str, source: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        problem = Problem("", "bad_toml", f"is not TOML ({error})", "write a table for each agent")
        raise bad_policy(source, problem) from error


def _parse_json(content: str, source: str) -> Mapping[str, object]:
    parsed = policy_json.parse(content.encode("utf-8", "surrogatepass"))
    if isinstance(parsed, list):
        hint = "write one JSON object: agent id → rule"
        raise bad_policy(source, parsed[0]._replace(hint=hint))
    return parsed


def bad_policy(source: str, problem: Problem, code: str = "bad_policy") -> ConfigurationError:
    """The error of a policy file with a problem."""
    place = f"{problem.place}: " if problem.place else ""
    return ConfigurationError(code, f"{source}: {place}{problem.message}", problem.hint)
