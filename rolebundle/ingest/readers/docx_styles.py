"""Styles and numbers of Word documents: how a text looks, and the labels of lists and headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rolebundle.ingest.readers.office import Look, hex_color
from rolebundle.ingest.readers.package import integer_in, local_name, number_in
from rolebundle.scan.hidden_style import color

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
_MAX_TINY_HEIGHT = 40  # twentieths of a point
_MAX_WIDTH = 5  # percent
_ON_PAGE = (-10_000, 31_000)  # twentieths of a point

# Looks


def is_on(element: Any) -> bool:
    """Whether an element switches its property on."""
    return element.get(VAL, "1").lower() not in {"0", "false", "off", "none"}


def _number(element: Any, name: str, default: float) -> float:
    return number_in(element.get(W + name, "").rstrip("%"), default)


def _vanish(item: Any) -> Look:
    return {"vanish": is_on(item)}


def _fill(item: Any) -> Look:
    found = hex_color(item.get(f"{W}fill"))
    return {} if found is None else {"fill": found}


def _text_fill(item: Any) -> Look:
    alphas = (value for part in item.iter("{*}alpha") for value in part.attrib.values())
    is_clear = item.find("{*}noFill") is not None or any(
        number_in(value, 0) >= 95_000 for value in alphas
    )
    return {"hidden": True} if is_clear else {}


def _exact(item: Any) -> Look:
    """The height of a line or row."""
    is_row = local_name(item) == "trHeight"
    rule, height = ("hRule", "val") if is_row else ("lineRule", "line")
    is_flat = item.get(W + rule) == "exact" and _number(item, height, 1000) <= _MAX_TINY_HEIGHT
    return {"away" if is_row else "hidden": "invisible_element"} if is_flat else {}


def _place(item: Any) -> Look:
    """The frame or the indent of a paragraph."""
    places = [_number(item, name, 0) for name in ("x", "y", "left", "start")]
    return {} if all(_ON_PAGE[0] < place < _ON_PAGE[1] for place in places) else {"hidden": True}


def _outline(item: Any) -> Look:
    value = item.get(VAL, "")
    return {"level": int(value) + 1} if value.isdigit() and int(value) < 9 else {}


def _list(item: Any) -> Look:
    number, level = value_of(item, "numId"), value_of(item, "ilvl")
    look: Look = {"list_level": int(level) if level.isdigit() else 0}
    return {**look, "list": number} if number else look


_READ: Mapping[str, Callable[[Any], Look]] = {
    "vanish": _vanish,
    "specVanish": _vanish,
    "color": lambda item: {"color": hex_color(item.get(VAL))},
    "sz": lambda item: {"size": _number(item, "val", 20) / 2},
    "w": lambda item: {"hidden": True} if _number(item, "val", 100) <= _MAX_WIDTH else {},
    "shd": _fill,
    "highlight": lambda item: (
        {} if item.get(VAL) == "none" else {"fill": color(item.get(VAL, "").lower())}
    ),
    "textFill": _text_fill,
    "spacing": _exact,
    "trHeight": _exact,
    "framePr": _place,
    "ind": _place,
    "outlineLvl": _outline,
    "numPr": _list,
    "hidden": lambda item: {"away": "invisible_element"} if is_on(item) else {},
    "vMerge": lambda item: {} if item.get(VAL) == "restart" else {"away": "invisible_element"},
}


def properties_look(properties: Any) -> dict[str, Any]:
    """The look that the properties of a run, paragraph, table, row or cell set."""
    look: dict[str, Any] = {}
    for item in properties:
        if read := _READ.get(local_name(item)):
            look.update(read(item))
    return look


class Styles:
    """The styles of a document, by id."""

    def __init__(self, root: Any) -> None:
        self._elements = {style.get(f"{W}styleId", ""): style for style in root.iter(f"{W}style")}
        self._looks: dict[str, Look] = {}
        default = root.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
        self._default: Look = {} if default is None else properties_look(default)
        self._default_paragraph = next(
            (
                key
                for key, style in self._elements.items()
                if style.get(f"{W}type") == "paragraph"
                and style.get(f"{W}default") in {"1", "true"}
            ),
            "",
        )

    def _chain(self, key: str) -> list[str]:
        """A style and those on which it is based, the last one first."""
        chain: list[str] = []
        while key in self._elements and key not in chain:
            chain.insert(0, key)
            key = value_of(self._elements[key], "basedOn")
        return chain

    def look(self, style_id: str) -> Look:
        """What a style and those on which it is based set."""
        if style_id not in self._looks:
            look: dict[str, Any] = {}
            for key in self._chain(style_id):
                element = self._elements[key]
                look["style"] = value_of(element, "name").lower()
                if match := re.fullmatch(r"heading (\d)", look["style"]):
                    look["level"] = int(match[1])
                for name in ("pPr", "rPr"):
                    properties = element.find(W + name)
                    look |= {} if properties is None else properties_look(properties)
            self._looks[style_id] = look
        return self._looks[style_id]

    def paragraph_look(self, style_id: str) -> Look:
        """The look of a paragraph with a style; empty for the default one."""
        return {**self._default, **self.look(style_id or self._default_paragraph)}

    def table_look(self, style_id: str) -> Look:
        """The look of a table: what is behind its cells is not known if its style has shades."""
        elements = [self._elements[key] for key in self._chain(style_id)]
        is_shaded = any(_fill(shade) for style in elements for shade in style.iter(f"{W}shd"))
        return {"fill": None} if is_shaded else {}


def value_of(element: Any, name: str) -> str:
    """The value of the child called ``name``; empty if there is none."""
    child = element.find(W + name)
    return "" if child is None else child.get(VAL, "")


# Numbers of lists


def _roman(number: int) -> str:
    digits = ""
    for value, letters in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "m cm d cd c xc l xl x ix v iv i".split(),
        strict=True,
    ):
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
_MAX_LETTERED = 4_000


class Numbering:
    """The labels of numbered paragraphs, such as ``4.2``, as Word counts them."""

    def __init__(self, root: Any) -> None:
        definitions = {item.get(f"{W}abstractNumId"): item for item in root.iter(f"{W}abstractNum")}
        self._lists: dict[str, tuple[str, dict[int, Any]]] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        # For each list, how far each of its levels that have begun has been counted.
        self._counts: dict[str, dict[int, int]] = {}
        for item in root.iter(f"{W}num"):
            number, abstract = item.get(f"{W}numId", ""), value_of(item, "abstractNumId")
            overrides = list(item.iter(f"{W}lvlOverride"))
            own = [level for override in overrides for level in override]
            levels = [*definitions.get(abstract, ()), *own]
            self._lists[number] = (
                abstract,
                {_level(level): level for level in levels if level.tag == f"{W}lvl"},
            )
            self._restarts[number] = {
                _level(override): int(start)
                for override in overrides
                if (start := value_of(override, "startOverride")).isdigit()
            }

    def label(self, number: str, level: int) -> str:
        """The label of the next paragraph; empty for one without a number or bullet."""
        if number not in self._lists or not 0 <= level < 9:
            return ""
        abstract, levels = self._lists[number]
        counts = self._counts.setdefault(abstract, {})
        for at, start in self._restarts.pop(number, {}).items():
            self._end_below(counts, at)
            counts[at] = start - 1
        for at in range(level + 1):
            start = "1" if at not in levels else value_of(levels[at], "start")
            counts.setdefault(at, (int(start) if start.isdigit() else 1) - (at == level))
        counts[level] += 1
        self._end_below(counts, level)
        forms = {at: value_of(item, "numFmt") for at, item in levels.items()}
        if forms.get(level, "bullet") in {"bullet", "none"}:
            return "" if forms.get(level) == "none" else "-"

        def written(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            count = counts.get(at, 0)
            form = _FORMATS.get(forms.get(at, ""), str)
            return form(count) if 0 < count < _MAX_LETTERED else str(count)

        return re.sub(r"%([1-9])", written, value_of(levels[level], "lvlText")).strip()

    def _end_below(self, counts: dict[int, int], level: int) -> None:
        for at in range(level + 1, 9):
            counts.pop(at, None)


def _level(element: Any) -> int:
    return integer_in(element.get(f"{W}ilvl"), 0)
