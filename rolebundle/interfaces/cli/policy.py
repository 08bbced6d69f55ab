"""`rolebundle policy | replica …`: who may see what, who asked what, and replicas of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import get_args

import click

from rolebundle.admin import records
from rolebundle.contracts.base import writable
from rolebundle.contracts.overlay import PolicyLint
from rolebundle.contracts.policy import (
    AUDIT_MODES,
    QUERY_MODES,
    AuditMode,
    AuditRows,
    PolicyChange,
    PolicySummary,
    QueryMode,
)
from rolebundle.contracts.terms import Sensitivity
from rolebundle.errors import ConfigurationError, CorpusCorrupt, RolebundleError, UsageError
from rolebundle.interfaces.cli.options import (
    PATH,
    Call,
    Decorator,
    agent_option,
    as_name,
    duration,
    flag,
    with_call,
    with_json,
)
from rolebundle.interfaces.cli.output import field_lines, finding_counts, finding_line, print_note
from rolebundle.interfaces.parse import names_in
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.audit_check import verify_audit
from rolebundle.policy.lint import lint_active_policy, lint_policy, report_policy
from rolebundle.policy.overlays import list_overlays
from rolebundle.policy.policy_file import parse_policy, read_policy_file
from rolebundle.replication.folder import PublishedFolder
from rolebundle.replication.publish import PublishOptions
from rolebundle.replication.signatures import create_key, key_id, load_private_key, load_public_key
from rolebundle.retrieval.passage_text import one_line
from rolebundle.storage.audit import canonical
from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import load_manifest
from rolebundle.storage.records import load_stored_audit
from rolebundle.text.words import counted


@click.group()
def policy() -> None:
    """Set, show and check the policy: which agent may see what.

    The metadata of a document has a scope and a sensitivity. A policy file gives each agent its
    scopes, its access level and its deny patterns. If a policy is set, agents that it does not name
    see nothing, and `retrieve`, `get`, `ls`, `grep`, `why`, `compare` and the servers
    need an agent.

    \b
    rolebundle policy lint policy.toml
    rolebundle policy set policy.toml
    rolebundle retrieve "Plan release 3.0" --agent release-bot
    """


@policy.command("set")
@click.argument("file")
@with_call("overlay_dirs", "as_json")
def policy_set_command(call: Call, file: str) -> None:
    """Set a policy file as the policy of the corpus.

    The policy is copied into the corpus, and FILE must stay as it is. If it is missing, empty,
    malformed or changed later, every agent is denied until `policy set` is run again. A malformed
    FILE is refused. Its suffix says its format: .toml or .json.

    \b
    rolebundle policy set policy.toml
    """
    content, kind, location = _read(file)
    parsed = parse_policy(content, kind, file)
    with call.admin() as admin:
        moved = records.set_policy(admin.workspace, content, kind, location)
        roles = [entry.role_id for entry in list_overlays(call.folders)]
        findings = lint_policy(parsed, admin.workspace.corpus, roles)
    for finding in findings:
        print_note(finding_line(file, finding))
    call.print(PolicyChange(agents=sorted(parsed.agents), moved=moved, location=location))
    print_note("all other agents see nothing")


@policy.command("show")
@agent_option("Only show what this agent sees.")
@with_json
def policy_show_command(call: Call, agent: str | None) -> None:
    """Show the current policy, and how much of the corpus each agent sees.

    \b
    rolebundle policy show
    rolebundle policy show --agent release-bot --json
    """
    with open_reader(call.path) as corpus:
        summary = report_policy(corpus, agent)
        replica = load_manifest(corpus)
    origin = f"{replica.manifest.publisher}, with this replica" if replica else summary.location
    call.print(summary, _policy_lines(summary, origin))


def _policy_lines(policy: PolicySummary, origin: str) -> Iterator[str]:
    """The policy for a person, and where it is from."""
    if not policy.policy:
        yield "no policy was set: every agent sees every document"
    elif policy.doubt:
        yield f"every agent is denied: {policy.doubt}"
    else:
        yield f"policy of {policy.set_at or 'its publisher'} from {origin}"
    agents = [
        {
            "agent": entry.agent,
            **entry.model_dump(mode="json"),
            # Nothing would look like no scope and no role.
            "scopes": ", ".join(entry.scopes) or "NO scope",
            "roles": "any" if entry.roles is None else ", ".join(entry.roles) or "none",
        }
        for entry in policy.agents
    ]
    yield from field_lines({"documents": policy.documents, "agents": agents})


@policy.command("lint")
@click.argument("file", required=False)
@with_call("overlay_dirs", "as_json")
def lint_command(call: Call, file: str | None) -> None:
    """Check a policy for errors, and for rules that allow more than they seem to.

    Without FILE the current policy is checked. Roles are checked against the overlays. If there is
    a corpus, scopes and patterns are checked against its documents. Errors lead to exit code 3,
    warnings do not.

    \b
    rolebundle policy lint policy.toml
    rolebundle policy lint --db team.db
    """
    roles = [entry.role_id for entry in list_overlays(call.folders)]
    if file is None:
        with open_reader(call.path) as corpus:
            findings = lint_active_policy(corpus, roles)
    else:
        content, kind, _ = _read(file)
        parsed = parse_policy(content, kind, file)
        has_corpus = call.db is not None or call.path.exists()
        with open_reader(call.path) if has_corpus else nullcontext() as tried:
            findings = lint_policy(parsed, tried, roles)
    name = file or "current policy"
    call.print(PolicyLint(findings=findings), (finding_line(name, finding) for finding in findings))
    errors, counts = finding_counts(findings)
    print_note(counts)
    if errors:
        step = "correct it and run `rolebundle policy set FILE`"
        raise ConfigurationError("policy_lint_failed", f"{name}: {counted(errors, 'error')}", step)


def _read(file: str) -> tuple[str, str, str]:
    """The text, its format, and the file's absolute path."""
    path = Path(file)
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in ("toml", "json"):
        raise click.UsageError(f"{file}: unknown suffix; name the file .toml or .json")
    return read_policy_file(path), suffix, str(path.absolute())


