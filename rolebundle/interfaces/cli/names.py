"""Names that a shell completes: roles, documents and files.

A completion never fails and shows nothing that the command itself would not show. A shell may not
quote what it inserts, so only names without characters that mean something to it are offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SAFE = re.compile(r"[\w./@+][\w./@+,-]*")
_MOST = 200


def role_names(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The roles that have an overlay in the folders that the command would use."""
    from rolebundle.policy.overlays import overlay_folders
    from rolebundle.storage.location import corpus_path

    names: list[str] = []
    with suppress(Exception):
        folders = overlay_folders(
            context.params.get("overlay_dirs") or (), corpus_path(context.params.get("db"))
        )
        names = [file.stem for folder in folders for file in folder.glob("*.json")]
    return _items(sorted(set(names)), incomplete)


def document_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Paths and ids of documents that the command's agent may see, or else files."""
    from rolebundle.contracts.operation_requests import ListRequest
    from rolebundle.engine import Engine
    from rolebundle.storage.location import corpus_path

    names: list[str] = []
    if not incomplete or _SAFE.fullmatch(incomplete):
        with suppress(Exception), Engine(corpus_path(context.params.get("db"))) as engine:
            agent = context.params.get("agent")
            for glob in (f"{incomplete}*", f"{incomplete}*/**"):
                with suppress(Exception):
                    request = ListRequest(prefix=glob, agent=agent, limit=_MOST)
                    names += [
                        name
                        for document in engine.ls(request).documents
                        for name in (document.path, document.document_id)
                    ]
    return _items(dict.fromkeys(names), incomplete) or file_names(context, parameter, incomplete)


def file_names(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The files of this machine, which the shell finds by itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    fitting = [name for name in names if name.startswith(incomplete) and _SAFE.fullmatch(name)]
    return [CompletionItem(name) for name in fitting[:_MOST]]
