"""One corpus file, and what the engine and the admin share: its readers, models and audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from rolebundle.contracts.policy import AuditKind
from rolebundle.embedding import registry
from rolebundle.embedding.provider import (
    PASSAGES_DEADLINE_SECONDS,
    QUERY_DEADLINE_SECONDS,
    EmbeddingProvider,
    ProviderSpec,
    Unavailable,
)
from rolebundle.errors import ConfigurationError, CorpusBusy, EmbedderError, UsageError
from rolebundle.policy.audit import Recorder
from rolebundle.storage.address import replica_of
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.file import audit_path, is_there
from rolebundle.storage.opening import open_reader
from rolebundle.storage.publications import load_manifest, refuse_expired
from rolebundle.storage.records import has_policy
from rolebundle.storage.vector_index import active_index

RETRY_SECONDS = 30.0
"""How long a replica answers before the database is asked again."""


class Workspace:
    """One corpus file with its open readers, its embedding models and its audit.

    Readers and models are opened on first use and stay open until :meth:`close`. After that they
    are opened again on demand.

    Args:
        path: the corpus file. It need not exist yet.
        provider: the embedding model. Default: the model that made the corpus's active index, or
            the packaged static model if the corpus has no index.
        embed_url: the address of the model's server, instead of the one that the corpus remembers.
        allow_host: the only other machine that may be that server.

    Attributes:
        advice: makes the commands in a message name the corpus, so that they work as they are.
        unread_note: what may be missing for a task, because the corpus does not have it; empty if
            nothing is. Its second argument: whether there is little evidence for the task.
    """

    def __init__(
        self,
        path: Path | str,
        provider: EmbeddingProvider | None = None,
        *,
        embed_url: str = "",
        allow_host: str = "",
    ) -> None:
        self.path = Path(path)
        self.advice: Callable[[str], str] = str
        self.unread_note: Callable[[str, bool], str] = lambda _task, _is_thin: ""
        self.embed_url = embed_url
        self.allow_host = allow_host
        self.recorder = Recorder(self.path)
        self._default_provider = provider
        self._providers: dict[ProviderSpec, EmbeddingProvider] = {}
        self._reader: Corpus | None = None
        self._restricted_reader: Corpus | None = None
        self._closing = Lock()
        self._retry_at = 0.0
        """Until this moment of the monotonic clock, a replica answers in place of a database."""

    @property
    def has_own_model(self) -> bool:
        """Whether it was given a model, so that no other is used."""
        return self._default_provider is not None

    @property
    def corpus(self) -> Corpus:
        """The corpus, open for reading, with everything in it."""
        if self._reader is None or self._reader.is_closed:
            self._reader = self._open_reader()
        return self._reader

    def _open_reader(self) -> Corpus:
        """Open the corpus for reading, or the replica of a database that cannot be reached."""
        replica = replica_of(self.path)
        if monotonic() >= self._retry_at:
            try:
                return open_reader(self.path)
            except CorpusBusy as error:
                if error.code != "database_unreachable" or not replica.exists():
                    raise
            self._retry_at = monotonic() + RETRY_SECONDS
        reader = open_reader(replica)
        # An audit here comes with a policy, under which a replica for everyone would show too much.
        is_for_all = is_there(audit_path(self.path)) and not has_policy(reader)
        if is_for_all or load_manifest(reader) is None:
            reader.close()
            raise UsageError(
                "not_a_replica",
                f"{self.path}: the database cannot be reached, and {replica.name} is no replica"
                f"{' for an agent' if is_for_all else ''}",
                "delete that file, and run `rolebundle replica pull`",
            )
        reader.in_place_of = self.path.name
        return reader

    @property
    def answering_corpus(self) -> Corpus:
        """:attr:`corpus`, unless it is a replica that gives no answers any more.

        Raises:
            StorageError: ``replica_expired``.
        """
        refuse_expired(self.corpus)
        return self.corpus

    @property
    def restricted_corpus(self) -> Corpus:
        """The corpus, open for reading. It shows nothing until a view for an agent is set."""
        if self._restricted_reader is None or self._restricted_reader.is_closed:
            reader = self._open_reader()
            reader.enable_restriction()
            self._restricted_reader = reader
        return self._restricted_reader

    @contextmanager
    def open_writer(self, *, create: bool = False) -> Iterator[Corpus]:
        """Open the corpus for writing; at the end it remembers the head of a required audit.

        Args:
            create: also create or migrate the corpus, as an ingest does.

        Raises:
            UsageError: there is no corpus file, or it is a replica.
            WrongFile, CorpusCorrupt, CorpusBusy, StorageError: it cannot be opened.
        """
        from rolebundle.policy.access import save_database_access
        from rolebundle.storage.writing import open_writer

        if not create:
            open_reader(self.path).close()
        with open_writer(self.path) as corpus:
            corpus.before_commit = save_database_access
            yield corpus
            self.recorder.store_head(corpus)

    @contextmanager
    def recorded_change(
        self, kind: AuditKind, *, create: bool = False
    ) -> Iterator[tuple[Corpus, dict[str, Any]]]:
        """A change by the owner, which is committed only if it could be recorded.

        It has the arguments and errors of :meth:`open_writer`, and yields the corpus and the
        details of the record. See :meth:`rolebundle.policy.audit.Recorder.change`.
        """
        with (
            self.open_writer(create=create) as corpus,
            self.recorder.change(corpus, kind) as details,
        ):
            yield corpus, details

    def record_event(self, kind: AuditKind, **fields: Any) -> None:
        """Record something in the audit; see :meth:`.policy.audit.Recorder.record_event`."""
        self.recorder.record_event(self.corpus, kind, **fields)

    def query_provider(self, corpus: Corpus) -> EmbeddingProvider:
        """The model that embeds queries. A query must not wait long for its vector.

        If the model cannot be set up, its first use raises the error, so that the lexical lane can
        still answer.
        """
        return self._provider(corpus, QUERY_DEADLINE_SECONDS)

    def passage_provider(self, corpus: Corpus) -> EmbeddingProvider:
        """The model that embeds passages. It may take longer than for a query."""
        return self._provider(corpus, PASSAGES_DEADLINE_SECONDS)

    def _provider(self, corpus: Corpus, deadline_seconds: float) -> EmbeddingProvider:
        if self._default_provider is not None:
            return self._default_provider
        index, spec = active_index(corpus), ProviderSpec("static")
        if index is not None:
            spec = registry.spec_from_json(
                index.connection,
                index.identity.model,
                url=self.embed_url,
                allow_host=self.allow_host,
                deadline_seconds=deadline_seconds,
            )
        if spec not in self._providers:
            try:
                self._providers.setdefault(spec, registry.provider_for(spec))
            except (ConfigurationError, UsageError) as error:
                return Unavailable(EmbedderError(error.code, error.message, error.hint))
            except EmbedderError as error:
                return Unavailable(error)
        return self._providers[spec]

    def interrupt(self) -> None:
        """End the query that runs now with :class:`Interrupted`. Any thread may call this."""
        with self._closing:
            for reader in self._open_readers():
                reader.interrupt()

    def _open_readers(self) -> list[Corpus]:
        return [reader for reader in (self._reader, self._restricted_reader) if reader is not None]

    def refresh(self) -> None:
        """Close the readers if the file was replaced since, or the database may be back."""
        is_over = 0 < self._retry_at < monotonic()
        if is_over or not all(reader.is_current() for reader in self._open_readers()):
            self._retry_at = 0.0
            self.close()

    def close(self) -> None:
        """Close the readers and the audit. Models stay loaded."""
        # An interrupt from another thread must not meet a connection that is being closed.
        with self._closing:
            self.recorder.close()
            readers = self._open_readers()
            self._reader = self._restricted_reader = None
            for reader in readers:
                reader.close()
