"""The rules of a page's own style sheets that may hide elements.

Only ``<style>`` elements are read: linked style sheets are not at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rolebundle.scan.hidden_style import (
    WINDOW_HEIGHT,
    WINDOW_WIDTH,
    Declarations,
    split_declarations,
    without_comments,
)
from rolebundle.scan.selectors import (
    Applies,
    Selector,
    parse_selector,
    split_selectors,
    strongest,
    weakest,
)

_MAX_SHEET_CHARS = 2_000_000
_MAX_RULES = 20_000
_MAX_NESTED_CHARS = 100_000
"""Of the selectors of a nested rule, in which each ``&`` stands for an outer selector."""


class Rule(NamedTuple):
    """One selector of a rule, with the declarations that matter.

    Attributes:
        selector: the selector.
        applies: when the rule applies.
        declared: the declarations.
        important: those of them that are ``!important``.
    """

    selector: Selector
    applies: Applies
    declared: Declarations
    important: Declarations


@lru_cache(maxsize=64)
def rules_of(sheet: str, media: str = "") -> tuple[Rule, ...]:
    """The rules of a style sheet in order.

    Args:
        sheet: the text of a ``<style>`` element.
        media: its ``media`` attribute.
    """
    rules: list[Rule] = []
    css = without_comments(sheet[:_MAX_SHEET_CHARS])
    # Old pages put their style sheets into comments, which CSS ignores.
    css = css.replace("<!--", " ").replace("-->", " ")
    for selectors, body, of_block in _blocks(css):
        normal, important = split_declarations(body)
        if not normal and not important:
            continue
        applies = weakest(of_block, _media(media))
        for text in split_selectors(selectors):
            if len(rules) >= _MAX_RULES:
                break
            selector = parse_selector(text)
            if selector is not None:
                when = weakest(selector.applies, applies)
                rules.append(Rule(selector, when, {**normal, **important}, important))
    return tuple(rules)


_TOKEN = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[{};]""", re.DOTALL)
_NOT_APPLIED = ("keyframes", "font-face", "page", "property", "counter-style", "starting-style")


class _Open(NamedTuple):
    """A block that is open: its declarations, and the selectors of its elements.

    There are no selectors in an at-rule outside of rules, and ``None`` in a block that is skipped.
    """

    selectors: str | None
    applies: Applies
    is_rule: bool
    declared: list[str]


def _blocks(css: str) -> Iterator[tuple[str, str, Applies]]:
    """The selectors and declarations of each rule, and when its at-rules apply."""
    stack = [_Open("", "always", False, [])]
    start = 0
    for token in _TOKEN.finditer(css):
        mark = token[0]
        if len(mark) > 1:
            continue
        piece = css[start : token.start()]
        start = token.end()
        if mark == "{":
            # No style sheet of a person is nested more deeply.
            is_known = len(stack) < 50
            stack.append(
                _opened(piece.strip(), stack[-1]) if is_known else _Open(None, "always", False, [])
            )
            continue
        stack[-1].declared.append(piece)
        if mark == "}" and len(stack) > 1:
            yield from _closed(stack.pop())
    # The last block may be open at the end.
    stack[-1].declared.append(css[start:])
    while stack:
        yield from _closed(stack.pop())


def _closed(block: _Open) -> Iterator[tuple[str, str, Applies]]:
    if block.is_rule and block.selectors is not None:
        yield block.selectors, ";".join(block.declared), block.applies


def _opened(prelude: str, inside: _Open) -> _Open:
    if inside.selectors is None:
        return _Open(None, "always", False, [])
    if not prelude.startswith("@"):
        return _Open(_nested(prelude, inside), inside.applies, True, [])
    name = re.match(r"[\w-]*", prelude[1:].lower())[0]  # type: ignore[index]
    condition = " ".join(prelude[1 + len(name) :].lower().split())
    if name.endswith(_NOT_APPLIED):
        return _Open(None, "always", False, [])
    applies: Applies = "sometimes"
    if name == "media":
        applies = _media(condition)
    elif name in {"layer", "document"} or (name == "supports" and "not" not in condition):
        applies = "always"
    return inside._replace(applies=weakest(applies, inside.applies), declared=[])


def _nested(prelude: str, inside: _Open) -> str | None:
    """The selectors of a rule in an open block; ``None`` if they are too long."""
    if not inside.is_rule:
        return prelude
    parents, children = split_selectors(inside.selectors or "")[:20], split_selectors(prelude)[:20]
    copies = prelude.count("&") + len(children)
    if len(parents) * len(prelude) + sum(map(len, parents)) * copies > _MAX_NESTED_CHARS:
        return None
    return ",".join(
        child.replace("&", parent) if "&" in child else f"{parent} {child}"
        for parent in parents
        for child in children
    )


_FEATURE = re.compile(
    r"\(\s*(min|max)-(?:device-)?(width|height)\s*:\s*(\d*\.?\d+)(px|em|rem)\s*\)"
)
_NOT_NOW = re.compile(
    r"\(\s*(?:prefers-color-scheme\s*:\s*dark|prefers-reduced-motion\s*:\s*reduce|hover\s*:\s*none"
    r"|prefers-contrast\s*:\s*more|forced-colors\s*:\s*active|pointer\s*:\s*coarse|scripting\s*:"
    r"\s*none|-ms-high-contrast[^()]*|orientation\s*:\s*portrait)\s*\)"
)


def _media(condition: str) -> Applies:
    """When a media query applies. Of a list, the query that applies most often counts."""
    queries = [_media_query(query.strip()) for query in condition.lower().split(",")]
    return strongest(*queries)


def _media_query(query: str) -> Applies:
    if query in {"", "all", "screen", "only screen", "not print", "not speech"}:
        return "always"
    if re.match(r"(?:only\s+)?(?:print|speech|aural|braille|tty|tv|handheld|projection)\b", query):
        return "inactive"
    if query.startswith("not") or " or " in query:
        return "sometimes"
    for bound, side, number, unit in _FEATURE.findall(query):
        length = float(number) * (1 if unit == "px" else 16)
        window = WINDOW_WIDTH if side == "width" else WINDOW_HEIGHT
        if (length > window) if bound == "min" else (length < window):
            return "inactive"
    return "inactive" if _NOT_NOW.search(query) else "sometimes"
