"""`rolebundle verify | check | gate`: drafts, intents and finished work are checked."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, get_args

import click
from click.exceptions import Exit

from rolebundle.contracts.base import writable
from rolebundle.contracts.gate import ApprovedContract, ApprovedContracts
from rolebundle.contracts.memory import MAX_INTENT_CHARACTERS, CheckRequest
from rolebundle.contracts.verification import MAX_DRAFT_CHARACTERS, Verification, VerifyRequest
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.gate.baseline import count_blocks, start_gate
from rolebundle.gate.check import criterion_line
from rolebundle.gate.contract import approve_contract, load_contract, revoke_contract
from rolebundle.gate.hooks import DEFAULT_RETRIES, FACT_EVENTS, STOP_EVENTS, HookForm, answer_stop
from rolebundle.interfaces.cli.options import (
    PATH,
    Call,
    agent_option,
    flag,
    request_file_option,
    with_call,
    with_json,
)
from rolebundle.interfaces.cli.output import print_json, print_note
from rolebundle.interfaces.json_lines import MAX_LINE_BYTES, json_object, json_value
from rolebundle.interfaces.layout import harmless
from rolebundle.interfaces.model_text import check_lines, line_and_column, verification_lines
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.shape import shaped_verification
from rolebundle.retrieval.passage_text import one_line
from rolebundle.storage.records import approved_manifests
from rolebundle.text.words import counted

_MAX_BUNDLE_BYTES = 64 << 20
"""Well above a thousand passages of the largest chunk size."""
_QUOTED_CHARS = 200
_NOTE_CHARS = 400


@click.command()
@click.argument("draft_file", metavar="DRAFT|-", type=click.File("rb"))
@click.option(
    "--bundle",
    "bundle_file",
    metavar="FILE",
    type=click.File("rb"),
    help="The bundle that the draft was written from, as JSON.",
)
@with_call("overlay_dirs", "as_json", request=VerifyRequest, without=["draft", "bundle"])
def verify(call: Call, draft_file: BinaryIO, bundle_file: BinaryIO | None) -> None:
    """Check the quotes, citations, figures and sentences of a DRAFT against their sources.

    The sources are the passages of --bundle or of each --chunk; else the whole corpus. In the
    draft, [1] cites the first passage, and path:start-end lines. -: standard input. The exit code
    is 0 only if the verdict is `clean`.

    \b
    rolebundle retrieve "Plan release 3.0" --role technical-writer --format json > bundle.json
    rolebundle verify answer.md --bundle bundle.json
    rolebundle verify answer.md --bundle bundle.json --redact --json
    """
    # Bytes that are no text become unpaired surrogates, which the request refuses.
    data = draft_file.read(4 * MAX_DRAFT_CHARACTERS + 1)
    draft = data.decode("utf-8-sig", "surrogateescape")
    fields = {"draft": draft, **call.fields}
    if bundle_file is not None:
        try:
            data = bundle_file.read(_MAX_BUNDLE_BYTES + 1)
            fields["bundle"] = json_value(data, _MAX_BUNDLE_BYTES)
        except UsageError as error:
            problem = error.message.replace("the request", "the bundle")
            raise UsageError("bundle_malformed", problem, "give what `retrieve` wrote") from None
    request = parsed(VerifyRequest, fields)
    with call.engine(judging=True) as engine:
        answer = engine.verify(request)
    shaped = shaped_verification(answer, request.detail or "full")
    call.print(shaped, _verify_lines(answer, draft, redacted=request.redact))
    if answer.verdict != "clean":
        raise Exit(1)


def _verify_lines(answer: Verification, draft: str, *, redacted: bool) -> Iterator[str]:
    """The answer for a person. What is left of a ``redacted`` draft is at the end."""
    yield from verification_lines(shaped_verification(answer, "compact"), draft)
    for opinion in answer.opinions:
        supported = {True: "yes", False: "no", None: "unclear"}[opinion.supported]
        place = line_and_column(draft, opinion.span.start)
        sentence = one_line(draft[opinion.span.start : opinion.span.end], _QUOTED_CHARS)
        yield f"opinion of {answer.judge}: {supported} {place}; {sentence}"
    if answer.judge_problem:
        yield f"! {one_line(answer.judge_problem, _NOTE_CHARS)}"
    if redacted and answer.validated_draft is not None:
        yield f"\nthe draft without what fails:\n\n{harmless(answer.validated_draft)}"


_EXIT_HOOK_BLOCKS = 2
_STOPPING = frozenset({"block", "require_approval"})
_READING_TOOLS = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
"""Tools of hosts that only read, whatever action the hook was set up for."""


@click.command()
@click.argument("intent", required=False)
@request_file_option
@flag(
    "--hook",
    "Be the hook that a host calls before a tool: read its JSON (tool_name, tool_input) or a "
    "request from standard input. Exit code 2 stops the tool, with the reason on standard error.",
)
@with_call("overlay_dirs", "as_json", request=CheckRequest, without=["intent"])
def check(call: Call, intent: str | None, request_file: BinaryIO | None, hook: bool) -> None:
    """Find decisions that may apply to INTENT: none_found, warn, require_approval or block.

    The answer is advice, and quotes the decisions with id, date and reason. Exit code 1 if it is
    require_approval or block.

    \b
    rolebundle check "schedule a post about 3.0" --also "publish the news of 3.0"
    rolebundle check --command "restic forget --keep-last 3"
    echo '{"intent": "schedule a post about 3.0"}' | rolebundle check --request -
    rolebundle check --hook --action execute < tool-call.json
    """
    fields = call.fields
    has_own = intent is not None or "command" in fields
    if has_own + (request_file is not None) + hook != 1:
        raise click.UsageError("give one of INTENT or --command, --request and --hook")
    if request_file is not None and fields:
        raise click.UsageError("--request has all fields; give no other options with it")
    try:
        if hook:
            data = json_object(sys.stdin.buffer.read(MAX_LINE_BYTES + 1))
            fields = fields | _fields_of_call(data) if "tool_name" in data else data | fields
        elif request_file is not None:
            fields = json_object(request_file.read(MAX_LINE_BYTES + 1))
        elif intent is not None:
            fields["intent"] = intent
        request = parsed(CheckRequest, fields)
        with call.engine() as engine:
            answer = engine.check(request)
    except RolebundleError as error:
        if not hook:
            raise
        # A host goes on after any other code.
        print_note(f"rolebundle check: {error}")
        raise Exit(_EXIT_HOOK_BLOCKS) from None
    if hook:
        if answer.verdict != "none_found":
            print_note(one_line(f"{answer.verdict}: {answer.message}", 4_000))
    elif request_file is not None and not call.as_json:
        print_json(answer, indent=None, exclude_none=True)
    else:
        call.print(answer, check_lines(answer.model_dump()), exclude_none=True)
    if answer.verdict in _STOPPING:
        raise Exit(_EXIT_HOOK_BLOCKS if hook else 1)


def _fields_of_call(data: dict[str, object]) -> dict[str, object]:
    """The fields of a request, from what a host says of a tool call."""
    values = data.get("tool_input")
    if isinstance(values, dict) and isinstance(command := values.get("command"), str):
        fields = {"command": command}
        if description := str(values.get("description") or ""):
            fields["intent"] = description
    else:
        fields = {"intent": ". ".join([str(data["tool_name"]).replace("_", " "), *_texts(values)])}
    if any(len(text) > MAX_INTENT_CHARACTERS for text in fields.values()):
        print_note(
            f"rolebundle check: only the first {MAX_INTENT_CHARACTERS:,} characters of the call "
            "were compared"
        )
    if data["tool_name"] in _READING_TOOLS:
        fields["action"] = "read"
    return {name: text[:MAX_INTENT_CHARACTERS] for name, text in fields.items()}


def _texts(value: object) -> list[str]:
    """The texts in plain values, in order."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in values for text in _texts(item)]


