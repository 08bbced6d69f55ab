"""The rules of a page's own style sheets: tinycss2 reads them, cssselect makes XPaths of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

import cssselect
import tinycss2
from cssselect.parser import CombinedSelector

from rolebundle.scan.hidden_style import Declarations, css_text, declared_in, without_long_numbers

_MAX_SHEET_CHARS = 1_000_000
_MAX_SELECTOR_CHARS = 2_000
_MAX_NESTED_CHARS = 20_000
_MAX_DEPTH = 30
_MAX_RULES = 20_000

Applies = int
"""When a rule applies: 0 is always, 1 depends on what is not known here, and 2 is not on a screen
at rest, but in print or under the pointer, for example."""


class UnreadableStyleError(Exception):
    """A style sheet cannot be evaluated, because it is too large or nested too deeply."""


class Rule(NamedTuple):
    """One selector of a rule, with the declarations that matter.

    Attributes:
        steps: the compounds of the selector from left to right, such as ``p.note``, each as the
            combinator before it and an XPath to all elements that match it.
        specificity: how many ids, classes and tags it has.
        applies: when the rule applies.
        normal: the declarations that are not ``!important``.
        important: those that are.
    """

    steps: tuple[tuple[str, str], ...]
    specificity: tuple[int, int, int]
    applies: Applies
    normal: Declarations
    important: Declarations

    @property
    def declared(self) -> Declarations:
        """All declarations."""
        return {**self.normal, **self.important}


@lru_cache(maxsize=64)
def rules_of(sheet: str, media: str = "") -> tuple[Rule, ...]:
    """The rules of a style sheet in order.

    Args:
        sheet: the text of a ``<style>`` element.
        media: its ``media`` attribute.

    Raises:
        UnreadableStyleError: the sheet is too large or nested too deeply.
    """
    if len(sheet) > _MAX_SHEET_CHARS:
        raise UnreadableStyleError
    try:
        nodes = tinycss2.parse_stylesheet(without_long_numbers(sheet))
        rules = tuple(
            islice(
                (
                    rule
                    for selectors, block, applies in _blocks(nodes, "", _media(media))
                    for rule in _rules(selectors, block, applies)
                ),
                _MAX_RULES + 1,
            )
        )
    except RecursionError:
        raise UnreadableStyleError from None
    if len(rules) > _MAX_RULES:
        raise UnreadableStyleError
    return rules


def _blocks(
    nodes: Iterable[Any], outer: str, applies: Applies, depth: int = 0
) -> Iterator[tuple[str, list[Any], Applies]]:
    """The selectors and the content of each rule, and when its at-rules apply.

    ``outer`` is the selectors of the rule around, for nested rules.
    """
    if depth > _MAX_DEPTH:
        raise UnreadableStyleError
    for node in nodes:
        if node.type == "qualified-rule":
            selectors, when = _nested(css_text(node.prelude), outer), applies
        elif node.type == "at-rule" and node.content is not None:
            selectors, condition = outer, css_text(node.prelude)
            if node.lower_at_keyword not in {"media", "supports", "layer", "container", "scope"}:
                continue
            when = max(applies, _at_rule(node.lower_at_keyword, condition))
        else:
            continue
        block = tinycss2.parse_blocks_contents(node.content)
        if selectors:
            yield selectors, block, when
        yield from _blocks(block, selectors, when, depth + 1)


def _nested(selectors: str, outer: str) -> str:
    """The selectors of a rule in a rule."""
    if not outer:
        return selectors
    pairs = [(parent, child) for parent in _split(outer) for child in _split(selectors)]
    found = [c.replace("&", p) if "&" in c else f"{p} {c}" for p, c in pairs]
    if sum(map(len, found)) > _MAX_NESTED_CHARS:
        raise UnreadableStyleError
    return ",".join(found)


_NOT_NOW = re.compile(
    r"\b(?:print|speech|max-(?:device-)?width|max-height|prefers-|forced-colors|hover|pointer"
    r"|scripting|portrait|-ms-high-contrast)"
)


def _at_rule(keyword: str, condition: str) -> Applies:
    if keyword == "media":
        return _media(condition)
    return 0 if keyword == "layer" or (keyword == "supports" and "not" not in condition) else 1


def _media(condition: str) -> Applies:
    """When a media query applies. Of a list, the query that applies most often counts."""
    return min(map(_media_query, condition.lower().split(",")))


def _media_query(query: str) -> Applies:
    if query.strip() in {"", "all", "screen", "only screen", "not print", "not speech"}:
        return 0
    return 2 if _NOT_NOW.search(query) else 1


# What depends on the user. It is left out of a selector, so that it matches at any time.
_STATE = (
    r":(?:hover|focus-within|target(?:-within)?|checked|visited|open|invalid|valid|disabled"
    r"|enabled|indeterminate|fullscreen|popover-open|modal)(?![\w-])"
)
_TRANSLATOR = cssselect.HTMLTranslator()


def _rules(selectors: str, block: Iterable[Any], applies: Applies) -> Iterator[Rule]:
    """A rule for each of the selectors that can be evaluated and are for whole elements."""
    normal, important = declared_in(block)
    for part in _split(selectors) if normal or important else ():
        text, negated = _without(rf":not\(\s*{_STATE}\s*\)", part)
        text, positive = _without(_STATE, text)
        if len(text) > _MAX_SELECTOR_CHARS:
            raise UnreadableStyleError
        try:
            (selector,) = cssselect.parse(text)
            steps = tuple(_steps(selector.parsed_tree))
        except (cssselect.SelectorError, ValueError):
            continue  # What is not known here is not known to most browsers.
        if selector.pseudo_element is None:
            when = max(applies, 2 if positive else 1 if negated else 0)
            yield Rule(steps, selector.specificity(), when, normal, important)


def _steps(tree: Any) -> Iterator[tuple[str, str]]:
    combinator = ""
    if isinstance(tree, CombinedSelector):
        yield from _steps(tree.selector)
        combinator, tree = tree.combinator.strip(), tree.subselector
    yield combinator, f"//{_TRANSLATOR.xpath(tree)}"


def _split(selectors: str) -> Iterator[str]:
    """The selectors of a list, which are separated by commas outside of brackets."""
    tokens = tinycss2.parse_component_value_list(selectors)
    for is_comma, part in groupby(tokens, lambda token: css_text([token]) == ","):
        if not is_comma:
            yield css_text(part)


def _without(states: str, selector: str) -> tuple[str, int]:
    """A selector without some pseudo-classes, and how many it had."""
    # A compound of nothing else is any element.
    text, alone = re.subn(rf"(^|[\s>+~(,]){states}", r"\1*", selector)
    text, others = re.subn(states, "", text)
    return text, alone + others
