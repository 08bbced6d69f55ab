"""`rolebundle doctor`: what is wrong with a corpus and its surroundings, and what to do."""

from __future__ import annotations

import click

from rolebundle.contracts.doctor import DoctorReport
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_json, writable
from rolebundle.interfaces.render import one_line

_LINE_CHARS = 300


@click.command()
@db_option
@json_option
def doctor(db: str | None, as_json: bool) -> None:
    """Check the corpus and what belongs to it; change nothing.

    One line for each check: ok, a warning or a problem, with what to do about it. The checks work
    on a private copy, so they need room for it in the folder for temporary files ($TMPDIR).

    Exit code 0 if there is no problem, also if there are warnings; 7 if the corpus or its audit is
    damaged.

    \b
    rolebundle doctor
    rolebundle doctor --json --db team.db
    """
    with admin_for(db) as admin:
        report = admin.examine()
    if as_json:
        print_json(report)
    else:
        click.echo(writable(_text(report)))
    if not report.sound:
        raise CorpusCorrupt(
            "check_failed",
            f"{report.location}: problems were found",
            "follow the remedies above; `rolebundle doctor --repair` writes a repaired corpus",
        )


def _text(report: DoctorReport) -> str:
    width = max(len(check.name) for check in report.checks)
    lines = [report.location]
    for check in report.checks:
        line = f"{check.state:<8} {check.name:<{width}}  {one_line(check.message, _LINE_CHARS)}"
        lines.append(line + (f"  → {one_line(check.remedy, _LINE_CHARS)}" if check.remedy else ""))
    return "\n".join(lines)
