"""Which decisions may apply to an intent: by a command, a word, or a likeness in meaning."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from rolebundle.contracts.bundle import Constraint
from rolebundle.contracts.documents import ModelIdentity, Noise
from rolebundle.contracts.memory import (
    CHECK_VERDICTS,
    ActionRule,
    CheckAnswer,
    CheckRequest,
    CheckVerdict,
    DecisionRecord,
)
from rolebundle.contracts.terms import DECISION_EFFECTS, ORIGINS, Action, DecisionEffect, MatchKind
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.errors import EmbedderError
from rolebundle.policy.trust import Labels, risk_of, ruling_of
from rolebundle.resources import data_file
from rolebundle.retrieval.query import words_of
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.semantic import noise_for
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.decisions import decisions
from rolebundle.storage.vector_index import active_index
from rolebundle.text.languages import NEGATIONS, is_unspaced
from rolebundle.text.words import counted, language_of, rarity, stems_of

MAX_CHARACTERS = 10_000
"""What follows in a longer text is not read as a command."""

_BETWEEN = re.compile(r"[\n;&|()]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TABLE = data_file(__file__, "intents.toml")
_WRAPPERS, _WITH_VALUE, _READERS = (
    frozenset(_TABLE[name].split()) for name in ("wrappers", "with_value", "readers")
)


def command_lines(text: str) -> list[list[str]]:
    """The words of each command of a command line, from the program's name on.

    Without its folder, and what stands before it: assignments, ``sudo`` and its like.
    """
    commands = []
    for part in _BETWEEN.split(text[:MAX_CHARACTERS].replace("\\\n", " ")):
        try:
            words = shlex.split(part)
        except ValueError:  # An open quote.
            words = part.split()
        commands.append(_from_program(words))
    return [command for command in commands if command]


def matching_pattern(patterns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The first pattern that matches a command, with or without its options; else empty."""
    bare = [[word for word in words if not word.startswith("-")] for words in lines]
    written = {" ".join(words) for words in (*lines, *bare)}
    for pattern in patterns:
        glob = " ".join(_from_program(pattern.split()))
        if any(fnmatchcase(line, glob) for line in written):
            return pattern
    return ""


def _from_program(words: list[str]) -> list[str]:
    is_wrapped = False
    while words and (
        _ASSIGNMENT.match(words[0])
        or words[0] in _WRAPPERS
        or (is_wrapped and words[0].startswith("-"))
    ):
        is_wrapped |= words[0] in _WRAPPERS
        words = words[2 if is_wrapped and words[0] in _WITH_VALUE else 1 :]
    if words and "*" not in words[0]:
        words = [words[0].rstrip("/").rpartition("/")[2], *words[1:]]
    return words


MAX_CLAUSES = 16
_CODE = re.compile(r"`([^`\n]+)`")
_CLAUSE_END = re.compile(r"(?<=[.;:!?,])\s+|\n+")
_PART_END = re.compile(r"(?<=[.;:!?,])\s+|\s(?:and|then|but)\s|\n+")
_READS = re.compile("|".join(_TABLE["reads"]), re.IGNORECASE)
_GOES_ON = re.compile(rf"(?:and\s)?(?:{'|'.join(_TABLE['goes_on'])})\b", re.IGNORECASE)


class Intent(NamedTuple):
    """What somebody is about to do.

    Attributes:
        wordings: it in words, and its other wordings.
        lines: its shell commands, as words.
        command: the command line that was given as such.
        only_reads: whether it changes nothing.
        action: the action that was named, if one was.
    """

    wordings: tuple[str, ...]
    lines: list[list[str]]
    command: str = ""
    only_reads: bool = False
    action: Action | None = None

    @classmethod
    def of(cls, wordings: Sequence[str], command: str = "", action: Action | None = None) -> Intent:
        """The intent of a request. A command or an action says more than the first wording."""
        wordings = tuple(filter(None, wordings))
        # Words may be a command, or have one in backquotes.
        written = [command, *wordings, *_CODE.findall("\n".join(wordings))]
        lines = [line for part in written for line in command_lines(part)]
        if command:
            reads = ">" not in command and all(
                words[0] in _READERS for words in command_lines(command)
            )
        elif action is not None:
            reads = action in ("read", "analyze")
        else:
            reads = only_reads(wordings[0])
        return cls(wordings, lines, command, reads, action)

    def clauses(self) -> list[str]:
        """The wordings, and their clauses: a clause may be about what the whole is not."""
        parts = (part for words in self.wordings for part in _CLAUSE_END.split(words))
        return list(dict.fromkeys((*self.wordings, *filter(str.strip, parts))))[:MAX_CLAUSES]


