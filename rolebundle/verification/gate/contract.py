"""The contract of a gate: a TOML file that says what must hold before work counts as done."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.gate import GateContract
from rolebundle.contracts.mistakes import Mistake, mistakes_in
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.manifests import check_path
from rolebundle.scan import linear
from rolebundle.verification.gate.files import NotReadable, read_regular

MAX_CONTRACT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadedContract:
    """A contract with its absolute path and the SHA-256 of its bytes."""

    path: Path
    content_hash: str
    contract: GateContract


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
        content = read_regular(location, MAX_CONTRACT_BYTES).data
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
        raise _malformed(location, mistakes_in(error, GateContract)[0], values) from error
    for criterion in contract.criteria:
        if criterion.pattern is not None:
            try:
                linear.check(criterion.pattern)
            except linear.PatternError as error:
                place = f"criterion {criterion.id}: pattern"
                hint = "write an RE2 expression that only the wanted text matches"
                raise bad_contract(location, f"{place}: {error}", hint) from error
    return LoadedContract(location, sha256(content).hexdigest(), contract)


def _malformed(path: Path, mistake: Mistake, values: Any) -> ConfigurationError:
    allowed = ", ".join(mistake.allowed)
    hint = f"allowed here: {allowed}" if allowed else "see docs/gate.md for the keys"
    return bad_contract(path, mistake.text_in(values, "criteria", "criterion"), hint)


def bad_contract(path: Path, message: str, hint: str) -> ConfigurationError:
    """The error of a contract that is wrong."""
    return ConfigurationError("bad_contract", f"{path}: {message}", hint)
