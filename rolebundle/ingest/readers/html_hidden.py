"""What is hidden in a page of HTML."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from lxml import etree

from rolebundle.resources import data_file
from rolebundle.scan import hidden_style as styles
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import one_line

# Formulas carry their source beside what is shown, and media a text for browsers without them.
_NEVER_SHOWN = ("annotation", "annotation-xml", "mphantom", "datalist", "canvas", "audio", "video")
_CANDIDATES: Any = etree.XPath(
    "descendant::*[@hidden or @style or @aria-hidden or @popover or @bgcolor or "
    + " or ".join(f"self::{tag}" for tag in ("dialog", "font", *_NEVER_SHOWN))
    + "]"
)
_TABLE = data_file(__file__, "html.toml")
_CONTROLS: Any = etree.XPath(_TABLE["xpaths"]["controls"])
_LINKED: Any = etree.XPath(_TABLE["xpaths"]["linked"])
_SPOKEN = re.compile(_TABLE["spoken_class"], re.IGNORECASE)
# Parts that people show by a click.
_SWITCHED_ROLES = frozenset(("tabpanel", "region"))
_SWITCHED_CLASS = re.compile(_TABLE["switched_class"], re.IGNORECASE)
# Parts of the user interface. They are removed if they are hidden, and never labelled.
_INTERFACE_ROLES = frozenset(_TABLE["interface_roles"].split())
_INTERFACE_TAGS = frozenset(("form", "dialog", "nav", "fieldset", "label", "legend", "menu"))
_INLINE = frozenset("a abbr b bdi cite code em font i label mark small span strong time u".split())
_STYLED: Any = etree.XPath("descendant::*[@style]")
_APART = re.compile(r"block|flex|grid|table|list-item")
_SPACED = re.compile(r"(?:margin|padding|width)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LIST_STYLES = frozenset(("list-style", "list-style-type"))
_SIGN_STYLES = ("vertical-align", "text-decoration", "text-decoration-line")
_WRITTEN_STYLES = _LIST_STYLES.union(("display", "float", "position"), _SIGN_STYLES)
_SCRIPTS = {"super": "sup", "sub": "sub"}
LIST_STYLE = "_list-style"
"""The attribute of a list or item with the style of its labels."""
_MIN_LABELLED_WORDS = 4
_MIN_SPOKEN_WORDS = 12
_MAX_WORK = 100_000_000
"""Elements that the selectors of a page may visit; one that needs more is labelled."""


def parsed_page(source: bytes) -> tuple[Any, str]:
    """The root of a page, and why the rest of it is missing; nothing is fetched.

    An empty page has the root ``None``.
    """
    parser = etree.HTMLParser(encoding="utf-8", recover=True, no_network=True, collect_ids=False)
    root = etree.fromstring(source, parser) if source.strip() else None
    # In recovery mode a fatal error, as of elements nested too deep, is not raised.
    last = parser.error_log.last_error
    is_cut = last is not None and last.level >= etree.ErrorLevels.FATAL
    return root, last.message if is_cut else ""


HiddenElement = tuple[Any, HiddenPart]
"""An element that people do not see, or perhaps do not see."""

Sheets = tuple[tuple[str, str], ...]
"""Style sheets, each with its text and its media."""


def page_sheets(root: Any) -> Sheets:
    """The style sheets of a page."""
    return tuple((e.text or "", e.get("media") or "") for e in root.iter("style"))


@lru_cache(maxsize=64)
def _suspects(sheets: Sheets) -> tuple[styles.Rule, ...]:
    """The rules that may hide an element by themselves or together with another color."""
    return tuple(
        rule
        for sheet in sheets
        for rule in styles.rules_of(*sheet)
        if rule.applies < 2
        and (styles.COLOR_PROPERTIES & rule.declared.keys() or styles.hiding(rule.declared))
    )


class Page:
    """One page, and the rules of its style sheets that match its elements.

    Args:
        root: the root of the page.
        main: the element whose text is read.
        sheets: the style sheets of the whole page.
    """

    def __init__(self, root: Any, main: Any, sheets: Sheets) -> None:
        self._root = root
        self._main = main
        self._sheets = sheets
        self._around = [main, *main.iterancestors()]
        self._rules: dict[Any, list[styles.Rule]] = defaultdict(list)
        self._cascaded: dict[Any, dict[str, str]] = {}
        self._selected: dict[Any, None] = {}
        self._is_linked = bool(_LINKED(root))
        self._controlled = {value.lstrip("#") for value in " ".join(_CONTROLS(root)).split()}
        # For selectors: the places of all elements, the pairs of siblings, what each path selects,
        # and how much work is left.
        self._order: dict[Any, int] = {}
        self._pairs = 0
        self._found: dict[str, list[Any]] = {}
        self._left = _MAX_WORK
        self._is_cut = False
        try:
            self._select(sheets)
        except styles.UnreadableStyleError:
            self._is_cut = True
            self._selected.clear()
            self._rules.clear()

    def _select(self, sheets: Sheets) -> None:
        """Find the elements of the rules that may hide, and the rules that may show them again."""
        suspects = _suspects(sheets)
        if not suspects:
            return
        self._order = {element: place for place, element in enumerate(self._root.iter("*"))}
        siblings = Counter(element.getparent() for element in self._order)
        self._pairs = sum(count * count for count in siblings.values())
        inside = set(self._around).union(self._main.iterdescendants())
        concerned: set[str] = set()
        for rule in suspects:
            elements = [e for e in self._selected_by(rule) if e in inside]
            if elements:
                concerned.update(rule.declared)
                self._selected.update(dict.fromkeys(elements))
        if not styles.COLOR_PROPERTIES.isdisjoint(concerned):
            concerned |= styles.COLOR_PROPERTIES
        every = [rule for sheet in sheets for rule in styles.rules_of(*sheet)]
        # Sorting is stable: of two rules that are as specific, the later one wins.
        for rule in sorted(every, key=lambda rule: rule.specificity):
            if not concerned.isdisjoint(rule.declared):
                for element in self._selected_by(rule):
                    self._rules[element].append(rule)

    def _selected_by(self, rule: styles.Rule) -> list[Any]:
        """The elements of a rule.

        Raises:
            styles.UnreadableStyleError: this would take too long, or a name has control characters.
        """
        found: list[Any] = []
        for number, (combinator, path) in enumerate(rule.steps):
            candidates = self._elements(path)
            found = self._related(candidates, combinator, found) if number else candidates
        return found

    def _elements(self, path: str) -> list[Any]:
        if path not in self._found:
            # Conditions such as :nth-child look at all siblings of each element.
            self._count(len(self._order) + path.count("sibling::") * self._pairs)
            try:
                self._found[path] = _xpath(path)(self._root)
            except etree.XPathError:
                self._found[path] = []  # The namespace of no element.
            except ValueError:
                raise styles.UnreadableStyleError from None  # XPaths have no control characters.
        self._count(len(self._found[path]))
        return self._found[path]

    def _count(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise styles.UnreadableStyleError

    def _related(self, candidates: list[Any], combinator: str, before: list[Any]) -> list[Any]:
        """The candidates whose parent, sibling or ancestor, by the combinator, is in ``before``."""
        matched = set(before)
        if combinator == ">":
            return [e for e in candidates if e.getparent() in matched]
        if combinator == "+":
            return [
                e for e in candidates if next(e.itersiblings("*", preceding=True), 0) in matched
            ]
        if combinator == "~":
            first: dict[Any, int] = {}
            for element in before:
                first.setdefault(element.getparent(), self._order[element])
            last = len(self._order)
            return [e for e in candidates if first.get(e.getparent(), last) < self._order[e]]
        return [e for e in candidates if not matched.isdisjoint(e.iterancestors())]

    def apart(self) -> list[Any]:
        """The inline elements that a style shows apart from the text beside them.

        Lists and their items get an attribute with the style of their labels, and what is struck
        out gets ``_struck``. What is raised or lowered gets the tag of such an element.
        """
        found: defaultdict[Any, dict[str, str]] = defaultdict(dict)
        with suppress(styles.UnreadableStyleError):  # What is hidden is looked for without this.
            rules = [rule for sheet in self._sheets for rule in styles.rules_of(*sheet)]
            for rule in sorted(rules, key=lambda rule: rule.specificity):
                if rule.applies < 2 and not _WRITTEN_STYLES.isdisjoint(rule.declared):
                    for element in self._selected_by(rule):
                        found[element].update(rule.declared)
        for element in _STYLED(self._main):
            found[element].update(styles.style_layers(element.get("style"))[0])
        apart: dict[Any, None] = {}
        for element, declared in found.items():
            for name in _LIST_STYLES & declared.keys():
                element.set(LIST_STYLE, declared[name])
            words = " ".join(declared.get(name, "") for name in _SIGN_STYLES).split()
            if "line-through" in words:
                element.set("_struck", "")
            if _is_apart(declared):
                apart[element] = None
            elif element.tag in _INLINE:
                tags = (_SCRIPTS[word] for word in words if word in _SCRIPTS)
                element.tag = next(tags, element.tag)
            if re.search("flex|grid", declared.get("display", "")):
                apart.update(dict.fromkeys(element))
        return [e for e in apart if e.tag in _INLINE and e is not self._main]

    def hidden(self) -> list[HiddenElement]:
        """The hidden elements in ``main``, and those that contain it; outer elements first.

        Elements inside of an element whose text is removed are left out.
        """
        removed: set[Any] = set()
        results = []
        if self._is_cut:
            results.append((self._main, HiddenPart("invisible_element", "", is_kept=True)))
        candidates = dict.fromkeys((*_CANDIDATES(self._main), *self._selected))
        inside = [element for element in candidates if element not in self._around]
        inside.sort(key=lambda element: sum(1 for _ in element.iterancestors()))
        for element in (*reversed(self._around), *inside):
            if removed and not removed.isdisjoint(element.iterancestors()):
                continue
            result = self._examined(element)
            if result is not None:
                results.append(result)
                if not result[1].is_kept:
                    removed.add(element)
        return results

    def _examined(self, element: Any) -> HiddenElement | None:
        if element.tag in _NEVER_SHOWN:
            return element, HiddenPart("invisible_element", "", is_labelled=False)
        if not len(element) and not element.text:
            return None
        way = self._hiding(element)
        if way is None:
            return _decorative(element) if element.get("aria-hidden") == "true" else None
        is_around = element in self._around
        if way.kind == "white_text" and is_around:
            return None  # The elements inside have colors of their own.
        shown_inside = self._shown_inside(element, way.property)
        text = one_line("".join(_texts(self._main if is_around else element, shown_inside)))
        count = len(_WORD.findall(text))
        if shown_inside and not count:
            return None
        is_partly = bool(shown_inside) or is_around
        if is_partly or not way.is_certain or self._is_switched(element):
            return element, HiddenPart(way.kind, text, is_labelled=count > 0, is_kept=True)
        is_spoken = _SPOKEN.search(element.get("class") or "") is not None
        least = _MIN_SPOKEN_WORDS if is_spoken else _MIN_LABELLED_WORDS
        is_labelled = count >= least and not _is_interface(element)
        return element, HiddenPart(way.kind, text, is_labelled=is_labelled)

    def _hiding(self, element: Any) -> styles.Hiding | None:
        """How an element is hidden by its attributes and styles."""
        declared = self._cascade(element)
        way = styles.hiding(declared)
        if (way is None or not way.is_certain) and not styles.COLOR_PROPERTIES.isdisjoint(declared):
            way = self._by_color(element, declared) or way
        unsure = [rule for rule in self._rules.get(element, ()) if rule.applies]
        if way is None:
            changed = dict(declared)
            for rule in unsure:
                changed.update(rule.declared if rule.applies == 1 else {})
            way = styles.hiding(changed) if unsure else None
            return way and way._replace(is_certain=False)
        names = styles.COLOR_PROPERTIES if way.property == "color" else {way.property}
        # It may be shown if a rule that does not always apply says anything else.
        others = (item for rule in unsure for item in rule.declared.items())
        is_other = any(name in names and declared.get(name) != value for name, value in others)
        return way._replace(is_certain=way.is_certain and not is_other)

    def _cascade(self, element: Any) -> styles.Declarations:
        """The declarations that win among the attributes and the rules that always apply."""
        if element not in self._cascaded:
            normal, important = styles.style_layers(element.get("style") or "")
            rules = [rule for rule in self._rules.get(element, ()) if not rule.applies]
            layers = [*(rule.normal for rule in rules), normal]
            layers += [*(rule.important for rule in rules), important]
            self._cascaded[element] = declared = _by_attributes(element)
            for layer in layers:
                declared.update(layer)
        return self._cascaded[element]

    def _shown_inside(self, element: Any, name: str) -> set[Any]:
        """The descendants that have their own value of an inherited property and may be shown."""
        if name not in styles.INHERITED:
            return set()
        names = styles.COLOR_PROPERTIES if name == "color" else {name}
        return {
            inside
            for inside in element.iterdescendants("*")
            if not names.isdisjoint(self._cascade(inside)) and self._hiding(inside) is None
        }

    def _by_color(self, element: Any, declared: styles.Declarations) -> styles.Hiding | None:
        """Whether the text has the color of its background."""
        text_color = self._text_color(element)
        background = self._background(element)
        if text_color is None or background is None:
            return None
        distance = text_color.over(background).distance(background)
        if distance > styles.SIMILAR_COLOR or "text" in declared.get("background-clip", ""):
            return None  # Such a background has the shape of the letters.
        is_certain = distance <= styles.SAME_COLOR and declared.get("text-shadow", "none") == "none"
        # A style sheet that is not here may change one of the colors.
        return styles.Hiding("white_text", "color", is_certain and not self._is_linked)

    def _text_color(self, element: Any) -> styles.Color | None:
        """The text color of an element; ``None`` if it is not known."""
        for ancestor in (element, *element.iterancestors()):
            value = self._cascade(ancestor).get("color", "inherit")
            if value not in {"inherit", "currentcolor", "unset"}:
                return styles.color(value)
            if ancestor.tag == "a":
                return None  # Browsers color links.
        return None if self._is_linked else styles.BLACK

    def _background(self, element: Any) -> styles.Color | None:
        """The color behind an element; ``None`` if it is not known."""
        for ancestor in (element, *element.iterancestors()):
            declared = self._cascade(ancestor)
            if declared.get("background-image", "none") != "none":
                return None
            value = declared.get("background-color")
            background = styles.color(value) if value is not None else None
            if value is not None and (background is None or background.alpha > 0):
                return background.over(styles.WHITE) if background else None
        return styles.WHITE

    def _is_switched(self, element: Any) -> bool:
        """Whether people can show the element by a click."""
        role = element.get("role")
        if role in _INTERFACE_ROLES:
            return False
        is_usual = _SWITCHED_CLASS.search(element.get("class") or "") is not None
        return is_usual or role in _SWITCHED_ROLES or element.get("id") in self._controlled


def _is_apart(declared: styles.Declarations) -> bool:
    """Whether an element has a box of its own, which does not touch what is beside it."""
    display = declared.get("display", "")
    is_touching = display.startswith("inline-") and not any(map(_SPACED.search, declared))
    if _APART.search(display) and not is_touching:
        return True
    is_placed = declared.get("position", "") in {"absolute", "fixed"}
    return is_placed or declared.get("float", "none") != "none"


_xpath: Any = lru_cache(maxsize=1_024)(etree.XPath)


def _by_attributes(element: Any) -> dict[str, str]:
    """The declarations that the attributes of an element stand for."""
    declared: dict[str, str] = {}
    is_closed = element.tag == "dialog" and element.get("open") is None
    if is_closed or element.get("hidden") is not None or element.get("popover") is not None:
        declared["display"] = "none"
    text_color = {"font": element.get("color"), "body": element.get("text")}.get(element.tag)
    pairs = (("background-color", element.get("bgcolor")), ("color", text_color))
    for name, value in pairs:
        if value:  # In old pages, `#` may be missing.
            declared[name] = re.sub("^(?=[0-9a-f]{6}$)", "#", value.strip().lower())
    return declared


def _is_interface(element: Any) -> bool:
    """Whether the element is a part of the user interface, or in one."""
    return any(
        ancestor.tag in _INTERFACE_TAGS or ancestor.get("role") in _INTERFACE_ROLES
        for ancestor in (element, *element.iterancestors())
    )


def _texts(element: Any, without: Iterable[Any] = ()) -> Iterator[str]:
    """The texts of an element, with spaces around elements, except those of some inside."""
    yield element.text or ""
    for child in element:
        if child not in without and isinstance(child.tag, str):
            yield from _texts(child, without)
        yield f" {child.tail or ''}" if without else child.tail or ""


def _decorative(element: Any) -> HiddenElement:
    """What screen readers leave out: a few words are decoration, a longer text stays."""
    text = one_line("".join(_texts(element)))
    is_long = len(_WORD.findall(text)) >= _MIN_LABELLED_WORDS
    return element, HiddenPart("aria_hidden", text, is_labelled=is_long, is_kept=is_long)
