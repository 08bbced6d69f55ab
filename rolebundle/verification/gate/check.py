"""The check of a gate: whether the work of a contract is done.

load_contract ─▶ start_gate (stored) ─▶ … work … ─▶ check ─▶ success | failed | unknown
"""

from __future__ import annotations

from collections.abc import Iterator

from rolebundle.contracts.gate import (
    CriterionResult,
    FindingCode,
    GateContract,
    GateFinding,
    GateReport,
    GateVerdict,
)
from rolebundle.verification.gate.content import content_of
from rolebundle.verification.gate.contract import LoadedContract, named_files
from rolebundle.verification.gate.criteria import Context, judge
from rolebundle.verification.gate.files import NotReadable, WorkFolder, state_of
from rolebundle.verification.gate.start import StoredState

_MAX_FACTS = 20
_FACT_CHARACTERS = 240
_EMPTY_BY_CONVENTION = frozenset(
    {"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll", "conftest.py"}
)
"""Names of files that are meant to be empty."""
_EXEMPT = frozenset({"moved_from", "restored", "sha256"})
"""Checks that say themselves what a file is to contain."""
_DOUBTS = frozenset({"no_baseline", "edited_baseline", "edited_contract", "edited_input"})
"""Findings about what the work is checked by, and not about the work."""


def check(loaded: LoadedContract, stored: StoredState, context: Context) -> GateReport:
    """Judge the work.

    Args:
        loaded: the contract as it is at the check.
        stored: what the corpus has stored about it.
        context: what criteria are judged by.
    """
    contract, baseline = loaded.contract, stored.baseline
    results = [
        CriterionResult(id=c.id, level=c.level, check=c.check, result=result, reason=reason)
        for c in contract.criteria
        for allow in ([*c.allow, *contract.allow],)
        for result, reason in (judge(c.model_copy(update={"allow": allow}), context),)
    ]
    findings = [
        GateFinding(code=code, message=message, file=file)
        for code, file, message in (
            *_doubts(loaded, stored, context.work),
            *_no_work(contract, context),
            *_faults(contract, context),
        )
    ]
    must = [result for result in results if result.level == "must"]
    open_must = [result for result in must if result.result != "met"]
    verdict: GateVerdict = "unknown" if findings or open_must else "success"
    is_fault = any(finding.code not in _DOUBTS for finding in findings)
    if is_fault or any(result.result == "not_met" for result in open_must):
        verdict = "failed"
    missed = [result for result in results if result.level == "should" and result.result != "met"]
    reasons = [
        *(
            f"{result.id}: {result.result.replace('_', ' ')}: {result.reason}"
            for result in open_must
        ),
        *(finding.message for finding in findings),
        *(f"{result.id}: should be met: {result.reason}" for result in missed),
    ]
    count = f"{len(must) - len(open_must)} of {len(must)} must criteria are met"
    facts = [f"{loaded.path.name}: {verdict}; {count}", *reasons]
    return GateReport(
        verdict=verdict,
        message="; ".join([count, *reasons[:1]]),
        contract=loaded.path.name,
        started_at=stored.start.started_at if stored.start else None,
        restarts=baseline.restarts if baseline else 0,
        blocks=baseline.blocks if baseline else 0,
        must=len(must),
        must_met=len(must) - len(open_must),
        criteria=results,
        findings=findings,
        facts=[" ".join(fact.split())[:_FACT_CHARACTERS] for fact in facts][:_MAX_FACTS],
    )


_Found = Iterator[tuple[FindingCode, str | None, str]]
"""Code, file and message of findings."""


def _doubts(loaded: LoadedContract, stored: StoredState, work: WorkFolder) -> _Found:
    """Why the check itself cannot be trusted."""
    if stored.damage:
        yield "edited_baseline", None, stored.damage
    elif stored.start is None:
        yield "no_baseline", None, "the gate was not started, so nobody knows what was there before"
    elif stored.baseline is None:
        yield "edited_baseline", None, "the stored baseline is none; start the gate again"
    if stored.start is not None and stored.start.contract_hash != loaded.content_hash:
        yield "edited_contract", None, "the contract is not the one that the gate was started with"
    for before in stored.baseline.inputs if stored.baseline else ():
        try:
            state = work.state(before.path)
        except NotReadable:
            state = None
        if state is None or state.sha256 != before.sha256:
            message = f"{before.path}: decides the result, and has changed since the start"
            yield "edited_input", before.path, message


def _no_work(contract: GateContract, context: Context) -> _Found:
    """Whether every file that the contract names has the bytes of the start."""
    if context.comparison is None:
        return
    before = {path: state.sha256 for path, state in context.comparison.before.items()}
    try:
        names = dict.fromkeys([*named_files(contract, context.work), *before])
        states = [state for name in names if (state := context.work.state(name))]
    except NotReadable:
        return  # A criterion says so.
    if before == {state.path: state.sha256 for state in states}:
        yield "no_work", None, "nothing that the contract names has changed since the start"


def _faults(contract: GateContract, context: Context) -> _Found:
    """What is wrong with the content of the new and changed files that must be there."""
    required = [c for c in contract.criteria if c.file and c.level == "must"]
    exempt = {c.file for c in required if c.check in _EXEMPT}
    first: dict[str, str] = {}
    try:
        names = context.work.matches([c.file for c in required])
    except NotReadable:
        return  # A criterion says so.
    for name in names:
        try:
            data = context.work.read(name)
        except NotReadable:
            continue
        content = content_of(name, data)
        state = state_of(name, data, content)
        before = context.comparison.before.get(name) if context.comparison else None
        change = context.comparison.change(state) if context.comparison else None
        is_old = before and (
            before.sha256 == state.sha256 or before.substance == state.substance != ""
        )
        if is_old or name in exempt:
            continue
        copied = (change.copy_of if change else "") or first.setdefault(state.body or name, name)
        is_copy = copied != name and (context.work.folder / copied).exists()  # Else it was moved.
        is_empty = not state.substance and name.rpartition("/")[2] not in _EMPTY_BY_CONVENTION
        usual = before.placeholders if before and content.is_code else 0
        waiting = content.placeholders if len(content.placeholders) > usual else []
        faults: dict[FindingCode, str] = {
            "wrong_kind": content.wrong_kind,
            "empty": f"has no content ({len(data):,} bytes)" if is_empty else "",
            "error": content.error and f"is an error message: {content.error[:80]}",
            "placeholder": f"has a placeholder: {waiting[0].strip()[:80]}" if waiting else "",
            "copy": f"is a copy of {copied}" if is_copy else "",
        }
        allowed = {*contract.allow, *(a for c in required if c.file == name for a in c.allow)}
        for code, message in faults.items():
            if message and code not in allowed:
                yield code, name, f"{name}: {message}"
