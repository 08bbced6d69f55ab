"""`rolebundle overlay list | show | explain | lint`: the overlays, and their errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from rolebundle.contracts.lint import LintProblem, OverlayLint, OverlayProblems, RuleNames
from rolebundle.contracts.roles import (
    ExplainedValue,
    ExtendedOverlay,
    OverlayDetails,
    OverlayExplanation,
    OverlayFile,
    OverlayList,
)
from rolebundle.errors import OverlayError, UsageError
from rolebundle.interfaces.cli.lazy_group import LazyGroup
from rolebundle.interfaces.cli.options import db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_json
from rolebundle.interfaces.cli.overlay_new import new_command
from rolebundle.interfaces.cli.overlay_try import try_command
from rolebundle.policy.lint import corpus_facts, lint_error, lint_overlay
from rolebundle.policy.overlays import (
    ResolvedOverlay,
    explained_values,
    is_shipped,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
)
from rolebundle.storage.content.documents import document_kinds
from rolebundle.storage.location import corpus_path
from rolebundle.storage.opening import open_reader
from rolebundle.text.counts import counted, first_of

_MAX_NAMES = 20


@click.group(
    cls=LazyGroup, sections={"Commands": {"demo": "Show what three roles get from a sample corpus"}}
)
def overlay() -> None:
    """List, check, try and write overlays, which say how roles retrieve.

    An overlay is a file ROLE.json. The first folder that has it counts: each --overlay-dir, or else
    the folders of $ROLEBUNDLE_OVERLAYS; then the corpus's own folder, such as team.db.overlays
    beside team.db; then the overlays that come with rolebundle.

    \b
    rolebundle overlay list
    rolebundle overlay show security-reviewer
    rolebundle overlay explain security-reviewer
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
        print_json(OverlayList(overlays=entries), indent=2)
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
@click.option(
    "--json", is_flag=True, expose_value=False, help="No effect: the output is always JSON."
)
def show_command(name: str, overlay_dirs: tuple[Path, ...], db: str | None) -> None:
    """Show one overlay as JSON, with what it extends and with all defaults.

    \b
    rolebundle overlay show security-reviewer
    rolebundle overlay show ./release-manager.json
    """
    folders = overlay_folders(overlay_dirs, corpus_path(db))
    resolved = _resolved(name, folders)
    details = OverlayDetails(
        role_id=resolved.overlay.role_id,
        digest=resolved.digest,
        path=str(resolved.path),
        extends=_extended(resolved),
        rescaled=[*resolved.rescaled],
        overlay=resolved.overlay,
    )
    print_json(details, indent=2)


@overlay.command("explain")
@click.argument("name", metavar="ROLE|FILE")
@overlay_dir_option
@db_option
@json_option
def explain_command(
    name: str, overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool
) -> None:
    """Show each value of one overlay with its origin: a file, or the default.

    Weights that were computed because the file gives only some are marked as rescaled.

    \b
    rolebundle overlay explain security-reviewer
    rolebundle overlay explain ./release-manager.json --json
    """
    folders = overlay_folders(overlay_dirs, corpus_path(db))
    resolved = _resolved(name, folders)
    values = explained_values(resolved)
    if as_json:
        explanation = OverlayExplanation(
            role_id=resolved.overlay.role_id,
            digest=resolved.digest,
            path=str(resolved.path),
            extends=_extended(resolved),
            values=values,
        )
        print_json(explanation, indent=2)
        return
    _print_lines(
        _plain(line)
        for line in (
            f"{resolved.path} (digest {resolved.digest})",
            *(f"extends {ancestor}" for ancestor in resolved.ancestors),
        )
    )
    _print_lines(line for value in values for line in _explained_lines(value))


