"""`rolebundle status`: what the corpus holds, and whether it is sound."""

from __future__ import annotations

import click

from rolebundle.contracts.lookup import CorpusStatus
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.words import duration


@click.command()
@db_option
@click.option("--check", is_flag=True, help="Compare content, indexes and hashes.")
@click.option("--repair", is_flag=True, help="Rebuild what derives from the chunks, then check.")
@json_option
def status(db: str | None, check: bool, repair: bool, as_json: bool) -> None:
    """What the corpus holds, by source, and the state of its index.

    \b
    rolebundle status
    rolebundle status --check --json
    """
    with admin_for(db) as admin:
        found = admin.status(check=check, repair=repair)
    click.echo(found.model_dump_json(indent=2) if as_json else _text(found))
    if found.problems:
        codes = ", ".join(sorted({problem.code for problem in found.problems}))
        raise CorpusCorrupt(
            "check_failed",
            f"{found.location}: the check found {codes}",
            "run `rolebundle status --repair`; what is left then, ingest again into a new file",
        )


def _text(found: CorpusStatus) -> str:
    corpus = found.corpus
    index = corpus.index
    lines = [
        f"{found.location} ({found.bytes:,} bytes, schema {corpus.schema_version}, "
        f"generation {corpus.generation})",
        f"{corpus.documents} documents, {corpus.chunks} chunks",
        (
            f"embeddings: {index.provider}:{index.model}, {index.dimensions} dimensions, "
            f"{found.waiting} chunks waiting"
            if index
            else "embeddings: none; retrieval is lexical"
        ),
    ]
    for one in found.indexes:
        state = "answers" if one.active else "kept"
        lines.append(
            f"  index {one.id}, {state}: {one.provider}:{one.model}, {one.vectors} vectors, "
            f"{one.waiting} waiting" + (f", since {one.since}" if one.since else "")
        )
        if one.fast_doubt:
            lines.append(f"  ! exact search: {one.fast_doubt}; run `rolebundle embed --optimize`")
    if found.fast_index_would_pay:
        lines.append("  a fast index would pay: run `rolebundle embed --optimize`")
    for offer in found.better_models:
        lines.append(
            f"  at hand: {offer.provider}:{offer.model}, {offer.brings}; about "
            f"{duration(offer.seconds)}: {offer.command}"
        )
    width = max((len(source.source_id) for source in found.sources), default=0)
    for source in found.sources:
        tiers = ", ".join(f"{count} {tier}" for tier, count in sorted(source.trust_tiers.items()))
        lines.append(
            f"  {source.source_id:<{width}}  {source.documents:>5} documents "
            f"{source.chunks:>7} chunks  {tiers}"
        )
    if found.checked:
        lines.append("check: sound" if not found.problems else "check: problems")
        lines += [f"  {problem.code}: {problem.message}" for problem in found.problems]
    return "\n".join(lines)
