"""Whether a quote is what the passages say. Pure.

A quote is ``exact``, ``normalized`` (the same but for typography), ``misattributed`` (it stands in
a passage that its sentence does not cite), ``near`` (it differs, or is cut so that the sense
turns) or ``absent``. Only the first two pass. A quote of one or two words without a figure or a
negation is a term if its sentence cites nothing: it is looked for, but does not fail.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.fuzz import partial_ratio_alignment

from rolebundle.contracts.document import Passage
from rolebundle.contracts.verification import FindingCode
from rolebundle.text.languages import is_unspaced
from rolebundle.verification.draft.cuts import cut_problem, denies, is_figure, turns, words_of
from rolebundle.verification.draft.tokens import Tokens, tokens_of

MIN_SIMILARITY = 75.0
"""Percent of the characters that must agree for ``near``."""
_MAX_COMPARED = 1_000  # Characters of a quote that is aligned.
_MAX_ALIGNED = 3  # Passages that a quote is aligned with.
_MAX_PLACES = 12  # Of a quote in one passage.
_MAX_PARTS = 8
_TERM_WORDS, _REPLACEMENT_WORDS = 2, 5

_ELLIPSIS = re.compile(r"\[ ?(?:\.{3,4}|…) ?\]|\( ?(?:\.{3,4}|…) ?\)|\.{3,4}|…|\. \. \.")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_EDITORIAL = re.compile(
    r"sic!?|(?:emphasis|italics) (?:added|mine|ours)|my emphasis", re.IGNORECASE
)
_LINE_MARKS = re.compile(r"(?<=[\r\n])[ \t]*(?:>[ \t]?)+")
_PRONOUN = (
    r"(?i:he|she|it|they|him|her|them|his|hers|its|theirs?|this|that|these|those|we|us|ours?|i|me"
    r"|my|mine|you|yours?) "
)


class QuoteResult(NamedTuple):
    """What was found out about a quote."""

    code: FindingCode
    passage: Passage | None = None
    true_text: str | None = None
    note: str | None = None


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
    readings = _readings(_LINE_MARKS.sub("", text) if _is_marked(text) else text)
    doubtful: QuoteResult | None = None
    for passage in (*cited, *others):
        for parts, problem in _places(readings, passage.content, around):
            true_text = passage.content[parts[0][0] : parts[-1][1]]
            if problem:
                doubtful = doubtful or QuoteResult("near", passage, true_text, problem)
                continue
            if cited and passage not in cited:
                note = f"The sentence cites {cited[0].locator}; the quote is in {passage.locator}."
                return doubtful or QuoteResult("misattributed", passage, true_text, note)
            code: FindingCode = "exact" if true_text == text else "normalized"
            return QuoteResult(code, passage, true_text)
    if doubtful or is_term(text):
        return doubtful or QuoteResult("absent")
    return _nearest(text, (*cited, *others))


def _is_marked(text: str) -> bool:
    """Whether each line but the first begins with the mark of a blockquote."""
    return all(line.lstrip().startswith(">") for line in text.splitlines()[1:])


def is_term(text: str) -> bool:
    """Whether a quote is so short that it may be a name or an expression of the author's."""
    words = words_of(text)
    if is_unspaced(text):
        return len(text) <= 2 * _TERM_WORDS
    return len(words) <= _TERM_WORDS and not any(is_figure(word) or denies(word) for word in words)


# -- reading ---------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _readings(text: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The ways to read a quote: as it is, and as parts between ellipses, with brackets."""
    patterns: dict[tuple[str, ...], None] = {}
    for joins_lines in (False, True):
        patterns[(_literal(text, joins_lines),)] = None
        parts = [part for part in _ELLIPSIS.split(text) if words_of(part)]
        if len(parts) <= _MAX_PARTS and (parts != [text] or "[" in text):
            read = [_with_brackets(part, joins_lines) for part in parts]
            if all(read):
                patterns[tuple(filter(None, read))] = None
    return tuple(tuple(map(re.compile, parts)) for parts in patterns if all(parts))


