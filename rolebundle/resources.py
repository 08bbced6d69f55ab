"""Where the data folders lie that ship with the package."""

from __future__ import annotations

from pathlib import Path

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
