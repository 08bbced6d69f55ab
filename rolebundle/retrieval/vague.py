"""What makes a passage fit a vague task: its place, its date, and whether it is prose. Pure.

A task is vague if its words choose no passage (docs/decisions/0021). Then three more things count
besides the role, in proportion to how vague it is. Nothing of this counts for a specific task.

- *Intent*: "Where do I start?" and "What changed lately?" ask for a beginning or for the newest,
  and no passage has that in its words. So a share of the lanes' terms gives way to the passage's
  fit, which is computed from its place, its document's type and date.
- *Substance*: a heading alone, a list of links, or a quote of another mail answers nothing. All
  terms of such a passage are multiplied with less than 1. It is ranked lower, not hidden.
- *Age*: so are those of an old entry of a changelog, and of an old record of what happened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from rolebundle.contracts.document import REMEMBERED_KIND, DocumentMetadata, Passage, iso_utc
from rolebundle.retrieval.candidate import Candidate
from rolebundle.retrieval.filter import dated_at
from rolebundle.retrieval.score import FLOOR_MARGIN, Weights
from rolebundle.text.counts import counted
from rolebundle.text.intents import Intent, TaskIntent, words_of_intent
from rolebundle.text.substance import substance

MAX_INTENT_SHARES: Mapping[Intent, float] = MappingProxyType({"recency": 0.8, "orientation": 0.8})
"""The largest share of the lanes' terms that the fit replaces."""
SHARE_OF_WORDS = 0.5
"""That of the other intents, because their words may be topics, too."""
FACTOR_WITHOUT_PROSE = 0.4
"""The terms of a passage without prose are multiplied with this."""
FACTOR_OF_OLD_ENTRIES = 0.6
"""The terms of a changelog's oldest entries are multiplied with this."""
FACTOR_OF_OLD_RECORDS = 0.7
"""The terms of the oldest of the mails, meeting notes, … are multiplied with this."""
HALF_LIFE = 8
"""After so many newer documents newness is half."""
HALF_LIFE_OF_ENTRIES = 4
"""After so many newer passages of a changelog newness is half."""
NEWNESS_OF_OTHERS = 0.4
"""The fit to recency of the newest document, if it is not of a type in ``RECORD_TYPES``."""
LATER_PART_OF_MAIL = 0.8
"""The fit to recency of a mail's later parts is multiplied with this."""
MAX_INTRODUCTION_DEPTH = 1
"""A file in more folders than this introduces only a part of the corpus."""
NEWNESS_OF_PREAMBLE = 0.3
"""The newness of a changelog's first passage if it has no version and no date."""
MAX_INTENT_WORDS = 4
"""With so many different words of an intent a passage fits fully."""

INTRODUCTION_TYPES = frozenset({"readme", "tutorial", "installation"})
RECORD_TYPES = frozenset(
    {"mail", "journal", "meeting-notes", "postmortem", "transcript", "decision"}
)
"""Types of documents that record what happened or was said at their date."""
CHANGELOG_TYPES = frozenset({"changelog", "release-notes", "migration-guide"})
"""Types of documents that have the newest first."""
TROUBLESHOOTING_TYPES = frozenset({"troubleshooting", "faq", "postmortem"})
CODE_TYPES = frozenset({"source-code", "test-code", "data"})
SUBSTANCE_OF_CODE = 0.4
"""Code has comments and names, which are not measured."""
SUPPORTING_TYPES = CODE_TYPES | {"license", "code-of-conduct", "archived", "api-reference"}
"""Types that a reader does not begin with."""

_INTRODUCTION_NAME = re.compile(
    r"(?:^|/)(?:\d+[-_. ]*)?(?:read[-_]?me|_?index|introduction|intro|overview|about|welcome|home"
    r"|quick[-_ ]?start|getting[-_ ]?started|first[-_ ]steps|start[-_ ]?here|basics)[^/]*$"
)
_CHANGELOG_NAME = re.compile(
    r"(?:^|/)(?:change[-_]?(?:log|s)|history|news|release[-_]?notes|what'?s[-_]?new|upgrading"
    r"|migrating)(?:\.[^/]*)?$"
)
_VERSION = re.compile(r"\d[.-]\d|\b(?:19|20)\d\d\b|\bunreleased\b", re.IGNORECASE)


