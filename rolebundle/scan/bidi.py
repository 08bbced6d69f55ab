"""Bidirectional controls: which belong to right-to-left text, and which reorder what is read.

Boucher and Anderson, "Trojan Source: Invisible Vulnerabilities" (2021), is the attack; UAX 9 is
the algorithm. Overrides have no use in prose. Embeddings and isolates are legitimate where they
are closed on their line, in a text with right-to-left letters, around what they are made for.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

from rolebundle.scan.characters import EMBEDDINGS, RTL

_RTL_LETTER = re.compile(f"[{RTL}]")
_CONTROL = re.compile(f"[{EMBEDDINGS}]")
_CLOSES = {"\u202c": "\u202a\u202b", "\u2069": "\u2066\u2067\u2068"}
_RIGHT_TO_LEFT = "\u202b\u2067"


class Directions:
    """The directions of one text, worked out when they are first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def has_rtl(self) -> bool:
        """Whether the text has a right-to-left letter at all."""
        return _RTL_LETTER.search(self._text) is not None

    @cached_property
    def legitimate(self) -> frozenset[int]:
        """Offsets of the embeddings and isolates, and of what closes them, that do no harm."""
        if not self.has_rtl:
            return frozenset()
        text = self._text
        letters = [match.start() for match in _RTL_LETTER.finditer(text)]
        good: set[int] = set()
        open_controls: list[int] = []
        last = 0
        for match in _CONTROL.finditer(text):
            here, control = match.start(), match.group()
            if text.find("\n", last, here) >= 0:
                open_controls.clear()  # They end with their paragraph, closed or not.
            last = here
            if control not in _CLOSES:
                open_controls.append(here)
                continue
            if not open_controls or text[open_controls[-1]] not in _CLOSES[control]:
                continue
            opened = open_controls.pop()
            if text[opened] not in _RIGHT_TO_LEFT or _any_between(letters, opened, here):
                good.update((opened, here))
        return frozenset(good)


def _any_between(places: list[int], start: int, end: int) -> bool:
    first = bisect_left(places, start)
    return first < len(places) and places[first] < end
