"""Hidden text: characters that a reader does not see, or takes for others. Find and remove them.

Most invisible characters have a use: emoji are joined by them, Persian and Hindi are spelled with
them, Thai breaks its lines at them, Hebrew is mixed with Latin by them. Each run of them is
therefore judged by its visible neighbours.

Bidirectional controls reorder what is displayed (UAX 9; Boucher and Anderson, "Trojan Source:
Invisible Vulnerabilities", 2021, is the attack). Overrides have no use in prose. Embeddings and
isolates are legitimate if they are closed on their line, in a text with right-to-left letters,
around the direction that they are for.

Look-alikes are letters of another script inside a word: ``раypal`` with a Cyrillic ``ра``. Words
that people do write in two scripts are not reported: ``μm``, ``TNFα``, ``νmax``, ``IDшник``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice

from rolebundle.scan import characters as ch
from rolebundle.scan.finding import Finding, ascii_note

MAX_FINDINGS = 10_000
"""The most findings of each sort. A text with more consists of hidden text."""

_RUN = re.compile(f"[{ch.HIDDEN}]+")
_KIND_OF = [(re.compile(f"[{members}]"), kind) for kind, members in ch.KINDS.items()]
_LONG_RUN = 256
_MIN_SUSPICIOUS_MARKS = 3

# A soft hyphen on both sides of a single letter marks no syllable.
_SPELLED_OUT = re.compile("\u00ad(?=\\w\u00ad)|(?<=\u00ad\\w)\u00ad")


def find_hidden(text: str) -> tuple[Finding, ...]:
    """The hidden text in a text, in order, at most ``MAX_FINDINGS`` places of each sort."""
    # Little is left of most texts without the plain characters, and removing those is ten times as
    # fast as searching the whole text with a regular expression.
    remaining = text.encode("utf-8", "surrogatepass").translate(None, ch.PLAIN)
    if not remaining:
        return ()
    unusual = remaining.decode("utf-8", "surrogatepass")
    findings = _invisible_characters(text) if _RUN.search(unusual) else []
    if ch.FOREIGN_LETTER.search(unusual) and ch.SCRIPT_BOUNDARY.search(text):
        findings += [
            Finding(kind, start, end, _word_note(kind, text[start : min(end, start + 60)]))
            for start, end, kind in islice(_look_alike_words(text), MAX_FINDINGS)
        ]
        findings.sort(key=lambda finding: finding.start)
    return tuple(findings)


# Invisible characters


_RTL_LETTER = re.compile(f"[{ch.RTL}]")
_CONTROL = re.compile(f"[{ch.EMBEDDINGS}]")
_OPENERS_OF = {"\u202c": "\u202a\u202b", "\u2069": "\u2066\u2067\u2068"}
_RIGHT_TO_LEFT = "\u202b\u2067"


@lru_cache(maxsize=1)
def _has_rtl(text: str) -> bool:
    """Whether the text has a right-to-left letter."""
    return _RTL_LETTER.search(text) is not None


@lru_cache(maxsize=1)
def _closed_controls(text: str) -> frozenset[int]:
    """Offsets of the harmless embeddings and isolates, and of the controls that close them."""
    letters = [match.start() for match in _RTL_LETTER.finditer(text)]
    harmless: set[int] = set()
    open_controls: list[int] = []
    last = 0
    for match in _CONTROL.finditer(text) if letters else ():
        position, control = match.start(), match[0]
        if text.find("\n", last, position) >= 0:
            open_controls.clear()  # They end with their paragraph.
        last = position
        if control not in _OPENERS_OF:
            open_controls.append(position)
        elif open_controls and text[open_controls[-1]] in _OPENERS_OF[control]:
            opened = open_controls.pop()
            has_letter = bisect_left(letters, opened) < bisect_left(letters, position)
            if has_letter or text[opened] not in _RIGHT_TO_LEFT:
                harmless.update((opened, position))
    return frozenset(harmless)


def _invisible_characters(text: str) -> list[Finding]:
    findings: list[Finding] = []
    for match in _RUN.finditer(text):
        start, end = match.span()
        run = match[0]
        before = text[start - 1] if start else ""
        after = text[end : end + 1]
        if start == 0 and run[0] == "\ufeff":  # A byte order mark at the start of the text.
            start, run = 1, run[1:]
        if not run or _is_legitimate(run, before, after, start, text):
            continue
        findings += _run_findings(run, start)
        if len(findings) >= MAX_FINDINGS:
            break
    return findings


_WITHOUT_EMBEDDINGS = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u2066\u2067\u2068\u2069"))
_JOINED = re.compile("(?<=[‐–—―…])[\u2060\ufeff]|[\u2060\ufeff](?=(?: [\u2060\ufeff])?[‐–—―…])")
"""What keeps a dash or an ellipsis on the line of its word, as in books."""


def _is_legitimate(run: str, before: str, after: str, start: int, text: str) -> bool:
    """Whether a run of invisible characters has a use between its visible neighbours."""
    if before == ch.BLACK_FLAG and ch.is_flag(run):
        return True
    if before and _is_emoji_glue(run, before, after):
        return True
    marks = run.translate(_WITHOUT_EMBEDDINGS)
    controls = {at for at, sign in enumerate(run, start) if ord(sign) in _WITHOUT_EMBEDDINGS}
    if controls and not controls <= _closed_controls(text):  # Not all of them are closed.
        return False
    if len(marks) >= _MIN_SUSPICIOUS_MARKS or (len(marks) == 2 and not _is_usual_pair(marks)):
        return False
    # The neighbours of a mark beside an isolate are the letters around both.
    return all(
        _is_used(character, before, after, offset, text)
        for offset, character in enumerate(run, start)
        if character in marks
    )


def _is_usual_pair(marks: str) -> bool:
    """Whether two invisible characters in a row occur in honest texts."""
    first, second = marks[0], marks[1]
    if first == second:
        return first in "\u200c" + ch.MARKS
    if ch.is_selector(first):
        return second in "\u200d\u200c\u180e" + ch.MARKS
    return first in ch.MARKS or second in ch.MARKS


def _is_emoji_glue(run: str, before: str, after: str) -> bool:
    """Whether a run selects the form of an emoji or joins two of them."""
    if run in ("\ufe0e", "\ufe0f"):
        # A combining keycap after a digit, or any pictograph before.
        if before in "0123456789#*":
            return after == "\u20e3" or run == "\ufe0e"
        return ch.takes_emoji_selector(before)
    is_joiner = run in ("\u200d", "\ufe0f\u200d")
    return is_joiner and ch.is_pictograph(after) and ch.is_pictograph(before)


def _is_used(character: str, before: str, after: str, offset: int, text: str) -> bool:
    """Whether a single invisible character has a use between its visible neighbours."""
    if character in ch.MARKS:
        # Between two Latin letters it splits a word, whatever the rest of the text is.
        return _has_rtl(text) and not (_is_ascii_letter(before) and _is_ascii_letter(after))
    if character == ch.SOFT_HYPHEN:
        return ch.is_letter_before_hyphen(before) and not _SPELLED_OUT.match(text, offset)
    if ch.is_selector(character):
        return _selector_belongs(character, before, after)
    if _JOINED.match(text, offset):
        return True
    is_user = _USERS_OF.get(character)
    return is_user is not None and any(map(is_user, before + after))


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _selector_belongs(character: str, before: str, after: str) -> bool:
    if not before:
        return False
    if character in "\u180b\u180c\u180d\u180f":
        return ch.is_mongolian(before)
    if character >= "\U000e0100":
        is_registered = character <= ch.LAST_REGISTERED_SELECTOR
        return is_registered and ch.takes_ideographic_selector(before)
    if character in "\ufe0e\ufe0f":
        return _is_emoji_glue(character, before, after)
    return ch.takes_other_selector(before)


# For each invisible character, the test for the letters that need it.
_USERS_OF = {
    **dict.fromkeys("\u200b\u2060", ch.is_unspaced),
    **dict.fromkeys("\u200c\u200d\u034f", ch.is_joining),
    **dict.fromkeys("\u115f\u1160", ch.is_jamo),
    **dict.fromkeys("\u17b4\u17b5", ch.is_khmer),
    **{"\u180e": ch.is_mongolian, "\u2800": ch.is_braille},
}


def _run_findings(run: str, start: int) -> Iterator[Finding]:
    """A run of invisible characters as findings, one for each stretch of a kind."""
    if len(run) > _LONG_RUN:  # A finding per stretch would be unreadable, and without end.
        kind = _kind(run[0])
        is_uniform = len(set(map(_kind, run))) == 1
        note = _run_note(kind, run) if is_uniform else f"{len(run)} characters of several kinds"
        yield Finding(kind, start, start + len(run), note)
        return
    for kind, characters in groupby(run, _kind):
        stretch = "".join(characters)
        yield Finding(kind, start, start + len(stretch), _run_note(kind, stretch))
        start += len(stretch)


@lru_cache(maxsize=1_024)
def _kind(character: str) -> str:
    return next(kind for pattern, kind in _KIND_OF if pattern.match(character))


@lru_cache(maxsize=1_024)
def _run_note(kind: str, run: str) -> str:
    if message := _decoded_run(kind, run):
        return ascii_note(f"decodes to {message!r}")
    codes = " ".join(f"U+{ord(character):04X}" for character in dict.fromkeys(run[:64]))
    return ascii_note(f"{len(run)} x {codes}" if len(run) > 1 else codes)


def decoded(text: str, findings: Sequence[Finding]) -> str:
    """The text that the hidden characters of all runs encode together."""
    messages = []
    for kind in ("tag_characters", "variation_selectors"):
        run = "".join(text[f.start : f.end] for f in findings if f.kind == kind)
        messages.append(_decoded_run(kind, run))
    return "\n".join(messages)


def _decoded_run(kind: str, run: str) -> str:
    """The text that a run of tag characters or selectors encodes, or an empty text."""
    if kind == "tag_characters":
        text = "".join(chr(ord(c) - 0xE0000) for c in run if "\U000e0020" <= c < "\U000e007f")
        return text if text.isprintable() else ""
    if kind == "variation_selectors":
        # The usual encoding: one selector per byte, 16 of the first block and 240 of the second.
        values = bytes(
            ord(c) - 0xFE00 if c <= "\ufe0f" else ord(c) - 0xE0100 + 16
            for c in run
            if "\ufe00" <= c <= "\ufe0f" or c >= "\U000e0100"
        )
        text = values.decode("utf-8", "replace")
        if len(text) > 1 and "\ufffd" not in text and text.isprintable():
            return text
    return ""


# Look-alikes


def _look_alike_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Words with letters that pass for another script's, as start, end and kind.

    ``homoglyph`` is a foreign letter in a Latin word, ``latin_homoglyph`` a Latin letter in a
    Cyrillic one.
    """
    judged = 0
    for boundary in ch.SCRIPT_BOUNDARY.finditer(text):
        if boundary.start() < judged:
            continue
        start = boundary.start()
        # The word may have begun before the place where its scripts meet.
        while start > judged and ch.WORD.match(text[start - 1]):
            start -= 1
        word = ch.WORD.match(text, start)
        assert word is not None
        judged = word.end()
        if kind := _look_alike_kind(word[0]):
            yield start, word.end(), kind


