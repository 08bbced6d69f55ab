"""What commands print: JSON, lines, progress; and the pages of `--html`.

A page is written whole or not at all, and replaces only an older page.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from rolebundle.contracts.base import Contract, writable
from rolebundle.errors import UsageError
from rolebundle.interfaces.layout import harmless, on_one_line
from rolebundle.storage.file import write_whole
from rolebundle.text.words import counted, first_of

if TYPE_CHECKING:
    from rolebundle.contracts.overlay import LintProblem

_MAX_LISTED = 20
_PAGE_MARK = b'<meta name="generator" content="rolebundle">'
_PAGE_HEAD_BYTES = 200
"""The mark of our pages stands before any text of documents."""


def print_json(
    value: Contract | Mapping[str, Any], *, indent: int | None = 2, exclude_none: bool = False
) -> None:
    """Print an answer as JSON; a contract with nulls unless they are excluded."""
    if isinstance(value, Contract):
        value = value.model_dump(exclude_none=exclude_none)
    click.echo(writable(json.dumps(value, ensure_ascii=False, indent=indent)))


def field_lines(answer: Contract | Mapping[str, Any]) -> Iterator[str]:
    """The fields of an answer, ``name: value``, without those that are empty.

    An object in a field, and each one in a list, stands on one line.
    """
    values = answer.model_dump() if isinstance(answer, Contract) else answer
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        texts = [_inner(item) if isinstance(item, dict) else _plain(item) for item in items]
        if value is None or not any(texts):
            continue
        # A list that is all of an answer needs no name.
        is_all = len(values) == 1 and isinstance(value, list)
        label = "" if is_all else f"{name.replace('_', ' ')}: "
        if isinstance(value, list) and isinstance(value[0], str):
            texts = [first_of(texts, _MAX_LISTED)]
        # Not cut, because a person may compare or copy it.
        yield from (on_one_line(writable(f"{label}{text}")) for text in texts)


def _inner(value: Mapping[str, Any]) -> str:
    texts = {key: _plain(inner) for key, inner in value.items()}
    return ", ".join(f"{key} {text}" for key, text in texts.items() if text)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(item for item in value if isinstance(item, str))
    if isinstance(value, dict):
        return f"({_inner(value)})" if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


_COMMAND = re.compile(r"`(rolebundle [^`]+?)(?: PATH)?`")
"""A command that is said to be next."""
_of_corpus: dict[str, str] = {}


def name_folders(folders: Sequence[Path], corpus: Path) -> None:
    """Let the commands that this one advises name its folders, or their corpus."""
    places = " ".join(f"--in {quote(str(folder))}" for folder in folders)
    _of_corpus.clear()
    if folders:
        _of_corpus.update({"--in": places, "--db": f"--db {quote(str(corpus))}"})


def with_folders(advice: str) -> str:
    """An advice whose commands name the folders of this command, so that they work as they are."""
    return _COMMAND.sub(lambda found: f"`{_with(found[1])}`", advice) if _of_corpus else advice


def _with(command: str) -> str:
    """A command with the folders, unless it names a corpus or needs none."""
    # What is named is read into the corpus itself.
    option = "--db" if command.startswith("rolebundle ingest ") else "--in"
    is_elsewhere = not {"--in", "--db", "keygen"}.isdisjoint(command.split())
    return command if is_elsewhere else f"{command} {_of_corpus[option]}"


def print_note(line: str) -> None:
    """Print a line on standard error. Standard output is for the answer alone."""
    click.echo(harmless(writable(with_folders(line))), err=True)


def print_first(lines: Sequence[str], *, rest: str = "") -> None:
    """Print the first lines of a list on standard error, and how many more there are.

    Args:
        lines: what is listed.
        rest: what is said of the others.
    """
    for line in lines[:_MAX_LISTED]:
        print_note(line)
    if len(lines) > _MAX_LISTED:
        print_note(f"and {len(lines) - _MAX_LISTED} more{rest}")


def finding_line(name: str, finding: LintProblem) -> str:
    """A problem of the overlay or the policy with this name."""
    place = f"{finding.place}: " if finding.place else ""
    return on_one_line(f"{name}: {finding.level}: {place}{finding.message} [{finding.code}]")


def finding_counts(findings: Iterable[LintProblem]) -> tuple[int, str]:
    """The number of errors, and those of errors and warnings as text."""
    counts = Counter(finding.level for finding in findings)
    errors = counts["error"]
    return errors, f"{counted(errors, 'error')}, {counted(counts['warning'], 'warning')}"


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each step on standard error, if that is a terminal.

    What it yields is called with a step, what is done of it, and its total.
    """
    is_hidden = sys.stderr is None or not sys.stderr.isatty()
    bar: Any = None

    def show(step: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None or bar.label != step:
            if bar:
                bar.render_finish()
            bar = click.progressbar(
                length=total, label=step, show_pos=True, hidden=is_hidden, file=sys.stderr
            )
        bar.length, bar.pos = total, done - 1
        bar.update(1)

    try:
        yield show
    finally:
        if bar:
            bar.render_finish()


def check_page_path(path: Path) -> Path:
    """The path, if :func:`write_page` may write there. It is also called before any work is done.

    Raises:
        UsageError: there is no such folder, or something else than a page has this name, such as
            the corpus or the input of the command.
    """
    if not path.parent.is_dir():
        raise UsageError("no_folder", f"--html {path}: there is no such folder", "create it first")
    # Nothing is read from a pipe or a device, because a pipe would wait for a writer.
    if path.exists() and not (path.is_file() and _PAGE_MARK in _beginning(path)):
        problem = f"--html {path}: is there, and is no page of rolebundle"
        step = "name a new file; only older pages are replaced"
        raise UsageError("not_a_page", problem, step)
    return path


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all, and say where it is. A link stays, and leads to the page.

    Raises:
        UsageError: see :func:`check_page_path`.
        OSError: it cannot be written.
    """
    # Again, because the command itself may have created a file with this name.
    write_whole(check_page_path(path).resolve(), page.encode())
    print_note(f"page: {path}")


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_PAGE_HEAD_BYTES)
