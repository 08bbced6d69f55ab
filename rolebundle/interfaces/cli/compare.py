"""`rolebundle compare`: one task, what each of several roles gets, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.comparison import Overlap
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    html_option,
    json_option,
    request_options,
)
from rolebundle.interfaces.layout import folded, terminal_width
from rolebundle.interfaces.model_text import comparison_lines
from rolebundle.interfaces.parse import request_from
from rolebundle.retrieval.explanation.compare import compare_roles


@click.command()
@click.argument("task")
@click.option(
    "--roles", required=True, metavar="ROLE,ROLE[,…]", help="Two or more roles, with commas."
)
@engine_options
@request_options(
    RetrievalRequest,
    only=[
        "agent",
        "action",
        "approval",
        "where",
        "seen",
        "limit",
        "lexical_only",
        "rerank",
        "as_of",
        "now",
    ],
)
@json_option
@html_option
def compare(
    task: str,
    roles: str,
    fields: dict[str, Any],
    options: EngineOptions,
    as_json: bool,
    html_file: Path | None,
) -> None:
    """Compare what several ROLES get for TASK: what they share, what differs, and why.

    \b
    rolebundle compare "Plan release 3.0" --roles product-manager,security-reviewer
    rolebundle compare "Plan release 3.0" --roles technical-writer,incident-responder --json
    rolebundle compare "Plan 3.0" --roles product-manager,technical-writer --html roles.html

    The page of --html also has the answer without a role.
    """
    role_ids = list(dict.fromkeys(role.strip() for role in roles.split(",") if role.strip()))
    if len(role_ids) < 2:
        raise click.UsageError("--roles: name at least two different roles, separated by commas")
    request = request_from({"task": task, **fields})
    with options.engine() as engine:
        bundles = engine.retrieve_for_roles(request, role_ids, without_role=html_file is not None)
    if html_file is not None:
        from rolebundle.interfaces.cli.page_file import write_page
        from rolebundle.interfaces.pages.views import compare_page

        write_page(html_file, compare_page(compare_roles(bundles)))
    comparison = compare_roles(bundles[-len(role_ids) :])
    if as_json:
        click.echo(comparison.model_dump_json(exclude_none=True, indent=2))
        return
    answer = comparison.model_dump(exclude_none=True)
    lines = [*map(_overlap, comparison.overlaps), "", *comparison_lines(answer)]
    for line in lines:
        for part in folded(line, terminal_width()):
            click.echo(writable(part))


def _overlap(overlap: Overlap) -> str:
    if overlap.chunks == 1 and not overlap.shared_chunks:
        return f"{overlap.first} and {overlap.second}: neither got a passage"
    return (
        f"{overlap.first} and {overlap.second}: {overlap.chunks:.0%} of the passages in common "
        f"({overlap.shared_chunks}), {overlap.documents:.0%} of the documents "
        f"({overlap.shared_documents})"
    )
