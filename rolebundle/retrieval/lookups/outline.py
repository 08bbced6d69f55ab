"""The headings of a document with their lines, and the lines below one of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rolebundle.contracts.document import Passage
from rolebundle.contracts.lookup import Heading
from rolebundle.errors import UsageError
from rolebundle.text.counts import first_of

_MAX_NAMED = 12
_MARKDOWN = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_UNDERLINED = (*_MARKDOWN, ".rst", ".txt")
_MARKED = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#])\1{2,}\s*")


def outline_of(passages: Sequence[Passage]) -> list[Heading]:
    """The headings of a document.

    Args:
        passages: all passages of the document, in order.
    """
    found = [*_headings_in_text(passages)] or [*_headings_of_passages(passages)]
    last = max((passage.end_line for passage in passages), default=0)
    ends = [
        next((line - 1 for line, other, _ in found[place + 1 :] if other <= level), last)
        for place, (_, level, _) in enumerate(found)
    ]
    return [
        Heading(heading=name, level=level, start_line=line, end_line=max(line, end))
        for (line, level, name), end in zip(found, ends, strict=True)
    ]


def section_of(outline: Sequence[Heading], document: str, section: str) -> Heading:
    """The heading that a name means: the one that equals it, else the only one that has it.

    Raises:
        UsageError: ``not_found``: no heading or several ones have the name.
    """
    wanted = _letters(section)
    equal = [heading for heading in outline if _letters(heading.heading) == wanted]
    found = equal or [heading for heading in outline if wanted in _letters(heading.heading)]
    if len(found) == 1:
        return found[0]
    if found:
        places = [f"{document}:{heading.start_line}-{heading.end_line}" for heading in found]
        raise UsageError(
            "not_found",
            f"{section}: {document} has several headings of that name",
            f"get the lines of one of them: {first_of(places, _MAX_NAMED)}",
        )
    names = [heading.heading for heading in outline]
    raise UsageError(
        "not_found",
        f"{section}: {document} has no such heading",
        f"its headings are: {first_of(names, _MAX_NAMED)}" if names else "get all of it",
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _headings_in_text(passages: Sequence[Passage]) -> Iterator[tuple[int, int, str]]:
    """The line, level and text of each heading that stands in the file as it is indexed."""
    levels: dict[str, int] = {}
    fence = ""
    for passage in passages:
        lines = passage.content.split("\n")
        if len(lines) != passage.end_line - passage.start_line + 1:
            continue
        path = passage.path.lower()
        for place, line in enumerate(lines):
            mark = line.lstrip()[:3]
            if mark in ("```", "~~~"):
                fence = mark if not fence else "" if mark == fence else fence
            if fence or line[:1].isspace():
                continue
            if path.endswith(_MARKDOWN) and (found := _MARKED.fullmatch(line)):
                yield passage.start_line + place, len(found[1]), found[2]
            elif path.endswith(_UNDERLINED) and _is_underlined(lines, place):
                is_over = place > 0 and lines[place - 1] == lines[place + 1]
                style = lines[place + 1][0] + ("above" if is_over else "")
                level = levels.setdefault(style, len(levels) + 1)
                yield passage.start_line + place, level, line.strip()


def _is_underlined(lines: Sequence[str], place: int) -> bool:
    """Whether a line is a heading by the line of marks below it."""
    line, below = lines[place].rstrip(), lines[place + 1] if place + 1 < len(lines) else ""
    above = lines[place - 1].strip() if place else ""
    return (
        any(map(str.isalnum, line))
        and _UNDERLINE.fullmatch(below) is not None
        and len(below.rstrip()) >= len(line)
        and (not above or above == below.strip())
    )


def _headings_of_passages(passages: Sequence[Passage]) -> Iterator[tuple[int, int, str]]:
    """The line, level and text of each heading with which a passage begins."""
    above: tuple[str, ...] = ()
    for passage in passages:
        for depth, name in enumerate(passage.headings):
            if passage.headings[: depth + 1] != above[: depth + 1]:
                yield passage.start_line, depth + 1, name
        above = passage.headings
