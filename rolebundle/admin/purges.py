"""Purging: select the documents that a person names, and erase them.

How bytes are erased, and how a purge survives a crash, is in :mod:`rolebundle.storage.purge`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from rolebundle.contracts.documents import iso_utc
from rolebundle.contracts.upkeep import PublishedCopy, PurgePreview, Receipt
from rolebundle.errors import UsageError
from rolebundle.policy.access import publish_command
from rolebundle.policy.audit import Recorder
from rolebundle.storage import purge as purge_storage
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.decisions import DecisionKey, decisions, parse_id
from rolebundle.storage.documents import DocumentName, document_names
from rolebundle.storage.facts import citing as citing_facts
from rolebundle.storage.publications import Publication, carrying, publications
from rolebundle.text.paths import locations, matches
from rolebundle.text.references import MAX_SUGGESTIONS, is_glob, named_document, similar_names
from rolebundle.workspace import Workspace


class Selection(NamedTuple):
    """What a person names to be purged.

    Attributes:
        names: each the id of a document or source, the path of a file, or a glob for paths or ids.
        decisions: ids of decisions.
        folder: where relative paths on this machine begin; ``None``: only absolute ones are known.
    """

    names: Sequence[str]
    decisions: Sequence[str] = ()
    folder: str | None = None


def _copies(affected: Iterable[Publication]) -> list[PublishedCopy]:
    shown = ("target", "agent", "generation", "published_at", "refuses_at")
    return [
        PublishedCopy(
            **{name: getattr(publication, name) for name in shown},
            next_step=publish_command(publication),
        )
        for publication in affected
    ]


def _with_facts(
    corpus: Corpus, selection: Selection
) -> tuple[list[DocumentName], list[DocumentName]]:
    """The selected documents with the facts that cite them; and the facts not selected."""
    purgeable = document_names(corpus, facts=True)
    selected = _select_documents(purgeable, selection)
    citing = citing_facts(corpus, [document.document_id for document in selected])
    facts = [name for name in purgeable if name.rowid in citing and name not in selected]
    return sorted([*selected, *facts], key=attrgetter("document_id")), facts


def _select_documents(
    documents: Sequence[DocumentName], selection: Selection
) -> list[DocumentName]:
    """The selected ones of all documents, each once, in the order of their ids.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing.
    """

    def with_any(key: str, values: Collection[str]) -> list[DocumentName]:
        return [document for document in documents if getattr(document, key) in values]

    selected: set[DocumentName] = set()
    for name in selection.names:
        with_id, of_source = with_any("document_id", (name,)), with_any("source_id", (name,))
        if with_id and of_source and with_id != of_source:
            problem = f"{name!r} is the id of a document and of a source; nothing was purged"
            step = "name the document by its path, or the source's documents by a glob of paths"
            raise UsageError("ambiguous_name", problem, step)
        named = (
            with_id
            or of_source
            or with_any("location", locations(name, selection.folder))
            or with_any("path", (name,))
        )
        if not named and is_glob(name):
            named = [
                document
                for document in documents
                if matches(name, document.path) or matches(name, document.document_id)
            ]
        if not named:
            raise _nothing_to_purge(name, documents)
        selected.update(named)
    return sorted(selected, key=attrgetter("document_id"))


def _select_decisions(corpus: Corpus, names: Sequence[str]) -> list[DecisionKey]:
    """The selected decisions, each once.

    Raises:
        UsageError: there is no such decision, or it is erased already.
    """
    if not names:
        return []
    known = {parse_id(record.id) for record in decisions(corpus, "") if record.text}
    keys = {name: parse_id(name) for name in names}
    for name, key in keys.items():
        if key not in known:
            problem = f"{name!r} names no decision; nothing was purged"
            step = "see `rolebundle decisions list --all` for their ids"
            raise UsageError("nothing_to_purge", problem, step)
    return sorted({key for key in keys.values() if key is not None})


def _nothing_to_purge(name: str, documents: Sequence[DocumentName]) -> UsageError:
    known = ((document.document_id, document.path) for document in documents)
    near = similar_names(named_document(name), known)
    guess = f"did you mean {' or '.join(near[:MAX_SUGGESTIONS])}? " if near else ""
    step = f"{guess}see `rolebundle status` for the sources, or try a glob with --dry-run"
    return UsageError("nothing_to_purge", f"{name!r} names no document; nothing was purged", step)


def plan_of(workspace: Workspace, selection: Selection) -> PurgePreview:
    """What :func:`purge_documents` would erase.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing.
    """
    corpus = workspace.corpus
    with corpus.reading():
        documents, facts = _with_facts(corpus, selection)
        keys = _select_decisions(corpus, selection.decisions)
        files = {Path(document.location) for document in documents}
        copies = _copies(carrying(corpus, purge_storage.names_of(documents, keys)))
        return PurgePreview(
            backups=[str(backup) for backup in purge_storage.backups(workspace.path)],
            **purge_storage.purge_counts(corpus, [document.rowid for document in documents]),
            document_ids=[document.document_id for document in documents],
            decision_ids=[f"{scope}-{number}" for scope, number in keys],
            facts=[document.document_id for document in facts],
            # A fact has no file, and no absolute location.
            returning=sorted(str(path) for path in files if path.is_absolute() and path.exists()),
            publications=copies,
        )


def purge_documents(workspace: Workspace, selection: Selection) -> Receipt:
    """Erase documents from the corpus's files; see :func:`purge`."""
    with workspace.open_writer() as corpus:
        return purge(corpus, workspace.recorder, selection)


