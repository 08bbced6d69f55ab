"""Which passages are about a role's field, or about some questions.

A passage's score is the sum of the inverse frequencies of the wanted words that it has, damped for
repetition as in BM25 (Robertson and Zaragoza, 2009), where a word in a heading counts twice, in the
title or the name of the file three times, and in the name of a folder four times. The terms of the
best passages are then taken for the subject's: pseudo-relevance feedback.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from rolebundle.authoring.survey import Passages
from rolebundle.authoring.terms import content_stems
from rolebundle.embedding.provider import EmbeddingProvider

HEADING, TITLE, FOLDER = 2.0, 3.0, 4.0
SATURATION = 1.2
LEAST_SHARE = 0.2
"""A passage with a smaller share of the best score is not about the subject."""
FOREGROUND_SHARE = 0.04
MIN_FOREGROUND, MAX_FOREGROUND = 8, 60
"""How many passages are the subject's: this share of all, between these bounds."""

MAX_COMPARED_WORDS = 5_000
CLOSE_WORDS = 0.4
"""Words with at least this cosine are of one field."""
MAX_CLOSE_WORDS = 20

_MAX_COMMON = 0.5


class Wanted(NamedTuple):
    """What is looked for.

    Attributes:
        words: stems or phrases of stems → weight.
        types: document type → the share of a passage's score that is added for it.
    """

    words: Mapping[tuple[str, ...], float]
    types: Mapping[str, float]


def wanted_words(texts: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    """Words and phrases as stems, with their weights. What has no content word is left out."""
    words: dict[tuple[str, ...], float] = {}
    for text, weight in texts.items():
        stems = tuple(content_stems(text))
        if stems:
            words[stems] = max(weight, words.get(stems, 0.0))
    return words


def words_close_to(
    words: Sequence[str], passages: Passages, provider: EmbeddingProvider
) -> dict[str, float]:
    """The words of the passages whose meaning is close to some words → cosine.

    Args:
        words: such as those of a role's name.
        passages: their frequent words are compared.
        provider: embeds single words.

    Raises:
        EmbedderError: the model cannot be used.
    """
    counts: Counter[str] = Counter()
    for passage in passages.words:
        counts.update({word.lower() for run in passage.runs for word in run})
    frequent = [word for word, count in counts.most_common(MAX_COMPARED_WORDS) if count > 1]
    if not frequent or not words:
        return {}
    import numpy as np

    matrix = provider.embed_passages([*words, *frequent])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    vectors = matrix / np.where(lengths > 0, lengths, 1)
    cosines = (vectors[len(words) :] @ vectors[: len(words)].T).max(axis=1)
    found = [
        (round(float(cosine), 3), word)
        for word, cosine in zip(frequent, cosines, strict=True)
        if cosine >= CLOSE_WORDS
    ]
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    return {word: cosine for cosine, word in found[:MAX_CLOSE_WORDS]}


def scores(passages: Passages, wanted: Wanted, types: Sequence[str]) -> list[float]:
    """How much each passage is about what is wanted; at least 0.

    Args:
        passages: the passages.
        wanted: what is looked for.
        types: the document type of each passage.
    """
    counts = [_counts(words.stems, wanted.words) for words in passages.words]

    @cache
    def counts_in(text: str) -> Counter[tuple[str, ...]]:
        """The counts of headings and titles, which many passages share."""
        return _counts([content_stems(text)], wanted.words)

    headings = [counts_in("\n".join(own)) for own in passages.headings]
    folders, titles = [], []
    for document in passages.documents:
        folder, _, name = document.path.rpartition("/")
        stem = name.rsplit(".", 1)[0]
        folders.append(counts_in(words_of_name(folder)))
        titles.append(counts_in(f"{document.metadata.title}\n{words_of_name(stem)}"))
    total = len(counts)
    frequencies: Counter[tuple[str, ...]] = Counter()
    for found_in in zip(counts, headings, titles, strict=True):
        frequencies.update(set().union(*found_in))
    found = []
    for position in range(total):
        score = 0.0
        own = (counts, headings, titles, folders)
        for word in {word for words_by_passage in own for word in words_by_passage[position]}:
            # That a folder is named so does not make the word common.
            frequency = max(1, frequencies[word])
            if frequency > _MAX_COMMON * total and total > MIN_FOREGROUND:
                continue
            times = (
                counts[position][word]
                + HEADING * min(1, headings[position][word])
                + TITLE * min(1, titles[position][word])
                + FOLDER * min(1, folders[position][word])
            )
            rarity = math.log1p(total / frequency)
            score += wanted.words[word] * rarity * times * (1 + SATURATION) / (times + SATURATION)
        found.append(score)
    return [
        score * (1 + wanted.types.get(kind, 0.0)) for score, kind in zip(found, types, strict=True)
    ]


def foreground(passages: Passages, scored: Sequence[float]) -> list[int]:
    """The positions of the passages that are about the subject, in order.

    One document has at most a third of them, so that its habits are not taken for the subject's.
    """
    best = max(scored, default=0.0)
    if best <= 0:
        return []
    number = round(FOREGROUND_SHARE * len(scored))
    number = min(MAX_FOREGROUND, max(MIN_FOREGROUND, number))
    chosen: list[int] = []
    own: Counter[str] = Counter()
    for position in sorted(range(len(scored)), key=lambda position: (-scored[position], position)):
        document = passages.words[position].document
        if len(chosen) == number or scored[position] < LEAST_SHARE * best:
            break
        if own[document] < max(2, number // 3):
            own[document] += 1
            chosen.append(position)
    return sorted(chosen)


def _counts(
    runs: Sequence[Sequence[str]], wanted: Mapping[tuple[str, ...], float]
) -> Counter[tuple[str, ...]]:
    lengths = sorted({len(word) for word in wanted})
    return Counter(
        key
        for run in runs
        for length in lengths
        for start in range(len(run) - length + 1)
        for key in [tuple(run[start : start + length])]
        if key in wanted
    )


def words_of_name(name: str) -> str:
    """The words of a file's or folder's name."""
    return "".join(letter if letter.isalnum() else " " for letter in name)


def by_document(passages: Passages, scored: Sequence[float]) -> dict[str, float]:
    """Document id → the mean of its two best passages' scores, in the order of the documents."""
    own: defaultdict[str, list[float]] = defaultdict(list)
    for words, score in zip(passages.words, scored, strict=True):
        own[words.document].append(score)
    return {
        document: sum(sorted(values, reverse=True)[:2]) / 2 if len(values) > 1 else values[0]
        for document, values in own.items()
    }
