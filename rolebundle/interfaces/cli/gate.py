"""`rolebundle gate start | check | facts | approve | hook`: done means done."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rolebundle.admin.records import approve_contract, count_blocks, revoke_contract, start_gate
from rolebundle.contracts.base import writable
from rolebundle.contracts.gate import ApprovedContract, ApprovedContracts
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.cli.options import (
    admin_for,
    db_option,
    engine_for,
    json_option,
    overlay_dir_option,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.json_lines import json_value
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.records.approvals import approvals
from rolebundle.text.counts import counted
from rolebundle.verification.gate.contract import load_contract
from rolebundle.verification.gate.hooks import DEFAULT_RETRIES, HookInput, answer_stop

if TYPE_CHECKING:
    from rolebundle.contracts.gate import GateReport

EXIT_NOT_DONE = 1
_MAX_EVENT_BYTES = 16 << 20
_LINE_CHARACTERS = 300
_NOT_IN_FACTS = "commands are not run for facts"

_contract = click.argument("contract", type=click.Path(path_type=Path))
_agent_option = click.option(
    "--agent", metavar="ID", help="Ask the corpus in the name of this agent."
)


@click.group()
def gate() -> None:
    """Check with a contract that work is done.

    A contract is a TOML file with criteria about files beside it and about the corpus. docs/gate.md
    describes it.

    \b
    rolebundle gate start report.gate.toml     before the work
    rolebundle gate check report.gate.toml     after it: success, failed or unknown
    rolebundle gate facts report.gate.toml     the state in short lines, for the next turn
    """


@gate.command("start")
@_contract
@click.option("--yes", "restart", is_flag=True, help="Replace the baseline of an earlier start.")
@db_option
@json_option
def start_command(contract: Path, restart: bool, db: str | None, as_json: bool) -> None:
    """Record the files that CONTRACT names as they are before the work.

    \b
    rolebundle gate start report.gate.toml
    rolebundle gate start report.gate.toml --yes
    """
    with admin_for(db) as admin:
        started = start_gate(admin.workspace, contract, restart=restart)
    restarts = f", restart {started.restarts}" if started.restarts else ""
    line = (
        f"{one_line(contract.name)}: started at {started.started_at}{restarts}; "
        f"{counted(started.files, 'named file')} and {counted(started.others, 'other')} recorded"
    )
    print_answer(started, [line], as_json=as_json)


@gate.command("check")
@_contract
@_agent_option
@db_option
@overlay_dir_option
@json_option
@click.pass_context
def check_command(
    ctx: click.Context,
    contract: Path,
    agent: str | None,
    db: str | None,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Judge the work of CONTRACT: success, failed or unknown. Exit code 1 unless it is success.

    Commands of the contract are run if it was approved.

    \b
    rolebundle gate check report.gate.toml
    rolebundle gate check report.gate.toml --json
    """
    with engine_for(db, overlay_dirs) as engine:
        report = engine.gate_check(contract, agent)
    print_answer(report, [_text(report)], as_json=as_json)
    if report.verdict != "success":
        ctx.exit(EXIT_NOT_DONE)


@gate.command("facts")
@_contract
@_agent_option
@db_option
@overlay_dir_option
def facts_command(
    contract: Path, agent: str | None, db: str | None, overlay_dirs: tuple[Path, ...]
) -> None:
    """Print the state of CONTRACT in short lines. Its commands are not run.

    \b
    rolebundle gate facts report.gate.toml
    """
    with engine_for(db, overlay_dirs) as engine:
        report = engine.gate_check(contract, agent, no_command=_NOT_IN_FACTS)
    click.echo(writable(_lines(report.facts)))


@gate.command("approve")
@click.argument("contract", required=False, type=click.Path(path_type=Path))
@click.option("--undo", "revoke", is_flag=True, help="Withdraw the approval instead.")
@click.option("--inline-code", is_flag=True, help="Also allow a shell, or code in an argument.")
@db_option
@json_option
def approve_command(
    contract: Path | None, revoke: bool, inline_code: bool, db: str | None, as_json: bool
) -> None:
    """Allow the commands of CONTRACT until its content changes. It prints them.

    A command that starts a shell, or an interpreter with code in an argument, needs --inline-code.

    Without CONTRACT, list what is approved.

    \b
    rolebundle gate approve report.gate.toml
    rolebundle gate approve report.gate.toml --inline-code
    rolebundle gate approve report.gate.toml --undo
    rolebundle gate approve
    """
    if contract is None and revoke:
        raise click.UsageError("--undo: name the contract")
    with admin_for(db) as admin:
        if contract is None:
            stored = approvals(admin.workspace.corpus)
            answer = ApprovedContracts(
                contracts=[ApprovedContract(**approval._asdict()) for approval in stored]
            )
            lines = (
                f"{one_line(file.location)}  {file.content_hash[:16]}  {file.approved_at}"
                for file in answer.contracts
            )
            print_answer(answer, lines, as_json=as_json, empty="no contract is approved")
        elif revoke:
            click.echo(f"{one_line(revoke_contract(admin.workspace, contract))}: not approved")
        else:
            location = approve_contract(admin.workspace, contract, inline_code=inline_code)
            click.echo(f"{one_line(location)}: approved until its content changes")
            commands = load_contract(contract).commands
            click.echo(writable(_lines([f"- {shlex.join(command)}" for command in commands])))


