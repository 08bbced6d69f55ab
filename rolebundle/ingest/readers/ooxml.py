"""What Word, PowerPoint and Excel files (Office Open XML) share: properties, colors, symbols, and
what is drawn in them: charts, diagrams, equations and pictures that contain text.
"""  # noqa: D205

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite, nan
from typing import Any

from lxml import etree

from rolebundle.errors import DocumentError
from rolebundle.ingest.readers.elements import RELATION, integer_in, local_name, number_in
from rolebundle.ingest.readers.mathml import mathml_text
from rolebundle.ingest.readers.metafile import metafile_lines
from rolebundle.ingest.readers.notation import Script, formula, written
from rolebundle.ingest.readers.number_format import shown_number
from rolebundle.ingest.readers.office import Action, Look, Piece, Walk, all_text, hides_all, script
from rolebundle.ingest.readers.package import Package, properties_of
from rolebundle.resources import data_file
from rolebundle.scan.hidden_style import Color, color
from rolebundle.text.decoding import one_line

DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
SCRIPTS: Mapping[str | None, Script] = {"superscript": "raised", "subscript": "lowered"}
"""The places of runs by their names in Word and Excel."""
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
        # A thread of comments in a sheet is a comment, too, for older programs.
        walk.left_out["comments"] += len(part.findall("{*}threadedComment[@parentId]"))
        walk.left_out["comments"] += len([*part.iter("{*}comment", "{*}cm", "{*}reply")])
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


SYMBOLS = {font: _table(rows) for font, rows in data_file(__file__, "symbols.toml").items()}
"""The characters of a font, whose name is in lower case."""


def translated(text: str | None, font: str | None) -> str:
    """The characters of a text in a font that may be one of symbols."""
    return (text or "").translate(SYMBOLS.get(font or "", {}))


def drawn_script(run: Any) -> Look:
    """How a run of a drawing is raised or lowered."""
    baseline = next((item.get("baseline") for item in run.iterfind(f"{DRAWING}rPr")), None)
    return {} if baseline is None else script(number_in(baseline.rstrip("%")))


_METAFILES = (".emf", ".wmf")
_IMAGE = "{urn:schemas-microsoft-com:vml}imagedata"
_RELATION_OF_IMAGE = "{urn:schemas-microsoft-com:office:office}relid"

_LABELS = "{*}dLbls/{*}showVal[@val='1']/../{*}numFmt[@sourceLinked='0']"

# Charts


def chart(walk: Walk, element: Any, look: Look) -> None:
    """A chart: its titles and labels, and its data unless that is in the rows of a sheet."""
    root = _part(walk, element.get(f"{RELATION}id"), "charts")
    texts = [all_text(part) for part in root.iter("{*}rich")]
    texts += [part.text or "" for part in root.iterfind(".//{*}title//{*}v")]
    tables = list(_tables(root)) if walk.HAS_CHART_DATA else []
    has_data = next(root.iter("{*}pt"), None) is not None
    walk.left_out["charts"] += walk.HAS_CHART_DATA and has_data and not tables
    if kind := hides_all(look):
        walk.blocks.hide(kind, " ".join([*texts, *root.itertext()]))
        return
    walk.later(Piece(text) for text in dict.fromkeys(map(one_line, texts)))
    walk.later(Piece(rows=rows) for rows in tables)


def _tables(root: Any) -> Iterator[list[list[str]]]:
    """The data of a chart: one table for all series that have the same categories."""
    groups: dict[tuple[tuple[int, str], ...], list[tuple[str, Mapping[int, str]]]] = {}
    for series in root.iter("{*}ser"):
        names = [part.text or "" for part in series.iterfind("{*}tx//{*}v")]
        categories = _points(series, "cat", "xVal")
        for kind in ("val", "yVal", "bubbleSize"):
            if values := _points(series, kind):
                group = groups.setdefault(tuple(sorted(categories.items())), [])
                group.append((" ".join(names), values))
    for pairs, columns in groups.items():
        keys = dict(pairs)
        numbers = sorted({*keys, *(at for _, values in columns for at in values)})
        head = ["", *(name for name, _ in columns)]
        yield [head] * any(head) + [
            [keys.get(at, ""), *(values.get(at, "") for _, values in columns)] for at in numbers
        ]


def _points(series: Any, *names: str) -> dict[int, str]:
    """The categories or values in the first part of a series with one of ``names``."""
    parts = [part for name in names for part in series.iterfind(f"{{*}}{name}")][:1]
    # The innermost level of categories comes first.
    levels = [level for part in parts for level in part.iter("{*}lvl")][::-1] or parts
    # Values are shown as their labels, if these have a format of their own.
    places = () if "cat" in names else (series, series.getparent())
    labels = [item.get("formatCode", "") for part in places for item in part.iterfind(_LABELS)]
    points: dict[int, str] = {}
    for level in levels:
        code = labels[0] if labels else level.findtext(".//{*}formatCode")
        code = code or level.get("formatCode", "")
        for point in level.iter("{*}pt"):
            at = integer_in(point.get("idx"))
            text = one_line("".join(point.itertext()))
            if code and isfinite(number_in(text, nan)):
                text = shown_number(text, code, is_1904=False)
            points[at] = f"{points[at]}, {text}" if at in points else text
    return points


