"""What the owner of a corpus may do: ingest, embed, purge, quarantine, policy, backups and status.

Each method opens the corpus, calls the function that does the work, and records that in the audit.
No method here checks who asks. What agents may ask is in ``engine.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, Self

from rolebundle.contracts.audit import AuditKind, AuditMode, AuditRow, AuditSettings, QueryMode
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.gate import GateStart
from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.purge import Receipt, StoreHistory
from rolebundle.contracts.status import CorpusStatus
from rolebundle.embedding.registry import ProviderSpec, provider_for, spec_to_json
from rolebundle.errors import UsageError
from rolebundle.ingest import approximate_indexes, indexes
from rolebundle.ingest.approximate_indexes import Optimized
from rolebundle.ingest.indexes import EmbeddingEstimate, EmbeddingReport, Progress, no_progress
from rolebundle.policy import access, purge
from rolebundle.policy.purge import PurgePlan, PurgeSelection
from rolebundle.scan import quarantine
from rolebundle.scan.confidential import without_secrets
from rolebundle.storage import purge as storage_purge
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content import documents
from rolebundle.storage.content.documents import SourceDates
from rolebundle.storage.content.quarantine import (
    Flagged,
    FlaggedName,
    count_flagged,
    flagged_documents,
    flagged_names,
)
from rolebundle.storage.corpus_state import true_generation
from rolebundle.storage.indexes import vector_cache
from rolebundle.storage.indexes.vector_index import active_index
from rolebundle.storage.location import rerank_cache_path
from rolebundle.storage.records import approvals, roots
from rolebundle.storage.records.approvals import Approval
from rolebundle.storage.records.replica import load_record, refuse_changes
from rolebundle.storage.records.stored_audit import (
    StoredAudit,
    load_stored_audit,
    save_stored_audit,
)
from rolebundle.workspace import Workspace

# The readers of an ingest and numpy take long to load, so only the methods that use them do.
if TYPE_CHECKING:
    from rolebundle.contracts.audit import CollectedAudits
    from rolebundle.contracts.backup import BackupReport, RestoreReport
    from rolebundle.contracts.decisions import DecisionRecord, NewDecision
    from rolebundle.contracts.doctor import DoctorReport, RepairReport
    from rolebundle.contracts.facts import FactRecord, RememberedFact, RememberRequest
    from rolebundle.contracts.marks import MarkRecord
    from rolebundle.contracts.operation_requests import ListRequest
    from rolebundle.contracts.replica import PublishReport, PullReport
    from rolebundle.contracts.roots import Root, RootChange
    from rolebundle.contracts.scopes import BridgeReport
    from rolebundle.contracts.terms import MarkState
    from rolebundle.ingest.options import IngestOptions
    from rolebundle.ingest.reading_progress import OnReading
    from rolebundle.ingest.report import IngestReport
    from rolebundle.ingest.watch import Watcher, WatchOptions
    from rolebundle.replication.publish import PublishOptions
    from rolebundle.replication.signatures import PrivateKey, PublicKey
    from rolebundle.replication.transports.transport import Transport
    from rolebundle.retrieval.inspection import DocumentInspection
    from rolebundle.retrieval.rerank.background import Warming
    from rolebundle.retrieval.rerank.fill_cache import WarmReport

INGEST_PURGE_PATIENCE_MS = 1_000
"""How long an ingest waits for other readers before it leaves a pending purge pending."""


class Admin:
    """The maintenance of one corpus file.

    Args:
        workspace: the corpus file, or a workspace with its embedding model.
    """

    def __init__(self, workspace: Path | Workspace) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)

    # -- files -------------------------------------------------------------------------------------

    def ingest(
        self,
        paths: Sequence[Path],
        options: IngestOptions | None = None,
        *,
        lexical_only: bool = False,
        progress: Progress | None = None,
        on_reading: OnReading | None = None,
    ) -> IngestReport:
        """Update the corpus from files; see :func:`rolebundle.ingest.sync.ingest`.

        The corpus file is created if it is missing. Pending purges are completed first.
        """
        from rolebundle.ingest.options import IngestOptions
        from rolebundle.ingest.reading_progress import no_reading
        from rolebundle.ingest.sync import ingest

        options = replace(options or IngestOptions(), lexical_only=lexical_only)
        with self.workspace.open_writer(create=True) as corpus:
            self._complete_purges(corpus, INGEST_PURGE_PATIENCE_MS)
            provider = None if lexical_only else self.workspace.passage_provider(corpus)
            report = ingest(
                corpus,
                paths,
                provider,
                options,
                progress or no_progress,
                on_reading or no_reading,
            )
            self._record_ingest(corpus, report)
            return report

    def update(
        self,
        options: IngestOptions | None = None,
        *,
        lexical_only: bool = False,
        progress: Progress | None = None,
        on_reading: OnReading | None = None,
    ) -> IngestReport:
        """Update the corpus from all roots; see :func:`rolebundle.ingest.sync.update`.

        Chunks are embedded unless ``lexical_only`` is set or the last ingest of every root did not
        embed. Pending purges are completed first.
        """
        from rolebundle.ingest.reading_progress import no_reading
        from rolebundle.ingest.sync import update

        with self.workspace.open_writer() as corpus:
            self._complete_purges(corpus, INGEST_PURGE_PATIENCE_MS)
            all_lexical = all(root.options.lexical_only for root in roots.load(corpus))
            is_lexical = lexical_only or all_lexical
            provider = None if is_lexical else self.workspace.passage_provider(corpus)
            report = update(
                corpus, provider, options, progress or no_progress, on_reading or no_reading
            )
            if report.added or report.updated or report.removed:
                self._record_ingest(corpus, report)
            return report

    def watcher(
        self,
        options: WatchOptions,
        print_line: Callable[[str], None],
        stop: Event,
        *,
        lexical_only: bool = False,
        warming: Warming | None = None,
    ) -> Watcher:
        """A watch that keeps the corpus in step with its roots; see :mod:`rolebundle.ingest.watch`.

        Args:
            options: how it works.
            print_line: called with each line for a person.
            stop: ends the watch.
            lexical_only: do not embed.
            warming: fills the rerank cache at the start and after changes; a pass pauses it.

        Raises:
            CorpusBusy: ``watch_running``: another process watches.
            UsageError, CorpusCorrupt, WrongFile, StorageError: the corpus cannot be read.
        """
        from rolebundle.ingest.heartbeat import first_heartbeat
        from rolebundle.ingest.watch import WatchedCorpus, Watcher

        path = self.workspace.path
        if path.exists():
            refuse_changes(self.workspace.corpus)
        heartbeat = first_heartbeat(path, polling=options.poll)

        def watched_paths() -> list[str]:
            self.workspace.refresh()
            known = self.roots()
            patterns = {root.options.scan.patterns for root in known} - {""}
            return [*(root.location for root in known), *sorted(patterns)]

        def update(run: IngestOptions) -> IngestReport:
            with warming.paused() if warming else nullcontext():
                report = self.update(run, lexical_only=lexical_only)
            if warming and (report.added or report.updated):
                warming.start()
            return report

        watched = WatchedCorpus(
            path,
            update=update,
            paths=watched_paths,
            generation=lambda: true_generation(self.workspace.corpus),
        )
        if warming and path.exists():
            warming.start()  # An earlier watch may have left it incomplete.
        return Watcher(watched, options, heartbeat, print_line, stop)

    def _record_ingest(self, corpus: Corpus, report: IngestReport) -> None:
        changes = {
            "added": report.added,
            "updated": report.updated,
            "removed": report.removed,
            "quarantined": report.quarantined,
        }
        self._record(corpus, "ingest", changes)

    def roots(self) -> list[Root]:
        """The folders and files that were ingested, and how, ordered by location."""
        return roots.load(self.workspace.corpus)

    def move_root(self, old: Path, new: Path) -> RootChange:
        """See :func:`rolebundle.ingest.root_changes.move_root`."""
        from rolebundle.ingest.root_changes import move_root

        with self.workspace.open_writer() as corpus:
            change = move_root(corpus, old, new)
            self._record(corpus, "ingest", {"moved": change.documents})
        return change

    def remove_root(self, path: Path, *, confirmed: bool = False) -> RootChange:
        """See :func:`rolebundle.ingest.root_changes.remove_root`."""
        from rolebundle.ingest.root_changes import remove_root

        if not confirmed:
            return remove_root(self.workspace.corpus, path, confirmed=False)
        with self.workspace.open_writer() as corpus:
            change = remove_root(corpus, path, confirmed=True)
            self._record(corpus, "ingest", {"removed": change.documents})
        return change

    def flags_of(self, location: str) -> dict[str, Any]:
        """See :func:`rolebundle.ingest.run_flags.flags_of`."""
        from rolebundle.ingest.run_flags import flags_of

        return flags_of(self.workspace.corpus, location)

    # -- documents ---------------------------------------------------------------------------------

    def document(self, reference: str, *, chunk: str = "", first: int = 1) -> DocumentInspection:
        """Describe a document, which may be in quarantine.

        Args:
            reference: a document id, a path in the corpus or a chunk id.
            chunk: the chunk id of a passage; the page has it, and its neighbours are searched.
            first: place of the first passage, from 1, if no passage was named.

        Raises:
            UsageError: no document or passage has this reference, or it names several documents.
        """
        from rolebundle.retrieval.inspection import inspect_document
        from rolebundle.retrieval.lookup import ReferenceScope

        with self.workspace.answering_corpus.reading():
            return inspect_document(
                self.workspace.corpus, reference, chunk, first, ReferenceScope(absolute=True)
            )

    def ls(self, request: ListRequest) -> Listing:
        """List the documents, also those in quarantine.

        Raises:
            UsageError: no document has the prefix.
        """
        from rolebundle.retrieval.listing import list_documents
        from rolebundle.retrieval.lookup import ReferenceScope

        with self.workspace.answering_corpus.reading():
            return list_documents(self.workspace.corpus, request, ReferenceScope(absolute=True))

    def source_dates(self) -> list[SourceDates]:
        """The dates of the documents of each source."""
        return documents.source_dates(self.workspace.corpus)

    def documents_by_month(self) -> dict[str, int]:
        """Month → number of documents of that date; empty for those without a date."""
        return documents.documents_by_month(self.workspace.corpus)

    # -- embedding indexes -------------------------------------------------------------------------

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
                connection = current.reach if current else indexes.NO_CONNECTION
            return indexes.build_index(
                corpus, provider, progress or no_progress, connection=connection, started_at=_now()
            )

    def plan_embedding(self, spec: ProviderSpec | None = None) -> EmbeddingEstimate:
        """Estimate the seconds and bytes that :meth:`embed` would take. Embeds a few chunks.

        Raises:
            EmbedderError: the model is not available.
        """
        corpus = self.workspace.corpus
        provider = provider_for(spec) if spec else self.workspace.passage_provider(corpus)
        return indexes.estimate(corpus, provider)

    def use_index(self, name: str) -> None:
        """Activate a complete index; see :func:`rolebundle.ingest.indexes.use_index`."""
        with self.workspace.open_writer() as corpus:
            indexes.use_index(corpus, name)

    def drop_index(self, name: str) -> None:
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

    def warm(
        self,
        spec: ProviderSpec,
        *,
        progress: Progress | None = None,
        pause: Callable[[], None] | None = None,
    ) -> WarmReport:
        """Fill the rerank cache with the vectors of all chunks. The corpus is only read.

        Args:
            spec: the model that reranks.
            progress: as for :meth:`embed`.
            pause: see :func:`rolebundle.retrieval.rerank.fill_cache.warm_cache`.

        Raises:
            EmbedderError: the model is not available. Vectors that were stored before are kept.
            StorageError, WrongFile, CorpusCorrupt, CorpusBusy: the cache cannot be used.
        """
        from rolebundle.retrieval.rerank.fill_cache import warm_cache

        cache = rerank_cache_path(self.workspace.path)
        return warm_cache(
            self.workspace.corpus, cache, provider_for(spec), progress or no_progress, pause
        )

    # -- quarantine --------------------------------------------------------------------------------

    def flagged_documents(self, verdict: str = "quarantine") -> list[Flagged]:
        """List the documents with findings of the scan.

        Args:
            verdict: the scan's verdict ``quarantine``, ``released`` or ``label``; empty for all.
        """
        return flagged_documents(self.workspace.answering_corpus, verdict)

    def flagged_names(self, limit: int, verdict: str = "quarantine") -> list[FlaggedName]:
        """The first documents with this verdict of the scan, without their texts."""
        return flagged_names(self.workspace.answering_corpus, verdict, limit)

    def count_flagged(self) -> dict[str, int]:
        """Verdict of the scan → number of documents."""
        return count_flagged(self.workspace.corpus)

    def flagged_document(self, document_id: str) -> Flagged:
        """See :func:`rolebundle.scan.quarantine.flagged_document`."""
        return quarantine.flagged_document(self.workspace.answering_corpus, document_id)

    def release_document(self, document_id: str) -> None:
        """See :func:`rolebundle.scan.quarantine.release_document`."""
        with self.workspace.open_writer() as corpus:
            quarantine.release_document(corpus, document_id)
            self._record(corpus, "release")

    def drop_document(self, document_id: str) -> None:
        """See :func:`rolebundle.scan.quarantine.drop_document`."""
        with self.workspace.open_writer() as corpus:
            quarantine.drop_document(corpus, document_id)
            self._record(corpus, "drop")

    # -- marks, decisions and facts ----------------------------------------------------------------

    def mark(self, reference: str, state: MarkState, marked_by: str, reason: str) -> MarkRecord:
        """See :func:`rolebundle.verification.marks.mark_as_owner`."""
        from rolebundle.verification.marks import mark_as_owner

        with self.workspace.open_writer() as corpus:
            record = mark_as_owner(corpus, reference, state, marked_by, reason)
            self._record(corpus, "mark", {"state": state})
        return record

    def remove_mark(self, target: str) -> MarkRecord:
        """See :func:`rolebundle.verification.marks.remove_mark_as_owner`."""
        from rolebundle.verification.marks import remove_mark_as_owner

        with self.workspace.open_writer() as corpus:
            record = remove_mark_as_owner(corpus, target)
            self._record(corpus, "mark", {"state": "unverified"})
        return record

    def marks(self) -> list[MarkRecord]:
        """Every mark, also those that have ended because the text changed."""
        from rolebundle.verification.marks import list_marks

        with self.workspace.answering_corpus.reading():
            return list_marks(self.workspace.corpus)

    def decide(self, new: NewDecision) -> DecisionRecord:
        """Record a decision of the owner. The corpus file is created if it is missing.

        Raises:
            UsageError: it supersedes a decision that does not exist, or is never valid.
        """
        from rolebundle.verification.decisions.records import record_decision

        with self.workspace.open_writer(create=True) as corpus:
            record = record_decision(corpus, new, datetime.now(UTC))
            details = {"decision": record.id, "effect": record.effect, "state": record.state}
            self._record(corpus, "decide", details)
        return record

    def end_decision(self, decision_id: str, ended_by: str, reason: str) -> DecisionRecord:
        """See :func:`rolebundle.verification.decisions.records.end_decision`."""
        from rolebundle.verification.decisions.records import end_decision

        with self.workspace.open_writer() as corpus:
            record = end_decision(corpus, decision_id, ended_by, reason, datetime.now(UTC))
            self._record(corpus, "decide", {"decision": record.id, "state": record.state})
        return record

    def decisions(self) -> list[DecisionRecord]:
        """Every decision, with its present state, ordered by scope and number."""
        from rolebundle.verification.decisions.records import list_decisions

        with self.workspace.answering_corpus.reading():
            return list_decisions(self.workspace.corpus, datetime.now(UTC))

    def remember(self, request: RememberRequest, remembered_by: str) -> RememberedFact:
        """File a fact with its source as the owner.

        Args:
            request: the fact and its source. Its agent is ignored.
            remembered_by: the name of the person.

        Raises:
            UsageError: the source is unknown, or nothing is left of the fact after the scan.
        """
        from rolebundle.verification import remember

        with self.workspace.open_writer() as corpus:
            with corpus.writing():
                author, now = remember.Author(remembered_by), _now()
                fact, chunk = remember.remember(corpus, corpus, request, author, now)
                self._record_fact(corpus, "remember", remembered_by, fact)
            if chunk is not None:
                remember.embed_passage(corpus, self.workspace.query_provider(corpus), chunk)
        return fact

    def facts(self) -> list[FactRecord]:
        """Every remembered fact, the last filed first."""
        from rolebundle.verification.remember import list_facts

        with self.workspace.answering_corpus.reading():
            return list_facts(self.workspace.corpus)

    def promote_fact(self, document_id: str, promoted_by: str) -> FactRecord:
        """Raise a fact's trust; see :func:`rolebundle.verification.remember.promote`."""
        from rolebundle.verification.remember import promote

        with self.workspace.open_writer() as corpus, corpus.writing():
            fact = promote(corpus, document_id, promoted_by)
            self._record_fact(corpus, "promote", promoted_by, fact)
        return fact

    def forget_fact(self, document_id: str, forgotten_by: str) -> FactRecord:
        """Remove a fact, and return it. :meth:`purge` also erases its bytes.

        Raises:
            UsageError: there is no such fact.
        """
        from rolebundle.verification.remember import forget

        with self.workspace.open_writer() as corpus, corpus.writing():
            fact = forget(corpus, document_id)
            self._record_fact(corpus, "forget", forgotten_by, fact)
        return fact

    def _record_fact(
        self,
        corpus: Corpus,
        kind: Literal["remember", "promote", "forget"],
        name: str,
        fact: RememberedFact,
    ) -> None:
        # Inside the transaction: nothing is changed without its record.
        self._record(corpus, kind, {"state": fact.state, "by": without_secrets(name)})

    # -- purges ------------------------------------------------------------------------------------

    def plan_purge(self, selection: PurgeSelection) -> PurgePlan:
        """What :meth:`purge` would erase; see :func:`rolebundle.policy.purge.plan_purge`."""
        with self.workspace.corpus.reading():
            return purge.plan_purge(self.workspace.corpus, selection)

    def purge(self, selection: PurgeSelection) -> Receipt:
        """Erase documents from the corpus's files; see :func:`rolebundle.policy.purge.purge`."""
        with self.workspace.open_writer() as corpus:
            receipt = purge.purge(corpus, selection)
            self._record_purge(corpus, receipt)
            return receipt

    def finish_purges(self) -> list[Receipt]:
        """Complete the pending purges and return their receipts."""
        with self.workspace.open_writer() as corpus:
            return self._complete_purges(corpus)

    def _complete_purges(self, corpus: Corpus, patience_ms: int | None = None) -> list[Receipt]:
        receipts = purge.finish_purges(corpus, patience_ms)
        for receipt in receipts:
            self._record_purge(corpus, receipt)
        return receipts

    def _record_purge(self, corpus: Corpus, receipt: Receipt) -> None:
        # The receipt's id is random. It links the two records and does not name what was erased.
        erased = {
            "documents": receipt.documents,
            "chunks": receipt.chunks,
            "receipt": receipt.id,
            "state": receipt.state,
        }
        self._record(corpus, "purge", erased)

    def migration_backups(self) -> list[Path]:
        """The backups that migrations left beside the corpus. A purge does not change them."""
        return storage_purge.backups(self.workspace.path)

    def delete_migration_backups(self) -> int:
        """Delete these backups, and return how many there were.

        Raises:
            StorageError: one of them could not be deleted.
        """
        return storage_purge.delete_backups(self.workspace.path)

    def visit_stores(self, *, erase: bool) -> list[StoreHistory]:
        """See :func:`rolebundle.replication.erasure.visit_stores`."""
        from rolebundle.replication.erasure import visit_stores

        return visit_stores(self.workspace.corpus, erase=erase)

    # -- replicas ----------------------------------------------------------------------------------

    def publish(
        self,
        transport: Transport,
        key: PrivateKey,
        options: PublishOptions,
        *,
        agent: str = "",
        scopes: Sequence[str] = (),
        level: str = "",
    ) -> PublishReport:
        """Publish a replica for an agent, or for everyone up to a level.

        See :func:`rolebundle.replication.publish.publish`, and for the arguments
        :func:`rolebundle.policy.audience.resolve_audience`.
        """
        from rolebundle.policy.audience import resolve_audience
        from rolebundle.replication.publish import publish

        refuse_changes(self.workspace.corpus)
        audience = resolve_audience(self.workspace.corpus, transport.target, agent, scopes, level)
        report = publish(self.workspace.path, audience, transport, key, options)
        details = {"generation": report.manifest.generation, "for": audience.agent}
        self._record(self.workspace.corpus, "publish", details)
        return report

    def forget_target(self, target: str, *, confirmed: bool = False) -> None:
        """Forget a target; see :func:`rolebundle.replication.publish.forget`."""
        from rolebundle.replication.publish import forget

        refuse_changes(self.workspace.corpus)
        publication = forget(self.workspace.path, target, confirmed=confirmed)
        details = {"forgotten": publication.generation, "for": publication.agent}
        self._record(self.workspace.corpus, "publish", details)

    def pull(
        self, transport: Transport, key: PublicKey, overlay_folders: Sequence[Path]
    ) -> PullReport:
        """Replace the replica by the published one; see :mod:`rolebundle.replication.pull`."""
        from rolebundle.replication.pull import pull

        report = pull(transport, self.workspace.path, key, overlay_folders)
        self.workspace.refresh()
        if report.manifest.policy_digest:
            # Also if it is current: an earlier pull may have been killed before it came to this.
            self.workspace.recorder.begin()
        if report.state == "updated":
            details = {"generation": report.manifest.generation}
            self._record(self.workspace.corpus, "pull", details)
        return report

    # -- backups and repair ------------------------------------------------------------------------

    def back_up(self, target: Path, overlay_folders: Sequence[Path] = ()) -> BackupReport:
        """Copy the corpus and its audit; see :func:`rolebundle.policy.backup.back_up`."""
        from rolebundle.policy.backup import back_up

        report = back_up(self.workspace.path, target, overlay_folders)
        self._record_backup(report)
        return report

    def rotate_backups(self, folder: Path, overlay_folders: Sequence[Path] = ()) -> BackupReport:
        """Add a backup to a folder of them; see :func:`rolebundle.policy.backup.rotate`."""
        from rolebundle.policy.backup import rotate

        report = rotate(self.workspace.path, folder, overlay_folders)
        self._record_backup(report)
        return report

    def _record_backup(self, report: BackupReport) -> None:
        details = {"documents": report.manifest.documents}
        self._record(self.workspace.corpus, "backup", details)

    def restore(
        self, source: Path, overlay_folders: Sequence[Path] = (), *, confirmed: bool = False
    ) -> RestoreReport:
        """Put a backup in the place of the corpus; see :func:`rolebundle.policy.backup.restore`."""
        from rolebundle.policy.backup import restore

        self.close()
        return restore(source, self.workspace.path, overlay_folders, confirmed=confirmed)

    def examine(self) -> DoctorReport:
        """Check the corpus and what belongs to it; see :func:`rolebundle.doctor.examine`."""
        from rolebundle.doctor import examine

        return examine(self.workspace.path)

    def repair(self) -> RepairReport:
        """Replace a damaged corpus by what can be saved; see :func:`rolebundle.repair.repair`."""
        from rolebundle.repair import repair

        self.close()
        return repair(self.workspace.path)

    # -- approvals and gates -----------------------------------------------------------------------

    def approve_manifest(self, path: Path) -> Approval:
        """Let a manifest count although it lies in a checkout or belongs to another user.

        It counts until its content changes. The corpus file is created if it is missing.

        Args:
            path: the manifest or its folder.

        Raises:
            UsageError: there is no manifest.
            ConfigurationError: it is invalid.
        """
        from rolebundle.ingest.manifests import approval_of

        return self._approve(Approval(*approval_of(path), _now()))

    def revoke_manifest(self, path: Path) -> str:
        """Withdraw the approval of a manifest. The next ingest reads its documents again.

        Args:
            path: the manifest or its folder; it may be gone.

        Returns:
            The location of the manifest.

        Raises:
            UsageError: it was not approved.
        """
        from rolebundle.ingest.manifests import location_of

        return self._revoke(str(location_of(path)))

    def approved_manifests(self) -> list[Approval]:
        """The manifests and contracts that were approved."""
        return approvals.approvals(self.workspace.corpus)

    def approve_contract(self, contract: Path) -> Approval:
        """Let the commands of a contract be run until its content changes.

        The corpus file is created if it is missing.

        Raises:
            UsageError: there is no such contract.
            ConfigurationError: it is wrong.
        """
        from rolebundle.verification.gate.contract import load_contract

        loaded = load_contract(contract)
        return self._approve(Approval(str(loaded.path), loaded.content_hash, _now()))

    def revoke_contract(self, contract: Path) -> str:
        """Withdraw the approval of a contract, which may be gone; return its location.

        Raises:
            UsageError: it was not approved.
        """
        from rolebundle.verification.gate.contract import location_of

        return self._revoke(str(location_of(contract)))

    def _approve(self, approval: Approval) -> Approval:
        with self.workspace.open_writer(create=True) as corpus:
            with corpus.writing():
                approvals.approve(corpus, approval)
            self._record(corpus, "trust", {"approved": 1})
        return approval

    def _revoke(self, location: str) -> str:
        with self.workspace.open_writer() as corpus:
            with corpus.writing():
                was_approved = approvals.revoke(corpus, location)
            if not was_approved:
                raise UsageError(
                    "not_approved",
                    f"{location}: was not approved",
                    "`rolebundle trust list` shows what was approved",
                )
            self._record(corpus, "trust", {"revoked": 1})
        return location

    def gate_start(self, contract: Path, *, restart: bool = False) -> GateStart:
        """Record the state of the files that a contract names; see :meth:`Engine.gate_check`.

        The corpus file is created if it is missing.

        Args:
            contract: the contract's file.
            restart: replace the baseline of an earlier start.

        Raises:
            UsageError: ``no_contract``, or ``gate_started``: it was started before.
            ConfigurationError: the contract is wrong.
        """
        from rolebundle.verification.gate.contract import load_contract
        from rolebundle.verification.gate.start import start_gate

        loaded = load_contract(contract)
        with self.workspace.open_writer(create=True) as corpus:
            start = start_gate(corpus, loaded, datetime.now(UTC), restart=restart)
            details = {
                "step": "restart" if start.restarts else "start",
                "contract_hash": start.contract_hash,
                "restarts": start.restarts,
            }
            self._record(corpus, "gate", details)
        return start

    def count_blocks(self, contract: Path, blocks: int) -> bool:
        """See :func:`rolebundle.verification.gate.start.count_blocks`."""
        from rolebundle.verification.gate.start import count_blocks

        with self.workspace.open_writer() as corpus:
            return count_blocks(corpus, contract, blocks)

    # -- policy and audit --------------------------------------------------------------------------

    def set_policy(self, content: str, kind: str, location: str = "") -> int:
        """Put a policy into force: which agent may see what.

        Args:
            content: the policy's text.
            kind: ``toml`` or ``json``.
            location: the policy file; empty if there is none. If the file is missing or changed
                later, every agent is denied.

        Returns:
            The number of documents that moved to another compartment.

        Raises:
            ConfigurationError: the policy is malformed. The former policy stays in force.
        """
        with self.workspace.open_writer() as corpus:
            moved = access.set_policy(corpus, content, kind, location, _now())
        self.workspace.recorder.begin()
        self._record(self.workspace.corpus, "scopes", {"moved": moved})
        return moved

    def find_bridges(
        self, threshold: float, limit: int, *, progress: Progress | None = None
    ) -> BridgeReport:
        """See :func:`rolebundle.policy.bridges.find_bridges`."""
        from rolebundle.policy.bridges import find_bridges

        bridges = find_bridges(self.workspace.answering_corpus, threshold, limit, progress)
        self.workspace.recorder.note(self.workspace.corpus, "bridges", allowed=len(bridges.bridges))
        return bridges

    def set_audit(
        self, mode: AuditMode | None = None, query: QueryMode | None = None
    ) -> AuditSettings:
        """Change the settings of the audit, and return those in effect.

        The mode ``required`` is also stored in the corpus, with the audit's head: then an audit
        that is missing, or that lost its last rows, gives no answers. Setting it again accepts the
        audit that is there, and records which head is missing. In a replica its publisher decides
        whether records are required.

        Raises:
            UsageError: there is no corpus; or it is a replica, and would have to be changed.
            CorpusBusy, WrongFile, CorpusCorrupt, StorageError: they were not changed.
        """
        from rolebundle.policy.audit import AuditLog

        known = load_stored_audit(self.workspace.corpus)
        with AuditLog(self.workspace.path, floor="required" if known.required else "off") as log:
            if mode is None and query is None:
                return log.settings()
            settings = log.settings()
            settings = AuditSettings(mode=mode or settings.mode, query=query or settings.query)
            if known.required != (settings.mode == "required"):
                # The corpus would have to remember it.
                refuse_changes(self.workspace.corpus)
            lost = known.required and not log.has(known)
            log.set(settings, {"lost_rows": known.rows} if lost else {})
        required = settings.mode == "required"
        if (required or known.required) and load_record(self.workspace.corpus) is None:
            with self.workspace.open_writer() as corpus, corpus.writing():
                save_stored_audit(corpus, StoredAudit(required))
        return settings

    def audit_rows(self, limit: int) -> tuple[AuditSettings, list[AuditRow]]:
        """The settings of the audit, and its last rows, the newest first; none without an audit.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: it cannot be read.
        """
        from rolebundle.policy.audit import AuditLog

        with AuditLog(self.workspace.path) as log:
            rows = [*log.rows(limit=limit, newest=True)] if log.exists else []
            return log.settings(), rows

    def collect_audits(self, sources: Sequence[Path]) -> CollectedAudits:
        """Add the new rows of replicas' audits to the collection beside the corpus.

        See :func:`rolebundle.policy.audit_collection.collect`.

        Raises:
            UsageError: there is no corpus.
            WrongFile, CorpusCorrupt, CorpusBusy, StorageError: the collection cannot be written.
        """
        from rolebundle.contracts.audit import CollectedAudits
        from rolebundle.policy.audit_collection import collect

        corpus = self.workspace.corpus
        logs = collect(self.workspace.path, sources, _now)
        details = {
            "logs": len({log.log_id for log in logs if log.log_id}),
            "rows": sum(log.new_rows for log in logs),
            "flawed": sum(log.state != "ok" for log in logs),
        }
        self._record(corpus, "collect", details)
        return CollectedAudits(logs=logs)

    def _record(
        self, corpus: Corpus, kind: AuditKind, details: Mapping[str, Any] | None = None
    ) -> None:
        """Record in the audit what the owner has done."""
        self.workspace.recorder.note(corpus, kind, details=details)

    # -- status ------------------------------------------------------------------------------------

    def status(self) -> CorpusStatus:
        """Counts, sources, indexes and rules of the corpus."""
        from rolebundle.status import owner_status

        return owner_status(self.workspace.corpus)

    def advised_status(self, overlay_folders: Sequence[Path]) -> CorpusStatus:
        """The status with advice; see :func:`rolebundle.status.advised_status`."""
        from rolebundle.status import advised_status

        return advised_status(self.workspace.corpus, overlay_folders)

    def checked_status(self) -> CorpusStatus:
        """The status with the problems that a check of the whole file finds.

        Raises:
            CorpusBusy, StorageError: the file could not be opened for a check.
        """
        from rolebundle.status import checked_status

        return checked_status(self.workspace)

    def close(self) -> None:
        """Close the corpus file. It is opened again on demand."""
        self.workspace.close()

    def __enter__(self) -> Self:
        """The admin itself; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _now() -> str:
    return iso_utc(datetime.now(UTC))
