"""Shell commands, and the patterns of decisions that they match. Pure.

Patterns remind and are no wall: a script, an alias, ``bash -c`` or another program does the same
under another name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import groupby

MAX_CHARACTERS = 10_000
"""What follows in a longer text is not read as a command."""

_BETWEEN = "\n;&|"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = frozenset("sudo doas env nohup time nice command exec".split())
_WITH_VALUE = frozenset("-u -g -n -C -h -p".split())
_READERS = frozenset("cat diff du df file grep head less ls pwd rg stat tail tree wc which".split())


def command_lines(text: str) -> list[list[str]]:
    """The words of each command of a command line, from the program's name on.

    Without its folder, and what stands before it: assignments, ``sudo`` and its like.
    """
    lexer = shlex.shlex(text[:MAX_CHARACTERS], posix=True, punctuation_chars=_BETWEEN)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:  # An open quote.
        words = re.sub(f"([{_BETWEEN}]+)", r" \1 ", text[:MAX_CHARACTERS]).split(" ")
    groups = groupby(filter(None, words), key=lambda word: set(word) <= set(_BETWEEN))
    commands = (_from_program(list(group)) for is_between, group in groups if not is_between)
    return [command for command in commands if command]


def matching_pattern(patterns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The first pattern that matches a command, with or without its options; else empty."""
    bare = [[word for word in words if not word.startswith("-")] for words in lines]
    written = {" ".join(words) for words in (*lines, *bare)}
    for pattern in patterns:
        glob = " ".join(_from_program(pattern.split()))
        if any(fnmatchcase(line, glob) for line in written):
            return pattern
    return ""


def only_read(lines: Sequence[Sequence[str]]) -> bool:
    """Whether all commands are of programs that only read, and none writes into a file."""
    return all(words[0] in _READERS and ">" not in "".join(words) for words in lines)


def _from_program(words: list[str]) -> list[str]:
    is_wrapped = False
    while words and (
        _ASSIGNMENT.match(words[0])
        or words[0] in _WRAPPERS
        or (is_wrapped and words[0].startswith("-"))
    ):
        is_wrapped |= words[0] in _WRAPPERS
        words = words[2 if is_wrapped and words[0] in _WITH_VALUE else 1 :]
    if words and "*" not in words[0]:
        words = [words[0].rstrip("/").rpartition("/")[2], *words[1:]]
    return words
