"""The title of a PDF: the declared one if a person wrote it, else the largest text of page 1."""

from __future__ import annotations

from math import hypot
from typing import Any

from pypdf import PageObject

from rolebundle.ingest.readers.titles import is_own_title
from rolebundle.text.decoding import clean

_MAX_CHARS = 200
_MIN_LETTERS = 4
_MAX_LINE_HEIGHT = 1.45
"""Of the lines of one title, in font sizes."""


def declared_title(value: object) -> str:
    """The title in the metadata, on one line; empty if it is none."""
    if not isinstance(value, str):
        return ""
    title = " ".join(clean(value)[0].split())
    return title if is_own_title(title) and _is_sensible(title) else ""


def shown_title(page: PageObject, visible: str) -> str:
    """The largest text of a page that may be a title, else its first line.

    Args:
        page: the first page.
        visible: its text without hidden parts.
    """
    runs: list[tuple[float, list[str]]] = []
    above = 0.0  # the height of the line above

    def add(text: str, cm: Any, tm: Any, _font: Any, font_size: float) -> None:
        nonlocal above
        if not text.strip():
            return
        size = round(abs(font_size * _scale(tm) * _scale(cm)), 1)
        height = float(tm[5]) * _scale(cm) + float(cm[5])
        is_next_line = abs(above - height) <= _MAX_LINE_HEIGHT * size
        if not (runs and runs[-1][0] == size and is_next_line):
            runs.append((size, []))
        runs[-1][1].append(text)
        above = height

    page.extract_text(visitor_text=add)
    letters = "".join(visible.split())
    # Text of the smallest size is no title. The first of several texts of one size is.
    smallest = min((size for size, _ in runs), default=0.0)
    large = [run for run in runs if run[0] > smallest]
    for _, texts in sorted(large, key=lambda run: -run[0]):
        title = " ".join("".join(texts).split())
        is_visible = "".join(title.split()) in letters
        if is_visible and _is_sensible(title) and len(title) <= _MAX_CHARS:
            return clean(title)[0]
    for line in visible.split("\n"):
        if _is_sensible(line):
            return clean(" ".join(line.split())[:_MAX_CHARS])[0]
    return ""


def _scale(matrix: Any) -> float:
    return hypot(float(matrix[1]), float(matrix[3]))


def _is_sensible(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= _MIN_LETTERS
