"""Options that several commands share, and how they become an engine or an admin."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rolebundle.contracts.terms import ACTIONS
from rolebundle.engine import Engine
from rolebundle.policy.overlays import overlay_folders
from rolebundle.storage.location import corpus_path
from rolebundle.workspace import Workspace

if TYPE_CHECKING:
    from rolebundle.admin import Admin

Command = Callable[..., Any]
RERANK_ENVIRONMENT = "ROLEBUNDLE_RERANK"


def db_option(command: Command) -> Command:
    """``--db FILE``."""
    return click.option(
        "--db",
        metavar="FILE",
        help="The corpus file. Default: $ROLEBUNDLE_DB, else your user data folder.",
    )(command)


def json_option(command: Command) -> Command:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def overlay_dir_option(command: Command) -> Command:
    """``--overlay-dir DIR``, as often as wanted."""
    return click.option(
        "--overlay-dir",
        "overlay_dirs",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Look for overlays here first. May be repeated.",
    )(command)


def purpose_options(command: Command) -> Command:
    """``--action ACTION``, ``--approved-by NAME`` and ``--agent ID``."""
    action = click.option(
        "--action",
        type=click.Choice(ACTIONS),
        help="What the passages are wanted for.  [default: read]",
    )
    approval = click.option(
        "--approved-by", "approval", metavar="NAME", help="The person who approved the action."
    )
    return action(approval(agent_option(command)))


def agent_option(command: Command) -> Command:
    """``--agent ID``."""
    return click.option(
        "--agent", metavar="ID", help="Who asks. Needed once `rolebundle scopes set` was run."
    )(command)


def embed_options(command: Command) -> Command:
    """``--embed-url URL`` and ``--allow-host HOST``."""
    url = click.option(
        "--embed-url",
        metavar="URL",
        default="",
        envvar="ROLEBUNDLE_EMBED_URL",
        help="The model's server.  [env: ROLEBUNDLE_EMBED_URL]",
    )
    host = click.option(
        "--allow-host",
        metavar="HOST",
        default="",
        envvar="ROLEBUNDLE_EMBED_ALLOW_HOST",
        help="The one other machine that may be it.  [env: ROLEBUNDLE_EMBED_ALLOW_HOST]",
    )
    return url(host(command))


def rerank_option(command: Command) -> Command:
    """``--rerank PROVIDER:MODEL``."""
    return click.option(
        "--rerank",
        metavar="PROVIDER:MODEL",
        help="Re-score the best passages by this model; none: do not.  [env: ROLEBUNDLE_RERANK]",
    )(command)


def rerank_setting() -> str:
    """``$ROLEBUNDLE_RERANK``: the model for requests that name none; empty for none."""
    return os.environ.get(RERANK_ENVIRONMENT, "").strip()


def engine_for(
    db: str | None,
    overlay_dirs: tuple[Path, ...] = (),
    *,
    embed_url: str = "",
    allow_host: str = "",
    agent: str | None = None,
) -> Engine:
    """The engine that a command's options name."""
    return Engine(
        Workspace(corpus_path(db), embed_url=embed_url, allow_host=allow_host),
        overlay_folders(overlay_dirs),
        agent=agent,
        rerank=rerank_setting(),
    )


def admin_for(db: str | None, *, embed_url: str = "", allow_host: str = "") -> Admin:
    """The admin that a command's options name."""
    # A one-shot `retrieve` must not load the readers of an ingest.
    from rolebundle.admin import Admin

    return Admin(Workspace(corpus_path(db), embed_url=embed_url, allow_host=allow_host))
