"""The pages of an answer, of `why`, of roles side by side, and of a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import (
    Rejection,
    RetrievalBundle,
    Scores,
    ScoreWeights,
    SelectedChunk,
)
from rolebundle.contracts.codes import WARNINGS
from rolebundle.contracts.documents import DocumentMetadata, Passage
from rolebundle.contracts.memory import MarkRecord
from rolebundle.contracts.terms import DEFAULT_MAX_AGE_DAYS, LANES, RejectionCode
from rolebundle.contracts.why import ComparedPassage, Comparison, RoleView, Standing, Why
from rolebundle.ingest.authority import GOVERNANCE_KEYS
from rolebundle.interfaces.excerpt import Terms
from rolebundle.interfaces.pages import words
from rolebundle.interfaces.pages.page import FILE, Site, marked_parts, marked_text, render, visible
from rolebundle.interfaces.render import query_terms, replica_note
from rolebundle.retrieval.filter import age_days, freshness_at
from rolebundle.retrieval.inspection import MAX_PASSAGES, DocumentInspection
from rolebundle.retrieval.passage_text import limited_use
from rolebundle.retrieval.where import conditions
from rolebundle.scan.confidential import without_secrets
from rolebundle.scan.finding import Finding
from rolebundle.storage.quarantine import Flagged
from rolebundle.text.words import counted

_OF_PASSAGES = ("NO_HIGH_TRUST_MATCH", "ONLY_SHARED_CORPUS", "STALE_DOMINANT")
"""Warnings that say nothing about an empty answer."""


MAX_NOTES = 3


class ScorePart(NamedTuple):
    """A part of a final score.

    Attributes:
        kind: CSS class of its colour.
        name: what it measures.
        value: the term, in [0, 1], before it is multiplied.
        weight: what it is multiplied with.
        points: what it adds to the final score.
    """

    kind: str
    name: str
    value: float
    weight: float
    points: float


def answer_page(bundle: RetrievalBundle, site: Site = FILE) -> str:
    """The page of a bundle."""
    terms = query_terms(bundle)
    lanes = [chunk.lanes for chunk in bundle.selected]
    lanes += [rejection.lanes or [] for rejection in bundle.rejected]
    groups = _rejected_groups(bundle)
    return render(
        "answer",
        site,
        bundle=bundle,
        lanes={lane: sum(lane in proposing for proposing in lanes) for lane in LANES},
        refused=[group for group in groups if words.is_rule(group["code"])],
        lower=[group for group in groups if not words.is_rule(group["code"])],
        passages=[
            {
                "chunk": chunk,
                "title": marked_text(_title(chunk), terms),
                "text": marked_text(chunk.content, terms),
                "parts": score_parts(chunk.scores, bundle.weights),
                "limited_use": limited_use(chunk.allowed_actions),
            }
            for chunk in bundle.selected
        ],
        missing=_missing_words(bundle, terms),
        # The bar of every passage has the scale of the best one.
        top=max((chunk.scores.final for chunk in bundle.selected), default=1.0),
        warnings=_warnings(bundle),
        from_replica=replica_note(bundle),
    )


def _title(chunk: SelectedChunk) -> str:
    return words.heading_path(chunk.title or chunk.document_id, chunk.headings)


def score_parts(scores: Scores, weights: ScoreWeights | None) -> list[ScorePart]:
    """The terms of a final score that are not 0. Empty without weights, as in older bundles."""
    if weights is None:
        return []
    terms = (
        ("words", "the task's words", scores.lexical, weights.lexical),
        ("meaning", "its meaning", scores.semantic, weights.semantic),
        ("rules", "rules, trust and age", scores.metadata, weights.metadata),
        ("vocabulary", "the role's words", scores.rerank, weights.rerank),
        ("diversity", "source diversity", -scores.diversity_penalty, 1.0),
    )
    return [
        ScorePart(kind, name, value, weight, value * weight)
        for kind, name, value, weight in terms
        if weight and (value or kind != "diversity")
    ]


def _missing_words(bundle: RetrievalBundle, terms: Terms) -> list[str]:
    """The words of the task that no selected passage has, as they are searched for."""
    present = {
        match.term
        for chunk in bundle.selected
        for text in (_title(chunk), chunk.content, *chunk.metadata.tags)
        for match in terms.find(text)
    }
    return [word for place, word in enumerate(bundle.query.lexical_query) if place not in present]


def _rejected_groups(bundle: RetrievalBundle) -> list[dict[str, Any]]:
    """The candidates by rejection code, with their number and the most frequent explanations."""
    groups: dict[RejectionCode, list[Rejection]] = {}
    for rejection in bundle.rejected:
        groups.setdefault(rejection.reason, []).append(rejection)
    # Documents in quarantine are counted but not listed.
    for code in bundle.rejected_summary:
        groups.setdefault(code, [])
    return [
        {
            "code": code,
            "rejections": rejections,
            "total": len(rejections) or bundle.rejected_summary[code],
            "notes": _common_notes(code, rejections),
        }
        for code, rejections in groups.items()
    ]


def _common_notes(code: RejectionCode, rejections: list[Rejection]) -> list[str]:
    notes = Counter(rejection.notes for rejection in rejections if rejection.notes)
    # The notes of most candidates that were ranked lower differ, because they have their scores.
    is_shared = words.is_rule(code) or len(notes) == 1
    return [note for note, _ in notes.most_common(MAX_NOTES)] if is_shared else []


def _warnings(bundle: RetrievalBundle) -> list[tuple[str, str, str]]:
    """Code, message, and what to do, of each warning that says something about this answer."""
    lead = bundle.fallback.message if bundle.fallback else ""
    return [
        # The message of the fallback is above the warnings.
        (
            warning.code,
            "" if warning.message == lead else warning.message,
            WARNINGS[warning.code].advice,
        )
        for warning in bundle.warnings
        if bundle.selected or warning.code not in _OF_PASSAGES
    ]


_RESULTS = {
    (True, True): ("passed", "good"),
    (True, False): ("stopped here", "bad"),
    (False, True): ("not reached; would pass", "plain"),
    (False, False): ("not reached; would stop here, too", "caution"),
}
"""Whether a passage reached a step and passes it → the words, and the CSS class."""


def why_page(why: Why, site: Site = FILE) -> str:
    """The page of an explanation."""
    parts = score_parts(why.score.scores, why.score.weights)
    # Before the penalty for source diversity the parts are longer than the score.
    longest = sum(part.points for part in parts if part.points > 0)
    where = why.request.where
    return render(
        "why",
        site,
        why=why,
        verdict=_verdict(why),
        steps=steps_of(why),
        conditions=[condition.wanted for condition in conditions(where)] if where else [],
        parts=parts,
        top=max(longest, *(rival.final for rival in why.lost_to), 0.0),
        rules=words.rules(
            [*why.filter.factors, *why.score.vocabulary]
            + ([f"lifted: {why.score.lift}"] if why.score.lift else [])
        ),
    )


def steps_of(why: Why) -> dict[str, tuple[str, str]]:
    """What each step did, or would have done if the passage had reached it, in words; its class."""
    passed = {
        "searched": why.step != "where",
        "proposed": any(lane.proposed for lane in why.lanes),
        "allowed": why.filter.allowed,
        "selected": why.score.code is None,
    }
    results, is_reached = {}, True
    for step, is_passed in passed.items():
        results[step] = _RESULTS[is_reached, is_passed]
        is_reached = is_reached and is_passed
    return results


def _verdict(why: Why) -> str:
    if why.outcome == "selected":
        return f"Yes, at rank {why.rank} of {why.selected_count}."
    if why.step == "where":
        return "No: the request leaves its document out."
    if why.code is None:
        return "No: no lane proposed it."
    return f"No: {words.REJECTION[why.code]}."


def compare_page(comparison: Comparison, site: Site = FILE) -> str:
    """The page of a comparison. If its first role is none, moves are measured against it."""
    roles = [view for view in comparison.roles if view.role_id]
    return render(
        "compare",
        site,
        comparison=comparison,
        answers=[(view, *_counts(view, roles)) for view in roles],
        groups=_groups(comparison, [view.role_id for view in roles]),
        chosen=[view.role_id for view in roles],
    )


def compare_form(site: Site, chosen: Sequence[str]) -> str:
    """The page to choose a task and roles.

    Args:
        site: the application.
        chosen: the roles that are chosen already.
    """
    return render("compare", site, comparison=None, chosen=chosen)


def _counts(view: RoleView, roles: Sequence[RoleView]) -> tuple[int, int, int]:
    """How many passages only this role gets, and what rules and the ranking rejected for it."""
    others = {chunk for other in roles if other is not view for chunk in other.selected}
    refused = sum(n for code, n in view.rejected_summary.items() if words.is_rule(code))
    lower = sum(view.rejected_summary.values()) - refused
    return sum(chunk not in others for chunk in view.selected), refused, lower


def _groups(comparison: Comparison, roles: Sequence[str]) -> list[dict[str, Any]]:
    """The passages that all roles share, then those of some, of each alone, and of no role.

    Each group has its title, and of each passage what happened to it for each role.
    """
    rows: dict[tuple[str, ...], list[tuple[ComparedPassage, list[dict[str, Any]]]]] = {}
    for passage in sorted(comparison.passages, key=_best_rank):
        selected_for = [
            standing.role_id
            for standing in passage.standings
            if standing.role_id and standing.state == "selected"
        ]
        some = 1 < len(selected_for) < len(roles)
        key = ("some",) if some else tuple(selected_for)
        first = passage.standings[0]
        without = None if first.role_id else first
        cells = [_cell(standing, without) for standing in passage.standings]
        rows.setdefault(key, []).append((passage, cells))
    only = "only " if len(roles) > 1 else ""
    titles = [
        *([(tuple(roles), f"Selected for all {len(roles)} roles")] if len(roles) > 1 else []),
        (("some",), "Selected for some of the roles"),
        *(((role,), f"Selected {only}for {role}") for role in roles),
        ((), "Selected only without a role"),
    ]
    return [{"title": title, "rows": rows[key]} for key, title in titles if key in rows]


def _best_rank(passage: ComparedPassage) -> int:
    ranks = [standing.rank for standing in passage.standings if standing.role_id and standing.rank]
    # Only without a role: in the order of that answer.
    return min(ranks) if ranks else passage.standings[0].rank or 0


def _cell(standing: Standing, without: Standing | None) -> dict[str, Any]:
    """What happened to a passage for one role: rules that it met, their names, and its move."""
    rules = words.rules(standing.overlay_hits or ())
    names = [name for name, _ in rules.factors]
    if rules.words:
        names.append(counted(len(rules.words), "word of the role", "words of the role"))
    if rules.suppressed:
        names.append("words that lower it")
    summary = ", ".join(dict.fromkeys(names))
    move = _move(standing.rank, without.rank) if standing.role_id and without else ""
    return {"standing": standing, "rules": rules, "summary": summary, "move": move}


def _move(rank: int | None, before: int | None) -> str:
    """A rank against that without a role, in words; empty if it is not selected."""
    if rank is None:
        return ""
    if before is None:
        return "new"
    if before == rank:
        return "same place"
    return f"{'up' if before > rank else 'down'} {abs(before - rank)}"


MAX_ORIGINAL_CHARS = 20_000
NOT_RECORDED = "not recorded"
_OMITTED_KEYS = frozenset({"title", "attributes", "self_declared", "refused_claims", "reach"})
"""Metadata that is shown elsewhere on the page, or is not stored."""
_SECRET = "secret_"
_DEFAULTS: Mapping[str, Any] = DocumentMetadata._field_defaults


def document_page(
    inspection: DocumentInspection,
    now: datetime,
    site: Site,
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    flagged: Flagged | None = None,
    marks: Sequence[MarkRecord] = (),
) -> str:
    """The page of a document.

    Args:
        inspection: the document, and one page of its passages.
        now: the time by which its age and validity are judged.
        site: the application around the page.
        flags: for the owner: the metadata that flags of ingests give to its file.
        flagged: for the owner: the findings of the scan; ``None`` if there are none.
        marks: for the owner: all marks on it and its passages, also those that have ended.
    """
    document = inspection.document
    later = inspection.first + MAX_PASSAGES
    return render(
        "document",
        site,
        page=inspection,
        document=document,
        remarks=[*_remarks(inspection, now, flagged)],
        age=_age(document, now),
        metadata=[*_metadata(document, flags)],
        scan=_scan_result(flagged) if flagged else None,
        marks=marks,
        texts={item.place: _visible_text(item.passage) for item in inspection.passages},
        earlier=max(1, inspection.first - MAX_PASSAGES) if inspection.first > 1 else None,
        later=later if later <= inspection.total else None,
    )


def _visible_text(passage: Passage) -> str:
    # If the scan was set not to mask secrets, they are in the text.
    has_secret = any(flag.startswith(_SECRET) for flag in passage.flags)
    return without_secrets(passage.content) if has_secret else passage.content


def _remarks(
    page: DocumentInspection, now: datetime, flagged: Flagged | None
) -> Iterator[tuple[str, str]]:
    """What limits the use of the document: how bad it is, and a sentence."""
    document = page.document
    if flagged is not None and flagged.scanned.verdict == "quarantine":
        yield "bad", "It is in quarantine: no agent gets it."
    if page.superseded_by:
        yield "caution", "A newer document replaces it."
    if document.valid_from and datetime.fromisoformat(document.valid_from) > now:
        yield "caution", "It is not valid yet."
    if document.valid_until and datetime.fromisoformat(document.valid_until) < now:
        yield "caution", "It is no longer valid."
    flags = next((item.passage.flags for item in page.passages), ())
    if flags:
        yield "caution", f"The scan flagged it: {', '.join(flags)}."
    if document.refused_claims:
        yield "caution", "Some of its own declarations do not count."
    marked = {item.passage.mark.state for item in page.passages if item.passage.mark}
    if marked & {"rejected", "disputed"}:
        yield "caution", "Some of it is marked as wrong or disputed."


def _age(document: DocumentMetadata, now: datetime) -> tuple[str, str]:
    """How good the age is, and the age in words."""
    age = age_days(document, now)
    level = words.LEVEL[freshness_at(age, DEFAULT_MAX_AGE_DAYS)]
    if age is None:
        return level, "undated"
    if age < 0:
        return level, "dated in the future"
    by = "" if document.updated_at else " by its file"
    return level, f"{age:.0f} days old{by}"


def _metadata(document: DocumentMetadata, flags: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Each value of the metadata, and where it comes from."""
    for key, value in document._asdict().items():
        if key not in _OMITTED_KEYS:
            origin = _origin(key, value, document, flags)
            yield {"key": key, "value": _text(value), "origin": origin}
    for key, texts in document.attributes:
        yield {"key": key, "value": ", ".join(texts), "origin": "the document itself"}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")


