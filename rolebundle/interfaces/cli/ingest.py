"""`rolebundle ingest`, `corpus watch` and `status`: files into the corpus, and what it holds."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Literal

import click

from rolebundle.admin import Admin
from rolebundle.admin.indexes import Indexing, complete
from rolebundle.contracts.base import writable
from rolebundle.contracts.documents import DocumentMetadata
from rolebundle.contracts.ingest import ERROR_CODES, METADATA_KEYS, IngestReport, Skipped
from rolebundle.contracts.request import IngestRequest
from rolebundle.contracts.terms import TRUST_TIERS, TRUSTED_TIERS, TrustTier
from rolebundle.contracts.upkeep import CorpusStatus
from rolebundle.embedding.static import MODEL
from rolebundle.errors import DocumentError, EmbedderError, RolebundleError, UsageError
from rolebundle.ingest.authority import UNTRUSTED
from rolebundle.ingest.indexes import missing_model
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from rolebundle.interfaces.cli import folders, output
from rolebundle.interfaces.cli.main import is_read
from rolebundle.interfaces.cli.options import Call, flag, non_empty_path, with_call, with_json
from rolebundle.interfaces.layout import Style, folded, harmless, on_one_line, terminal_width
from rolebundle.interfaces.signals import ended_by_sigterm, on_end
from rolebundle.retrieval.passage_text import one_line
from rolebundle.status import owner_status
from rolebundle.storage.stored_values import grouped
from rolebundle.text.words import counted, first_of

_LIST_KEYS = {key for key, default in DocumentMetadata._field_defaults.items() if default == ()}


@click.command()
@click.argument("paths", nargs=-1, type=non_empty_path)
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata for every file. Manifests and front matter override it, but may not raise what "
    "governs a document. Lists: a,b,c. KEY= removes a remembered one.",
)
@click.option(
    "--max-trust",
    type=click.Choice(TRUST_TIERS),
    help="The highest trust tier that manifests and documents may declare.",
)
@flag(
    "--untrusted",
    "For foreign material: trust tier and origin are untrusted; no manifest or "
    "document can raise them.",
)
@click.option(
    "--chunk-size",
    type=int,
    help="Target size of a chunk in characters. Half as much again is not split.  [default: 1200]",
)
@click.option(
    "--max-size",
    type=click.IntRange(min=1),
    help=f"Skip files larger than this, in bytes.  [default: {DEFAULT_SIZE_CAP}]",
)
@click.option(
    "--secrets",
    type=click.Choice(["mask", "quarantine", "off"]),
    help="What to do with keys, tokens and passwords: mask them, keep their documents back whole, "
    "or ignore them.  [default: mask]",
)
@click.option(
    "--ignore/--no-ignore",
    default=None,
    help="Whether .gitignore and .ignore count, and dependencies, virtual environments, build "
    "output, lock files and minified code are left out.  [default: yes]",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Number of processes that read files.")
@flag("--reread", "Read every file again, also those that did not change.")
@flag("--no-wait", "Leave a contextual model's index to `corpus watch`, `serve` or `corpus embed`.")
@with_call("as_json", request=IngestRequest, only=["lexical_only"])
def ingest(
    call: Call,
    paths: tuple[Path, ...],
    meta: tuple[str, ...],
    max_trust: TrustTier | None,
    untrusted: bool,
    chunk_size: int | None,
    max_size: int | None,
    secrets: Literal["mask", "quarantine", "off"] | None,
    ignore: bool | None,
    workers: int | None,
    reread: bool,
    no_wait: bool,
) -> None:
    """Synchronize the corpus with files and folders, or without PATHS with all that was ingested.

    Files whose content did not change are skipped, changed files are read again, and deleted files
    are removed. Metadata comes from front matter, else from the folder's rolebundle.toml, else from
    --meta. The order is reversed for what governs a document: trust, origin, sensitivity, scope,
    source, id, roles, and what it supersedes. There --meta comes before manifests, and manifests
    before documents; the lower level may only declare less.

    The corpus remembers what was ingested and how: `rolebundle ingest` without a path reads all of
    it again, and `rolebundle corpus roots list` shows it. If a folder is missing then, or is empty,
    its documents stay, the others are read, and the exit code is 2. Later ingests use the options
    again for this path and everything below it, until you give others: --max-trust authoritative
    removes --untrusted, and --meta scope= a scope. `rolebundle status` lists the options that
    govern, and counts the documents that declare their own authority.

    If a named file cannot be ingested, or a named folder cannot be listed, the exit code is 10, and
    everything else is stored. Files that are skipped inside a folder do not change the exit code.

    Folders with the same name get sources of their own, such as docs and project-docs. An ingest
    that is interrupted (Ctrl-C or SIGTERM, exit code 130) keeps what is complete; the next one
    continues.

    Each document is scanned for hidden text, instructions to a model and secrets. Documents with
    severe findings are quarantined; `rolebundle corpus quarantine list` shows them.

    \b
    rolebundle ingest docs/ notes/todo.txt
    rolebundle ingest export/ --meta source_id=wiki --meta trust_tier=preferred
    rolebundle ingest downloads/ --untrusted
    rolebundle ingest                       everything that was ingested, again
    rolebundle ingest docs/ --json --db team.db
    rolebundle ingest --in notes/           what a `retrieve --in notes/` reads, now
    """
    options = IngestOptions(
        flags={**_flags(meta), **(UNTRUSTED if untrusted else {})},
        max_trust=max_trust,
        chunking={} if chunk_size is None else {"size": chunk_size, "maximum": chunk_size * 3 // 2},
        size_cap=max_size,
        ignore=ignore,
        secrets=secrets,
        workers=workers or os.cpu_count() or 1,
        reread=reread,
        wait=not no_wait,
        **(call.fields if paths else {}),
    )
    is_described = options.root_options() or options.flags or max_trust
    if call.in_folders and (paths or call.fields or is_described):
        raise click.UsageError("--in reads a folder as it is; for options, use a PATH and --db")
    if not paths and is_described:
        raise click.UsageError("options about documents need a PATH")
    admin = call.admin()
    with ended_by_sigterm(), output.progress_bar() as progress:
        if call.in_folders:
            read = folders.read(call.path, call.in_folders, call.admin, progress)
            assert read is not None
            report = read
        elif paths:
            report = admin.ingest(paths, options, progress=progress)
        else:
            report = admin.update(options, progress=progress, **call.fields)
    print_report(report, as_json=call.as_json)
    if not call.fields.get("lexical_only"):
        if report.added and not (report.updated or report.unchanged):
            with admin.workspace.open_writer() as corpus:  # A reader would leave its files.
                advice = missing_model(corpus)
            if advice:
                output.print_note(f"note: {advice}")
        if not no_wait:
            # Nobody waits for a background process, so it may take long.
            complete_index(admin, is_patient=bool(call.in_folders) and not sys.stderr.isatty())
    refuse_problems(report)
    missing = sum(note.code == "root_missing" for note in (*report.skipped, *report.notes))
    if missing and not paths:
        problem = f"{counted(missing, 'root')} missing; what is there was read again"
        step = "see the messages above"
        raise UsageError("root_missing", problem, step)


def refuse_problems(report: IngestReport) -> None:
    """Raise an error if documents were refused, named paths failed, or a vector is missing."""
    refused = report.refused()
    if refused:
        problem = f"{counted(len(refused), 'document')} refused; the others were stored"
        step = "correct the documents named above and run the same command again"
        raise DocumentError("bad_documents", problem, step)
    if report.failed:
        named = report.failed[0] if len(report.failed) == 1 else f"{len(report.failed)} paths"
        problem = f"{named} could not be ingested; everything else was stored"
        step = "correct what is named above, or leave it out of the command"
        raise DocumentError("not_ingested", problem, step)
    if report.embedding_problem:
        raise EmbedderError(
            "embedding_incomplete",
            f"every document was stored, but {counted(report.waiting, 'chunk')} without a vector: "
            f"{report.embedding_problem}",
            "run `rolebundle corpus embed` when the model is there; only words find them now",
        )


def _flags(pairs: tuple[str, ...]) -> dict[str, object]:
    flags: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            keys = ", ".join(METADATA_KEYS)
            raise click.UsageError(f"--meta {pair}: write KEY=VALUE; keys: {keys}")
        values = [part.strip() for part in value.split(",")] if key in _LIST_KEYS else value
        flags[key] = values if value.strip() else None
    return flags


_EXAMPLES = 3
_LINE_CHARS = 500
UNDECLARED_TRUST = (
    "trust: no document is declared preferred or authoritative, so the trust of answers is "
    "undeclared; docs/metadata.md says how to declare it"
)


def print_report(report: IngestReport, *, as_json: bool) -> None:
    """Print what an ingest has done: totals or JSON, and the rest on standard error.

    Args:
        report: the result of the run.
        as_json: print JSON; then standard error only has what was refused.
    """
    if as_json:
        output.print_json(report)
    else:
        click.echo(output.with_folders(_summary(report)))
    lines = [[f"refused [{entry.code}] {_with_path(entry)}" for entry in report.refused()]]
    if not as_json:
        skipped = [entry for entry in report.skipped if entry.code not in ERROR_CODES]
        lines += [[*_lines("skipped", skipped)], [*_lines("note", report.notes)]]
    for listed in lines:
        short = [one_line(writable(line), _LINE_CHARS) for line in listed]
        output.print_first(short, rest="; --json lists all")


def _summary(report: IngestReport) -> str:
    codes = Counter(skip.code for skip in report.skipped)
    skipped = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    lines = [
        f"files: {report.added} added, {report.updated} updated, {report.unchanged} unchanged, "
        f"{report.removed} removed, {len(report.skipped)} skipped"
        + (f" ({skipped})" if skipped else ""),
        f"corpus: {counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')}; "
        f"{report.embedded} embedded now, {report.waiting} waiting for a vector",
    ]
    if not report.documents:
        lines.append("nothing to search yet; docs/folders.md says what can be read")
    if report.flagged:
        lines.append(
            f"scan: findings in {counted(report.flagged, 'document')}, "
            f"{report.quarantined} quarantined; see `rolebundle corpus quarantine list --all`"
        )
    is_first = not (report.updated or report.unchanged)
    if report.added and is_first and not report.trusted:
        lines.append(UNDECLARED_TRUST)
    return "\n".join(lines)


def _lines(label: str, entries: Iterable[Skipped]) -> Iterator[str]:
    """One line per entry, or per code and message with a few paths."""
    groups = grouped(
        ((entry.code, entry.message.removeprefix(f"{entry.path}:").strip()), entry)
        for entry in entries
    )
    for (code, message), group in groups.items():
        if len(group) == 1:
            yield f"{label} [{code}] {_with_path(group[0])}"
        else:
            paths = first_of([entry.path for entry in group], _EXAMPLES)
            yield f"{label} [{code}] {len(group)} × {message}: {paths}"


def _with_path(entry: Skipped) -> str:
    """The message with the path before it, unless it begins with the path and a line."""
    if entry.message.startswith(f"{entry.path}:"):
        return entry.message
    return f"{entry.path}: {entry.message}"


_LEFT = "left to `rolebundle corpus watch`, `rolebundle serve` or `rolebundle corpus embed`"


def complete_index(admin: Admin, *, is_patient: bool = False) -> None:
    """Go on with the contextual index, after the command has reported its own work.

    With ``is_patient``, also if it takes longer than ``PATIENCE_SECONDS``.

    Raises:
        KeyboardInterrupt: Ctrl-C. What was embedded is kept.
    """
    is_announced = False

    def show_progress(step: str, done: int, total: int) -> None:
        nonlocal is_announced
        if not is_announced:
            _print(
                f"the corpus answers already; a contextual model embeds {total - done:,} passages "
                "for better answers. Ctrl-C ends this, and the next ingest continues"
            )
        is_announced = True
        progress(step, done, total)

    try:
        with output.progress_bar() as progress:
            report = complete(admin.workspace, progress=show_progress, is_patient=is_patient)
    except RolebundleError as error:
        _print(f"warning: the contextual index is not complete: {error}")
        return
    if report is None:
        return
    if report.seconds_left:
        left = timedelta(seconds=round(report.seconds_left))
        _print(f"{counted(report.waiting, 'passage')} would take about {left}: {_LEFT}")
    elif report.problem:
        _print(f"warning: the contextual index is not complete: {report.problem}")
    else:
        _print(f"{counted(report.embedded, 'passage')} embedded; the contextual index is complete")


def background_indexing(path: Path, print_line: Callable[[str], None] | None = None) -> Indexing:
    """What completes the contextual index until the command ends, once it is started.

    Args:
        path: the corpus file.
        print_line: called with each line for a person.
    """
    indexing = Indexing(path, print_line or _print)
    click.get_current_context().call_on_close(indexing.stop)
    return indexing


def _print(line: str) -> None:
    with suppress(OSError):
        output.print_note(line)


@click.command(short_help="Update it whenever files change")
@flag("--poll", "Check all files at intervals. For network drives, which report no changes.")
@with_call(request=IngestRequest, only=["lexical_only"])
def watch(call: Call, poll: bool) -> None:
    """Update the corpus whenever ingested folders and files change.

    Runs until it is ended (SIGTERM, Ctrl-C). Changes are in the corpus a moment later, and running
    servers answer from them. `rolebundle status` shows whether it runs.

    If a folder vanishes, its documents stay until it is back. If more than a fifth of a folder's
    files disappear while the folder is there, it changes nothing and ends with exit code 2: run
    `rolebundle ingest` if that is meant.

    \b
    rolebundle corpus watch
    rolebundle corpus watch --poll --db team.db
    """
    call.read_folders()
    admin = call.admin()
    stop = Event()

    def report_line(line: str) -> None:
        time = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        output.print_note(f"{time}  {on_one_line(line)}")
        if not is_read(sys.stderr):
            stop.set()

    indexing = None
    if not call.fields.get("lexical_only"):
        indexing = background_indexing(admin.workspace.path, report_line)
        indexing.start()
    watcher = admin.watcher(report_line, stop, polls=poll, indexing=indexing, **call.fields)

    def end() -> None:
        stop.set()
        if watcher.is_syncing:
            # Ends the pass; what is complete is stored.
            raise KeyboardInterrupt

    signals = on_end(end)
    watcher.run()
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


_UNLIMITED = 100_000
_INCLUDED = re.compile(rf"(?:static:|provider static, model ){MODEL}")
_ONLY_IN_JSON = {"self_declared"}
_OF_INDEX = {"digest", "query_prefix", "passage_prefix", "normalization", "chunker",
             "noise_floor", "related_cosine"}  # fmt: skip


@click.command()
@flag("--explain", "Also name the model that is included.")
@with_json
def status(call: Call, explain: bool) -> None:
    """Show what the corpus holds, by source, and the state of its indexes.

    \b
    rolebundle status
    rolebundle status --in notes/
    rolebundle status --json
    """
    call.read_folders()
    with call.admin() as admin:
        status = owner_status(admin.workspace.corpus)
    lines = _status_lines(status, call.style)
    call.print(
        status, lines if explain else (_INCLUDED.sub("the included model", s) for s in lines)
    )


def _status_lines(status: CorpusStatus, style: Style) -> Iterator[str]:
    """The fields, and what is to be done."""
    values = status.model_dump(exclude=_ONLY_IN_JSON)
    values["corpus"] = status.corpus.model_dump(exclude={"index", "replica"})
    values["indexes"] = [index.model_dump(exclude=_OF_INDEX) for index in status.indexes]
    lines = [*map(output.with_folders, (*output.field_lines(values), *_advice(status)))]
    # In a pipe, what is said of one thing stays on one line.
    columns = terminal_width(without=_UNLIMITED)
    for line in lines:
        for part in folded(harmless(line), columns):
            yield style("caution", part) if part.startswith("!") else part


def _advice(status: CorpusStatus) -> Iterator[str]:
    """What is to be done, and how."""
    tiers = {tier for source in status.sources for tier in source.trust_tiers}
    if tiers and tiers.isdisjoint(TRUSTED_TIERS):
        yield UNDECLARED_TRUST
    if status.corpus.index is None:
        yield "embeddings: none; retrieval is lexical"
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
    if status.partly_read:
        number = counted(status.partly_read, "document")
        yield f"partly read: {number}; `rolebundle ls` names them"
    if known := len(status.self_declared) - unknown:
        yield f"documents with authority by their own declaration: {known}; --json lists them"
