"""The elements of a page that the selectors of its style sheets match, within a bound of work."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from lxml import etree

from rolebundle.scan.selectors import Selector, Step

_MAX_WORK = 300_000_000
"""Elements that are looked at for all rules of a page, most of them by an XPath; some seconds."""


class TooMuchWorkError(Exception):
    """The rules of a page match too many elements, or count siblings among too many."""


class SelectorMatcher:
    """The elements of one page, and those that each selector matches.

    Args:
        root: the root of the page.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._order = {element: place for place, element in enumerate(root.getroottree().iter())}
        siblings = Counter(element.getparent() for element in self._order)
        self._sibling_pairs = sum(count * count for count in siblings.values())
        self._matches: dict[str, list[Any]] = {}
        self._work = 0

    def matches(self, selector: Selector) -> list[Any]:
        """The elements that a selector matches, in the order of the page.

        Raises:
            TooMuchWorkError: with those of the selectors before, this would take too long.
        """
        found: list[Any] = []
        for number, step in enumerate(selector.steps):
            candidates = self._elements(step.xpath)
            found = self._related(candidates, step, found) if number else candidates
        return found

    def _elements(self, path: str) -> list[Any]:
        if path not in self._matches:
            # Conditions such as :nth-child look at all siblings of each element.
            self._count(len(self._order) + path.count("sibling::") * self._sibling_pairs)
            self._matches[path] = _xpath(path)(self._root)
        self._count(len(self._matches[path]))
        return self._matches[path]

    def _related(self, candidates: list[Any], step: Step, before: list[Any]) -> list[Any]:
        """The candidates whose parent, sibling or ancestor, by the combinator, is in ``before``."""
        matched = set(before)
        match step.combinator:
            case ">":
                return [e for e in candidates if e.getparent() in matched]
            case "+":
                return [
                    e
                    for e in candidates
                    if next(e.itersiblings("*", preceding=True), None) in matched
                ]
            case "~":
                first: dict[Any, Any] = {}
                for element in before:
                    first.setdefault(element.getparent(), element)
                order = self._order
                return [
                    e
                    for e in candidates
                    if (earliest := first.get(e.getparent())) is not None
                    and order[earliest] < order[e]
                ]
        return [e for e in candidates if any(a in matched for a in e.iterancestors())]

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > _MAX_WORK:
            raise TooMuchWorkError


@lru_cache(maxsize=1_024)
def _xpath(path: str) -> Any:
    return etree.XPath(path)
