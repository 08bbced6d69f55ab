"""`rolebundle status`: what the corpus holds, and whether it is consistent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from rolebundle.contracts.terms import TRUSTED_TIERS
from rolebundle.contracts.upkeep import CorpusStatus, SourceStatus
from rolebundle.interfaces.cli.ingest import UNDECLARED_TRUST
from rolebundle.interfaces.cli.options import Call, with_call
from rolebundle.interfaces.cli.output import field_lines
from rolebundle.interfaces.layout import Style, folded, harmless, terminal_width
from rolebundle.retrieval.passage_text import one_line
from rolebundle.status import advised_status
from rolebundle.text.words import counted

_LINE_CHARS = 300
_UNLIMITED = 100_000
_IN_FIELDS = {"replica", "publications", "path_flags", "watch"}


@click.command()
@with_call("as_json")
def status(call: Call) -> None:
    """Show what the corpus holds, by source, and the state of its indexes.

    \b
    rolebundle status
    rolebundle status --json
    """
    with call.admin() as admin:
        status = advised_status(admin.workspace.corpus)
    call.print(status, [_text(status, call.style)])


def _text(status: CorpusStatus, style: Style) -> str:
    lines = [
        *_corpus(status),
        *_indexes(status),
        *_sources(status.sources),
        *field_lines(status.model_dump(include=_IN_FIELDS)),
        *_warnings(status),
    ]
    # In a pipe, what is said of one thing stays on one line.
    columns = terminal_width(without=_UNLIMITED)
    folded_lines = [part for line in lines for part in folded(harmless(line), columns)]
    return "\n".join(
        style("caution", line) if line.lstrip().startswith("!") else line for line in folded_lines
    )


def _corpus(status: CorpusStatus) -> Iterator[str]:
    corpus = status.corpus
    yield (
        f"{status.location} ({status.bytes:,} bytes, schema {corpus.schema_version}, "
        f"generation {corpus.generation})"
    )
    yield f"{counted(corpus.documents, 'document')}, {counted(corpus.chunks, 'chunk')}"


def _indexes(status: CorpusStatus) -> Iterator[str]:
    index = status.corpus.index
    yield (
        f"embeddings: {index.provider}:{index.model}, {index.dimensions} dimensions, "
        f"{counted(status.waiting, 'chunk')} waiting"
        if index
        else "embeddings: none; retrieval is lexical"
    )
    if status.model_reason:
        yield f"  this model because: {status.model_reason}"
    if status.building:
        yield f"  {status.building}"
    for embedding in status.indexes:
        state = "active" if embedding.active else "inactive"
        since = f", since {embedding.since}" if embedding.since else ""
        yield (
            f"  index {embedding.id}, {state}: {embedding.provider}:{embedding.model}, "
            f"{counted(embedding.vectors, 'vector')}, {embedding.waiting} waiting{since}"
        )


def _sources(sources: Sequence[SourceStatus]) -> Iterator[str]:
    width = max((len(source.source_id) for source in sources), default=0)
    for source in sources:
        tiers = ", ".join(f"{count} {tier}" for tier, count in sorted(source.trust_tiers.items()))
        documents, chunks = counted(source.documents, "document"), counted(source.chunks, "chunk")
        yield f"  {source.source_id:<{width}}  {documents:>15} {chunks:>14}  {tiers}"
    declared = {tier for source in sources for tier in source.trust_tiers}
    if declared and declared.isdisjoint(TRUSTED_TIERS):
        yield UNDECLARED_TRUST


def _warnings(status: CorpusStatus) -> Iterator[str]:
    """What is to be done, and how."""
    replica = status.replica
    if replica is not None and (replica.expired or replica.refusing):
        state = "gives no answers any more" if replica.refusing else "was not renewed in time"
        yield f"! this replica {state}: run `rolebundle replica pull`"
    for publication in status.publications:
        target = one_line(publication.target, _LINE_CHARS)
        if not publication.published_at:
            yield f"! a publish to {target} was not completed: run `rolebundle replica publish`"
        elif publication.purge_pending:
            yield f"! {target} may hold what was purged: run `rolebundle replica publish`"
    unknown = sum("unknown" in document.keys for document in status.self_declared)
    if unknown:
        yield (
            f"! authority of unknown origin: {counted(unknown, 'document')} that an earlier "
            "version stored; run `rolebundle ingest` again"
        )
    if known := len(status.self_declared) - unknown:
        yield f"documents with authority by their own declaration: {known}; --json lists them"
