"""`rolebundle policy bridges`: similar passages in different scopes."""

from __future__ import annotations

import click

from rolebundle.contracts.scopes import BridgePair, BridgeReport
from rolebundle.interfaces.cli.options import admin_for, db_option, json_option
from rolebundle.interfaces.cli.output import print_answer, progress_bar
from rolebundle.policy.bridges import find_bridges
from rolebundle.text.counts import counted

_THRESHOLD = 0.6
"""The lowest similarity, between 0 (what unrelated texts have) and 1 (the same text)."""


@click.command()
@click.option(
    "--limit", type=int, default=50, show_default=True, help="Pairs of documents, nearest first."
)
@db_option
@json_option
def bridges(limit: int, db: str | None, as_json: bool) -> None:
    """Find passages in different scopes whose vectors are close, for the owner of the corpus.

    A pair may be material that could be linked, or a document that is in the wrong scope. For two
    documents the closest two passages are shown, with their similarity. The closest pairs under the
    threshold are shown, too. Agents cannot call this.

    \b
    rolebundle policy bridges
    rolebundle policy bridges --limit 20 --json
    """
    with admin_for(db) as admin, progress_bar() as progress:
        corpus = admin.workspace.answering_corpus
        report = find_bridges(corpus, _THRESHOLD, limit, progress)
        admin.workspace.recorder.note(corpus, "bridges", allowed=len(report.bridges))
    lines = [_lines(bridge) for bridge in report.bridges]
    if report.below:
        lines += [f"under the threshold of {report.threshold}:", *map(_lines, report.below)]
    print_answer(report, lines, as_json=as_json, indent=2)
    if not as_json:
        click.echo(_summary(report), err=True)


def _lines(bridge: BridgePair) -> str:
    sides = (bridge.left, bridge.right)
    width = max(len(side.scope) for side in sides)
    lines = [f"{side.scope:<{width}}  {side.locator}  {side.title}" for side in sides]
    return f"{bridge.similarity:.3f}  {lines[0]}\n       {lines[1]}"


def _summary(report: BridgeReport) -> str:
    if report.scopes < 2:
        return f"{report.scopes} scope: there is nothing to compare; see `rolebundle policy`"
    pairs = f"{counted(len(report.bridges), 'pair')} of documents over {report.threshold}"
    more = "; there are more, see --limit" if report.more else ""
    return f"{pairs}, of {report.vectors:,} vectors in {report.scopes} scopes{more}"
