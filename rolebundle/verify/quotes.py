"""Whether a quote is what the passages say, and what it leaves out of their sentences. Pure.

A quote is ``exact``, ``normalized`` (the same but for typography), ``misattributed`` (it stands in
a passage that its sentence does not cite), ``near`` (it differs, or is cut so that the sense
turns) or ``absent``. Only the first two pass. A quote of one or two words without a figure or a
negation is a term if its sentence cites nothing: it is looked for, but does not fail.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rolebundle.contracts.documents import Passage
from rolebundle.contracts.verification import FindingCode
from rolebundle.resources import data_file
from rolebundle.text.languages import (
    ENGLISH_STOP_WORDS,
    NEGATIONS,
    NUMBER_WORDS,
    is_unspaced,
    likely_languages,
)
from rolebundle.text.tokens import Tokens, tokens_of
from rolebundle.text.words import WORD, sentence_starts, stem

MIN_SIMILARITY = 75.0
"""Percent of the characters that must agree for ``near``."""
_MAX_COMPARED = 1_000  # Characters of a quote that is aligned.
_MAX_ALIGNED = 3  # Passages that a quote is aligned with.
_MAX_PLACES = 12  # Of a quote in one passage.
_MAX_PARTS = 8
_TERM_WORDS = 2

_ELLIPSIS = re.compile(r"\[ ?(?:\.{3,4}|…) ?\]|\( ?(?:\.{3,4}|…) ?\)|\.{3,4}|…|\. \. \.")
_LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_LINE_MARKS = re.compile(r"(?<=[\r\n])[ \t]*(?:>[ \t]?)+")


class QuoteResult(NamedTuple):
    """What was found out about a quote."""

    code: FindingCode
    passage: Passage | None = None
    true_text: str = ""
    note: str = ""


def check_quote(
    text: str,
    passages: Sequence[Passage],
    cited: Sequence[Passage],
    around: tuple[str, str] = ("", ""),
) -> QuoteResult:
    """Look for a quote in passages; in the cited ones first.

    ``around``: what its sentence says before and after it.
    """
    if len(text) > _MAX_COMPARED + 2 * max((len(p.content) for p in passages), default=0):
        return QuoteResult("absent", note="The quote is longer than every passage.")
    others = [passage for passage in passages if passage not in cited]
    readings = _readings(_LINE_MARKS.sub("", text))
    doubtful: QuoteResult | None = None
    code: FindingCode
    for passage in (*cited, *others):
        for parts, problem in _places(readings, passage.content, around):
            true_text = passage.content[parts[0][0] : parts[-1][1]]
            if problem:
                code, note = problem
                doubtful = doubtful or QuoteResult(code, passage, true_text, note)
                continue
            if cited and passage not in cited:
                note = f"The sentence cites {cited[0].locator}; the quote is in {passage.locator}."
                return doubtful or QuoteResult("misattributed", passage, true_text, note)
            code = "exact" if true_text == text else "normalized"
            return QuoteResult(code, passage, true_text)
    if doubtful or is_term(text):
        return doubtful or QuoteResult("absent")
    return _nearest(text, (*cited, *others))


def is_term(text: str) -> bool:
    """Whether a quote is so short that it may be a name or an expression of the author's."""
    words = lower_words(text)
    if is_unspaced(text):
        return len(text) <= 2 * _TERM_WORDS
    has_figure = any(map(str.isdigit, text)) or not NUMBER_WORDS.isdisjoint(words)
    return len(words) <= _TERM_WORDS and not has_figure and not any(map(denies, words))


# -- reading ---------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _readings(text: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The ways to read a quote: as it is, and as parts between ellipses."""
    whole = _LETTER_IN_BRACKETS.sub(r"\1", text)
    parts = [part for part in _ELLIPSIS.split(whole) if lower_words(part)]
    readings = [[_literal(whole)]]
    if 1 < len(parts) <= _MAX_PARTS or (parts and parts != [whole]):
        readings.append([_literal(part) for part in parts])
    return tuple(tuple(map(re.compile, parts)) for parts in readings if all(parts))


def _literal(text: str) -> str:
    """A pattern of whole tokens. A comma or full stop at the end of a text may be the draft's."""
    tokens = tokens_of(text).line.split()
    end = f"(?:{re.escape(tokens.pop())} )?" if tokens[-1:] in (["."], [","]) else ""
    pattern = "".join(f"{re.escape(token)} " for token in tokens)
    if pattern and tokens[0][0].lower() != tokens[0][0].upper():
        first = tokens[0][0]
        pattern = f"[{first.lower()}{first.upper()}]" + pattern[1:]
    return f"(?<= ){pattern}{end}" if pattern else ""


# -- places ----------------------------------------------------------------------------------------