class Vagueness(NamedTuple):
    """How vague a task is, what it asks for, and what is new among the candidates.

    Attributes:
        degree: from 0 for a specific task to 1.
        intent: what the task asks for besides its topic.
        newness: document id → 1 for the newest, half after ``HALF_LIFE`` dates. Mails of one
            subject are a thread, which is as new as its latest mail.
        age: document id → the share of the dates that are newer, in [0, 1).
        replies: ids of mails after the first one of their thread.
    """

    degree: float = 0.0
    intent: TaskIntent = TaskIntent()
    newness: Mapping[str, float] = MappingProxyType({})
    age: Mapping[str, float] = MappingProxyType({})
    replies: frozenset[str] = frozenset()

    @property
    def intent_share(self) -> float:
        """The share of the lanes' terms that gives way to the fit, in [0, 0.8]."""
        shares = (MAX_INTENT_SHARES.get(intent, SHARE_OF_WORDS) for intent in self.intent.intents)
        return self.degree * self.intent.share * max(shares, default=0.0)


def weigh_vagueness(
    degree: float, intent: TaskIntent, allowed: Sequence[Candidate], now: datetime
) -> Vagueness:
    """What counts for a vague task, with the dates of the documents of the first search.

    A date after ``now`` says nothing about how new a document is.
    """
    latest_date = iso_utc(now)
    documents = {
        candidate.passage.document.document_id: candidate.passage.document
        for candidate in allowed
        if candidate.round == 0
    }
    dates = {name: dated_at(document) or "" for name, document in documents.items()}
    dates = {name: date if date <= latest_date else "" for name, date in dates.items()}
    threads = {
        name: f"mail {document.title.casefold()}" if document.document_type == "mail" else name
        for name, document in documents.items()
    }
    latest: dict[str, str] = {}
    starts: dict[str, str] = {}
    for name in sorted(documents, key=lambda name: (dates[name], name)):
        starts.setdefault(threads[name], name)
        latest[threads[name]] = dates[name]
    order = {date: place for place, date in enumerate(sorted({*latest.values()}, reverse=True))}
    places = {name: order[latest[thread]] for name, thread in threads.items() if latest[thread]}
    return Vagueness(
        # A task without any topic is vague, whichever passages have its words by chance.
        degree if intent.has_topic else 1.0,
        intent,
        {name: 2 ** (-place / HALF_LIFE) for name, place in places.items()},
        {name: place / len(order) for name, place in places.items()},
        frozenset(name for name, thread in threads.items() if starts[thread] != name),
    )


def with_vagueness(
    candidate: Candidate, vagueness: Vagueness, weights: Weights, floor: float
) -> Candidate:
    """The candidate with what counts for a vague task; for a specific task, the candidate itself.

    ``lane = f · ((1 − a) · lane + a · fit)`` for both terms of the lanes, and ``role = f · role``
    for both of the role, with the share ``a`` of the intent and the factor ``f`` of the substance
    and of the age of a record. A score over the floor does not fall under it: only so much of the
    change counts.
    """
    if not vagueness.degree:
        return candidate
    passage, score, share = candidate.passage, candidate.score, vagueness.intent_share
    lexical, semantic = score.lexical, score.semantic
    hits: list[str] = []
    if share:
        fit, why = fit_of(passage, vagueness)
        lexical, semantic = ((1 - share) * term + share * fit for term in (lexical, semantic))
        hits.append(f"vague:{'+'.join(vagueness.intent.intents)}({why}; fit {fit:.2f})")
    factor = 1 - vagueness.degree * (1 - FACTOR_WITHOUT_PROSE) * (1 - substance_of(passage))
    if factor < 1:
        hits.append(f"vague:little-prose(×{factor:.2f})")
    newness, least = _newness(passage, vagueness)
    if newness < 1:
        old = 1 - vagueness.degree * (1 - least) * (1 - newness)
        hits.append(f"vague:old-entry(×{old:.2f})")
        factor *= old
    if not hits:
        return candidate
    terms = [factor * term for term in (lexical, semantic, score.metadata, score.vocabulary)]
    changed = score.with_terms("vagueness", tuple(terms), tuple(hits), weights)
    floor *= 1 + FLOOR_MARGIN
    if changed.final < floor <= score.final:
        fraction = (score.final - floor) / (score.final - changed.final)
        pairs = zip(score.terms, changed.terms, strict=True)
        terms = [before + fraction * (after - before) for before, after in pairs]
        changed = score.with_terms("vagueness", tuple(terms), tuple(hits), weights)
    return candidate.with_score(changed)


def substance_of(passage: Passage) -> float:
    """How much prose a passage has, in [0, 1]. A remembered fact is whole, however short it is."""
    kind = passage.document.document_type
    # A title may be the whole document, as in a bibliography.
    if passage.document.source_kind == REMEMBERED_KIND or passage.content == passage.document.title:
        return 1.0
    if kind in CODE_TYPES or passage.content_type == "code":
        return SUBSTANCE_OF_CODE
    return 0.0 if kind == "license" else substance(passage.content, is_mail=kind == "mail")


