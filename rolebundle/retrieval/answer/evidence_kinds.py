"""Which of the evidence kinds that a role requires a passage shows. Pure.

A passage shows a kind if the kind's words stand together, in their order, in its document type, in
one of its tags, in a value of its document's attribute ``evidence_kind``, or in one of the headings
above it. Case and punctuation do not count, and an English plural counts as its singular. So
``decision-record`` is shown by the document type ``decision-record``, the tag ``Decision Record``
and the heading "Decision records in force".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rolebundle.contracts.document import Passage

ATTRIBUTE = "evidence_kind"

_WORD = re.compile(r"[^\W_]+")
_SHORT = 3
"""Words of so many letters have no plural here: ``gas`` and ``bus`` end in s."""


def shown_kinds(kinds: Sequence[str], passage: Passage) -> list[str]:
    """Those of the kinds that a passage shows, in their order."""
    texts = [_normalized(text) for text in _texts(passage)]
    return [
        kind for kind in dict.fromkeys(kinds) if any(_normalized(kind) in text for text in texts)
    ]


def _texts(passage: Passage) -> Iterator[str]:
    yield passage.document.document_type
    yield from passage.tags
    yield from passage.headings
    for key, values in passage.document.attributes:
        if key == ATTRIBUTE:
            yield from values


def _normalized(text: str) -> str:
    """The words with a space before and after each, so that a part of a word is not found."""
    return f" {' '.join(map(_singular, _WORD.findall(text.casefold())))} "


def _singular(word: str) -> str:
    if len(word) <= _SHORT or not word.endswith("s") or word.endswith("ss"):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
