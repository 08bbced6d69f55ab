"""`rolebundle policy set | show | lint | …`: who may see what."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from rolebundle.admin.records import set_policy
from rolebundle.contracts.lint import LintProblem, PolicyLint
from rolebundle.contracts.scopes import PolicyChange, PolicySummary
from rolebundle.errors import ConfigurationError
from rolebundle.interfaces.cli.command_list import POLICY
from rolebundle.interfaces.cli.lazy_group import LazyGroup
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader
from rolebundle.storage.records.replica import load_record
from rolebundle.text.counts import counted


@click.group(cls=LazyGroup, sections=POLICY)
def policy() -> None:
    """Set, show and check the policy: which agent may see what.

    The metadata of a document has a scope and a sensitivity. A policy file gives each agent its
    scopes, its access level and its deny patterns. If a policy is set, agents that it does not name
    see nothing, and `retrieve`, `get`, `ls`, `grep`, `why`, `compare`, `replay` and the servers
    need an agent.

    \b
    rolebundle policy lint policy.toml
    rolebundle policy set policy.toml
    rolebundle retrieve "Plan release 3.0" --agent release-bot
    """


@policy.command("set")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--format", "kind", type=click.Choice(["toml", "json"]), help="Default: from the file's suffix."
)
@db_option
@overlay_dir_option
@json_option
def set_command(
    file: str, kind: str | None, db: str | None, overlay_dirs: tuple[Path, ...], as_json: bool
) -> None:
    """Set a policy file as the policy of the corpus.

    The policy is copied into the corpus, and FILE must stay as it is. If it is missing, empty,
    malformed or changed later, every agent is denied until `policy set` is run again. A policy from
    standard input (-) exists only as the copy in the corpus. A malformed FILE is refused.

    \b
    rolebundle policy set policy.toml
    rolebundle policy set - --format json < policy.json
    """
    from rolebundle.policy.lint import lint_policy
    from rolebundle.policy.policy_file import parse_policy

    content, kind, location = _read(file, kind)
    parsed = parse_policy(content, kind, file)
    with admin_for(db) as admin:
        moved = set_policy(admin.workspace, content, kind, location)
        findings = lint_policy(
            parsed, admin.workspace.corpus, _roles(overlay_dirs, admin.workspace.path)
        )
    for finding in findings:
        click.echo(_line(file, finding), err=True)
    lines = [
        f"{counted(len(parsed.agents), 'agent')} named; all other agents see nothing",
        f"{counted(moved, 'document')} moved to another compartment",
    ]
    change = PolicyChange(agents=sorted(parsed.agents), moved=moved, location=location)
    print_answer(change, lines, as_json=as_json)


@policy.command("show")
@click.option("--agent", metavar="ID", help="Only show what this agent sees.")
@db_option
@json_option
def show_command(agent: str | None, db: str | None, as_json: bool) -> None:
    """Show the current policy, and how much of the corpus each agent sees.

    \b
    rolebundle policy show
    rolebundle policy show --agent release-bot --json
    """
    from rolebundle.policy.lint import report_policy

    with open_reader(corpus_path(db)) as corpus:
        summary = report_policy(corpus, agent)
        replica = load_record(corpus)
    copied = f"{replica.publisher}, with this replica" if replica else "standard input"
    print_answer(summary, _policy_lines(summary, copied), as_json=as_json, indent=2)


def _policy_lines(policy: PolicySummary, copied: str) -> Iterator[str]:
    """The policy for a person. ``copied``: where it is from, if it is from no file."""
    if not policy.policy:
        yield "no policy was set: every agent sees every document"
    elif policy.doubt:
        yield f"every agent is denied: {policy.doubt}"
    else:
        yield f"policy of {policy.set_at} from {policy.location or copied}"
    for entry in policy.agents:
        scope_names = ", ".join(entry.scopes) or "EVERY scope"
        yield (
            f"{entry.agent}  {entry.access_level}  {scope_names}  "
            f"sees {entry.documents} of {counted(policy.documents, 'document')}"
        )
        if entry.roles is not None or entry.role_required:
            named = "any role" if entry.roles is None else ", ".join(entry.roles) or "no role"
            yield f"    roles: {named}" + ("" if entry.role_required else ", or none")
        if entry.may_write:
            yield f"    may write: {', '.join(entry.may_write)}"
        if entry.show_paths:
            yield "    sees the paths of files on this machine"
        yield from (f"    never {pattern}" for pattern in entry.deny_patterns)


@policy.command("lint")
@click.argument("file", metavar="[FILE|-]", required=False)
@click.option(
    "--format", "kind", type=click.Choice(["toml", "json"]), help="Default: from the file's suffix."
)
@db_option
@overlay_dir_option
@json_option
def lint_command(
    file: str | None,
    kind: str | None,
    db: str | None,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check a policy for errors, and for rules that allow more than they seem to.

    Without FILE the current policy is checked. Roles are checked against the overlays. If there is
    a corpus, scopes and patterns are checked against its documents. Errors lead to exit code 3,
    warnings do not.

    \b
    rolebundle policy lint policy.toml
    rolebundle policy lint --db team.db
    """
    from rolebundle.policy.lint import lint_active_policy, lint_policy
    from rolebundle.policy.policy_file import parse_policy

    path = corpus_path(db)
    roles = _roles(overlay_dirs, path)
    if file is None:
        with open_reader(path) as corpus:
            findings = lint_active_policy(corpus, roles)
    else:
        content, kind, _ = _read(file, kind)
        parsed = parse_policy(content, kind, file)
        if db is None and not path.exists():
            findings = lint_policy(parsed, roles=roles)
        else:
            with open_reader(path) as corpus:
                findings = lint_policy(parsed, corpus, roles)
    name = file or "current policy"
    lines = (_line(name, finding) for finding in findings)
    print_answer(PolicyLint(findings=findings), lines, as_json=as_json)
    _summarize(name, findings)


def _roles(overlay_dirs: tuple[Path, ...], corpus: Path) -> list[str]:
    """The roles that have an overlay."""
    from rolebundle.policy.overlays import list_overlays, overlay_folders

    return [entry.role_id for entry in list_overlays(overlay_folders(overlay_dirs, corpus))]


def _summarize(name: str, findings: Sequence[LintProblem]) -> None:
    errors = sum(finding.level == "error" for finding in findings)
    warnings = len(findings) - errors
    click.echo(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}", err=True)
    if errors:
        raise ConfigurationError(
            "policy_lint_failed",
            f"{name}: {counted(errors, 'error')}",
            "correct it and run `rolebundle policy set FILE`",
        )


def _read(file: str, kind: str | None) -> tuple[str, str, str]:
    """The text, its format, and the file's absolute path, which is empty for standard input."""
    from rolebundle.policy.policy_file import decode_policy, read_policy_file

    if file == "-":
        if kind is None:
            raise click.UsageError("give --format toml or json for a policy from standard input")
        return decode_policy(sys.stdin.buffer.read(), "standard input"), kind, ""
    path = Path(file)
    suffix = kind or path.suffix.removeprefix(".").lower()
    if suffix not in ("toml", "json"):
        raise click.UsageError(f"{file}: unknown suffix; give --format toml or json")
    return read_policy_file(path), suffix, str(path.absolute())


def _line(name: str, finding: LintProblem) -> str:
    place = f"{finding.place}: " if finding.place else ""
    return f"{name}: {finding.level}: {place}{finding.message} [{finding.code}]"
