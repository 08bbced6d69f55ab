"""The completion gate: contract, start, check and hooks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import jsonschema
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from pydantic import ValidationError
from referencing import Registry

from rolebundle import system
from rolebundle.contracts.base import mistakes_in
from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.gate import (
    Baseline,
    Criterion,
    CriterionResult,
    FileState,
    FindingCode,
    GateContract,
    GateFinding,
    GateReport,
    GateStart,
    GateVerdict,
    Result,
)
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.errors import ConfigurationError, RolebundleError, UsageError
from rolebundle.ingest.manifests import check_path
from rolebundle.policy.approvals import end_process
from rolebundle.scan import linear
from rolebundle.storage import records
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.records import StoredBaseline
from rolebundle.text.strict_json import NotStrictError
from rolebundle.verification.gate_files import (
    NotReadable,
    WorkFolder,
    content_of,
    read_json,
    read_regular,
    state_of,
)
from rolebundle.verification.messages import words

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
            options = list(
                takewhile(
                    lambda word: word != "-m" and not re.match(r"[^-].*[./]", word),
                    command[at + 1 :],
                )
            )
            return at + 1 == len(command) or any(map(_INLINE.fullmatch, options))
    return False


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
    records.save_gate_baseline(
        corpus, StoredBaseline(location, loaded.content_hash, text, started_at)
    )
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
            records.save_gate_baseline(corpus, start._replace(baseline=text))


def make_baseline(loaded: LoadedContract, corpus: Path) -> Baseline:
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


DEFAULT_COMMAND_SECONDS = 60.0
_MAX_FACTS = 20
_FACT_CHARACTERS = 240
_EXEMPT = frozenset(("moved_from", "restored", "sha256"))
"""Checks that say themselves what a file is to contain."""
_DOUBTS = frozenset(("no_baseline", "edited_baseline", "edited_contract", "edited_input"))
"""Findings about what the work is checked by, and not about the work."""
_RESULTS: dict[bool | None, Result] = {False: "not_met", None: "unknown", True: "met"}
"""The worst first."""
_Judged = tuple[bool | None, str]
"""Whether a criterion is met, ``None`` if that cannot be found out; and why."""


class GateCheck:
    """Judges the work of a contract.

    Args:
        loaded: the contract as it is at the check.
        stored: what the corpus has stored about it.
        work: the contract's folder.
        no_command: why commands are not run; empty if they are.
        verify: checks a draft, in the name of whoever checks the gate.
    """

    def __init__(
        self,
        loaded: LoadedContract,
        stored: StoredState,
        work: WorkFolder,
        no_command: str,
        verify: Callable[[VerifyRequest], Verification],
    ) -> None:
        self._loaded, self._contract, self._stored = loaded, loaded.contract, stored
        self._work, self._no_command = work, no_command
        self._verify = verify
        baseline = stored.baseline
        self._before = {file.path: file for file in baseline.files} if baseline else {}
        self._recorded = [*baseline.files, *baseline.others] if baseline else []

    def report(self) -> GateReport:
        """The result of each criterion, the findings, and what follows from both."""
        results = [self._result(criterion) for criterion in self._contract.criteria]
        findings = [*self._doubts(), *self._no_work(), *self._faults()]
        not_met = [result for result in results if result.result != "met"]
        not_done = {r.result for r in not_met if r.level == "must"}
        verdict: GateVerdict = "unknown" if findings or not_done else "success"
        if not _DOUBTS.issuperset(finding.code for finding in findings) or "not_met" in not_done:
            verdict = "failed"
        reasons = [criterion_line(r) for r in not_met if r.level == "must"]
        reasons += [finding.message for finding in findings]
        reasons += [criterion_line(r) for r in not_met if r.level == "should"]
        met = len(results) - len(not_met)
        count = f"{met} of {len(results)} criteria are met"
        name, baseline = self._loaded.path.name, self._stored.baseline
        facts = [f"{name}: {verdict}; {count}", *reasons]
        return GateReport(
            verdict=verdict,
            message="; ".join([count, *reasons[:1]]),
            contract=name,
            started_at=self._stored.start.started_at if self._stored.start else None,
            restarts=baseline.restarts if baseline else 0,
            blocks=baseline.blocks if baseline else 0,
            met=met,
            criteria=results,
            findings=findings,
            facts=[" ".join(fact.split())[:_FACT_CHARACTERS] for fact in facts][:_MAX_FACTS],
        )

    # -- criteria ----------------------------------------------------------------------------------

    def _result(self, criterion: Criterion) -> CriterionResult:
        is_met, reason = self._judge(criterion)
        return CriterionResult(
            id=criterion.id, level=criterion.level, check=criterion.check,
            result=_RESULTS[is_met], reason=reason,
        )  # fmt: skip

    def _judge(self, criterion: Criterion) -> _Judged:
        """Judge a criterion by the worst result of its files; ``changed`` by the best."""
        try:
            if criterion.check == "command":
                return self._command(criterion)
            schema = criterion.schema_file and schema_validator(self._work, criterion.schema_file)
            judged: list[_Judged] = []
            for path in self._work.matches([criterion.file]):
                try:
                    is_met, reason = self._file(criterion, schema, path, self._work.read(path))
                except NotReadable as error:
                    is_met, reason = False if error.is_known else None, str(error)
                judged.append((is_met, f"{path}: {reason}"))
        except NotReadable as error:
            return None, str(error)
        except RolebundleError as error:
            return None, f"{error.message}; {error.hint}".removesuffix("; ")[:300]
        best_or_worst = max if criterion.check == "changed" else min
        nothing = (False, f"{criterion.file}: no file matches")
        return best_or_worst(judged, key=lambda j: [*_RESULTS].index(j[0]), default=nothing)

    def _file(self, criterion: Criterion, schema: Any, path: str, data: bytes) -> _Judged:
        size, limit = len(data), criterion.bytes or 0
        match criterion.check:
            case "schema":
                return _fits(schema, data)
            case "verify":
                return self._draft(criterion, data)
            case "changed" | "moved_from" | "restored":
                return self._compared(criterion, state_of(path, data))
            case "not_empty":
                return bool(content_of(path, data).substance), f"{size:,} bytes"
            case "min_bytes":
                return size >= limit, f"{size:,} bytes, needed: {limit:,}"
            case "max_bytes":
                return size <= limit, f"{size:,} bytes, allowed: {limit:,}"
            case "matches":
                is_met = linear.compiled(criterion.pattern or "").search(data) is not None
                verb = "matches" if is_met else "does not match"
                return is_met, f"{verb} {criterion.pattern}"[:120]
            case "sha256":
                actual = sha256(data).hexdigest()
                return actual == criterion.sha256, f"its SHA-256 is {actual[:16]}…"
        return True, f"{size:,} bytes"

    def _compared(self, criterion: Criterion, state: FileState) -> _Judged:
        if self._stored.baseline is None:
            return None, "there is no baseline to compare with"
        if criterion.check == "restored":
            same = (f.path for f in self._recorded if f.substance == state.substance != "")
            original = next(same, "")
            return bool(original), f"has the content of {original or 'no file'} at the start"
        if criterion.check == "changed":
            is_work, original, note = self._change(state)
            may_copy = "copy" in (*criterion.allow, *self._contract.allow)
            return bool(is_work or (original and may_copy)), note
        before = self._before.get(criterion.from_ or "")
        if before is None:
            return False, f"{criterion.from_} was not there at the start"
        if self._work.state(before.path) is not None:
            return False, f"{before.path} is still there"
        is_met = before.substance == state.substance
        return is_met, f"has {'' if is_met else 'not '}the content of {before.path}"

    def _change(self, state: FileState) -> tuple[bool, str, str]:
        """What became of a file.

        Returns:
            Whether it is new, or changed in substance; another file of the start that it equals,
            or nothing; the change in words.
        """
        before = self._before.get(state.path)
        if before is not None and before.substance == state.substance:
            is_touched = before.sha256 != state.sha256
            note = "rewritten, but not changed" if is_touched else "not changed"
            return False, "", f"{note} since the start"
        for file in self._recorded:
            if file.body == state.body != "" and file.path != state.path:
                return False, file.path, f"not changed: equals {file.path} of the start"
        return True, "", "changed" if before else "new"

    def _draft(self, criterion: Criterion, data: bytes) -> _Judged:
        try:
            bundle = criterion.bundle
            request = VerifyRequest(
                draft=data.decode("utf-8-sig"),
                bundle=read_json(self._work.read(bundle)) if bundle else None,
                role=criterion.role,
            )
        except UnicodeDecodeError:
            return False, "is no text in UTF-8"
        except (ValidationError, NotStrictError, NotReadable) as error:
            reason = "is too long, or is no bundle" if isinstance(error, ValidationError) else error
            return False, f"{criterion.bundle or 'the draft'}: {reason}"
        answer = self._verify(request)
        is_met = None if answer.verdict == "nothing_to_check" else answer.verdict == "clean"
        return is_met, answer.message[:200]

    def _command(self, criterion: Criterion) -> _Judged:
        """Run a program without a shell and without input, in a session of its own."""
        command = criterion.command or []
        if self._no_command:
            return None, self._no_command
        nothing, seconds = subprocess.DEVNULL, criterion.seconds or DEFAULT_COMMAND_SECONDS
        try:
            process = subprocess.Popen(
                command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=self._work.folder,
                **system.OWN_SESSION,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return None, f"{command[0]}: cannot be started ({reason})"
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None, f"{command[0]}: did not end within {seconds:g} s"
        finally:
            end_process(process)
        return code == 0, f"{command[0]}: exit code {code}"

    # -- findings ----------------------------------------------------------------------------------

    def _doubts(self) -> Iterator[GateFinding]:
        """Why the check itself cannot be trusted."""
        start, baseline = self._stored.start, self._stored.baseline
        if self._stored.damage:
            yield GateFinding(code="edited_baseline", message=self._stored.damage)
        elif start is None:
            message = "the gate was not started, so the state before is unknown"
            yield GateFinding(code="no_baseline", message=message)
        elif baseline is None:
            message = "the stored baseline cannot be read; start the gate again"
            yield GateFinding(code="edited_baseline", message=message)
        if start is not None and start.contract_hash != self._loaded.content_hash:
            message = "the contract is not the one that the gate was started with"
            yield GateFinding(code="edited_contract", message=message)
        for before in baseline.inputs if baseline else ():
            try:
                state = self._work.state(before.path)
            except NotReadable:
                state = None
            if state is None or state.sha256 != before.sha256:
                message = f"{before.path}: decides the result, and has changed since the start"
                yield GateFinding(code="edited_input", message=message, file=before.path)

    def _no_work(self) -> Iterator[GateFinding]:
        """Whether every file that the contract names has the bytes of the start."""
        if self._stored.baseline is None:
            return
        try:
            names = dict.fromkeys([*named_files(self._contract, self._work), *self._before])
            states = [state for name in names if (state := self._work.state(name))]
        except NotReadable:
            return  # A criterion says so.
        before = {path: state.sha256 for path, state in self._before.items()}
        if before == {state.path: state.sha256 for state in states}:
            message = "no file that the contract names has changed since the start"
            yield GateFinding(code="no_work", message=message)

    def _faults(self) -> Iterator[GateFinding]:
        """What is wrong with the content of the new and changed files that must be there."""
        required = [c for c in self._contract.criteria if c.file and c.level == "must"]
        exempt = {c.file for c in required if c.check in _EXEMPT}
        first: dict[str, str] = {}
        try:
            names = self._work.matches([c.file for c in required])
        except NotReadable:
            return  # A criterion says so.
        for name in names:
            try:
                data = self._work.read(name)
            except NotReadable:
                continue
            content = content_of(name, data)
            state = state_of(name, data, content)
            before = self._before.get(name)
            is_old = before and (
                before.sha256 == state.sha256 or before.substance == state.substance != ""
            )
            if is_old or name in exempt:
                continue
            copied = self._change(state)[1] or first.setdefault(state.body or name, name)
            is_copy = copied != name and (self._work.folder / copied).exists()  # Else it was moved.
            may_be_empty = name.rpartition("/")[2] in words("names", "empty_by_convention")
            is_empty = not state.substance and not may_be_empty
            usual = before.placeholders if before and content.is_code else 0
            waiting = content.placeholders if len(content.placeholders) > usual else []
            faults: dict[FindingCode, str] = {
                "wrong_kind": content.wrong_kind,
                "empty": f"has no content ({len(data):,} bytes)" if is_empty else "",
                "error": content.error and f"holds only {content.error[:100]}; write the result",
                "placeholder": f"has a placeholder: {waiting[0].strip()[:80]}" if waiting else "",
                "copy": f"is a copy of {copied}" if is_copy else "",
            }
            allowed = {
                *self._contract.allow,
                *(a for c in required if c.file == name for a in c.allow),
            }
            for code, message in faults.items():
                if message and code not in allowed:
                    yield GateFinding(code=code, message=f"{name}: {message}", file=name)


def criterion_line(result: CriterionResult) -> str:
    """A criterion's result in one line, as people and models read it."""
    level = " (should)" if result.level == "should" else ""
    return f"{result.id}{level}: {result.result.replace('_', ' ')}: {result.reason}"


