"""What Word, PowerPoint and Excel files (Office Open XML) share: properties, colors, symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rolebundle.ingest.readers import data_file
from rolebundle.ingest.readers.office import Look, Walk
from rolebundle.ingest.readers.package import Package, local_name, number_in, properties_of
from rolebundle.scan.hidden_style import Color, color

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_UNSHOWN = re.compile(
    r"(?:^|/)(?:(?:modern)?comments?[^/]*|threadedcomments?/[^/]+|docprops/custom)\.xml$",
    re.IGNORECASE,
)

Theme = Mapping[str, Color]
"""The colors of a theme by their names, such as ``accent1``."""


def main_part(walk: Walk, default: str) -> tuple[str, dict[str, Any]]:
    """The name of the main part, and the properties of the document.

    Args:
        walk: the reader; it gets comments and properties that people define, which none shows.
        default: the usual name of the main part.

    Raises:
        ValueError: there is no main part.
    """
    package = walk.package
    kinds = dict(package.relations("").values())
    main = kinds.get("officeDocument", default)
    if main not in package:
        raise ValueError(f"it has no {main}")
    properties = [*package.parse(kinds.get("core-properties", "docProps/core.xml"))]
    for name in filter(_UNSHOWN.search, package.names()):
        part = package.parse(name)
        properties += part.iterfind("{*}property")
        walk.blocks.hide("comment", " ".join(part.itertext()))
    return main, properties_of(properties)


def theme_of(package: Package, name: str) -> Theme:
    """The colors of the theme in the member ``name``."""
    return {
        local_name(entry): found
        for entry in next(package.parse(name).iter("{*}clrScheme"), ())
        for value in entry
        if (found := hex_color(value.get("lastClr") or value.get("val")))
    }


def hex_color(value: str | None) -> Color | None:
    """A color of six or, with the opacity first, eight hexadecimal digits."""
    return color(f"#{value[-6:].lower()}") if value and len(value) in {6, 8} else None


def fill_color(fill: Any, theme: Theme) -> Color | None:
    """The color of an ``a:solidFill``; ``None`` if it is not known, as of one that is changed."""
    for value in fill:
        name = value.get("val", "")
        found = theme.get(name) or hex_color(value.get("lastClr") or name) or color(name.lower())
        for change in value:
            if local_name(change) != "alpha":
                return None
            found = found and found._replace(alpha=number_in(change.get("val"), 100_000) / 100_000)
        return found
    return None


def shape_fill(shape: Any, theme: Theme) -> tuple[bool, Color | None]:
    """Whether a shape is filled, and its color if it is known. Pictures and charts are filled."""
    if local_name(shape) in {"pic", "graphicFrame"}:
        return True, None
    for part in shape.iterfind("{*}spPr/*"):
        name = local_name(part)
        if name.endswith("Fill"):
            return name != "noFill", fill_color(part, theme) if name == "solidFill" else None
    style = shape.find("{*}style/{*}fillRef")
    if style is not None and style.get("idx", "0") != "0":
        return True, fill_color(style, theme)
    return False, None


# Characters of fonts of symbols, whose texts are letters or private characters


_PRIVATE = 0xF000


def _table(rows: Mapping[str, str]) -> Mapping[int, str]:
    """A table for ``str.translate`` from rows of characters, each with the code of its first."""
    pairs = [
        (int(first, 16) + n, sign) for first, row in rows.items() for n, sign in enumerate(row)
    ]
    return {start + code: sign for code, sign in pairs if sign != " " for start in (0, _PRIVATE)}


SYMBOLS = {font: _table(rows) for font, rows in data_file("symbols.toml").items()}
"""The characters of a font, whose name is in lower case."""


def script(rise: float) -> Look:
    """The look of characters that are raised, or lowered by a negative number."""
    return {"script": "raised" if rise > 0 else "lowered" if rise < 0 else ""}


def translated(text: str | None, font: str | None) -> str:
    """The characters of a text in a font that may be one of symbols."""
    return (text or "").translate(SYMBOLS.get(font or "", {}))


def drawn_script(run: Any) -> Look:
    """How a run of a drawing is raised or lowered."""
    baseline = next((item.get("baseline") for item in run.iterfind(f"{_A}rPr")), None)
    return {} if baseline is None else script(number_in(baseline.rstrip("%")))
