"""Manual pages: roff with the macros of man(7) or mdoc(7), as the words that ``man`` shows.

roff itself is not run. Comments, definitions and requests about the layout are left out. A file
that does not begin with a request, such as the log ``app.log.1``, is read as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers import suffixes_of
from rolebundle.ingest.readers.base import MAX_TITLE_CHARS, ReaderOptions, open_text
from rolebundle.ingest.readers.text import READER as TEXT_READER

_REQUEST = re.compile(r"[.'][ \t]*([A-Za-z%][\w-]*)?[ \t]*(.*)")
_FOR_TERMINAL = re.compile(r"[.'][ \t]*i[ef][ \t]+n[ \t]+(?=[.'])")
_COMMENT = re.compile(r'\\["#].*')
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^ \t\\])+|\\)')
_ESCAPE = re.compile(
    r"""\\(?:
      (?P<layout>[&|^%:,/acdpru{}!?)]|[fFgkmMnVY](?:\(..|\[[^]]*\]|[+-]?.)|z
        |s(?:[+-]?[0-9]|[+-]?\[[^]]*\]|[+-]?'[^']*'|\(..)|[hvwlLDbNRSxXZAB]'[^']*')
      |(?P<space>[ ~0t])
      |\*?(?:\((?P<two>..)|\[(?P<name>[^]]*)\])
      |\*(?P<one>.)
      |(?P<own>.)
    )""",
    re.VERBOSE,
)
_GLYPHS = {
    **{"hy": "-", "mi": "-", "en": "–", "em": "—", "bu": "•", "aq": "'", "Aq": "'", "dq": '"'},
    **{"lq": "“", "rq": "”", "oq": "‘", "cq": "’", "co": "©", "rg": "®", "R": "®", "tm": "™"},
    **{"rs": "\\", "ti": "~", "ha": "^", "ga": "`", "mu": "×", "+-": "±", "<=": "≤", ">=": "≥"},
    **{"!=": "≠", "->": "→", "<-": "←", "de": "°", "sc": "§", "ba": "|", "sl": "/", "at": "@"},
    **{"sh": "#", "Do": "$", "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "<", "ra": ">"},
    **{"Fo": "«", "Fc": "»", "Bq": "„", "ul": "_", "ss": "ß", "AE": "Æ", "ae": "æ", "/O": "Ø"},
    **{"/o": "ø", "oA": "Å", "oa": "å", 'L"': "“", 'R"': "”", "--": "—", "C+": "C++", "'": "'"},
}  # fmt: skip
_ACCENTS = dict(zip(":'`^~,", "\u0308\u0301\u0300\u0302\u0303\u0327", strict=True))
_DATES = ("%Y-%m-%d", "%B %d, %Y", "%d %B %Y", "%B %d %Y", "%m/%d/%Y", "%d %b %Y", "%B %Y")

_TITLES = frozenset(("TH", "Dt"))
_HEADINGS = {"SH": 1, "Sh": 1, "SS": 2, "Ss": 2}
_WORDS = frozenset("B I SM SB R C CW UR MT SY D1".split())
_JOINED_WORDS = frozenset("BR RB BI IB IR RI".split())
_BREAKS = frozenset("P PP LP HP Pp Lp Sp sp RS RE Bl El".split())
_VERBATIM = frozenset("nf EX Vb TS".split())
_VERBATIM_END = frozenset("fi EE Ve TE Ed".split())
_DEFINITIONS = frozenset("de de1 am ig".split())

# Macros of mdoc(7) that stand in a line of text.
_PLAIN = frozenset(
    "Ad An Ar At Cd Cm Dv Em Er Ev Fa Fd Fl Fn Ft Ic In Li Lk Ms Mt Nm No Pa St Sx Sy Tn Va Vt Xr"
    " %A %B %D %I %J %N %O %P %R %T %U %V".split()
)
_AROUND = {
    **{"Op": "[]", "Bq": "[]", "Pq": "()", "Brq": "{}", "Aq": "<>", "Dq": "“”", "Qq": '""'},
    **{"Sq": "‘’", "Ql": "‘’"},
}
_OPENED = {name[:-1] + "o": marks[0] for name, marks in _AROUND.items()}
_CLOSED = {name[:-1] + "c": marks[1] for name, marks in _AROUND.items()}
_CONSTANTS = {
    **{"Ux": "UNIX", "Bx": "BSD", "Ox": "OpenBSD", "Nx": "NetBSD", "Fx": "FreeBSD", "Ap": "'"},
    **{"Nd": "-", "Ex": "It exits 0 on success, and >0 if an error occurs."},
}
_INLINE = {*_PLAIN, *_AROUND, *_OPENED, *_CLOSED, *_CONSTANTS, "Ns", "Pf", "Xo", "Xc"}
_GLUES = {*_AROUND, *_OPENED, "Ns", "Ap"}
_CLOSING_MARKS = frozenset(".,:;)]?!")
_OPENING_MARKS = frozenset("([")


class ManReader:
    """Reads the pages of ``man``."""

    name = "man"
    suffixes = suffixes_of("man")
    version = 1

    def read(self, data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
        """One document per file."""
        file = open_text(data, path)
        first = next((line for line in file.lines if line.strip()), "")
        if not first.startswith((".", "'")):
            yield from TEXT_READER.read(data, path, options)
            return
        page = _Page()
        page.read(file.lines)
        yield ParsedDocument(
            blocks=tuple(page.blocks),
            inferred=page.metadata(),
            line_exact=False,
            notes=file.notes,
        )


class _Page:
    """The blocks of a page, and what its title says.

    ``_lines`` are those of the current block; text of a paragraph is added to the last of them.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._name = self._section = self._date = self._summary = ""
        self._lines: list[str] = []
        self._start = self._end = 0
        self._is_verbatim = False
        # The next text is the tag of a paragraph, or the first after a tag.
        self._is_tag = self._is_after_tag = False

    def metadata(self) -> Mapping[str, str]:
        """Title and date."""
        title = self._summary or self._name
        if self._section and title:
            names, dash, words = title.partition(" - ")
            title = f"{names}({self._section}){dash}{words}"
        values = {"title": title, "updated_at": _iso_date(self._date)}
        return {key: value for key, value in values.items() if value}

    def read(self, lines: Sequence[str]) -> None:
        """Read all lines of the page."""
        end_of_definition = ""
        for number, line in enumerate(lines, 1):
            if end_of_definition:
                if line.startswith(".") and line[1:].lstrip().startswith(end_of_definition):
                    end_of_definition = ""
                continue
            if line[:1] not in {".", "'"}:
                self._text(_plain(_COMMENT.sub("", line)), number)
                continue
            # pod2man writes `.ie n .IP …` for what a terminal shows, and `.el` for a printer.
            match = _REQUEST.match(_FOR_TERMINAL.sub("", line))
            if match is None or not match[1]:
                continue
            name, argument_text = match[1], _COMMENT.sub("", match[2])
            if name in _DEFINITIONS:
                arguments = argument_text.split()[0 if name == "ig" else 1 :]
                end_of_definition = arguments[0] if arguments else "."
            else:
                self._request(name, argument_text, number)
        self._flush()

    def _request(self, name: str, argument_text: str, number: int) -> None:
        if name in _TITLES:
            self._name, self._section, date = [*_arguments(argument_text), "", "", ""][:3]
            self._date = self._date or date
        elif name == "Dd":
            self._date = argument_text.replace("$Mdocdate", "").strip(" $:")
        elif name in _HEADINGS:
            self._heading(" ".join(_arguments(argument_text)), _HEADINGS[name], number)
        elif name in _BREAKS:
            self._flush()
        elif name in _VERBATIM or name == "Bd":
            self._flush()
            self._is_verbatim = (
                name != "Bd" or "-literal" in argument_text or "-unfilled" in argument_text
            )
        elif name in _VERBATIM_END:
            self._flush("table" if name == "TE" else "code")
            self._is_verbatim = False
        elif name in {"TP", "IP", "It"}:
            self._flush()
            tag = (
                _mdoc_words(argument_text, self._name)
                if name == "It"
                else " ".join(_arguments(argument_text)[:1])
            )
            self._is_tag = name == "TP" or bool(tag)
            if tag and name != "TP":
                self._text(tag, number)
        elif words := self._words_of(name, argument_text):
            self._text(words, number)

    def _words_of(self, name: str, argument_text: str) -> str:
        """The text of a request or macro; empty if it has none."""
        words = _arguments(argument_text)
        if name in _WORDS:
            return " ".join(words)
        if name in _JOINED_WORDS:
            return "".join(words)
        if name == "so":
            return f"See {argument_text.strip()}"
        if name == "Nm" and words and not self._summary:
            self._name = words[0]
        if name in _INLINE:
            return _mdoc_words(f"{name} {argument_text}", self._name)
        return _mdoc_words(argument_text, self._name) if name == "Dl" else ""

    def _heading(self, words: str, level: int, number: int) -> None:
        self._flush()
        self._is_verbatim = self._is_tag = self._is_after_tag = False
        self._flush()
        if words:
            words = words[:MAX_TITLE_CHARS]
            self.blocks.append(Block("heading", words, number, number, level, words))

    def _text(self, text: str, number: int) -> None:
        if not self._lines:
            self._start = number
        if self._is_verbatim:
            self._lines.append(text.rstrip())
        elif not text.strip():
            self._flush()
            return
        elif self._is_after_tag or not self._lines:
            self._lines.append("    " + text.strip() if self._is_after_tag else text.strip())
            self._is_tag, self._is_after_tag = False, self._is_tag
        else:
            self._lines[-1] += " " + text.strip()
        self._end = number

    def _flush(self, verbatim: BlockKind = "code") -> None:
        """End the block. A tag stays with the text that follows it after a break."""
        if self._is_after_tag and not self._is_verbatim:
            return
        text = "\n".join(self._lines).strip("\n")
        self._lines = []
        if not text.strip():
            return
        if not self._summary and len(self.blocks) == 1 and self.blocks[0].level:
            # The first section is NAME, in whatever language.
            summary = re.sub(r"\s+[-–—]+\s+", " - ", " ".join(text.split()), count=1)
            self._summary = summary[:MAX_TITLE_CHARS]
        kind = verbatim if self._is_verbatim else "paragraph"
        self.blocks.append(Block(kind, text, self._start, self._end))


