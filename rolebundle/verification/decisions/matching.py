"""How an intent matches what was decided.

A decision is matched by a command pattern, by an entry of its ``about``, by two thirds of its own
words (weighted by how rare they are in English), or by a closeness in meaning of two thirds, of a
clause of the intent and the decision or an entry of its ``about``. The figures are in
docs/decisions-and-marks.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.document import Passage
from rolebundle.contracts.index import ModelIdentity, Noise
from rolebundle.contracts.terms import DECISION_EFFECTS, DecisionEffect, MatchKind
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.retrieval.query import words_of
from rolebundle.text.common_words import rarity
from rolebundle.text.languages import is_unspaced
from rolebundle.text.stop_words import NEGATIONS
from rolebundle.text.words import language_of, stems_of
from rolebundle.verification.decisions.commands import matching_pattern
from rolebundle.verification.decisions.intent import Intent

IS_LIKE, IS_NEAR = 2 / 3, 0.5
"""An intent is like a decision with this share of its words, or from this closeness in meaning on;
it is near it, which is only said, from the second closeness on."""
MIN_WORDS = 2
"""One word in common is no likeness, even if the decision has no other."""


_last_embedded: dict[tuple[ModelIdentity, tuple[str, ...]], Any] = {}
"""The next request has the same decisions."""


class Rule(NamedTuple):
    """A decision, from the registry or a document, and what it is matched by."""

    constraint: Constraint
    about: Sequence[str] = ()
    commands: Sequence[str] = ()
    passage: Passage | None = None


class Match(NamedTuple):
    """How an intent matches a decision: how surely, in [0, 1], and by which words."""

    match: MatchKind
    strength: float
    words: list[str]

    def verdict(self, effect: DecisionEffect, *, only_reads: bool) -> DecisionEffect | None:
        """What follows from a decision with this effect; ``None`` if it is only quoted.

        A command pattern has the whole effect, a word of ``about`` requires an approval at most,
        and a likeness only warns.
        """
        if self.match == "command":
            return effect
        if only_reads or self.match == "near":
            return None
        most: DecisionEffect = "require_approval" if self.match == "about" else "warn"
        return min(effect, most, key=DECISION_EFFECTS.index)


def match(rule: Rule, intent: Intent, closeness: float) -> Match | None:
    """How an intent matches a decision, if it does.

    Args:
        rule: the decision.
        intent: what is about to be done.
        closeness: of their meanings, see :func:`closeness_of`.
    """
    if pattern := matching_pattern(rule.commands, intent.lines):
        return Match("command", 1.0, [pattern])
    # A decision that names its commands is about no others.
    texts = [*intent.wordings, *([] if rule.commands else [intent.command])]
    if found := [entry for entry in rule.about if any(_has(text, entry) for text in texts)]:
        return Match("about", 1.0, found)
    share, words = max(_shared(rule.constraint.text, text) for text in texts or [""])
    if share >= IS_LIKE and len(words) >= MIN_WORDS:
        return Match("likeness", round(share, 6), words)
    if closeness >= IS_NEAR:
        kind: MatchKind = "likeness" if closeness >= IS_LIKE else "near"
        return Match(kind, round(closeness, 6), words)
    return None


def closeness_of(
    rules: Sequence[Rule], intent: Intent, provider: EmbeddingProvider, noise: Noise
) -> list[float]:
    """The closeness in meaning of each decision, in [0, 1].

    Raises:
        EmbedderError: the model cannot be used.
    """
    texts = [(rule.constraint.text, *rule.about) for rule in rules]
    clauses = intent.clauses()
    queries = unit_vectors(
        provider.embed_queries(clauses), len(clauses), provider.identity.dimensions
    )
    best = iter((_embedded(provider, sum(texts, ())) @ queries.T).max(axis=1).tolist())
    return [noise.closeness(max(next(best) for _ in own)) for own in texts]


def _embedded(provider: EmbeddingProvider, texts: tuple[str, ...]) -> Any:
    key = provider.identity, texts
    vectors = _last_embedded.get(key)
    if vectors is None:
        vectors = unit_vectors(provider.embed_passages(texts), len(texts), key[0].dimensions)
        _last_embedded.clear()
        _last_embedded[key] = vectors
    return vectors


def _has(text: str, entry: str) -> bool:
    """Whether a text has the words of an entry of ``about`` side by side, in any of their forms."""
    if is_unspaced(entry):
        return entry.casefold() in text.casefold()
    language = language_of(text, "en")
    words, wanted = (f" {' '.join(stems_of(part, language).all)} " for part in (text, entry))
    return bool(wanted.strip()) and wanted in words


def _shared(decision: str, text: str) -> tuple[float, list[str]]:
    """The share of a decision's words that a text has, by weight, and these words."""
    language = language_of(decision, "en")
    present = set(stems_of(text, language).content)
    stems = {word: stems_of(word, language).content for word in words_of(decision)}
    words = [word for word, own in stems.items() if own and word not in NEGATIONS]
    found = [word for word in words if present.issuperset(stems[word])]
    total = math.fsum(map(rarity, words))
    return (math.fsum(map(rarity, found)) / total if total else 0.0), found
