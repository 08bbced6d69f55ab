"""What whoever owns a corpus does with it: filling it, looking after its indexes, its policy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rolebundle.contracts.document import iso_utc
from rolebundle.embedding.provider import Unavailable
from rolebundle.embedding.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.policy.recording import Recorder
from rolebundle.storage.connection import Corpus, open_reader, open_writer

if TYPE_CHECKING:
    from rolebundle.contracts.receipt import Receipt
    from rolebundle.embedding.provider import EmbeddingProvider
    from rolebundle.ingest.embedding import EmbeddingReport, Progress
    from rolebundle.ingest.indexes import Optimized, Plan
    from rolebundle.ingest.sync import IngestOptions, IngestReport
    from rolebundle.policy.bridges import Bridges
    from rolebundle.policy.purge import Plan as PurgePlan
    from rolebundle.policy.purge import Wanted
    from rolebundle.storage.quarantine import Flagged


class Upkeep:
    """The owner's side of one corpus file; nothing here asks who is asking.

    Args:
        path: the corpus file; made by the first :meth:`ingest`.
        provider: the embedding model; where none is given, the one that made the corpus's index,
            or the embedded static one for a new corpus.
        embed_url: the model's server, instead of the one that the corpus remembers.
        allow_host: the one host off this machine that may be that server.
    """

    def __init__(
        self,
        path: Path,
        provider: EmbeddingProvider | None = None,
        *,
        embed_url: str = "",
        allow_host: str = "",
    ) -> None:
        self.path = path
        self.embed_url, self.allow_host = embed_url, allow_host
        self._given_provider = provider
        self._providers: dict[str, EmbeddingProvider] = {}
        self._reader: Corpus | None = None
        self.recorder = Recorder(path)

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
            # What is still in the way may stay there: this is an ingest.
            self._complete_purges(corpus, 1_000)
            provider = None if lexical_only else self._patient_provider(corpus)
            extra = {"progress": progress} if progress else {}
            report = ingest(corpus, paths, provider, options, **extra)
            counts = {
                "added": report.added,
                "updated": report.updated,
                "removed": report.removed,
                "quarantined": report.quarantined,
            }
            self.recorder.note(corpus, "ingest", details=counts)
            return report

    def embed(
        self, spec: ProviderSpec | None = None, *, progress: Progress | None = None
    ) -> EmbeddingReport:
        """Embed what waits; with a spec, build that model's index and change over to it.

        Raises:
            EmbedderError: the model is not at hand. What was embedded before stays.
        """
        from rolebundle.embedding.registry import spec_to_json
        from rolebundle.ingest.embedding import build_index
        from rolebundle.storage.vector_index import active_index

        with self._writer() as corpus:
            provider = provider_for(spec) if spec else self._patient_provider(corpus)
            # Without a spec it is the model that answers now, or what took its name since.
            current = active_index(corpus)
            reach = spec_to_json(spec) if spec else current.reach if current else "{}"
            _, report = build_index(
                corpus,
                provider,
                _chunker(),
                progress or (lambda _what, _done, _total: None),
                reach=reach,
                started_at=iso_utc(datetime.now(UTC)),
            )
            return report

    def plan(self, spec: ProviderSpec | None = None) -> Plan:
        """What :meth:`embed` would take.

        Raises:
            EmbedderError: the model is not at hand.
        """
        from rolebundle.ingest.indexes import plan

        provider = provider_for(spec) if spec else self._patient_provider(self.corpus)
        return plan(self.corpus, provider, _chunker())

    def use_index(self, name: str) -> None:
        """Make a complete index the one that answers.

        Raises:
            UsageError: there is no such index, or chunks wait in it.
        """
        from rolebundle.ingest.indexes import named_index, use_index

        with self._writer() as corpus:
            use_index(corpus, named_index(corpus, name))

    def drop_index(self, name: str) -> None:
        """Remove an index that does not answer.

        Raises:
            UsageError: there is no such index, or it is the one that answers.
        """
        from rolebundle.ingest.indexes import drop_index, named_index

        with self._writer() as corpus:
            drop_index(corpus, named_index(corpus, name))

    def optimize(self) -> Optimized:
        """Build the fast companion of the index that answers.

        Raises:
            ConfigurationError: it cannot be built here, or would gain nothing.
        """
        from rolebundle.ingest.indexes import optimize
        from rolebundle.storage.vector_index import active_index

        with self._writer() as corpus:
            index = active_index(corpus)
            if index is None:
                raise UsageError(
                    "no_index", f"{self.path}: has no embedding index", "run `rolebundle embed`"
                )
            return optimize(corpus, index)

    def clear_cache(self) -> int:
        """Forget the vectors that are kept for text that may come back; how many there were."""
        from rolebundle.storage import vector_cache

        with self._writer() as corpus, corpus.writing():
            count, _ = vector_cache.size(corpus)
            vector_cache.clear(corpus)
            return count

    def quarantine(self, verdict: str = "quarantine") -> list[Flagged]:
        """The documents that the scan at the door keeps back.

        Args:
            verdict: ``quarantine``, ``released``, ``label``, or empty for all with findings.
        """
        from rolebundle.storage.quarantine import flagged

        return flagged(self.corpus, verdict)

    def flagged(self, document_id: str) -> Flagged:
        """What the scan found in a document.

        Raises:
            UsageError: there is no such document, or nothing was found in it.
        """
        from rolebundle.scan.quarantine import found

        return found(self.corpus, document_id)

    def release(self, document_id: str) -> None:
        """Let a quarantined document be seen, as long as its text stays what it is.

        Raises:
            UsageError: it is not in quarantine.
        """
        from rolebundle.scan.quarantine import release

        with self._writer() as corpus:
            release(corpus, document_id)
            self.recorder.note(corpus, "release")

    def drop(self, document_id: str) -> None:
        """Remove a quarantined document; it comes back only when its file changes.

        Raises:
            UsageError: it is not in quarantine.
        """
        from rolebundle.scan.quarantine import drop

        with self._writer() as corpus:
            drop(corpus, document_id)
            self.recorder.note(corpus, "drop")

    def plan_purge(self, wanted: Wanted) -> PurgePlan:
        """What :meth:`purge` would erase; see :func:`rolebundle.policy.purge.plan`."""
        from rolebundle.policy.purge import plan

        with self.corpus.reading():
            return plan(self.corpus, wanted)

    def purge(self, wanted: Wanted) -> Receipt:
        """Erase documents from the corpus's files; see :func:`rolebundle.policy.purge.purge`."""
        from rolebundle.policy.purge import purge

        with self._writer() as corpus:
            receipt = purge(corpus, wanted)
            self._note_purge(corpus, receipt)
            return receipt

    def finish_purges(self) -> list[Receipt]:
        """Complete the purges that are pending; their receipts."""
        with self._writer() as corpus:
            return self._complete_purges(corpus)

    def _complete_purges(self, corpus: Corpus, patience_ms: int | None = None) -> list[Receipt]:
        from rolebundle.policy.purge import finish

        receipts = finish(corpus, patience_ms)
        for receipt in receipts:
            self._note_purge(corpus, receipt)
        return receipts

    def _note_purge(self, corpus: Corpus, receipt: Receipt) -> None:
        # The receipt's id is random: it ties the two together and says nothing.
        told = {
            "documents": receipt.documents,
            "chunks": receipt.chunks,
            "receipt": receipt.id,
            "state": receipt.state,
        }
        self.recorder.note(corpus, "purge", details=told)

    def bridges(self, threshold: float, limit: int, *, progress: Progress | None = None) -> Bridges:
        """Close passages of different scopes; :func:`rolebundle.policy.bridges.find_bridges`."""
        from rolebundle.policy.bridges import find_bridges

        found = find_bridges(self.corpus, threshold, limit, progress)
        self.recorder.note(self.corpus, "bridges", allowed=len(found.bridges))
        return found

    def set_policy(self, content: str, kind: str, location: str = "") -> int:
        """Put a policy into force: who may see what.

        Args:
            content: the policy's text.
            kind: ``toml`` or ``json``.
            location: the file that must go on saying the same; empty where there is none.

        Returns:
            How many documents moved to another compartment.

        Raises:
            ConfigurationError: it is malformed. What was in force stays in force.
        """
        from rolebundle.policy.scopes import set_policy

        with self._writer() as corpus:
            moved = set_policy(corpus, content, kind, location, iso_utc(datetime.now(UTC)))
        self.recorder.begin()
        self.recorder.note(self.corpus, "scopes", details={"moved": moved})
        return moved

    def provider(self, corpus: Corpus) -> EmbeddingProvider:
        """The embedding model for a corpus: the one given, else the one that made its index.

        One that cannot be set up says so when it is asked, so that the lexical lane still answers.
        """
        from rolebundle.embedding.registry import QUERY_DEADLINE_SECONDS

        return self._provider(corpus, QUERY_DEADLINE_SECONDS)

    def _patient_provider(self, corpus: Corpus) -> EmbeddingProvider:
        from rolebundle.embedding.registry import PASSAGES_DEADLINE_SECONDS

        return self._provider(corpus, PASSAGES_DEADLINE_SECONDS)

    def _provider(self, corpus: Corpus, deadline_seconds: float) -> EmbeddingProvider:
        if self._given_provider is not None:
            return self._given_provider
        from rolebundle.embedding.registry import spec_from_json
        from rolebundle.storage.vector_index import active_index

        index = active_index(corpus)
        spec = (
            spec_from_json(
                index.reach,
                index.identity.model,
                url=self.embed_url,
                allow_host=self.allow_host,
                deadline_seconds=deadline_seconds,
            )
            if index
            else ProviderSpec("static")
        )
        # Kept, because a model that is loaded answers the next request at once.
        if repr(spec) not in self._providers:
            try:
                self._providers[repr(spec)] = provider_for(spec)
            except ConfigurationError as error:
                return Unavailable(EmbedderError(error.code, error.message, error.hint))
            except EmbedderError as error:
                return Unavailable(error)
        return self._providers[repr(spec)]

    def _writer(self) -> Corpus:
        # Looking after a corpus makes none, and migrates none.
        open_reader(self.path).close()
        return open_writer(self.path)

    @property
    def corpus(self) -> Corpus:
        """The corpus, opened for reading on first use."""
        if self._reader is None:
            self._reader = open_reader(self.path)
        return self._reader

    def close(self) -> None:
        """Close the corpus file."""
        self.recorder.close()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def _chunker() -> str:
    from rolebundle.ingest.embedding import EMBEDDED_AS

    return EMBEDDED_AS
