"""`rolebundle ingest`: read files into the corpus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click

from rolebundle.contracts.operation_requests import IngestRequest
from rolebundle.contracts.terms import TRUST_TIERS, TrustTier
from rolebundle.errors import DocumentError, EmbedderError, UsageError
from rolebundle.ingest.authority import UNTRUSTED
from rolebundle.ingest.metadata import METADATA_KEYS
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.report import IngestReport
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from rolebundle.interfaces.cli.indexing import complete_index
from rolebundle.interfaces.cli.ingest_report import print_report
from rolebundle.interfaces.cli.options import (
    NonEmptyPath,
    admin_for,
    db_option,
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


@click.command()
@click.argument("paths", nargs=-1, type=NonEmptyPath())
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
@request_options(IngestRequest, only=["lexical_only"])
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
@click.option("--workers", type=click.IntRange(1, 64), help="Number of processes that read files.")
@click.option(
    "--reread", is_flag=True, help="Read every file again, also those that did not change."
)
@click.option("--verbose", "-v", is_flag=True, help="List every file that was skipped.")
@json_option
def ingest(
    paths: tuple[Path, ...],
    db: str | None,
    meta: tuple[str, ...],
    max_trust: TrustTier | None,
    untrusted: bool,
    fields: dict[str, Any],
    chunk_size: int | None,
    max_size: int | None,
    secrets: Literal["mask", "quarantine", "off"] | None,
    patterns: Path | None,
    ignore: bool | None,
    workers: int | None,
    reread: bool,
    verbose: bool,
    as_json: bool,
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
    lifts --untrusted, and --meta scope= lifts a scope. `rolebundle status` lists the options that
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
    """
    options = IngestOptions(
        flags={**_flags(meta), **(UNTRUSTED if untrusted else {})},
        max_trust=max_trust,
        chunking={} if chunk_size is None else {"size": chunk_size, "maximum": chunk_size * 3 // 2},
        size_cap=max_size,
        ignore=ignore,
        scan=_scan_settings(secrets, patterns),
        workers=workers or os.cpu_count() or 1,
        reread=reread,
        **(fields if paths else {}),
    )
    if not paths and (options.root_options() or options.flags or max_trust):
        raise click.UsageError("options about documents need a PATH")
    admin = admin_for(db)
    with ended_by_sigterm(), progress_bar() as bars:
        if paths:
            report = admin.ingest(paths, options, progress=bars, on_reading=bars.reading)
        else:
            report = admin.update(options, progress=bars, on_reading=bars.reading, **fields)
    print_report(report, as_json=as_json, verbose=verbose)
    if not fields.get("lexical_only"):
        complete_index(admin)
    refuse_problems(report)
    missing = sum(skipped.code == "root_missing" for skipped in report.skipped)
    if missing and not paths:
        raise UsageError(
            "root_missing",
            f"{counted(missing, 'root')} missing; what is there was read again",
            "see the messages above",
        )


def _scan_settings(
    secrets: Literal["mask", "quarantine", "off"] | None, patterns: Path | None
) -> ScanSettings | None:
    if secrets is None and patterns is None:
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
            "run `rolebundle corpus embed` when the model is there; only words find them now",
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
