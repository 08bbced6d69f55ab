"""`rolebundle overlay … | init | eval`: how roles retrieve, how well, and a first manifest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from time import perf_counter

import click
from click.exceptions import Exit
from platformdirs import user_cache_path

from rolebundle.admin import Admin
from rolebundle.authoring import Target, new_overlay
from rolebundle.authoring import init as write_drafts
from rolebundle.contracts.evaluation import EvalReport, GoldenSet
from rolebundle.contracts.overlay import (
    LintProblem,
    OverlayDetails,
    OverlayFile,
    OverlayLint,
    OverlayList,
    OverlayProblems,
)
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.upkeep import DraftFile, InitReport
from rolebundle.embedding.static import MODEL
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError, OverlayError
from rolebundle.evaluation import evaluation, questions
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces import render
from rolebundle.interfaces.cli.options import (
    PATH,
    Call,
    flag,
    non_empty_path,
    setting,
    url_setting,
    with_call,
    with_json,
    workspace_for,
)
from rolebundle.interfaces.cli.output import (
    field_lines,
    finding_counts,
    finding_line,
    print_json,
    print_note,
    progress_bar,
    with_folders,
)
from rolebundle.interfaces.layout import copyable, on_one_line, terminal_width
from rolebundle.interfaces.parse import request_from
from rolebundle.policy import overlays
from rolebundle.policy.lint import lint_error, lint_overlay
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.storage.documents import document_kinds
from rolebundle.storage.file import corpus_path
from rolebundle.storage.opening import open_reader
from rolebundle.text.words import counted


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
    entries = overlays.list_overlays(call.folders)
    width = max((len(entry.role_id) for entry in entries), default=0)
    lines = (
        f"{on_one_line(entry.role_id):<{width}}  {on_one_line(_summary(entry))}"
        for entry in entries
    )
    call.print(OverlayList(overlays=entries), lines)
    broken = [entry.role_id for entry in entries if entry.problem]
    if broken:
        problem = f"{counted(len(broken), 'overlay')} cannot be loaded: {', '.join(broken)}"
        step = f"run `rolebundle overlay lint {broken[0]}`"
        raise OverlayError("overlay_malformed", problem, step)


@overlay.command("show")
@click.argument("name", metavar="ROLE|FILE")
@with_call("overlay_dirs", "as_json")
def show_command(call: Call, name: str) -> None:
    """Show one overlay with what it extends and with all defaults, always as JSON.

    \b
    rolebundle overlay show security-reviewer
    rolebundle overlay show ./release-manager.json
    """
    if _is_file(name):
        resolved = overlays.load_file(Path(name), call.folders)
    else:
        resolved = overlays.load_role(name, call.folders)
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
    call.read_folders()
    location, folders = call.path, call.folders
    # If --db names a missing file, opening it raises the error.
    against_corpus = call.db is not None or location.exists()
    linted: dict[str, list[LintProblem]] = {}
    with open_reader(location) if against_corpus else nullcontext() as corpus:
        kinds = document_kinds(corpus) if corpus else None
        for name in names or [entry.path for entry in overlays.list_overlays(folders)]:
            try:
                path = _path(name, folders)
            except OverlayError as error:
                # The other names are checked all the same.
                linted[name] = [lint_error("", error.code, f"{error.message}; {error.hint}")]
                continue
            tried = None if not names and overlays.is_shipped(path) else corpus
            linted[str(path)] = lint_overlay(path, folders, tried, kinds)
    report = OverlayLint(
        corpus=str(location) if against_corpus else None,
        overlays=[OverlayProblems(path=name, findings=found) for name, found in linted.items()],
    )
    lines = (finding_line(file.path, found) for file in report.overlays for found in file.findings)
    call.print(report, lines)
    errors, counts = finding_counts(found for file in report.overlays for found in file.findings)
    print_note(f"{counted(len(report.overlays), 'overlay')} checked: {counts}")
    if report.corpus is None:
        print_note(
            "rules were not checked against a corpus, because there is none at "
            f"{on_one_line(str(location))}; name one with --db"
        )
    if errors:
        step = "correct the errors named above and lint again"
        raise OverlayError("overlay_lint_failed", f"{counted(errors, 'error')} in overlays", step)


def _is_file(name: str) -> bool:
    # A role id has no path separator and no suffix.
    return name.endswith(".json") or Path(name).name != name


def _path(name: str, folders: Sequence[Path]) -> Path:
    if _is_file(name):
        return Path(name)
    # If there is no such role, loading it raises the error that names the nearest role.
    return overlays.locate(name, folders) or overlays.load_role(name, folders).path


def _summary(entry: OverlayFile) -> str:
    if entry.problem:
        return f"MALFORMED: {entry.problem}"
    extends = f" (extends {entry.extends})" if entry.extends else ""
    return f"{entry.mission or entry.label}{extends}"


_dry_run_option = flag("--dry-run", "Print what would be written, and write nothing.")


@overlay.command("new")
@click.argument("role")
@click.option("--from", "parent", default="", metavar="ROLE", help="Extend this role.")
@_dry_run_option
@with_call("overlay_dirs", "as_json")
def new_command(call: Call, role: str, parent: str, dry_run: bool) -> None:
    """Write a first overlay of ROLE, to the corpus's own folder FILE.overlays.

    It has no rules, so that answers are as without a role. Its notes propose sources and types,
    each with the number of documents that it would touch. With --from it inherits everything but
    the mission of another role. No file is ever overwritten.

    \b
    rolebundle overlay new release-manager
    rolebundle overlay new release-manager --from technical-writer
    """
    call.read_folders()
    target = Target(call.path, call.folders, call.place)
    report = new_overlay(role, target, parent=parent, dry_run=dry_run)
    call.print(report, (*draft_lines(report.draft), *closing_lines(report.remarks, report.next)))


@click.command()
@click.argument("folder", metavar="DIR", type=non_empty_path)
@click.option("--role", default="", metavar="NAME", help="Also write a neutral overlay of a role.")
@_dry_run_option
@with_json
def init(call: Call, folder: Path, role: str, dry_run: bool) -> None:
    """Write a commented DIR/rolebundle.toml that says what the documents of a folder are.

    It has a source for each top folder, and a document type where the name of a folder makes it
    plain. No rule raises trust.

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
        name = on_one_line(str(path))
        print_note(f"outside of the folder, beside the corpus: will write {name}")

    target = Target(call.path, call.folders, call.place)
    report = write_drafts(folder, role, target, announce, dry_run=dry_run)
    call.print(report, _init_lines(report))


