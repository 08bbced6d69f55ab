"""How the older states of replicas in their stores are printed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rolebundle.contracts.base import writable
from rolebundle.contracts.purge import StoreHistory
from rolebundle.interfaces.cli.output import print_first


def print_erased(stores: Sequence[StoreHistory]) -> None:
    """Print what was removed."""
    for store in stores:
        print_first([f"removed from {store.target}: {state}" for state in store.erased])


def print_not_erased(stores: Sequence[StoreHistory]) -> None:
    """Print what is left, and why, to standard error."""
    for store in stores:
        print_first([f"older state in {store.target}: {state}" for state in store.left], err=True)
        if store.problem:
            click.echo(writable(f"{store.target}: {store.problem}"), err=True)
        if store.outdated:
            click.echo(
                writable(
                    f"{store.target}: the present replica may hold what was purged, until it is "
                    "published again"
                ),
                err=True,
            )
    if stores:
        click.echo(
            "versions, snapshots and backups that a store makes by itself are not seen from here",
            err=True,
        )
