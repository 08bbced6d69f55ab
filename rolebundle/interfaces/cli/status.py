"""`rolebundle status`: what the corpus holds, and whether it is sound."""

from __future__ import annotations

import click

from rolebundle.contracts.lookup import CorpusStatus
from rolebundle.errors import CorpusCorrupt
from rolebundle.interfaces.cli.options import db_option, engine_for, json_option


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
    with engine_for(db) as engine:
        found = engine.status(check=check, repair=repair)
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
