"""CSS declarations, and whether they hide an element from people.

A value that cannot be computed here does not hide. Lengths are in CSS pixels of a window of 1280 by
800 and a font of 16 pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

import cssselect
import tinycss2
from cssselect.parser import CombinedSelector
from tinycss2.color4 import parse_color

from rolebundle.resources import data_file

Declarations = Mapping[str, str]
"""The value of each property, both in lower case, without comments and escapes."""

# Elements and texts that are at most this large, in pixels or as a share, are not seen.
_MAX_FONT_SIZE = 2.0
_MAX_SIDE = 1.0
_MAX_SHARE = 0.05
# Positions from which no part of an element is in the window, and those from which a part may be.
_OFF_SCREEN = -500.0
_MAYBE_OFF_SCREEN = -100.0
_BEYOND_WINDOW = 3_000.0
# The largest difference of a channel, of 255, at which a text cannot be distinguished from its
# background, and at which it hardly can.
SAME_COLOR = 20.0
SIMILAR_COLOR = 40.0

COLOR_PROPERTIES = frozenset(("color", "background-color", "background-image"))
INHERITED = frozenset(("visibility", "font-size", "color", "text-indent"))
"""Properties by which a descendant can be visible again."""

_SIDES = ("inset", "left", "right", "top", "bottom")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_SIZES = ("height", "max-height", "block-size", "width", "max-width", "inline-size")
_MAX_STYLE_CHARS = 100_000

_LONG_NUMBER = re.compile(r"\d{300,}")
"""A number with too many digits for Python to convert."""
_PREFIX = re.compile(r"^-(?:webkit|moz|ms)-")
_NUMBER = re.compile(r"(?:calc\(\s*)?([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z]+|%)?(?:\s*\))?")
_PART = re.compile(r"[^\s,]+")
_FUNCTION = re.compile(r"([a-z0-9-]+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_FONT_SIZE = re.compile(r"(?:^|\s)([\d.]+(?:[a-z]+|%)?)(?=\s*/|\s|$)")
_TABLE = data_file(__file__, "css.toml")
_UNITS: Mapping[str, float] = _TABLE["units"]
_FAR_PERCENT = 1_000


def declared_in(nodes: Iterable[Any]) -> tuple[Declarations, Declarations]:
    """The declarations that matter here among nodes of tinycss2, and the ``!important`` ones."""
    found: tuple[dict[str, str], dict[str, str]] = {}, {}
    for node in nodes:
        if node.type != "declaration":
            continue
        name = _PREFIX.sub("", node.lower_name)
        if name in _RELEVANT:
            found[node.important].update(_longhands(name, css_text(node.value).lower()))
    return found


def css_text(nodes: Iterable[Any]) -> str:
    """The text of CSS values without comments."""
    return str(tinycss2.serialize([node for node in nodes if node.type != "comment"])).strip()


@lru_cache(maxsize=4_096)
def style_layers(style: str) -> tuple[Declarations, Declarations]:
    """The declarations of a style attribute that matter here, and the ``!important`` ones.

    One that cannot be read, because its brackets are nested too deeply, may hide the element.
    """
    if not style:
        return {}, {}
    css = _LONG_NUMBER.sub("0", style[:_MAX_STYLE_CHARS])
    try:
        return declared_in(tinycss2.parse_blocks_contents(css))
    except RecursionError:
        return {"display": "var(--unknown)"}, {}


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name == "font":
        if size := _FONT_SIZE.search(value):
            yield "font-size", size[1]
    elif name == "background":
        yield "background-image", value if "url(" in value or "gradient(" in value else "none"
        words = re.findall(r"[a-z0-9-]+\([^()]*\)|[^\s,/]+", value)
        yield "background-color", next((w for w in words if color(w)), "transparent")
    else:
        yield "color" if name == "text-fill-color" else name, value


class Hiding(NamedTuple):
    """How declarations hide an element.

    Attributes:
        kind: the kind of the finding.
        property: the property that hides it.
        is_certain: whether no part of the element can be seen.
    """

    kind: str
    property: str
    is_certain: bool = True


def hiding(declared: Declarations) -> Hiding | None:
    """How these declarations hide an element, apart from its colors; ``None`` if they do not."""
    sides = _SIDES if declared.get("position", "static") != "static" else ()
    off_screen = {**_OFF_SCREEN_TESTS, **dict.fromkeys(sides, _is_far)}
    if name := _first(declared, _INVISIBLE_TESTS) or _collapsed(declared):
        return Hiding("invisible_element", name)
    if name := _first(declared, off_screen):
        return Hiding("off_screen_element", name)
    for name in ("display", "visibility", "opacity"):
        if declared.get(name, "").startswith("var("):
            return Hiding("invisible_element", name, is_certain=False)
    for name in sides:
        if any(_pixels(word) <= _MAYBE_OFF_SCREEN for word in declared.get(name, "").split()):
            return Hiding("off_screen_element", name, is_certain=False)
    return None


def _first(declared: Declarations, tests: Mapping[str, Callable[[str], bool]]) -> str:
    """The first property whose value passes its test; empty if there is none."""
    found = (name for name, value in declared.items() if name in tests and tests[name](value))
    return next(found, "")


def _collapsed(declared: Declarations) -> str:
    """The property by which a box has no size and shows nothing beside it; empty if none."""
    if not any(re.search("hidden|clip", declared.get(name, "")) for name in _OVERFLOWS):
        return ""
    # A box of no height with a padding keeps the proportions of what is laid over it.
    paddings = " ".join(declared.get(f"padding{side}", "") for side in ("", "-top", "-bottom"))
    if any(_pixels(word) for word in paddings.split()):
        return ""
    return next((name for name in _SIZES if _pixels(declared.get(name, "")) <= _MAX_SIDE), "")


def _is_tiny(value: str) -> bool:
    """Whether any part of a scale or opacity is almost 0. A negative scale turns a box over."""
    return any(abs(_share(part)) <= _MAX_SHARE for part in _PART.findall(value))


def _is_far(value: str) -> bool:
    """Whether an element that is moved by any of these lengths is outside of the window."""
    return any(
        abs(_number(part)[0]) >= _FAR_PERCENT
        if part.endswith("%")
        else not _OFF_SCREEN < _pixels(part, 0.0) < _BEYOND_WINDOW
        for part in _PART.findall(value)
    )


def _is_far_margin(value: str) -> bool:
    words = value.split()
    return _is_far(" ".join((*words[:1], *(words[3:4] or words[1:2]))))  # top and left


def _in_functions(names: str, test: Callable[[str], bool]) -> Callable[[str], bool]:
    """A test of what is in the functions of a value whose names match."""
    is_meant = re.compile(names).match
    return lambda value: any(
        test(inside) for name, inside in _FUNCTION.findall(value) if is_meant(name)
    )


def _is_empty_rectangle(inside: str) -> bool:
    """Whether both sides of a rectangle are at the same place, or it is as small as a dot."""
    sides = [_pixels(part) for part in _PART.findall(inside)]
    return len(sides) == 4 and min(sides[1] - sides[3], sides[2] - sides[0]) <= _MAX_SIDE


def _clips_all(value: str) -> bool:
    for name, inside in _FUNCTION.findall(value):
        parts = _PART.findall(inside)
        if name == "inset" and all(part.endswith("%") and _share(part) >= 0.5 for part in parts):
            return bool(parts)
        if name in {"circle", "ellipse"} and parts and _pixels(parts[0]) == 0:
            return True
    return False


_INVISIBLE_TESTS: Mapping[str, Callable[[str], bool]] = {
    "display": lambda value: value == "none",
    "visibility": lambda value: value in {"hidden", "collapse"},
    "content-visibility": lambda value: value == "hidden",
    "mso-hide": lambda value: value == "all",
    **dict.fromkeys(("opacity", "zoom"), lambda value: _share(value) <= _MAX_SHARE),
    "scale": _is_tiny,
    **dict.fromkeys(("filter", "transform"), _in_functions("opacity$|scale", _is_tiny)),
    "font-size": lambda value: _pixels(value) <= _MAX_FONT_SIZE,
}
"""For each property that makes an element invisible, or too small to be seen, the test."""
_OFF_SCREEN_TESTS: Mapping[str, Callable[[str], bool]] = {
    **dict.fromkeys(("margin-left", "margin-top", "text-indent", "translate"), _is_far),
    "margin": _is_far_margin,
    "transform": _in_functions("translate", _is_far),
    "clip": _in_functions("", _is_empty_rectangle),
    "clip-path": _clips_all,
}
"""For each property that moves or clips an element out of the window, the test."""
_RELEVANT = {
    *(*_INVISIBLE_TESTS, *_OFF_SCREEN_TESTS, *COLOR_PROPERTIES, *_SIDES, *_OVERFLOWS, *_SIZES),
    *_TABLE["relevant"].split(),
}


def _number(value: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(value)
    return (float(match[1]), match[2] or "") if match else (0.0, "?")


def _pixels(value: str, unknown: float = float("inf")) -> float:
    """A length in pixels, or ``unknown``. A number without a unit counts as pixels."""
    amount, unit = _number(value)
    # `3svh` and `3dvw` are like `3vh` and `3vw`.
    factor = _UNITS.get(unit) or _UNITS.get(unit[1:])
    return unknown if factor is None or unit == "?" else amount * factor


def _share(value: str) -> float:
    """A number, or a percentage as a share; infinite if it is neither."""
    amount, unit = _number(value)
    return {"": amount, "%": amount / 100}.get(unit, float("inf"))


class Color(NamedTuple):
    """Red, green and blue from 0 to 255, and the opacity from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, background: Color) -> Color:
        """This color as it looks on an opaque background."""
        mixed = (
            own * self.alpha + below * (1 - self.alpha)
            for own, below in zip(self[:3], background[:3], strict=True)
        )
        return Color(*mixed)

    def distance(self, other: Color) -> float:
        """The largest difference of a channel between two opaque colors."""
        return max(abs(a - b) for a, b in zip(self[:3], other[:3], strict=True))