def _origin(key: str, value: object, document: DocumentMetadata, flags: Mapping[str, Any]) -> str:
    """Where a value comes from, as far as the corpus has recorded it."""
    if key in document.self_declared:
        return "the document itself"
    if key == "inferred_at" and value:
        return "its file: the name, the last commit or change"
    if flags.get(key) and _text(flags[key]) == _text(value):
        return "a flag of an ingest"
    if key in _DEFAULTS and value == _DEFAULTS[key]:
        return "default" if value else ""
    is_decided = key in GOVERNANCE_KEYS - {"document_id", "source_id"}
    if is_decided and "unknown" not in document.self_declared:
        # The corpus records which of these keys are the document's own declaration.
        return "a manifest or a flag"
    return NOT_RECORDED


def _scan_result(flagged: Flagged) -> dict[str, Any]:
    """The verdict, the findings, and the text as it was read, if something was removed from it."""
    scanned = flagged.scanned
    findings = [Finding(**finding) for finding in json.loads(scanned.findings)]
    original = without_secrets(scanned.original)
    visible_text = original[:MAX_ORIGINAL_CHARS]
    # A masked secret has another length, so that the offsets after it are wrong.
    is_exact = not any(finding.kind.startswith(_SECRET) for finding in findings)
    spans = _spans(visible_text, findings) if is_exact else []
    return {
        "verdict": scanned.verdict,
        "findings": findings,
        "original": marked_parts(visible_text, spans),
        "is_cut": len(visible_text) < len(original),
    }


def _spans(text: str, findings: Sequence[Finding]) -> list[tuple[int, int]]:
    """The places of the findings in the text, without overlaps."""
    spans: list[tuple[int, int]] = []
    for finding in sorted(findings, key=lambda finding: (finding.start, finding.end)):
        begin = max(finding.start, spans[-1][1] if spans else 0)
        end = min(finding.end, len(text))
        if begin < end and _is_in_text(finding, text[finding.start : end]):
            spans.append((begin, end))
    return spans


def _is_in_text(finding: Finding, part: str) -> bool:
    """Whether a finding is at its offsets in the text. Those of hidden markup are of the source."""
    is_words = finding.kind.startswith("instruction_") or finding.kind.endswith("homoglyph")
    return is_words or visible(part) != part
