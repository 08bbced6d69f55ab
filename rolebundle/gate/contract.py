"""Contracts of the gate: read, checked, and approved by the owner."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from pydantic import ValidationError
from referencing import Registry

from rolebundle.contracts.base import first_mistake
from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.gate import GateContract
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.gate.files import NotReadable, WorkFolder, read_json, read_regular
from rolebundle.ingest.manifests import check_path
from rolebundle.scan import linear
from rolebundle.storage import records
from rolebundle.text.strict_json import NotStrictError
from rolebundle.workspace import Workspace

MAX_CONTRACT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadedContract:
    """A contract with its absolute path and the SHA-256 of its bytes."""

    path: Path
    content_hash: str
    contract: GateContract

    @property
    def commands(self) -> list[list[str]]:
        """The commands of its criteria."""
        return [criterion.command for criterion in self.contract.criteria if criterion.command]


def location_of(path: Path) -> Path:
    """The absolute path of a contract, by which it is known.

    Raises:
        UsageError: the path is not valid text.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link
    check_path(absolute)
    return absolute


def load_contract(path: Path) -> LoadedContract:
    """Read a contract.

    Raises:
        UsageError: ``no_contract``: there is no such file.
        ConfigurationError: ``bad_contract``, naming the file, the criterion, the key and what is
            allowed.
    """
    location = location_of(path)
    try:
        content = read_regular(location, MAX_CONTRACT_BYTES)
    except NotReadable as error:
        raise UsageError(
            "no_contract", f"{location}: {error}", "name the contract's TOML file itself"
        ) from error
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise bad_contract(location, f"is not TOML: {error}", "correct it") from error
    try:
        contract = GateContract.model_validate(values)
    except ValidationError as error:
        problem, allowed = first_mistake(error, GateContract, values, "criteria", "criterion")
        raise bad_contract(location, problem, allowed or "see docs/gate.md for the keys") from error
    for criterion in contract.criteria:
        if criterion.pattern is not None:
            try:
                linear.check(criterion.pattern)
            except linear.PatternError as error:
                place = f"criterion {criterion.id}: pattern"
                hint = "write an RE2 expression that only the wanted text matches"
                raise bad_contract(location, f"{place}: {error}", hint) from error
    return LoadedContract(location, sha256(content).hexdigest(), contract)


def bad_contract(path: Path, message: str, hint: str) -> ConfigurationError:
    """The error of a contract that is wrong."""
    return ConfigurationError("bad_contract", f"{path}: {message}", hint)


_SHELLS = re.compile(r"(?:[a-z]*sh|cmd|powershell)")
_INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|nodejs|php|lua|deno|bun|osascript)[\d.]*w?")
_WRAPPERS = frozenset("env nice nohup timeout sudo doas time setsid stdbuf xargs busybox".split())
_INLINE = re.compile(
    r"-[A-Za-z]*[cCeEpr]\w*|--(?:eval|print|command|run|exec)\b.*|-|/[ck]|eval", re.I
)


def has_inline_code(command: Sequence[str]) -> bool:
    """Whether a list of arguments starts a shell, or an interpreter with code in an argument.

    A shell or interpreter that is given a script is neither: the script must not change.
    """
    names = [re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe") for word in command]
    for at, name in enumerate(names if names[0] in _WRAPPERS else names[:1]):
        if _SHELLS.fullmatch(name) or _INTERPRETERS.fullmatch(name):
            # Up to a module or a script.
            options = takewhile(
                lambda word: word != "-m" and not re.match(r"[^-].*[./]", word), command[at + 1 :]
            )
            return at + 1 == len(command) or any(map(_INLINE.fullmatch, options))
    return False


def approve_contract(workspace: Workspace, contract: Path, *, inline_code: bool = False) -> str:
    """Let the commands of a contract be run until its content changes; return its location.

    The corpus file is created if it is missing.

    Raises:
        UsageError: there is no such contract; or ``inline_code`` is false, and a command starts a
            shell, or an interpreter with code in an argument.
        ConfigurationError: the contract is wrong.
    """
    loaded = load_contract(contract)
    for command in loaded.commands:
        if not inline_code and has_inline_code(command):
            problem = f"{loaded.path}: has a shell or code as argument: {shlex.join(command)[:200]}"
            step = "put the code into a file beside the contract, or use --inline-code"
            raise UsageError("inline_code", problem, step)
    location, approved_at = str(loaded.path), iso_utc(datetime.now(UTC))
    with workspace.recorded_change("trust", create=True) as (corpus, details):
        records.approve(corpus, location, loaded.content_hash, approved_at)
        details["approved"] = 1
    return location


def revoke_contract(workspace: Workspace, contract: Path) -> str:
    """Withdraw the approval of a contract, which may be gone; return its location.

    Raises:
        UsageError: it was not approved.
    """
    location = str(location_of(contract))
    with workspace.recorded_change("trust") as (corpus, details):
        if not records.revoke(corpus, location):
            step = "`rolebundle gate approve` shows what was approved"
            raise UsageError("not_approved", f"{location}: was not approved", step)
        details["revoked"] = 1
    return location


def schema_validator(work: WorkFolder, path: str) -> Any:
    """The validator of a JSON Schema file. It loads nothing from elsewhere.

    Raises:
        NotReadable: the file cannot be read.
        ConfigurationError: it is no JSON Schema.
    """

    def pattern(_validator: Any, regex: str, instance: Any, _schema: Any) -> Any:
        # In linear time, unlike Python's expressions.
        if isinstance(instance, str) and not linear.compiled(regex).search(linear.utf8(instance)):
            yield jsonschema.ValidationError(f"{instance[:80]!r} does not match {regex[:80]!r}")

    def refused(*_words: Any) -> Any:
        raise NotImplementedError("patternProperties")

    try:
        schema = read_json(work.read(path))
        kind: Any = validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except (NotStrictError, jsonschema.SchemaError, TypeError) as error:
        message = f"{path}: is no JSON Schema ({str(error).splitlines()[0][:200]})"
        raise ConfigurationError("bad_contract", message, "correct the JSON Schema") from error
    extend: Any = jsonschema.validators.extend
    validator = extend(kind, {"pattern": pattern, "patternProperties": refused})
    return validator(schema, registry=Registry())


def fits(schema: Any, data: bytes) -> tuple[bool | None, str]:
    """Whether JSON fits a schema, ``None`` if that cannot be found out; and why."""
    try:
        error = best_match(schema.iter_errors(read_json(data)))
    except NotStrictError as reason:
        return False, f"is not JSON ({reason})"
    except Exception as reason:  # A reference without a target, endless recursion, an expression.
        return None, f"cannot be validated ({type(reason).__name__}: {reason})"[:200]
    return error is None, f"{error.json_path}: {error.message}"[:200] if error else "fits"
