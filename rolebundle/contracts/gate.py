"""The contract of a gate, the baseline that is recorded at its start, and what a check answers."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.overlay import RoleId
from rolebundle.resources import data_file

MAX_CRITERIA = 200
MAX_COMMAND_SECONDS = 3600.0

Level = Literal["must", "should"]
CriterionKind = Literal[
    "exists", "changed", "moved_from", "restored", "not_empty", "min_bytes", "max_bytes",
    "matches", "schema", "sha256", "verify", "command",
]  # fmt: skip
Result = Literal["met", "not_met", "unknown"]
GateVerdict = Literal["success", "failed", "unknown"]
Allowed = Literal["placeholder", "error", "empty", "copy"]
"""A finding about the content of a file that a contract may allow."""
FindingCode = Literal[
    Allowed, "wrong_kind", "no_work", "no_baseline", "edited_baseline", "edited_contract",
    "edited_input",
]  # fmt: skip

_OUTSIDE = re.compile(r"^(?:[A-Za-z]:|/)|\\|[\x00-\x1f\x7f]|(?:^|/)(?:\.{0,2})(?:/|$)")


def _check_inside(path: str) -> str:
    path = path.removeprefix("./")
    if _OUTSIDE.search(path):
        raise ValueError("must be a path below the contract's folder, with / and without ..")
    return path


WorkPath = Annotated[
    str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_check_inside)
]
"""A path relative to the contract's folder, and inside of it."""
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Argument = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00]*$")]

FIELDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = data_file(__file__, "gate.toml")
"""The fields that a kind of criterion needs, and those that it may have."""


class Criterion(Contract):
    """One condition of being done.

    Attributes:
        id: its name in answers, unique in the contract.
        level: ``should`` is reported and does not prevent success.
        check: what is checked. It decides which of the other fields there are.
        file: path or glob relative to the contract's folder. A glob needs at least one match.
            ``changed`` needs one match that is new or changed, every other check needs all.
        allow: findings about the content of ``file`` that do not count.
        from_: key ``from``: the path of the file at the start.
        bytes: the least or the largest size.
        pattern: an RE2 regular expression that the file's text contains.
        schema_file: path of a JSON Schema. It must not change after the start.
        sha256: the digest of the file's bytes.
        bundle: path of the bundle that the draft ``file`` was written from.
        role: the role that the draft was written in.
        command: a program and its arguments. It is run without a shell, in the contract's folder,
            and only if the contract was approved.
        seconds: how long it may take.
    """

    id: Id
    level: Level = "must"
    check: CriterionKind
    file: WorkPath | None = None
    allow: list[Allowed] = []
    from_: WorkPath | None = Field(None, alias="from")
    bytes: Annotated[int, Field(ge=1)] | None = None
    pattern: Pattern | None = None
    schema_file: WorkPath | None = None
    sha256: Digest | None = None
    bundle: WorkPath | None = None
    role: RoleId | None = None
    command: Annotated[list[Argument], Field(min_length=1, max_length=100)] | None = None
    seconds: Annotated[float, Field(gt=0, le=MAX_COMMAND_SECONDS)] | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        needed, optional = FIELDS[self.check]
        named_fields = {name.rstrip("_") for name, value in self if value is not None}
        named_fields -= {"id", "level", "check", "allow"}
        for name in needed:
            if name not in named_fields:
                raise ValueError(f"check {self.check} needs the key {name}")
        for name in sorted(named_fields - {*needed, *optional}):
            raise ValueError(f"check {self.check} has no key {name}")
        return self


class GateContract(Contract):
    """What must hold before work counts as done.

    Attributes:
        purpose: what the work is, for people.
        allow: findings about the content of all files that do not count.
        criteria: the conditions. If no file that they name has changed, no work was done.
    """

    purpose: Annotated[str, StringConstraints(max_length=1000)] = ""
    allow: list[Allowed] = []
    criteria: Annotated[list[Criterion], Field(min_length=1, max_length=MAX_CRITERIA)]

    @model_validator(mode="after")
    def _check_criteria(self) -> Self:
        names = [criterion.id for criterion in self.criteria]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two criteria have the id {name}")
        if all(criterion.level == "should" for criterion in self.criteria):
            raise ValueError("at least one criterion must have the level must")
        if not any(criterion.file for criterion in self.criteria):
            raise ValueError(
                "no criterion names a file, so that nobody could see whether work was done; "
                "add a criterion changed for the files of the work"
            )
        return self


class FileState(Contract):
    """A file at one moment.

    Attributes:
        path: relative to the contract's folder.
        sha256: of its bytes.
        substance: digest of its content without what is no change, such as line ends; empty if
            there is no content.
        body: the same without headings, so that a copy under another title is known.
        placeholders: how many placeholders it has.
    """

    path: str
    sha256: str
    substance: str
    body: str
    placeholders: int = 0


class Baseline(Contract):
    """What `gate start` records about the files.

    Attributes:
        files: the files that the contract names.
        inputs: files that decide the result, such as a JSON Schema. They must not change.
        others: the other files in the contract's folder, within bounds, so that a copy of one is
            not taken for work.
        restarts: how often the baseline was replaced.
        blocks: how often a hook has blocked since the start or the last prompt.
    """

    files: list[FileState]
    inputs: list[FileState] = []
    others: list[FileState] = []
    restarts: int = 0
    blocks: int = 0


class GateStart(Contract):
    """The answer to `gate start`.

    Attributes:
        contract: absolute path of the contract.
        contract_hash: SHA-256 of its bytes.
        approved: whether its commands may be run.
    """

    contract: str
    contract_hash: str
    started_at: str
    files: int
    others: int
    restarts: int
    approved: bool


class CriterionResult(Contract):
    """Whether a criterion is met. ``reason`` says why, in one line."""

    id: str
    level: Level
    check: CriterionKind
    result: Result
    reason: str


class GateFinding(Contract):
    """Why the work is no success whatever the criteria say. ``file`` is relative to the folder."""

    code: FindingCode
    message: str
    file: str | None = None


class GateReport(Contract):
    """The answer to `gate check`.

    Attributes:
        verdict: ``failed``: a criterion of the level ``must`` is not met, or a file has no result.
            ``unknown``: such a criterion could not be checked, or what is checked by was changed.
            ``success``: neither.
        message: how many criteria are met, and the first reason against it, in one line.
        contract: file name of the contract.
        started_at: time of the baseline, ISO 8601 in UTC; missing if there is none.
        restarts: how often the baseline was replaced.
        blocks: how often a hook has blocked since the start or the last prompt.
        met: how many criteria are met, of both levels.
        facts: the state in short lines for the next turn.
    """

    verdict: GateVerdict
    message: str
    contract: str
    started_at: str | None = None
    restarts: int = 0
    blocks: int = 0
    met: int
    criteria: list[CriterionResult]
    findings: list[GateFinding] = []
    facts: list[str] = []


class ApprovedContract(Contract):
    """A contract whose commands may be run.

    Attributes:
        location: absolute path.
        content_hash: SHA-256 of its content, hexadecimal. It is approved while this is the same.
        approved_at: time of the approval, ISO 8601 in UTC.
    """

    location: str
    content_hash: str
    approved_at: str


ApprovedContracts = list_of(
    ApprovedContract, "contracts", "ApprovedContracts", "`gate approve` without a contract."
)