def _places(
    readings: Sequence[Sequence[re.Pattern[str]]], content: str, around: tuple[str, str]
) -> Iterator[tuple[list[tuple[int, int]], Problem | None]]:
    """The places of a quote in a text: the ranges of its parts, and why they do not count."""
    for joins_lines in (False, True):
        tokens = tokens_of(content, joins_lines=joins_lines)
        for patterns in readings:
            at = 0
            for _ in range(_MAX_PLACES):
                first = patterns[0].search(tokens.line, at)
                if first is None:
                    break
                at = first.start() + 1
                found = [first]
                for pattern in patterns[1:]:
                    following = pattern.search(tokens.line, found[-1].end())
                    found += [following] if following else []
                if len(found) == len(patterns):
                    parts = [_source(tokens, *match.span()) for match in found]
                    yield parts, cut_problem(content, parts, around)


def _source(tokens: Tokens, start: int, end: int) -> tuple[int, int]:
    """The range of the text that a range of the line of tokens stands for."""
    first = max(0, bisect_right(tokens.starts, start) - 1)
    last = max(0, bisect_right(tokens.starts, max(start, end - 2)) - 1)
    return tokens.spans[first][0], tokens.spans[last][1]


def _nearest(text: str, passages: Sequence[Passage]) -> QuoteResult:
    """The passage with the most similar text."""
    quoted = tokens_of(text).line.strip()[:_MAX_COMPARED]
    words = set(quoted.lower().split())
    ranked = sorted(
        passages, key=lambda p: -len(words.intersection(tokens_of(p.content).line.lower().split()))
    )
    score, result = MIN_SIMILARITY, QuoteResult("absent", note="No passage has it.")
    for passage in ranked[:_MAX_ALIGNED]:
        tokens = tokens_of(passage.content)
        # As many words as the quote has, around the longest run of its words.
        of_quote, of_passage = quoted.split(), tokens.line.split()
        run = SequenceMatcher(None, of_passage, of_quote).find_longest_match()
        first = max(0, run.a - run.b)
        nearest = of_passage[first : run.a - run.b + len(of_quote)]
        compared = " ".join(nearest)[:_MAX_COMPARED]
        similarity = 100 * SequenceMatcher(None, quoted, compared, False).ratio()
        if similarity > score:
            start, end = tokens.spans[first][0], tokens.spans[first + len(nearest) - 1][1]
            true_text = passage.content[start:end]
            note = _difference(quoted, tokens_of(true_text).line)
            score, result = similarity, QuoteResult("near", passage, true_text, note)
    return result


def _difference(quoted: str, true_text: str) -> str:
    """What differs between a quote and the passage."""
    words, true_words = quoted.split(), true_text.split()
    changes = []
    matcher = SequenceMatcher(None, words, true_words, autojunk=False)
    for operation, first, last, true_first, true_last in matcher.get_opcodes():
        if operation != "equal":
            new, old = words[first:last], true_words[true_first:true_last]
            changes.append(
                f"the passage says “{' '.join(old)[:120]}”, the quote “{' '.join(new)[:120]}”"
            )
    return "; ".join(changes[:4])


# -- cuts ------------------------------------------------------------------------------------------
#
# 1. A word, a compound or a number is not cut: not "safe" of "unsafe", not "5" of "1.5".
# 2. No word that denies stands right before the quote in its clause, unless the draft has one.
# 3. An ellipsis leaves out no word that denies, limits or sets a condition.
# The words of these rules are English; limits of the same clause are known in other languages, too.

_LIMIT_WORDS = 7  # Words in which a limit says what it is about.
_MAX_GAP = 400  # Characters that an ellipsis may leave out.
_NEAR = 5  # Words before a quote in which a negation governs it.
_TABLES = data_file(__file__, "words.toml")
_WORDS = _TABLES["cuts"]
_TURNING = frozenset(_WORDS["turning"].split())
_DENIED = re.compile("".join(_WORDS["denied"]))
_NO_NEGATION = re.compile(r"\bnot (?:only|just)\b|\bno (?:doubt|matter)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:()—]|\s[–-]\s|\b(?:and|but|so|because|since|which|who)\b", re.I)
# What limits a quote: after it in its clause, or at the beginning of the next sentence.
_LIMITS = {
    language: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    for language, words in _TABLES["limits"].items()
}
_LIMIT_IN_BRACKETS = re.compile(r"\((?=[^()]*\b(?:not|may)\b)")
# A phrase of the same clause: when, where, for whom or how it holds, and what it excludes.
_PHRASE = re.compile("".join(_WORDS["phrase"]))
_LIMIT_BEFORE = re.compile("".join(_WORDS["before"]), re.IGNORECASE)
_NEXT_LIMIT = re.compile("".join(_WORDS["next"]), re.IGNORECASE)
_STOP = re.compile(r"[.!][\"')\]”’*_`]*(?=\s)")
_CLAUSE_AFTER = re.compile(r";|,\s*(?:and|so|which|who|whereas)\b", re.IGNORECASE)
_QUOTED = ("'", '"', "“", "‘", "`")
_QUOTES_END = ("'", '"', "”", "’", "`")
_CUT_BEFORE = re.compile(r"[^\W_](?:[-‐‑/_'’])?\Z|\d[.,:]\Z")
_CUT_AFTER = re.compile(r"[-‐‑/_'’]?[^\W_]")


