"""The patterns of a `.gitignore`, with the meaning that git gives them.

RE2 matches them in linear time, because a folder that is ingested may be foreign. A pattern is
compared with a path itself, and not with the folders above it: whoever walks a tree does not enter
a folder that is left out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice

import re2

_FOLDER = "\0"
"""Stands after the path of a folder. A slash there would match patterns such as `docs/*`."""
_MAX_PATTERNS = 10_000
_PATTERNS_PER_SET = 100
_STARS = re.compile(r"\*\*+")
_CLASS = r"\[(?P<negation>[!^]?)(?P<members>\]?(?:\[:\w+:\]|\\.|[^\\\]])*)\]"
_TOKEN = re.compile(rf"\\(?P<escaped>.)|\*+|\?|{_CLASS}|[^\\*?\[]", re.DOTALL)


Decision = tuple[bool, str]
"""Whether a path is left out, and the pattern that says so."""


class GitIgnore:
    """The patterns of one ignore file.

    Malformed patterns match nothing, as in git. If a file has more than 10,000, the first count.

    Args:
        text: the content of the file.
    """

    def __init__(self, text: str) -> None:
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        found = [*islice(filter(None, map(_parsed, lines)), _MAX_PATTERNS)]
        self._sets: list[tuple[re2.Set, list[Decision]]] = []
        options = re2.Options()
        options.log_errors = False
        options.dot_nl = True
        for start in range(0, len(found), _PATTERNS_PER_SET):
            expressions, decisions = re2.Set.FullMatchSet(options), list[Decision]()
            for expression, decision in found[start : start + _PATTERNS_PER_SET]:
                with suppress(re2.error):  # such as a range that ends before it begins
                    expressions.Add(expression)
                    decisions.append(decision)
            with suppress(re2.error):
                expressions.Compile()
                self._sets.append((expressions, decisions))

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._sets)

    def decide(self, path: str) -> Decision | None:
        """What the last pattern that matches a path says; ``None`` if none matches.

        Args:
            path: relative to the folder of the file, with slashes; one at the end for a folder.
        """
        text = f"{path[:-1]}{_FOLDER}" if path.endswith("/") else path
        for expressions, decisions in reversed(self._sets):
            if matching := expressions.Match(text):
                last: Decision = decisions[max(matching)]
                return last
        return None


def _parsed(line: str) -> tuple[str, Decision] | None:
    """The regular expression of a line; ``None`` if it has no pattern."""
    if line.startswith("#"):
        return None
    body = _without_trailing_spaces(line)
    is_left_out = not body.startswith("!")
    body = body.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    if not body:
        return None
    is_anchored = "/" in body
    names = body.removeprefix("/").split("/")
    expression = "" if is_anchored else "(?:.*/)?"
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        if is_anchored and _STARS.fullmatch(name):
            expression += (".+" if number else ".*") if is_last else "(?:.*/)?"
            continue
        translated = _translated(name)
        if translated is None:
            return None
        expression += translated + ("" if is_last else "/")
    end = _FOLDER if only_folders else f"{_FOLDER}?"
    return expression + end, (is_left_out, line)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and stripped != line else stripped


def _translated(name: str) -> str | None:
    """One name of a pattern as a regular expression; ``None`` if it is malformed."""
    parts, place = "", 0
    while place < len(name):
        token = _TOKEN.match(name, place)
        if token is None:
            return None
        place, text = token.end(), token[0]
        if text.startswith("*"):
            parts += "[^/]*"
        elif text == "?":
            parts += "[^/]"
        elif token["members"] is not None:
            parts += f"[{'^/' if token['negation'] else ''}{token['members']}]"
        else:
            parts += re2.escape(token["escaped"] or text)
    return parts
