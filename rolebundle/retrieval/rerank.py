"""Step 4: every term of the final score, duplicates, and source diversity. Pure.

final = lexical·w1 + semantic·w2 + normalize(metadata)·w3 + vocabulary·w4 − diversity penalty
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from rolebundle.contracts.candidate import Candidate, Filtered, Ranked
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy, Vocabulary
from rolebundle.contracts.terms import Fusion

BOOST_PHRASE = 0.15
PREFERRED_TERM = 0.08
SUPPRESS_PHRASE = -0.2
DIVERSITY_STEP = 0.15

NEAR_DUPLICATE = 0.9
"""Jaccard similarity of word shingles from which two chunks are the same to a reader."""
SHINGLE_WORDS = 3
NEAR_DUPLICATE_WINDOW = 50
"""Candidates are compared with the best so many different texts; exact copies with all."""


def rerank(
    allowed: Iterable[Filtered], overlay: Overlay | None, fusion: Fusion = "weighted"
) -> list[Ranked]:
    """Score and order the allowed candidates: final score first, ties by chunk id.

    A candidate whose text a better one has already brought carries ``duplicate_of``. Duplicates
    and superseded candidates leave at the cut, so they do not count toward a source's share.
    """
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()
    vocabulary = overlay.vocabulary if overlay else Vocabulary()
    scored = [_scored(candidate, policy, vocabulary, fusion) for candidate in allowed]
    scored.sort(key=order)
    ranked = _diversified(_marked_duplicates(scored), policy)
    ranked.sort(key=order)
    return ranked


def normalized_metadata(score: float) -> float:
    """``min(1, ln(1 + m) / ln 6)``: 0.5 becomes 0.23, 5 and more become 1."""
    return min(1.0, math.log1p(score) / math.log(6))


def vocabulary_score(
    text: str, tags: Sequence[str], vocabulary: Vocabulary
) -> tuple[float, tuple[str, ...]]:
    """How much of the role's language a chunk speaks, in [0, 1], and the hits that made it so."""
    phrases = vocabulary.boost_phrases, vocabulary.preferred_terms, vocabulary.suppress_phrases
    return _spoken(text, tuple(tags), *map(tuple, phrases))


@lru_cache(maxsize=1024)
def _spoken(
    text: str,
    tags: tuple[str, ...],
    boosts: tuple[str, ...],
    preferred: tuple[str, ...],
    suppressed: tuple[str, ...],
) -> tuple[float, tuple[str, ...]]:
    # Cached, because it is asked for by two steps, and often by the next question, too.
    content = _spaced(text)
    tagged = _spaced(" | ".join(tags).replace("-", " ")) + " | " + _spaced(" | ".join(tags))
    both = f"{content} | {tagged}"
    score = 0.0
    hits: list[str] = []
    for phrase in _said(boosts, content):
        score += BOOST_PHRASE
        hits.append(f"vocab:boost({phrase})")
    for term in _said(preferred, both):
        if _contains(content, term) or _contains(tagged, term):
            score += PREFERRED_TERM
            hits.append(f"vocab:preferred({term})")
    for phrase in _said(suppressed, content):
        score += SUPPRESS_PHRASE
        hits.append(f"vocab:suppress({phrase})")
    return min(1.0, max(0.0, score)), tuple(hits)


def _scored(
    filtered: Filtered, policy: RetrievalPolicy, vocabulary: Vocabulary, fusion: Fusion
) -> Ranked:
    passage = filtered.candidate.passage
    metadata = normalized_metadata(filtered.metadata_score)
    spoken, hits = vocabulary_score(passage.content, passage.tags, vocabulary)
    return Ranked(
        filtered=filtered,
        metadata=metadata,
        vocabulary=spoken,
        vocabulary_hits=hits,
        diversity_penalty=0.0,
        final=(
            _lane_terms(filtered.candidate, policy, fusion)
            + policy.metadata_weight * metadata
            + policy.rerank_weight * spoken
        ),
    )


def beside_lanes(filtered: Filtered, overlay: Overlay | None) -> float:
    """What metadata and vocabulary add to a candidate's score, whatever its lanes say."""
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()
    passage = filtered.candidate.passage
    added = policy.metadata_weight * normalized_metadata(filtered.metadata_score)
    if overlay is not None:
        spoken, _ = vocabulary_score(passage.content, passage.tags, overlay.vocabulary)
        added += policy.rerank_weight * spoken
    return added


def lane_weights(policy: RetrievalPolicy, fusion: Fusion) -> tuple[float, float]:
    """The weights of the lexical and of the semantic term."""
    if fusion == "rrf":
        # Reciprocal rank fusion gives the lanes equal say; together they keep the lanes' weight.
        shared = (policy.lexical_weight + policy.semantic_weight) / 2
        return shared, shared
    return policy.lexical_weight, policy.semantic_weight


