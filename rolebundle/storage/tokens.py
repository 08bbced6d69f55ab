"""The tokens of a text as the lexical indexes have them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import apsw

from rolebundle.storage.lexical_index import TOKENIZER


class Token(NamedTuple):
    """A token: its characters from ``start`` up to ``end`` in the text, and what is indexed."""

    start: int
    end: int
    indexed: str


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order: folded, without Latin diacritics, and with English stems."""
    data = text.encode("utf-8", "replace")
    result: list[Token] = []
    read = characters = 0
    for start, end, *indexed in _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        if text.isascii():
            result.append(Token(start, end, indexed[0]))
            continue
        # The tokenizer counts bytes.
        characters += len(data[read:start].decode())
        first, read = characters, end
        characters += len(data[start:end].decode())
        result.append(Token(first, characters, indexed[0]))
    return result


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    name, *arguments = TOKENIZER.split()
    return apsw.Connection(":memory:").fts5_tokenizer(name, arguments)
