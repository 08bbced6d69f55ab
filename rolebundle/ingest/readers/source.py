"""Source code and configuration: definitions, by patterns of their first lines and by indentation.

A block is a definition, or what stands together at the left margin.
A definition begins with the comments and decorators right above it, and ends before the next line
that is indented as much or less, apart from closing brackets and words such as ``end``. So the
outline needs no grammar, holds for code that does not parse, and takes a microsecond per line.
Lines inside of comments and strings of several lines neither begin nor end anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rolebundle.ingest.parsed import Block, ParsedDocument
from rolebundle.ingest.readers import Reader, block_of, is_blank, open_text

_MAX_LEVEL = 6
_MAX_LINE_CHARS = 300
"""In longer lines no definition is looked for."""
_MAX_HEADING_CHARS = 120


_Unit = tuple[int, int, str]
"""Where a part of a file begins, as an index; the level of its definition, from 1; and its name.

The rest of a file after a definition has the level of that definition and no name. Between
definitions the level is 0.
"""


_OF_C = (
    r"(?!(?:return|new|else|throw|if|for|while|switch|catch|case|await|yield|using|do|delete"
    r"|typedef|goto|assert|__attribute__)\b)"
)
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|virtual|override|sealed|async"
    r"|partial|open|data|inline|suspend|export|default|declare|readonly|synchronized|native|unsafe"
    r"|extern|const|constexpr|explicit|implicit|case|lateinit|tailrec|operator|mutating|fileprivate"
    r"|required|convenience|@\w+(?:\([^()]*\))?)\s+)"
)
_TYPES = (
    r"(?:class|interface|enum(?:\s+class)?|struct|record|trait|object|protocol|extension|actor"
    r"|namespace|union|module)"
)
# A method or function whose type stands before its name, and a body below or on the line.
_TYPED = (
    rf"{_OF_C}(?:{_MODIFIERS}{{0,6}}(?:<[^<>]+>\s*)?"
    r"[\w<>\[\],.?:*&]+(?:\s+[\w<>\[\],.?:*&]+){0,4}[\s*&]+"
    r"([\w:~]+)\s*\([^;={}]*\)[^;={}()]*\{\s*\}?\s*$"
    rf"|{_MODIFIERS}{{1,6}}(?:[\w<>\[\],.?]+\s+){{0,4}}(\w+)\s*\([^;={{}}]*$)"
)
_OBJECTS = (
    rf"\s*(?:{_MODIFIERS}{{0,6}}({_TYPES}\s+[\w.]+)"
    rf"|{_MODIFIERS}{{0,6}}((?:fun|func|function|def)\s+(?:<[^<>]*>\s*)?[&\w.]+)|{_TYPED})"
)
_SCRIPT = (
    r"\s*(?:(?:export\s+|default\s+|declare\s+|abstract\s+|async\s+)*"
    r"((?:function\s*\*?|class|interface|enum|namespace|type)\s+[\w$]+)"
    r"|(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s+)?"
    r"(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>|class\b)"
    r"|(?<=\s)(?!(?:if|for|while|switch|catch|function|return|do|else|with)\b)"
    r"(?:(?:public|private|protected|static|readonly|async|get|set|override|\*)\s+)*"
    r"([\w$#]+)\s*(?:<[^<>]*>)?\([^;\"'`]*\)\s*(?::\s*[^;{}]+)?\{\s*$)"
)
_PATTERNS = {
    ".py .pyi": r"\s*(?:async\s+)?((?:def|class)\s+\w+)",
    ".js .jsx .mjs .ts .tsx .vue .svelte": _SCRIPT,
    ".go": r"(func\s+(?:\([^()]*\)\s*)?\w+|type\s+\w+)",
    ".rs": (
        r"\s*(?:pub(?:\([^()]*\))?\s+)?(?:(?:default|async|unsafe|const|extern(?:\s+\"[^\"]*\")?)\s+)*"
        r"((?:fn|struct|enum|trait|union|mod|type|macro_rules!)\s+\w+|impl\b[^{;]*)"
    ),
    ".java .cs .kt .kts .scala .swift .php .dart .groovy .gradle": _OBJECTS,
    ".c .cc .cpp .cxx .h .hh .hpp .m .mm": (
        r"(?>template\s*<.{0,60}>\s*)?(?:typedef\s+)?"
        rf"(?:({_TYPES}\s+[\w:]+)(?=[^;(=]*$)"
        r"|\s+((?:class|struct)\s+\w+)(?=\s*(?:final\s*)?(?::[^;(=]*)?\{?\s*$)"
        rf"|(?=[A-Za-z_~]){_OF_C}[\w:<>,*&\[\]\s]*?([\w:~]+)\s*\([^;]*$|\s+{_TYPED}"
        r"|([-+]\s*\([^()]*\)\s*\w+))"
    ),
    ".rb": r"\s*((?:def|class|module)\s+[\w.:?!=]+)",
    ".lua": r"\s*(?:local\s+)?(?:(function\s+[\w.:]+)|([\w.]+)\s*=\s*function\b)",
    ".sh .bash .zsh .fish": r"\s*(?:(function\s+[\w:.-]+)|([\w:.-]+)\s*\(\))",
    ".r": r"\s*([\w.]+)\s*(?:<-|=)\s*function\b",
    ".sql": (
        r"(?i)\s*(create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+)*"
        r"(?:table|view|function|procedure|trigger|index|type|schema)\s+(?:if\s+not\s+exists\s+)?"
        r"[\w.\"`\[\]]+)"
    ),
    ".proto": r"\s*((?:message|service|enum|rpc)\s+\w+)",
    ".tf .hcl": (
        r"((?:resource|data|module|variable|output|provider|locals|terraform)\b"
        r"(?:\s+\"[^\"]*\")*)\s*\{"
    ),
    ".ini .toml .cfg .properties": r"(\[+[^\[\]]+\]+)\s*(?:[#;].*)?$",
    ".mk makefile justfile": r"([\w./%-]+)\s*::?(?!=)",
    "dockerfile": r"(FROM\s+\S+.*)",
    ".yaml .yml": r"([\w.-]+):(?:\s|$)",
}
_BY_SUFFIX = {suffix: p for suffixes, p in _PATTERNS.items() for suffix in suffixes.split()}
# In these, a definition continues to the next one.
_FLAT = frozenset({".ini", ".toml", ".cfg", ".properties"})
_PYTHON = frozenset({".py", ".pyi"})
_WITH_DIRECTIVES = frozenset(".c .cc .cpp .cxx .h .hh .hpp .m .mm .cs".split())
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_LONG_STRING = r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
_TOKENS_OF_PYTHON = re.compile(
    rf"#[^\n]*|{_LONG_STRING}|{_LONG_STRING.replace(chr(34), chr(39))}|{_STRING}", re.DOTALL
)
_TOKENS = re.compile(rf"//[^\n]*|/\*.*?\*/|{_LONG_STRING}|{_STRING}|`(?:\\.|[^`\\])*`", re.DOTALL)
_SLASHES = frozenset(
    ".js .jsx .mjs .ts .tsx .vue .svelte .go .rs .java .cs .kt .kts .scala .swift .php .dart"
    " .groovy .gradle .c .cc .cpp .cxx .h .hh .hpp .m .mm .css .scss .less .proto".split()
)
# What belongs to the unit above at its own indentation.
_CONTINUES = re.compile(
    r"[}\])]|\{\s*$|(?:end|else|elif|elsif|except|finally|catch|fi|done|esac|rescue|ensure|then|do"
    r"|where)\b"
)
_LABEL = re.compile(r"[A-Za-z_]\w*:\s*$")
_DECORATOR = re.compile(r"@|#!?\[|\[\w")
_COMMENT = re.compile(r"//|/\*|\*|#|--|;|%")
# A return type on a line of its own.
_TYPE_LINE = re.compile(r"(?:[A-Za-z_]\w*[ \t*]+)*[A-Za-z_]\w*[ \t*]*$|template\s*<.*>\s*$")


def _read(data: bytes, path: str, _separator: str) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    lines, notes = open_text(data, path)
    name = path.rpartition("/")[2].lower()
    suffix = name[name.rfind(".") :] if "." in name else name
    blocks = tuple(_blocks(lines, list(_Outline(lines, suffix).units())))
    yield ParsedDocument(blocks=blocks, lines=lines, notes=notes)


def _blocks(lines: Sequence[str], units: Sequence[_Unit]) -> Iterator[Block]:
    """A unit has all lines up to the next one."""
    first = next((i for i, line in enumerate(lines) if not is_blank(line)), len(lines))
    found: list[_Unit] = [*units, (len(lines), 0, "")]
    if found[0][0] > first:
        found.insert(0, (first, 0, ""))
    for (start, level, heading), (end, *_) in pairwise(found):
        yield block_of(lines, "code", start, end, level=level, heading=heading)


class _Outline:
    """The state between two lines of a file."""

    def __init__(self, lines: Sequence[str], suffix: str) -> None:
        self._lines = lines
        self._suffix = suffix
        self._pattern = re.compile(_BY_SUFFIX.get(suffix, "(?!)"))
        # The indentation of each open definition, outermost first.
        self._open: list[int] = []

    def units(self) -> Iterator[_Unit]:
        inside = self._inside()
        # The first of the comments and decorators right above the line, and its indentation.
        above, above_indent, is_decorated = -1, 0, False
        for i, line in enumerate([*self._lines, ""]):
            body = line.lstrip()
            indent = len(line) - len(body)
            if not body:
                if above >= 0 and (not is_decorated or i == len(self._lines)):
                    yield from self._rest(above, above_indent)
                    above = -1
                continue
            is_in_decorator = is_decorated and (indent > above_indent or body[0] in ")]}")
            if i in inside or is_in_decorator or self._is_directive(i, body):
                continue
            is_below = above >= 0 and above_indent == indent
            start = above if is_below else i
            heading = self._heading(line)
            belongs_below = not heading and self._belongs_below(indent, body)
            if above >= 0 and not is_below and (heading or belongs_below):
                yield from self._rest(above, above_indent)
            if belongs_below:
                above, above_indent = start, indent
                is_decorated = (is_decorated and is_below) or bool(_DECORATOR.match(body))
                continue
            above, is_decorated = -1, False
            if heading:
                self._close(indent)
                self._open.append(indent)
                yield start, len(self._open), heading
            elif not self._continues(body):
                yield from self._rest(start, indent)

    def _rest(self, start: int, indent: int) -> Iterator[_Unit]:
        """The rest after a definition, or what stands at the left margin below a blank line."""
        if self._open and indent <= self._open[-1]:
            if self._suffix not in _FLAT:
                self._close(indent)
                yield start, len(self._open) + 1, ""
        elif not self._open and indent == 0 and (start == 0 or is_blank(self._lines[start - 1])):
            yield start, 0, ""

    def _close(self, indent: int) -> None:
        while self._open and self._open[-1] >= indent:
            self._open.pop()

    def _heading(self, line: str) -> str:
        """The name of the definition that begins on a line, or an empty text."""
        if len(line) > _MAX_LINE_CHARS or len(self._open) >= _MAX_LEVEL:
            return ""
        match = self._pattern.match(line)
        # A call with a function as its argument ends with an open brace as well.
        is_call = line.endswith("{") and line.count("(") != line.count(")")
        if match is None or not match.lastindex or is_call:
            return ""
        return " ".join(match[match.lastindex].split())[:_MAX_HEADING_CHARS]

    def _is_directive(self, i: int, body: str) -> bool:
        """Whether a line is for the preprocessor, and in the middle of a definition."""
        is_inner = bool(self._open) and not is_blank(self._lines[i - 1])
        return is_inner and body[0] == "#" and self._suffix in _WITH_DIRECTIVES

    def _belongs_below(self, indent: int, body: str) -> bool:
        """Whether a line belongs to the definition below it, if there is one."""
        if self._suffix in _WITH_DIRECTIVES:
            if body[0] == "#":
                return False
            if indent == 0 and _TYPE_LINE.match(body) and not self._continues(body):
                return True
        return bool(_COMMENT.match(body) or _DECORATOR.match(body))

    def _continues(self, body: str) -> bool:
        is_label = self._suffix in _WITH_DIRECTIVES and _LABEL.match(body)
        return bool(is_label or _CONTINUES.match(body))

    def _inside(self) -> frozenset[int]:
        """The lines that begin inside of a comment or string of several lines."""
        is_python = self._suffix in _PYTHON
        if not is_python and self._suffix not in _SLASHES:
            return frozenset()
        inside: set[int] = set()
        line = counted = 0
        text = "\n".join(self._lines)
        closed = text.rfind("*/") + 2
        # From each "/*" without an end, the rest of the file would be searched.
        text = text[:closed] + text[closed:].replace("/*", "  ")
        for match in (_TOKENS_OF_PYTHON if is_python else _TOKENS).finditer(text):
            start, end = match.span()
            if breaks := text.count("\n", start, end):
                line += text.count("\n", counted, start)
                inside.update(range(line + 1, line + breaks + 1))
                line, counted = line + breaks, end
        return frozenset(inside)


READERS = {"source": Reader("source", 3, _read)}
