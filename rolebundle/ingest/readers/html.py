"""HTML pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from rolebundle.contracts.ingest import utc_text
from rolebundle.ingest.parsed import ParsedDocument, title_in
from rolebundle.ingest.readers import notation, parser_errors
from rolebundle.ingest.readers.html_blocks import (
    BLOCKS,
    HEADINGS,
    LISTS,
    VERBATIM,
    countable_source,
    end_line,
    file_lines,
    holds_block,
    html_blocks,
    spaced_text,
    start_line,
    text_of,
)
from rolebundle.ingest.readers.html_hidden import HiddenElement, Page, page_sheets, parsed_page
from rolebundle.ingest.readers.mathml import mathml_text
from rolebundle.resources import data_file
from rolebundle.scan.finding import HiddenPart
from rolebundle.text.decoding import decode, one_line

_WORD = re.compile(r"[^\W\d_]{2,}")
_SHOWN = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_BARS = re.compile("[|·•»›]")
_SKIPPED_TAGS = "script style template iframe head title progress meter".split()
_GROUPS = ("ul", "ol", "menu", "div", "p", "nav", "section", "table", "form")
_MIN_LINKS, _MAX_LINK_WORDS = 2, 8
"""In a list of links: how many links, and words of a link."""
_OTHER_SHARE, _MAX_OTHER_WORDS = 1 / 9, 3
"""The words beside the links, of those in them; in navigation, such as its heading."""
_MIN_LEFT = 1 / 3
"""What is left of a page must have this share of its words; else all of it is read."""
_NOTED_SHARE = 1 / 2
_ALNUM = re.compile(r"[^\W_]")
_TABLE = data_file(__file__, "html.toml")
_REGIONS: Any = etree.XPath(_TABLE["xpaths"]["regions"])
_CONTENTS = re.compile(_TABLE["contents"], re.IGNORECASE)
_UPDATED = {"article:modified_time", "last-modified", "dcterms.modified"}
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MAX_COMMENT_CHARS = 4_000
"""Of a longer comment only the beginning is searched for instructions."""
_LINE_BREAK = re.compile("\r\n|\r|\n")
_ADDED_TEXT = re.compile(
    r"content\s*:(?:[^;{}]*?\b(?:counters?|attr\(data-)|\s*\"[^\"\\\n]*\w[^\"\n]*\"|\s*'[^'\\\n]*\w[^'\n]*')"
)
"""A number or a word in what a style sheet adds to elements."""


def read_page(
    data: bytes, path: str, *, is_message: bool = False, is_mail: bool = False, declared: str = ""
) -> ParsedDocument:
    """The document of a page.

    Args:
        data: the bytes of the page.
        path: its file, for messages.
        is_message: whether all of it is its own text, and its scripts never run, as in mails and
            books. Else lists of links are left out.
        is_mail: whether what it has in a ``blockquote`` is a message that it quotes.
        declared: the label of the encoding that a mail or archive declares for the page.

    Raises:
        DocumentError: ``unreadable_html``, ``undecodable``.
    """
    text, notes = decode(data, path, declared)
    source = countable_source(text.encode())
    with parser_errors("unreadable_html", path):
        root, problem = parsed_page(source)
        if problem:
            raise ValueError(problem)
    if root is None:
        return ParsedDocument(line_exact=False, notes=notes)
    body = root.find("body")
    body = root if body is None else body
    inferred = _head_metadata(root)
    sheets = page_sheets(root)
    if any(_ADDED_TEXT.search(sheet) for sheet, _ in sheets):
        notes += ("left out: text that style sheets add",)
    _empty_unread(body, has_scripts=not is_message)
    if not is_message:
        notes += _empty_link_lists(body)
    page = Page(root, body, sheets)
    for element in page.apart():
        _set_apart(element)
    hidden = page.hidden()
    parts = (*(_hidden_parts(hidden, text) if hidden else ()), *_comments(text))
    for element, part in hidden:
        if not part.is_kept:
            _empty(element)
    _write_signs(body)
    for one in body.xpath(_TABLE["xpaths"]["struck"]):
        setattr(one.getparent(), "tail" if one.is_tail else "text", _SHOWN.sub(r"~~\g<0>~~", one))
    count = source.count(b"\n") + (not source.endswith(b"\n"))
    blocks = html_blocks(body, count, is_mail=is_mail)
    return ParsedDocument(
        blocks=blocks,
        inferred={**inferred, "title": inferred["title"] or title_in(blocks)},
        line_exact=False,
        notes=notes,
        hidden=parts,
    )


def _head_metadata(root: Any) -> Mapping[str, str]:
    """Language, title and date from the root element and the head."""
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    updated = ""
    for meta in root.iterfind("head/meta"):
        name = meta.get("property") or meta.get("name") or meta.get("http-equiv") or ""
        value = meta.get("content", "").strip()
        if name.lower() in _UPDATED and utc_text(value):
            updated = value
    title = one_line(root.findtext("head/title", ""))
    return {"language": language.strip(), "title": title, "updated_at": updated}


def _empty_unread(main: Any, *, has_scripts: bool) -> None:
    """Empty the elements without readable text, and what repeats the page's own text."""
    for element in list(main.iter(*_SKIPPED_TAGS, *["noscript"] * has_scripts)):
        _empty(element)
    for link in list(main.iterfind(".//a[@href]")):
        if link.get("href")[:1] == "#" and not _ALNUM.search(text_of(link)):
            _empty(link)  # Usually a mark beside a heading.
    # A table of contents repeats the headings. Its own heading would be above all that follows.
    heading = None
    for element in list(main.iter("ul", "ol", *HEADINGS)):
        if element.tag in HEADINGS:
            heading = element
        elif _links_within_page(element):
            _empty(element)
            if heading is not None and _CONTENTS.fullmatch(one_line(text_of(heading))):
                _empty(heading)


