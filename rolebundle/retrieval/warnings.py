"""The warnings of an answer. Pure.

``CONDITIONS`` has the condition of each warning: a function of the retrieval that returns the
message, which is empty if the warning does not hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from rolebundle.contracts.bundle import BundleWarning
from rolebundle.contracts.dates import is_of_date
from rolebundle.contracts.documents import LANGUAGE
from rolebundle.contracts.request import Where
from rolebundle.contracts.terms import (
    TRUSTED_TIERS,
    FreshnessPosture,
    RejectionCode,
    TrustPosture,
    WarningCode,
)
from rolebundle.retrieval.evidence import shown_kinds
from rolebundle.retrieval.passage_text import one_line, quoted, shown_name
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.select import conflicts
from rolebundle.retrieval.statements import (
    amendment,
    later_change,
    outdated_figure,
    outdated_words,
    replacing_passages,
)
from rolebundle.retrieval.values import Candidate, Retrieval
from rolebundle.retrieval.versions import (
    MAX_CHECKED_FOR_NEWER,
    is_old_by_path,
    newer_by_path,
    words_if_newest_asked,
)
from rolebundle.text.languages import language_name, shows_english
from rolebundle.text.spellings import key_of
from rolebundle.text.tasks import words_for_open_tasks
from rolebundle.text.words import (
    age,
    counted,
    first_of,
    is_english,
    is_ordinary,
    language_of,
    words_found,
)

MAX_NAMED_CONFLICTS = 5
"""How many conflicts are named; the others are counted."""
MAX_NAMED_REPLACEMENTS = 2
"""How many messages about what may be replaced are given."""
MAX_REPLACING = 10
"""How many of the best candidates are searched for what they say no longer holds."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|e|er|ère|ème|[ºª°])", re.IGNORECASE)
MAX_LANGUAGES = 3
"""How many languages of documents are named."""
_MIN_NOTED_SCORE = 0.5
"""The share of the best score below which no note is about a passage."""
MAX_MISSING_WORDS = 5
"""How many missing words are named; the others are counted."""
_MAX_KINDS_CHARS = 500
_COMPOUND_LETTERS = 12
"""The fewest letters of a German noun that counts as a compound."""
_PART_LETTERS = 4
"""The least number of letters of a compound's part."""
USUAL_TRUST = 0.1
"""The least share of the candidates that are trusted, if declared trust is usual in a corpus."""
LOW_DIVERSITY_FROM = 3
"""From how many selected passages on, all of one source, there may be a warning."""


def trust_posture(selected: Sequence[Candidate], *, is_declared: bool = True) -> TrustPosture:
    """Strong with any authoritative passage, mixed with any preferred one, else weak.

    For the answer, of the passages that are evidence for the task. ``undeclared`` if nobody
    declared any trust for what is visible.
    """
    if not is_declared:
        return "undeclared"
    tiers = {row.passage.document.trust_tier for row in selected}
    if "authoritative" in tiers:
        return "strong"
    return "mixed" if "preferred" in tiers else "weak"


def freshness_posture(selected: Sequence[Candidate]) -> FreshnessPosture:
    """Fresh with fresh and no stale passages, stale with stale and no fresh ones, else mixed."""
    statuses = {row.freshness for row in selected}
    if "fresh" in statuses and "stale" not in statuses:
        return "fresh"
    return "stale" if "stale" in statuses and "fresh" not in statuses else "mixed"


def narrowed_by(where: Where | None) -> str:
    """That `where` narrowed a weak or empty answer, with the next step; empty without `where`."""
    if where is None:
        return ""
    is_by_date = where.updated_after is not None or where.updated_before is not None
    undated = ", and no document without a declared date meets its dates" if is_by_date else ""
    return f"; `where` narrowed the search{undated}: ask without it, too"


def _weak_evidence(retrieval: Retrieval) -> str:
    """Little of the task in the first passages. An empty answer has a verdict of its own."""
    evidence = retrieval.evidence
    if not retrieval.selected or evidence.task_support == "supported":
        return ""
    best = evidence.best_support
    first = [passage.rowid for passage in retrieval.judged_passages]
    named_elsewhere = {part for name in _names_missing(retrieval) for part in words_of(name)}
    words = _telling_words(retrieval, evidence.missing(first))
    missing = first_of(
        [word for word in words if word.casefold() not in named_elsewhere], MAX_MISSING_WORDS
    )
    found = f"the best passage has {words_found(best.matched_words, best.total_words)}"
    without = f", and none of the first mentions: {missing}" if missing else ""
    narrowed = narrowed_by(retrieval.request.echo.where)
    return f"thin evidence: {found}{without}{narrowed}"


