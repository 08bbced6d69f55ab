"""Whether the words of a sentence, and its names, stand in the evidence. Pure.

The measure is word overlap: a sentence is *covered* if at least half of its content words stand
in three consecutive sentences of a passage. That does not mean that the passage supports it. A
near copy of a passage's sentence that differs in a negation, a modal, a bound, a quantifier or an
opposite (English) ``differs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rolebundle.contracts.documents import Passage
from rolebundle.text.stop_words import ENGLISH_STOP_WORDS
from rolebundle.text.tokens import tokens_of
from rolebundle.text.words import language_of, stem, stems_of
from rolebundle.verification.draft import sentence_starts
from rolebundle.verification.quotes import denies, words_of

COVERED = 0.5
"""The least share of a sentence's content words that must stand together."""
MIN_WORDS = 3
"""The least number of them, or all if there are fewer."""
_WINDOW = 3


class Match(NamedTuple):
    """Where most of a sentence's content words stand together.

    ``share`` is the part of them that stands there, ``words`` how many there are.
    """

    share: float
    words: int
    passage: Passage | None = None
    text: str = ""
    missing: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether enough of them stand there."""
        return self.share >= COVERED and self.share * self.words >= min(MIN_WORDS, self.words) > 0


@lru_cache(maxsize=2048)
def content_words(text: str) -> frozenset[str]:
    """The stems of the content words of a text; pairs of letters in a script without spaces."""
    return frozenset(stems_of(text, language_of(text)).content)


def best_match(text: str, passages: Sequence[Passage]) -> Match:
    """The three consecutive sentences with the most content words of a text."""
    words = content_words(text)
    best = Match(0.0, len(words))
    for passage in passages:
        head = content_words("\n".join((passage.document.title, *passage.headings)))
        if words.isdisjoint(content_words(passage.content) | head):
            continue
        for window, found in _windows(passage.content):
            missing = words - found - head
            share = 1 - len(missing) / len(words)
            if share > best.share:
                best = Match(share, len(words), passage, window, tuple(sorted(missing)))
    return best


@lru_cache(maxsize=1024)
def _sentences_of(content: str) -> tuple[str, ...]:
    return tuple(content[a:b] for a, b in pairwise((*sentence_starts(content), len(content))))


@lru_cache(maxsize=1024)
def _windows(content: str) -> tuple[tuple[str, frozenset[str]], ...]:
    sentences = _sentences_of(content)
    words = [content_words(sentence) for sentence in sentences]
    return tuple(
        ("".join(sentences[at : at + _WINDOW]), frozenset().union(*words[at : at + _WINDOW]))
        for at in range(max(1, len(sentences) - _WINDOW + 1))
    )


# -- near copies -----------------------------------------------------------------------------------

_LIKE = 0.9
"""The least share of a sentence's content words that a sentence has of which it is a near copy."""
# The modals, quantifiers and bounds of a line exclude each other; those between bars do not.
_OPERATORS = """
    must shall required mandatory need needs has have | may can might could able optional optionally
    all every each any always everyone both | some several sometimes occasionally few only just
    least minimum | most maximum
    before until | after since
    more higher over above | less fewer lower under below
"""
_OPERATOR = {
    word: (line, value)
    for line, text in enumerate(_OPERATORS.strip().splitlines())
    for value, words in enumerate(text.split("|"))
    for word in words.split()
}
# Common opposites of English.
_OPPOSITES = """
    allow/deny allowed/forbidden permit/prohibit accept/reject add/remove increase/decrease
    raise/lower enable/disable open/close start/stop begin/end include/exclude inclusive/exclusive
    first/last high/low larger/smaller large/small longer/shorter long/short faster/slower fast/slow
    same/different early/late earlier/later new/old up/down
    internal/external inside/outside top/bottom strong/weak true/false succeed/fail pass/fail
    keep/discard grow/shrink gain/lose upper/lower ascending/descending foreground/background
    public/private required/optional manual/automatic manually/automatically full/empty
    safe/dangerous easy/hard cheap/expensive good/bad better/worse best/worst many/few often/rarely
    directly/indirectly permanent/temporary possible/impossible on/off
    valid/invalid active/inactive compatible/incompatible visible/hidden synchronous/asynchronous
    local/remote present/absent sufficient/insufficient complete/incomplete correct/incorrect
    supported/dropped
"""
_OPPOSITE_OF: dict[str, set[str]] = {}
for _pair in _OPPOSITES.split():
    _one, _other = map(stem, _pair.split("/"))
    _OPPOSITE_OF.setdefault(_one, set()).add(_other)
    _OPPOSITE_OF.setdefault(_other, set()).add(_one)
