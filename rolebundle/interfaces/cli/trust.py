"""`rolebundle policy trust PATH | list | revoke`: manifests that count by the owner's approval."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.contracts.ingest import ApprovedManifest, ApprovedManifests
from rolebundle.ingest.manifests import MANIFEST_NAME
from rolebundle.interfaces.cli.options import admin_for, db_option, group_with_default, json_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.storage.records.approvals import approvals


@click.group(cls=group_with_default("approve"))
def trust() -> None:
    """Approve a rolebundle.toml that needs an approval.

    A manifest of another user, or in a checkout (a folder with .git or the like) below the ingested
    folder, could give documents authority that you did not give. It counts only after you have
    approved it, and until its content changes. Read it first, and run `rolebundle ingest`
    afterwards.

    \b
    rolebundle policy trust projects/library/rolebundle.toml
    rolebundle policy trust list
    rolebundle policy trust revoke projects/library
    """


@trust.command("approve")
@click.argument("path", type=click.Path(path_type=Path))
@db_option
def approve_command(path: Path, db: str | None) -> None:
    """Approve a manifest as it is now. `rolebundle policy trust PATH` does the same.

    \b
    rolebundle policy trust approve projects/library
    """
    with admin_for(db) as admin:
        approval = admin.approvals.approve_manifest(path)
    click.echo(f"{approval.location}: approved until its content changes")


@trust.command("list")
@db_option
@json_option
def list_command(db: str | None, as_json: bool) -> None:
    """List the approved manifests, and the contracts that `rolebundle gate approve` approved.

    \b
    rolebundle policy trust list
    rolebundle policy trust list --json
    """
    with admin_for(db) as admin:
        stored = approvals(admin.workspace.corpus)
    approved = ApprovedManifests(manifests=[], contracts=[])
    for approval in stored:
        is_manifest = Path(approval.location).name == MANIFEST_NAME
        kind = approved.manifests if is_manifest else approved.contracts
        kind.append(ApprovedManifest(**approval._asdict()))
    lines = (
        f"{label}  {file.location}  {file.content_hash[:16]}  {file.approved_at}"
        for label, files in (("manifest", approved.manifests), ("contract", approved.contracts))
        for file in files
    )
    print_answer(approved, lines, as_json=as_json, empty="nothing was approved")


@trust.command("revoke")
@click.argument("path", type=click.Path(path_type=Path))
@db_option
def revoke_command(path: Path, db: str | None) -> None:
    """Withdraw the approval of a manifest, which may be gone.

    \b
    rolebundle policy trust revoke projects/library
    """
    with admin_for(db) as admin:
        location = admin.approvals.revoke_manifest(path)
    click.echo(f"{location}: no longer approved; the next ingest reads its documents again")