def other_languages(retrieval: Retrieval) -> str:
    """How many documents are in languages that no wording is in; in English, of those found."""
    in_english = set[str]()
    # A text of keywords may seem to be in another language. Then it may be English, too.
    asked = set[str]().union(
        *({*w.languages, language_of(w.text)} for w in retrieval.query.wordings)
    )
    also = retrieval.query.wordings[1:]
    if any(not w.languages and 2 * sum(map(is_english, w.words)) < len(w.words) for w in also):
        return ""  # Words of a language that they do not show.
    counts = Counter(retrieval.languages)
    for row in () if "en" in asked else retrieval.ranked:
        known = dict(row.passage.document.attributes)
        if LANGUAGE not in known and shows_english(row.passage.content):
            in_english.add(row.passage.document.document_id)
    counts["en"] = len(in_english)
    others = [
        (code, number) for code, number in counts.most_common() if number and code not in asked
    ]
    shown = others[:MAX_LANGUAGES]
    named = [f"{counted(number, 'document')} in {language_name(code)}" for code, number in shown]
    return f"{', '.join(named)}: ask in each language (`also`)" if named else ""


def _no_high_trust_match(retrieval: Retrieval) -> str:
    """No selected passage is trusted.

    Without a role, the warning is given only if a tenth of the candidates is trusted, or a selected
    passage is untrusted. One trusted note among a person's files says nothing about the others.
    """
    selected = retrieval.selected
    has_untrusted = any(row.passage.document.trust_tier == "untrusted" for row in selected)
    trusted = sum(row.passage.document.trust_tier in TRUSTED_TIERS for row in retrieval.candidates)
    is_usual = trusted >= USUAL_TRUST * len(retrieval.candidates)
    is_expected = retrieval.may_have_trusted and (retrieval.request.overlay is not None or is_usual)
    if trust_posture(selected) != "weak" or not (is_expected or has_untrusted):
        return ""
    return "no authoritative or preferred passage was selected"


def _only_shared_corpus(retrieval: Retrieval) -> str:
    boosts = ("boost:applicable-role", "boost:doc-type", "boost:domain", "boost:preferred")
    has_own = any(
        row.matched_phrases or any(factor.startswith(boosts) for factor in row.metadata_factors)
        for row in retrieval.selected
    )
    is_asked = retrieval.request.ranks_by_role and retrieval.selected
    return "no passage has anything of the role's own" if is_asked and not has_own else ""


def _stale_dominant(retrieval: Retrieval) -> str:
    """Given only if the role sets a maximum age: an old text is not outdated because it is old.

    If the task asks about past years, a passage of the earliest of them or later is not stale.
    """
    request, years = retrieval.request, retrieval.query.task.years
    if request.retrieval_policy.freshness_max_age_days is None:
        return ""
    is_past = all(int(year) < request.now.year for year in years)
    past_year = min(years, default="") if is_past else ""

    def is_stale(row: Candidate) -> bool:
        date = row.passage.document.updated_at or row.passage.document.inferred_at or ""
        return row.freshness == "stale" and not (past_year and date >= past_year)

    stale, considered = sum(map(is_stale, retrieval.selected)), len(retrieval.selected)
    return f"stale passages: {stale} of {considered}" if stale * 2 > considered else ""


def _forbidden_source_hit(retrieval: Retrieval) -> str:
    rows = retrieval.best_forbidden
    named = ", ".join(sorted({row.passage.document.source_id for row in rows}))
    passages = counted(len(rows), "passage")
    text = f"{passages} of forbidden sources would have been selected: {named}"
    return text if rows else ""


def _action_restricted(retrieval: Retrieval) -> str:
    """A refused approval has its own warning, which says this as well."""
    return "" if retrieval.refusal else _restrictions(retrieval)


def _approval_refused(retrieval: Retrieval) -> str:
    if not retrieval.refusal:
        return ""
    refused = f"the action is not approved: {retrieval.refusal}"
    return "; ".join(filter(None, [refused, _restrictions(retrieval)]))


def _restrictions(retrieval: Retrieval) -> str:
    reasons: Mapping[RejectionCode, str] = {
        "taint_blocked": "passages not trusted enough for the action",
        "requires_approval": "passages that need an approval for the action",
    }
    counts = [(reason, retrieval.counts[code]) for code, reason in reasons.items()]
    return "; ".join(f"{reason}: {count}" for reason, count in counts if count)


