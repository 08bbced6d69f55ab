"""`rolebundle ingest`: read files into the corpus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click

from rolebundle.contracts.operation_requests import IngestRequest
from rolebundle.contracts.terms import TRUST_TIERS, TrustTier
from rolebundle.errors import DocumentError, EmbedderError
from rolebundle.ingest.metadata import METADATA_KEYS
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.path_flags import UNTRUSTED
from rolebundle.ingest.report import IngestReport
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from rolebundle.interfaces.cli.indexing import complete_index, wait_option
from rolebundle.interfaces.cli.ingest_report import print_report
from rolebundle.interfaces.cli.options import (
    Command,
    NonEmptyPath,
    admin_for,
    db_option,
    embed_options,
    json_option,
    request_options,
)
from rolebundle.interfaces.cli.output import progress_bar
from rolebundle.interfaces.signals import ended_by_sigterm
from rolebundle.scan.settings import ScanSettings
from rolebundle.text.counts import counted

_LIST_KEYS = {
    "tags",
    "applicable_roles",
    "excluded_roles",
    "retrieval_hints",
    "supersedes",
    "contradicts",
}


def run_options(command: Command) -> Command:
    """``--workers N``, ``--reread``, ``--optimize``, ``--wait`` and ``--verbose``."""
    workers = click.option(
        "--workers", type=click.IntRange(1, 64), help="Number of processes that read files."
    )
    reread = click.option(
        "--reread", is_flag=True, help="Read every file again, also those that did not change."
    )
    optimize = click.option(
        "--optimize/--no-optimize",
        default=True,
        help="Whether the approximate index of more than 20,000 chunks is built at the end.  "
        "[default: yes]",
    )
    verbose = click.option(
        "--verbose", "-v", is_flag=True, help="List every file that was skipped."
    )
    return workers(reread(optimize(wait_option(verbose(command)))))


@click.command()
@click.argument("paths", nargs=-1, required=True, type=NonEmptyPath())
@db_option
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata for every file. Manifests and front matter override it, but may not raise what "
    "governs a document. Lists: a,b,c. KEY= lifts a remembered one.",
)
@click.option(
    "--max-trust",
    type=click.Choice(TRUST_TIERS),
    help="The highest trust tier that manifests and documents may declare.",
)
@click.option(
    "--untrusted",
    is_flag=True,
    help="For foreign material: trust tier and origin are untrusted; no manifest or "
    "document can raise them.",
)
@click.option(
    "--manifests/--no-manifests",
    default=None,
    help="Whether a rolebundle.toml counts.  [default: as in an earlier ingest, else it does]",
)
@request_options(IngestRequest, only=["lexical_only"])
@click.option(
    "--reader",
    metavar="NAME",
    help="The reader of files for which no manifest names one.",
)
@click.option(
    "--separator",
    metavar="TEXT",
    help="A line that begins with this text starts a new document.",
)
@click.option(
    "--chunk-size", type=int, help="Target size of a chunk in characters.  [default: 1200]"
)
@click.option(
    "--chunk-overlap", type=int, help="Characters that neighbouring chunks share.  [default: 0]"
)
@click.option(
    "--chunk-maximum",
    type=int,
    help="Largest block that is not split, in characters.  [default: 1800]",
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
    "--patterns",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="More patterns for instructions to a model (TOML). See docs/security.md.",
)
@click.option(
    "--ignore/--no-ignore",
    default=None,
    help="Whether .gitignore and .ignore count, and dependencies, virtual environments, build "
    "output, lock files and minified code are left out.  [default: yes]",
)
@click.option("--scan/--no-scan", default=None, help="Whether documents are scanned.")
@run_options
@embed_options
@json_option
def ingest(
    paths: tuple[Path, ...],
    db: str | None,
    meta: tuple[str, ...],
    max_trust: TrustTier | None,
    untrusted: bool,
    manifests: bool | None,
    fields: dict[str, Any],
    reader: str | None,
    separator: str | None,
    chunk_size: int | None,
    chunk_overlap: int | None,
    chunk_maximum: int | None,
    max_size: int | None,
    secrets: Literal["mask", "quarantine", "off"] | None,
    patterns: Path | None,
    ignore: bool | None,
    scan: bool | None,
    workers: int | None,
    reread: bool,
    optimize: bool,
    wait: bool,
    verbose: bool,
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Synchronize the corpus with files and folders.

    Files whose content did not change are skipped, changed files are read again, and deleted files
    are removed. Metadata comes from front matter, else from the folder's rolebundle.toml, else from
    --meta. The order is reversed for what governs a document: trust, origin, sensitivity, scope,
    source, id, roles, and what it supersedes. There --meta comes before manifests, and manifests
    before documents; the lower level may only declare less.

    The corpus remembers what was ingested and how. `rolebundle update` synchronizes all of it, and
    `rolebundle roots list` shows it. Later ingests use the options again for this path and
    everything below it, until you give others: --max-trust authoritative lifts --untrusted, and
    --meta scope= lifts a scope. `rolebundle status` lists the options that govern, and counts the
    documents that declare their own authority.

    If a named file cannot be ingested, or a named folder cannot be listed, the exit code is 10, and
    everything else is stored. Files that are skipped inside a folder do not change the exit code.

    Folders with the same name get sources of their own, such as docs and project-docs. An ingest
    that is interrupted (Ctrl-C or SIGTERM, exit code 130) keeps what is complete; the next one
    continues.

    Each document is scanned for hidden text, instructions to a model and secrets. Documents with
    severe findings are quarantined; `rolebundle quarantine list` shows them.

    \b
    rolebundle ingest docs/ notes/todo.txt
    rolebundle ingest export/ --meta source_id=wiki --meta trust_tier=preferred
    rolebundle ingest downloads/ --untrusted
    rolebundle ingest notes.txt --separator "=== "
    rolebundle ingest docs/ --json --db team.db
    """
    chunking = {"size": chunk_size, "overlap": chunk_overlap, "maximum": chunk_maximum}
    options = IngestOptions(
        flags={**_flags(meta), **(UNTRUSTED if untrusted else {})},
        max_trust=max_trust,
        manifests=manifests,
        reader="separated" if separator and not reader else reader,
        separator=separator,
        chunking={name: value for name, value in chunking.items() if value is not None},
        size_cap=max_size,
        ignore=ignore,
        workers=workers or os.cpu_count() or 1,
        scan=_scan_settings(scan, secrets, patterns),
        reread=reread,
        optimize=optimize,
        wait=wait,
        **fields,
    )
    admin = admin_for(db, embed_url=embed_url, allow_host=allow_host)
    with ended_by_sigterm(), progress_bar() as progress:
        report = admin.ingest(paths, options, progress=progress, on_reading=progress.reading)
    print_report(report, as_json=as_json, verbose=verbose)
    if not options.lexical_only:
        complete_index(admin, wait=wait)
    refuse_problems(report)


