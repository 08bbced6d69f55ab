"""`rolebundle doctor`: what is wrong with a corpus and its surroundings, and what to do."""

from __future__ import annotations

import shlex

import click

from rolebundle.contracts.doctor import DoctorReport, RepairReport
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_json, writable
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import corpus_path
from rolebundle.text.counts import counted

_LINE_CHARS = 300
_MAX_LISTED = 20


@click.command()
@db_option
@click.option("--repair", is_flag=True, help="Replace a damaged corpus by what can be saved of it.")
@json_option
def doctor(db: str | None, repair: bool, as_json: bool) -> None:
    """Check the corpus and the files beside it. Change nothing without --repair.

    One line for each check: ok, a warning or a problem, with what to do about it. The checks work
    on a private copy, so they need room for it in the folder for temporary files ($TMPDIR).

    Exit code 0 if there is no problem, also if there are warnings; 7 if the corpus or its audit is
    damaged.

    --repair writes a new corpus beside a damaged one and checks it before it takes its name. The
    damaged file is kept as NAME.damaged-DATE-TIME until you delete it. Damaged documents are left
    out; ingest their folders again. If the stored options of earlier ingests (--untrusted,
    --max-trust, --meta) are damaged, an ingest of a path is refused until you give them again. If
    the policy is damaged, every agent is denied until `rolebundle scopes set`.

    \b
    rolebundle doctor
    rolebundle doctor --repair
    rolebundle doctor --json --db team.db
    """
    from rolebundle.doctor import examine

    if repair:
        with admin_for(db) as admin:
            repaired = admin.repair()
        if as_json:
            print_json(repaired)
        else:
            click.echo(writable(_repair_text(repaired)))
        return
    report = examine(corpus_path(db))
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


def _repair_text(report: RepairReport) -> str:
    if not report.repaired:
        return f"{report.location}: nothing to repair"
    lines = [
        f"{report.location}: {counted(report.documents, 'document')} and "
        f"{counted(report.chunks, 'chunk')} saved",
        f"the damaged file is kept: {report.kept}",
    ]
    lines += [
        f"lost: {one_line(lost.document_id) or 'documents of'} ({one_line(lost.path) or '?'})"
        for lost in report.lost[:_MAX_LISTED]
    ]
    more = max(0, len(report.lost) - _MAX_LISTED) + report.unnamed
    if more:
        lines.append(f"lost: {more} more; --json lists those with a name")
    lines += [f"note: {note}" for note in report.notes]
    folders = " ".join(shlex.quote(root) for root in report.roots) or "PATH"
    lines.append(f"next: rolebundle ingest --reread {folders}, with the options of the first time")
    return "\n".join(lines)
