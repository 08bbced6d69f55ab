"""CSS declarations, and whether they hide an element from people.

A value that cannot be computed here does not hide. Lengths are in CSS pixels of a window of 1280 by
800 and a font of 16 pixels.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

Declarations = Mapping[str, str]
"""The value of each property, both in lower case, without comments and escapes."""

FONT_SIZE = 16.0
WINDOW_WIDTH, WINDOW_HEIGHT = 1280.0, 800.0
# Elements and texts that are at most this large, in pixels or as a share, are not seen.
_MAX_FONT_SIZE = 2.0
_MAX_SIDE = 1.0
_MAX_OPACITY = 0.05
# Positions from which no part of an element is in the window, and those from which a part may be.
_OFF_SCREEN = 500.0
_MAYBE_OFF_SCREEN = 100.0
_BEYOND_WINDOW = 3_000.0
# The largest difference of a channel, of 255, at which a text cannot be distinguished from its
# background, and at which it hardly can.
SAME_COLOR = 20.0
SIMILAR_COLOR = 40.0

COLOR_PROPERTIES = frozenset(("color", "background-color", "background-image"))
INHERITED = frozenset(("visibility", "font-size", "color", "text-indent", "letter-spacing"))
"""Properties by which a descendant can be visible again."""

_SIDES = ("left", "right", "top", "bottom")
_HEIGHTS = ("height", "max-height", "block-size", "max-block-size")
_WIDTHS = ("width", "max-width", "inline-size", "max-inline-size")
_RELEVANT = frozenset(
    (
        *("display", "visibility", "opacity", "filter", "zoom", "mso-hide", "content-visibility"),
        *("font", "font-size", "letter-spacing", "color", "-webkit-text-fill-color"),
        *("background", "background-color", "background-image"),
        *("position", "inset", "margin", "margin-left", "margin-top", "text-indent", *_SIDES),
        *("overflow", "overflow-x", "overflow-y", "padding", "padding-bottom", "padding-top"),
        *("clip", "clip-path", "-webkit-clip-path", *_HEIGHTS, *_WIDTHS),
        *("transform", "-webkit-transform", "-ms-transform", "scale", "translate", "rotate"),
        *("text-shadow", "background-clip", "-webkit-background-clip"),
    )
)
_PREFIXED = frozenset(
    ("-webkit-transform", "-ms-transform", "-webkit-clip-path", "-webkit-background-clip")
)
_MAX_STYLE_CHARS = 100_000

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n\r\f]?|([^\n]))")
_DECLARATION = re.compile(r"""(?:[^;"'(]|"[^"]*"|'[^']*'|\((?:[^()]|\([^()]*\))*\))+""")
_IMPORTANT = re.compile(r"!\s*important\s*$")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z]+|%)?")
_FUNCTION = re.compile(r"([a-z0-9-]+)\(((?:[^()]|\([^()]*\))*)\)")
_UNITS = {
    **{"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945},
    **{"em": FONT_SIZE, "rem": FONT_SIZE, "ex": 8.0, "ch": 8.0, "lh": 20.0, "rlh": 20.0},
    **{"vw": WINDOW_WIDTH / 100, "vh": WINDOW_HEIGHT / 100, "vmin": 8.0, "vmax": 12.8},
}
_FONT_SIZES = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0}


def without_comments(css: str) -> str:
    """CSS with a space for each comment."""
    return _COMMENT.sub(" ", css) if "/*" in css else css


def unescaped(css: str) -> str:
    """CSS with its escapes decoded."""
    return _ESCAPE.sub(_decoded, css) if "\\" in css else css


def _decoded(match: re.Match[str]) -> str:
    if match[2] is not None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


@lru_cache(maxsize=4_096)
def declarations(style: str) -> Declarations:
    """The declarations of a style attribute that matter here. Shorthands are expanded."""
    normal, important = split_declarations(style)
    return {**normal, **important}


def split_declarations(style: str) -> tuple[Declarations, Declarations]:
    """The declarations that matter here, and those of them that are ``!important``."""
    normal: dict[str, str] = {}
    important: dict[str, str] = {}
    for part in _DECLARATION.findall(without_comments(style[:_MAX_STYLE_CHARS])):
        name, colon, value = part.partition(":")
        name = unescaped(name).strip().lower()
        if not colon or name not in _RELEVANT:
            continue
        value = unescaped(value).strip().lower()
        target = normal
        if _IMPORTANT.search(value):
            value, target = _IMPORTANT.sub("", value).strip(), important
        for long_name, long_value in _expanded(name, value):
            target[long_name] = long_value
    return normal, important


