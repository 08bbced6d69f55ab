"""`rolebundle eval`: measure retrieval on a test collection or a golden set."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import click
from click.exceptions import Exit
from rich.console import Console

from rolebundle.admin import Admin
from rolebundle.contracts.evaluation import EvalReport, GoldenSet
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.errors import ConfigurationError
from rolebundle.evaluation.evaluation import (
    Progress,
    check_thresholds,
    evaluate,
    parse_thresholds,
    tables,
    with_thresholds,
)
from rolebundle.evaluation.questions import (
    corpus_folder,
    golden_set_of_role,
    load_collection,
    load_golden,
)
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.cli.options import Call, setting, url_setting, with_call, workspace_for
from rolebundle.interfaces.cli.output import print_note, progress_bar
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.file import corpus_path

EXIT_FAILED = 1
_WIDTH = 160


@click.command("eval")
@click.argument("path", required=False, type=click.Path(path_type=Path))
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
    thresholds = parse_thresholds(fail_under)
    folders = overlay_folders(call.overlay_dirs, corpus_path(call.db))
    if path is None and role is None:
        raise click.UsageError("name a PATH, or a --role whose overlay names a golden set")
    path = path or golden_set_of_role(str(role), folders)
    golden = load_collection(path) if path.is_dir() else load_golden(path)
    thresholds = check_thresholds(golden.fail_under, f"{path}: fail_under") | thresholds
    request = request_from({"task": "that of each question", **call.fields})
    moment = (request.now or datetime.now(UTC)).replace(microsecond=0)
    lexical_only = request.lexical_only
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        corpus, documents = _corpus(stack, golden, path, call.db)
        workspace = workspace_for(corpus)
        rerank = request.rerank or setting("RERANK")
        engine = stack.enter_context(
            Engine(workspace, folders, rerank=rerank, rerank_url=url_setting("RERANK_URL"))
        )
        seconds = _ingest(engine, documents, lexical_only, progress)
        report = evaluate(
            engine,
            golden,
            role,
            moment,
            progress,
            lexical_only=lexical_only,
            ingest_seconds=seconds,
        )
        report = with_thresholds(report, thresholds)
    _print(report, call.as_json)
    raise Exit(0 if report.passed else EXIT_FAILED)


def _corpus(
    stack: ExitStack, golden: GoldenSet, path: Path, db: str | None
) -> tuple[Path, Path | None]:
    """The corpus file to use, and the documents to ingest into it first, if any."""
    documents = corpus_folder(path, golden)
    if documents is not None and not documents.exists():
        raise ConfigurationError(
            "golden_malformed",
            f"{path}: corpus: there is no {documents}",
            "name a folder of documents, relative to the golden set's folder, or give --db",
        )
    # A corpus that exists already is only read.
    if documents is None or (db is not None and Path(db).exists()):
        return corpus_path(db), None
    if db is None:
        db = f"{stack.enter_context(TemporaryDirectory(prefix='rolebundle-eval-'))}/eval.db"
    return Path(db), documents


def _ingest(
    engine: Engine, documents: Path | None, lexical_only: bool, progress: Progress
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


def _print(report: EvalReport, as_json: bool) -> None:
    if as_json:
        click.echo(report.model_dump_json(exclude_none=True, indent=1))
        return
    # Questions and ids must not be read as markup.
    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as capture:
        for part in tables(report):
            console.print(part, soft_wrap=isinstance(part, str))
            if not isinstance(part, str):
                console.print()
    click.echo(capture.get(), nl=False)
