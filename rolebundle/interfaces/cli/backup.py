"""`rolebundle corpus backup`: a verified copy of the corpus and its audit."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.admin.backups import create_backup, rotate_backups
from rolebundle.contracts.base import writable
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.policy.overlays import overlay_folders
from rolebundle.text.counts import counted


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@db_option
@click.option(
    "--rotate",
    "--backups",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Back up into this folder, and keep one backup of each of 7 days and of each of 4 weeks.",
)
@overlay_dir_option
@json_option
def backup(
    file: Path | None,
    db: str | None,
    folder: Path | None,
    overlay_dirs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Copy the corpus with its policy and its audit, while other processes may write.

    The backup is FILE, FILE.audit if there is an audit, and FILE.manifest.json with their hashes
    and the digests of the overlays. FILE gets its name after a full check. An existing file is not
    replaced. Documents that a purge erases later stay in the backup.

    \b
    rolebundle corpus backup /media/disk/team.db
    rolebundle corpus backup --rotate ~/backups
    """
    with admin_for(db) as admin:
        folders = overlay_folders(overlay_dirs, admin.workspace.path)
        if file is not None and folder is None:
            report = create_backup(admin.workspace, file, folders)
        elif folder is not None and file is None:
            report = rotate_backups(admin.workspace, folder, folders)
        else:
            raise click.UsageError("name the backup's FILE, or give --rotate DIR")
    manifest = report.manifest
    lines = [
        f"{report.location}: {counted(manifest.documents, 'document')}, "
        f"{counted(manifest.chunks, 'chunk')}, generation {manifest.generation}; checked",
        *(f"removed: {removed}" for removed in report.removed),
    ]
    print_answer(report, lines, as_json=as_json)
    for warning in report.warnings:
        click.echo(writable(f"warning: {warning}"), err=True)
