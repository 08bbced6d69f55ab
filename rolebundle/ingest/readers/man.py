"""Manual pages: roff with the macros of man(7) or mdoc(7), as the words that ``man`` shows.

roff itself is not run. Comments, definitions and requests about the layout are left out. A file
that does not begin with a request, such as the log ``app.log.1``, is read as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from rolebundle.ingest.parsed import Block, BlockKind, ParsedDocument
from rolebundle.ingest.readers.base import MAX_TITLE_CHARS, Reader, ReaderOptions, open_text
from rolebundle.ingest.readers.lines import read_text

_REQUEST = re.compile(r"[.'][ \t]*([A-Za-z%][\w-]*)[ \t]*(.*)")
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
_GLYPHS = dict(
    pair.rsplit("=", 1)
    for pair in r"""hy=- mi=- en=– em=— --=— bu=• aq=' Aq=' dq=" lq=“ rq=” oq=‘ cq=’ L"=“ R"=” co=©
    rg=® R=® tm=™ rs=\ ti=~ ha=^ ga=` mu=× +-=± <==≤ >==≥ !==≠ ->=→ <-=← de=° sc=§ ba=| sl=/ at=@
    sh=# Do=$ lB=[ rB=] lC={ rC=} la=< ra=> Fo=« Fc=» Bq=„ ul=_ ss=ß AE=Æ ae=æ /O=Ø /o=ø oA=Å oa=å
    C+=C++ '=' e=\ """.split()
)
_ACCENTS = dict(zip(":'`^~,", "\u0308\u0301\u0300\u0302\u0303\u0327", strict=True))
_CODE_POINT = re.compile(r"u([0-9A-F]{4,6})(?:_[0-9A-F_]*)?")
_DATES = ("%Y-%m-%d", "%B %d, %Y", "%d %B %Y", "%B %d %Y", "%m/%d/%Y", "%d %b %Y", "%B %Y")

_HEADINGS = {"SH": 1, "Sh": 1, "SS": 2, "Ss": 2}
_BETWEEN_WORDS = {
    **dict.fromkeys("B I SM SB R C CW UR MT SY D1".split(), " "),
    **dict.fromkeys("BR RB BI IB IR RI".split(), ""),
}
_BREAKS = frozenset("P PP LP HP Pp Lp Sp sp RS RE Bl El".split())
_VERBATIM = frozenset("nf EX Vb TS Bd".split())
_VERBATIM_END = frozenset("fi EE Ve TE Ed".split())
_DEFINITIONS = frozenset("de de1 am ig".split())

# Macros of mdoc(7) that stand in a line of text, and what those put around their words.
_PLAIN = frozenset(
    "Ad An Ar At Cd Cm Dl Dv Em Er Ev Fa Fd Fl Fn Ft Ic In Li Lk Ms Mt Nd Nm No Ns Pa Pf St Sx Sy"
    " Tn Va Vt Xo Xc Xr %A %B %D %I %J %N %O %P %R %T %U %V".split()
)
_AROUND = {
    name: (marks[0], marks[1])
    for name, marks in zip(
        "Op Bq Pq Brq Aq Dq Qq Sq Ql".split(), '[] [] () {} <> “” "" ‘’ ‘’'.split(), strict=True
    )
}
_OPENED = {name[:-1] + "o": marks[0] for name, marks in _AROUND.items()}
_CLOSED = {name[:-1] + "c": marks[1] for name, marks in _AROUND.items()}
_CLOSED |= {mark: mark for mark in ".,:;)]?!"}
_INLINE = {*_PLAIN, *_AROUND, *_OPENED, *_CLOSED}
_SECTION = re.compile(r"[0-9n][a-z]*")


