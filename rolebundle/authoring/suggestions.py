"""Proposals for edits of an overlay, from the questions that its role has asked.

The recorded questions are asked again, of the corpus as it is and without being recorded again. The
audit has no ids of passages, so this is how one learns what a rule did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rolebundle.authoring.drafting import Target, corpus_documents
from rolebundle.authoring.relevance import words_close_to
from rolebundle.authoring.survey import passages_of
from rolebundle.contracts.audit import AuditSettings
from rolebundle.contracts.authoring import OverlaySuggestions, Suggestion
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import DEFAULT_MAX_AGE_DAYS
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.static import StaticProvider
from rolebundle.errors import EmbedderError
from rolebundle.policy.audit import AuditLog
from rolebundle.policy.overlay_lint import corpus_facts
from rolebundle.policy.overlays import ResolvedOverlay, is_shipped, load_role
from rolebundle.retrieval.filter import age_days
from rolebundle.retrieval.lanes import open_lanes
from rolebundle.retrieval.lexical import chunks_with
from rolebundle.retrieval.outcome import Retrieval
from rolebundle.retrieval.pipeline import run
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import resolve_request
from rolebundle.storage.audits.audit import MAX_CHARACTERS
from rolebundle.storage.connection import Corpus
from rolebundle.storage.content.documents import document_kinds
from rolebundle.text.counts import counted
from rolebundle.workspace import Workspace

MAX_QUESTIONS = 100
"""The newest different questions that are asked again."""
MAX_SHOWN = 5
CLOSE_SYNONYMS = 0.5
"""A word of the corpus with at least this cosine may be a synonym of a word that it lacks."""

_TURN_ON = "`rolebundle audit set --mode on --query text`"
_VOCABULARY_LISTS = ("boost_phrases", "preferred_terms", "suppress_phrases")


class _Attempt(NamedTuple):
    """A question, and what the pipeline makes of it today."""

    text: str
    retrieval: Retrieval
    missing: tuple[str, ...]
    """Its content words that no passage has."""


@dataclass(slots=True)
class Recorded:
    """What the audit has of a role. ``texts`` are the different questions, the newest first."""

    answers: int = 0
    texts: list[str] = field(default_factory=list)
    problem: str = ""


def suggest(role_id: str, target: Target) -> OverlaySuggestions:
    """Propose edits of a role's overlay. Nothing is written, also not to the audit.

    Raises:
        OverlayError: the role has no valid overlay.
        UsageError, WrongFile, CorpusCorrupt, StorageError: the corpus or the audit cannot be read.
    """
    resolved = load_role(role_id, target.folders)
    # A role of rolebundle has words and paths of many kinds of corpora, and none has all of them.
    own = {} if is_shipped(resolved.path) else resolved.layers[0].values
    with closing(Workspace(target.corpus)) as workspace:
        corpus = workspace.answering_corpus
        recorded = recorded_questions(role_id, target.corpus)
        attempts = _answer_questions(workspace, corpus, recorded.texts, resolved)
        suggestions = [
            *_forbidden(attempts, resolved.overlay),
            *_unanswered(attempts, corpus),
            *_never_matching_words(own, resolved.overlay, corpus),
            *_never_matching_rules(own, resolved.overlay, corpus),
            *_stale(attempts, resolved.overlay),
        ]
    patch: dict[str, Any] = {}
    for suggestion in suggestions:
        if suggestion.is_safe and suggestion.patch:
            patch = _merged(patch, suggestion.patch)
    return OverlaySuggestions(
        role_id=role_id,
        path=str(resolved.path),
        is_shipped=is_shipped(resolved.path),
        recorded=recorded.answers,
        asked=len(attempts),
        problem=recorded.problem,
        suggestions=suggestions,
        patch=patch,
    )


# -- the audit -----------------------------------------------------------------------------------


def recorded_questions(role_id: str, path: Path) -> Recorded:
    """What the audit of a corpus file has of a role.

    Raises:
        WrongFile, CorpusCorrupt, StorageError: the audit cannot be read.
    """
    recorded = Recorded()
    with AuditLog(path) as log:
        settings = log.settings()
        if log.exists:
            texts: dict[str, None] = {}
            for row in log.rows(kind="retrieve", newest=True):
                if row.role == role_id:
                    recorded.answers += 1
                    if _is_text(row.query):
                        texts[row.query] = None
            recorded.texts = list(texts)[:MAX_QUESTIONS]
    recorded.problem = _problem(role_id, settings, recorded)
    return recorded


def _is_text(query: str) -> bool:
    # A digest, or a text that was cut, cannot be asked again.
    return bool(query) and not query.startswith("sha256:") and len(query) <= MAX_CHARACTERS


def _problem(role_id: str, settings: AuditSettings, recorded: Recorded) -> str:
    """Why the questions are not known; empty if they are."""
    if recorded.texts:
        return ""
    if settings.mode == "off":
        return f"the audit is off, so no question is known; turn it on: {_TURN_ON}"
    if settings.query != "text":
        return f"the audit does not keep the texts of questions; to keep them: {_TURN_ON}"
    if recorded.answers:
        return "the audit has answers to this role, but from a time when it did not keep the texts"
    return f"the audit has no answer to the role {role_id} yet"


def _answer_questions(
    workspace: Workspace, corpus: Corpus, texts: Sequence[str], resolved: ResolvedOverlay
) -> list[_Attempt]:
    now = datetime.now(UTC)
    attempts = []
    for text in texts:
        request = resolve_request(
            RetrievalRequest(task=text, role=resolved.overlay.role_id),
            now,
            resolved.overlay,
            resolved.digest,
        )
        with corpus.reading():
            query = build_query(text, resolved.overlay)
            lanes = open_lanes(corpus, query, workspace.query_provider(corpus))
            retrieval = run(lanes, request)
        frequencies = retrieval.evidence.words.frequencies
        missing = [
            terms[0].text
            for terms, frequency in zip(query.content_words, frequencies, strict=True)
            if not frequency
        ]
        attempts.append(_Attempt(text, retrieval, tuple(missing)))
    return attempts


# -- proposals -----------------------------------------------------------------------------------


def _forbidden(attempts: Sequence[_Attempt], overlay: Overlay) -> Iterator[Suggestion]:
    """Rules that keep back what would have been selected."""
    questions: defaultdict[str, list[str]] = defaultdict(list)
    for attempt in attempts:
        notes = {
            _rejection_note(attempt, candidate) for candidate in attempt.retrieval.forbidden_hits
        }
        for note in notes:
            questions[note].append(attempt.text)
    rules = overlay.source_policy.forbidden_sources
    for note, texts in sorted(questions.items(), key=lambda item: (-len(item[1]), item[0])):
        index = next(
            (
                number
                for number, rule in enumerate(rules)
                if note == rule.condition or note.startswith(f"{rule.condition}: ")
            ),
            None,
        )
        share = f"{len(texts)} of {counted(len(attempts), 'question')}"
        if index is None:
            yield Suggestion(
                kind="forbidden_hits",
                place="source_policy.allowed_sources",
                message=f"passages that are not of an allowed source would have been among the "
                f"answers to {share}; if they are evidence for this role, allow their source",
                questions=texts[:MAX_SHOWN],
            )
            continue
        remaining_rules = [
            rule.model_dump(exclude_none=True, exclude_defaults=True)
            for number, rule in enumerate(rules)
            if number != index
        ]
        yield Suggestion(
            kind="forbidden_hits",
            place=f"source_policy.forbidden_sources[{index}]",
            message=f"{rules[index].condition!r} keeps back what would have been among the answers "
            f"to {share}; if that is evidence for this role, take the rule out, or narrow it by a "
            "path",
            questions=texts[:MAX_SHOWN],
            patch={"source_policy": {"forbidden_sources": remaining_rules}},
        )


def _rejection_note(attempt: _Attempt, candidate: Any) -> str:
    rejected = {
        rejection.candidate.chunk_id: rejection.note for rejection in attempt.retrieval.rejected
    }
    return rejected.get(candidate.chunk_id, "")


def _unanswered(attempts: Sequence[_Attempt], corpus: Corpus) -> Iterator[Suggestion]:
    """Questions without an answer for the task, by the words that the corpus lacks."""
    without = [attempt for attempt in attempts if not _has_answer(attempt.retrieval)]
    if not without:
        return
    questions: defaultdict[str, list[str]] = defaultdict(list)
    for attempt in without:
        for word in attempt.missing:
            questions[word].append(attempt.text)
    similar = _similar_words(list(questions), corpus)
    for word, texts in sorted(questions.items(), key=lambda item: (-len(item[1]), item[0])):
        number = counted(len(texts), "question")
        share = f"no passage has {word!r}, a word of {number} without a good answer"
        near = similar.get(word, [])
        if near:
            yield Suggestion(
                kind="no_answer",
                place=f"vocabulary.synonyms.{word}",
                message=f"{share}; {' and '.join(map(repr, near))} may mean the same",
                questions=texts[:MAX_SHOWN],
                patch={"vocabulary": {"synonyms": {word: near}}},
                is_safe=True,
            )
        else:
            yield Suggestion(
                kind="no_answer",
                message=f"{share}; ingest documents about it",
                questions=texts[:MAX_SHOWN],
            )
    unexplained = [attempt.text for attempt in without if not attempt.missing]
    if unexplained:
        yield Suggestion(
            kind="no_answer",
            message=f"{counted(len(unexplained), 'question')} without a good answer: the corpus "
            "has their words, but no passage has enough of them; `rolebundle why` shows what is "
            "missing",
            questions=unexplained[:MAX_SHOWN],
        )


def _has_answer(retrieval: Retrieval) -> bool:
    """Whether an answer has evidence for its task; a vague task has little by its nature."""
    evidence, selected = retrieval.evidence, retrieval.selection.selected
    if not selected or evidence.task == "off_topic":
        return False
    if retrieval.vagueness and retrieval.vagueness.intent.intents:
        return True
    has_support = any(evidence.support(chosen.passage.rowid).is_for_task for chosen in selected)
    return evidence.task == "supported" and has_support


def _similar_words(words: Sequence[str], corpus: Corpus) -> dict[str, list[str]]:
    """Word → at most two words of the corpus that are close to it in meaning."""
    if not words:
        return {}
    passages = passages_of(corpus_documents(corpus))
    provider: EmbeddingProvider = StaticProvider()
    try:
        return {
            word: [
                near
                for near, cosine in words_close_to([word], passages, provider).items()
                if cosine >= CLOSE_SYNONYMS
            ][:2]
            for word in words
        }
    except EmbedderError:
        return {}


def _never_matching_words(
    own: Mapping[str, Any], overlay: Overlay, corpus: Corpus
) -> Iterator[Suggestion]:
    """Terms of the role's own file that no passage has. To take them out changes no answer."""
    for key in _VOCABULARY_LISTS:
        if key not in (own.get("vocabulary") or {}):
            continue
        terms: list[str] = getattr(overlay.vocabulary, key)
        absent = [term for term in terms if not chunks_with(corpus, term)[0]]
        if absent:
            present_terms = [term for term in terms if term not in absent]
            yield Suggestion(
                kind="never_matches",
                place=f"vocabulary.{key}",
                message=f"no passage has {', '.join(map(repr, absent))}; take them out, or write "
                "them as the documents do",
                patch={"vocabulary": {key: present_terms}},
                is_safe=True,
            )


