"""`rolebundle scopes set | show | lint`: who may see what."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from rolebundle.errors import ConfigurationError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.words import counted
from rolebundle.policy.overlay_lint import LintFinding
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader


@click.group()
def scopes() -> None:
    """Who may see what: agents, scopes, access levels.

    Documents have a scope and a sensitivity, declared like all their metadata. A policy file gives
    each agent its scopes, its access level and its deny patterns. Once one was set, whoever it
    does not name sees nothing, and `retrieve`, `get`, `why` and the servers need an agent.

    \b
    rolebundle scopes lint policy.toml
    rolebundle scopes set policy.toml
    rolebundle retrieve "Plan release 3.0" --agent release-bot
    """


@scopes.command("set")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--format", "kind", type=click.Choice(["toml", "json"]), help="Default: by the file's suffix."
)
@db_option
@json_option
def set_command(file: str, kind: str | None, db: str | None, as_json: bool) -> None:
    """Put a policy file into force.

    The policy is copied into the corpus, and FILE must go on saying the same: where it is missing,
    empty, malformed or changed, everybody is denied until `scopes set` is run again. From standard
    input (-) the copy in the corpus is all there is. A malformed FILE is refused.

    \b
    rolebundle scopes set policy.toml
    rolebundle scopes set - --format json < policy.json
    """
    from rolebundle.policy.access_lint import lint_policy
    from rolebundle.policy.policy_file import parse_policy

    content, kind, location = _read(file, kind)
    policy = parse_policy(content, kind, file)
    with admin_for(db) as admin:
        moved = admin.set_policy(content, kind, location)
        found = lint_policy(policy, admin.workspace.corpus)
    for finding in found:
        click.echo(_line(file, finding), err=True)
    if as_json:
        report = {"agents": sorted(policy.agents), "moved": moved, "location": location}
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    click.echo(f"{counted(len(policy.agents), 'agent')} named; whoever is not named sees nothing")
    click.echo(f"{counted(moved, 'document')} moved to another compartment")


@scopes.command("show")
@click.option("--agent", metavar="ID", help="What this one sees, and no other.")
@db_option
@json_option
def show_command(agent: str | None, db: str | None, as_json: bool) -> None:
    """The policy in force, and how much of the corpus each agent sees.

    \b
    rolebundle scopes show
    rolebundle scopes show --agent release-bot --json
    """
    from rolebundle.policy.access import report_policy

    with open_reader(corpus_path(db)) as corpus:
        found = report_policy(corpus, agent)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    if not found["policy"]:
        click.echo("no policy was set: every agent, named or not, sees every document")
    elif found["doubt"]:
        click.echo(f"everybody is denied: {found['doubt']}")
    else:
        click.echo(f"policy of {found['set_at']} from {found['location'] or 'standard input'}")
    for one in found["agents"]:
        where = ", ".join(one["scopes"]) or "EVERY scope"
        click.echo(
            f"{one['agent']}  {one['access_level']}  {where}  "
            f"sees {one['documents']} of {found['documents']} documents"
        )
        for pattern in one["deny_patterns"]:
            click.echo(f"    never {pattern}")


@scopes.command("lint")
@click.argument("file", metavar="[FILE|-]", required=False)
@click.option(
    "--format", "kind", type=click.Choice(["toml", "json"]), help="Default: by the file's suffix."
)
@db_option
@json_option
def lint_command(file: str | None, kind: str | None, db: str | None, as_json: bool) -> None:
    """What is wrong with a policy, or more open than it looks.

    Without FILE the policy in force. Where there is a corpus, scopes and patterns are checked
    against its documents. Errors lead to exit code 3, warnings do not.

    \b
    rolebundle scopes lint policy.toml
    rolebundle scopes lint --db team.db
    """
    from rolebundle.policy.access_lint import lint_active_policy, lint_policy
    from rolebundle.policy.policy_file import parse_policy

    path = corpus_path(db)
    if file is None:
        with open_reader(path) as corpus:
            found = lint_active_policy(corpus)
    else:
        content, kind, _ = _read(file, kind)
        policy = parse_policy(content, kind, file)
        if db is None and not path.exists():
            found = lint_policy(policy)
        else:
            with open_reader(path) as corpus:
                found = lint_policy(policy, corpus)
    name = file or "policy in force"
    if as_json:
        click.echo(json.dumps({"findings": [asdict(one) for one in found]}, ensure_ascii=False))
    else:
        for finding in found:
            click.echo(_line(name, finding))
    _summarize(name, found)


def _summarize(name: str, found: Sequence[LintFinding]) -> None:
    errors = sum(one.level == "error" for one in found)
    warnings = len(found) - errors
    click.echo(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}", err=True)
    if errors:
        raise ConfigurationError(
            "policy_lint_failed",
            f"{name}: {counted(errors, 'error')}",
            "mend it and run `rolebundle scopes set FILE`",
        )


def _read(file: str, kind: str | None) -> tuple[str, str, str]:
    """The text, its format, and where the file lies; empty for standard input."""
    from rolebundle.policy.policy_file import decode_policy, read_policy_file

    if file == "-":
        if kind is None:
            raise click.UsageError("say --format toml or json for a policy from standard input")
        return decode_policy(sys.stdin.buffer.read(), "standard input"), kind, ""
    path = Path(file)
    suffix = kind or path.suffix.removeprefix(".").lower()
    if suffix not in ("toml", "json"):
        raise click.UsageError(f"{file}: say --format toml or json; the suffix does not tell")
    return read_policy_file(path), suffix, str(path.absolute())


def _line(name: str, finding: LintFinding) -> str:
    place = f"{finding.place}: " if finding.place else ""
    return f"{name}: {finding.level}: {place}{finding.message} [{finding.code}]"
