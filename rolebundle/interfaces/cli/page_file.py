"""The file of `--html`: a page is written whole or not at all, and replaces only an older page."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rolebundle.errors import UsageError
from rolebundle.storage.files.partial import partial_file, sync_file

_PAGE_MARK = b'<meta name="generator" content="rolebundle">'
_PAGE_HEAD_BYTES = 200
"""The mark of our pages stands before any text of documents."""


def check_page_path(path: Path) -> None:
    """Refuse a file that :func:`write_page` cannot write, before any work is done.

    Raises:
        UsageError: there is no such folder, it is a folder itself, or something else than a page
            has this name, such as the corpus or the input of the command.
        OSError: no file can be created there.
    """
    target = _page_target(path)
    if not target.parent.is_dir():
        raise UsageError("no_folder", f"--html {path}: there is no such folder", "create it first")
    with partial_file(target):
        pass


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
    click.echo(f"page: {path}", err=True)


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