def _links_within_page(element: Any) -> bool:
    """Whether a list has nothing but links to parts of its page, and more than two."""
    links = list(element.iter("a"))
    is_within = len(links) > 2 and all(link.get("href", "")[:1] == "#" for link in links)
    return is_within and one_line(" ".join(map(text_of, links))) == one_line(spaced_text(element))


def _empty_link_lists(body: Any) -> tuple[str, ...]:
    """Empty the lists of links in regions such as ``nav``.

    Returns:
        A note if much of the page was left out.
    """
    groups = {e for r in _REGIONS(body) for e in (r, *r.iterdescendants(*_GROUPS))}
    lists = set(filter(_is_link_list, groups))
    lists = {e for e in lists if lists.isdisjoint(e.iterancestors())}
    total, removed = _count_words(body), sum(map(_count_words, lists))
    if not removed or total - removed < total * _MIN_LEFT:
        return ()
    for element in lists:
        _empty(element)
    share = removed / total
    note = f"left out: lists of links with {share:.0%} of the page's words"
    return (note,) if share > _NOTED_SHARE else ()


def _count_words(element: Any) -> int:
    """The words of an element, without signs that stand alone."""
    return sum(map(bool, map(_ALNUM.search, spaced_text(element).split())))


def _is_link_list(element: Any) -> bool:
    """Whether an element has several short links and, but for few words, nothing else."""
    links = list(element.iter("a"))
    is_navigation = element.tag == "nav" or element.get("role") == "navigation"
    if is_navigation and not links:  # Scripts may follow them.
        names = [name for name in _BARS.split(spaced_text(element)) if name.strip()]
        return len(names) > 2 and all(len(name.split()) <= _MAX_OTHER_WORDS for name in names)
    if len(links) < _MIN_LINKS:
        return False
    words = sum(map(_count_words, links))
    others = _count_words(element) - words
    most = max(_OTHER_SHARE * words, _MAX_OTHER_WORDS if is_navigation else 0)
    return words <= _MAX_LINK_WORDS * len(links) and others <= most


def _empty(element: Any) -> None:
    """Remove the content of ``element`` except its line breaks, with which lines are counted."""
    breaks = end_line(element) - start_line(element)
    element.clear(keep_tail=True)
    element.text = "\n" * breaks or None


def _comments(page: str) -> Iterator[HiddenPart]:
    """The comments for people: `<!--[if IE]>` and one word such as `<!-- more -->` are not."""
    for comment in _COMMENT.finditer(page):
        text = one_line(comment[1][:_MAX_COMMENT_CHARS])
        if len(_WORD.findall(text)) > 1 and not text.startswith("[if "):
            yield HiddenPart("markup_comment", text, *comment.span(), is_labelled=False)


