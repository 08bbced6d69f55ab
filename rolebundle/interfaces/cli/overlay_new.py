"""`rolebundle overlay new`: a first overlay of a role, from what is there."""

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
    "--template",
    default="",
    metavar="NAME",
    help="Copy the values of this role, or `blank` for the keys alone.",
)
@click.option(
    "--examples",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A document of the role's work, or a folder of them; 5 to 50 in all. May be repeated.",
)
@click.option(
    "--questions",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Questions of the role, one a line.",
)
@click.option("--output", metavar="FILE", type=NonEmptyPath(), help="Write this file instead.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@overlay_dir_option
@db_option
@json_option
def new_command(
    role: str,
    parent: str,
    template: str,
    examples: tuple[Path, ...],
    questions: Path | None,
    output: Path | None,
    dry_run: bool,
    overlay_dirs: tuple[Path, ...],
    db: str | None,
    as_json: bool,
) -> None:
    """Write a first overlay of ROLE, to the corpus's own folder FILE.overlays.

    Without options it is derived from the role's name and the documents of the corpus. With
    --examples it has the terms that set these documents apart from the rest of the corpus; with
    --questions also those of the passages that answer them. Each value has its evidence. No file is
    ever overwritten.

    \b
    rolebundle overlay new release-manager
    rolebundle overlay new release-manager --from technical-writer
    rolebundle overlay new release-manager --examples releases/ --questions asked.txt
    rolebundle overlay new release-manager --template blank --output release-manager.json
    """
    from rolebundle.authoring.drafting import Target, new_overlay

    ways = [
        name
        for name, value in (
            ("--from", parent),
            ("--template", template),
            ("--examples or --questions", examples or questions),
        )
        if value
    ]
    if len(ways) > 1:
        raise click.UsageError(f"choose one of {' and '.join(ways)}")
    corpus = corpus_path(db)
    report = new_overlay(
        role,
        Target(corpus, overlay_folders(overlay_dirs, corpus), db or ""),
        parent=parent,
        template=template,
        examples=examples,
        questions=questions,
        output=output,
        dry_run=dry_run,
    )
    lines = (*draft_lines(report.draft), *closing_lines(report.remarks, report.next))
    print_answer(report, lines, as_json=as_json, indent=2)
