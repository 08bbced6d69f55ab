"""The rerank cache of a command that ingests: filled at the end, or in the background."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.request import NO_RERANK
from rolebundle.errors import RolebundleError
from rolebundle.interfaces.cli.options import (
    RERANK_ENVIRONMENT,
    Command,
    rerank_setting,
    rerank_url_setting,
)
from rolebundle.interfaces.cli.output import progress_bar
from rolebundle.retrieval.rerank.background import INCOMPLETE
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.admin import Admin
    from rolebundle.embedding.registry import ProviderSpec
    from rolebundle.retrieval.rerank.background import Warming
    from rolebundle.retrieval.rerank.fill_cache import WarmReport
    from rolebundle.workspace import Workspace


def warm_option(command: Command) -> Command:
    """``--warm/--no-warm``."""
    return click.option(
        "--warm/--no-warm",
        default=True,
        help="Whether the new chunks are embedded into the rerank cache afterwards, if "
        f"{RERANK_ENVIRONMENT} names a model.  [default: yes]",
    )(command)


def cached_rerank_spec(workspace: Workspace) -> ProviderSpec | None:
    """The model of ``$ROLEBUNDLE_RERANK``; ``None`` if there is none, or nothing of it is cached.

    Raises:
        ConfigurationError, UsageError: the model or its address is malformed.
    """
    from rolebundle.embedding.registry import RERANK_SERVERS, parse_rerank_spec

    model = rerank_setting()
    if model in ("", NO_RERANK):
        return None
    url = rerank_url_setting() or workspace.embed_url
    spec = parse_rerank_spec(model, url, workspace.allow_host)
    return None if spec.provider in RERANK_SERVERS else spec


def warm_afterwards(admin: Admin) -> None:
    """Fill the rerank cache. What hinders it is a warning, and so is Ctrl-C.

    The command has reported its own work before.
    """
    is_announced = False

    def show_progress(step: str, done: int, total: int) -> None:
        nonlocal is_announced
        if not is_announced:
            _print("filling the rerank cache; Ctrl-C ends this, and the next ingest continues")
        is_announced = True
        progress(step, done, total)

    try:
        spec = cached_rerank_spec(admin.workspace)
        if spec is None:
            return
        with progress_bar() as progress:
            report = admin.indexes.warm(spec, progress=show_progress)
    except RolebundleError as error:
        _print(INCOMPLETE.format(error))
    except KeyboardInterrupt:
        _print(INCOMPLETE.format("interrupted; the next ingest continues"))
    else:
        if report.embedded:
            _print(f"{counted(report.embedded, 'text')} embedded into the rerank cache")
        if report.problem:
            _print(INCOMPLETE.format(report.problem))


def warming_for(
    workspace: Workspace, print_line: Callable[[str], None] | None = None
) -> Warming | None:
    """Fills the cache in the background until the command ends; ``None`` if none is configured.

    Args:
        workspace: the corpus.
        print_line: called with each line for a person.
    """
    print_line = print_line or _print
    try:
        spec = cached_rerank_spec(workspace)
    except RolebundleError as error:
        print_line(INCOMPLETE.format(error))
        return None
    if spec is None:
        return None
    from rolebundle.admin import Admin
    from rolebundle.embedding.registry import SERVED
    from rolebundle.retrieval.rerank.background import Warming

    def warm(pause: Callable[[], None]) -> WarmReport:
        # A connection of its own, because a connection takes one call at a time.
        with Admin(workspace.path) as admin:
            return admin.indexes.warm(spec, pause=pause)

    warming = Warming(warm, print_line, is_served=spec.provider in SERVED)
    click.get_current_context().call_on_close(warming.stop)
    return warming


def _print(line: str) -> None:
    with suppress(OSError):
        click.echo(writable(line), err=True)