def _expanded(name: str, value: str) -> Iterator[tuple[str, str]]:
    """The longhand declarations of a declaration."""
    if name == "font":
        size = re.search(r"(?:^|\s)([\d.]+(?:[a-z]+|%)?)(?=\s*/|\s|$)", value)
        if size:
            yield "font-size", size[1]
    elif name == "background":
        has_image = "url(" in value or "gradient(" in value
        yield "background-image", value if has_image else "none"
        words = re.findall(r"[a-z0-9-]+\([^()]*\)|[^\s,/]+", value)
        yield "background-color", next((w for w in words if color(w)), "transparent")
    elif name == "inset":
        yield from zip(("top", "right", "bottom", "left"), _four_sides(value), strict=True)
    elif name == "margin":
        top, _, _, left = _four_sides(value)
        yield from (("margin-top", top), ("margin-left", left))
    elif name == "padding":
        top, _, bottom, _ = _four_sides(value)
        yield from (("padding-top", top), ("padding-bottom", bottom))
    elif name == "overflow":
        yield from (("overflow-x", value.partition(" ")[0]), ("overflow-y", value))
    elif name in _PREFIXED:
        yield name.removeprefix("-webkit-").removeprefix("-ms-"), value
    elif name == "-webkit-text-fill-color":
        yield "color", value
    else:
        yield name, value


def _four_sides(value: str) -> tuple[str, str, str, str]:
    """The values of a shorthand for top, right, bottom and left."""
    values = value.split()[:4] or ["0"]
    top = values[0]
    right = values[1] if len(values) > 1 else top
    bottom = values[2] if len(values) > 2 else top
    return top, right, bottom, values[3] if len(values) > 3 else right


class Hiding(NamedTuple):
    """How declarations hide an element.

    Attributes:
        kind: the kind of the finding.
        properties: the properties that hide it.
        is_certain: whether no part of the element can be seen.
    """

    kind: str
    properties: tuple[str, ...]
    is_certain: bool = True


def hiding(declared: Declarations) -> Hiding | None:
    """How these declarations hide an element, apart from its colors; ``None`` if they do not."""
    doubtful = None
    for rule in _RULES:
        result = rule(declared)
        if result is not None and result.is_certain:
            return result
        doubtful = doubtful or result
    return doubtful


def _invisible(*properties: str, is_certain: bool = True) -> Hiding:
    return Hiding("invisible_element", properties, is_certain)


def _off_screen(*properties: str, is_certain: bool = True) -> Hiding:
    return Hiding("off_screen_element", properties, is_certain)


def _by_keyword(declared: Declarations) -> Hiding | None:
    if declared.get("display") == "none":
        return _invisible("display")
    if declared.get("visibility") in {"hidden", "collapse"}:
        return _invisible("visibility")
    if declared.get("content-visibility") == "hidden":
        return _invisible("content-visibility")
    if declared.get("mso-hide") == "all":
        return _invisible("mso-hide")
    for name in ("display", "visibility", "opacity"):
        if declared.get(name, "").startswith("var("):
            return _invisible(name, is_certain=False)
    return None


def _by_opacity(declared: Declarations) -> Hiding | None:
    opacity = _share(declared.get("opacity", "1"))
    if opacity is not None and opacity <= _MAX_OPACITY:
        return _invisible("opacity")
    for name, arguments in _functions(declared.get("filter", "")):
        share = _share(arguments[0]) if name == "opacity" and arguments else None
        if share is not None and share <= _MAX_OPACITY:
            return _invisible("filter")
        if name.endswith("alpha") and re.fullmatch(r"opacity=[0-5]", "".join(arguments)):
            return _invisible("filter", is_certain=False)
    zoom = _share(declared.get("zoom", "1"))
    if zoom is not None and zoom <= _MAX_OPACITY:
        return _invisible("zoom")
    return None


def _by_size(declared: Declarations) -> Hiding | None:
    size = font_size(declared.get("font-size", ""))
    if size is not None and size <= _MAX_FONT_SIZE:
        return _invisible("font-size")
    spacing = _pixels(declared.get("letter-spacing", ""))
    if spacing is not None and spacing <= -FONT_SIZE:
        return _invisible("letter-spacing")
    for axis, names in (("overflow-y", _HEIGHTS), ("overflow-x", _WIDTHS)):
        if declared.get(axis, "").split(" ")[-1] not in {"hidden", "clip"}:
            continue
        # A box of no height with a padding keeps the proportions of what is laid over it.
        paddings = (_pixels(declared.get(name, "0")) for name in ("padding-top", "padding-bottom"))
        if axis == "overflow-y" and any(padding != 0 for padding in paddings):
            continue
        for name in names:
            side = _pixels(declared.get(name, ""))
            if side is not None and side <= _MAX_SIDE:
                return _invisible(name, axis)
    return None


