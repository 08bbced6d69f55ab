"""`rolebundle corpus restore`: put a verified backup in the place of the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from rolebundle.admin.backups import restore_backup
from rolebundle.contracts.backup import RestoreReport
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.policy.overlays import overlay_folders
from rolebundle.text.counts import counted

_AUDIT = {
    "kept": "the present audit is kept",
    "restored": "the audit of the backup takes the place of the present one",
    "none": "no audit",
}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@db_option
@click.option("--yes", is_flag=True, help="Do it. Without this, only show what would be done.")
@overlay_dir_option
@json_option
def restore(
    file: Path, db: str | None, yes: bool, overlay_dirs: tuple[Path, ...], as_json: bool
) -> None:
    """Replace the corpus, which may be damaged or missing, by a backup.

    The backup is verified first. The former corpus is kept as NAME.replaced-DATE-TIME with its log,
    until you delete it. The present audit is kept if it continues that of the backup. While another
    process has the corpus open for writing, nothing is done (exit code 5).

    \b
    rolebundle corpus restore /media/disk/team.db
    rolebundle corpus restore /media/disk/team.db --yes
    """
    with admin_for(db) as admin:
        folders = overlay_folders(overlay_dirs, admin.workspace.path)
        report = restore_backup(admin.workspace, file, folders, confirmed=yes)
    print_answer(report, _lines(report), as_json=as_json)
    if report.purges_undone:
        click.echo(
            f"warning: {counted(report.purges_undone, 'purge')} came after this backup; it has the "
            "purged documents, so purge them again",
            err=True,
        )
    if not yes:
        raise UsageError(
            "not_confirmed",
            f"{report.location}: nothing was changed",
            "run the same command with --yes",
        )


def _lines(report: RestoreReport) -> Iterator[str]:
    verb = "restored" if report.done else "would restore"
    created = f" of {report.created_at}" if report.created_at else " (it has no manifest)"
    yield f"{verb}: {report.location} from {report.backup}{created}"
    yield (
        f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')}; "
        f"{_AUDIT[report.audit]}"
    )
    if report.replaced:
        yield f"the former corpus is kept: {report.replaced}"
    if report.overlays_changed:
        yield f"overlays that changed since: {', '.join(report.overlays_changed)}"
