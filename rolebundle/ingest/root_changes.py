"""Changes of roots: what is recorded after a run, moving a root, and removing one."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.roots import Root, RootChange
from rolebundle.errors import UsageError
from rolebundle.ingest.path_flags import FlagsByPath
from rolebundle.ingest.roots import (
    Visit,
    absolute,
    check_no_link,
    holder_of,
    is_below,
    moved,
    moved_flags,
    moved_path,
    real_location,
)
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import store
from rolebundle.storage.corpus_state import corpus_counts, increment_generation
from rolebundle.storage.records import path_flags, roots


def root_at(corpus: Corpus, path: Path) -> Root:
    """The root with this path; it may be missing.

    Raises:
        UsageError: there is none.
    """
    known = roots.load(corpus)
    location = str(absolute(path, known))
    root = next((root for root in known if root.location == location), None)
    if root is not None:
        return root
    holder = holder_of(known, location)
    named = [root for root in known if path.name in (root.source_id, Path(root.location).name)]
    guess = f"did you mean {quote(named[0].location)}? " if len(named) == 1 else ""
    raise UsageError(
        "no_root",
        f"{path}: is {'a part of the root ' + holder.location if holder else 'no root'}",
        f"{guess}`rolebundle corpus roots list` shows the roots",
    )


def move_root(corpus: Corpus, old: Path, new: Path) -> RootChange:
    """Let a root and the roots below it have another path. Ids, vectors and options stay.

    Raises:
        UsageError: ``old`` is no root, or ``new`` does not exist, is a symbolic link, or belongs to
            another root.
    """
    with corpus.writing():
        root = root_at(corpus, old)
        known = roots.load(corpus)
        other_roots = [
            known_root for known_root in known if not is_below(known_root.location, root.location)
        ]
        target = str(absolute(new, other_roots))
        check_no_link(Path(target))
        if not os.path.lexists(target):
            raise UsageError(
                "path_missing", f"{new}: no such file or folder", "move the files first"
            )
        is_taken = any(is_below(other_root.location, target) for other_root in other_roots)
        if is_taken or roots.files_below(corpus, target):
            raise UsageError(
                "root_exists",
                f"{new}: the corpus has documents from it already",
                "if it is a root, this removes them: "
                f"`rolebundle corpus roots remove {quote(str(new))} --yes`",
            )
        moved_documents = apply_move(corpus, root.location, target)
        roots.save(corpus, [moved(known_root, root.location, target) for known_root in known])
    return RootChange(location=target, documents=moved_documents)


def remove_root(corpus: Corpus, path: Path, *, confirmed: bool) -> RootChange:
    """Forget a root and remove its documents.

    The roots below it that share its source go with it; the others stay.

    Args:
        corpus: a corpus, open for writing if ``confirmed``.
        path: the root; it may be missing.
        confirmed: if false, only count the documents.

    Raises:
        UsageError: it is no root.
    """
    root = root_at(corpus, path)
    if not confirmed:
        return RootChange(location=root.location, documents=root.documents)
    with corpus.writing():
        known = roots.load(corpus)
        removed = {
            known_root.location
            for known_root in known
            if known_root.source_id == root.source_id
            and is_below(known_root.location, root.location)
        }
        remaining_roots = [known_root for known_root in known if known_root.location not in removed]
        inside = [
            nested_root.location
            for nested_root in remaining_roots
            if is_below(nested_root.location, root.location)
        ]
        files = [
            file
            for file in roots.files_below(corpus, root.location)
            if not any(is_below(file, location) for location in inside)
        ]
        before = corpus_counts(corpus).documents
        store.remove_files(corpus, files)
        store.drop_unused(corpus)
        roots.save(corpus, remaining_roots)
        increment_generation(corpus)
        after = corpus_counts(corpus).documents
    return RootChange(location=root.location, documents=before - after)


def apply_move(corpus: Corpus, old: str, new: str) -> int:
    """Let the files below a path, and its flags, have another one.

    Return the number of their documents. The roots are not changed.

    Call it inside a write transaction.
    """
    files = roots.files_below(corpus, old)
    roots.move_files(corpus, {file: moved_path(file, old, new) for file in files})
    flags: FlagsByPath = path_flags.load(corpus)
    path_flags.save(corpus, moved_flags(flags, real_location(Path(old)), real_location(Path(new))))
    increment_generation(corpus)
    return roots.count_documents(corpus, new)


def record_counts(corpus: Corpus, visits: Sequence[Visit], changed: Container[str]) -> None:
    """Record how many documents the roots have, and when the run changed the visited ones."""
    now = iso_utc(datetime.now(UTC))
    complete = {visit.root.location for visit in visits if str(visit.start) == visit.root.location}
    before = roots.load(corpus)
    counts = {root.location: roots.count_documents(corpus, root.location) for root in before}
    after = []
    for root in before:
        inner = [
            inner.location
            for inner in before
            if inner != root
            and holder_of((outer for outer in before if outer != inner), inner.location) == root
        ]
        updates: dict[str, object] = {
            "documents": counts[root.location] - sum(counts[location] for location in inner)
        }
        is_new = root.location in changed or not root.synced_at
        if root.location in complete and is_new:
            updates["synced_at"] = now
        after.append(root.model_copy(update=updates))
    if after != before:
        with corpus.writing():
            roots.save(corpus, after)