def _read(data: bytes, path: str, options: ReaderOptions) -> Iterable[ParsedDocument]:
    """One document per file.

    Raises:
        DocumentError: ``undecodable``.
    """
    file = open_text(data, path)
    first = next((line for line in file.lines if line.strip()), "")
    if not first.startswith((".", "'")):
        yield from read_text(data, path, options)
        return
    page = _Page()
    page.read(file.lines)
    yield ParsedDocument(
        blocks=tuple(page.blocks), inferred=page.metadata(), line_exact=False, notes=file.notes
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
            # pod2man writes `.ie n .IP …` for what a terminal shows, and `.el` for a printer.
            elif match := _REQUEST.match(_FOR_TERMINAL.sub("", line)):
                name, rest = match[1], _COMMENT.sub("", match[2])
                if name in _DEFINITIONS:
                    end_of_definition = (*rest.split()[name != "ig" :], ".")[0]
                else:
                    self._request(name, rest, number)
        self._flush()

    def _request(self, name: str, rest: str, number: int) -> None:
        words = _arguments(rest)
        if name in {"TH", "Dt"}:
            self._name, self._section, date = (*words, "", "", "")[:3]
            self._date = self._date or date
        elif name == "Dd":
            self._date = rest.replace("$Mdocdate", "").strip(" $:")
        elif name in _HEADINGS:
            self._heading(" ".join(words), _HEADINGS[name], number)
        elif name in _BREAKS:
            self._flush()
        elif name in _VERBATIM or name in _VERBATIM_END:
            self._flush("table" if name == "TE" else "code")
            is_shown = name != "Bd" or "-literal" in rest or "-unfilled" in rest
            self._is_verbatim = name in _VERBATIM and is_shown
        elif name in {"TP", "IP", "It"}:
            self._flush()
            tag = _mdoc_words(words, self._name) if name == "It" else " ".join(words[:1])
            self._is_tag = name == "TP" or bool(tag)
            if tag and name != "TP":
                self._text(tag, number)
        elif text := self._words_of(name, words):
            self._text(text, number)

    def _words_of(self, name: str, words: Sequence[str]) -> str:
        """The text of a request or macro; empty if it has none."""
        if name == "Nm" and words and not self._summary:
            self._name = words[0]
        if name in _INLINE:
            return _mdoc_words((name, *words), self._name)
        if name == "so":
            return f"See {' '.join(words)}"
        between = _BETWEEN_WORDS.get(name)
        return "" if between is None else between.join(words)

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
    if match["layout"] or match["space"]:
        return " " if match["space"] else ""
    name = match["two"] or match["name"] or match["one"] or match["own"] or ""
    if name in _GLYPHS:
        return _GLYPHS[name]
    if len(name) == 2 and name[0] in _ACCENTS:
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    code = _CODE_POINT.fullmatch(name)
    if code and int(code[1], 16) < 0x110000 and not 0xD800 <= int(code[1], 16) < 0xE000:
        return chr(int(code[1], 16))
    # Such as `\-` and `\.`; a string of the page's own has no text here.
    return match["own"] or ""


def _arguments(argument_text: str) -> list[str]:
    """The arguments of a request."""
    return [
        _plain(match[1].replace('""', '"') if match[1] is not None else match[2])
        for match in _ARGUMENT.finditer(argument_text)
    ]


def _mdoc_words(words: Sequence[str], own_name: str) -> str:
    """The words of a line of mdoc(7) that begins with a macro or a word."""
    defaults = {"Nm": own_name, "Ar": "file ...", "Fl": "-", "Nd": "-"}
    text, closers, macro = "", "", ""
    for at, word in enumerate(words):
        if word in _CLOSED:
            if all(later in _CLOSED for later in words[at:]):
                text, closers = text.rstrip() + closers, ""
            text = f"{text.rstrip()}{_CLOSED[word]} "
        elif word in _INLINE:
            macro = word
            text += _AROUND[word][0] if word in _AROUND else _OPENED.get(word, "")
            closers = (_AROUND[word][1] if word in _AROUND else "") + closers
            if word == "Ns":
                text = text.rstrip()
            elif word == "Nd" or at + 1 == len(words) or words[at + 1] in _INLINE:
                text += f"{defaults.get(word, '')} ".lstrip()
        elif macro == "Xr" and _SECTION.fullmatch(word):
            text, macro = f"{text.rstrip()}({word}) ", ""
        else:
            text += f"-{word} " if macro == "Fl" else f"{word} "
    return text.rstrip() + closers


def _iso_date(date: str) -> str:
    for form in _DATES:
        with suppress(ValueError):
            return datetime.strptime(date.strip(), form).date().isoformat()
    return ""


READER = Reader("man", 2, _read)