def _plain(text: str) -> str:
    """A text without the escapes of roff."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match["layout"]:
        return ""
    if match["space"]:
        return " "
    name = match["two"] or match["name"] or match["one"] or match["own"] or ""
    if name in _GLYPHS:
        return _GLYPHS[name]
    if len(name) == 2 and name[0] in _ACCENTS:
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    code = re.fullmatch(r"u([0-9A-F]{4,6})(?:_[0-9A-F_]*)?", name)
    if code and int(code[1], 16) < 0x110000 and not 0xD800 <= int(code[1], 16) < 0xE000:
        return chr(int(code[1], 16))
    # Such as `\-` and `\.`; a string of the page's own has no text here.
    return {"e": "\\"}.get(match["own"], match["own"]) if match["own"] else ""


def _arguments(argument_text: str) -> list[str]:
    """The arguments of a request."""
    return [
        _plain(match[1].replace('""', '"') if match[1] is not None else match[2])
        for match in _ARGUMENT.finditer(argument_text)
    ]


def _mdoc_words(line: str, own_name: str) -> str:
    """The words of a line of mdoc(7) that begins with a macro or a word."""
    words = _arguments(line)
    text, closers, macro = "", "", ""
    is_glued = True
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else "."
        piece = word
        if word in _CLOSING_MARKS:
            if all(later in _CLOSING_MARKS for later in words[at:]):
                text, closers = text + closers, ""
            is_glued = True
        elif word in _CLOSED:
            piece, is_glued = _CLOSED[word], True
        elif macro == "Xr" and text and re.fullmatch(r"[0-9n][a-z]*", word):
            piece, macro, is_glued = f"({word})", "", True
        elif macro == "Fl" and word not in _INLINE:
            piece = f"-{word}"
        elif word in _INLINE:
            macro = word
            has_words = following not in _INLINE and following not in _CLOSING_MARKS
            piece = _opening(word, "" if has_words else own_name, has_words)
            closers = _AROUND.get(word, "")[1:] + closers
        if piece:
            text += ("" if is_glued else " ") + piece
            is_glued = piece in _OPENING_MARKS or word in _GLUES or macro == "Pf" != word
        else:
            is_glued = is_glued or word in _GLUES
    return text + closers


def _opening(macro: str, own_name: str, has_words: bool) -> str:
    """What a macro puts before its words."""
    mark = _CONSTANTS.get(macro) or _AROUND.get(macro, "")[:1] or _OPENED.get(macro, "")
    return mark or (
        "" if has_words else {"Nm": own_name, "Ar": "file ...", "Fl": "-"}.get(macro, "")
    )


def _iso_date(date: str) -> str:
    for form in _DATES:
        try:
            return datetime.strptime(date.strip(), form).date().isoformat()
        except ValueError:
            continue
    return ""


READER = ManReader()
