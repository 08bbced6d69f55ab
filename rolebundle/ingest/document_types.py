"""The type of a document that declares none, as its format, name, title, parts or folder shows it.

It is observed and not declared: roles may rank by it, and nothing else depends on it. Without clear
evidence there is none. The words of each type are in ``document_types.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from textwrap import shorten
from typing import Any

from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import reader_name_for
from rolebundle.resources import data_file
from rolebundle.text.spellings import key_of

_BEGINNING = 4_000
"""How many characters of a document are looked at for its parts."""
_TITLE_WORDS = 9
"""A longer title is a sentence, and its last word says nothing about the document."""
_MAX_FOLDERS = 4
_TEST = re.compile(
    r"(?:^|/)(?:(?:tests?|specs?|__tests__)/|(?:conftest|test_[^/]*|[^/]*[._-](?:test|spec))\.\w+$)"
)
_OF_COLLECTIONS = frozenset({"minutes", "notes", "letter", "chat", "transcript"})
_OTHER = "other"
"""A paper that is none of the types."""
_SUBJECTS = frozenset({"contract", "quote", "invoice", "policy", "plan", "form"})
"""In a folder of the first, a name with one of these says what the document is about."""

_SPACE = re.compile(r"[\W_]+")
_LINE = r"^[^\w\n]{0,12}(?:\d{1,2}[.):]* )?"


def _listed(words: str) -> list[str]:
    return [*filter(None, map(str.strip, words.split(",")))]


def _any_of(words: Iterable[str]) -> str:
    """A pattern of any of these words, the longest first; a compound has any first part."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\*", r"[^\W\d_]{2,30}") for word in longest_first)


_TABLES = dict(data_file(__file__, "document_types.toml"))
_STATES, _TOPICS, _VERBS = (
    "|".join(_TABLES.pop(name).split()) for name in ("states", "topics", "verbs")
)
_BOUNDARY = re.compile(
    rf"[()\[\]{{}},;:|!?/&+]+|\s+[-–—→]+\s+|(?<![^\W_])(?:v?\d+|{_STATES})(?![^\W_])"
)
_ABOUT = re.compile(rf"(?<! how) (?:{_TOPICS}) .*")
_VERB = re.compile(rf" (?:{_VERBS}) ")


def _shape_of(row: Mapping[str, Any]) -> tuple[str, int, int, re.Pattern[str], re.Pattern[str]]:
    """The type of a row, where it is looked for, how often its first pattern is, and both."""
    keys, start = ("first", "second"), "" if "anywhere" in row else _LINE
    first, second = (re.compile(start + row.get(key, ""), re.MULTILINE) for key in keys)
    return row["type"], row.get("within", _BEGINNING), row.get("times", 1), first, second


_SHAPES = [*map(_shape_of, _TABLES.pop("shape"))]
_WHOLE = {
    place: {word: kind for kind, row in _TABLES.items() for word in _listed(row.get(place, ""))}
    for place in ("files", "folders", "suffixes", "readers")
}
_STARTS = {word: kind for kind, row in _TABLES.items() for word in _listed(row.get("words", ""))}
_TYPES = {
    **{word: kind for kind, row in _TABLES.items() for word in _listed(row.get("heads", ""))},
    **_STARTS,
}
# The longest ends first: "Übergabeprotokoll" is no "Protokoll".
_COMPOUNDS = {
    word[1:]: _TYPES[word] for word in sorted(_TYPES, key=len, reverse=True) if word[0] == "*"
}
_AT_END = re.compile(rf" ({_any_of(_TYPES)}) $")
_AT_END_OF_FOLDER = re.compile(rf" ({_any_of(_TYPES)})(?:s|es|e|n|en)? $")
_AT_START = re.compile(rf"^ ({_any_of(_STARTS)}) ")


def observed_type(path: str, title: str, parsed: ParsedDocument) -> tuple[str, str] | None:
    """The type of a document and what shows it, in a few words; ``None`` without clear evidence.

    Args:
        path: of the file, or of what is attached to it.
        title: the document's title; empty if it has none.
        parsed: the document.
    """
    folders, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".") if "." in name[1:] else (name, "", "")
    reader = reader_name_for(path) or ""
    by_format = _WHOLE["suffixes"].get(suffix.lower()) or _WHOLE["readers"].get(reader)
    if by_format == "source" and _TEST.search(path.lower()):
        return "test", f"it is {name}"
    if by_format:
        return by_format, f"the format {dot}{suffix}" if dot else f"it is {name}"
    return next(_shown(stem, title, parsed, folders.split("/")), None)


def _shown(
    stem: str, title: str, parsed: ParsedDocument, folders: list[str]
) -> Iterator[tuple[str, str]]:
    """What shows a type, the surest first."""
    of_folders = (type_in_name(name, "folders") for name in reversed(folders[-_MAX_FOLDERS:]))
    by_folder = next(filter(None, of_folders), None)
    is_subject = by_folder is not None and by_folder[0] in _OF_COLLECTIONS
    first_line = parsed.blocks[0].text.partition("\n")[0] if parsed.blocks else ""
    names = {"name": stem, "title": title, "first line": first_line}
    for place, name in names.items():
        is_name = place == "name" or len(name.split()) <= _TITLE_WORDS
        kind, word = (type_in_name(name) if is_name else None) or ("", "")
        if kind == _OTHER:
            return
        if kind and place != "first line" and not (is_subject and kind in _SUBJECTS):
            yield kind, f"its {place} has {word!r}"
    texts = [(block.heading or block.text)[:_BEGINNING] for block in parsed.blocks[:100]]
    text = key_of("\n".join(texts)[:_BEGINNING])
    for kind, within, times, first, second in _SHAPES:
        found_first = first.findall(text[:within])
        # The second is not looked for in most documents, which saves half of the time.
        found_second = second.search(text[:within]) if len(found_first) >= times else None
        if found_second:
            found_parts = (found_first[0], found_second[0])
            parts = {_SPACE.sub(" ", part).strip(): None for part in found_parts}
            shown = [repr(shorten(part, 30, placeholder="…")) for part in parts if part]
            yield kind, f"it has {' and '.join(shown) or 'blanks to fill in'}"
    if by_folder and by_folder[0] != _OTHER:
        yield by_folder[0], f"its folder has {by_folder[1]!r}"


@lru_cache(maxsize=4096)
def type_in_name(name: str, place: str = "files") -> tuple[str, str] | None:
    """The type that a name or title shows, and the word that shows it.

    Args:
        name: of a file without suffix, of a folder, or a title.
        place: ``files``, also for a title, or ``folders``.
    """
    split = (_SPACE.sub(" ", part).strip() for part in _BOUNDARY.split(key_of(name)[:300]))
    parts = [part for part in split if part]
    whole = _WHOLE[place].get(parts[0]) if len(parts) == 1 else None
    if whole:
        return (whole, parts[0]) if whole != "none" else None
    at_end = _AT_END if place == "files" else _AT_END_OF_FOLDER
    for part in (f" {part} " for part in parts):
        start = _AT_START.search(part)
        # Several words say more than the last one of them: "acta de entrega".
        is_phrase = start is not None and " " in start[1]
        found = start if is_phrase else at_end.search(_ABOUT.sub(" ", part)) or start
        if found and (_VERB.match(part) is None or found.start() == 0):
            word = found[1]
            of_compound = (kind for end, kind in _COMPOUNDS.items() if word.endswith(end))
            kind = _TYPES.get(word) or next(of_compound)
            return (kind, word) if kind != "none" else None
    return None
