"""`rolebundle overlay list | show | lint`: the overlays, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from rolebundle.contracts.reports import (
    ExtendedOverlay,
    LintProblem,
    OverlayDetails,
    OverlayFile,
    OverlayLint,
    OverlayList,
    OverlayProblems,
)
from rolebundle.errors import OverlayError
from rolebundle.interfaces.cli.options import db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import counted, print_json
from rolebundle.policy.overlay_lint import lint_overlay
from rolebundle.policy.overlays import (
    OverlayEntry,
    ResolvedOverlay,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
)
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader


@click.group()
def overlay() -> None:
    """The overlays: how each role retrieves.

    An overlay is a file ROLE.json. It is looked for in each --overlay-dir, or else in the folders
    of $ROLEBUNDLE_OVERLAYS; then in the corpus's own folder, such as team.db.overlays beside
    team.db; and then among the overlays that come with rolebundle.

    \b
    rolebundle overlay list
    rolebundle overlay show security-reviewer
    rolebundle overlay lint my-overlays/release-manager.json
    """


@overlay.command("list")
@overlay_dir_option
@db_option
@json_option
def list_command(overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool) -> None:
    """List all overlays.

    A malformed overlay is listed with its error, and leads to exit code 3.

    \b
    rolebundle overlay list
    rolebundle overlay list --overlay-dir my-overlays --json
    """
    entries = list_overlays(overlay_folders(overlay_dirs, corpus_path(db)))
    if as_json:
        files = [OverlayFile(**entry._asdict() | {"path": str(entry.path)}) for entry in entries]
        print_json(OverlayList(overlays=files), indent=2)
    else:
        _print_lines(_table(entries))
    broken = [entry.role_id for entry in entries if entry.problem]
    if broken:
        raise OverlayError(
            "overlay_malformed",
            f"{counted(len(broken), 'overlay')} cannot be loaded: {', '.join(broken)}",
            f"run `rolebundle overlay lint {broken[0]}`",
        )


@overlay.command("show")
@click.argument("name", metavar="ROLE|FILE")
@overlay_dir_option
@db_option
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON: it always does.")
def show_command(name: str, overlay_dirs: tuple[Path, ...], db: str | None) -> None:
    """Show one overlay as JSON, with what it extends and with all defaults.

    \b
    rolebundle overlay show security-reviewer
    rolebundle overlay show ./release-manager.json
    """
    folders = overlay_folders(overlay_dirs, corpus_path(db))
    resolved = load_file(Path(name), folders) if _is_file(name) else load_role(name, folders)
    print_json(_details(resolved), indent=2)


@overlay.command("lint")
@click.argument("names", metavar="[ROLE|FILE]...", nargs=-1)
@overlay_dir_option
@db_option
@json_option
def lint_command(
    names: tuple[str, ...], overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool
) -> None:
    """Check overlays for errors.

    Without a name all overlays are checked. If there is a corpus, the rules are also checked
    against it: which rules match nothing, and which preferred sources are forbidden. Errors lead to
    exit code 3, warnings do not.

    \b
    rolebundle overlay lint
    rolebundle overlay lint security-reviewer ./release-manager.json --db team.db
    """
    location = corpus_path(db)
    folders = overlay_folders(overlay_dirs, location)
    paths = [_path(name, folders) for name in names] or [
        entry.path for entry in list_overlays(folders)
    ]
    # If --db names a missing file, opening it raises the error.
    against_corpus = db is not None or location.exists()
    with open_reader(location) if against_corpus else nullcontext() as corpus:
        findings = {path: lint_overlay(path, folders, corpus) for path in paths}
    if as_json:
        print_json(_report(findings, location if against_corpus else None), indent=2)
    else:
        _print_lines(
            _plain(
                f"{path}: {finding.level}: {finding.place}{': ' if finding.place else ''}"
                f"{finding.message} [{finding.code}]"
            )
            for path, path_findings in findings.items()
            for finding in path_findings
        )
    _summarize(findings, location, against_corpus)


def _is_file(name: str) -> bool:
    # A role id has no path separator and no suffix.
    return name.endswith(".json") or Path(name).name != name


def _path(name: str, folders: Sequence[Path]) -> Path:
    if _is_file(name):
        return Path(name)
    # If there is no such role, loading it raises the error that names the nearest role.
    return locate(name, folders) or load_role(name, folders).path


def _table(entries: Sequence[OverlayEntry]) -> list[str]:
    if not entries:
        return []
    rows = [
        (
            _plain(entry.role_id),
            _plain(entry.label),
            f"extends {entry.extends}" if entry.extends else "",
            _plain(f"MALFORMED: {entry.problem}" if entry.problem else entry.mission),
        )
        for entry in entries
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join(
            [
                *(cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width),
                row[3],
            ]
        )
        for row in rows
    ]


def _details(resolved: ResolvedOverlay) -> OverlayDetails:
    return OverlayDetails(
        role_id=resolved.overlay.role_id,
        digest=resolved.digest,
        path=str(resolved.path),
        extends=[
            ExtendedOverlay(role_id=ancestor.stem, path=str(ancestor))
            for ancestor in resolved.ancestors
        ],
        overlay=resolved.overlay,
    )


def _report(findings: dict[Path, list[LintProblem]], corpus: Path | None) -> OverlayLint:
    return OverlayLint(
        corpus=None if corpus is None else str(corpus),
        overlays=[
            OverlayProblems(path=str(path), findings=listed) for path, listed in findings.items()
        ],
    )


def _summarize(findings: dict[Path, list[LintProblem]], corpus: Path, against_corpus: bool) -> None:
    levels = [finding.level for path_findings in findings.values() for finding in path_findings]
    errors, warnings = levels.count("error"), levels.count("warning")
    click.echo(
        f"{counted(len(findings), 'overlay')} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}",
        err=True,
    )
    if not against_corpus:
        click.echo(
            f"rules were not checked against a corpus, because there is none at "
            f"{_plain(str(corpus))}; name one with --db",
            err=True,
        )
    if errors:
        broken = [path.stem for path, listed in findings.items() if _has_error(listed)]
        raise OverlayError(
            "overlay_lint_failed",
            f"{counted(len(broken), 'overlay')} with errors: {', '.join(broken)}",
            "correct the errors named above and lint again",
        )


def _has_error(findings: Sequence[LintProblem]) -> bool:
    return any(finding.level == "error" for finding in findings)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _plain(text: str) -> str:
    """The text on one line, without characters that control a terminal or cannot be written."""
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))
