"""The audit: who asked what, how much was shown, how much was kept back, and what was changed.

Records are made by the engine, through every door alike, as the settings in the audit's own file
say (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rolebundle.contracts.audit import (
    AUDIT_MODES,
    QUERY_MODES,
    AuditEntry,
    AuditKind,
    AuditMode,
    AuditRow,
    AuditSettings,
    Verification,
)
from rolebundle.errors import RolebundleError, StorageError, UsageError
from rolebundle.policy.audit_check import check
from rolebundle.storage import audit_log
from rolebundle.storage.audit_chain import bounded, canonical
from rolebundle.storage.audit_file import (
    create,
    damaged,
    open_audit_reader,
    open_audit_writer,
)
from rolebundle.storage.location import audit_path, is_there
from rolebundle.storage.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from rolebundle.contracts.bundle import RetrievalBundle


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of an entry: its row, where one was made, and what the caller must hear."""

    row: AuditRow | None = None
    warning: str = ""


class AuditLog:
    """The audit of one corpus.

    Args:
        corpus: the corpus file; the audit lies beside it.
        floor: the least that is wanted whatever the audit's own settings say, and also where its
            file has gone.
        clock: the time of a row, as ISO 8601 in UTC.
    """

    def __init__(
        self, corpus: Path, *, floor: AuditMode = "off", clock: Callable[[], str] | None = None
    ) -> None:
        self.path = audit_path(corpus)
        self._floor = floor
        self._clock = clock or _now
        self._writer: SqliteFile | None = None
        self._known: AuditSettings | None = None
        self._one_at_a_time = Lock()

    # -- settings ------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether something has the audit's name."""
        return is_there(self.path)

    def settings(self) -> AuditSettings:
        """What governs: the settings in the file, or the floor where it asks for more.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: they cannot be read.
        """
        if not self.exists:
            return AuditSettings(mode=self._floor)
        with open_audit_reader(self.path) as log:
            return self._raised(_settings_of(log))

    def set(
        self, settings: AuditSettings, details: Mapping[str, Any] | None = None
    ) -> AuditSettings:
        """Change the settings, for every door; the file is made where there is none.

        Args:
            settings: the new ones.
            details: what else belongs on record about the change, such as who made it.

        Raises:
            CorpusBusy, WrongFile, CorpusCorrupt, StorageError: they were not changed.
        """
        more = dict(details or {})
        if self.exists or not self._made(settings, more):
            with open_audit_writer(self.path) as log:
                audit_log.configure(log, settings, self._clock, more)
        self._known = self._raised(settings)
        return self._known

    def begin(self, settings: AuditSettings) -> AuditSettings:
        """Set what nobody has set yet; an audit that exists keeps its settings, ``off`` included.

        Raises:
            WrongFile, CorpusCorrupt, StorageError: there is an audit that cannot be read, or none
                can be made.
        """
        if not self.exists:
            self._made(settings, {})
        return self.settings()

    def _made(self, settings: AuditSettings, details: dict[str, Any]) -> bool:
        return create(self.path, lambda log: audit_log.begin(log, settings, self._clock, details))

    def _raised(self, settings: AuditSettings) -> AuditSettings:
        mode = max(settings.mode, self._floor, key=AUDIT_MODES.index)
        return AuditSettings(mode=mode, query=settings.query)

    # -- recording -----------------------------------------------------------------------------

    def record(self, entry: AuditEntry) -> Recorded:
        """Put an entry on record, if the settings want one; it is on the disk afterwards.

        Returns:
            the row, and a warning to pass on where it could not be made, or where the rows before
            it are not what they were.

        Raises:
            StorageError: ``audit_unwritable``: the record is required, or whether it is cannot be
                told, and it could not be made. Give no answer.
        """
        with self._one_at_a_time:
            if self._known is None and self._floor == "off" and not self.exists:
                return Recorded()
            mode: AuditMode | None = None
            try:
                log = self._appending()
                self._known = self._raised(_settings_of(log))
                mode = self._known.mode
                if mode == "off":
                    return Recorded()
                appended = audit_log.append(log, entry, self._clock)
            except RolebundleError as error:
                self.close()
                return self._failed(mode or self._wanted(), error)
        return Recorded(
            appended.row,
            ""
            if appended.intact
            else f"{self.path}: the audit's last rows are not what was written; "
            "run `rolebundle audit verify`",
        )

    def _appending(self) -> SqliteFile:
        # A row in a file that has lost its name would be a row that nobody finds.
        if self._writer is not None and not self._writer.is_current():
            self.close()
        if self._writer is None:
            self._writer = open_audit_writer(self.path)
        return self._writer

    def _wanted(self) -> AuditMode:
        """What is wanted where the file cannot be appended to."""
        known = self._known.mode if self._known else None
        if not self.exists:
            # It was there, or it is demanded: that it is gone turns nothing off.
            return known or self._floor
        try:
            return self.settings().mode
        except RolebundleError:
            # The strictest, unless this process knows better. That the audit was off says nothing:
            # somebody may have changed it since.
            return known if known and known != "off" else "required"

    def _failed(self, mode: AuditMode, error: RolebundleError) -> Recorded:
        if mode == "off":
            return Recorded()
        if mode == "on":
            return Recorded(None, f"no record of this was made in the audit: {error.message}")
        raise StorageError(
            "audit_unwritable",
            f"no record could be made in the audit, so no answer is given: {error.message}",
            f"{error.hint}; whoever runs the corpus may also make records optional: "
            "`rolebundle audit set --mode on`",
        ) from error

    # -- reading -------------------------------------------------------------------------------

    def rows(
        self,
        agent: str | None = None,
        *,
        by: str | None = None,
        since: str = "",
        kind: str = "",
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[AuditRow]:
        """Rows of the audit.

        Args:
            agent: who reads. An agent gets its own rows, counted from 1 and without hashes, since
                the true numbers tell how much others do; nobody (``""``) gets none. ``None`` is
                the administrator.
            by: whose rows the administrator wants.
            since: from this time on, as ISO 8601 in UTC.
            kind: of this kind.
            limit: at most so many.
            newest: the newest first.

        Raises:
            UsageError: there is no audit.
            WrongFile, CorpusCorrupt, StorageError: it cannot be read.
        """
        if agent == "":
            return
        whose = by if agent is None else bounded(agent)
        with open_audit_reader(self.path) as log:
            found = audit_log.pages(log, by=whose, since=since, kind=kind, newest=newest)
            own = _OwnNumbers(log)
            for row in islice(found, limit):
                yield row if agent is None else own.of(row)

    def row(self, seq: int, agent: str | None = None) -> AuditRow:
        """One row, by the number that :meth:`rows` gives it.

        Raises:
            UsageError: there is no such row, or no audit.
        """
        with open_audit_reader(self.path) as log:
            if agent is None:
                found = audit_log.one_row(log, seq)
            else:
                found = audit_log.nth_row_of(log, bounded(agent), seq) if agent else None
        if found is not None:
            return found if agent is None else _for_its_agent(found, seq)
        raise UsageError(
            "no_such_row", f"the audit has no row {seq}", "run `rolebundle audit list`"
        )

    def export(self, agent: str | None = None) -> Iterator[str]:
        """Rows as lines of JSON, each the very text that was hashed with the hash put in.

        Raises:
            UsageError, WrongFile, CorpusCorrupt, StorageError: as for :meth:`rows`.
        """
        for row in self.rows(agent):
            yield canonical(row.model_dump())

    def verify(self, expect: str = "") -> Verification:
        """Whether the rows are those that were written, in their order, and all of them.

        Args:
            expect: a head, ``seq:hash``, from an earlier time.

        Raises:
            UsageError: there is no audit, or ``expect`` is no head.
            WrongFile, StorageError: it cannot be read.
        """
        return check(self.path, expect)

    def close(self) -> None:
        """Close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            # What was acknowledged is in its log; folding it into the file can wait.
            with suppress(RolebundleError):
                writer.close()

    def __enter__(self) -> AuditLog:
        """The audit itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def entry_of_bundle(
    bundle: RetrievalBundle,
    kind: AuditKind = "retrieve",
    *,
    agent: str = "",
    action: str = "",
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """What is put on record of an answer: counts and digests, and the query as the audit keeps it.

    Args:
        bundle: the answer as it is given.
        kind: through which call.
        agent: who asked.
        action: what for.
        details: small and plain: names of approvals, no ids and no text of documents.
    """
    return AuditEntry(
        kind=kind,
        agent=agent,
        role=bundle.role_id,
        action=action,
        query=bundle.query.task_text,
        bundle_digest=bundle_digest(bundle),
        allowed=len(bundle.selected),
        blocked={code: count for code, count in bundle.rejected_summary.items() if count},
        details=dict(details or {}),
    )


def bundle_digest(bundle: RetrievalBundle) -> str:
    """BLAKE2b over the bundle's canonical JSON without timings: the same for a saved bundle."""
    text = canonical(_whole_as_integers(bundle.without_timings()))
    return f"blake2b:{blake2b(text.encode(), digest_size=32).hexdigest()}"


def _whole_as_integers(value: Any) -> Any:
    # A bundle that was read back has 365.0 where the pipeline wrote 365.
    if isinstance(value, dict):
        return {name: _whole_as_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def iso_moment(text: str) -> str:
    """A date or a time as rows have it.

    Raises:
        UsageError: it is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return _iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(
            "bad_time",
            f"{text[:40]!r} is not an ISO 8601 date or time",
            "write it as 2026-03-01 or 2026-03-01T09:30:00Z",
        ) from None


def _now() -> str:
    return _iso(datetime.now(UTC))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _settings_of(log: SqliteFile) -> AuditSettings:
    head = audit_log.read_head(log)
    modes = [mode for mode in AUDIT_MODES if mode == head.mode]
    queries = [query for query in QUERY_MODES if query == head.query]
    if not (modes and queries):
        raise damaged(log.path, "its settings are none that there are")
    return AuditSettings(mode=modes[0], query=queries[0])


class _OwnNumbers:
    """Numbers rows by their place among their agent's own, counting each of them once."""

    def __init__(self, log: SqliteFile) -> None:
        self._log, self._seq, self._number = log, 0, 0

    def of(self, row: AuditRow) -> AuditRow:
        ahead = audit_log.count_of(self._log, row.agent, self._seq, row.seq)
        back = audit_log.count_of(self._log, row.agent, row.seq, self._seq)
        self._seq, self._number = row.seq, self._number + ahead - back
        return _for_its_agent(row, self._number)


def _for_its_agent(row: AuditRow, number: int) -> AuditRow:
    return AuditRow(**(row.model_dump() | {"seq": number, "previous": "", "hash": ""}))
