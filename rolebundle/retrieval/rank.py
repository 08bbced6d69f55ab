"""The steps rank and select: scores, lifts, copies, diversity and budgets."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType

from rolebundle.contracts.dates import newest_words
from rolebundle.contracts.documents import Passage
from rolebundle.contracts.overlay import RetrievalPolicy, Vocabulary
from rolebundle.contracts.terms import TRUST_TIERS, MarkState, RejectionCode
from rolebundle.lazy import lazy_module
from rolebundle.retrieval.candidate import Candidate, Pool, Retrieval, Weights
from rolebundle.retrieval.filter import (
    add_metadata_score,
    is_rejected_only_by_role,
    metadata_score,
    policy_rejections,
    seen_rejection,
)
from rolebundle.retrieval.merge import merge, scale_by_range
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.text.spellings import also_written, folded, others_of
from rolebundle.text.stop_words import ENGLISH_STOP_WORDS, STOP_WORDS
from rolebundle.text.words import counted

tokens = lazy_module("rolebundle.text.tokens")

ScorePassages = Callable[[Sequence[Passage]], Mapping[str, float]]
"""The scores of passages for the task, by chunk id; a passage may be missing."""

MAX_RERANKED = 50
"""How many candidates, the best by their lanes, a server's model reads: this bounds the cost."""
RERANKED_SHARE = 0.85
"""The model's share of the semantic term."""

_COPY_PATH = re.compile(
    r"(?:^|[/ _.(-])(?:copy|kopie|backup|bak|old|archived?|previous|deprecated)(?=$|[/ _.)-])",
    re.IGNORECASE,
)
_VERSION_NUMBER = re.compile(r"(?<![^\W_])v(?:er(?:sion)?)?[-_. ]?(\d{1,6})(?!\d)", re.IGNORECASE)
_FUNCTION_WORDS = ENGLISH_STOP_WORDS.union(*STOP_WORDS.values())
_NUMBER, _WORDS = re.compile(r"\d+"), re.compile(r"[^\W_]+")
_FIRST_WORD = re.compile(r"[^\W_]+")
_VERSION = re.compile(
    r"(?<![^/_-])(?!(?:19|20)\d\d/)(?:v\d+(?:\.\d+)*|\d+(?:\.\d+)+|\d+(?=/))(?=[/_-]|\.[a-z]|$)",
    re.IGNORECASE,
)
"""A version in a path: ``v2``, ``5.1``, or a folder ``7``; no year."""
_ALIKE = 0.7
"""A passage is of an older version of a page if the newer one has this share of its words."""

BOOST_POINTS = 0.15
PREFERRED_POINTS = 0.08
"""Also the score at which the role's phrases count fully."""
SUPPRESS_POINTS = -0.2
_POINTS = {
    "vocab:boost": BOOST_POINTS,
    "vocab:preferred": PREFERRED_POINTS,
    "vocab:suppress": SUPPRESS_POINTS,
}
SATURATED_METADATA = 2.25
"""A higher metadata score counts as this one."""
DIVERSITY_STEP = 0.15

BEST_AMONG_FIRST = 5
"""The passage that is first without a role is among so many of the first with one (law 11)."""
AMONG_FIRST = 3
"""A passage with a rare exact word of the task, or the best for a wording, is among so many of the
first."""

ABOUT_AS_GOOD = 0.7
"""A passage with this share of the first one's score may answer about as well."""
OF_SERIES = 0.5
"""The same for a document of the first one's series, which may use other words for the answer."""
_STATES = frozenset(
    "final draft entwurf new neu old alt current copy kopie signed revised corrected".split()
)

STANDS_ALONE = 200
"""A text of so many characters says the same under any heading; a shorter one may need it."""

UNVERIFIED = 0.8
"""The value of a passage without a mark."""
MARK_VALUES: Mapping[MarkState, float] = MappingProxyType(
    {"disputed": 0.5, "tool_verified": 0.9, "supervisor_verified": 1.0}
)
"""The values of marks. The role's part is multiplied by a value divided by ``UNVERIFIED``."""