def _fits(schema: Any, data: bytes) -> _Judged:
    try:
        error = best_match(schema.iter_errors(read_json(data)))
    except NotStrictError as reason:
        return False, f"is not JSON ({reason})"
    except Exception as reason:  # A reference without a target, endless recursion, an expression.
        return None, f"cannot be validated ({type(reason).__name__}: {reason})"[:200]
    return error is None, f"{error.json_path}: {error.message}"[:200] if error else "fits"


HookForm = Literal["claude-code", "exit-code"]
Event = Literal["stop", "facts", "other"]

DEFAULT_RETRIES = 3
BLOCKS = 2
_LETS_GO = 1
_MAX_REASON_CHARACTERS = 4_000
_EVENTS: Mapping[str, Event] = {
    "Stop": "stop",
    "SubagentStop": "stop",
    "UserPromptSubmit": "facts",
    "SessionStart": "facts",
}


def hook_event(fields: Mapping[str, Any]) -> Event:
    """What a hook of Claude Code is to do for an event; ``other``: nothing."""
    return _EVENTS.get(str(fields.get("hook_event_name")), "other")


class HookAnswer(NamedTuple):
    """Exit code, standard output and standard error; ``blocks`` is the count to remember."""

    exit_code: int
    output: str = ""
    error: str = ""
    blocks: int = 0


