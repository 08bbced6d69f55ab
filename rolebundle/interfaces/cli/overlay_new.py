"""`rolebundle overlay new`: a first overlay of a role, which changes no answer yet."""

from __future__ import annotations

from pathlib import Path

import click

from rolebundle.interfaces.cli.init import closing_lines, draft_lines
from rolebundle.interfaces.cli.options import (
    NonEmptyPath,
    db_option,
    json_option,
    overlay_dir_option,
)
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.location import corpus_path


@click.command("new")
@click.argument("role", metavar="ROLE")
@click.option("--from", "parent", default="", metavar="ROLE", help="Extend this role.")
@click.option(
    "--file", "output", metavar="FILE", type=NonEmptyPath(), help="Write this one instead."
)
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@overlay_dir_option
@db_option
@json_option
def new_command(
    role: str,
    parent: str,
    output: Path | None,
    dry_run: bool,
    overlay_dirs: tuple[Path, ...],
    db: str | None,
    as_json: bool,
) -> None:
    """Write a first overlay of ROLE, to the corpus's own folder FILE.overlays.

    It has no rules, so that answers are as without a role. Its notes propose words of the role's
    name, sources and types, each with the number of passages or documents that it would touch. With
    --from it inherits everything but the mission of another role. No file is ever overwritten.

    \b
    rolebundle overlay new release-manager
    rolebundle overlay new release-manager --from technical-writer
    rolebundle overlay new release-manager --file release-manager.json
    """
    from rolebundle.authoring.drafting import Target, new_overlay

    corpus = corpus_path(db)
    target = Target(corpus, overlay_folders(overlay_dirs, corpus), db or "")
    report = new_overlay(role, target, parent=parent, output=output, dry_run=dry_run)
    lines = (*draft_lines(report.draft), *closing_lines(report.remarks, report.next))
    print_answer(report, lines, as_json=as_json, indent=2)
