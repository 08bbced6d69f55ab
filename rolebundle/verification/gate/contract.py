"""The contract of a gate: a TOML file that says what must hold before work counts as done."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from pydantic import ValidationError

from rolebundle.contracts.gate import GateContract
from rolebundle.contracts.mistakes import mistakes_in
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.manifests import check_path
from rolebundle.scan import linear
from rolebundle.verification.gate.files import NotReadable, WorkFolder, read_regular

MAX_CONTRACT_BYTES = 1 << 20
_ANCHORED = re.compile(r"(?:\(\?\w+\))?(?:\\A|\^).*(?:\\z|\$)", re.DOTALL)
"""An expression for the whole text. It may match the empty one."""


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
        mistake = mistakes_in(error, GateContract)[0]
        allowed = ", ".join(mistake.allowed)
        hint = f"allowed here: {allowed}" if allowed else "see docs/gate.md for the keys"
        problem = mistake.text_in(values, "criteria", "criterion")
        raise bad_contract(location, problem, hint) from error
    for criterion in contract.criteria:
        if criterion.pattern is not None:
            try:
                linear.check(criterion.pattern)
            except linear.PatternError as error:
                is_anchored = _ANCHORED.fullmatch(criterion.pattern)
                if is_anchored and str(error) == linear.MATCHES_EMPTY_TEXT:
                    continue
                place = f"criterion {criterion.id}: pattern"
                hint = "write an RE2 expression that only the wanted text matches"
                raise bad_contract(location, f"{place}: {error}", hint) from error
    return LoadedContract(location, sha256(content).hexdigest(), contract)


def bad_contract(path: Path, message: str, hint: str) -> ConfigurationError:
    """The error of a contract that is wrong."""
    return ConfigurationError("bad_contract", f"{path}: {message}", hint)


_SHELLS = frozenset("sh bash dash zsh ksh fish csh tcsh ash cmd powershell pwsh".split())
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
    last = len(names) if names[0] in _WRAPPERS else 1
    for at, name in enumerate(names[:last]):
        rest = command[at + 1 :]
        if name in _SHELLS:
            return not rest or rest[0].startswith(("-", "/", "+"))
        if _INTERPRETERS.fullmatch(name):
            # Up to a module or a script.
            options = takewhile(
                lambda word: word != "-m" and not re.match(r"[^-].*[./]", word), rest
            )
            return not rest or any(_INLINE.fullmatch(option) for option in options)
    return False


def named_files(contract: GateContract, work: WorkFolder) -> list[str]:
    """The files that criteria name, and those that are only watched; in order, each once."""
    named = [path for c in contract.criteria for path in (c.file, c.from_)]
    return work.matches([*named, *contract.watch])