def _never_matching_rules(
    own: Mapping[str, Any], overlay: Overlay, corpus: Corpus
) -> Iterator[Suggestion]:
    """Preferred sources of the role's own file that no document is of; no forbidden ones."""
    if "preferred_sources" not in (own.get("source_policy") or {}):
        return
    facts = corpus_facts(document_kinds(corpus))
    rules = overlay.source_policy.preferred_sources
    matching_rules = [rule for rule in rules if facts.matched(rule)]
    if len(matching_rules) < len(rules):
        absent = [rule.condition for rule in rules if rule not in matching_rules]
        yield Suggestion(
            kind="never_matches",
            place="source_policy.preferred_sources",
            message=f"no document matches {', '.join(map(repr, absent))}",
            patch={
                "source_policy": {
                    "preferred_sources": [
                        rule.model_dump(exclude_none=True, exclude_defaults=True)
                        for rule in matching_rules
                    ]
                }
            },
            is_safe=True,
        )


def _stale(attempts: Sequence[_Attempt], overlay: Overlay) -> Iterator[Suggestion]:
    """Questions whose answers are mostly stale, or whose old answers were rejected."""
    policy = overlay.retrieval_policy
    texts: list[str] = []
    ages: list[float] = []
    for attempt in attempts:
        selected = attempt.retrieval.selection.selected
        stale = [candidate for candidate in selected if candidate.freshness == "stale"]
        rejected = [item for item in attempt.retrieval.rejected if item.code == "stale"]
        if len(stale) * 2 > len(selected) or (rejected and not selected):
            texts.append(attempt.text)
            now = datetime.now(UTC)
            candidates = [*stale, *(item.candidate for item in rejected)]
            own = (age_days(candidate.passage.document, now) for candidate in candidates)
            ages += [age for age in own if age is not None]
    if not texts:
        return
    limit = policy.freshness_max_age_days
    if limit is None or not ages:
        yield Suggestion(
            kind="stale_answers",
            place="retrieval_policy.freshness_max_age_days",
            message=f"most passages of the answers to {counted(len(texts), 'question')} are older "
            f"than {DEFAULT_MAX_AGE_DAYS} days; set the age at which the role's documents are "
            "stale, so that newer ones rank higher, or declare newer dates",
            questions=texts[:MAX_SHOWN],
        )
        return
    wanted = round(sorted(ages)[int(0.75 * (len(ages) - 1))])
    yield Suggestion(
        kind="stale_answers",
        place="retrieval_policy.freshness_max_age_days",
        message=f"the answers to {counted(len(texts), 'question')} rest on passages that are older "
        f"than {limit:g} days; three in four of them are younger than {wanted} days. Renew the "
        "documents, or raise the limit",
        questions=texts[:MAX_SHOWN],
        patch={"retrieval_policy": {"freshness_max_age_days": wanted}},
        is_safe=policy.stale_penalty < 1,
    )


def _merged(patch: Mapping[str, Any], addition: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(patch)
    for key, value in addition.items():
        own = merged.get(key)
        if isinstance(own, dict) and isinstance(value, dict):
            value = _merged(own, value)  # noqa: PLW2901
        merged[key] = value
    return merged
