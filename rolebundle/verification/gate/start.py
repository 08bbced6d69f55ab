"""The start of gates: the state of the files that a contract names, before the work."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.gate import Baseline, GateContract, GateStart
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.scan import linear
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import approvals, gate_baselines
from rolebundle.storage.records.gate_baselines import StoredBaseline
from rolebundle.text.strict_json import NotStrictError
from rolebundle.verification.gate.contract import (
    LoadedContract,
    bad_contract,
    location_of,
    named_files,
)
from rolebundle.verification.gate.files import NotReadable, WorkFolder, read_json


class StoredState(NamedTuple):
    """What the corpus has stored about a contract.

    Attributes:
        start: its start; ``None`` if there was none.
        baseline: the state of the files; ``None`` if there was no start, or what is stored is none.
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
        start = gate_baselines.load(corpus, location)
        approved_hash = approvals.approved_hash(corpus, location)
    try:
        baseline = Baseline.model_validate_json(start.baseline) if start else None
    except ValueError:
        baseline = None
    return StoredState(start, baseline, approved_hash)


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
    former = stored_state(corpus, loaded.path)
    if former.start is not None and not restart:
        raise UsageError(
            "gate_started",
            f"{location}: the gate was started at {former.start.started_at}",
            "check it with `rolebundle gate check`; --yes replaces its baseline",
        )
    restarts = (former.start is not None) + (former.baseline.restarts if former.baseline else 0)
    text = baseline.model_copy(update={"restarts": restarts}).model_dump_json()
    gate_baselines.save(corpus, StoredBaseline(location, loaded.content_hash, text, started_at))
    return GateStart(
        contract=location,
        contract_hash=loaded.content_hash,
        started_at=started_at,
        files=len(baseline.files),
        others=len(baseline.others),
        restarts=restarts,
        approved=former.approved_hash == loaded.content_hash,
    )


def count_blocks(corpus: Corpus, contract: Path, blocks: int) -> None:
    """Remember how often a hook has blocked, if there is a baseline to keep it with.

    Args:
        corpus: open for writing.
        contract: the contract's path.
        blocks: how often.
    """
    with corpus.writing():
        start, baseline, *_ = stored_state(corpus, location_of(contract))
        if start is not None and baseline is not None and baseline.blocks != blocks:
            text = baseline.model_copy(update={"blocks": blocks}).model_dump_json()
            gate_baselines.save(corpus, start._replace(baseline=text))


def make_baseline(loaded: LoadedContract, corpus: Path) -> Baseline:
    """Read the state of the files that a contract names, and of their neighbours.

    Args:
        loaded: the contract.
        corpus: the corpus file, which is no work.

    Raises:
        ConfigurationError: the contract names too many files, files that cannot be read, or a file
            with a JSON Schema that is none.
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


def schema_validator(work: WorkFolder, path: str) -> Any:
    """The validator of a JSON Schema file. It loads nothing from elsewhere.

    Raises:
        NotReadable: the file cannot be read.
        ConfigurationError: it is no JSON Schema.
    """
    import jsonschema
    from jsonschema.validators import validator_for
    from referencing import Registry

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