def rank(
    candidates: Sequence[Candidate],
    pool: Pool,
    request: ResolvedRequest,
    weights: Weights,
    exact: Sequence[str] = (),
    wordings: Sequence[Pool] = (),
    score_passages: ScorePassages | None = None,
    most: int = MAX_RERANKED,
) -> list[Candidate]:
    """Score and order the candidates that policy allows by :func:`ranking_order`.

    Args:
        candidates: all candidates; those that policy rejects have a code.
        pool: what the lanes proposed.
        request: the resolved request.
        weights: of the score's terms.
        exact: the rare exact words and phrases of the task.
        wordings: what the first search would say of its hits for each wording of the task alone.
        score_passages: asks the reranking model for the scores of the best passages.
        most: how many passages it reads.
    """
    allowed = [row for row in candidates if row.code is None]
    if score_passages is not None:
        first = [row for row in allowed if row.round == 0]
        rerank(first, score_passages, weights, most)
    for row in allowed:
        add_role(row, request, weights)
        row.weigh(weights)
    groups = mark_duplicates(allowed, request.task)
    mark_versions(allowed, " ".join((request.task, *request.also)))
    ranked = sorted(allowed, key=ranking_order)
    penalize_sources(ranked, request)
    ranked.sort(key=ranking_order)
    asked = _asked_of_newest(request.task)
    if asked is not None:
        _put_newest_first(ranked, request.min_score, asked)
    for words in exact:
        having = (row for row in ranked if has_words(row.passage, words))
        _lift(ranked, next(having, None), AMONG_FIRST, f"exact:{words}")
    _lift_wordings(ranked, wordings, weights)
    if request.overlay is not None:
        # As without a role, if the role's own `fusion` scores them differently.
        fusion = request.echo.fusion or "weighted"
        plain = candidates
        if fusion != weights.fusion:
            plain = merge(pool, weights._replace(fusion=fusion))
        of_role = [
            row
            for row in candidates
            if row.code is not None and is_rejected_only_by_role(row.passage, request)
        ]
        if of_role:
            groups = _copies([*allowed, *of_role], request.task)
        best = _best_without_role(groups, plain, weights._replace(fusion=fusion), asked)
        _lift(ranked, best, BEST_AMONG_FIRST, "first without a role")
    return ranked


def rerank(
    rows: Sequence[Candidate],
    score_passages: ScorePassages,
    weights: Weights,
    most: int = MAX_RERANKED,
) -> None:
    """Mix the reranking model's scores into the semantic term.

    ``semantic = 0.15 · semantic + 0.85 · score``, where ``score`` is scaled by minimum and maximum
    among the best ``most``, and 0 for all others. A passage that the model could not read keeps its
    term, and so do all if there is no score.
    """
    ordered = sorted(rows, key=lambda row: (-weights.lane_score(row), row.chunk_id))
    best = ordered[:most]
    found = score_passages([row.passage for row in best])
    scaled = scale_by_range(found)
    unread = {row.chunk_id for row in best} - scaled.keys()
    for row in rows if found else ():
        if row.chunk_id not in unread:
            term = RERANKED_SHARE * scaled.get(row.chunk_id, 0.0)
            row.semantic = (1 - RERANKED_SHARE) * row.semantic + term
            row.contextual = found.get(row.chunk_id)


def has_words(passage: Passage, words: str) -> bool:
    """Whether the passage's text, headings or title have these words, one after the other."""
    text = _with_spellings(" ".join((passage.document.title, *passage.headings, passage.content)))
    return any(_contains(text, _fold_text(one)) for one in (words, *others_of(words)))


@lru_cache(maxsize=1024)
def _with_spellings(text: str) -> str:
    own = folded(text)
    return _fold_text(f"{own} {also_written(own)}")


def _best_without_role(
    groups: Iterable[Sequence[Candidate]],
    plain: Sequence[Candidate],
    weights: Weights,
    asked: Set[str] | None,
) -> Candidate | None:
    """The allowed candidate that would be first without a role.

    Args:
        groups: the copies among the candidates that only the role may reject; see :func:`_copies`.
        plain: all candidates with the lanes' scores by the weights' ``fusion``.
        weights: those of the request, with the fusion of a request without a role.
        asked: what the task asks of the newest version; ``None`` if it asks for none.
    """
    # Whether meanings count does not depend on the role's weights.
    has_semantic = any(row.cosine is not None or row.contextual is not None for row in plain)
    weights = Weights.of(
        RetrievalPolicy(),
        weights.fusion,
        has_semantic=has_semantic,
        role_share=0.0,
        words_factor=weights.words_factor,
    )
    scores = {row.chunk_id: weights.lane_score(row) for row in plain}

    def order(copies: Sequence[Candidate]) -> tuple[int, float, float, str]:
        best = max(scores[row.chunk_id] for row in copies)
        first = copies[0]
        return first.round, -best, -scores[first.chunk_id], first.chunk_id

    best_first = [row for copies in sorted(groups, key=order) for row in copies]
    allowed = [row for row in best_first if row.code is None]
    if allowed and asked is not None:
        return max(_versions(allowed, lambda row: scores[row.chunk_id], asked), key=_age_order)
    return next(iter(allowed), None)