# Diagrams and pictures


def diagram(walk: Walk, element: Any, look: Look) -> None:
    """A diagram (SmartArt): one line for each paragraph, as it was drawn or as its data has it."""
    data = _part(walk, element.get(f"{RELATION}dm"), "diagrams")
    link = next(data.iter("{*}dataModelExt"), data)
    drawn = list(_part(walk, link.get("relId"), "diagrams").iter("{*}txBody"))
    nodes = (point for point in data.iter("{*}pt") if point.get("type", "node") == "node")
    for part in drawn or nodes:
        for paragraph in part.iter("{*}p"):
            walk.box(paragraph, look)


def _part(walk: Walk, relation: str | None, kind: str) -> Any:
    """The root of a member; an empty element if there is none, or if it is too large."""
    try:
        return walk.package.parse(walk.target(relation), is_lenient=True)
    except DocumentError:
        walk.left_out[kind] += 1
        return etree.Element("none")


def picture(walk: Walk, element: Any, look: Look) -> str:
    """A picture, which may contain text."""
    _add_picture(walk, _picture_of(walk, element), look)
    return walk.inline(element, look)


def _picture_of(walk: Walk, element: Any) -> str:
    return walk.target(element.get(f"{RELATION}embed") or element.get(f"{RELATION}id"))


def embedded(walk: Walk, element: Any, look: Look) -> str:
    """An embedded object, whose picture is inside of it or, in old files, in another drawing."""
    names = [_picture_of(walk, image) for image in element.iter("{*}blip", _IMAGE)]
    for relation, (kind, part) in walk.relations.items():
        for image in _part(walk, relation, "drawings").iter(_IMAGE) if kind == "vmlDrawing" else ():
            if image.getparent().get("id") == element.get("spid"):
                targets = walk.package.relations(part)
                names.append(targets.get(image.get(_RELATION_OF_IMAGE), ("", ""))[1])
                _add_picture(walk, names[-1], look)
    # The text in other pictures is not read.
    is_seen = not names or any(name.lower().endswith(_METAFILES) for name in names)
    walk.left_out["embedded objects"] += not is_seen
    return walk.inline(element, look)


def _add_picture(walk: Walk, name: str, look: Look) -> None:
    """Add the texts of a metafile, as the pictures of embedded objects are."""
    if name not in walk.pictures:
        lines: list[str] = []
        with suppress(DocumentError):  # A large picture is one of many points or dots.
            if name.lower().endswith(_METAFILES):
                lines = metafile_lines(walk.package.read(name))
        walk.pictures[name] = "\n".join(lines)
    walk.later([Piece(walk.text(walk.pictures[name], {**look, "script": "", "struck": False}))])


# Equations

_MATHML = {name: parts.split() for name, parts in data_file(__file__, "omml.toml").items()}
"""The element of MathML that an element of OMML is, and what is inside of it; else a row."""
_SIGNS = {"acc": "\u0302", "bar": "\u0305", "nary": "∫"}
_FENCES = (("open", "begChr", "("), ("separators", "sepChr", "|"), ("close", "endChr", ")"))


def equation(walk: Walk, element: Any, look: Look) -> str:
    """An equation (OMML) on one line."""
    return formula(mathml_text(_mathml(walk, element, look)))


def _mathml(walk: Walk, element: Any, look: Look) -> Any:
    name = local_name(element)
    kind, *names = _MATHML.get(name, ["mrow"])
    items = element.iterfind(f"{{*}}{name}Pr/*")
    options = {local_name(item): next(iter(item.attrib.values()), "") for item in items}
    is_shown = options.get("show", "1") not in {"0", "off", "false"}
    result = etree.Element(kind if is_shown else "mphantom")
    if options.get("type") == "noBar":
        result.set("linethickness", "0")
    for key, option, default in _FENCES if name == "d" else ():
        result.set(key, options.get(option, default))
    for part in names:
        found = element.find(f"{{*}}{part}")
        if part == "chr":
            etree.SubElement(result, "mo").text = options.get("chr", _SIGNS[name])
        elif found is None:
            etree.SubElement(result, "mrow")
        else:
            result.append(_mathml(walk, found, look))
    if name == "nary":
        row = etree.Element("mrow")
        row.append(result)
        names, result = [], row
    for child in () if names else element:
        if local_name(child) not in {f"{name}Pr", "ctrlPr", "sub", "sup"}:
            _append(walk, result, child, look)
    return result


def _append(walk: Walk, row: Any, element: Any, look: Look) -> None:
    """Append an element to a row. Adjacent runs are one text."""
    action = walk.ACTIONS.get(local_name(element))
    if action is None:
        row.append(_mathml(walk, element, look))
        return
    if not len(row) or row[-1].tag != "mtext":
        etree.SubElement(row, "mtext").text = ""
    row[-1].text += written(action(walk, element, look) or "")


DRAWN: Mapping[str, Action] = {
    "chart": chart,
    "relIds": diagram,
    **dict.fromkeys(("blip", "imagedata"), picture),
    "oleObj": embedded,
    "oMath": equation,
}
"""What is done with the elements of drawings and equations."""
