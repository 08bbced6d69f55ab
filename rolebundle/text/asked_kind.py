"""Which kind of text a task asks for: prose, code or tests. English only."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

TextKind = Literal["prose", "code", "tests"]

# "Which test covers …", "tests for …", "test_slots", "TestMatchWildcard".
_TESTS = (
    r"(?i:\b(?:which|what|where\s+(?:is|are)|(?:is|are)\s+there|find|show)\s+(?:\w+\s+){0,2}?tests?\b"
    r"|^\W*(?:\w+\s+)?tests?\s+(?:for|of|that|which)\b"
    r"|\btests?\s+(?:\w+\s+)?(?:cover|check|exercis|verif|assert)\w*|\btest_\w|_test\b)|\bTest[A-Z]"
)
# "Where is … implemented?", "which function …". "How do I implement …" does not ask for code.
_CODE = (
    r"(?i:\bimplement(?:s|ed|ations?)\b|\b(?:source\s+code|in\s+the\s+code|definition)\b"
    r"|\b(?:which|what)\s+(?:\w+\s+)?(?:functions?|methods?|class(?:es)?|modules?|code|source)\b"
    r"|\bcode\s+(?:that|which|where)\b"
    r"|\bwhere\b.{0,200}\b(?:defined|declared|raised|thrown|called|invoked|parsed|computed|calculated"
    r"|checked|detected|validated|instantiated)\b)"
)
_QUESTION = (
    r"[?\uff1f]"
    r"|(?i:^\W*(?:how|what|when|where|which|who|why|can|could|do|does|is|are|may|must|should)\b)"
)
# Prose, code, or both may answer these. "How does it …" asks how a thing works. Identifiers are
# snake_case, LineDecoder, run(), std::vector, `quoted`, httpx.Client, ha.py; not PostgreSQL.
_ANY = (
    r"(?i:^\W*how\s+(?:does|is|are)\b)"
    r"|\w_\w|[a-z]{2}[A-Z]\w*[a-z]|\w\(\)|\w::\w|`|\b[A-Za-z]\w*\.[A-Za-z_]\w+|\bTraceback\b"
)
_TEST_FILE = (
    r"(?i)(?:^|/)(?:tests?|testing|testsuite|specs?|__tests__)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*[-_.](?:test|spec)\.[^/]*|conftest\.py)$"
)
_MARKUP = (".tex", ".xml")
"""Files that are read as code and are mostly prose."""


def asked_kind(task: str) -> TextKind | None:
    """The kind of text that a task asks for; ``None`` if prose and code may both answer it.

    Only a question asks for prose. "Attachment uploads" or "Review the queue" ask for either.
    """
    if _pattern(_TESTS).search(task):
        return "tests"
    if _pattern(_CODE).search(task):
        return "code"
    is_open = _pattern(_ANY).search(task) or not _pattern(_QUESTION).search(task)
    return None if is_open else "prose"


def kind_of_text(path: str, *, is_code: bool) -> TextKind:
    """The kind of a text in a file; ``is_code`` if the text has nothing but code."""
    if not is_code or path.lower().endswith(_MARKUP):
        return "prose"
    return "tests" if _pattern(_TEST_FILE).search(path) else "code"


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
