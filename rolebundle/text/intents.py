"""What a vague task asks for besides its topic: the latest, a beginning, what goes wrong, ….

"Where do I start?" has no word that a good passage has, and a random one has "start". So the words
of such a task tell which kind of passage is meant, and are no topic. English only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple, get_args

from rolebundle.text.stop_words import ENGLISH, GENERAL_WORDS, INTENT_HINTS

Intent = Literal["recency", "orientation", "trouble", "decision", "open", "rule", "people"]
"""``recency``: the newest. ``orientation``: where a reader begins. ``trouble``: what goes wrong.
``decision``: what was decided. ``open``: what is left to do. ``rule``: what must be done.
``people``: who does it."""

_SUBJECT = r"(?:\s+(?:i|we|you|one|people|someone|a\s+\w+))?"


class IntentKind(NamedTuple):
    """One intent.

    Attributes:
        description: what a task with it asks, in words.
        pattern: matches the words of a task that ask for it.
        stems: beginnings of words that a passage which fits it has; empty if no word tells.
    """

    description: str
    pattern: str
    stems: str = ""


KINDS: dict[Intent, IntentKind] = {
    "recency": IntentKind(
        "for what is new",
        r"\b(?:lately|recent(?:ly)?|latest|newest|news|these\s+days|up\s+to\s+date)\b"
        r"|\b(?:ha(?:s|ve)\s+|what\s+|that\s+|anything\s+)(?:been\s+)?(?:changed|happened)\b"
        r"|\bnew\b(?!\s+(?:here|to)\b)(?=\s*(?:[?.!,;]|$|in\b|for\b|with\b|since\b))"
        r"|\b(?:since|in|over)\s+(?:the\s+)?last\s+(?:time|days?|weeks?|months?|year|release"
        r"|version)\b",
    ),
    "orientation": IntentKind(
        "where to begin",
        rf"\b(?:where|how|what)\s+(?:do|should|can|could|shall|must|would|to){_SUBJECT}"
        r"(?:\s+best)?\s+(?:start|begin)(?:\s+with)?\b"
        r"|\b(?:look\s+at|look|read|see|know|do|learn|try|open|study|understand)\s+first\b"
        r"|\bfirst\s+(?:thing|things|steps?|look)\b|\b(?:get|getting)\s+started\b"
        r"|\bstarting\s+point\b"
        r"|\bnew\s+here\b|\bnew\s+to\s+(?:this|it)\b|\b(?:beginners?|newcomers?)\b"
        r"|\b(?:overview|introduction|basics|essentials|fundamentals|big\s+picture"
        r"|building\s+blocks)\b"
        r"|\b(?:most\s+important|main|key|central|core|basic|essential)\s+(?:concepts?|ideas?"
        r"|terms?|parts?|components?|building\s+blocks|points?|things?|topics?|pages?)\b",
    ),
    "trouble": IntentKind(
        "what goes wrong",
        r"\b(?:go(?:es|ing|ne)?|went)\s+wrong\b|\bwrong\b|\b(?:fail(?:s|ed|ing|ures?)?"
        r"|broken|breaks?|problems?|trouble|pitfalls?|gotchas?|surpris(?:es?|ed|ing)|careful"
        r"|warn(?:ed|ings?)?|mistakes?|hard|difficult(?:ies|y)?|risk(?:s|y)?|dangers?|dangerous"
        r"|fragile|unexpected|bugs?|errors?|crash(?:es)?|workarounds?|caveats?)\b",
        "warn caution careful beware caveat pitfall mistak error fail problem issue bug wrong"
        " crash break broke unexpect surpris trouble danger risk difficult limitation workaround"
        " unsupported deprecat never avoid unfortunately cannot can't doesn't vulnerab conflict"
        " missing slow",
    ),
    "decision": IntentKind(
        "what was decided",
        r"\b(?:decided|decisions?|approved|agreed|resolved)\b",
        "decid decision approv agree resolv resolution consensus vote voting motion conclu accept"
        " reject chose chosen adopt ratif",
    ),
    "open": IntentKind(
        "what is left to do",
        r"\b(?:still|remain(?:s|ing)?)\s+(?:open|unclear|undecided)\b"
        r"|\bopen\s+(?:questions?|problems?|issues?|points?)\b"
        r"|\b(?:unresolved|unsolved|undecided|unfinished|pending|planned|next\s+steps?)\b",
        "todo tbd pending open unresolved unclear unknown question follow-up next plan need remain"
        " discuss propos future unfinished undecided",
    ),
    "rule": IntentKind(
        "which rules apply",
        r"\b(?:rules?|conventions?|polic(?:y|ies)|standards?|guidelines?|best\s+practices?"
        r"|required|requirements?|mandatory|allowed|forbidden|avoid)\b",
        "must should shall require never always only need ensure avoid allow forbid convention"
        " rule guideline polic mandatory recommend standard don't",
    ),
    "people": IntentKind(
        "whom to ask",
        r"\bwhom?\b[^.?!]{0,20}\b(?:help|ask|contact|responsible|involved|in\s+charge)\b",
        "contact maintain team ask support help email responsib owner chair lead member author"
        " communit forum volunteer thank",
    ),
}
INTENTS: tuple[Intent, ...] = get_args(Intent)

_ASKING = """
    first look read see know need notice learn try find make user users tell show want come comes
    goes
    page pages section sections chapter chapters document documents file files note notes
"""
_NO_TOPIC = ENGLISH.union(GENERAL_WORDS, _ASKING.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


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
    def description(self) -> str:
        """What it asks besides its topic, in words."""
        return " and ".join(KINDS[intent].description for intent in self.intents)


def task_intent(task: str) -> TaskIntent:
    """What a task asks for besides its topic.

    ``"What changed lately in the parser?"`` asks for the latest with half of its words.
    """
    text = task.lower()
    if INTENT_HINTS.isdisjoint(_WORD.findall(text)):
        return TaskIntent()
    intents: list[Intent] = []
    remaining = text
    for intent, pattern in _patterns().items():
        remaining, count = pattern.subn(" ", remaining)
        if count:
            intents.append(intent)
    if not intents:
        return TaskIntent()
    topic = [word for word in _WORD.findall(remaining) if word not in _NO_TOPIC]
    asking = [word for word in _WORD.findall(text) if word not in _NO_TOPIC]
    by_intent = max(1, len(asking) - len(topic))
    return TaskIntent(tuple(intents), by_intent / (by_intent + len(topic)))


def words_of_intent(intent: Intent, text: str) -> int:
    """How many different words a text has that fit an intent, of its ``stems``."""
    return len(set(_stems_pattern(intent).findall(text.lower().replace("’", "'"))))


@cache
def _patterns() -> dict[Intent, re.Pattern[str]]:
    return {intent: re.compile(kind.pattern) for intent, kind in KINDS.items()}


@cache
def _stems_pattern(intent: Intent) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(map(re.escape, KINDS[intent].stems.split()))})")
