"""The elements of a page that people do not see: by attributes, inline styles and own style sheets.

What is certainly hidden is removed from the text. What people may see, for example after a click,
on another screen, or because a linked style sheet says so, stays and is labelled. Removed parts are
labelled as well, except a few words and parts of the user interface, which ordinary pages hide too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from lxml import etree

from rolebundle.ingest.readers.html_lines import byte_pattern
from rolebundle.ingest.readers.html_selectors import SelectorMatcher, TooMuchWorkError
from rolebundle.scan.hidden_style import (
    BLACK,
    COLOR_PROPERTIES,
    INHERITED,
    SAME_COLOR,
    SIMILAR_COLOR,
    WHITE,
    Color,
    Declarations,
    Hiding,
    color,
    declarations,
    hiding,
    split_declarations,
)
from rolebundle.scan.style_sheets import Rule, rules_of

# Most pages contain nothing of this; RE2 rules them out quickly.
_HINT = (
    rb"(?i)hidden(?:[\s\v][^<>]*)?[=/>]|[\s\v\"'/]style[\s\v]*="
    rb"|bgcolor|popover|<(?:font|dialog|annotation|mphantom|datalist|canvas|audio|video)"
)
# A class or id with a character reference.
_ENCODED_NAME = rb"(?i)(?:class|id)[\s\v]*=[\s\v]*(?:\"[^\"]*&|'[^']*&|[^\s\v\"'>]*&)"
_STYLE_ELEMENT = re.compile(rb"<style([^>]*)>(.*?)(?:</style|\Z)", re.IGNORECASE | re.DOTALL)
_MEDIA = re.compile(r"\bmedia\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_ATTRIBUTES = ("hidden", "style", "aria-hidden", "popover", "bgcolor")
_PATHS: dict[str, Any] = {
    name: etree.XPath(f"descendant-or-self::*/@{name}/..") for name in _ATTRIBUTES
}
# Formulas carry their source beside what is shown, and media a text for browsers without them.
_NEVER_SHOWN = ("annotation", "annotation-xml", "mphantom", "datalist", "canvas", "audio", "video")
_TAGS = ("dialog", "font", *_NEVER_SHOWN)
_SHEET_HINT = rb"(?i)<style[\s>]"
# Texts for screen readers, such as "Skip to the content", by the usual names of their class.
_SPOKEN = re.compile(
    r"(?:^|\s)(?:[a-z-]*-)?(?:sr-only(?:-focusable)?|visually-?hidden(?:-focusable)?"
    r"|screen-?reader(?:s|-text|-only|-response)?)(?:\s|$)",
    re.IGNORECASE,
)
_CONTROLS: Any = etree.XPath(
    "//@aria-controls | //@data-target | //@data-bs-target | //@popovertarget"
)
_LINKED: Any = etree.XPath(
    "boolean(//link[contains(translate(@rel,'STYLEH','styleh'),'stylesheet')])"
)
_COUNT: Any = etree.XPath("count(//*)")
# Parts that people show by a click, by their role and by the usual words in their class.
_SWITCHED_ROLES = frozenset(("tabpanel", "region"))
_SWITCHED_CLASS = re.compile(
    r"(?:^|[\s_-])(?:tab-?(?:panel?|content|set|item)?s?|accordion|collaps(?:e|ed|ible)|expand(?:er|able)?"
    r"|toggle(?:able)?|spoiler|faq|details|carousel|slide)(?:$|[\s_-])",
    re.IGNORECASE,
)
# Parts of the user interface. They are removed if they are hidden, and never labelled.
_INTERFACE_ROLES = frozenset(
    "dialog alertdialog alert menu menubar listbox tooltip status search navigation banner toolbar"
    " progressbar combobox".split()
)
_INTERFACE_TAGS = frozenset(("form", "dialog", "nav", "fieldset", "label", "legend", "menu"))
_NOTICE = re.compile(r"java\s?script|\bscripts?\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MIN_LABELLED_WORDS = 4
_MIN_SPOKEN_WORDS = 12
# Style sheets of larger pages are not evaluated, and of a sheet only so many rules.
_MAX_ELEMENTS = 50_000
_MAX_RULES = 400
_MAX_COMPARISONS = 1_000_000
"""Of the colors and backgrounds of a sheet. In one with more, any text may be as its background."""


class HiddenElement(NamedTuple):
    """An element that people do not see, or perhaps do not see.

    Attributes:
        element: the element.
        kind: the kind of the finding.
        text: its text.
        is_kept: whether people may see it, so that its text stays.
        is_labelled: whether the document is labelled for it.
    """

    element: Any
    kind: str
    text: str
    is_kept: bool
    is_labelled: bool


Sheets = tuple[tuple[str, str], ...]
"""Style sheets, each with its text and its media."""


def hiding_sheets(source: bytes) -> Sheets:
    """The style sheets in the source of a page, unless none of them can hide anything on it."""
    if byte_pattern(_SHEET_HINT).search(source) is None:
        return ()
    sheets = []
    for attributes, css in _STYLE_ELEMENT.findall(source):
        media = _MEDIA.search(attributes.decode("utf-8", "replace"))
        value = next(filter(None, media.groups()), "") if media else ""
        sheets.append((css.decode("utf-8", "replace"), value))
    body = _STYLE_ELEMENT.sub(b"", source)
    names = {names for sheet in sheets for names in _needed_names(*sheet)}
    is_encoded = bool(names) and byte_pattern(_ENCODED_NAME).search(body) is not None
    if is_encoded or any(name in body and behind in body for name, behind in names):
        return tuple(sheets)
    return ()


@lru_cache(maxsize=64)
def _needed_names(css: str, media: str) -> frozenset[tuple[bytes, bytes]]:
    """Pairs of class names or ids: a page that has both of any pair may hide text."""
    return frozenset(
        (rule.selector.name.encode(), behind.encode())
        for rule, behind in _suspects(rules_of(css, media))
    )


def _suspects(rules: Sequence[Rule]) -> Iterator[tuple[Rule, str]]:
    """The rules that may hide an element by themselves or together with a background.

    Each has the class or id of the element with that background, or an empty text.
    """
    backgrounds = {(WHITE, ""): None}
    for rule in rules:
        behind = color(rule.declared.get("background-color", ""))
        if behind is not None and behind.alpha > 0:
            backgrounds[behind, rule.selector.name] = None
    is_comparable = len(backgrounds) * len(rules) <= _MAX_COMPARISONS
    for rule in rules:
        if rule.applies == "inactive":
            continue
        if hiding(rule.declared) is not None:
            yield rule, ""
            continue
        own = color(rule.declared.get("background-color", ""))
        has_own = own is not None and own.alpha > 0
        text_color = color(rule.declared.get("color", "black" if has_own else ""))
        if text_color is not None and not is_comparable:
            yield rule, ""
        elif text_color is not None:
            tested_backgrounds = [(own, "")] if own is not None and has_own else backgrounds
            for background, name in tested_backgrounds:
                if text_color.over(background).distance(background) <= SIMILAR_COLOR:
                    yield rule, name


def hidden_elements(
    root: Any, main: Any, markup: bytes, sheets: Sheets, fallbacks: Sequence[Any] = ()
) -> list[HiddenElement]:
    """The hidden elements in ``main``, and those that contain it; outer elements first.

    Elements inside of an element whose text is removed are left out.

    Args:
        root: the root of the page.
        main: the element whose text is read.
        markup: the source that was parsed.
        sheets: the style sheets of the whole page that may hide elements.
        fallbacks: the ``<noscript>`` elements in ``main``.
    """
    results = [_noscript(element) for element in fallbacks]
    if sheets or byte_pattern(_HINT).search(markup) is not None:
        results += _Page(root, main, markup, sheets).hidden()
    return results


class _Page:
    """One page, and the rules of its style sheets that match its elements."""

    def __init__(self, root: Any, main: Any, markup: bytes, sheets: Sheets) -> None:
        self._root = root
        self._main = main
        self._markup = markup.lower()
        self._around = [main, *main.iterancestors()]
        self._rules: dict[Any, list[tuple[int, Rule]]] = defaultdict(list)
        self._is_linked: bool | None = None
        self._controlled: set[str] | None = None
        self._suspects: list[Any] = []
        self.is_cut = False
        if sheets:
            self._match(sheets)

    def _match(self, sheets: Sheets) -> None:
        """Find the elements of all rules that may hide, and of the rules that may show them."""
        every = tuple(rule for sheet in sheets for rule in rules_of(*sheet))
        suspects = {id(rule): rule for rule, _ in _suspects(every)}.values()
        if len(suspects) > _MAX_RULES or _COUNT(self._root) > _MAX_ELEMENTS:
            self.is_cut = True
            return
        try:
            self._evaluate(every, suspects)
        except TooMuchWorkError:
            self.is_cut = True
            self._suspects, self._rules = [], defaultdict(list)

    def _evaluate(self, every: Iterable[Rule], suspects: Iterable[Rule]) -> None:
        matcher = SelectorMatcher(self._root)
        concerned: set[str] = set()
        elements: dict[Any, None] = {}
        for rule in suspects:
            matches = [e for e in matcher.matches(rule.selector) if self._has_text(e)]
            if matches:
                way = hiding(rule.declared)
                concerned.update(way.properties if way else COLOR_PROPERTIES)
                elements.update(dict.fromkeys(matches))
        self._suspects = list(elements)
        for order, rule in enumerate(every):
            if not concerned.isdisjoint(rule.declared):
                for element in matcher.matches(rule.selector):
                    self._rules[element].append((order, rule))

    def _has_text(self, element: Any) -> bool:
        """Whether an element that is in the main part, or around it, has any text."""
        return bool(len(element) or element.text) and (
            element in self._around or any(a is self._main for a in element.iterancestors())
        )

    def hidden(self) -> list[HiddenElement]:
        """The hidden elements in the order of the page."""
        removed: set[Any] = set()
        results = []
        if self.is_cut:
            results.append(HiddenElement(self._main, "invisible_element", "", True, True))
        for element in self._candidates():
            if removed and any(ancestor in removed for ancestor in element.iterancestors()):
                continue
            result = self._examined(element)
            if result is not None:
                results.append(result)
                if not result.is_kept:
                    removed.add(element)
        return results

    def _candidates(self) -> Iterable[Any]:
        """The elements to examine, outer elements first."""
        tags = [tag for tag in _TAGS if b"<" + tag.encode() in self._markup]
        elements = dict.fromkeys(self._main.iter(*tags)) if tags else {}
        for name in _ATTRIBUTES:
            if name.encode() in self._markup:
                elements.update(dict.fromkeys(filter(_may_be_hidden, _PATHS[name](self._main))))
        elements.update(dict.fromkeys(e for e in self._suspects if e not in self._around))
        inside = list(elements)
        if len(inside) > 1:
            inside.sort(key=lambda element: sum(1 for _ in element.iterancestors()))
        return [*reversed(self._around), *inside]

    def _examined(self, element: Any) -> HiddenElement | None:
        tag = element.tag
        if tag in _NEVER_SHOWN:
            return HiddenElement(element, "invisible_element", "", is_kept=False, is_labelled=False)
        if not len(element) and not element.text:
            return None
        result = self._hiding(element)
        if result is None:
            return _decorative(element) if element.get("aria-hidden") == "true" else None
        if result.kind == "white_text" and element in self._around:
            return None  # The elements inside have colors of their own.
        is_around = element in self._around
        text, is_partly_shown = self._hidden_text(
            self._main if is_around else element, result.properties
        )
        count = _count(text)
        if is_partly_shown and not count:
            return None
        is_kept = (
            is_partly_shown or is_around or not result.is_certain or self._is_switched(element)
        )
        if is_kept:
            is_labelled = count > 0
        else:
            is_spoken = _SPOKEN.search(element.get("class") or "") is not None
            least = _MIN_SPOKEN_WORDS if is_spoken else _MIN_LABELLED_WORDS
            is_labelled = count >= least and not self._is_interface(element)
        return HiddenElement(element, result.kind, text, is_kept, is_labelled)

    def _hiding(self, element: Any) -> Hiding | None:
        """How an element is hidden by its attributes and styles."""
        declared, doubtful = self._computed(element)
        if element.get("popover") is not None or (
            element.tag == "dialog" and element.get("open") is None
        ):
            declared = {"display": "none", **declared}
        result = hiding(declared) if declared else None
        if result is None or not result.is_certain:
            result = self._by_color(element, declared) or result
        if result is None or not result.is_certain:
            return result
        return result._replace(is_certain=doubtful.isdisjoint(result.properties))

    def _computed(self, element: Any) -> tuple[Declarations, set[str]]:
        """The declarations that win, and the properties that are not always so."""
        declared: dict[str, str] = {}
        if element.get("hidden") is not None:
            declared["display"] = "none"
        if element.get("bgcolor"):
            declared["background-color"] = _old_color(element.get("bgcolor"))
        old_color = element.get("color") if element.tag == "font" else element.get("text")
        if old_color and element.tag in {"font", "body"}:
            declared["color"] = _old_color(old_color)
        style = element.get("style")
        rules = self._rules.get(element)
        if not rules:
            return ({**declared, **declarations(style)} if style else declared), set()
        doubtful: set[str] = set()
        ordered = sorted(rules, key=lambda pair: (pair[1].selector.specificity, pair[0]))
        active = [rule for _, rule in ordered if rule.applies != "inactive"]
        normal, important = split_declarations(style) if style else ({}, {})
        layers = [(rule.declared, rule.applies) for rule in active]
        layers.append((normal, "always"))
        layers += [(rule.important, rule.applies) for rule in active]
        layers.append((important, "always"))
        for layer, applies in layers:
            for name, value in layer.items():
                if applies == "sometimes" and declared.get(name) != value:
                    doubtful.add(name)
                elif applies == "always":
                    doubtful.discard(name)
                declared[name] = value
        for _, rule in ordered:
            if rule.applies == "inactive":
                doubtful.update(n for n, v in rule.declared.items() if declared.get(n) != v)
        return declared, doubtful

    def _hidden_text(self, element: Any, properties: Iterable[str]) -> tuple[str, bool]:
        """The text that is hidden, and whether other text inside of the element is shown.

        A descendant that has its own value of an inherited property may be shown.
        """
        changes = {name for name in properties if name in INHERITED}
        if "color" in changes:
            changes |= COLOR_PROPERTIES
        visible_elements: set[Any] = set()
        for inside in element.iterdescendants("*") if changes else ():
            own = self._computed(inside)[0]
            if not changes.isdisjoint(own) and hiding(own) is None:
                visible_elements.add(inside)
        if not visible_elements:
            return _words(element), False
        parts = [element.text or ""]
        for inside in element.iterdescendants():
            around = takewhile(lambda a: a is not element, inside.iterancestors())
            is_shown_around = any(ancestor in visible_elements for ancestor in around)
            if (
                inside not in visible_elements
                and not is_shown_around
                and isinstance(inside.tag, str)
            ):
                parts.append(inside.text or "")
            if not is_shown_around:
                parts.append(inside.tail or "")
        return " ".join(" ".join(parts).split()), True

    def _by_color(self, element: Any, declared: Declarations) -> Hiding | None:
        """Whether the text has the color of its background."""
        if COLOR_PROPERTIES.isdisjoint(declared):
            return None
        text_color, owns_color = self._text_color(element)
        background, owns_background = self._background(element)
        if text_color is None or background is None:
            return None
        distance = text_color.over(background).distance(background)
        if distance > SIMILAR_COLOR:
            return None
        if "text" in declared.get("background-clip", ""):
            return None  # The background has the shape of the letters.
        is_certain = distance <= SAME_COLOR and declared.get("text-shadow", "none") == "none"
        if not (owns_color and owns_background) and text_color.alpha > 0:
            is_certain = is_certain and not self._has_linked_sheet()
        return Hiding("white_text", ("color", "background-color"), is_certain)

    def _text_color(self, element: Any) -> tuple[Color | None, bool]:
        """The text color of an element, and whether the element itself declares it."""
        for ancestor in (element, *element.iterancestors()):
            value = self._computed(ancestor)[0].get("color", "inherit")
            if value not in {"inherit", "currentcolor", "unset"}:
                return color(value), ancestor is element
            if ancestor.tag == "a":
                return None, False  # Browsers color links.
        return (None if self._has_linked_sheet() else BLACK), False

    def _background(self, element: Any) -> tuple[Color | None, bool]:
        """The color behind an element, and whether the element itself declares it."""
        for ancestor in (element, *element.iterancestors()):
            declared = self._computed(ancestor)[0]
            if declared.get("background-image", "none") != "none":
                return None, False
            value = declared.get("background-color")
            if value is None:
                continue
            background = color(value)
            if background is None or background.alpha > 0:
                is_own = ancestor is element
                return (background.over(WHITE) if background else None), is_own
        return WHITE, False

    def _has_linked_sheet(self) -> bool:
        if self._is_linked is None:
            self._is_linked = bool(_LINKED(self._root))
        return self._is_linked

    def _is_switched(self, element: Any) -> bool:
        """Whether people can show the element by a click."""
        if element.get("role") in _INTERFACE_ROLES:
            return False
        if element.get("role") in _SWITCHED_ROLES or _SWITCHED_CLASS.search(
            element.get("class") or ""
        ):
            return True
        if self._controlled is None:
            values = " ".join(_CONTROLS(self._root)).split()
            self._controlled = {value.lstrip("#") for value in values}
        return element.get("id") in self._controlled

    def _is_interface(self, element: Any) -> bool:
        """Whether the element is a part of the user interface, or in one."""
        return any(
            ancestor.tag in _INTERFACE_TAGS or ancestor.get("role") in _INTERFACE_ROLES
            for ancestor in (element, *element.iterancestors())
        )


def _may_be_hidden(element: Any) -> bool:
    """Whether an element with one of the attributes may be hidden; few of those with a style."""
    style = element.get("style")
    return not style or len(element.attrib) > 1 or _is_suspect_style(style)


@lru_cache(maxsize=4_096)
def _is_suspect_style(style: str) -> bool:
    declared = declarations(style)
    return hiding(declared) is not None or not COLOR_PROPERTIES.isdisjoint(declared)


def _old_color(value: str) -> str:
    """The value of an attribute such as ``bgcolor``, in which ``#`` may be missing."""
    value = value.strip().lower()
    return f"#{value}" if re.fullmatch(r"[0-9a-f]{6}", value) else value


def _noscript(element: Any) -> HiddenElement:
    """A text for readers without scripts: it stays, unless it is a request to allow scripts."""
    text = _words(element)
    is_kept = _count(text) >= _MIN_LABELLED_WORDS and _NOTICE.search(text) is None
    return HiddenElement(element, "invisible_element", text, is_kept, is_kept)


def _decorative(element: Any) -> HiddenElement | None:
    """What screen readers leave out: a few words are decoration, a longer text stays."""
    text = _words(element)
    is_long = _count(text) >= _MIN_LABELLED_WORDS
    return HiddenElement(element, "aria_hidden", text, is_kept=is_long, is_labelled=is_long)


def _words(element: Any) -> str:
    text: str = etree.tostring(element, method="text", encoding=str, with_tail=False)
    return " ".join(text.split())


def _count(text: str) -> int:
    return len(_WORD.findall(text))
