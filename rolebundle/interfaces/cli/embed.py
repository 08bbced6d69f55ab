"""`rolebundle corpus embed`: the embedding indexes of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rolebundle.admin import Admin, indexes
from rolebundle.contracts.embedding import EmbeddingIndexes, EmbedResult
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.errors import EmbedderError
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import duration, print_answer, progress_bar
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.contracts.status import IndexStatus


@click.group(invoke_without_command=True)
@db_option
@click.option(
    "--model",
    metavar="PROVIDER[:NAME]",
    help="Build the index of this model: static, onnx[:NAME], ollama:NAME or openai[:NAME].",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only estimate the number of chunks, the time and the disk space.",
)
@click.option("--optimize", is_flag=True, help="Build the approximate index afterwards.")
@json_option
@click.pass_context
def embed(
    ctx: click.Context,
    db: str | None,
    model: str | None,
    dry_run: bool,
    optimize: bool,
    as_json: bool,
) -> None:
    """Embed the chunks that have no vector, or build another model's index and switch to it.

    The old index is used until the new one is complete. If a run is killed, the next run continues
    where it stopped. A server on another machine is refused unless
    $ROLEBUNDLE_EMBED_ALLOW_HOST names it; $ROLEBUNDLE_EMBED_URL is its address.

    \b
    rolebundle corpus embed                              embed the chunks that wait
    rolebundle corpus embed --model ollama:nomic-embed-text --dry-run
    rolebundle corpus embed --model ollama:nomic-embed-text
    rolebundle corpus embed --model onnx                 needs: pip install '.[onnx]'
    rolebundle corpus embed --optimize                   for more than 20,000 chunks
    rolebundle corpus embed list
    """
    if ctx.invoked_subcommand is not None:
        _refuse_stray_options(ctx)
        return
    admin = admin_for(db)
    spec = None
    if model is not None:
        provider, _, name = model.partition(":")
        workspace = admin.workspace
        spec = ProviderSpec(provider, name, workspace.embed_url, workspace.allow_host)
    if dry_run:
        _show_plan(admin, spec, as_json)
        return
    with progress_bar() as progress:
        report = indexes.embed(admin.workspace, spec, progress=progress)
    optimized = indexes.optimize(admin.workspace) if optimize and not report.waiting else None
    lines = [f"{counted(report.embedded, 'chunk')} embedded, {report.waiting} waiting"]
    if optimized:
        outcome = "kept" if optimized.is_kept else "dropped, because its recall is too low"
        lines.append(
            f"approximate index: {optimized.buckets} buckets, sampled recall "
            f"{optimized.recall:.3f}, {outcome}"
        )
    result = EmbedResult(
        embedded=report.embedded,
        waiting=report.waiting,
        recall=optimized.recall if optimized else None,
        fast=optimized.is_kept if optimized else None,
    )
    print_answer(result, lines, as_json=as_json)
    if report.waiting:
        raise EmbedderError(
            "embedding_incomplete",
            f"{counted(report.waiting, 'chunk')} still without a vector: {report.problem}",
            "correct the problem and run the same command again; it continues where it stopped, "
            "and the active index answers until then",
        )


def _refuse_stray_options(ctx: click.Context) -> None:
    # If they were ignored, `embed --db team.db drop 2` would change another corpus, and
    # `embed --dry-run drop 2` would drop the index.
    for option in ctx.command.params:
        if ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{option.opts[0]} has no effect before {ctx.invoked_subcommand}; "
                f"give the options of {ctx.invoked_subcommand} after it"
            )


@embed.command("list")
@db_option
@json_option
def list_indexes(db: str | None, as_json: bool) -> None:
    """List the indexes of the corpus. * marks the active one.

    \b
    rolebundle corpus embed list
    """
    from rolebundle.status import owner_status

    with admin_for(db) as admin:
        stored = owner_status(admin.workspace.corpus).indexes
    empty = "no embedding index yet: run `rolebundle corpus embed`"
    answer = EmbeddingIndexes(indexes=stored)
    print_answer(answer, map(_line, stored), as_json=as_json, empty=empty)


@embed.command("use")
@click.argument("index")
@db_option
def use_index(index: str, db: str | None) -> None:
    """Make a complete index the active one. INDEX: its number, or provider:model.

    \b
    rolebundle corpus embed use 2
    """
    indexes.use_index(admin_for(db).workspace, index)
    click.echo(f"{index} is active now", err=True)


@embed.command("drop")
@click.argument("index")
@db_option
def drop_index(index: str, db: str | None) -> None:
    """Remove an inactive index and its vectors. INDEX: its number, or provider:model.

    \b
    rolebundle corpus embed drop 1
    """
    indexes.drop_index(admin_for(db).workspace, index)
    click.echo(f"{index} was removed", err=True)


@embed.command("clear-cache")
@db_option
def clear_cache(db: str | None) -> None:
    """Delete the cached vectors of removed and changed texts.

    \b
    rolebundle corpus embed clear-cache
    """
    deleted = indexes.clear_vector_cache(admin_for(db).workspace)
    click.echo(f"{counted(deleted, 'vector')} deleted", err=True)


def _show_plan(admin: Admin, spec: ProviderSpec | None, as_json: bool) -> None:
    plan = indexes.estimate(admin.workspace, spec)
    line = (
        f"{plan.waiting} of {counted(plan.chunks, 'chunk')} to embed, "
        f"about {duration(plan.seconds)}, about {plan.bytes / 1e6:,.1f} MB"
    )
    answer = plan.model_copy(update={"seconds": round(plan.seconds, 1)})
    print_answer(answer, [line], as_json=as_json)


def _line(index: IndexStatus) -> str:
    mark = "*" if index.active else " "
    fast = f", fast (recall {index.fast_recall:.3f})" if index.fast_recall is not None else ""
    stale_reason = f" [{index.fast_doubt}]" if index.fast_doubt else ""
    return (
        f"{mark} {index.id}  {index.provider}:{index.model}  {index.dimensions} dimensions  "
        f"{counted(index.vectors, 'vector')}, {index.waiting} waiting  "
        f"digest {index.digest[:12]}{fast}{stale_reason}"
    )
