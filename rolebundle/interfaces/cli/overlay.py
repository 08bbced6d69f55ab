"""`rolebundle overlay list | show | lint`: which overlays there are, and whether they are right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from rolebundle.errors import OverlayError
from rolebundle.interfaces.cli.options import db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.words import counted
from rolebundle.policy.overlay_lint import LintFinding, lint_overlay
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

    Overlays are looked for as ROLE.json in each --overlay-dir, else in the folders that
    $ROLEBUNDLE_OVERLAYS names, and then among those that ship with rolebundle.

    \b
    rolebundle overlay list
    rolebundle overlay show security-reviewer
    rolebundle overlay lint my-overlays/release-manager.json
    """


@overlay.command("list")
@overlay_dir_option
@json_option
def list_command(overlay_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Every overlay that a role id finds.

    A malformed one is listed with what is wrong, and leads to exit code 3.

    \b
    rolebundle overlay list
    rolebundle overlay list --overlay-dir my-overlays --json
    """
    entries = list_overlays(overlay_folders(overlay_dirs))
    if as_json:
        _print_json({"overlays": [asdict(entry) | {"path": str(entry.path)} for entry in entries]})
    else:
        _print_lines(_table(entries))
    broken = [entry.role_id for entry in entries if entry.problem]
    if broken:
        raise OverlayError(
            "overlay_malformed",
            f"{counted(len(broken), 'overlay')} would not load: {', '.join(broken)}",
            f"run `rolebundle overlay lint {broken[0]}`",
        )


@overlay.command("show")
@click.argument("wanted", metavar="ROLE|FILE")
@overlay_dir_option
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON: it always does.")
def show_command(wanted: str, overlay_dirs: tuple[Path, ...]) -> None:
    """One overlay as it governs, as JSON.

    What it extends is merged in, and every default is filled in.

    \b
    rolebundle overlay show security-reviewer
    rolebundle overlay show ./release-manager.json
    """
    folders = overlay_folders(overlay_dirs)
    found = load_file(Path(wanted), folders) if _is_file(wanted) else load_role(wanted, folders)
    _print_json(_shown(found))


@overlay.command("lint")
@click.argument("wanted", metavar="[ROLE|FILE]...", nargs=-1)
@overlay_dir_option
@db_option
@json_option
def lint_command(
    wanted: tuple[str, ...], overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool
) -> None:
    """What is wrong with overlays, and where.

    All of them are checked where none is named. Where there is a corpus, the rules are checked
    against it, too: which match nothing, and which preferred sources are forbidden. Errors lead
    to exit code 3, warnings do not.

    \b
    rolebundle overlay lint
    rolebundle overlay lint security-reviewer ./release-manager.json --db team.db
    """
    folders = overlay_folders(overlay_dirs)
    paths = [_path(name, folders) for name in wanted] or [
        entry.path for entry in list_overlays(folders)
    ]
    location = corpus_path(db)
    # A file that was named and is not there is the caller's slip: opening it says so.
    against_corpus = db is not None or location.exists()
    with open_reader(location) if against_corpus else nullcontext() as corpus:
        findings = {path: lint_overlay(path, folders, corpus) for path in paths}
    if as_json:
        _print_json(_report(findings, location if against_corpus else None))
    else:
        _print_lines(
            _plain(
                f"{path}: {finding.level}: {finding.place}{': ' if finding.place else ''}"
                f"{finding.message} [{finding.code}]"
            )
            for path, found in findings.items()
            for finding in found
        )
    _summarize(findings, location, against_corpus)


def _is_file(wanted: str) -> bool:
    # A role id has no separator, and its file is not named with the suffix.
    return wanted.endswith(".json") or Path(wanted).name != wanted


def _path(wanted: str, folders: Sequence[Path]) -> Path:
    if _is_file(wanted):
        return Path(wanted)
    # Where there is none, loading it raises the error that names the nearest role.
    return locate(wanted, folders) or load_role(wanted, folders).path


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


def _shown(found: ResolvedOverlay) -> dict[str, object]:
    return {
        "role_id": found.overlay.role_id,
        "digest": found.digest,
        "path": str(found.path),
        "extends": [
            {"role_id": ancestor.stem, "path": str(ancestor)} for ancestor in found.ancestors
        ],
        "overlay": found.overlay.model_dump(),
    }


def _report(findings: dict[Path, list[LintFinding]], corpus: Path | None) -> dict[str, object]:
    return {
        "corpus": None if corpus is None else str(corpus),
        "overlays": [
            {"path": str(path), "findings": [asdict(finding) for finding in found]}
            for path, found in findings.items()
        ],
    }


def _summarize(findings: dict[Path, list[LintFinding]], corpus: Path, against_corpus: bool) -> None:
    levels = [finding.level for found in findings.values() for finding in found]
    errors, warnings = levels.count("error"), levels.count("warning")
    click.echo(
        f"{counted(len(findings), 'overlay')} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}",
        err=True,
    )
    if not against_corpus:
        click.echo(
            f"rules were not checked against a corpus: there is none at {_plain(str(corpus))}; "
            "name one with --db",
            err=True,
        )
    if errors:
        broken = [path.stem for path, found in findings.items() if _has_error(found)]
        raise OverlayError(
            "overlay_lint_failed",
            f"{counted(len(broken), 'overlay')} with errors: {', '.join(broken)}",
            "mend the places named above and lint again",
        )


def _has_error(findings: Sequence[LintFinding]) -> bool:
    return any(finding.level == "error" for finding in findings)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _print_json(value: object) -> None:
    # A file's name may hold bytes that are no characters. What replaces them is a JSON escape.
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _plain(text: str) -> str:
    """The text on one line, without what would steer a terminal or cannot be written."""
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))
