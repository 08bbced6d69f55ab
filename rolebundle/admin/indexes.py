"""The embedding indexes of a corpus, and the caches of vectors beside them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rolebundle.contracts.document import iso_utc
from rolebundle.embedding.registry import ProviderSpec, provider_for, spec_to_json
from rolebundle.ingest import approximate_indexes, indexes
from rolebundle.ingest.approximate_indexes import Optimized
from rolebundle.ingest.indexes import EmbeddingEstimate, EmbeddingReport, Progress, no_progress
from rolebundle.storage.indexes import vector_cache
from rolebundle.storage.indexes.vector_index import active_index
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Indexes:
    """The embedding indexes of one corpus."""

    workspace: Workspace

    def embed(
        self, spec: ProviderSpec | None = None, *, progress: Progress | None = None
    ) -> EmbeddingReport:
        """Embed the chunks that wait for a vector.

        Args:
            spec: build the index of this model and activate it when it is complete. Default:
                continue with the active index.
            progress: called with the current step, how many units of it are done, and how many
                there are.

        Raises:
            EmbedderError: the model is not available. Vectors that were stored before are kept.
        """
        with self.workspace.open_writer() as corpus:
            current = active_index(corpus)
            if spec is not None:
                provider, connection = provider_for(spec), spec_to_json(spec)
            else:
                provider = self.workspace.passage_provider(corpus)
                connection = current.connection if current else indexes.NO_CONNECTION
            started_at = iso_utc(datetime.now(UTC))
            return indexes.build_index(
                corpus,
                provider,
                progress or no_progress,
                connection=connection,
                started_at=started_at,
            )

    def estimate(self, spec: ProviderSpec | None = None) -> EmbeddingEstimate:
        """Estimate the seconds and bytes that :meth:`embed` would take. Embeds a few chunks.

        Raises:
            EmbedderError: the model is not available.
        """
        corpus = self.workspace.corpus
        provider = provider_for(spec) if spec else self.workspace.passage_provider(corpus)
        return indexes.estimate(corpus, provider)

    def use(self, name: str) -> None:
        """Activate a complete index; see :func:`rolebundle.ingest.indexes.use_index`."""
        with self.workspace.open_writer() as corpus:
            indexes.use_index(corpus, name)

    def drop(self, name: str) -> None:
        """Remove an index that is not active; see :func:`rolebundle.ingest.indexes.drop_index`."""
        with self.workspace.open_writer() as corpus:
            indexes.drop_index(corpus, name)

    def optimize(self) -> Optimized:
        """See :func:`rolebundle.ingest.approximate_indexes.optimize`."""
        with self.workspace.open_writer() as corpus:
            return approximate_indexes.optimize(corpus)

    def clear_vector_cache(self) -> int:
        """Empty the vector cache; return how many vectors it had.

        It has the vectors of texts that were removed or changed, in case they come back.
        """
        with self.workspace.open_writer() as corpus, corpus.writing():
            count, _ = vector_cache.cache_size(corpus)
            vector_cache.clear_cache(corpus)
            return count
