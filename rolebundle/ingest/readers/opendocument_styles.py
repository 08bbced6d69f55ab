"""The styles of OpenDocument files: how a text looks, and whether it can be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rolebundle.ingest.readers.package import local_name, number_in
from rolebundle.scan.hidden_style import color

NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, DRAW, STYLE = (
    f"{{{NAMES}{name}:1.0}}" for name in ("text", "table", "drawing", "style")
)
PRESENTATION = f"{{{NAMES}presentation:1.0}}"
FO = f"{{{NAMES}xsl-fo-compatible:1.0}}"
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {
    "cm": 1.0,
    "mm": 0.1,
    "in": 2.54,
    "pt": 0.0353,
    "pc": 0.423,
    "px": 0.0265,
    None: 1.0,
}


def centimetres(value: str | None) -> float | None:
    """A length in centimetres; ``None`` if it is missing or malformed."""
    match = _LENGTH.fullmatch(value or "")
    return number_in(match[1], 0) * _CENTIMETRES[match[2]] if match else None


Look = Mapping[str, Any]
"""``hidden``, ``color``, ``fill`` and ``size`` of a text, as far as they are known."""


class Styles:
    """The styles of a document, by family and name."""

    def __init__(self) -> None:
        self._elements: dict[tuple[str, str], Any] = {}
        self._lists: dict[str, Any] = {}
        self._looks: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, root: Any) -> None:
        """Add all styles below ``root``."""
        for style in root.iter(f"{STYLE}style", f"{STYLE}default-style"):
            key = style.get(f"{STYLE}family", ""), style.get(f"{STYLE}name", "")
            self._elements[key] = style
        for style in root.iter(f"{TEXT}list-style"):
            self._lists[style.get(f"{STYLE}name", "")] = style

    def look(self, family: str, name: str | None) -> Look:
        """The look that a style gives, with what it inherits."""
        key = family, name or ""
        if key in self._looks:
            return self._looks[key]
        chain = []
        element = self._elements.get(key)
        while element is not None and element not in chain:
            chain.append(element)
            parent = element.get(f"{STYLE}parent-style-name")
            element = self._elements.get((family, parent)) if parent else None
        default = self._elements.get((family, ""))
        if default is not None and default not in chain:
            chain.append(default)
        look: dict[str, Any] = {}
        for element in reversed(chain):
            look |= _own_look(element)
        self._looks[key] = look
        return look

    def base_name(self, name: str | None) -> str:
        """The name of a paragraph's style; of an automatic one, that of its parent."""
        element = self._elements.get(("paragraph", name or ""))
        parent = "" if element is None else element.get(f"{STYLE}parent-style-name", "")
        return (parent if re.fullmatch(r"P\d+", name or "") else name or "").lower()

    def used_masters(self) -> set[str]:
        """The names of the master pages that styles refer to."""
        name = f"{STYLE}master-page-name"
        return {value for style in self._elements.values() if (value := style.get(name))}

    def list_level(self, name: str, level: int) -> Any:
        """The definition of a list's level; ``None`` if there is none."""
        for definition in self._lists.get(name, ()):
            if definition.get(f"{TEXT}level") == str(level):
                return definition
        return None


def _own_look(style: Any) -> dict[str, Any]:  # noqa: PLR0912
    look: dict[str, Any] = {}
    for properties in style:
        name = local_name(properties)
        if name == "text-properties":
            if properties.get(f"{TEXT}display") is not None:
                look["hidden"] = properties.get(f"{TEXT}display") == "none"
            if found := properties.get(f"{FO}color"):
                look["color"] = color(found.lower())
            size = centimetres(properties.get(f"{FO}font-size"))
            if size is not None:
                look["size"] = size / _CENTIMETRES["pt"]
            elif (share := properties.get(f"{FO}font-size", "")).endswith("%"):
                look["size"] = 12.0 * number_in(share[:-1], 100) / 100
            scale = properties.get(f"{STYLE}text-scale", "100%")
            if number_in(scale.rstrip("%"), 100) <= 5:
                look["hidden"] = True
            # LibreOffice writes an opacity of 0 for texts in the automatic color.
            is_automatic = properties.get(f"{STYLE}use-window-font-color") == "true"
            for key, value in properties.attrib.items():
                if (
                    key.endswith("}opacity")
                    and number_in(value.rstrip("%"), 100) <= 5
                    and not is_automatic
                ):
                    look["hidden"] = True
            if is_automatic:
                look["color"] = None
        if name == "graphic-properties" and properties.get(f"{DRAW}fill"):
            solid = properties.get(f"{DRAW}fill") == "solid"
            look["fill"] = color(properties.get(f"{DRAW}fill-color", "").lower()) if solid else None
            if properties.get(f"{DRAW}fill") == "none":
                del look["fill"]
        found = properties.get(f"{FO}background-color")
        if found and found != "transparent":
            look["fill"] = color(found.lower())
        for key, hides in (("display", "false"), ("visibility", "hidden")):
            for names in (TABLE, PRESENTATION):
                if properties.get(names + key) == hides:
                    look["hidden"] = True
        if properties.get(f"{FO}line-height") and name == "paragraph-properties":
            height = centimetres(properties.get(f"{FO}line-height"))
            if height is not None and height < 0.07:
                look["hidden"] = True
    return look