def _by_transform(declared: Declarations) -> Hiding | None:
    for name, arguments in _functions(declared.get("transform", "")):
        if _shrinks(name, arguments):
            return _invisible("transform")
        if name.startswith("translate") and any(map(_is_far, arguments)):
            return _off_screen("transform")
    scales = declared.get("scale", "").split()
    if scales and _shrinks("scale", scales):
        return _invisible("scale")
    if any(map(_is_far, declared.get("translate", "").split())):
        return _off_screen("translate")
    return None


def _shrinks(name: str, arguments: list[str]) -> bool:
    if name.startswith("scale"):
        shares = [_share(argument) for argument in arguments[:2]]
    elif name in {"matrix", "matrix3d"}:
        numbers = [_share(argument) for argument in arguments]
        step = 3 if name == "matrix" else 5
        shares = [*numbers[0:1], *numbers[step : step + 1]]
        off_diagonal = numbers[1 : 3 if name == "matrix" else 2]
        if any(number for number in off_diagonal):
            return False
    elif name in {"rotatex", "rotatey"}:
        return arguments[:1] in (["90deg"], ["-90deg"], ["270deg"], ["100grad"], ["0.25turn"])
    else:
        return False
    return any(share is not None and abs(share) <= _MAX_OPACITY for share in shares)


def _by_position(declared: Declarations) -> Hiding | None:
    indent = declared.get("text-indent", "")
    if _is_far(indent):
        return _off_screen("text-indent")
    share = _percent(indent)
    if share is not None and abs(share) >= 100 and "hidden" in declared.get("overflow-x", ""):
        return _off_screen("text-indent", "overflow-x")
    for name in ("margin-left", "margin-top"):
        if _is_far(declared.get(name, "")):
            return _off_screen(name)
    if declared.get("position") not in {"absolute", "fixed", "relative", "sticky"}:
        return None
    doubtful = None
    for name in _SIDES:
        value = declared.get(name, "")
        if _is_far(value):
            return _off_screen(name, "position")
        pixels, share = _pixels(value), _percent(value)
        if (pixels is not None and pixels <= -_MAYBE_OFF_SCREEN) or (
            share is not None
            and (share <= -100 or share >= 100)
            and declared["position"] == "fixed"
        ):
            doubtful = _off_screen(name, "position", is_certain=False)
    return doubtful


def _by_clip(declared: Declarations) -> Hiding | None:
    for name, arguments in _functions(declared.get("clip", "")):
        sides = [_pixels(argument) for argument in arguments]
        if name != "rect" or len(sides) != 4 or None in sides:
            continue
        top, right, bottom, left = (side or 0.0 for side in sides)
        if right - left <= _MAX_SIDE or bottom - top <= _MAX_SIDE:
            return _off_screen("clip", is_certain=declared.get("position") in {"absolute", "fixed"})
    for name, arguments in _functions(declared.get("clip-path", "")):
        if _clips_all(name, arguments):
            return _off_screen("clip-path")
    return None


def _clips_all(name: str, arguments: list[str]) -> bool:
    if name == "inset":
        top, right, bottom, left = (
            (_percent(side) or 0.0) for side in _four_sides(" ".join(arguments))
        )
        return top + bottom >= 100 or left + right >= 100
    if name in {"circle", "ellipse"}:
        return any((_pixels(a) if _percent(a) is None else _percent(a)) == 0 for a in arguments[:1])
    if name == "polygon":
        points = [arguments[i : i + 2] for i in range(0, len(arguments) - 1, 2)]
        return len({point[0] for point in points}) <= 1 or len({point[1] for point in points}) <= 1
    return False


_RULES: tuple[Callable[[Declarations], Hiding | None], ...] = (
    _by_keyword,
    _by_opacity,
    _by_size,
    _by_transform,
    _by_position,
    _by_clip,
)


def _functions(value: str) -> Iterable[tuple[str, list[str]]]:
    """The functions of a value, each with its arguments."""
    for name, arguments in _FUNCTION.findall(value):
        yield name.rpartition(".")[2], re.findall(r"[^\s,]+", arguments)


def _is_far(value: str) -> bool:
    """Whether an element that is moved by this length is outside of the window."""
    pixels, share = _pixels(value), _percent(value)
    if pixels is not None:
        return pixels <= -_OFF_SCREEN or pixels >= _BEYOND_WINDOW
    return share is not None and (share <= -1_000 or share >= 1_000)


def _number(value: str) -> tuple[float, str] | None:
    value = value.strip()
    while value.startswith("calc(") and value.endswith(")"):
        value = value[5:-1].strip()
    match = _NUMBER.fullmatch(value)
    return (float(match[1]), match[2] or "") if match else None


