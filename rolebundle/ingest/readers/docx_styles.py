"""Styles and numbers of Word documents: how a text looks, and the labels of lists and headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rolebundle.ingest.readers.extracted import hidden_kind
from rolebundle.ingest.readers.office import hex_color
from rolebundle.ingest.readers.package import integer_in, local_name, number_in
from rolebundle.scan.hidden_style import Color, color

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
_OFF = frozenset(("0", "false", "off", "none"))

# Looks

Look = Mapping[str, Any]
"""What is known of how a text looks: ``hidden``, ``color``, ``fill``, ``size``, ``width``."""
PLAIN: Look = {}


def is_on(element: Any) -> bool:
    """Whether an element switches its property on."""
    return element.get(VAL, "1").lower() not in _OFF


def look_of(properties: Any) -> dict[str, Any]:
    """The look that a ``w:rPr`` sets."""
    found: dict[str, Any] = {}
    for item in properties:
        name = local_name(item)
        if name in {"vanish", "specVanish"}:
            found["hidden"] = is_on(item)
        elif name == "color":
            found["color"] = hex_color(item.get(VAL))
        elif name == "sz":
            found["size"] = number_in(item.get(VAL), 20) / 2
        elif name == "w":
            found["width"] = number_in(item.get(VAL, "").rstrip("%"), 100)
        elif name == "shd":
            found["fill"] = hex_color(item.get(f"{W}fill"))
        elif name == "highlight" and item.get(VAL) != "none":
            found["fill"] = color(item.get(VAL, "").lower())
        elif name == "textFill":
            alphas = [part for part in item.iter() if local_name(part) == "alpha"]
            found["clear"] = any(local_name(part) == "noFill" for part in item) or any(
                number_in(value, 0) >= 95_000
                for part in alphas
                for key, value in part.attrib.items()
                if key.endswith("val")
            )
    return {key: value for key, value in found.items() if value is not None or key == "color"}


def kind_of(look: Look, background: Color | None) -> str:
    """How a look hides a text on a background; empty if it does not."""
    if look.get("hidden") or look.get("clear") or look.get("width", 100.0) <= 5:
        return "invisible_element"
    return hidden_kind(look.get("color"), look.get("fill", background), look.get("size"))


@dataclass(frozen=True, slots=True)
class Style:
    """A style with what it inherits."""

    name: str = ""
    level: int = 0
    look: Look = field(default_factory=dict)
    numbering: tuple[str, int] | None = None
    fill: Color | None = None
    is_shaded: bool = False


class Styles:
    """The styles of a document, by id."""

    def __init__(self, root: Any) -> None:
        self._elements = {style.get(f"{W}styleId", ""): style for style in root.iter(f"{W}style")}
        self._found: dict[str, Style] = {"": Style()}
        default = root.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
        self.default_look: Look = {} if default is None else look_of(default)
        self.default_paragraph = next(
            (
                key
                for key, style in self._elements.items()
                if style.get(f"{W}type") == "paragraph"
                and style.get(f"{W}default") in {"1", "true"}
            ),
            "",
        )

    def get(self, style_id: str) -> Style:
        """The style with this id."""
        chain: list[str] = []
        key = style_id
        while key not in self._found and key in self._elements and key not in chain:
            chain.append(key)
            key = value_of(self._elements[key], "basedOn")
        style = self._found.get(key, Style())
        for key in reversed(chain):
            style = self._found[key] = self._derived(style, self._elements[key])
        return style

    def _derived(self, parent: Style, element: Any) -> Style:
        run, paragraph = element.find(f"{W}rPr"), element.find(f"{W}pPr")
        name = value_of(element, "name").lower()
        level, numbering, fill = parent.level, parent.numbering, parent.fill
        if paragraph is not None:
            level = outline_level(paragraph) or level
            numbering = numbering_of(paragraph, numbering) or numbering
            fill = shading_of(paragraph) or fill
        if match := re.fullmatch(r"heading (\d)", name):
            level = level or int(match[1])
        look = {**parent.look, **(look_of(run) if run is not None else {})}
        is_shaded = parent.is_shaded or any(
            hex_color(shading.get(f"{W}fill")) is not None for shading in element.iter(f"{W}shd")
        )
        return Style(name, level, look, numbering, fill, is_shaded)


def value_of(element: Any, name: str) -> str:
    """The value of the child called ``name``; empty if there is none."""
    child = element.find(W + name)
    return "" if child is None else child.get(VAL, "")


def outline_level(properties: Any) -> int:
    """The level of a heading, from 1; 0 if it is none."""
    value = value_of(properties, "outlineLvl")
    return int(value) + 1 if value.isdigit() and int(value) < 9 else 0


def numbering_of(properties: Any, inherited: tuple[str, int] | None) -> tuple[str, int] | None:
    """The list of a paragraph and its level in it, from 0; ``None`` if it sets none."""
    element = properties.find(f"{W}numPr")
    if element is None:
        return None
    number, level = value_of(element, "numId"), value_of(element, "ilvl")
    return number or (inherited[0] if inherited else ""), int(level) if level.isdigit() else 0


def shading_of(properties: Any) -> Color | None:
    """The color behind a paragraph, a cell or a table, if it sets one."""
    element = properties.find(f"{W}shd")
    return None if element is None else hex_color(element.get(f"{W}fill"))


# Numbers of lists

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


def _roman(number: int) -> str:
    if not 0 < number < 4000:
        return str(number)
    digits = ""
    for value, letters in _ROMAN:
        digits += letters * (number // value)
        number %= value
    return digits


def _letter(number: int) -> str:
    return chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 % 9 + 1)


_FORMATS: Mapping[str, Callable[[int], str]] = {
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "lowerLetter": _letter,
    "upperLetter": lambda number: _letter(number).upper(),
    "decimalZero": lambda number: f"{number:02}",
}


class Numbering:
    """The labels of numbered paragraphs, such as ``4.2``, as Word counts them."""

    def __init__(self, root: Any) -> None:
        definitions = {item.get(f"{W}abstractNumId"): item for item in root.iter(f"{W}abstractNum")}
        self._lists: dict[str, tuple[str, dict[int, tuple[int, str, str]]]] = {}
        self._counts: dict[str, list[int]] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        for item in root.iter(f"{W}num"):
            number, abstract = item.get(f"{W}numId", ""), value_of(item, "abstractNumId")
            levels = dict(
                map(_level, definitions.get(abstract, ())) if abstract in definitions else ()
            )
            restarts = {}
            for override in item.iter(f"{W}lvlOverride"):
                at = integer_in(override.get(f"{W}ilvl"), 0)
                start = value_of(override, "startOverride")
                if start.isdigit() and 0 <= at < 9:
                    restarts[at] = int(start)
                for level in override.iter(f"{W}lvl"):
                    levels.update([_level(level)])
            levels.pop(-1, None)
            self._lists[number] = (abstract, levels)
            self._restarts[number] = restarts

    def label(self, number: str, level: int) -> str:
        """The label of the next paragraph; empty for one without a number or bullet."""
        if number not in self._lists or not 0 <= level < 9:
            return ""
        abstract, levels = self._lists[number]
        counts = self._counts.setdefault(abstract, [0] * 9)
        for at, start in self._restarts.pop(number, {}).items():
            counts[at] = start - 1
            counts[at + 1 :] = [0] * (8 - at)
        for at in range(level + 1):
            start = levels.get(at, (1, "", ""))[0]
            if at == level:
                counts[at] = counts[at] + 1 if counts[at] else start
            else:
                counts[at] = counts[at] or start
        counts[level + 1 :] = [0] * (8 - level)
        _, form, text = levels.get(level, (1, "bullet", ""))
        if form == "bullet":
            return "-"
        if form == "none":
            return ""

        def written(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            return _FORMATS.get(levels.get(at, (1, "", ""))[1], str)(counts[at])

        return re.sub(r"%([1-9])", written, text).strip()


def _level(element: Any) -> tuple[int, tuple[int, str, str]]:
    if element.tag != f"{W}lvl":
        return -1, (1, "", "")
    start = value_of(element, "start")
    number = int(start) if start.isdigit() else 1
    level = integer_in(element.get(f"{W}ilvl"), 0)
    return level, (number, value_of(element, "numFmt"), value_of(element, "lvlText"))
