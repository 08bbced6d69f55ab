"""Whether a sentence qualifies the same words in another way than its evidence. Pure.

A *qualifier* says how much ("all", "most"), whether ("must", "may"), when ("before", "after") or
which of two opposites ("longer", "shorter"). Two of one group exclude each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from rolebundle.contracts.documents import Passage
from rolebundle.resources import data_file
from rolebundle.text.languages import ENGLISH_STOP_WORDS
from rolebundle.text.words import content_words, language_of, sentences_of, stem
from rolebundle.verify.quotes import denies, lower_words
from rolebundle.verify.sentences import CLAUSE_END

_WORDS = data_file(__file__, "words.toml")
_GROUPS = list(_WORDS["qualifiers"].values())
_FIRST_OPPOSITES = len(_GROUPS)
_FIRST_TURNED = [*_WORDS["qualifiers"]].index("order")
"""The first group that a negation before it turns: "not open" is "shut"."""
_GROUPS += [pair.split("/") for pair in _WORDS["copies"]["opposites"].split()]
_KINDS = [(group, kind) for group, kinds in enumerate(_GROUPS) for kind in range(len(kinds))]
_QUALIFIER = re.compile(
    "|".join(rf"\b(?P<q{g}_{k}>{_GROUPS[g][k]})\b" for g, k in _KINDS), re.IGNORECASE
)
_END = re.compile(rf"{CLAUSE_END.pattern}|\band\b|,")
_QUALIFIED_WORDS = 2
"""How many content words after a qualifier it is about."""
_MIN_SHARED = 2
_MIN_KNOWN = 0.34
"""The least share of the words of a reason in the evidence."""
_CONDITION, _REASON = (re.compile(text, re.IGNORECASE) for text in _WORDS["clauses"].values())
"""How many content words a sentence of the evidence must share."""


class Qualifier(NamedTuple):
    """A qualifier, its group, which of the group it is, and the stems that it is about."""

    text: str
    group: str
    kind: str
    about: frozenset[str]


@lru_cache(maxsize=4096)
def qualifiers_in(sentence: str) -> tuple[Qualifier, ...]:
    """The qualifiers of a sentence before a content word of their clause; opposites also after."""
    sentence = sentence.replace("’", "'")
    found = []
    for match in _QUALIFIER.finditer(sentence):
        group, _, kind = (match.lastgroup or "").partition("_")
        before = _END.split(sentence[: match.start()])[-1]
        about = _stems(_END.split(sentence[match.end() :], maxsplit=1)[0])[:_QUALIFIED_WORDS]
        if int(group[1:]) >= _FIRST_TURNED and any(map(denies, lower_words(before))):
            continue
        if int(group[1:]) >= _FIRST_OPPOSITES:
            about += _stems(before)[-_QUALIFIED_WORDS:]
        found.append(Qualifier(match[0].lower(), group, kind, frozenset(about)))
    return tuple(found)


def lost_condition(text: str, passages: Sequence[Passage]) -> tuple[str, Passage, str] | None:
    """The condition of a sentence of the evidence that a sentence repeats without it, or ``None``.

    Returns:
        What differs, the passage and its sentence.
    """
    words = content_words(text)
    is_free = not _CONDITION.search(text)
    for passage in passages if is_free else ():
        for sentence in sentences_of(passage.content) if passage.content_type != "table" else ():
            main, condition, rest = _split(sentence)
            own, others = content_words(main), content_words(rest) - content_words(main)
            shared = len(words & own)
            is_repeated = shared >= _MIN_SHARED and 2 * shared >= len(own)
            if condition and is_repeated and 2 * len(words & others) < len(others):
                return f'the evidence goes on with "{condition}"', passage, sentence.strip()
    return None


def _split(sentence: str) -> tuple[str, str, str]:
    """A sentence before its condition, the words that begin it, and what follows."""
    match = _CONDITION.search(sentence)
    if match is None:
        return sentence, "", ""
    return sentence[: match.start()], match[0], sentence[match.end() :]


def unknown_reason(text: str, passages: Sequence[Passage]) -> tuple[str, Passage, str] | None:
    """The reason that a sentence gives if the evidence has few of its words, or ``None``.

    Returns:
        What differs, the first passage, and no text of it.
    """
    match = _REASON.search(text)
    words = content_words(match["reason"]) if match else frozenset[str]()
    language = language_of(text)
    own = [p for p in passages if words and language_of(p.content) == language]
    parts = ("\n".join((p.document.title, *p.headings, p.content)) for p in own)
    known = frozenset[str]().union(*map(content_words, parts))
    if match and own and len(words & known) < _MIN_KNOWN * len(words):
        return f'the reason "{match[0].strip()}" stands nowhere in it', own[0], ""
    return None


def _stems(text: str) -> list[str]:
    """The stems of the content words of a clause."""
    return [stem(word) for word in lower_words(text) if word not in ENGLISH_STOP_WORDS]


def other_qualifier(text: str, passages: Sequence[Passage]) -> tuple[str, Passage, str] | None:
    """The qualifier of a sentence that its evidence excludes, or ``None``.

    Returns:
        What differs, the passage and its sentence.
    """
    words, own = content_words(text), qualifiers_in(text)
    said = {(mine.group, mine.kind) for mine in own}
    for passage, sentence in ((p, s) for p in passages if own for s in sentences_of(p.content)):
        theirs = qualifiers_in(sentence)
        if len(words & content_words(sentence)) < _MIN_SHARED:
            continue
        for mine, other in product(own, theirs):
            is_same = any((q.group, q.kind) == (mine.group, mine.kind) for q in theirs)
            is_said = (other.group, other.kind) in said
            if mine.group == other.group and mine.about & other.about and not is_same | is_said:
                return f'"{mine.text}" for "{other.text}"', passage, sentence.strip()
    return None