def _pixels(value: str) -> float | None:
    number = _number(value)
    if number is None:
        return None
    amount, unit = number
    if not unit:
        # Only 0 is a length without a unit. Browsers in quirks mode take any number for pixels.
        return amount
    # `3svh` and `3dvw` are like `3vh` and `3vw`.
    factor = _UNITS.get(unit) or _UNITS.get(unit[1:])
    return None if factor is None else amount * factor


def _percent(value: str) -> float | None:
    number = _number(value)
    return number[0] if number is not None and number[1] == "%" else None


def _share(value: str) -> float | None:
    """A number, or a percentage as a share."""
    number = _number(value)
    if number is None or number[1] not in {"", "%"}:
        return None
    return number[0] / 100 if number[1] else number[0]


def font_size(value: str) -> float | None:
    """A font size in pixels if its parent has the usual size."""
    if value in _FONT_SIZES:
        return _FONT_SIZES[value]
    percent = _percent(value)
    return _pixels(value) if percent is None else FONT_SIZE * percent / 100


# Colors


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
_NAMED = dict(
    pair.split(":")
    for pair in (
        "canvas:ffffff black:000000 white:ffffff red:ff0000 lime:00ff00 blue:0000ff "
        "green:008000 yellow:ffff00 cyan:00ffff aqua:00ffff magenta:ff00ff fuchsia:ff00ff "
        "gray:808080 grey:808080 silver:c0c0c0 maroon:800000 olive:808000 purple:800080 "
        "teal:008080 navy:000080 orange:ffa500 pink:ffc0cb brown:a52a2a gold:ffd700 snow:fffafa "
        "ivory:fffff0 whitesmoke:f5f5f5 ghostwhite:f8f8ff floralwhite:fffaf0 azure:f0ffff "
        "mintcream:f5fffa aliceblue:f0f8ff honeydew:f0fff0 seashell:fff5ee oldlace:fdf5e6 "
        "linen:faf0e6 lavenderblush:fff0f5 cornsilk:fff8dc lightyellow:ffffe0 beige:f5f5dc "
        "lightcyan:e0ffff lavender:e6e6fa gainsboro:dcdcdc lightgray:d3d3d3 lightgrey:d3d3d3 "
        "darkgray:a9a9a9 darkgrey:a9a9a9 dimgray:696969 dimgrey:696969 darkslategray:2f4f4f "
        "darkslategrey:2f4f4f midnightblue:191970 darkblue:00008b darkgreen:006400 "
        "darkred:8b0000 indigo:4b0082 crimson:dc143c tomato:ff6347 coral:ff7f50 salmon:fa8072 "
        "khaki:f0e68c violet:ee82ee orchid:da70d6 steelblue:4682b4 royalblue:4169e1 "
        "skyblue:87ceeb lightblue:add8e6 lightgreen:90ee90 antiquewhite:faebd7 bisque:ffe4c4 "
        "moccasin:ffe4b5 tan:d2b48c"
    ).split()
)


@lru_cache(maxsize=4_096)
def color(value: str) -> Color | None:
    """The color of a value in lower case; ``None`` if it is not a color that is known here."""
    value = value.strip()
    if value == "transparent":
        return Color(0, 0, 0, 0)
    if value.startswith("#"):
        return _hexadecimal(value[1:])
    if value in _NAMED:
        return _hexadecimal(_NAMED[value])
    function = _FUNCTION.fullmatch(value)
    if function is None:
        return None
    parts = re.findall(r"[^\s,/]+", function[2])
    alpha = _share(parts[3]) if len(parts) > 3 else 1.0
    if len(parts) < 3 or alpha is None:
        return None
    alpha = min(max(alpha, 0.0), 1.0)
    if function[1] in {"rgb", "rgba"}:
        channels = [
            255 * percent / 100 if (percent := _percent(part)) is not None else _share(part)
            for part in parts[:3]
        ]
        red, green, blue = channels
        if red is None or green is None or blue is None:
            return None
        return Color(red, green, blue, alpha)
    if function[1] in {"hsl", "hsla"}:
        hue, saturation, lightness = (_number(part) for part in parts[:3])
        if hue and saturation and lightness:
            rgb = colorsys.hls_to_rgb(hue[0] / 360 % 1, lightness[0] / 100, saturation[0] / 100)
            red, green, blue = (255 * channel for channel in rgb)
            return Color(red, green, blue, alpha)
    # In other notations an opacity of 0 is as transparent.
    return Color(0, 0, 0, 0) if alpha == 0 else None


def _hexadecimal(digits: str) -> Color | None:
    if len(digits) in {3, 4}:
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) not in {6, 8} or not re.fullmatch(r"[0-9a-f]+", digits):
        return None
    red, green, blue = (int(digits[i : i + 2], 16) for i in (0, 2, 4))
    return Color(red, green, blue, int(digits[6:], 16) / 255 if len(digits) == 8 else 1.0)
