"""Whether an intent is about what was decided: words, and closeness in meaning. Pure.

A decision is compared by its *topic*: its words without stop words, without what makes it a rule
(*never*, *stop*, *needs approval*), and without the conditions under which it does not apply
(*until …*, *without …*, *above 20%*). A word of the topic is found in the intent by its stem, or
with part of the credit by a stem that begins alike or by a word that is often used for it. Words
that say little about any intent (*use*, *new*, *change*) weigh half.

    strength = matched / (matched + missing / 2)

for the weights of what is matched and missing. A word of ``about`` that is in the intent is found,
too, in place of as much that is missing. If the intent has only one word of the topic, the strength
is multiplied with 0.7, unless both name the same action: one word in common is often an accident.

docs/decisions-and-marks.md has the figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rolebundle.text.forms import forms, spaced
from rolebundle.text.languages import is_unspaced, likely_languages
from rolebundle.text.stop_words import ENGLISH, NEGATIONS, STOP_WORDS

MATCH_STRENGTH = 0.5
"""From this strength on an intent is about a decision."""
SUPPORTED_STRENGTH, CLOSE_MEAN = 0.25, 0.6
"""So is one with less in words, if the mean of strength and closeness is at least the second."""
PART_CREDIT = 0.6
"""The credit of a word that begins alike, or that is often used for the other one."""
LIGHT_WEIGHT = 0.5
ONE_WORD_FACTOR = 0.7
LEAST_RARITY = 0.5
"""The rarity of a word that every chunk has; that of a word of one chunk is 1."""
WINDOW_WORDS = 40
"""A longer intent is compared part by part, since a long text has a word of everything."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CONTRACTION = re.compile(r"n['’]t\b", re.IGNORECASE)
_END_OF_CLAUSE = r"(?=\s+(?:before|after|when|if|until)\b|[.;,]|$)"
_CONDITIONS = re.compile(
    r"\b(?:without|until|unless|pending|except|because|since|while|whatever|whoever|although|"
    r"so that|as long as|due to|in order to|even if)\b[^.;,]*"
    rf"|\b(?:only )?by [^.;,]*?{_END_OF_CLAUSE}"
    rf"|\b(?:approval|consent|permission|sign-?off) (?:of|from) [^.;,]*?{_END_OF_CLAUSE}",
    re.IGNORECASE,
)
_BOUNDS = re.compile(
    r"\b(?:under|above|below|over|at least|at most|more than|less than|up to|within) "
    r"[\d.,]+ ?%?\s*\w*"
    r"|\b\d[\d.,:]*\s*(?:%|percent\b|[ap]m\b)?",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\b(?:before|after)\b[^.;,]*", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|no|never|stop|avoid|cannot)\b|n['’]t\b", re.IGNORECASE)
_PROHIBITION = re.compile(
    r"\b(?:do not|don['’]t|never|(?:must|may|shall|should|can) ?not|(?:must|should|can|shan)n?['’]t"
    r"|is forbidden|are forbidden|is prohibited|are prohibited|not allowed|no longer)\b"
    r"|(?:^|[.;:]\s+|\bwe (?:will |must )?)(?:no|stop|avoid)\s",
    re.IGNORECASE,
)
_MIN_PREFIX, _MAX_PREFIX = 5, 40

_RULE_WORDS = frozenset(
    "stop avoid forbid forbidden prohibit prohibited ban banned freeze frozen block blocked halt "
    "pause need needs require requires required approval approve approved allow allowed review "
    "reviewed decide decided decision agree agreed".split()
)
_LIGHT_WORDS = frozenset(
    "add allow any anything ask automatic automatically begin build change check close come create "
    "data directly every everything file find first get give go hand help immediately job keep "
    "last let list look make manually move need new next nothing old open order outside part "
    "people place plan prepare publicly put read record run see send serve set show start store "
    "take team tell thing time try update use want way within work write year month week "
    "day".split()
)
_SYNONYMS = (
    "send mail email post publish publication share tweet announce submit forward upload disclose "
    "message",
    "delete deletion remove erase purge wipe drop clear destroy discard",
    "buy order purchase procure acquire",
    "hire recruit employ",
    "change edit modify update alter adjust",
    "deploy release ship rollout launch",
    "postpone reschedule move delay shift",
    "customer client",
    "employee staff worker colleague",
    "pay payment spend transfer",
    "price cost fee rate",
    "contract agreement",
    "store save keep retain",
    "stop cancel end terminate",
)
_IRREGULAR = {
    "sent": "send",
    "bought": "buy",
    "paid": "pay",
    "sold": "sell",
    "kept": "keep",
    "held": "hold",
    "given": "give",
    "gave": "give",
    "written": "write",
    "wrote": "write",
    "spent": "spend",
    "built": "build",
    "told": "tell",
    "taken": "take",
    "took": "take",
    "shown": "show",
    "chosen": "choose",
    "made": "make",
    "children": "child",
}

Rarity = Callable[[str], float]
"""How rare a word is in the visible corpus and the decisions, from ``LEAST_RARITY`` to 1."""


class Token(NamedTuple):
    """A word as it is written, in lower case, and the stems that it may have."""

    word: str
    stems: frozenset[str]


class Topic(NamedTuple):
    """What a decision is about.

    Attributes:
        words: of its text. Words that mean the same are one entry.
        about: its further words and phrases.
        languages: what it may be written in; empty for English.
    """

    words: tuple[tuple[Token, ...], ...]
    about: tuple[tuple[Token, ...], ...]
    languages: frozenset[str]


class Part(NamedTuple):
    """A part of an intent.

    Attributes:
        stems: of its words.
        beginnings: of stems, from ``_MIN_PREFIX`` letters on.
        trimmed: stems without their last letter.
        meanings: of its words that are often used for others.
    """

    stems: frozenset[str]
    beginnings: frozenset[str]
    trimmed: frozenset[str]
    meanings: frozenset[str]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Part:
        """A part with these words."""
        stems = frozenset(stem for token in tokens for stem in token.stems)
        compared = [stem for stem in stems if _MIN_PREFIX <= len(stem) <= _MAX_PREFIX]
        meanings = frozenset(meaning for token in tokens if (meaning := _meaning(token)))
        return cls(
            stems,
            frozenset(beginning for stem in compared for beginning in _beginnings(stem)),
            frozenset(map(_trimmed, compared)),
            meanings,
        )


class Match(NamedTuple):
    """How much of a topic is in an intent: the strength, in [0, 1], and the words of the topic."""

    strength: float = 0.0
    words: tuple[str, ...] = ()


NO_MATCH = Match()


def is_prohibition(text: str) -> bool:
    """Whether a decision forbids something; in English."""
    return _PROHIBITION.search(text) is not None


def topic_of(text: str, about: Iterable[str] = ()) -> Topic:
    """The topic of a decision with this text and these further words."""
    bare = _BOUNDS.sub(" ", _CONDITIONS.sub(" ", text))
    if _DENIAL.search(bare):
        # What is forbidden before something else is not about the something else.
        bare = _WHEN.sub(" ", bare)
    words = [
        token for token in _distinct_tokens(bare) if token.word not in _RULE_WORDS
    ] or _distinct_tokens(text)
    by_meaning: dict[object, list[Token]] = {}
    for token in words:
        by_meaning.setdefault(_meaning(token) or token.stems, []).append(token)
    return Topic(
        tuple(tuple(words) for words in by_meaning.values()),
        tuple(phrase for phrase in (tuple(_distinct_tokens(words)) for words in about) if phrase),
        languages_of(text),
    )


def languages_of(text: str) -> frozenset[str]:
    """What a short text may be written in; empty for English and if nothing says so."""
    return frozenset((*likely_languages(text), *(["unspaced"] if is_unspaced(text) else [])))


def is_comparable(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether two texts may be in one language."""
    return first == second or bool(first & second)


def windows(intent: str) -> list[Part]:
    """The words of an intent, in overlapping parts of at most ``WINDOW_WORDS``."""
    words = tokens(intent)
    step = WINDOW_WORDS // 2
    starts = range(0, max(1, len(words) - step), step)
    return [Part.of(words[start : start + WINDOW_WORDS]) for start in starts]


def match(
    topic: Topic,
    parts: Sequence[Part],
    rarity: Rarity,
    *,
    has_same_action: bool = False,
) -> Match:
    """How much of a topic the best part of an intent has.

    Args:
        topic: the decision's.
        parts: of the intent.
        rarity: of words.
        has_same_action: whether the decision and the intent name the same action. Then they have
            more than one word in common.
    """
    known = {
        stem for entry in (*topic.words, *topic.about) for token in entry for stem in token.stems
    }
    trimmed = known | set(map(_trimmed, known))
    beginnings = {beginning for stem in known for beginning in _beginnings(stem[:_MAX_PREFIX])}
    relevant = [
        part
        for part in parts
        if not (
            known.isdisjoint(part.stems)
            and trimmed.isdisjoint(part.beginnings)
            and beginnings.isdisjoint(part.trimmed)
        )
    ]
    return max(
        (_match(topic, part, rarity, has_same_action) for part in relevant),
        key=lambda match: match.strength,
        default=NO_MATCH,
    )


def is_about(match: Match, closeness: float | None) -> bool:
    """Whether an intent is about a decision.

    Args:
        match: what they have in common.
        closeness: of their meanings, in [0, 1]; ``None`` if meanings were not compared.
    """
    if match.strength >= MATCH_STRENGTH:
        return True
    return (
        closeness is not None
        and match.strength >= SUPPORTED_STRENGTH
        and (match.strength + closeness) / 2 >= CLOSE_MEAN
    )


def tokens(text: str) -> list[Token]:
    """The words of a text that say something, in order."""
    text = _CONTRACTION.sub(" not", spaced(text))
    languages = likely_languages(text)
    stop_words = ENGLISH | NEGATIONS
    for code in languages:
        stop_words |= STOP_WORDS.get(code, frozenset())
    result: list[Token] = []
    for token in _WORD.findall(text.lower()):
        if is_unspaced(token):
            pieces = forms(token, ())
            result += (
                Token(piece, frozenset((piece,))) for piece in pieces.pairs or pieces.letters
            )
        elif token not in stop_words:
            word = token.replace("’", "'").removesuffix("'s")
            result.append(Token(word, _stems(word, languages)))
    return result


def _distinct_tokens(text: str) -> list[Token]:
    return list(dict.fromkeys(tokens(text)))


def _match(topic: Topic, part: Part, rarity: Rarity, has_same_action: bool) -> Match:
    # A word of `about` that is used for a word of the text is as good as that word.
    as_good = {
        meaning
        for phrase in topic.about
        for token in phrase
        if len(phrase) == 1
        and not part.stems.isdisjoint(token.stems)
        and (meaning := _meaning(token))
    }
    matched = missing = 0.0
    has_exact = False
    hits: list[str] = []
    used: set[str] = set()
    for entry in topic.words:
        weight = max(_weight(token, rarity) for token in entry)
        exact = [token for token in entry if not part.stems.isdisjoint(token.stems)]
        is_exact = bool(exact) or _meaning(entry[0]) in as_good
        credit = 1.0 if is_exact else 0.0
        if not is_exact:
            alike = any(_begins_alike(token, part) for token in entry)
            if alike or _meaning(entry[0]) in part.meanings:
                credit = PART_CREDIT
            has_exact |= alike
        has_exact |= is_exact
        matched += credit * weight
        missing += (1 - credit) * weight
        if credit:
            hits.append((exact or entry)[0].word)
            used |= {stem for token in entry for stem in token.stems}
            used |= {meaning for token in entry if (meaning := _meaning(token))}
    for phrase in topic.about:
        credits = [_credit(token, part) for token in phrase]
        further = [
            credit * _weight(token, rarity)
            for token, credit in zip(phrase, credits, strict=True)
            if used.isdisjoint({*token.stems, _meaning(token)})
        ]
        if all(credits) and further:
            weight = max(further)
            matched, missing = matched + weight, max(0.0, missing - weight)
            has_exact = True
            hits.append(" ".join(token.word for token in phrase))
    if not has_exact:
        return NO_MATCH
    strength = matched / (matched + missing / 2)
    if len(hits) == 1 and not has_same_action:
        strength *= ONE_WORD_FACTOR
    return Match(strength, tuple(hits))


def _weight(token: Token, rarity: Rarity) -> float:
    is_light = not _light_stems().isdisjoint(token.stems)
    return rarity(token.word) * (LIGHT_WEIGHT if is_light else 1.0)


def _credit(token: Token, part: Part) -> float:
    if not part.stems.isdisjoint(token.stems):
        return 1.0
    return PART_CREDIT if _begins_alike(token, part) else 0.0


def _begins_alike(token: Token, part: Part) -> bool:
    """Whether a stem is the beginning of the other one, but for its last letter."""
    return any(
        _trimmed(stem) in part.beginnings or not part.trimmed.isdisjoint(_beginnings(stem))
        for stem in token.stems
        if _MIN_PREFIX <= len(stem) <= _MAX_PREFIX
    )


def _trimmed(stem: str) -> str:
    return stem[: max(_MIN_PREFIX, len(stem) - 1)]


def _beginnings(stem: str) -> list[str]:
    return [stem[:length] for length in range(_MIN_PREFIX, len(stem) + 1)]


def _meaning(token: Token) -> str | None:
    """The first word of the list of words that are often used for each other, or ``None``."""
    return next((_meanings()[stem] for stem in sorted(token.stems) if stem in _meanings()), None)


@lru_cache(maxsize=1)
def _meanings() -> dict[str, str]:
    return {
        stem: f"={line.split()[0]}"
        for line in _SYNONYMS
        for word in line.split()
        for stem in _stems(word, ())
    }


@lru_cache(maxsize=1)
def _light_stems() -> frozenset[str]:
    return frozenset(stem for word in _LIGHT_WORDS for stem in _stems(word, ()))


@lru_cache(maxsize=8192)
def _stems(word: str, languages: tuple[str, ...]) -> frozenset[str]:
    stems = {_english_stemmer()(_IRREGULAR.get(word, word)) if word.isascii() else word}
    if languages:
        stems |= set(forms(word, languages).stems)
    return frozenset(stems)


@lru_cache(maxsize=1)
def _english_stemmer() -> Callable[[str], str]:
    import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem
