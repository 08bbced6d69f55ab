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

_FONT_SIZE = 12.0  # points
_MIN_HEIGHT = 0.07  # centimetres
_MAX_SHARE = 5  # percent


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
        base = parent if re.fullmatch(r"P\d+", name or "") else name or ""
        return base.replace("_20_", " ").lower()

    def used_masters(self) -> set[str]:
        """The names of the master pages that styles refer to."""
        name = f"{STYLE}master-page-name"
        return {value for style in self._elements.values() if (value := style.get(name))}

    def list_form(self, name: str, level: int) -> tuple[str, str]:
        """The format of the numbers of a list's level, and what follows them; empty for bullets."""
        for definition in self._lists.get(name, ()):
            if definition.get(f"{TEXT}level") == str(level):
                if local_name(definition).endswith("number"):
                    form = definition.get(f"{STYLE}num-format", "1")
                    return form, definition.get(f"{STYLE}num-suffix", ".")
                break
        return "", ""


def _own_look(style: Any) -> dict[str, Any]:
    look: dict[str, Any] = {}
    for properties in style:
        values = {key.rpartition("}")[2]: value for key, value in properties.attrib.items()}
        if values.get("display") == "false" or values.get("visibility") == "hidden":
            look["hidden"] = True
        if local_name(properties) == "text-properties":
            look |= _text_look(values)
        if local_name(properties) == "paragraph-properties":
            height = centimetres(values.get("line-height"))
            look |= {"hidden": True} if height is not None and height < _MIN_HEIGHT else {}
        background = values.get("background-color", "transparent")
        if values.get("fill", "none") != "none":
            background = values.get("fill-color", "") if values["fill"] == "solid" else ""
        if background != "transparent":
            look["fill"] = color(background.lower())
    return look


def _text_look(values: Mapping[str, str]) -> dict[str, Any]:
    look: dict[str, Any] = {}
    if "display" in values:
        look["vanish"] = values["display"] == "none"
    size = values.get("font-size", "")
    if size.endswith("%"):
        look["size"] = _FONT_SIZE * number_in(size[:-1], 100) / 100
    elif (length := centimetres(size)) is not None:
        look["size"] = length / _CENTIMETRES["pt"]
    # LibreOffice writes an opacity of 0 for texts in the automatic color.
    is_automatic = values.get("use-window-font-color") == "true"
    if is_automatic or "color" in values:
        look["color"] = None if is_automatic else color(values["color"].lower())
    shares = [values.get("text-scale", ""), "" if is_automatic else values.get("opacity", "")]
    if any(number_in(share.rstrip("%"), 100) <= _MAX_SHARE for share in shares):
        look["hidden"] = True
    return look
