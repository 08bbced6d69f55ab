"""`rolebundle overlay suggest`: edits of an overlay, from the questions that its role has asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from rolebundle.contracts.authoring import OverlaySuggestions
from rolebundle.interfaces.cli.options import db_option, json_option, overlay_dir_option
from rolebundle.interfaces.cli.output import print_answer
from rolebundle.policy.overlays import overlay_folders
from rolebundle.retrieval.answer.passage_text import one_line
from rolebundle.storage.location import corpus_path
from rolebundle.text.counts import counted

_LINE_CHARS = 1_000


@click.command("suggest")
@click.argument("role", metavar="ROLE")
@overlay_dir_option
@db_option
@json_option
def suggest_command(
    role: str, overlay_dirs: tuple[Path, ...], db: str | None, as_json: bool
) -> None:
    """Propose edits of a role's overlay, from what the role has asked. Nothing is written.

    It asks the newest recorded questions again, and reports rules that keep back an answer,
    questions without a good answer, stale answers, and terms and rules of your own overlay that
    match nothing. The audit must keep the texts of questions: `rolebundle audit set --mode on
    --query text`.

    --json has the edits as JSON merge patches (RFC 7396). The patch of all edits together forbids
    and allows the same as before.

    \b
    rolebundle overlay suggest release-manager
    rolebundle overlay suggest release-manager --json
    """
    from rolebundle.authoring.drafting import Target
    from rolebundle.authoring.suggestions import suggest

    corpus = corpus_path(db)
    target = Target(corpus, overlay_folders(overlay_dirs, corpus), db or "")
    found = suggest(role, target)
    copies = ["overlay", "new", found.role_id, "--template", found.role_id]
    copy_command = target.command(*copies) if found.is_shipped else ""
    print_answer(found, _lines(found, copy_command), as_json=as_json, indent=2)


def _lines(found: OverlaySuggestions, copy_command: str) -> Iterator[str]:
    """The lines of text. ``copy_command`` copies a role of rolebundle; empty for another role."""
    yield (
        f"{found.role_id}: {counted(found.recorded, 'recorded answer')}, "
        f"{counted(found.asked, 'question')} asked again"
    )
    if found.problem:
        yield f"note: {found.problem}"
    for number, suggestion in enumerate(found.suggestions, start=1):
        place = f"{suggestion.place}: " if suggestion.place else ""
        yield f"\n{number}. {one_line(f'{place}{suggestion.message}', _LINE_CHARS)}"
        for question in suggestion.questions:
            yield f"   asked: {one_line(question)}"
        if suggestion.patch is not None:
            yield f"   edit: {json.dumps(suggestion.patch, ensure_ascii=False)}"
    if not found.suggestions:
        yield "nothing to suggest"
    elif copy_command:
        yield f"\n{found.role_id} is a role of rolebundle, so edit a copy: `{copy_command}`"
    elif found.patch:
        yield f"\nedit {one_line(found.path, _LINE_CHARS)}; --json has all safe edits as one patch"
