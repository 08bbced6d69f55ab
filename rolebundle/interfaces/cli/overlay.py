"""`rolebundle overlay … | init`: how roles retrieve, and a first manifest."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any

import click
from platformdirs import user_cache_path

from rolebundle.admin import Admin
from rolebundle.admin.indexes import embed
from rolebundle.authoring.drafting import Target, new_overlay
from rolebundle.authoring.drafting import init as write_drafts
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import LintProblem, OverlayLint, OverlayProblems
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.roles import (
    OverlayDetails,
    OverlayFile,
    OverlayList,
)
from rolebundle.contracts.terms import RANKED_LOWER
from rolebundle.contracts.upkeep import DraftFile, InitReport
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError, OverlayError, UsageError
from rolebundle.ingest.options import IngestOptions, IngestReport
from rolebundle.interfaces.cli.options import Call, non_empty_path, role_names, with_call
from rolebundle.interfaces.cli.output import finding_line, print_json, print_note
from rolebundle.interfaces.layout import Style, copyable, cut, on_one_line, terminal_width, wrapped
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import (
    excerpt_lines,
    place_line,
    query_terms,
    score_bar,
    title_line,
    with_place,
)
from rolebundle.policy.lint import corpus_facts, lint_error, lint_overlay
from rolebundle.policy.overlays import (
    ResolvedOverlay,
    is_shipped,
    list_overlays,
    load_file,
    load_role,
    locate,
    overlay_folders,
)
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.retrieval.passage_text import one_line
from rolebundle.storage.documents import document_kinds
from rolebundle.storage.file import corpus_path
from rolebundle.storage.opening import open_reader
from rolebundle.text.words import counted, first_of

_MAX_NAMES = 20


@click.group()
def overlay() -> None:
    """List, check and write overlays, which say how roles retrieve.

    An overlay is a file ROLE.json. The first folder that has it counts: each --overlay-dir, or else
    the folders of $ROLEBUNDLE_OVERLAYS; then the corpus's own folder, such as team.db.overlays
    beside team.db; then the overlays that come with rolebundle.

    \b
    rolebundle overlay list
    rolebundle overlay show security-reviewer
    rolebundle overlay lint my-overlays/release-manager.json
    """


@overlay.command("list")
@with_call("overlay_dirs", "as_json")
def list_command(call: Call) -> None:
    """List all overlays.

    A malformed overlay is listed with its error, and leads to exit code 3.

    \b
    rolebundle overlay list
    rolebundle overlay list --overlay-dir my-overlays --json
    """
    entries = list_overlays(call.folders)
    call.print(OverlayList(overlays=entries), _table(entries))
    broken = [entry.role_id for entry in entries if entry.problem]
    if broken:
        raise OverlayError(
            "overlay_malformed",
            f"{counted(len(broken), 'overlay')} cannot be loaded: {', '.join(broken)}",
            f"run `rolebundle overlay lint {broken[0]}`",
        )


@overlay.command("show")
@click.argument("name", metavar="ROLE|FILE")
@click.option(
    "--json", is_flag=True, expose_value=False, help="No effect: the output is always JSON."
)
@with_call("overlay_dirs")
def show_command(call: Call, name: str) -> None:
    """Show one overlay as JSON, with what it extends and with all defaults.

    \b
    rolebundle overlay show security-reviewer
    rolebundle overlay show ./release-manager.json
    """
    resolved = _resolved(name, call.folders)
    details = OverlayDetails(
        role_id=resolved.overlay.role_id,
        digest=resolved.digest,
        path=str(resolved.path),
        extends=[{"role_id": path.stem, "path": str(path)} for path in resolved.ancestors],
        overlay=resolved.overlay,
    )
    print_json(details)


@overlay.command("lint")
@click.argument("names", metavar="[ROLE|FILE]...", nargs=-1)
@with_call("overlay_dirs", "as_json")
def lint_command(call: Call, names: tuple[str, ...]) -> None:
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
    location, folders = call.path, call.folders
    # If --db names a missing file, opening it raises the error.
    against_corpus = call.db is not None or location.exists()
    linted: dict[str, list[LintProblem]] = {}
    with open_reader(location) if against_corpus else nullcontext() as corpus:
        facts = corpus_facts(document_kinds(corpus)) if corpus else None
        for name in names or [entry.path for entry in list_overlays(folders)]:
            try:
                path = _path(name, folders)
            except OverlayError as error:
                # The other names are checked all the same.
                message = f"{error.message}; {error.hint}"
                linted[name] = [lint_error("", error.code, message)]
                continue
            tried = None if not names and is_shipped(path) else corpus
            linted[str(path)] = lint_overlay(path, folders, tried, facts)
    report = OverlayLint(
        corpus=str(location) if against_corpus else None,
        names=facts.names if facts else None,
        overlays=[OverlayProblems(path=name, findings=found) for name, found in linted.items()],
    )
    call.print(report, _lint_lines(report))
    _summarize(report, location)


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
            on_one_line(entry.role_id),
            on_one_line(entry.label),
            f"extends {entry.extends}" if entry.extends else "",
            on_one_line(f"MALFORMED: {entry.problem}" if entry.problem else entry.mission),
        )
        for entry in entries
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False) if width)
        + row[3]
        for row in rows
    ]


def _lint_lines(report: OverlayLint) -> Iterator[str]:
    for overlay in report.overlays:
        yield from (finding_line(overlay.path, finding) for finding in overlay.findings)
    found = {finding.code for overlay in report.overlays for finding in overlay.findings}
    if report.names and "never_matches" in found:
        for key in ("sources", "document_types", "domains"):
            title = key.removeprefix("document_")
            names = first_of(report.names[key], _MAX_NAMES)
            yield on_one_line(f"this corpus has the {title} {names}")


def _summarize(report: OverlayLint, location: Path) -> None:
    counts = Counter(finding.level for overlay in report.overlays for finding in overlay.findings)
    print_note(
        f"{counted(len(report.overlays), 'overlay')} checked: {counted(counts['error'], 'error')}, "
        f"{counted(counts['warning'], 'warning')}"
    )
    if report.corpus is None:
        print_note(
            "rules were not checked against a corpus, because there is none at "
            f"{on_one_line(str(location))}; name one with --db"
        )
    broken = [
        Path(overlay.path).stem if _is_file(overlay.path) else overlay.path
        for overlay in report.overlays
        if any(finding.level == "error" for finding in overlay.findings)
    ]
    if broken:
        raise OverlayError(
            "overlay_lint_failed",
            f"{counted(len(broken), 'overlay')} with errors: {', '.join(broken)}",
            "correct the errors named above and lint again",
        )


@overlay.command("new")
@click.argument("role", metavar="ROLE")
@click.option("--from", "parent", default="", metavar="ROLE", help="Extend this role.")
@click.option(
    "--file", "output", metavar="FILE", type=non_empty_path, help="Write this one instead."
)
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@with_call("overlay_dirs", "as_json")
def new_command(call: Call, role: str, parent: str, output: Path | None, dry_run: bool) -> None:
    """Write a first overlay of ROLE, to the corpus's own folder FILE.overlays.

    It has no rules, so that answers are as without a role. Its notes propose words of the role's
    name, sources and types, each with the number of passages or documents that it would touch. With
    --from it inherits everything but the mission of another role. No file is ever overwritten.

    \b
    rolebundle overlay new release-manager
    rolebundle overlay new release-manager --from technical-writer
    rolebundle overlay new release-manager --file release-manager.json
    """
    target = Target(call.path, call.folders, call.db or "")
    report = new_overlay(role, target, parent=parent, output=output, dry_run=dry_run)
    lines = (*draft_lines(report.draft), *closing_lines(report.remarks, report.next))
    call.print(report, lines)


_MAX_LISTED = 8
_LABEL_WIDTH = 9
_LINE_CHARS = 1_000


@click.command()
@click.argument("folder", metavar="DIR", type=non_empty_path)
@click.option("--role", default="", metavar="NAME", help="Also write a neutral overlay of a role.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@with_call("as_json")
def init(call: Call, folder: Path, role: str, dry_run: bool) -> None:
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

    def announce(path: Path) -> None:
        name = one_line(str(path), _LINE_CHARS)
        print_note(f"outside of the folder, beside the corpus: will write {name}")

    target = Target(call.path, call.folders, call.db or "")
    report = write_drafts(folder, role, target, announce, dry_run=dry_run)
    call.print(report, _init_lines(report))


def _init_lines(report: InitReport) -> Iterator[str]:
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
    more = f", and {len(entries) - _MAX_LISTED} more" if entries[_MAX_LISTED:] else ""
    return ", ".join(entries[:_MAX_LISTED]) + more


TASK = "What should we worry about before release 3.0?"
ROLES = ("mossline-security-reviewer", "mossline-product-strategist", "mossline-incident-responder")
NOW = "2026-11-15T00:00:00Z"
_PASSAGES = 3
_SENTENCE_CHARS = 160


@overlay.command(short_help="Show what three roles get from a sample corpus")
@click.argument("task", default=TASK)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    shell_complete=role_names,
    help="Compare these roles instead. May be repeated.",
)
@click.option("--db", metavar="FILE", help="The demo's corpus file.  [default: cache folder]")
@with_call(corpus=False, request=RetrievalRequest, only=["lexical_only"])
def demo(call: Call, task: str, roles: tuple[str, ...], db: str | None) -> None:
    """Ingest the sample corpus and show what three roles retrieve for one task.

    \b
    rolebundle overlay demo
    rolebundle overlay demo "What do we know about offline sync?"
    """
    path = corpus_path(db) if db else _cached()
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        report = _ingest(Admin(engine.workspace), call.fields, is_cached=not db)
        print_note(
            f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')} in {path} "
            f"({counted(report.added, 'file')} added, {report.unchanged} unchanged)"
        )
        fields_of_all = {"task": task, "limit": _PASSAGES, "now": NOW, **call.fields}
        names = dict.fromkeys(roles or ROLES)
        bundles = [engine.retrieve(request_from({**fields_of_all, "role": name})) for name in names]
    width = terminal_width()
    lines = [call.style("heading", cut(one_line(task), width))]
    for bundle in bundles:
        lines += ["", *_answer(bundle, width, call.style)]
    click.echo("\n".join([*lines, "", _overlap(bundles)]), color=call.style.color)
    print_note("\nnext:")
    for command in _commands(bundles, path):
        print_note(f"  {program()} {command}")


def _answer(bundle: RetrievalBundle, width: int, style: Style) -> Iterator[str]:
    """What a role gets: place, title and a sentence of each passage, and what is kept from it."""
    yield style("heading", bundle.role_id)
    terms = query_terms(bundle)
    for chunk in bundle.selected:
        score = f"{chunk.rank or 0:>3}  {chunk.scores.final:.2f} {score_bar(chunk.scores.final)}"
        yield from with_place(score, place_line(chunk.citation, chunk.chunk_id), width, style)
        yield title_line(chunk, width, style)
        yield from excerpt_lines(chunk, terms, width, style, chars=_SENTENCE_CHARS)
    rejected = [
        f"{count} {code}"
        for code, count in bundle.rejected_summary.items()
        if code not in RANKED_LOWER
    ]
    about = f"trust {bundle.provenance.trust_posture} · rejected: {', '.join(rejected) or 'none'}"
    yield from (style("minor", line) for line in wrapped(about, width, "     "))


def _overlap(bundles: Sequence[RetrievalBundle]) -> str:
    found = Counter(chunk.chunk_id for bundle in bundles for chunk in bundle.selected)
    several = sum(count > 1 for count in found.values())
    return f"{counted(len(found), 'passage')}, {several} of them for more than one role"


def _commands(bundles: Sequence[RetrievalBundle], path: Path) -> list[str]:
    """Commands that continue from here; they work as they stand in a shell."""
    task = quote(bundles[0].query.task_text)
    db = f"--db {quote(str(path))}"
    as_role = f"--overlay-dir {quote(str(demo_overlays()))} --now {NOW[:10]}"
    first, last = bundles[0], bundles[-1]
    commands = [f"retrieve {task} --role {first.role_id} {db} {as_role}"]
    if first.selected:
        chunk = first.selected[0]
        commands += [
            f"why {quote(chunk.chunk_id)} {task} --role {last.role_id} {db} {as_role}",
            f"get {quote(chunk.citation.locator or chunk.chunk_id)} {db}",
        ]
    return commands


def program() -> str:
    """How to call this program again; an environment need not be active."""
    called = Path(sys.argv[0])
    on_path = shutil.which("rolebundle")
    if on_path and called.exists() and Path(on_path).samefile(called):
        return "rolebundle"
    if called.name == "rolebundle" and os.access(called, os.X_OK):
        return quote(str(called))
    return f"{quote(sys.executable)} -m rolebundle"


def _ingest(admin: Admin, fields: dict[str, Any], *, is_cached: bool) -> IngestReport:
    folders, options = [data_folder("sample_corpus")], IngestOptions(**fields)
    try:
        return admin.ingest(folders, options)
    except EmbedderError as error:
        if not is_cached or error.code != "model_mismatch":
            raise
    # The cached corpus is of an earlier version and has the vectors of another model.
    embed(admin.workspace, ProviderSpec("static"))
    return admin.ingest(folders, options)


def _cached() -> Path:
    # Each installation has a corpus of its own, of its own copy of the documents.
    installation = sha256(os.fsencode(data_folder("sample_corpus"))).hexdigest()[:8]
    return user_cache_path("rolebundle", appauthor=False) / f"demo-{installation}.db"