def _scan_settings(
    scan: bool | None,
    secrets: Literal["mask", "quarantine", "off"] | None,
    patterns: Path | None,
) -> ScanSettings | Literal[False] | None:
    if scan is False:
        return False
    if scan is None and secrets is None and patterns is None:
        return None
    return ScanSettings(secrets=secrets or "mask", patterns=patterns)


def refuse_problems(report: IngestReport) -> None:
    """Raise an error if documents were refused, named paths failed, or a vector is missing."""
    refused = report.refused()
    if refused:
        raise DocumentError(
            "bad_documents",
            f"{counted(len(refused), 'document')} refused; the others were stored",
            "correct the documents named above and run the same command again",
        )
    if report.failed:
        named = report.failed[0] if len(report.failed) == 1 else f"{len(report.failed)} paths"
        raise DocumentError(
            "not_ingested",
            f"{named} could not be ingested; everything else was stored",
            "correct what is named above, or leave it out of the command",
        )
    if report.embedding_problem:
        raise EmbedderError(
            "embedding_incomplete",
            f"every document was stored, but {counted(report.waiting, 'chunk')} without a vector: "
            f"{report.embedding_problem}",
            "run `rolebundle embed` when the model is available; until then only words find them",
        )


def _flags(pairs: tuple[str, ...]) -> dict[str, object]:
    flags: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(
                f"--meta {pair}: write KEY=VALUE; keys: {', '.join(METADATA_KEYS)}"
            )
        if not value.strip():
            flags[key] = None
            continue
        flags[key] = [part.strip() for part in value.split(",")] if key in _LIST_KEYS else value
    return flags
