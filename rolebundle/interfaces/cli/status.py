"""`rolebundle status`: what the corpus holds, and whether it is consistent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from rolebundle.contracts.status import (
    CorpusStatus,
    PathFlags,
    PublicationStatus,
    ReplicaStatus,
    SelfDeclaredDocument,
    SourceStatus,
    WatchStatus,
)
from rolebundle.contracts.terms import TRUSTED_TIERS
from rolebundle.errors import OverlayError
from rolebundle.ingest.heartbeat import is_alive, seconds_since
from rolebundle.interfaces.cli.ingest import UNDECLARED_TRUST
from rolebundle.interfaces.cli.options import Call, with_call
from rolebundle.interfaces.cli.output import time_text
from rolebundle.interfaces.layout import Style, folded, harmless, terminal_width
from rolebundle.retrieval.passage_text import one_line
from rolebundle.status import advised_status
from rolebundle.text.words import counted

_LINE_CHARS = 300
_UNLIMITED = 100_000


@click.command()
@with_call("overlay_dirs", "as_json")
def status(call: Call) -> None:
    """Show what the corpus holds, by source, and the state of its indexes.

    It warns about rules and words of your own overlays that match nothing in the corpus.

    \b
    rolebundle status
    rolebundle status --json
    """
    problem = ""
    folders: tuple[Path, ...] = ()
    try:
        folders = call.folders
    except OverlayError as error:
        if call.overlay_dirs:
            raise
        problem = f"{error.message}; {error.hint}"
    with call.admin() as admin:
        status = advised_status(admin.workspace.corpus, folders)
    if problem:
        status = status.model_copy(update={"overlay_problem": problem})
    call.print(status, [_text(status, call.style)])


def _text(status: CorpusStatus, style: Style) -> str:
    lines = [
        *_corpus(status),
        *_indexes(status),
        *_sources(status.sources),
        *_self_declared(status.self_declared),
        *_path_flags(status.path_flags),
        *_roles(status),
    ]
    if status.watch is not None:
        lines.append(f"watch: {_watch(status.watch)}")
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
    if status.replica is not None:
        yield _replica(status.replica)
    yield from map(_publication, status.publications)


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
        if embedding.noise_floor is not None:
            yield (
                f"    cosines: unrelated texts up to {embedding.noise_floor:.2f}, "
                f"related ones up to {embedding.related_cosine:.2f}"
            )


def _sources(sources: Sequence[SourceStatus]) -> Iterator[str]:
    width = max((len(source.source_id) for source in sources), default=0)
    for source in sources:
        tiers = ", ".join(f"{count} {tier}" for tier, count in sorted(source.trust_tiers.items()))
        documents = "document " if source.documents == 1 else "documents"
        chunks = "chunk " if source.chunks == 1 else "chunks"
        yield (
            f"  {source.source_id:<{width}}  {source.documents:>5} {documents}"
            f"{source.chunks:>8} {chunks}  {tiers}"
        )
    declared = {tier for source in sources for tier in source.trust_tiers}
    if declared and declared.isdisjoint(TRUSTED_TIERS):
        yield UNDECLARED_TRUST


def _path_flags(flags: Sequence[PathFlags]) -> Iterator[str]:
    for limit in flags:
        location = one_line(limit.location, _LINE_CHARS) or "every path"
        flag_text = one_line(" ".join(limit.flags), _LINE_CHARS) or "none"
        yield f"  flags of an earlier ingest: {location}: {flag_text}"


def _roles(status: CorpusStatus) -> list[str]:
    lines = []
    if status.overlay_problem:
        lines.append(f"! overlays: {one_line(status.overlay_problem, _LINE_CHARS)}")
    for role in status.roles:
        name = one_line(role.role_id, _LINE_CHARS)
        if role.problem:
            lines.append(f"! role {name}: {one_line(role.problem, _LINE_CHARS)}")
        elif role.unmatched:
            places = ", ".join(finding.partition(": ")[0] for finding in role.unmatched)
            lines.append(
                f"! role {name}: {counted(len(role.unmatched), 'rule or word', 'rules or words')} "
                f"without a match in this corpus; run `rolebundle overlay lint {name}`"
            )
            lines.append(f"    {one_line(places, _LINE_CHARS)}")
        else:
            lines.append(f"role {name}: {role.path}")
    return lines


def _replica(replica: ReplicaStatus) -> str:
    state = f"published at {replica.published_at}"
    if replica.refusing:
        state += (
            f"; ! since {replica.refuses_at} it gives no answers: run `rolebundle replica pull`"
        )
    elif replica.expired:
        state += f"; ! to be renewed by {replica.expires_at}: run `rolebundle replica pull`"
    else:
        state += f", to be renewed by {replica.expires_at}"
    agent = f" for {one_line(replica.agent, _LINE_CHARS)}" if replica.agent else ""
    return (
        f"replica of {one_line(replica.publisher, _LINE_CHARS)}{agent}, generation "
        f"{replica.generation}, key {one_line(replica.key_id, _LINE_CHARS)}, {state}"
    )


def _publication(publication: PublicationStatus) -> str:
    target = one_line(publication.target, _LINE_CHARS)
    agent = f" for {one_line(publication.agent, _LINE_CHARS)}" if publication.agent else ""
    if not publication.published_at:
        return (
            f"! a publish to {target}{agent} was not completed: run `rolebundle replica publish` "
            "again"
        )
    pending = (
        "; ! what was purged since may still be there: run `rolebundle replica publish`"
        if publication.purge_pending
        else ""
    )
    return (
        f"published to {target}{agent}: generation {publication.generation}, "
        f"{publication.published_at}{pending}"
    )


def _watch(watch: WatchStatus) -> str:
    now = datetime.now(UTC)
    age = time_text(seconds_since(watch.heartbeat_at, now))
    if watch.state == "stopped":
        reason = f" ({watch.problem})" if watch.problem else ""
        return f"ended {age} ago{reason}"
    if not is_alive(watch, now):
        return f"! silent for {age}: it was killed, or hangs"
    parts = [f"{watch.state}, heartbeat {age} ago, process {watch.process}"]
    parts += ["polling"] if watch.polling else []
    parts += [f"in step since {watch.synced_at}"] if watch.synced_at else []
    if watch.pending_since:
        parts.append(f"changes wait for {time_text(seconds_since(watch.pending_since, now))}")
    parts += [f"! {watch.problem}"] if watch.problem else []
    return "; ".join(parts)


def _self_declared(documents: Sequence[SelfDeclaredDocument]) -> list[str]:
    unknown = [document for document in documents if "unknown" in document.keys]
    known = len(documents) - len(unknown)
    lines = []
    if known:
        lines.append(
            f"documents with authority by their own declaration: {known}; --json lists them"
        )
    if unknown:
        lines.append(
            f"! authority of unknown origin: {counted(len(unknown), 'document')} that an earlier "
            "version stored; run `rolebundle ingest` again"
        )
    return lines
