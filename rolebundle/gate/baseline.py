"""The state of the files that a contract names, as it was at the start."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.gate import Baseline, GateContract, GateStart
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.gate.contract import (
    LoadedContract,
    bad_contract,
    load_contract,
    location_of,
    schema_validator,
)
from rolebundle.gate.files import NotReadable, WorkFolder
from rolebundle.storage import records
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.records import StoredBaseline
from rolebundle.workspace import Workspace


def named_files(contract: GateContract, work: WorkFolder) -> list[str]:
    """The files that criteria name, in order, each once."""
    return work.matches([path for c in contract.criteria for path in (c.file, c.from_)])


class StoredState(NamedTuple):
    """What the corpus has stored about a contract.

    Attributes:
        start: its start; ``None`` if there was none.
        baseline: the state of the files; ``None`` if there was no start, or it cannot be read.
        approved_hash: the content that was approved for its path; ``None`` if none was.
        damage: why the rest cannot be trusted; empty if it can.
    """

    start: StoredBaseline | None = None
    baseline: Baseline | None = None
    approved_hash: str | None = None
    damage: str = ""


def stored_state(corpus: Corpus, contract: Path) -> StoredState:
    """What the corpus has stored about the contract at an absolute path.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    location = str(contract)
    with corpus.reading():
        start = records.load_gate_baseline(corpus, location)
        approved_hash = records.approved_hash(corpus, location)
    try:
        baseline = Baseline.model_validate_json(start.baseline) if start else None
    except ValueError:
        baseline = None
    return StoredState(start, baseline, approved_hash)


def start_gate(workspace: Workspace, contract: Path, *, restart: bool = False) -> GateStart:
    """Record the state of the files that a contract names. The corpus is created if it is missing.

    Args:
        workspace: of the corpus.
        contract: the contract's file.
        restart: replace the baseline of an earlier start.

    Raises:
        UsageError: ``gate_started``: it was started before; or there is no such contract.
        ConfigurationError: the contract is wrong.
    """
    loaded = load_contract(contract)
    # Before the lock, which others would wait for: it reads all files.
    baseline = _make_baseline(loaded, workspace.path)
    location, started_at = str(loaded.path), iso_utc(datetime.now(UTC))
    with workspace.recorded_change("gate", create=True) as (corpus, details):
        former = stored_state(corpus, loaded.path)
        if former.start is not None and not restart:
            problem = f"{location}: the gate was started at {former.start.started_at}"
            hint = "check it with `rolebundle gate check`; --yes replaces its baseline"
            raise UsageError("gate_started", problem, hint)
        earlier = former.baseline.restarts if former.baseline else 0
        restarts = (former.start is not None) + earlier
        text = baseline.model_copy(update={"restarts": restarts}).model_dump_json()
        stored = StoredBaseline(location, loaded.content_hash, text, started_at)
        records.save_gate_baseline(corpus, stored)
        step = "restart" if restarts else "start"
        details.update(step=step, contract_hash=loaded.content_hash, restarts=restarts)
    return GateStart(
        contract=location,
        contract_hash=loaded.content_hash,
        started_at=started_at,
        files=len(baseline.files),
        others=len(baseline.others),
        restarts=restarts,
        approved=former.approved_hash == loaded.content_hash,
    )


def count_blocks(workspace: Workspace, contract: Path, blocks: int) -> None:
    """Remember how often a hook has blocked, if there is a baseline to keep it with."""
    with workspace.open_writer() as corpus, corpus.writing():
        start, baseline, *_ = stored_state(corpus, location_of(contract))
        if start is not None and baseline is not None and baseline.blocks != blocks:
            text = baseline.model_copy(update={"blocks": blocks}).model_dump_json()
            records.save_gate_baseline(corpus, start._replace(baseline=text))


def _make_baseline(loaded: LoadedContract, corpus: Path) -> Baseline:
    """Read the state of the files that a contract names, and of their neighbours.

    Args:
        loaded: the contract.
        corpus: the corpus file, which is no work.

    Raises:
        ConfigurationError: the contract names too many files, files that cannot be read, or a file
            with a JSON Schema that is not valid.
    """
    work, contract = WorkFolder(loaded.path, corpus), loaded.contract
    try:
        for criterion in contract.criteria:
            if criterion.schema_file is not None:
                schema_validator(work, criterion.schema_file)
        files, inputs = (
            [state for name in names if (state := work.state(name))]
            for names in (named_files(contract, work), _inputs(contract, work))
        )
    except NotReadable as error:
        hint = "name fewer or smaller files, and a JSON Schema that exists"
        raise bad_contract(loaded.path, f"the files that it names: {error}", hint) from error
    except ConfigurationError as error:
        raise bad_contract(loaded.path, error.message, error.hint) from error
    return Baseline(files=files, inputs=inputs, others=work.others([*files, *inputs]))


def _inputs(contract: GateContract, work: WorkFolder) -> list[str]:
    """The files that decide the result: JSON Schemas, and what commands are given to run.

    A file that a criterion names by its path is work, also if a command is given it.
    """
    work_files = {criterion.file for criterion in contract.criteria}
    names = [c.schema_file for c in contract.criteria if c.schema_file is not None]
    for argument in (word for c in contract.criteria for word in c.command or ()):
        path = argument.removeprefix("./")
        is_inside = not PurePosixPath(path).is_absolute() and ".." not in path.split("/")
        if path and is_inside and path not in work_files and (work.folder / path).is_file():
            names.append(path)
    return list(dict.fromkeys(names))
