"""The progress bar of long work: on standard error, and only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolebundle.ingest.indexes import Progress


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Something to call with what is done; ``None`` where nobody watches."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        names = ("reading", "embedding", "comparing")
        tasks = {name: bar.add_task(name, visible=False) for name in names}

        def show(what: str, done: int, total: int) -> None:
            bar.update(tasks[what], completed=done, total=total, visible=True)

        yield show