def _literal(text: str, joins_lines: bool, *, is_first: bool = True) -> str:
    """A pattern of a text. A comma or full stop at its end may be the draft's."""
    tokens = tokens_of(text, joins_lines=joins_lines).line.split()
    if not tokens:
        return ""
    end = f"(?:{re.escape(tokens.pop())} )?" if tokens[-1] in (".", ",") else ""
    pattern = "".join(f"{re.escape(token)} " for token in tokens)
    if pattern and is_first and tokens[0][0].lower() != tokens[0][0].upper():
        first = tokens[0][0]
        pattern = f"[{first.lower()}{first.upper()}]" + pattern[1:]
    return pattern + end if pattern else ""


def _with_brackets(part: str, joins_lines: bool) -> str:
    """A pattern of a part: ``[t]he`` is "the" or "The", ``[sic]`` is the draft's.

    ``[the team]`` stands for a pronoun, and ``[it]`` for the last word of a name.
    """
    pattern, position, letter = "", 0, ""
    for match in [*_BRACKETS.finditer(part), None]:
        literal = letter + part[position : match.start() if match else len(part)]
        pattern += _literal(literal, joins_lines, is_first=bool(letter) or not pattern)
        if match is None:
            break
        inner, position, letter = match[1].strip(), match.end(), ""
        words = words_of(inner)
        if len(inner) == 1 and inner.isalpha() and part[position : position + 1].isalpha():
            letter = inner
        elif not _EDITORIAL.fullmatch(inner):
            stands = [_literal(inner, joins_lines)]
            if re.fullmatch(_PRONOUN, f"{inner} "):
                stands.append(r"[^\s\d]+ ")
            elif len(words) <= _REPLACEMENT_WORDS and not any(
                turns(w) or is_figure(w) for w in words
            ):
                stands.append(_PRONOUN)
            pattern += f"(?:{'|'.join(filter(None, stands))})"
    return pattern


# -- places ----------------------------------------------------------------------------------------


def _places(
    readings: Sequence[Sequence[re.Pattern[str]]], content: str, around: tuple[str, str]
) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """The places of a quote in a text: the ranges of its parts, and why they do not count."""
    for joins_lines in (False, True):
        tokens = tokens_of(content, joins_lines=joins_lines)
        for patterns in readings:
            at = 0
            for _ in range(_MAX_PLACES):
                first = _next(patterns[0], tokens.line, at)
                if first is None:
                    break
                at = first.start() + 1
                found = [first]
                for pattern in patterns[1:]:
                    following = _next(pattern, tokens.line, found[-1].end())
                    found += [following] if following else []
                if len(found) == len(patterns):
                    parts = [_source(tokens, *match.span()) for match in found]
                    yield parts, cut_problem(content, parts, around)


def _next(pattern: re.Pattern[str], line: str, at: int) -> re.Match[str] | None:
    """The next match that begins with a token."""
    while (match := pattern.search(line, at)) and line[match.start() - 1] != " ":
        at = match.start() + 1
    return match


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
        found = partial_ratio_alignment(quoted, tokens.line, score_cutoff=score)
        if found and found.score > score and found.dest_start < found.dest_end:
            start, end = _source(tokens, found.dest_start, found.dest_end)
            true_text = passage.content[start:end]
            note = _difference(quoted, tokens_of(true_text).line)
            score, result = found.score, QuoteResult("near", passage, true_text, note)
    return result


def _difference(quoted: str, true_text: str) -> str:
    """What differs between a quote and the passage; changed negations and figures first."""
    words, true_words = quoted.split(), true_text.split()
    changes = []
    matcher = SequenceMatcher(None, words, true_words, autojunk=False)
    for operation, first, last, true_first, true_last in matcher.get_opcodes():
        if operation != "equal":
            new, old = words[first:last], true_words[true_first:true_last]
            changed = [word.lower() for word in (*new, *old)]
            is_grave = any(denies(word) or is_figure(word) for word in changed)
            change = f"the passage says “{' '.join(old)[:120]}”, the quote “{' '.join(new)[:120]}”"
            changes.append((not is_grave, change))
    return "; ".join(change for _, change in sorted(changes, key=lambda c: c[0])[:4])