_QUERY_CHARS = 80
_HASHES = {"bundle_digest", "previous", "hash"}
_DEFAULT_LIMIT = 20


_agent_option = agent_option(
    "Read as this agent: only its own rows, numbered from 1, without hashes."
)


@policy.group(short_help="Set, read and verify who asked what")
def audit() -> None:
    """Set, read and verify the audit: who asked what, and what was shown and changed.

    It is the file FILE.audit beside the corpus. Its settings hold for every interface. Rows are
    only appended, and each row has the hash of the row before it.

    \b
    rolebundle policy audit set required --query digest
    rolebundle policy audit list --limit 5
    rolebundle policy audit verify
    """


@audit.command("list")
@_agent_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Number of rows at most. The newest are listed.",
)
@with_json
def list_command(call: Call, agent: str | None, limit: int) -> None:
    """List the newest rows, the newest last.

    \b
    rolebundle policy audit list --limit 50
    rolebundle policy audit list --agent reviewer-bot
    """
    with AuditLog(call.path) as log:
        rows = list(log.rows(agent, limit=limit, newest=True))[::-1]
    shown = [
        {**row.model_dump(exclude=_HASHES), "query": one_line(row.query, _QUERY_CHARS)}
        for row in rows
    ]
    empty = "the audit has no matching rows"
    call.print(AuditRows(rows=rows), field_lines({"rows": shown}), empty=empty)


@audit.command("verify")
@click.option(
    "--expect", default="", metavar="SEQ:HASH", help="A head that an earlier `verify` printed."
)
@with_json
def verify_command(call: Call, expect: str) -> None:
    """Check that no row was changed, removed, moved or inserted. Exit code 7 if one was.

    If records are required, the audit must have the head that the corpus remembers. Prints the
    head, SEQ:HASH. A person who can write the file could also replace all of it. To
    detect that, keep the head where they cannot write, and give it with --expect.

    \b
    rolebundle policy audit verify
    rolebundle policy audit verify --expect "$(cat /elsewhere/head)"
    rolebundle policy audit verify --json
    """
    with AuditLog(call.path) as log:
        result = verify_audit(log.path, expect or _known_head(call.path))
    call.print(result, [result.head] if result.ok else [], exclude_none=True)
    if result.problem is not None:
        raise CorpusCorrupt(
            "audit_tampered",
            f"{log.path}: {one_line(result.problem.message, 1000)} ({result.problem.code})",
            "keep the file as evidence and compare it with a backup or an export; to start a new "
            "audit, move the file away and run `rolebundle policy audit set`",
        )
    expectation = "as expected, and " if expect else ""
    print_note(f"{counted(result.rows, 'row')}, {expectation}none changed, removed or moved")


@audit.command("export")
@_agent_option
@with_call()
def export_command(call: Call, agent: str | None) -> None:
    """Print all rows as lines of JSON, the oldest first.

    The hash of a row is the SHA-256 of its line without the hash.

    \b
    rolebundle policy audit export > audit.jsonl
    rolebundle policy audit export --agent reviewer-bot
    """
    with AuditLog(call.path) as log:
        for row in log.rows(agent):
            click.echo(canonical(row.model_dump()))


@audit.command("set")
@click.argument("mode", type=click.Choice(AUDIT_MODES), required=False)
@click.option(
    "--query", type=click.Choice(QUERY_MODES), help="How the text of the task is recorded."
)
@with_json
def audit_set_command(call: Call, mode: AuditMode | None, query: QueryMode | None) -> None:
    """Set whether and how records are made, for every interface. The change itself is recorded.

    on: warn if no record can be made. required: then give no answer. Without MODE, the mode stays,
    and the settings are shown. The mode `required` is also stored in the corpus, with the
    audit's head. Then an audit that is missing or shortened gives no answers, until it is back or
    until `required` is set again, which records how many rows are lost.

    \b
    rolebundle policy audit set on
    rolebundle policy audit set required --query text
    rolebundle policy audit set off
    """
    # Without a corpus there is nothing to audit, and a later corpus would get this file.
    open_reader(call.path).close()
    call.print(call.owner(records.set_audit, mode, query), exclude_none=True)


