"""The tokens of a text as the lexical indexes have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import apsw

from rolebundle.storage.indexes.lexical_index import TOKENIZER

Token = tuple[int, int, str]
"""Its first character in the text, the one after its last, and what is indexed."""


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order: folded, without Latin diacritics, and with English stems."""
    data = text.encode("utf-8", "replace")
    result: list[Token] = []
    read = characters = 0
    found = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
    if text.isascii():
        return found
    for start, end, indexed in found:
        # The tokenizer counts bytes.
        characters += len(data[read:start].decode())
        first, read = characters, end
        characters += len(data[start:end].decode())
        result.append((first, characters, indexed))
    return result


@cache
def _tokenizer() -> Callable[..., list[tuple[int, int, str]]]:
    name, *arguments = TOKENIZER.split()
    # apsw's types do not tell that the options decide what is returned.
    tokenizer: Any = apsw.Connection(":memory:").fts5_tokenizer(name, arguments)
    return tokenizer  # type: ignore[no-any-return]