def _init_lines(report: InitReport) -> Iterator[str]:
    yield from field_lines(report.model_dump(exclude={"drafts", "remarks", "next"}))
    for draft in report.drafts:
        yield from draft_lines(draft)
    yield from closing_lines(report.remarks, report.next)


def draft_lines(draft: DraftFile) -> Iterator[str]:
    """What became of a file; its text if it was only planned."""
    yield f"{draft.state}: {on_one_line(draft.path)}"
    if draft.state == "planned":
        yield f"\n{draft.content}"


def closing_lines(remarks: list[str], commands: list[str]) -> Iterator[str]:
    """Remarks, and the next commands as they can be copied."""
    for remark in remarks:
        yield f"note: {with_folders(on_one_line(remark))}"
    for number, command in enumerate(commands):
        yield f"{'next:' if not number else '':<6}{copyable(command)}"


TASK = "What should we worry about before release 3.0?"
ROLES = ("mossline-security-reviewer", "mossline-product-strategist", "mossline-incident-responder")
NOW = "2026-11-15"
_PASSAGES = 3


@overlay.command(short_help="Show what three roles get from a sample corpus")
@click.argument("task", default=TASK)
def demo(task: str) -> None:
    """Ingest the sample corpus and show what three roles retrieve for one task.

    \b
    rolebundle overlay demo
    rolebundle overlay demo "What do we know about offline sync?"
    """
    sample = data_folder("sample_corpus")
    # Each installation has a corpus of its own, of its own copy of the documents.
    installation = sha256(os.fsencode(sample)).hexdigest()[:8]
    path = user_cache_path("rolebundle", appauthor=False) / f"demo-{MODEL}-{installation}.db"
    with Engine(path, overlays.overlay_folders((demo_overlays(),))) as engine:
        report = Admin(engine.workspace).ingest([sample])
        print_note(
            f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')} in {path} "
            f"({counted(report.added, 'file')} added, {report.unchanged} unchanged)"
        )
        fields = {"task": task, "limit": _PASSAGES, "now": NOW}
        bundles = [engine.retrieve(request_from({**fields, "role": role})) for role in ROLES]
    style = Call().style
    for bundle in bundles:
        click.echo(f"{render.text(bundle, terminal_width(), style)}\n", color=style.color)
    # They work as they stand in a shell; an environment need not be active.
    called, python = quote(sys.argv[0]), quote(sys.executable)
    program = called if Path(sys.argv[0]).name == "rolebundle" else f"{python} -m rolebundle"
    options = f"--db {quote(str(path))} --overlay-dir {quote(str(demo_overlays()))} --now {NOW}"
    print_note(f"\nnext:\n  {program} retrieve {quote(task)} --role {ROLES[0]} {options}")
    for chunk in bundles[0].selected[:1]:
        name = quote(chunk.chunk_id)
        print_note(f"  {program} why {name} {quote(task)} --role {ROLES[-1]} {options}")


