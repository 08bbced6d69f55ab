"""What a number counts or measures: its unit, its rate, its nouns and its label. Pure."""

from __future__ import annotations

import re

from rolebundle.text.figures import patterns
from rolebundle.text.figures.quantities import UNITS_BY_NAME, Unit
from rolebundle.text.figures.reader import FigureReader
from rolebundle.text.figures.values import rate_of
from rolebundle.text.unit_names import NUMBERED
from rolebundle.text.words import stem


def unit_after(
    reader: FigureReader, end: int, *, skips: bool = True
) -> tuple[tuple[Unit, ...], int]:
    """The units that may follow a number that ends here, and their end; empty if none does."""
    low = reader.low
    if low[end : end + 1] in patterns.NO_UNIT:
        return (), end
    if match := patterns.SIGN.match(low, end):
        if match[1] == "×" and re.match(r" ?\d", low[match.end() : match.end() + 2]):
            return (), end
        if units := UNITS_BY_NAME.get(match[1]):
            return units, match.end()
    place, skipped = end, 0
    while match := patterns.GAP_WORD.match(low, place):
        word, after = match[2], match.end()
        if match[1] == " -" or (match[1] == "" and skipped):
            break
        for further in (
            (patterns.TWO_MORE, patterns.ONE_MORE) if word in patterns.FIRST_WORDS else ()
        ):
            more = further.match(low, after)
            if more and (units := UNITS_BY_NAME.get(f"{word} {' '.join(more.groups())}")):
                return units, more.end()
        units = UNITS_BY_NAME.get(reader.text[match.start(2) : after]) or UNITS_BY_NAME.get(word)
        if units and not (skipped and len(word) < 3):
            return units, after
        # "30 consecutive days", "5 sunny days": at most one word.
        is_word = word not in patterns.BLOCKING and word not in reader.grammar.triggers
        is_word = is_word and (word in patterns.SKIPPED or word not in reader.grammar.stop_words)
        if skipped or not skips or match[1] == "" or not is_word:
            break
        further_word = patterns.GAP_WORD.match(low, after)
        if not further_word or further_word[1] != " ":
            break
        if word not in patterns.SKIPPED and further_word[2] not in patterns.LENGTHS:
            break
        place, skipped = after, skipped + 1
    return (), end


def rate_after(reader: FigureReader, end: int) -> tuple[str, int]:
    """What a figure is a rate of, and the end of that."""
    low = reader.low
    if low[end : end + 1] not in " /":
        return "", end
    if match := patterns.PERIOD.match(low, end):
        return rate_of(match[1]), match.end()
    if match := patterns.PER.match(low, end):
        word = match[1]
        is_explicit = "/" in match[0] or match[0].startswith((" per ", " pro ", " par ", " por "))
        units = UNITS_BY_NAME.get(word)
        is_period = units and units[0].dimension in ("time", "month")
        if is_explicit or (is_period and len(word) > 1):
            return rate_of(word) or stem(word), match.end()
    return "", end


def nouns_after(reader: FigureReader, end: int) -> tuple[frozenset[str], int]:
    """The stems of up to three words that a number counts, and their end."""
    nouns, low = [], reader.low
    for _ in range(3):
        match = patterns.GAP_WORD.match(low, end)
        if match is None or match[1] not in (" ", "-") or match[2] in reader.grammar.stop_words:
            break
        if match[2] in reader.grammar.triggers or match[2] in patterns.BLOCKING:
            break
        nouns.append(stem(match[2]))
        end = match.end()
    return frozenset(nouns), end


def label_before(reader: FigureReader, start: int, before: str) -> str:
    """What kind of thing a number names: "section 4", "Windows 11", "#12"; "" if it counts."""
    sign = "#" if before == "#" or reader.text[start : start + 1] == "#" else ""
    word = before.lower()
    if word in NUMBERED or word.removesuffix("s") in NUMBERED:
        return stem(word)
    if sign or not before:
        return sign
    if word in reader.grammar.stop_words or word in patterns.NO_LABEL or not before[0].isupper():
        return ""
    if before.isupper() and len(before) > 1:
        return word
    place = start - len(before) - 1
    is_first = patterns.WORK_BEFORE.search(reader.text[max(0, place - 4) : place]) is not None
    is_noun = reader.language == "de" or word in reader.grammar.triggers
    return "" if is_first or is_noun or place <= 0 else stem(word)


def is_currency(text: str) -> bool:
    """Whether a text is the sign or the code of a currency."""
    return re.fullmatch(rf"(?:{patterns.CURRENCY}|{patterns.CODES})", text) is not None


def currency_before(reader: FigureReader, start: int) -> tuple[tuple[Unit, ...], int] | None:
    """The currency before a number, and where it begins."""
    last = reader.low[max(reader.position, start - 2) : start].rstrip(" ")[-1:]
    if not (last and last in patterns.CURRENCY_ENDS):
        return None
    match = patterns.CURRENCY_BEFORE.search(reader.low, max(reader.position, start - 6), start)
    return (UNITS_BY_NAME[match[1].rstrip(".")], match.start(1)) if match else None