def _look_alike_kind(word: str) -> str:
    foreign = ch.FOREIGN_LETTER.findall(word)
    if all(letter in ch.LOOK_ALIKES for letter in foreign):
        return "" if _is_usual_mixture(word, foreign) else "homoglyph"
    if ch.GREEK_LETTER.search(word):
        return ""
    return "latin_homoglyph" if _has_latin_passing_for_cyrillic(word) else ""


def _is_usual_mixture(word: str, foreign: list[str]) -> bool:
    """Whether people write this word in two scripts, though every foreign letter looks Latin."""
    latin = "".join(ch.LATIN_RUN.findall(word))
    # A small letter cannot replace one of an all-capitals word: TNFα, NFκB, URLа, IDе.
    # No formula has an omicron.
    if len(latin) > 1 and all(map(str.isupper, latin)) and all(map(str.islower, foreign)):
        return "ο" not in foreign
    if not all(letter in ch.FORMULA_LETTERS for letter in foreign):
        return False
    if len(word) <= 3:
        return True  # hν, νe, ρw
    has_subscript = word[0] in ch.FORMULA_LETTERS and word[1:] in ch.FORMULA_SUBSCRIPTS
    return len(foreign) == 1 and has_subscript


def _has_latin_passing_for_cyrillic(word: str) -> bool:
    for run in ch.LATIN_RUN.finditer(word):
        is_inside = run.start() > 0 and run.end() < len(word)
        # At an edge, capitals are an abbreviation with an ending: PHPшник.
        is_alike = len(run[0]) <= 2 and ch.LATIN_LIKE_CYRILLIC.issuperset(run[0])
        if is_alike and (is_inside or run[0].islower()):
            return True
    return False


