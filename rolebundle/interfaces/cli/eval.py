"""`rolebundle eval`: how good retrieval is, on a test collection or on one's own golden set."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rolebundle.admin import Admin
from rolebundle.contracts.evaluation import GoldenSet
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.evaluation.collection import Collection, load_collection
from rolebundle.evaluation.compare import compare, load_report, with_change_floors
from rolebundle.evaluation.evaluation import Plan, Progress, evaluate
from rolebundle.evaluation.floors import check_floors, parse_floors, with_floors
from rolebundle.evaluation.golden import corpus_folder, find_profile, load_golden
from rolebundle.evaluation.governance import Role
from rolebundle.evaluation.questions import References, from_collection, from_golden
from rolebundle.evaluation.report import comparison_tables, tables
from rolebundle.ingest.sync import IngestOptions
from rolebundle.interfaces.cli.options import (
    db_option,
    embed_options,
    json_option,
    overlay_dir_option,
    rerank_option,
    rerank_setting,
)
from rolebundle.policy.overlays import list_overlays, load_role, overlay_folders
from rolebundle.storage.location import corpus_path
from rolebundle.workspace import Workspace

if TYPE_CHECKING:
    from rich.table import Table

EXIT_NOT_HELD = 1
_WIDTH = 160


@click.command("eval")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@db_option
@click.option("--role", metavar="ROLE", help="Govern every question by this role's overlay.")
@click.option(
    "--roles", metavar="ROLE,ROLE[,…]", default="", help="How far these roles' answers differ."
)
@click.option("--harm", is_flag=True, help="What each overlay there is does to nDCG@10.")
@click.option("--lexical-only", is_flag=True, help="Words alone, without embeddings.")
@rerank_option
@click.option("--now", type=click.DateTime(), help="The time that ages are measured against.")
@click.option(
    "--compare",
    "compared",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="A.json B.json",
    help="Two reports of --json instead: what changed, and whether it is chance.",
)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="METRIC=VALUE",
    help="Leave with 1 unless it is reached. May be repeated.",
)
@click.option(
    "--html", metavar="FILE", type=click.Path(path_type=Path), help="Write a page with plots, too."
)
@overlay_dir_option
@embed_options
@json_option
@click.pass_context
def eval(  # the name of the command
    ctx: click.Context,
    path: Path | None,
    db: str | None,
    role: str | None,
    roles: str,
    harm: bool,
    lexical_only: bool,
    rerank: str | None,
    now: datetime | None,
    compared: tuple[Path, Path] | None,
    fail_under: tuple[str, ...],
    html: Path | None,
    overlay_dirs: tuple[Path, ...],
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Measure retrieval on PATH: a folder in the BEIR layout, or a golden set (TOML or JSON).

    Each lane alone, each fusion and the governed answer: nDCG@10, recall, MRR and precision, with a
    paired randomization test; whether governance holds; latency and size. A collection is ingested
    into a corpus of its own, or into --db where that file does not exist yet. A golden set is asked
    of --db, else of the documents that it names, else of your corpus. With --role and no PATH it is
    the golden set that the role's overlay names.

    Leaves with 1 where a --fail-under or a floor of the golden set was not held, or where anything
    of must_not_return was selected. For leak_rate, harm, overlap, latency_p50, latency_p95 and
    seconds the value is an upper bound. With --compare a bound on a measure is on its change.

    \b
    rolebundle eval ../shared/eval/cranfield --html cranfield.html
    rolebundle eval golden.toml --db team.db --fail-under ndcg@10=0.8
    rolebundle eval --role security-reviewer
    rolebundle eval golden.toml --db team.db --rerank ollama:nomic-embed-text
    rolebundle eval --compare before.json after.json --fail-under ndcg@10=-0.005
    """
    bounds = parse_floors(fail_under)
    if compared:
        if path or html:
            raise click.UsageError("--compare takes two reports, and neither PATH nor --html")
        before, after = (load_report(one) for one in compared)
        found = compare(before, after, (str(compared[0]), str(compared[1])))
        found = with_change_floors(found, after, bounds)
        _print(found, comparison_tables(found), as_json)
        ctx.exit(0 if found.passed else EXIT_NOT_HELD)
    folders = overlay_folders(overlay_dirs)
    path = path or _profile(role, folders)
    if html is not None and not html.parent.is_dir():
        raise UsageError("no_folder", f"--html {html}: there is no such folder", "make it first")
    what = load_collection(path) if path.is_dir() else load_golden(path)
    if isinstance(what, GoldenSet):
        bounds = check_floors(what.fail_under, f"{path}: fail_under") | bounds
    moment = (now.replace(tzinfo=now.tzinfo or UTC) if now else datetime.now(UTC)).replace(
        microsecond=0
    )
    role_names = list(dict.fromkeys(one.strip() for one in roles.split(",") if one.strip()))
    comparing = tuple(_role(one, folders) for one in role_names)
    if len(comparing) == 1:
        raise click.UsageError("--roles: name two different roles or more, with commas between")
    names = [entry.role_id for entry in list_overlays(folders)] if harm else []
    harming = tuple(_role(one, folders) for one in names)
    with ExitStack() as stack:
        progress = stack.enter_context(_progress())

        def opened(path: Path) -> Engine:
            workspace = Workspace(path, embed_url=embed_url, allow_host=allow_host)
            return Engine(workspace, folders, rerank=rerank or rerank_setting())

        engine, seconds = _engine(stack, what, path, db, opened, lexical_only, progress)
        plan = _plan(what, engine, role, moment, comparing, harming, lexical_only, seconds)
        report = with_floors(evaluate(engine, plan, progress), bounds)
    if html is not None:
        from rolebundle.evaluation.page import page

        html.write_text(page(report), encoding="utf-8")
    _print(report, tables(report), as_json)
    if html is not None:
        click.echo(f"page: {html}", err=True)
    ctx.exit(0 if report.passed else EXIT_NOT_HELD)


