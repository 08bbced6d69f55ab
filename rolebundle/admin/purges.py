"""Purges: documents that the owner of a corpus erases."""

from __future__ import annotations

from dataclasses import dataclass

from rolebundle.contracts.purge import Receipt
from rolebundle.policy import purge
from rolebundle.policy.purge import PurgePlan, PurgeSelection
from rolebundle.storage.connection import Corpus
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Purges:
    """The purges of one corpus. Each receipt is recorded."""

    workspace: Workspace

    def plan(self, selection: PurgeSelection) -> PurgePlan:
        """What :meth:`purge` would erase; see :func:`rolebundle.policy.purge.plan_purge`."""
        with self.workspace.corpus.reading():
            return purge.plan_purge(self.workspace.corpus, selection)

    def purge(self, selection: PurgeSelection) -> Receipt:
        """Erase documents from the corpus's files; see :func:`rolebundle.policy.purge.purge`."""
        with self.workspace.open_writer() as corpus:
            receipt = purge.purge(corpus, selection)
            self._record(corpus, receipt)
            return receipt

    def finish(self) -> list[Receipt]:
        """Complete the pending purges and return their receipts."""
        with self.workspace.open_writer() as corpus:
            return self.finish_in(corpus)

    def finish_in(self, corpus: Corpus, patience_ms: int | None = None) -> list[Receipt]:
        """Complete the pending purges of a corpus that is open for writing.

        Args:
            corpus: the corpus.
            patience_ms: as for :func:`rolebundle.policy.purge.finish_purges`.
        """
        receipts = purge.finish_purges(corpus, patience_ms)
        for receipt in receipts:
            self._record(corpus, receipt)
        return receipts

    def _record(self, corpus: Corpus, receipt: Receipt) -> None:
        # The receipt's id is random. It links the two records and does not name what was erased.
        erased = {
            "documents": receipt.documents,
            "chunks": receipt.chunks,
            "receipt": receipt.id,
            "state": receipt.state,
        }
        self.workspace.recorder.note(corpus, "purge", details=erased)