def purge(corpus: Corpus, recorder: Recorder, selection: Selection) -> Receipt:
    """Erase documents, and complete earlier purges.

    Returns:
        The receipt. If it is pending, bytes may be left, and :func:`finish_purges` must be called.

    Raises:
        UsageError: a name is unknown or ambiguous, or the glob matches nothing. Nothing was erased.
    """
    with recorder.change(corpus, "purge") as details:
        documents, _ = _with_facts(corpus, selection)
        keys = _select_decisions(corpus, selection.decisions)
        pending = purge_storage.erase(corpus, documents, iso_utc(datetime.now(UTC)), keys)
        details.update(_details(pending))
    [receipt] = _finish(corpus, {pending.id})
    if receipt.state == "done":
        recorder.record_event(corpus, "purge", details=_details(receipt))
    return receipt


def finish_pending(workspace: Workspace) -> list[Receipt]:
    """Complete the pending purges and return their receipts."""
    with workspace.open_writer() as corpus:
        return finish_purges(corpus, workspace.recorder)


def finish_purges(corpus: Corpus, recorder: Recorder) -> list[Receipt]:
    """Complete the pending purges of a corpus that is open for writing, and record it."""
    pending = {receipt.id for receipt in purge_storage.unfinished(corpus)}
    receipts = _finish(corpus, pending) if pending else []
    for receipt in receipts:
        recorder.record_event(corpus, "purge", details=_details(receipt))
    return receipts


def _finish(corpus: Corpus, pending: Collection[str]) -> list[Receipt]:
    """Complete every purge, and return the receipts with these ids."""
    obstacle = purge_storage.finish(corpus)
    copies = _copies(
        publication for publication in publications(corpus) if publication.purge_pending
    )
    return [
        receipt.model_copy(
            update={
                "waiting_for": "" if receipt.state == "done" else obstacle,
                "publications": copies,
            }
        )
        for receipt in purge_storage.receipts(corpus)
        if receipt.id in pending
    ]


def _details(receipt: Receipt) -> dict[str, Any]:
    """What is recorded of a purge when it is pending, and again when it is done."""
    # The receipt's id is random. It links the two records and does not name what was erased.
    shown = receipt.model_dump(include={"documents", "chunks", "state"})
    return {**shown, "receipt": receipt.id}
