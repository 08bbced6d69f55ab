"""Lowers capitals that only emphasize. Pure."""

from __future__ import annotations

import re

_LONG_WORD = re.compile("[A-Z]{5,}(?![A-Za-z])")


def lower_capitals(text: str) -> str:
    """The text with its words of five or more capitals in lower case; these are seldom acronyms.

    If most of its letters are capitals, all of it is in lower case: ``"THE BOUNDARY LAYER"``
    becomes ``"the boundary layer"``, and ``"Clean up with VACUUM in SQL"`` becomes ``"Clean up with
    vacuum in SQL"``. A text without such a word, for example ``"HTTP API"``, does not change.
    """
    if _LONG_WORD.search(text) is None:
        return text
    if sum(map(str.isupper, text)) > sum(map(str.islower, text)):
        return text.lower()
    return _LONG_WORD.sub(lambda word: word[0].lower(), text)
