"""`rolebundle multi-get`: read what several references name."""

from __future__ import annotations

import json
from typing import Any

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.operation_requests import MultiGetRequest
from rolebundle.errors import UsageError
from rolebundle.interfaces.cli.get import lookup_lines
from rolebundle.interfaces.cli.names import document_names
from rolebundle.interfaces.cli.options import (
    color_option,
    db_option,
    engine_for,
    json_option,
    request_options,
)
from rolebundle.interfaces.parse import parsed
from rolebundle.interfaces.shape_lookup import shaped_lookups
from rolebundle.interfaces.style import Style
from rolebundle.text.counts import counted


@click.command("multi-get")
@click.argument(
    "references",
    metavar="REFERENCE...",
    nargs=-1,
    required=True,
    shell_complete=document_names,
)
@db_option
@request_options(MultiGetRequest, only=["outline", "section", "agent", "max_chars"])
@json_option
@color_option
def multi_get(
    references: tuple[str, ...],
    db: str | None,
    fields: dict[str, Any],
    as_json: bool,
    style: Style,
) -> None:
    """Show several passages, documents or parts of them.

    REFERENCE is as for `get`, or a glob of paths. --max-chars bounds the text. The exit
    code is 2 if a reference gave nothing; the others are shown.

    \b
    rolebundle multi-get security/token-lifecycle-audit.md product/brief-release-3.0.md:1-20
    rolebundle multi-get "security/*.md" --max-chars 20000 --json
    """
    request = parsed(MultiGetRequest, {"ids": [*references], **fields})
    with engine_for(db, in_working_folder=True) as engine:
        answer = engine.multi_get(
            request.ids, request.agent, outline=request.outline, section=request.section
        )
    shaped = shaped_lookups(answer, request.max_chars)
    if as_json:
        values = shaped.model_dump(exclude_none=True)
        click.echo(writable(json.dumps(values, ensure_ascii=False, indent=2)))
    else:
        texts = ("\n".join(lookup_lines(lookup, style)) for lookup in shaped.lookups)
        click.echo(writable("\n\n".join(texts)), color=style.color)
        if shaped.next:
            click.echo(
                writable(f"{shaped.omitted} left out, from {shaped.next} on"),
                err=True,
            )
    if answer.failures:
        first = answer.failures[0]
        raise UsageError(
            first.code,
            f"{counted(len(answer.failures), 'reference')} gave nothing: {first.message}",
            first.hint,
        )