@overlay.command("lint")
@click.argument("names", metavar="[ROLE|FILE]...", nargs=-1)
@overlay_dir_option
@db_option
@json_option
def lint_command(
    names: tuple[str, ...], overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool
) -> None:
    """Check overlays for errors.

    Without a name all overlays are checked. If there is a corpus, rules and vocabulary that match
    nothing in it are reported, too. For an overlay that comes with rolebundle this is done only if
    you name it. Errors lead to exit code 3, warnings do not.

    \b
    rolebundle overlay lint
    rolebundle overlay lint security-reviewer ./release-manager.json --db team.db
    """
    if not all(map(str.strip, names)):
        raise UsageError(
            "name_empty", "a name is empty", "name a role or a file, or nothing to check all"
        )
    location = corpus_path(db)
    folders = overlay_folders(overlay_dirs, location)
    # If --db names a missing file, opening it raises the error.
    against_corpus = db is not None or location.exists()
    with open_reader(location) if against_corpus else nullcontext() as corpus:
        facts = corpus_facts(document_kinds(corpus)) if corpus else None
        findings: dict[str, list[LintProblem]] = {}
        for name in names or [entry.path for entry in list_overlays(folders)]:
            try:
                path = _path(name, folders)
            except OverlayError as error:
                # The other names are checked all the same.
                message = f"{error.message}; {error.hint}"
                findings[name] = [lint_error("", error.code, message)]
                continue
            tried = None if not names and is_shipped(path) else corpus
            findings[str(path)] = lint_overlay(path, folders, tried, facts)
    known = facts.names if facts else None
    if as_json:
        print_json(_report(findings, location if against_corpus else None, known), indent=2)
    else:
        _print_lines(
            _plain(
                f"{path}: {finding.level}: {finding.place}{': ' if finding.place else ''}"
                f"{finding.message} [{finding.code}]"
            )
            for path, path_findings in findings.items()
            for finding in path_findings
        )
        if known and any(f.code == "never_matches" for listed in findings.values() for f in listed):
            _print_lines(_names(known))
    _summarize(findings, location, against_corpus)


def _is_file(name: str) -> bool:
    # A role id has no path separator and no suffix.
    return name.endswith(".json") or Path(name).name != name


def _resolved(name: str, folders: Sequence[Path]) -> ResolvedOverlay:
    return load_file(Path(name), folders) if _is_file(name) else load_role(name, folders)


def _path(name: str, folders: Sequence[Path]) -> Path:
    if _is_file(name):
        return Path(name)
    # If there is no such role, loading it raises the error that names the nearest role.
    return locate(name, folders) or load_role(name, folders).path


def _table(entries: Sequence[OverlayFile]) -> list[str]:
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


def _extended(resolved: ResolvedOverlay) -> list[ExtendedOverlay]:
    return [
        ExtendedOverlay(role_id=ancestor.stem, path=str(ancestor))
        for ancestor in resolved.ancestors
    ]


def _explained_lines(value: ExplainedValue) -> Iterator[str]:
    origin = Path(value.path).name if value.path else "default"
    if value.origin == "rescaled":
        origin = f"rescaled, because {origin} gives other weights"
    text = json.dumps(value.value, ensure_ascii=False)
    yield f"  {_plain(value.place)}: {_plain(text)} ({_plain(origin)})"
    for place, note in value.notes.items():
        yield f"    note on {_plain(place)}: {_plain(note)}"


def _names(names: RuleNames) -> Iterator[str]:
    for title, known in (
        ("sources", names.sources),
        ("types", names.document_types),
        ("domains", names.domains),
    ):
        yield _plain(f"this corpus has the {title} {first_of(known, _MAX_NAMES)}")


def _report(
    findings: dict[str, list[LintProblem]], corpus: Path | None, names: RuleNames | None
) -> OverlayLint:
    return OverlayLint(
        corpus=None if corpus is None else str(corpus),
        names=names,
        overlays=[OverlayProblems(path=path, findings=listed) for path, listed in findings.items()],
    )


def _summarize(findings: dict[str, list[LintProblem]], corpus: Path, against_corpus: bool) -> None:
    levels = [finding.level for path_findings in findings.values() for finding in path_findings]
    errors, warnings, notes = (levels.count(level) for level in ("error", "warning", "note"))
    click.echo(
        f"{counted(len(findings), 'overlay')} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}" + (f", {counted(notes, 'note')}" if notes else ""),
        err=True,
    )
    if not against_corpus:
        click.echo(
            f"rules were not checked against a corpus, because there is none at "
            f"{_plain(str(corpus))}; name one with --db",
            err=True,
        )
    if errors:
        broken = [
            Path(name).stem if _is_file(name) else name
            for name, listed in findings.items()
            if _has_error(listed)
        ]
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


overlay.add_command(new_command)
overlay.add_command(try_command)