WHITE, BLACK = Color(255, 255, 255), Color(0, 0, 0)


@lru_cache(maxsize=4_096)
def color(value: str) -> Color | None:
    """The color of a value in lower case; ``None`` if it is not a color that is known here."""
    if value == "canvas":
        return WHITE
    found: Any = parse_color(value)
    if found is None or isinstance(found, str):  # Such as "currentcolor".
        return None
    if found.space not in {"srgb", "hsl", "hwb"}:
        return Color(0, 0, 0, 0) if found.alpha == 0 else None
    parts = found.to("srgb").coordinates
    red, green, blue = (255 * min(max(part or 0.0, 0.0), 1.0) for part in parts)
    return Color(red, green, blue, found.alpha)


# -- style sheets --
#
# The rules of a page's own style sheets: tinycss2 reads them, cssselect makes XPaths of them.


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
        important: the declarations that are ``!important``.
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
        nodes = tinycss2.parse_stylesheet(_LONG_NUMBER.sub("0", sheet))
        found = (rule for block in _blocks(nodes, "", _media(media)) for rule in _rules(*block))
        rules = tuple(islice(found, _MAX_RULES + 1))
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
    found = [
        child.replace("&", parent) if "&" in child else f"{parent} {child}"
        for parent in _split(outer)
        for child in _split(selectors)
    ]
    if sum(map(len, found)) > _MAX_NESTED_CHARS:
        raise UnreadableStyleError
    return ",".join(found)


_NOT_NOW = re.compile(rf"\b(?:{'|'.join(_TABLE['not_now'].split())})")


def _at_rule(keyword: str, condition: str) -> Applies:
    if keyword == "media":
        return _media(condition)
    return 0 if keyword == "layer" or (keyword == "supports" and "not" not in condition) else 1


def _media(condition: str) -> Applies:
    """When a media query applies. Of a list, the query that applies most often counts."""
    queries = {query.strip() for query in condition.lower().split(",")}
    if queries & {"", "all", "screen", "only screen", "not print", "not speech"}:
        return 0
    return 2 if all(map(_NOT_NOW.search, queries)) else 1


# What depends on the user. It is left out of a selector, so that it matches at any time.
_STATE = rf":(?:{'|'.join(_TABLE['states'].split())})(?![\w-])"
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
