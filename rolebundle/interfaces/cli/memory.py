"""`rolebundle decisions | mark | remember`: what people and agents add."""

from __future__ import annotations

from typing import get_args

import click

from rolebundle.contracts import memory
from rolebundle.contracts.terms import MarkState
from rolebundle.interfaces.cli.options import (
    Call,
    Decorator,
    GroupWithDefault,
    agent_option,
    as_name,
    checked,
    flag,
    with_call,
    with_json,
)
from rolebundle.interfaces.parse import names_in, parsed
from rolebundle.memory import decisions as owned_decisions
from rolebundle.memory import facts, marks


def _by_option(help_text: str, *, required: bool = True) -> Decorator:
    return click.option("--by", metavar="NAME", required=required, callback=as_name, help=help_text)


@click.group()
def decisions() -> None:
    """Add, list and end decisions.

    \b
    rolebundle decisions add "Posts go out on Tuesdays" --by Ana --scope marketing
    rolebundle decisions list
    rolebundle decisions end marketing-12 --by Ana --reason "the new process is in place"
    """


@decisions.command("add")
@click.argument("text")
@with_call("as_json", request=memory.NewDecision, without=["text"])
def decisions_add_command(call: Call, text: str) -> None:
    """Record a decision. From then on `check` and `retrieve` show it to agents.

    A decision is never changed: a new one supersedes it, or `decisions end` ends it.

    \b
    rolebundle decisions add "Backups are deleted by the retention job only" --by Ana \\
      --about "snapshots, archive" --command "restic forget*" --command "rm *restic*"
    rolebundle decisions add "Only the marketing team schedules posts" --by Ana --supersedes 12
    """
    about = names_in(",".join(call.fields.get("about", ())))
    new = parsed(memory.NewDecision, {**call.fields, "text": text, "about": about})
    call.print(call.owner(owned_decisions.record_decision, new))


@decisions.command("list")
@flag("--all", "Also decisions that have no effect now.", "include_all")
@agent_option("Only what this agent sees.")
@with_json
def decisions_list_command(call: Call, include_all: bool, agent: str | None) -> None:
    """List the active decisions. --json has every field.

    \b
    rolebundle decisions list
    rolebundle decisions list --all --json
    """
    if agent is None:
        found = call.owner(owned_decisions.all_decisions)
    else:
        with call.engine() as engine:
            found = engine.decisions(agent)
    listed = [record for record in found if include_all or record.state == "active"]
    empty = "no decision" if include_all else "no active decision"
    call.print(memory.DecisionList(decisions=listed), empty=empty)


@decisions.command("end")
@click.argument("decision_id", metavar="ID")
@_by_option("Who ends it.")
@click.option(
    "--reason",
    metavar="TEXT",
    required=True,
    callback=checked(memory.Statement, "a text of 1 to 1,000 characters"),
    help="Why.",
)
@with_json
def end_command(call: Call, decision_id: str, by: str, reason: str) -> None:
    """End a decision. It stays listed; what it has superseded stays superseded.

    \b
    rolebundle decisions end marketing-12 --by Ana --reason "the new process is in place"
    """
    call.print(call.owner(owned_decisions.end_decision, decision_id, by, reason))


def _author(by: str | None, agent: str | None) -> str:
    """The person of ``--by``; empty if an agent says it."""
    if (by is None) == (agent is None):
        raise click.UsageError("say who it is: --by NAME or --agent ID, and not both")
    return by or ""


@click.group(cls=GroupWithDefault)
def mark() -> None:
    """Mark passages and documents as rejected, disputed or verified.

    A rejected passage is in no answer. The other states raise or lower the role's part of the
    score. A mark counts as long as the marked text does not change.

    \b
    rolebundle mark wiki/limits.md disputed --by Ana --reason "the limit is 40 since May"
    rolebundle mark list
    rolebundle mark remove wiki/limits.md
    """


