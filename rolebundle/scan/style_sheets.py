"""The rules of a page's own style sheets that may hide elements, and what their selectors match.

Only ``<style>`` elements are read: linked style sheets are not at hand. A rule applies always,
sometimes (it depends on the user or on something that is not known here), or only otherwise than on
an ordinary screen at rest, such as in print or under the pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rolebundle.scan.hidden_style import (
    WINDOW_HEIGHT,
    WINDOW_WIDTH,
    Declarations,
    split_declarations,
    unescaped,
    without_comments,
)

Applies = Literal["always", "sometimes", "otherwise"]
_ORDER: tuple[Applies, ...] = ("always", "sometimes", "otherwise")

_MAX_SHEET_CHARS = 2_000_000
_MAX_RULES = 20_000
_MAX_COMPOUNDS = 8
_MAX_PARENTHESES = 20
_MAX_NESTED_CHARS = 100_000
"""Of the selectors of a nested rule, in which each ``&`` stands for an outer selector."""


class Step(NamedTuple):
    """One compound of a selector, such as ``p.note:first-child``.

    Attributes:
        combinator: how its elements are related to those of the step before: ``>``, ``+``, ``~``,
            or empty for descendants.
        xpath: an XPath to all elements that match the compound by itself.
    """

    combinator: str
    xpath: str


class Rule(NamedTuple):
    """One selector of a rule, with the declarations that matter.

    Attributes:
        steps: the compounds of the selector from left to right.
        name: a class or an id that each of the elements has, or an empty text.
        specificity: ids, classes and tags in the selector.
        applies: when the rule applies.
        declared: the declarations.
        important: those of them that are ``!important``.
    """

    steps: tuple[Step, ...]
    name: str
    specificity: tuple[int, int, int]
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
    for selectors, body, applies in _blocks(css):
        normal, important = split_declarations(body)
        if not normal and not important:
            continue
        for selector in _split(selectors):
            if len(rules) >= _MAX_RULES:
                break
            translated = _translated(selector)
            if translated is None:
                continue
            when = _weaker(translated.applies, _weaker(applies, _media(media)))
            rules.append(
                Rule(
                    translated.steps,
                    translated.name,
                    translated.specificity,
                    when,
                    {**normal, **important},
                    important,
                )
            )
    return tuple(rules)


def _weaker(a: Applies, b: Applies) -> Applies:
    return max(a, b, key=_ORDER.index)


# Blocks

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
    return inside._replace(applies=_weaker(applies, inside.applies), declared=[])


def _nested(prelude: str, inside: _Open) -> str | None:
    """The selectors of a rule in an open block; ``None`` if they are too long."""
    if not inside.is_rule:
        return prelude
    parents, children = _split(inside.selectors or "")[:20], _split(prelude)[:20]
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
    return min(queries, key=_ORDER.index)


def _media_query(query: str) -> Applies:
    if query in {"", "all", "screen", "only screen", "not print", "not speech"}:
        return "always"
    if re.match(r"(?:only\s+)?(?:print|speech|aural|braille|tty|tv|handheld|projection)\b", query):
        return "otherwise"
    if query.startswith("not") or " or " in query:
        return "sometimes"
    for bound, side, number, unit in _FEATURE.findall(query):
        length = float(number) * (1 if unit == "px" else 16)
        window = WINDOW_WIDTH if side == "width" else WINDOW_HEIGHT
        if (length > window) if bound == "min" else (length < window):
            return "otherwise"
    return "otherwise" if _NOT_NOW.search(query) else "sometimes"


# Selectors

# No part is given back, so that what does not match is found in linear time.
_NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}+[ \t\n]?+|\\[^\n0-9a-fA-F])++"
_SIMPLE = re.compile(
    rf"(?P<tag>\*|{_NAME})|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})"
    rf"|\[\s*+(?P<attribute>{_NAME})\s*+(?:(?P<operator>[~|^$*]?=)\s*+"
    rf"(?P<value>\"[^\"]*+\"|'[^']*+'|{_NAME})\s*+(?P<case>[iIsS])?+\s*+)?+\]"
    rf"|::?(?P<pseudo>{_NAME})(?P<arguments>\()?"
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_ELEMENT_PARTS = frozenset(("before", "after", "first-line", "first-letter"))
_STATES = frozenset(
    "hover focus-within target target-within checked visited open invalid"
    " valid disabled enabled required optional placeholder-shown autofill fullscreen indeterminate"
    " user-invalid user-valid popover-open modal default read-only read-write playing".split()
)
# Where the keyboard or the pointer is for a moment. Links to skip a menu appear then.
_MOMENTARY = frozenset(("focus", "focus-visible", "active"))


class _Translated(NamedTuple):
    steps: tuple[Step, ...]
    name: str
    specificity: tuple[int, int, int]
    applies: Applies


class _Compound(NamedTuple):
    """The XPath conditions of selectors without combinator, such as ``p.note:first-child``."""

    tag: str
    name: str
    conditions: tuple[str, ...]
    specificity: tuple[int, int, int]
    applies: Applies

    @property
    def xpath(self) -> str:
        return f"//{self.tag}" + "".join(f"[{condition}]" for condition in self.conditions)

    @property
    def condition(self) -> str:
        conditions = self.conditions if self.tag == "*" else (f"self::{self.tag}", *self.conditions)
        return " and ".join(f"({condition})" for condition in conditions) or "true()"


class _UnknownSelectorError(Exception):
    pass


def _translated(selector: str) -> _Translated | None:
    """The steps of a selector; ``None`` if it is not valid or not for whole elements."""
    text, at, combinator = selector.strip(), 0, ""
    steps: list[Step] = []
    ids = classes = tags = 0
    applies: Applies = "always"
    name = ""
    try:
        while at < len(text):
            compound, at = _compound(text, at)
            if len(steps) == _MAX_COMPOUNDS:
                return None
            steps.append(Step(combinator, compound.xpath))
            name = compound.name
            applies = _weaker(applies, compound.applies)
            ids, classes, tags = (
                a + b for a, b in zip((ids, classes, tags), compound.specificity, strict=True)
            )
            if at == len(text):
                break
            between = _COMBINATOR.match(text, at)
            if between is None:
                return None
            combinator, at = between[1] or "", between.end()
    except _UnknownSelectorError:
        return None
    return _Translated(tuple(steps), name, (ids, classes, tags), applies) if steps else None


def _compound(text: str, at: int) -> tuple[_Compound, int]:
    """The compound selector at this offset, and the offset after it."""
    tag, name = "*", ""
    conditions: list[str] = []
    applies: Applies = "always"
    ids = classes = tags = 0
    start = at
    while (match := _SIMPLE.match(text, at)) is not None:
        if match["tag"] and at > start:
            break
        at = match.end()
        if match["tag"]:
            condition, when = "", applies
            tag = unescaped(match["tag"]).lower()
            if tag != "*" and not re.fullmatch(r"[a-z_][\w.-]*", tag):
                raise _UnknownSelectorError
            tags += tag != "*"
        elif match["id"]:
            name = unescaped(match["id"])
            condition, when = _compared("@id", "=", name)
            ids += 1
        elif match["class"]:
            name = unescaped(match["class"])
            condition, when = _compared("@class", "~=", name)
            classes += 1
        elif match["attribute"]:
            condition, when = _attribute(match)
            classes += 1
        else:
            arguments = ""
            if match["arguments"]:
                end = _closing_parenthesis(text, at)
                arguments, at = text[at:end], end + 1
            condition, when = _pseudo(unescaped(match["pseudo"]).lower(), arguments.strip(), tag)
            classes += 1
        conditions += [condition] if condition else []
        applies = _weaker(applies, when)
    if at == start:
        raise _UnknownSelectorError
    return _Compound(tag, name, tuple(conditions), (ids, classes, tags), applies), at


def _attribute(match: re.Match[str]) -> tuple[str, Applies]:
    """The condition of ``[…]``, and when it applies."""
    name = unescaped(match["attribute"]).lower()
    if not re.fullmatch(r"[a-z_][\w.-]*", name):
        raise _UnknownSelectorError
    attribute = f"@{name}"
    if not match["operator"]:
        return attribute, "always"
    value = match["value"]
    value = unescaped(value[1:-1] if value[0] in "\"'" else value)
    if (match["case"] or "").lower() == "i":
        upper, lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
        attribute, value = f"translate({attribute},'{upper}','{lower}')", value.lower()
    return _compared(attribute, match["operator"], value)


_NOT_IN_XPATH = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _compared(attribute: str, operator: str, value: str) -> tuple[str, Applies]:
    """The condition that an attribute compares to a value, and when it applies.

    A value that XPath cannot express may match whatever the element has there.
    """
    if _NOT_IN_XPATH.search(value) or ("'" in value and '"' in value):
        return attribute, "sometimes"
    quoted = _quoted(value)
    match operator:
        case "=":
            condition = f"{attribute}={quoted}"
        case "~=":
            condition = (
                f"contains(concat(' ',normalize-space({attribute}),' '),{_quoted(f' {value} ')})"
            )
        case "|=":
            condition = f"{attribute}={quoted} or starts-with({attribute},{_quoted(value + '-')})"
        case "^=":
            condition = f"starts-with({attribute},{quoted})" if value else "false()"
        case "*=":
            condition = f"contains({attribute},{quoted})" if value else "false()"
        case _:
            tail = f"substring({attribute},string-length({attribute})-{len(value) - 1})"
            condition = f"{tail}={quoted}" if value else "false()"
    return condition, "always"


_INDEX = re.compile(
    r"(?P<a>[+-]?\d{0,9})n\s*(?P<b>[+-]\s*\d{1,9})?|(?P<only>[+-]?\d{1,9})", re.ASCII
)


def _pseudo(name: str, arguments: str, tag: str) -> tuple[str, Applies]:
    """The condition of a pseudo-class, and when it applies; without a condition if not known.

    Raises:
        _UnknownSelectorError: it names a part of an element.
    """
    if (
        name in _ELEMENT_PARTS
        or name.startswith(("-webkit-", "-moz-"))
        or name
        in {
            *("marker", "placeholder", "selection", "backdrop", "part", "slotted", "cue", "host"),
            *("host-context", "file-selector-button", "view-transition", "details-content"),
        }
    ):
        raise _UnknownSelectorError
    if name in _MOMENTARY:
        return "false()", "always"
    if name in _STATES:
        return "", "otherwise"
    if name in {"not", "is", "where", "matches"}:
        return _of_selectors(name, arguments)
    siblings = tag if name.endswith("-of-type") else "*"
    if name.endswith("-of-type") and tag == "*":
        return "", "sometimes"
    before, after = f"preceding-sibling::{siblings}", f"following-sibling::{siblings}"
    simple = {
        "root": "self::html",
        "empty": "not(node())",
        "link": "@href",
        "any-link": "@href",
        "first-child": f"not({before})",
        "first-of-type": f"not({before})",
        "last-child": f"not({after})",
        "last-of-type": f"not({after})",
        "only-child": f"not({before}) and not({after})",
        "only-of-type": f"not({before}) and not({after})",
    }
    if name in simple:
        return simple[name], "always"
    if name in {"nth-child", "nth-of-type", "nth-last-child", "nth-last-of-type"}:
        index = {"odd": "2n+1", "even": "2n"}.get(arguments.lower(), arguments.lower())
        match = _INDEX.fullmatch(index)
        if match is not None:
            return _nth(match, f"(count({after if 'last' in name else before})+1)"), "always"
    return "", "sometimes"


def _nth(match: re.Match[str], position: str) -> str:
    if match["only"]:
        return f"{position}={int(match['only'])}"
    a = int({"": "1", "+": "1", "-": "-1"}.get(match["a"], match["a"]))
    b = int((match["b"] or "0").replace(" ", ""))
    if a == 0:
        return f"{position}={b}"
    bound = f"{position}>={b}" if a > 0 else f"{position}<={b}"
    return f"{bound} and ({position}-({b})) mod {abs(a)}=0"


def _of_selectors(name: str, arguments: str) -> tuple[str, Applies]:
    """The condition of ``:not(…)`` or ``:is(…)``; without one if a selector in it is complex."""
    if arguments.count("(") > _MAX_PARENTHESES:
        return "", "sometimes"
    conditions = []
    applies: Applies = "always"
    for part in _split(arguments):
        compound, end = _compound(part, 0)
        if end < len(part):
            return "", "sometimes"
        if compound.applies != "always":
            applies = "sometimes" if name == "not" else compound.applies
            if name == "not":
                continue  # At rest, no element has the state.
        conditions.append(compound.condition)
    joined = " or ".join(conditions)
    if name == "not":
        return (f"not({joined})" if joined else ""), applies
    return joined, applies


def _closing_parenthesis(text: str, at: int) -> int:
    """The offset of the parenthesis that closes the one before this offset."""
    depth = 1
    for offset in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[offset], 0)
        if depth == 0:
            return offset
    raise _UnknownSelectorError


def _split(selectors: str) -> Sequence[str]:
    """The selectors of a list, which are separated by commas outside of brackets."""
    if "(" not in selectors and "[" not in selectors:
        return [part.strip() for part in selectors.split(",") if part.strip()]
    parts, depth, start = [], 0, 0
    for offset, character in enumerate(selectors):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth <= 0:
            parts.append(selectors[start:offset].strip())
            start = offset + 1
    return [part for part in (*parts, selectors[start:].strip()) if part]


def _quoted(value: str) -> str:
    return f'"{value}"' if "'" in value else f"'{value}'"