def only_reads(text: str) -> bool:
    """Whether every part of a text only reads."""
    first, *others = _PART_END.split(text.strip())
    return _READS.match(first) is not None and all(
        _READS.match(part) or _GOES_ON.match(part) for part in others
    )


IS_LIKE, IS_NEAR = 2 / 3, 0.5
"""An intent is like a decision with this share of its words, or from this closeness in meaning on;
it is near it, which is only said, from the second closeness on."""
MIN_WORDS = 2
"""One word in common is no likeness, even if the decision has no other."""


_last_embedded: dict[tuple[ModelIdentity, tuple[str, ...]], Any] = {}
"""The next request has the same decisions."""


Match = tuple[MatchKind, float, list[str]]
"""How an intent matches a decision: by what, how surely, in [0, 1], and by which words."""


def verdict_of(
    match: MatchKind, effect: DecisionEffect, *, only_reads: bool
) -> DecisionEffect | None:
    """What follows from a match of a decision with this effect; ``None`` if it is only quoted.

    A command pattern has the whole effect, a word of ``about`` requires an approval at most, and a
    likeness only warns.
    """
    if match == "command":
        return effect
    if only_reads or match == "near":
        return None
    most: DecisionEffect = "require_approval" if match == "about" else "warn"
    return min(effect, most, key=DECISION_EFFECTS.index)


def match_of(decision: DecisionRecord, intent: Intent, closeness: float) -> Match | None:
    """How an intent matches a decision, if it does.

    Args:
        decision: the decision.
        intent: what is about to be done.
        closeness: of their meanings, see :func:`closeness_of`.
    """
    if pattern := matching_pattern(decision.commands, intent.lines):
        return "command", 1.0, [pattern]
    # A decision that names its commands is about no others.
    texts = [*intent.wordings, *([] if decision.commands else [intent.command])]
    if found := [entry for entry in decision.about if any(_has(text, entry) for text in texts)]:
        return "about", 1.0, found
    share, words = max(_shared(decision.text, text) for text in texts or [""])
    if share >= IS_LIKE and len(words) >= MIN_WORDS:
        return "likeness", round(share, 6), words
    if closeness >= IS_NEAR:
        return "likeness" if closeness >= IS_LIKE else "near", round(closeness, 6), words
    return None


def closeness_of(
    records: Sequence[DecisionRecord], intent: Intent, provider: EmbeddingProvider, noise: Noise
) -> list[float]:
    """The closeness in meaning of each decision, in [0, 1].

    Raises:
        EmbedderError: the model cannot be used.
    """
    texts = [(record.text, *record.about) for record in records]
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
    language = language_of(text)
    words, wanted = (f" {' '.join(stems_of(part, language).all)} " for part in (text, entry))
    return bool(wanted.strip()) and wanted in words


def _shared(decision: str, text: str) -> tuple[float, list[str]]:
    """The share of a decision's words that a text has, by weight, and these words."""
    language = language_of(decision)
    present = set(stems_of(text, language).content)
    stems = {word: stems_of(word, language).content for word in words_of(decision)}
    words = [word for word, own in stems.items() if own and word not in NEGATIONS]
    found = [word for word in words if present.issuperset(stems[word])]
    total = math.fsum(map(rarity, words))
    return (math.fsum(map(rarity, found)) / total if total else 0.0), found


ADVISORY = "advice: rolebundle does not see what is done, and blocks nothing by itself"
_SAME = {"id", "text", "effect", "action", "decided_by", "valid_until"}
MAX_CONSTRAINTS = 10
"""How many decisions an answer quotes; the strictest and strongest come first."""
_STEPS = {
    "none_found": "no declared decision may apply; other documents were not searched",
    "warn": "read this before you go on",
    "require_approval": "ask a person before you do this",
    "block": "do not do this; ask a person if you think it must be done",
}


