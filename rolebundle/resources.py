"""The data that ships with the package: folders, and tables beside modules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent
ENGLISH_VOCABULARY = _PACKAGE / "embedding" / "minilm_vocabulary" / "vocabulary.txt"
"""One word or part of a word a line, the most frequent first."""


def data_folder(name: str) -> Path:
    """The folder ``migrations``, ``overlays`` or ``sample_corpus``.

    A wheel carries it inside the package (``rolebundle/_data``); a checkout has it at the top.
    """
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def demo_overlays() -> Path:
    """The folder with the roles of the sample corpus, which no other corpus is offered."""
    return data_folder("sample_corpus") / "overlays"


@cache
def data_file(module: str, name: str) -> dict[str, Any]:
    """The TOML file of a name beside a module, which passes its ``__file__``."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


def expanded(text: str | list[str], words: Mapping[str, str | list[str]]) -> str:
    """An expression of a table, with the meanings of its ``%words%``, which may have others."""
    text = "".join(text)
    while names := [name for name in re.findall(r"%(\w+)%", text) if name in words]:
        text = text.replace(f"%{names[0]}%", "".join(words[names[0]]))
    return text


def inverted(table: Mapping[str, str]) -> dict[str, str]:
    """Each word of a table of words with its key."""
    return {word: key for key, words in table.items() for word in words.split()}
