"""The owner's functions on embedding indexes, also in the background."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Event, Thread

from rolebundle.embedding.packaged import cores
from rolebundle.embedding.provider import ProviderSpec
from rolebundle.embedding.registry import provider_for, spec_to_json
from rolebundle.errors import RolebundleError
from rolebundle.ingest import indexes
from rolebundle.storage.file import indexing_path, try_lock
from rolebundle.storage.publications import stored_manifest
from rolebundle.storage.vector_index import active_index
from rolebundle.workspace import Workspace


def embed(
    workspace: Workspace,
    spec: ProviderSpec | None = None,
    *,
    progress: indexes.Progress = indexes.no_progress,
    parallel: int | None = None,
    max_seconds: float = inf,
) -> indexes.EmbeddingReport:
    """Embed the chunks that wait for a vector.

    Args:
        workspace: of the corpus.
        spec: build the index of this model and activate it when it is complete. Default: that
            of the corpus's contextual model, else continue with the active index.
        parallel: see :func:`rolebundle.ingest.indexes.fill_index`.
        max_seconds: as ``parallel``.
        progress: called with the current step, how many units of it are done, and how many
            there are.

    Raises:
        EmbedderError: the model is not available. Vectors that were stored before are kept.
    """
    with workspace.open_writer() as corpus:
        chosen, current = spec, active_index(corpus)
        if spec is None and not workspace.has_own_model:
            spec, _ = indexes.contextual_model(corpus)
            if spec and spec.provider != "onnx":
                chosen = replace(spec, url=workspace.embed_url, allow_host=workspace.allow_host)
        spec = chosen or spec
        provider = provider_for(spec) if spec else workspace.passage_provider(corpus)
        connection = spec_to_json(chosen) if chosen else indexes.NO_CONNECTION
        if chosen is None and current and current.identity.model.provider != "static":
            connection = current.connection
        return indexes.build_index(
            corpus,
            provider,
            progress,
            connection=connection,
            parallel=parallel,
            max_seconds=max_seconds,
        )


def complete(
    workspace: Workspace,
    *,
    progress: indexes.Progress = indexes.no_progress,
    parallel: int | None = None,
    is_patient: bool = True,
) -> indexes.EmbeddingReport | None:
    """Build or complete the index of the corpus's contextual model, in one process at a time.

    Args:
        workspace: of the corpus.
        progress: as for :func:`embed`.
        parallel: as for :func:`embed`.
        is_patient: whether it may take longer than ``PATIENCE_SECONDS``.

    Returns:
        ``None`` if nothing waits, or if another process does it.

    Raises:
        EmbedderError: the model is not available. Vectors that were stored before are kept.
    """
    workspace.refresh()
    if workspace.has_own_model or stored_manifest(workspace.corpus):
        return None
    spec, _ = indexes.contextual_model(workspace.corpus)
    if spec is None or not indexes.is_due(workspace.corpus, spec):
        return None
    with try_lock(indexing_path(workspace.path)) as is_alone:
        if not is_alone:
            return None
        seconds = inf if is_patient else indexes.PATIENCE_SECONDS
        return embed(workspace, progress=progress, parallel=parallel, max_seconds=seconds)


def drop_index(workspace: Workspace, name: str) -> None:
    """Remove an index that is not active; see :func:`rolebundle.ingest.indexes.drop_index`."""
    with workspace.open_writer() as corpus:
        indexes.drop_index(corpus, name)


_POLL_SECONDS = 30.0
"""How often it looks whether another process has ingested."""


class Indexing:
    """A thread that embeds what waits for the corpus's contextual model, on all cores but one.

    Of several processes one does it; see :func:`rolebundle.admin.indexes.complete`. What
    was embedded is stored, however it ends.

    Args:
        path: the corpus file, which may be missing.
        report_problem: called with a warning, unless it is the same as the last one.
    """

    def __init__(self, path: Path, report_problem: Callable[[str], None]) -> None:
        self._path, self._report_problem = path, report_problem
        self._is_due, self._is_stopped = Event(), False
        self._thread: Thread | None = None
        self._last_problem = ""

    def start(self) -> None:
        """Begin, or look again now whether something waits."""
        self._is_due.set()
        if self._thread is None:
            # It does not keep the process from ending.
            self._thread = Thread(target=self._work, name="indexing", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Embed nothing more. It ends after the batches that have begun."""
        self._is_stopped = True
        self._is_due.set()

    def _work(self) -> None:
        while not self._is_stopped:
            self._is_due.clear()
            problem = ""
            try:
                if self._path.exists():
                    with closing(Workspace(self._path)) as workspace:
                        parallel = max(1, cores() - 1)
                        report = complete(workspace, progress=self._check, parallel=parallel)
                    problem = report.problem if report else ""
            except (RolebundleError, OSError) as error:
                problem = str(error)
            if problem and problem != self._last_problem:
                self._report_problem(f"warning: the contextual index is not complete: {problem}")
            self._last_problem = problem
            self._is_due.wait(_POLL_SECONDS)

    def _check(self, _step: str, _done: int, _total: int) -> None:
        if self._is_stopped:
            raise SystemExit  # It ends the thread, and is not reported.
