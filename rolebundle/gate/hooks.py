"""What a hook of a host answers: whether an agent may stop."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from rolebundle.contracts.gate import GateReport

HookForm = Literal["claude-code", "exit-code"]

DEFAULT_RETRIES = 3
BLOCKS = 2
_LETS_GO = 1
_MAX_REASON_CHARACTERS = 4_000
STOP_EVENTS = frozenset({"Stop", "SubagentStop"})
"""The events of Claude Code at which its hook checks."""
FACT_EVENTS = frozenset({"UserPromptSubmit", "SessionStart"})
"""The events of Claude Code at which its hook prints the facts."""


class HookAnswer(NamedTuple):
    """Exit code, standard output and standard error; ``blocks`` is the count to remember."""

    exit_code: int
    output: str = ""
    error: str = ""
    blocks: int = 0


def answer_stop(
    report: GateReport, form: HookForm, *, is_retry: bool, retries: int | None
) -> HookAnswer:
    """Whether an agent may stop.

    Args:
        report: the result of the check.
        form: the host.
        is_retry: the host says that a hook has blocked just before.
        retries: how often the hook blocks until it lets go, also a retry; ``None``:
            ``DEFAULT_RETRIES`` times, and no retry.
    """
    if report.verdict == "success":
        return HookAnswer(0)
    is_set_up = report.started_at is not None and not any(
        finding.code == "edited_baseline" for finding in report.findings
    )
    if not is_set_up:
        return let_go(report, form, "the gate was not started, or its baseline is damaged")
    if is_retry and retries is None:
        return let_go(report, form, "a hook has blocked just before")
    if report.blocks >= (DEFAULT_RETRIES if retries is None else retries):
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
