"""The policy file: strict TOML or JSON with places of mistakes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from errno import EINVAL
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from rolebundle.contracts.base import Mistake, Place, did_you_mean, dotted, mistakes_in, writable
from rolebundle.contracts.policy import AgentRule, Policy
from rolebundle.errors import ConfigurationError
from rolebundle.text.strict_json import NotStrictError, parse_located, parse_strict

MAX_BYTES = 1024 * 1024

_NOT_JSON = 'write plain JSON, as `rolebundle overlay show ROLE` prints it under "overlay"'


class Problem(NamedTuple):
    """A problem of a file. ``place`` is the dotted path of the key; empty for the whole file."""

    place: str
    code: str
    message: str
    hint: str = ""


def parse(data: bytes) -> dict[str, object] | list[Problem]:
    """Return the JSON object in the bytes, or what is wrong.

    A byte order mark at the start is ignored, because some editors write one.
    """
    if len(data) > MAX_BYTES:
        return [_bad_text(f"is longer than {MAX_BYTES // 1024} KiB", "keep the role's words only")]
    try:
        text = data.decode("utf-8-sig")
        value = parse_strict(text)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start}"
        return [_bad_text(reason, "save the file with the encoding UTF-8")]
    except NotStrictError as error:
        return [Problem(_place_of(error, text), "bad_json", f"is not JSON: {error}", _NOT_JSON)]
    if not isinstance(value, dict):
        return [_bad_text("must be one JSON object, {…}", _NOT_JSON)]
    return [*_text_flaws((), value)] or value


def _place_of(error: NotStrictError, text: str) -> str:
    """The line and the column of an error; empty if it is not known."""
    at = error.at
    if at < 0:
        try:
            parse_located(text)
        except NotStrictError as located:
            at = located.at
    if at < 0:
        return ""
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def problem_of(mistake: Mistake, null_hint: str = "correct the value") -> Problem:
    """A mistake in the values of a file, with the next step.

    Args:
        mistake: the mistake.
        null_hint: the next step if the value is null.
    """
    place, allowed, value = dotted(mistake.place), mistake.allowed, mistake.value
    if mistake.kind == "unknown":
        hint = f"allowed keys: {', '.join(allowed)}"
        return Problem(place, "unknown_key", f"unknown key{mistake.guess}", hint)
    if mistake.kind == "missing":
        return Problem(place, "missing_key", "is missing", "add the key")
    if mistake.kind == "object":
        return Problem(place, "bad_value", mistake.message, "correct the values")
    message = mistake.message
    if allowed and isinstance(value, str):
        message += did_you_mean(value, allowed)
    hint = null_hint if value is None else "correct the value"
    return Problem(place, "bad_value", f"{message} (it is {json_text(value)})", hint)


def _text_flaws(place: Place, value: object) -> Iterator[Problem]:
    """What SQLite does not accept in a text: an unpaired surrogate is not UTF-8 either."""
    if isinstance(value, str):
        if not value.isascii() and writable(value) != value:
            yield Problem(dotted(place), "bad_json", "has an unpaired surrogate", _NOT_JSON)
        elif "\x00" in value:
            yield Problem(dotted(place), "bad_json", r"has the character \u0000", "take it out")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _text_flaws(place, key)
            yield from _text_flaws((*place, key), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _text_flaws((*place, number), item)


def _bad_text(message: str, hint: str) -> Problem:
    return Problem("", "bad_json", message, hint)


def json_text(value: object) -> str:
    """Return a value as JSON text, in at most 80 characters."""
    # TOML has dates, too.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return writable(text if len(text) <= 80 else f"{text[:79]}…")


MAX_POLICY_BYTES = 1_000_000


def read_policy_file(path: Path) -> str:
    """The text of a policy file.

    Raises:
        ConfigurationError: ``policy_unreadable``.
    """
    try:
        if path.exists() and not path.is_file():
            # The file is read for each request, and reading a pipe or a terminal may never end.
            raise OSError(EINVAL, "is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_POLICY_BYTES + 1)
        if len(data) > MAX_POLICY_BYTES:
            raise ValueError(f"over {MAX_POLICY_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        problem = f"{path}: the policy file cannot be read ({error.strerror})"
        step = "restore it, or set another one with `rolebundle policy set FILE`"
        raise ConfigurationError("policy_unreadable", problem, step) from error
    except ValueError as error:
        problem = f"{path}: is not a policy file ({error})"
        step = "write it as TOML or JSON in UTF-8"
        raise ConfigurationError("policy_unreadable", problem, step) from error


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
    if not _has_agents_key(values, AgentRule.model_fields):
        values = {"agents": values}
    try:
        return Policy.model_validate(values)
    except ValidationError as error:
        mistake = mistakes_in(error, Policy)[0]
        # The file may name its agents without `agents`.
        place = mistake.place[1:] or mistake.place
        raise bad_policy(source, problem_of(mistake._replace(place=place))) from error


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
    parsed = parse(content.encode("utf-8", "surrogatepass"))
    if isinstance(parsed, list):
        raise bad_policy(source, parsed[0]._replace(hint="write one JSON object: agent id → rule"))
    return parsed


def bad_policy(source: str, problem: Problem) -> ConfigurationError:
    """The error of a policy file with a problem."""
    place = f"{problem.place}: " if problem.place else ""
    return ConfigurationError("bad_policy", f"{source}: {place}{problem.message}", problem.hint)