_CLAUSE = re.compile(r"\([^()]*\)|[;()—–]|\s-\s|,\s|\bbut\b")
_DENIALS = frozenset("non impossible unable hardly scarcely seldom rarely unlikely".split())
_BOUND = re.compile(
    r"\bnot? (?:more|less|fewer|later|earlier|longer|shorter) than\b", re.IGNORECASE
)
_Clause = tuple[frozenset[str], frozenset[tuple[int, int]], int]
"""The stems of a clause's content words, its operators, and how often it denies."""


@lru_cache(maxsize=4096)
def _clauses(text: str) -> tuple[_Clause, ...]:
    clauses = []
    for clause in _CLAUSE.split(_BOUND.sub(" ", text)):
        words = words_of(clause)
        denials = [w for w in words if (denies(w) and w != "nor") or w in _DENIALS]
        stems = frozenset(
            stem(word) for word in words if word not in ENGLISH_STOP_WORDS.union(denials)
        )
        operators = frozenset(_OPERATOR[word] for word in words if word in _OPERATOR)
        clauses.append((stems, operators, len(denials)))
    return tuple(clauses)


def _joined(clauses: Sequence[_Clause]) -> _Clause:
    stems, operators, denials = zip(*clauses, strict=True) if clauses else ((), (), ())
    return frozenset().union(*stems), frozenset().union(*operators), sum(denials)


def difference(text: str, passages: Sequence[Passage]) -> tuple[str, Passage, str] | None:
    """The word in which a near copy of a passage's sentence turns its sense, or ``None``.

    The near copy may leave out clauses of the sentence.

    Returns:
        What differs, the passage and its sentence.
    """
    stems, operators, denials = _joined(_clauses(text))
    if len(stems) < MIN_WORDS or language_of(text) != "en":
        return None
    best: tuple[float, str, Passage, str] | None = None
    for passage in passages:
        for sentence in _sentences_of(passage.content):
            copied = [c for c in _clauses(sentence) if 2 * len(stems & c[0]) >= len(c[0]) > 0]
            theirs, their_operators, their_denials = _joined(copied)
            turned = [
                f'"{word}" for "{other}"'
                for word in sorted(stems - theirs)
                for other in _OPPOSITE_OF.get(word, ())
                if other in theirs - stems
            ]
            share = (len(stems & theirs) + len(turned)) / len(stems)
            if share >= _LIKE and "?" not in sentence and (best is None or share > best[0]):
                if (denials - their_denials) % 2:
                    found = '"not"'
                else:
                    found = "".join(turned[:1]) or _conflict(operators, their_operators)
                best = share, found, passage, sentence.strip()
    return best[1:] if best and best[1] else None


def _conflict(own: frozenset[tuple[int, int]], theirs: frozenset[tuple[int, int]]) -> str:
    """Whether a line of operators is used with another value."""
    for line, value in own - theirs:
        values = {v for kind, v in theirs if kind == line}
        if values and (line, value) not in theirs and not values & {v for k, v in own if k == line}:
            return "another modal, bound or quantifier"
    return ""


# -- names -----------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?P<identifier>`[^`\n]+`|(?<![\w/.-])(?:-{1,2}[a-z][\w-]+"
    r"|[A-Za-z_~./]*[A-Za-z_][\w-]*(?:[./:=_]+[\w~-]+)+(?:\(\))?|\w+\(\)"
    r"|[a-z]+[A-Z]\w*|[A-Z]+[a-z]+[A-Z]\w*|[A-Z]{2,}\d+)(?!\w))"
    r"|(?<![\w`'’./-])[A-Z][\w-]*[a-z\d][\w-]*(?: (?:[A-Z][\w-]*|\d[\w.-]*))*"
)
_STARTS = re.compile(r"(?:^|[.!?:|>(“\"*_—–#\n-])[\W_]*$")
_CAPITALIZING = ("de", "lb")


def names_in(text: str) -> Iterator[re.Match[str]]:
    """The identifiers and the capitalized names of a text that do not begin a sentence.

    Languages that capitalize nouns have identifiers only.
    """
    has_names = language_of(text) not in _CAPITALIZING
    for match in _NAME.finditer(text):
        if match["identifier"] or (has_names and not _STARTS.search(text[: match.start()])):
            yield match


def unknown_parts(name: str, evidence: Sequence[Passage]) -> list[str]:
    """The words of a name that stand nowhere in the evidence."""
    lines = [_line_of(passage) for passage in evidence]
    unknown = []
    for part in re.split(r"[\s()./,:`\[\]{}'\"]+", name):
        token = tokens_of(part).line.lower()
        forms = token, f"{token.rstrip().removesuffix('s')} "
        if sum(map(str.isalpha, part)) > 1 and not any(f in line for f in forms for line in lines):
            unknown.append(part)
    return unknown


@lru_cache(maxsize=1024)
def _line_of(passage: Passage) -> str:
    own = passage.document.title, *passage.headings, passage.path.replace("/", " "), passage.content
    return tokens_of("\n".join(own)).line.lower()
