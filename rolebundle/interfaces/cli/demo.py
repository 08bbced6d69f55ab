"""`rolebundle overlay demo`: the sample corpus, one task, three roles, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any

import click

from rolebundle.admin import Admin
from rolebundle.admin.indexes import embed
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import RANKED_LOWER
from rolebundle.embedding.registry import ProviderSpec
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.report import IngestReport
from rolebundle.interfaces.cli.names import role_names
from rolebundle.interfaces.cli.options import request_options, with_style
from rolebundle.interfaces.layout import cut, terminal_width, wrapped
from rolebundle.interfaces.parse import request_from
from rolebundle.interfaces.render import (
    excerpt_lines,
    place_line,
    query_terms,
    score_bar,
    title_line,
    with_place,
)
from rolebundle.interfaces.style import Style
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import corpus_path
from rolebundle.text.counts import counted

TASK = "What should we worry about before release 3.0?"
ROLES = ("mossline-security-reviewer", "mossline-product-strategist", "mossline-incident-responder")
NOW = "2026-11-15T00:00:00Z"
_PASSAGES = 3
_SENTENCE_CHARS = 160


@click.command()
@click.argument("task", default=TASK)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    shell_complete=role_names,
    help="Compare these roles instead. May be repeated.",
)
@click.option("--db", metavar="FILE", help="The demo's corpus file.  [default: cache folder]")
@request_options(RetrievalRequest, only=["lexical_only"])
@with_style
def demo(
    task: str, roles: tuple[str, ...], db: str | None, fields: dict[str, Any], style: Style
) -> None:
    """Ingest the sample corpus and show what three roles retrieve for one task.

    \b
    rolebundle overlay demo
    rolebundle overlay demo "What do we know about offline sync?"
    """
    path = corpus_path(db) if db else _cached()
    with Engine(path, overlay_folders((demo_overlays(),))) as engine:
        report = _ingest(Admin(engine.workspace), fields, is_cached=not db)
        click.echo(
            f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')} in {path} "
            f"({counted(report.added, 'file')} added, {report.unchanged} unchanged)",
            err=True,
        )
        fields_of_all = {"task": task, "limit": _PASSAGES, "now": NOW, **fields}
        names = dict.fromkeys(roles or ROLES)
        bundles = [engine.retrieve(request_from({**fields_of_all, "role": name})) for name in names]
    width = terminal_width()
    lines = [style("heading", cut(one_line(task), width))]
    for bundle in bundles:
        lines += ["", *_answer(bundle, width, style)]
    click.echo("\n".join([*lines, "", _overlap(bundles)]), color=style.color)
    click.echo("\nnext:", err=True)
    for command in _commands(bundles, path):
        click.echo(f"  {program()} {command}", err=True)


def _answer(bundle: RetrievalBundle, width: int, style: Style) -> Iterator[str]:
    """What a role gets: place, title and a sentence of each passage, and what is kept from it."""
    yield style("heading", bundle.role_id)
    terms = query_terms(bundle)
    for chunk in bundle.selected:
        score = f"{chunk.rank or 0:>3}  {chunk.scores.final:.2f} {score_bar(chunk.scores.final)}"
        yield from with_place(score, place_line(chunk.citation, chunk.chunk_id), width, style)
        yield title_line(chunk, width, style)
        yield from excerpt_lines(chunk, terms, width, style, chars=_SENTENCE_CHARS)
    rejected = [
        f"{count} {code}"
        for code, count in bundle.rejected_summary.items()
        if code not in RANKED_LOWER
    ]
    about = f"trust {bundle.provenance.trust_posture} · rejected: {', '.join(rejected) or 'none'}"
    yield from (style("minor", line) for line in wrapped(about, width, "     "))


def _overlap(bundles: Sequence[RetrievalBundle]) -> str:
    found = Counter(chunk.chunk_id for bundle in bundles for chunk in bundle.selected)
    several = sum(count > 1 for count in found.values())
    return f"{counted(len(found), 'passage')}, {several} of them for more than one role"


def _commands(bundles: Sequence[RetrievalBundle], path: Path) -> list[str]:
    """Commands that continue from here; they work as they stand in a shell."""
    task = quote(bundles[0].query.task_text)
    db = f"--db {quote(str(path))}"
    as_role = f"--overlay-dir {quote(str(demo_overlays()))} --now {NOW[:10]}"
    first, last = bundles[0], bundles[-1]
    commands = [f"retrieve {task} --role {first.role_id} {db} {as_role}"]
    if first.selected:
        chunk = first.selected[0]
        commands += [
            f"why {quote(chunk.chunk_id)} {task} --role {last.role_id} {db} {as_role}",
            f"get {quote(chunk.citation.locator or chunk.chunk_id)} {db}",
        ]
    return commands


def program() -> str:
    """How to call this program again; an environment need not be active."""
    called = Path(sys.argv[0])
    on_path = shutil.which("rolebundle")
    if on_path and called.exists() and Path(on_path).samefile(called):
        return "rolebundle"
    if called.name == "rolebundle" and os.access(called, os.X_OK):
        return quote(str(called))
    return f"{quote(sys.executable)} -m rolebundle"


def _ingest(admin: Admin, fields: dict[str, Any], *, is_cached: bool) -> IngestReport:
    folders, options = [data_folder("sample_corpus")], IngestOptions(**fields)
    try:
        return admin.ingest(folders, options)
    except EmbedderError as error:
        if not is_cached or error.code != "model_mismatch":
            raise
    # The cached corpus is of an earlier version and has the vectors of another model.
    embed(admin.workspace, ProviderSpec("static"))
    return admin.ingest(folders, options)


def _cached() -> Path:
    from platformdirs import user_cache_path

    # Each installation has a corpus of its own, of its own copy of the documents.
    installation = sha256(os.fsencode(data_folder("sample_corpus"))).hexdigest()[:8]
    return user_cache_path("rolebundle", appauthor=False) / f"demo-{installation}.db"