def check_intent(
    corpus: Corpus,
    request: CheckRequest,
    resolved: ResolvedRequest,
    provider: EmbeddingProvider | None,
) -> CheckAnswer:
    """The active decisions that may apply to an intent, and what the policy says of its action.

    Args:
        corpus: as the agent sees it, inside ``reading()``.
        request: the intent.
        resolved: a request to read, with the role, the time, and what the agent may see.
        provider: embeds intent and decisions; ``None`` to compare words only.
    """
    wordings = (request.intent or "", *request.also)
    intent = Intent.of(wordings, request.command or "", request.action)
    quoted, degraded = _found(corpus, intent, resolved, provider)
    action, policies = request.action, []
    if action:
        rulings = {origin: ruling_of(Labels(origin), action) for origin in ORIGINS}
        policies = [ActionRule(action=action, risk=risk_of(action), rulings=rulings)]
    verdicts: list[CheckVerdict] = [decision.verdict for decision in quoted if decision.verdict]
    verdict = max(["none_found", *verdicts], key=CHECK_VERDICTS.index)
    return CheckAnswer(
        verdict=verdict,
        message=_message(verdict, quoted),
        decisions=quoted,
        policies=policies,
        degraded=degraded or None,
        advisory=ADVISORY,
        checked_at=resolved.valid_at,
    )


def constraints_on(
    corpus: Corpus, resolved: ResolvedRequest, provider: EmbeddingProvider | None
) -> list[Constraint]:
    """The active decisions about the task of a request, the strictest first."""
    action = resolved.purpose.action if resolved.echo.action else None
    intent = Intent.of((resolved.task, *resolved.also), action=action)
    found, _ = _found(corpus, intent, resolved, provider)
    return [constraint for constraint in found if constraint.match != "near"]


def _found(
    corpus: Corpus, intent: Intent, resolved: ResolvedRequest, provider: EmbeddingProvider | None
) -> tuple[list[Constraint], str]:
    """The decisions of an answer, and why meanings were not compared."""
    action = intent.action
    records = [
        record
        for record in decisions(corpus, resolved.valid_at, resolved.view.decision_scopes)
        if record.state == "active" and (action is None or record.action in (None, action))
    ]
    closeness, degraded = [0.0] * len(records), ""
    try:
        if provider is not None and records and intent.wordings:
            noise = noise_for(active_index(corpus), provider)
            closeness = closeness_of(records, intent, provider, noise)
    except EmbedderError as error:
        degraded = error.message
    quoted = []
    for record, close in zip(records, closeness, strict=True):
        if found := match_of(record, intent, close):
            kind, strength, words = found
            # A decision about reading applies to what only reads.
            reads = intent.only_reads and (action is None or record.action != action)
            constraint = Constraint(
                **record.model_dump(include=_SAME),
                reason=record.reason or None,
                decided_at=record.recorded_at,
                verdict=verdict_of(kind, record.effect, only_reads=reads),
                match=kind,
                strength=strength,
                words=words,
            )
            quoted.append(constraint)
    verdicts = (None, *DECISION_EFFECTS)
    quoted.sort(key=lambda c: (-verdicts.index(c.verdict), -c.strength, c.id))
    return quoted[:MAX_CONSTRAINTS], degraded


# -- the answer ------------------------------------------------------------------------------------


def _message(verdict: CheckVerdict, quoted: Sequence[Constraint]) -> str:
    parts = [_STEPS[verdict]]
    applying = [decision for decision in quoted if decision.verdict]
    if applying:
        texts = "; ".join(
            f"{decision.id}: {decision.text}{f' ({decision.reason})' if decision.reason else ''}"
            for decision in applying
        )
        parts.append(f"{counted(len(applying), 'decision')} may apply: {texts}")
    if others := [decision.id for decision in quoted if not decision.verdict]:
        parts.append(f"about the same thing, for information: {', '.join(others)}")
    return "; ".join(parts)
