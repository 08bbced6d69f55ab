"""The corpus page: what there is, how old it is, what waits, and what was asked of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from rolebundle.contracts.audit import AuditRow, AuditSettings
from rolebundle.contracts.decisions import DecisionRecord
from rolebundle.contracts.doctor import DoctorReport
from rolebundle.contracts.lookup import Listing
from rolebundle.contracts.marks import MarkRecord
from rolebundle.contracts.roots import Root
from rolebundle.contracts.status import CorpusStatus, SourceStatus, WatchStatus
from rolebundle.contracts.terms import RANKED_LOWER
from rolebundle.ingest.heartbeat import is_alive
from rolebundle.interfaces.pages.page import render
from rolebundle.interfaces.pages.plots import Bar, bar_plot
from rolebundle.interfaces.pages.site import Site
from rolebundle.storage.content.documents import SourceDates
from rolebundle.storage.content.quarantine import FlaggedName
from rolebundle.text.counts import counted

MAX_ROWS = 100
MAX_RECORDS = 50
_MAX_BARS = 24


class Documents(NamedTuple):
    """The list of documents on the page.

    Attributes:
        listing: one page of them; ``None`` if ``problem`` says why there is none.
        prefix: what they were narrowed to; empty for all.
        after: the document that the page before ended with; empty for the first page.
    """

    listing: Listing | None
    prefix: str = ""
    after: str = ""
    problem: str = ""


class OwnerFacts(NamedTuple):
    """What only the owner sees.

    Attributes:
        dates: the dates of each source's documents.
        months: month → number of documents; empty for those without a date.
        flagged: the first documents in quarantine.
        verdicts: verdict of the scan → number of documents.
        audit: its settings; ``None`` if it cannot be read, for ``audit_problem``.
        records: its last rows, the newest first.
        report: the checks of the corpus; ``None`` if it was not checked.
    """

    dates: Sequence[SourceDates]
    months: Mapping[str, int]
    flagged: Sequence[FlaggedName]
    verdicts: Mapping[str, int]
    roots: Sequence[Root]
    marks: Sequence[MarkRecord]
    decisions: Sequence[DecisionRecord]
    audit: AuditSettings | None
    audit_problem: str
    records: Sequence[AuditRow]
    report: DoctorReport | None


class SourceRow(NamedTuple):
    """A source; ``dates`` are ``None`` for an agent."""

    source: SourceStatus
    dates: SourceDates | None


class AgentRow(NamedTuple):
    """What the records have of one agent; an empty name stands for the owner.

    Attributes:
        calls: number of its records.
        questions: number of those that are answers to a question.
        passages: number of passages that it got.
        kept_back: number of candidates that rules rejected; ``lower``: that others preceded.
        last: when it asked last.
    """

    agent: str
    calls: int
    questions: int
    passages: int
    kept_back: int
    lower: int
    last: str


class Unanswered(NamedTuple):
    """A question that got no passage.

    Attributes:
        query: its text, or a digest of it; empty if the audit keeps neither.
        times: how often it was asked.
        last: when it was asked last.
        reasons: rejection code → number of candidates, when it was asked last.
    """

    query: str
    role: str
    times: int
    last: str
    reasons: Mapping[str, int]


def corpus_page(
    status: CorpusStatus,
    documents: Documents,
    now: datetime,
    site: Site,
    owner: OwnerFacts | None,
) -> str:
    """The page of a corpus.

    Args:
        status: what it contains.
        documents: one page of its documents.
        now: the time by which the watcher is judged.
        site: the application around the page.
        owner: what only the owner sees; ``None`` for an agent.
    """
    dates = {source.source_id: source for source in owner.dates} if owner else {}
    sources = sorted(status.sources, key=lambda source: (-source.documents, source.source_id))
    return render(
        "corpus",
        site,
        status=status,
        documents=documents,
        sources=[SourceRow(source, dates.get(source.source_id)) for source in sources],
        owner=owner,
        remarks=[*_remarks(status, owner, now)] if owner else [],
        freshness=freshness_plot(owner.months) if owner else None,
        flagged=[(name, json.loads(name.kinds)) for name in owner.flagged] if owner else [],
        agents=agent_rows(owner.records) if owner else [],
        unanswered=unanswered(owner.records) if owner else [],
        is_watched=status.watch is not None and is_alive(status.watch, now),
        kept_back=kept_back,
        max_rows=MAX_ROWS,
        max_records=MAX_RECORDS,
    )


def _remarks(
    status: CorpusStatus, owner: OwnerFacts, now: datetime
) -> Iterator[tuple[str, str, str]]:
    """What needs the owner: how bad it is, a sentence, and what to do."""
    for check in owner.report.checks if owner.report else ():
        if check.state != "ok":
            level = "bad" if check.state == "problem" else "caution"
            yield level, f"{check.name}: {check.message}", check.remedy
    if owner.audit_problem:
        yield (
            "bad",
            f"The audit cannot be read: {owner.audit_problem}",
            "run `rolebundle policy audit verify`",
        )
    yield from _replication_remarks(status)
    if quarantined := owner.verdicts.get("quarantine", 0):
        is_single = quarantined == 1
        yield (
            "caution",
            f"{counted(quarantined, 'document')} {'is' if is_single else 'are'} in quarantine.",
            "look at each below, and release or drop it",
        )
    for index in status.indexes:
        if index.active and index.waiting:
            count = counted(index.waiting, "passage")
            yield (
                "caution",
                f"{count} without a vector: only their words are searched.",
                "run `rolebundle corpus embed`",
            )
        if index.active and index.fast_doubt:
            yield (
                "caution",
                f"The fast index is not used: {index.fast_doubt}",
                "run `rolebundle corpus embed --optimize`",
            )
    if not status.indexes and status.corpus.chunks:
        yield "caution", "No model: only words are searched.", "run `rolebundle corpus embed`"
    if status.fast_index_would_pay:
        yield (
            "plain",
            "An approximate index would make answers faster.",
            "run `rolebundle corpus embed --optimize`",
        )
    if problem := _watch_problem(status.watch, now):
        yield "caution", problem, "run `rolebundle watch`"
    if status.self_declared:
        count = counted(len(status.self_declared), "document")
        yield (
            "plain",
            f"{count} with authority by their own declaration.",
            "see below; limit it with max_trust in the manifest",
        )


def _replication_remarks(status: CorpusStatus) -> Iterator[tuple[str, str, str]]:
    if status.replica and status.replica.expired:
        yield (
            "caution",
            f"The replica was to be renewed by {status.replica.expires_at}.",
            "run `rolebundle pull`",
        )
    for known in status.publications:
        if known.purge_pending:
            yield (
                "caution",
                f"What was purged may still be in the replica at {known.target}.",
                "run `rolebundle publish`",
            )


def _watch_problem(watch: WatchStatus | None, now: datetime) -> str:
    """What is wrong with the watcher; empty if it is well, was stopped, or never ran."""
    if watch is None or (watch.state == "stopped" and not watch.problem):
        return ""
    if watch.problem:
        return f"The watcher has a problem: {watch.problem}."
    return "" if is_alive(watch, now) else "The watcher does not answer."


def freshness_plot(months: Mapping[str, int]) -> Markup | None:
    """Documents by month, or by year if there are many months; ``None`` without dates."""
    dated = {month: count for month, count in months.items() if month}
    periods: Counter[str] = Counter()
    for month, count in dated.items():
        periods[month if len(dated) <= _MAX_BARS else month[:4]] += count
    names = sorted(periods)
    earlier = names[:-_MAX_BARS]
    bars = [Bar(name, periods[name], f"{periods[name]:,}", "main") for name in names[-_MAX_BARS:]]
    if earlier:
        count = sum(periods[name] for name in earlier)
        bars.insert(0, Bar(f"until {earlier[-1]}", count, f"{count:,}", "plain"))
    if not bars:
        return None
    listed = ", ".join(f"{bar.name}: {bar.text}" for bar in bars)
    return bar_plot(bars, f"Number of documents by date. {listed}")


def kept_back(row: AuditRow) -> tuple[int, int]:
    """How many candidates rules rejected, and how many others preceded."""
    lower = sum(count for code, count in row.blocked.items() if code in RANKED_LOWER)
    return sum(row.blocked.values()) - lower, lower


def agent_rows(records: Sequence[AuditRow]) -> list[AgentRow]:
    """The agents of the records, the busiest first. The newest record comes first."""
    by_agent: dict[str, list[AuditRow]] = {}
    for record in records:
        by_agent.setdefault(record.agent, []).append(record)
    rows = [
        AgentRow(
            agent,
            len(own),
            sum(record.kind == "retrieve" for record in own),
            sum(record.allowed for record in own),
            sum(kept_back(record)[0] for record in own),
            sum(kept_back(record)[1] for record in own),
            own[0].time,
        )
        for agent, own in by_agent.items()
    ]
    return sorted(rows, key=lambda row: (-row.calls, row.agent))


def unanswered(records: Sequence[AuditRow]) -> list[Unanswered]:
    """The questions without a passage, the most frequent first. The newest record comes first."""
    records_by_question: dict[tuple[str, str], list[AuditRow]] = {}
    for record in records:
        if record.kind == "retrieve" and not record.allowed:
            records_by_question.setdefault((record.query, record.role), []).append(record)
    questions = [
        Unanswered(query, role, len(rows), rows[0].time, rows[0].blocked)
        for (query, role), rows in records_by_question.items()
    ]
    return sorted(questions, key=lambda question: -question.times)
