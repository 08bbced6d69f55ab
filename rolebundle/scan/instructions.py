"""Instructions to a model in a document's text: patterns from a data file, in linear time.

The patterns find known wordings. A rephrased instruction is missed, so the absence of findings
proves nothing (docs/security.md has the measured recall).
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from pydantic import Field, StringConstraints, ValidationError

from rolebundle.contracts.base import Contract, mistakes_in
from rolebundle.errors import ConfigurationError
from rolebundle.scan.finding import Finding, ascii_note
from rolebundle.scan.linear import MATCHES_EMPTY_TEXT, LinearPatterns, PatternError, check

Category = Literal[
    "override", "exfiltration", "role_change", "tool_call", "encoded_payload", "forged_state"
]
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
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]| ", re.DOTALL)
"""An escaped character, a class of characters, or a space."""
_Text = Annotated[str, StringConstraints(pattern=r"\S")]


class Pattern(Contract):
    """One pattern of the file; ``begins`` and ``goes_on`` are RE2 expressions."""

    id: _Text
    category: Category
    begins: _Text
    goes_on: str = ""


class PatternFile(Contract):
    """A file of patterns; ``disabled`` are ids of shipped ones."""

    pattern: list[Pattern] = Field(default_factory=list, max_length=MAX_PATTERNS)
    disabled: list[str] = Field(default_factory=list)


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
        findings = []
        for number, start, end, matched in self._linear.spans(text, MAX_FINDINGS_PER_PATTERN, data):
            if not _DESCRIPTION.search(text, max(0, start - _MAX_BEFORE_CHARS), start):
                pattern = self.patterns[number]
                note = ascii_note(f"{pattern.id}: {matched[:80]!r}")
                findings.append(Finding(f"instruction_{pattern.category}", start, end, note))
        return tuple(findings)


@lru_cache(maxsize=4)
def load_patterns(extra: Path | None = None, _digest: str = "") -> Patterns:
    """The shipped patterns and those of an extra file, which may also disable shipped ones.

    ``_digest`` is that of the files: others are read again.

    Raises:
        ConfigurationError: the file cannot be read or has an error.
    """
    shipped = _read(SHIPPED)
    if extra is None:
        return Patterns(tuple(shipped.pattern))
    own = _read(extra)
    known = {pattern.id for pattern in shipped.pattern}
    for name in own.disabled:
        if name not in known:
            _refuse(extra, f"disabled: there is no shipped pattern {name!r}")
    for pattern in own.pattern:
        if pattern.id in known:
            _refuse(extra, f"pattern {pattern.id}: another pattern has this id")
        known.add(pattern.id)
        _check_expressions(extra, pattern)
    enabled = [pattern for pattern in shipped.pattern if pattern.id not in own.disabled]
    return Patterns((*enabled, *own.pattern))


def patterns_digest(extra: Path | None) -> str:
    """The digest of the shipped patterns, and of a file of further ones.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    content = [_content(path) for path in (SHIPPED, extra) if path is not None]
    return blake2b(repr(content).encode(), digest_size=8).hexdigest()


def _expression(begins: str) -> str:
    # The flag applies to the rest of the pattern as well.
    return "(?i)" + _with_spaces(begins, _BETWEEN_FIRST_WORDS)


def _with_spaces(regex: str, gap: str = _BETWEEN_WORDS) -> str:
    """Replace each space of a pattern outside character classes by a gap between words."""

    def widened(part: re.Match[str]) -> str:
        # A repetition after the space applies to the whole gap.
        is_quantified = regex[part.end() : part.end() + 1] in {"?", "*", "+", "{"}
        return part[0] if part[0] != " " else f"(?:{gap})" if is_quantified else gap

    return _PART.sub(widened, regex)


def _read(path: Path) -> PatternFile:
    try:
        values = tomllib.loads(_content(path).decode("utf-8"))
        return PatternFile.model_validate(values)
    except ValidationError as error:
        _refuse(path, mistakes_in(error, PatternFile)[0].text_in(values, "pattern", "pattern"))
    except (ValueError, RecursionError) as error:  # Not UTF-8, or not TOML.
        _refuse(path, f"is not TOML: {error}")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            _refuse(path, f"is larger than {MAX_FILE_BYTES} bytes", "patterns_unreadable")
        return path.read_bytes()
    except FileNotFoundError:
        _refuse(path, "the file of patterns does not exist", "patterns_missing")
    except OSError as error:
        _refuse(path, error.strerror or "cannot be read", "patterns_unreadable")


def _check_expressions(path: Path, pattern: Pattern) -> None:
    # Each part alone: "(a" and "b)" are invalid, but compile when joined.
    for key in ("begins", "goes_on"):
        try:
            check(_expression(getattr(pattern, key)))
        except PatternError as error:
            if key == "begins" or str(error) != MATCHES_EMPTY_TEXT:
                _refuse(path, f"pattern {pattern.id}: {key}: {error}")


def _refuse(path: Path, reason: str, code: str = "patterns_malformed") -> NoReturn:
    hint = "correct the file; rolebundle/scan/instructions.toml shows the form"
    raise ConfigurationError(code, f"{path}: {reason}", hint)
