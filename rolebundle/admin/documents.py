"""The documents of a corpus, as its owner sees them: also those in quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.operation_requests import ListRequest
from rolebundle.retrieval.lookups.inspection import DocumentInspection, inspect_document
from rolebundle.retrieval.lookups.listing import list_documents
from rolebundle.retrieval.lookups.lookup import ReferenceScope
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Documents:
    """The documents of one corpus, for its owner."""

    workspace: Workspace

    def inspect(self, reference: str, *, chunk: str = "", first: int = 1) -> DocumentInspection:
        """Describe a document, which may be in quarantine.

        Args:
            reference: a document id, a path in the corpus or a chunk id.
            chunk: the chunk id of a passage; the page has it, and its neighbours are searched.
            first: place of the first passage, from 1, if no passage was named.

        Raises:
            UsageError: no document or passage has this reference, or it names several documents.
        """
        with self.workspace.answering_corpus.reading():
            return inspect_document(
                self.workspace.corpus, reference, chunk, first, ReferenceScope(absolute=True)
            )

    def listing(self, request: ListRequest) -> Listing:
        """The documents, also those in quarantine, a page at a time.

        Raises:
            UsageError: no document has the prefix.
        """
        with self.workspace.answering_corpus.reading():
            return list_documents(self.workspace.corpus, request, ReferenceScope(absolute=True))
