"""Whether the work of a contract is done: the criteria, and faults of the files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rolebundle import system
from rolebundle.contracts.gate import (
    Criterion,
    CriterionResult,
    FileState,
    FindingCode,
    GateFinding,
    GateReport,
    GateVerdict,
    Result,
)
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.errors import RolebundleError
from rolebundle.gate.baseline import StoredState, named_files
from rolebundle.gate.content import content_of
from rolebundle.gate.contract import LoadedContract, fits, schema_validator
from rolebundle.gate.files import NotReadable, WorkFolder, read_json, state_of
from rolebundle.gate.messages import words
from rolebundle.policy.approvals import end_process
from rolebundle.scan import linear
from rolebundle.text.strict_json import NotStrictError

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
        corpus: the corpus file, which is no work.
        no_command: why commands are not run; empty if they are.
        verify: checks a draft, in the name of whoever checks the gate.
    """

    def __init__(
        self,
        loaded: LoadedContract,
        stored: StoredState,
        corpus: Path,
        no_command: str,
        verify: Callable[[VerifyRequest], Verification],
    ) -> None:
        self._loaded, self._contract, self._stored = loaded, loaded.contract, stored
        self._work, self._no_command = WorkFolder(loaded.path, corpus), no_command
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
                return fits(schema, data)
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