class _NeverTrapping(click.Command):
    """A command whose errors exit with 1, because 2 would keep an agent from stopping."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _errors_without_blocking():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _errors_without_blocking():
            return super().invoke(ctx)


@contextmanager
def _errors_without_blocking() -> Iterator[None]:
    try:
        yield
    except (click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        message = str(error) if isinstance(error, RolebundleError) else ""
        if isinstance(error, click.ClickException):
            message = error.format_message()
        message = message or f"{type(error).__name__}: {error}"
        click.echo(writable(f"gate: not checked, this is NO success: {message}"), err=True)
        raise click.exceptions.Exit(EXIT_NOT_DONE) from None


@gate.command("hook", cls=_NeverTrapping)
@click.argument("form", type=click.Choice(["claude-code", "exit-code"]))
@_contract
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    help="How often the hook blocks, also while stop_hook_active is set. A prompt of the user "
    f"resets the count.  [default: {DEFAULT_RETRIES}, but not while it is set]",
)
@_agent_option
@db_option
@overlay_dir_option
@click.pass_context
def hook_command(
    ctx: click.Context,
    form: str,
    contract: Path,
    retries: int | None,
    agent: str | None,
    db: str | None,
    overlay_dirs: tuple[Path, ...],
) -> None:
    """Answer a host that asks whether its agent may stop.

    Only exit code 2 blocks, with the reason on standard error. 0: success, or the hook no longer
    blocks and says so. 1: no success, or the check itself failed.

    claude-code reads the event from standard input: Stop and SubagentStop are checked;
    UserPromptSubmit and SessionStart print the facts. exit-code reads nothing.

    \b
    rolebundle gate hook claude-code report.gate.toml < event.json
    rolebundle gate hook exit-code report.gate.toml
    """
    event = HookInput("stop")
    if form == "claude-code":
        data = sys.stdin.buffer.read(_MAX_EVENT_BYTES + 1)
        fields = json_value(data, _MAX_EVENT_BYTES)
        if not isinstance(fields, dict):
            raise click.UsageError("the event on standard input is not a JSON object")
        event = HookInput.of_claude_code(fields)
    if event.event == "other":
        return
    is_stop = event.event == "stop"
    with engine_for(db, overlay_dirs) as engine:
        report = engine.gate_check(contract, agent, no_command="" if is_stop else _NOT_IN_FACTS)
    if not is_stop:
        click.echo(writable(_lines(report.facts)))
        if event.is_prompt and report.blocks:
            with admin_for(db) as admin:
                count_blocks(admin.workspace, contract, 0)
        return
    answer = answer_stop(
        report,
        "claude-code" if form == "claude-code" else "exit-code",
        is_retry=event.is_retry,
        retries=DEFAULT_RETRIES if retries is None else retries,
        insist=retries is not None,
    )
    if answer.blocks != report.blocks:
        # Before the answer: what is not counted must not block.
        with admin_for(db) as admin:
            count_blocks(admin.workspace, contract, answer.blocks)
    if answer.output:
        click.echo(answer.output)
    if answer.error:
        click.echo(writable(_lines(answer.error.split("\n"))), err=True)
    ctx.exit(answer.exit_code)


def _text(report: GateReport) -> str:
    lines = [f"{report.verdict}: {report.message}"]
    for result in report.criteria:
        state = result.result.replace("_", " ")
        lines.append(f"- {result.id} ({result.level}): {state}: {result.reason}")
    lines += [f"- {finding.code}: {finding.message}" for finding in report.findings]
    if report.restarts:
        lines.append(f"- the baseline was replaced: {counted(report.restarts, 'restart')}")
    return _lines(lines)


def _lines(lines: list[str]) -> str:
    # The names of files may have any character.
    return "\n".join(one_line(line, _LINE_CHARACTERS) for line in lines)