@click.command("eval")
@click.argument("path", required=False, type=PATH)
@click.option("--role", metavar="ROLE", help="Use this role's overlay for every question.")
@click.option(
    "--fail-under",
    multiple=True,
    metavar="METRIC=VALUE",
    help="Exit with code 1 if a threshold is not met. May be repeated.",
)
@with_call(
    "overlay_dirs", "as_json", request=RetrievalRequest, only=["lexical_only", "rerank", "now"]
)
def eval(call: Call, path: Path | None, role: str | None, fail_under: tuple[str, ...]) -> None:
    """Measure retrieval on PATH: a folder in the BEIR layout, or a golden set (TOML or JSON).

    Reports nDCG@10, recall, MRR and precision of the answers, leaks, latency and size.

    A collection is ingested into a new temporary corpus, or into --db if that file does not exist
    yet. A golden set is run on --db, or else on the documents that it names, or else on your
    corpus. With --role and no PATH, the golden set is the one that the role's overlay names.

    Exits with code 1 if a threshold of --fail-under or of the golden set is not met, or if a
    passage in must_not_return was selected. A metric must be at least the threshold; leak_rate,
    latency_p50, latency_p95 and seconds must be at most the threshold.

    \b
    rolebundle eval ../shared/eval/cranfield
    rolebundle eval golden.toml --db team.db --fail-under ndcg@10=0.8
    rolebundle eval --role release-manager --db team.db
    rolebundle eval golden.toml --db team.db --rerank rerank:bge-reranker-v2-m3
    """
    thresholds = evaluation.parse_thresholds(fail_under)
    call.read_folders()
    folders = call.folders
    if path is None and role is None:
        raise click.UsageError("name a PATH, or a --role whose overlay names a golden set")
    path = path or questions.golden_set_of_role(str(role), folders)
    golden = questions.load_collection(path) if path.is_dir() else questions.load_golden(path)
    request = request_from({"task": "that of each question", **call.fields})
    moment = (request.now or datetime.now(UTC)).replace(microsecond=0)
    lexical_only = request.lexical_only
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        db = str(call.path) if call.in_folders else call.db
        corpus, documents = _corpus(stack, golden, path, db)
        rerank, url = request.rerank or setting("RERANK"), url_setting("RERANK_URL")
        engine = Engine(workspace_for(corpus), folders, rerank=rerank, rerank_url=url)
        stack.enter_context(engine)
        took = _ingest(engine, documents, lexical_only, progress)
        report = evaluation.evaluate(
            engine, golden, role, moment, progress, lexical_only=lexical_only, ingest_seconds=took
        )
        report = evaluation.with_thresholds(report, golden.fail_under | thresholds)
    call.print(report, _report_lines(report), exclude_none=True)
    raise Exit(0 if report.passed else 1)


def _report_lines(report: EvalReport) -> Iterator[str]:
    values = report.model_dump(exclude={"version", "questions"})
    if report.governance:
        checks = values["governance"].pop("checks")
        values["not met"] = [check for check in checks if not check["held"]]
    return field_lines(values)


def _corpus(
    stack: ExitStack, golden: GoldenSet, path: Path, db: str | None
) -> tuple[Path, Path | None]:
    """The corpus file to use, and the documents to ingest into it first, if any."""
    documents = questions.corpus_folder(path, golden)
    if documents is not None and not documents.exists():
        problem = f"{path}: corpus: there is no {documents}"
        step = "name a folder of documents, relative to the golden set's folder, or give --db"
        raise ConfigurationError("golden_malformed", problem, step)
    # A corpus that exists already is only read.
    if documents is None or (db is not None and Path(db).exists()):
        return corpus_path(db), None
    if db is None:
        db = f"{stack.enter_context(TemporaryDirectory(prefix='rolebundle-eval-'))}/eval.db"
    return Path(db), documents


def _ingest(
    engine: Engine, documents: Path | None, lexical_only: bool, progress: evaluation.Progress
) -> float:
    """Ingest the documents, and return the seconds that this took."""
    if documents is None:
        return 0.0
    started = perf_counter()
    options = IngestOptions(workers=os.cpu_count() or 1, lexical_only=lexical_only)
    report = Admin(engine.workspace).ingest([documents], options, progress=progress)
    if report.embedding_problem:
        print_note(f"! not all chunks are embedded: {report.embedding_problem}")
    for refused in report.refused():
        print_note(f"refused [{refused.code}] {refused.message}")
    return perf_counter() - started