def _hidden_parts(hidden: Sequence[HiddenElement], page: str) -> Iterable[HiddenPart]:
    """The texts of hidden elements, with the offsets of their lines in the page."""
    breaks = [0, *(match.end() for match in _LINE_BREAK.finditer(page)), len(page)]
    for element, part in hidden:
        if part.text or part.is_labelled:
            first, last = file_lines(start_line(element), end_line(element), len(breaks) - 1)
            yield part._replace(start=breaks[first - 1], end=breaks[last])


# -- signs --
#
# What a browser shows by its place or by a drawing is written into the tree as text.


_UNSEEN_INPUTS = frozenset(("hidden", "password", "image", "file", "range", "color"))
_NOTE_MARK = re.compile(_TABLE["note_class"], re.IGNORECASE)
_QUESTION = re.compile(r"(?:\w+\W+){1,40}\w+\W*")


def _write_signs(body: Any) -> None:
    """Write raised and lowered characters, formulas, readings, drawn texts and fields of forms."""
    for element in list(body.iter("math", "svg", "ruby", "sup", "sub", "input", "button")):
        tag = element.tag
        if tag == "math":
            _replace(element, f" {mathml_text(element)} ")
        elif tag == "svg":
            for part in element.xpath("descendant::tspan[@x or @y or @dx or @dy]"):
                part.text = f" {part.text or ''}"
            _replace(element, "".join(f" {one_line(text_of(t))} " for t in element.iter("text")))
        elif tag == "ruby":
            reading = one_line("".join(text_of(part) for part in element.iter("rt")))
            for part in list(element.iter("rt", "rp")):
                _replace(part, "")
            _replace(element, notation.ruby(one_line(text_of(element)), reading))
        elif tag == "input":
            kind = element.get("type", "text").lower()
            text = "" if kind in _UNSEEN_INPUTS else element.get("value", "")
            if kind in ("checkbox", "radio"):
                is_on = element.get("checked") is not None
                text = notation.CHECKED if is_on else notation.UNCHECKED
            _replace(element, f" {text} " if text else "")
        elif tag == "button":
            # A button that opens a section is its heading.
            is_switch = element.get("aria-expanded") or element.get("aria-controls")
            is_inside = any(e.tag in HEADINGS or e.tag in LISTS for e in element.iterancestors())
            if is_switch and not is_inside and _QUESTION.fullmatch(one_line(text_of(element))):
                element.tag = "h6"
            else:
                _set_apart(element)
        elif element.getparent() is not None and not holds_block(element):
            _write_scripts(element)


def _write_scripts(element: Any) -> None:
    """Write a raised or lowered element, after those inside it."""
    for script in reversed([*element.iter("sup", "sub")]):
        text, before = text_of(script), _text_before(script)
        if script.tag == "sub":
            _replace(script, notation.lowered(text, before, script.tail or ""))
            continue
        around = (script, script.getparent(), *script.iter("a"))
        names = (f"{e.get('class', '')} {e.get('role', '')} {e.get('type', '')}" for e in around)
        links = [e for e in around if "#" in e.get("href", "")]
        is_note = bool(text.strip()) and (bool(links) or any(map(_NOTE_MARK.search, names)))
        _replace(script, notation.raised(text, before, script.tail or "", is_note=is_note))


def _text_before(element: Any) -> str:
    """The text of the same line that is next before an element; it may be a part of it."""
    while element.tag not in BLOCKS:
        previous, parent = element.getprevious(), element.getparent()
        if previous is not None:
            has_text = isinstance(previous.tag, str) and previous.tag != "br"
            if text := previous.tail or (text_of(previous) if has_text else ""):
                return text
            element = previous
        elif parent is None or parent.text:
            return (parent.text or "") if parent is not None else ""
        else:
            element = parent
    return ""


def _replace(element: Any, text: str) -> None:
    """Replace the content of an element by a text, with as many line breaks."""
    _empty(element)
    element.text = text + (element.text or "")


def _set_apart(element: Any) -> None:
    """Separate the text of an element from the text beside it, except a large first character."""
    text = text_of(element)
    is_letter = len(text.strip()) == 1 and text.strip().isalpha()
    is_figure = len(text) == 1 and text.isdigit() and (element.tail or "")[:1].isdigit()
    if text and not (is_letter or is_figure):
        is_code = any(e.tag in VERBATIM for e in element.iterancestors())
        element.tag = "div" if is_code else element.tag
        if not is_code:
            element.text = f" {element.text or ''}"
            element.tail = f" {element.tail or ''}"


READERS = {"html": (18, lambda data, path, _separator: [read_page(data, path)])}
