"""`rolebundle bridges`: passages in different scopes that say nearly the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.progress import progress_bar

if TYPE_CHECKING:
    from rolebundle.policy.bridges import Bridge, Bridges


@click.command()
@click.option("--threshold", type=float, default=0.78, show_default=True, help="The least cosine.")
@click.option(
    "--limit", type=int, default=50, show_default=True, help="Pairs of documents, nearest first."
)
@db_option
@json_option
def bridges(threshold: float, limit: int, db: str | None, as_json: bool) -> None:
    """Passages in different scopes whose vectors are close, for whoever runs the corpus.

    Each pair says "these materials could be linked", and just as well "this should not be in that
    scope". Of two documents the closest two passages are named. No agent is offered this.

    \b
    rolebundle bridges
    rolebundle bridges --threshold 0.9 --limit 20 --json
    """
    with admin_for(db) as admin, progress_bar() as progress:
        found = admin.find_bridges(threshold, limit, progress=progress)
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    for bridge in found.bridges:
        click.echo(_lines(bridge))
    click.echo(_summary(found), err=True)


def _lines(bridge: Bridge) -> str:
    sides = (bridge.left, bridge.right)
    width = max(len(side.scope) for side in sides)
    lines = [f"{side.scope:<{width}}  {side.locator}  {side.title}" for side in sides]
    return f"{bridge.cosine:.3f}  {lines[0]}\n       {lines[1]}"


def _summary(found: Bridges) -> str:
    if found.scopes < 2:
        return f"{found.scopes} scope: there is nothing to compare; see `rolebundle scopes`"
    shown = f"{len(found.bridges)} pairs of documents over {found.threshold}"
    more = "; there are more, see --limit" if found.more else ""
    return f"{shown}, of {found.vectors:,} vectors in {found.scopes} scopes{more}"
