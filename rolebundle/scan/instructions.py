"""Instructions to a model in a document's text: patterns from a data file, in linear time.

The patterns find known wordings. A rephrased instruction is missed, so the absence of findings
proves nothing (docs/security.md has the measured recall).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args

from rolebundle.errors import ConfigurationError
from rolebundle.scan.finding import Finding, ascii_note
from rolebundle.scan.linear import MATCHES_EMPTY_TEXT, LinearPatterns, PatternError, check

Category = Literal[
    "override", "exfiltration", "role_change", "tool_call", "encoded_payload", "forged_state"
]
CATEGORIES: tuple[str, ...] = get_args(Category)
SHIPPED = Path(__file__).with_name("instructions.toml")

FORGED_STATE = "instruction_forged_state"
"""The kind of a text that poses as a note of the system about how far it can be trusted."""
MAX_FILE_BYTES = 1_000_000
MAX_PATTERNS = 1_000
MAX_FINDINGS_PER_PATTERN = 20
"""How often one pattern is reported for one text."""

# White space, non-breaking and wide spaces, quotes, and Markdown's marks.
_BETWEEN_WORDS = r"[\s\pZ'\"“”„«»‘’`*_~>#|\\/-]+"
# Simpler, because the whole text is searched for the beginnings.
_BETWEEN_FIRST_WORDS = r"[\s'\"*_-]{1,2}"
# "It will not delete any …" and "The kernel can run your …" describe. "You will …" orders.
_DESCRIPTION = re.compile(
    r"(?:\b(?!(?:you|ai|assistant|model|llm|agent|chatbot|bot|user)\b)\w+\s+"
    r"(?:will|would|can|could|may|might)"
    r"|\b(?:(?:will|would|can|could|may|might|does|did|is|are)[\s*_]+not|cannot|\w+n['’]t))[\s*_]+$",
    re.IGNORECASE,
)
_MAX_BEFORE_CHARS = 80
_REQUIRED = ("id", "category", "begins")
_KEYS = (*_REQUIRED, "goes_on")


class Pattern(NamedTuple):
    """One pattern of the file; ``begins`` and ``goes_on`` are RE2 expressions."""

    id: str
    category: str
    begins: str
    goes_on: str = ""


class Patterns:
    """A compiled set of patterns."""

    def __init__(self, patterns: tuple[Pattern, ...]) -> None:
        self.patterns = patterns
        self._linear = LinearPatterns(
            [(_expression(pattern.begins), _with_spaces(pattern.goes_on)) for pattern in patterns]
        )

    def find(self, text: str, data: bytes | None = None) -> tuple[Finding, ...]:
        """The findings in a text, in order. Each kind is ``instruction_`` and the category.

        ``data`` is the text's UTF-8, if the caller has it.
        """
        return tuple(
            Finding(
                f"instruction_{self.patterns[span.pattern].category}",
                span.start,
                span.end,
                ascii_note(f"{self.patterns[span.pattern].id}: {span.text[:80]!r}"),
            )
            for span in self._linear.spans(text, MAX_FINDINGS_PER_PATTERN, data)
            if not _DESCRIPTION.search(text, max(0, span.start - _MAX_BEFORE_CHARS), span.start)
        )


def load_patterns(extra: Path | None = None) -> Patterns:
    """The shipped patterns and those of an extra file, which may also disable shipped ones.

    Raises:
        ConfigurationError: the file cannot be read or has an error.
    """
    if extra is None:
        return _shipped()
    own, disabled = _read(extra)
    for pattern in own:
        _check_expressions(extra, pattern)
    shipped, _ = _read(SHIPPED)
    known = {pattern.id for pattern in shipped}
    for name in disabled:
        if name not in known:
            _refuse(extra, "disabled", "pattern_unknown", f"there is no pattern {name!r}")
    for pattern in own:
        if pattern.id in known:
            _refuse(extra, pattern.id, "pattern_duplicate", "a shipped pattern has this id")
    enabled = [pattern for pattern in shipped if pattern.id not in disabled]
    return Patterns((*enabled, *own))


def patterns_digest(extra: Path | None) -> str:
    """The digest of the shipped patterns, and of a file of further ones.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    content = [_content(path) for path in (SHIPPED, extra) if path is not None]
    return blake2b(repr(content).encode(), digest_size=8).hexdigest()


@cache
def _shipped() -> Patterns:
    return Patterns(tuple(_read(SHIPPED)[0]))