def _word_note(kind: str, word: str) -> str:
    if kind != "homoglyph":
        return "Latin letters in a Cyrillic word"
    codes = " ".join(
        f"U+{ord(letter):04X}" for letter in dict.fromkeys(word) if letter in ch.LOOK_ALIKES
    )
    return ascii_note(f"reads as {word.translate(ch.TO_LATIN)!r}: {codes}")


# Removal

_REPLACEMENTS = {"homoglyph": ch.TO_LATIN, "latin_homoglyph": ch.TO_CYRILLIC}
# Removing a character can expose another one. Honest texts need fewer than three rounds.
_MAX_ROUNDS = 3

Removal = tuple[list[int], list[int]]
"""Offsets in the shortened text, and how many characters were removed up to each."""


def normalized_with_offsets(
    text: str, findings: Iterable[Finding]
) -> tuple[str, tuple[Removal, ...]]:
    """The text without hidden characters and with look-alikes replaced; line breaks stay.

    Also the removals that :func:`original_offset` needs.
    """
    remaining = tuple(findings)
    removals: list[Removal] = []
    while remaining:
        if len(removals) >= _MAX_ROUNDS:
            # Such a text is built in layers or consists of hidden text: remove every character
            # that may be hidden, legitimate or not.
            invisible = (Finding("zero_width", *match.span(), "") for match in _RUN.finditer(text))
            words = (Finding(kind, start, end, "") for start, end, kind in _look_alike_words(text))
            remaining = tuple(sorted((*invisible, *words), key=lambda finding: finding.start))
        text, removal = _remove(text, remaining)
        removals.append(removal)
        remaining = find_hidden(text)
    return text, tuple(removals)


