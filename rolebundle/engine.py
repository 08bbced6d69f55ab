"""One corpus, one set of overlays, one embedding model: what every door calls.

The command line and the servers translate to and from these few typed calls, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.admin import Upkeep
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.request import NO_RERANK, RetrievalRequest
from rolebundle.errors import AccessDenied, CorpusBusy, RolebundleError
from rolebundle.policy.admitted import NOBODY_GOVERNS, Admitted
from rolebundle.policy.overlays import ResolvedOverlay, load_role
from rolebundle.retrieval.pipeline import retrieve
from rolebundle.retrieval.request import ResolvedRequest, resolve_request
from rolebundle.retrieval.rerankers import Rerankers
from rolebundle.storage import compartments, policy_rows
from rolebundle.storage.connection import Corpus, open_reader

if TYPE_CHECKING:
    from rolebundle.contracts.comparison import Comparison
    from rolebundle.contracts.document import DocumentMetadata
    from rolebundle.contracts.lookup import CorpusStatus, Lookup
    from rolebundle.contracts.replay import Replay
    from rolebundle.contracts.why import Why
    from rolebundle.embedding.provider import EmbeddingProvider
    from rolebundle.retrieval.contextual import Contextual


class Resolved(NamedTuple):
    """A resolved request, and what answers it."""

    corpus: Corpus
    request: ResolvedRequest
    provider: EmbeddingProvider | None
    reranker: Contextual | None


class Engine(Upkeep):
    """Governed retrieval over one corpus file.

    Args:
        path: the corpus file; made by the first :meth:`ingest`.
        overlay_folders: where overlays are looked for, first match wins; see
            :func:`rolebundle.policy.overlays.overlay_folders`.
        provider: the embedding model; where none is given, the one that made the corpus's index,
            or the embedded static one for a new corpus.
        embed_url: the model's server, instead of the one that the corpus remembers.
        allow_host: the one host off this machine that may be that server.
        agent: the one agent that asks; a request that names another one is denied.
        rerank: the model, ``PROVIDER:MODEL``, that re-scores the best candidates of requests that
            name none themselves; empty for none.

    Raises:
        ConfigurationError: ``rerank`` names no provider.
    """

    def __init__(
        self,
        path: Path,
        overlay_folders: Sequence[Path] = (),
        provider: EmbeddingProvider | None = None,
        *,
        embed_url: str = "",
        allow_host: str = "",
        agent: str | None = None,
        rerank: str = "",
    ) -> None:
        super().__init__(path, provider, embed_url=embed_url, allow_host=allow_host)
        self.rerankers = Rerankers(path, rerank, embed_url, allow_host)
        self.overlay_folders = tuple(overlay_folders)
        self.agent = agent
        self._narrowed: Corpus | None = None
        self._swapping = Lock()

    def retrieve(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None = None
    ) -> RetrievalBundle:
        """Answer a request.

        Args:
            request: the task and its limits.
            overlay: governs instead of the overlay of ``request.role``.

        Raises:
            AccessDenied: the corpus's policy gives this agent nothing.
            OverlayError: the role has no well-formed overlay. Nothing was retrieved.
            StorageError: a record of the answer is required, and could not be made.
            Interrupted: the request's deadline is over.
            ConfigurationError: the request's ``rerank`` names no model of a known provider.
            UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus cannot be read.
        """
        with self.discreet(request.agent):
            with self._resolved(request, overlay) as asked:
                bundle = retrieve(asked.corpus, asked.request, asked.provider, asked.reranker)
            self.recorder.answer(self.corpus, bundle, self._agent(request.agent), request.action)
            return bundle

    def replay(self, bundle: RetrievalBundle, overlay: ResolvedOverlay | None = None) -> Replay:
        """Ask again what a bundle is the answer to, and say what is different today.

        Args:
            bundle: a whole bundle of this package.
            overlay: governs instead of the overlay of the bundle's role.

        Raises:
            UsageError: the bundle does not say all that was asked.
            OverlayError: its role has no well-formed overlay today.
        """
        from rolebundle.retrieval.lookup import whereabouts
        from rolebundle.retrieval.replay import compare_bundles, request_of

        request = request_of(bundle)
        # What reranked then reranks again, and not what this engine was set to since.
        request = replace(request, rerank=request.rerank or NO_RERANK)
        with self.discreet(request.agent), self.seen_by(request.agent) as (corpus, _):
            again = self.retrieve(request, overlay)
            return compare_bundles(bundle, again, partial(whereabouts, corpus))

    def compare(self, request: RetrievalRequest, roles: Sequence[str]) -> Comparison:
        """What each of the roles sees for one task at one time; ``request.role`` does not count.

        Raises:
            UsageError: no role was given.
            AccessDenied: as for :meth:`retrieve`.
        """
        from rolebundle.retrieval.compare import compare_roles

        request = replace(request, now=_moment(request))
        # One snapshot for all of them.
        with self.discreet(request.agent), self.seen_by(request.agent):
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
            AccessDenied, OverlayError, Interrupted, WrongFile, CorpusCorrupt, StorageError: as for
                :meth:`retrieve`.
        """
        from rolebundle.retrieval.explain import explain

        with self.discreet(request.agent):
            with self._resolved(request, overlay) as asked:
                found = explain(
                    asked.corpus, asked.request, reference, asked.provider, asked.reranker
                )
            self.recorder.note(
                self.corpus,
                "why",
                agent=self._agent(request.agent),
                role=request.role,
                query=request.task,
                allowed=1,
            )
            return found

    @contextmanager
    def _resolved(
        self, request: RetrievalRequest, overlay: ResolvedOverlay | None
    ) -> Iterator[Resolved]:
        """A request with its overlay, model and time, until its deadline."""
        agent = self._agent(request.agent)
        request = replace(self.rerankers.settled(request), agent=agent)
        with self.seen_by(agent) as (corpus, admitted):
            if overlay is None and request.role is not None:
                overlay = load_role(request.role, self.overlay_folders)
            deadline = request.deadline_ms
            with corpus.interruptible(None if deadline is None else deadline / 1000):
                yield Resolved(
                    corpus,
                    resolve_request(
                        request,
                        _moment(request),
                        overlay.overlay if overlay else None,
                        overlay.digest if overlay else "",
                        admitted,
                    ),
                    None if request.lexical_only else self.provider(corpus),
                    self.rerankers.contextual(corpus, request),
                )

    @contextmanager
    def seen_by(self, agent: str | None) -> Iterator[tuple[Corpus, Admitted]]:
        """The corpus as an agent sees it, in one snapshot, and what goes with it.

        Without a policy and a quarantine everybody sees everything. Else the connection shows
        nothing but what this agent may see, and nothing after the block.

        Raises:
            AccessDenied: the policy gives this agent nothing.
        """
        agent = self._agent(agent)
        if not _is_governed(self.corpus):
            with self.corpus.reading():
                # Looked at again in the snapshot: somebody may have changed it just now.
                if _is_governed(self.corpus):
                    raise CorpusBusy(
                        "policy_changed",
                        f"{self.path}: a policy or a quarantine was set just now",
                        "ask again",
                    )
                yield self.corpus, NOBODY_GOVERNS
            return
        from rolebundle.policy import scopes

        if self._narrowed is None:
            narrowed = open_reader(self.path)
            narrowed.narrow()
            self._narrowed = narrowed
        with self._narrowed.reading():
            try:
                admitted = scopes.show(self._narrowed, agent)
            except AccessDenied:
                self.recorder.note(self.corpus, "refused", agent=agent)
                raise
            yield self._narrowed, admitted

    def admit(self, agent: str | None) -> None:
        """Let an agent in that asks for nothing of the corpus itself; without a corpus, anybody.

        Raises:
            AccessDenied: the corpus's policy gives this agent nothing.
        """
        agent = self._agent(agent)
        if self.path.exists():
            with self.discreet(agent), self.seen_by(agent):
                pass

    def _agent(self, named: str | None) -> str | None:
        """Who asks.

        Raises:
            AccessDenied: somebody else than the one agent of this engine.
        """
        if self.agent is None or named in (None, self.agent):
            return self.agent or named
        from rolebundle.policy.scopes import denied

        if self.path.exists():
            self.recorder.note(self.corpus, "refused", agent=self.agent)
        raise denied()

    @contextmanager
    def discreet(self, agent: str | None) -> Iterator[None]:
        """A block whose errors do not tell an agent where things lie on this machine."""
        try:
            yield
        except RolebundleError as error:
            if (agent, self.agent) != (None, None):
                error.message, error.hint = (
                    self.concealed(error.message),
                    self.concealed(error.hint),
                )
                error.args = (error.message,)
            raise

    def concealed(self, text: str) -> str:
        """A text in which files and folders of this machine have their last name alone."""
        for place in (self.path, *self.overlay_folders):
            for name in {str(place.resolve()), str(place.absolute()), str(place)}:
                if place.name and name != place.name:
                    text = text.replace(name, place.name)
        return text

    def is_under_policy(self) -> bool:
        """Whether a policy was ever set for the corpus."""
        return self.path.exists() and policy_rows.ever_set(self.corpus)

    def interrupt(self) -> None:
        """End the search that runs now with :class:`Interrupted`; from any thread."""
        with self._swapping:
            for reader in (self._reader, self._narrowed):
                if reader is not None:
                    reader.interrupt()

    def refresh(self) -> None:
        """Let go of a corpus file that is no longer the one at its path; opened anew on demand."""
        readers = (self._reader, self._narrowed)
        if any(reader is not None and not reader.is_current() for reader in readers):
            self.close()

    def get(self, reference: str, agent: str | None = None) -> Lookup:
        """The passage, document or lines that a reference names.

        Args:
            reference: a chunk id, a document id, ``path:start-end``, or ``#id:from:count``.
            agent: who asks.

        Raises:
            UsageError: there is no such thing, or none that this agent may see.
            AccessDenied: the corpus's policy gives this agent nothing.
        """
        from rolebundle.retrieval.lookup import look_up

        with self.discreet(agent):
            with self.seen_by(agent) as (corpus, _):
                found = look_up(corpus, reference)
            whose = self._agent(agent)
            self.recorder.note(self.corpus, "get", agent=whose, allowed=len(found.passages))
            return found

    def documents(self, agent: str | None, after: int, count: int) -> list[DocumentMetadata]:
        """One page of the documents that an agent may see.

        Args:
            agent: who asks.
            after: how many of them were listed before.
            count: how many at most.

        Raises:
            AccessDenied: the corpus's policy gives this agent nothing.
        """
        from rolebundle.storage.documents import documents_after

        with self.discreet(agent), self.seen_by(agent) as (corpus, _):
            return documents_after(corpus, after, count)

    def status_for(self, agent: str | None) -> CorpusStatus:
        """What an agent may know of what the corpus holds.

        Raises:
            AccessDenied: the corpus's policy gives this agent nothing.
        """
        from rolebundle.retrieval.lookup import corpus_status

        with self.discreet(agent), self.seen_by(agent) as (corpus, _):
            status = corpus_status(corpus)
            # The file's size tells of what is hidden in it.
            return replace(status, location=self.path.name, bytes=0) if corpus.narrowed else status

    def status(self, *, check: bool = False, repair: bool = False) -> CorpusStatus:
        """What the corpus holds, for whoever owns it.

        Args:
            check: compare content, indexes and hashes; needs write permission.
            repair: mend what a check finds, where it can be mended.

        Raises:
            CorpusBusy, StorageError: a check or repair could not get at the file.
        """
        from rolebundle.retrieval.lookup import corpus_status
        from rolebundle.storage import check as corpus_check

        if not (check or repair):
            return self._with_offers(corpus_status(self.corpus))
        with self._writer() as corpus:
            if repair:
                corpus_check.repair(corpus)
            return corpus_status(corpus, corpus_check.problems(corpus))

    def _with_offers(self, status: CorpusStatus) -> CorpusStatus:
        from rolebundle.contracts.lookup import BetterModel
        from rolebundle.embedding.registry import available_models

        index = status.corpus.index
        if index is not None and index.provider != "static":
            return status
        better = [
            BetterModel(
                provider=model.provider,
                model=model.model,
                command=f"rolebundle embed --provider {model.provider} --model {model.model}",
                seconds=status.corpus.chunks / model.chunks_per_second,
                brings=model.benefit,
            )
            for model in available_models()
        ]
        return replace(status, better_models=better)

    def close(self) -> None:
        """Close the corpus file."""
        # An interrupt from another thread must not meet a connection that is just closing.
        with self._swapping:
            super().close()
            narrowed, self._narrowed = self._narrowed, None
            if narrowed is not None:
                narrowed.close()

    def __enter__(self) -> Engine:
        """The engine itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_governed(corpus: Corpus) -> bool:
    return policy_rows.ever_set(corpus) or compartments.any_quarantined(corpus)


def _moment(request: RetrievalRequest) -> datetime:
    # To the second, as the bundle names it: asked again at that time, every age is the same.
    return (request.now or datetime.now(UTC)).replace(microsecond=0)