def _expression(begins: str) -> str:
    # The flag applies to the rest of the pattern as well.
    return "(?i)" + _with_spaces(begins, _BETWEEN_FIRST_WORDS)


def _with_spaces(regex: str, gap: str = _BETWEEN_WORDS) -> str:
    """Replace each space of a pattern outside character classes by a gap between words."""
    parts: list[str] = []
    in_class = escaped = False
    for place, character in enumerate(regex):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "[" and not in_class:
            in_class = True
        elif character == "]" and in_class and regex[place - 1] not in "[^":
            in_class = False
        elif character == " " and not in_class:
            # A repetition after the space applies to the whole gap.
            quantified = regex[place + 1 : place + 2] in {"?", "*", "+", "{"}
            parts.append(f"(?:{gap})" if quantified else gap)
            continue
        parts.append(character)
    return "".join(parts)


def _read(path: Path) -> tuple[list[Pattern], list[str]]:
    values = _parsed(path)
    unknown = sorted(set(values) - {"pattern", "disabled"})
    if unknown:
        _refuse(
            path,
            unknown[0],
            "pattern_key_unknown",
            "is unknown; the file may have `pattern` and `disabled`",
        )
    entries = values.get("pattern", [])
    if not isinstance(entries, list) or len(entries) > MAX_PATTERNS:
        _refuse(
            path, "pattern", "pattern_malformed", f"must be a list of up to {MAX_PATTERNS} tables"
        )
    disabled = values.get("disabled", [])
    if not isinstance(disabled, list) or not all(isinstance(name, str) for name in disabled):
        _refuse(path, "disabled", "pattern_malformed", "must be a list of ids")
    patterns: list[Pattern] = []
    ids: set[str] = set()
    for number, entry in enumerate(entries, 1):
        pattern = _pattern(path, f"pattern {number}", entry)
        if pattern.id in ids:
            _refuse(path, pattern.id, "pattern_duplicate", "two patterns have this id")
        ids.add(pattern.id)
        patterns.append(pattern)
    return patterns, disabled


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_content(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:  # Not UTF-8, or not TOML.
        _refuse(path, "", "patterns_malformed", f"is not TOML: {error}")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            _refuse(path, "", "patterns_unreadable", f"is larger than {MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except FileNotFoundError:
        _refuse(path, "", "patterns_missing", "the file of patterns does not exist")
    except OSError as error:
        _refuse(path, "", "patterns_unreadable", error.strerror or "cannot be read")


def _pattern(path: Path, place: str, entry: object) -> Pattern:
    if not isinstance(entry, Mapping):
        _refuse(path, place, "pattern_malformed", "must be a table")
    name = entry.get("id")
    place = f"{place} ({name})" if isinstance(name, str) else place
    for key in sorted(set(entry) - set(_KEYS)):
        reason = f"is unknown; a pattern has {', '.join(_KEYS)}"
        _refuse(path, f"{place}: {key}", "pattern_key_unknown", reason)
    for key in _REQUIRED:
        if key not in entry:
            _refuse(path, f"{place}: {key}", "pattern_key_missing", "is missing")
    for key, value in entry.items():
        if not isinstance(value, str) or not value.strip():
            _refuse(
                path, f"{place}: {key}", "pattern_malformed", "must be a text that is not empty"
            )
    pattern = Pattern(**entry)
    if pattern.category not in CATEGORIES:
        reason = f"{pattern.category[:40]!r} is not one of {', '.join(CATEGORIES)}"
        _refuse(path, f"{place}: category", "pattern_category_unknown", reason)
    return pattern


def _check_expressions(path: Path, pattern: Pattern) -> None:
    # Each part alone: "(a" and "b)" are invalid, but compile when joined.
    for key, expression, is_required in (
        ("begins", pattern.begins, True),
        ("goes_on", pattern.goes_on, False),
    ):
        try:
            check(_expression(expression))
        except PatternError as error:
            if is_required or str(error) != MATCHES_EMPTY_TEXT:
                place = f"{pattern.id}: {key}"
                _refuse(path, place, "pattern_does_not_compile", str(error))


def _refuse(path: Path, place: str, code: str, reason: str) -> NoReturn:
    where = f"{path}: {place}: " if place else f"{path}: "
    raise ConfigurationError(
        code,
        where + reason,
        "correct the file; rolebundle/scan/instructions.toml shows the form",
    )
