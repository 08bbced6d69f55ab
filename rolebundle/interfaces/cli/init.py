"""`rolebundle init`: list a folder, and write a first manifest and a first overlay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from rolebundle.contracts.authoring import DraftFile, InitReport
from rolebundle.interfaces.cli.options import NonEmptyPath, db_option, json_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.interfaces.layout import copyable
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import corpus_path
from rolebundle.text.counts import counted

_MAX_NAMES = 8
_LABEL_WIDTH = 9
_LINE_CHARS = 1_000


@click.command()
@click.argument("folder", metavar="DIR", type=NonEmptyPath())
@click.option("--role", default="", metavar="NAME", help="Also write a neutral overlay of a role.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@db_option
@json_option
def init(folder: Path, role: str, dry_run: bool, db: str | None, as_json: bool) -> None:
    """Write a commented DIR/rolebundle.toml that says what the documents of a folder are.

    It has a source for each top folder, and a document type where the format or the name of a
    folder makes it plain. No rule raises trust.

    With --role it also writes an overlay to the corpus's own folder FILE.overlays, and says so
    before. It has no rules, so that answers are as without a role; its notes propose sources and
    types with the number of their files. An existing manifest is then kept.

    No file is ever overwritten, and no document is changed.

    \b
    rolebundle init notes
    rolebundle init notes --role release-manager
    rolebundle init notes --role release-manager --dry-run --json
    """
    from rolebundle.authoring.drafting import Target
    from rolebundle.authoring.drafting import init as write_drafts

    def announce(path: Path) -> None:
        name = one_line(str(path), _LINE_CHARS)
        click.echo(f"outside of the folder, beside the corpus: will write {name}", err=True)

    corpus = corpus_path(db)
    target = Target(corpus, overlay_folders((), corpus), db or "")
    report = write_drafts(folder, role, target, announce, dry_run=dry_run)
    print_answer(report, _lines(report), as_json=as_json, indent=2)


def _lines(report: InitReport) -> Iterator[str]:
    left_out = sum(report.left_out.values())
    yield (
        f"{one_line(report.folder, _LINE_CHARS)}: {counted(report.files, 'file')}; "
        f"{left_out} left out"
    )
    for label, counts in (("sources", report.sources), ("types", report.document_types)):
        if counts:
            yield f"{label:<{_LABEL_WIDTH}}{_listed(counts)}"
    for draft in report.drafts:
        yield from draft_lines(draft)
    yield from closing_lines(report.remarks, report.next)


def draft_lines(draft: DraftFile) -> Iterator[str]:
    """What became of a file; its text if it was only planned."""
    if draft.state == "planned":
        yield f"\nwould write {one_line(draft.path, _LINE_CHARS)}:\n"
        yield draft.content
    else:
        verb = "wrote" if draft.state == "written" else "kept"
        yield f"{verb} {one_line(draft.path, _LINE_CHARS)}"


def closing_lines(remarks: list[str], commands: list[str]) -> Iterator[str]:
    """Remarks, and the next commands as they can be copied."""
    for remark in remarks:
        yield f"note: {one_line(remark, _LINE_CHARS)}"
    for number, command in enumerate(commands):
        yield f"{'next:' if not number else '':<6}{copyable(command)}"


def _listed(counts: Mapping[str, int]) -> str:
    entries = [f"{one_line(name)} {count}" for name, count in counts.items()]
    more = f", and {len(entries) - _MAX_NAMES} more" if entries[_MAX_NAMES:] else ""
    return ", ".join(entries[:_MAX_NAMES]) + more
