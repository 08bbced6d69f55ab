"""The check of a gate: whether the work of a contract is done, and whether that can be trusted.

load_contract ─▶ start_gate (stored) ─▶ … work … ─▶ check ─▶ success | failed | suspect
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rolebundle.contracts.gate import (
    Baseline,
    BaselineFile,
    CriterionResult,
    GateContract,
    GateReport,
    GateVerdict,
    Suspicion,
)
from rolebundle.verification.gate.contract import LoadedContract
from rolebundle.verification.gate.criteria import CorpusAnswers, CriterionContext, judge
from rolebundle.verification.gate.files import (
    MAX_FILE_BYTES,
    Change,
    Comparison,
    Content,
    NotReadable,
    WorkFolder,
    is_glob,
    read_regular,
    state_of,
)
from rolebundle.verification.gate.no_result import EMPTY_BY_CONVENTION, fault_of
from rolebundle.verification.gate.start import (
    Started,
    StoredState,
    matching_files,
    named_files,
    nanoseconds,
)

MAX_SHOWN = 100
_MAX_FACTS = 20
_FACT_CHARACTERS = 240
_OF_FILES = ("exists", "changed", "not_empty")
_PROSE = frozenset({".md", ".markdown", ".rst", ".txt"})
_ENDS = frozenset(
    "end_turn stop stop_sequence complete completed success done finished eos eos_token".split()
)
"""Stop reasons of common models that are an end. Every other one is none."""


class Output(NamedTuple):
    """What the work printed or answered.

    Attributes:
        data: the bytes; ``None`` if they cannot be read.
        mtime_ns: the time of the file's last change; ``None`` if it is no file.
        problem: why it cannot be read.
    """

    data: bytes | None
    mtime_ns: int | None = None
    problem: str = ""


def output_of(data: bytes) -> Output:
    """An output that is no file."""
    if len(data) > MAX_FILE_BYTES:
        return Output(None, problem=f"has over {MAX_FILE_BYTES:,} bytes")
    return Output(data)


def read_output(path: Path) -> Output:
    """Read a file with the output of the work."""
    try:
        content = read_regular(path)
    except NotReadable as error:
        return Output(None, problem=f"{path.name} {error}")
    return Output(content.data, content.mtime_ns)


def check(
    loaded: LoadedContract,
    stored: StoredState,
    work: WorkFolder,
    corpus: CorpusAnswers,
    *,
    no_command: str = "",
    stop_reason: str | None = None,
    output: Output | None = None,
) -> GateReport:
    """Judge the work.

    Args:
        loaded: the contract as it is at the check.
        stored: what the corpus has stored about it.
        work: the contract's folder.
        corpus: what criteria ask the corpus.
        no_command: why commands are not run; empty if those of an approved contract are.
        stop_reason: why the model stopped, if that is known.
        output: what the work printed or answered, if that is known.
    """
    if not no_command and stored.approved_hash != loaded.content_hash:
        no_command = "commands are run only if the contract is approved (`gate approve`)"
    started = stored.started
    baseline = started.baseline if started else None
    comparison = None
    if started is not None and baseline is not None:
        comparison = Comparison(baseline, nanoseconds(started.started_at))
    context = CriterionContext(work, comparison, corpus, no_command)
    results = [
        CriterionResult(
            id=criterion.id,
            level=criterion.level,
            check=criterion.check,
            result=outcome.result,
            reason=outcome.reason,
        )
        for criterion in loaded.contract.criteria
        for outcome in (judge(criterion, context),)
    ]
    files = _Files(loaded.contract, work, comparison)
    suspicions = [
        *_doubts_of_the_start(loaded, stored),
        *_doubts_of_inputs(baseline, work),
        *files.doubts(),
        *_doubts_of_the_output(output, comparison, started),
        *_doubts_of_the_end(stop_reason),
        *_doubts_of_results(results),
    ]
    must = [result for result in results if result.level == "must"]
    verdict: GateVerdict = "suspect" if suspicions else "success"
    if any(result.result == "not_met" for result in must):
        verdict = "failed"
    report = GateReport(
        verdict=verdict,
        message="",
        contract=loaded.path.name,
        started_at=started.started_at if started else None,
        restarts=baseline.restarts if baseline else 0,
        blocks=baseline.blocks if baseline else 0,
        must=len(must),
        must_met=sum(result.result == "met" for result in must),
        criteria=results,
        suspicions=suspicions,
        changed=files.changed[:MAX_SHOWN],
    )
    return report.model_copy(update={"message": _message(report), "facts": _facts(report, files)})


def _doubts_of_the_start(loaded: LoadedContract, stored: StoredState) -> Iterator[Suspicion]:
    started = stored.started
    if stored.damage:
        yield Suspicion(code="edited_baseline", message=stored.damage)
    elif started is None:
        message = "the gate was not started, so that nobody knows what was there before"
        yield Suspicion(code="no_baseline", message=message)
    elif started.baseline is None:
        message = "the stored baseline is not what `gate start` records"
        yield Suspicion(code="edited_baseline", message=message)
    if started is not None and started.contract_hash != loaded.content_hash:
        message = "the contract is not the one that the gate was started with"
        yield Suspicion(code="edited_contract", message=message)
    if stored.approved_hash not in (None, loaded.content_hash):
        message = "the contract is not the one that was approved"
        yield Suspicion(code="unapproved_contract", message=message)


def _doubts_of_inputs(baseline: Baseline | None, work: WorkFolder) -> Iterator[Suspicion]:
    for before in baseline.inputs if baseline else ():
        try:
            state = work.state(before.path)
        except NotReadable:
            state = None
        if state is None or state.sha256 != before.sha256:
            message = f"{before.path}: decides the result, and has changed since the start"
            yield Suspicion(code="edited_input", message=message, file=before.path)


def _doubts_of_the_output(
    output: Output | None, comparison: Comparison | None, started: Started | None
) -> Iterator[Suspicion]:
    if output is None:
        return
    if output.data is None:
        yield Suspicion(code="unknown_result", message=f"the output: {output.problem}")
        return
    if fault := fault_of(output.data, is_prose=False):
        yield Suspicion(code=fault.code, message=f"the output: {fault.message}")
    if comparison is None or started is None or output.mtime_ns is None:
        return
    state = state_of("output", Content(output.data, output.mtime_ns))
    if output.mtime_ns < nanoseconds(started.started_at):
        message = "the output is older than the start"
        yield Suspicion(code="stale_output", message=message)
    elif original := comparison.original_of(state.content):
        message = f"the output is a copy of {original}, which was there at the start"
        yield Suspicion(code="substituted_file", message=message)


def _doubts_of_the_end(stop_reason: str | None) -> Iterator[Suspicion]:
    if stop_reason is not None and stop_reason.strip().lower() not in _ENDS:
        quoted_reason = stop_reason.strip()[:40] or "(empty)"
        yield Suspicion(code="stop_reason", message=f"the stop reason {quoted_reason} is no end")


def _doubts_of_results(results: Sequence[CriterionResult]) -> Iterator[Suspicion]:
    for result in results:
        if result.result == "skipped":
            message = f"{result.id} was skipped: {result.reason}"
            yield Suspicion(code="skipped_criterion", message=message)
        elif result.result == "unknown":
            message = f"{result.id} is unknown: {result.reason}"
            yield Suspicion(code="unknown_result", message=message)


class _Files:
    """The named files at a check: what became of them, and what is wrong with them."""

    def __init__(
        self, contract: GateContract, work: WorkFolder, comparison: Comparison | None
    ) -> None:
        self._contract = contract
        self._work = work
        self.states: dict[str, BaselineFile | None] = {}
        self._faults: dict[str, Suspicion] = {}
        self._changes: dict[str, Change] = {}
        self._is_compared = comparison is not None
        # What only should be there may be anything.
        required = [c.file for c in contract.criteria if c.file and c.level == "must"]
        self._required = {file for file in required if not is_glob(file)}
        self._shown = {c.file for c in contract.criteria if c.file and not is_glob(c.file)}
        shaped = {c.file for c in contract.criteria if c.check in ("schema", "sha256")}
        judged = set(self._required)
        try:
            names = named_files(contract, work)
            judged.update(matching_files(required, work))
        except NotReadable:
            names = sorted(self._shown)
        changed_paths = comparison.paths if comparison else ()
        for name in dict.fromkeys([*names, *changed_paths]):
            try:
                content = work.read(name)
            except NotReadable as error:
                self.states[name] = None
                if comparison is not None and error.is_known:
                    self._changes[name] = comparison.change(name, None)
                continue
            state = self.states[name] = state_of(name, content)
            if comparison is not None:
                self._changes[name] = comparison.change(name, state)
            # What was there before, and a glob names, is not what the work put out.
            is_output = comparison is None or self._changes[name].is_work
            is_judged = name in self._required or (is_output and name in judged)
            if is_judged:
                self._find_fault(name, content.data, is_shaped=name in shaped)

    def _find_fault(self, name: str, data: bytes, *, is_shaped: bool) -> None:
        path = PurePosixPath(name)
        suffix = path.suffix.lower()
        fault = fault_of(data, suffix=suffix, is_prose=suffix in _PROSE)
        if fault is None or (fault.code == "empty_output" and path.name in EMPTY_BY_CONVENTION):
            return
        # A schema says what the file may be, also an empty list.
        if is_shaped and data.strip() and fault.code in ("empty_output", "placeholder"):
            return
        message = f"{name}: {fault.message}"
        self._faults[name] = Suspicion(code=fault.code, message=message, file=name)

    @property
    def changed(self) -> list[str]:
        """The files that are new, changed or removed by work."""
        return sorted(name for name, change in self._changes.items() if change.is_work)

    def doubts(self) -> Iterator[Suspicion]:
        """What is suspicious about the files."""
        if self._is_compared and not self.changed:
            message = "nothing that the contract names has changed since the start"
            yield Suspicion(code="no_work", message=message)
        yield from self._faults.values()
        for name, change in self._changes.items():
            if change.is_substituted and name in self._required:
                message = f"{name}: {change.note}"
                yield Suspicion(code="substituted_file", message=message, file=name)
        first: dict[str, str] = {}
        for name in sorted(self._required):
            state = self.states.get(name)
            if state is None or state.path in self._faults or name not in self.changed:
                continue
            twin = first.setdefault(state.content, name)
            if twin != name:
                message = f"{name}: has the same content as {twin}"
                yield Suspicion(code="substituted_file", message=message, file=name)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Each file that a criterion names by its path, and its state in words."""
        for name in sorted(self._shown):
            state, change = self.states.get(name), self._changes.get(name)
            if state is None:
                yield name, "missing"
            else:
                note = f", {change.note}" if change else ""
                yield name, f"{state.size:,} bytes{note}"


