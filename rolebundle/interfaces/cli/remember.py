"""`rolebundle remember FACT | list | promote | forget`: facts with their sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rolebundle.admin.records import all_facts, file_fact, forget_fact, promote_fact
from rolebundle.contracts.facts import (
    FactList,
    FactRecord,
    RememberedFact,
    RememberRequest,
)
from rolebundle.contracts.marks import PersonName
from rolebundle.interfaces.cli.options import (
    Command,
    admin_for,
    db_option,
    engine_for,
    group_with_default,
    json_option,
    overlay_dir_option,
    request_options,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.parse import parsed
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

_FACT_CHARS = 200


def _person_name(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    from pydantic import TypeAdapter, ValidationError

    try:
        return None if name is None else TypeAdapter(PersonName).validate_python(name)
    except ValidationError:
        raise click.BadParameter("a name of 1 to 200 characters on one line") from None


def _by_option(help_text: str, *, required: bool = True) -> Callable[[Command], Command]:
    return click.option(
        "--by", metavar="NAME", required=required, callback=_person_name, help=help_text
    )


@click.group(cls=group_with_default("add"))
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
@click.argument("fact", metavar="FACT")
@request_options(RememberRequest, only=["source", "scope", "agent"])
@_by_option("The person who files it. Required without --agent.", required=False)
@overlay_dir_option
@db_option
@json_option
def add_command(
    fact: str,
    fields: dict[str, Any],
    by: str | None,
    overlay_dirs: tuple[Any, ...],
    db: str | None,
    as_json: bool,
) -> None:
    """File a fact. `rolebundle remember FACT` does the same.

    With --agent an agent files it, as far as the policy allows it; else the owner does. The source
    must say the fact. The same fact in the same scope is counted instead of being stored twice.

    \b
    rolebundle remember add "The limit is 40 requests" --source wiki/limits.md:3-5 --by Ana
    rolebundle remember "Tokens expire after an hour" --source https://example.com/auth --by Ana
    """
    request = parsed(RememberRequest, {"fact": fact, **fields})
    if request.agent is not None:
        if by is not None:
            raise click.UsageError("--agent and --by name two; give only one of them")
        with engine_for(db, overlay_dirs) as engine:
            filed = engine.remember(request)
    elif by is None:
        raise click.UsageError("say who files it: --by NAME")
    else:
        with admin_for(db) as admin:
            filed = file_fact(admin.workspace, request, by)
    print_answer(filed, [_line(filed)], as_json=as_json)


@remember.command("list")
@db_option
@json_option
def list_command(db: str | None, as_json: bool) -> None:
    """List all facts, the last filed first.

    \b
    rolebundle remember list
    rolebundle remember list --json
    """
    with admin_for(db) as admin:
        facts = all_facts(admin.workspace)
    answer = FactList(facts=facts)
    print_answer(answer, map(_line, facts), as_json=as_json, empty="nothing is remembered")


@remember.command("promote")
@click.argument("fact", metavar="ID")
@_by_option("The person who vouches for it.")
@db_option
@json_option
def promote_command(fact: str, by: str, db: str | None, as_json: bool) -> None:
    """Raise a fact from the trust tier untrusted to general.

    Its origin stays `agent`, so that it is trusted like an external document.

    \b
    rolebundle remember promote remembered/fact-0c1… --by Ana
    """
    with admin_for(db) as admin:
        record = promote_fact(admin.workspace, fact, by)
    print_answer(record, [f"promoted: {_line(record)}"], as_json=as_json)


@remember.command("forget")
@click.argument("fact", metavar="ID")
@_by_option("Who removes it.")
@db_option
@json_option
def forget_command(fact: str, by: str, db: str | None, as_json: bool) -> None:
    """Remove a fact from all answers. `rolebundle corpus purge ID` also erases its bytes.

    \b
    rolebundle remember forget remembered/fact-0c1… --by Ana
    """
    with admin_for(db) as admin:
        record = forget_fact(admin.workspace, fact, by)
    print_answer(record, [f"forgotten: {_line(record)}"], as_json=as_json)


def _line(fact: RememberedFact) -> str:
    notes = [fact.trust_tier, f"filed {counted(fact.count, 'time')}"]
    if fact.state == "quarantined":
        notes.append(f"in quarantine: {', '.join(fact.flags or ())}")
    if isinstance(fact, FactRecord):
        notes.append(f"by {one_line(fact.remembered_by)}")
        if fact.promoted_by:
            notes.append(f"promoted by {one_line(fact.promoted_by)}")
        if fact.source_is_gone:
            notes.append("its source is gone")
    return (
        f"{fact.document_id}  {one_line(fact.fact, _FACT_CHARS)}  [{one_line(fact.source)}]  "
        f"({fact.scope}; {'; '.join(notes)})"
    )