def _profile(role: str | None, folders: tuple[Path, ...]) -> Path:
    if role is None:
        raise click.UsageError("name a PATH, or a --role whose overlay names a golden set")
    name = load_role(role, folders).overlay.eval_profile.golden_set_id
    found = find_profile(name, folders) if name else None
    if found is None:
        raise ConfigurationError(
            "no_golden_set",
            f"{role}: eval_profile.golden_set_id: "
            + (f"there is no golden set {name!r}" if name else "the overlay names none"),
            "write golden/ID.toml beside the overlay, or name a PATH",
        )
    return found


def _role(role_id: str, folders: tuple[Path, ...]) -> Role:
    found = load_role(role_id, folders)
    return Role(role_id, found.overlay, found.digest)


def _engine(
    stack: ExitStack,
    what: Collection | GoldenSet,
    path: Path,
    db: str | None,
    opened: Callable[[Path], Engine],
    lexical_only: bool,
    progress: Progress,
) -> tuple[Engine, float]:
    """The corpus to ask, made where there is none, and the seconds that this took."""
    documents = what.corpus if isinstance(what, Collection) else corpus_folder(path, what)
    if documents is not None and not documents.exists():
        raise ConfigurationError(
            "golden_malformed",
            f"{path}: corpus: there is no {documents}",
            "name a folder of documents, from the golden set's folder on, or give --db",
        )
    # A corpus that is there is somebody's, and is only read.
    if documents is None or (db is not None and Path(db).exists()):
        return stack.enter_context(opened(corpus_path(db))), 0.0
    if db is None:
        from tempfile import TemporaryDirectory

        db = f"{stack.enter_context(TemporaryDirectory(prefix='rolebundle-eval-'))}/eval.db"
    engine = stack.enter_context(opened(Path(db)))
    started = perf_counter()
    options = IngestOptions(workers=os.cpu_count() or 1)
    report = Admin(engine.workspace).ingest(
        [documents], options, lexical_only=lexical_only, progress=progress
    )
    if report.embedding_problem:
        click.echo(f"! not all is embedded: {report.embedding_problem}", err=True)
    for skip in report.refused():
        click.echo(f"refused [{skip.code}] {skip.message}", err=True)
    return engine, perf_counter() - started


def _plan(
    what: Collection | GoldenSet,
    engine: Engine,
    role: str | None,
    moment: datetime,
    compared: tuple[Role, ...],
    harming: tuple[Role, ...],
    lexical_only: bool,
    seconds: float,
) -> Plan:
    references = References(engine.workspace.corpus)
    if isinstance(what, Collection):
        questions, notes = from_collection(what, references, role, moment)
    else:
        questions, notes = from_golden(what, references, role, moment)
    if engine.rerank_models.default:
        notes = [*notes, f"governed: reranked by {engine.rerank_models.default}"]
    return Plan(
        kind="collection" if isinstance(what, Collection) else "golden",
        name=what.name,
        role=role,
        questions=questions,
        unjudged=what.unjudged if isinstance(what, Collection) else 0,
        notes=tuple(notes),
        compared=compared,
        harming=harming,
        lexical_only=lexical_only,
        ingest_seconds=seconds,
    )


def _print(found: Any, parts: Iterable[Table | str], as_json: bool) -> None:
    if as_json:
        click.echo(found.model_dump_json(exclude_none=True, indent=1))
        return
    from rich.console import Console

    # Nothing in a question or an id is markup.
    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as shown:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
            if not isinstance(part, str):
                console.print()
    click.echo(shown.get(), nl=False)


@contextmanager
def _progress() -> Iterator[Progress]:
    """What is being done, on standard error where that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield show
