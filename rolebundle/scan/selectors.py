"""CSS selectors as XPaths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rolebundle.scan.hidden_style import unescaped

Applies = Literal["always", "sometimes", "inactive"]
"""When a selector matches, or a rule applies.

``sometimes`` depends on the user, or on something that is not known here. ``inactive`` is what does
not apply on an ordinary screen at rest, such as in print or under the pointer.
"""
_ORDER: tuple[Applies, ...] = ("always", "sometimes", "inactive")

_MAX_COMPOUNDS = 8
_MAX_PARENTHESES = 20


class Step(NamedTuple):
    """One compound of a selector, such as ``p.note:first-child``.

    Attributes:
        combinator: how its elements are related to those of the step before: ``>``, ``+``, ``~``,
            or empty for descendants.
        xpath: an XPath to all elements that match the compound by itself.
    """

    combinator: str
    xpath: str


class Selector(NamedTuple):
    """A selector of whole elements.

    Attributes:
        steps: its compounds from left to right.
        name: a class or an id that each of the elements has, or an empty text.
        specificity: how many ids, classes and tags it has.
        applies: when it matches.
    """

    steps: tuple[Step, ...]
    name: str
    specificity: tuple[int, int, int]
    applies: Applies


def weakest(*applies: Applies) -> Applies:
    """When something applies that needs all of these."""
    return max(applies, key=_ORDER.index)


def strongest(*applies: Applies) -> Applies:
    """When something applies that needs one of these."""
    return min(applies, key=_ORDER.index)


def split_selectors(selectors: str) -> Sequence[str]:
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


def parse_selector(selector: str) -> Selector | None:
    """The selector of this text; ``None`` if it is not valid or not for whole elements."""
    text, at, combinator = selector.strip(), 0, ""
    steps: list[Step] = []
    compounds: list[_Compound] = []
    try:
        while at < len(text):
            compound, at = _compound(text, at)
            if len(steps) == _MAX_COMPOUNDS:
                return None
            steps.append(Step(combinator, compound.xpath))
            compounds.append(compound)
            if at == len(text):
                break
            between = _COMBINATOR.match(text, at)
            if between is None:
                return None
            combinator, at = between[1] or "", between.end()
    except _UnknownSelectorError:
        return None
    if not compounds:
        return None
    ids, classes, tags = map(sum, zip(*(part.specificity for part in compounds), strict=True))
    applies = weakest(*(part.applies for part in compounds))
    return Selector(tuple(steps), compounds[-1].name, (ids, classes, tags), applies)


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
        applies = weakest(applies, when)
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
        return "", "inactive"
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
    for part in split_selectors(arguments):
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


def _quoted(value: str) -> str:
    return f'"{value}"' if "'" in value else f"'{value}'"
