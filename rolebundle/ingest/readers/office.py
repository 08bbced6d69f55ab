"""What the formats of Office Open XML share: their parts, colors and diagrams."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rolebundle.ingest.readers.extracted import HiddenTexts
from rolebundle.ingest.readers.package import Package, local_name, number_in, properties_of
from rolebundle.scan.hidden_style import Color, color

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"

_UNSHOWN = re.compile(
    r"(?:^|/)(?:(?:modern)?comments?[^/]*|threadedcomments?/[^/]+|docprops/custom)\.xml$",
    re.IGNORECASE,
)

Theme = Mapping[str, Color]
"""The colors of a theme by their names, such as ``accent1``."""


def main_part(package: Package, default: str, hidden: HiddenTexts) -> tuple[str, dict[str, Any]]:
    """The name of the main part, and the properties of the document.

    Args:
        package: the file.
        default: the usual name of the main part.
        hidden: gets the comments.

    Raises:
        ValueError: there is no main part.
    """
    kinds = dict(package.relations("").values())
    main = kinds.get("officeDocument", default)
    if main not in package:
        raise ValueError(f"it has no {main}")
    for text in _comments(package):
        hidden.add("comment", text, is_usual=True)
    return main, properties_of(package.parse(kinds.get("core-properties", "docProps/core.xml")))


def _comments(package: Package) -> Iterator[str]:
    """The texts of comments and of properties that people define, which no reader shows."""
    for name in package.names():
        if _UNSHOWN.search(name):
            text = " ".join(" ".join(package.parse(name).itertext()).split())
            if text:
                yield text


def theme_of(package: Package, name: str) -> Theme:
    """The colors of the theme in the member ``name``."""
    scheme = next(package.parse(name).iter(f"{_A}clrScheme"), ())
    colors = {}
    for entry in scheme:
        for value in entry:
            found = hex_color(value.get("lastClr") or value.get("val"))
            if found is not None:
                colors[local_name(entry)] = found
    return colors


def hex_color(value: str | None) -> Color | None:
    """A color of six or, with the opacity first, eight hexadecimal digits."""
    if value and len(value) == 8:
        value = value[2:]
    return color(f"#{value.lower()}") if value and len(value) == 6 else None


def fill_color(fill: Any, theme: Theme) -> Color | None:
    """The color of an ``a:solidFill``; ``None`` if it is not known."""
    for value in fill:
        name = local_name(value)
        if name == "srgbClr":
            found = hex_color(value.get("val"))
        elif name == "schemeClr":
            found = theme.get(value.get("val", ""))
        elif name == "sysClr":
            found = hex_color(value.get("lastClr"))
        elif name == "prstClr":
            found = color(value.get("val", "").lower())
        else:
            found = None
        return None if found is None else _changed(found, value)
    return None


def _changed(found: Color, value: Any) -> Color:
    """A color with its changes of lightness and opacity."""
    red, green, blue, alpha = found
    for change in value:
        name, amount = local_name(change), number_in(change.get("val"), 100_000) / 100_000
        if name == "alpha":
            alpha = amount
        elif name in {"lumMod", "lumOff"}:
            hue, light, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
            light = light * amount if name == "lumMod" else light + amount
            rgb = colorsys.hls_to_rgb(hue, min(max(light, 0.0), 1.0), saturation)
            red, green, blue = (255 * channel for channel in rgb)
        elif name == "shade":
            red, green, blue = (channel * amount for channel in (red, green, blue))
        elif name == "tint":
            red, green, blue = (255 - (255 - channel) * amount for channel in (red, green, blue))
    return Color(red, green, blue, alpha)


def diagram_text(root: Any) -> str:
    """The texts of a diagram, one line for each of its points."""
    lines = []
    for point in root.iter():
        if local_name(point) == "pt" and point.get("type", "node") in {"node", "asst"}:
            text = " ".join("".join(_texts(point)).split())
            if text:
                lines.append(text)
    return "\n".join(lines)


def _texts(element: Any) -> Iterator[str]:
    for part in element.iter(f"{_A}t", f"{_A}p"):
        yield (part.text or "") if part.tag == f"{_A}t" else " "
