"""Whether a sentence qualifies the same words in another way than its evidence (English). Pure.

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
from rolebundle.text.words import content_words, sentences_of, stem
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