@mark.command("set")
@click.argument("target", metavar="PASSAGE|DOCUMENT")
@click.argument("state", type=click.Choice(get_args(MarkState)))
@_by_option("The person or tool that says so. Required without --agent.", required=False)
@with_call("as_json", request=memory.MarkRequest, only=["reason", "agent"])
def set_command(call: Call, target: str, state: MarkState, by: str | None) -> None:
    """Mark a passage or a document. `rolebundle mark PASSAGE|DOCUMENT` does the same.

    With --agent an agent marks, as far as the policy allows it; else the owner does.

    \b
    rolebundle mark set wiki/limits.md supervisor_verified --by Ana --reason "I measured it"
    """
    request = parsed(memory.MarkRequest, {"id": target, "state": state, **call.fields})
    if author := _author(by, request.agent):
        record = call.owner(marks.put_mark, request.id, state, author, request.reason)
    else:
        with call.engine() as engine:
            record = engine.mark(request)
    call.print(record)


@mark.command("list")
@with_json
def mark_list_command(call: Call) -> None:
    """List all marks, also those that have ended because the text changed.

    \b
    rolebundle mark list
    rolebundle mark list --json
    """
    call.print(memory.MarkList(marks=call.owner(marks.all_marks)), empty="no marks")


@mark.command("remove")
@click.argument("target", metavar="PASSAGE|DOCUMENT")
@with_json
def remove_command(call: Call, target: str) -> None:
    """Remove the mark of a passage or document, which may be gone.

    \b
    rolebundle mark remove wiki/limits.md
    """
    call.print(call.owner(marks.remove_mark, target))


@click.group(cls=GroupWithDefault)
def remember() -> None:
    """File facts with their sources, and promote or forget them.

    A fact is found like any passage. It has the origin `agent` and the trust tier `untrusted` until
    a person promotes it, and it replaces nothing that others wrote.

    \b
    rolebundle remember "The limit is 40 requests" --source wiki/limits.md:3-5 --by Ana
    rolebundle remember list
    rolebundle remember promote remembered/fact-0c1… --by Ana
    rolebundle remember forget remembered/fact-0c1… --by Ana
    """


@remember.command("add")
@click.argument("fact")
@_by_option("The person who files it. Required without --agent.", required=False)
@with_call("overlay_dirs", "as_json", request=memory.RememberRequest, without=["fact"])
def remember_add_command(call: Call, fact: str, by: str | None) -> None:
    """File a fact. `rolebundle remember FACT` does the same.

    With --agent an agent files it, as far as the policy allows it; else the owner does. The source
    must say the fact. The same fact in the same scope is counted instead of being stored twice.

    \b
    rolebundle remember add "The limit is 40 requests" --source wiki/limits.md:3-5 --by Ana
    rolebundle remember "Tokens expire after an hour" --source https://example.com/auth --by Ana
    """
    request = parsed(memory.RememberRequest, {"fact": fact, **call.fields})
    if author := _author(by, request.agent):
        filed = call.owner(facts.file_fact, request, author)
    else:
        with call.engine() as engine:
            filed = engine.remember(request)
    call.print(filed)


@remember.command("list")
@with_json
def remember_list_command(call: Call) -> None:
    """List all facts, the last filed first.

    \b
    rolebundle remember list
    rolebundle remember list --json
    """
    call.print(memory.FactList(facts=call.owner(facts.all_facts)), empty="no facts")


@remember.command("promote")
@click.argument("fact", metavar="ID")
@_by_option("The person who vouches for it.")
@with_json
def promote_command(call: Call, fact: str, by: str) -> None:
    """Raise a fact from the trust tier untrusted to general.

    Its origin stays `agent`, so that it is trusted like an external document.

    \b
    rolebundle remember promote remembered/fact-0c1… --by Ana
    """
    call.print(call.owner(facts.promote_fact, fact, by))


@remember.command("forget")
@click.argument("fact", metavar="ID")
@_by_option("Who removes it.")
@with_json
def forget_command(call: Call, fact: str, by: str) -> None:
    """Remove a fact from all answers. `rolebundle corpus purge ID` also erases its bytes.

    \b
    rolebundle remember forget remembered/fact-0c1… --by Ana
    """
    call.print(call.owner(facts.forget_fact, fact, by))
