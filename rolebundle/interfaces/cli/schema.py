"""`rolebundle schema`: the JSON Schema of each contract."""

from __future__ import annotations

import click

from rolebundle.contracts.mistakes import did_you_mean
from rolebundle.contracts.schema import SCHEMAS, schema_text
from rolebundle.errors import UsageError


@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of the contract NAME. Without NAME, list the names.

    \b
    rolebundle schema
    rolebundle schema request
    rolebundle schema bundle > bundle.schema.json
    """
    if name is None:
        for known in sorted(SCHEMAS):
            click.echo(known)
        return
    if name not in SCHEMAS:
        raise UsageError(
            "unknown_schema",
            f"there is no contract {name!r}{did_you_mean(name, SCHEMAS)}",
            f"contracts: {', '.join(sorted(SCHEMAS))}",
        )
    click.echo(schema_text(name), nl=False)