def _asked_of_newest(task: str) -> Set[str] | None:
    """The content words of a task that asks for the newest version; ``None`` for other tasks."""
    text = f" {' '.join(words_of(task))} "
    asking = [words.split() for words in newest_words() if f" {words} " in text]
    return frozenset(text.split()).difference(*asking, _FUNCTION_WORDS) if asking else None


def _put_newest_first(ranked: list[Candidate], min_score: float, asked: Set[str]) -> None:
    """Give the scores of those that answer about as well as the first to the newest of them."""
    rows = [row for row in ranked if row.is_selectable and row.final >= min_score]
    near = _versions(rows, lambda row: row.final, asked)
    finals, least = [row.final for row in near], -math.inf
    newest_first = sorted(near, key=_age_order, reverse=True)
    for row in reversed(newest_first):
        least = max(finals.pop(), math.nextafter(least, math.inf))
        if least != row.final:
            row.lift += least - row.final
            row.lifted_for = (*row.lifted_for, f"by date: {_age_order(row)[1] or 'none'}")
            row.final = least
    ranked.sort(key=ranking_order)


def _versions(
    rows: Sequence[Candidate], score: Callable[[Candidate], float], asked: Set[str]
) -> list[Candidate]:
    """Those that answer about as well as the first row, which is one of them.

    They are of the same search, have most of its score, and all words of the task that it has.
    Without the last condition newer passages about something else come first. Documents of one
    series, such as the minutes of each meeting, use other words: they need less of its score.
    """
    if not rows:
        return []
    first = rows[0]
    best, wanted = score(first), asked & _words_in(first.passage)
    return [
        row
        for row in rows
        if row.round == first.round
        and (
            (score(row) >= ABOUT_AS_GOOD * best and wanted <= _words_in(row.passage))
            or (score(row) >= OF_SERIES * best and _is_of_series(row.passage, first.passage))
        )
    ]


def _is_of_series(passage: Passage, other: Passage) -> bool:
    """Whether two files have the same names and folders, but for numbers, dates and states.

    One name may have more words, as in ``AGM 2025 minutes`` and ``2026-03-19 AGM minutes LP``.
    """
    (folder, words), (other_folder, others) = _series(passage.path), _series(other.path)
    is_named_alike = words <= others or others <= words
    return folder == other_folder and is_named_alike and bool(words) == bool(others)


