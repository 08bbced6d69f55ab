"""Purging: which documents a person names, and what comes of erasing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.receipt import Obstacle, Receipt
from rolebundle.errors import UsageError
from rolebundle.storage import purge as erasure
from rolebundle.storage.connection import Corpus
from rolebundle.storage.purge import Candidate, Extent
from rolebundle.text.globs import matches


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to go: documents by id or path, sources by id, and what a glob matches.

    Attributes:
        names: each the id of a document or source, or the path of a file.
        matching: matched against the path and the id of every document; empty matches none.
        as_sources: the names are those of sources, and of nothing else.
    """

    names: Sequence[str] = ()
    matching: str = ""
    as_sources: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a purge would erase. ``returning`` are files that the next ingest would bring back."""

    documents: tuple[str, ...]
    extent: Extent
    returning: tuple[str, ...]


def plan(corpus: Corpus, wanted: Wanted) -> Plan:
    """What would be erased.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing.
    """
    chosen = choose(erasure.candidates(corpus), wanted)
    return Plan(
        tuple(one.document_id for one in chosen),
        erasure.extent(corpus, [one.row for one in chosen]),
        tuple(sorted({one.location for one in chosen if Path(one.location).exists()})),
    )


def purge(corpus: Corpus, wanted: Wanted) -> Receipt:
    """Erase what is wanted, and all that earlier purges left to do.

    Args:
        corpus: a corpus open for writing.
        wanted: what is to go.

    Returns:
        The receipt; it is pending where bytes may be left, and :func:`finish` has to be called.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing. Nothing was erased.
        ConfigurationError: a fast index cannot be got at here. Nothing was erased.
    """
    with corpus.writing():
        chosen = choose(erasure.candidates(corpus), wanted)
        made = erasure.erase(corpus, chosen, iso_utc(datetime.now(UTC)))
    obstacle = erasure.finish(corpus)
    [receipt] = (one for one in erasure.receipts(corpus) if one.id == made)
    return _with_obstacle(receipt, obstacle)


def finish(corpus: Corpus, patience_ms: int | None = None) -> list[Receipt]:
    """Complete what earlier purges left to do; their receipts, none where nothing was left."""
    begun = {one.id for one in erasure.unfinished(corpus)}
    if not begun:
        return []
    obstacle = erasure.finish(corpus, patience_ms)
    return [_with_obstacle(one, obstacle) for one in erasure.receipts(corpus) if one.id in begun]


def _with_obstacle(receipt: Receipt, obstacle: Obstacle) -> Receipt:
    return (
        receipt if receipt.state == "done" else receipt.model_copy(update={"waiting_for": obstacle})
    )


def choose(candidates: Sequence[Candidate], wanted: Wanted) -> list[Candidate]:
    """The documents that are wanted, each once, by their ids.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing.
    """
    chosen: dict[int, Candidate] = {}
    by_document = {one.document_id: [one] for one in candidates}
    by_source, by_path = _grouped(candidates, "source_id"), _grouped(candidates, "path")
    for name in wanted.names:
        document, source = by_document.get(name, []), by_source.get(name, [])
        if wanted.as_sources:
            found = source
        elif document and source and {one.row for one in source} != {document[0].row}:
            raise UsageError(
                "ambiguous_name",
                f"{name!r} is the id of a document and of a source; nothing was purged",
                "add --source for the whole source, or name the document by its path",
            )
        else:
            found = document or source or by_path.get(name, [])
        if not found:
            raise _nothing(f"{name!r} names no {'source' if wanted.as_sources else 'document'}")
        chosen |= {one.row: one for one in found}
    if wanted.matching:
        found = [
            one
            for one in candidates
            if matches(wanted.matching, one.path) or matches(wanted.matching, one.document_id)
        ]
        if not found:
            raise _nothing(f"no document's path or id matches {wanted.matching!r}")
        chosen |= {one.row: one for one in found}
    return sorted(chosen.values(), key=lambda one: one.document_id)


def _grouped(candidates: Iterable[Candidate], by: str) -> dict[str, list[Candidate]]:
    groups: dict[str, list[Candidate]] = {}
    for one in candidates:
        groups.setdefault(getattr(one, by), []).append(one)
    return groups


def _nothing(message: str) -> UsageError:
    return UsageError(
        "nothing_to_purge",
        f"{message}; nothing was purged",
        "see `rolebundle status` for the sources, or try --matching GLOB with --dry-run",
    )
