"""`rolebundle corpus doctor`: what is wrong with a corpus and its surroundings, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from rolebundle.contracts.doctor import DoctorReport, RepairReport
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_answer
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
    the policy is damaged, every agent is denied until `rolebundle policy set`.

    \b
    rolebundle corpus doctor
    rolebundle corpus doctor --repair
    rolebundle corpus doctor --json --db team.db
    """
    from rolebundle.doctor import examine

    if repair:
        with admin_for(db) as admin:
            repaired = admin.repair()
        print_answer(repaired, _repair_lines(repaired), as_json=as_json)
        return
    report = examine(corpus_path(db))
    print_answer(report, _lines(report), as_json=as_json)
    if not report.sound:
        raise CorpusCorrupt(
            "check_failed",
            f"{report.location}: problems were found",
            "follow the remedies above; `rolebundle corpus doctor --repair` repairs the corpus",
        )


def _lines(report: DoctorReport) -> Iterator[str]:
    width = max(len(check.name) for check in report.checks)
    yield report.location
    for check in report.checks:
        line = f"{check.state:<8} {check.name:<{width}}  {one_line(check.message, _LINE_CHARS)}"
        yield line + (f"  → {one_line(check.remedy, _LINE_CHARS)}" if check.remedy else "")


def _repair_lines(report: RepairReport) -> Iterator[str]:
    if not report.repaired:
        yield f"{report.location}: nothing to repair"
        return
    yield (
        f"{report.location}: {counted(report.documents, 'document')} and "
        f"{counted(report.chunks, 'chunk')} saved"
    )
    yield f"the damaged file is kept: {report.kept}"
    for lost in report.lost[:_MAX_LISTED]:
        name, path = (one_line(lost[key]) for key in ("document_id", "path"))
        yield f"lost: {name or 'documents of'} ({path or '?'})"
    if report.lost[_MAX_LISTED:]:
        yield f"lost: {len(report.lost) - _MAX_LISTED} more; see --json"
    yield from (f"note: {note}" for note in report.notes)
    folders = " ".join(shlex.quote(root) for root in report.roots) or "PATH"
    yield f"next: rolebundle ingest --reread {folders}, with the options of the first time"