@lru_cache(maxsize=4096)
def _series(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of the folders of a file and of its name, without numbers and states."""
    folders, _, name = folded(path).rpartition("/")
    texts = folders, name.rpartition(".")[0]
    folder, stem = ([w for w in words_of(_NUMBER.sub(" ", text)) if len(w) > 1] for text in texts)
    return frozenset(folder) - _STATES, frozenset(stem) - _STATES


def _words_in(passage: Passage) -> Set[str]:
    text = " ".join((passage.document.title, *passage.headings, passage.content))
    return frozenset(words_of(text))


def _age_order(row: Candidate) -> tuple[int, str, list[int]]:
    """The order of versions, the newest last.

    A date in the future does not count. Dates of documents that the owner did not write are
    compared among themselves only. Dates of untrusted documents do not count: they may be false.
    Versions of one day are in the order of their numbers (``v2``).
    """
    document = row.passage.document
    if row.freshness == "undated" or "untrusted" in (document.trust_tier, document.origin):
        return 0, "", []
    date = (document.updated_at or document.inferred_at or "")[:10]
    versions = map(int, _VERSION_NUMBER.findall(row.passage.path.rpartition("/")[2]))
    return 2 if document.origin == "internal" else 1, date, [*versions]


def _lift(ranked: list[Candidate], lifted: Candidate | None, place: int, reason: str) -> None:
    """Move a candidate among the first so many, and keep it from a hard limit.

    A copy is lifted by lifting the passage that stands for it. What is not selected anyway, because
    it is superseded or a copy, takes no place.
    """
    if lifted is None or lifted.passage.superseded_by:
        return
    chunk_id = lifted.duplicate_of or lifted.version_of or lifted.chunk_id
    before = [row for row in ranked if row.is_selectable]
    for number, row in enumerate(before):
        if row.chunk_id == chunk_id:
            row.is_exempt = True
            # Just above the one whose place it takes.
            final = math.nextafter(before[place - 1].final, math.inf) if number >= place else 0.0
            if final > row.final:
                row.lift += final - row.final
                row.lifted_for = (*row.lifted_for, reason)
                row.final = final
    ranked.sort(key=ranking_order)


def _lift_wordings(ranked: list[Candidate], wordings: Sequence[Pool], weights: Weights) -> None:
    """Keep among the first what answers each wording about as well as anything: a second subject.

    Of other wordings of one subject the first passages answer all.
    """
    missed: dict[str, Candidate] = {}
    for pool in wordings:
        alone = {row.chunk_id: weights.lane_score(row) for row in merge(pool, weights)}
        rows = [row for row in ranked if row.is_selectable and row.chunk_id in alone]
        best = max(rows, key=lambda row: alone[row.chunk_id], default=None)
        first = max((alone[row.chunk_id] for row in rows[:AMONG_FIRST]), default=0.0)
        if best is not None and first < ABOUT_AS_GOOD * alone[best.chunk_id]:
            missed[best.chunk_id] = best
    lifted = [*missed.values()][: AMONG_FIRST - 1]
    for place, row in enumerate(lifted, AMONG_FIRST + 1 - len(lifted)):
        _lift(ranked, row, place, "best for a wording")


def mark_duplicates(rows: Iterable[Candidate], task: str = "") -> list[list[Candidate]]:
    """Write the chunk id of the passage that stands for each copy. Return the groups of copies.

    That passage gets the best score of its copies.

    Copies are passages with the same text, apart from white space and, among files of several
    formats, markup; a short text needs the same headings, too. They are one place in an answer. The
    one that stands for the others was found by the earliest search, so that it does not depend on
    the request's limit. Of several it has the higher trust, then an internal origin, then fewer
    flags, then a path that does not name it a copy or an old version, then the later date, then the
    better score, then the shorter path. Of those with the same standing and source it is then the
    one of the version that the task names, or of the newest.

    Superseded candidates are not compared: a newer version of a document may have the same text,
    and must not be rejected as a copy of the old one.
    """
    groups = _copies(rows, task)
    for copies in groups:
        first = copies[0]
        for row in copies[1:]:
            row.duplicate_of = first.chunk_id
        best = min(copies, key=ranking_order) if len(copies) > 1 else first
        first.round = best.round
        if best.final > first.final:
            first.lift, first.final = best.final - first.final, best.final
            first.lifted_for = (f"ranked as its copy {best.chunk_id}",)
    return groups


def version_of(passage: Passage) -> tuple[int, ...]:
    """The version that its document declares, or that its path names; empty without any."""
    declared = dict(passage.document.attributes).get("version", ())
    names = [*declared, *_VERSION.findall(passage.path)]
    return next((tuple(map(int, _NUMBER.findall(name))) for name in names if name), ())


def mark_versions(rows: Iterable[Candidate], task: str) -> None:
    """Write the chunk id of the newer version of a page that stands for an older one.

    Their paths differ in a version only, and their headings, standing and source are equal. The
    newer one has most of the older one's words, and all of its words of the task, which does not
    name the older version. It gets the better score.
    """
    pages = defaultdict[tuple[object, ...], list[Candidate]](list)
    for row in rows:
        if row.is_selectable and version_of(row.passage):
            page = _VERSION.sub("", row.passage.path)
            pages[(page, *row.passage.headings, *_standing(row))].append(row)
    for page_rows in pages.values():
        newest = max(version_of(row.passage) for row in page_rows)
        first = [row for row in page_rows if version_of(row.passage) == newest]
        for row in page_rows:
            words = _words(row.passage)
            near = (new for new in first if len(words & _words(new.passage)) >= _ALIKE * len(words))
            new = next(near, None)
            if row in first or new is None or _is_named(row.passage, task):
                continue
            if words & {*_WORDS.findall(task.casefold())} <= _words(new.passage):
                lines = {*map(str.strip, new.passage.content.splitlines())}
                own = map(str.strip, row.passage.content.splitlines())
                row.version_of, row.differs = (
                    new.chunk_id,
                    next((s for s in own if s not in lines), ""),
                )
                if row.final > new.final:
                    new.lift, new.final = new.lift + row.final - new.final, row.final
                    new.lifted_for = (
                        *new.lifted_for,
                        f"ranked as its older version {row.chunk_id}",
                    )


def _words(passage: Passage) -> set[str]:
    return {*_WORDS.findall(passage.content.casefold())}


def _is_named(passage: Passage, task: str) -> bool:
    """Whether the task names the version of a passage."""
    number = ".".join(map(str, version_of(passage)))
    return (
        bool(number) and re.search(rf"(?<![\d.])v?{re.escape(number)}(?!\.?\d)", task) is not None
    )


def _standing(row: Candidate) -> tuple[object, ...]:
    """What must be equal in two versions, so that one can stand for the other."""
    passage, document = row.passage, row.passage.document
    visible = document.sensitivity, document.scope, passage.applicable_roles, passage.excluded_roles
    origin = document.source_id, document.trust_tier, document.origin
    return (row.round, *origin, *visible, passage.flags)


def _newest_first(same: list[Candidate], task: str) -> list[Candidate]:
    ordered = sorted(same, key=_copy_order)
    equal = [row for row in ordered if _standing(row) == _standing(ordered[0])]
    first = max(equal, key=lambda row: (_is_named(row.passage, task), version_of(row.passage)))
    return [first, *(row for row in ordered if row is not first)]


def _copies(rows: Iterable[Candidate], task: str = "") -> list[list[Candidate]]:
    """The rows that can be selected, those of one text together; the one that stands is first."""
    # Texts are compared only if their first words are equal, which is quick to see.
    alike: defaultdict[str, list[Candidate]] = defaultdict(list)
    for row in rows:
        if not row.passage.superseded_by:
            first_word = _FIRST_WORD.search(row.passage.content)
            alike[first_word[0] if first_word else ""].append(row)
    groups = [group for group in alike.values() if len(group) == 1]
    for group in alike.values():
        copies: defaultdict[tuple[str, ...], list[Candidate]] = defaultdict(list)
        formats = {row.passage.path.rpartition(".")[2] for row in group}
        for row in group if len(group) > 1 else ():
            text = row.passage.content
            text = tokens.tokens_of(text).line if len(formats) > 1 else " ".join(text.split())
            headings = () if len(text) >= STANDS_ALONE else row.passage.headings
            copies[(*headings, text)].append(row)
        groups += (_newest_first(same, task) for same in copies.values())
    return groups


def _copy_order(row: Candidate) -> tuple[int, int, bool, int, bool, str, float, int, str]:
    document, path = row.passage.document, row.passage.path
    # Dates are ISO 8601 in UTC: complemented, so that the latest comes first.
    # One in the future counts as none.
    known = "" if row.freshness == "undated" else document.updated_at or ""
    date = "".join(chr(0x10FFFF - ord(sign)) for sign in known)
    is_old = bool(_COPY_PATH.search(path))
    tier = TRUST_TIERS.index(document.trust_tier)
    return (
        row.round,
        tier,
        document.origin != "internal",
        len(row.passage.flags),
        is_old,
        date or chr(0x10FFFF),
        -row.final,
        len(path),
        row.chunk_id,
    )


# -- the role's part -----------------------------------------------------------------------------


def add_role(row: Candidate, request: ResolvedRequest, weights: Weights) -> None:
    """Write the role's terms; without a role there are none.

    Both terms saturate, so that a passage of the role's ground is not pushed further by every rule
    that it matches, and the task decides among such passages:

    - metadata: ``min(1, m / 2.25)`` for the metadata score ``m``.
    - vocabulary: ``(1 − e) · min(1, v / 0.08) + e · x`` for the score ``v`` of the role's phrases,
      the normalized BM25 ``x`` of the role's terms, and the overlay's ``expansion_weight`` ``e``.

    A mark then multiplies both with :func:`mark_factor`, and the score for the task with
    :meth:`Weights.role_factor`.
    """
    if not request.ranks_by_role:
        return
    passage = row.passage
    _, row.vocabulary_hits = vocabulary_score(passage.content, passage.tags, request.vocabulary)
    by_expansion = request.retrieval_policy.expansion_weight
    row.vocabulary = (1 - by_expansion) * _by_phrases(row.vocabulary_hits)
    row.vocabulary += by_expansion * row.expansion
    row.metadata = normalize_metadata(row.metadata_score)
    row.role_factor, factors = weights.role_factor(row), {}
    if (by_evidence := weights.evidence_factor(row)) < 1.0:
        factors["penalty:weak-evidence"] = by_evidence
    if passage.mark is not None and passage.mark.ruling is not None:
        by_mark = factors[f"mark:{passage.mark.state}"] = mark_factor(passage.mark.ruling)
        row.role_factor *= by_mark
    row.metadata *= row.role_factor
    row.vocabulary *= row.role_factor
    row.role_hits = tuple(f"{name}(×{round(factor, 3):g})" for name, factor in factors.items())


def trace_rules(
    ranked: Sequence[Candidate],
    shown: Sequence[Candidate],
    request: ResolvedRequest,
    weights: Weights,
) -> None:
    """Write which of the overlay's rules changed the place of each shown passage.

    The place without a rule is that in the ranking with scores as if the overlay had no such rule
    for any passage. What lifts and diversity do stays as it is.
    """
    rows = [row for row in ranked if row.is_selectable]
    place = {row.chunk_id: number for number, row in enumerate(rows, start=1)}
    for rule in dict.fromkeys(hit for row in shown for hit in row.rules):
        lost = {row.chunk_id: _lost_without(rule, row, request, weights) for row in rows}
        without = sorted(
            rows, key=lambda row: (row.round, lost[row.chunk_id] - row.final, place[row.chunk_id])
        )
        before = {row.chunk_id: number for number, row in enumerate(without, start=1)}
        for row in shown:
            if rule in row.rules and before.get(row.chunk_id, 0) != place.get(row.chunk_id, 0):
                row.moved_from = {**row.moved_from, rule: before[row.chunk_id]}


def _lost_without(rule: str, row: Candidate, request: ResolvedRequest, weights: Weights) -> float:
    """What a passage's final score would lose without a rule; 0 if a lift holds the passage."""
    if row.lifted_for:
        return 0.0
    if rule in row.metadata_hits:
        others = [factor for hit, factor in row.metadata_hits.items() if hit != rule]
        before = normalize_metadata(row.metadata_score)
        lost = weights.metadata * (before - normalize_metadata(metadata_score(others)))
    elif rule in row.vocabulary_hits:
        phrases = [hit for hit in row.vocabulary_hits if hit != rule]
        lost = _by_phrases(row.vocabulary_hits) - _by_phrases(phrases)
        lost *= weights.vocabulary * (1 - request.retrieval_policy.expansion_weight)
    else:
        return 0.0
    return lost * row.role_factor


def mark_factor(state: MarkState) -> float:
    """What a mark multiplies the role's part of the score with; 1 for a rejected passage.

    The filter rejects such a passage. Its score is only supposed, as if it were allowed.
    """
    return MARK_VALUES.get(state, UNVERIFIED) / UNVERIFIED


def normalize_metadata(score: float) -> float:
    """``min(1, m / 2.25)`` for the metadata score ``m``, which is at least 0."""
    return min(1.0, score / SATURATED_METADATA)


def ranking_order(row: Candidate) -> tuple[int, float, float, str]:
    """The sort key of the ranking: the highest final score first.

    What a further search found comes after what the searches before it found, whatever its score.
    So the first passages do not depend on how many are asked for. Ties are broken by the score
    before the diversity penalty, and then by chunk id.
    """
    return row.round, -row.final, -row.before_diversity, row.chunk_id


# -- vocabulary ----------------------------------------------------------------------------------


def vocabulary_score(
    text: str, tags: Sequence[str], vocabulary: Vocabulary
) -> tuple[float, tuple[str, ...]]:
    """How much of the role's vocabulary a chunk has, in [0, 1], and the phrases it has.

    +0.15 for each boost phrase in the text, +0.08 for each preferred term in the text or the tags,
    −0.2 for each suppress phrase in the text, clamped to [0, 1]. Case and spacing do not count. A
    phrase must begin where a word begins: "threat model" is in "threat models", "api" is not in
    "rapid".
    """
    phrases = vocabulary.boost_phrases, vocabulary.preferred_terms, vocabulary.suppress_phrases
    return _vocabulary_score(text, tuple(tags), *(tuple(group) for group in phrases))


@lru_cache(maxsize=1024)
def _vocabulary_score(
    text: str,
    tags: tuple[str, ...],
    boosts: tuple[str, ...],
    preferred: tuple[str, ...],
    suppressed: tuple[str, ...],
) -> tuple[float, tuple[str, ...]]:
    # Cached, because the next request often has many of the same candidates.
    content = _fold_text(text)
    tagged = _fold_text(" | ".join(tags).replace("-", " ")) + " | " + _fold_text(" | ".join(tags))
    found = (
        ("boost", _phrases_in(content, boosts)),
        ("preferred", _phrases_in(f"{content} | {tagged}", preferred)),
        ("suppress", _phrases_in(content, suppressed)),
    )
    hits = tuple(f"vocab:{kind}({phrase})" for kind, phrases in found for phrase in phrases)
    return _phrase_score(hits), hits


def _phrase_score(hits: Iterable[str]) -> float:
    points = (_POINTS[hit.partition("(")[0]] for hit in hits)
    return min(1.0, max(0.0, sum(points)))


def _by_phrases(hits: Iterable[str]) -> float:
    """The part of the vocabulary term that phrases give, in [0, 1]."""
    return min(1.0, _phrase_score(hits) / PREFERRED_POINTS)


@lru_cache(maxsize=4096)
def _fold_text(text: str) -> str:
    # Cached, because each role compares its own phrases with the same texts.
    return " ".join(folded(text).casefold().split())


def _phrases_in(text: str, phrases: tuple[str, ...]) -> list[str]:
    # Most phrases do not occur at all, and a plain search is the quickest way to exclude them.
    pairs = ((phrase, _fold_text(phrase)) for phrase in phrases)
    return [phrase for phrase, folded in pairs if folded in text and _contains(text, folded)]


def _contains(text: str, folded: str) -> bool:
    start = text.find(folded) if folded else -1
    while start > 0 and text[start - 1].isalnum():
        start = text.find(folded, start + 1)
    return start >= 0


# -- source diversity ----------------------------------------------------------------------------


def penalize_sources(ranked: Sequence[Candidate], request: ResolvedRequest) -> None:
    """Take 0.15 · (n − max) from the n-th candidate of a source, if the role requires diversity.

    The first passage of a document loses 0.15 at most: it may be the only answer, and other
    documents of its source may have taken the source's share (docs/decisions/0029).

    No score falls under ``request.min_score`` by this. Duplicates and superseded candidates will
    not be selected, so they do not count.
    """
    if not request.retrieval_policy.require_source_diversity:
        return
    numbers: Counter[str] = Counter()
    documents: set[str] = set()
    for row in ranked:
        if not row.is_selectable:
            continue
        document = row.passage.document
        numbers[document.source_id] += 1
        excess = numbers[document.source_id] - request.retrieval_policy.max_chunks_per_source
        if document.document_id not in documents:
            documents.add(document.document_id)
            excess = min(excess, 1)
        if excess > 0:
            final, least = row.final - DIVERSITY_STEP * excess, min(row.final, request.min_score)
            row.diversity_penalty = DIVERSITY_STEP * excess
            if final < least:
                final, row.diversity_penalty = least, row.final - least
            row.final = final


ALWAYS_COMPARED = 10
"""If the limit is smaller, so many passages are looked at for declared disagreements, so that a
small answer hides none."""
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text. Budgets are held to this estimate, not to a tokenizer."""


def select(ranked: Iterable[Candidate], request: ResolvedRequest, withheld: str = "") -> None:
    """Select greedily, in the order of the ranking; write a code for what is not selected.

    A candidate is rejected if it is superseded (``conflict_downrank``), a copy of another one
    (``duplicate``), under ``request.min_score`` (``low_score``), past ``request.limit`` or the
    role's hard limit for its source, or does not fit into what is left of ``request.token_budget``
    (``budget_cut``). The first of these is its code.

    Args:
        ranked: the candidates in their order. Those that have a code keep it.
        request: the resolved request.
        withheld: why every candidate is rejected (``low_score``); empty if none is for this reason.
    """
    sources: Counter[str] = Counter()
    tokens = 0
    for row in ranked:
        if row.code is not None:
            continue
        rejection = _rejection(row, request, sources, tokens)
        if withheld:
            row.code, row.note = "low_score", withheld
        elif rejection is None:
            sources[row.passage.document.source_id] += 1
            tokens += estimated_tokens(row.passage.content)
        else:
            row.code, row.note = rejection


def _rejection(
    row: Candidate, request: ResolvedRequest, sources: Counter[str], tokens: int
) -> tuple[RejectionCode, str] | None:
    """The code and the note of a candidate; ``None`` if it is selected.

    Args:
        row: the candidate.
        request: the resolved request.
        sources: how many passages of each source are selected.
        tokens: how many tokens these have.
    """
    policy, source = request.retrieval_policy, row.passage.document.source_id
    if row.passage.superseded_by:
        newer = ", ".join(newer.document_id for newer in row.passage.superseded_by)
        return "conflict_downrank", f"superseded by {newer}"
    if row.duplicate_of is not None:
        return "duplicate", f"the same text as {row.duplicate_of}"
    if row.version_of is not None:
        return "other_version", f"{row.version_of} is newer; here: {row.differs[:200]}"
    if row.final < request.min_score:
        return "low_score", f"score {row.final:.3f} is under the floor of {request.min_score:g}"
    if sources.total() >= request.limit:
        after = f" ({row.final:.3f} after source diversity)" if row.diversity_penalty else ""
        most = counted(request.limit, "passage")
        return (
            "budget_cut",
            f"score {row.before_diversity:.3f}{after} is past the limit of {most}",
        )
    is_full = sources[source] >= policy.max_chunks_per_source
    # What a lift keeps is not limited: the best for the task (law 11), and exact words.
    if policy.diversity == "hard" and is_full and not row.is_exempt:
        most = counted(policy.max_chunks_per_source, "passage")
        return "budget_cut", f"it is past the role's limit of {most} of {source}"
    cost, budget = estimated_tokens(row.passage.content), request.token_budget
    if budget is not None and tokens + cost > budget:
        used = f"{tokens} of token_budget {budget} are used"
        return "budget_cut", f"about {cost} tokens do not fit: {used}"
    return None


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has for a model."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def best_forbidden(found: Retrieval) -> list[Candidate]:
    """The candidates that would be selected if the role forbade no source, best first.

    They are scored like the allowed candidates, by lanes, metadata and vocabulary, and have to
    stand among the selected ones. The other steps of the ranking compare candidates with each
    other. Forbidden candidates take no part in these, so that they influence nothing but a warning.
    What is rejected for another reason as well is not among them.
    """
    request = found.request
    supposed = [
        replace(row, code=None)
        for row in found.filtered_out
        if {code for code, _ in policy_rejections(row.passage, request)} == {"forbidden_source"}
        and not seen_rejection(row.passage, request)
    ]
    for row in supposed:
        add_metadata_score(row, request)
        add_role(row, request, found.weights)
        row.weigh(found.weights)
    together = sorted((*map(replace, found.selected), *supposed), key=ranking_order)
    select(together, request)
    names = {row.chunk_id for row in supposed}
    return [row for row in together if row.code is None and row.chunk_id in names]


def conflicts(ranked: Sequence[Candidate], limit: int) -> Iterator[tuple[Passage, Passage]]:
    """The passages whose documents declare a disagreement, the better one of each pair first.

    Two passages *conflict* if their documents are two, have the same trust tier, and one of them
    declares that it contradicts the other one (``contradicts``). Texts are not compared. Both are
    selected, or one of them is past a small limit.
    """
    selected: list[Passage] = []
    cut: list[Passage] = []
    for row in ranked:
        if row.code is None:
            selected.append(row.passage)
        elif row.code == "budget_cut" and len(selected) >= limit:
            cut.append(row.passage)
    compared = cut[: max(0, ALWAYS_COMPARED - limit)]
    pairs = [*combinations(selected, 2), *((one, two) for two in compared for one in selected)]
    for one, two in pairs:
        if (
            one.document.trust_tier == two.document.trust_tier
            and one.document.document_id != two.document.document_id
            and (_contradicts(one, two) or _contradicts(two, one))
        ):
            yield one, two


def _contradicts(passage: Passage, other: Passage) -> bool:
    return bool({other.document.document_id, other.path} & {*passage.document.contradicts})
