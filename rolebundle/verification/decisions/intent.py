"""What an intent says, and whether it only reads. Pure.

Whoever explains what the spam filter does does not switch it off. A text only reads if every clause
of it begins with a verb that only reads, or is a question. The verbs are a closed list of English;
everything else counts as doing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rolebundle.contracts.terms import Action
from rolebundle.verification.decisions.commands import command_lines, only_read

MAX_CLAUSES = 16
_CODE = re.compile(r"`([^`\n]+)`")
_CLAUSE_END = re.compile(r"(?<=[.;:!?,])\s+|\n+")
_SENTENCE_END = re.compile(r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<=[.;!?])\s+|\n+")
_CONNECTIVE = re.compile(r",?\s(?:and|then|but)(?:\sthen)?\s|[,:]\s|\s[-–—]\s")
_POLITE = (
    "please|now|first|just|i|we|you|me|us|will|would|can|could|want|like|to|going|am|are|let|"
    "i['’](?:ll|d|m)|we['’](?:ll|d)"
)
_ASKED = "how|what|which|when|where|why|who|whose|whether|if"
_READS = re.compile(
    rf"(?:(?:{_POLITE})\s+)*(?:"
    r"(?:explain|describe|summari[sz]e|outline|draft|list|show|display|count|compare|calculate|"
    r"estimate|look|search|read|review|inspect|view|analy[sz]e|know|learn|understand)\b|"
    # "Ask whether it is on", and not "ask Jonas to switch it off".
    rf"(?:ask|tell|check|find|report)\b(?:(?!\bto\b).)*?\b(?:{_ASKED})\b|"
    r"(?:make|write|give|prepare|create)\s(?:(?:me|us)\s)?(?:a|an|the)\s(?:\w+\s)?"
    r"(?:list|overview|summary|description|explanation|comparison)\b)",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    rf"(?:{_ASKED}|is|are|was|were|does|did|has)\b(?:(?!\b(?:i|we)\b).)*\?$", re.IGNORECASE
)
_GOES_ON = re.compile(
    rf"(?:{_ASKED}|the|a|an|their|its|his|her|my|our|your|this|that|these|those|to|in|on|of|for|by|"
    r"with|from|at|about)\b",
    re.IGNORECASE,
)


class Intent(NamedTuple):
    """What somebody is about to do.

    Attributes:
        wordings: it in words, and its other wordings.
        lines: its shell commands, as words.
        command: the command line that was given as such.
        only_reads: whether it changes nothing.
    """

    wordings: tuple[str, ...]
    lines: list[list[str]]
    command: str = ""
    only_reads: bool = False

    @classmethod
    def of(cls, wordings: Sequence[str], command: str = "", action: Action | None = None) -> Intent:
        """The intent of a request. A command or an action says more than the first wording."""
        wordings = tuple(filter(None, wordings))
        # Words may be a command, or have one in backquotes.
        written = [command, *wordings, *_CODE.findall("\n".join(wordings))]
        lines = [line for part in written for line in command_lines(part)]
        if command:
            reads = only_read(command_lines(command))
        elif action is not None:
            reads = action in ("read", "analyze")
        else:
            reads = only_reads(wordings[0])
        return cls(wordings, lines, command, reads)

    def clauses(self) -> list[str]:
        """The wordings, and their clauses: a clause may be about what the whole is not."""
        parts = (part for words in self.wordings for part in _CLAUSE_END.split(words))
        return list(dict.fromkeys((*self.wordings, *filter(str.strip, parts))))[:MAX_CLAUSES]


def only_reads(text: str) -> bool:
    """Whether every clause of a text only reads."""
    return bool(text.strip()) and all(map(_sentence_reads, _SENTENCE_END.split(text.strip())))


def _sentence_reads(sentence: str) -> bool:
    first, *others = _CONNECTIVE.split(sentence)
    return bool(_READS.match(first) or _QUESTION.match(sentence)) and all(
        _GOES_ON.match(part) or _READS.match(part) for part in others
    )