# -- words ----------------------------------------------------------------------------------------


def _message(report: GateReport) -> str:
    unmet = [r for r in report.criteria if r.level == "must" and r.result == "not_met"]
    if unmet:
        first = f"{unmet[0].id}: {unmet[0].reason}"
        return f"{len(unmet)} of {report.must} must criteria are not met: {first}"
    if report.suspicions:
        return f"this is no success yet: {report.suspicions[0].message}"
    missed = sum(r.level == "should" and r.result == "not_met" for r in report.criteria)
    noun = "criterion is" if missed == 1 else "criteria are"
    remark = f"; {missed} should {noun} not met" if missed else ""
    return f"all {report.must} must criteria are met{remark}"


def _facts(report: GateReport, files: _Files) -> list[str]:
    met = [r.id for r in report.criteria if r.level == "must" and r.result == "met"]
    names = f": {', '.join(met)}" if met else ""
    counts = f"{len(met)} of {report.must} must criteria are met{names}"
    lines = [f"{report.contract}: {report.verdict}; {counts}"]
    states = dict(files.facts())
    lines += [f"{name}: {state}" for name, state in states.items()]
    lines += [
        f"{result.id}: {result.result.replace('_', ' ')}: {result.reason}"
        for result in report.criteria
        if result.result != "met"
        and not (result.check in _OF_FILES and result.reason.partition(": ")[0] in states)
    ]
    # The lines above say these.
    repeated = ("skipped_criterion", "unknown_result", "empty_output", "substituted_file")
    lines += [s.message for s in report.suspicions if s.code not in repeated]
    return [" ".join(line.split())[:_FACT_CHARACTERS] for line in lines][:_MAX_FACTS]
