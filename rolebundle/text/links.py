"""What people write in Markdown for their notes: links between files, and `#tags`."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_WIKILINK = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(r"\]\([ \t]*(?:<([^<>\n]+)>|([^\s()<>]+(?:\([^\s()]*\)[^\s()<>]*)*))")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*(?:<([^<>\n]+)>|(\S+))", re.MULTILINE)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_MARKDOWN = re.compile(r"\.(?:md|markdown|mdx)\Z")
# A tag has a letter. A colour and the place within an address are no tags.
_TAG = re.compile(
    r"(?:^|(?<=[\s,;])|(?<=[^\]]\())#(?=[\w/-]*[^\W\d_])([\w-]+(?:/[\w-]+)*)", re.MULTILINE
)
_COLOUR = re.compile(r"[0-9a-fA-F]{3,8}")
_MAX_FOUND = 500

Found = tuple[str, str]
"""A kind (``tag`` or ``links``), and a value."""


def found_in(texts: Iterable[str], path: str) -> tuple[Found, ...]:
    """What is in the texts of a file, apart from code; at most 500 of each kind.

    A tag below another one, as ``#home/garden``, gives both. The target of a link is a path within
    the root, or for a wikilink maybe only a name; see :func:`leads_to`.
    """
    found: dict[Found, None] = {}
    for block in texts:
        if "[" in block or "#" in block:
            text = _CODE.sub("", block)
            found |= dict.fromkeys(("tag", tag) for tag in _tags(text))
            found |= dict.fromkeys(("links", link) for link in _links(text, path))
    kinds = ([one for one in found if one[0] == kind] for kind in ("tag", "links"))
    return tuple(one for own in kinds for one in own[:_MAX_FOUND])


def _tags(text: str) -> Iterator[str]:
    for tag in _TAG.findall(text):
        if not _COLOUR.fullmatch(tag):
            parts = tag.split("/")
            yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def _links(text: str, path: str) -> Iterator[str]:
    yield from (name.strip() for name in _WIKILINK.findall(text))
    for match in (*_LINK.finditer(text), *_DEFINITION.finditer(text)):
        target = match[1] or match[2]
        target = unquote(target.partition("#")[0].partition("?")[0])
        if target and not _ADDRESS.match(target):
            folder = "" if target.startswith("/") else posixpath.dirname(path)
            target = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
            if not target.startswith(".."):
                # The slash tells a file at the top from a name in a wikilink.
                yield target if "/" in target else f"/{target}"


def leads_to(link: str, names: Iterable[str]) -> bool:
    """Whether a link is to the file with one of these paths or names.

    A name without a folder, of the link or of the file, means the file in any folder. Case and the
    suffix of Markdown do not count.
    """
    own = _key(link)
    return any(
        own.lstrip("/") == other.lstrip("/")
        or (
            ("/" not in own or "/" not in other)
            and posixpath.basename(own) == posixpath.basename(other)
        )
        for other in map(_key, names)
    )


def _key(name: str) -> str:
    return _MARKDOWN.sub("", unicodedata.normalize("NFC", name).casefold())
