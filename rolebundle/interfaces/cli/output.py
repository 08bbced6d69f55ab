"""What several commands print: numbers, names of files, JSON, and progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rolebundle.contracts.base import Contract, writable
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.text.counts import counted

if TYPE_CHECKING:
    from rolebundle.ingest.report import Reading

_DETAIL_CHARS = 80
_MAX_LISTED = 20
_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """A time in the largest unit that gives a number of at least one."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def print_json(value: Contract, *, indent: int | None = None, exclude_unset: bool = False) -> None:
    """Print a contract as JSON, with nulls, unless ``exclude_unset`` leaves out absent fields."""
    values = value.model_dump(exclude_unset=exclude_unset)
    click.echo(writable(json.dumps(values, ensure_ascii=False, indent=indent)))


def print_answer(
    answer: Contract,
    lines: Iterable[str],
    *,
    as_json: bool,
    indent: int | None = None,
    empty: str = "",
) -> None:
    """Print a contract as JSON, or else as lines for a person.

    If there are no lines, ``empty`` is printed on standard error.
    """
    if as_json:
        print_json(answer, indent=indent)
        return
    text = "\n".join(lines)
    if text:
        click.echo(writable(text))
    elif empty:
        click.echo(empty, err=True)


def print_first(lines: Sequence[str], *, err: bool = False) -> None:
    """Print the first 20 lines of a list, and how many more there are."""
    for line in lines[:_MAX_LISTED]:
        click.echo(writable(line), err=err)
    if len(lines) > _MAX_LISTED:
        click.echo(f"and {len(lines) - _MAX_LISTED} more", err=err)


class Bars:
    """Bars on standard error, if that is a terminal. Called with a step, what is done, the total.

    A step whose total is not known yet, or that tells nothing while it runs, has a moving bar.
    """

    def __init__(self, bars: Any = None) -> None:
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show how far a step is, in units of its own."""
        self._show(step, done, total)

    def reading(self, now: Reading) -> None:
        """Show how far the reading of files is."""
        megabytes = f"{now.bytes / 1e6:,.1f} of {now.of_bytes / 1e6:,.1f} MB"
        parts = [megabytes, counted(now.chunks, "chunk"), *([now.slow] if now.slow else [])]
        self._show("reading", now.files, now.of_files, ", ".join(parts))

    def _show(self, step: str, done: int, total: int, detail: str = "") -> None:
        if self._bars is None:
            return
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step, detail="")
        self._bars.update(
            self._tasks[step],
            completed=done,
            # A bar without a total moves.
            total=None if step == "indexing" and done < total else total,
            detail=one_line(writable(detail), _DETAIL_CHARS),
        )


@contextmanager
def progress_bar() -> Iterator[Bars]:
    """Draw bars on standard error until the end of the block, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield Bars()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield Bars(bars)
