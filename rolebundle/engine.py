"""One corpus, one set of overlays, one embedding model: what every door calls.

The command line and the servers translate to and from these few typed calls, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.corpus.connection import Corpus, open_reader, open_writer
from rolebundle.embed.static import StaticProvider
from rolebundle.govern.overlays import ResolvedOverlay, load_role
from rolebundle.retrieve.pipeline import retrieve

if TYPE_CHECKING:
    from rolebundle.contracts.lookup import CorpusStatus, Lookup
    from rolebundle.embed.provider import EmbeddingProvider
    from rolebundle.ingest.embedding import Progress
    from rolebundle.ingest.sync import IngestOptions, IngestReport


class Engine:
    """Governed retrieval over one corpus file.

    Args:
        path: the corpus file; made by the first :meth:`ingest`.
        overlay_folders: where overlays are looked for, first match wins; see
            :func:`rolebundle.govern.overlays.overlay_folders`.
        provider: the embedding model; the embedded static one where none is given.
    """

    def __init__(
        self,
        path: Path,
        overlay_folders: Sequence[Path] = (),
        provider: EmbeddingProvider | None = None,
    ) -> None:
        self.path = path
        self.overlay_folders = tuple(overlay_folders)
        self.provider: EmbeddingProvider = provider or StaticProvider()
        self._reader: Corpus | None = None

    def retrieve(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None = None
    ) -> RetrievalBundle:
        """Answer a request.

        Args:
            request: the task and its limits.
            overlay: governs instead of the overlay of ``request.role``.

        Raises:
            OverlayError: the role has no well-formed overlay. Nothing was retrieved.
            UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus cannot be read.
        """
        if overlay is None and request.role is not None:
            overlay = load_role(request.role, self.overlay_folders)
        return retrieve(
            self.corpus,
            request,
            overlay.overlay if overlay else None,
            overlay.digest if overlay else "",
            None if request.lexical_only else self.provider,
            request.now or datetime.now(UTC),
        )

    def get(self, reference: str) -> Lookup:
        """The passage, document or lines that a reference names.

        Args:
            reference: a chunk id, a document id, or ``path:start-end``.

        Raises:
            UsageError: there is no such thing.
        """
        from rolebundle.retrieve.lookup import look_up

        return look_up(self.corpus, reference)

    def status(self, *, check: bool = False, repair: bool = False) -> CorpusStatus:
        """What the corpus holds.

        Args:
            check: compare content, indexes and hashes; needs write permission.
            repair: mend what a check finds, where it can be mended.

        Raises:
            CorpusBusy, StorageError: a check or repair could not get at the file.
        """
        from rolebundle.retrieve.lookup import corpus_status

        if not (check or repair):
            return corpus_status(self.corpus)
        # Not created: a check of a file that is not there must not make one.
        open_reader(self.path).close()
        with open_writer(self.path) as corpus:
            return corpus_status(corpus, check=True, repair=repair)

    def ingest(
        self,
        paths: Sequence[Path],
        options: IngestOptions | None = None,
        *,
        lexical_only: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring the corpus in step with files; see :func:`rolebundle.ingest.sync.ingest`."""
        from rolebundle.ingest.sync import ingest

        with open_writer(self.path) as corpus:
            provider = None if lexical_only else self.provider
            extra = {"progress": progress} if progress else {}
            return ingest(corpus, paths, provider, options, **extra)

    @property
    def corpus(self) -> Corpus:
        """The corpus, opened for reading on first use."""
        if self._reader is None:
            self._reader = open_reader(self.path)
        return self._reader

    def close(self) -> None:
        """Close the corpus file."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def __enter__(self) -> Engine:
        """The engine itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