def _low_diversity(retrieval: Retrieval) -> str:
    """Given only if the role requires diversity and other sources had something for the task."""
    groups = {row.passage.document.source_id for row in retrieval.selected}
    is_one = len(groups) == 1 and len(retrieval.selected) >= LOW_DIVERSITY_FROM
    if not (retrieval.request.retrieval_policy.require_source_diversity and is_one):
        return ""
    found = {row.passage.document.source_id for row in retrieval.candidates if row.bm25}
    return f"every passage comes from {min(groups)}" if found - groups else ""


def _conflicting_evidence(retrieval: Retrieval) -> str:
    """A sentence for each pair of documents, the best first."""
    pairs: dict[frozenset[str], str] = {}
    for first, second in conflicts(retrieval.ranked, retrieval.request.limit):
        documents = frozenset((first.document.document_id, second.document.document_id))
        ids = f"{first.chunk_id} and {second.chunk_id}"
        pairs.setdefault(documents, f"{ids} disagree, as one of their documents declares")
    sentences = [*pairs.values()]
    more = len(sentences) - MAX_NAMED_CONFLICTS
    if more > 0:
        sentences[MAX_NAMED_CONFLICTS:] = [f"so do {more} further pairs of documents"]
    return "; ".join(sentences)


def _supersede_ignored(retrieval: Retrieval) -> str:
    claims = {
        f"{claiming} claims to supersede {row.passage.document.document_id}, but may not"
        for row in retrieval.selected
        for claiming in row.passage.ignored_claims
    }
    return "; ".join(sorted(claims))


def _may_be_replaced(retrieval: Retrieval) -> str:
    """What says that a first passage, or its document, may no longer hold.

    But for figures and words, the passages have something of the task in common.
    """
    found, selected = list[str](), retrieval.selected
    task = " ".join((retrieval.request.task, *retrieval.request.also))
    least = _MIN_NOTED_SCORE * max((row.final for row in selected), default=0.0)
    for number, row in enumerate(selected[:MAX_CHECKED_FOR_NEWER], 1):
        is_noted = row.final >= least
        is_for_task = is_noted and retrieval.evidence.support(row.passage.rowid).is_for_task
        found += _notes_by_text(retrieval, number, task, is_noted=is_noted, is_for_task=is_for_task)
        if is_for_task:
            found += _notes_by_name(retrieval, number, task, least, found)
    return "; ".join([*dict.fromkeys(found)][:MAX_NAMED_REPLACEMENTS])


def _notes_by_text(
    retrieval: Retrieval, number: int, task: str, *, is_noted: bool, is_for_task: bool
) -> Iterator[str]:
    """Which candidate says that figures or words of a first passage no longer hold, or changes it.

    And which document replaces or amends its own one.
    """
    row = retrieval.selected[number - 1]
    candidates = [other for other in retrieval.ranked if other.can_be_selected]
    others = candidates if is_noted else []
    known = [*(other.passage for other in retrieval.ranked), *retrieval.stating]
    is_used = is_for_task or number == 1  # The first one is answered from.
    by, amended = amendment(row.passage, known, task) if is_used else (None, "")
    change = outdated_figure(row, others[:MAX_REPLACING], task) or outdated_words(
        row, [other for other in others if other.code is None], task
    )
    # An open task of earlier minutes stays open.
    if not (change or words_for_open_tasks(words_of(task))):
        change = later_change(row, candidates, task)
    if change and not (by and amended and by.document == change.by.passage.document):
        what = f"has {change.figure};" if change.figure else "may be outdated:"
        changed = f" says that {'it' if change.figure else 'something'} changed"
        said = f": {quoted(change.words)}" if change.words else changed
        yield f"[{number}] {what} {shown_name(change.by.passage.path)}{said}"
    documents = [one.passage.document for one in retrieval.selected]
    if is_used and documents.index(row.passage.document) == number - 1:
        for other in replacing_passages(row.passage, known):
            yield f"{shown_name(other.locator_path)} replaces [{number}], by their texts"
    if by:
        # The amendment of a lower passage may be about another matter than the first passage.
        is_of_first = documents[0] in (row.passage.document, by.document)
        is_own = amended and is_for_task and by.document.origin != "external" and is_of_first
        said = f"amends [{number}], by its text" if is_own else f"says that it amends [{number}]"
        said += f": {quoted(amended)}" if amended else ""
        yield f"{shown_name(by.locator_path)} {said}"