def _known_head(path: Path) -> str:
    """The head that the corpus remembers of a required audit; empty if there is none."""
    if not path.exists():
        return ""
    with open_reader(path) as corpus:
        known = load_stored_audit(corpus)
    return f"{known.rows}:{known.hash}" if known.required and known.rows else ""


@click.group()
def replica() -> None:
    """Publish a replica of the corpus that holds only what one agent may see, and pull it.

    Whoever can read a file can read everything in it. So a replica has the documents, passages,
    indexes and vectors that its agent may see, the agent's own rule, and nothing else. It is
    signed by the publisher, and verified on the machine that pulls it.

    \b
    rolebundle replica keygen team.key
    rolebundle replica publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle replica pull /mnt/share/reviewer --key team.pub --db reviewer.db
    """


def _key_option(help_text: str) -> Decorator:
    return click.option(
        "--key", "key_file", required=True, metavar="FILE", type=PATH, help=help_text
    )


def _week_option(name: str, help_text: str) -> Decorator:
    return click.option(
        name, type=duration, default="7d", show_default=True, metavar="TIME", help=help_text
    )


@replica.command()
@click.argument("target")
@click.option("--agent", default="", metavar="ID", help="Publish what this agent may see.")
@click.option(
    "--level",
    type=click.Choice(get_args(Sensitivity)),
    help="Publish up to this sensitivity, for everyone.",
)
@click.option(
    "--scopes", default="", metavar="A,B", help="With --level: only these scopes. Default: every."
)
@_key_option("The private key that signs the replica; see `rolebundle replica keygen`.")
@click.option(
    "--name", default="", metavar="NAME", help="The publisher's name. Default: that of the key."
)
@_week_option(
    "--expires",
    "How long `replica pull` accepts the replica; publish again before. After that its answers "
    "have the warning REPLICA_STALE.",
)
@_week_option("--grace", "How long after that a pulled replica still answers.")
@with_json
def publish(
    call: Call,
    target: str,
    agent: str,
    level: Sensitivity | None,
    scopes: str,
    key_file: Path,
    name: str,
    expires: timedelta,
    grace: timedelta,
) -> None:
    """Publish a replica to TARGET, or replace the replica there.

    TARGET is a folder: a network share, a synchronized folder or a disk.

    Without --agent and --level, the audience is that of the last publish to TARGET.

    \b
    rolebundle replica publish /mnt/share/reviewer --agent reviewer --key team.key
    rolebundle replica publish /mnt/share/reviewer --key team.key
    rolebundle replica publish /mnt/share/all --level internal --key team.key
    """
    key = load_private_key(key_file)
    folder = PublishedFolder(target)
    chosen = names_in(scopes)
    if scopes and not chosen:
        raise UsageError("bad_scopes", "--scopes names no scope", "leave it out for every scope")
    options = PublishOptions(key, as_name(None, None, name or key_file.stem), expires, grace)
    report = call.owner(
        records.publish_replica, folder, options, agent=agent, scopes=chosen, level=level
    )
    call.print(report)
    if call.as_json:
        return
    if not report.manifest.documents:
        warning = "warning: it has no documents; check the scopes and the level"
        print_note(f"{warning} (`rolebundle status`, `rolebundle policy show`)")
    if report.former_key_id not in ("", report.key_id):
        print_note("warning: it has another key, whose public key its readers need")


@replica.command()
@click.argument("file", type=PATH)
def keygen(file: Path) -> None:
    """Create the private key FILE and its public key FILE.pub.

    Keep FILE where only the publisher can read it. Give FILE.pub to everyone who pulls.

    \b
    rolebundle replica keygen team.key
    """
    public = create_key(file)
    click.echo(writable(f"{file}: private key; keep it secret"))
    click.echo(writable(f"{public}: public key {key_id(load_public_key(public))}; for pulling"))


@replica.command()
@click.argument("target")
@flag("--yes", "Also if replicas from there may still answer.")
@with_call()
def forget(call: Call, target: str, yes: bool) -> None:
    """Forget TARGET, to which you do not publish any more.

    The files there are not changed: delete them with the tools of the store. Purges and `status` no
    longer name TARGET, and no purge reaches replicas that were pulled from there.

    \b
    rolebundle replica forget /mnt/share/reviewer
    """
    with suppress(RolebundleError):
        target = PublishedFolder(target).target
    call.owner(records.forget_target, target, confirmed=yes)
    click.echo(writable(f"{target}: forgotten; the files there were not changed"))


@replica.command()
@click.argument("source")
@_key_option("The publisher's public key.")
@with_json
def pull(call: Call, source: str, key_file: Path) -> None:
    """Fetch the replica that was published at SOURCE, and replace the local one.

    SOURCE is the folder that the publisher named as TARGET, or a copy of it. The replica is
    verified first: its signature, its rows, and that it is not older than the local one. If it is
    refused, the local one stays in use. Running servers use the new one from their next request on.

    \b
    rolebundle replica pull /mnt/share/reviewer --key team.pub --db reviewer.db
    """
    folder, key = PublishedFolder(source), load_public_key(key_file)
    call.print(call.owner(records.pull_replica, folder, key))
