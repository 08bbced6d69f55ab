"""What a vague task asks for besides its topic: the latest, a beginning, or what goes wrong.

"Where do I start?" has no word that a good passage has, and a random one has "start". So the words
of such a task tell which kind of passage is meant, and are no topic. English only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from rolebundle.text.stop_words import ENGLISH, GENERAL_WORDS, INTENT_HINTS

Intent = Literal["recency", "orientation", "trouble"]
"""``recency``: the newest. ``orientation``: where a reader begins. ``trouble``: what goes wrong."""

INTENTS: tuple[Intent, ...] = get_args(Intent)
ASKED: Mapping[Intent, str] = MappingProxyType(
    {"recency": "for what is new", "orientation": "where to begin", "trouble": "what goes wrong"}
)
"""What a task with this intent asks, in words."""

_SUBJECT = r"(?:\s+(?:i|we|you|one|people|someone|a\s+\w+))?"
_PATTERNS: dict[Intent, str] = {
    "recency": r"\b(?:lately|recent(?:ly)?|latest|newest|news|these\s+days|up\s+to\s+date)\b"
    r"|\b(?:ha(?:s|ve)\s+|what\s+|that\s+|anything\s+)(?:been\s+)?(?:changed|happened)\b"
    r"|\bnew\b(?!\s+(?:here|to)\b)(?=\s*(?:[?.!,;]|$|in\b|for\b|with\b|since\b))"
    r"|\b(?:since|in|over)\s+(?:the\s+)?last\s+(?:time|days?|weeks?|months?|year|release|version)\b",
    "orientation": rf"\b(?:where|how|what)\s+(?:do|should|can|could|shall|must|would|to){_SUBJECT}"
    r"(?:\s+best)?\s+(?:start|begin)(?:\s+with)?\b"
    r"|\b(?:look\s+at|look|read|see|know|do|learn|try|open|study|understand)\s+first\b"
    r"|\bfirst\s+(?:thing|things|steps?|look)\b|\b(?:get|getting)\s+started\b|\bstarting\s+point\b"
    r"|\bnew\s+here\b|\bnew\s+to\s+(?:this|it)\b|\b(?:beginners?|newcomers?)\b"
    r"|\b(?:overview|introduction|basics|essentials|fundamentals|big\s+picture|building\s+blocks)\b"
    r"|\b(?:most\s+important|main|key|central|core|basic|essential)\s+(?:concepts?|ideas?|terms?"
    r"|parts?|components?|building\s+blocks|points?|things?|topics?|pages?)\b",
    "trouble": r"\b(?:go(?:es|ing|ne)?|went)\s+wrong\b|\bwrong\b|\b(?:fail(?:s|ed|ing|ures?)?"
    r"|broken|breaks?|problems?|trouble|pitfalls?|gotchas?|surpris(?:es?|ed|ing)|careful"
    r"|warn(?:ed|ings?)?|mistakes?|hard|difficult(?:ies|y)?|risk(?:s|y)?|dangers?|dangerous|fragile"
    r"|unexpected|bugs?|errors?|crash(?:es)?|workarounds?|caveats?)\b",
}
_ASKING = """
    look read see know need notice learn try find make user users tell show want come comes goes
"""
_NO_TOPIC = ENGLISH.union(GENERAL_WORDS, _ASKING.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

TROUBLE_STEMS = (
    "warn caution careful beware caveat pitfall mistak error fail problem issue bug wrong crash"
    " break broke unexpect surpris trouble danger risk difficult limitation workaround unsupported"
    " deprecat never avoid unfortunately cannot can't doesn't vulnerab conflict missing slow"
).split()
"""Beginnings of words that a passage about trouble has."""


class TaskIntent(NamedTuple):
    """What a task asks for besides its topic.

    Attributes:
        intents: in the order of ``INTENTS``; empty if it asks for nothing else.
        share: the share of its words that belong to an intent, in [0, 1]. Function words and words
            like "look" or "users" count neither as topic nor as intent.
    """

    intents: tuple[Intent, ...] = ()
    share: float = 0.0

    @property
    def has_topic(self) -> bool:
        """Whether some of the task's words do not belong to an intent."""
        return not self.intents or self.share < 1

    @property
    def asked(self) -> str:
        """What it asks besides its topic, in words."""
        return " and ".join(ASKED[intent] for intent in self.intents)


def task_intent(task: str) -> TaskIntent:
    """What a task asks for besides its topic.

    ``"What changed lately in the parser?"`` asks for the latest with half of its words.
    """
    text = task.lower()
    if INTENT_HINTS.isdisjoint(_WORD.findall(text)):
        return TaskIntent()
    intents: list[Intent] = []
    rest = text
    for intent, pattern in _patterns().items():
        rest, count = pattern.subn(" ", rest)
        if count:
            intents.append(intent)
    if not intents:
        return TaskIntent()
    topic = [word for word in _WORD.findall(rest) if word not in _NO_TOPIC]
    asking = [word for word in _WORD.findall(text) if word not in _NO_TOPIC]
    by_intent = max(1, len(asking) - len(topic))
    return TaskIntent(tuple(intents), by_intent / (by_intent + len(topic)))


def trouble_words(text: str) -> int:
    """How many different words about trouble a text has, of ``TROUBLE_STEMS``."""
    return len(set(_trouble_pattern().findall(text.lower().replace("’", "'"))))


@cache
def _patterns() -> dict[Intent, re.Pattern[str]]:
    return {intent: re.compile(pattern) for intent, pattern in _PATTERNS.items()}


@cache
def _trouble_pattern() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(map(re.escape, TROUBLE_STEMS))})")
