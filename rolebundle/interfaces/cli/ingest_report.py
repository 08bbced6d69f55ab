"""What `ingest` prints: totals, and what was skipped, grouped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePath

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.ingest import IngestResult
from rolebundle.ingest.report import ERROR_CODES, IngestReport
from rolebundle.ingest.walk import Skipped
from rolebundle.interfaces.cli.output import print_json
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

_MAX_LISTED = 20
_EXAMPLES = 3
_LINE_CHARS = 500
UNDECLARED_TRUST = (
    "trust: no document is declared preferred or authoritative, so the trust of answers is "
    "undeclared; docs/metadata.md says how to declare it"
)


def print_report(report: IngestReport, *, as_json: bool, verbose: bool = False) -> None:
    """Print what an ingest has done: totals or JSON, and the rest on standard error.

    Args:
        report: the result of the run.
        as_json: print JSON; then standard error only has what was refused.
        verbose: list every file that was skipped, and every note.
    """
    if as_json:
        print_json(IngestResult.model_validate(asdict(report)))
    else:
        click.echo(_summary(report))
    refused = [f"refused [{entry.code}] {_with_path(entry)}" for entry in report.refused()]
    _print_lines(refused, verbose)
    if not as_json:
        skipped = [entry for entry in report.skipped if entry.code not in ERROR_CODES]
        _print_lines([*_lines("skipped", skipped, verbose)], verbose)
        _print_lines([*_lines("note", report.notes, verbose)], verbose)


def _print_lines(lines: Sequence[str], verbose: bool) -> None:
    listed_lines = lines if verbose else lines[:_MAX_LISTED]
    for line in listed_lines:
        click.echo(one_line(writable(line), _LINE_CHARS), err=True)
    if len(lines) > len(listed_lines):
        click.echo(f"and {len(lines) - len(listed_lines)} more; --verbose lists all", err=True)


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
        lines.append("nothing to search yet; `rolebundle corpus formats` lists what can be read")
    if report.optimized:
        lines.append("approximate index: built, so that searches stay fast")
    if report.flagged:
        lines.append(
            f"scan: findings in {counted(report.flagged, 'document')}, "
            f"{report.quarantined} quarantined; see `rolebundle corpus quarantine list --all`"
        )
    if report.added and not report.trusted:
        lines.append(UNDECLARED_TRUST)
    for grant in report.grants:
        documents = counted(grant.documents, "document")
        # A manifest's path is chosen by whoever made its folder.
        path = one_line(writable(grant.path), _LINE_CHARS)
        lines.append(
            f"trust: {path} raises {documents} to {grant.trust_tier}"
            if path
            else f"trust: {documents} raised to {grant.trust_tier} by what they declare themselves"
        )
    return "\n".join(lines)


def _lines(label: str, entries: Iterable[Skipped], verbose: bool) -> Iterator[str]:
    """One line per entry, or per code and kind of entries with a few examples."""
    groups: dict[tuple[str, str], list[Skipped]] = defaultdict(list)
    for entry in entries:
        kind = _without_path(entry) if label == "note" else _kind(entry)
        groups[entry.code, kind].append(entry)
    for (code, kind), group in groups.items():
        head = label if code == label else f"{label} [{code}]"
        if verbose or len(group) <= 1:
            yield from (f"{head} {_with_path(entry)}" for entry in group)
            continue
        paths = ", ".join(entry.path for entry in group[:_EXAMPLES])
        more = ", …" if len(group) > _EXAMPLES else ""
        message = "" if kind == _without_path(group[0]) else f": {_without_path(group[0])}"
        yield f"{head} {len(group)} × {kind}: {paths}{more}{message}"


def _kind(entry: Skipped) -> str:
    if entry.code in ("ignored", "root_missing", "unsupported"):
        return _without_path(entry)
    return PurePath(entry.path).suffix.lower() or "no suffix"


def _with_path(entry: Skipped) -> str:
    """The message with the path before it, unless it begins with the path and a line."""
    if entry.message.startswith(f"{entry.path}:"):
        return entry.message
    return f"{entry.path}: {entry.message}"


def _without_path(entry: Skipped) -> str:
    return entry.message.removeprefix(f"{entry.path}:").strip()
