"""One corpus, one set of overlays, one embedding model: what every door calls.

The command line and the servers translate to and from these few typed calls, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.corpus.connection import Corpus, open_reader, open_writer
from rolebundle.embed.provider import Unavailable
from rolebundle.embed.registry import ProviderSpec, provider_for
from rolebundle.errors import ConfigurationError, EmbedderError, UsageError
from rolebundle.govern.overlays import ResolvedOverlay, load_role
from rolebundle.retrieve.pipeline import retrieve

if TYPE_CHECKING:
    from rolebundle.contracts.comparison import Comparison
    from rolebundle.contracts.lookup import CorpusStatus, Lookup
    from rolebundle.contracts.replay import Replay
    from rolebundle.contracts.why import Why
    from rolebundle.embed.provider import EmbeddingProvider
    from rolebundle.ingest.embedding import EmbeddingReport, Progress
    from rolebundle.ingest.indexes import Optimized, Plan
    from rolebundle.ingest.sync import IngestOptions, IngestReport

A = TypeVar("A")


class Engine:
    """Governed retrieval over one corpus file.

    Args:
        path: the corpus file; made by the first :meth:`ingest`.
        overlay_folders: where overlays are looked for, first match wins; see
            :func:`rolebundle.govern.overlays.overlay_folders`.
        provider: the embedding model; where none is given, the one that made the corpus's index,
            or the embedded static one for a new corpus.
        embed_url: the model's server, instead of the one that the corpus remembers.
        allow_host: the one host off this machine that may be that server.
    """

    def __init__(
        self,
        path: Path,
        overlay_folders: Sequence[Path] = (),
        provider: EmbeddingProvider | None = None,
        *,
        embed_url: str = "",
        allow_host: str = "",
    ) -> None:
        self.path = path
        self.overlay_folders = tuple(overlay_folders)
        self.embed_url, self.allow_host = embed_url, allow_host
        self._given_provider = provider
        self._providers: dict[str, EmbeddingProvider] = {}
        self._reader: Corpus | None = None
        self._swapping = Lock()

    def retrieve(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None = None
    ) -> RetrievalBundle:
        """Answer a request.

        Args:
            request: the task and its limits.
            overlay: governs instead of the overlay of ``request.role``.

        Raises:
            OverlayError: the role has no well-formed overlay. Nothing was retrieved.
            Interrupted: the request's deadline is over.
            UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus cannot be read.
        """
        return self._answered(retrieve, request, overlay)

    def replay(self, bundle: RetrievalBundle, overlay: ResolvedOverlay | None = None) -> Replay:
        """Ask again what a bundle is the answer to, and say what is different today.

        Args:
            bundle: a whole bundle of this package.
            overlay: governs instead of the overlay of the bundle's role.

        Raises:
            UsageError: the bundle does not say all that was asked.
            OverlayError: its role has no well-formed overlay today.
        """
        from rolebundle.retrieve.lookup import whereabouts
        from rolebundle.retrieve.replay import compare_bundles, request_of

        again = self.retrieve(request_of(bundle), overlay)
        return compare_bundles(bundle, again, partial(whereabouts, self.corpus))

    def compare(self, request: RetrievalRequest, roles: Sequence[str]) -> Comparison:
        """What each of the roles sees for one task at one time; ``request.role`` does not count.

        Raises:
            UsageError: no role was given.
            CorpusBusy: the corpus was written to between two of the answers.
        """
        from rolebundle.retrieve.compare import compare_roles

        request = replace(request, now=_moment(request))
        bundles = [self.retrieve(replace(request, role=role)) for role in dict.fromkeys(roles)]
        return compare_roles(bundles)

    def why(
        self, request: RetrievalRequest, reference: str, overlay: ResolvedOverlay | None = None
    ) -> Why:
        """Why a passage is in the answer to a request, or is not.

        Args:
            request: the task and its limits.
            reference: a chunk id, a document id, or ``path:start-end``; of several passages the
                best placed one is followed.
            overlay: governs instead of the overlay of ``request.role``.

        Raises:
            UsageError: there is no such passage, or no corpus.
            OverlayError, Interrupted, WrongFile, CorpusCorrupt, StorageError: as for
                :meth:`retrieve`.
        """
        from rolebundle.retrieve.why import explain

        return self._answered(explain, request, overlay, reference)

    def _answered(
        self,
        answer: Callable[..., A],
        request: RetrievalRequest,
        overlay: ResolvedOverlay | None,
        *more: object,
    ) -> A:
        """What the pipeline says to a request, with its overlay, model, time and deadline."""
        if overlay is None and request.role is not None:
            overlay = load_role(request.role, self.overlay_folders)
        deadline = request.deadline_ms
        with self.corpus.interruptible(None if deadline is None else deadline / 1000):
            return answer(
                self.corpus,
                request,
                overlay.overlay if overlay else None,
                overlay.digest if overlay else "",
                None if request.lexical_only else self.provider(self.corpus),
                _moment(request),
                *more,
            )

    def interrupt(self) -> None:
        """End the search that runs now with :class:`Interrupted`; from any thread."""
        with self._swapping:
            if self._reader is not None:
                self._reader.interrupt()

    def refresh(self) -> None:
        """Let go of a corpus file that is no longer the one at its path; opened anew on demand."""
        if self._reader is not None and not self._reader.is_current():
            self.close()

    def get(self, reference: str) -> Lookup:
        """The passage, document or lines that a reference names.

        Args:
            reference: a chunk id, a document id, ``path:start-end``, or ``#id:from:count``.

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
            return self._with_offers(corpus_status(self.corpus))
        with self._writer() as corpus:
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
            provider = None if lexical_only else self._patient_provider(corpus)
            extra = {"progress": progress} if progress else {}
            return ingest(corpus, paths, provider, options, **extra)

    def embed(
        self, spec: ProviderSpec | None = None, *, progress: Progress | None = None
    ) -> EmbeddingReport:
        """Embed what waits; with a spec, build that model's index and change over to it.

        Raises:
            EmbedderError: the model is not at hand. What was embedded before stays.
        """
        from rolebundle.corpus.vector_index import active_index
        from rolebundle.embed.reach import to_reach
        from rolebundle.ingest.embedding import build_index

        with self._writer() as corpus:
            provider = provider_for(spec) if spec else self._patient_provider(corpus)
            # Without a spec it is the model that answers now, or what took its name since.
            current = active_index(corpus)
            reach = to_reach(spec) if spec else current.reach if current else "{}"
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
        from rolebundle.corpus.vector_index import active_index
        from rolebundle.ingest.indexes import optimize

        with self._writer() as corpus:
            index = active_index(corpus)
            if index is None:
                raise UsageError(
                    "no_index", f"{self.path}: has no embedding index", "run `rolebundle embed`"
                )
            return optimize(corpus, index)

    def clear_cache(self) -> int:
        """Forget the vectors that are kept for text that may come back; how many there were."""
        from rolebundle.corpus import vector_cache

        with self._writer() as corpus, corpus.writing():
            count, _ = vector_cache.size(corpus)
            vector_cache.clear(corpus)
            return count

    def provider(self, corpus: Corpus) -> EmbeddingProvider:
        """The embedding model for a corpus: the one given, else the one that made its index.

        One that cannot be set up says so when it is asked, so that the lexical lane still answers.
        """
        from rolebundle.embed.reach import QUERY_DEADLINE_SECONDS

        return self._provider(corpus, QUERY_DEADLINE_SECONDS)

    def _patient_provider(self, corpus: Corpus) -> EmbeddingProvider:
        from rolebundle.embed.reach import PASSAGES_DEADLINE_SECONDS

        return self._provider(corpus, PASSAGES_DEADLINE_SECONDS)

    def _provider(self, corpus: Corpus, deadline_seconds: float) -> EmbeddingProvider:
        if self._given_provider is not None:
            return self._given_provider
        from rolebundle.corpus.vector_index import active_index
        from rolebundle.embed.reach import to_spec

        index = active_index(corpus)
        spec = (
            to_spec(
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

    def _with_offers(self, status: CorpusStatus) -> CorpusStatus:
        from rolebundle.contracts.lookup import BetterModel
        from rolebundle.embed.offers import offers

        index = status.corpus.index
        if index is not None and index.provider != "static":
            return status
        better = [
            BetterModel(
                provider=offer.provider,
                model=offer.model,
                command=f"rolebundle embed --provider {offer.provider} --model {offer.model}",
                seconds=status.corpus.chunks / offer.chunks_a_second,
                brings=offer.brings,
            )
            for offer in offers()
        ]
        return replace(status, better_models=better)

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
        # An interrupt from another thread must not meet a connection that is just closing.
        with self._swapping:
            reader, self._reader = self._reader, None
            if reader is not None:
                reader.close()

    def __enter__(self) -> Engine:
        """The engine itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _moment(request: RetrievalRequest) -> datetime:
    # To the second, as the bundle names it: asked again at that time, every age is the same.
    return (request.now or datetime.now(UTC)).replace(microsecond=0)


def _chunker() -> str:
    from rolebundle.ingest.chunking import CHUNKER_VERSION

    return CHUNKER_VERSION
