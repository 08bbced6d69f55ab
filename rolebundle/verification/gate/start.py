"""The start of a gate: the state of the files that a contract names, before the work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.gate import Baseline, GateContract, GateStart
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import approvals, gate_baselines
from rolebundle.storage.records.gate_baselines import StoredBaseline
from rolebundle.verification.gate.contract import LoadedContract, bad_contract, location_of
from rolebundle.verification.gate.criteria import schema_validator
from rolebundle.verification.gate.files import NotReadable, WorkFolder


class Started(NamedTuple):
    """A recorded start. ``baseline`` is ``None`` if what is stored is none."""

    contract_hash: str
    baseline: Baseline | None
    started_at: str

    @classmethod
    def parse(cls, stored: StoredBaseline) -> Started:
        """The start that is stored."""
        try:
            baseline = Baseline.model_validate_json(stored.baseline)
            nanoseconds(stored.started_at)
        except ValueError:
            return cls(stored.contract_hash, None, stored.started_at)
        return cls(stored.contract_hash, baseline, stored.started_at)


class StoredState(NamedTuple):
    """What the corpus has stored about a contract.

    Attributes:
        started: its start; ``None`` if there was none.
        approved_hash: the content that was approved for its path; ``None`` if none was.
        damage: why the rest cannot be trusted; empty if it can.
    """

    started: Started | None = None
    approved_hash: str | None = None
    damage: str = ""


def stored_state(corpus: Corpus, contract: Path) -> StoredState:
    """What the corpus has stored about the contract at an absolute path.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    location = str(contract)
    with corpus.reading():
        stored = gate_baselines.load(corpus, location)
        return StoredState(
            Started.parse(stored) if stored else None, approvals.approved_hash(corpus, location)
        )


def start_gate(
    corpus: Corpus, loaded: LoadedContract, baseline: Baseline, now: datetime, *, restart: bool
) -> GateStart:
    """Record the state of the files that a contract names.

    Args:
        corpus: open for writing, inside a write transaction.
        loaded: the contract.
        baseline: the state of its files, as :func:`make_baseline` returns it.
        now: the time of the start.
        restart: replace the baseline of an earlier start.

    Raises:
        UsageError: ``gate_started``: it was started before.
    """
    location, started_at = str(loaded.path), iso_utc(now)
    former, approved_hash, _ = stored_state(corpus, loaded.path)
    restarts = 0
    if former is not None:
        if not restart:
            raise UsageError(
                "gate_started",
                f"{location}: the gate was started at {former.started_at}",
                "check it with `rolebundle gate check`; --restart replaces its baseline",
            )
        restarts = 1 + (former.baseline.restarts if former.baseline else 0)
    baseline = baseline.model_copy(update={"restarts": restarts})
    gate_baselines.save(
        corpus,
        StoredBaseline(location, loaded.content_hash, baseline.model_dump_json(), started_at),
    )
    return GateStart(
        contract=location,
        contract_hash=loaded.content_hash,
        started_at=started_at,
        files=len(baseline.files),
        others=len(baseline.others),
        others_complete=baseline.others_complete,
        restarts=restarts,
        approved=approved_hash == loaded.content_hash,
    )


def count_blocks(corpus: Corpus, contract: Path, blocks: int) -> bool:
    """Remember how often a hook has blocked; False if there is no baseline to keep it with.

    Args:
        corpus: open for writing.
        contract: the contract's path.
        blocks: how often.
    """
    with corpus.writing():
        stored = gate_baselines.load(corpus, str(location_of(contract)))
        baseline = Started.parse(stored).baseline if stored else None
        if stored is None or baseline is None:
            return False
        if baseline.blocks != blocks:
            counted = baseline.model_copy(update={"blocks": blocks})
            gate_baselines.save(corpus, stored._replace(baseline=counted.model_dump_json()))
        return True


def make_baseline(loaded: LoadedContract, corpus: Path) -> Baseline:
    """Read the state of the files that a contract names, and of their neighbours.

    Args:
        loaded: the contract.
        corpus: the corpus file, which is no work.

    Raises:
        ConfigurationError: the contract names too many files, files that cannot be read, or a file
            with a JSON Schema that is none.
    """
    work = WorkFolder(loaded.path, corpus)
    try:
        for criterion in loaded.contract.criteria:
            if criterion.schema_file is not None:
                schema_validator(work, criterion.schema_file)
        names = named_files(loaded.contract, work)
        files = [state for name in names if (state := work.state(name)) is not None]
        judges = [work.state(name) for name in _inputs(loaded.contract, work)]
    except NotReadable as error:
        hint = "name fewer or smaller files, and a JSON Schema that exists"
        raise bad_contract(loaded.path, f"the files that it names: {error}", hint) from error
    except ConfigurationError as error:
        raise bad_contract(loaded.path, error.message, error.hint) from error
    inputs = [state for state in judges if state is not None]
    unnamed, is_complete = work.unnamed_files([*names, *(state.path for state in inputs)])
    return Baseline(
        files=files,
        inputs=inputs,
        others=unnamed,
        others_complete=is_complete,
    )


def named_files(contract: GateContract, work: WorkFolder) -> list[str]:
    """The files that criteria name, and those that are only watched; in order, each once."""
    globs = [criterion.file for criterion in contract.criteria if criterion.file]
    return matching_files([*globs, *contract.watch], work)


def matching_files(globs: Sequence[str], work: WorkFolder) -> list[str]:
    """The files that globs match, in order, each once."""
    return list(dict.fromkeys(name for glob in globs for name in work.matches(glob)))


def _inputs(contract: GateContract, work: WorkFolder) -> list[str]:
    """The files that decide the result: JSON Schemas, and what commands are given to run.

    A file that a criterion names by its path is work, also if a command is given it.
    """
    names: dict[str, None] = {}
    work_files = {criterion.file for criterion in contract.criteria}
    for criterion in contract.criteria:
        if criterion.schema_file is not None:
            names[criterion.schema_file] = None
        for argument in criterion.command or ():
            path = argument.removeprefix("./")
            is_inside = not PurePosixPath(path).is_absolute() and ".." not in path.split("/")
            is_work = path in work_files or not is_inside
            if path and not is_work and (work.folder / path).is_file():
                names[path] = None
    return list(names)


def nanoseconds(moment: str) -> int:
    """A time in ISO 8601 as nanoseconds since 1970, in whole seconds."""
    seconds = datetime.fromisoformat(moment).astimezone(UTC).timestamp()
    return int(seconds) * 1_000_000_000
