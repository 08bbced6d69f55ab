"""What commands print: JSON, lines, lengths of time, progress; and the pages of `--html`.

A page is written whole or not at all, and replaces only an older page.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rolebundle.contracts.base import Contract, writable
from rolebundle.errors import UsageError
from rolebundle.interfaces.layout import on_one_line
from rolebundle.storage.file import partial_file, sync_file

if TYPE_CHECKING:
    from rolebundle.contracts.overlay import LintProblem

_MAX_LISTED = 20
_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))
_PAGE_MARK = b'<meta name="generator" content="rolebundle">'
_PAGE_HEAD_BYTES = 200
"""The mark of our pages stands before any text of documents."""


def time_text(seconds: float) -> str:
    """A time in the largest unit that gives a number of at least one."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def print_json(
    value: Contract | Mapping[str, Any],
    *,
    indent: int | None = 2,
    exclude_none: bool = False,
    exclude_unset: bool = False,
) -> None:
    """Print an answer as JSON; a contract with nulls and defaults unless they are excluded."""
    if isinstance(value, Contract):
        value = value.model_dump(exclude_none=exclude_none, exclude_unset=exclude_unset)
    click.echo(writable(json.dumps(value, ensure_ascii=False, indent=indent)))


def print_note(line: str) -> None:
    """Print a line on standard error. Standard output is for the answer alone."""
    click.echo(writable(line), err=True)


def print_first(lines: Sequence[str], *, most: int | None = _MAX_LISTED, rest: str = "") -> None:
    """Print the first lines of a list on standard error, and how many more there are.

    Args:
        lines: what is listed.
        most: how many lines are printed; ``None`` for all.
        rest: what is said of the others.
    """
    for line in lines[:most]:
        print_note(line)
    if most is not None and len(lines) > most:
        print_note(f"and {len(lines) - most} more{rest}")


def finding_line(name: str, finding: LintProblem) -> str:
    """A problem of the overlay or the policy with this name."""
    place = f"{finding.place}: " if finding.place else ""
    return on_one_line(f"{name}: {finding.level}: {place}{finding.message} [{finding.code}]")


class Bars:
    """Bars on standard error, if that is a terminal. Called with step, what is done, and total."""

    def __init__(self, bars: Any = None) -> None:
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show how far a step is, in units of its own."""
        if self._bars is None:
            return
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step)
        self._bars.update(self._tasks[step], completed=done, total=total)


@contextmanager
def progress_bar() -> Iterator[Bars]:
    """Draw bars on standard error until the end of the block, if that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    if sys.stderr is None or not sys.stderr.isatty():
        yield Bars()
        return
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield Bars(bars)


def check_page_path(path: Path) -> Path:
    """The path. A file that :func:`write_page` cannot write is refused before any work is done.

    Raises:
        UsageError: there is no such folder, it is a folder itself, or something else than a page
            has this name, such as the corpus or the input of the command.
        OSError: no file can be created there.
    """
    target = _page_target(path)
    if not target.parent.is_dir():
        raise UsageError("no_folder", f"--html {path}: there is no such folder", "create it first")
    with partial_file(target):
        return path


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all, and say where it is. A link stays, and leads to the page.

    Raises:
        UsageError: something else than a page has this name.
        OSError: it cannot be written.
    """
    # Again, because the command itself may have created a file with this name.
    target = _page_target(path)
    with partial_file(target) as partial:
        partial.write_text(page, encoding="utf-8")
        sync_file(partial)
        partial.replace(target)
    print_note(f"page: {path}")


def _page_target(path: Path) -> Path:
    """The file behind links, which does not exist yet or is an older page.

    Raises:
        UsageError: it is a folder, or a file that is no page.
    """
    target = Path(os.path.realpath(path))
    if path.is_dir():
        raise UsageError("is_folder", f"--html {path}: is a folder", "name a file in it")
    # What a link of /proc leads to, such as a pipe, exists, but not under the name in the link.
    if (path.exists() or os.path.lexists(target)) and not _is_page(target):
        raise UsageError(
            "not_a_page",
            f"--html {path}: is there, and is no page of rolebundle",
            "name a new file; only older pages are replaced",
        )
    return target


def _is_page(path: Path) -> bool:
    # A pipe would wait for a writer, and a device is no place for a page.
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return _PAGE_MARK in stream.read(_PAGE_HEAD_BYTES)