_MAX_EVENT_BYTES = 16 << 20
_LINE_CHARACTERS = 300
_NOT_IN_FACTS = "commands are not run for facts"

_contract = click.argument("contract", type=PATH)
_agent_option = agent_option("Ask the corpus in the name of this agent.")


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
@flag("--yes", "Replace the baseline of an earlier start.", "restart")
@with_json
def start_command(call: Call, contract: Path, restart: bool) -> None:
    """Record the files that CONTRACT names as they are before the work.

    \b
    rolebundle gate start report.gate.toml
    rolebundle gate start report.gate.toml --yes
    """
    call.print(call.owner(start_gate, contract, restart=restart))


@gate.command("check")
@_contract
@_agent_option
@with_call("overlay_dirs", "as_json")
def check_command(call: Call, contract: Path, agent: str | None) -> None:
    """Judge the work of CONTRACT: success, failed or unknown. Exit code 1 unless it is success.

    Commands of the contract are run if it was approved.

    \b
    rolebundle gate check report.gate.toml
    rolebundle gate check report.gate.toml --json
    """
    with call.engine() as engine:
        report = engine.gate_check(contract, agent)
    lines = [f"{report.verdict}: {report.message}"]
    lines += [f"- {criterion_line(result)}" for result in report.criteria]
    lines += [f"- {finding.code}: {finding.message}" for finding in report.findings]
    if report.restarts:
        lines.append(f"- the baseline was replaced: {counted(report.restarts, 'restart')}")
    call.print(report, [_gate_lines(lines)])
    if report.verdict != "success":
        raise Exit(1)


