"""`rolebundle ingest`: files into the corpus."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from rolebundle.errors import DocumentError, EmbedderError
from rolebundle.ingest.metadata import METADATA_KEYS
from rolebundle.ingest.sync import IngestOptions, IngestReport
from rolebundle.ingest.walk import DEFAULT_SIZE_CAP
from rolebundle.interfaces.cli.options import admin_for, db_option, embed_options, json_option
from rolebundle.interfaces.cli.progress import progress_bar
from rolebundle.scan.settings import ScanSettings

_LIST_KEYS = {"tags", "applicable_roles", "excluded_roles", "retrieval_hints", "supersedes"}
_LISTED = 20


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@db_option
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata for every file; manifests and front matter win over it. Lists: a,b,c.",
)
@click.option("--lexical-only", is_flag=True, help="Do not embed; new chunks wait for a vector.")
@click.option("--reader", default="", metavar="NAME", help="Read every file by this reader.")
@click.option("--separator", default="", metavar="TEXT", help="Begins each document of a file.")
@click.option("--chunk-size", type=int, help="Characters wanted.  [default: 1200]")
@click.option("--chunk-overlap", type=int, help="Characters shared.  [default: 0]")
@click.option("--chunk-maximum", type=int, help="Cut a single block above.  [default: 1800]")
@click.option(
    "--max-size", type=int, default=DEFAULT_SIZE_CAP, show_default=True, help="Bytes of a file."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that parse.")
@click.option(
    "--secrets",
    type=click.Choice(["quarantine", "mask", "off"]),
    default="quarantine",
    show_default=True,
    help="What becomes of a document with keys or tokens in it.",
)
@click.option(
    "--patterns",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="More patterns of instructions to a model (TOML); see docs/security.md.",
)
@click.option("--no-scan", is_flag=True, help="Take documents as they are: no scan at the door.")
@embed_options
@json_option
def ingest(
    paths: tuple[Path, ...],
    db: str | None,
    meta: tuple[str, ...],
    lexical_only: bool,
    reader: str,
    separator: str,
    chunk_size: int | None,
    chunk_overlap: int | None,
    chunk_maximum: int | None,
    max_size: int,
    workers: int | None,
    secrets: Literal["quarantine", "mask", "off"],
    patterns: Path | None,
    no_scan: bool,
    embed_url: str,
    allow_host: str,
    as_json: bool,
) -> None:
    """Bring the corpus in step with files and folders.

    Unchanged files are skipped by their content, changed ones are read again, deleted ones
    removed. Metadata comes from front matter, over the folder's rolebundle.toml, over --meta.
    Each document is scanned for hidden text, instructions to a model and secrets; what weighs too
    much is kept back, and listed by `rolebundle quarantine list`.

    \b
    rolebundle ingest docs/ notes/todo.txt
    rolebundle ingest export/ --meta source_id=wiki --meta trust_tier=preferred
    rolebundle ingest notes.txt --separator "=== "
    rolebundle ingest docs/ --json --db team.db
    """
    chunking = {"size": chunk_size, "overlap": chunk_overlap, "maximum": chunk_maximum}
    options = IngestOptions(
        flags=_flags(meta),
        reader=reader or ("separated" if separator else ""),
        separator=separator,
        chunking={name: value for name, value in chunking.items() if value is not None},
        size_cap=max_size,
        workers=workers or os.cpu_count() or 1,
        scan=None if no_scan else ScanSettings(secrets=secrets, patterns=patterns),
    )
    admin = admin_for(db, embed_url=embed_url, allow_host=allow_host)
    with progress_bar() as progress:
        report = admin.ingest(paths, options, lexical_only=lexical_only, progress=progress)
    if as_json:
        click.echo(_shown(json.dumps(asdict(report), ensure_ascii=False)))
    else:
        click.echo(_summary(report))
    _tell(report, quiet=as_json)
    refused = report.refused()
    if refused:
        raise DocumentError(
            "bad_documents",
            f"{len(refused)} documents were refused; the others were taken",
            "correct what is named above and run the same command again",
        )
    if report.embedding_problem:
        raise EmbedderError(
            "embedding_incomplete",
            f"every document was stored, but {report.waiting} chunks wait for their vector: "
            f"{report.embedding_problem}",
            "run `rolebundle embed` when the model is at hand; retrieval is lexical for them",
        )


def _flags(pairs: tuple[str, ...]) -> dict[str, object]:
    flags: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(
                f"--meta {pair}: write KEY=VALUE; keys: {', '.join(METADATA_KEYS)}"
            )
        flags[key] = [part.strip() for part in value.split(",")] if key in _LIST_KEYS else value
    return flags


def _summary(report: IngestReport) -> str:
    codes = Counter(skip.code for skip in report.skipped)
    skipped = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    lines = [
        f"files: {report.added} added, {report.updated} updated, {report.unchanged} unchanged, "
        f"{report.removed} removed, {len(report.skipped)} skipped"
        + (f" ({skipped})" if skipped else ""),
        f"corpus: {report.documents} documents, {report.chunks} chunks; "
        f"{report.embedded} embedded now, {report.waiting} waiting for a vector",
    ]
    if report.flagged:
        lines.append(
            f"scan: something found in {report.flagged} documents, {report.quarantined} of them "
            "kept back; see `rolebundle quarantine list`"
        )
    return "\n".join(lines)


def _tell(report: IngestReport, *, quiet: bool) -> None:
    refused = report.refused()
    for skip in refused:
        click.echo(_shown(f"refused [{skip.code}] {skip.message}"), err=True)
    if not quiet:
        others = [skip for skip in report.skipped if skip not in refused]
        for skip in others[:_LISTED]:
            click.echo(_shown(f"skipped [{skip.code}] {skip.path}: {skip.message}"), err=True)
        for note in report.notes[:_LISTED]:
            click.echo(_shown(f"note {note.path}: {note.message}"), err=True)
        more = max(0, len(others) - _LISTED) + max(0, len(report.notes) - _LISTED)
        if more:
            click.echo(f"and {more} more; --json lists them all", err=True)


def _shown(text: str) -> str:
    # A file's name may hold bytes that are no characters. What replaces them is a JSON escape.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