def answer_stop(
    report: GateReport, form: HookForm, *, is_retry: bool, retries: int, insist: bool
) -> HookAnswer:
    """Whether an agent may stop.

    Args:
        report: the result of the check.
        form: the host.
        is_retry: the host says that a hook has blocked just before.
        retries: how often the hook blocks until it lets go.
        insist: block a retry too.
    """
    if report.verdict == "success":
        return HookAnswer(0)
    is_set_up = report.started_at is not None and not any(
        finding.code == "edited_baseline" for finding in report.findings
    )
    if not is_set_up:
        return let_go(report, form, "the gate was not started, or its baseline is damaged")
    if is_retry and not insist:
        return let_go(report, form, "a hook has blocked just before")
    if report.blocks >= retries:
        return let_go(report, form, f"it has blocked {report.blocks} times")
    return HookAnswer(BLOCKS, error=_reason(report), blocks=report.blocks + 1)


def let_go(report: GateReport, form: HookForm, why: str) -> HookAnswer:
    """Let the agent stop although the gate is not passed, and say so."""
    text = f"gate: {report.verdict}, this is NO success. The hook lets go, because {why}.\n"
    text += _reason(report)
    if form == "claude-code":
        return HookAnswer(0, output=json.dumps({"systemMessage": text}), blocks=report.blocks)
    return HookAnswer(_LETS_GO, error=text, blocks=report.blocks)


def _reason(report: GateReport) -> str:
    return "\n".join([f"gate: {report.message}", *report.facts])[:_MAX_REASON_CHARACTERS]