def _notes_by_name(
    retrieval: Retrieval, number: int, task: str, least: float, found: Sequence[str]
) -> Iterator[str]:
    """Which file is newer than that of a first passage, or whether this is old, by their names.

    And which selected passage, with the ``least`` score, is later and about the same matter.
    """
    row = retrieval.selected[number - 1]
    name = shown_name(row.passage.path)
    newer = newer_by_path(row.passage, [other.passage.path for other in retrieval.ranked], task)
    for other in map(shown_name, newer):
        if f"{other} replaces [{number}], by their texts" not in found:
            yield f"{other} is newer than {name}, by their names"
    for place, later in enumerate(retrieval.selected, 1):
        if (
            later.final >= least
            and later.follows_up == row.chunk_id
            and later.passage.path not in newer
            and not words_for_open_tasks(words_of(task))
            and retrieval.evidence.support(row.passage.rowid, later.passage.rowid).is_for_task
        ):
            yield f"[{place}] is later than [{number}], about the same matter"
    if not newer and is_old_by_path(row.passage.path):
        yield f"{name} is old, by its name"


def _evidence_kind_missing(retrieval: Retrieval) -> str:
    """The required evidence kinds that no passage shows. An empty answer has its own verdict."""
    overlay = retrieval.request.overlay
    if overlay is None or not retrieval.selected:
        return ""
    kinds = list(filter(str.strip, overlay.synthesis_policy.required_evidence_kinds))
    shown = {kind for row in retrieval.selected for kind in shown_kinds(kinds, row.passage)}
    missing = ", ".join(kind for kind in dict.fromkeys(kinds) if kind not in shown)
    named = one_line(missing, _MAX_KINDS_CHARS)
    return f"no passage shows what the role requires: {named}" if missing else ""


def _index_stale(retrieval: Retrieval) -> str:
    chunks, remedy = retrieval.without_vector, "run `rolebundle corpus embed`"
    embedding = f"{counted(chunks, 'chunk')} without a vector; {remedy}" if chunks else ""
    return "; ".join(filter(None, [retrieval.file_warnings.get("INDEX_STALE"), embedding]))


def _seen_unknown(retrieval: Retrieval) -> str:
    request = retrieval.request
    ids = 0 if request.seen_by_hash else len(request.seen)
    return f"`seen` has no passage of the corpus: {counted(ids, 'id')}" if ids else ""


def _words_missing(retrieval: Retrieval) -> str:
    names = _names_missing(retrieval) if retrieval.selected else []
    named = first_of(names, MAX_MISSING_WORDS)
    return f"no passage mentions: {named}" if named else ""


def may_lack_documents(retrieval: Retrieval) -> bool:
    """Whether nothing was selected, the evidence is weak, or words of the task are missing."""
    is_weak = not retrieval.selected or retrieval.evidence.task_support != "supported"
    return is_weak or bool(_words_missing(retrieval))


def _names_missing(retrieval: Retrieval) -> list[str]:
    """The exact words, quoted phrases and names of the task that occur nowhere.

    An exact word is not missing if all its parts occur.
    """
    query, missing = retrieval.query, retrieval.evidence.missing()
    words = {query.content_words[position][0].text: position for position in missing}
    words = {word: place for word, place in words.items() if not _ORDINAL.fullmatch(word)}
    exact = ((text, {*words_of(text)}) for text in retrieval.missing_exact)
    absent = [text for text, parts in exact if " " in text or words.keys() & parts]
    parts = {part for exact in absent for part in words_of(exact)}
    named = [word for word in words if words[word] in query.name_positions and word not in parts]
    if named and query.task.languages:
        # All nouns of German have capitals. A long one is a compound and as exact as a name.
        least = _COMPOUND_LETTERS if "de" in query.task.languages else 0
        named = _without_trace(retrieval, [word for word in named if len(word) >= least])
    return _nameable_as_written(retrieval, [*absent, *named])


def _without_trace(retrieval: Retrieval, words: Sequence[str]) -> list[str]:
    """The words of which no candidate has a trace.

    A trace is another ending, a compound with the word in it, or both parts of the word. English
    words are returned without a look for traces.
    """
    passages = [row.passage for row in retrieval.candidates]
    texts = [key_of(f"{p.path} {p.document.title} {p.content}") for p in passages]
    return [
        word
        for word in words
        if is_english(word) or not any(_has_in_parts(key_of(word), text) for text in texts)
    ]


