"""The owner of one corpus ingests, updates and watches it, with a record in the audit.

The other things that an owner maintains are functions in the modules beside this one. Nothing here
checks who asks. What agents may ask is in ``engine.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

from rolebundle.admin.indexes import Indexing
from rolebundle.admin.purges import finish_purges
from rolebundle.contracts.ingest import IngestReport
from rolebundle.ingest.indexes import Progress, no_progress
from rolebundle.ingest.options import IngestOptions
from rolebundle.ingest.sync import ingest, update
from rolebundle.ingest.watch import Watcher
from rolebundle.storage import roots
from rolebundle.storage.corpus import Corpus, true_generation
from rolebundle.storage.publications import refuse_changes
from rolebundle.storage.sqlite import Closable
from rolebundle.workspace import Workspace


class Admin(Closable):
    """The maintenance of one corpus file.

    Args:
        workspace: the corpus file, or a workspace with its embedding model.
    """

    def __init__(self, workspace: Path | Workspace) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)

    def ingest(
        self,
        paths: Sequence[Path],
        options: IngestOptions | None = None,
        *,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Update the corpus from files; see :func:`rolebundle.ingest.sync.ingest`.

        The corpus file is created if it is missing. Pending purges are completed first. Chunks are
        embedded unless the option ``lexical_only`` is set.
        """
        options = options or IngestOptions()
        options = replace(options, lexical_only=bool(options.lexical_only))
        with self.workspace.open_writer(create=True) as corpus:
            finish_purges(corpus, self.workspace.recorder)
            provider = None if options.lexical_only else self.workspace.passage_provider(corpus)
            report = ingest(corpus, paths, provider, options, progress or no_progress)
            self._record_ingest(corpus, report)
            return report

    def update(
        self,
        options: IngestOptions | None = None,
        *,
        lexical_only: bool = False,
        progress: Progress = no_progress,
    ) -> IngestReport:
        """Update the corpus from all roots; see :func:`rolebundle.ingest.sync.update`.

        Chunks are embedded unless ``lexical_only`` is set or the last ingest of every root did not
        embed. Pending purges are completed first.
        """
        # It migrates the corpus, as an ingest with paths does, and creates none.
        with self.workspace.open_writer(create=self.workspace.path.exists()) as corpus:
            finish_purges(corpus, self.workspace.recorder)
            is_lexical = lexical_only or all(r.options.lexical_only for r in roots.load(corpus))
            provider = None if is_lexical else self.workspace.passage_provider(corpus)
            report = update(corpus, provider, options, progress)
            if report.added or report.updated or report.removed:
                self._record_ingest(corpus, report)
            return report

    def watcher(
        self,
        print_line: Callable[[str], None],
        stop: Event,
        *,
        polls: bool = False,
        indexing: Indexing | None = None,
        lexical_only: bool = False,
    ) -> Watcher:
        """A watch that keeps the corpus in step with its roots; see :mod:`rolebundle.ingest.watch`.

        Args:
            print_line: called with each line for a person.
            stop: ends the watch.
            polls: look at all files again and again, for file systems that tell of no changes.
            indexing: embeds after each pass, for a contextual model.
            lexical_only: do not embed.

        Raises:
            UsageError, CorpusCorrupt, WrongFile, StorageError: the corpus cannot be read.
        """
        path = self.workspace.path
        if path.exists():
            refuse_changes(self.workspace.corpus)

        def watched_paths() -> list[str]:
            self.workspace.refresh()
            return [root.location for root in roots.load(self.workspace.corpus)]

        def update(run: IngestOptions) -> IngestReport:
            report = self.update(run, lexical_only=lexical_only)
            if indexing and report.waiting:
                indexing.start()
            return report

        return Watcher(
            path,
            print_line,
            stop,
            update=update,
            paths=watched_paths,
            generation=lambda: true_generation(self.workspace.corpus),
            polls=polls,
        )

    def _record_ingest(self, corpus: Corpus, report: IngestReport) -> None:
        changes = report.model_dump(include={"added", "updated", "removed", "quarantined"})
        self.workspace.recorder.record_event(corpus, "ingest", details=changes)

    def close(self) -> None:
        """Close the corpus file. It is opened again on demand."""
        self.workspace.close()
