"""Tasks: lines with a box to tick, and the words that ask for those that are open. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from rolebundle.resources import data_file

OPEN_TASK = "opentask"
"""The word that is indexed with a passage that has an open task, and searched for such tasks."""
OPEN_BOXES = "[ ]", "☐"
_TABLE = data_file(__file__, "languages.toml")["open_tasks"]
_PAIRS = [[frozenset(words.split()) for words in pair] for pair in _TABLE["pairs"]]
_BOX = re.compile(
    r"^[ \t>|]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(\[[ xX]\](?=[ \t,;|])|[☐☑☒])[ \t]*\S", re.MULTILINE
)
_TASK_LABEL = re.compile(
    rf"(?:^[ \t>|#*•-]*|(?<=[.!?] ))(?:{'|'.join(_TABLE['labels'])})(?:[ \t]*:|\**[ \t]*$)",
    re.MULTILINE,
)


def tasks_in(text: str) -> list[str]:
    """Whether its tasks are ``open`` or ``done``: lines with a box or a label before them.

    The line may be in a list, a quote or a table. A label, such as ``TODO:``, may be a line alone.
    """
    labels = ["open"] if _TASK_LABEL.search(text) else []
    return ["open" if box in OPEN_BOXES else "done" for box in _BOX.findall(text)] or labels


def words_for_open_tasks(words: Sequence[str]) -> set[str]:
    """The words that ask for open tasks, of all words of a text, folded; empty if none does."""
    text, own = f" {' '.join(words)} ", {*words}
    found = {word for p in _TABLE["phrases"] if f" {p} " in text for word in p.split()}
    if found or any(own & first and own & second for first, second in _PAIRS):
        found |= own.intersection(chain(*chain(*_PAIRS)))
    return found
