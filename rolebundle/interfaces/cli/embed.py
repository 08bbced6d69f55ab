"""`rolebundle embed`: the embedding indexes of the corpus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rolebundle.admin import Admin
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.errors import EmbedderError
from rolebundle.interfaces.cli.options import admin_for, db_option, embed_options, json_option
from rolebundle.interfaces.cli.progress import progress_bar
from rolebundle.interfaces.cli.words import duration

if TYPE_CHECKING:
    from rolebundle.contracts.lookup import IndexStatus


@click.group(invoke_without_command=True)
@db_option
@click.option("--provider", metavar="NAME", help="static, ollama, openai, sentence-transformers.")
@click.option("--model", default="", metavar="NAME", help="The model's name there, or its folder.")
@embed_options
@click.option("--query-prefix", help="Instead of what the model's name implies.")
@click.option("--passage-prefix", help="Instead of what the model's name implies.")
@click.option("--dry-run", is_flag=True, help="Say how many chunks, how long, how much disk.")
@click.option("--optimize", is_flag=True, help="Then build the fast index for large corpora.")
@json_option
@click.pass_context
def embed(
    ctx: click.Context,
    db: str | None,
    provider: str | None,
    model: str,
    embed_url: str,
    allow_host: str,
    query_prefix: str | None,
    passage_prefix: str | None,
    dry_run: bool,
    optimize: bool,
    as_json: bool,
) -> None:
    """Embed the chunks that wait, or build another model's index and change over to it.

    The old index answers until the new one is complete. A run that is killed goes on where it
    stopped. Another host than this machine is refused unless --allow-host names it.

    \b
    rolebundle embed                                     finish what waits
    rolebundle embed --provider ollama --model nomic-embed-text --dry-run
    rolebundle embed --provider ollama --model nomic-embed-text
    rolebundle embed --optimize                          a fast index above 20,000 chunks
    rolebundle embed list
    """
    if ctx.invoked_subcommand is not None:
        _refuse_stray_options(ctx)
        return
    admin = admin_for(db, embed_url=embed_url, allow_host=allow_host)
    prefixes = None
    if query_prefix is not None or passage_prefix is not None:
        prefixes = (query_prefix or "", passage_prefix or "")
    spec = None
    if provider is not None:
        spec = ProviderSpec(provider, model, embed_url, allow_host, prefixes)
    elif model or prefixes:
        raise click.UsageError("--model and prefixes belong to a --provider; name it")
    if dry_run:
        _show_plan(admin, spec, as_json)
        return
    with progress_bar() as progress:
        report = admin.embed(spec, progress=progress)
    optimized = admin.optimize() if optimize and not report.waiting else None
    if as_json:
        click.echo(
            json.dumps(
                {
                    "embedded": report.embedded,
                    "waiting": report.waiting,
                    "recall": optimized.recall if optimized else None,
                    "fast": optimized.kept if optimized else None,
                }
            )
        )
    else:
        click.echo(f"{report.embedded} chunks embedded, {report.waiting} waiting")
        if optimized:
            verdict = "kept" if optimized.kept else "dropped: it missed too much"
            click.echo(
                f"fast index: {optimized.buckets} buckets, sampled recall "
                f"{optimized.recall:.3f}, {verdict}"
            )
    if report.waiting:
        raise EmbedderError(
            "embedding_incomplete",
            f"{report.waiting} chunks still wait for their vector: {report.problem}",
            "mend what is named and run the same command again; it goes on where it stopped",
        )


def _refuse_stray_options(ctx: click.Context) -> None:
    # Dropped in silence, `embed --db team.db drop 2` would drop from another corpus, and
    # `embed --dry-run drop 2` would drop.
    for option in ctx.command.params:
        typed = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if typed:
            raise click.UsageError(
                f"{option.opts[0]} before {ctx.invoked_subcommand} is not read; "
                f"options of {ctx.invoked_subcommand} stand after it"
            )


@embed.command("list")
@db_option
@json_option
def list_indexes(db: str | None, as_json: bool) -> None:
    """The indexes that the corpus keeps; * answers."""
    with admin_for(db) as admin:
        indexes = admin.status().indexes
    if as_json:
        click.echo(json.dumps({"indexes": [index.model_dump() for index in indexes]}))
        return
    for index in indexes:
        click.echo(_line(index))
    if not indexes:
        click.echo("no embedding index yet: run `rolebundle embed`", err=True)


@embed.command("use")
@click.argument("index")
@db_option
def use_index(index: str, db: str | None) -> None:
    """Make a complete index the one that answers: its number, or provider:model."""
    admin_for(db).use_index(index)
    click.echo(f"{index} answers now", err=True)


@embed.command("drop")
@click.argument("index")
@db_option
def drop_index(index: str, db: str | None) -> None:
    """Remove an index that does not answer, with its vectors."""
    admin_for(db).drop_index(index)
    click.echo(f"{index} is gone", err=True)


@embed.command("clear-cache")
@db_option
def clear_cache(db: str | None) -> None:
    """Forget the vectors that are kept for text that may come back."""
    click.echo(f"{admin_for(db).clear_vector_cache()} vectors forgotten", err=True)


def _show_plan(admin: Admin, spec: ProviderSpec | None, as_json: bool) -> None:
    plan = admin.plan_embedding(spec)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "chunks": plan.chunks,
                    "waiting": plan.waiting,
                    "seconds": round(plan.seconds, 1),
                    "bytes": plan.bytes,
                }
            )
        )
        return
    click.echo(
        f"{plan.waiting} of {plan.chunks} chunks to embed, about {duration(plan.seconds)}, "
        f"about {plan.bytes / 1e6:,.1f} MB"
    )


def _line(index: IndexStatus) -> str:
    mark = "*" if index.active else " "
    fast = f", fast (recall {index.fast_recall:.3f})" if index.fast_recall is not None else ""
    doubt = f" [{index.fast_doubt}]" if index.fast_doubt else ""
    return (
        f"{mark} {index.id}  {index.provider}:{index.model}  {index.dimensions} dimensions  "
        f"{index.vectors} vectors, {index.waiting} waiting  digest {index.digest[:12]}{fast}{doubt}"
    )