@gate.command("facts")
@_contract
@_agent_option
@with_call("overlay_dirs")
def facts_command(call: Call, contract: Path, agent: str | None) -> None:
    """Print the state of CONTRACT in short lines. Its commands are not run.

    \b
    rolebundle gate facts report.gate.toml
    """
    with call.engine() as engine:
        report = engine.gate_check(contract, agent, no_command=_NOT_IN_FACTS)
    click.echo(writable(_gate_lines(report.facts)))


@gate.command("approve")
@click.argument("contract", required=False, type=PATH)
@flag("--undo", "Withdraw the approval instead.", "revoke")
@flag("--inline-code", "Also allow a shell, or code in an argument.")
@with_json
def approve_command(call: Call, contract: Path | None, revoke: bool, inline_code: bool) -> None:
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
    with call.admin() as admin:
        if contract is None:
            stored = approved_manifests(admin.workspace.corpus)
            answer = ApprovedContracts(contracts=[ApprovedContract(**row) for row in stored])
            call.print(answer, empty="no contract is approved")
        elif revoke:
            location = revoke_contract(admin.workspace, contract)
            click.echo(f"{one_line(location)}: not approved")
        else:
            location = approve_contract(admin.workspace, contract, inline_code=inline_code)
            click.echo(f"{one_line(location)}: approved until its content changes")
            commands = load_contract(contract).commands
            click.echo(writable(_gate_lines([f"- {shlex.join(command)}" for command in commands])))


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
    except (Exit, click.Abort):
        raise
    except Exception as error:
        message = str(error) if isinstance(error, RolebundleError) else ""
        if isinstance(error, click.ClickException):
            message = error.format_message()
        message = message or f"{type(error).__name__}: {error}"
        print_note(f"gate: not checked, this is NO success: {message}")
        raise Exit(1) from None


@gate.command("hook", cls=_NeverTrapping)
@click.argument("form", type=click.Choice(get_args(HookForm)))
@_contract
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    help="How often the hook blocks, also while stop_hook_active is set. A prompt of the user "
    f"resets the count.  [default: {DEFAULT_RETRIES}, but not while it is set]",
)
@_agent_option
@with_call("overlay_dirs")
def hook_command(
    call: Call, form: HookForm, contract: Path, retries: int | None, agent: str | None
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
    fields: object = {"hook_event_name": "Stop"}
    if form == "claude-code":
        fields = json_value(sys.stdin.buffer.read(_MAX_EVENT_BYTES + 1), _MAX_EVENT_BYTES)
    if not isinstance(fields, dict):
        raise click.UsageError("the event on standard input is not a JSON object")
    event = str(fields.get("hook_event_name"))
    is_stop = event in STOP_EVENTS
    if not is_stop and event not in FACT_EVENTS:
        return
    with call.engine() as engine:
        report = engine.gate_check(contract, agent, no_command="" if is_stop else _NOT_IN_FACTS)
    if not is_stop:
        click.echo(writable(_gate_lines(report.facts)))
        if event == "UserPromptSubmit" and report.blocks:
            call.owner(count_blocks, contract, 0)
        return
    answer = answer_stop(
        report,
        form,
        # Anything but a plain false lets go, so that no host can loop.
        is_retry=fields.get("stop_hook_active", False) is not False,
        retries=retries,
    )
    if answer.blocks != report.blocks:
        # Before the answer: what is not counted must not block.
        call.owner(count_blocks, contract, answer.blocks)
    if answer.output:
        click.echo(answer.output)
    if answer.error:
        print_note(_gate_lines(answer.error.split("\n")))
    raise Exit(answer.exit_code)


def _gate_lines(lines: list[str]) -> str:
    # The names of files may have any character.
    return "\n".join(one_line(line, _LINE_CHARACTERS) for line in lines)