def fit_of(passage: Passage, vagueness: Vagueness) -> tuple[float, str]:
    """How well a passage fits the intents of a task, in [0, 1], and why."""
    fits = [_fit(intent, passage, vagueness) for intent in vagueness.intent.intents]
    return sum(fit for fit, _ in fits) / len(fits), ", ".join(why for _, why in fits)


def _recency(passage: Passage, vagueness: Vagueness) -> tuple[float, str]:
    document = passage.document
    if _is_changelog(passage):
        return _newness_in_changelog(passage), f"part {passage.ordinal + 1} of a changelog"
    newness = vagueness.newness.get(document.document_id, 0.0)
    share = 1.0 if document.document_type in RECORD_TYPES else NEWNESS_OF_OTHERS
    if document.document_type == "mail" and passage.ordinal:
        share *= LATER_PART_OF_MAIL
    return share * newness, _dated(document)


def _orientation(passage: Passage, vagueness: Vagueness) -> tuple[float, str]:
    document, place = passage.document, passage.ordinal
    kind = document.document_type
    if _is_changelog(passage):
        return 0.5 * _newness_in_changelog(passage), f"part {place + 1} of a changelog"
    if kind in RECORD_TYPES:
        newness = vagueness.newness.get(document.document_id, 0.0)
        if kind != "mail":
            return newness, _dated(document)
        starts = place == 0 and document.document_id not in vagueness.replies
        position = "the start of a thread" if starts else "within a thread"
        return (newness + starts) / 2, f"{position}, {_dated(document)}"
    if kind in SUPPORTING_TYPES:
        return 0.3 if place == 0 else 0.1, f"{_part(place)} of {kind}"
    fit = {0: 0.75, 1: 0.5}.get(place, 0.25)
    if _introduces(passage):
        return fit + 0.25, f"{_part(place)} of an introduction"
    return fit + (0.1 if kind in INTRODUCTION_TYPES else 0.0), _part(place)


def _fit(intent: Intent, passage: Passage, vagueness: Vagueness) -> tuple[float, str]:
    if intent == "recency":
        return _recency(passage, vagueness)
    if intent == "orientation":
        return _orientation(passage, vagueness)
    words = words_of_intent(intent, " ".join((*passage.headings, passage.content)))
    fit = min(1.0, words / MAX_INTENT_WORDS)
    if intent == "trouble" and words and passage.document.document_type in TROUBLESHOOTING_TYPES:
        fit = 1.0
    return fit, f"{counted(words, 'word')} of {intent}"


def _introduces(passage: Passage) -> bool:
    """Whether its file introduces the whole, and not a part of it that has a folder of its own."""
    path = passage.path.lower()
    return (
        path.count("/") <= MAX_INTRODUCTION_DEPTH
        and passage.content_type != "code"
        and bool(_INTRODUCTION_NAME.search(path))
    )


def _is_changelog(passage: Passage) -> bool:
    return passage.document.document_type in CHANGELOG_TYPES or _is_named_changelog(passage)


def _is_named_changelog(passage: Passage) -> bool:
    return bool(_CHANGELOG_NAME.search(passage.path.lower()))


def _newness(passage: Passage, vagueness: Vagueness) -> tuple[float, float]:
    """How new an entry of a changelog, or the record of a day, is among the others, in [0, 1].

    With it the factor of the oldest. All other documents may hold for long and have 1.
    """
    if _is_changelog(passage):
        return _newness_in_changelog(passage), FACTOR_OF_OLD_ENTRIES
    document = passage.document
    if document.document_type in RECORD_TYPES:
        return 1 - vagueness.age.get(document.document_id, 1.0), FACTOR_OF_OLD_RECORDS
    return 1.0, 1.0


def _newness_in_changelog(passage: Passage) -> float:
    """How new the entries of a passage are by its place, in (0, 1]."""
    # Changelogs have the newest entry first, often after an opening without a version or date. In a
    # folder of entries each file is an entry, and its opening is no preamble.
    is_opening = passage.ordinal == 0 and _is_named_changelog(passage)
    if is_opening and not _VERSION.search(passage.content):
        return NEWNESS_OF_PREAMBLE
    return float(2 ** (-max(0, passage.ordinal - 1) / HALF_LIFE_OF_ENTRIES))


def _part(place: int) -> str:
    return "the opening" if place == 0 else f"part {place + 1}"


def _dated(document: DocumentMetadata) -> str:
    date = dated_at(document)
    return f"dated {date[:10]}" if date else "undated"