def best_by_lanes(
    allowed: Iterable[Filtered], overlay: Overlay | None, fusion: Fusion, most: int
) -> list[Filtered]:
    """The ``most`` best by the lanes' terms alone, best first, ties by chunk id."""
    policy = overlay.retrieval_policy if overlay else RetrievalPolicy()

    def key(one: Filtered) -> tuple[float, str]:
        return -_lane_terms(one.candidate, policy, fusion), one.candidate.passage.chunk_id

    return sorted(allowed, key=key)[:most]


def _lane_terms(candidate: Candidate, policy: RetrievalPolicy, fusion: Fusion) -> float:
    lexical, semantic = lane_weights(policy, fusion)
    if fusion == "rrf":
        # As one product, so that equal ranks in either lane give the very same score.
        return lexical * (candidate.lexical + candidate.semantic)
    return lexical * candidate.lexical + semantic * candidate.semantic


def order(ranked: Ranked) -> tuple[float, str]:
    """The key that the ranking is sorted by: final score first, ties by chunk id."""
    return (-ranked.final, ranked.passage.chunk_id)


@lru_cache(maxsize=1024)
def _folded(text: str) -> list[str]:
    # Cached, because vocabulary and duplicates look at the same texts.
    return text.casefold().split()


def _spaced(text: str) -> str:
    return " ".join(_folded(text))


@lru_cache(maxsize=4096)
def _spaced_phrase(phrase: str) -> str:
    return _spaced(phrase)


def _said(phrases: tuple[str, ...], spaced: str) -> list[str]:
    # Most are not there at all, which is told sooner than where a word begins.
    pairs = zip(phrases, _spaced_phrases(phrases), strict=True)
    return [phrase for phrase, wanted in pairs if wanted in spaced and _contains(spaced, phrase)]


@lru_cache(maxsize=64)
def _spaced_phrases(phrases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_spaced_phrase, phrases))


def _contains(spaced: str, phrase: str) -> bool:
    # From the beginning of a word on: "threat model" is in "threat models", "api" not in "rapid".
    wanted = _spaced_phrase(phrase)
    start = spaced.find(wanted) if wanted else -1
    while start > 0 and spaced[start - 1].isalnum():
        start = spaced.find(wanted, start + 1)
    return start >= 0


def _marked_duplicates(ordered: Sequence[Ranked]) -> list[Ranked]:
    first_with: dict[str, str] = {}
    kept_shingles: list[tuple[str, frozenset[tuple[str, ...]]]] = []
    marked: list[Ranked] = []
    for ranked in ordered:
        if ranked.superseded:
            # Its newer version may say the same in the same words, and must not leave with it.
            marked.append(ranked)
            continue
        passage = ranked.passage
        original = first_with.get(passage.content_hash)
        # The window counts different texts, so that copies of the best cannot fill it.
        if original is None and len(kept_shingles) < NEAR_DUPLICATE_WINDOW:
            shingles = _shingles(passage.content)
            some = _some(shingles)
            original = next(
                (
                    chunk_id
                    for chunk_id, kept in kept_shingles
                    if not kept.isdisjoint(some) and _is_near(shingles, kept)
                ),
                None,
            )
            if original is None:
                kept_shingles.append((passage.chunk_id, shingles))
        first_with.setdefault(passage.content_hash, original or passage.chunk_id)
        marked.append(ranked if original is None else replace(ranked, duplicate_of=original))
    return marked


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = _folded(text)
    if len(words) < SHINGLE_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _some(shingles: frozenset[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """So many that a near-duplicate has one of them: it lacks a tenth of them at most.

    One more, for what is lost in rounding.
    """
    return list(islice(shingles, int((1 - NEAR_DUPLICATE) * len(shingles)) + 2))


def _is_near(ours: frozenset[tuple[str, ...]], theirs: frozenset[tuple[str, ...]]) -> bool:
    one, other = len(ours), len(theirs)
    # Jaccard cannot exceed the ratio of the sizes, which costs nothing to look at.
    if one < NEAR_DUPLICATE * other or other < NEAR_DUPLICATE * one:
        return False
    shared = len(ours & theirs)
    return shared >= NEAR_DUPLICATE * (one + other - shared)


def _diversified(ordered: Sequence[Ranked], policy: RetrievalPolicy) -> list[Ranked]:
    if not policy.require_source_diversity:
        return list(ordered)
    seen: Counter[str] = Counter()
    penalized: list[Ranked] = []
    for ranked in ordered:
        if ranked.duplicate_of is not None or ranked.superseded:
            penalized.append(ranked)
            continue
        source = ranked.passage.document.source_id
        seen[source] += 1
        excess = max(0, seen[source] - policy.max_chunks_per_source)
        penalty = DIVERSITY_STEP * excess
        penalized.append(replace(ranked, diversity_penalty=penalty, final=ranked.final - penalty))
    return penalized
