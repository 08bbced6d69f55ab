"""OpenDocument files, as of LibreOffice: texts, spreadsheets and presentations.

The content is read as a stream, so that only one paragraph, table row or slide is in memory as a
tree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import office
from rolebundle.ingest.readers.elements import integer_in, local_name, number_in
from rolebundle.ingest.readers.mathml import mathml_text
from rolebundle.ingest.readers.notation import CHECKED, UNCHECKED, formula, list_number, written
from rolebundle.ingest.readers.office import Action, Look, Piece, Sheet, Walk
from rolebundle.ingest.readers.package import Package, package_reader, properties_of
from rolebundle.resources import data_file
from rolebundle.scan.hidden_style import color

_NAMES_OF = data_file(__file__, "opendocument.toml")
_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE, _DRAW, _STYLE, _PRESENTATION, _FORM, _SVG, _FO = (
    f"{{{_NAMES}{name}:1.0}}" for name in _NAMES_OF["namespaces"].split()
)
_HREF = "{http://www.w3.org/1999/xlink}href"
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {"cm": 1, "mm": 0.1, "in": 2.54, "pt": 0.0353, "pc": 0.423, "px": 0.0265, None: 1}
_FONT_SIZE = 12.0  # points
_MAX_SHARE = 5  # percent
_MIN_SIDE = 0.04  # centimetres
_MIN_HEIGHT = 0.07
_FAR = 100.0
_CONTENTS = _NAMES_OF["contents"].split()
_INDEXES = (*_CONTENTS, *_NAMES_OF["other_indexes"].split())
_DRAWN = _NAMES_OF["drawn"].split()
_SURROUNDINGS = frozenset(("footer", "date-time", "page-number", "header"))
_VALUES = ("string-", "date-", "time-", "boolean-", "")
_UNSEEN_CONTROLS = frozenset(("password", "hidden", "file", "image", "frame"))
_MAX_REPEATED = 100
_MAX_REPEATED_ROWS = 1_000


# Looks


def _centimetres(value: str | None) -> float | None:
    """A length in centimetres; ``None`` if it is missing or malformed."""
    match = _LENGTH.fullmatch(value or "")
    return number_in(match[1]) * _CENTIMETRES[match[2]] if match else None


def _local(element: Any) -> dict[str, str]:
    """The attributes of an element without their namespaces."""
    return {key.rpartition("}")[2]: value for key, value in element.attrib.items()}


def _style_look(style: Any) -> dict[str, Any]:
    look: dict[str, Any] = {}
    for properties in style:
        values = _local(properties)
        if values.get("display") == "false" or values.get("visibility") == "hidden":
            look["hidden"] = True
        if local_name(properties) == "drawing-page-properties":
            look["masters"] = values.get("background-objects-visible") != "false"
            look |= {role: values.get(f"display-{role}") == "true" for role in _SURROUNDINGS}
        if local_name(properties) == "text-properties":
            look |= _text_look(values)
        if local_name(properties) == "paragraph-properties":
            height = _centimetres(values.get("line-height"))
            look |= office.HIDDEN if height is not None and height < _MIN_HEIGHT else {}
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
    if "text-line-through-style" in values:
        look["struck"] = values["text-line-through-style"] != "none"
    size = values.get("font-size", "")
    if size.endswith("%"):
        look["size"] = _FONT_SIZE * number_in(size[:-1], 100) / 100
    elif (length := _centimetres(size)) is not None:
        look["size"] = length / _CENTIMETRES["pt"]
    # LibreOffice writes an opacity of 0 for texts in the automatic color.
    is_automatic = values.get("use-window-font-color") == "true"
    if is_automatic or "color" in values:
        look["color"] = None if is_automatic else color(values["color"].lower())
    shares = [values.get("text-scale", ""), "" if is_automatic else values.get("opacity", "")]
    if any(number_in(share.rstrip("%"), 100) <= _MAX_SHARE for share in shares):
        look["hidden"] = True
    if "text-position" in values:
        place = values["text-position"].partition(" ")[0].rstrip("%")
        height = {"super": 1, "sub": -1}.get(place, number_in(place))
        look |= office.script(height)
    return look


# Numbers of lists


_Levels = Mapping[int, Mapping[str, str]]
"""The levels of a style of lists, from 1, with what each sets."""


def _label(levels: _Levels, counts: dict[int, int], level: int, start: str = "") -> str:
    """The label of the next item of a list; empty if it has none.

    Args:
        levels: the levels of the style of the list.
        counts: how far each level that has begun was counted.
        level: the level of the item.
        start: the number of the item, if it sets one.
    """
    for at in range(1, level + 1):
        first = integer_in(levels.get(at, {}).get("start-value"), 1)
        counts.setdefault(at, first - (at == level))
    counts[level] = integer_in(start, counts[level] + 1)
    for at in [at for at in counts if at > level]:
        del counts[at]
    own = levels.get(level, {})
    if "num-format" not in own:
        sign = own.get("bullet-char", "")
        return sign if sign.isdigit() else "-"

    def number(at: int) -> str:
        form = levels.get(at, {}).get("num-format", "").partition(",")[0]
        return form and list_number(counts.get(at, 1), form)

    shown = range(level - integer_in(own.get("display-levels"), 1) + 1, level + 1)
    numbers = ".".join(filter(None, map(number, shown)))
    label = own.get("num-prefix", "") + numbers + own.get("num-suffix", "")
    return label.strip() if number(level) else ""


# The document


_HIDES_ALT_TEXT = office.hides("alt_text")


class _OpenDocument(Walk):
    """Reads the content of a document."""

    IS_MIXED = True
    STREAMED = (*_NAMES_OF["streamed"].split(), *_INDEXES, *_DRAWN)
    BODIES = frozenset(_OFFICE + name for name in "text spreadsheet presentation drawing".split())

    def __init__(self, package: Package, folder: str = "") -> None:
        super().__init__(package)
        self._folder = folder
        self._root = package.parse(f"{folder}styles.xml")
        self._lists: dict[str, _Levels] = {}
        # How far the levels of each list were counted: by its name, and by that of its style.
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._masters, self._layouts = (
            {part.get(f"{_STYLE}name"): part for part in self._root.iter(_STYLE + kind)}
            for kind in ("master-page", "page-layout")
        )
        self._fields: dict[str, str] = {}
        self._controls: dict[str, str] = {}  # what each shows
        # What shapes and objects contain, until the end of the sheet.
        self._shapes: list[Piece] = []
        self._is_in_row = False
        self._style_elements: dict[tuple[str, str], Any] = {}
        self._look_of_style = office.style_looks(self._style_elements, _key, _style_look)
        self._add_styles(self._root)
        self._page: Any = self._root
        self._pages = 0
        self._sheet: Sheet | None = None
        self._row_number = 0
        self._anchor = ""

    def read(self) -> ParsedDocument:
        """The document."""
        # Not parsed: in old files its namespace is only declared in a DTD, which is not read.
        if b"encryption-data" in self.package.read("META-INF/manifest.xml"):
            raise self.package.encrypted()
        if "content.xml" not in self.package:
            raise ValueError("it has no content.xml")
        self.read_stream("content.xml")
        if not self._sheet and not self._pages:
            self.page_margins(self._headers_and_footers())
        meta = self.package.parse("meta.xml").iterfind(f"{_OFFICE}meta/*")
        return self.document(properties_of(meta))

    def start_part(self, element: Any) -> None:
        """See Walk: the styles of the content, and the shapes on a sheet."""
        if local_name(element) == "automatic-styles":
            self._add_styles(element)
        elif local_name(element) == "shapes":
            self._shapes += self.pieces(element, {})

    def _add_styles(self, root: Any) -> None:
        for style in root.iter(f"{_STYLE}style", f"{_STYLE}default-style"):
            self._style_elements[_key(style, "name")] = style
        for style in root.iter(f"{_TEXT}list-style", f"{_TEXT}outline-style"):
            name = style.get(f"{_STYLE}name", "") if local_name(style) == "list-style" else ""
            levels = ((level.get(f"{_TEXT}level"), _local(level)) for level in style)
            self._lists[name] = {integer_in(number): own for number, own in levels}

    def _look(self, family: str, element: Any, names: str = _TEXT) -> Look:
        """The look that the style of an element sets."""
        return self._look_of_style((family, element.get(f"{names}style-name", "")))

    def _headers_and_footers(self) -> Iterator[Any]:
        """The head and foot of the pages that a text uses."""
        used = {style.get(f"{_STYLE}master-page-name") for style in self._style_elements.values()}
        used |= {master.get(f"{_STYLE}next-style-name") for master in self._masters.values()}
        for name, master in self._masters.items():
            for part in master if name in used | {"Standard", "Default"} else ():
                is_margin = local_name(part).startswith(("header", "footer"))
                if is_margin and part.get(f"{_STYLE}display") != "false":
                    yield part

    def look(self, element: Any, look: Look) -> Look:
        """See Walk."""
        name = local_name(element)
        if element.tag.startswith(_TABLE):
            own = dict(self._look(name, element, _TABLE))
            own["collapsed"] = own.pop("hidden", False) or _is_collapsed(element)
            if name == "covered-table-cell":
                own["away"] = "invisible_element"
            elif own["collapsed"] and not self._sheet:
                own["away"] = "hidden_cells"
            # A template of a slide's table has colors that are not known here.
            return {**({"fill": None} if self._pages else {}), **look, **own}
        style = self._base_style(element.get(f"{_TEXT}style-name", ""))
        own = {**self._look("paragraph", element), "style": style}
        if name == "h" or style == "heading":
            own["level"] = level = integer_in(element.get(f"{_TEXT}outline-level"), 1)
            start = element.get(f"{_TEXT}start-value", "")
            is_unnumbered = element.get(f"{_TEXT}is-list-header") == "true"
            is_numbered = name == "h" and not is_unnumbered and "label" not in look
            if is_numbered and level in self._lists.get("", {}):
                own["label"] = _label(self._lists[""], self._counts[""], level, start)
        for part in element.iter(f"{_TEXT}hidden-paragraph"):
            own |= office.HIDDEN if part.get(f"{_TEXT}is-hidden") == "true" else {}
        return {**look, **own}

    def _base_style(self, name: str) -> str:
        """The name of a paragraph's style; of an automatic one, that of its parent."""
        if re.fullmatch(r"P\d+", name) and ("paragraph", name) in self._style_elements:
            name = _key(self._style_elements["paragraph", name])[1]
        return name.replace("_20_", " ").lower()

    def pieces(self, element: Any, look: Look) -> Iterator[Piece]:
        """See Walk. Items of lists have a label, as far in as they are deep."""
        if element.tag == f"{_TEXT}numbered-paragraph":
            level = integer_in(element.get(f"{_TEXT}level"), 1)
            style = element.get(f"{_TEXT}style-name", "")
            counts = self._counts[f"list {element.get(f'{_TEXT}list-id', style)}"]
            start = element.get(f"{_TEXT}start-value", "")
            mark = _label(self._lists.get(style, {}), counts, level, start)
            look = {**look, "label": mark and "  " * (level - 1) + mark}
        if element.tag != f"{_TEXT}list":
            yield from super().pieces(element, look)
            return
        level = look.get("list_level", 0) + 1
        style = element.get(f"{_TEXT}style-name") or look.get("list_style", "")
        look = {**look, "list_level": level, "list_style": style}
        if level == 1:
            look["counts"] = self._begun_counts(element, style)
        for item in element:
            start, indent = item.get(f"{_TEXT}start-value", ""), "  " * (level - 1)
            is_first = local_name(item) == "list-item"
            for child in item:
                label = {}
                if local_name(child) in office.PARAGRAPHS:
                    levels = self._lists.get(style, {})
                    mark = _label(levels, look["counts"], level, start) if is_first else "  "
                    label, is_first = {"label": mark and indent + mark}, False
                yield from self.pieces(child, {**look, **label})

    def _begun_counts(self, element: Any, style: str) -> dict[int, int]:
        """How far the levels of a list were counted. Another list may go on with them."""
        counts: dict[int, int] = {}
        if other := element.get(f"{_TEXT}continue-list"):
            counts = self._counts[f"list {other}"]
        elif element.get(f"{_TEXT}continue-numbering") == "true":
            counts = self._counts[f"style {style}"]
        names = [value for key, value in element.attrib.items() if key.endswith("}id")]
        for name in (f"style {style}", *(f"list {name}" for name in names)):
            self._counts[name] = counts
        return counts

    # Tables and sheets

    def start_table(self, table: Any, look: Look) -> None:
        """See Walk."""
        if table.getparent().tag == f"{_OFFICE}spreadsheet":
            name = table.get(f"{_TABLE}name", "")
            self._sheet, self._row_number = Sheet(self, name, is_shown=not look["collapsed"]), 1
            self._anchor = f"sheet {name}"
            first = 1
            for column in table.iter(f"{_TABLE}table-column"):
                last = first + integer_in(column.get(office.REPEATED), 1) - 1
                if _is_collapsed(column):
                    self._sheet.hide_columns(first, last)
                first = last + 1

    def top_row(self, row: Any, look: Look) -> None:
        """See Walk."""
        if self._sheet is None:
            super().top_row(row, look)
            return
        look = self.look(row, look)
        self._is_in_row = True
        cells = self.cells(row, look)
        self._is_in_row = False
        repeated = integer_in(row.get(f"{_TABLE}number-rows-repeated"), 1)
        # Rows with text are data. The last ones of a sheet are an empty one that is repeated.
        has_text = any(text.strip() for _, text, _ in cells)
        count = min(repeated, _MAX_REPEATED_ROWS if has_text else 1)
        self.left_out["repeated rows"] += repeated - count if has_text else 0
        for number in range(count):
            self._sheet.add(self._row_number + number, cells, is_hidden=look["collapsed"])
        self._row_number += repeated

    def cell(self, cell: Any, look: Look) -> str:
        """See Walk. Some programs write the value of a cell without its text."""
        if len(cell):
            return super().cell(cell, look)
        value = next(filter(None, (cell.get(f"{_OFFICE}{name}value") for name in _VALUES)), "")
        return written(self.text(value, self.look(cell, look))) if value else ""

    def end_table(self) -> None:
        """See Walk."""
        super().end_table()
        if self._sheet is not None:
            self._sheet.end_group()
            self.add(self._shapes, self._anchor)
            self._shapes = []

    # Slides

    def block(self, element: Any) -> None:
        """See Walk."""
        if local_name(element).endswith("-decl"):
            name = element.get(f"{_PRESENTATION}name", "")
            self._fields[f"{local_name(element)} {name}"] = element.text or ""
            return
        for forms in element.iter(f"{_OFFICE}forms"):
            self._add_controls(forms)
        if element.tag != f"{_DRAW}page":
            super().block(element)
            return
        self._pages += 1
        master = self._masters.get(element.get(f"{_DRAW}master-page-name"), element)
        layout = self._layouts.get(master.get(f"{_STYLE}page-layout-name"), self._root)
        self._page = next(layout.iter(f"{_STYLE}page-layout-properties"), layout)
        if self._look("drawing-page", element, _DRAW).get("hidden"):
            self.left_out["hidden slides"] += 1
            self.blocks.hide("hidden_slide", office.all_text(element))
            return
        for kind in ("footer", "date-time"):
            name = element.get(f"{_PRESENTATION}use-{kind}-name", "")
            self._fields[kind] = self._fields.get(f"{kind}-decl {name}", "")
        self._fields["page-number"] = str(self._pages)
        notes: list[str] = []
        shapes: list[tuple[bool, list[Piece]]] = []
        for shape in element:
            role = shape.get(f"{_PRESENTATION}class", "")
            if local_name(shape) == "notes":
                for box in shape.iter(f"{_DRAW}text-box"):
                    if box.getparent().get(f"{_PRESENTATION}class") in _SURROUNDINGS:
                        continue
                    text = "\n".join(self.lines(self.pieces(box, {})))
                    notes += [line for line in text.split("\n") if line.strip()]
            elif role not in _SURROUNDINGS:
                # What is behind a shape on a slide is not known.
                shapes.append((role == "title", list(self.pieces(shape, {"fill": None}))))
        shapes += ((False, [piece]) for piece in self._master_pieces(master, element))
        self.slide(self._pages, shapes, notes)

    def _master_pieces(self, master: Any, page: Any) -> Iterator[Piece]:
        """What the master of a slide shows on it and has not shown on one before."""
        shown = self._look("drawing-page", page, _DRAW)
        for shape in master if master is not page else ():
            role = shape.get(f"{_PRESENTATION}class", "")
            is_shown = shown.get(role) if role else shown.get("masters", True)
            if is_shown and local_name(shape) != "notes":
                yield from self.unseen(self.pieces(shape, {"fill": None}))

    def _add_controls(self, forms: Any) -> None:
        """Remember what the controls of forms show: their label, value, state or choice."""
        for control in forms.iter(f"{_FORM}*"):
            kind, values = local_name(control), _local(control)
            texts = [option.get(f"{_FORM}label", "") for option in control if _is_on(option)]
            texts.append(values.get("label", ""))
            if kind in {"checkbox", "radio"}:
                texts.insert(0, CHECKED if _is_on(control) else UNCHECKED)
            elif kind not in _UNSEEN_CONTROLS:
                texts.append(values.get("current-value", values.get("value", "")))
            self._controls[values.get("id", "")] = " ".join(filter(None, texts))

    # Elements inside of paragraphs

    def _spaces(self, element: Any, look: Look) -> str:
        count = min(integer_in(element.get(f"{_TEXT}c"), 1), _MAX_REPEATED)
        return "" if office.hides_all(look) else " " * count

    def _conditional(self, element: Any, look: Look) -> str:
        """A section, or a field that may be hidden."""
        style = self._look("section", element)
        is_hidden = element.get(f"{_TEXT}is-hidden") == "true" or style.get("hidden")
        if is_hidden or element.get(f"{_TEXT}display") in {"none", "condition"}:
            look = {**look, "away": "invisible_element"}
        return self.inline(element, {**look, **style})

    def _note(self, element: Any, look: Look) -> str:
        mark = (element.findtext(f"{_TEXT}note-citation") or "").strip()
        return "".join(self.note(body, look, mark) for body in element.findall(f"{_TEXT}note-body"))

    def _title(self, element: Any, look: Look) -> str | None:
        """A title. That of a shape is not shown; a chart and a field of a text show theirs."""
        is_shown = not element.tag.startswith(_SVG)
        return self.inline(element, look) if is_shown else _HIDES_ALT_TEXT(self, element, look)

    def _field(self, element: Any, look: Look) -> str:
        """A field whose text is that of the slide. Documents have the text of their fields."""
        text = self._fields.get(local_name(element))
        return self.inline(element, look) if text is None else self.text(text, look)

    def _object(self, element: Any, look: Look) -> str:
        """A formula; or a chart or other document, which follows the paragraph."""
        root = element.find("{*}math")
        folder = self.package.member(self._folder, element.get(_HREF, ""))
        # What an object refers to is inside of it, so that none contains itself.
        if root is None and len(folder) > len(self._folder):
            root = self.package.parse(f"{folder}/content.xml")
        if root is not None and local_name(root) == "math":
            return self.text(formula(mathml_text(root)), look)
        for body in () if root is None else root.iterfind(f"{_OFFICE}body/*"):
            # The numbers of a chart in a sheet are those of the sheet.
            is_in_sheet = next(element.iterancestors(f"{_OFFICE}spreadsheet"), None) is not None
            for table in [*body.iter(f"{_TABLE}table")] if is_in_sheet else ():
                table.getparent().remove(table)
            inner = _OpenDocument(self.package, f"{folder}/")
            inner.blocks, inner.left_out, inner._pages = self.blocks, self.left_out, self._pages
            inner._add_styles(root)
            if self._is_in_row:
                self._shapes += inner.pieces(body, look)
            else:
                self.later(inner.pieces(body, look))
        return ""

    def _drawing(self, element: Any, look: Look) -> str:
        """A picture, a shape or a text box. Its text does not look like what is around it."""
        style = self._look("graphic", element, _DRAW)
        kind = office.hides_all(look) or office.hides_all(style) or self._hiding_place(element)
        look = {key: value for key, value in {**look, **style}.items() if key == "fill"}
        return self.inline(element, {**look, "away": kind} if kind else look)

    def _control(self, element: Any, look: Look) -> str:
        """A control of a form."""
        text = self._controls.get(element.get(f"{_DRAW}control", ""), "")
        return _OpenDocument._drawing(self, element, look) + self.text(text, look)

    def _hiding_place(self, element: Any) -> str:
        """How the place or size of a shape hides it; empty if it does not."""
        for axis, side in (("x", "width"), ("y", "height")):
            at = _centimetres(element.get(_SVG + axis))
            size = _centimetres(element.get(_SVG + side))
            if size is not None and size < _MIN_SIDE and element.tag == f"{_DRAW}frame":
                return "invisible_element"
            page = _centimetres(self._page.get(f"{_FO}page-{side}")) if self._pages else None
            is_beside = page is not None and at is not None and not -(size or 0.0) < at < page
            if is_beside or abs(at or 0.0) > _FAR:
                return "off_screen_element"
        return ""

    ACTIONS: ClassVar[Mapping[str, Action]] = {
        "s": _spaces,
        "tab": office.mark("\t"),
        "line-break": office.mark("\n"),
        "span": lambda self, element, look: self.inline(
            element, {**look, **self._look("text", element)}
        ),
        "note": _note,
        "ruby": office.ruby("ruby-base", "ruby-text"),
        "object": _object,
        "number": office.skip,
        **dict.fromkeys(("page-number", "footer", "date-time"), _field),
        **dict.fromkeys(("section", "hidden-text", "variable-set", "user-field-get"), _conditional),
        **dict.fromkeys(("binary-data", "change-info", "forms", *_CONTENTS), office.skip),
        "desc": _HIDES_ALT_TEXT,
        "title": _title,
        "object-ole": lambda self, *_: self.left_out.update(["embedded objects"]),
        **dict.fromkeys(_DRAWN, _drawing),
        "control": _control,
        "tracked-changes": office.hides("tracked_deletion"),
        "annotation": office.hides("comment"),
        "script": office.hides("field_code"),
    }


def _key(style: Any, name: str = "parent-style-name") -> tuple[str, str]:
    """The family of a style, and the name in an attribute of it."""
    return style.get(f"{_STYLE}family", ""), style.get(_STYLE + name, "")


def _is_on(control: Any) -> bool:
    """Whether an option is chosen, or a box is checked."""
    names = ("current-state", "current-selected", "state", "selected")
    states = (control.get(_FORM + name) for name in names)
    return next(filter(None, states), "") in {"true", "checked"}


def _is_collapsed(element: Any) -> bool:
    """Whether a row or column is hidden."""
    return element.get(f"{_TABLE}visibility") in {"collapse", "filter"}


READERS = package_reader("opendocument", 14, lambda package: _OpenDocument(package).read())