def lower_words(text: str) -> list[str]:
    """The words of a text in lowercase, with straight apostrophes."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def denies(word: str) -> bool:
    """Whether a lowercase word is a negation."""
    return word in NEGATIONS or word.endswith("n't")


def _is_denial(word: str) -> bool:
    """Whether a lowercase word is a negation, or says that something is not so."""
    return denies(word) or _DENIED.match(word) is not None


def _turns(word: str) -> bool:
    """Whether a lowercase word denies, limits or sets a condition."""
    return word in _TURNING or _is_denial(word)


Problem = tuple[FindingCode, str]


def cut_problem(
    content: str, parts: Sequence[tuple[int, int]], around: tuple[str, str]
) -> Problem | None:
    """Why a quote of these parts of a passage's text turns the sense, or may do so."""
    problems = [_cut_word(content, *part) for part in parts]
    problems += [_gap(content, end, start) for (_, end), (start, _) in pairwise(parts)]
    start, end = parts[0][0], parts[-1][1]
    is_whole = content[start - 1 : start] in _QUOTED and content[end : end + 1] in _QUOTES_END
    starts = sentence_starts(content)
    before = "" if is_whole else content[starts[bisect_right(starts, start) - 1] : start]
    problems.append(_denial_before(before, around))
    if problem := next(filter(None, problems), ""):
        return "near", problem
    words = WORD.findall(content[start:end])
    if len(words) > 1 and all(word[0].isupper() for word in words):
        return None  # A title states nothing that could be limited.
    limit = _LIMIT_BEFORE.search(before)
    if limit and not _is_said(before[limit.start() :], around):
        return "cut_short", f"The passage says before it: “{_excerpt(before)}”."
    problem = "" if is_whole else _limit_left_out(content, end, around)
    return ("cut_short", problem) if problem else None


def _limit_left_out(content: str, end: int, around: tuple[str, str]) -> str:
    """What limits a quote in the passage and is not said in the draft, or nothing."""
    starts = sentence_starts(content)
    at = bisect_left(starts, end)
    last, following = [*starts, len(content), len(content)][at : at + 2]
    rest = _STOP.split(content[end:last])[0]
    phrase = _PHRASE.match(rest)
    languages = likely_languages(content[starts[at - 1] : last]) or ("en",)
    limit = _find_limit(_CLAUSE_AFTER.split(rest)[0], languages) or phrase
    text = rest if lower_words(rest) else content[last:following]
    limit = limit or (None if lower_words(rest) else _NEXT_LIMIT.match(text))
    if limit is None:
        return ""
    # The draft may go on with what follows the limit.
    words = " ".join(text[limit.start() :].split()[:_LIMIT_WORDS])
    if _is_said(words, around, needs_limit=limit is not phrase):
        return ""
    return f"The passage goes on: “{_excerpt(text)}”."


def _find_limit(text: str, languages: Iterable[str]) -> re.Match[str] | None:
    """The first limit of a text in one of these languages."""
    patterns = [_LIMITS[language] for language in languages if language in _LIMITS]
    found = (pattern.search(text) for pattern in (*patterns, _LIMIT_IN_BRACKETS))
    return next(filter(None, found), None)


def _is_said(text: str, around: tuple[str, str], *, needs_limit: bool = True) -> bool:
    """Whether the draft's sentence has two content words of a text, and limits what it quotes."""
    words = lower_words(" ".join(around))
    said, wanted = (
        {stem(word) for word in some if word not in ENGLISH_STOP_WORDS}
        for some in (words, lower_words(text))
    )
    limits = not needs_limit or any(map(_turns, words)) or _find_limit(" ".join(around), _LIMITS)
    return bool(limits) and len(said & wanted) >= min(2, len(wanted))


def _cut_word(content: str, start: int, end: int) -> str:
    """Whether the quote begins or ends inside a word or a number of the passage."""
    is_cut = content[start].isalnum() and _CUT_BEFORE.search(content[max(0, start - 4) : start])
    is_cut = is_cut or (content[end - 1].isalnum() and _CUT_AFTER.match(content, end))
    around = _excerpt(content[max(0, start - 20) : end + 20])
    return f"The quote cuts a word or a number of the passage: “{around}”." if is_cut else ""


def _denial_before(before: str, around: tuple[str, str]) -> str:
    """The word right before a quote that denies it, if the draft's sentence has no such word."""
    near = lower_words(_CLAUSE_END.split(_NO_NEGATION.sub(" ", before))[-1])[-_NEAR:]
    denial = next(filter(_is_denial, near), "")
    if not denial or any(map(_is_denial, lower_words(" ".join(around)))):
        return ""
    return f"The passage says “{denial}” before it: “{_excerpt(before)}”."


def _gap(content: str, start: int, end: int) -> str:
    """Why an ellipsis must not leave out ``content[start:end]``, or nothing."""
    gap = content[start:end].strip(" \n`*_")
    if len(gap) <= _MAX_GAP and not any(map(_turns, lower_words(gap))):
        return ""
    return f"The ellipsis leaves out “{_excerpt(gap)}”."


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:120]