def original_offset(removals: tuple[Removal, ...], offset: int) -> int:
    """The offset in the original text of an offset in the normalized text."""
    for offsets, counts in reversed(removals):
        before = bisect_right(offsets, offset)
        offset += counts[before - 1] if before else 0
    return offset


def in_original(finding: Finding, removals: tuple[Removal, ...]) -> Finding:
    """A finding in the normalized text with its place in the original text."""
    # The end is that of the last character: what was hidden after it is not part of the finding.
    start, last = (original_offset(removals, at) for at in (finding.start, finding.end - 1))
    return finding._replace(start=start, end=last + 1)


def _remove(text: str, findings: Iterable[Finding]) -> tuple[str, Removal]:
    parts: list[str] = []
    offsets: list[int] = []
    counts: list[int] = []
    copied_until = length = removed = 0
    for kind, start, end, *_ in findings:
        if start < copied_until or not (kind in ch.KINDS or kind in _REPLACEMENTS):
            continue
        parts.append(text[copied_until:start])
        length += start - copied_until
        if kind in _REPLACEMENTS:
            # One letter replaces one letter, so offsets stay.
            parts.append(text[start:end].translate(_REPLACEMENTS[kind]))
            length += end - start
        else:
            removed += end - start
            offsets.append(length)
            counts.append(removed)
        copied_until = end
    parts.append(text[copied_until:])
    return "".join(parts), (offsets, counts)
