"""What several commands print: numbers, names of files, JSON, and progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from rolebundle.contracts.base import Contract
from rolebundle.text.counts import counted

__all__ = ["Progress", "counted", "duration", "print_json", "progress_bar", "writable"]

Progress = Callable[[str, int, int], None]

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """A time in the largest unit that gives a number of at least one."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def writable(text: str) -> str:
    """The text with unpaired surrogates as escapes, which are also JSON's.

    A file's name may hold bytes that are not valid text. They cannot be written as UTF-8.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def print_json(value: Contract, *, indent: int | None = None, exclude_unset: bool = False) -> None:
    """Print a contract as JSON, with nulls, unless ``exclude_unset`` leaves out absent fields."""
    values = value.model_dump(exclude_unset=exclude_unset)
    click.echo(writable(json.dumps(values, ensure_ascii=False, indent=indent)))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A function to call with what is done, the count and the total.

    It draws bars on standard error. If that is not a terminal, it does nothing.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total)

        yield show