def _has_in_parts(word: str, text: str) -> bool:
    return word[: max(_PART_LETTERS, 2 * len(word) // 3)] in text or any(
        word[:end] in text and word[start:] in text
        for start in range(_PART_LETTERS, len(word) - _PART_LETTERS + 1)
        # A compound may have a letter between its parts, such as an s.
        for end in (start, start - 1)
    )


def _words_corrected(retrieval: Retrieval) -> str:
    pairs = ", ".join(f"{new} for {word}" for word, new in retrieval.query.corrected.items())
    return f"also searched for likely spellings: {pairs}" if pairs else ""


def _telling_words(retrieval: Retrieval, positions: Sequence[int]) -> dict[str, int]:
    """Word, as the task has it → its position, of these positions without the ordinary words.

    That a text lacks an ordinary word says little.
    """
    query = retrieval.query
    terms = [(query.content_words[position][0], position) for position in positions]
    return {
        word: position
        for term, position in terms
        if position in query.name_positions or not (term.is_form or is_ordinary(term.text))
        for word in _nameable_as_written(retrieval, [term.text])
    }


def _nameable_as_written(retrieval: Retrieval, words: Sequence[str]) -> list[str]:
    """The words as the task has them, without words such as "latest", days and months.

    Texts write days and months in many ways.
    """
    written, kept = retrieval.query.task.as_written, words_if_newest_asked(retrieval.request.task)
    named = [
        word
        for word in words
        if (kept is None or not kept.isdisjoint(words_of(word))) and not is_of_date(word)
    ]
    return list(dict.fromkeys(written.get(word.lower(), word) for word in named))


def _replica_stale(retrieval: Retrieval) -> str:
    replica, now = retrieval.corpus_state.replica, retrieval.request.now
    if replica is None or now < datetime.fromisoformat(replica.expires_at):
        return ""
    return (
        f"the replica of {replica.publisher} was published {age(replica.age_hours)} ago and was to "
        f"be renewed by {replica.expires_at}; run `rolebundle replica pull`"
    )


def _database_unreachable(retrieval: Retrieval) -> str:
    corpus = retrieval.corpus_state
    if corpus.in_place_of is None or corpus.replica is None:
        return ""
    return (
        f"the database of {corpus.in_place_of} cannot be reached; the replica of "
        f"{corpus.replica.publisher} was published {age(corpus.replica.age_hours)} ago"
    )


CONDITIONS: Mapping[WarningCode, Callable[[Retrieval], str]] = {
    "WEAK_EVIDENCE": _weak_evidence,
    "NO_HIGH_TRUST_MATCH": _no_high_trust_match,
    "ONLY_SHARED_CORPUS": _only_shared_corpus,
    "STALE_DOMINANT": _stale_dominant,
    "FORBIDDEN_SOURCE_HIT": _forbidden_source_hit,
    "ACTION_RESTRICTED": _action_restricted,
    "LOW_DIVERSITY": _low_diversity,
    "CONFLICTING_EVIDENCE": _conflicting_evidence,
    "SUPERSEDE_IGNORED": _supersede_ignored,
    "MAY_BE_REPLACED": _may_be_replaced,
    "EVIDENCE_KIND_MISSING": _evidence_kind_missing,
    "SEMANTIC_LANE_DEGRADED": lambda retrieval: retrieval.semantic_problem,
    "INDEX_STALE": _index_stale,
    "WORDS_MISSING": _words_missing,
    "WORDS_CORRECTED": _words_corrected,
    "OTHER_LANGUAGES": other_languages,
    "REPLICA_STALE": _replica_stale,
    "DATABASE_UNREACHABLE": _database_unreachable,
    "SEEN_UNKNOWN": _seen_unknown,
    "RERANK_DEGRADED": lambda retrieval: retrieval.reranking.problem,
    "SOURCE_CHANGED": lambda retrieval: retrieval.file_warnings.get("SOURCE_CHANGED", ""),
    "SOURCE_UNCHECKED": lambda retrieval: retrieval.file_warnings.get("SOURCE_UNCHECKED", ""),
    "APPROVAL_REFUSED": _approval_refused,
}
"""Each warning's condition, in the order of the bundle."""


def warnings_for(retrieval: Retrieval) -> list[BundleWarning]:
    """What the reader of the bundle should know; remembered facts do not count."""
    messages = {code: condition(retrieval) for code, condition in CONDITIONS.items()}
    return [
        BundleWarning.model_construct(code=code, message=retrieval.with_corpus(message))
        for code, message in messages.items()
        if message
    ]
